// SPDX-License-Identifier: BSD-3-Clause
// Page of a run, built from its JSON both after a measurement and from a stored file.
//
// The page has the JSON of the run without stored samples. Each result gets a member "page" with
// what is computed from the samples, and with sentences that the terminal prints as well.
#include "report/page_run.h"

#include "report/json.h"
#include "report/page_parts.h"
#include "report/page_series.h"

#include <lib/show.h>

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <page.h>
#include <stdio.h>
#include <string.h>

#define TITLE_BYTES 160
#define HEADLINE_BYTES 512
#define OUTLIERS_SHOWN 10
#define COLUMNS 160		     // columns of the course if the run has one size
#define COLUMNS_OF_SEVERAL 80	     // columns of each course if the run has several sizes
#define EXACT_MAX (INT64_C(1) << 53) // largest integer of which JavaScript knows each digit

// Read the noise of one end from a file; counts that are no valid number are unknown.
static bool noise_from_json(const json_t *object, struct noise *ret_noise) {
	for (int n = 0; n < NOISE_KIND_COUNT; n++) {
		const json_t *value = json_object_get(object, noise_key((enum noise_kind)n));
		bool known = json_is_integer(value) && json_integer_value(value) >= 0;

		ret_noise->counts[n] = known ? (uint64_t)json_integer_value(value) : NOISE_UNKNOWN;
	}
	return json_object_size(object) > 0;
}

static int put_noise(json_t *object, const json_t *file) {
	static const char *const ends[2] = {"client", "server"};
	json_t *texts = json_object();
	int failed = 0;

	for (int n = 0; n < 2; n++) {
		const json_t *json = json_object_get(json_object_get(file, "noise"), ends[n]);
		char text[NOISE_TEXT_BYTES];
		struct noise noise;

		if (noise_from_json(json, &noise) && noise_format(&noise, text))
			failed |= json_object_set_new(texts, ends[n], json_string(text));
	}
	return failed | json_object_set_new(object, "noise", texts);
}

static bool outlier_from_json(const json_t *object, struct outlier *ret_outlier) {
	static const char *const keys[] = {"sample", "at_ns", "took_ns", "within_ns"};
	uint64_t *const places[] = {
		&ret_outlier->sample, &ret_outlier->at_ns, &ret_outlier->took_ns,
		&ret_outlier->within_ns};

	for (size_t n = 0; n < sizeof(keys) / sizeof(keys[0]); n++) {
		const json_t *value = json_object_get(object, keys[n]);

		if (!json_is_integer(value) || json_integer_value(value) < 0)
			return false;
		*places[n] = (uint64_t)json_integer_value(value);
	}
	for (int n = 0; n < OUTLIER_EVIDENCE_COUNT; n++) {
		const json_t *value =
			json_object_get(object, outlier_key((enum outlier_evidence)n));
		bool known = json_is_integer(value) && json_integer_value(value) >= 0;

		ret_outlier->evidence[n] =
			known ? (uint64_t)json_integer_value(value) : OUTLIER_UNKNOWN;
	}
	return true;
}

// Put what is known about the largest outliers; a file lists them largest first.
static int put_outliers(json_t *object, const json_t *file) {
	const json_t *outliers = json_object_get(file, "outliers");
	json_t *texts = json_array();
	int failed = 0;

	for (size_t n = 0; n < json_array_size(outliers) && n < OUTLIERS_SHOWN; n++) {
		char text[OUTLIER_TEXT_BYTES];
		struct outlier outlier;

		if (!outlier_from_json(json_array_get(outliers, n), &outlier)) {
			failed |= json_array_append_new(texts, json_null());
			continue;
		}
		outlier_format(&outlier, text);
		failed |= json_array_append_new(texts, json_string(text));
	}
	return failed | json_object_set_new(object, "outliers", texts);
}

static int put_samples(json_t *object, const struct lab_result *result, bool alone) {
	bool is_load = result->window_messages > 0;
	const struct page_source sources[2] = {
		{is_load ? "time of a window" : result_time_name(result), result->times,
		 &result->summary},
		{"service", result->load.service, &result->load.service_summary},
	};
	const struct page_span span = {
		.took_ns = result->took_ns,
		.open = result->open,
		.columns = alone ? COLUMNS : COLUMNS_OF_SEVERAL,
	};
	int err = page_put_percentiles(object, sources, result->open ? 2 : 1);

	return err == 0 ? page_put_course(object, &sources[0], &span) : err;
}

