// SPDX-License-Identifier: BSD-3-Clause
// One link to a peer: connect, keep, retire, and handle failures.
#include "link/link.h"

#include "core/core.h"

#include <string.h>

#define FRESH_MEMBER_NS RAS_NS_PER_SEC // time after the join until other members know this agent
#define BACKOFF_DOUBLINGS_MAX 5
#define FALLBACK_USES (RAS_USE_FALLBACK_NEXT | RAS_USE_FALLBACK_PREV)

static void link_frames_free(struct ras *ras, struct link *link) {
	while (link->queue_head != NULL) {
		struct link_frame *frame = link->queue_head;

		link->queue_head = frame->next;
		memory_release(&ras->memory, frame, sizeof(*frame) + frame->size);
	}
	link->queue_tail = NULL;
	link->queue_bytes = 0;
}

void links_fini(struct ras *ras) {
	struct links *links = &ras->links;

	for (uint32_t n = 0; n < links->count; n++) {
		link_frames_free(ras, links->table[n]);
		memory_release(&ras->memory, links->table[n], sizeof(**links->table));
	}
	memory_release(&ras->memory, links->table, links->capacity * sizeof(struct link *));
	*links = (struct links){0};
}

void links_reap(struct ras *ras) {
	struct links *links = &ras->links;

	for (uint32_t n = 0; links->dropped > 0 && n < links->count;) {
		struct link *link = links->table[n];

		if (link->used) {
			n++;
			continue;
		}
		memory_release(&ras->memory, link, sizeof(*link));
		links->table[n] = links->table[--links->count];
		links->dropped--;
	}
}

struct link *link_find(const struct ras *ras, uint32_t slot) {
	for (uint32_t n = 0; n < ras->links.count; n++) {
		struct link *link = ras->links.table[n];

		if (link->slot == slot && link->used)
			return link;
	}
	return NULL;
}

uint32_t links_degree_max(uint32_t members) {
	uint32_t bits = 0;

	while ((UINT64_C(1) << bits) < members)
		bits++;
	return 2 * bits;
}

uint32_t links_degree(const struct ras *ras) {
	uint32_t degree = 0;

	for (uint32_t n = 0; n < ras->links.count; n++) {
		const struct link *link = ras->links.table[n];

		if (link->used && ((link->mine | link->theirs) & ~RAS_USE_CHECK) != 0)
			degree++;
	}
	return degree;
}

static struct link *link_add(struct ras *ras, uint32_t slot) {
	struct links *links = &ras->links;
	uint64_t bits_taken = 0;
	struct link *link;

	if (memory_grow(
		    &ras->memory, (void **)&links->table, &links->capacity, links->count + 1,
		    sizeof(struct link *)
	    ) != 0)
		return NULL;
	link = memory_allocate(&ras->memory, sizeof(*link));
	if (link == NULL)
		return NULL;
	for (uint32_t n = 0; n < links->count; n++) {
		if (links->table[n]->used)
			bits_taken |= link_bit(links->table[n]);
	}
	*link = (struct link){
		.slot = slot,
		// While there are at most 64 links, no other link has this bit.
		.bit = bits_taken != UINT64_MAX ? (uint8_t)__builtin_ctzll(~bits_taken)
						: (uint8_t)(links->count % 64),
		.peer = ras_entry(ras, slot)->record->id,
		.used = true,
		.watched = true,
		.heard_ns = ras->observed_ns,
		.begun_ns = ras->now_ns,
		.period_ns = ras->profile->beat_ns,
		.refused_ns = RAS_NEVER,
		.checked_ns = RAS_NEVER,
		.down_ns = ras->observed_ns,
		.retry_ns = RAS_NEVER,
		.idle_ns = ras->observed_ns,
		.differs_ns = RAS_NEVER,
		.unequal_ns = RAS_NEVER,
		.rtt.min_ns = RAS_NEVER,
	};
	links->table[links->count++] = link;
	return link;
}

static void link_connect(struct ras *ras, struct link *link) {
	if (link->pending != NULL)
		link->retry_ns = RAS_NEVER; // the end of that connection sets the next retry
	if (link->current != NULL || link->pending != NULL || ras->leaving)
		return;
	link->retry_ns = RAS_NEVER;
	link->pending = conn_open(ras, &ras_entry(ras, link->slot)->record->address, link);
	if (link->pending == NULL) {
		link->retry_ns = ras->observed_ns + ras_jitter(ras, ras->profile->retry_ns);
		ras_wake_at(ras, link->retry_ns);
	}
}

