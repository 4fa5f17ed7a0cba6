// SPDX-License-Identifier: BSD-3-Clause
// Read a directory of results and sort them into histories by key and size.
#include "history/history.h"
#include "report/json.h"

#include <lib/error.h>

#include <jansson.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int64_t member_number(const json_t *object, const char *key) {
	return json_integer_value(json_object_get(object, key));
}

struct key {
	char text[HISTORY_KEY_BYTES];
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void
key_add(struct key *key, const char *format, ...) {
	size_t room = sizeof(key->text) - key->used;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(key->text + key->used, room, format, arguments);
	va_end(arguments);
	if (length > 0)
		key->used += (size_t)length < room ? (size_t)length : room - 1;
}

// Return the memory kind of an end. Older results have no such key; they used host memory.
static const char *end_memory(const json_t *end) {
	const char *memory = json_member_text(end, "memory");

	return memory[0] != '\0' ? memory : "host";
}

void history_key(const json_t *root, char text[static HISTORY_KEY_BYTES]) {
	const json_t *plan = json_object_get(root, "plan");
	const json_t *environment = json_object_get(root, "environment");
	const json_t *client = json_object_get(environment, "client");
	const json_t *server = json_object_get(environment, "server");
	const char *arrivals = json_member_text(plan, "arrivals");
	const char *policy = json_member_text(plan, "policy");
	struct key key = {.used = 0};

	key_add(&key, "%.20s", json_member_text(plan, "op"));
	if (strcmp(json_member_text(plan, "command"), "bw") == 0)
		key_add(&key, ", queue pairs %" PRId64 ", depth %" PRId64,
			member_number(plan, "queue_pairs"), member_number(plan, "depth"));
	if (strcmp(arrivals, "closed") == 0)
		key_add(&key, ", closed loop");
	else
		key_add(&key, ", %.20s, %" PRId64 " a second", arrivals,
			member_number(plan, "rate_per_s"));
	if (member_number(plan, "gap_ns") > 0)
		key_add(&key, ", gap %" PRId64 " ns", member_number(plan, "gap_ns"));
	if (json_is_integer(json_object_get(plan, "inline_bytes")))
		key_add(&key, ", inline up to %" PRId64 " B", member_number(plan, "inline_bytes"));
	key_add(&key, ", policy %.20s", policy);
	if (strcmp(policy, "window") == 0)
		key_add(&key, " of %" PRId64 " ns", member_number(plan, "window_ns"));
	if (json_object_get(plan, "device_time") != NULL)
		key_add(&key, ", device time %.8s", json_member_text(plan, "device_time"));
	if (strcmp(end_memory(client), "host") != 0 || strcmp(end_memory(server), "host") != 0)
		key_add(&key, ", memory %.16s to %.16s", end_memory(client), end_memory(server));
	key_add(&key, ", %.40s on %.40s to %.40s on %.40s", json_member_text(client, "device"),
		json_member_text(client, "host"), json_member_text(server, "device"),
		json_member_text(server, "host"));
	lab_sanitize(key.text);
	memcpy(text, key.text, sizeof(key.text));
}

static double quantile_figure(const json_t *result, uint32_t place, const char *key) {
	const json_t *figures = json_object_get(json_object_get(result, "times"), "figures");
	const json_t *value = json_object_get(json_quantile_find(figures, place), key);

	return json_is_integer(value) ? (double)json_integer_value(value) : NAN;
}

static struct history_series *
series_find_or_add(struct history *history, const char *key, uint64_t size) {
	struct history_series *series;

	for (uint32_t n = 0; n < history->series_count; n++) {
		series = &history->series[n];
		if (series->size == size && strcmp(series->key, key) == 0)
			return series;
	}
	if (history->series_count == HISTORY_SERIES_MAX)
		return NULL;
	series = &history->series[history->series_count++];
	snprintf(series->key, sizeof(series->key), "%s", key);
	series->size = size;
	return series;
}

static int
add_run(struct history_series *series, const char *path, const json_t *root, const json_t *result) {
	struct history_run *runs =
		reallocarray(series->runs, series->run_count + (size_t)1, sizeof(*series->runs));
	struct history_run *run;

	if (runs == NULL)
		return -ENOMEM;
	series->runs = runs;
	run = &runs[series->run_count];
	*run = (struct history_run){.path = strdup(path)};
	if (run->path == NULL)
		return -ENOMEM;
	series->run_count++;
	lab_sanitize(run->path);
	snprintf(run->started, sizeof(run->started), "%s", json_member_text(root, "started"));
	lab_sanitize(run->started);
	for (uint32_t n = 0; n < HISTORY_QUANTILES; n++) {
		run->value_ns[n] = quantile_figure(result, n, "value_ns");
		run->low_ns[n] = quantile_figure(result, n, "low_ns");
		run->high_ns[n] = quantile_figure(result, n, "high_ns");
	}
	return 0;
}

// Return true if the series already contains this run: a copied file is not another run.
static bool
series_has_run(const struct history_series *series, const json_t *root, const json_t *result) {
	for (uint32_t run = 0; run < series->run_count; run++) {
		const struct history_run *other = &series->runs[run];
		bool same = strcmp(other->started, json_member_text(root, "started")) == 0;

		for (uint32_t n = 0; n < HISTORY_QUANTILES && same; n++) {
			double value = quantile_figure(result, n, "value_ns");

			same = other->value_ns[n] == value ||
			       (isnan(other->value_ns[n]) && isnan(value));
		}
		if (same)
			return true;
	}
	return false;
}

static int leave_out_file(struct history *history, const char *path, const char *why) {
	struct history_left_out *left_out = reallocarray(
		history->left_out, history->left_out_count + (size_t)1, sizeof(*left_out)
	);
	struct history_left_out *one;

	if (left_out == NULL)
		return -ENOMEM;
	history->left_out = left_out;
	one = &left_out[history->left_out_count++];
	*one = (struct history_left_out){.path = strdup(path), .why = strdup(why)};
	if (one->path == NULL || one->why == NULL)
		return -ENOMEM;
	lab_sanitize(one->path);
	return 0;
}

// Return the reason to skip a run, or NULL if it is usable.
static const char *run_reject_reason(const json_t *root) {
	const json_t *results = json_object_get(root, "results");

	if (!json_is_run(root) ||
	    strcmp(json_member_text(json_object_get(root, "plan"), "command"), "lat") != 0)
		return "it is not a result of tocsin-perf lat";
	if (json_member_text(root, "incomplete")[0] != '\0' || json_array_size(results) == 0)
		return "its run is incomplete";
	for (size_t n = 0; n < json_array_size(results); n++) {
		const json_t *result = json_array_get(results, n);

		if (!json_is_true(json_object_get(result, "complete")))
			return "its run is incomplete";
		if (json_is_true(json_object_get(json_object_get(result, "load"), "saturated")))
			return "its run was saturated";
	}
	return NULL;
}

static int add_results(
	struct history *history,
	const char *path,
	const char *name,
	const json_t *root,
	struct lab_why *why
) {
	const json_t *results = json_object_get(root, "results");
	char key[HISTORY_KEY_BYTES];
	int err = 0;

	history_key(root, key);
	for (size_t n = 0; n < json_array_size(results) && err == 0; n++) {
		const json_t *result = json_array_get(results, n);
		uint64_t size = (uint64_t)member_number(result, "size_bytes");
		struct history_series *series = series_find_or_add(history, key, size);

		if (series == NULL)
			return lab_fail(
				why, -E2BIG,
				"the results have more than %d combinations of plan and size",
				HISTORY_SERIES_MAX
			);
		if (series_has_run(series, root, result))
			return leave_out_file(history, path, "another file has the same run");
		err = add_run(series, name, root, result);
	}
	return err == 0 ? 0 : lab_fail(why, err, "no memory");
}

static int load_result_file(
	struct history *history, const char *directory, const char *name, struct lab_why *why
) {
	struct lab_why inner = {.text = ""};
	json_t *root = NULL;
	const char *reason = inner.text;
	struct stat facts;
	size_t length;
	char *path;
	int err;

	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return lab_fail(why, -ENOMEM, "no memory");
	// Opening a pipe would block until somebody writes to it.
	if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode))
		err = lab_fail(&inner, -EBADMSG, "it is not a regular file");
	else
		err = verify_load(path, &inner, &root);
	// Skip the path at the start of an error text; the report names the file anyway.
	length = strlen(path);
	if (err == 0)
		reason = run_reject_reason(root);
	else if (strlen(reason) > length + 2 && strncmp(reason, path, length) == 0)
		reason += length + 2;
	err = reason != NULL ? leave_out_file(history, path, reason)
			     : add_results(history, path, name, root, why);
	json_decref(root);
	free(path);
	return err == 0 ? 0 : lab_fail(why, err, "no memory");
}

