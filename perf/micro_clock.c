// SPDX-License-Identifier: BSD-3-Clause
// Benchmarks of reading clocks.
#include "micro.h"

#include <lib/clock.h>

static uint64_t read_many(const struct clock *clock, uint64_t rounds) {
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++)
		micro_keep(clock_now_ns(clock));
	return clock_monotonic_ns() - start_ns;
}

// Where there is no TSC to trust this is the kernel's clock, and the ratio says so.
uint64_t micro_clock_tsc(uint64_t rounds) {
	// Calibrated once: a slice that begins with a sleep begins on a cold processor.
	static struct clock clock;
	static bool calibrated;

	if (!calibrated)
		clock_init_tsc(&clock);
	calibrated = true;
	return read_many(&clock, rounds);
}

uint64_t micro_clock_monotonic(uint64_t rounds) {
	struct clock clock;

	clock_init_monotonic(&clock);
	return read_many(&clock, rounds);
}

uint64_t micro_clock_rdtsc(uint64_t rounds) {
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++) {
#ifdef __x86_64__
		micro_keep(__builtin_ia32_rdtsc());
#else
		micro_keep(clock_monotonic_ns());
#endif
	}
	return clock_monotonic_ns() - start_ns;
}