// Return true if this agent connects at once, false if it first waits for the peer to connect.
// Between ring neighbours, the agent lower in ring order connects at once. The higher one connects
// only after a wait, in case a firewall blocks the other direction. For uses that only this side
// has (long links, fallbacks, looks) this agent connects at once. So does a new member, because
// other members may not know it yet.
static bool link_is_ours_to_connect(struct ras *ras, const struct link *link, uint32_t uses) {
	const struct ras_record *self = ras_self(ras)->record;

	if ((uses & ~(uint32_t)(RAS_USE_NEXT | RAS_USE_PREV)) != 0)
		return true;
	if (ras->observed_ns - ras->joined_ns < FRESH_MEMBER_NS)
		return true;
	return ras_record_compare(self, ras_entry(ras, link->slot)->record) < 0;
}

struct link *link_want(struct ras *ras, uint32_t slot, uint32_t uses) {
	struct link *link = link_find(ras, slot);
	uint32_t added;

	must(slot != ras->self_slot);
	if (link == NULL)
		link = link_add(ras, slot);
	// A look needs a ready connection but no use of its own, which would never be removed
	// again.
	if (link != NULL && link->current != NULL)
		uses &= ~(uint32_t)RAS_USE_CHECK;
	if (link == NULL || uses == 0)
		return link;
	added = uses & ~link->mine;
	if ((link->mine | link->theirs) == 0) {
		// The peer promised nothing on an idle link, so the wait for a message begins now.
		link->heard_ns = ras->observed_ns;
		link->unheard = true;
		link->period_ns = LONG_BEATS_PER_TICK * ras->profile->beat_ns;
	}
	// A fallback is connected at once, and floods wait for it. It gets no more time than an
	// established link.
	if ((uses & FALLBACK_USES) != 0 && link->connects == 0)
		link->period_ns = ras->profile->beat_ns;
	link->mine |= uses;
	link->idle_ns = RAS_NEVER;
	if (added == 0)
		return link;
	if (link->current != NULL) {
		// The other side learns of the use, and promises its own beats.
		link_beat(ras, link, true);
	} else if (link->pending == NULL) {
		uint64_t wait =
			link_is_ours_to_connect(ras, link, uses) ? 0 : ras->profile->higher_wait_ns;
		uint64_t due = ras->observed_ns + wait;

		if (wait == 0)
			link_connect(ras, link);
		else if (due < link->retry_ns)
			link->retry_ns = due;
		ras_wake_at(ras, link->retry_ns);
	}
	return link;
}

void link_idle_check(struct ras *ras, struct link *link) {
	if ((link->mine | link->theirs) != 0) {
		link->idle_ns = RAS_NEVER;
	} else if (link->idle_ns == RAS_NEVER) {
		link->idle_ns = ras->observed_ns;
		ras_wake_at(ras, link->idle_ns + ras->profile->idle_ns);
	}
}

void link_unwant(struct ras *ras, struct link *link, uint32_t uses) {
	if ((link->mine & uses) == 0)
		return;
	link->mine &= ~uses;
	if (link->current != NULL)
		link_beat(ras, link, false);
	link_idle_check(ras, link);
}

bool link_can_send_now(const struct ras *ras, const struct link *link) {
	(void)ras;
	return link->used && link->current != NULL && !link->current->blocked &&
	       link->queue_head == NULL;
}

void link_send(struct ras *ras, struct link *link, const void *frame, size_t size) {
	struct link_frame *queued;

	if (!link->used)
		return;
	if (link_can_send_now(ras, link) && conn_send(ras, link->current, frame, size) == 0)
		return;
	queued = link->queue_bytes + size <= LINK_QUEUE_BYTES_MAX
			 ? memory_allocate(&ras->memory, sizeof(*queued) + size)
			 : NULL;
	if (queued == NULL) {
		ras->counters.queue_dropped++;
		return;
	}
	queued->size = (uint32_t)size;
	queued->queued_ns = ras->observed_ns;
	memcpy(queued->bytes, frame, size);
	if (link->queue_tail != NULL)
		link->queue_tail->next = queued;
	else
		link->queue_head = queued;
	link->queue_tail = queued;
	link->queue_bytes += queued->size;
	ras_wake_at(ras, ras->observed_ns + ras->profile->stuck_ns);
}

