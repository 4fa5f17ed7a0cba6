// SPDX-License-Identifier: BSD-3-Clause
// Suspicions: how evidence against a peer leads to its death.
//
//	silence 3 s ── suspect, round of looks ── 6.7 s last round ── 8.7 s dead, or held back
//	refused twice ── suspect, round of looks ── a second observer is refused twice: dead
//	proof of life, by any agent, at any time ── alive
//
// Looks and their answers are in liveness_look.c, the brake in liveness_brake.c.
#include "live/liveness.h"

#include "core/core.h"
#include "live/liveness_witness.h"

#define GONE_HOLD_NS (500 * RAS_NS_PER_MS)  // head start of the ring neighbours of a gone peer
#define SMALL_RING_MEMBERS 4		    // up to so many members, all act at once
#define COUNT_SPARE_NS (2 * RAS_NS_PER_SEC) // a census may be this much older than its round
#define HELD_LOOK_NS (60 * RAS_NS_PER_SEC)  // interval of looks at a peer held back by the brake

void liveness_fini(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;
	struct memory *memory = &ras->memory;

	memory_release(
		memory, liveness->suspicions,
		liveness->suspicion_capacity * sizeof(*liveness->suspicions)
	);
	memory_release(memory, liveness->looks, liveness->look_capacity * sizeof(*liveness->looks));
	*liveness = (struct liveness){0};
}

static struct suspicion *suspicion_find(struct ras *ras, uint32_t slot) {
	for (uint32_t n = 0; n < ras->liveness.suspicion_count; n++) {
		if (ras->liveness.suspicions[n].slot == slot)
			return &ras->liveness.suspicions[n];
	}
	return NULL;
}

static void suspicion_remove(struct ras *ras, struct suspicion *suspicion) {
	*suspicion = ras->liveness.suspicions[--ras->liveness.suspicion_count];
}

// Return when the first round begins. Many members see a reset at the same time, but two are
// enough. The ring neighbours of the peer begin; the others follow only if that had no result.
static uint64_t first_round_due_ns(struct ras *ras, uint32_t slot, enum ras_cause cause) {
	if (cause != RAS_CAUSE_GONE || slot == ras->ring.sides[RING_NEXT].primary ||
	    slot == ras->ring.sides[RING_PREV].primary ||
	    peers_ring_count(&ras->peers) <= SMALL_RING_MEMBERS)
		return ras->observed_ns;
	return ras->observed_ns + GONE_HOLD_NS + ras_random(ras) % GONE_HOLD_NS;
}

static void peer_suspect(struct ras *ras, uint32_t slot, enum ras_cause cause, uint64_t silent_ns) {
	struct liveness *liveness = &ras->liveness;
	struct suspicion *suspicion = suspicion_find(ras, slot);
	struct link *link = link_find(ras, slot);

	if (!ras->joined || ras->leaving || slot == ras->self_slot ||
	    !peer_is_member(ras_entry(ras, slot)))
		return;
	if (suspicion != NULL) {
		if (cause == RAS_CAUSE_GONE && suspicion->cause != RAS_CAUSE_GONE) {
			suspicion->cause = cause;
			suspicion->open = false;
			suspicion->due_ns = first_round_due_ns(ras, slot, cause);
			ras_wake_at(ras, suspicion->due_ns);
		}
		return;
	}
	if (liveness->suspicion_count == LIVENESS_SUSPICIONS_MAX ||
	    memory_grow(
		    &ras->memory, (void **)&liveness->suspicions, &liveness->suspicion_capacity,
		    liveness->suspicion_count + 1, sizeof(*liveness->suspicions)
	    ) != 0)
		return; // the evidence stays and is reported again
	liveness->suspicions[liveness->suspicion_count++] = (struct suspicion){
		.slot = slot,
		.incarnation = ras_entry(ras, slot)->incarnation,
		.cause = cause,
		.started_ns = ras->observed_ns,
		.silent_ns = silent_ns,
		.due_ns = first_round_due_ns(ras, slot, cause),
	};
	ras_wake_at(ras, ras->observed_ns);
	if (link != NULL)
		link->watched = true;
	ras->counters.suspicions++;
	if (ras_entry(ras, slot)->state == RAS_ALIVE)
		peers_set_local(&ras->peers, slot, RAS_SUSPECT, cause, ras->observed_ns);
	ras_emit(ras, RAS_EVENT_SUSPECT, slot, cause, ras->observed_ns - silent_ns);
	look_notify_suspect(ras, slot);
}

