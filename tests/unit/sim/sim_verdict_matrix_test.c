// SPDX-License-Identifier: BSD-3-Clause
// Requirements on a run of the verdict scenario.
#include "verdict_matrix.h"

#include <support/cmocka.h>

#include <string.h>

// Fill in a matrix that meets all requirements: a hundred looks at two rows, and no wrong verdict
// after the end.
static void fill(struct verdict_matrix *matrix) {
	*matrix = (struct verdict_matrix){.present = true, .faults = 25, .pairs = 25};
	matrix->single[ROW_CRASH][VERDICT_AGENT_DOWN] = 100;
	matrix->single[ROW_HOST_DEAD][VERDICT_NODE_DOWN] = 99;
	matrix->single[ROW_HOST_DEAD][VERDICT_UNKNOWN] = 1;
	matrix->pair[ROW_CRASH][VERDICT_AGENT_DOWN] = 100;
	matrix->pair[ROW_HOST_DEAD][VERDICT_NODE_DOWN] = 95;
	matrix->pair[ROW_HOST_DEAD][VERDICT_UNKNOWN] = 5;
	matrix->pair_looks = 100;
	matrix->pair_exact = 95;
	matrix->after[ROW_CRASH][VERDICT_HEALTHY] = 100;
}

static void run_that_reaches_all_falls_short_of_nothing(void **state) {
	struct verdict_matrix matrix;
	char text[160] = "unchanged";

	(void)state;
	fill(&matrix);
	assert_false(matrix_falls_short(&matrix, text, sizeof(text)));
	matrix = (struct verdict_matrix){.present = true}; // a scenario without faults
	assert_false(matrix_falls_short(&matrix, text, sizeof(text)));
	assert_string_equal(text, "unchanged");
}

static void each_that_is_not_reached_is_told_with_its_row(void **state) {
	struct verdict_matrix matrix;
	char text[160];

	(void)state;
	fill(&matrix);
	matrix.not_healed = 2;
	matrix.after[ROW_NODE_LOSS_60][VERDICT_PATH_LOSSY] = 2;
	matrix.after[ROW_NODE_LOSS_60][VERDICT_HEALTHY] = 6;
	assert_true(matrix_falls_short(&matrix, text, sizeof(text)));
	assert_string_equal(
		text, "2 looks did not find a mended node healthy in time; node-loss-60%: 2 of 8"
	);
	matrix.late = matrix.late_of[ROW_NODE_HOLE] = 3;
	assert_true(matrix_falls_short(&matrix, text, sizeof(text)));
	assert_string_equal(
		text, "3 looks found no right name at the end of a fault; node-mtu-hole"
	);
	matrix.pair_exact = 94;
	assert_true(matrix_falls_short(&matrix, text, sizeof(text)));
	assert_string_equal(
		text, "only 94.00 % of pairs are named exactly; host-dead: 5 of 100 are not"
	);
	matrix.single[ROW_CRASH][VERDICT_HEALTHY] = 2;
	assert_true(matrix_falls_short(&matrix, text, sizeof(text)));
	assert_string_equal(
		text, "only 98.51 % of single faults are named exactly; crash: 2 of 102 are not"
	);
	matrix.healthy_drained = 1;
	assert_true(matrix_falls_short(&matrix, text, sizeof(text)));
	assert_string_equal(text, "1 healthy nodes would be drained");
}

UNIT_GROUP(sim_verdict_matrix) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_that_reaches_all_falls_short_of_nothing),
		cmocka_unit_test(each_that_is_not_reached_is_told_with_its_row),
	};

	return cmocka_run_group_tests_name("sim_verdict_matrix", tests, NULL, NULL);
}
