// SPDX-License-Identifier: BSD-3-Clause
// Tests of directories of generated runs: lognormal latencies, and runs that differ by 1 %.
#include "history/history.h"
#include "perf/stats/generator.h"
#include "report/output.h"

#include <support/cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLES 1500
#define BETWEEN_RUNS 0.01
#define DAY_NS INT64_C(86400000000000)
#define BEGIN_NS (INT64_C(20000) * DAY_NS)

struct scene {
	char directory[64];
	struct generator generator;
	struct history history;
	struct lab_why why;
};

static struct scene open_scene(void) {
	struct scene scene = {.generator = generator_seeded(5)};

	snprintf(scene.directory, sizeof(scene.directory), "/tmp/tocsin-history-XXXXXX");
	assert_non_null(mkdtemp(scene.directory));
	scene.history.margin_ppm = 20000;
	return scene;
}

static void close_scene(struct scene *scene) {
	DIR *directory = opendir(scene->directory);
	const struct dirent *entry;

	history_release(&scene->history);
	while ((entry = readdir(directory)) != NULL)
		unlinkat(dirfd(directory), entry->d_name, 0);
	closedir(directory);
	rmdir(scene->directory);
}

struct made {
	const char *name;
	int64_t day;
	double factor;
	uint64_t size;
	uint32_t samples;
	bool incomplete;
	enum plan_stamps stamps;
	const char *memory; // memory of the server, or NULL
	uint64_t window_ns; // window of its idle policy, or 0
};

static void write_run(struct scene *scene, const struct made *made) {
	struct lab_run *run = calloc(1, sizeof(*run));
	struct lab_result *result = &run->results[0];
	char path[160];
	double factor = made->factor * exp(BETWEEN_RUNS * generator_normal(&scene->generator));

	run->plan = plan_default;
	run->plan.stamps = made->stamps;
	if (made->memory != NULL)
		environment_add(&run->environment[1], "memory", "%s", made->memory);
	if (made->window_ns > 0) {
		run->plan.policy = IDLE_WINDOW;
		run->plan.window_ns = made->window_ns;
	}
	run->started_ns = BEGIN_NS + made->day * DAY_NS;
	run->count = 1;
	assert_int_equal(result_prepare(result, made->size, false), 0);
	result->complete = !made->incomplete;
	for (uint32_t n = 0; n < made->samples; n++) {
		uint64_t value = latency_of_level(generator_normal(&scene->generator));

		run_record_add(result->times, (uint64_t)(factor * (double)value));
	}
	assert_int_equal(result_summarize(result), 0);
	snprintf(path, sizeof(path), "%s/%s", scene->directory, made->name);
	assert_int_equal(output_json(run, path, &scene->why), 0);
	run_release(run);
	free(run);
}

// The order of the names is the reverse of the order in time.
static void write_runs(struct scene *scene, uint32_t first, uint32_t count, double factor) {
	for (uint32_t n = first; n < first + count; n++) {
		char name[32];

		snprintf(name, sizeof(name), "r%03u.json", 999 - n);
		write_run(scene, &(struct made){name, n, factor, 64, SAMPLES, .incomplete = false});
	}
}

static void write_text(struct scene *scene, const char *name, const char *text) {
	char path[160];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", scene->directory, name);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void make_pipe(struct scene *scene, const char *name) {
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", scene->directory, name);
	assert_int_equal(mkfifo(path, 0600), 0);
}

static void runs_are_slower_since_the_day_they_are(void **state) {
	struct scene scene = open_scene();
	const struct history_series *series;
	const struct history_change *change;

	(void)state;
	write_runs(&scene, 0, 10, 1);
	write_runs(&scene, 10, 10, 1.05);
	assert_int_equal(history_read(scene.directory, &scene.why, &scene.history), 0);
	assert_int_equal(scene.history.series_count, 1);
	series = &scene.history.series[0];
	assert_int_equal(series->run_count, 20);
	assert_int_equal(series->quantiles[0].part_count, 2);
	change = &series->quantiles[0].changes[0];
	assert_int_equal(change->first, 10);
	assert_string_equal(series->runs[change->first].path, "r989.json");
	assert_string_equal(series->runs[0].path, "r999.json");
	assert_true(change->low > 0.03 && change->low < 0.05 && change->high > 0.05);
	assert_true(history_is_slower(&scene.history));
	close_scene(&scene);
}

static void a_change_within_the_margin_does_not_matter(void **state) {
	struct scene scene = open_scene();

	(void)state;
	write_runs(&scene, 0, 12, 1);
	write_runs(&scene, 12, 12, 1.05);
	scene.history.margin_ppm = 100000;
	assert_int_equal(history_read(scene.directory, &scene.why, &scene.history), 0);
	assert_int_equal(scene.history.series[0].quantiles[0].part_count, 2);
	assert_false(history_is_slower(&scene.history));
	assert_false(history_is_undecided(&scene.history));
	close_scene(&scene);
}

