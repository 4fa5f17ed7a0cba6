// SPDX-License-Identifier: BSD-3-Clause
// The floors as a table and as a file.
#include "report/net.h"

#include "report/json.h"
#include "report/output.h"
#include "run/exit_status.h"

#include <lib/parse.h>
#include <lib/show.h>

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIMIT_NS UINT64_C(300000000)
#define SAMPLES 20000
#define KEY_BYTES 32

struct net_row {
	bool measured;
	struct lab_why why;
	struct run_record *times;
	struct run_summary summary;
};

struct net {
	int64_t started_ns;
	struct lab_environment environment;
	struct net_row rows[FLOOR_KIND_COUNT];
};

static void print_cell(enum floor_kind kind, uint64_t batch_ns) {
	char text[FLOOR_TIME_BYTES];

	// A batch holds several events; the table shows the time of one.
	floor_format_time((double)batch_ns / floor_batch(kind), text);
	printf(" %10s", text);
}

static void print_floors(const struct net *net) {
	printf("floors of %.40s, processors %.20s, kernel %.30s\n\n%-42s %10s %10s %21s %10s\n",
	       environment_get(&net->environment, "host"),
	       environment_get(&net->environment, "processors_online"),
	       environment_get(&net->environment, "kernel"), "", "min", "p50", "its 95 % interval",
	       "p99");
	for (int n = 0; n < FLOOR_KIND_COUNT; n++) {
		enum floor_kind kind = (enum floor_kind)n;
		const struct net_row *row = &net->rows[n];
		const struct quantile_summary *median = &row->summary.quantiles[0];
		const struct quantile_summary *late = &row->summary.quantiles[2];

		printf("%-42s", floor_description(kind));
		if (!row->measured) {
			printf(" n/a: %.50s\n", row->why.text);
			continue;
		}
		print_cell(kind, row->summary.all.min);
		print_cell(kind, median->value);
		if (quantile_has_interval(median)) {
			print_cell(kind, median->low);
			print_cell(kind, median->high);
		} else {
			printf(" %10s %10s", "n/a", "n/a");
		}
		print_cell(kind, late->value);
		printf("\n");
	}
}

static int measure_row(enum floor_kind kind, uint64_t limit_ns, struct net_row *row) {
	const struct floor_config config = {.samples = SAMPLES, .limit_ns = limit_ns};
	int err = run_record_create(&row->times);

	if (err != 0)
		return err;
	run_record_touch(row->times, SAMPLES);
	row->measured = floor_measure(kind, &config, row->times, &row->why) == 0;
	if (!row->measured)
		return 0;
	return run_summarize(row->times, result_per_million, RESULT_QUANTILES, &row->summary);
}

static json_t *row_json(enum floor_kind kind, const struct net_row *row) {
	json_t *series;

	if (!row->measured)
		return json_pack("{s:s s:s}", "name", floor_key(kind), "why", row->why.text);
	if (series_to_json(row->times, &row->summary, &series) != 0)
		return NULL;
	return json_pack(
		"{s:s s:s s:I s:o}", "name", floor_key(kind), "says", floor_description(kind),
		"batch", (json_int_t)floor_batch(kind), "times", series
	);
}

static int net_to_json(const struct net *net, json_t **ret_json) {
	json_t *root = json_object(), *rows = json_array();
	char started[SHOW_BYTES];
	int failed = 0;

	show_time(net->started_ns, started);
	for (int kind = 0; kind < FLOOR_KIND_COUNT; kind++)
		failed |= json_array_append_new(
			rows, row_json((enum floor_kind)kind, &net->rows[kind])
		);
	failed |= json_object_set_new(root, "schema", json_string(NET_JSON_SCHEMA));
	failed |= json_object_set_new(root, "program", json_string("tocsin-perf " TOCSIN_VERSION));
	failed |= json_object_set_new(root, "started", json_string(started));
	failed |= json_object_set_new(root, "environment", environment_to_json(&net->environment));
	failed |= json_object_set_new(root, "floors", rows);
	if (failed == 0)
		failed = json_add_digests(root);
	if (failed != 0) {
		json_decref(root);
		return -ENOMEM;
	}
	*ret_json = root;
	return 0;
}

