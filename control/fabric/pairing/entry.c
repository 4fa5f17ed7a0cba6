// SPDX-License-Identifier: BSD-3-Clause
// Keys and their peers: lookup, creation, removal and views.
#include "fabric/pairing/pairing_inside.h"

#include <lib/tracepoint.h>

#include <stdlib.h>

// An entry is kept longer than a message can be under way (the relay's maximum). So a late message
// is recognized.
#define FORGET_NS (60 * PAIRING_NS_PER_SEC)
// A failure that time does not mend is kept this long, and not tried again before.
#define FORGET_NEWS_NS (600 * PAIRING_NS_PER_SEC)

// Peers

struct peer *peer_find(const struct pairing *pairing, uint64_t id) {
	struct peer *peer = pairing->peers;

	while (peer != NULL && peer->id != id)
		peer = peer->next;
	return peer;
}

// Find or create a peer. For a wanted pair, an unknown peer is created as dead and waited for.
static int peer_get(struct pairing *pairing, uint64_t id, bool wanted, struct peer **ret_peer) {
	struct peer *peer = peer_find(pairing, id);
	uint64_t start = pairing->config.start;
	int err = 0;

	if (peer != NULL) {
		*ret_peer = peer;
		return 0;
	}
	if (id != pairing->config.self)
		err = pairing->ops.peer(pairing->ops.ctx, id, &start);
	if (err < 0 && !wanted)
		return err;
	peer = calloc(1, sizeof(*peer));
	if (peer == NULL)
		return -ENOMEM;
	peer->id = id;
	peer->start = err < 0 ? 0 : start;
	peer->state = err < 0 ? PAIRING_PEER_HAS_DIED : PAIRING_PEER_IS_ALIVE;
	peer->begun_ns = PAIRING_NEVER;
	peer->next = pairing->peers;
	pairing->peers = peer;
	*ret_peer = peer;
	return 0;
}

static void peer_drop(struct pairing *pairing, struct peer *peer) {
	struct peer **at = &pairing->peers;

	if (peer->entries > 0)
		return;
	while (*at != NULL && *at != peer)
		at = &(*at)->next;
	must(*at != NULL);
	*at = peer->next;
	free(peer);
}

// Entries

struct entry *entry_find(const struct pairing *pairing, const struct pairing_key *key) {
	struct entry *entry = pairing->entries;

	while (entry != NULL && (entry->key.peer != key->peer || entry->key.device != key->device ||
				 strcmp(entry->key.peer_device, key->peer_device) != 0))
		entry = entry->next;
	return entry;
}

static bool entry_is_idle(const struct entry *entry) {
	return entry->current == NULL && entry->retired == NULL && entry->waiters == NULL &&
	       !entry->wanted && !entry->offered;
}

uint64_t entry_expire_at_ns(const struct entry *entry) {
	if (!entry_is_idle(entry))
		return PAIRING_NEVER;
	if (entry->tombstone && entry->next_try_ns == PAIRING_NEVER)
		return entry->since_ns + FORGET_NEWS_NS;
	if (entry->tombstone)
		return pairing_time_later(entry->since_ns, entry->next_try_ns) + FORGET_NS;
	return entry->since_ns + FORGET_NS;
}

static void entry_drop(struct pairing *pairing, struct entry **at) {
	struct entry *entry = *at;

	*at = entry->next;
	if (pairing->entries_end == &entry->next)
		pairing->entries_end = at;
	pairing->entry_count--;
	entry->peer->entries--;
	peer_drop(pairing, entry->peer);
	free(entry);
}

void entries_expire(struct pairing *pairing) {
	struct entry **at = &pairing->entries;

	while (*at != NULL) {
		if (entry_expire_at_ns(*at) <= pairing->now_ns)
			entry_drop(pairing, at);
		else
			at = &(*at)->next;
	}
}

// Remove the oldest idle entry, of one peer or of all (NULL). Returns false if there is none.
static bool entry_drop_oldest(struct pairing *pairing, const struct peer *peer) {
	struct entry **oldest = NULL;

	for (struct entry **at = &pairing->entries; *at != NULL; at = &(*at)->next) {
		if (!entry_is_idle(*at) || (peer != NULL && (*at)->peer != peer))
			continue;
		if (oldest == NULL || (*at)->since_ns < (*oldest)->since_ns)
			oldest = at;
	}
	if (oldest == NULL)
		return false;
	entry_drop(pairing, oldest);
	return true;
}

int entry_get(
	struct pairing *pairing,
	const struct pairing_key *key,
	bool wanted,
	struct entry **ret_entry
) {
	struct entry *entry = entry_find(pairing, key);
	struct peer *peer;
	bool has_room;
	int err;

	if (entry != NULL) {
		*ret_entry = entry;
		return 0;
	}
	err = peer_get(pairing, key->peer, wanted, &peer);
	if (err < 0)
		return err;
	peer->entries++; // keeps the peer while other entries are removed
	has_room = peer->entries < PAIRING_PEER_ENTRIES_MAX || entry_drop_oldest(pairing, peer);
	if (has_room && pairing->entry_count >= PAIRING_ENTRIES_MAX)
		has_room = entry_drop_oldest(pairing, NULL);
	err = has_room || wanted ? 0 : -ENOSPC;
	entry = err == 0 ? calloc(1, sizeof(*entry)) : NULL;
	if (entry == NULL) {
		peer->entries--;
		peer_drop(pairing, peer);
		return err < 0 ? err : -ENOMEM;
	}
	entry->key = *key;
	entry->peer = peer;
	entry->since_ns = pairing->now_ns;
	entry->begun_ns = PAIRING_NEVER;
	*pairing->entries_end = entry;
	pairing->entries_end = &entry->next;
	pairing->entry_count++;
	*ret_entry = entry;
	return 0;
}

