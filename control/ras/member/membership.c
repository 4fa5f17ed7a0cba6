// SPDX-License-Identifier: BSD-3-Clause
// Applies updates to the peer table and performs all consequences in one fixed order: route around
// the peer, purge collectives and relay, drop the link, change the table, flood the update, emit
// the event. So no module ever sees a table that is half changed.
#include "core/core.h"

// An order makes each member forget the peers that it holds unreachable. Members that hold the same
// peer announce it at random times. So most of them hear of it from the first one.
#define ORDER_SPREAD_PER_MEMBER_NS \
	(20 * RAS_NS_PER_MS)			  // spread of the random times, for each member
#define ORDER_SPREAD_MAX_NS (10 * RAS_NS_PER_SEC) // upper bound of the spread
#define ORDER_GAP_NS RAS_NS_PER_SEC		  // between two batches of ORDER_BATCH_MAX peers
#define ORDER_BATCH_MAX 16
#define ORDER_RECENT_NS (20 * RAS_NS_PER_SEC) // time in which all members announce their peers
// A dead peer at whose address another agent answers is forgotten after this time.
#define GHOST_KEEP_NS (600 * RAS_NS_PER_SEC)

// Release everything that uses a peer whose membership, or whose start, is about to end.
static void peer_detach(struct ras *ras, uint32_t slot, enum ras_cause cause) {
	struct link *link = link_find(ras, slot);

	ring_exclude_peer(ras, slot);
	if (link != NULL) {
		parts_link_event(ras, link, LINK_LOST);
		// A leaving peer still reads what is queued. A dead or replaced one does not.
		link_drop(
			ras, link, cause == RAS_CAUSE_LEAVE ? RAS_CLOSE_SOFT : RAS_CLOSE_HARD, cause
		);
	}
	collective_peer_gone(ras, slot);
	ras->liveness.census.ended +=
		cause != RAS_CAUSE_RESTART && peer_is_member(ras_entry(ras, slot));
	liveness_forget_peer(ras, slot);
	contest_forget_peer(ras, slot);
}

// Return true if the update ends the membership or the start that the table holds.
static bool
news_end_membership(const struct ras *ras, uint32_t slot, const struct peer_news *news) {
	const struct peer_entry *entry = ras_entry(ras, slot);

	if (!peer_is_member(entry) || news->incarnation < entry->incarnation ||
	    peers_news_check(news) != 0 || peers_has_name_conflict(&ras->peers, slot, news))
		return false; // the merge will ignore the update
	if (ras_incarnation_start(news->incarnation) != ras_incarnation_start(entry->incarnation))
		return news->record != NULL; // without it, the merge waits until it was pulled
	return news->state != RAS_ALIVE;
}

// Return true if the update is about another run of the agent with the same start number. That run
// has lost its stored state, and takes a new start once a peer reports the duplicate to it. A
// change of address alone is no new run.
static bool
news_name_other_run(const struct ras *ras, uint32_t slot, const struct peer_news *news) {
	const struct ras_record *held = ras_entry(ras, slot)->record;

	return news->record != NULL && news->record->start == held->start &&
	       news->record->run != held->run && !peers_has_name_conflict(&ras->peers, slot, news);
}

static void peer_ended(struct ras *ras, uint32_t slot, struct link *from, bool known) {
	const struct peer_entry *entry = ras_entry(ras, slot);

	news_add(ras, slot, from, !known);
	parts_peer_changed(ras, slot);
	if (ras->ring.rebuild_ns == RAS_NEVER)
		ring_schedule_rebuild(ras);
	ras_emit(
		ras, entry->state == RAS_DEAD ? RAS_EVENT_DEAD : RAS_EVENT_LEFT, slot,
		entry->state == RAS_DEAD ? (enum ras_cause)entry->cause : RAS_CAUSE_LEAVE, 0
	);
}

