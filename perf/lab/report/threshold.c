// SPDX-License-Identifier: BSD-3-Clause
// Parse thresholds and judge results.
#include "report/threshold.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define RATE_MAX (UINT64_C(1) << 60) // per second

static bool skip_prefix(const char **text, size_t *length, const char *word) {
	size_t size = strlen(word);

	if (*length < size || memcmp(*text, word, size) != 0)
		return false;
	*text += size;
	*length -= size;
	return true;
}

static int parse_figure(const char *text, size_t length, struct threshold *threshold) {
	static const struct {
		const char *name;
		enum threshold_figure figure;
	} others[] = {{"min", THRESHOLD_MIN}, {"mean", THRESHOLD_MEAN}, {"max", THRESHOLD_MAX}};

	threshold->figure = THRESHOLD_QUANTILE;
	for (size_t n = 0; n < sizeof(others) / sizeof(others[0]); n++) {
		if (strlen(others[n].name) == length && memcmp(others[n].name, text, length) == 0) {
			threshold->figure = others[n].figure;
			return 0;
		}
	}
	return result_quantile_parse(text, length, &threshold->per_million);
}

static bool trim_suffix(const char *text, size_t *length, const char *end) {
	size_t size = strlen(end);

	if (*length < size || memcmp(text + *length - size, end, size) != 0)
		return false;
	*length -= size;
	return true;
}

// Parse a bound: "10us", "90Gbit/s", "11.2GB/s" or "1.5M/s".
static int parse_bound(
	const char *text, size_t length, struct parse_error *error, struct threshold *threshold
) {
	if (!trim_suffix(text, &length, "/s"))
		return parse_duration_ns(
			text, length, 0, HISTOGRAM_VALUE_MAX, error, &threshold->bound
		);
	threshold->unit = THRESHOLD_MESSAGES;
	if (trim_suffix(text, &length, "bit"))
		threshold->unit = THRESHOLD_BITS;
	else if (length > 0 && text[length - 1] == 'B')
		threshold->unit = THRESHOLD_BYTES;
	return parse_size_bytes(text, length, 0, RATE_MAX, error, &threshold->bound);
}

int threshold_parse(
	const char *text, size_t length, struct parse_error *error, struct threshold *ret_threshold
) {
	struct threshold threshold = {.of = THRESHOLD_WHOLE};
	const char *rest = text;
	size_t left = length, figure;

	if (length >= sizeof(threshold.text))
		return parse_fail(error, -EINVAL, text, length, "is too long for a threshold");
	snprintf(threshold.text, sizeof(threshold.text), "%.*s", (int)length, text);
	if (skip_prefix(&rest, &left, "half."))
		threshold.of = THRESHOLD_HALF;
	else if (skip_prefix(&rest, &left, "service."))
		threshold.of = THRESHOLD_SERVICE;
	figure = strcspn(threshold.text + (rest - text), "<>");
	if (figure == left || parse_figure(rest, figure, &threshold) != 0)
		return parse_fail(
			error, -EINVAL, text, length,
			"is not a threshold: write a figure (p50 p90 p99 p99.9 p99.99 p99.999 min "
			"mean max), > or <, and a time such as 10us; for bw a rate such as 90Gbit/s"
		);
	threshold.below = rest[figure] == '<';
	if (parse_bound(rest + figure + 1, left - figure - 1, error, &threshold) != 0)
		return -EINVAL;
	*ret_threshold = threshold;
	return 0;
}

int threshold_check(
	const struct threshold *threshold, const struct plan *plan, struct lab_why *why
) {
	if (plan->command == PLAN_BW && threshold->of != THRESHOLD_WHOLE)
		return lab_fail(
			why, -EINVAL, "%s: half. and service. exist only for lat", threshold->text
		);
	if (plan->command == PLAN_BW && threshold->unit == THRESHOLD_TIME)
		return lab_fail(
			why, -EINVAL, "%s: bw needs a rate such as 90Gbit/s, 11GB/s or 1.5M/s",
			threshold->text
		);
	if (plan->command != PLAN_BW && threshold->unit != THRESHOLD_TIME)
		return lab_fail(why, -EINVAL, "%s: lat needs a time such as 10us", threshold->text);
	if (threshold->of == THRESHOLD_HALF && !plan_op_is_answered(plan->op))
		return lab_fail(
			why, -EINVAL, "%s: a %s has only a round trip, so half. is unknown",
			threshold->text, plan_op_name(plan->op)
		);
	if (threshold->of == THRESHOLD_HALF && plan->arrivals != PLAN_CLOSED)
		return lab_fail(
			why, -EINVAL,
			"%s: an open loop has response and service times, but no half.",
			threshold->text
		);
	if (threshold->of == THRESHOLD_SERVICE && plan->arrivals == PLAN_CLOSED)
		return lab_fail(
			why, -EINVAL, "%s: only an open loop has a service time; see --arrivals",
			threshold->text
		);
	return 0;
}

