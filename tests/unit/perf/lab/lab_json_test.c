// SPDX-License-Identifier: BSD-3-Clause
// Tests of files of generated runs, unchanged and with one number changed.
#include "perf/stats/generator.h"
#include "report/json.h"
#include "report/output.h"

#include <lib/scoped.h>
#include <support/cmocka.h>

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <segments.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "/tmp/tocsin-lab-json-XXXXXX"

static void fill_load(struct lab_result *result, struct generator *generator, uint32_t count) {
	struct result_load *load = &result->load;
	uint64_t due_ns = 0;

	load->due_ns = calloc(count, sizeof(*load->due_ns));
	load->due_count = count;
	assert_non_null(load->due_ns);
	for (uint32_t n = 0; n < count; n++) {
		load->due_ns[n] = due_ns += 2000000;
		run_record_add(load->service, latency_of_level(generator_next(generator)) / 2);
		histogram_record(load->lag, 100 + n % 7);
	}
}

// Add the largest of the samples as outliers, as the watch finds them.
static void find_outliers(struct lab_result *result) {
	uint64_t bound_ns = outlier_bound_ns(result->warm, result->warm_count);
	struct indicator_block blocks[RECORD_BLOCKS_MAX];
	struct outlier_watch watch = {.sched_fd = -1, .stat_fd = -1, .khz_fd = -1};
	uint64_t sample = 0;
	uint32_t count;

	if (!run_record_is_whole(result->times))
		return;
	count = run_record_blocks(result->times, blocks);
	outlier_watch_begin(&watch, bound_ns);
	for (uint32_t n = 0; n < count; n++) {
		for (uint32_t i = 0; i < blocks[n].count; i++, sample++) {
			uint64_t took_ns = blocks[n].samples[i];

			if (took_ns >= watch.bound_ns)
				outlier_watch_sample(&watch, sample, took_ns, sample + 1, 1);
		}
	}
	result->outlier_count = outlier_watch_sorted(&watch, result->outliers);
}

static struct lab_run *make_run(uint32_t count, bool open) {
	struct lab_run *run = calloc(1, sizeof(*run));
	struct generator generator = generator_seeded(7);
	struct lab_result *result;

	assert_non_null(run);
	generator_start(&generator, 0.5);
	run->plan = plan_default;
	run->plan.arrivals = open ? PLAN_CONSTANT : PLAN_CLOSED;
	run->count = 1;
	run->environment[0].count = 1;
	snprintf(run->environment[0].items[0].key, ENVIRONMENT_KEY_BYTES, "host");
	snprintf(run->environment[0].items[0].value, ENVIRONMENT_VALUE_BYTES, "one");
	result = &run->results[0];
	assert_int_equal(result_prepare(result, 64, open), 0);
	result->complete = true;
	result->took_ns = count * UINT64_C(2000000);
	result->noise_known[0] = true;
	result->warm_count = WARMUP_SAMPLES_MIN;
	result->warm_judged = true;
	for (uint32_t n = 0; n < result->warm_count; n++)
		result->warm[n] = latency_of_level(generator_next(&generator));
	assert_int_equal(warmup_check(result->warm, result->warm_count, &result->warm_check), 0);
	for (uint32_t n = 0; n < count; n++)
		run_record_add(result->times, latency_of_level(generator_next(&generator)));
	if (open)
		fill_load(result, &generator, count);
	else
		find_outliers(result);
	assert_int_equal(result_summarize(result), 0);
	return run;
}

static void add_device(struct lab_run *run, uint32_t count) {
	struct lab_result *result = &run->results[0];
	struct generator generator = generator_seeded(9);

	generator_start(&generator, 0.5);
	run->plan.stamps = PLAN_STAMPS_RAW;
	assert_int_equal(result_prepare_device(result, PLAN_STAMPS_RAW), 0);
	for (uint32_t n = 0; n < count; n++) {
		uint64_t took_ns = latency_of_level(generator_next(&generator));

		run_record_add(result->device.device, took_ns / 3);
		run_record_add(result->device.host, took_ns - took_ns / 3);
	}
	result->device.khz = 156250;
	result->device.off_ns = 44;
	result->device.outside = 2;
	result->device.answer_count = count;
	result->device.answer_mean_ps = 1234567;
	result->device.answer_p50_ns = 1200;
	result->device.answer_p99_ns = 2000;
	result->device.answer_max_ns = 9000;
	assert_int_equal(result_summarize(result), 0);
}