static void change_apply_effects(
	struct ras *ras, uint32_t slot, struct link *from, enum peers_change change, bool known
) {
	switch (change) {
	case PEERS_SAME:
	case PEERS_RECORD_NEEDED:
	case PEERS_CONFLICT:
		return;
	case PEERS_JOINED:
		ras_emit(
			ras, RAS_EVENT_JOINED, slot, known ? RAS_CAUSE_RESTART : RAS_CAUSE_NONE,
			ras_entry(ras, slot)->record->start
		);
		if (known)
			parts_peer_changed(ras, slot);
		news_add(ras, slot, from, true);
		ring_schedule_rebuild(ras);
		break;
	case PEERS_REJOINED:
		votes_withdraw(ras, slot);
		news_add(ras, slot, from, false);
		parts_peer_changed(ras, slot);
		ring_schedule_rebuild(ras);
		ras_emit(ras, RAS_EVENT_REJOINED, slot, RAS_CAUSE_REFUTED, 0);
		break;
	case PEERS_REFUTED:
		// Each refutation reaches the neighbours of the peer. It is forwarded to other
		// members only if a death of the peer was contested here.
		must(ras_entry(ras, slot)->record != NULL);
		liveness_proof_of_life(ras, slot, ras_entry(ras, slot)->record->id);
		if (contest_end_if_refuted(ras, slot))
			news_add(ras, slot, from, false);
		break;
	case PEERS_DEAD:
	case PEERS_LEFT:
		peer_ended(ras, slot, from, known);
		break;
	case PEERS_MORE_WITNESSES:
	case PEERS_MAINT_VERSION:
		news_add(ras, slot, from, false);
		break;
	case PEERS_MAINT:
		news_add(ras, slot, from, false);
		ras_emit(
			ras, RAS_EVENT_MAINT, slot, RAS_CAUSE_NONE, ras_entry(ras, slot)->maint & 1
		);
		break;
	case PEERS_RECORD:
		news_add(ras, slot, from, true);
		break;
	}
	ras->counters.news_fresh++;
	if (ras_entry(ras, slot)->hops > ras->counters.news_hops_max)
		ras->counters.news_hops_max = ras_entry(ras, slot)->hops;
}

void ras_handle_own_death(struct ras *ras, uint64_t incarnation, enum ras_cause cause) {
	uint64_t before = ras_self(ras)->incarnation;
	const struct peer_entry *self;

	// If our start number was only guessed, an earlier run may have used it and have died.
	if (ras->start_guessed && incarnation >= before &&
	    ras_supersede_earlier_run(ras, ras_incarnation_start(incarnation)))
		return;
	ras_refute_suspicion(ras, incarnation);
	self = ras_self(ras);
	if (ras_incarnation_start(incarnation) != ras_incarnation_start(before) ||
	    incarnation >= self->incarnation || incarnation < ras->deaths_reported)
		return; // the death of another start, a death not refuted, or one already announced
	ras->deaths_reported = incarnation + 1;
	if (ras_incarnation_start(self->incarnation) != ras_incarnation_start(before))
		cause = RAS_CAUSE_RESTART; // the refutations of the start were used up
	ras_emit(ras, RAS_EVENT_DECLARED_DEAD, ras->self_slot, cause, self->incarnation);
	liveness_reset(ras);
	votes_withdraw(ras, ras->self_slot);
}

static const struct sock_addr *news_address(const struct peer_news *news) {
	return news->record != NULL ? &news->record->address : NULL;
}

// Return true if the update is about an earlier run of this agent with the same start number. That
// run's record differs from ours. This run has lost the state of the earlier one.
static bool news_name_earlier_run(const struct ras *ras, const struct peer_news *news) {
	const struct ras_record *own = ras_self(ras)->record;

	return ras->joined && news->record != NULL && news->record->start == own->start &&
	       news->record->digest != own->digest &&
	       sock_addr_equal(&news->record->address, &own->address);
}

