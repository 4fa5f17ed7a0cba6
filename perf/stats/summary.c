// SPDX-License-Identifier: BSD-3-Clause
// Combine quantiles, intervals and segments of a run.
#include "summary.h"

#include "indicator.h"
#include "place.h"
#include "quantile.h"
#include "ranks.h"

#include <lib/must.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Pieces of a run, to measure the dependence of samples without the changes. With short blocks a
// sixteenth has too few samples, so pieces are longer. A quarter of the pieces may then contain a
// change without affecting the median.
#define PIECES 16u
#define PIECES_MIN 4u
#define PIECE_SAMPLES_MIN 256u

// Batches whose counts show the dependence of samples. Fewer say too little about the variance.
#define BATCHES 64u
#define BATCHES_MIN 16u
// One-sided bounds hold with 90 %: standard errors by which batches must exceed blocks to raise
// tau, and by which tau may be larger than measured.
#define BOUND_ERRORS 1.28

// An interval is printed if the run is at least as long as this many upper bounds of tau, at each
// level of levels[] with enough samples on its rarer side. A run that changes between regimes
// depends on them longest near the level that separates these regimes.
#define TAUS_MIN 18
#define LEVEL_RARE_MIN 20
#define DEPENDENCE_SAMPLES_MIN (UINT64_C(2) * LEVEL_RARE_MIN) // with fewer no level can be measured
// A quantile with fewer samples beyond it has an interval only if tau of the highest level permits.
#define QUANTILE_RARE_MIN 50
static const uint32_t levels[] = {100000, 250000, 500000, 750000, 900000, 970000, 990000};

// The end of a window's bucket may replace a quantile if the rarer share differs by at most this
// factor.
#define WINDOWS_SHARE_RATIO_MAX 4

const char *quantile_note_text(enum quantile_note note) {
	static const char *const words[] = {
		[QUANTILE_SOUND] = "",
		[QUANTILE_ROUGH] = "few samples beyond it",
		[QUANTILE_UNRESOLVED] = "samples depend on each other for too long",
		[QUANTILE_TOO_FEW] = "too few samples for an interval",
	};

	return words[note];
}

const char *run_judgement_text(enum run_judgement judgement) {
	static const char *const words[] = {
		[RUN_TOO_SHORT_TO_JUDGE] = "too short to judge",
		[RUN_STEADY] = "no change found",
		[RUN_CHANGED] = "changed while it ran",
	};

	return words[judgement];
}

static uint64_t quantile_rank(uint64_t count, uint32_t per_million) {
	unsigned __int128 scaled = (unsigned __int128)count * per_million;
	uint64_t rank = (uint64_t)((scaled + QUANTILE_ONE - 1) / QUANTILE_ONE);

	return rank > 0 ? rank : 1;
}

int run_value_at_rank(struct run_record *record, uint64_t rank, uint64_t *ret_value) {
	struct place place;
	int err = place_find(record, rank, &place);

	if (err == 0)
		*ret_value = place_quantile_value(&place);
	return err;
}

int run_interval(
	struct run_record *record,
	uint32_t per_million,
	double tau,
	uint64_t *ret_low,
	uint64_t *ret_high
) {
	uint64_t count = run_record_count(record), rank = quantile_rank(count, per_million);
	struct place low, high;
	struct quantile_ranks ranks;
	int err = quantile_interval(count, (double)count / tau, per_million, SUMMARY_LEVEL, &ranks);

	if (err == 0)
		err = place_find(record, ranks.low, &low);
	if (err == 0)
		err = place_find(record, ranks.high, &high);
	if (err < 0)
		return err;
	*ret_low = place_low(&low, place_error(&low, tau, rank - ranks.low, SUMMARY_LEVEL));
	*ret_high = place_high(&high, place_error(&high, tau, ranks.high - rank, SUMMARY_LEVEL));
	return 0;
}

// Samples at or below a quantile in each window. The buckets of windows are wider, which limits the
// precision.
struct window_counts {
	uint64_t counts[RECORD_WINDOWS_MAX];
	uint64_t samples; // per window
	uint32_t count;	  // 0: too imprecise
};

