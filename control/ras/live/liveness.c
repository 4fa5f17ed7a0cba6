// SPDX-License-Identifier: BSD-3-Clause
// Suspicions: how evidence against a peer becomes a verdict.
//
//	silence 3 s ── suspect, round of looks ── 6.7 s last round ── 8.7 s dead, or held
//	refused twice ── suspect, round of looks ── first other that is refused twice too: dead
//	proof of life, from anybody, at any time ── alive
//
// Looks and answers are in liveness_look.c, the brake in liveness_brake.c.
#include "live/liveness.h"

#include "core/core.h"
#include "live/liveness_witness.h"

#define GONE_HOLD_NS (500 * RAS_NS_PER_MS)  // ring neighbours speak first of who is gone
#define CROWD 4				    // among so few everybody speaks at once
#define COUNT_SPARE_NS (2 * RAS_NS_PER_SEC) // older than its round a count may be
#define HELD_LOOK_NS (60 * RAS_NS_PER_SEC)  // at one whom the brake holds, if nothing changes

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

static bool is_ring_neighbour(const struct ras *ras, uint32_t slot) {
	return slot == ras->ring.sides[RING_NEXT].primary ||
	       slot == ras->ring.sides[RING_PREV].primary;
}

// Who saw it go by a reset are many, and all at once; two are enough, so those beside it in
// the ring begin and the rest follow only if nothing came of it.
static uint64_t first_round(struct ras *ras, uint32_t slot, enum ras_cause cause) {
	if (cause != RAS_CAUSE_GONE || is_ring_neighbour(ras, slot) ||
	    peers_ring_count(&ras->peers) <= CROWD)
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
			suspicion->due_ns = first_round(ras, slot, cause);
			ras_wake_at(ras, suspicion->due_ns);
		}
		return;
	}
	if (liveness->suspicion_count == LIVENESS_SUSPICIONS_MAX ||
	    memory_grow(
		    &ras->memory, (void **)&liveness->suspicions, &liveness->suspicion_capacity,
		    liveness->suspicion_count + 1, sizeof(*liveness->suspicions)
	    ) != 0)
		return; // the evidence stays; it is brought again
	liveness->suspicions[liveness->suspicion_count++] = (struct suspicion){
		.slot = slot,
		.incarnation = ras_entry(ras, slot)->incarnation,
		.cause = cause,
		.started_ns = ras->observed_ns,
		.silent_ns = silent_ns,
		.due_ns = first_round(ras, slot, cause),
	};
	ras_wake_at(ras, ras->observed_ns);
	if (link != NULL)
		link->watched = true;
	ras->counters.suspicions++;
	if (ras_entry(ras, slot)->state == RAS_ALIVE)
		peers_set_local(&ras->peers, slot, RAS_SUSPECT, cause, ras->observed_ns);
	ras_emit(ras, RAS_EVENT_SUSPECT, slot, cause, ras->observed_ns - silent_ns);
	look_tell(ras, slot);
}

// Whoever was proven alive by another observer was not silent until then, but our way was bad.
void liveness_silent(struct ras *ras, struct link *link) {
	uint64_t silent_ns = ras->observed_ns - link_silence_ns(ras, link);

	peer_suspect(
		ras, link->slot, RAS_CAUSE_SILENT,
		silent_ns > link->proven_ns ? silent_ns : link->proven_ns
	);
}

void liveness_gone(struct ras *ras, struct link *link) {
	look_gone(ras, link->slot);
	// Whoever had no connection has lost none: a firewall may refuse newcomers and let those
	// be who are connected. He may bear witness, but does not accuse.
	if (link->connects > 0)
		peer_suspect(ras, link->slot, RAS_CAUSE_GONE, link->refused_ns);
}

void liveness_reported(struct ras *ras, uint32_t slot, uint64_t age_ns) {
	uint64_t since = age_ns < ras->observed_ns ? ras->observed_ns - age_ns : 0;
	struct link *link = link_find(ras, slot);

	if (link != NULL && !link->unheard && link->heard_ns > since)
		return; // heard after what is reported was seen
	// Somebody's word raises the suspicion; the time that kills is of our own looking.
	peer_suspect(ras, slot, RAS_CAUSE_REPORT, ras->observed_ns);
}

// Of thousands who hear of it some look.
void liveness_passed_on(struct ras *ras, uint64_t subject) {
	uint32_t slot = peers_find(&ras->peers, subject);

	if (slot != RAS_NO_SLOT && !votes_has_none(ras) &&
	    ras_random(ras) % peers_ring_count(&ras->peers) < CROWD)
		liveness_reported(ras, slot, 0);
}

