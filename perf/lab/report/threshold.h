// SPDX-License-Identifier: BSD-3-Clause
// Thresholds such as 'p99>10us', or 'p50<90Gbit/s' for bw, and their check against a result.
#pragma once

#include "run/result.h"
#include "run/why.h"

#include <lib/parse.h>

#include <stdbool.h>
#include <stdint.h>

#define THRESHOLDS_MAX 16
#define THRESHOLD_TEXT_BYTES 48

enum threshold_subject {
	THRESHOLD_WHOLE,   // round trip; response time of an open loop
	THRESHOLD_HALF,	   // half of the round trip
	THRESHOLD_SERVICE, // service time of an open loop
};

// Unit of the bound: a time, or a rate for bw.
enum threshold_unit { THRESHOLD_TIME, THRESHOLD_BITS, THRESHOLD_BYTES, THRESHOLD_MESSAGES };

// For bw MIN is the rate of the worst window, and MAX that of the best one.
enum threshold_figure { THRESHOLD_QUANTILE, THRESHOLD_MIN, THRESHOLD_MEAN, THRESHOLD_MAX };

struct threshold {
	char text[THRESHOLD_TEXT_BYTES]; // text of the option
	enum threshold_subject of;
	enum threshold_figure figure;
	uint32_t per_million; // quantile, if `figure` is THRESHOLD_QUANTILE
	bool below;	      // the operator is < instead of >
	enum threshold_unit unit;
	uint64_t bound; // nanoseconds, or units per second
};

enum threshold_answer {
	THRESHOLD_HOLDS,    // no part of the interval is beyond the bound
	THRESHOLD_FAILS,    // the whole interval is beyond the bound
	THRESHOLD_UNDECIDED // a part of the interval is beyond the bound, or there is no interval
};

// Parse "p99>10us", "half.p50>2us", "service.max>1ms", "mean<5us", or for bw "p50<90Gbit/s",
// "mean<11.2GB/s", "p99<1.5M/s" (messages). Returns 0, or -EINVAL with the reason in `error`.
int threshold_parse(
	const char *text, size_t length, struct parse_error *error, struct threshold *ret_threshold
);
// Check that the plan has such a figure. Returns 0, or -EINVAL with the reason in `why`.
int threshold_check(
	const struct threshold *threshold, const struct plan *plan, struct lab_why *why
);
// Judge a result. `why` gets an explanation for people in any case.
enum threshold_answer threshold_judge(
	const struct threshold *threshold, const struct lab_result *result, struct lab_why *why
);
