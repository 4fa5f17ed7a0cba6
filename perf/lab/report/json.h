// SPDX-License-Identifier: BSD-3-Clause
// Conversion of a run to JSON and back; docs/perf-json.md describes the format.
//
// A file holds all stored samples, so that its reader can recompute each printed figure. It also
// holds a digest of each part. The digests reveal changes of values from which no figure is
// computed.
#pragma once

#include "run/result.h"
#include "run/why.h"

#include <stdbool.h>

#define LAB_JSON_SCHEMA "tocsin-perf/2"

struct histogram;
struct json_t;

// Convert a number to JSON. JSON has no NaN and no infinity; null stands for them.
struct json_t *json_unsigned(uint64_t value);
struct json_t *json_finite_or_null(double value);
// Read an integer of at most `max` from untrusted JSON. Returns false, and sets nothing, if there
// is none.
bool json_get_unsigned(const struct json_t *json, uint64_t max, uint64_t *ret_value);
// Return the text of a member, or "" if it is no text.
const char *json_member_text(const struct json_t *object, const char *key);
// Return a quantile of figures, or NULL if it has too few samples to be compared between runs.
const struct json_t *json_quantile_find(const struct json_t *figures, size_t place);

// Convert to JSON. Return NULL if there is no memory.
struct json_t *environment_to_json(const struct lab_environment *environment);
struct json_t *plan_to_json(const struct plan *plan);

// Convert a whole run. Returns 0 or -ENOMEM.
int run_to_json(const struct lab_run *run, struct json_t **ret_json);

// Convert one series to {"figures", "kept"}. Returns 0 or -ENOMEM.
int series_to_json(
	struct run_record *record, const struct run_summary *summary, struct json_t **ret_json
);
// Add the sizes in bytes that the stored parts of one series take in a file. Returns 0 or -ENOMEM.
struct series_bytes {
	size_t all, blocks, windows;
};
int series_bytes(struct run_record *record, struct series_bytes *bytes);
// Return the size in bytes of a number and the comma behind it.
size_t json_number_bytes(uint64_t value);
// Restore one series from its JSON, which is untrusted. Returns 0, -EBADMSG with the reason in
// `why`, or -ENOMEM.
int series_from_json(
	const struct json_t *json, struct lab_why *why, struct run_record **ret_record
);

// Return the parts of a histogram that restore it: "min", "max" and "buckets". Returns NULL if
// there is no memory.
struct json_t *histogram_rows_to_json(const struct histogram *histogram);
// Restore a histogram of `count` samples from untrusted JSON. All samples of a bucket get one value
// within it, except that the smallest and the largest sample are exact. Returns 0 or -EBADMSG.
int histogram_fill(const struct json_t *json, uint64_t count, struct histogram *histogram);

// Convert the results of --device-time. Returns 0 or -ENOMEM.
int device_to_json(const struct result_device *device, struct json_t **ret_json);
// Restore the results of --device-time, of `count` samples each. The caller releases ret_device
// with its result, also after a failure. Returns 0, -EBADMSG or -ENOMEM.
int device_from_json(
	const struct json_t *json,
	uint64_t count,
	struct lab_why *why,
	struct result_device *ret_device
);

// Convert the result of one size, without digests. Returns 0 or -ENOMEM.
int result_to_json(const struct lab_result *result, struct json_t **ret_json);
// Restore the parts of a result from which its figures are computed. The caller then summarizes the
// result, and releases it in any case. Returns 0, -EBADMSG or -ENOMEM.
int result_from_json(const struct json_t *json, struct lab_why *why, struct lab_result *ret_result);

// Make an object with the digest of each part of the root except "digests". The entry "results" is
// an array with one such object per result. Returns 0 or -ENOMEM.
int json_digests(struct json_t *root, struct json_t **ret_json);
// Compare "digests" of a file with the digests of its parts. Returns 0, -ENOMEM, or -EUCLEAN with
// the first difference in `why`.
int json_verify_digests(struct json_t *root, struct lab_why *why);
// Finish a root before it is written: convert whole numbers to integers, and add "digests". Returns
// 0 or -ENOMEM.
int json_add_digests(struct json_t *root);

// Compare a file with the values computed from its own samples. Returns 0, or -EUCLEAN with the
// first difference in `why`.
int verify_compare(
	const char *path, const struct json_t *file, struct json_t *computed, struct lab_why *why
);
// Recompute and check a run of lat or bw. Returns the errors of verify_load().
int verify_run(struct json_t *root, struct lab_why *why);
// Recompute and check any file that tocsin-perf writes. Returns the errors of verify_load().
int verify_json(struct json_t *root, struct lab_why *why);
// Return true for a result of lat or bw; false for a mesh and all others.
bool json_is_run(const struct json_t *root);
// Read a file and recompute all of its figures. On success the caller owns *ret_root. Returns 0,
// -EUCLEAN (a figure differs), -EPROTO (another schema) or -EBADMSG (unreadable, or no result). All
// have the reason in `why`.
int verify_load(const char *path, struct lab_why *why, struct json_t **ret_root);
