// SPDX-License-Identifier: BSD-3-Clause
// What was wrong, against what uninvolved nodes held of it: plain figures, as all results.
#pragma once

#include <verdict/verdict.h>

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MATRIX_COLUMNS (VERDICT_COUNT + 1)
#define MATRIX_PATH VERDICT_COUNT // the path is named, and nobody is blamed for it

enum matrix_row {
	ROW_CRASH,
	ROW_FREEZE_HARDWARE,
	ROW_FREEZE_KERNEL,
	ROW_FREEZE_IN_PROCESS,
	ROW_HOST_DEAD,
	ROW_MGMT_CUT,
	ROW_FABRIC_CUT,
	ROW_DEVICE_STUCK,
	ROW_CHECK_FAILED,
	ROW_NODE_SLOW,
	ROW_NODE_LOSSY,
	ROW_PATH_CUT,
	ROW_PATH_SLOW,
	ROW_PATH_LOSSY,
	ROW_MGMT_DEAF,
	ROW_MGMT_MUTE,
	ROW_NODE_SLOW_150,
	ROW_NODE_SLOW_200,
	ROW_NODE_LOSS_5,
	ROW_NODE_LOSS_30,
	ROW_NODE_LOSS_60,
	ROW_NODE_HOLE,
	ROW_PATH_SLOW_150,
	ROW_PATH_SLOW_200,
	ROW_PATH_LOSS_5,
	ROW_PATH_LOSS_30,
	ROW_PATH_LOSS_60,
	ROW_PATH_HOLE,
	ROW_FAULTS, // so many that come alone and in pairs
	ROW_MGMT_SPLIT = ROW_FAULTS,
	ROW_FABRIC_SPLIT,
	ROW_FABRIC_DARK,
	ROW_MGMT_SPLIT_END, // what is held when it ends
	ROW_FABRIC_SPLIT_END,
	ROW_COUNT,
};

struct matrix_info {
	const char *name;
	uint32_t column;  // what it is to be named
	uint32_t reach_s; // after so long
	uint32_t hold_s;  // lasts so long, 0: as the others do
	uint32_t good_s;  // the good word is back after so long, 0: as of the others
};
extern const struct matrix_info matrix_rows[ROW_COUNT];

// Zeroed: there was no such scenario.
struct verdict_matrix {
	bool present;
	uint32_t single[ROW_COUNT][MATRIX_COLUMNS];
	uint32_t pair[ROW_COUNT][MATRIX_COLUMNS];
	uint32_t after[ROW_COUNT][MATRIX_COLUMNS]; // of all, 10 s after the end
	uint32_t late;				   // looks at its end that did not hold its name
	uint32_t late_of[ROW_COUNT];		   // the same by row
	uint32_t strays;	// looks at single ones that found a name which was never right
	uint32_t faults, pairs; // injected
	uint32_t pair_looks, pair_exact;		       // both named, at one observer
	double right_p50_s[ROW_COUNT], right_max_s[ROW_COUNT]; // of single ones, until named
	uint32_t healthy_drained;
	uint32_t not_healed; // looks at healed nodes that did not find them healthy
	uint32_t unstable;   // looks after a pair that found one of the two unstable, for a minute
	double engine_bytes; // of one node, all in all, on average
	double told_per_node_s, told_bytes_per_node_s;
};

double matrix_single_pct(const struct verdict_matrix *matrix);
double matrix_double_pct(const struct verdict_matrix *matrix);
// Whether something that a run has to reach was not: the gravest in one line, with the row that has
// most of it.
bool matrix_falls_short(const struct verdict_matrix *matrix, char *ret_text, size_t size);
// At most 100 columns.
void matrix_print(const struct verdict_matrix *matrix, FILE *to);
void matrix_json(const struct verdict_matrix *matrix, json_t *object);
