// SPDX-License-Identifier: BSD-3-Clause
// Events about own devices, about peers, and about our own start.
#include "fabric/pairing/pairing_inside.h"

#include <stdio.h>

// Devices

int pairing_device(
	struct pairing *pairing, const struct pairing_device *device, uint32_t *ret_device
) {
	size_t length = strnlen(device->name, sizeof(device->name));
	struct own_device *own;
	uint32_t n = 0;

	if (length == 0 || length == sizeof(device->name))
		return -EINVAL;
	while (n < pairing->device_count &&
	       strcmp(pairing->devices[n].facts.name, device->name) != 0)
		n++;
	if (n == PAIRING_DEVICES_MAX)
		return -ENOSPC;
	own = &pairing->devices[n];
	if (n == pairing->device_count) {
		pairing->device_count++;
		own->state = PAIRING_DEVICE_DOWN;
		snprintf(own->text, sizeof(own->text), "not opened yet");
	}
	own->facts = *device;
	*ret_device = n;
	return 0;
}

void pairing_device_state(
	struct pairing *pairing,
	uint64_t now_ns,
	uint32_t device,
	enum pairing_device_state state,
	const char *text
) {
	struct own_device *own = &pairing->devices[device];
	struct pairing_failure lost;

	must(device < pairing->device_count);
	pairing_enter(pairing, now_ns);
	own->state = state;
	snprintf(own->text, sizeof(own->text), "%s", text != NULL ? text : "");
	pairing_failure_set(&lost, PAIRING_DEVICE_GONE, 0, "%s: %s", own->facts.name, own->text);
	for (struct entry *entry = pairing->entries; entry != NULL; entry = entry->next) {
		if (entry->key.device != device)
			continue;
		if (state == PAIRING_DEVICE_ACTIVE)
			pace_reset(pairing, entry);
		if (state == PAIRING_DEVICE_LOST && entry->current != NULL)
			attempt_fail(pairing, entry, &lost);
	}
	pairing_leave(pairing);
}

void pairing_device_renew(struct pairing *pairing, uint64_t now_ns, uint32_t device) {
	struct pairing_failure over;

	must(device < pairing->device_count);
	pairing_enter(pairing, now_ns);
	pairing_failure_set(
		&over, PAIRING_IDLE, 0,
		"%s: the pair is replaced, because the device announces other memory",
		pairing->devices[device].facts.name
	);
	for (struct entry *entry = pairing->entries; entry != NULL; entry = entry->next) {
		if (entry->key.device != device || entry->current == NULL || pairing->stopping)
			continue;
		pairing->counters.renewed++;
		attempt_fail(pairing, entry, &over);
	}
	pairing_leave(pairing);
}

// Peers

enum which {
	AFFECTS_OTHER_START, // attempts bound to another start of the peer; unbound attempts stay
	AFFECTS_UNREADY,
	AFFECTS_ALL,
};

static bool attempt_is_affected(const struct attempt *attempt, enum which which, uint64_t start) {
	switch (which) {
	case AFFECTS_OTHER_START:
		return attempt != NULL && attempt->bound && attempt->theirs.start != start;
	case AFFECTS_UNREADY:
		return attempt == NULL || !attempt->in_lane;
	default:
		return true;
	}
}

static void
peer_fail_attempts(struct pairing *pairing, struct peer *peer, enum which which, const char *what) {
	struct pairing_failure dead;

	pairing_failure_set(&dead, PAIRING_PEER_DEAD, 0, "the peer %s", what);
	for (struct entry *entry = pairing->entries; entry != NULL; entry = entry->next) {
		const struct attempt *attempt = entry->current;

		if (entry->peer != peer)
			continue;
		if (entry->offered &&
		    (which != AFFECTS_OTHER_START || entry->offer.start != peer->start))
			entry->offered = false;
		if (!attempt_is_affected(attempt, which, peer->start))
			continue;
		if (attempt != NULL || entry->waiters != NULL)
			attempt_fail(pairing, entry, &dead);
	}
}

static void peer_reset_pace(struct pairing *pairing, struct peer *peer) {
	peer->fault = false;
	for (struct entry *entry = pairing->entries; entry != NULL; entry = entry->next) {
		if (entry->peer == peer)
			pace_reset(pairing, entry);
	}
}

void peer_restarted(struct pairing *pairing, struct peer *peer, uint64_t start) {
	peer->start = start;
	peer->state = PAIRING_PEER_IS_ALIVE;
	peer_fail_attempts(pairing, peer, AFFECTS_OTHER_START, "restarted");
	peer_reset_pace(pairing, peer);
}

void pairing_peer(
	struct pairing *pairing,
	uint64_t now_ns,
	uint64_t id,
	enum pairing_peer_state state,
	uint64_t start
) {
	struct peer *peer = peer_find(pairing, id);

	// Ignore events of an older start. The pairing knows its own node better than the overlay
	// does.
	if (peer == NULL || start < peer->start || id == pairing->config.self)
		return;
	pairing_enter(pairing, now_ns);
	if (start > peer->start)
		peer_restarted(pairing, peer, start);
	peer->state = state;
	if (state == PAIRING_PEER_IS_ALIVE)
		peer_reset_pace(pairing, peer);
	else if (state == PAIRING_PEER_IS_SILENT)
		peer_fail_attempts(pairing, peer, AFFECTS_UNREADY, "is dead");
	else
		peer_fail_attempts(
			pairing, peer, AFFECTS_ALL,
			state == PAIRING_PEER_HAS_LEFT ? "has left" : "is dead"
		);
	pairing_leave(pairing);
}

void pairing_restart(struct pairing *pairing, uint64_t now_ns, uint64_t start) {
	struct peer *self = peer_find(pairing, pairing->config.self);
	struct pairing_failure stale;

	if (start == pairing->config.start)
		return;
	pairing_enter(pairing, now_ns);
	pairing_failure_set(&stale, PAIRING_STALE, 0, "the agent rejoined the cluster");
	// The peers get messages that still carry the old start.
	for (struct entry *entry = pairing->entries; entry != NULL; entry = entry->next) {
		if (entry->current != NULL)
			attempt_fail(pairing, entry, &stale);
		pace_reset(pairing, entry);
	}
	pairing->config.start = start;
	if (self != NULL)
		self->start = start;
	pairing_leave(pairing);
}