// If another observer heard the peer later than we did, start its silence at that time: only our
// own link failed.
void liveness_peer_silent(struct ras *ras, struct link *link) {
	uint64_t silent_ns = ras->observed_ns - link_silence_ns(ras, link);

	peer_suspect(
		ras, link->slot, RAS_CAUSE_SILENT,
		silent_ns > link->proven_elsewhere_ns ? silent_ns : link->proven_elsewhere_ns
	);
}

void liveness_peer_gone(struct ras *ras, struct link *link) {
	looks_answer_gone(ras, link->slot);
	// Without a former connection no connection was lost: a firewall may reject new connections
	// and allow existing ones. Such an agent may be a witness, but raises no suspicion.
	if (link->connects > 0)
		peer_suspect(ras, link->slot, RAS_CAUSE_GONE, link->refused_ns);
}

void liveness_absence_reported(struct ras *ras, uint32_t slot, uint64_t age_ns) {
	uint64_t since = age_ns < ras->observed_ns ? ras->observed_ns - age_ns : 0;
	struct link *link = link_find(ras, slot);

	if (link != NULL && !link->unheard && link->heard_ns > since)
		return; // heard after the reported observation
	// A report raises the suspicion. The silence that leads to death begins with our own looks.
	peer_suspect(ras, slot, RAS_CAUSE_REPORT, ras->observed_ns);
}

// Only some of the thousands that receive the question act on it.
void liveness_suspicion_delegated(struct ras *ras, uint64_t subject) {
	uint32_t slot = peers_find(&ras->peers, subject);

	if (slot != RAS_NO_SLOT && !votes_self_has_none(ras) &&
	    ras_random(ras) % peers_ring_count(&ras->peers) < SMALL_RING_MEMBERS)
		liveness_absence_reported(ras, slot, 0);
}

void liveness_death_reported(struct ras *ras, uint32_t slot, const struct peer_news *news) {
	struct suspicion *suspicion;

	liveness_absence_reported(ras, slot, 0);
	suspicion = suspicion_find(ras, slot);
	if (suspicion == NULL)
		return;
	// A peer that is held back is looked at only once a minute: look now.
	if (suspicion->told.id == 0 && !suspicion->open) {
		suspicion->due_ns = ras->observed_ns;
		ras_wake_at(ras, suspicion->due_ns);
	}
	suspicion->told = *news;
	suspicion->told.record = NULL;
}

void liveness_weak_evidence(struct ras *ras, uint32_t slot) {
	struct link *link = link_find(ras, slot);

	if (link != NULL && peer_is_member(ras_entry(ras, slot)))
		link_probe(ras, link);
}

void liveness_proof_of_life(struct ras *ras, uint32_t slot, uint64_t observer) {
	struct peer_entry *entry = ras_entry(ras, slot);
	struct suspicion *suspicion = suspicion_find(ras, slot);
	struct link *link = link_find(ras, slot);
	enum ras_state was = entry->state;

	if (!peer_is_member(entry))
		return; // a dead peer is notified and must refute its death itself
	if (observer == 0) {
		entry->flags |= PEER_SEEN;
	} else if (link != NULL) {
		// Only our own link failed: the peer's silence is excused for a while.
		link->proven_elsewhere_ns = ras->observed_ns;
		link->silence_excused_until_ns = ras->observed_ns + 2 * ras->profile->suspect_ns;
		link->gone = false;
		link->refused_ns = RAS_NEVER;
		link->checked_ns = RAS_NEVER;
		link->watched = true;
	}
	// Remove the suspicion first, since the messages sent below may change the list.
	if (suspicion != NULL)
		suspicion_remove(ras, suspicion);
	looks_answer_alive(ras, slot);
	if (was == RAS_ALIVE || ras_entry(ras, slot)->state != was)
		return;
	ras->counters.suspicions_cleared++;
	if (was == RAS_UNREACHABLE)
		brake_request_census(
			ras, brake_census_fresh_since_ns(ras)
		); // others may be back too
	peers_set_local(&ras->peers, slot, RAS_ALIVE, RAS_CAUSE_REFUTED, ras->observed_ns);
	ras_emit(
		ras, was == RAS_SUSPECT ? RAS_EVENT_REFUTED : RAS_EVENT_ALIVE, slot,
		RAS_CAUSE_REFUTED, observer
	);
	ring_schedule_rebuild(ras);
}