// Copy a result without its samples and with its member "page". Returns 0 or -ENOMEM.
static int
copy_result(json_t *array, const json_t *file, const struct lab_result *result, bool alone) {
	json_t *copy = json_copy((json_t *)file), *page = json_object();
	char size[SHOW_BYTES], took[SHOW_BYTES];
	int failed = json_object_set_new(copy, "page", page);
	int err = 0;

	show_bytes(result->size, size);
	show_duration(result->took_ns, took);
	failed |= json_object_set_new(page, "size", json_string(size));
	failed |= json_object_set_new(page, "took", json_string(took));
	failed |= put_noise(page, file) | put_outliers(page, file);
	if (failed == 0 && result->summarized)
		err = put_samples(page, result, alone);
	failed |= page_thin_member(copy, "warm_up", "samples_ns");
	failed |= page_thin_member(copy, "times", "kept");
	failed |= page_thin_member(copy, "service", "kept");
	failed |= page_thin_member(copy, "load", "due_ns");
	failed |= page_thin_member(copy, "load", "lag");
	failed |= page_thin_member(copy, "device_time", ""); // a copy, whose parts are replaced
	if (json_is_object(json_object_get(copy, "device_time"))) {
		failed |= page_thin_member(json_object_get(copy, "device_time"), "device", "kept");
		failed |= page_thin_member(json_object_get(copy, "device_time"), "host", "kept");
	}
	failed |= json_array_append_new(array, copy);
	return err == 0 && failed != 0 ? -ENOMEM : err;
}

static int copy_results(json_t *copy, const json_t *root, struct lab_why *why) {
	const json_t *results = json_object_get(root, "results");
	json_t *array = json_array();
	size_t count = json_array_size(results);
	int err = json_object_set_new(copy, "results", array) == 0 ? 0 : -ENOMEM;

	for (size_t n = 0; n < count && err == 0; n++) {
		const json_t *file = json_array_get(results, n);
		struct lab_result result = {.size = 0};

		err = result_from_json(file, why, &result);
		if (err == 0)
			err = result_summarize(&result);
		if (err == 0)
			err = copy_result(array, file, &result, count == 1);
		result_release(&result);
	}
	return err == 0 ? 0 : lab_fail(why, err, "no memory for the page");
}

// Copy the plan. A seed that JavaScript would round becomes a text.
static int page_add_plan(json_t *copy) {
	json_t *plan = json_copy(json_object_get(copy, "plan"));
	const json_t *seed = json_object_get(plan, "seed");
	char text[PAGE_CELL_BYTES];
	int failed = 0;

	if (plan == NULL)
		return 0;
	if (json_is_integer(seed) && json_integer_value(seed) > EXACT_MAX) {
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(seed));
		failed = json_object_set_new(plan, "seed", json_string(text));
	}
	return failed | json_object_set_new(copy, "plan", plan);
}

static void format_headline(const json_t *root, char text[static HEADLINE_BYTES]) {
	const json_t *plan = json_object_get(root, "plan");
	const json_t *environment = json_object_get(root, "environment");
	const json_t *client = json_object_get(environment, "client");
	const json_t *server = json_object_get(environment, "server");
	const char *arrivals = page_member_text(plan, "arrivals");

	snprintf(
		text, HEADLINE_BYTES, "%s on %s to %s on %s, policy %s, %s; started %s by %s.",
		page_member_text(client, "device"), page_member_text(client, "host"),
		page_member_text(server, "device"), page_member_text(server, "host"),
		page_member_text(plan, "policy"),
		strcmp(arrivals, "closed") == 0 ? "closed loop" : arrivals,
		page_member_text(root, "started"), page_member_text(root, "program")
	);
}

int page_run_json(const json_t *root, const char *path, struct lab_why *why) {
	const json_t *plan = json_object_get(root, "plan");
	bool is_bandwidth = strcmp(page_member_text(plan, "command"), "bw") == 0;
	json_t *copy = json_copy((json_t *)root);
	char title[TITLE_BYTES], headline[HEADLINE_BYTES];
	struct page page = {.title = title, .headline = headline, .kind = "run"};
	int err = copy != NULL ? 0 : lab_fail(why, -ENOMEM, "no memory for the page");

	snprintf(
		title, sizeof(title), "%s of %.20s", is_bandwidth ? "Bandwidth" : "Latency",
		page_member_text(plan, "op")
	);
	format_headline(root, headline);
	(void)json_object_del(copy, "digests");
	if (err == 0)
		err = copy_results(copy, root, why);
	if (err == 0 && (page_add_plan(copy) != 0 ||
			 json_object_set_new(
				 copy, "page", json_pack("{s:o}", "headline", page_text(headline))
			 ) != 0))
		err = lab_fail(why, -ENOMEM, "no memory for the page");
	if (err == 0)
		return page_save(&page, copy, path, why);
	json_decref(copy);
	return err;
}

int page_run(const struct lab_run *run, const char *path, struct lab_why *why) {
	json_t *root;
	int err = run_to_json(run, &root);

	if (err != 0)
		return lab_fail(why, err, "no memory for JSON");
	err = page_run_json(root, path, why);
	json_decref(root);
	return err;
}
