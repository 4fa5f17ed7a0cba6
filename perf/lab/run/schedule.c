// SPDX-License-Identifier: BSD-3-Clause
// Generate schedules, or read them from files.
#include "run/schedule.h"

#include <lib/error.h>
#include <lib/parse.h>
#include <lib/scoped.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BURST 8
#define LINE_BYTES 64
#define DIGITS_ROOM UINT64_C(1000000000000000000) // smaller numbers have room for another digit
#define EXPONENT_MAX 400			  // larger than the exponent of any double
#define NS_DECIMALS 9

// Return a number greater than 0 and less than 1. The generator is SplitMix64: one word of state;
// all seeds are equally good.
static double draw_uniform(uint64_t *state) {
	uint64_t word = *state += 0x9e3779b97f4a7c15;

	word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
	word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
	word ^= word >> 31;
	return ((double)(word >> 11) + 0.5) / 0x1p53;
}

// Return the time in nanoseconds between an operation and the one before.
static double arrival_distance_ns(const struct plan *plan, uint64_t n, uint64_t *state) {
	double mean = 1e9 / plan->rate;

	if (plan->arrivals == PLAN_POISSON)
		return -mean * log(draw_uniform(state));
	// a burst comes at once, followed by the pause that gives the mean rate
	if (plan->arrivals == PLAN_ONOFF)
		return n % BURST != 0 ? 0 : -BURST * mean * log(draw_uniform(state));
	return mean;
}

static int arrivals_make(
	const struct plan *plan, struct lab_why *why, uint64_t **ret_due_ns, uint64_t *ret_count
) {
	double expected = (double)plan->duration_ns / 1e9 * plan->rate, at_ns = 0;
	uint64_t count = plan->iterations, state = plan->seed, *due_ns;

	if (count == 0)
		count = expected < 1 ? 1 : (uint64_t)expected;
	if (count > PLAN_ARRIVALS_MAX)
		return lab_fail(why, -EINVAL, "a schedule has at most 20,000,000 arrivals");
	due_ns = calloc(count, sizeof(*due_ns));
	if (due_ns == NULL)
		return lab_fail(why, -ENOMEM, "no memory for the schedule");
	for (uint64_t n = 0; n < count; n++) {
		at_ns += arrival_distance_ns(plan, n, &state);
		due_ns[n] = (uint64_t)at_ns;
	}
	*ret_due_ns = due_ns;
	*ret_count = count;
	return 0;
}

struct trace {
	uint64_t *due_ns;
	uint64_t count, room;
};

// Decimal number: digits * 10^tens.
struct decimal {
	uint64_t digits;
	int tens;
};

// Parse digits and a decimal point. Digits after the 18th are less than a nanosecond and are
// ignored.
static int parse_digits(const char *text, size_t *at, struct decimal *number) {
	bool point = false, any = false;

	for (;; (*at)++) {
		char letter = text[*at];

		if (letter == '.' && !point) {
			point = true;
			continue;
		}
		if (letter < '0' || letter > '9')
			return any ? 0 : -EINVAL;
		any = true;
		if (number->digits < DIGITS_ROOM) {
			number->digits = 10 * number->digits + (uint64_t)(letter - '0');
			number->tens -= point;
		} else {
			number->tens += !point;
		}
	}
}

// Parse seconds in the usual notations: 1.5, 0.123456789012345, 2.5e-05. The result is rounded down
// to nanoseconds. strtod() is unusable, since its decimal point depends on the locale.
static int parse_seconds(const char *text, size_t length, uint64_t *ret_ns) {
	struct decimal number = {.digits = 0};
	size_t at = 0;
	uint64_t exponent = 0;
	int tens, err = parse_digits(text, &at, &number);
	bool minus = false;

	if (err == 0 && at < length && (text[at] == 'e' || text[at] == 'E')) {
		at++;
		minus = text[at] == '-';
		at += minus || text[at] == '+';
		err = parse_u64(text + at, length - at, 0, EXPONENT_MAX, NULL, &exponent);
		at = length;
	}
	if (err != 0 || at != length)
		return -EINVAL;
	tens = minus ? -(int)exponent : (int)exponent;
	for (tens += number.tens + NS_DECIMALS; tens < 0 && number.digits > 0; tens++)
		number.digits /= 10;
	for (; tens > 0 && number.digits > 0 && number.digits <= PLAN_DURATION_NS_MAX; tens--)
		number.digits *= 10;
	if (number.digits > PLAN_DURATION_NS_MAX)
		return -EINVAL;
	*ret_ns = number.digits;
	return 0;
}

