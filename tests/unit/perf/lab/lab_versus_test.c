// SPDX-License-Identifier: BSD-3-Clause
// Tests of sets of generated runs: lognormal latencies, and runs that differ by 1 %.
#include "history/versus.h"
#include "perf/stats/generator.h"
#include "report/json.h"
#include "report/output.h"

#include <support/cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS 10
#define SAMPLES 5000
#define BETWEEN_RUNS 0.01

struct scene {
	char directory[64];
	char paths[2][RUNS][96];
	struct versus versus;
};

struct made {
	double factor; // factor of all latencies
	uint32_t samples;
	uint64_t size;
	enum plan_op op;
	bool incomplete;
	enum plan_arrivals arrivals;
	const char *partial; // reason why the whole run ended early, or NULL
};

static const struct made usual = {.factor = 1, .samples = SAMPLES, .size = 64, .op = PLAN_READ};

static void write_run(const char *path, const struct made *made, struct generator *generator) {
	struct lab_run *run = calloc(1, sizeof(*run));
	struct lab_result *result = &run->results[0];
	struct lab_why why = {.text = ""};
	double factor;

	run->plan = plan_default;
	run->plan.op = made->op;
	run->plan.arrivals = made->arrivals;
	snprintf(
		run->partial, sizeof(run->partial), "%s", made->partial != NULL ? made->partial : ""
	);
	run->count = 1;
	assert_int_equal(result_prepare(result, made->size, false), 0);
	result->complete = !made->incomplete;
	factor = made->factor * exp(BETWEEN_RUNS * generator_normal(generator));
	for (uint32_t n = 0; n < made->samples; n++) {
		uint64_t value = latency_of_level(generator_normal(generator));

		run_record_add(result->times, (uint64_t)(factor * (double)value));
	}
	assert_int_equal(result_summarize(result), 0);
	assert_int_equal(output_json(run, path, &why), 0);
	run_release(run);
	free(run);
}

static void add_runs(struct scene *scene, int side, uint32_t count, const struct made *made) {
	struct generator generator = generator_seeded(11 + (uint64_t)side);

	for (uint32_t n = 0; n < count; n++) {
		char *path = scene->paths[side][n];

		snprintf(
			path, sizeof(scene->paths[side][n]), "%s/%d-%u.json", scene->directory,
			side, n
		);
		write_run(path, made, &generator);
		scene->versus.paths[side][n] = path;
	}
	scene->versus.counts[side] = count;
}

static struct scene *open_scene(uint32_t a_count, uint32_t b_count, const struct made *b) {
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	snprintf(scene->directory, sizeof(scene->directory), "/tmp/tocsin-versus-XXXXXX");
	assert_non_null(mkdtemp(scene->directory));
	scene->versus.margin_ppm = 20000;
	add_runs(scene, 0, a_count, &usual);
	add_runs(scene, 1, b_count, b);
	return scene;
}

static void close_scene(struct scene *scene) {
	for (int side = 0; side < 2; side++) {
		for (uint32_t n = 0; n < RUNS; n++) {
			if (scene->paths[side][n][0] != '\0')
				unlink(scene->paths[side][n]);
		}
	}
	rmdir(scene->directory);
	free(scene);
}

static int
load_and_judge(const struct versus *versus, struct lab_why *why, struct versus_result *ret_result) {
	static struct versus_values values;
	int err = versus_load(versus, why, &values);

	return err != 0 ? err : versus_judge(versus, &values, ret_result);
}

static struct versus_result compute(struct scene *scene) {
	static struct versus_result result;
	struct lab_why why = {.text = ""};
	int err = load_and_judge(&scene->versus, &why, &result);

	assert_string_equal(why.text, "");
	assert_int_equal(err, 0);
	return result;
}

static void runs_that_are_slower_or_faster_are_called_so(void **state) {
	static const struct {
		double factor;
		enum versus_outcome word;
	} rows[] = {{1.05, VERSUS_SLOWER}, {0.95, VERSUS_FASTER}};

	(void)state;
	for (size_t n = 0; n < 2; n++) {
		struct made made = usual;
		struct versus_result result;
		struct scene *scene;

		made.factor = rows[n].factor;
		scene = open_scene(RUNS, RUNS, &made);
		result = compute(scene);
		assert_int_equal(result.row_count, VERSUS_QUANTILES);
		for (int place = 0; place < 3; place++) { // 5,000 samples say little about p99.9
			const struct versus_row *row = &result.rows[place];

			assert_int_equal(row->word, rows[n].word);
			assert_true(row->low_ns <= row->shift_ns && row->shift_ns <= row->high_ns);
			assert_true(row->p < 0.05);
		}
		assert_true(
			fabs(result.rows[0].shift_ns - (rows[n].factor - 1) * 1e6) < 0.02 * 1e6
		);
		close_scene(scene);
	}
}

static void runs_alike_have_no_change_within_a_margin(void **state) {
	struct scene *scene = open_scene(RUNS, RUNS, &usual);
	struct versus_result result;

	(void)state;
	scene->versus.margin_ppm = 200000;
	result = compute(scene);
	assert_false(result.same_runs);
	assert_int_equal(result.rows[0].word, VERSUS_SAME);
	assert_int_equal(result.rows[1].word, VERSUS_SAME);
	scene->versus.margin_ppm = 0;
	assert_int_equal(compute(scene).rows[0].word, VERSUS_UNDECIDED);
	close_scene(scene);
}

