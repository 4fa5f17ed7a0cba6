// SPDX-License-Identifier: BSD-3-Clause
// Decides which pairs are wanted: each device with itself, and one pair with every neighbour on
// every ring. Passes the overlay's events about peers on to the pairing.
//
// rails.c decides which rail of a neighbour belongs to which own rail.
#include "fabric/inside.h"

#include <lib/container.h>
#include <lib/must.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WANTED_INTERVAL_NS RAS_NS_PER_SEC
#define WANTED_MAX 512

// An event about a peer. The core reports it in the middle of its own work. So it is queued until
// the turn ends.
struct news {
	struct news *next;
	uint64_t peer;
	enum pairing_peer_state state;
	uint64_t start;
};

struct wanted {
	struct pairing_key keys[WANTED_MAX];
	uint32_t count;
};

static void
wanted_add(struct wanted *wanted, uint32_t device, uint64_t peer, const char *peer_device) {
	struct pairing_key *key;

	if (wanted->count == WANTED_MAX)
		return;
	key = &wanted->keys[wanted->count++];
	memset(key, 0, sizeof(*key));
	key->device = device;
	key->peer = peer;
	snprintf(key->peer_device, sizeof(key->peer_device), "%s", peer_device);
}

enum rail_answer neighbours_find_key(
	const struct nic *nic, const struct ras_record *record, struct pairing_key *ret_key
) {
	struct pairing_key key;
	enum rail_answer answer;

	memset(&key, 0, sizeof(key));
	key.device = nic->number;
	key.peer = record->id;
	answer = rails_choose_peer_rail(nic, record, key.peer_device);
	if (answer == RAIL_FOUND)
		*ret_key = key;
	return answer;
}

// Return whether the ready pair of a dead peer should stay. A peer that was declared dead for
// silence may be cut off from the overlay only. Its pair stays as long as reads of its pulse are
// answered, but no new pair is made.
static bool pair_outlives_overlay(const struct fabric *fabric, const struct pairing_view *view) {
	struct ras_peer peer;

	return view->state == PAIRING_READY &&
	       ras_peer_find(overlay_ras(fabric->overlay), view->key.peer, &peer) == 0 &&
	       peer.state == RAS_DEAD;
}

static bool wanted_has_key(const struct wanted *wanted, const struct pairing_key *key) {
	for (uint32_t n = 0; n < wanted->count; n++) {
		if (pairing_keys_equal(&wanted->keys[n], key))
			return true;
	}
	return false;
}

static void wanted_collect(struct fabric *fabric, struct wanted *wanted) {
	const struct ras *ras = overlay_ras(fabric->overlay);
	struct ras_link_info link;
	struct pairing_key key;
	struct ras_peer peer;

	wanted->count = 0;
	rails_begin_pass(fabric);
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		if (!fabric->nics[n].retired)
			wanted_add(wanted, n, ras_self_id(ras), fabric->nics[n].config.name);
	}
	for (uint32_t place = 0; ras_link_at(ras, place, &link) == 0; place++) {
		if (((link.mine | link.theirs) & (RAS_USE_RING | RAS_USE_LONG)) == 0 ||
		    ras_peer_find(ras, link.peer, &peer) != 0 || peer.state == RAS_DEAD ||
		    peer.state == RAS_LEFT)
			continue;
		for (uint32_t n = 0; n < fabric->nic_count; n++) {
			if (neighbours_find_key(&fabric->nics[n], peer.record, &key) == RAIL_FOUND)
				wanted_add(wanted, n, link.peer, key.peer_device);
		}
		rails_note_neighbour(fabric, peer.record);
	}
}

static void neighbours_update(struct fabric *fabric) {
	uint64_t now_ns = loop_clock_ns(fabric->loop);
	uint64_t start = ras_incarnation_start(ras_self_incarnation(overlay_ras(fabric->overlay)));
	struct wanted *wanted = malloc(sizeof(*wanted));
	struct pairing_view view;
	uint32_t cursor = 0;

	if (wanted == NULL)
		return; // the timer tries again soon

	// The join assigns our start counter, and a new one follows after we were declared dead.
	if (start != fabric->start && start != 0)
		pairing_restart(fabric->pairing, now_ns, start);
	fabric->start = start;
	if (start == 0) {
		free(wanted);
		return;
	}

	wanted_collect(fabric, wanted);
	while (pairing_next(fabric->pairing, &cursor, &view)) {
		if (view.wanted && !wanted_has_key(wanted, &view.key) &&
		    !pair_outlives_overlay(fabric, &view))
			(void)pairing_set_wanted(fabric->pairing, now_ns, &view.key, false);
	}
	// Wanting a pair again changes nothing. If memory is short, the next pass tries again.
	for (uint32_t n = 0; n < wanted->count; n++)
		(void)pairing_set_wanted(fabric->pairing, now_ns, &wanted->keys[n], true);
	free(wanted);
}

static void on_neighbours_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct fabric *fabric = container_of(timer, struct fabric, want);

	if (fabric->nic_count > 0)
		neighbours_update(fabric);
	must(loop_timer_set(fabric->loop, timer, now_ns + WANTED_INTERVAL_NS) == 0);
}

