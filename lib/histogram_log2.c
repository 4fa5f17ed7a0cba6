// SPDX-License-Identifier: BSD-3-Clause
// The small form is the general one with one bucket per octave and storage of its own: each
// call describes it for its own time and leaves the work to the general code.
#include "histogram_inside.h"

#include <lib/must.h>

#include <string.h>

const struct histogram_shape histogram_shape_log2 = {
	.value_min = 1,
	.value_max = (1ULL << HISTOGRAM_LOG2_BUCKETS) - 1,
	.precision_bits = 1,
	.counter_bits = 32,
};

// The description of a const one is used for reading only.
static struct histogram log2_described(const struct histogram_log2 *log2) {
	struct histogram histogram;

	histogram_describe(&histogram_shape_log2, &histogram);
	must(histogram.bucket_count == HISTOGRAM_LOG2_BUCKETS);
	histogram.moments = (struct histogram_moments *)&log2->moments;
	histogram.narrow = (_Atomic uint32_t *)log2->counters;
	return histogram;
}

void histogram_log2_init(struct histogram_log2 *log2) {
	memset(log2, 0, sizeof(*log2));
	cell_store(&log2->moments.min, UINT64_MAX);
}

int histogram_log2_snapshot(const struct histogram_log2 *live, struct histogram_log2 *copy) {
	struct histogram from = log2_described(live), to = log2_described(copy);

	return histogram_snapshot(&from, &to);
}

void histogram_log2_summarize(
	const struct histogram_log2 *log2, struct histogram_summary *ret_summary
) {
	struct histogram histogram = log2_described(log2);

	histogram_summarize(&histogram, ret_summary);
}

uint64_t histogram_log2_percentile(const struct histogram_log2 *log2, uint32_t per_million) {
	struct histogram histogram = log2_described(log2);

	return histogram_percentile(&histogram, per_million);
}
