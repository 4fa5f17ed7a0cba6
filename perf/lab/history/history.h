// SPDX-License-Identifier: BSD-3-Clause
// A directory of results over time: shows when a latency changed.
//
// Runs with the same plan, machines and devices form one history per message size, ordered by start
// time. Each run gives one value per quantile. <changes.h> finds the runs at which the values
// change. <compare.h> estimates the size of each change from the runs before and after.
#pragma once

#include "run/result.h"
#include "run/why.h"

#include <changes.h>
#include <stdbool.h>
#include <stdint.h>

#define HISTORY_RUNS_MAX 2000
#define HISTORY_SERIES_MAX 256
#define HISTORY_QUANTILES 3 // p50, p90 and p99
#define HISTORY_PARTS_MAX 64
#define HISTORY_LEVEL 0.95 // confidence of all quantiles of one history together
#define HISTORY_KEY_BYTES 448
#define HISTORY_TEXT_BYTES 64

struct history_run {
	char *path; // relative to the directory
	char started[HISTORY_TEXT_BYTES];
	double value_ns[HISTORY_QUANTILES], low_ns[HISTORY_QUANTILES];
	double high_ns[HISTORY_QUANTILES]; // NAN: too few samples
};

struct history_change {
	uint32_t first;		    // index of the run where the new part begins
	double before_ns, after_ns; // medians of the runs of both parts
	// Hodges-Lehmann estimate of after / before - 1, and its interval; low NAN: too few runs
	// for an interval.
	double share, low, high;
	double p;
};

struct history_quantile {
	uint32_t run_count; // runs with a value of this quantile
	double first_ns;    // median of the first part
	bool too_few;
	bool matters; // the last change exceeds the margin
	// Smallest step of the newer half, relative to the older one, that would be found as a
	// change. NAN: a change was found, or twice the value would not be.
	double detectable;
	uint32_t part_count;
	struct change_part parts[HISTORY_PARTS_MAX];	  // `first` is an index into `runs`
	struct history_change changes[HISTORY_PARTS_MAX]; // part_count - 1 entries
};

struct history_series {
	char key[HISTORY_KEY_BYTES]; // properties that all runs share
	uint64_t size;
	uint32_t run_count;
	struct history_run *runs;
	struct history_quantile quantiles[HISTORY_QUANTILES];
};

struct json_t;

// Build the key of a run: operation, loop, policy, devices and hosts. Runs with the same key form
// one history.
void history_key(const struct json_t *root, char text[static HISTORY_KEY_BYTES]);

struct history_left_out {
	char *path, *why;
};

struct history {
	uint32_t margin_ppm; // largest change that is ignored
	uint32_t series_count, left_out_count;
	struct history_series *series; // array of HISTORY_SERIES_MAX
	struct history_left_out *left_out;
};

// Read all *.json of a directory and find the changes. Files that are no complete result of
// tocsin-perf are skipped and listed. The caller must call history_release() in any case. Returns
// 0, -ENODATA (no result), -E2BIG, -ENOMEM, or an error of the directory such as -ENOENT. All have
// the reason in `why`.
int history_read(const char *directory, struct lab_why *why, struct history *history);
void history_release(struct history *history);
// Print the histories to standard output, and the skipped files to standard error.
void history_print(const struct history *history);

// Return true if the newest runs of any quantile are slower than the part before, by more than the
// margin.
bool history_is_slower(const struct history *history);
// Return true if no quantile has enough runs for a result.
bool history_is_undecided(const struct history *history);

// Read the directory without finding changes (history_load.c).
int history_load(const char *directory, struct lab_why *why, struct history *history);
