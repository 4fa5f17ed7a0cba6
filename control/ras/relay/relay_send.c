// SPDX-License-Identifier: BSD-3-Clause
// Own messages, from their acceptance to their end.
//
// A message is pending until it is answered, all its tries were refused, or its life is over. After
// a refusal that another way may avoid, the next try follows at once over an unused first hop.
// After silence, or a refusal that only time can cure, the next try follows after a back-off. A
// refusal only marks the message. The tick sends it again or ends it, so that reports and list
// changes never happen inside other work.
#include "relay/relay_state.h"

static_assert(RELAY_TRIES_MAX <= 8, "a bit of `refused` per try");
static_assert(RAS_RELAY_LIFE_MAX_NS / 1000 <= UINT32_MAX, "a life fits its header field");

static uint32_t tries_max(const struct ras *ras) {
	uint32_t tries = ras->profile->relay_tries;

	return tries < 1 ? 1 : tries > RELAY_TRIES_MAX ? RELAY_TRIES_MAX : tries;
}

static size_t pending_bytes(const struct relay_header *header) {
	return sizeof(struct relay_pending) + relay_packet_bytes(header);
}

static void pending_remove(struct ras *ras, struct relay_pending *pending) {
	struct relay_pending **at = &ras->relay->pending;

	while (*at != pending)
		at = &(*at)->next;
	*at = pending->next;
	ras->relay->pending_count--;
	memory_release(&ras->memory, pending, pending_bytes(&pending->header));
}

void relay_pending_fini(struct ras *ras) {
	while (ras->relay->pending != NULL)
		pending_remove(ras, ras->relay->pending);
}

static void pending_set_retry(struct ras *ras, struct relay_pending *pending, uint64_t at_ns) {
	pending->retry_ns = at_ns;
	relay_wake_at(ras->relay, at_ns);
}

// Ends of messages

static bool all_tries_refused(const struct relay_pending *pending) {
	return pending->tries > 0 && pending->refused == (1u << pending->tries) - 1;
}

static void pending_end(
	struct ras *ras,
	struct relay_pending *pending,
	enum ras_relay_outcome outcome,
	uint32_t hops
) {
	struct ras_relay_report report = {
		.message_id = pending->message_id,
		.destination = pending->header.destination,
		.outcome = outcome,
		.reason = (enum ras_relay_reason)pending->reason,
		.refuser = pending->refuser,
		.hops = hops,
		.tries = pending->tries,
		.round_trip_ns = ras->now_ns - pending->first_ns,
	};
	bool wanted = pending->report;
	uint32_t port = pending->header.port;

	pending_remove(ras, pending);
	ras->relay->counters.outcomes[outcome]++;
	if (wanted)
		ras_relay_report(ras, port, &report);
}

static void pending_mark_over(struct ras *ras, struct relay_pending *pending) {
	pending->over = true;
	pending_set_retry(ras, pending, ras->now_ns);
}

// Refusals

static bool reason_is_routing(enum ras_relay_reason reason) {
	return reason == RAS_RELAY_NO_ROUTE || reason == RAS_RELAY_STALE_VIEW ||
	       reason == RAS_RELAY_HOPS || reason == RAS_RELAY_DESTINATION_DOWN;
}

// Return true for reasons that only the destination gives, and would give again.
static bool reason_is_final(enum ras_relay_reason reason) {
	return reason == RAS_RELAY_WRONG_INCARNATION || reason == RAS_RELAY_NO_CONSUMER ||
	       reason == RAS_RELAY_UNDECODABLE || reason == RAS_RELAY_LATE;
}

// Return true if the next try may succeed at once over another first hop: a transit node had no
// route. After STALE_VIEW the back-off is needed, since the tables have to become equal first.
static bool pending_can_retry_at_once(
	const struct ras *ras, const struct relay_pending *pending, enum ras_relay_reason reason
) {
	return pending->refuser != 0 && pending->tries < tries_max(ras) &&
	       reason_is_routing(reason) && reason != RAS_RELAY_STALE_VIEW;
}

