// SPDX-License-Identifier: BSD-3-Clause
// Load the quantiles of runs from their files.
#include "history/versus.h"
#include "report/json.h"

#include <lib/scoped.h>

#include <jansson.h>
#include <xxhash.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double result_quantile_ns(const json_t *result, uint32_t place) {
	const json_t *figures = json_object_get(json_object_get(result, "times"), "figures");
	const json_t *quantile = json_array_get(json_object_get(figures, "quantiles"), place);
	const json_t *value = json_object_get(quantile, "value_ns");

	// Windows of two runs have different numbers of messages, so values are per message.
	uint64_t messages =
		(uint64_t)json_integer_value(json_object_get(result, "window_messages"));

	if (!json_is_integer(value))
		return NAN;
	return (double)json_integer_value(value) / (messages > 0 ? (double)messages : 1);
}

static bool result_is_valid(const json_t *result) {
	return json_is_true(json_object_get(result, "complete")) &&
	       !json_is_true(json_object_get(json_object_get(result, "load"), "saturated"));
}

static uint64_t result_size(const json_t *result) {
	return (uint64_t)json_integer_value(json_object_get(result, "size_bytes"));
}

static const char *member_text(const json_t *object, const char *key) {
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static const char *plan_text(const json_t *root, const char *key) {
	return member_text(json_object_get(root, "plan"), key);
}

// Format the operation: "read" or "bw read". An open loop measures other times and is "open read".
static void run_operation(const json_t *root, char text[static VERSUS_OP_BYTES]) {
	bool load = strcmp(plan_text(root, "command"), "bw") == 0;
	bool closed = strcmp(plan_text(root, "arrivals"), "closed") == 0;

	snprintf(
		text, VERSUS_OP_BYTES, "%s%s",
		load	 ? "bw "
		: closed ? ""
			 : "open ",
		plan_text(root, "op")
	);
	lab_sanitize(text);
}

// Take operation and sizes from the first file; all others must have the same.
static void values_begin(const json_t *root, struct versus_values *values) {
	const json_t *results = json_object_get(root, "results");

	run_operation(root, values->op);
	values->size_count = (uint32_t)json_array_size(results);
	for (uint32_t n = 0; n < values->size_count; n++)
		values->sizes[n] = result_size(json_array_get(results, n));
}

static int load_results(
	const json_t *root,
	int side,
	uint32_t place,
	bool any_op,
	struct versus_values *values,
	struct lab_why *why
) {
	const json_t *results = json_object_get(root, "results");
	char op[VERSUS_OP_BYTES];

	run_operation(root, op);
	if (strlen(member_text(root, "incomplete")) > 0 || json_array_size(results) == 0)
		return lab_fail(why, -EINVAL, "is incomplete or saturated");
	if ((strcmp(values->op, op) != 0 && !any_op) ||
	    json_array_size(results) != values->size_count)
		return lab_fail(
			why, -EINVAL, "is not of the operation, loop and sizes of the first one"
		);
	for (uint32_t size = 0; size < values->size_count; size++) {
		const json_t *result = json_array_get(results, size);

		if (result_size(result) != values->sizes[size])
			return lab_fail(
				why, -EINVAL,
				"is not of the operation, loop and sizes of the first one"
			);
		if (!result_is_valid(result))
			return lab_fail(why, -EINVAL, "is incomplete or saturated");
		for (uint32_t n = 0; n < VERSUS_QUANTILES; n++)
			values->ns[size][n][side][place] = result_quantile_ns(result, n);
	}
	return 0;
}

// Return a digest of the whole file, made from its digests.
static uint64_t run_digest(const json_t *root) {
	scoped_mem char *text =
		json_dumps(json_object_get(root, "digests"), JSON_COMPACT | JSON_SORT_KEYS);

	return text != NULL ? XXH3_64bits(text, strlen(text)) : 0;
}

// Store a description of the plan, so that a reader of the result can tell A from B.
static void load_plan(const json_t *root, int side, uint32_t place, struct versus_values *values) {
	char text[HISTORY_KEY_BYTES];

	history_key(root, text);
	if (place == 0)
		memcpy(values->plans[side], text, sizeof(text));
	else if (strcmp(values->plans[side], text) != 0)
		snprintf(values->plans[side], HISTORY_KEY_BYTES, "runs of different plans");
}

static int load_file(
	const struct versus *versus,
	int side,
	uint32_t place,
	struct versus_values *values,
	struct lab_why *why
) {
	const char *path = versus->paths[side][place];
	struct lab_why inner = {.text = ""};
	json_t *root;
	int err = verify_load(path, why, &root);

	if (err != 0)
		return err;
	if (!json_is_run(root)) {
		json_decref(root);
		return lab_fail(why, -EINVAL, "%s is no run of lat or bw", path);
	}
	if (side == 0 && place == 0)
		values_begin(root, values);
	load_plan(root, side, place, values);
	values->digests[side][place] = run_digest(root);
	err = load_results(root, side, place, versus->ops_may_differ, values, &inner);
	json_decref(root);
	return err == 0 ? 0 : lab_fail(why, err, "%s %s", path, inner.text);
}

// Return how often a run occurs on a side.
static uint32_t
count_digest(const struct versus_values *values, uint64_t digest, int side, uint32_t count) {
	uint32_t times = 0;

	for (uint32_t n = 0; n < count; n++)
		times += values->digests[side][n] == digest;
	return times;
}

// Reject runs that occur twice, because each run counts once. One set compared with itself is
// allowed, since users try it first; the answer is known without a test.
static int check_repeated_runs(
	const struct versus *versus, struct versus_values *values, struct lab_why *why
) {
	uint32_t shared = 0;

	for (uint32_t n = 0; n < versus->counts[0]; n++)
		shared += count_digest(values, values->digests[0][n], 1, versus->counts[1]) > 0;
	values->same_runs = shared == versus->counts[0] && shared == versus->counts[1];
	for (int side = 0; side < 2; side++) {
		for (uint32_t n = 0; n < versus->counts[side]; n++) {
			uint64_t digest = values->digests[side][n];

			if (count_digest(values, digest, side, versus->counts[side]) > 1 ||
			    (shared > 0 && !values->same_runs &&
			     count_digest(values, digest, 1 - side, versus->counts[1 - side]) > 0))
				return lab_fail(
					why, -EINVAL,
					"%s: its run is there twice; each counts once",
					versus->paths[side][n]
				);
		}
	}
	return 0;
}

int versus_load(
	const struct versus *versus, struct lab_why *why, struct versus_values *ret_values
) {
	int err = 0;

	for (int side = 0; side < 2; side++) {
		for (uint32_t n = 0; n < versus->counts[side] && err == 0; n++)
			err = load_file(versus, side, n, ret_values, why);
	}
	return err == 0 ? check_repeated_runs(versus, ret_values, why) : err;
}
