// SPDX-License-Identifier: BSD-3-Clause
// What the overlay alone can say of a node: its part of the table of verdicts, and no more. HEALTH
// and HTTP grade by it, so that they say the same.
#pragma once

#include <ras/ras.h>

enum finding_grade {
	FINDING_OK,
	FINDING_WARNING,
	FINDING_CRITICAL,
	FINDING_UNKNOWN,
};

struct finding {
	enum finding_grade grade;
	const char *verdict;  // as design calls them; "unknown" where the overlay cannot tell
	const char *evidence; // half a sentence
};

void finding_of(const struct ras_peer *peer, struct finding *ret_finding);
const char *finding_grade_name(enum finding_grade grade);
// The worse of two; unknown is worse than a warning, since it may be anything.
enum finding_grade finding_worse(enum finding_grade a, enum finding_grade b);

struct overlay;

// Of the cluster as this node sees it: the worst, and what it is for, a word such as "PeersDead".
struct finding_sum {
	enum finding_grade grade;
	const char *reason; // "None" if all is well
};

// The loop's thread.
void finding_of_all(const struct overlay *overlay, struct finding_sum *ret_sum);

// What a cause means, as half a sentence about the node.
const char *finding_cause(enum ras_cause cause);
// Whether the host was seen to answer although the agent did not.
bool finding_is_agent_only(enum ras_cause cause);