// The generator repeats its values, so only the step differs between the histories.
static void no_change_names_the_step_that_would_be_found(void **state) {
	static const double shares[] = {0, 0.9, 1.1}; // of the detectable step
	double detectable = 0;

	(void)state;
	for (size_t n = 0; n < sizeof(shares) / sizeof(shares[0]); n++) {
		struct scene scene = open_scene();
		const struct history_quantile *p50;

		write_runs(&scene, 0, 10, 1);
		write_runs(&scene, 10, 10, 1 + shares[n] * detectable);
		assert_int_equal(history_read(scene.directory, &scene.why, &scene.history), 0);
		p50 = &scene.history.series[0].quantiles[0];
		assert_int_equal(p50->part_count, shares[n] > 1 ? 2 : 1);
		assert_int_equal(isnan(p50->detectable) != 0, shares[n] > 1);
		if (n == 0)
			detectable = p50->detectable;
		assert_true(0 < detectable && detectable < 0.1);
		close_scene(&scene);
	}
}

static void few_runs_are_undecided(void **state) {
	struct scene scene = open_scene();

	(void)state;
	write_runs(&scene, 0, 5, 1);
	write_runs(&scene, 5, 4, 2);
	assert_int_equal(history_read(scene.directory, &scene.why, &scene.history), 0);
	assert_true(scene.history.series[0].quantiles[0].too_few);
	assert_true(history_is_undecided(&scene.history));
	assert_false(history_is_slower(&scene.history));
	close_scene(&scene);
}

static void a_copy_of_a_run_is_no_other_run(void **state) {
	struct scene scene = open_scene();
	struct generator before = scene.generator;

	(void)state;
	write_run(&scene, &(struct made){"a.json", 0, 1, 64, SAMPLES, .incomplete = false});
	scene.generator = before;
	write_run(&scene, &(struct made){"b.json", 0, 1, 64, SAMPLES, .incomplete = false});
	write_run(&scene, &(struct made){"c.json", 0, 1, 64, SAMPLES, .incomplete = false});
	assert_int_equal(history_read(scene.directory, &scene.why, &scene.history), 0);
	assert_int_equal(scene.history.series[0].run_count, 2);
	assert_int_equal(scene.history.left_out_count, 1);
	assert_string_equal(scene.history.left_out[0].why, "another file has the same run");
	close_scene(&scene);
}

// A time of 0 has no finite ratio to another one, but the runs after it are slower.
static void a_change_from_zero_is_a_change(void **state) {
	struct scene scene = open_scene();
	const struct history_quantile *quantile;

	(void)state;
	write_runs(&scene, 0, 8, 0);
	write_runs(&scene, 8, 8, 1);
	assert_int_equal(history_read(scene.directory, &scene.why, &scene.history), 0);
	quantile = &scene.history.series[0].quantiles[0];
	assert_int_equal(quantile->part_count, 2);
	assert_true(isfinite(quantile->changes[0].share) && quantile->changes[0].share > 0);
	assert_true(history_is_slower(&scene.history));
	close_scene(&scene);
}

// Runs of another size form another history. A run with too few samples has no p99.
static void runs_that_are_not_alike_are_apart(void **state) {
	struct scene scene = open_scene();

	(void)state;
	write_runs(&scene, 0, 3, 1);
	write_run(&scene, &(struct made){"large.json", 1, 9, 4096, SAMPLES, .incomplete = false});
	write_run(&scene, &(struct made){"short.json", 2, 1, 64, 100, .incomplete = false});
	assert_int_equal(history_read(scene.directory, &scene.why, &scene.history), 0);
	assert_int_equal(scene.history.series_count, 2);
	assert_int_equal(scene.history.left_out_count, 0);
	for (uint32_t n = 0; n < 2; n++) {
		const struct history_series *series = &scene.history.series[n];
		bool is_large = series->size == 4096;

		assert_int_equal(series->run_count, is_large ? 1 : 4);
		assert_int_equal(series->quantiles[0].run_count, is_large ? 1 : 4);
		assert_int_equal(series->quantiles[2].run_count, is_large ? 1 : 3);
	}
	close_scene(&scene);
}

