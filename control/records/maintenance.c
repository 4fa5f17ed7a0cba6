// SPDX-License-Identifier: BSD-3-Clause
// The fields of MAINTENANCE.
#include <lib/fact.h>
#include <records/maintenance.h>

#include <inttypes.h>

static const char *show_end(const json_t *row, char text[static SHOW_BYTES]) {
	return fact_duration(row, "left_ns", text) ? text : "no end";
}

static const char *show_author(const json_t *row, char text[static SHOW_BYTES]) {
	if (fact_known(row, "user"))
		return fact_word(row, "user");
	if (!fact_known(row, "uid"))
		return "-";
	snprintf(text, SHOW_BYTES, "uid %" PRIu64, fact_number(row, "uid"));
	return text;
}

#define MEMBER(...) RECORD_MEMBER(struct maintenance_row, __VA_ARGS__)
#define COLUMN(...) RECORD_COLUMN(struct maintenance_row, __VA_ARGS__)

// clang-format off
static const struct record_field fields[] = {
	COLUMN(node, UNIT_NONE, "the node", "NODE", 16, 0, NULL),
	COLUMN(for_ns, UNIT_NANOSECONDS, "time since the order; null if it is unknown",
		"FOR", 9, 0, NULL),
	COLUMN(left_ns, UNIT_NANOSECONDS, "time until maintenance ends by itself; null: no end",
		"ENDS IN", 9, 0, show_end),
	COLUMN(user, UNIT_NONE, "name of the author as `tocsin` gave it, or null",
		"BY", 10, 0, show_author),
	COLUMN(reason, UNIT_NONE, "reason as the author wrote it, or null", "REASON", 24, 0, NULL),
	MEMBER(uid, UNIT_NONE, "user id of the author; null if it is unknown"),
	MEMBER(since, UNIT_NONE, "when the order was given, UTC; null if it is unknown"),
	MEMBER(version, UNIT_COUNT, "how often maintenance of the node was switched"),
};
// clang-format on

const struct record maintenance_record = RECORD("maintenance", fields);
