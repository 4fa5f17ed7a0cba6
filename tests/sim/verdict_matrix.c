// SPDX-License-Identifier: BSD-3-Clause
#include "verdict_matrix.h"

#include <math.h>

#define HOLD_LONG_S 100
#define SINGLE_PERCENT 99
#define PAIRS_PERCENT 95

const struct matrix_info matrix_rows[ROW_COUNT] = {
	[ROW_CRASH] = {"crash", VERDICT_AGENT_DOWN, 2, 0, 0},
	[ROW_FREEZE_HARDWARE] = {"freeze-hardware", VERDICT_AGENT_FROZEN, 3, 0, 0},
	[ROW_FREEZE_KERNEL] = {"freeze-kernel", VERDICT_AGENT_FROZEN, 3, 0, 0},
	[ROW_FREEZE_IN_PROCESS] = {"freeze-in-process", VERDICT_AGENT_FROZEN, 3, 0, 0},
	[ROW_HOST_DEAD] = {"host-dead", VERDICT_NODE_DOWN, 5, 0, 0},
	[ROW_MGMT_CUT] = {"mgmt-net-cut", VERDICT_MGMT_NET_DOWN, 12, 0, 0},
	[ROW_FABRIC_CUT] = {"fabric-cut", VERDICT_FABRIC_DOWN, 3, 0, 0},
	[ROW_DEVICE_STUCK] = {"device-stuck", VERDICT_DEVICE_STUCK, 4, 0, 0},
	[ROW_CHECK_FAILED] = {"check-failed", VERDICT_CHECK_FAILED, 2, 0, 0},
	[ROW_NODE_SLOW] = {"node-slow-x3", VERDICT_PATH_DEGRADED, 20, 0, 0},
	[ROW_NODE_LOSSY] = {"node-lossy-large", VERDICT_PATH_LOSSY, 30, 0, 0},
	[ROW_PATH_CUT] = {"path-cut", MATRIX_PATH, 4, 0, 0},
	[ROW_PATH_SLOW] = {"path-slow-x3", MATRIX_PATH, 20, 0, 0},
	[ROW_PATH_LOSSY] = {"path-lossy-large", MATRIX_PATH, 30, 0, 0},
	[ROW_MGMT_DEAF] = {"mgmt-deaf", VERDICT_MGMT_NET_DOWN, 15, 0, 0},
	[ROW_MGMT_MUTE] = {"mgmt-mute", VERDICT_MGMT_NET_DOWN, 15, 0, 0},
	[ROW_NODE_SLOW_150] = {"node-slow-x1.5", VERDICT_HEALTHY, 20, 0, 0},
	[ROW_NODE_SLOW_200] = {"node-slow-x2", VERDICT_PATH_DEGRADED, 20, 0, 0},
	// An idle link sends one segment a second. A loss of 5 % shows within 120 segments,
	// except for one case in four hundred. A node that is asked for four more segments a
	// second needs half a minute. A node that lost its link, or hears of it late, needs more.
	[ROW_NODE_LOSS_5] = {"node-loss-5%", VERDICT_PATH_LOSSY, 40, HOLD_LONG_S, 90},
	[ROW_NODE_LOSS_30] = {"node-loss-30%", VERDICT_PATH_LOSSY, 20, 0, 0},
	[ROW_NODE_LOSS_60] = {"node-loss-60%", VERDICT_PATH_LOSSY, 20, 0, 0},
	[ROW_NODE_HOLE] = {"node-mtu-hole", VERDICT_PATH_LOSSY, 30, HOLD_LONG_S, 0},
	[ROW_PATH_SLOW_150] = {"path-slow-x1.5", VERDICT_HEALTHY, 20, 0, 0},
	[ROW_PATH_SLOW_200] = {"path-slow-x2", MATRIX_PATH, 20, 0, 0},
	// Only the two ends of the path can notice the loss, by two retransmissions of every ten
	// or twenty segments. They have not after 40 s in 9 to 41 of a hundred cases, and after
	// 90 s in 0.1 to 6 (Poisson). No scheduler acts on a path.
	[ROW_PATH_LOSS_5] = {"path-loss-5%", MATRIX_PATH, 90, HOLD_LONG_S, 0},
	[ROW_PATH_LOSS_30] = {"path-loss-30%", MATRIX_PATH, 20, 0, 0},
	[ROW_PATH_LOSS_60] = {"path-loss-60%", MATRIX_PATH, 20, 0, 0},
	[ROW_PATH_HOLE] = {"path-mtu-hole", MATRIX_PATH, 30, HOLD_LONG_S, 0},
	[ROW_MGMT_SPLIT] = {"mgmt-split-30%", VERDICT_UNKNOWN, 15, 0, 0},
	// In a split, each node and its side read each other, so no node is bad. A bad verdict
	// would drain healthy nodes. Only the paths across are bad, and are named as paths.
	// Behind a failed switch no node is read, not even by the others there; that is the dark
	// row.
	[ROW_FABRIC_SPLIT] = {"fabric-split-30%", VERDICT_HEALTHY, 15, 0, 0},
	[ROW_FABRIC_DARK] = {"fabric-dark-30%", VERDICT_UNKNOWN, 15, 0, 0},
	[ROW_MGMT_SPLIT_END] = {"mgmt-split, end", VERDICT_UNKNOWN, 300, 0, 0},
	[ROW_FABRIC_SPLIT_END] = {"fabric-split, end", VERDICT_HEALTHY, 300, 0, 0},
};

