// SPDX-License-Identifier: BSD-3-Clause
// What the parts of a judgement share: judge.c has the tables, the others one matter each.
#pragma once

#include "inside.h"

static inline void finding_set(struct finding *finding, enum verdict verdict, const char *reason) {
	finding->verdict = verdict;
	finding->reason = reason;
}

static inline void
finding_by_silence(struct finding *finding, enum verdict verdict, const char *reason) {
	finding_set(finding, verdict, reason);
	finding->by_silence = true;
}

// What the observers of the data plane have to say for it.
void finding_observers(struct finding *finding, const struct fabric_look *look);

// votes.c
// How many observers say how its host takes the overlay's connections.
struct votes {
	uint32_t of[VERDICT_REACH_COUNT];
	uint32_t against; // accepts, refuses or none
	uint64_t newest_ns;
};

void votes_take(
	const struct verdict_engine *engine, const struct subject *subject, struct votes *ret_votes
);

// judge.c

// Overlay, pulse and kernel are silent to two.
bool judge_is_likely_down(
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

// Whether two find that packets to it, or from it, are lost; that is told of it then. `state`: of
// one that is not alive reads that are lost count as well.
bool losses_find(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum ras_state state,
	struct finding *finding
);
// The same where nothing else speaks against it, and not while many are about to fall silent.
bool losses_find_alone(
	const struct verdict_engine *engine,
	struct subject *subject,
	uint64_t now_ns,
	struct finding *finding
);
// Whether anybody who is not bad itself tells of some.
bool losses_are_told(const struct verdict_engine *engine, const struct subject *subject);
// By what most of those say who lose reads of it.
const char *losses_reason(const struct verdict_engine *engine, const struct subject *subject);
// Notes whether it loses packets and is read by some nevertheless.
void losses_note_leaky(
	const struct verdict_engine *engine,
	struct subject *subject,
	const struct fabric_look *look,
	uint64_t now_ns
);
// Whether that was so a moment ago: then what is silent at it is of the packets that it loses.
bool losses_are_recent(const struct subject *subject, uint64_t now_ns);
bool losses_explain_silence(
	struct subject *subject, enum fabric fabric, enum ras_state state, uint64_t now_ns
);
// It is suspected for what its losses keep from being heard.
bool losses_hide_suspect(
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