struct interval {
	bool known;
	const char *why; // reason if it is not known
	double low, high;
};

static struct interval
figure_interval(const struct threshold *threshold, const struct run_summary *summary) {
	struct interval interval = {.known = true};

	switch (threshold->figure) {
	case THRESHOLD_MIN:
		interval.low = interval.high = (double)summary->all.min;
		return interval;
	case THRESHOLD_MEAN:
		interval.low = interval.high = summary->all.mean;
		return interval;
	case THRESHOLD_MAX:
		interval.low = interval.high = (double)summary->all.max;
		return interval;
	case THRESHOLD_QUANTILE:
		break;
	}
	for (uint32_t n = 0; n < summary->quantile_count; n++) {
		const struct quantile_summary *quantile = &summary->quantiles[n];

		if (quantile->per_million != threshold->per_million)
			continue;
		interval.known = quantile_has_interval(quantile);
		interval.why = quantile_note_text(quantile->note);
		interval.low = (double)quantile->low;
		interval.high = (double)quantile->high;
		return interval;
	}
	return (struct interval){.known = false, .why = "the run has no such quantile"};
}

// Convert window times to rates, which swaps the ends. The mean rate is the one of all messages.
static struct interval interval_to_rates(
	const struct threshold *threshold, const struct lab_result *result, struct interval times
) {
	const double factors[] = {
		[THRESHOLD_TIME] = 1,
		[THRESHOLD_BITS] = 8 * (double)result->size,
		[THRESHOLD_BYTES] = (double)result->size,
		[THRESHOLD_MESSAGES] = 1,
	};
	const struct histogram_summary *all = &result->summary.all;
	struct interval rates = times;

	if (!times.known)
		return rates;
	rates.low = result_rate(result, (uint64_t)times.high);
	rates.high = result_rate(result, (uint64_t)times.low);
	if (threshold->figure == THRESHOLD_MEAN)
		rates.low = rates.high = result_rate_mean(result);
	else if (threshold->figure == THRESHOLD_MIN)
		rates.low = rates.high = result_rate(result, all->max);
	else if (threshold->figure == THRESHOLD_MAX)
		rates.low = rates.high = result_rate(result, all->min);
	rates.low *= factors[threshold->unit];
	rates.high *= factors[threshold->unit];
	return rates;
}

static bool value_is_beyond(const struct threshold *threshold, double value) {
	double bound = (double)threshold->bound;

	return threshold->below ? value < bound : value > bound;
}

static enum threshold_answer
interval_judge(const struct threshold *threshold, struct interval interval, struct lab_why *why) {
	static const struct {
		double scale;
		const char *name;
	} units[] = {
		[THRESHOLD_TIME] = {1e3, "us"},
		[THRESHOLD_BITS] = {1e9, "Gbit/s"},
		[THRESHOLD_BYTES] = {1e9, "GB/s"},
		[THRESHOLD_MESSAGES] = {1, "messages/s"},
	};
	double scale = units[threshold->unit].scale;
	bool low, high;

	if (!interval.known) {
		lab_fail(why, 0, "--fail-if %s: undecided, %s", threshold->text, interval.why);
		return THRESHOLD_UNDECIDED;
	}
	low = value_is_beyond(threshold, interval.low);
	high = value_is_beyond(threshold, interval.high);
	lab_fail(
		why, 0, "--fail-if %s: %s of %.3f .. %.3f %s is %s", threshold->text,
		low && high   ? "FAILED, all"
		: low || high ? "undecided, a part"
			      : "ok, none",
		interval.low / scale, interval.high / scale, units[threshold->unit].name,
		threshold->below ? "below the threshold" : "above the threshold"
	);
	if (low && high)
		return THRESHOLD_FAILS;
	return low || high ? THRESHOLD_UNDECIDED : THRESHOLD_HOLDS;
}

enum threshold_answer threshold_judge(
	const struct threshold *threshold, const struct lab_result *result, struct lab_why *why
) {
	struct interval interval;

	if (!result->summarized || result_is_saturated(result)) {
		lab_fail(why, 0, "--fail-if %s: undecided, the run is not valid", threshold->text);
		return THRESHOLD_UNDECIDED;
	}
	interval = figure_interval(
		threshold, threshold->of == THRESHOLD_SERVICE ? &result->load.service_summary
							      : &result->summary
	);
	if (threshold->of == THRESHOLD_HALF) {
		interval.low /= 2;
		interval.high /= 2;
	}
	if (threshold->unit != THRESHOLD_TIME)
		interval = interval_to_rates(threshold, result, interval);
	return interval_judge(threshold, interval, why);
}