// Column titles, as short as possible.
static const char *const heads[MATRIX_COLUMNS] = {
	[VERDICT_NONE] = "none",	  [VERDICT_HEALTHY] = "well",
	[VERDICT_NODE_BUSY] = "busy",	  [VERDICT_CHECK_WARNING] = "warn",
	[VERDICT_PATH_DEGRADED] = "slow", [VERDICT_PATH_LOSSY] = "loss",
	[VERDICT_UNKNOWN] = "unkn",	  [VERDICT_UNSTABLE] = "flap",
	[VERDICT_MGMT_NET_DOWN] = "mgmt", [VERDICT_AGENT_DOWN] = "down",
	[VERDICT_AGENT_FROZEN] = "frzn",  [VERDICT_CHECK_FAILED] = "fail",
	[VERDICT_DEVICE_STUCK] = "stck",  [VERDICT_FABRIC_DOWN] = "fabr",
	[VERDICT_NODE_DOWN] = "node",	  [MATRIX_PATH] = "path",
};

static uint32_t row_sum(const uint32_t row[MATRIX_COLUMNS]) {
	uint32_t sum = 0;

	for (uint32_t column = 0; column < MATRIX_COLUMNS; column++)
		sum += row[column];
	return sum;
}

double matrix_single_pct(const struct verdict_matrix *matrix) {
	uint32_t exact = 0;
	uint32_t all = 0;

	for (uint32_t row = 0; row < ROW_COUNT; row++) {
		exact += matrix->single[row][matrix_rows[row].column];
		all += row_sum(matrix->single[row]);
	}
	return all > 0 ? 100.0 * exact / all : NAN;
}

double matrix_double_pct(const struct verdict_matrix *matrix) {
	return matrix->pair_looks > 0 ? 100.0 * matrix->pair_exact / matrix->pair_looks : NAN;
}

// Return the row with the most wrong verdicts, and their number.
static const char *worst_row(
	const uint32_t rows[ROW_COUNT][MATRIX_COLUMNS],
	bool after,
	uint32_t *ret_wrong,
	uint32_t *ret_looks
) {
	const char *worst = "none";

	*ret_wrong = *ret_looks = 0;
	for (uint32_t row = 0; row < ROW_COUNT; row++) {
		uint32_t right = after ? VERDICT_HEALTHY : matrix_rows[row].column;
		uint32_t looks = row_sum(rows[row]);
		uint32_t wrong = looks - rows[row][right];

		if (wrong <= *ret_wrong)
			continue;
		*ret_wrong = wrong;
		*ret_looks = looks;
		worst = matrix_rows[row].name;
	}
	return worst;
}