// Verify one floor; a floor that was not measured has no figures.
static int verify_row(size_t place, json_t *row, struct lab_why *why) {
	struct lab_why inner = {.text = ""};
	struct run_record *record = NULL;
	struct run_summary summary;
	json_t *series, *times = json_object_get(row, "times");
	char path[KEY_BYTES];
	int err;

	if (times == NULL && json_is_string(json_object_get(row, "why")))
		return 0;
	snprintf(path, sizeof(path), "floors[%zu].times", place);
	err = series_from_json(times, &inner, &record);
	if (err != 0)
		return lab_fail(why, err, "%s: %s", path, inner.text);
	err = run_summarize(record, result_per_million, RESULT_QUANTILES, &summary);
	if (err == 0)
		err = series_to_json(record, &summary, &series);
	if (err == 0) {
		err = verify_compare(path, times, series, why);
		json_decref(series);
	}
	run_record_destroy(record);
	return err;
}

int net_verify(struct json_t *root, struct lab_why *why) {
	json_t *rows = json_object_get(root, "floors");
	int err = 0;

	if (!json_is_array(rows) || json_array_size(rows) > FLOOR_KIND_COUNT)
		return lab_fail(why, -EBADMSG, "it has no floors");
	for (size_t n = 0; n < json_array_size(rows) && err == 0; n++)
		err = verify_row(n, json_array_get(rows, n), why);
	return err == 0 ? json_verify_digests(root, why) : err;
}

struct net_words {
	const char *json_path;
	uint64_t limit_ns;
};

static int parse_arguments(int argc, char **argv, struct net_words *words) {
	static const char *const options[] = {"--json", "--duration"};
	struct parse_error error = {.text = ""};

	for (int n = 2; n < argc; n++) {
		const char *option = NULL, *value = strchr(argv[n], '=');
		size_t length = strcspn(argv[n], "=");

		for (size_t at = 0; at < sizeof(options) / sizeof(options[0]); at++) {
			if (strlen(options[at]) == length &&
			    strncmp(argv[n], options[at], length) == 0)
				option = options[at];
		}
		if (option == NULL)
			return output_usage_error(
				argv[n], "is not an option of net; net has --json and --duration"
			);
		if (value == NULL)
			value = n + 1 < argc ? argv[++n] : NULL;
		else
			value++;
		if (value == NULL || value[0] == '\0')
			return output_usage_error(option, "needs a value");
		if (strcmp(option, "--json") == 0) {
			words->json_path = value;
			continue;
		}
		if (parse_duration_ns(
			    value, strlen(value), 1000000, UINT64_C(60000000000), &error,
			    &words->limit_ns
		    ) != 0)
			return output_usage_error(option, error.text);
	}
	return 0;
}

static int floors_output(const struct net *net, const char *json_path) {
	struct lab_why why = {.text = ""};
	json_t *root;
	int err;

	if (json_path == NULL || strcmp(json_path, "-") != 0)
		print_floors(net);
	if (json_path == NULL)
		return EXIT_DONE;
	err = net_to_json(net, &root);
	if (err != 0) {
		lab_fail(&why, err, "no memory for JSON");
		return output_failure(&why);
	}
	err = output_json_root(root, json_path, &why);
	json_decref(root);
	return err == 0 ? EXIT_DONE : output_failure(&why);
}

int net_main(int argc, char **argv) {
	struct net_words words = {.limit_ns = LIMIT_NS};
	struct net *net = calloc(1, sizeof(*net));
	struct lab_why why = {.text = ""};
	struct timespec now;
	int status = parse_arguments(argc, argv, &words), err = net != NULL ? 0 : -ENOMEM;

	if (status == 0 && output_check(words.json_path, &why) != 0)
		status = output_failure(&why);
	if (status != 0 || err != 0) {
		free(net);
		return status != 0 ? status : EXIT_FAILED;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	net->started_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	environment_read_machine(&net->environment);
	for (int kind = 0; kind < FLOOR_KIND_COUNT && err == 0; kind++)
		err = measure_row((enum floor_kind)kind, words.limit_ns, &net->rows[kind]);
	status = err == 0 ? floors_output(net, words.json_path)
			  : output_usage_error("net", "no memory");
	for (int kind = 0; kind < FLOOR_KIND_COUNT; kind++)
		run_record_destroy(net->rows[kind].times);
	free(net);
	return err == 0 ? status : EXIT_FAILED;
}