// Return the ratio of the rarer shares of two quantiles, at least 1.
static double rare_share_ratio(double share, double other) {
	double rare = fmin(share, 1 - share), found = fmin(other, 1 - other);

	return found > 0 ? fmax(found / rare, rare / found) : INFINITY;
}

// Count the samples of each window up to the nearer end of the bucket.
static void windows_count(
	struct run_record *record, uint64_t value, double share, struct window_counts *counts
) {
	struct run_windows windows = run_record_windows(record);
	double all = (double)windows.samples * windows.count, below = 0, up_to = 0;
	uint64_t within[RECORD_WINDOWS_MAX];
	bool is_upper;

	for (uint32_t n = 0; n < windows.count; n++) {
		histogram_at_value(
			run_record_window(record, n), value, &counts->counts[n], &within[n]
		);
		below += (double)counts->counts[n] / all;
		up_to += (double)(counts->counts[n] + within[n]) / all;
	}
	is_upper = rare_share_ratio(share, up_to) < rare_share_ratio(share, below);
	for (uint32_t n = 0; n < windows.count && is_upper; n++)
		counts->counts[n] += within[n];
	counts->samples = windows.samples;
	counts->count = rare_share_ratio(share, is_upper ? up_to : below) <= WINDOWS_SHARE_RATIO_MAX
				? windows.count
				: 0;
}

// Count the samples at or below a bound in each batch of a completely stored run.
static void
batches_count(const struct indicator_block *whole, uint64_t bound, struct window_counts *counts) {
	counts->count = whole->count < BATCHES ? whole->count : BATCHES;
	counts->samples = whole->count / counts->count;
	memset(counts->counts, 0, sizeof(counts->counts));
	for (uint64_t n = 0; n < counts->count * counts->samples; n++)
		counts->counts[n / counts->samples] += whole->samples[n] <= bound;
}

// Measure tau of {x <= quantile} over the run.
static int
measure_tau(struct run_record *record, const struct place *place, struct indicator_time *time) {
	double share = place_share(place, run_record_count(record));
	struct indicator_block blocks[RECORD_BLOCKS_MAX];
	uint32_t block_count = run_record_blocks(record, blocks);
	uint64_t bound = place_bound(place);
	struct window_counts counts;
	struct run_sorted sorted;
	int err = indicator_measure(blocks, block_count, bound, share, time);

	if (err != 0 && err != -EINVAL)
		return err;
	err = run_record_sorted(record, &sorted);
	if (err != 0)
		return err;
	if (run_record_is_whole(record)) {
		batches_count(&blocks[0], bound, &counts);
	} else {
		windows_count(record, bound, share, &counts);
		// All stored raw samples are on one side, so blocks give no information.
		if (counts.count >= BATCHES_MIN &&
		    (sorted.samples[0] > bound || sorted.samples[sorted.count - 1] <= bound))
			*time = (struct indicator_time){.tau = 1, .resolved = 1};
	}

	// Raise tau if the batches show a longer dependence than the autocorrelations, whose sum
	// ends where noise begins. Blocks may also miss rare bursts of a long run. The counts of
	// batches then vary more than tau explains, and most so in the longest batches.
	while (counts.count >= BATCHES_MIN) {
		double error = 0;
		double tau = indicator_measure_windows(
			counts.counts, counts.count, counts.samples, time->tau, &error
		);

		if (!(tau <= time->tau * (1 + BOUND_ERRORS * error)))
			time->tau = tau;
		// Join the batches in pairs.
		counts.count /= 2;
		counts.samples *= 2;
		for (size_t n = 0; n < counts.count; n++)
			counts.counts[n] = counts.counts[2 * n] + counts.counts[2 * n + 1];
	}
	return 0;
}

// Return the largest factor by which tau may exceed its estimate. The run holds `stretches`
// independent stretches of samples on the rarer side of a level. If their lengths are exponential,
// the sum of the lengths is gamma distributed (approximation of Wilson and Hilferty).
static double tau_bound_factor(double stretches) {
	double root = 1 - 1 / (9 * stretches) - BOUND_ERRORS / (3 * sqrt(stretches));

	return root > 0 ? 1 / (root * root * root) : INFINITY;
}

