// SPDX-License-Identifier: BSD-3-Clause
// Readings of a clock whose source is not the TSC.
#include <lib/clock.h>
#include <lib/must.h>

#include <time.h>

uint64_t clock_monotonic_ns(void) {
	struct timespec now;

	// Cannot fail: the clock exists on every Linux and the address is valid.
	must(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t clock_now_other_ns(const struct clock *clock) {
	if (clock->source == CLOCK_SOURCE_FAKE)
		return atomic_load_explicit(&clock->fake_ns, memory_order_acquire);
	return clock_monotonic_ns();
}
