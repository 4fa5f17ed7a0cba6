// SPDX-License-Identifier: BSD-3-Clause
// Conversion of counter ticks to nanoseconds by one multiplication and one shift.
#pragma once

#include <stdint.h>

// A counter with a rate outside of these bounds is rejected.
#define CLOCK_SCALE_HZ_MIN 1000000ULL
#define CLOCK_SCALE_HZ_MAX 20000000000ULL
// 10 us of drift per second, far below every latency and deadline that is compared here.
#define CLOCK_SCALE_ERROR_PPB_MAX 10000U
#define CLOCK_SCALE_SHIFT 40

// One reading of counter and time: the time was `ns` at some tick from `ticks_before` to
// `ticks_after`.
struct clock_sample {
	uint64_t ticks_before, ticks_after;
	uint64_t ns;
};

static inline uint64_t clock_sample_ticks(const struct clock_sample *sample) {
	return sample->ticks_before + (sample->ticks_after - sample->ticks_before) / 2;
}

struct clock_scale {
	uint64_t ticks_base;
	uint64_t ns_base;    // time at ticks_base
	uint64_t multiplier; // nanoseconds per tick << CLOCK_SCALE_SHIFT; at most 50 bits
	uint32_t error_ppb;  // bound of the rate error
};

// Compute the rate from two samples of one counter and clock, and the base from the second sample.
// Returns 0; -EINVAL if ticks or time do not advance; -ERANGE if the rate is outside of
// CLOCK_SCALE_HZ_MIN..MAX; -EAGAIN if the rate is less certain than CLOCK_SCALE_ERROR_PPB_MAX.
// After -EAGAIN, take the second sample later.
int clock_scale_init(
	struct clock_scale *ret_scale,
	const struct clock_sample *first,
	const struct clock_sample *last
);

// Convert ticks to nanoseconds. Ticks before the base read as the base. The product has at most 114
// bits, so nanoseconds in 64 bits overflow first (after 584 years).
static inline uint64_t clock_scale_ns(const struct clock_scale *scale, uint64_t ticks) {
	uint64_t passed = ticks > scale->ticks_base ? ticks - scale->ticks_base : 0;

	return scale->ns_base +
	       (uint64_t)((unsigned __int128)passed * scale->multiplier >> CLOCK_SCALE_SHIFT);
}
