// SPDX-License-Identifier: BSD-3-Clause
// Histograms as JSON, in a separate file so that recording does not depend on jansson.
#pragma once

struct histogram;
struct json_t;

// Convert a histogram to a JSON object that the caller owns:
//	{"count", "lost", "under", "over", "min", "max", "mean", "stdev",
//	 "percentiles": {"50", "90", "99", "99.9", "99.99", "99.999"},
//	 "relative_error_max", "value_min", "value_max", "buckets": [[LOWEST, HIGHEST, COUNT]...]}
// The non-empty buckets are in ascending order. Numbers past INT64_MAX become INT64_MAX. Returns 0
// or -ENOMEM.
int histogram_to_json(const struct histogram *histogram, struct json_t **ret_json);
