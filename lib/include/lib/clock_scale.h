// SPDX-License-Identifier: BSD-3-Clause
// From the ticks of a steady counter to nanoseconds, by one multiplication and one shift.
#pragma once

#include <stdint.h>

// A counter outside of these is not one that ticks steadily for us.
#define CLOCK_SCALE_HZ_MIN 1000000ULL
#define CLOCK_SCALE_HZ_MAX 20000000000ULL
// 10 us of drift per second: far below what any latency or deadline here is compared with.
#define CLOCK_SCALE_ERROR_PPB_MAX 10000U
#define CLOCK_SCALE_SHIFT 40

// The time was `ns` at some tick from `ticks_before` to `ticks_after`.
struct clock_sample {
	uint64_t ticks_before, ticks_after;
	uint64_t ns;
};

static inline uint64_t clock_sample_ticks(const struct clock_sample *sample) {
	return sample->ticks_before + (sample->ticks_after - sample->ticks_before) / 2;
}

struct clock_scale {
	uint64_t ticks_base;
	uint64_t ns_base;    // the time at ticks_base
	uint64_t multiplier; // nanoseconds per tick << CLOCK_SCALE_SHIFT; at most 50 bits
	uint32_t error_ppb;  // bound on how far the rate is off
};

// Takes the rate from two samples of the same counter and time, the base from the second.
// Returns 0; -EINVAL if ticks or time do not advance, -ERANGE if the rate is outside of
// CLOCK_SCALE_HZ_MIN..MAX, -EAGAIN if the samples leave the rate more uncertain than
// CLOCK_SCALE_ERROR_PPB_MAX: take the second one later.
int clock_scale_init(
	struct clock_scale *ret_scale,
	const struct clock_sample *first,
	const struct clock_sample *last
);

// Ticks before the base read as the base. The product has at most 114 bits, so there is no
// time at which this overflows before nanoseconds in 64 bits do (584 years).
static inline uint64_t clock_scale_ns(const struct clock_scale *scale, uint64_t ticks) {
	uint64_t passed = ticks > scale->ticks_base ? ticks - scale->ticks_base : 0;

	return scale->ns_base +
	       (uint64_t)((unsigned __int128)passed * scale->multiplier >> CLOCK_SCALE_SHIFT);
}
