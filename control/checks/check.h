// SPDX-License-Identifier: BSD-3-Clause
// One check: derives statements from results. Pure, except for the `say` callback.
#pragma once

#include <control/checks.h>

#define CHECK_STATEMENT_ROWS_MAX \
	(2 * (CHECKS_USER_MAX + CHECKS_BUILTIN_COUNT)) // per check: its level, and whether unknown

struct check_row {
	struct statement statement;
	bool told;
	bool unsent; // the last publication failed; check_reporter_retry() repeats it
};

// Statements of all checks; check_reporter.c.
struct check_reporter {
	int (*say)(void *ctx, const struct statement *statement);
	void *ctx;
	uint64_t subject;
	uint64_t statements;
	struct check_row rows[CHECK_STATEMENT_ROWS_MAX];
	uint32_t count, told_count;
};

// Add, replace or withdraw a statement. It is published unless CHECKS_STATEMENTS_MAX statements of
// at least its weight are.
void check_reporter_add(struct check_reporter *reporter, const struct statement *statement);
// Publish the statements whose publication failed, up to the next failure. The most important
// statement comes first.
void check_reporter_retry(struct check_reporter *reporter);

struct check {
	struct check_reporter *reporter;
	char name[CHECKS_NAME_MAX + 1];
	struct check_reasons reasons;
	enum verdict warned; // verdict of a warning level
	enum verdict failed; // verdict of a critical level
	uint32_t confirm, clear;

	bool ran;
	enum check_level level; // of the last run
	char evidence[VERDICT_EVIDENCE_MAX + 1];
	uint64_t at_ns, took_ns;
	uint64_t counts[CHECK_LEVEL_COUNT];

	enum check_level told; // level last stated, never CHECK_UNKNOWN
	// Stated in addition; at most one of the two.
	bool unknown, stuck;
	uint32_t warnings;	 // consecutive runs of warning or worse
	uint32_t criticals;	 // consecutive runs of critical
	uint32_t betters;	 // consecutive runs better than the level stated
	enum check_level better; // worst level of these runs
};

struct check_result {
	enum check_level level;
	const char *evidence; // one line of UTF-8, truncated if too long
	uint64_t at_ns, took_ns;
};

// Initialise a check. The caller sets its reasons, with check_reasons_build() or directly. States
// nothing.
void check_init(struct check *check, struct check_reporter *reporter, const char *name);
void check_result(struct check *check, const struct check_result *result);
// State that the check is unknown: it has not run yet, or its last run gave no valid result.
void check_state_unknown(struct check *check, const char *evidence);
// State that the check's program hangs.
void check_state_stuck(struct check *check, const struct spawn_stuck *stuck);
// Withdraw all statements of the check.
void check_retract(struct check *check);
// Return the reason of the most severe statement, "" if there is none.
const char *check_reason(const struct check *check);

// Copy the first line of a program's output that is not blank. The line is escaped and cut to 80
// characters and to the size of evidence. With CHECK_NAGIOS it ends before a "|". Returns false if
// there is none.
bool check_first_line(
	const char *bytes,
	size_t size,
	enum check_convention convention,
	char line[static VERDICT_EVIDENCE_MAX + 1]
);

// Return the level and the evidence for a program that ended.
enum check_level check_judge(
	const struct spawn_result *result,
	enum check_convention convention,
	uint64_t timeout_ns,
	char evidence[static VERDICT_EVIDENCE_MAX + 1]
);
