// SPDX-License-Identifier: BSD-3-Clause
// Benchmarks of the recording of a sample.
#include "micro.h"

#include <lib/clock.h>
#include <lib/must.h>

#include <record.h>
#include <stdlib.h>

// Small enough for the first-level cache, large enough to defeat branch prediction.
#define VALUE_COUNT 1024

// Fill in latencies around 10 us with a tail, from a multiplicative sequence that is the same in
// every run.
static void values_fill(uint64_t ret_values[VALUE_COUNT]) {
	uint64_t state = 1;

	for (size_t n = 0; n < VALUE_COUNT; n++) {
		state = state * 6364136223846793005 + 1442695040888963407;
		ret_values[n] = 8000 + (state >> 52) + (n % 64 == 0 ? state >> 44 : 0);
	}
}

// Read the clock twice and record the difference, repeatedly.
static uint64_t samples_keep(struct run_record *record, uint64_t rounds) {
	uint64_t values[VALUE_COUNT], start_ns;
	struct clock clock;

	values_fill(values);
	clock_init_resynced(&clock);
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++) {
		uint64_t begin_ns = clock_now_ns(&clock);

		run_record_add(record, values[n % VALUE_COUNT] + clock_now_ns(&clock) - begin_ns);
	}
	return clock_monotonic_ns() - start_ns;
}

// Use a new record in each slice.
uint64_t micro_record_sample(uint64_t rounds) {
	struct run_record *record;
	uint64_t took_ns;

	must(run_record_create(&record) == 0);
	run_record_touch(record, UINT64_MAX);
	took_ns = samples_keep(record, rounds);
	run_record_destroy(record);
	return took_ns;
}

// Use one record for all slices, so that windows are joined and blocks dropped.
uint64_t micro_record_sample_long(uint64_t rounds) {
	static struct run_record *record;

	if (record == NULL) {
		must(run_record_create(&record) == 0);
		run_record_touch(record, UINT64_MAX);
	}
	return samples_keep(record, rounds);
}

uint64_t micro_record_clock_twice(uint64_t rounds) {
	struct clock clock;
	uint64_t start_ns;

	clock_init_resynced(&clock);
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++) {
		uint64_t begin_ns = clock_now_ns(&clock);

		micro_keep(clock_now_ns(&clock) - begin_ns);
	}
	return clock_monotonic_ns() - start_ns;
}