static void release(struct lab_run *run) {
	run_release(run);
	free(run);
}

static json_t *tree_of(uint32_t count, bool open) {
	struct lab_run *run = make_run(count, open);
	json_t *root;

	assert_int_equal(run_to_json(run, &root), 0);
	release(run);
	return root;
}

static int verify_path(const char *path, struct lab_why *why) {
	json_t *root;
	int err = verify_load(path, why, &root);

	if (err == 0)
		json_decref(root);
	return err;
}

static int verify(const json_t *root, struct lab_why *why) {
	char path[] = PATH;
	scoped_fd int fd = mkstemp(path);
	int err;

	assert_true(fd >= 0);
	assert_int_equal(json_dumpfd(root, fd, JSON_COMPACT | JSON_REAL_PRECISION(17)), 0);
	why->text[0] = '\0';
	err = verify_path(path, why);
	unlink(path);
	return err;
}

static void a_file_as_it_was_written_is_verified(void **state) {
	static const struct {
		uint32_t count;
		bool open;
	} rows[] = {
		{1, false},
		{63, false},
		{5000, false},
		{5000, true},
		{RECORD_RAW_MAX + 70000, false},
		{RECORD_RAW_MAX + 5, true},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		json_t *root = tree_of(rows[n].count, rows[n].open);
		struct lab_why why;
		int err;

		err = verify(root, &why);
		// Compared first, so that a failure prints the difference.
		assert_string_equal(why.text, "");
		assert_int_equal(err, 0);
		json_decref(root);
	}
}

// A walk over all numbers of a tree; the number at index `place` is changed.
struct walk {
	uint32_t place, seen;
	char path[256]; // path of the changed number
};

static bool change(json_t *value) {
	if (json_is_integer(value))
		json_integer_set(value, json_integer_value(value) + 1);
	else
		json_real_set(value, json_real_value(value) * 1.01 + 1e-3);
	return true;
}

// The recursion is as deep as the file is nested.
// NOLINTBEGIN(misc-no-recursion)
static bool walk(struct walk *walk_, json_t *value, const char *path);

static bool walk_array(struct walk *walk_, json_t *array, const char *path) {
	char inner[256];

	for (size_t n = 0; n < json_array_size(array); n++) {
		snprintf(inner, sizeof(inner), "%.200s[%zu]", path, n);
		if (walk(walk_, json_array_get(array, n), inner))
			return true;
	}
	return false;
}

static bool walk_object(struct walk *walk_, json_t *object, const char *path) {
	const char *key;
	char inner[256];
	json_t *value;

	json_object_foreach(object, key, value) {
		snprintf(
			inner, sizeof(inner), "%.180s%s%.60s", path, path[0] != '\0' ? "." : "", key
		);
		if (walk(walk_, value, inner))
			return true;
	}
	return false;
}

static bool walk(struct walk *walk_, json_t *value, const char *path) {
	if (json_is_object(value))
		return walk_object(walk_, value, path);
	if (json_is_array(value))
		return walk_array(walk_, value, path);
	if (!json_is_number(value) || walk_->seen++ != walk_->place)
		return false;
	snprintf(walk_->path, sizeof(walk_->path), "%s", path);
	return change(value);
}
// NOLINTEND(misc-no-recursion)

static void one_changed_number_is_named(void **state) {
	json_t *root = tree_of(400, true);
	uint32_t figures = 0, step = 1;

	(void)state;
	for (uint32_t place = 0;; place += step) {
		json_t *copy = json_deep_copy(root);
		struct walk walk_ = {.place = place};
		struct lab_why why;
		bool figure;
		int err;

		if (!walk(&walk_, copy, "")) {
			json_decref(copy);
			break;
		}
		err = verify(copy, &why);
		json_decref(copy);
		assert_true(err == -EUCLEAN || err == -EBADMSG);
		figure = strstr(walk_.path, ".figures.") != NULL;
		// A changed figure is named by its path, any other number by the section that
		// contains it.
		if (figure)
			assert_non_null(strstr(why.text, walk_.path));
		else
			assert_true(strlen(why.text) > strlen("/tmp/"));
		figures += figure;
		step = figure ? 5 : 97; // a subset: each number costs one verification
	}
	assert_true(figures > 10);
	json_decref(root);
}