bool entry_is_self(const struct pairing *pairing, const struct entry *entry) {
	return entry->key.peer == pairing->config.self &&
	       strcmp(entry->key.peer_device, pairing->devices[entry->key.device].facts.name) == 0;
}

static bool entry_is_stuck(const struct entry *entry) {
	for (const struct attempt *attempt = entry->retired; attempt != NULL;
	     attempt = attempt->next) {
		if (attempt->stuck)
			return true;
	}
	return entry->current != NULL && entry->current->stuck;
}

static enum pairing_state entry_current_state(const struct entry *entry) {
	if (entry->current != NULL)
		return entry->current->in_lane ? PAIRING_READY : PAIRING_PENDING;
	if (entry_is_stuck(entry))
		return PAIRING_FAILED;
	if (entry->retired != NULL)
		return PAIRING_DRAINING;
	return entry->tombstone ? PAIRING_FAILED : PAIRING_ABSENT;
}

void entry_update(struct pairing *pairing, struct entry *entry) {
	enum pairing_state state = entry_current_state(entry);

	if (state == entry->state)
		return;
	TRACEPOINT(
		pair_state, entry->key.peer, pairing->devices[entry->key.device].facts.name,
		entry->key.peer_device, entry->state, state, entry->failure.reason
	);
	entry->state = state;
	entry->since_ns = pairing->now_ns;
	if (pairing->ops.changed == NULL ||
	    !report_is_due(&entry->report_pause, pairing->now_ns, state, entry->failure.reason))
		return;
	pairing->ops.changed(pairing->ops.ctx, &entry->key, state);
	if (state == PAIRING_FAILED || state == PAIRING_READY)
		entry->report_pause.untold = 0;
}

// Views

static uint64_t next_try_ns(const struct pairing *pairing, const struct entry *entry) {
	if (entry->wanted || entry->waiters != NULL || entry->offered)
		return pace_due_at_ns(pairing, entry);
	return entry->current == NULL && entry->tombstone ? entry->next_try_ns : PAIRING_NEVER;
}

static void entry_view(
	const struct pairing *pairing, const struct entry *entry, struct pairing_view *ret_view
) {
	const struct attempt *attempt = entry->current;

	*ret_view = (struct pairing_view){
		.key = entry->key,
		.state = entry->state,
		.since_ns = entry->since_ns,
		.wanted = entry->wanted,
		.stuck = entry_is_stuck(entry),
		.retired = entry->retired_count,
		.generation = entry->generation,
		.tries = entry->tries,
		.broken = entry->broken,
		.next_try_ns = next_try_ns(pairing, entry),
		.begun_ns = entry->begun_ns,
		.took_ns = entry->took_ns,
		.used_ns = entry->used_ns,
		.failure = entry->failure,
		.untold = entry->report_pause.untold,
	};
	for (const struct pairing_waiter *waiter = entry->waiters; waiter != NULL;
	     waiter = waiter->next)
		ret_view->waiters++;
	if (attempt == NULL)
		return;
	ret_view->flow_label = attempt->own.flow_label;
	ret_view->endpoint = attempt->own.endpoint;
	if (attempt->bound) {
		ret_view->theirs = attempt->theirs;
		ret_view->guest = attempt->theirs.wanted;
	}
}

bool pairing_next(const struct pairing *pairing, uint32_t *cursor, struct pairing_view *ret_view) {
	const struct entry *entry = pairing->entries;

	for (uint32_t n = 0; n < *cursor && entry != NULL; n++)
		entry = entry->next;
	if (entry == NULL)
		return false;
	++*cursor;
	entry_view(pairing, entry, ret_view);
	return true;
}

bool pairing_find(
	const struct pairing *pairing, const struct pairing_key *key, struct pairing_view *ret_view
) {
	const struct entry *entry = entry_find(pairing, key);

	if (entry == NULL)
		return false;
	entry_view(pairing, entry, ret_view);
	return true;
}

struct attempt *attempt_find(const struct pairing *pairing, uint32_t generation) {
	for (struct entry *entry = pairing->entries; entry != NULL; entry = entry->next) {
		struct attempt *attempt = entry->retired;

		if (entry->current != NULL && entry->current->own.generation == generation)
			return entry->current;
		while (attempt != NULL && attempt->own.generation != generation)
			attempt = attempt->next;
		if (attempt != NULL)
			return attempt;
	}
	return NULL;
}

const struct pairing_key *pairing_key_of(const struct pairing *pairing, uint32_t generation) {
	const struct attempt *attempt = attempt_find(pairing, generation);

	return attempt != NULL ? &attempt->entry->key : NULL;
}
