// SPDX-License-Identifier: BSD-3-Clause
// Recompute the figures of a file from its stored samples, and name the first number that differs.
#include "history/policies.h"
#include "mesh/mesh_output.h"
#include "report/json.h"
#include "report/net.h"

#include <lib/scoped.h>

#include <jansson.h>
#include <xxhash.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PATH_BYTES 160
#define TEXT_BYTES 48
#define INNER_BYTES 32 // length of a key in our files
// Our files have at most RESULT_FILE_BYTES; pretty-printed ones have several times that. In memory
// a JSON number takes ten times its digits, and an untrusted file may have many.
#define FILE_BYTES_MAX (16 * RESULT_FILE_BYTES)
// Mathematical libraries differ in the last bits.
#define TOLERANCE 1e-9
#define DUMPING (JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17))

// Digest each member except `except`.
static json_t *digest_members(json_t *object, const char *except) {
	json_t *digests = json_object();
	char hex[TEXT_BYTES];
	int failed = 0;

	for (void *at = json_object_iter(object); at != NULL;
	     at = json_object_iter_next(object, at)) {
		const char *key = json_object_iter_key(at);
		scoped_mem char *text = NULL;

		if (strcmp(key, except) == 0 || strcmp(key, "digests") == 0)
			continue;
		text = json_dumps(json_object_iter_value(at), DUMPING);
		if (text == NULL) {
			failed = -1;
			continue;
		}
		snprintf(
			hex, sizeof(hex), "%016" PRIx64, (uint64_t)XXH3_64bits(text, strlen(text))
		);
		failed |= json_object_set_new(digests, key, json_string(hex));
	}
	if (failed == 0)
		return digests;
	json_decref(digests);
	return NULL;
}

int json_digests(json_t *root, json_t **ret_json) {
	const json_t *results = json_object_get(root, "results");
	json_t *digests = digest_members(root, "results"), *array = json_array();
	int failed = 0;

	for (size_t n = 0; n < json_array_size(results); n++)
		failed |= json_array_append_new(
			array, digest_members(json_array_get(results, n), "")
		);
	failed |= json_object_set_new(digests, "results", array);
	if (failed != 0) {
		json_decref(digests);
		return -ENOMEM;
	}
	*ret_json = digests;
	return 0;
}

int json_verify_digests(json_t *root, struct lab_why *why) {
	json_t *digests;
	int err = json_digests(root, &digests);

	if (err != 0)
		return err;
	err = verify_compare("digests", json_object_get(root, "digests"), digests, why);
	json_decref(digests);
	return err;
}

// Return a real number with an integral value as an integer, or NULL for other values. Other
// programs, such as jq, write 1.0 as 1. So integral values are written as integers from the start.
// Otherwise the digest would differ after a mere reformatting. Beyond 2^53 not all integers are
// exact.
static json_t *real_to_integer(const json_t *json) {
	double value = json_real_value(json);

	return json_is_real(json) && fabs(value) < 0x1p53 && value == trunc(value)
		       ? json_integer((json_int_t)value)
		       : NULL;
}

// The recursion is as deep as our files, which is 8 levels.
// NOLINTNEXTLINE(misc-no-recursion)
static int reals_to_integers(json_t *json) {
	json_t *value, *settled;
	const char *key;
	size_t n;
	int failed = 0;

	json_object_foreach(json, key, value) {
		settled = real_to_integer(value);
		failed |= settled != NULL ? json_object_set_new(json, key, settled)
					  : reals_to_integers(value);
	}
	json_array_foreach(json, n, value) {
		settled = real_to_integer(value);
		failed |= settled != NULL ? json_array_set_new(json, n, settled)
					  : reals_to_integers(value);
	}
	return failed;
}

int json_add_digests(json_t *root) {
	json_t *digests;

	if (reals_to_integers(root) != 0 || json_digests(root, &digests) != 0)
		return -ENOMEM;
	return json_object_set_new(root, "digests", digests) == 0 ? 0 : -ENOMEM;
}