static double rare_samples(uint64_t count, uint32_t per_million) {
	double p = (double)per_million / QUANTILE_ONE;

	return fmin(p, 1 - p) * (double)count;
}

// Dependence of samples over all levels of a run.
struct dependence {
	double tau_bound;    // largest upper bound of tau
	double bound_factor; // largest ratio of a bound to its tau
	double tau_highest;  // tau at the highest level
};

static int measure_dependence(struct run_record *record, struct dependence *ret_dependence) {
	struct dependence dependence = {1, 1, 1};
	uint64_t count = run_record_count(record);

	for (size_t n = 0; n < sizeof(levels) / sizeof(levels[0]); n++) {
		struct indicator_time time = {.tau = 1, .resolved = 1};
		double rare = rare_samples(count, levels[n]), factor;
		struct place place;
		int err;

		if (rare < LEVEL_RARE_MIN)
			continue;
		err = place_find(record, quantile_rank(count, levels[n]), &place);
		if (err == 0)
			err = measure_tau(record, &place, &time);
		if (err < 0)
			return err;
		factor = tau_bound_factor(rare / time.tau);
		dependence.tau_bound = fmax(dependence.tau_bound, time.tau * factor);
		dependence.bound_factor = fmax(dependence.bound_factor, factor);
		dependence.tau_highest = time.tau;
	}
	*ret_dependence = dependence;
	return 0;
}

// Return tau for the interval of a quantile. The part of tau that exceeds that of independent
// samples is widened, but not so far that an interval which exists for `tau` would not exist.
static double
widen_tau(double tau, uint64_t count, uint32_t per_million, const struct dependence *dependence) {
	double least = (double)quantile_samples_min(per_million, SUMMARY_LEVEL);
	double wide = 1 + (tau - 1) * dependence->bound_factor;

	return fmin(wide, fmax(tau, (double)count / (least + 1)));
}

static int quantile_summarize(
	struct run_record *record,
	const struct dependence *dependence,
	struct quantile_summary *quantile
) {
	uint64_t count = run_record_count(record);
	struct indicator_time time = {.tau = 1, .resolved = 1};
	struct place place;
	double enough, tail_tau;
	int err = place_find(record, quantile_rank(count, quantile->per_million), &place);

	if (err < 0)
		return err;
	quantile->bucket = place.bucket;
	quantile->value = place_quantile_value(&place);
	err = measure_tau(record, &place, &time);
	if (err < 0)
		return err;
	tail_tau = time.tau;
	if (rare_samples(count, quantile->per_million) < QUANTILE_RARE_MIN)
		tail_tau = fmax(tail_tau, dependence->tau_highest);
	quantile->tau = widen_tau(time.tau, count, quantile->per_million, dependence);
	quantile->effective = (double)count / quantile->tau;
	quantile->resolved = time.resolved != 0;
	enough = (double)quantile_samples_for_rate(quantile->per_million, SUMMARY_LEVEL);
	quantile->note = quantile->effective < enough ? QUANTILE_ROUGH : QUANTILE_SOUND;
	if (!quantile->resolved || (double)count < TAUS_MIN * dependence->tau_bound)
		quantile->note = QUANTILE_UNRESOLVED;
	if (count < DEPENDENCE_SAMPLES_MIN ||
	    (double)count / tail_tau <
		    (double)quantile_samples_min(quantile->per_million, SUMMARY_LEVEL))
		quantile->note = QUANTILE_TOO_FEW;
	if (!quantile_has_interval(quantile))
		return 0;
	err = run_interval(
		record, quantile->per_million, quantile->tau, &quantile->low, &quantile->high
	);
	if (err == -ERANGE)
		quantile->note = QUANTILE_TOO_FEW;
	return err == -ERANGE ? 0 : err;
}

// Part of a run: consecutive samples, or several blocks near each other.
struct piece {
	const struct indicator_block *blocks;
	uint32_t block_count, samples;
};