void liveness_restart_silences(struct ras *ras, struct link *link) {
	(void)link;
	for (uint32_t n = 0; n < ras->links.count; n++)
		ras->links.table[n]->proven_elsewhere_ns = ras->observed_ns;
	for (uint32_t n = 0; n < ras->liveness.suspicion_count; n++) {
		struct suspicion *suspicion = &ras->liveness.suspicions[n];

		if (ras_entry(ras, suspicion->slot)->state == RAS_SUSPECT)
			suspicion->silent_ns = ras->observed_ns;
	}
}

void liveness_peer_heard(struct ras *ras, struct link *link) {
	liveness_proof_of_life(ras, link->slot, 0);
}

void liveness_resume(struct ras *ras) {
	brake_resume(ras);
	for (uint32_t n = 0; n < ras->liveness.suspicion_count; n++) {
		struct suspicion *suspicion = &ras->liveness.suspicions[n];

		suspicion->open = false;
		suspicion->asked_count = 0;
		suspicion->due_ns = ras->observed_ns;
	}
	ras_wake_at(ras, ras->observed_ns);
}

void liveness_reset(struct ras *ras) {
	while (ras->liveness.suspicion_count > 0) {
		uint32_t slot = ras->liveness.suspicions[0].slot;

		suspicion_remove(ras, &ras->liveness.suspicions[0]);
		peers_set_local(&ras->peers, slot, RAS_ALIVE, RAS_CAUSE_NONE, ras->observed_ns);
		ras_emit(ras, RAS_EVENT_ALIVE, slot, RAS_CAUSE_NONE, 0);
	}
	for (uint32_t n = 0; n < ras->links.count; n++) {
		struct link *link = ras->links.table[n];

		link->heard_ns = ras->observed_ns;
		link->watched = true;
		link->gone = false;
		link->refused_ns = RAS_NEVER;
		link->checked_ns = RAS_NEVER;
	}
}

void liveness_forget_peer(struct ras *ras, uint32_t slot) {
	struct suspicion *suspicion = suspicion_find(ras, slot);

	if (suspicion != NULL)
		suspicion_remove(ras, suspicion);
	// Drop the answers of an observer that is no member any more. Its slot may be reused before
	// the round ends. Each observer is asked once in a round.
	for (uint32_t n = 0; n < ras->liveness.suspicion_count; n++) {
		struct suspicion *other = &ras->liveness.suspicions[n];
		uint32_t at = 0;

		while (at < other->asked_count && other->asked[at] != slot)
			at++;
		if (at == other->asked_count)
			continue;
		other->asked_count--;
		other->asked[at] = other->asked[other->asked_count];
		other->observations[at] = other->observations[other->asked_count];
	}
	looks_forget_peer(ras, slot);
}

// Rounds of looks.

#ifdef RAS_BREAK_SECOND_OBSERVER
// Deliberately wrong, only in tocsin-sim-broken: one observer is enough to declare a peer dead. The
// simulator's swarm has to detect this.
static uint32_t observers_needed(const struct ras *ras, uint32_t slot) {
	(void)ras;
	(void)slot;
	return 1;
}
#else
static uint32_t observers_needed(const struct ras *ras, uint32_t slot) {
	return witnesses_needed(ras, slot);
}
#endif

static bool sole_death_is_possible(const struct ras *ras, uint32_t slot) {
	return observers_needed(ras, slot) < ras->profile->observers;
}

static enum observation own_observation(const struct ras *ras, const struct suspicion *suspicion) {
	const struct link *link = link_find(ras, suspicion->slot);

	if (link == NULL)
		return OBSERVATION_NONE;
	if (link->gone)
		return OBSERVATION_GONE;
	return link->checked_ns != RAS_NEVER ? OBSERVATION_SILENT : OBSERVATION_NONE;
}

