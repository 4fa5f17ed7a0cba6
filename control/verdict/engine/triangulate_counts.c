// SPDX-License-Identifier: BSD-3-Clause
// Rules of evidence: which observations may be used, which good reads disprove which bad ones, and
// what a fault other than the subject's explains.
#include "triangulate.h"

#include <verdict/path_memory.h>

#include <string.h>

bool triangulate_own_port_is_bad(const struct subject *subject) {
	for (uint32_t n = 0; subject != NULL && n < subject->said_count; n++) {
		enum verdict verdict = subject->said[n].statement.verdict;

		if (verdict == VERDICT_FABRIC_DOWN || verdict == VERDICT_DEVICE_STUCK)
			return true;
	}
	return false;
}

bool triangulate_counts(const struct verdict_engine *engine, const struct evidence *evidence) {
	const struct observation *observation = &evidence->observation;
	const struct member_row *observer;

	if (observation->observer == engine->config.self) {
		const struct subject *self;

		// Silence while this agent was paused proves nothing.
		if (observation_is_bad(observation->kind) &&
		    evidence->seen_ns < engine->self.paused_until_ns)
			return false;
		// If this agent is the one that is cut off, its failed reads blame nobody. Peers
		// cannot contradict them either, since this agent does not publish them.
		if (observation->kind == OBSERVATION_SILENT) {
			self = subject_find(engine, observation->observer);
			if (self != NULL && self->held.verdict == VERDICT_FABRIC_DOWN)
				return false;
		}
		if (!observation_is_bad(observation->kind) || observation->own_good)
			return true;
	}
	if (observation_is_bad(observation->kind) && !observation->own_good)
		return false;
	observer = evidence_observer_row(engine, evidence);
	return observer != NULL && observer->state != RAS_DEAD && observer->state != RAS_LEFT &&
	       (!observation_is_bad(observation->kind) ||
		!triangulate_own_port_is_bad(observer->subject));
}

bool evidence_observer_is_on_host(
	const struct verdict_engine *engine, const struct evidence *evidence, uint32_t host
) {
	const struct member_row *row = evidence_observer_row(engine, evidence);

	return engine->members.hosts_alive > 1 && host != NAMES_NONE && row != NULL &&
	       row->host == host;
}

uint32_t
triangulate_observers_needed(const struct verdict_engine *engine, const struct subject *subject) {
	const uint32_t *of_state = engine->members.of_state;
	uint32_t able = of_state[RAS_ALIVE] + of_state[RAS_SUSPECT];
	uint8_t state = subject_peer(engine, subject)->state;

	if (state == RAS_ALIVE || state == RAS_SUSPECT)
		able--;
	return able > 1 ? 2 : 1;
}

bool observation_kind_excuses(enum observation_kind look, enum observation_kind kind) {
	if (kind == OBSERVATION_SILENT)
		return look == OBSERVATION_GOOD || look == OBSERVATION_STANDING ||
		       look == OBSERVATION_DEGRADED || look == OBSERVATION_LOSSY;
	if (kind == OBSERVATION_STANDING)
		return look == OBSERVATION_GOOD || look == OBSERVATION_DEGRADED ||
		       look == OBSERVATION_LOSSY;
	return look == OBSERVATION_GOOD;
}

bool evidence_excuses_from_other_host(
	const struct verdict_engine *engine,
	const struct evidence *look,
	enum observation_kind kind,
	uint32_t host
) {
	return observation_kind_excuses(look->observation.kind, kind) &&
	       !evidence_observer_is_on_host(engine, look, host);
}

// Return whether a good read does not disprove the bad one. A path without a baseline calls every
// read good. It disproves slowness only if it is as fast as the slow paths were before. A good read
// disproves loss only for the sizes that passed.
static bool
read_has_no_baseline_for(const struct observation *look, const struct observation *bad) {
	if (bad->kind == OBSERVATION_DEGRADED)
		return look->baseline_ns == 0 && bad->baseline_ns != 0 &&
		       look->median_ns * UINT64_C(1000) >=
			       (uint64_t)bad->baseline_ns * PATH_RATIO_PERMILLE;
	return observation_is_blind_to_loss(look, bad->kind, bad->lost_bytes);
}

static bool observation_can_disprove(
	const struct subject *subject, const struct observation *look, enum observation_kind kind
) {
	if (!observation_kind_uses_windows(kind))
		return true;
	for (uint32_t n = 0; n < subject->observation_count; n++) {
		const struct observation *bad = &subject->observations[n].observation;

		if (bad->kind == kind && read_has_no_baseline_for(look, bad))
			return false;
	}
	return true;
}

// Return whether only the path between the two is slow: the subject finds this observer slow in
// turn, but no other node. If the subject itself were slow, all its reads would be slow, and it
// would report none (path_expected_ns()).
static bool only_path_is_slow(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *evidence
) {
	const struct member_row *observer = evidence_observer_row(engine, evidence);
	uint64_t self = subject_peer(engine, subject)->id;

	if (evidence->observation.kind != OBSERVATION_DEGRADED ||
	    subject->tells[OBSERVATION_DEGRADED] != 1 || observer == NULL ||
	    observer->subject == NULL || triangulate_observers_needed(engine, subject) < 2)
		return false;
	for (uint32_t n = 0; n < observer->subject->observation_count; n++) {
		const struct observation *told = &observer->subject->observations[n].observation;

		if (told->observer == self && told->kind == OBSERVATION_DEGRADED)
			return true;
	}
	return false;
}

bool evidence_contradicts_blame(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *look,
	enum observation_kind kind
) {
	// A lossy observer sees that the counter advanced since its previous answered read, which
	// may be long ago.
	if (kind == OBSERVATION_STANDING &&
	    member_is_lossy_or_slow(evidence_observer_row(engine, look)))
		return false;
	return evidence_excuses_from_other_host(
		       engine, look, kind, subject_peer(engine, subject)->host
	       ) &&
	       observation_can_disprove(subject, &look->observation, kind);
}

bool evidence_is_explained(
	const struct verdict_engine *engine,
	const struct subject *subject,
	const struct evidence *evidence
) {
	// A lossy observer seems slow, a slow one lossy. With two nodes this explains nothing,
	// since each is the only observer of the other.
	if (observation_kind_uses_windows(evidence->observation.kind) &&
	    triangulate_observers_needed(engine, subject) > 1 &&
	    member_is_lossy_or_slow(evidence_observer_row(engine, evidence)))
		return true;
	return only_path_is_slow(engine, subject, evidence);
}
