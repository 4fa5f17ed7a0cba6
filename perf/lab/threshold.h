// SPDX-License-Identifier: BSD-3-Clause
// Thresholds: 'p99>10us', of bw 'p50<90Gbit/s', and what a result says of them.
#pragma once

#include "result.h"
#include "why.h"

#include <lib/parse.h>

#include <stdbool.h>
#include <stdint.h>

#define THRESHOLDS_MAX 16
#define THRESHOLD_TEXT_BYTES 48

enum threshold_of {
	THRESHOLD_WHOLE,   // round trip; of an open loop response time
	THRESHOLD_HALF,	   // of the round trip
	THRESHOLD_SERVICE, // of an open loop
};

// What the bound is of: a time, or of bw a rate.
enum threshold_unit { THRESHOLD_TIME, THRESHOLD_BITS, THRESHOLD_BYTES, THRESHOLD_MESSAGES };

// Of bw MIN is the worst window and MAX the best one, as their rates are.
enum threshold_figure { THRESHOLD_QUANTILE, THRESHOLD_MIN, THRESHOLD_MEAN, THRESHOLD_MAX };

struct threshold {
	char text[THRESHOLD_TEXT_BYTES]; // as it was given
	enum threshold_of of;
	enum threshold_figure figure;
	uint32_t per_million; // of a quantile
	bool below;	      // < in place of >
	enum threshold_unit unit;
	uint64_t bound; // nanoseconds, or so many a second
};

enum threshold_answer {
	THRESHOLD_HOLDS,    // nothing of the interval lies beyond
	THRESHOLD_FAILS,    // all of it does
	THRESHOLD_UNDECIDED // a part of it, or there is none
};

// "p99>10us", "half.p50>2us", "service.max>1ms", "mean<5us"; "p50<90Gbit/s", "mean<11.2GB/s",
// "p99<1.5M/s" of messages. -EINVAL.
int threshold_parse(
	const char *text, size_t length, struct parse_error *error, struct threshold *ret_threshold
);
// -EINVAL where the plan has no such figure.
int threshold_check(
	const struct threshold *threshold, const struct plan *plan, struct lab_why *why
);
// And why, for people.
enum threshold_answer threshold_judge(
	const struct threshold *threshold, const struct lab_result *result, struct lab_why *why
);