static void death_declare(
	struct ras *ras, const struct suspicion *suspicion, enum ras_cause cause, uint32_t other
) {
	struct peer_news news = {
		.id = ras_entry(ras, suspicion->slot)->record->id,
		.incarnation = ras_entry(ras, suspicion->slot)->incarnation,
		.state = RAS_DEAD,
		.cause = (uint8_t)cause,
		.observer_count = 1,
		.observers = {ras->self_id},
	};

	if (other != RAS_NO_SLOT)
		news.observers[news.observer_count++] = ras_entry(ras, other)->record->id;
	if (ras->liveness.census.word.at_ns != 0) {
		news.reached = ras->liveness.census.word.reached;
		news.of = ras->liveness.census.word.members;
	}
	ras->counters.deaths_declared++;
	ras_entry(ras, suspicion->slot)->flags |= PEER_DEATH_SEEN;
	membership_apply(ras, &news, NULL);
}

static bool
gone_is_confirmed(const struct ras *ras, const struct suspicion *suspicion, uint32_t *ret_other) {
	return own_observation(ras, suspicion) == OBSERVATION_GONE &&
	       witnesses_count(ras, suspicion, RAS_CAUSE_GONE, ret_other) >=
		       observers_needed(ras, suspicion->slot);
}

static uint64_t death_due_ns(const struct ras *ras, const struct suspicion *suspicion) {
	uint64_t dead_ns = ras->profile->dead_ns;

	if (sole_death_is_possible(ras, suspicion->slot))
		dead_ns *= ras->profile->sole_factor;
	return suspicion->silent_ns + dead_ns;
}

static void death_hold_back(struct ras *ras, uint32_t slot, enum ras_cause cause) {
	if (ras_entry(ras, slot)->state == RAS_UNREACHABLE)
		return;
	peers_set_local(&ras->peers, slot, RAS_UNREACHABLE, cause, ras->observed_ns);
	ras_emit(ras, RAS_EVENT_UNREACHABLE, slot, cause, 0);
}

// Adopt a reported death if this minority side would otherwise hold it back for ever. The reporter
// was allowed to declare it: in a view of two, or with two witnesses. Without adoption the peer
// would be dead there and unreachable here. A majority side needs no report: it may declare the
// death itself after a time. Returns true if the death was adopted.
static bool adopt_reported_death(struct ras *ras, const struct suspicion *suspicion) {
	struct peer_news told = suspicion->told;
	uint32_t slot = suspicion->slot;

	if (told.id == 0 || (told.observer_count < 2 && told.of > 2) ||
	    !brake_is_minority_side(ras) || told.incarnation < ras_entry(ras, slot)->incarnation)
		return false;
	membership_apply(ras, &told, NULL); // this also removes the suspicion
	if (peer_is_member(ras_entry(ras, slot)))
		return false;
	ras_entry(ras, slot)->flags |= PEER_DEATH_SEEN;
	return true;
}

// Return true if a confirmed death may be declared, by a census that began at `since_ns` or later.
// False if this agent declared the same death recently and was wrong, or if the brake holds it
// back.
static bool death_is_allowed(
	struct ras *ras, struct suspicion *suspicion, enum ras_cause cause, uint64_t since_ns
) {
	uint32_t slot;

	if (witness_is_barred(ras, suspicion->slot, cause, ras->self_slot)) {
		death_hold_back(ras, suspicion->slot, cause);
		return false;
	}
	slot = suspicion->slot;
	switch (brake_decision(ras, suspicion->silent_ns, since_ns)) {
	case BRAKE_UNKNOWN:
		suspicion->open = true; // the answers stay valid until the census ends
		suspicion->agreed = true;
		return false;
	case BRAKE_HELD:
		if (!adopt_reported_death(ras, suspicion))
			death_hold_back(ras, slot, cause);
		return false;
	case BRAKE_FREE:
		break;
	}
	return true;
}

