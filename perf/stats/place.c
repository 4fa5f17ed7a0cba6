// SPDX-License-Identifier: BSD-3-Clause
// Find the positions of ranks among the stored samples of their buckets.
#include "place.h"

#include "quantile.h"

#include <lib/must.h>

#include <math.h>

// Return how many of the sorted samples are below a value.
static uint32_t count_below(const struct run_sorted *sorted, uint64_t value) {
	uint32_t low = 0, high = sorted->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (sorted->samples[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int place_find(struct run_record *record, uint64_t rank, struct place *ret_place) {
	struct place place = {.kept_count = 0};
	struct run_sorted sorted;
	uint32_t before;
	int err = histogram_at_rank(run_record_all(record), rank, &place.bucket);

	must(err == 0); // a rank of the run
	err = run_record_sorted(record, &sorted);
	if (err < 0)
		return err;
	before = count_below(&sorted, place.bucket.lowest);
	place.kept = &sorted.samples[before];
	place.kept_count = count_below(&sorted, place.bucket.highest + 1) - before;
	// Multiply first: the result is exact if all samples are stored.
	place.at = ((double)(rank - place.bucket.before) - 0.5) * place.kept_count /
		   (double)place.bucket.count;
	*ret_place = place;
	return 0;
}

uint64_t place_quantile_value(const struct place *place) {
	uint64_t lowest = place->bucket.lowest, highest = place->bucket.highest;

	if (place->kept_count > 0)
		return place->kept[(uint32_t)place->at];
	return lowest + (highest - lowest) / 2;
}

// Add both errors in quadrature, and subtract the part that the interval already contains.
double place_error(const struct place *place, double tau, uint64_t ranks, double level) {
	double kept = place->kept_count, part = kept / (double)place->bucket.count;
	double share = kept > 0 ? place->at / kept : 0;
	double variance = kept * share * (1 - share) * tau * fmax(0, 1 - part);
	double wide = (double)ranks * part;

	return hypot(wide, normal_quantile((1 + level) / 2) * sqrt(variance)) - wide;
}

uint64_t place_low(const struct place *place, double error) {
	double at = floor(place->at - 0.5 - error);

	return at >= 0 ? place->kept[(uint32_t)at] : place->bucket.lowest;
}

uint64_t place_high(const struct place *place, double error) {
	double at = ceil(place->at - 0.5 + error);

	return at < place->kept_count ? place->kept[(uint32_t)at] : place->bucket.highest;
}

uint64_t place_bound(const struct place *place) {
	return place->kept_count > 0 ? place_quantile_value(place) : place->bucket.highest;
}

double place_share(const struct place *place, uint64_t count) {
	const struct run_sorted kept = {place->kept, place->kept_count};
	double within = 1;

	if (place->kept_count > 0)
		within = count_below(&kept, place_bound(place) + 1) / (double)place->kept_count;
	return ((double)place->bucket.before + (double)place->bucket.count * within) /
	       (double)count;
}