// Measure tau of {x <= quantile} within one piece, with the quantile of that piece.
static int piece_tau(
	const struct piece *piece,
	uint32_t per_million,
	uint64_t *scratch,
	struct indicator_time *ret_time
) {
	uint64_t rank = quantile_rank(piece->samples, per_million), bound;
	uint64_t *samples = scratch;
	uint32_t at_most = 0;

	for (uint32_t n = 0; n < piece->block_count; n++) {
		memcpy(samples, piece->blocks[n].samples,
		       piece->blocks[n].count * sizeof(*samples));
		samples += piece->blocks[n].count;
	}
	qsort(scratch, piece->samples, sizeof(*scratch), samples_compare);
	bound = scratch[rank - 1];
	while (at_most < piece->samples && scratch[at_most] <= bound)
		at_most++;
	return indicator_measure(
		piece->blocks, piece->block_count, bound, (double)at_most / piece->samples, ret_time
	);
}

// Divide a completely stored run into sixteenths.
static void whole_run_pieces(
	const struct indicator_block *whole,
	struct indicator_block *ret_blocks,
	struct piece *ret_pieces
) {
	uint32_t length = whole->count / PIECES;

	for (uint32_t n = 0; n < PIECES; n++) {
		ret_blocks[n] =
			(struct indicator_block){&whole->samples[(size_t)n * length], length};
		ret_pieces[n] = (struct piece){&ret_blocks[n], 1, length};
	}
}

// Group the blocks into pieces. A piece has as many blocks as give the samples of a full block. All
// blocks except the last one of the run have the same length. Returns the number of pieces.
static uint32_t
blocks_group(const struct indicator_block *blocks, uint32_t count, struct piece *ret_pieces) {
	uint32_t enough = (RECORD_BLOCK_SAMPLES + blocks[0].count - 1) / blocks[0].count;
	uint32_t pieces = PIECES;

	while (pieces > PIECES_MIN && (count - 1) / pieces * blocks[0].count < PIECE_SAMPLES_MIN)
		pieces /= 2;
	for (uint32_t n = 0; n < pieces; n++) {
		uint32_t first = n * (count - 1) / pieces;
		uint32_t there = (n + 1) * (count - 1) / pieces - first;
		uint32_t used = there < enough ? there : enough;

		ret_pieces[n] = (struct piece){&blocks[first], used, used * blocks[0].count};
	}
	return pieces;
}

// Reduce tau to the median of tau within pieces of the run. A change between pieces does not affect
// this median. It would make tau of the whole run as long as the run. *time is unchanged if pieces
// are too short, or if they give a longer tau.
static int
measure_local_tau(struct run_record *record, uint32_t per_million, struct indicator_time *time) {
	struct indicator_block blocks[RECORD_BLOCKS_MAX], cut[PIECES];
	uint32_t block_count = run_record_blocks(record, blocks), count = PIECES;
	uint32_t longest = 0, resolved = 0;
	struct indicator_time local = {.tau = 1};
	struct piece pieces[PIECES];
	double taus[PIECES];
	uint64_t *scratch;
	int err = 0;

	if (block_count != 1 && block_count <= PIECES)
		return 0;
	if (block_count == 1)
		whole_run_pieces(&blocks[0], cut, pieces);
	else
		count = blocks_group(blocks, block_count, pieces);
	for (uint32_t n = 0; n < count; n++) {
		if (pieces[n].samples < PIECE_SAMPLES_MIN)
			return 0;
		longest = pieces[n].samples > longest ? pieces[n].samples : longest;
	}
	scratch = calloc(longest, sizeof(*scratch));
	if (scratch == NULL)
		return -ENOMEM;
	for (uint32_t n = 0; n < count && err == 0; n++) {
		err = piece_tau(&pieces[n], per_million, scratch, &local);
		taus[n] = local.tau;
		resolved += local.resolved;
	}
	free(scratch);
	if (err < 0)
		return err;
	qsort(taus, count, sizeof(taus[0]), doubles_compare);
	if (taus[count / 2] < time->tau)
		*time = (struct indicator_time
		){.tau = taus[count / 2], .resolved = resolved > count / 2};
	return 0;
}

