// SPDX-License-Identifier: BSD-3-Clause
// Convert a run to JSON: plan, environment, results and digests.
#include "report/json.h"
#include "report/output.h"

#include <lib/histogram_json.h>
#include <lib/show.h>

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

json_t *plan_to_json(const struct plan *plan) {
	json_t *sizes = json_array(), *json;
	int failed = 0;

	for (uint32_t n = 0; n < plan->size_count; n++)
		failed |= json_array_append_new(sizes, json_unsigned(plan->sizes[n]));
	if (failed != 0) {
		json_decref(sizes);
		return NULL;
	}
	json = json_pack(
		"{s:s s:s s:o s:I s:I s:I s:s s:I s:s s:I s:I s:b s:I s:I s:I s:I s:I s:b s:I s:I}",
		"command", plan_command_name(plan->command), "op", plan_op_name(plan->op),
		"sizes_bytes", sizes, "iterations", (json_int_t)plan->iterations, "duration_ns",
		(json_int_t)plan->duration_ns, "gap_ns", (json_int_t)plan->gap_ns, "policy",
		plan_policy_name(plan), "window_ns", (json_int_t)plan->window_ns, "arrivals",
		plan_arrivals_name(plan->arrivals), "rate_per_s", (json_int_t)plan->rate, "seed",
		(json_int_t)plan->seed, "answered", plan_is_answered(plan), "lead_samples",
		(json_int_t)RESULT_LEAD, "warm_up_samples_min", (json_int_t)WARMUP_SAMPLES_MIN,
		"warm_up_samples_max", (json_int_t)WARMUP_SAMPLES_MAX, "depth",
		(json_int_t)plan->depth, "queue_pairs", (json_int_t)plan->pairs, "bidirectional",
		plan->both_ways, "run", (json_int_t)plan->run, "runs", (json_int_t)plan->runs
	);
	// These keys exist only for values other than the default. So the JSON of a default plan
	// equals that of older releases, and histories continue.
	if (plan->inline_bytes != PLAN_INLINE_DEFAULT)
		failed = json_object_set_new(
			json, "inline_bytes", json_integer((json_int_t)plan->inline_bytes)
		);
	if (plan->stamps != PLAN_STAMPS_NONE)
		failed |= json_object_set_new(
			json, "device_time", json_string(plan_stamps_name(plan->stamps))
		);
	if (failed == 0)
		return json;
	json_decref(json);
	return NULL;
}