static const char *latest_row(const struct verdict_matrix *matrix) {
	uint32_t latest = 0;

	for (uint32_t row = 1; row < ROW_COUNT; row++) {
		if (matrix->late_of[row] > matrix->late_of[latest])
			latest = row;
	}
	return matrix_rows[latest].name;
}

bool matrix_falls_short(const struct verdict_matrix *matrix, char *ret_text, size_t size) {
	uint32_t wrong, looks;
	const char *row;

	if (matrix->healthy_drained > 0) {
		snprintf(
			ret_text, size, "%u healthy nodes would be drained", matrix->healthy_drained
		);
		return true;
	}
	if (matrix_single_pct(matrix) < SINGLE_PERCENT) {
		row = worst_row(matrix->single, false, &wrong, &looks);
		snprintf(
			ret_text, size,
			"only %.2f %% of single faults are named exactly; %s: %u of %u are not",
			matrix_single_pct(matrix), row, wrong, looks
		);
		return true;
	}
	if (matrix_double_pct(matrix) < PAIRS_PERCENT) {
		row = worst_row(matrix->pair, false, &wrong, &looks);
		snprintf(
			ret_text, size,
			"only %.2f %% of pairs are named exactly; %s: %u of %u are not",
			matrix_double_pct(matrix), row, wrong, looks
		);
		return true;
	}
	if (matrix->late > 0) {
		snprintf(
			ret_text, size, "%u looks found no right name at the end of a fault; %s",
			matrix->late, latest_row(matrix)
		);
		return true;
	}
	if (matrix->not_healed > 0) {
		row = worst_row(matrix->after, true, &wrong, &looks);
		snprintf(
			ret_text, size,
			"%u looks did not find a mended node healthy in time; %s: %u of %u",
			matrix->not_healed, row, wrong, looks
		);
		return true;
	}
	return false;
}

static void print_rows(
	const uint32_t rows[ROW_COUNT][MATRIX_COLUMNS], const char *title, bool after, FILE *to
) {
	fprintf(to, "%-18s", title);
	for (uint32_t column = 0; column < MATRIX_COLUMNS; column++)
		fprintf(to, "%5s", heads[column]);
	fputc('\n', to);
	for (uint32_t row = 0; row < ROW_COUNT; row++) {
		if (row_sum(rows[row]) == 0)
			continue;
		fprintf(to, "%-18s", matrix_rows[row].name);
		for (uint32_t column = 0; column < MATRIX_COLUMNS; column++) {
			if (rows[row][column] > 0)
				fprintf(to, "%5u", rows[row][column]);
			else
				fprintf(to, "%5s", ".");
		}
		if (rows[row][after ? VERDICT_HEALTHY : matrix_rows[row].column] <
		    row_sum(rows[row]))
			fprintf(to, " !");
		fputc('\n', to);
	}
}

void matrix_add(struct verdict_matrix *sum, const struct verdict_matrix *matrix) {
	for (uint32_t row = 0; row < ROW_COUNT; row++) {
		for (uint32_t column = 0; column < MATRIX_COLUMNS; column++) {
			sum->single[row][column] += matrix->single[row][column];
			sum->pair[row][column] += matrix->pair[row][column];
		}
	}
}

void matrix_print_looks(const struct verdict_matrix *matrix, FILE *to) {
	fprintf(to, "\n");
	print_rows(matrix->single, "one fault", false, to);
	fprintf(to, "\n");
	print_rows(matrix->pair, "of two or more", false, to);
}

