// SPDX-License-Identifier: BSD-3-Clause
// Position within its bucket of the sample with a given rank.
//
// The histogram of all samples gives the bucket. A bucket is 0.1 % wide, or wider after thinning.
// The samples stored one by one show how samples are spread in the bucket. For example, a coarse
// clock puts all of them on one value far from the bucket's middle. If all samples are stored, the
// sample itself is known. Otherwise its position among the stored samples has an error.
#pragma once

#include "record.h"

#include <lib/histogram.h>

struct place {
	struct histogram_span bucket;
	const uint64_t *kept; // stored samples of the bucket, ascending
	uint32_t kept_count;
	double at; // position of the rank among the stored samples; the n-th of n has n - 0.5
};

// Find the position of a rank, from 1 to the number of samples. The result is valid until the next
// sample is recorded. Returns 0 or -ENOMEM.
int place_find(struct run_record *record, uint64_t rank, struct place *ret_place);

// Return the stored sample at the position, or the middle of a bucket without stored samples.
uint64_t place_quantile_value(const struct place *place);

// Return the largest value up to which the share of the run is known, and this share.
uint64_t place_bound(const struct place *place);
double place_share(const struct place *place, uint64_t count);

// Return the extra distance, in stored samples, by which the end of an interval moves outwards. The
// reason is that the stored samples are only some of the bucket's. `tau` samples are worth one
// independent sample, and `ranks` is the distance from the interval's quantile to its end. Returns
// 0 if all samples are stored.
double place_error(const struct place *place, double tau, uint64_t ranks, double level);
// Return the nearest stored sample that is lower or higher by the error; without one, the end of
// the bucket.
uint64_t place_low(const struct place *place, double error);
uint64_t place_high(const struct place *place, double error);
