// SPDX-License-Identifier: BSD-3-Clause
// Wait codes: the position of the highest bit of the microseconds, and the three bits below it.
#include <jobs/report.h>
#include <jobs/wait.h>

#define EXACT 8 // smaller codes are plain microseconds
#define CODE_MAX (JOBS_WAIT_UNKNOWN - 1)

uint8_t jobs_wait_code(uint64_t wait_ns) {
	uint64_t us = wait_ns / 1000;
	uint32_t top, code;

	if (wait_ns == JOBS_TIME_UNKNOWN)
		return JOBS_WAIT_UNKNOWN;
	if (us < EXACT)
		return (uint8_t)us;
	top = 63 - (uint32_t)__builtin_clzll(us);
	code = (top - 2) * EXACT + (uint32_t)(us >> (top - 3) & (EXACT - 1));
	return code < CODE_MAX ? (uint8_t)code : CODE_MAX;
}

uint64_t jobs_wait_us(uint8_t code) {
	uint32_t top = code / EXACT + 2;

	return code < EXACT ? code : (uint64_t)(EXACT + code % EXACT) << (top - 3);
}