void liveness_told(struct ras *ras, uint32_t slot, const struct peer_news *news) {
	struct suspicion *suspicion;

	liveness_reported(ras, slot, 0);
	suspicion = suspicion_find(ras, slot);
	if (suspicion == NULL)
		return;
	// Whom we hold it is looked at once a minute only.
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
		link_check(ras, link);
}

// A proof by another observer excuses our own silence for a while: it is our way that is bad.
static void link_excuse(struct ras *ras, uint32_t slot) {
	struct link *link = link_find(ras, slot);

	if (link == NULL)
		return;
	link->proven_ns = ras->observed_ns;
	link->excused_ns = ras->observed_ns + 2 * ras->profile->suspect_ns;
	link->gone = false;
	link->refused_ns = RAS_NEVER;
	link->checked_ns = RAS_NEVER;
	link->watched = true;
}

void liveness_proof(struct ras *ras, uint32_t slot, uint64_t observer) {
	struct peer_entry *entry = ras_entry(ras, slot);
	struct suspicion *suspicion = suspicion_find(ras, slot);
	enum ras_state was = entry->state;

	if (!peer_is_member(entry))
		return; // it has to refute its death itself, and will, being told of it
	if (observer == 0)
		entry->flags |= PEER_SEEN;
	else
		link_excuse(ras, slot);
	// First, for what is sent below may change the list.
	if (suspicion != NULL)
		suspicion_remove(ras, suspicion);
	look_alive(ras, slot);
	if (was == RAS_ALIVE || ras_entry(ras, slot)->state != was)
		return;
	ras->counters.suspicions_cleared++;
	if (was == RAS_UNREACHABLE)
		brake_count(ras, brake_count_is_fresh_since(ras)); // more may be back
	peers_set_local(&ras->peers, slot, RAS_ALIVE, RAS_CAUSE_REFUTED, ras->observed_ns);
	ras_emit(
		ras, was == RAS_SUSPECT ? RAS_EVENT_REFUTED : RAS_EVENT_ALIVE, slot,
		RAS_CAUSE_REFUTED, observer
	);
	ring_changed(ras);
}

