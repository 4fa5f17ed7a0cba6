// SPDX-License-Identifier: BSD-3-Clause
// The health of a node as reported to users and monitoring. It is the stored verdict, or the
// overlay's own information if there is no verdict. HEALTH and HTTP both use it, so their grades
// agree.
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
	const char *verdict;  // its name; "unknown" if only the overlay's information exists
	const char *reason;   // in CamelCase; "None" if all is well
	const char *evidence; // a sentence or a phrase
	enum verdict_advice advice;
	const char *withheld;	   // why the verdict's drain is withheld; NULL if it is not
	enum verdict_advice would; // advice that [health] act = no holds back; NOTHING: none
	bool has_view;		   // the store holds a verdict, which is in `view`
	struct verdict_view view;  // valid until the store's next input
};

// Return the finding for one peer. `health` is NULL if there is no verdict store. Loop thread only.
void finding_for_peer(
	const struct health *health, const struct ras_peer *peer, struct finding *ret_finding
);
const char *finding_grade_name(enum finding_grade grade);
// Return the rank of a grade: 0 for ok. Unknown is worse than a warning, because it can hide
// anything.
unsigned int finding_grade_rank(enum finding_grade grade);
// Return the worse of two grades.
enum finding_grade finding_worse_grade(enum finding_grade a, enum finding_grade b);

// Return whether the brake currently keeps a silent peer from being judged. The brake itself stays
// on a little longer than there are such peers.
bool finding_view_is_braked(const struct ras_view *view);

struct cluster_finding {
	enum finding_grade grade;
	const char *reason; // of the worst grade, such as "PeersDead"; "None" if all is well
};

// Return the worst grade among all nodes, as this node sees the cluster, and its reason. Loop
// thread only.
void finding_for_cluster(
	const struct overlay *overlay, const struct health *health, struct cluster_finding *ret_sum
);

// Return whether this cause means that the host answered although the agent did not.
bool finding_is_agent_only(enum ras_cause cause);
