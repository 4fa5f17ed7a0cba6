// SPDX-License-Identifier: BSD-3-Clause
// A directory of results through time: since when is what slower, or faster?
//
// Runs of the same plan between the same machines on the same devices are one history for each
// size, in the order in which they began; each gives one value of each quantile. Where these
// change is what <changes.h> finds; by how much, what <compare.h> says of the runs before and
// after.
#pragma once

#include "result.h"
#include "why.h"

#include <changes.h>
#include <stdbool.h>
#include <stdint.h>

#define HISTORY_RUNS_MAX 2000
#define HISTORY_SERIES_MAX 256
#define HISTORY_QUANTILES 3 // p50 to p99
#define HISTORY_PARTS_MAX 64
#define HISTORY_LEVEL 0.95 // of all quantiles of one history together
#define HISTORY_KEY_BYTES 448
#define HISTORY_TEXT_BYTES 64

struct history_run {
	char *path; // below the directory
	char started[HISTORY_TEXT_BYTES];
	double value_ns[HISTORY_QUANTILES], low_ns[HISTORY_QUANTILES];
	double high_ns[HISTORY_QUANTILES]; // NAN: too few samples
};

struct history_change {
	uint32_t first;			  // run of the part that begins there
	double before_ns, after_ns;	  // medians of the runs of both parts
	double shift_ns, low_ns, high_ns; // Hodges and Lehmann's; low NAN: too few for an interval
	double p;
};

struct history_quantile {
	uint32_t run_count; // of those that have a value
	double first_ns;    // median of the first part
	bool too_few;
	bool matters; // the last change is larger than the margin
	uint32_t part_count;
	struct change_part parts[HISTORY_PARTS_MAX]; // of runs with a value, by place in `runs`
	struct history_change changes[HISTORY_PARTS_MAX]; // one less than parts
};

struct history_series {
	char key[HISTORY_KEY_BYTES]; // what all of its runs have in common
	uint64_t size;
	uint32_t run_count;
	struct history_run *runs;
	struct history_quantile quantiles[HISTORY_QUANTILES];
};

struct json_t;

// What has to be the same for two runs to be of one history: operation, loop, policy, devices and
// hosts, as words.
void history_key(const struct json_t *root, char text[static HISTORY_KEY_BYTES]);

struct history_left_out {
	char *path, *why;
};

struct history {
	uint32_t margin_ppm; // a change that does not matter
	uint32_t series_count, left_out_count;
	struct history_series *series; // HISTORY_SERIES_MAX
	struct history_left_out *left_out;
};

// Reads each *.json of the directory, and judges. What is no complete result of tocsin-perf is left
// out and named. -ENOENT and the like of the directory; -ENODATA: no result in it; -E2BIG; -ENOMEM.
// With the reason. To be released in any case.
int history_read(const char *directory, struct lab_why *why, struct history *history);
void history_release(struct history *history);
// On standard output; what was left out on standard error.
void history_print(const struct history *history);

// The newest runs of some quantile are slower than those before them, by more than the margin.
bool history_is_slower(const struct history *history);
// None could be judged.
bool history_is_undecided(const struct history *history);

// history_load.c: what is in the directory, not judged yet.
int history_load(const char *directory, struct lab_why *why, struct history *history);
