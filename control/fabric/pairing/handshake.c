// SPDX-License-Identifier: BSD-3-Clause
// The handshake: messages to peers, and reactions to their messages.
//
// Each side creates a queue pair and announces it (INFO). A side that receives INFO connects its
// own queue pair to the announced one, and says so (READY). A side that is connected and has
// received READY is ready. From its connection on, a queue pair is bound to one queue pair of the
// peer for good. In each message the sender names the queue pair of the peer that its own is bound
// to. So
//
//   - both sides may begin at once: two queue pairs are made, not four;
//   - a newer queue pair of the peer means that the one before is gone. Ours is given up, too. If
//     the newer one is not bound yet, it is answered with a new one of ours;
//   - a queue pair that is bound to one we do not have can never work: the peer gets a REFUSE with
//     reason Stale. That is final, because bindings do not change and no generation is used twice;
//   - a message that is older than the newest known generation of its key is late, and ignored.
#include "fabric/pairing/pairing_inside.h"
#include "fabric/pairing/pairing_message.h"

// Answering each copy of a message at once would double the cost of a flood.
#define REPEAT_INTERVAL_NS (10 * PAIRING_NS_PER_MS)

// Sending

static void send_message(
	struct pairing *pairing,
	uint64_t peer,
	uint64_t start,
	struct pairing_message *message,
	uint32_t tag
) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
	size_t size;

	message->version = PAIRING_VERSION;
	message->version_least = PAIRING_VERSION_LEAST;
	message->end.start = pairing->config.start;
	size = pairing_message_encode(message, bytes);
	pairing->counters.sent++;
	if (pairing->ops.send(pairing->ops.ctx, peer, start, bytes, size, tag) < 0)
		pairing->counters.send_failed++;
}

static void message_name_ends(
	const struct pairing *pairing,
	const struct attempt *attempt,
	struct pairing_message *message
) {
	const struct pairing_key *key = &attempt->entry->key;

	memcpy(message->device, pairing->devices[key->device].facts.name, sizeof(message->device));
	memcpy(message->your_device, key->peer_device, sizeof(message->your_device));
	if (attempt->bound) {
		message->your_start = attempt->theirs.start;
		message->your_generation = attempt->theirs.generation;
	}
}

void attempt_announce(struct pairing *pairing, struct attempt *attempt) {
	const struct entry *entry = attempt->entry;
	struct pairing_message message = {
		.type = attempt->connected ? PAIRING_READY_SENT : PAIRING_INFO,
		.flags = attempt->connected && attempt->peer_ready ? PAIRING_FLAG_SEEN : 0,
	};

	attempt->own.wanted = entry->wanted;
	message.end = attempt->own;
	message_name_ends(pairing, attempt, &message);
	attempt->announced = true;
	attempt->said_ns = pairing->now_ns;
	attempt->resend_ns = pairing->now_ns + attempt->resend_gap_ns;
	send_message(
		pairing, entry->key.peer, entry->peer->start, &message, attempt->own.generation
	);
}

void attempt_announce_end(
	struct pairing *pairing, struct attempt *attempt, const struct pairing_failure *failure
) {
	const struct entry *entry = attempt->entry;
	struct pairing_message message = {.type = PAIRING_CLOSE, .failure = *failure};

	if (entry_is_self(pairing, entry))
		return;
	if (!attempt->announced && attempt->bound) {
		pairing_refuse(
			pairing, entry->key.peer, pairing->devices[entry->key.device].facts.name,
			entry->key.peer_device, &attempt->theirs, failure
		);
		return;
	}
	if (!attempt->announced)
		return;
	message.end.generation = attempt->own.generation;
	message_name_ends(pairing, attempt, &message);
	send_message(pairing, entry->key.peer, entry->peer->start, &message, 0);
}