static void outliers_follow_from_samples(void **state) {
	json_t *root = tree_of(4000, false), *result, *outliers, *first;
	json_int_t sample, took_ns;
	struct lab_why why;

	(void)state;
	result = json_array_get(json_object_get(root, "results"), 0);
	outliers = json_object_get(result, "outliers");
	first = json_array_get(outliers, 0);
	assert_non_null(first);
	sample = json_integer_value(json_object_get(first, "sample"));
	took_ns = json_integer_value(json_object_get(first, "took_ns"));
	assert_int_equal(verify(root, &why), 0);
	json_object_set_new(first, "took_ns", json_integer(99999999));
	assert_int_equal(verify(root, &why), -EUCLEAN);
	assert_non_null(strstr(why.text, "results[0].outliers[0].took_ns does not follow"));
	json_object_set_new(first, "took_ns", json_integer(took_ns));
	json_object_set_new(first, "sample", json_integer(sample + 1));
	assert_int_equal(verify(root, &why), -EUCLEAN);
	json_object_set_new(first, "sample", json_integer(4000));
	assert_int_equal(verify(root, &why), -EUCLEAN);
	json_object_set_new(first, "sample", json_integer(sample));
	json_array_remove(outliers, json_array_size(outliers) - 1);
	assert_int_equal(verify(root, &why), -EUCLEAN);
	json_object_del(result, "outliers");
	assert_int_equal(verify(root, &why), -EUCLEAN);
	assert_non_null(strstr(why.text, "results[0].outliers has 0 elements"));
	json_decref(root);
}

// jq and JavaScript programs write numbers like this.
static void whole_numbers_are_written_without_a_point(void **state) {
	json_t *root = tree_of(400, true);
	char *text = json_dumps(root, JSON_REAL_PRECISION(17)), *point = text;
	struct lab_why why;

	(void)state;
	assert_non_null(text);
	while ((point = strstr(point, ".0")) != NULL) {
		point += 2;
		if (point[0] == ',' || point[0] == '}' || point[0] == ']')
			fail_msg("%.40s", point - 20);
	}
	assert_non_null(strstr(text, "\"tau\": 1,"));
	assert_int_equal(verify(root, &why), 0);
	free(text);
	json_decref(root);
}

static void rates_follow_from_windows(void **state) {
	struct lab_run *run = make_run(1000, false);
	struct lab_why why;
	json_t *root, *rates;
	double mean;

	(void)state;
	run->plan.command = PLAN_BW;
	run->results[0].window_messages = 25;
	run->results[0].peer_messages = 3000;
	run->results[0].peer_ns = 1500000000;
	assert_int_equal(run_to_json(run, &root), 0);
	release(run);
	assert_int_equal(verify(root, &why), 0);
	rates = json_object_get(json_array_get(json_object_get(root, "results"), 0), "rates");
	mean = json_number_value(json_object_get(rates, "mean_per_s"));
	assert_true(mean > 12499.9 && mean < 12500.1); // 1000 windows of 25 in 2 s
	assert_true(json_number_value(json_object_get(rates, "peer_per_s")) == 2000);
	json_object_set_new(rates, "worst_per_s", json_real(1));
	assert_int_equal(verify(root, &why), -EUCLEAN);
	assert_non_null(strstr(why.text, "results[0].rates.worst_per_s is"));
	json_decref(root);
}

static void the_parts_of_device_time_are_verified(void **state) {
	static const uint32_t counts[] = {1, 1500, 9000};

	(void)state;
	for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
		struct lab_run *run = make_run(counts[n], false);
		json_t *root, *part, *figures;
		struct lab_why why;

		add_device(run, counts[n]);
		assert_int_equal(run_to_json(run, &root), 0);
		release(run);
		(void)verify(root, &why);
		assert_string_equal(why.text, "");
		part = json_object_get(
			json_array_get(json_object_get(root, "results"), 0), "device_time"
		);
		assert_true(json_is_true(json_object_get(part, "doubtful")) == (counts[n] < 2000));
		figures = json_object_get(json_object_get(part, "host"), "figures");
		json_object_set_new(figures, "max_ns", json_integer(1));
		assert_int_equal(verify(root, &why), -EUCLEAN);
		assert_non_null(strstr(why.text, "device_time.host.figures.max_ns is 1"));
		json_object_set_new(part, "off_ns", json_string("0"));
		assert_int_equal(verify(root, &why), -EBADMSG);
		json_object_set_new(part, "clock", json_string("none"));
		assert_int_equal(verify(root, &why), -EBADMSG);
		assert_non_null(strstr(why.text, "device_time.clock is not raw or wall"));
		json_decref(root);
	}
}

