// SPDX-License-Identifier: BSD-3-Clause
// Where within its bucket the sample of a rank lies.
//
// The histogram of all samples tells the bucket, 0.1 % wide and more where it was thinned out. What
// is kept sample by sample tells how the bucket's are spread in it: a clock of steps puts all of
// them on one value, which is nowhere near the bucket's middle. Of a run that is kept whole these
// are all, and the sample is known itself; else its place among those kept has an error.
#pragma once

#include "record.h"

#include <lib/histogram.h>

struct place {
	struct histogram_span bucket;
	const uint64_t *kept; // of the bucket, the smallest first
	uint32_t kept_count;
	double at; // of the rank among them: the n-th of n has n - 0.5
};

// `rank` from 1 to the count of samples. Until the next sample. 0 or -ENOMEM.
int place_of(struct run_record *record, uint64_t rank, struct place *ret_place);

// The kept sample there; of a bucket without any its middle.
uint64_t place_value(const struct place *place);

// What the part of the run at or below it is known of, and that part.
uint64_t place_bound(const struct place *place);
double place_share(const struct place *place, uint64_t count);

// How much farther out, in kept samples, the end of an interval lies because these are only some of
// the bucket's, of which `tau` are worth one; the end is `ranks` away from what the interval is of.
// Where all are kept, 0.
double place_error(const struct place *place, double tau, uint64_t ranks, double level);
// So much lower, or higher, the nearest kept sample; where there is none that end of the bucket.
uint64_t place_low(const struct place *place, double error);
uint64_t place_high(const struct place *place, double error);
