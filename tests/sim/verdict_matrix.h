// SPDX-License-Identifier: BSD-3-Clause
// Matrix of faults against the verdicts of uninvolved nodes, as plain figures.
#pragma once

#include <verdict/verdict.h>

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MATRIX_COLUMNS (VERDICT_COUNT + 1)
#define MATRIX_PATH VERDICT_COUNT // the path is named, and no node is blamed

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
	ROW_FAULTS, // number of faults that are played alone and in pairs
	ROW_MGMT_SPLIT = ROW_FAULTS,
	ROW_FABRIC_SPLIT,
	ROW_FABRIC_DARK,
	ROW_MGMT_SPLIT_END, // verdict at the end of the partition
	ROW_FABRIC_SPLIT_END,
	ROW_COUNT,
};

struct matrix_info {
	const char *name;
	uint32_t column;  // expected verdict
	uint32_t reach_s; // time until the verdict
	uint32_t hold_s;  // how long the verdict is held; 0: the default
	uint32_t good_s;  // time until the healthy verdict; 0: the default
};
extern const struct matrix_info matrix_rows[ROW_COUNT];

// All zero if the scenario has no matrix.
struct verdict_matrix {
	bool present;
	uint32_t single[ROW_COUNT][MATRIX_COLUMNS];
	uint32_t pair[ROW_COUNT][MATRIX_COLUMNS];
	uint32_t after[ROW_COUNT][MATRIX_COLUMNS]; // of all rows, 10 s after the end
	uint32_t late;		     // looks at the end of a fault without the right verdict
	uint32_t late_of[ROW_COUNT]; // the same, by row
	uint32_t strays;	     // looks at single faults with a verdict that is never right
	uint32_t faults, pairs;	     // injected
	uint32_t pair_looks, pair_exact; // looks at pairs; those where one observer named both
	double right_p50_s[ROW_COUNT], right_max_s[ROW_COUNT]; // times of single faults until named
	uint32_t healthy_drained;
	uint32_t not_healed; // looks at healed nodes that were not healthy
	uint32_t unstable;   // looks after a pair where one of the two was unstable for a minute
	double engine_bytes; // mean size of one node's engine
	double told_per_node_s, told_bytes_per_node_s;
};

double matrix_single_pct(const struct verdict_matrix *matrix);
double matrix_double_pct(const struct verdict_matrix *matrix);
// Return whether a requirement is not met, with the gravest failure and its worst row as one
// line.
bool matrix_falls_short(const struct verdict_matrix *matrix, char *ret_text, size_t size);
// Add the looks of one run to a sum.
void matrix_add(struct verdict_matrix *sum, const struct verdict_matrix *matrix);
// Print the looks at single faults and at one of several.
void matrix_print_looks(const struct verdict_matrix *matrix, FILE *to);
// Print at most 100 columns.
void matrix_print(const struct verdict_matrix *matrix, FILE *to);
void matrix_json(const struct verdict_matrix *matrix, json_t *object);