void liveness_was_deaf(struct ras *ras) {
	for (uint32_t n = 0; n < ras->links.count; n++)
		ras->links.table[n]->proven_ns = ras->observed_ns;
	for (uint32_t n = 0; n < ras->liveness.suspicion_count; n++) {
		struct suspicion *suspicion = &ras->liveness.suspicions[n];

		if (ras_entry(ras, suspicion->slot)->state == RAS_SUSPECT)
			suspicion->silent_ns = ras->observed_ns;
	}
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

void liveness_begin_anew(struct ras *ras) {
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

// Only a member's word counts; and the slot may be another's before the round is over.
static void word_forget(struct suspicion *suspicion, uint32_t slot) {
	for (uint32_t n = 0; n < suspicion->asked_count; n++) {
		if (suspicion->asked[n] != slot)
			continue;
		suspicion->asked_count--;
		suspicion->asked[n] = suspicion->asked[suspicion->asked_count];
		suspicion->observations[n] = suspicion->observations[suspicion->asked_count];
		return; // nobody is asked twice
	}
}

void liveness_forget(struct ras *ras, uint32_t slot) {
	struct suspicion *suspicion = suspicion_find(ras, slot);

	if (suspicion != NULL)
		suspicion_remove(ras, suspicion);
	for (uint32_t n = 0; n < ras->liveness.suspicion_count; n++)
		word_forget(&ras->liveness.suspicions[n], slot);
	look_forget(ras, slot);
}

// Rounds.

#ifdef RAS_BREAK_SECOND_OBSERVER
// Wrong on purpose (only in tocsin-sim-broken): one observer is enough to declare a peer dead. The
// simulator's swarm has to find that.
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

static bool is_sole(const struct ras *ras, uint32_t slot) {
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
	ras_entry(ras, suspicion->slot)->flags |= PEER_DECLARED;
	membership_apply(ras, &news, NULL);
}

static bool
gone_is_seen(const struct ras *ras, const struct suspicion *suspicion, uint32_t *ret_other) {
	return own_observation(ras, suspicion) == OBSERVATION_GONE &&
	       witnesses_count(ras, suspicion, RAS_CAUSE_GONE, ret_other) >=
		       observers_needed(ras, suspicion->slot);
}

static uint64_t dead_alone_at(const struct ras *ras, uint64_t since_ns) {
	return since_ns + ras->profile->sole_factor * ras->profile->dead_ns;
}

static uint64_t dead_at(const struct ras *ras, const struct suspicion *suspicion) {
	return is_sole(ras, suspicion->slot) ? dead_alone_at(ras, suspicion->silent_ns)
					     : suspicion->silent_ns + ras->profile->dead_ns;
}

static void death_hold(struct ras *ras, uint32_t slot, enum ras_cause cause) {
	if (ras_entry(ras, slot)->state == RAS_UNREACHABLE)
		return;
	peers_set_local(&ras->peers, slot, RAS_UNREACHABLE, cause, ras->observed_ns);
	ras_emit(ras, RAS_EVENT_UNREACHABLE, slot, cause, 0);
}

// Who declared it, in a view of two or as the last host of one, was free to; we, who see the same
// in a part that waits for ever, take that over as it is. Held here and dead there it would be two
// views. A larger part needs no such word: it may declare by itself after a time.
static bool is_taken_as_told(struct ras *ras, const struct suspicion *suspicion) {
	struct peer_news told = suspicion->told;
	uint32_t slot = suspicion->slot;

	if (told.id == 0 || (told.observer_count < 2 && told.of > 2) || !brake_waits(ras) ||
	    told.incarnation < ras_entry(ras, slot)->incarnation)
		return false;
	membership_apply(ras, &told, NULL); // with the membership the suspicion goes
	if (peer_is_member(ras_entry(ras, slot)))
		return false;
	ras_entry(ras, slot)->flags |= PEER_DECLARED;
	return true;
}

// What the brake says to a death that is agreed on, if it is by a count of that time or later; and
// whether we declared it a moment ago and were wrong. True if it may be declared.
static bool
is_free(struct ras *ras, struct suspicion *suspicion, enum ras_cause cause, uint64_t since_ns) {
	uint32_t slot;

	if (witness_is_barred(ras, suspicion->slot, cause, ras->self_slot)) {
		death_hold(ras, suspicion->slot, cause);
		return false;
	}
	slot = suspicion->slot;
	switch (brake_word(ras, suspicion->silent_ns, since_ns)) {
	case BRAKE_UNKNOWN:
		suspicion->open = true; // what was seen holds until the count is there
		suspicion->agreed = true;
		return false;
	case BRAKE_HELD:
		if (!is_taken_as_told(ras, suspicion))
			death_hold(ras, slot, cause);
		return false;
	case BRAKE_FREE:
		break;
	}
	return true;
}

// It is of our host, whose kernel twice knew of nobody who listens: it has exited, unless it closed
// its listener. Then somebody hears it, so all have to be asked, also where the brake holds: no gap
// is between it and us, and nobody who is on the other side of one can be declared like this.
static bool exit_is_seen(const struct ras *ras, const struct suspicion *suspicion) {
	const struct link *link = link_find(ras, suspicion->slot);

	return link != NULL && link->gone && link->exited;
}

static void decide_exited(struct ras *ras, struct suspicion *suspicion) {
	const struct link *link = link_find(ras, suspicion->slot);
	uint64_t id = ras_entry(ras, suspicion->slot)->record->id;

	if (witness_is_barred(ras, suspicion->slot, RAS_CAUSE_EXITED, ras->self_slot))
		return;
	switch (brake_hears_since(ras, id, link->refused_ns)) {
	case BRAKE_HEARS_UNASKED:
		suspicion->open = true;
		suspicion->agreed = true;
		return;
	case BRAKE_HEARS_IT:
		liveness_proof(ras, suspicion->slot, ras->self_id);
		return;
	case BRAKE_HEARS_NOBODY:
		death_declare(ras, suspicion, RAS_CAUSE_EXITED, RAS_NO_SLOT);
		return;
	}
}

// Whoever joined since the count began was not asked, and may hear the subject. Once only: where
// somebody joins all the time deaths would wait for ever.
static bool is_to_recount(const struct ras *ras, struct suspicion *suspicion) {
	uint64_t from_ns = ras->liveness.census.word.from_ns;

	if (suspicion->recounted || from_ns == 0 || ras->liveness.joined_ns <= from_ns)
		return false;
	suspicion->recounted = true;
	return true;
}

// A death that two agree on, and that the brake does not hold: does anybody hear the subject?
// Others may have asked about others: then a count of ours does. The two may both have lost it in a
// gap that is over, and not have heard it since.
static void suspicion_settle(
	struct ras *ras, struct suspicion *suspicion, enum ras_cause cause, uint32_t other
) {
	enum brake_hears hears = brake_hears(ras, ras_entry(ras, suspicion->slot)->record->id);

	if (hears == BRAKE_HEARS_NOBODY && is_to_recount(ras, suspicion))
		hears = BRAKE_HEARS_UNASKED;
	switch (hears) {
	case BRAKE_HEARS_UNASKED:
		brake_count(ras, ras->observed_ns);
		suspicion->open = true;
		suspicion->agreed = true;
		return;
	case BRAKE_HEARS_IT:
		liveness_proof(ras, suspicion->slot, ras->self_id);
		return;
	case BRAKE_HEARS_NOBODY:
		death_declare(ras, suspicion, cause, other);
		return;
	}
}

static void decide_gone(struct ras *ras, struct suspicion *suspicion) {
	const struct link *link = link_find(ras, suspicion->slot);
	uint32_t other = RAS_NO_SLOT;

	if (!gone_is_seen(ras, suspicion, &other) ||
	    (is_sole(ras, suspicion->slot) &&
	     ras->observed_ns - link->refused_ns <
		     ras->profile->sole_factor * ras->profile->gone_recheck_ns))
		return;
	if (is_free(ras, suspicion, RAS_CAUSE_GONE, link->refused_ns))
		suspicion_settle(ras, suspicion, RAS_CAUSE_GONE, other);
}

static void decide_silent(struct ras *ras, struct suspicion *suspicion) {
	uint32_t other = RAS_NO_SLOT;
	uint32_t seen = witnesses_count(ras, suspicion, RAS_CAUSE_SILENT, &other);
	uint64_t since_ns = ras->observed_ns - ras->profile->confirm_ns - COUNT_SPARE_NS;

	// What is counted as a look begins serves at its end.
	if (ras->observed_ns < dead_at(ras, suspicion) ||
	    own_observation(ras, suspicion) == OBSERVATION_NONE ||
	    !is_free(ras, suspicion, RAS_CAUSE_SILENT, since_ns))
		return;
	if (seen >= observers_needed(ras, suspicion->slot))
		suspicion_settle(ras, suspicion, RAS_CAUSE_SILENT, other);
	// Nobody is left who could be asked. As a mere suspect it would keep its name from whoever
	// starts anew at another address, and that would be for good.
	else if (suspicion->asked_count == 0)
		death_hold(ras, suspicion->slot, RAS_CAUSE_SILENT);
}

static void round_open(struct ras *ras, struct suspicion *suspicion) {
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
		link_check(ras, link);
	}
	// In the round at whose end silence may kill, it is asked how the rest of the view is.
	if (suspicion->due_ns >= dead_at(ras, suspicion))
		brake_count(ras, brake_count_is_fresh_since(ras));
	if (ras->profile->observers > 1)
		look_ask(ras, suspicion);
	if (suspicion->asked_count == 0 && suspicion->cause == RAS_CAUSE_GONE)
		suspicion->due_ns = ras->observed_ns + ras->profile->gone_recheck_ns;
	suspicion->rounds++;
}

// When the next round begins: the last one so that it ends as the time that kills is up.
static uint64_t next_round(struct ras *ras, const struct suspicion *suspicion) {
	uint64_t last = dead_at(ras, suspicion) - ras->profile->confirm_ns;
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
	if (!suspicion->open && ras->observed_ns < ras->liveness.brake_free_ns &&
	    ras_entry(ras, suspicion->slot)->state == RAS_UNREACHABLE &&
	    suspicion->silent_ns + ras->profile->brake_hold_ns > ras->observed_ns)
		return suspicion->silent_ns + ras->profile->brake_hold_ns;
	if (suspicion->open || suspicion->cause == RAS_CAUSE_GONE || last < ras->observed_ns)
		return ras->observed_ns + ras->profile->gone_recheck_ns;
	return last;
}

// True if the suspicion is no more.
static bool suspicion_step(struct ras *ras, uint32_t slot) {
	struct suspicion *suspicion = suspicion_find(ras, slot);
	enum ras_state state;

	if (!suspicion->open) {
		round_open(ras, suspicion);
		return suspicion_find(ras, slot) == NULL;
	}
	suspicion->open = false;
	if (exit_is_seen(ras, suspicion))
		decide_exited(ras, suspicion);
	suspicion = suspicion_find(ras, slot);
	if (suspicion != NULL && !suspicion->open)
		decide_gone(ras, suspicion);
	suspicion = suspicion_find(ras, slot);
	if (suspicion != NULL && !suspicion->open)
		decide_silent(ras, suspicion);
	suspicion = suspicion_find(ras, slot);
	if (suspicion == NULL)
		return true;
	state = ras_entry(ras, slot)->state;
	if (state != RAS_UNREACHABLE && !suspicion->open &&
	    ras->observed_ns - suspicion->started_ns > ras->profile->suspicion_max_ns) {
		// Too few could look: begin anew, with what is then to be seen.
		peers_set_local(&ras->peers, slot, RAS_ALIVE, RAS_CAUSE_NONE, ras->observed_ns);
		ras_emit(ras, RAS_EVENT_ALIVE, slot, RAS_CAUSE_TIMEOUT, 0);
		suspicion_remove(ras, suspicion);
		return true;
	}
	suspicion->due_ns = next_round(ras, suspicion);
	return false;
}

void liveness_refused(struct ras *ras, struct link *link) {
	if (ras->joined && link->connects > 0 && peer_is_member(ras_entry(ras, link->slot)))
		brake_count(ras, ras->observed_ns);
}

void liveness_all_reached(struct ras *ras, const struct census_word *word) {
	for (uint32_t n = 0; n < ras->liveness.suspicion_count;) {
		const struct suspicion *suspicion = &ras->liveness.suspicions[n];
		uint32_t count = ras->liveness.suspicion_count;
		uint64_t id = ras_entry(ras, suspicion->slot)->record->id;

		// Strangers are counted, too, so it may be one of them who makes up for it.
		if (suspicion->silent_ns < word->from_ns &&
		    brake_hears(ras, id) != BRAKE_HEARS_NOBODY)
			liveness_proof(ras, suspicion->slot, word->origin);
		// With the proof the suspicion goes, and another takes its place.
		n += ras->liveness.suspicion_count == count;
	}
}

void liveness_counted(struct ras *ras) {
	for (uint32_t n = 0; n < ras->liveness.suspicion_count; n++) {
		struct suspicion *suspicion = &ras->liveness.suspicions[n];

		if (!suspicion->open || !suspicion->agreed)
			continue;
		suspicion->due_ns = ras->observed_ns;
		ras_wake_at(ras, suspicion->due_ns);
	}
}

void liveness_released(struct ras *ras) {
	for (uint32_t n = 0; n < ras->liveness.suspicion_count; n++) {
		struct suspicion *suspicion = &ras->liveness.suspicions[n];

		if (ras_entry(ras, suspicion->slot)->state != RAS_UNREACHABLE || suspicion->open)
			continue;
		suspicion->due_ns = ras->observed_ns + ras_random(ras) % RAS_NS_PER_SEC;
		ras_wake_at(ras, suspicion->due_ns);
	}
}

// A witness heard it after us: our way was bad already when it spoke last, and the time that kills
// begins then. Of one that fell silent to all at once none did.
static void silence_began(struct ras *ras, struct suspicion *suspicion, uint32_t heard_ms) {
	uint64_t ago_ns = (uint64_t)heard_ms * RAS_NS_PER_MS;

	if (heard_ms != LOOK_NEVER_MS && ago_ns < ras->observed_ns - suspicion->silent_ns)
		suspicion->silent_ns = ras->observed_ns - ago_ns;
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
	uint64_t veto_ns = ras->observed_ns + ras->profile->gone_recheck_ns;
	bool waiting = false;
	uint32_t other;

	if (observation == OBSERVATION_ALIVE) {
		if (suspicion != NULL)
			liveness_proof(ras, slot, ras_entry(ras, from)->record->id);
		return;
	}
	if (suspicion == NULL || suspicion->round != round || !suspicion->open)
		return;
	if (observation == OBSERVATION_SILENT)
		silence_began(ras, suspicion, heard_ms);
	for (uint32_t n = 0; n < suspicion->asked_count; n++) {
		if (suspicion->asked[n] == from)
			suspicion->observations[n] = observation;
		waiting = waiting || suspicion->observations[n] == OBSERVATION_NONE;
	}
	if (suspicion->cause != RAS_CAUSE_GONE)
		return;
	// Enough saw it gone; whoever was asked as well has a moment to say that it lives.
	if (!waiting)
		suspicion->due_ns = ras->observed_ns;
	else if (gone_is_seen(ras, suspicion, &other) && veto_ns < suspicion->due_ns)
		suspicion->due_ns = veto_ns;
	ras_wake_at(ras, suspicion->due_ns);
}

void liveness_tick(struct ras *ras) {
	struct liveness *liveness = &ras->liveness;

	for (uint32_t n = 0; n < liveness->suspicion_count;) {
		struct suspicion *suspicion = &liveness->suspicions[n];

		if (suspicion->due_ns <= ras->observed_ns && suspicion_step(ras, suspicion->slot))
			continue; // another has taken its place
		ras_wake_at(ras, liveness->suspicions[n].due_ns);
		n++;
	}
	looks_tick(ras);
	brake_tick(ras);
}