// Declare a peer exited that ran on this host and for which its kernel twice had no listener. The
// process has exited, unless it only closed its listener. In that case another member hears it, so
// all are asked, even while the brake holds. No partition lies between the peer and this agent, so
// no member of another side can be declared dead this way.
static void suspicion_decide_exited(struct ras *ras, struct suspicion *suspicion) {
	const struct link *link = link_find(ras, suspicion->slot);
	uint64_t id = ras_entry(ras, suspicion->slot)->record->id;

	if (link == NULL || !link->gone || !link->exited)
		return;
	if (witness_is_barred(ras, suspicion->slot, RAS_CAUSE_EXITED, ras->self_slot))
		return;
	switch (brake_subject_heard_since(ras, id, link->refused_ns)) {
	case BRAKE_HEARD_NOT_ASKED:
		suspicion->open = true;
		suspicion->agreed = true;
		return;
	case BRAKE_HEARD_BY_SOME:
		liveness_proof_of_life(ras, suspicion->slot, ras->self_id);
		return;
	case BRAKE_HEARD_BY_NONE:
		death_declare(ras, suspicion, RAS_CAUSE_EXITED, RAS_NO_SLOT);
		return;
	}
}

// Declare a death that enough observers confirm and the brake allows, unless a member hears the
// subject. The census of another origin may have asked about other subjects; then our own census
// asks. Both observers may have lost the subject in a past partition and not have heard it since.
static void
death_settle(struct ras *ras, struct suspicion *suspicion, enum ras_cause cause, uint32_t other) {
	enum brake_subject_heard hears =
		brake_subject_heard(ras, ras_entry(ras, suspicion->slot)->record->id);
	uint64_t from_ns = ras->liveness.census.word.from_ns;

	// A member that joined after the census began was not asked, and may hear the subject. The
	// census is repeated only once: with a constant flow of joins, deaths would otherwise wait
	// for ever.
	if (hears == BRAKE_HEARD_BY_NONE && !suspicion->recounted && from_ns != 0 &&
	    ras->liveness.joined_ns > from_ns) {
		suspicion->recounted = true;
		hears = BRAKE_HEARD_NOT_ASKED;
	}
	switch (hears) {
	case BRAKE_HEARD_NOT_ASKED:
		brake_request_census(ras, ras->observed_ns);
		suspicion->open = true;
		suspicion->agreed = true;
		return;
	case BRAKE_HEARD_BY_SOME:
		liveness_proof_of_life(ras, suspicion->slot, ras->self_id);
		return;
	case BRAKE_HEARD_BY_NONE:
		death_declare(ras, suspicion, cause, other);
		return;
	}
}

static void suspicion_decide_gone(struct ras *ras, struct suspicion *suspicion) {
	const struct link *link = link_find(ras, suspicion->slot);
	uint32_t other = RAS_NO_SLOT;

	if (!gone_is_confirmed(ras, suspicion, &other) ||
	    (sole_death_is_possible(ras, suspicion->slot) &&
	     ras->observed_ns - link->refused_ns <
		     ras->profile->sole_factor * ras->profile->gone_recheck_ns))
		return;
	if (death_is_allowed(ras, suspicion, RAS_CAUSE_GONE, link->refused_ns))
		death_settle(ras, suspicion, RAS_CAUSE_GONE, other);
}

static void suspicion_decide_silent(struct ras *ras, struct suspicion *suspicion) {
	uint32_t other = RAS_NO_SLOT;
	uint32_t seen = witnesses_count(ras, suspicion, RAS_CAUSE_SILENT, &other);
	uint64_t since_ns = ras->observed_ns - ras->profile->confirm_ns - COUNT_SPARE_NS;

	// A census made at the beginning of a look is still fresh at its end.
	if (ras->observed_ns < death_due_ns(ras, suspicion) ||
	    own_observation(ras, suspicion) == OBSERVATION_NONE ||
	    !death_is_allowed(ras, suspicion, RAS_CAUSE_SILENT, since_ns))
		return;
	if (seen >= observers_needed(ras, suspicion->slot))
		death_settle(ras, suspicion, RAS_CAUSE_SILENT, other);
	// No observer is left to ask. Hold the peer as unreachable: a mere suspect would block its
	// name for a new start at another address for ever.
	else if (suspicion->asked_count == 0)
		death_hold_back(ras, suspicion->slot, RAS_CAUSE_SILENT);
}