// Return times over six decades. Their differing lengths need the most room in the file.
static uint64_t wide_time(struct generator *generator) {
	return (uint64_t)(1e3 * pow(10, 6 * generator_uniform(generator)));
}

static struct lab_run *make_wide_run(uint32_t count, bool open) {
	struct lab_run *run = make_run(RESULT_DUE_MAX, open);
	struct generator generator = generator_seeded(3);
	struct lab_result *result = &run->results[0];

	if (open)
		add_device(run, RESULT_DUE_MAX);
	for (uint32_t n = 0; n < count; n++) {
		run_record_add(result->times, wide_time(&generator));
		if (!open)
			continue;
		run_record_add(result->load.service, wide_time(&generator));
		run_record_add(result->device.device, wide_time(&generator));
		run_record_add(result->device.host, wide_time(&generator));
		histogram_record(result->load.lag, wide_time(&generator));
	}
	if (open) { // a schedule too long for the file
		free(result->load.due_ns);
		result->load.due_ns = NULL;
		result->load.due_count += count;
		result->load.span_ns = result->load.due_count * UINT64_C(2000000);
	}
	return run;
}

// Add the longest possible warm-up, from a run that never looks warm.
static void add_warm_up(struct lab_result *result) {
	struct generator generator = generator_seeded(5);

	result->warm_count = WARMUP_SAMPLES_MAX;
	for (uint32_t n = 0; n < WARMUP_SAMPLES_MAX; n++)
		result->warm[n] = wide_time(&generator);
	assert_int_equal(warmup_check(result->warm, result->warm_count, &result->warm_check), 0);
}

static size_t parts_of_times(const json_t *root, const char *key) {
	const json_t *result = json_array_get(json_object_get(root, "results"), 0);
	const json_t *kept = json_object_get(json_object_get(result, "times"), "kept");
	const json_t *part = json_object_get(kept, key);

	return json_array_size(json_is_object(part) ? json_object_get(part, "each") : part);
}

static void add_outliers(struct lab_result *result) {
	result->outlier_count = OUTLIERS_MAX;
	for (uint32_t n = 0; n < OUTLIERS_MAX; n++) {
		struct outlier *outlier = &result->outliers[n];

		*outlier =
			(struct outlier){1000000000, 3600000000000, 10000000000, 20000000000, {0}};
		for (uint32_t kind = 0; kind < OUTLIER_EVIDENCE_COUNT; kind++)
			outlier->evidence[kind] = 1000000000;
	}
}

// Return the file of one of `size_count` sizes, thinned out for a file of `file_bytes`.
static json_t *thinned_tree(struct lab_run *run, uint32_t size_count, size_t file_bytes) {
	json_t *root;

	add_warm_up(&run->results[0]);
	add_outliers(&run->results[0]);
	assert_int_equal(result_thin(&run->results[0], size_count, file_bytes), 0);
	assert_int_equal(result_summarize(&run->results[0]), 0);
	assert_int_equal(run_to_json(run, &root), 0);
	return root;
}

static void must_be_verified(const json_t *root) {
	struct lab_why why;

	(void)verify(root, &why);
	assert_string_equal(why.text, "");
}

static size_t bytes_of(const json_t *root) {
	return json_dumpb(root, NULL, 0, JSON_COMPACT | JSON_REAL_PRECISION(17));
}