static void pending_refused(
	struct ras *ras,
	struct relay_pending *pending,
	const struct relay_header *answer,
	enum ras_relay_reason reason
) {
	bool newest = answer->attempt + 1u == pending->tries;

	pending->refused |= (uint8_t)(1u << answer->attempt);
	pending->reason = (uint8_t)reason;
	pending->refuser = answer->source == ras->self_id ? 0 : answer->source;
	pending->refused_hops = answer->behind;
	if (answer->source == answer->about)
		pending->hop_count = 0; // the message reached its destination: the way is good
	// After our own restart the destination refuses our old run before it checks for
	// duplicates. So WRONG_INCARNATION does not prove that no earlier try was delivered.
	if (reason_is_final(reason) &&
	    (reason != RAS_RELAY_WRONG_INCARNATION || all_tries_refused(pending))) {
		pending->certain = true;
		pending_mark_over(ras, pending);
	} else if (all_tries_refused(pending) && pending->tries >= tries_max(ras)) {
		pending_mark_over(ras, pending);
	} else if (newest && pending_can_retry_at_once(ras, pending, reason)) {
		pending_set_retry(ras, pending, ras->now_ns);
	}
}

void relay_answer_received(
	struct ras *ras, const struct relay_header *answer, enum ras_relay_reason reason
) {
	struct relay_pending *pending = ras->relay->pending;

	while (pending != NULL && (pending->header.destination != answer->about ||
				   pending->header.sequence != answer->sequence))
		pending = pending->next;
	if (pending == NULL || pending->over || answer->attempt >= pending->tries ||
	    reason >= RAS_RELAY_REASON_COUNT ||
	    (reason == RAS_RELAY_REASON_NONE && answer->source != answer->about)) {
		ras->relay->counters.replies_unknown++;
		return;
	}
	if (reason != RAS_RELAY_REASON_NONE) {
		pending_refused(ras, pending, answer, reason);
		return;
	}
	pending->reason = RAS_RELAY_REASON_NONE;
	pending->refuser = 0;
	pending_end(ras, pending, RAS_RELAY_OUTCOME_DELIVERED, answer->behind);
}

void relay_pending_peer_changed(struct ras *ras, uint32_t slot) {
	const struct peer_entry *entry = ras_entry(ras, slot);
	bool member = peer_is_member(entry);
	struct relay_pending *pending;

	for (pending = ras->relay->pending; pending != NULL; pending = pending->next) {
		if (pending->header.destination != entry->record->id || pending->over)
			continue;
		if (member && pending->header.destination_run == entry->record->run)
			continue;
		pending->reason = member ? RAS_RELAY_WRONG_INCARNATION : RAS_RELAY_DESTINATION_DOWN;
		pending->refuser = 0;
		pending_mark_over(ras, pending);
	}
}

void relay_self_restarted(struct ras *ras) {
	struct relay_pending *pending;

	for (pending = ras->relay->pending; pending != NULL; pending = pending->next) {
		if (pending->tries > 0 && !pending->over)
			pending_mark_over(ras, pending);
	}
}

// Tries

// Return the distance to the latest pending message before this one in its flow, 0 for none.
static uint16_t
flow_predecessor_distance(const struct ras *ras, const struct relay_pending *pending) {
	const struct relay_header *header = &pending->header;
	uint64_t before = 0;

	if ((header->flags & RELAY_FLAG_ORDERED) == 0)
		return 0;
	for (const struct relay_pending *other = ras->relay->pending; other != NULL;
	     other = other->next) {
		if (other->header.destination != header->destination || other->over ||
		    (other->header.flags & RELAY_FLAG_ORDERED) == 0 ||
		    other->header.flow != header->flow || other->header.port != header->port)
			continue;
		if (other->header.sequence < header->sequence && other->header.sequence > before)
			before = other->header.sequence;
	}
	return before != 0 ? (uint16_t)(header->sequence - before) : 0;
}

