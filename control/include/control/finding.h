// SPDX-License-Identifier: BSD-3-Clause
// What is said of a node to those outside: the verdict of the store, or, where there is none, what
// the overlay alone can tell. HEALTH and HTTP grade by it, so that they say the same.
#pragma once

#include <ras/ras.h>
#include <verdict/verdict.h>

enum finding_grade {
	FINDING_OK,
	FINDING_WARNING,
	FINDING_CRITICAL,
	FINDING_UNKNOWN,
};

struct health;
struct overlay;

struct finding {
	enum finding_grade grade;
	const char *verdict;  // by name; "unknown" where the overlay alone cannot tell
	const char *reason;   // CamelCase; "None" if all is well
	const char *evidence; // a sentence, or half of one
	enum verdict_advice advice;
	const char *withheld;	  // why it is no drain although the verdict asks for one; NULL
	bool has_view;		  // the store holds one:
	struct verdict_view view; // valid until its next input
};

// The loop's thread. health NULL: there is no store.
void finding_of(
	const struct health *health, const struct ras_peer *peer, struct finding *ret_finding
);
const char *finding_grade_name(enum finding_grade grade);
// From 0 for ok; unknown is worse than a warning, since it may be anything.
unsigned int finding_badness(enum finding_grade grade);
// The worse of two.
enum finding_grade finding_worse(enum finding_grade a, enum finding_grade b);

// Of the cluster as this node sees it: the worst, and what it is for, a word such as "PeersDead".
// Whether the brake keeps anybody from being judged: it lasts a little longer than what it is for.
bool finding_is_braked(const struct ras_view *view);

struct finding_sum {
	enum finding_grade grade;
	const char *reason; // "None" if all is well
};

// The loop's thread.
void finding_of_all(
	const struct overlay *overlay, const struct health *health, struct finding_sum *ret_sum
);

// What a cause means, as half a sentence about the node.
const char *finding_cause(enum ras_cause cause);
// Whether the host was seen to answer although the agent did not.
bool finding_is_agent_only(enum ras_cause cause);
