// SPDX-License-Identifier: BSD-3-Clause
// A run as JSON and back: docs/perf-json.md describes it.
//
// It holds everything that was kept, so that whoever has the file can compute each printed figure
// anew, and a digest of each part, so that a change of what no figure follows from is seen as well.
#pragma once

#include "result.h"
#include "why.h"

#define LAB_JSON_SCHEMA "tocsin-perf/1"

struct histogram;
struct json_t;

// NULL: no memory.
struct json_t *environment_to_json(const struct lab_environment *environment);
struct json_t *plan_to_json(const struct plan *plan);

// All of it. -ENOMEM.
int run_to_json(const struct lab_run *run, struct json_t **ret_json);

// One series: {"figures", "kept"}. -ENOMEM.
int series_to_json(
	struct run_record *record, const struct run_summary *summary, struct json_t **ret_json
);
// Adds how long the parts of what is kept of it are in a file. -ENOMEM.
struct series_bytes {
	size_t all, blocks, windows;
};
int series_bytes(struct run_record *record, struct series_bytes *bytes);
// Of a number and the comma behind it.
size_t json_number_bytes(uint64_t value);
// What was kept of one, from a file: hostile. -EBADMSG with the reason, -ENOMEM.
int series_from_json(
	const struct json_t *json, struct lab_why *why, struct run_record **ret_record
);

// Of a histogram what it can be made from again: "min", "max" and "buckets". NULL: no memory.
struct json_t *histogram_rows(const struct histogram *histogram);
// And back, `count` samples of it, from a file: hostile. Any value of a bucket counts as all of
// them; the smallest and the largest sample are themselves. -EBADMSG.
int histogram_fill(const struct json_t *json, uint64_t count, struct histogram *histogram);

// The parts of --device-time. -ENOMEM.
int device_to_json(const struct result_device *device, struct json_t **ret_json);
// And back, of so many samples; released with its result in any case. -EBADMSG, -ENOMEM.
int device_from_json(
	const struct json_t *json,
	uint64_t count,
	struct lab_why *why,
	struct result_device *ret_device
);

// One size, all of it but digests. -ENOMEM.
int result_to_json(const struct lab_result *result, struct json_t **ret_json);
// Of it what figures follow from; to be summarized, and released in any case. Errors as above.
int result_from_json(const struct json_t *json, struct lab_why *why, struct lab_result *ret_result);

// A digest of each part of the root but "digests" itself, as an object; of "results" an array of
// such objects. -ENOMEM.
int digests_of_json(struct json_t *root, struct json_t **ret_json);
// Before a file is written: makes whole numbers integers, and adds "digests". -ENOMEM.
int json_seal(struct json_t *root);

// What a file has against what it keeps gives, to the first difference, which is named. -EUCLEAN.
int verify_compare(
	const char *path, const struct json_t *file, struct json_t *computed, struct lab_why *why
);
// Computes a run of lat or bw once more; errors as verify_load().
int verify_run(struct json_t *root, struct lab_why *why);
// The same of whatever tocsin-perf writes.
int verify_json(struct json_t *root, struct lab_why *why);
// Of lat or bw; else it is a mesh or the like.
bool json_is_run(const struct json_t *root);
// Reads a file, computes all of it once more and hands it over. Returns 0; -EUCLEAN: something
// differs, which is named; -EPROTO: another schema; -EBADMSG: it is none, or cannot be read.
int verify_load(const char *path, struct lab_why *why, struct json_t **ret_root);