static void self_apply_news(struct ras *ras, const struct peer_news *news) {
	const struct peer_entry *self = ras_self(ras);
	bool names_unknown_start;
	struct peer_news own;
	enum peers_change change;
	uint32_t slot;

	// Any member may set the maintenance switch.
	peers_news_fill(&ras->peers, ras->self_slot, &own);
	if (news->maint > own.maint) {
		own.maint = news->maint;
		if (peers_merge(&ras->peers, &own, ras->observed_ns, &change, &slot) == 0)
			change_apply_effects(ras, slot, NULL, change, true);
	}
	if (news_name_earlier_run(ras, news)) {
		ras_supersede_earlier_run(ras, news->record->start);
		return;
	}
	if (ras->leaving)
		return;
	// A record with our name that another holder owns, and that is above ours, see rival.h.
	if (news->state == RAS_ALIVE && ras->joined && news->record != NULL &&
	    rival_outranks_us(ras, news->record)) {
		ras_emit_conflict(ras, ras->self_slot, news->incarnation, &news->record->address);
		rival_call(ras, &news->record->address, news->record->start + 1);
		return;
	}
	// A start of our own that we do not know of: the record has our own address.
	names_unknown_start = ras->joined && news->incarnation > self->incarnation &&
			      news->record != NULL && news->record != self->record;
	if (news->state != RAS_ALIVE && ras->joined) {
		ras_handle_own_death(ras, news->incarnation, news->cause);
	} else if (news->incarnation < self->incarnation) {
		return; // an older incarnation
	} else if (news->state != RAS_ALIVE) {
		// The table that we receive as a joiner holds an earlier run of ours as dead.
		ras->join.start = ras_incarnation_start(news->incarnation) + 1;
	} else if (names_unknown_start) {
		ras_emit_conflict(ras, ras->self_slot, news->incarnation, news_address(news));
	}
}

bool membership_apply_reported(struct ras *ras, const struct peer_news *news, struct link *from) {
	if (news->state == RAS_DEAD && news->id != ras->self_id &&
	    !contest_death_is_accepted(ras, peers_find(&ras->peers, news->id), news))
		return true;
	return membership_apply(ras, news, from);
}

// Update what is kept about the peer, if the merge changed its start or revoked its death.
static void memory_update(struct ras *ras, uint32_t slot, const struct peer_entry *before) {
	const struct peer_entry *entry = ras_entry(ras, slot);

	if (ras_incarnation_start(entry->incarnation) !=
	    ras_incarnation_start(before->incarnation)) {
		turns_forget_peer(ras, slot);
		votes_orphan_late_report(ras, before->flags);
	} else if (before->state == RAS_DEAD && peer_is_member(entry)) {
		turns_note_return(ras, slot, before);
	}
}