void matrix_print(const struct verdict_matrix *matrix, FILE *to) {
	matrix_print_looks(matrix, to);
	fprintf(to, "\n");
	print_rows(matrix->after, "10 s after the end", true, to);
	fprintf(to, "\n%-18s%12s%12s%12s\n", "time to its name", "p50", "max", "to reach");
	for (uint32_t row = 0; row < ROW_COUNT; row++) {
		if (!isnan(matrix->right_p50_s[row]) && row_sum(matrix->single[row]) > 0)
			fprintf(to, "%-18s%10.1f s%10.1f s%10u s\n", matrix_rows[row].name,
				matrix->right_p50_s[row], matrix->right_max_s[row],
				matrix_rows[row].reach_s);
	}
	fprintf(to, "\n  %-40s %15.2f %%\n", "single faults named exactly",
		matrix_single_pct(matrix));
	fprintf(to, "  %-40s %15.2f %%\n", "pairs of faults named exactly, both",
		matrix_double_pct(matrix));
	fprintf(to, "  %-40s %17u\n", "healthy nodes drained", matrix->healthy_drained);
	fprintf(to, "  %-40s %17u\n", "not healthy in time after the end", matrix->not_healed);
	fprintf(to, "  %-40s %17u\n", "unstable after a pair, for a minute", matrix->unstable);
	fprintf(to, "  %-40s %17u\n", "not named any more at the end", matrix->late);
	fprintf(to, "  %-40s %17u\n", "given another name meanwhile", matrix->strays);
	fprintf(to, "  %-40s %17u\n", "single faults", matrix->faults);
	fprintf(to, "  %-40s %17u\n", "pairs", matrix->pairs);
	fprintf(to, "  %-40s %13.1f KiB\n", "engine, exchange and paths of a node",
		matrix->engine_bytes / 1024);
	fprintf(to, "  %-40s %17.3f\n", "observations told by a node in a second",
		matrix->told_per_node_s);
	fprintf(to, "  %-40s %17.2f\n", "bytes of them", matrix->told_bytes_per_node_s);
}

static json_t *json_rows(const uint32_t rows[ROW_COUNT][MATRIX_COLUMNS]) {
	json_t *object = json_object();

	for (uint32_t row = 0; row < ROW_COUNT; row++) {
		json_t *held = json_object();

		for (uint32_t column = 0; column < MATRIX_COLUMNS; column++) {
			const char *name = column == MATRIX_PATH ? "path" : verdict_name(column);

			if (rows[row][column] > 0)
				json_object_set_new(held, name, json_integer(rows[row][column]));
		}
		if (json_object_size(held) > 0)
			json_object_set_new(object, matrix_rows[row].name, held);
		else
			json_decref(held);
	}
	return object;
}

static json_t *json_number(double value) {
	return isnan(value) ? json_null() : json_real(value);
}

void matrix_json(const struct verdict_matrix *matrix, json_t *object) {
	json_t *times = json_object();

	for (uint32_t row = 0; row < ROW_COUNT; row++) {
		if (!isnan(matrix->right_p50_s[row]) && row_sum(matrix->single[row]) > 0)
			json_object_set_new(
				times, matrix_rows[row].name,
				json_pack(
					"{s:f, s:f, s:i}", "p50", matrix->right_p50_s[row], "max",
					matrix->right_max_s[row], "reach",
					(int)matrix_rows[row].reach_s
				)
			);
	}
	json_object_set_new(
		object, "single_fault_exact_pct", json_number(matrix_single_pct(matrix))
	);
	json_object_set_new(
		object, "double_fault_exact_pct", json_number(matrix_double_pct(matrix))
	);
	json_object_set_new(object, "healthy_drained", json_integer(matrix->healthy_drained));
	json_object_set_new(object, "not_healed", json_integer(matrix->not_healed));
	json_object_set_new(object, "unstable_after_pairs", json_integer(matrix->unstable));
	json_object_set_new(object, "not_named_at_the_end", json_integer(matrix->late));
	json_object_set_new(object, "named_otherwise", json_integer(matrix->strays));
	json_object_set_new(object, "single_faults", json_integer(matrix->faults));
	json_object_set_new(object, "double_faults", json_integer(matrix->pairs));
	json_object_set_new(object, "engine_bytes", json_number(matrix->engine_bytes));
	json_object_set_new(object, "told_per_node_s", json_number(matrix->told_per_node_s));
	json_object_set_new(
		object, "told_bytes_per_node_s", json_number(matrix->told_bytes_per_node_s)
	);
	json_object_set_new(object, "matrix", json_rows(matrix->single));
	json_object_set_new(object, "matrix_of_pairs", json_rows(matrix->pair));
	json_object_set_new(object, "matrix_after", json_rows(matrix->after));
	json_object_set_new(object, "seconds_to_name", times);
}