void link_flush(struct ras *ras, struct link *link) {
	while (link->queue_head != NULL && link->current != NULL) {
		struct link_frame *frame = link->queue_head;

		if (conn_send(ras, link->current, frame->bytes, frame->size) != 0)
			return;
		link->queue_head = frame->next;
		if (frame->next == NULL)
			link->queue_tail = NULL;
		else
			// Only the age of the head is checked.
			frame->next->queued_ns = ras->observed_ns;
		link->queue_bytes -= frame->size;
		memory_release(&ras->memory, frame, sizeof(*frame) + frame->size);
	}
	if (ras->leaving)
		link_drop(ras, link, RAS_CLOSE_SOFT, RAS_CAUSE_LEAVE);
	else if (link_can_send_now(ras, link))
		parts_link_event(ras, link, LINK_WRITABLE);
}

void link_heard(struct ras *ras, struct link *link) {
	uint64_t silent_ns = ras->observed_ns - link->heard_ns;

	// If no link was heard at all, this agent was deaf or cut off: the silence is no evidence
	// against peers.
	if (ras->observed_ns - ras->links.heard_ns >= ras->profile->suspect_ns)
		parts_link_event(ras, link, LINK_HEARD_AFTER_DEAFNESS);
	ras->links.heard_ns = ras->observed_ns;
	link->heard_ns = ras->observed_ns;
	if (silent_ns >= 2 * link->period_ns)
		link->resumed_ns = ras->observed_ns;
	link->unheard = false;
	link->checked_ns = RAS_NEVER;
	if (link->delayed) {
		link->delayed = false;
		ras_emit(ras, RAS_EVENT_LINK_RECOVERED, link->slot, RAS_CAUSE_NONE, silent_ns);
		ring_link_recovered(ras, link);
		parts_link_event(ras, link, LINK_WRITABLE);
	}
	if (link->watched) {
		link->watched = false;
		parts_link_event(ras, link, LINK_PEER_HEARD);
	}
}

void links_degree_check(struct ras *ras) {
	if (links_degree(ras) > links_degree_max(peers_ring_count(&ras->peers)))
		ring_schedule_relink(ras);
}

void link_ready(struct ras *ras, struct link *link, struct conn *conn, uint32_t theirs) {
	uint64_t down_ns = ras->observed_ns - link->down_ns;

	if (link->pending != NULL && link->pending != conn)
		conn_close(ras, link->pending, RAS_CLOSE_HARD);
	if (link->current != NULL && link->current != conn)
		conn_close(ras, link->current, RAS_CLOSE_HARD);
	link->pending = NULL;
	link->current = conn;
	conn->ready_ns = ras->observed_ns;
	link->theirs = theirs;
	link->gone = false;
	link->refused_ns = RAS_NEVER;
	link->retry_ns = RAS_NEVER;
	link->retries = 0;
	if (link->connects++ == 0 && conn->outgoing) {
		ras->counters.ring_links_opened += (link->mine & RAS_USE_RING) != 0;
		ras->counters.long_links_opened += (link->mine & RAS_USE_LONG) != 0;
	}
	link->heard_sequence = 0;
	link->sent_sequence = 0;
	// Valid until the peer promises another period.
	link->period_ns = LONG_BEATS_PER_TICK * ras->profile->beat_ns;
	link->mine &= ~(uint32_t)RAS_USE_CHECK;
	link->beat_tick = ras->links.beats + 1 + (uint32_t)(ras_random(ras) % LONG_BEATS_PER_TICK);
	link_heard(ras, link);
	ras_emit(ras, RAS_EVENT_LINK_UP, link->slot, RAS_CAUSE_NONE, down_ns);
	link_idle_check(ras, link);
	ring_link_recovered(ras, link);
	links_degree_check(ras);
	link_beat(ras, link, false);
	foreign_send_all(ras, link);
	if (link->queue_head != NULL)
		link->queue_head->queued_ns = ras->observed_ns; // it had to wait for a connection
	link_flush(ras, link);
}