void pairing_refuse(
	struct pairing *pairing,
	uint64_t peer,
	const char *device,
	const char *peer_device,
	const struct pairing_end *theirs,
	const struct pairing_failure *failure
) {
	struct pairing_message message = {
		.type = PAIRING_REFUSE,
		.your_start = theirs->start,
		.your_generation = theirs->generation,
		.failure = *failure,
	};

	memcpy(message.device, device, sizeof(message.device));
	memcpy(message.your_device, peer_device, sizeof(message.your_device));
	pairing->counters.refused++;
	send_message(pairing, peer, theirs->start, &message, 0);
}

static void refuse_message(
	struct pairing *pairing,
	uint64_t peer,
	const struct pairing_message *message,
	const struct pairing_failure *failure
) {
	pairing_refuse(
		pairing, peer, message->your_device, message->device, &message->end, failure
	);
}

// Receiving

static bool ends_are_same(const struct pairing_end *a, const struct pairing_end *b) {
	return a->start == b->start && a->generation == b->generation;
}

// Return whether the end is older than the newest known one, or is that one and was closed.
// Generations wrap around: the newer of two is less than half the range ahead.
static bool end_is_older(const struct entry *entry, const struct pairing_end *end) {
	if (end->start != entry->heard_start)
		return end->start < entry->heard_start;
	if (end->generation == entry->heard_generation)
		return entry->heard_gone;
	return (int32_t)(end->generation - entry->heard_generation) < 0;
}

static void entry_note_peer_end(struct entry *entry, const struct pairing_end *end, bool gone) {
	entry->heard_start = end->start;
	entry->heard_generation = end->generation;
	entry->heard_gone = gone;
}

static void entry_replace(struct pairing *pairing, struct entry *entry) {
	struct pairing_failure replaced;

	pairing->counters.replaced++;
	pairing_failure_set(&replaced, PAIRING_REPLACED, 0, "the peer has opened a newer pair");
	attempt_fail(pairing, entry, &replaced);
}

static void
entry_store_offer(struct pairing *pairing, struct entry *entry, const struct pairing_end *theirs) {
	entry->offer = *theirs;
	entry->offered = true;
	entry->offer_until_ns = pairing->now_ns + pairing->config.handshake_ns;
}

static void attempt_repeat_received(
	struct pairing *pairing, struct attempt *attempt, const struct pairing_message *message
) {
	bool ready = message->type == PAIRING_READY_SENT;
	bool knows_us = message->your_generation != 0;
	bool repeated = ready && attempt->peer_ready;

	attempt->theirs.wanted = message->end.wanted;
	attempt->peer_ready = attempt->peer_ready || ready;
	if (attempt->in_lane) {
		if (!repeated || (message->flags & PAIRING_FLAG_SEEN) != 0)
			return;
		pairing->counters.repaired++;
	} else {
		attempt_advance(pairing, attempt);
		if (knows_us)
			return;
	}
	// The peer missed our last message.
	if (attempt->announced && pairing->now_ns >= attempt->said_ns + REPEAT_INTERVAL_NS)
		attempt_announce(pairing, attempt);
}

static void entry_match_message(
	struct pairing *pairing, struct entry *entry, const struct pairing_message *message
) {
	struct attempt *attempt = entry->current;
	const struct pairing_end *theirs = &message->end;
	uint32_t bound_to = message->your_generation;
	bool is_ours = attempt != NULL && attempt->own.generation == bound_to;
	bool has_another = attempt != NULL && attempt->connect_asked &&
			   !ends_are_same(&attempt->theirs, theirs);
	struct pairing_failure stale;

	if (bound_to != 0 && (!is_ours || has_another)) {
		// Reject an end that is bound to a queue pair of ours which cannot be bound to it.
		pairing->counters.stale++;
		pairing_failure_set(&stale, PAIRING_STALE, 0, "the answered pair no longer exists");
		refuse_message(pairing, entry->key.peer, message, &stale);
		// The message also shows that the peer lost the queue pair that ours is bound to.
		if (entry->current != NULL && entry->current->connect_asked)
			entry_replace(pairing, entry);
	} else if (attempt == NULL) {
		entry_store_offer(pairing, entry, theirs);
	} else if (has_another) {
		entry_replace(pairing, entry);
		entry_store_offer(pairing, entry, theirs);
	} else if (attempt->connect_asked) {
		attempt_repeat_received(pairing, attempt, message);
	} else {
		attempt->bound = true;
		attempt->theirs = *theirs;
		attempt->peer_ready = message->type == PAIRING_READY_SENT;
		attempt_advance(pairing, attempt);
	}
}

