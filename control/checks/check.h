// SPDX-License-Identifier: BSD-3-Clause
// One check: from results to what is said of it. Pure, but for say().
#pragma once

#include <control/checks.h>

#define CHECK_ROWS_MAX \
	(2 * (CHECKS_USER_MAX + CHECKS_BUILTIN_COUNT)) // of each its level, and unknown

struct check_row {
	struct statement statement;
	bool told;
};

// What stands of all checks; check_reporter.c.
struct check_reporter {
	void (*say)(void *ctx, const struct statement *statement);
	void *ctx;
	uint64_t subject;
	uint64_t statements;
	struct check_row rows[CHECK_ROWS_MAX];
	uint32_t count, told_count;
};

// Tells it, unless as many stand as may be told and all of them weigh as much.
void check_reporter_say(struct check_reporter *reporter, const struct statement *statement);

struct check {
	struct check_reporter *reporter;
	char name[CHECKS_NAME_MAX + 1];
	struct check_reasons reasons;
	enum verdict failed; // what critical is said as
	uint32_t confirm, clear;

	bool ran;
	enum check_level level; // of the last run
	char evidence[VERDICT_EVIDENCE_MAX + 1];
	uint64_t at_ns, took_ns;
	uint64_t counts[CHECK_LEVEL_COUNT];

	enum check_level told;	 // never CHECK_UNKNOWN
	bool unknown, stuck;	 // said beside it; at most one of them
	uint32_t warnings;	 // runs in a row that were warning or worse
	uint32_t criticals;	 // runs in a row that were critical
	uint32_t betters;	 // runs in a row that were better than told
	enum check_level better; // the worst of these
};

struct check_result {
	enum check_level level;
	const char *evidence; // one line, UTF-8; cut
	uint64_t at_ns, took_ns;
};

// Known by name as yet, with its reasons set by the caller or by check_reasons_of(). Says nothing.
void check_init(struct check *check, struct check_reporter *reporter, const char *name);
void check_result(struct check *check, const struct check_result *result);
// It has not run yet, or cannot be asked.
void check_say_unknown(struct check *check, const char *evidence);
// What runs hangs.
void check_say_stuck(struct check *check, const struct spawn_stuck *stuck);
// Everything said is taken back.
void check_retract(struct check *check);
// Of what is said that weighs most; "" if nothing is.
const char *check_reason(const struct check *check);

// The first line of what a program wrote that is not blank: escaped, cut to 80 characters and to
// what evidence holds. With Nagios' convention, up to a "|". False if there is none.
bool check_first_line(
	const char *bytes,
	size_t size,
	enum check_convention convention,
	char line[static VERDICT_EVIDENCE_MAX + 1]
);

// From an end of a program to a level and what is to be told of it.
enum check_level check_judge(
	const struct spawn_result *result,
	enum check_convention convention,
	uint64_t timeout_ns,
	char evidence[static VERDICT_EVIDENCE_MAX + 1]
);