static void format_value(const json_t *json, char text[static TEXT_BYTES]) {
	scoped_mem char *dumped = json_dumps(json, DUMPING);

	snprintf(text, TEXT_BYTES, "%s", dumped != NULL ? dumped : "nothing");
}

static int fail_value_differs(
	struct lab_why *why, const char *path, const json_t *file, const json_t *computed
) {
	char says[TEXT_BYTES], gives[TEXT_BYTES];

	format_value(computed, gives);
	if (file == NULL)
		return lab_fail(
			why, -EUCLEAN, "%s is missing, but the data in the file give %s", path,
			gives
		);
	format_value(file, says);
	return lab_fail(
		why, -EUCLEAN, "%s is %s, but the data in the file give %s", path, says, gives
	);
}

static bool numbers_equal(const json_t *a, const json_t *b) {
	double left = json_number_value(a), right = json_number_value(b);

	if (json_is_integer(a) && json_is_integer(b))
		return json_integer_value(a) == json_integer_value(b);
	return fabs(left - right) <= TOLERANCE * fmax(fabs(left), fabs(right));
}

// Compare to the first difference. The recursion is as deep as the computed value: 6 levels.
// NOLINTNEXTLINE(misc-no-recursion)
int verify_compare(const char *path, const json_t *file, json_t *computed, struct lab_why *why) {
	char inner[PATH_BYTES + INNER_BYTES];
	int err = 0;

	if (json_is_object(file) && json_is_object(computed)) {
		for (void *at = json_object_iter(computed); at != NULL && err == 0;
		     at = json_object_iter_next(computed, at)) {
			const char *key = json_object_iter_key(at);

			snprintf(inner, sizeof(inner), "%s.%s", path, key);
			err = verify_compare(
				inner, json_object_get(file, key), json_object_iter_value(at), why
			);
		}
		if (err == 0 && json_object_size(file) != json_object_size(computed))
			return lab_fail(why, -EUCLEAN, "%s has unexpected members", path);
		return err;
	}
	if (json_is_array(file) && json_is_array(computed)) {
		if (json_array_size(file) != json_array_size(computed))
			return lab_fail(
				why, -EUCLEAN,
				"%s has %zu elements, but the data in the file give %zu", path,
				json_array_size(file), json_array_size(computed)
			);
		for (size_t n = 0; n < json_array_size(computed) && err == 0; n++) {
			snprintf(inner, sizeof(inner), "%s[%zu]", path, n);
			err = verify_compare(
				inner, json_array_get(file, n), json_array_get(computed, n), why
			);
		}
		return err;
	}
	if (json_is_number(file) && json_is_number(computed))
		return numbers_equal(file, computed)
			       ? 0
			       : fail_value_differs(why, path, file, computed);
	return json_equal(file, computed) ? 0 : fail_value_differs(why, path, file, computed);
}

// Accept a figure of the file that is near the computed one. If not all samples are stored, the
// exact sum is lost. The mean then differs by up to the width of the buckets, and the file's value
// replaces the computed one.
static int accept_near_value(
	const char *path,
	const char *key,
	double share,
	const json_t *file,
	json_t *computed,
	struct lab_why *why
) {
	json_t *says = json_object_get(file, key);
	double value = json_number_value(says);
	double found = json_number_value(json_object_get(computed, key));
	char inner[PATH_BYTES + INNER_BYTES];

	if (!json_is_number(says) || fabs(value - found) > share * found) {
		snprintf(inner, sizeof(inner), "%.*s.%s", PATH_BYTES, path, key);
		return fail_value_differs(why, inner, says, json_object_get(computed, key));
	}
	return json_object_set(computed, key, says) == 0 ? 0 : -ENOMEM;
}

static bool series_is_whole(const json_t *series) {
	const json_t *kept = json_object_get(series, "kept");
	const json_t *blocks = json_object_get(kept, "blocks");
	const json_t *samples = json_object_get(json_array_get(blocks, 0), "samples_ns");

	return (json_int_t)json_array_size(samples) ==
	       json_integer_value(json_object_get(kept, "count"));
}