bool membership_apply(struct ras *ras, const struct peer_news *news, struct link *from) {
	uint32_t slot = peers_find(&ras->peers, news->id);
	bool known = slot != RAS_NO_SLOT;
	bool replaced = known && news_name_other_run(ras, slot, news);
	bool counts = votes_joiner_has_vote(ras, slot);
	struct peer_entry before = {0};
	uint64_t fingerprint = 0;
	enum peers_change change;
	int err;

	if (news->id == ras->self_id) {
		self_apply_news(ras, news);
		return true;
	}
	if (known && key_change_needs_proof(ras, slot, news)) {
		key_change_refuse(ras, slot, news, from != NULL ? from->peer : 0);
		return true;
	}
	if (known && news_end_membership(ras, slot, news))
		peer_detach(
			ras, slot,
			news->state == RAS_DEAD	  ? RAS_CAUSE_DEATH
			: news->state == RAS_LEFT ? RAS_CAUSE_LEAVE
						  : RAS_CAUSE_RESTART
		);
	if (known) {
		before = *ras_entry(ras, slot);
		fingerprint = ras_key_fingerprint(before.record->key);
	}
	err = peers_merge(&ras->peers, news, ras->observed_ns, &change, &slot);
	if (err == -EBADMSG)
		ras->counters.frames_unexpected++; // the record does not match the update
	if (err != 0) {
		ring_schedule_rebuild(ras); // peer_detach() may have taken the peer out of the ring
		return true; // after -ENOMEM the comparison of tables delivers it again
	}
	if (slot != RAS_NO_SLOT && ras_entry(ras, slot)->record != before.record)
		join_note_seed_slot(ras, slot);
	if (known)
		memory_update(ras, slot, &before);
	if (replaced)
		relay_peer_changed(ras, slot); // messages under way were meant for one run only
	if (change == PEERS_JOINED)
		ras->liveness.joined_ns = ras->observed_ns;
	if (change == PEERS_JOINED || change == PEERS_REJOINED)
		hearsay_forget(ras, news->id);
	if (change == PEERS_JOINED && !counts)
		votes_note_join_in_partition(ras, slot, (before.flags & PEER_READMITTED) != 0);
	else if (change == PEERS_JOINED)
		votes_note_join(ras, slot, known && peer_is_member(&before));
	if (change == PEERS_CONFLICT)
		ras_emit_conflict(ras, slot, news->incarnation, news_address(news));
	else if (change != PEERS_RECORD_NEEDED)
		change_apply_effects(ras, slot, from, change, known);
	// A refutation, a departure, a death or a late record may bring another key, too.
	if (known && ras_key_fingerprint(ras_entry(ras, slot)->record->key) != fingerprint)
		ras_emit(ras, RAS_EVENT_KEY_CHANGED, slot, RAS_CAUSE_RESTART, fingerprint);
	return change != PEERS_RECORD_NEEDED;
}

static int maintenance_merge(struct ras *ras, uint32_t slot, uint32_t version) {
	struct peer_news news;
	enum peers_change change;
	int err;

	if (version > RAS_MAINT_VERSION_MAX)
		return -EOVERFLOW;
	peers_news_fill(&ras->peers, slot, &news);
	news.maint = version;
	// membership_apply() would not apply an update about ourselves.
	err = peers_merge(&ras->peers, &news, ras->observed_ns, &change, &slot);
	if (err == 0)
		change_apply_effects(ras, slot, NULL, change, true);
	return err;
}

int ras_set_maintenance(struct ras *ras, uint64_t now_ns, uint64_t peer, bool on) {
	uint32_t slot;
	int err = -ENOENT;

	ras_enter(ras, now_ns);
	slot = peers_find(&ras->peers, peer);
	if (slot != RAS_NO_SLOT) {
		uint32_t version = ras_entry(ras, slot)->maint;

		err = maintenance_merge(ras, slot, version + ((version & 1) != on));
	}
	ras_exit(ras);
	return err;
}

int ras_restore_maintenance(struct ras *ras, uint64_t now_ns, uint64_t peer, uint32_t version) {
	uint32_t slot;
	int err = -ENOENT;

	ras_enter(ras, now_ns);
	slot = peers_find(&ras->peers, peer);
	if (slot != RAS_NO_SLOT)
		err = maintenance_merge(ras, slot, version);
	ras_exit(ras);
	return err;
}

static void tombstone_remove(struct ras *ras, uint32_t slot, bool expired) {
	foreign_drop_peer(ras, ras_entry(ras, slot)->record->id);
	// Its address is forgotten, too. Else members would call a removed peer for days.
	remembered_drop(ras, &ras_entry(ras, slot)->record->address);
	peer_detach(ras, slot, RAS_CAUSE_IDLE);
	turns_forget_peer(ras, slot);
	votes_orphan_late_report(ras, ras_entry(ras, slot)->flags);
	ras_emit(ras, RAS_EVENT_FORGOTTEN, slot, RAS_CAUSE_NONE, expired);
	parts_peer_changed(ras, slot);
	peers_remove(&ras->peers, slot);
}