// Parse one line of a trace, and append its time. Returns 0, -ENOMEM, -EINVAL if the line is no
// time, -ERANGE if the time is earlier than the one before, or -E2BIG if there are too many.
static int parse_line(struct trace *trace, const char *line) {
	size_t length;
	uint64_t at_ns, *more;

	// Trim blanks and line ends, including those of Windows.
	line += strspn(line, " \t\r\n");
	length = strcspn(line, "\n");
	while (length > 0 && strchr(" \t\r", line[length - 1]) != NULL)
		length--;
	if (length == 0 || line[0] == '#')
		return 0;
	if (length >= LINE_BYTES || parse_seconds(line, length, &at_ns) != 0)
		return -EINVAL;
	if (trace->count > 0 && at_ns < trace->due_ns[trace->count - 1])
		return -ERANGE;
	if (trace->count == PLAN_ARRIVALS_MAX)
		return -E2BIG;
	if (trace->count == trace->room) {
		trace->room = trace->room > 0 ? 2 * trace->room : 1024;
		more = realloc(trace->due_ns, trace->room * sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		trace->due_ns = more;
	}
	trace->due_ns[trace->count++] = at_ns;
	return 0;
}

static int read_trace(const char *path, struct lab_why *why, struct trace *trace) {
	scoped_file FILE *file = fopen(path, "re");
	char line[LINE_BYTES + 2];
	uint32_t number = 0;
	int err = 0;

	if (file == NULL)
		return lab_fail(why, neg_errno(), "%s: %s", path, strerrordesc_np(errno));
	while (err == 0 && fgets(line, sizeof(line), file) != NULL) {
		number++;
		err = parse_line(trace, line);
	}
	if (err == -EINVAL || err == -ERANGE)
		return lab_fail(
			why, -EINVAL, "%s line %u: \"%.*s\" is %s", path, number,
			(int)strcspn(line, "\r\n"), line,
			err == -ERANGE ? "earlier than the line before"
				       : "not a time in seconds from the beginning, 0 to 3600"
		);
	if (err != 0)
		return lab_fail(why, err, "%s: %s", path, strerrordesc_np(-err));
	if (ferror(file) != 0)
		return lab_fail(why, -EIO, "%s cannot be read", path);
	return trace->count > 0 ? 0 : lab_fail(why, -EINVAL, "%s has no arrival", path);
}

int schedule_make(
	const struct plan *plan,
	const char *trace_path,
	struct lab_why *why,
	uint64_t **ret_due_ns,
	uint64_t *ret_count
) {
	struct trace trace = {.count = 0};
	int err;

	if (plan->arrivals != PLAN_TRACE)
		return arrivals_make(plan, why, ret_due_ns, ret_count);
	err = read_trace(trace_path, why, &trace);
	if (err != 0) {
		free(trace.due_ns);
		return err;
	}
	*ret_due_ns = trace.due_ns;
	*ret_count = trace.count;
	return 0;
}

uint64_t schedule_pause_max_ns(const uint64_t *due_ns, uint64_t count) {
	uint64_t max_ns = 0, before_ns = 0;

	for (uint64_t n = 0; n < count; n++) {
		if (due_ns[n] - before_ns > max_ns)
			max_ns = due_ns[n] - before_ns;
		before_ns = due_ns[n];
	}
	return max_ns;
}