// Return whether the key can have a pair with this end at all.
static bool message_can_pair(
	struct pairing *pairing,
	const struct pairing_key *key,
	const struct pairing_message *message,
	struct pairing_failure *ret_failure
) {
	enum pairing_reason reason = PAIRING_MALFORMED;
	char text[DEVICE_REASON_MAX + 1] = "";
	int err;

	if (message->failure.reason != PAIRING_REASON_NONE) {
		*ret_failure = message->failure;
		return false;
	}
	err = pairing->ops.check(pairing->ops.ctx, key->device, &message->end.endpoint, text);
	if (err == 0)
		return true;
	if (err == -EPROTONOSUPPORT)
		reason = PAIRING_NO_COMMON_FABRIC;
	else if (err == -EKEYREJECTED)
		reason = PAIRING_LIMITED_MEMBERS;
	pairing_failure_set(ret_failure, reason, err, "%s", text);
	return false;
}

static void message_reject(
	struct pairing *pairing,
	struct entry *entry,
	uint64_t source,
	const struct pairing_message *message,
	const struct pairing_failure *failure
) {
	struct attempt *attempt = entry != NULL ? entry->current : NULL;

	refuse_message(pairing, source, message, failure);
	if (attempt == NULL || attempt->in_lane)
		return;
	if (message->your_generation == 0 || message->your_generation == attempt->own.generation)
		attempt_fail(pairing, entry, failure);
}

// Find the key of a message. Returns 0, -ENODEV (no such own device), or -EBADMSG (a message from
// ourselves, from a device to itself).
static int message_find_key(
	struct pairing *pairing,
	uint64_t source,
	const struct pairing_message *message,
	struct pairing_key *ret_key
) {
	uint32_t device = 0;

	while (device < pairing->device_count &&
	       strcmp(pairing->devices[device].facts.name, message->your_device) != 0)
		device++;
	if (device == pairing->device_count)
		return -ENODEV;
	if (source == pairing->config.self && strcmp(message->device, message->your_device) == 0)
		return -EBADMSG;
	*ret_key = (struct pairing_key){.device = device, .peer = source};
	memcpy(ret_key->peer_device, message->device, sizeof(ret_key->peer_device));
	return 0;
}

static int
offer_receive(struct pairing *pairing, uint64_t source, const struct pairing_message *message) {
	struct pairing_failure failure;
	struct pairing_key key;
	struct entry *entry;
	int err = message_find_key(pairing, source, message, &key);

	if (err == -ENODEV) {
		pairing_failure_set(
			&failure, PAIRING_NO_DEVICE, 0, "there is no device %s",
			message->your_device
		);
		refuse_message(pairing, source, message, &failure);
	}
	if (err < 0)
		return err == -ENODEV ? 0 : err;
	entry = entry_find(pairing, &key);
	if (entry != NULL && end_is_older(entry, &message->end)) {
		pairing->counters.stale++;
		return 0;
	}
	if (!message_can_pair(pairing, &key, message, &failure)) {
		message_reject(pairing, entry, source, message, &failure);
		return 0;
	}
	err = entry == NULL ? entry_get(pairing, &key, false, &entry) : 0;
	if (err == -EHOSTDOWN || err == -ENOENT) {
		pairing->counters.stale++;
		return 0;
	}
	if (err < 0) {
		pairing_failure_set(&failure, PAIRING_NO_ROOM, err, "no room for another pair");
		refuse_message(pairing, source, message, &failure);
		return 0;
	}
	entry_note_peer_end(entry, &message->end, false);
	entry_match_message(pairing, entry, message);
	return 0;
}

