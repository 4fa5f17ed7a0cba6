// SPDX-License-Identifier: BSD-3-Clause
// The fields of HEALTH.
#include <records/findings.h>

#define MEMBER(...) RECORD_MEMBER(struct finding_row, __VA_ARGS__)
#define COLUMN(...) RECORD_COLUMN(struct finding_row, __VA_ARGS__)

// clang-format off
static const struct record_field fields[] = {
	COLUMN(node, UNIT_NONE, "the node", "NODE", 20, 0, NULL),
	COLUMN(state, UNIT_NONE, "state of its agent, as in PEERS", "AGENT", 11, 1, NULL),
	MEMBER(grade, UNIT_NONE, "ok, warning, critical or unknown"),
	COLUMN(verdict, UNIT_NONE, "verdict on the node; docs/verdicts.md has all",
		"VERDICT", 13, 0, NULL),
	COLUMN(for_ns, UNIT_NANOSECONDS, "time since the verdict began; null if unknown",
		"FOR", 11, 0, NULL),
	COLUMN(reason, UNIT_NONE, "reason as one word, \"None\" if all is well",
		"REASON", 22, 0, NULL),
	MEMBER(evidence, UNIT_NONE, "evidence, as a sentence"),
	MEMBER(advice, UNIT_NONE,
		"advice to a scheduler: nothing, show, warn, restart, drain-later or drain"),
	MEMBER(maint, UNIT_NONE, "whether the node is in maintenance: no alarm then"),
	MEMBER(observers, UNIT_NONE, "names of the nodes that observed it"),
	MEMBER(since, UNIT_NONE, "when the verdict began, UTC; null if unknown"),
	MEMBER(confidence, UNIT_NONE,
		"sure or likely; null if the overlay alone knows of the node"),
	MEMBER(withheld, UNIT_NONE, "why no drain or restart is advised although the verdict asks for it"),
	MEMBER(would, UNIT_NONE,
		"advice that [health] act = no holds back: drain or restart; null: none"),
	MEMBER(both_planes, UNIT_NONE, "whether overlay and RDMA probes agree"),
	MEMBER(looked_ns, UNIT_NANOSECONDS, "age of the newest evidence, or null"),
};
// clang-format on

const struct record finding_record = RECORD("findings", fields);