static void what_is_no_whole_result_is_left_out_and_named(void **state) {
	static const struct {
		const char *name, *text, *why; // without a text the file is a pipe
	} rows[] = {
		{"pipe.json", NULL, "it is not a regular file"},
		{"empty.json", "", "'[' or '{' expected"},
		{"other.json", "{\"name\": \"x\"}", "not a result of tocsin-perf"},
		{"newer.json", "{\"schema\": \"tocsin-perf/9\"}", "tocsin-perf/9"},
	};
	struct scene scene = open_scene();

	(void)state;
	for (size_t n = 0; n < 4; n++) {
		if (rows[n].text != NULL)
			write_text(&scene, rows[n].name, rows[n].text);
		else
			make_pipe(&scene, rows[n].name);
	}
	write_text(&scene, "notes.txt", "no JSON, and not looked at");
	assert_int_equal(history_read(scene.directory, &scene.why, &scene.history), -ENODATA);
	assert_non_null(strstr(scene.why.text, "no result of tocsin-perf among its 4 *.json files")
	);
	history_release(&scene.history);
	scene.history = (struct history){.margin_ppm = 20000};
	write_run(&scene, &(struct made){"cut.json", 1, 1, 64, SAMPLES, .incomplete = true});
	write_runs(&scene, 0, 1, 1);
	assert_int_equal(history_read(scene.directory, &scene.why, &scene.history), 0);
	assert_int_equal(scene.history.series[0].run_count, 1);
	assert_int_equal(scene.history.left_out_count, 5);
	for (uint32_t n = 0; n < 5; n++) {
		const struct history_left_out *one = &scene.history.left_out[n];
		const char *wanted = "its run is incomplete";

		for (size_t row = 0; row < 4; row++) {
			if (strstr(one->path, rows[row].name) != NULL)
				wanted = rows[row].why;
		}
		assert_non_null(strstr(one->why, wanted));
	}
	close_scene(&scene);
}

static void names_of_files_give_a_terminal_no_orders(void **state) {
	struct scene scene = open_scene();

	(void)state;
	write_text(&scene, "b\x1b[2J.json", "");
	write_run(&scene, &(struct made){"r\x1b[2J.json", 1, 1, 64, SAMPLES, .incomplete = false});
	assert_int_equal(history_read(scene.directory, &scene.why, &scene.history), 0);
	assert_string_equal(scene.history.series[0].runs[0].path, "r?[2J.json");
	assert_int_equal(scene.history.left_out_count, 1);
	assert_non_null(strstr(scene.history.left_out[0].path, "/b?[2J.json"));
	close_scene(&scene);
}

static void a_directory_that_is_none_is_said_so(void **state) {
	struct history history = {.margin_ppm = 0};
	struct lab_why why = {.text = ""};

	(void)state;
	assert_int_equal(history_read("/nonexistent", &why, &history), -ENOENT);
	assert_non_null(strstr(why.text, "/nonexistent: No such file"));
	history_release(&history);
}

static void runs_of_other_ways_to_measure_are_other_histories(void **state) {
	static const struct made rows[] = {
		{"a.json", 1, 1, 64, SAMPLES, .incomplete = false},
		{"b.json", 2, 1, 64, SAMPLES, .memory = "host"}, // equal to the default
		{"c.json", 3, 1, 64, SAMPLES, .memory = "gpu:0"},
		{"d.json", 4, 1, 64, SAMPLES, .window_ns = 1000},
		{"e.json", 5, 1, 64, SAMPLES, .window_ns = 100000},
		{"f.json", 6, 1, 64, SAMPLES, .stamps = PLAN_STAMPS_RAW},
	};
	struct scene scene = open_scene();

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		write_run(&scene, &rows[n]);
	assert_int_equal(history_read(scene.directory, &scene.why, &scene.history), 0);
	assert_int_equal(scene.history.series_count, 5);
	assert_int_equal(scene.history.series[0].run_count, 2);
	assert_non_null(strstr(scene.history.series[1].key, "memory host to gpu:0"));
	assert_non_null(strstr(scene.history.series[2].key, "policy window of 1000 ns"));
	assert_non_null(strstr(scene.history.series[4].key, "device time raw"));
	close_scene(&scene);
}

UNIT_GROUP(lab_history) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_are_slower_since_the_day_they_are),
		cmocka_unit_test(a_change_within_the_margin_does_not_matter),
		cmocka_unit_test(no_change_names_the_step_that_would_be_found),
		cmocka_unit_test(few_runs_are_undecided),
		cmocka_unit_test(a_copy_of_a_run_is_no_other_run),
		cmocka_unit_test(a_change_from_zero_is_a_change),
		cmocka_unit_test(runs_that_are_not_alike_are_apart),
		cmocka_unit_test(what_is_no_whole_result_is_left_out_and_named),
		cmocka_unit_test(names_of_files_give_a_terminal_no_orders),
		cmocka_unit_test(a_directory_that_is_none_is_said_so),
		cmocka_unit_test(runs_of_other_ways_to_measure_are_other_histories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