// A plan has up to 32 sizes, which share a file. A comparison of policies puts as many runs into
// one file.
static void the_largest_file_is_bounded_and_is_verified(void **state) {
	static const struct {
		uint32_t count;
		bool open; // open loop, with the device's time: four series
		uint32_t size_count;
		size_t blocks_least, windows_least;
	} rows[] = {
		{120000, true, 1, 64, SEGMENTS_WINDOWS_MIN},
		{RECORD_RAW_MAX, false, 24, 64, 0},
		{20000, true, PLAN_SIZES_MAX, 64, 0},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lab_run *run = make_wide_run(rows[n].count, rows[n].open);
		size_t share = RESULT_FILE_BYTES / rows[n].size_count;
		json_t *root = thinned_tree(run, rows[n].size_count, RESULT_FILE_BYTES);

		release(run);
		assert_in_range(bytes_of(root), share / 4, share);
		assert_in_range(
			parts_of_times(root, "blocks"), rows[n].blocks_least, RECORD_BLOCKS_MAX
		);
		assert_in_range(
			parts_of_times(root, "windows"), rows[n].windows_least, RECORD_WINDOWS_MAX
		);
		must_be_verified(root);
		json_decref(root);
	}
}

// A change is found in windows, but never in samples of the warm-up. So the warm-up is dropped
// first.
static void samples_of_the_warm_up_are_given_up_before_windows(void **state) {
	struct lab_run *run = make_run(RECORD_RAW_MAX + 70000, false);
	json_t *root = thinned_tree(run, 17, RESULT_FILE_BYTES), *warm_up;

	(void)state;
	release(run);
	assert_in_range(bytes_of(root), 1, RESULT_FILE_BYTES / 17);
	assert_in_range(parts_of_times(root, "windows"), SEGMENTS_WINDOWS_MIN, RECORD_WINDOWS_MAX);
	warm_up = json_object_get(json_array_get(json_object_get(root, "results"), 0), "warm_up");
	assert_true(json_is_null(json_object_get(warm_up, "samples_ns")));
	must_be_verified(root);
	json_decref(root);
}

static void a_file_of_the_least_bytes_is_bounded_and_is_verified(void **state) {
	static const struct {
		uint32_t count;
		bool open;
		uint32_t size_count;
	} rows[] = {{0, false, 1}, {0, true, PLAN_SIZES_MAX}, {20000, true, 1}};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lab_run *run = make_wide_run(rows[n].count, rows[n].open);
		struct plan plan = run->plan;
		json_t *root;
		size_t least;

		plan.size_count = rows[n].size_count;
		least = result_bytes_min(&plan);
		assert_in_range(least, 1, RESULT_FILE_BYTES);
		root = thinned_tree(run, plan.size_count, least);
		release(run);
		assert_in_range(bytes_of(root), 1, least / plan.size_count);
		must_be_verified(root);
		json_decref(root);
	}
}

static void a_host_whose_name_is_no_text_costs_no_file(void **state) {
	struct lab_run *run = make_run(70, false);
	json_t *root;

	(void)state;
	environment_add(&run->environment[0], "kernel", "\xff%s", "6.1");
	assert_int_equal(run_to_json(run, &root), 0);
	release(run);
	must_be_verified(root);
	json_decref(root);
}

static void a_changed_word_is_named_by_its_part(void **state) {
	json_t *root = tree_of(400, false);
	struct lab_why why;

	(void)state;
	json_object_set_new(
		json_object_get(json_object_get(root, "environment"), "client"), "host",
		json_string("another")
	);
	assert_int_equal(verify(root, &why), -EUCLEAN);
	assert_non_null(strstr(why.text, "digests.environment"));
	json_decref(root);
}

static void a_file_of_another_schema_or_of_none_is_refused(void **state) {
	json_t *root = tree_of(70, false), *none = json_pack("{s:i}", "a", 1);
	struct lab_why why = {.text = ""};

	(void)state;
	json_object_set_new(root, "schema", json_string("tocsin-perf/1"));
	assert_int_equal(verify(root, &why), -EPROTO);
	assert_non_null(strstr(why.text, "tocsin-perf/1"));
	json_decref(root);
	assert_int_equal(verify(none, &why), -EBADMSG);
	json_decref(none);
	why.text[0] = '\0';
	assert_int_equal(verify_path("/nonexistent/r.json", &why), -EBADMSG);
	assert_non_null(strstr(why.text, "/nonexistent/r.json"));
}