// Return the delay before the next connect. It doubles while the peer refuses a link; ring
// neighbours are tried at a steady rate.
static uint64_t link_retry_delay_ns(struct ras *ras, const struct link *link) {
	uint64_t wait = ras->profile->retry_ns;
	uint32_t doublings = link->retries;

	if ((link->mine & RAS_USE_RING) == 0) {
		if (doublings > BACKOFF_DOUBLINGS_MAX)
			doublings = BACKOFF_DOUBLINGS_MAX;
		wait <<= doublings;
		if (wait > ras->profile->retry_max_ns)
			wait = ras->profile->retry_max_ns;
	}
	return ras_jitter(ras, wait);
}

// Handle a refused connect to a peer that was heard before.
static void link_connect_refused(struct ras *ras, struct link *link, bool by_own_machine) {
	uint64_t recheck_ns = ras->profile->gone_recheck_ns;

	link->exited = by_own_machine && (link->refused_ns == RAS_NEVER || link->exited) &&
		       ras_records_share_machine(
			       ras_entry(ras, link->slot)->record, ras_self(ras)->record
		       );
	if (link->refused_ns == RAS_NEVER) {
		link->refused_ns = ras->observed_ns;
		parts_link_event(ras, link, LINK_PEER_REFUSED);
	}
	if (ras->observed_ns - link->refused_ns >= recheck_ns) {
		link->gone = true;
		link->gone_ns = ras->observed_ns;
		parts_link_event(ras, link, LINK_PEER_GONE);
	} else if (link->retry_ns > link->refused_ns + recheck_ns) {
		link->retry_ns = link->refused_ns + recheck_ns;
	}
}

static void link_connect_failed(struct ras *ras, struct link *link, enum ras_cause cause) {
	link->pending = NULL;
	if (link->current != NULL)
		return; // a replacement failed; the current connection stays
	link->retry_ns = ras->observed_ns + link_retry_delay_ns(ras, link);
	link->retries++;
	// A peer that was never heard cannot be gone.
	if ((cause == RAS_CAUSE_REFUSED || cause == RAS_CAUSE_EXITED) && ras->profile->evidence &&
	    (ras_entry(ras, link->slot)->flags & PEER_SEEN) != 0)
		link_connect_refused(ras, link, cause == RAS_CAUSE_EXITED);
	// A refusal with a reason proves life, even with an unknown reason of a newer version.
	if (cause == RAS_CAUSE_DEGREE || cause == RAS_CAUSE_DUPLICATE || cause == RAS_CAUSE_BUSY ||
	    cause >= RAS_CAUSE_COUNT) {
		link->mine &= ~(uint32_t)RAS_USE_CHECK;
		link_heard(ras, link);
		link_idle_check(ras, link);
	}
	if (cause == RAS_CAUSE_DEGREE)
		ring_link_refused(ras, link);
	// After the other of two crossing connections was kept, no early retry is needed.
	if (cause == RAS_CAUSE_DUPLICATE)
		link->retry_ns = ras->observed_ns + ras->profile->retry_ns;
	if (link->mine == 0)
		link->retry_ns = RAS_NEVER; // refused and no longer needed
	ras_wake_at(ras, link->retry_ns);
	// Peers that left or died are tried by all members in turn (search.c), so no link is kept.
	if (!peer_is_member(ras_entry(ras, link->slot)) && link->current == NULL)
		link_drop(ras, link, RAS_CLOSE_HARD, cause);
}

static void link_lost(struct ras *ras, struct link *link, enum ras_cause cause) {
	// If neither side needed the connection, its end is a retirement by the peer and no
	// evidence.
	if (cause == RAS_CAUSE_RESET && (link->mine | link->theirs) == 0 &&
	    link->queue_head == NULL)
		cause = RAS_CAUSE_IDLE;
	link->current = NULL;
	link->theirs = 0;
	link->down_ns = ras->observed_ns;
	link->watched = true;
	ras_emit(ras, RAS_EVENT_LINK_DOWN, link->slot, cause, 0);
	parts_link_event(ras, link, LINK_LOST);
	if (!link->used)
		return;
	if (cause == RAS_CAUSE_IDLE || ras->leaving ||
	    !peer_is_member(ras_entry(ras, link->slot))) {
		// If a dead peer connected itself, it was heard by that. Its link has no further
		// use.
		link_drop(ras, link, RAS_CLOSE_HARD, cause);
	} else if (cause == RAS_CAUSE_RESET || cause == RAS_CAUSE_SILENT) {
		// Both sides connect at once: a refusal now is the first evidence of an end.
		link->mine |= RAS_USE_CHECK;
		link->idle_ns = RAS_NEVER;
		link_connect(ras, link);
	} else if (link->mine != 0) {
		link->retry_ns = ras->observed_ns + link_retry_delay_ns(ras, link);
		ras_wake_at(ras, link->retry_ns);
	} else {
		link_idle_check(ras, link);
	}
}

