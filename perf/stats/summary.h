// SPDX-License-Identifier: BSD-3-Clause
// What a run tells: its quantiles with intervals, and whether it was one run or several.
//
// Each quantile has an autocorrelation time of its own. Its windows, for the search for changes,
// are as long as its interval needs at least, and that many times tau.
#pragma once

#include "record.h"
#include "segments.h"

#define SUMMARY_QUANTILES_MAX 8
#define SUMMARY_SEGMENTS_MAX 32
#define SUMMARY_LEVEL 0.95
#define SUMMARY_CHANGE_ALPHA 0.02

enum quantile_note {
	QUANTILE_SOUND,
	QUANTILE_ROUGH,	     // the share beyond it is not known within 10 %
	QUANTILE_UNRESOLVED, // the samples depend on each other for longer than a block: too narrow
	QUANTILE_TOO_FEW,    // no interval exists
};

struct quantile_summary {
	uint32_t per_million;
	enum quantile_note note;
	uint64_t value; // where kept samples tell it within its bucket, else its middle
	struct histogram_span bucket;
	uint64_t low, high;    // its interval; 0 if none exists
	double tau, effective; // samples that are worth one, and how many that gives
	bool resolved;	       // tau is known: it is shorter than what is kept in a row
};

enum run_judgement {
	RUN_TOO_SHORT_TO_JUDGE,
	RUN_STEADY,
	RUN_CHANGED, // report its segments, not one number
};

struct run_summary {
	struct histogram_summary all;
	struct quantile_summary quantiles[SUMMARY_QUANTILES_MAX];
	uint32_t quantile_count;

	// Of the quantiles up to this one; the others would need longer windows.
	enum run_judgement judgement;
	uint32_t judged_count;	 // of quantiles, from the first on
	uint64_t window_samples; // of the windows that were compared
	struct segment segments[SUMMARY_SEGMENTS_MAX];
	uint32_t segment_count;
};

// `per_million` ascends, at most SUMMARY_QUANTILES_MAX of them. Returns 0, -ENODATA (no sample) or
// -ENOMEM. A run with more than SUMMARY_SEGMENTS_MAX segments is told as changed, without them.
int run_summarize(
	struct run_record *record,
	const uint32_t *per_million,
	uint32_t count,
	struct run_summary *ret_summary
);

// The sample of that rank, from 1 to that of the largest: of a run that is kept whole itself, else
// by the kept samples of its bucket, else the bucket's middle. -ENOMEM.
int run_value(struct run_record *record, uint64_t rank, uint64_t *ret_value);

// Between which values a quantile lies with SUMMARY_LEVEL if every `tau` samples are worth one.
// -ERANGE, and nothing set, if no interval exists; -ENOMEM. Not of an empty run.
int run_interval(
	struct run_record *record,
	uint32_t per_million,
	double tau,
	uint64_t *ret_low,
	uint64_t *ret_high
);

const char *quantile_note_words(enum quantile_note note);
const char *run_judgement_words(enum run_judgement judgement);