struct window_series {
	double *values[SUMMARY_QUANTILES_MAX];
	uint32_t count; // number of windows
	uint32_t join;	// stored windows joined to one window
};

// Compute the quantiles of each window, which joins `join` stored ones.
static int series_fill(
	struct run_record *record, const struct run_summary *summary, struct window_series *series
) {
	struct histogram *joined;
	int err = histogram_create(histogram_shape(run_record_window(record, 0)), &joined);

	if (err < 0)
		return err;
	for (uint32_t w = 0; w < series->count; w++) {
		histogram_clear(joined);
		for (uint32_t part = 0; part < series->join; part++) {
			err = histogram_merge(
				joined, run_record_window(record, w * series->join + part)
			);
			must(err == 0); // equal shapes
		}
		for (uint32_t q = 0; q < summary->judged_count; q++)
			series->values[q][w] = (double
			)histogram_percentile(joined, summary->quantiles[q].per_million);
	}
	histogram_destroy(joined);
	return 0;
}

static int compute_segments(
	struct run_record *record, struct run_summary *summary, struct window_series *series
) {
	double *values = calloc((size_t)series->count * summary->judged_count, sizeof(*values));
	const double *rows[SUMMARY_QUANTILES_MAX];
	int err;

	if (values == NULL)
		return -ENOMEM;
	for (uint32_t q = 0; q < summary->judged_count; q++) {
		series->values[q] = values + (size_t)q * series->count;
		rows[q] = series->values[q];
	}
	err = series_fill(record, summary, series);
	if (err == 0)
		err = segments_find(
			rows, summary->judged_count, series->count, SUMMARY_CHANGE_ALPHA,
			summary->segments, SUMMARY_SEGMENTS_MAX
		);
	free(values);
	if (err < 0 && err != -E2BIG)
		return err;
	summary->judgement = err == 1 ? RUN_STEADY : RUN_CHANGED;
	summary->segment_count = err < 0 ? 0 : (uint32_t)err;
	return 0;
}

// Judge as many quantiles as possible: higher ones need longer windows, and enough windows must
// remain.
static int run_judge(struct run_record *record, struct run_summary *summary) {
	struct run_windows windows = run_record_windows(record);
	struct window_series series = {.join = 1};

	summary->judgement = RUN_TOO_SHORT_TO_JUDGE;
	for (uint32_t q = 0; q < summary->quantile_count; q++) {
		const struct quantile_summary *quantile = &summary->quantiles[q];
		struct indicator_time time = {.tau = quantile->tau, .resolved = quantile->resolved};
		int err = measure_local_tau(record, quantile->per_million, &time);
		double join;

		if (err < 0)
			return err;
		// Windows that depend on each other would show chance changes.
		if (time.resolved == 0)
			break;
		join = time.tau *
		       (double)quantile_samples_min(quantile->per_million, SUMMARY_LEVEL);
		join = ceil(fmax(join / (double)windows.samples, series.join));
		if (join * SEGMENTS_WINDOWS_MIN > windows.count)
			break;
		series.join = (uint32_t)join;
		summary->judged_count = q + 1;
	}
	if (summary->judged_count == 0)
		return 0;
	series.count = windows.count / series.join;
	summary->window_samples = windows.samples * series.join;
	return compute_segments(record, summary, &series);
}

int run_summarize(
	struct run_record *record,
	const uint32_t *per_million,
	uint32_t count,
	struct run_summary *ret_summary
) {
	struct run_summary summary = {.quantile_count = count};
	struct dependence dependence;
	int err;

	must(count > 0 && count <= SUMMARY_QUANTILES_MAX);
	if (run_record_count(record) == 0)
		return -ENODATA;
	histogram_summarize(run_record_all(record), &summary.all);
	err = measure_dependence(record, &dependence);
	for (uint32_t q = 0; q < count && err == 0; q++) {
		summary.quantiles[q].per_million = per_million[q];
		err = quantile_summarize(record, &dependence, &summary.quantiles[q]);
	}
	if (err == 0)
		err = run_judge(record, &summary);
	if (err == 0)
		*ret_summary = summary;
	return err;
}