// Events.

// Translate the cause of a death for the pairing. A process that ended has no pulse to read.
// Without probing, nobody would notice that a pair has ended, so silence counts as death then.
static enum pairing_peer_state
pairing_state_of_death(const struct fabric *fabric, enum ras_cause cause) {
	return fabric->config.probe.on && ras_cause_is_silence(cause) ? PAIRING_PEER_IS_SILENT
								      : PAIRING_PEER_HAS_DIED;
}

static bool pairing_state_of_event(
	const struct fabric *fabric,
	const struct ras_event *event,
	enum pairing_peer_state *ret_state
) {
	switch (event->kind) {
	case RAS_EVENT_JOINED:
	case RAS_EVENT_REJOINED:
	case RAS_EVENT_ALIVE:
	case RAS_EVENT_REFUTED:
	case RAS_EVENT_LINK_UP:
		*ret_state = PAIRING_PEER_IS_ALIVE;
		return true;
	case RAS_EVENT_DEAD:
		*ret_state = pairing_state_of_death(fabric, event->cause);
		return true;
	case RAS_EVENT_FORGOTTEN: // only dead peers are forgotten
		*ret_state = PAIRING_PEER_HAS_DIED;
		return true;
	case RAS_EVENT_LEFT:
		*ret_state = PAIRING_PEER_HAS_LEFT;
		return true;
	default:
		return false;
	}
}

static void on_overlay_event(struct overlay_listener *listener, const struct ras_event *event) {
	struct fabric *fabric = container_of(listener, struct fabric, listener);
	enum pairing_peer_state state;
	struct news *news;

	if (event->kind == RAS_EVENT_JOIN_DONE || event->kind == RAS_EVENT_DECLARED_DEAD ||
	    event->kind == RAS_EVENT_ADDRESS_CHANGED)
		loop_defer(fabric->loop, &fabric->deliver_peer_events);
	if (event->peer == 0 || !pairing_state_of_event(fabric, event, &state))
		return;
	news = malloc(sizeof(*news));
	loop_defer(fabric->loop, &fabric->deliver_peer_events);
	if (news == NULL) {
		fabric->peer_events_lost = true;
		return;
	}
	*news = (struct news){
		.peer = event->peer,
		.state = state,
		.start = ras_incarnation_start(event->incarnation),
	};
	*fabric->news_last = news;
	fabric->news_last = &news->next;
}

static void deliver_peer_events(struct loop_job *job) {
	struct fabric *fabric = container_of(job, struct fabric, deliver_peer_events);
	struct pairing_view view;
	struct ras_peer peer;
	uint32_t cursor = 0;

	while (fabric->news != NULL) {
		struct news *news = fabric->news;

		fabric->news = news->next;
		if (fabric->news == NULL)
			fabric->news_last = &fabric->news;
		pairing_peer(
			fabric->pairing, loop_clock_ns(fabric->loop), news->peer, news->state,
			news->start
		);
		free(news);
	}

	// Events were lost for lack of memory, or their meaning has changed. Report the overlay's
	// state of all paired peers instead.
	if (fabric->peer_events_lost) {
		fabric->peer_events_lost = false;
		while (pairing_next(fabric->pairing, &cursor, &view)) {
			if (ras_peer_find(overlay_ras(fabric->overlay), view.key.peer, &peer) != 0)
				continue;
			pairing_peer(
				fabric->pairing, fabric_clock_ns(fabric), view.key.peer,
				peer.state == RAS_DEAD ? pairing_state_of_death(fabric, peer.cause)
				: peer.state == RAS_LEFT ? PAIRING_PEER_HAS_LEFT
							 : PAIRING_PEER_IS_ALIVE,
				ras_incarnation_start(peer.incarnation)
			);
		}
	}
	if (!fabric->stopping)
		neighbours_update(fabric);
}

void neighbours_update_soon(struct fabric *fabric) {
	loop_defer(fabric->loop, &fabric->deliver_peer_events);
}

void neighbours_resync_peers(struct fabric *fabric) {
	fabric->peer_events_lost = true;
	loop_defer(fabric->loop, &fabric->deliver_peer_events);
}

void neighbours_start(struct fabric *fabric) {
	fabric->news = NULL;
	fabric->news_last = &fabric->news;
	fabric->deliver_peer_events.run = deliver_peer_events;
	fabric->listener.event = on_overlay_event;
	overlay_listen(fabric->overlay, &fabric->listener);
	fabric->want.expired = on_neighbours_timer;
	must(loop_timer_set(
		     fabric->loop, &fabric->want, loop_now_ns(fabric->loop) + WANTED_INTERVAL_NS
	     ) == 0);
}

void neighbours_stop(struct fabric *fabric) {
	overlay_unlisten(fabric->overlay, &fabric->listener);
	loop_timer_cancel(fabric->loop, &fabric->want);
	loop_undefer(fabric->loop, &fabric->deliver_peer_events);
	while (fabric->news != NULL) {
		struct news *news = fabric->news;

		fabric->news = news->next;
		free(news);
	}
	fabric->news_last = &fabric->news;
}