// Return the relative width of a bucket; each sample is replaced by the lowest value of its bucket.
static double bucket_share(const json_t *series) {
	const json_t *all = json_object_get(json_object_get(series, "kept"), "all");
	const json_t *bits = json_object_get(all, "precision_bits");

	return 2.05 /
	       (double)(1 << (bits != NULL ? json_integer_value(bits) : RECORD_PRECISION_BITS));
}

// Accept a near deviation. Each sample is off by at most the width of its bucket. So the deviation
// is off by at most this share of the root mean square.
static int accept_near_deviation(
	const char *path, double share, const json_t *file, json_t *computed, struct lab_why *why
) {
	json_t *says = json_object_get(file, "deviation_ns");
	const json_t *gives = json_object_get(computed, "deviation_ns");
	double value = json_number_value(says);
	double size = hypot(json_number_value(json_object_get(file, "mean_ns")), value);
	char inner[PATH_BYTES + 2 * INNER_BYTES];

	if (!json_is_number(says) || fabs(value - json_number_value(gives)) > share * size) {
		snprintf(inner, sizeof(inner), "%s.deviation_ns", path);
		return fail_value_differs(why, inner, says, gives);
	}
	return json_object_set(computed, "deviation_ns", says) == 0 ? 0 : -ENOMEM;
}

static int accept_rounded_series(
	const char *path, const char *key, const json_t *file, json_t *computed, struct lab_why *why
) {
	const json_t *series = json_object_get(file, key);
	char inner[PATH_BYTES + INNER_BYTES];
	json_t *figures;
	int err;

	if (series == NULL || series_is_whole(series))
		return 0;
	snprintf(inner, sizeof(inner), "%s.%s.figures", path, key);
	figures = json_object_get(json_object_get(computed, key), "figures");
	err = accept_near_value(
		inner, "mean_ns", bucket_share(series), json_object_get(series, "figures"), figures,
		why
	);
	if (err == 0)
		err = accept_near_deviation(
			inner, bucket_share(series), json_object_get(series, "figures"), figures,
			why
		);
	if (err != 0 || strcmp(key, "service") != 0)
		return err;
	snprintf(inner, sizeof(inner), "%s.load", path);
	return accept_near_value(
		inner, "occupied", bucket_share(series), json_object_get(file, "load"),
		json_object_get(computed, "load"), why
	);
}

static int accept_rounded_device_times(
	const char *path, const json_t *file, json_t *computed, struct lab_why *why
) {
	const json_t *part = json_object_get(file, "device_time");
	json_t *found = json_object_get(computed, "device_time");
	char inner[PATH_BYTES + INNER_BYTES];
	int err;

	if (part == NULL)
		return 0;
	snprintf(inner, sizeof(inner), "%.*s.device_time", PATH_BYTES, path);
	err = accept_rounded_series(inner, "device", part, found, why);
	return err == 0 ? accept_rounded_series(inner, "host", part, found, why) : err;
}

// Copy members that no printed figure depends on; only their digest is checked.
static int copy_unchecked(const json_t *file, json_t *computed, const char *const *keys) {
	int failed = 0;

	for (; *keys != NULL; keys++) {
		json_t *value = json_object_get(file, *keys);

		if (value != NULL)
			failed |= json_object_set(computed, *keys, value);
	}
	return failed == 0 ? 0 : -ENOMEM;
}

// Return a sample of a completely stored run. It is in one of few consecutive blocks.
static uint64_t stored_sample(struct run_record *record, uint64_t index) {
	struct indicator_block blocks[RECORD_BLOCKS_MAX];
	uint32_t count = run_record_blocks(record, blocks), n = 0;

	for (; n < count && index >= blocks[n].count; n++)
		index -= blocks[n].count;
	return n < count ? blocks[n].samples[index] : 0;
}

// Return how many outliers a run with these ascending samples has, or 0 if that is unknown: not all
// warm-up samples are in the file, the run ended early, or an agent measured without a watch. A
// client that watches also has its noise in the file.
static uint64_t outliers_expected(
	const struct lab_result *result, const json_t *file, const struct run_sorted *sorted
) {
	const json_t *noise = json_object_get(json_object_get(file, "noise"), "client");
	uint64_t bound_ns, count = 0;

	if (result->warm_left_out || result->warm_count == 0 || !result->complete ||
	    json_object_size(noise) == 0)
		return 0;
	bound_ns = outlier_bound_ns(result->warm, result->warm_count);
	while (count < sorted->count && count < OUTLIERS_MAX &&
	       sorted->samples[sorted->count - 1 - count] >= bound_ns)
		count++;
	return count;
}