static void pending_transmit(struct ras *ras, struct relay_pending *pending) {
	struct relay_header *header = &pending->header;
	uint64_t retry_ns = pending->deadline_ns;
	enum ras_relay_reason reason;
	struct relay_packet packet;

	header->attempt = pending->tries++;
	header->behind = flow_predecessor_distance(ras, pending);
	header->life_us = (uint32_t)((pending->deadline_ns - ras->now_ns) / 1000);
	header->view = peers_digest(&ras->peers);
	header->source_incarnation = ras_self(ras)->incarnation;
	header->source_run = ras_self(ras)->record->run;
	header->hops_left =
		(uint16_t)relay_hops_max(peers_ring_count(&ras->peers), ras->profile->long_rings);
	relay_header_encode(header, pending->frame);
	packet = relay_packet_make(header, pending->frame, RAS_NO_SLOT);
	if (pending->tries > 1)
		ras->relay->counters.retransmitted++;
	if (pending->tries < tries_max(ras)) {
		uint64_t wait_ns = ras->profile->relay_retry_ns << (pending->tries - 1);
		uint64_t next_ns = ras->now_ns + ras_jitter(ras, wait_ns);

		if (next_ns < retry_ns)
			retry_ns = next_ns;
	}
	pending_set_retry(ras, pending, retry_ns);
	if (header->destination == ras->self_id) {
		relay_receive(ras, &packet); // may end the message at once
		return;
	}
	reason = relay_dispatch(ras, &packet, pending->hops, pending->hop_count);
	if (reason_is_routing(reason) && pending->hop_count > 0) {
		// All first hops were tried, so start again with the best one.
		pending->hop_count = 0;
		reason = relay_dispatch(ras, &packet, NULL, 0);
	}
	if (packet.hop != RAS_NO_SLOT)
		pending->hops[pending->hop_count++] = packet.hop;
	if (reason != RAS_RELAY_REASON_NONE)
		relay_refuse(ras, &packet, reason);
}

void relay_pending_tick(struct ras *ras) {
	for (;;) {
		struct relay_pending *pending = ras->relay->pending;
		enum ras_relay_outcome outcome = RAS_RELAY_OUTCOME_EXPIRED;
		struct relay_packet packet;

		// Search from the start each time, since the end of one message may end others. The
		// loop ends, because each round ends a message or uses up a try.
		while (pending != NULL && pending->retry_ns > ras->now_ns)
			pending = pending->next;
		if (pending == NULL)
			return;
		if (!pending->over && ras->now_ns < pending->deadline_ns) {
			pending_transmit(ras, pending);
			continue;
		}
		if (!pending->over && !all_tries_refused(pending)) {
			packet = relay_packet_make(&pending->header, NULL, RAS_NO_SLOT);
			pending->reason = RAS_RELAY_NO_ANSWER;
			pending->refuser = 0;
			relay_record_end(ras, &packet, RAS_RELAY_NO_ANSWER);
		}
		if (pending->reason != RAS_RELAY_EXPIRED &&
		    (pending->certain || all_tries_refused(pending)))
			outcome = RAS_RELAY_OUTCOME_REFUSED;
		pending_end(ras, pending, outcome, pending->refused_hops);
	}
}

uint64_t relay_pending_due_ns(const struct relay *relay) {
	uint64_t due_ns = RAS_NEVER;

	for (const struct relay_pending *pending = relay->pending; pending != NULL;
	     pending = pending->next) {
		if (pending->retry_ns < due_ns)
			due_ns = pending->retry_ns;
	}
	return due_ns;
}

// Acceptance

static int message_check(const struct ras_relay_message *message) {
	if (message->class >= RAS_RELAY_CLASS_COUNT)
		return -EINVAL;
	if ((message->flags & ~(RAS_RELAY_REPORT | RAS_RELAY_ORDERED)) != 0)
		return -EINVAL;
	if (message->life_ns > RAS_RELAY_LIFE_MAX_NS)
		return -EINVAL;
	if (message->size > ras_relay_size_max(message->class))
		return -EMSGSIZE;
	return 0;
}

// Return true if another message fits. There is a limit for all pending messages. Besides, no
// pending message may fall out of the duplicate window of the destination.
static bool pending_has_room(const struct ras *ras, const struct relay_source *source) {
	const struct relay_pending *pending;

	if (ras->relay->pending_count >= RAS_RELAY_PENDING_MAX)
		return false;
	for (pending = ras->relay->pending; pending != NULL; pending = pending->next) {
		if (pending->header.destination == source->id &&
		    source->sent + 1 - pending->header.sequence >= RELAY_WINDOW)
			return false;
	}
	return true;
}

