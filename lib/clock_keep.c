// SPDX-License-Identifier: BSD-3-Clause
// Resynchronization of a TSC clock with CLOCK_MONOTONIC: deviation and correction.
#include <lib/clock.h>

#define WIDTH_NS_MAX 2000	     // widest sample that is used for a correction
#define RATE_NS UINT64_C(1000000000) // least time between the two samples of a rate
// The kernel slews CLOCK_MONOTONIC by at most 8 % and 500 ppm. A larger deviation is a jump.
#define SLEW_SHARE 8
#define JUMP_NS UINT64_C(1000000)

static uint64_t time_distance(uint64_t one, uint64_t other) {
	return one > other ? one - other : other - one;
}

static uint64_t ticks_ns(const struct clock_scale *scale, uint64_t ticks) {
	return (uint64_t)((unsigned __int128)ticks * scale->multiplier >> CLOCK_SCALE_SHIFT);
}

static uint64_t
sample_width_ns(const struct clock_scale *scale, const struct clock_sample *sample) {
	return ticks_ns(scale, sample->ticks_after - sample->ticks_before);
}

// Compare the ticks with the time since the last call, independent of the clock's reading then.
static bool clock_jumped(const struct clock *clock, const struct clock_sample *sample) {
	const struct clock_resync_state *kept = &clock->kept;
	uint64_t ticks = clock_sample_ticks(sample), counted_ns, passed_ns;

	if (ticks < kept->ticks || sample->ns < kept->ns)
		return true;
	passed_ns = sample->ns - kept->ns;
	counted_ns = ticks_ns(&clock->scale, ticks - kept->ticks);
	return time_distance(counted_ns, passed_ns) >
	       passed_ns / SLEW_SHARE + JUMP_NS + sample_width_ns(&clock->scale, sample);
}

// Correct the base of the scale. If the clock is ahead, the base moves to the tick at which the
// right time reaches the current reading. Ticks before the base read as the base.
static void
correct_scale_base(struct clock_scale *scale, uint64_t ticks, uint64_t reading_ns, uint64_t ns) {
	uint64_t ahead_ns = reading_ns > ns ? reading_ns - ns : 0;

	scale->ns_base = ns + ahead_ns;
	scale->ticks_base =
		ticks +
		(uint64_t)(((unsigned __int128)ahead_ns << CLOCK_SCALE_SHIFT) / scale->multiplier);
}

enum clock_resync clock_resync_at(struct clock *clock, const struct clock_sample *sample) {
	struct clock_scale *scale = &clock->scale;
	struct clock_resync_state *kept = &clock->kept;
	uint64_t ticks = clock_sample_ticks(sample);
	uint64_t width = sample_width_ns(scale, sample);
	uint64_t reading_ns, off_ns;

	if (clock_jumped(clock, sample)) {
		clock->source = CLOCK_SOURCE_MONOTONIC;
		clock->reason = "the TSC jumped away from the kernel's clock";
		return CLOCK_RESYNC_JUMPED;
	}
	if (width > WIDTH_NS_MAX)
		return CLOCK_RESYNC_INTERRUPTED;
	reading_ns = clock_scale_ns(scale, ticks);
	off_ns = time_distance(reading_ns, sample->ns);
	if (off_ns > kept->off_ns_max)
		kept->off_ns_max = off_ns;

	// Measure the rate over at least one second. The width of two samples then adds at most
	// parts per million.
	if (sample->ns - kept->rate_ns >= RATE_NS && ticks > kept->rate_ticks) {
		scale->multiplier = (uint64_t
		)(((unsigned __int128)(sample->ns - kept->rate_ns) << CLOCK_SCALE_SHIFT) /
		  (ticks - kept->rate_ticks));
		kept->rate_ticks = ticks;
		kept->rate_ns = sample->ns;
	}
	// A deviation below the accuracy of the sample is not corrected; else each call would shift
	// the clock.
	correct_scale_base(
		scale, ticks, reading_ns, off_ns > width / 2 + 1 ? sample->ns : reading_ns
	);
	kept->ticks = ticks;
	kept->ns = sample->ns;
	return CLOCK_RESYNC_DONE;
}

uint64_t clock_resync_deviation_ns(const struct clock *clock) {
	return clock->kept.off_ns_max;
}
