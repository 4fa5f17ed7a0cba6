// SPDX-License-Identifier: BSD-3-Clause
// Summary of a run: quantiles with intervals, and whether the run changed.
//
// Each quantile has its own autocorrelation time tau: the larger of two estimates, one from
// autocorrelations and one from the counts of 16 to 64 batches. An interval covers only what the
// run saw. It is computed if the run is at least as long as 18 upper bounds of the longest tau.
//
// The search for changes needs windows of a minimum length. It is the minimum sample number of the
// quantile's interval, multiplied by tau.
#pragma once

#include "record.h"
#include "segments.h"

#define SUMMARY_QUANTILES_MAX 8
#define SUMMARY_SEGMENTS_MAX 32
#define SUMMARY_LEVEL 0.95
#define SUMMARY_CHANGE_ALPHA 0.02

enum quantile_note {
	QUANTILE_SOUND,
	// So few samples are larger that their share is uncertain by more than a tenth of itself.
	QUANTILE_ROUGH,
	// There is no interval: the run is too short beside the dependence of its samples.
	QUANTILE_UNRESOLVED,
	QUANTILE_TOO_FEW, // there is no interval: too few samples
};

struct quantile_summary {
	uint32_t per_million;
	enum quantile_note note;
	uint64_t value; // by the stored samples of its bucket, else the middle of the bucket
	struct histogram_span bucket;
	uint64_t low, high; // interval; 0 if there is none
	// Samples worth one independent sample in the interval, and the number of independent
	// samples.
	double tau, effective;
	bool resolved; // tau is known: shorter than the stored blocks
};

enum run_judgement {
	RUN_TOO_SHORT_TO_JUDGE,
	RUN_STEADY,
	RUN_CHANGED, // report the segments, not one number
};

struct run_summary {
	struct histogram_summary all;
	struct quantile_summary quantiles[SUMMARY_QUANTILES_MAX];
	uint32_t quantile_count;

	// Judgement of the first judged_count quantiles; the others need longer windows.
	enum run_judgement judgement;
	uint32_t judged_count;	 // number of judged quantiles, from the first on
	uint64_t window_samples; // size of the compared windows
	struct segment segments[SUMMARY_SEGMENTS_MAX];
	uint32_t segment_count;
};

// Summarize a run. `per_million` ascends, with at most SUMMARY_QUANTILES_MAX entries. A run with
// more than SUMMARY_SEGMENTS_MAX segments is RUN_CHANGED without segments. Returns 0, -ENODATA (no
// sample) or -ENOMEM.
int run_summarize(
	struct run_record *record,
	const uint32_t *per_million,
	uint32_t count,
	struct run_summary *ret_summary
);

// Return the sample of a rank, from 1 to the number of samples. It is exact if all samples are
// stored. Otherwise it is estimated from the stored samples of its bucket, or as the middle of the
// bucket. Returns 0 or -ENOMEM.
int run_value_at_rank(struct run_record *record, uint64_t rank, uint64_t *ret_value);

// Compute the interval of a quantile with coverage SUMMARY_LEVEL, if `tau` samples are worth one.
// The run must not be empty. Returns 0, -ERANGE (nothing is set) if there is no interval, or
// -ENOMEM.
int run_interval(
	struct run_record *record,
	uint32_t per_million,
	double tau,
	uint64_t *ret_low,
	uint64_t *ret_high
);

static inline bool quantile_has_interval(const struct quantile_summary *quantile) {
	return quantile->note < QUANTILE_UNRESOLVED;
}
const char *quantile_note_text(enum quantile_note note);
const char *run_judgement_text(enum run_judgement judgement);
