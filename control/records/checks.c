// SPDX-License-Identifier: BSD-3-Clause
// The fields of CHECKS.
#include <lib/fact.h>
#include <records/checks.h>

static const char *show_next(const json_t *row, char text[static SHOW_BYTES]) {
	if (json_is_object(json_object_get(row, "stuck")))
		return "hangs";
	if (fact_holds(row, "running"))
		return "running";
	fact_duration(row, "next_ns", text);
	return text;
}

#define MEMBER(...) RECORD_MEMBER(struct check_row, __VA_ARGS__)
#define COLUMN(...) RECORD_COLUMN(struct check_row, __VA_ARGS__)

static const struct record_field fields[] = {
	COLUMN(name, UNIT_NONE, "name of the check", "CHECK", 20, 0, NULL),
	MEMBER(command, UNIT_NONE, "command line, or null for a check of the agent itself"),
	MEMBER(interval_ns, UNIT_NANOSECONDS, "time between two runs"),
	MEMBER(timeout_ns, UNIT_NANOSECONDS, "time limit of a run"),
	MEMBER(said, UNIT_NONE, "level that counts for the verdict: ok, warning or critical"),
	MEMBER(reason, UNIT_NONE, "reason that this level gives the verdict, or \"\""),
	MEMBER(last, UNIT_NONE, "result, evidence, at, ago_ns, took_ns of the last run, or null"),
	RECORD_INNER("last", "result", UNIT_NONE, "LAST", 8, 0),
	RECORD_INNER("last", "ago_ns", UNIT_NANOSECONDS, "AGO", 9, 0),
	RECORD_INNER("last", "took_ns", UNIT_NANOSECONDS, "TOOK", 9, 3),
	MEMBER(running, UNIT_NONE, "whether it runs now"),
	COLUMN(next_ns, UNIT_NANOSECONDS, "time to the next run, or null", "NEXT", 9, 2, show_next),
	MEMBER(stuck,
	       UNIT_NONE,
	       "pid, comm, state and wchan of a run that the kernel does not end, or null"),
	MEMBER(counts, UNIT_NONE, "runs by result: ok, warning, critical, unknown"),
	RECORD_INNER("counts", "ok", UNIT_COUNT, "OK", 6, 1),
	RECORD_INNER("counts", "warning", UNIT_COUNT, "WARNED", 6, 0),
	RECORD_INNER("counts", "critical", UNIT_COUNT, "FAILED", 6, 0),
	RECORD_INNER("counts", "unknown", UNIT_COUNT, "UNKNOWN", 7, 0),
};

const struct record check_record = RECORD("checks", fields);