// Check the outliers against the samples of a run that is stored completely. An outlier of a closed
// loop is the sample itself, and the outliers are the largest samples. One of an open loop is
// between the service time and the response time.
static int compare_outliers(
	const char *path, const struct lab_result *result, const json_t *file, struct lab_why *why
) {
	const json_t *outliers = json_object_get(file, "outliers");
	size_t count = json_array_size(outliers);
	struct run_sorted sorted;
	int err;

	if (result->window_messages > 0 || !run_record_is_whole(result->times) ||
	    (result->open && !run_record_is_whole(result->load.service)))
		return 0;
	err = run_record_sorted(result->times, &sorted);
	if (err != 0)
		return err;
	if (count > OUTLIERS_MAX || (outliers != NULL && count == 0))
		return lab_fail(why, -EUCLEAN, "%s.outliers is not a list of 1 to 32", path);
	if (!result->open && count < outliers_expected(result, file, &sorted))
		return lab_fail(
			why, -EUCLEAN,
			"%s.outliers has %zu elements, but the data in the file give %" PRIu64,
			path, count, outliers_expected(result, file, &sorted)
		);
	for (size_t n = 0; n < count; n++) {
		const json_t *outlier = json_array_get(outliers, n);
		const json_t *sample = json_object_get(outlier, "sample");
		const json_t *took = json_object_get(outlier, "took_ns");
		uint64_t index = (uint64_t)json_integer_value(sample), least, most;
		uint64_t took_ns = (uint64_t)json_integer_value(took);

		if (!json_is_integer(sample) || index >= run_record_count(result->times))
			return lab_fail(
				why, -EUCLEAN, "%s.outliers[%zu].sample is not one of the samples",
				path, n
			);
		least = most = stored_sample(result->times, index);
		if (result->open)
			least = stored_sample(result->load.service, index);
		else if (n >= sorted.count || most != sorted.samples[sorted.count - 1 - n])
			return lab_fail(
				why, -EUCLEAN,
				"%s.outliers[%zu].sample is not number %zu by duration", path, n,
				n + 1
			);
		if (!json_is_integer(took) || took_ns < least || took_ns > most)
			return lab_fail(
				why, -EUCLEAN,
				"%s.outliers[%zu].took_ns does not follow from sample %" PRIu64,
				path, n, index
			);
	}
	return 0;
}

static int compare_result(
	const char *path, const struct lab_result *result, const json_t *file, struct lab_why *why
) {
	static const char *const of_result[] = {"noise", "outliers", NULL};
	static const char *const of_warm_up[] = {"warm_up", NULL};
	static const char *const of_load[] = {"due_ns", "scheduled", "lag", NULL};
	json_t *computed;
	int err = result_to_json(result, &computed);

	if (err != 0)
		return lab_fail(why, err, "no memory for JSON");
	err = compare_outliers(path, result, file, why);
	if (err == 0)
		err = copy_unchecked(file, computed, of_result);
	if (err == 0 && result->warm_left_out)
		err = copy_unchecked(file, computed, of_warm_up);
	if (err == 0 && result->open)
		err = copy_unchecked(
			json_object_get(file, "load"), json_object_get(computed, "load"), of_load
		);
	if (err == 0)
		err = accept_rounded_series(path, "times", file, computed, why);
	if (err == 0)
		err = accept_rounded_series(path, "service", file, computed, why);
	if (err == 0)
		err = accept_rounded_device_times(path, file, computed, why);
	if (err == 0)
		err = verify_compare(path, file, computed, why);
	json_decref(computed);
	return err;
}