// A missing member, or a member of another type, must never crash the reader.
static void a_hostile_file_is_refused(void **state) {
	static const char *const keys[] = {
		"size_bytes", "took_ns", "warm_up", "times", "service", "load", "noise",
	};
	json_t *root = tree_of(300, true);

	(void)state;
	for (size_t n = 0; n < sizeof(keys) / sizeof(keys[0]); n++) {
		json_t *kinds[] = {
			json_null(), json_string("x"), json_integer(-1), json_array(),
			json_object()};

		for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
			json_t *copy = json_deep_copy(root);
			struct lab_why why;

			json_object_set_new(
				json_array_get(json_object_get(copy, "results"), 0), keys[n],
				kinds[kind]
			);
			assert_true(verify(copy, &why) < 0);
			assert_true(why.text[0] != '\0');
			json_decref(copy);
		}
	}
	json_decref(root);
}

static void a_file_that_is_cut_anywhere_is_none(void **state) {
	json_t *root = tree_of(20, false);
	char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
	char path[] = PATH;
	scoped_fd int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	// The file is cut at each of the first and last bytes, and at every seventh byte between
	// them.
	for (size_t whole = strlen(text), length = whole; length-- > 0;) {
		struct lab_why why = {.text = ""};

		if (length > 200 && length < whole - 200 && length % 7 != 0)
			continue;

		text[length] = '\0';
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, text, length, 0), (ssize_t)length);
		assert_int_equal(verify_path(path, &why), -EBADMSG);
		assert_non_null(strstr(why.text, path));
	}
	unlink(path);
	free(text);
	json_decref(root);
}

// 4,000 arrivals, one every two seconds: more than two hours.
static void a_slow_open_loop_is_verified(void **state) {
	struct lab_run *run = make_run(4000, true);
	struct lab_result *result = &run->results[0];
	json_t *root;

	(void)state;
	for (uint32_t n = 0; n < 4000; n++)
		result->load.due_ns[n] = n * UINT64_C(2000000000);
	result->took_ns = 4000 * UINT64_C(2000000000);
	assert_int_equal(result_summarize(result), 0);
	assert_int_equal(run_to_json(run, &root), 0);
	release(run);
	must_be_verified(root);
	json_decref(root);
}

static int fill_alike(void *ctx, int32_t place, uint64_t count, struct histogram *histogram) {
	(void)ctx;
	(void)place;
	histogram_record_times(histogram, 1500, count);
	return 0;
}

// Half an hour of round trips on a fast network: more samples than --iterations allows.
static void a_run_of_two_billion_samples_is_verified(void **state) {
	static const uint64_t samples[] = {1500, 1500, 1500};
	struct run_kept kept = {
		.count = 2000000000,
		.precision_bits = RECORD_PRECISION_BITS,
		.window_samples = 20000000,
		.window_count = 100,
		.block_count = 2,
		.blocks = {{0, samples, 3}, {1000000, samples, 3}},
		.fill = fill_alike,
	};
	struct lab_run *run = make_run(20, false);
	struct lab_result *result = &run->results[0];
	json_t *root;

	(void)state;
	run_record_destroy(result->times);
	assert_int_equal(run_record_restore(&kept, &result->times), 0);
	result->took_ns = kept.count * 1600;
	assert_int_equal(result_summarize(result), 0);
	assert_int_equal(run_to_json(run, &root), 0);
	release(run);
	must_be_verified(root);
	json_decref(root);
}

static void renew_digests(json_t *root) {
	json_t *digests;

	assert_int_equal(json_digests(root, &digests), 0);
	json_object_set_new(root, "digests", digests);
}

// Without raw samples the deviation is computed from buckets, with a small error. So a deviation
// that is 2 % off must be detected.
static void the_deviation_of_a_long_run_is_computed(void **state) {
	json_t *root = tree_of(RECORD_RAW_MAX + 5, false), *figures;
	struct lab_why why;
	double deviation;

	(void)state;
	figures = json_object_get(
		json_object_get(json_array_get(json_object_get(root, "results"), 0), "times"),
		"figures"
	);
	deviation = json_real_value(json_object_get(figures, "deviation_ns"));
	json_object_set_new(figures, "deviation_ns", json_real(1.02 * deviation));
	renew_digests(root);
	assert_int_equal(verify(root, &why), -EUCLEAN);
	assert_non_null(strstr(why.text, "results[0].times.figures.deviation_ns is"));
	json_object_set_new(figures, "deviation_ns", json_string("1"));
	assert_int_equal(verify(root, &why), -EUCLEAN);
	json_decref(root);
}

