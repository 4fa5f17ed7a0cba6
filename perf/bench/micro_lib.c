// SPDX-License-Identifier: BSD-3-Clause
// Benchmarks of lib: clocks, hostlists and a disabled log call.
#include "micro.h"

#include <lib/clock.h>
#include <lib/hostlist.h>
#include <lib/log.h>
#include <lib/must.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t read_many(const struct clock *clock, uint64_t rounds) {
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++)
		micro_keep(clock_now_ns(clock));
	return clock_monotonic_ns() - start_ns;
}

// Read the TSC clock. Without a reliable TSC this is the kernel's clock, which shows in the ratio.
uint64_t micro_clock_tsc(uint64_t rounds) {
	// Calibrate once: calibration sleeps, and a slice after a sleep would start on a cold
	// processor.
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

#define NAME_COUNT 100000
#define NAME_BYTES_MAX 24

uint64_t micro_hostlist_expand(uint64_t rounds) {
	static const char text[] = "rack[001-100]node[0001-1000]";
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++) {
		struct hostlist *list = NULL;

		must(hostlist_expand(text, strlen(text), NAME_COUNT, NULL, &list) == 0);
		must(hostlist_count(list) == NAME_COUNT);
		hostlist_destroy(list);
	}
	return clock_monotonic_ns() - start_ns;
}

// Format only the names: no checks, no search for duplicates.
uint64_t micro_hostlist_format(uint64_t rounds) {
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++) {
		char *names = malloc((size_t)NAME_COUNT * NAME_BYTES_MAX);

		must(names != NULL);
		for (unsigned int i = 0; i < NAME_COUNT; i++)
			snprintf(
				names + (size_t)i * NAME_BYTES_MAX, NAME_BYTES_MAX,
				"rack%03unode%04u", i / 1000 + 1, i % 1000 + 1
			);
		micro_touch(names);
		free(names);
	}
	return clock_monotonic_ns() - start_ns;
}

uint64_t micro_log_disabled(uint64_t rounds) {
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++) {
		log_event(LOG_LEVEL_DEBUG, "not_shown", log_u64("round", n));
		micro_keep(n);
	}
	return clock_monotonic_ns() - start_ns;
}

uint64_t micro_log_load_and_branch(uint64_t rounds) {
	static _Atomic int level; // static storage, as the log level
	uint64_t start_ns = clock_monotonic_ns();
	uint64_t enabled = 0;

	for (uint64_t n = 0; n < rounds; n++) {
		if (__builtin_expect(atomic_load_explicit(&level, memory_order_relaxed) > 2, 0))
			micro_keep(enabled++);
		micro_keep(n);
	}
	return clock_monotonic_ns() - start_ns;
}