static int entry_is_json(const struct dirent *entry) {
	size_t length = strlen(entry->d_name);

	return entry->d_name[0] != '.' && length > 5 &&
	       strcmp(entry->d_name + length - 5, ".json") == 0;
}

static int runs_compare(const void *a, const void *b) {
	const struct history_run *left = a, *right = b;
	int order = strcmp(left->started, right->started);

	return order != 0 ? order : strcmp(left->path, right->path);
}

int history_load(const char *directory, struct lab_why *why, struct history *history) {
	struct dirent **entries;
	int count = scandir(directory, &entries, entry_is_json, alphasort), err = 0;

	if (count < 0)
		return lab_fail(why, neg_errno(), "%s: %s", directory, strerrordesc_np(errno));
	if (count > HISTORY_RUNS_MAX)
		err = lab_fail(
			why, -E2BIG, "%s: it has %d *.json files, at most %d are allowed",
			directory, count, HISTORY_RUNS_MAX
		);
	for (int n = 0; n < count; n++) {
		if (err == 0)
			err = load_result_file(history, directory, entries[n]->d_name, why);
		free(entries[n]);
	}
	free(entries);
	for (uint32_t n = 0; n < history->series_count; n++)
		qsort(history->series[n].runs, history->series[n].run_count,
		      sizeof(struct history_run), runs_compare);
	return err;
}