// Verify in two steps: first the figures, which name a number, then the digests, which name a part.
int verify_run(json_t *root, struct lab_why *why) {
	const json_t *results = json_object_get(root, "results");
	const char *schema = json_string_value(json_object_get(root, "schema"));
	char path[PATH_BYTES];
	int err = 0;

	if (schema == NULL)
		return lab_fail(why, -EBADMSG, "it is not a result of tocsin-perf");
	if (strcmp(schema, LAB_JSON_SCHEMA) != 0)
		return lab_fail(
			why, -EPROTO,
			"its schema is \"%.40s\", this release reads " LAB_JSON_SCHEMA
			", " MESH_JSON_SCHEMA ", " NET_JSON_SCHEMA " and " POLICIES_JSON_SCHEMA,
			schema
		);
	if (!json_is_array(results) || json_array_size(results) > PLAN_SIZES_MAX)
		return lab_fail(why, -EBADMSG, "it has no results");
	for (size_t n = 0; n < json_array_size(results) && err == 0; n++) {
		const json_t *file = json_array_get(results, n);
		struct lab_result result = {.size = 0};
		struct lab_why inner = {.text = ""};

		snprintf(path, sizeof(path), "results[%zu]", n);
		err = result_from_json(file, &inner, &result);
		if (err != 0)
			err = lab_fail(why, err, "%s: %s", path, inner.text);
		if (err == 0)
			err = result_summarize(&result);
		if (err == 0)
			err = compare_result(path, &result, file, why);
		result_release(&result);
	}
	return err == 0 ? json_verify_digests(root, why) : err;
}

bool json_is_run(const json_t *root) {
	const char *schema = json_string_value(json_object_get(root, "schema"));

	return schema != NULL && strcmp(schema, LAB_JSON_SCHEMA) == 0;
}

int verify_json(json_t *root, struct lab_why *why) {
	static const struct {
		const char *schema;
		int (*verify)(json_t *root, struct lab_why *why);
	} others[] = {
		{MESH_JSON_SCHEMA, mesh_verify},
		{NET_JSON_SCHEMA, net_verify},
		{POLICIES_JSON_SCHEMA, policies_verify},
	};
	const char *schema = json_string_value(json_object_get(root, "schema"));

	for (size_t n = 0; schema != NULL && n < sizeof(others) / sizeof(others[0]); n++) {
		if (strcmp(schema, others[n].schema) == 0)
			return others[n].verify(root, why);
	}
	return verify_run(root, why);
}

// A file with a read limit.
struct source {
	FILE *file;
	size_t left;
};

static size_t source_read(void *buffer, size_t size, void *ctx) {
	struct source *source = ctx;
	size_t got = fread(buffer, 1, size < source->left ? size : source->left, source->file);

	source->left -= got;
	return got == 0 && ferror(source->file) != 0 ? (size_t)-1 : got;
}

static int file_read(const char *path, struct lab_why *why, json_t **ret_root) {
	scoped_file FILE *file = fopen(path, "re");
	struct source source = {.file = file, .left = FILE_BYTES_MAX};
	json_error_t error;

	if (file == NULL)
		return lab_fail(why, -EBADMSG, "%s: %s", path, strerrordesc_np(errno));
	*ret_root = json_load_callback(source_read, &source, JSON_REJECT_DUPLICATES, &error);
	if (*ret_root != NULL)
		return 0;
	if (ferror(file) != 0)
		return lab_fail(why, -EBADMSG, "%s: %s", path, strerrordesc_np(errno));
	if (source.left == 0)
		return lab_fail(
			why, -EBADMSG,
			"%s: it has more than %zu MiB; a result of tocsin-perf is smaller", path,
			FILE_BYTES_MAX >> 20
		);
	return lab_fail(why, -EBADMSG, "%s: it cannot be read as JSON: %s", path, error.text);
}

int verify_load(const char *path, struct lab_why *why, json_t **ret_root) {
	struct lab_why inner = {.text = ""};
	json_t *root;
	int err = file_read(path, why, &root);

	if (err != 0)
		return err;
	err = verify_json(root, &inner);
	if (err != 0) {
		json_decref(root);
		return lab_fail(why, err, "%s: %s", path, inner.text);
	}
	*ret_root = root;
	return 0;
}