json_t *environment_to_json(const struct lab_environment *environment) {
	json_t *object = json_object();

	for (uint32_t n = 0; n < environment->count; n++) {
		if (json_object_set_new(
			    object, environment->items[n].key,
			    json_string(environment->items[n].value)
		    ) != 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

static json_t *noise_json(const struct noise *noise, bool known) {
	json_t *object = json_object();
	int failed = 0;

	for (int n = 0; known && n < NOISE_KIND_COUNT; n++)
		failed |= json_object_set_new(
			object, noise_key((enum noise_kind)n),
			noise->counts[n] == NOISE_UNKNOWN ? json_null()
							  : json_unsigned(noise->counts[n])
		);
	if (failed == 0)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *numbers_json(const uint64_t *values, uint64_t count) {
	json_t *array = json_array();
	int failed = 0;

	for (uint64_t n = 0; n < count; n++)
		failed |= json_array_append_new(array, json_unsigned(values[n]));
	if (failed == 0)
		return array;
	json_decref(array);
	return NULL;
}

static int put_series(json_t *object, const struct lab_result *result) {
	const struct result_load *load = &result->load;
	// A schedule that was left out follows from the plan, or is the trace's.
	bool all = load->due_ns != NULL && !load->due_left_out;
	json_t *series, *lag;
	int err = series_to_json(result->times, &result->summary, &series);

	if (err != 0 || json_object_set_new(object, "times", series) != 0)
		return -1;
	if (result->device.stamps != PLAN_STAMPS_NONE) {
		err = device_to_json(&result->device, &series);
		if (err != 0 || json_object_set_new(object, "device_time", series) != 0)
			return -1;
	}
	if (!result->open)
		return 0;
	err = series_to_json(load->service, &load->service_summary, &series);
	if (err != 0 || json_object_set_new(object, "service", series) != 0)
		return -1;
	if (histogram_to_json(load->lag, &lag) != 0)
		return -1;
	return json_object_set_new(
		object, "load",
		json_pack(
			"{s:I s:I s:I s:f s:f s:b s:s s:I s:I s:o s:o}", "lag_p50_ns",
			(json_int_t)load->lag_p50_ns, "lag_p99_ns", (json_int_t)load->lag_p99_ns,
			"lag_max_ns", (json_int_t)load->lag_max_ns, "offered_per_s", load->offered,
			"occupied", load->occupied, "saturated", load->saturated, "reason",
			load->saturated ? load->reason : "", "scheduled",
			(json_int_t)load->due_count, "span_ns", (json_int_t)load->span_ns, "due_ns",
			all ? numbers_json(load->due_ns, load->due_count) : json_null(), "lag", lag
		)
	);
}

// Rates are inverse to durations: low_ns gives the higher rate, high_ns the lower one.
static int
put_rate(json_t *array, const struct lab_result *result, const struct quantile_summary *quantile) {
	bool known = quantile_has_interval(quantile);
	double rate = result_rate(result, quantile->value);
	char name[RESULT_QUANTILE_BYTES];

	result_quantile_name(quantile->per_million, name);
	if (!known)
		return json_array_append_new(
			array, json_pack(
				       "{s:s s:f s:n s:n s:f}", "name", name, "messages_per_s",
				       rate, "low_per_s", "high_per_s", "bytes_per_s",
				       rate * (double)result->size
			       )
		);
	return json_array_append_new(
		array, json_pack(
			       "{s:s s:f s:f s:f s:f}", "name", name, "messages_per_s", rate,
			       "low_per_s", result_rate(result, quantile->high), "high_per_s",
			       result_rate(result, quantile->low), "bytes_per_s",
			       rate * (double)result->size
		       )
	);
}

static int put_windows(json_t *object, const struct lab_result *result) {
	const struct run_summary *summary = &result->summary;
	double mean = result_rate_mean(result), peer = result_rate_peer(result);
	json_t *quantiles;
	int failed = 0;

	failed |= json_object_set_new(
		object, "window_messages", json_unsigned(result->window_messages)
	);
	failed |=
		json_object_set_new(object, "peer_messages", json_unsigned(result->peer_messages));
	failed |= json_object_set_new(object, "peer_ns", json_unsigned(result->peer_ns));
	if (!result->summarized)
		return failed;

	quantiles = json_array();
	for (uint32_t n = 0; n < summary->quantile_count; n++)
		failed |= put_rate(quantiles, result, &summary->quantiles[n]);
	failed |= json_object_set_new(
		object, "rates",
		json_pack(
			"{s:f s:f s:f s:f s:f s:f s:o}", "mean_per_s", mean, "mean_bytes_per_s",
			mean * (double)result->size, "best_per_s",
			result_rate(result, summary->all.min), "worst_per_s",
			result_rate(result, summary->all.max), "peer_per_s", peer,
			"peer_bytes_per_s", peer * (double)result->size, "quantiles", quantiles
		)
	);
	return failed;
}

static json_t *outliers_json(const struct lab_result *result) {
	json_t *array = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < result->outlier_count; n++) {
		const struct outlier *outlier = &result->outliers[n];
		json_t *object = json_pack(
			"{s:I s:I s:I s:I}", "sample", (json_int_t)outlier->sample, "at_ns",
			(json_int_t)outlier->at_ns, "took_ns", (json_int_t)outlier->took_ns,
			"within_ns", (json_int_t)outlier->within_ns
		);

		for (int kind = 0; kind < OUTLIER_EVIDENCE_COUNT; kind++) {
			uint64_t count = outlier->evidence[kind];

			failed |= json_object_set_new(
				object, outlier_key((enum outlier_evidence)kind),
				count == OUTLIER_UNKNOWN ? json_null() : json_unsigned(count)
			);
		}
		failed |= json_array_append_new(array, object);
	}
	if (failed == 0)
		return array;
	json_decref(array);
	return NULL;
}

int result_to_json(const struct lab_result *result, json_t **ret_json) {
	json_t *object = json_object(), *noise = json_object(), *warm_up;
	int failed = 0;

	failed |= json_object_set_new(object, "size_bytes", json_unsigned(result->size));
	failed |= json_object_set_new(object, "complete", json_boolean(result->complete));
	failed |= json_object_set_new(object, "took_ns", json_unsigned(result->took_ns));
	failed |= json_object_set_new(object, "what", json_string(result_time_name(result)));
	warm_up = result->warm_left_out ? json_null()
					: numbers_json(result->warm, result->warm_count);
	failed |= json_object_set_new(
		object, "warm_up",
		json_pack(
			"{s:I s:b s:b s:f s:o}", "dropped", (json_int_t)result->warm_count,
			"judged", result->warm_judged, "warm", result->warm_check.warm, "p",
			result->warm_check.p, "samples_ns", warm_up
		)
	);
	failed |= json_object_set_new(
		noise, "client", noise_json(&result->noise[0], result->noise_known[0])
	);
	failed |= json_object_set_new(
		noise, "server", noise_json(&result->noise[1], result->noise_known[1])
	);
	failed |= json_object_set_new(object, "noise", noise);
	if (result->outlier_count > 0 && !result->outliers_left_out)
		failed |= json_object_set_new(object, "outliers", outliers_json(result));
	if (result->window_messages > 0)
		failed |= put_windows(object, result);
	if (result->summarized)
		failed |= put_series(object, result);
	if (failed != 0) {
		json_decref(object);
		return -ENOMEM;
	}
	*ret_json = object;
	return 0;
}

int run_to_json(const struct lab_run *run, json_t **ret_json) {
	json_t *root = json_object(), *results = json_array(), *environment = json_object();
	char started[SHOW_BYTES];
	int failed = 0;

	show_time(run->started_ns, started);
	failed |= json_object_set_new(root, "schema", json_string(LAB_JSON_SCHEMA));
	failed |= json_object_set_new(root, "program", json_string("tocsin-perf " TOCSIN_VERSION));
	failed |= json_object_set_new(root, "started", json_string(started));
	failed |= json_object_set_new(root, "incomplete", json_string(run->partial));
	failed |= json_object_set_new(root, "plan", plan_to_json(&run->plan));
	failed |= json_object_set_new(
		environment, "client", environment_to_json(&run->environment[0])
	);
	failed |= json_object_set_new(
		environment, "server", environment_to_json(&run->environment[1])
	);
	failed |= json_object_set_new(root, "environment", environment);
	for (uint32_t n = 0; n < run->count && failed == 0; n++) {
		json_t *result;

		failed = result_to_json(&run->results[n], &result);
		if (failed == 0)
			failed = json_array_append_new(results, result);
	}
	failed |= json_object_set_new(root, "results", results);
	if (failed == 0)
		failed = json_add_digests(root);
	if (failed != 0) {
		json_decref(root);
		return -ENOMEM;
	}
	*ret_json = root;
	return 0;
}

int output_json(const struct lab_run *run, const char *path, struct lab_why *why) {
	json_t *root;
	int err = run_to_json(run, &root);

	if (err != 0)
		return lab_fail(why, err, "no memory for JSON");
	err = output_json_root(root, path, why);
	json_decref(root);
	return err;
}
