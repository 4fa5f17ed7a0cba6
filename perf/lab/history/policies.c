// SPDX-License-Identifier: BSD-3-Clause
// Rows of latency and processor time, as a table and as a file.
#include "history/policies.h"

#include "report/json.h"

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PATH_BYTES 32

static const char *const ends[2] = {"client", "server"};

static double json_number_or_nan(const json_t *object, const char *key) {
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

static double figures_quantile_ns(const json_t *figures, size_t place) {
	return json_number_or_nan(json_quantile_find(figures, place), "value_ns");
}

void policies_row_read(const struct json_t *root, struct policies_row *row) {
	const json_t *plan = json_object_get(root, "plan");
	const json_t *result = json_array_get(json_object_get(root, "results"), 0);
	const json_t *figures = json_object_get(json_object_get(result, "times"), "figures");
	const json_t *load = json_object_get(result, "load");

	snprintf(row->policy, sizeof(row->policy), "%s", json_member_text(plan, "policy"));
	row->rate = (uint32_t)json_integer_value(json_object_get(plan, "rate_per_s"));
	row->measured = json_is_true(json_object_get(result, "complete"));
	row->p50_ns = figures_quantile_ns(figures, 0);
	row->p99_ns = figures_quantile_ns(figures, 2);
	row->max_ns = json_number_or_nan(figures, "max_ns");
	row->saturated = json_is_true(json_object_get(load, "saturated"));
	for (int n = 0; n < 2; n++) {
		const json_t *noise = json_object_get(json_object_get(result, "noise"), ends[n]);
		double time_ns = json_number_or_nan(noise, "time_ns");

		row->cpu[n] = json_number_or_nan(noise, "cpu_ns") / time_ns;
		row->sleeps_per_s[n] = json_number_or_nan(noise, "worker_sleeps") / time_ns * 1e9;
	}
}

json_t *policies_row_to_json(const struct policies_row *row) {
	if (!row->measured)
		return json_pack(
			"{s:s s:I s:s}", "policy", row->policy, "rate_per_s", (json_int_t)row->rate,
			"why", row->why
		);
	return json_pack(
		"{s:s s:I s:o s:o s:o s:[o,o] s:[o,o] s:b}", "policy", row->policy, "rate_per_s",
		(json_int_t)row->rate, "p50_ns", json_finite_or_null(row->p50_ns), "p99_ns",
		json_finite_or_null(row->p99_ns), "max_ns", json_finite_or_null(row->max_ns), "cpu",
		json_finite_or_null(row->cpu[0]), json_finite_or_null(row->cpu[1]), "sleeps_per_s",
		json_finite_or_null(row->sleeps_per_s[0]),
		json_finite_or_null(row->sleeps_per_s[1]), "saturated", row->saturated
	);
}

static int verify_row(size_t place, json_t *file, json_t *run, struct lab_why *why) {
	struct lab_why inner = {.text = ""};
	struct policies_row row = {.rate = 0};
	char path[PATH_BYTES];
	json_t *computed;
	int err = verify_run(run, &inner);

	snprintf(path, sizeof(path), "rows[%zu]", place);
	if (err != 0)
		return lab_fail(why, err, "runs[%zu]: %s", place, inner.text);
	policies_row_read(run, &row);
	computed = policies_row_to_json(&row);
	if (computed == NULL)
		return -ENOMEM;
	err = verify_compare(path, file, computed, why);
	json_decref(computed);
	return err;
}

int policies_verify(struct json_t *root, struct lab_why *why) {
	json_t *rows = json_object_get(root, "rows"), *runs = json_object_get(root, "runs");
	int err = 0;

	if (!json_is_array(rows) || json_array_size(rows) > POLICIES_ROWS_MAX ||
	    json_array_size(rows) != json_array_size(runs))
		return lab_fail(why, -EBADMSG, "rows and runs are missing, or differ in number");
	for (size_t n = 0; n < json_array_size(rows) && err == 0; n++) {
		json_t *row = json_array_get(rows, n), *run = json_array_get(runs, n);

		// a row that was not measured has no figures
		if (!json_is_null(run) || !json_is_string(json_object_get(row, "why")))
			err = verify_row(n, row, run, why);
	}
	return err == 0 ? json_verify_digests(root, why) : err;
}

static void print_us(double value_ns) {
	if (isfinite(value_ns))
		printf(" %10.2f", value_ns / 1e3);
	else
		printf(" %10s", "n/a");
}

void policies_print(const struct policies *policies) {
	printf("%-12s %-9s %10s %10s %10s %15s %17s\n%-12s %-9s %10s %10s %10s %7s %7s %8s %8s\n",
	       "", "", "", "", "", "processor %", "sleeps per second", "load", "policy", "p50 us",
	       "p99 us", "max us", "client", "server", "client", "server");
	for (uint32_t n = 0; n < policies->count; n++) {
		const struct policies_row *row = &policies->rows[n];
		char load[24] = "closed loop";

		if (row->rate > 0)
			snprintf(load, sizeof(load), "%u/s", row->rate);
		printf("%-12s %-9s", load, row->policy);
		if (!row->measured) {
			printf(" n/a: %.60s\n", row->why);
			continue;
		}
		print_us(row->p50_ns);
		print_us(row->p99_ns);
		print_us(row->max_ns);
		for (int end = 0; end < 2; end++)
			printf(" %7.1f", 100 * row->cpu[end]);
		for (int end = 0; end < 2; end++)
			printf(" %8.0f", row->sleeps_per_s[end]);
		printf("%s\n", row->saturated ? " saturated" : "");
	}
}
