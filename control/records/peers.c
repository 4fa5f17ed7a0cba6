// SPDX-License-Identifier: BSD-3-Clause
// The fields of PEERS.
#include <lib/fact.h>
#include <records/peers.h>

#include <string.h>

static const char *show_cause(const json_t *row, char text[static SHOW_BYTES]) {
	const char *cause = fact_word(row, "cause");

	(void)text;
	return *cause == '\0' || strcmp(cause, "none") == 0 ? "-" : cause;
}

static const char *show_note(const json_t *row, char text[static SHOW_BYTES]) {
	(void)text;
	if (fact_holds(row, "maint"))
		return "maint";
	if (fact_holds(row, "sole"))
		return "sole";
	return fact_holds(row, "self") ? "self" : "";
}

static const char *show_address(const json_t *row, char text[static SHOW_BYTES]) {
	(void)text;
	return fact_is(row, "state", "missing") ? "expected, not seen" : fact_name(row, "address");
}

#define MEMBER(...) RECORD_MEMBER(struct peer_row, __VA_ARGS__)
#define COLUMN(...) RECORD_COLUMN(struct peer_row, __VA_ARGS__)

// A node that is expected and was never seen has `node` and `state` alone.
// clang-format off
static const struct record_field fields[] = {
	COLUMN(node, UNIT_NONE, "the node", "NODE", 22, 0, NULL),
	MEMBER(id, UNIT_NONE, "identity of its agent, 16 hexadecimal digits behind 0x"),
	COLUMN(state, UNIT_NONE, "alive, suspect, unreachable, dead, left or missing",
		"STATE", 11, 0, NULL),
	COLUMN(for_ns, UNIT_NANOSECONDS, "time in this state; null if unknown", "FOR", 12, 0, NULL),
	COLUMN(cause, UNIT_NONE, "why it is in this state, or \"none\"",
		"CAUSE", 11, 1, show_cause),
	RECORD_MADE(UNIT_NONE, "NOTE", 5, 3, show_note),
	MEMBER(sole, UNIT_NONE, "whether a single observer reported the state"),
	MEMBER(maint, UNIT_NONE, "whether the node is in maintenance"),
	MEMBER(self, UNIT_NONE, "whether it is the node that answers"),
	MEMBER(since, UNIT_NONE, "when the state began, UTC; null if unknown"),
	MEMBER(start, UNIT_COUNT, "number of the start of its agent"),
	MEMBER(refutations, UNIT_COUNT, "suspicions refuted since its agent started; null if it left"),
	MEMBER(observers, UNIT_NONE, "names of the nodes that reported the state"),
	COLUMN(address, UNIT_NONE, "where its agent listens", "ADDRESS", 34, 2, show_address),
	MEMBER(host, UNIT_NONE, "host name"),
	MEMBER(pid, UNIT_NONE, "process of the agent"),
	MEMBER(version, UNIT_NONE, "version of the agent"),
	MEMBER(key, UNIT_NONE, "fingerprint of its agent's key, 16 hexadecimal digits"),
	MEMBER(verdict, UNIT_NONE, "verdict on the node"),
	MEMBER(devices, UNIT_COUNT, "RDMA devices that its agent uses"),
};
// clang-format on

const struct record peer_record = RECORD("peers", fields);

// The same rows with the key of each agent.
// clang-format off
static const struct record_field key_fields[] = {
	COLUMN(node, UNIT_NONE, "the node", "NODE", 22, 0, NULL),
	COLUMN(state, UNIT_NONE, "alive, suspect, unreachable, dead, left or missing",
		"STATE", 11, 0, NULL),
	COLUMN(key, UNIT_NONE, "fingerprint of its agent's key", "KEY", 16, 0, NULL),
	COLUMN(address, UNIT_NONE, "where its agent listens", "ADDRESS", 34, 1, show_address),
};
// clang-format on

const struct record peer_key_record = RECORD("peers", key_fields);

// The same rows with the version of each agent.
// clang-format off
static const struct record_field version_fields[] = {
	COLUMN(node, UNIT_NONE, "the node", "NODE", 22, 0, NULL),
	COLUMN(state, UNIT_NONE, "alive, suspect, unreachable, dead, left or missing",
		"STATE", 11, 0, NULL),
	COLUMN(for_ns, UNIT_NANOSECONDS, "time in this state; null if unknown", "FOR", 12, 0, NULL),
	COLUMN(version, UNIT_NONE, "version of the agent", "VERSION", 32, 0, NULL),
};
// clang-format on

const struct record peer_version_record = RECORD("peers", version_fields);