static void
refuse_receive(struct pairing *pairing, uint64_t source, const struct pairing_message *message) {
	struct attempt *attempt = attempt_find(pairing, message->your_generation);
	struct entry *entry = attempt != NULL ? attempt->entry : NULL;

	// A ready pair was not refused: this answers an earlier copy of our message.
	if (entry == NULL || entry->current != attempt || entry->key.peer != source ||
	    strcmp(entry->key.peer_device, message->device) != 0 ||
	    (attempt->in_lane && message->failure.reason != PAIRING_STALE)) {
		pairing->counters.stale++;
		return;
	}
	attempt_fail(pairing, entry, &message->failure);
}

static int
close_receive(struct pairing *pairing, uint64_t source, const struct pairing_message *message) {
	struct pairing_key key;
	struct entry *entry;
	struct attempt *attempt;

	if (message_find_key(pairing, source, message, &key) < 0)
		return -EBADMSG;
	entry = entry_find(pairing, &key);
	if (entry == NULL || end_is_older(entry, &message->end)) {
		pairing->counters.stale++;
		return 0;
	}
	entry_note_peer_end(entry, &message->end, true);
	if (entry->offered && ends_are_same(&entry->offer, &message->end))
		entry->offered = false;
	attempt = entry->current;
	if (attempt != NULL &&
	    (attempt->bound ? ends_are_same(&attempt->theirs, &message->end)
			    : attempt->own.generation == message->your_generation))
		attempt_fail(pairing, entry, &message->failure);
	return 0;
}

// Return whether the message comes from the current start of the peer.
static bool source_is_current(struct pairing *pairing, uint64_t source, uint64_t source_start) {
	struct peer *peer = peer_find(pairing, source);

	if (source == pairing->config.self)
		return source_start == pairing->config.start;
	if (peer == NULL)
		return true;
	if (source_start > peer->start) // the overlay's event is still under way
		peer_restarted(pairing, peer, source_start);
	return source_start == peer->start && peer->state == PAIRING_PEER_IS_ALIVE;
}

static int message_receive(
	struct pairing *pairing,
	uint64_t source,
	uint64_t source_start,
	const void *bytes,
	size_t size
) {
	struct pairing_message message;
	int err = pairing_message_decode(bytes, size, &message);

	if (err == -EBADMSG) {
		pairing->counters.malformed++;
		return -EBADMSG;
	}
	if (message.end.start != source_start) {
		pairing->counters.forged++;
		return -EBADMSG;
	}
	if (!source_is_current(pairing, source, source_start) ||
	    (message.your_start != 0 && message.your_start != pairing->config.start)) {
		pairing->counters.stale++;
		return 0;
	}
	switch (message.type) {
	case PAIRING_REFUSE:
		refuse_receive(pairing, source, &message);
		return 0;
	case PAIRING_CLOSE:
		err = close_receive(pairing, source, &message);
		break;
	default:
		err = offer_receive(pairing, source, &message);
	}
	pairing->counters.malformed += err < 0 ? 1 : 0;
	return err;
}

int pairing_receive(
	struct pairing *pairing,
	uint64_t now_ns,
	uint64_t source,
	uint64_t source_start,
	const void *bytes,
	size_t size
) {
	int err;

	pairing_enter(pairing, now_ns);
	pairing->counters.received++;
	err = message_receive(pairing, source, source_start, bytes, size);
	pairing_leave(pairing);
	return err;
}

void pairing_undelivered(
	struct pairing *pairing, uint64_t now_ns, uint64_t peer, uint32_t tag, const char *text
) {
	struct pairing_failure failure;

	pairing_enter(pairing, now_ns);
	pairing->counters.undelivered++;
	pairing_failure_set(&failure, PAIRING_UNREACHABLE, 0, "%s", text);
	for (struct entry *entry = pairing->entries; entry != NULL; entry = entry->next) {
		const struct attempt *attempt = entry->current;

		if (attempt == NULL || attempt->in_lane || entry->key.peer != peer)
			continue;
		if (tag == 0 ? !attempt->bound : attempt->own.generation == tag)
			attempt_fail(pairing, entry, &failure);
	}
	pairing_leave(pairing);
}
