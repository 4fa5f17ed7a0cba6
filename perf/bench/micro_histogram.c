// SPDX-License-Identifier: BSD-3-Clause
// Benchmarks of histograms.
#include "micro.h"

#include <lib/clock.h>
#include <lib/histogram.h>
#include <lib/must.h>

#include <stdlib.h>
#include <string.h>

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

uint64_t micro_histogram_record(uint64_t rounds) {
	uint64_t values[VALUE_COUNT], start_ns, end_ns;
	struct histogram *histogram;

	values_fill(values);
	must(histogram_create(&histogram_shape_latency, &histogram) == 0);
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++)
		histogram_record(histogram, values[n % VALUE_COUNT]);
	end_ns = clock_monotonic_ns();
	histogram_destroy(histogram);
	return end_ns - start_ns;
}

uint64_t micro_histogram_log2_record(uint64_t rounds) {
	uint64_t values[VALUE_COUNT], start_ns;
	struct histogram_log2 log2;

	values_fill(values);
	histogram_log2_init(&log2);
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++)
		histogram_log2_record(&log2, values[n % VALUE_COUNT]);
	return clock_monotonic_ns() - start_ns;
}

// Lower bound of a histogram: increment a counter found by the value.
uint64_t micro_counter_add(uint64_t rounds) {
	uint64_t values[VALUE_COUNT], start_ns;
	uint32_t counters[4096] = {0};

	values_fill(values);
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++) {
		counters[values[n % VALUE_COUNT] % 4096]++;
		micro_touch(counters);
	}
	return clock_monotonic_ns() - start_ns;
}

uint64_t micro_histogram_snapshot(uint64_t rounds) {
	struct histogram *live, *copy;
	uint64_t start_ns, end_ns;

	must(histogram_create(&histogram_shape_latency, &live) == 0);
	must(histogram_create(&histogram_shape_latency, &copy) == 0);
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++)
		must(histogram_snapshot(live, copy) == 0);
	end_ns = clock_monotonic_ns();
	histogram_destroy(live);
	histogram_destroy(copy);
	return end_ns - start_ns;
}

uint64_t micro_histogram_copy(uint64_t rounds) {
	size_t size = histogram_size_bytes(&histogram_shape_latency);
	void *from = calloc(1, size), *to = calloc(1, size);
	uint64_t start_ns, end_ns;

	must(from != NULL && to != NULL);
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++) {
		memcpy(to, from, size);
		micro_touch(to);
	}
	end_ns = clock_monotonic_ns();
	free(from);
	free(to);
	return end_ns - start_ns;
}