static void look_round_open(struct ras *ras, struct suspicion *suspicion) {
	uint32_t slot = suspicion->slot;
	struct link *link = link_find(ras, slot);

	suspicion->open = true;
	suspicion->agreed = false;
	suspicion->due_ns = ras->observed_ns + ras->profile->confirm_ns;
	suspicion->round = ++ras->liveness.round;
	suspicion->asked_count = 0;
	if (link == NULL)
		link = link_want(ras, slot, RAS_USE_CHECK);
	if (link != NULL) {
		link->watched = true;
		link_probe(ras, link);
	}
	// Silence may lead to death at the end of this round: begin a census of the view.
	if (suspicion->due_ns >= death_due_ns(ras, suspicion))
		brake_request_census(ras, brake_census_fresh_since_ns(ras));
	if (ras->profile->observers > 1)
		look_ask_observers(ras, suspicion);
	if (suspicion->asked_count == 0 && suspicion->cause == RAS_CAUSE_GONE)
		suspicion->due_ns = ras->observed_ns + ras->profile->gone_recheck_ns;
	suspicion->rounds++;
}

// Return when the next round begins. The last round ends when death by silence is due.
static uint64_t next_round_due_ns(struct ras *ras, const struct suspicion *suspicion) {
	uint64_t last = death_due_ns(ras, suspicion) - ras->profile->confirm_ns;
	enum ras_cause cause = own_observation(ras, suspicion) == OBSERVATION_GONE
				       ? RAS_CAUSE_GONE
				       : RAS_CAUSE_SILENT;
	uint64_t barred = turns_barred_until(ras, suspicion->slot, cause, ras->self_id);

	if (barred > ras->observed_ns && !suspicion->open &&
	    ras_entry(ras, suspicion->slot)->state == RAS_UNREACHABLE)
		return barred;
	if (ras->liveness.brake && !suspicion->open &&
	    ras_entry(ras, suspicion->slot)->state == RAS_UNREACHABLE)
		return ras->observed_ns + ras_jitter(ras, HELD_LOOK_NS);
	if (!suspicion->open && ras->observed_ns < ras->liveness.brake_released_until_ns &&
	    ras_entry(ras, suspicion->slot)->state == RAS_UNREACHABLE &&
	    suspicion->silent_ns + ras->profile->brake_hold_ns > ras->observed_ns)
		return suspicion->silent_ns + ras->profile->brake_hold_ns;
	if (suspicion->open || suspicion->cause == RAS_CAUSE_GONE || last < ras->observed_ns)
		return ras->observed_ns + ras->profile->gone_recheck_ns;
	return last;
}

// Take the next step of a suspicion. Returns true if the suspicion has ended.
static bool suspicion_step(struct ras *ras, uint32_t slot) {
	struct suspicion *suspicion = suspicion_find(ras, slot);
	enum ras_state state;

	if (!suspicion->open) {
		look_round_open(ras, suspicion);
		return suspicion_find(ras, slot) == NULL;
	}
	suspicion->open = false;
	suspicion_decide_exited(ras, suspicion);
	suspicion = suspicion_find(ras, slot);
	if (suspicion != NULL && !suspicion->open)
		suspicion_decide_gone(ras, suspicion);
	suspicion = suspicion_find(ras, slot);
	if (suspicion != NULL && !suspicion->open)
		suspicion_decide_silent(ras, suspicion);
	suspicion = suspicion_find(ras, slot);
	if (suspicion == NULL)
		return true;
	state = ras_entry(ras, slot)->state;
	if (state != RAS_UNREACHABLE && !suspicion->open &&
	    ras->observed_ns - suspicion->started_ns > ras->profile->suspicion_max_ns) {
		// Too few observers could look: begin again with new evidence.
		peers_set_local(&ras->peers, slot, RAS_ALIVE, RAS_CAUSE_NONE, ras->observed_ns);
		ras_emit(ras, RAS_EVENT_ALIVE, slot, RAS_CAUSE_TIMEOUT, 0);
		suspicion_remove(ras, suspicion);
		return true;
	}
	suspicion->due_ns = next_round_due_ns(ras, suspicion);
	return false;
}