static struct relay_pending *pending_create(
	struct ras *ras, const struct ras_relay_message *message, struct relay_header *header
) {
	struct relay_pending **end = &ras->relay->pending;
	struct relay_pending *pending;

	pending = memory_allocate(&ras->memory, pending_bytes(header));
	if (pending == NULL)
		return NULL;
	pending->header = *header;
	pending->report = (message->flags & RAS_RELAY_REPORT) != 0;
	pending->first_ns = ras->now_ns;
	if (message->size > 0)
		memcpy(pending->frame + RELAY_HEADER_BYTES, message->payload, message->size);
	while (*end != NULL)
		end = &(*end)->next;
	*end = pending;
	ras->relay->pending_count++;
	return pending;
}

static int
message_accept(struct ras *ras, const struct ras_relay_message *message, uint64_t *ret_message_id) {
	uint64_t life_ns = message->life_ns != 0 ? message->life_ns : RELAY_LIFE_DEFAULT_NS;
	uint32_t slot = peers_find(&ras->peers, message->destination);
	struct relay *relay = ras->relay;
	struct relay_pending *pending;
	struct relay_source *source;
	struct relay_header header;

	if (ras->leaving)
		return -ESHUTDOWN;
	if (slot == RAS_NO_SLOT)
		return -ENOENT;
	if (!peer_is_member(ras_entry(ras, slot)))
		return -EHOSTDOWN;
	source = relay_source_get(
		ras, message->destination, ras->now_ns + life_ns + RELAY_KEEP_SLACK_NS
	);
	if (source == NULL || !pending_has_room(ras, source))
		return -EAGAIN;
	header = (struct relay_header){
		.header_size = RELAY_HEADER_BYTES,
		.kind = RELAY_DATA,
		.class = (uint8_t)message->class,
		.flags = (message->flags & RAS_RELAY_ORDERED) != 0 ? RELAY_FLAG_ORDERED : 0,
		.detours = RELAY_DETOURS_MAX,
		.source = ras->self_id,
		.destination = message->destination,
		.destination_run = ras_entry(ras, slot)->record->run,
		.sequence = source->sent + 1,
		.flow = message->flow,
		.port = message->port,
		.payload_size = (uint16_t)message->size,
	};
	pending = pending_create(ras, message, &header);
	if (pending == NULL)
		return -ENOMEM;
	pending->deadline_ns = ras->now_ns + life_ns;
	pending->message_id = ++relay->last_message_id;
	source->sent++;
	if (relay->last_sequence < source->sent)
		relay->last_sequence = source->sent;
	relay->counters.accepted[message->class]++;
	*ret_message_id = pending->message_id;

	if (message->destination == ras->self_id)
		pending_set_retry(ras, pending, ras->now_ns);
	else
		pending_transmit(ras, pending);
	return 0;
}

int ras_relay_send(
	struct ras *ras,
	uint64_t now_ns,
	const struct ras_relay_message *message,
	uint64_t *ret_message_id
) {
	int err = message->port < RAS_RELAY_PORT_MIN ? -EINVAL : message_check(message);

	if (err < 0)
		return err;
	ras_enter(ras, now_ns);
	err = message_accept(ras, message, ret_message_id);
	ras_exit(ras);
	return err;
}

int relay_send_own(
	struct ras *ras, const struct ras_relay_message *message, uint64_t *ret_message_id
) {
	must(message->port < RAS_RELAY_PORT_MIN && message_check(message) == 0);
	return message_accept(ras, message, ret_message_id);
}

static struct relay_pending *pending_find(const struct ras *ras, uint64_t message_id) {
	struct relay_pending *pending = ras->relay->pending;

	while (pending != NULL && pending->message_id != message_id)
		pending = pending->next;
	return pending;
}

void relay_cancel_own(struct ras *ras, uint64_t message_id) {
	struct relay_pending *pending = pending_find(ras, message_id);

	if (pending != NULL)
		pending_remove(ras, pending);
}

int ras_relay_cancel(struct ras *ras, uint64_t now_ns, uint64_t message_id) {
	struct relay_pending *pending = pending_find(ras, message_id);

	if (pending == NULL || pending->header.port < RAS_RELAY_PORT_MIN)
		return -ENOENT;
	ras_enter(ras, now_ns);
	pending_remove(ras, pending);
	ras_exit(ras);
	return 0;
}