static void runs_against_themselves_have_no_change(void **state) {
	static const uint32_t counts[] = {1, 3};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		struct scene *scene = open_scene(counts[n], 1, &usual);
		struct versus_result result;

		for (uint32_t at = 0; at < counts[n]; at++) // the same runs in reverse order
			scene->versus.paths[1][at] = scene->versus.paths[0][counts[n] - 1 - at];
		scene->versus.counts[1] = counts[n];
		scene->versus.margin_ppm = 0;
		result = compute(scene);
		assert_true(result.same_runs);
		assert_int_equal(result.rows[0].word, VERSUS_SAME);
		assert_true(result.rows[0].shift_ns == 0 && result.rows[0].p == 1);
		close_scene(scene);
	}
}

static void a_run_that_is_there_twice_is_refused_by_name(void **state) {
	struct scene *scene = open_scene(2, 2, &usual);
	struct versus *versus = &scene->versus;
	struct versus_result result;
	struct lab_why why = {.text = ""};

	(void)state;
	versus->paths[1][0] = versus->paths[0][1]; // the same run on both sides, beside another run
	assert_int_equal(load_and_judge(versus, &why, &result), -EINVAL);
	assert_non_null(strstr(why.text, versus->paths[0][1]));
	versus->paths[1][0] = versus->paths[1][1]; // the same run twice on one side
	why.text[0] = '\0';
	assert_int_equal(load_and_judge(versus, &why, &result), -EINVAL);
	assert_non_null(strstr(why.text, versus->paths[1][1]));
	close_scene(scene);
}

static void too_few_runs_are_told_how_many_it_needs(void **state) {
	struct made made = usual;
	struct versus_result result;
	struct scene *scene;

	(void)state;
	made.factor = 2; // even with a large difference
	scene = open_scene(3, 3, &made);
	result = compute(scene);
	assert_int_equal(result.rows[0].word, VERSUS_TOO_FEW_RUNS);
	assert_int_equal(result.claims, 4);
	assert_true(result.runs_least > 3);
	close_scene(scene);
}

// 3 runs against 10 are enough: the chance that all three exceed all ten is 1 in 286, 1 in 143
// two-sided.
static void few_runs_of_one_side_are_enough_where_there_are_many_of_the_other(void **state) {
	struct scene *scene = open_scene(3, RUNS, &usual);
	struct versus_result result;

	(void)state;
	scene->versus.margin_ppm = 0;
	result = compute(scene);
	assert_true(result.runs_least > 3);
	assert_int_equal(result.rows[0].word, VERSUS_UNDECIDED);
	assert_true(result.rows[0].low_ns < result.rows[0].high_ns);
	close_scene(scene);
}

static void a_quantile_that_a_run_does_not_have_is_no_claim(void **state) {
	struct made made = usual;
	struct versus_result result;
	struct scene *scene;

	(void)state;
	made.samples = 300; // enough for p90 at most
	scene = open_scene(4, 4, &made);
	result = compute(scene);
	assert_int_equal(result.claims, 2);
	assert_int_equal(result.rows[2].word, VERSUS_NO_VALUE);
	close_scene(scene);
}

static void files_that_do_not_belong_together_are_refused_by_name(void **state) {
	static const struct made others[] = {
		{.factor = 1, .samples = 300, .size = 65, .op = PLAN_READ},
		{.factor = 1, .samples = 300, .size = 64, .op = PLAN_SEND},
		{.factor = 1, .samples = 300, .size = 64, .op = PLAN_READ, .incomplete = true},
		{.factor = 1, .samples = 300, .size = 64, .arrivals = PLAN_POISSON},
		{.factor = 1, .samples = 300, .size = 64, .partial = "the server ended"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(others) / sizeof(others[0]); n++) {
		struct scene *scene = open_scene(1, 1, &others[n]);
		struct lab_why why = {.text = ""};
		static struct versus_result result;

		assert_int_equal(load_and_judge(&scene->versus, &why, &result), -EINVAL);
		assert_non_null(strstr(why.text, scene->paths[1][0]));
		close_scene(scene);
	}
}

static void a_file_that_was_changed_is_not_compared(void **state) {
	struct scene *scene = open_scene(1, 1, &usual);
	struct lab_why why = {.text = ""};
	static struct versus_result result;
	FILE *file = fopen(scene->paths[1][0], "we");

	(void)state;
	assert_non_null(file);
	fputs("{\"schema\": \"tocsin-perf/2\", \"results\": [{}]}\n", file);
	fclose(file);
	assert_int_equal(load_and_judge(&scene->versus, &why, &result), -EBADMSG);
	assert_non_null(strstr(why.text, scene->paths[1][0]));
	close_scene(scene);
}

UNIT_GROUP(lab_versus) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_that_are_slower_or_faster_are_called_so),
		cmocka_unit_test(runs_alike_have_no_change_within_a_margin),
		cmocka_unit_test(runs_against_themselves_have_no_change),
		cmocka_unit_test(a_run_that_is_there_twice_is_refused_by_name),
		cmocka_unit_test(too_few_runs_are_told_how_many_it_needs),
		cmocka_unit_test(few_runs_of_one_side_are_enough_where_there_are_many_of_the_other),
		cmocka_unit_test(a_quantile_that_a_run_does_not_have_is_no_claim),
		cmocka_unit_test(files_that_do_not_belong_together_are_refused_by_name),
		cmocka_unit_test(a_file_that_was_changed_is_not_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