// Return true if an operator may remove the peer. Unreachable members are included: only a person
// can tell that a peer held by the brake is really gone.
static bool peer_can_be_forgotten(const struct peer_entry *entry) {
	return !peer_is_member(entry) || entry->state == RAS_UNREACHABLE;
}

// Return true if a peer that another member forgot can be removed here, although we do not hold it
// unreachable. We must not hear the peer: an agent that hears it keeps it, and announces it to the
// others again later. Our partition side must wait, or have waited at a recent order. After the
// first removals the rest of the side may be a majority. The order still applies to the remaining
// peers.
static bool peer_is_missed_here(const struct ras *ras, uint32_t slot) {
	const struct link *link = link_find(ras, slot);

	return slot != ras->self_slot &&
	       (brake_is_minority_side(ras) ||
		ras->observed_ns - ras->order.waited_ns < ORDER_RECENT_NS) &&
	       (link == NULL || !link_is_good(link));
}

bool ras_forget_apply(struct ras *ras, uint64_t id, uint64_t incarnation) {
	uint32_t slot = peers_find(&ras->peers, id);
	bool member;

	if (slot == RAS_NO_SLOT || ras_entry(ras, slot)->incarnation > incarnation ||
	    !(peer_can_be_forgotten(ras_entry(ras, slot)) || peer_is_missed_here(ras, slot)))
		return false;
	member = peer_is_member(ras_entry(ras, slot));
	if (member) {
		peer_detach(ras, slot, RAS_CAUSE_REPORT);
		peers_set_left(&ras->peers, slot, ras->observed_ns); // not flooded
	}
	tombstone_remove(ras, slot, false);
	if (member) {
		ring_schedule_rebuild(ras);
		brake_request_census(ras, ras->observed_ns); // fewer members are missing now
	}
	return true;
}

// Forget up to `most` peers that were unreachable when the order came, and announce each. The order
// does not apply to peers that fell silent later. Returns the number of removed peers.
static uint32_t forget_unreachable_peers(struct ras *ras, uint32_t most) {
	uint32_t count = 0;

	for (uint32_t slot = 0; slot < ras->peers.entry_count && count < most; slot++) {
		const struct peer_entry *entry = ras_entry(ras, slot);
		uint64_t id, incarnation;

		if (entry->record == NULL || entry->state != RAS_UNREACHABLE ||
		    entry->since_ns > ras->order.at_ns)
			continue;
		id = entry->record->id;
		incarnation = entry->incarnation;
		flood_send_forget(ras, id, incarnation);
		count += ras_forget_apply(ras, id, incarnation);
	}
	return count;
}

static void forget_order_begin(struct ras *ras) {
	ras->order.at_ns = ras->observed_ns;
	if (brake_is_minority_side(ras))
		ras->order.waited_ns = ras->observed_ns;
}

void ras_forget_order_received(struct ras *ras) {
	struct forget_order *order = &ras->order;
	uint64_t spread_ns = peers_ring_count(&ras->peers) * ORDER_SPREAD_PER_MEMBER_NS;

	forget_order_begin(ras);
	if (order->pending)
		return;
	if (spread_ns > ORDER_SPREAD_MAX_NS)
		spread_ns = ORDER_SPREAD_MAX_NS;
	order->pending = true;
	order->due_ns = ras->observed_ns + ras_random(ras) % spread_ns;
	ras_wake_at(ras, order->due_ns);
}

void forget_order_tick(struct ras *ras) {
	struct forget_order *order = &ras->order;

	if (order->pending && order->due_ns <= ras->observed_ns) {
		order->pending = forget_unreachable_peers(ras, ORDER_BATCH_MAX) == ORDER_BATCH_MAX;
		order->due_ns = ras->observed_ns + ORDER_GAP_NS;
	}
	if (order->pending)
		ras_wake_at(ras, order->due_ns);
}

