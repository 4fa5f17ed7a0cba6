// SPDX-License-Identifier: BSD-3-Clause
// Internals shared by the parts of a judgement: judge.c has the tables, each other file one topic.
#pragma once

#include "inside.h"

static inline void finding_set(struct finding *finding, enum verdict verdict, const char *reason) {
	finding->verdict = verdict;
	finding->reason = reason;
}

static inline void
finding_set_by_silence(struct finding *finding, enum verdict verdict, const char *reason) {
	finding_set(finding, verdict, reason);
	finding->by_silence = true;
}

// Copy the observers of the data plane into the finding.
void finding_set_observers(struct finding *finding, const struct fabric_look *look);

// votes.c
// Number of observers per state of the overlay connections to a node.
struct votes {
	uint32_t of[VERDICT_REACH_COUNT];
	uint32_t against; // accepts, refuses or none
	uint64_t newest_ns;
};

void votes_count_reach(
	const struct verdict_engine *engine, const struct subject *subject, struct votes *ret_votes
);

// Return whether all observers with a result were refused, on two hosts at least if there are two.
bool votes_show_host_refuses(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct votes *votes
);

// judge.c

// Set the finding to unknown if another agent answers at the node's address. Neither silence nor an
// answer at that address is evidence about the node. Returns whether it was set.
bool set_address_conflict(const struct votes *votes, struct finding *finding);
// Return whether overlay, pulse and kernel are silent to two observers.
bool node_is_likely_down(
	const struct finding *finding, const struct votes *votes, const struct heard *heard
);

// judge_death.c
void judge_dead(
	const struct verdict_engine *engine, const struct subject *subject, struct finding *finding
);
void judge_unreachable(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *finding
);

// judge_loss.c

// Set the finding to path-lossy if two observers lose packets to or from the node. Lost reads count
// as well if `state` is not alive. Returns whether it was set.
bool set_path_lossy(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum ras_state state,
	struct finding *finding
);
// The same, but not while many nodes are about to fall silent. Called where nothing else is wrong.
bool losses_set_path_lossy_alone(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *finding
);
// Return whether an observer that is not bad itself reports loss.
bool losses_are_reported(const struct verdict_engine *engine, const struct subject *subject);
// Return the reason that most observers of lost reads support.
const char *losses_reason(const struct verdict_engine *engine, const struct subject *subject);
// Record that the node loses packets while some observers still read it.
void losses_record_lossy_but_read(
	const struct verdict_engine *engine,
	struct subject *subject,
	const struct fabric_look *look,
	uint64_t now_ns
);
// Return whether that was recorded a moment ago: then silence is attributed to loss.
bool losses_are_recent(const struct subject *subject, uint64_t now_ns);
bool losses_explain_silence(
	struct subject *subject, enum fabric fabric, enum ras_state state, uint64_t now_ns
);
// Return whether lost packets explain the suspicion.
bool losses_explain_suspicion(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct fabric_look *look,
	const struct votes *votes,
	const struct heard *heard,
	const struct finding *finding
);
void losses_judge_suspect(
	const struct verdict_engine *engine, const struct subject *subject, struct finding *finding
);