static void a_file_that_never_ends_is_refused(void **state) {
	char path[] = PATH;
	scoped_fd int fd = mkstemp(path);
	struct lab_why why = {.text = ""};
	char blanks[1 << 16];

	(void)state;
	assert_true(fd >= 0);
	memset(blanks, ' ', sizeof(blanks));
	for (size_t written = 0; written <= 16 * RESULT_FILE_BYTES; written += sizeof(blanks))
		assert_int_equal(write(fd, blanks, sizeof(blanks)), sizeof(blanks));
	assert_int_equal(verify_path(path, &why), -EBADMSG);
	assert_non_null(strstr(why.text, "more than 64 MiB"));
	unlink(path);
	why.text[0] = '\0';
	assert_int_equal(verify_path("/tmp", &why), -EBADMSG);
	assert_non_null(strstr(why.text, "Is a directory"));
}

// Times of a schedule of days have more digits than times within a second.
static void the_schedule_of_a_small_file_has_its_share(void **state) {
	struct lab_run *run = make_run(2000, true);
	struct lab_result *result = &run->results[0];
	json_t *root, *due;

	(void)state;
	for (uint32_t n = 0; n < 2000; n++)
		result->load.due_ns[n] = 800000000000000 + n;
	result->took_ns = 800000000000000;
	assert_int_equal(result_thin(result, 1, ((size_t)16 << 10) + 4 * 16 * 2000 - 1), 0);
	assert_int_equal(result_summarize(result), 0);
	assert_int_equal(run_to_json(run, &root), 0);
	release(run);
	due = json_object_get(
		json_object_get(json_array_get(json_object_get(root, "results"), 0), "load"),
		"due_ns"
	);
	// The schedule may use a quarter of the file, and it needs more.
	assert_true(json_is_null(due));
	json_decref(root);
}

// A few bytes that state the maximum number of samples must not take longer than other files.
static void huge_counts_are_refused_or_taken_at_once(void **state) {
	json_t *root = tree_of(20, false), *kept;
	struct lab_why why;

	(void)state;
	kept = json_object_get(
		json_object_get(json_array_get(json_object_get(root, "results"), 0), "times"),
		"kept"
	);
	json_object_set_new(kept, "count", json_integer(10000000000));
	json_object_set_new(
		kept, "all",
		json_pack(
			"{s:i s:i s:[[i,i,I]]}", "min", 1000, "max", 1001, "buckets", 1000, 1001,
			(json_int_t)10000000000
		)
	);
	assert_true(verify(root, &why) != 0);
	json_object_set_new(kept, "count", json_integer(INT64_MAX));
	assert_int_equal(verify(root, &why), -EBADMSG);
	json_decref(root);
}

UNIT_GROUP(lab_json) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_is_cut_anywhere_is_none),
		cmocka_unit_test(huge_counts_are_refused_or_taken_at_once),
		cmocka_unit_test(a_file_as_it_was_written_is_verified),
		cmocka_unit_test(one_changed_number_is_named),
		cmocka_unit_test(outliers_follow_from_samples),
		cmocka_unit_test(whole_numbers_are_written_without_a_point),
		cmocka_unit_test(rates_follow_from_windows),
		cmocka_unit_test(the_parts_of_device_time_are_verified),
		cmocka_unit_test(the_largest_file_is_bounded_and_is_verified),
		cmocka_unit_test(samples_of_the_warm_up_are_given_up_before_windows),
		cmocka_unit_test(a_file_of_the_least_bytes_is_bounded_and_is_verified),
		cmocka_unit_test(a_slow_open_loop_is_verified),
		cmocka_unit_test(a_run_of_two_billion_samples_is_verified),
		cmocka_unit_test(the_deviation_of_a_long_run_is_computed),
		cmocka_unit_test(a_file_that_never_ends_is_refused),
		cmocka_unit_test(the_schedule_of_a_small_file_has_its_share),
		cmocka_unit_test(a_host_whose_name_is_no_text_costs_no_file),
		cmocka_unit_test(a_changed_word_is_named_by_its_part),
		cmocka_unit_test(a_file_of_another_schema_or_of_none_is_refused),
		cmocka_unit_test(a_hostile_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