void liveness_peer_refused(struct ras *ras, struct link *link) {
	if (ras->joined && link->connects > 0 && peer_is_member(ras_entry(ras, link->slot)))
		brake_request_census(ras, ras->observed_ns);
}

void liveness_census_reached_all(struct ras *ras, const struct census_outcome *word) {
	for (uint32_t n = 0; n < ras->liveness.suspicion_count;) {
		const struct suspicion *suspicion = &ras->liveness.suspicions[n];
		uint32_t count = ras->liveness.suspicion_count;
		uint64_t id = ras_entry(ras, suspicion->slot)->record->id;

		// Non-members are counted too, so one of them may compensate for this member.
		if (suspicion->silent_ns < word->from_ns &&
		    brake_subject_heard(ras, id) != BRAKE_HEARD_BY_NONE)
			liveness_proof_of_life(ras, suspicion->slot, word->origin);
		// The proof removes the suspicion; the last one takes its index.
		n += ras->liveness.suspicion_count == count;
	}
}

void liveness_census_done(struct ras *ras) {
	for (uint32_t n = 0; n < ras->liveness.suspicion_count; n++) {
		struct suspicion *suspicion = &ras->liveness.suspicions[n];

		if (!suspicion->open || !suspicion->agreed)
			continue;
		suspicion->due_ns = ras->observed_ns;
		ras_wake_at(ras, suspicion->due_ns);
	}
}

void liveness_recheck_held(struct ras *ras) {
	for (uint32_t n = 0; n < ras->liveness.suspicion_count; n++) {
		struct suspicion *suspicion = &ras->liveness.suspicions[n];

		if (ras_entry(ras, suspicion->slot)->state != RAS_UNREACHABLE || suspicion->open)
			continue;
		suspicion->due_ns = ras->observed_ns + ras_random(ras) % RAS_NS_PER_SEC;
		ras_wake_at(ras, suspicion->due_ns);
	}
}

void liveness_observation(
	struct ras *ras,
	uint32_t slot,
	uint32_t round,
	uint32_t from,
	enum observation observation,
	uint32_t heard_ms
) {
	struct suspicion *suspicion = suspicion_find(ras, slot);
	uint64_t heard_ago_ns = (uint64_t)heard_ms * RAS_NS_PER_MS;
	uint64_t veto_ns = ras->observed_ns + ras->profile->gone_recheck_ns;
	bool waiting = false;
	uint32_t other;

	if (observation == OBSERVATION_ALIVE) {
		if (suspicion != NULL)
			liveness_proof_of_life(ras, slot, ras_entry(ras, from)->record->id);
		return;
	}
	if (suspicion == NULL || suspicion->round != round || !suspicion->open)
		return;
	// Start the silence later if a witness heard the peer after we did. Our own link had failed
	// before the peer's last message. If the peer fell silent to all at once, no witness heard
	// it later.
	if (observation == OBSERVATION_SILENT && heard_ms != LOOK_NEVER_MS &&
	    heard_ago_ns < ras->observed_ns - suspicion->silent_ns)
		suspicion->silent_ns = ras->observed_ns - heard_ago_ns;
	for (uint32_t n = 0; n < suspicion->asked_count; n++) {
		if (suspicion->asked[n] == from)
			suspicion->observations[n] = observation;
		waiting = waiting || suspicion->observations[n] == OBSERVATION_NONE;
	}
	if (suspicion->cause != RAS_CAUSE_GONE)
		return;
	// Enough observers saw the peer gone. The others have a short time left to prove it alive.
	if (!waiting)
		suspicion->due_ns = ras->observed_ns;
	else if (gone_is_confirmed(ras, suspicion, &other) && veto_ns < suspicion->due_ns)
		suspicion->due_ns = veto_ns;
	ras_wake_at(ras, suspicion->due_ns);
}

void liveness_tick(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;

	for (uint32_t n = 0; n < liveness->suspicion_count;) {
		struct suspicion *suspicion = &liveness->suspicions[n];

		if (suspicion->due_ns <= ras->observed_ns && suspicion_step(ras, suspicion->slot))
			continue; // the last suspicion has taken its index
		ras_wake_at(ras, liveness->suspicions[n].due_ns);
		n++;
	}
	looks_tick(ras);
	brake_tick(ras);
}
