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

double versus_figure_ns(const json_t *result, int place) {
	const json_t *figures = json_object_get(json_object_get(result, "times"), "figures");
	const json_t *value =
		place < 0 ? json_object_get(figures, "max_ns")
			  : json_object_get(json_quantile_find(figures, (size_t)place), "value_ns");
	json_int_t messages = json_integer_value(json_object_get(result, "window_messages"));

	if (!json_is_integer(value))
		return NAN;
	return (double)json_integer_value(value) / (messages > 0 ? (double)messages : 1);
}

static uint64_t result_size(const json_t *result) {
	return (uint64_t)json_integer_value(json_object_get(result, "size_bytes"));
}

static const char *plan_text(const json_t *root, const char *key) {
	return json_member_text(json_object_get(root, "plan"), key);
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
	if (strlen(json_member_text(root, "incomplete")) > 0 || json_array_size(results) == 0)
		return lab_fail(why, -EINVAL, "is incomplete or saturated");
	if ((strcmp(values->op, op) != 0 && !any_op) ||
	    json_array_size(results) != values->size_count)
		return lab_fail(
			why, -EINVAL, "differs from the first file in operation, loop or sizes"
		);
	for (uint32_t size = 0; size < values->size_count; size++) {
		const json_t *result = json_array_get(results, size);

		if (result_size(result) != values->sizes[size])
			return lab_fail(
				why, -EINVAL,
				"differs from the first file in operation, loop or sizes"
			);
		if (!json_is_true(json_object_get(result, "complete")) ||
		    json_is_true(json_object_get(json_object_get(result, "load"), "saturated")))
			return lab_fail(why, -EINVAL, "is incomplete or saturated");
		for (int n = 0; n < VERSUS_QUANTILES; n++)
			values->ns[size][n][side][place] = versus_figure_ns(result, n);
	}
	return 0;
}

static int load_file(
	const struct versus *versus,
	int side,
	uint32_t place,
	struct versus_values *values,
	struct lab_why *why
) {
	const char *path = versus->paths[side][place];
	char key[HISTORY_KEY_BYTES], *plan = values->plans[side];
	struct lab_why inner = {.text = ""};
	scoped_mem char *digests = NULL;
	const json_t *results;
	json_t *root;
	int err = verify_load(path, why, &root);

	if (err != 0)
		return err;
	if (!json_is_run(root)) {
		json_decref(root);
		return lab_fail(why, -EINVAL, "%s is not a result of lat or bw", path);
	}
	// Take operation and sizes from the first file; all others must have the same.
	if (side == 0 && place == 0) {
		results = json_object_get(root, "results");
		run_operation(root, values->op);
		values->size_count = (uint32_t)json_array_size(results);
		for (uint32_t n = 0; n < values->size_count; n++)
			values->sizes[n] = result_size(json_array_get(results, n));
	}
	// The description of the plan lets a reader of the result tell A from B.
	history_key(root, key);
	if (place == 0)
		memcpy(plan, key, sizeof(key));
	else if (strcmp(plan, key) != 0)
		snprintf(plan, HISTORY_KEY_BYTES, "runs of different plans");
	// The digests of the parts identify the whole file.
	digests = json_dumps(json_object_get(root, "digests"), JSON_COMPACT | JSON_SORT_KEYS);
	values->digests[side][place] = digests != NULL ? XXH3_64bits(digests, strlen(digests)) : 0;
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
					why, -EINVAL, "%s: the same run is given twice",
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