uint32_t ras_forget_unreachable(struct ras *ras, uint64_t now_ns) {
	uint32_t count;

	ras_enter(ras, now_ns);
	forget_order_begin(ras);
	flood_send_forget_unreachable(ras);
	count = forget_unreachable_peers(ras, UINT32_MAX);
	ras_exit(ras);
	return count;
}

int ras_forget(struct ras *ras, uint64_t now_ns, uint64_t peer) {
	uint32_t slot;
	int err = -ENOENT;

	ras_enter(ras, now_ns);
	slot = peers_find(&ras->peers, peer);
	if (slot != RAS_NO_SLOT && !peer_can_be_forgotten(ras_entry(ras, slot))) {
		err = -EBUSY;
	} else if (slot != RAS_NO_SLOT) {
		uint64_t incarnation = ras_entry(ras, slot)->incarnation;

		err = 0;
		flood_send_forget(ras, peer, incarnation);
		ras_forget_apply(ras, peer, incarnation);
	}
	ras_exit(ras);
	return err;
}

// Return true if the evidence is older than the last message of the peer. Evidence of life is also
// outdated if it is older than the suspicion. A frozen peer may have been read by RDMA shortly
// after its last message, so this does not refute the suspicion.
static bool
evidence_is_outdated(const struct ras *ras, uint32_t slot, const struct ras_evidence *evidence) {
	const struct peer_entry *entry = ras_entry(ras, slot);
	bool doubted = entry->state == RAS_SUSPECT || entry->state == RAS_UNREACHABLE;
	const struct link *link = link_find(ras, slot);

	if (link != NULL && !link->unheard && ras->observed_ns - link->heard_ns < evidence->age_ns)
		return true;
	return evidence->alive && doubted && ras->observed_ns - entry->since_ns <= evidence->age_ns;
}

int ras_evidence(struct ras *ras, uint64_t now_ns, const struct ras_evidence *evidence) {
	uint32_t slot;
	int err = 0;

	ras_enter(ras, now_ns);
	slot = peers_find(&ras->peers, evidence->subject);
	if (slot == RAS_NO_SLOT || slot == ras->self_slot)
		err = -ENOENT;
	else if (evidence_is_outdated(ras, slot, evidence))
		err = -ESTALE;
	else if (!evidence->alive)
		liveness_absence_reported(ras, slot, evidence->age_ns);
	else if (evidence->source != RAS_SOURCE_REPORT)
		liveness_proof_of_life(ras, slot, evidence->observer);
	ras_exit(ras);
	return err;
}

// Forget a dead peer at whose address another agent answers. Only the members that called the
// address know of that agent, so they announce it to the others.
static void ghost_forget(struct ras *ras, const struct peer_entry *entry) {
	uint64_t id = entry->record->id;
	uint64_t incarnation = entry->incarnation;

	flood_send_forget(ras, id, incarnation);
	ras_forget_apply(ras, id, incarnation);
}

void expire_tick(struct ras *ras) {
	if (ras->expire_ns > ras->observed_ns) {
		ras_wake_at(ras, ras->expire_ns);
		return;
	}
	ras->expire_ns = ras->observed_ns + EXPIRE_GAP_NS;
	ras_wake_at(ras, ras->expire_ns);
	foreign_expire(ras);
	if (peers_tombstone_count(&ras->peers) == 0)
		return;
	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++) {
		const struct peer_entry *entry = ras_entry(ras, slot);
		uint64_t age_ns = ras->observed_ns - entry->since_ns;

		if (entry->record == NULL)
			continue;
		if ((entry->state == RAS_LEFT && age_ns >= ras->profile->left_keep_ns) ||
		    (entry->state == RAS_DEAD && age_ns >= ras->profile->dead_keep_ns))
			tombstone_remove(ras, slot, true);
		else if (entry->state == RAS_DEAD && age_ns >= GHOST_KEEP_NS &&
			 ras_peer_stranger_age_ns(ras, entry->record->id) != RAS_NEVER)
			ghost_forget(ras, entry);
	}
}