void link_conn_ended(struct ras *ras, struct link *link, struct conn *conn, enum ras_cause cause) {
	if (!link->used)
		return;
	if (link->current == conn)
		link_lost(ras, link, cause);
	else if (link->pending == conn)
		link_connect_failed(ras, link, cause);
}

void link_probe(struct ras *ras, struct link *link) {
	if (link->checked_ns == RAS_NEVER)
		link->checked_ns = ras->observed_ns;
	if (link->current != NULL) {
		link_beat(ras, link, true);
	} else if (link->refused_ns == RAS_NEVER) {
		link->mine |= RAS_USE_CHECK;
		link->idle_ns = RAS_NEVER;
		link_connect(ras, link);
	}
}

void link_drop(struct ras *ras, struct link *link, enum ras_close how, enum ras_cause cause) {
	if (!link->used)
		return;
	link->used = false;
	ras->links.dropped++;
	if (link->pending != NULL)
		conn_close(ras, link->pending, RAS_CLOSE_HARD);
	if (link->current != NULL) {
		conn_close(ras, link->current, how);
		ras_emit(ras, RAS_EVENT_LINK_DOWN, link->slot, cause, 0);
	}
	link->pending = NULL;
	link->current = NULL;
	link_frames_free(ras, link);
	if (cause == RAS_CAUSE_IDLE)
		ras->counters.links_retired++;
}

void links_say_leave(struct ras *ras) {
	for (uint32_t n = 0; n < ras->links.count; n++) {
		struct link *link = ras->links.table[n];

		if (!link->used)
			continue;
		parts_link_event(ras, link, LINK_LOST);
		link_frames_free(ras, link);
		if (link->pending != NULL)
			conn_close(ras, link->pending, RAS_CLOSE_SOFT);
		link->pending = NULL;
		// Send no LEAVE if this agent gave its name to another holder.
		if (link->current != NULL && !ras->join.rival.gave_way)
			news_send_self_to(ras, link);
		// A LEAVE that was not queued for lack of memory is spread by the other peers.
		if (link->current == NULL || link->queue_head == NULL)
			link_drop(ras, link, RAS_CLOSE_SOFT, RAS_CAUSE_LEAVE);
		else
			conn_set_deadline(ras, link->current, ras->profile->close_ns);
	}
}

void links_reconnect(struct ras *ras) {
	uint32_t count = ras->links.count;

	for (uint32_t n = 0; n < count; n++) {
		struct link *link = ras->links.table[n];

		if (!link->used || link->mine == 0)
			continue;
		link->retries = 0;
		link_connect(ras, link);
	}
}

void links_tick(struct ras *ras) {
	uint32_t count = ras->links.count; // links added meanwhile follow in the next tick

	beats_tick(ras);
	for (uint32_t n = 0; n < count; n++) {
		struct link *link = ras->links.table[n];

		if (!link->used)
			continue;
		// Frames waiting for a connection that will never open do not keep the link either.
		if (link->idle_ns != RAS_NEVER &&
		    (link->queue_head == NULL || link->current == NULL)) {
			uint64_t due = link->idle_ns + ras->profile->idle_ns;

			if (due <= ras->observed_ns) {
				parts_link_event(ras, link, LINK_LOST);
				link_drop(ras, link, RAS_CLOSE_SOFT, RAS_CAUSE_IDLE);
				continue;
			}
			ras_wake_at(ras, due);
		}
		if (link->mine == 0)
			link->retry_ns = RAS_NEVER; // its reason for a retry has gone
		if (link->retry_ns <= ras->observed_ns)
			link_connect(ras, link);
		ras_wake_at(ras, link->retry_ns);
		if ((link->mine | link->theirs) != 0)
			link_silence_judge(ras, link);
		link_stuck_check(ras, link);
	}
}
