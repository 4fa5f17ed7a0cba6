// SPDX-License-Identifier: BSD-3-Clause
// Receives messages for this node and delivers each once, in order if requested.
//
// An ordered message names its predecessor: the message of its flow that must be delivered first.
// It names none if its source knows that all earlier messages were answered. Until the predecessor
// is decided, the ordered message is held here. The source's next retry shows whether it has given
// up the earlier message. A message whose port has no consumer is held for a short time, too. Held
// messages are not acknowledged, so a later refusal loses nothing. Transit messages never come here
// and never wait for a consumer.
#include "relay/relay_state.h"

static size_t held_bytes(const struct relay_header *header) {
	return sizeof(struct relay_held) + header->payload_size;
}

// Remove and free the held message to which *at points.
static void held_release(struct ras *ras, struct relay_held **at) {
	struct relay_held *held = *at;

	*at = held->next;
	ras->relay->held_count--;
	ras->relay->held_bytes -= held_bytes(&held->header);
	memory_release(&ras->memory, held, held_bytes(&held->header));
}

void relay_held_fini(struct ras *ras) {
	while (ras->relay->held != NULL)
		held_release(ras, &ras->relay->held);
}

// Hold a copy until its life or `wait_ns` is over. Returns false without room or memory.
static bool held_add(
	struct ras *ras,
	const struct relay_packet *packet,
	enum ras_relay_reason reason,
	uint64_t wait_ns
) {
	const struct relay_header *header = &packet->header;
	uint64_t life_ns = header->life_us * UINT64_C(1000);
	struct relay *relay = ras->relay;
	struct relay_held **end = &relay->held;
	uint32_t of_source = 0;
	struct relay_held *held;

	for (; *end != NULL; end = &(*end)->next)
		of_source += (*end)->header.source == header->source;
	if (relay->held_count >= RELAY_HELD_MAX || of_source >= RELAY_HELD_SOURCE_MAX ||
	    relay->held_bytes + held_bytes(header) > RELAY_HELD_BYTES_MAX)
		return false;
	held = memory_allocate(&ras->memory, held_bytes(header));
	if (held == NULL)
		return false;
	held->until_ns = ras->now_ns + (wait_ns < life_ns ? wait_ns : life_ns);
	held->reason = (uint8_t)reason;
	held->header = *header;
	memcpy(held->payload, packet->frame + header->header_size, header->payload_size);
	*end = held;
	relay->held_count++;
	relay->held_bytes += held_bytes(header);
	relay_wake_at(relay, held->until_ns);
	return true;
}

// Delivery

static void packet_refuse_finally(
	struct ras *ras,
	struct relay_source *source,
	const struct relay_packet *packet,
	enum ras_relay_reason reason
) {
	if (relay_source_seen(source, packet->header.sequence) == RELAY_FRESH)
		relay_source_decide(source, packet->header.sequence, true);
	relay_refuse(ras, packet, reason);
}

// Try to deliver a message. Returns 0 if it was delivered or refused for good. Returns -EBUSY if an
// earlier message of its flow must come first, or -ENOBUFS without room for its flow. -ENOENT and
// -EAGAIN come from the consumer.
static int packet_try_deliver(
	struct ras *ras,
	struct relay_source *source,
	const struct relay_packet *packet,
	const uint8_t *payload
) {
	const struct relay_header *header = &packet->header;
	struct ras_relay_counters *counters = &ras->relay->counters;
	uint32_t bucket =
		header->hops < RAS_RELAY_HOPS_BUCKETS ? header->hops : RAS_RELAY_HOPS_BUCKETS - 1;
	struct ras_relay_delivery delivery = {
		.source = header->source,
		.source_incarnation = header->source_incarnation,
		.class = (enum ras_relay_class)header->class,
		.flow = header->flow,
		.port = header->port,
		.hops = header->hops,
		.payload = payload,
		.size = header->payload_size,
	};
	struct relay_flow *flow = NULL;
	int err;

	if ((header->flags & RELAY_FLAG_ORDERED) != 0) {
		if (header->behind != 0 &&
		    relay_source_seen(source, header->sequence - header->behind) == RELAY_FRESH)
			return -EBUSY;
		flow = relay_source_get_flow(ras, source, header->flow, header->port);
		if (flow == NULL)
			return -ENOBUFS;
		if (flow->delivered > header->sequence) {
			packet_refuse_finally(ras, source, packet, RAS_RELAY_LATE);
			return 0;
		}
	}
	err = ras_relay_deliver(ras, &delivery);
	if (err == -EBADMSG) {
		packet_refuse_finally(ras, source, packet, RAS_RELAY_UNDECODABLE);
		return 0;
	}
	if (err < 0)
		return err == -ENOENT ? -ENOENT : -EAGAIN;
	if (flow != NULL)
		flow->delivered = header->sequence;
	relay_source_decide(source, header->sequence, false);
	counters->delivered[header->class]++;
	counters->delivered_bytes[header->class] += header->payload_size;
	counters->hops[bucket]++;
	relay_answer(ras, packet, RELAY_ACK, RAS_RELAY_REASON_NONE);
	return 0;
}

// Try to deliver a held message. Returns true if it was delivered or refused for good.
static bool held_try_deliver(struct ras *ras, struct relay_held *held) {
	struct relay_packet packet = relay_packet_make(&held->header, NULL, RAS_NO_SLOT);
	struct relay_source *source = relay_source_find(ras->relay, held->header.source);
	uint64_t early_ns = ras->now_ns + RELAY_EARLY_NS;
	int err;

	must(source != NULL); // a source is kept longer than its held messages
	err = packet_try_deliver(ras, source, &packet, held->payload);
	if (err == 0)
		return true;
	if (err == -EBUSY || held->reason == RAS_RELAY_NO_CONSUMER ||
	    held->reason == RAS_RELAY_QUEUE_FULL)
		return false;
	// The earlier messages of its flow are decided. From now on it waits for its consumer.
	held->reason = err == -ENOENT ? RAS_RELAY_NO_CONSUMER : RAS_RELAY_QUEUE_FULL;
	if (early_ns < held->until_ns)
		held->until_ns = early_ns;
	relay_wake_at(ras->relay, held->until_ns);
	return false;
}

// Try to deliver messages that wait for their turn, or for the consumer of this port, until a round
// delivers nothing. Port 0 stands for no port.
static void held_messages_deliver_ready(struct ras *ras, uint32_t port) {
	bool moved = true;

	while (moved) {
		struct relay_held **at = &ras->relay->held;

		moved = false;
		while (*at != NULL) {
			struct relay_held *held = *at;
			bool waits_for_consumer = held->reason == RAS_RELAY_NO_CONSUMER ||
						  held->reason == RAS_RELAY_QUEUE_FULL;

			if ((waits_for_consumer && held->header.port != port) ||
			    !held_try_deliver(ras, held)) {
				at = &held->next;
				continue;
			}
			held_release(ras, at);
			moved = true;
		}
	}
}

void ras_relay_port_ready(struct ras *ras, uint64_t now_ns, uint32_t port) {
	ras_enter(ras, now_ns);
	held_messages_deliver_ready(ras, port);
	ras_exit(ras);
}

void relay_held_tick(struct ras *ras) {
	struct relay_held **at = &ras->relay->held;
	bool refused = false;

	while (*at != NULL) {
		struct relay_held *held = *at;
		struct relay_packet packet = relay_packet_make(&held->header, NULL, RAS_NO_SLOT);
		enum ras_relay_reason reason = (enum ras_relay_reason)held->reason;
		struct relay_source *source;

		if (held->until_ns > ras->now_ns) {
			at = &held->next;
			continue;
		}
		source = relay_source_find(ras->relay, held->header.source);
		must(source != NULL);
		held_release(ras, at);
		// The source may retry if the consumer is full, but not if there is none.
		if (reason == RAS_RELAY_QUEUE_FULL)
			relay_refuse(ras, &packet, reason);
		else
			packet_refuse_finally(ras, source, &packet, reason);
		refused = true;
	}
	if (refused)
		held_messages_deliver_ready(ras, 0);
}

uint64_t relay_held_due_ns(const struct relay *relay) {
	uint64_t due_ns = RAS_NEVER;

	for (const struct relay_held *held = relay->held; held != NULL; held = held->next) {
		if (held->until_ns < due_ns)
			due_ns = held->until_ns;
	}
	return due_ns;
}

// Arrival

// Return true if the sender is the run that our table holds, or a newer start of it.
static bool
sender_run_is_current(const struct peer_entry *entry, const struct relay_header *header) {
	uint64_t start = ras_incarnation_start(header->source_incarnation);

	if (entry->record->start != start)
		return entry->record->start < start;
	return entry->record->run == header->source_run;
}

// Return the entry of the sender, reset for a new start if needed. Returns NULL if the message was
// refused.
static struct relay_source *packet_source(struct ras *ras, const struct relay_packet *packet) {
	const struct relay_header *header = &packet->header;
	uint64_t start = ras_incarnation_start(header->source_incarnation);
	uint64_t life_ns = header->life_us * UINT64_C(1000);
	uint32_t slot = peers_find(&ras->peers, header->source);
	struct relay_held **at = &ras->relay->held;
	struct relay_source *source;

	if (slot != RAS_NO_SLOT && !sender_run_is_current(ras_entry(ras, slot), header)) {
		relay_refuse(ras, packet, RAS_RELAY_WRONG_INCARNATION);
		return NULL;
	}
	source = relay_source_get(ras, header->source, ras->now_ns + life_ns + RELAY_KEEP_SLACK_NS);
	if (source == NULL) {
		relay_refuse(ras, packet, RAS_RELAY_QUEUE_FULL);
		return NULL;
	}
	// Two runs may use one start number. The run in the table is the living one. If the table
	// does not know the peer, only its first run is accepted. Otherwise the messages of both
	// runs would reset the window in turn.
	if (start < source->start ||
	    (start == source->start && slot == RAS_NO_SLOT && header->source_run != source->run)) {
		relay_refuse(ras, packet, RAS_RELAY_WRONG_INCARNATION);
		return NULL;
	}
	if (start > source->start || header->source_run != source->run) {
		// Drop the held messages of the older start.
		while (*at != NULL) {
			if ((*at)->header.source == header->source)
				held_release(ras, at);
			else
				at = &(*at)->next;
		}
		relay_source_restart(ras, source, start, header->source_run);
	}
	return source;
}

static void packet_receive_new(
	struct ras *ras, struct relay_source *source, const struct relay_packet *packet
) {
	struct ras_relay_counters *counters = &ras->relay->counters;
	bool kept = false;

	switch (packet_try_deliver(ras, source, packet, packet->frame + packet->header.header_size)
	) {
	case 0:
		held_messages_deliver_ready(ras, 0);
		return;
	case -EBUSY:
		kept = held_add(ras, packet, RAS_RELAY_EXPIRED, RAS_RELAY_LIFE_MAX_NS);
		counters->reordered += kept;
		break;
	case -ENOENT:
		kept = held_add(ras, packet, RAS_RELAY_NO_CONSUMER, RELAY_EARLY_NS);
		counters->early += kept;
		break;
	default:
		break;
	}
	if (!kept)
		relay_refuse(ras, packet, RAS_RELAY_QUEUE_FULL);
}

void relay_receive(struct ras *ras, const struct relay_packet *packet) {
	const struct relay_header *header = &packet->header;
	struct ras_relay_counters *counters = &ras->relay->counters;
	struct relay_source *source;
	struct relay_held *held;
	struct wire_reader reader;

	if (header->life_us == 0) {
		relay_refuse(ras, packet, RAS_RELAY_EXPIRED);
		return;
	}
	if (header->sequence == 0) {
		// A message that is sent once: no answer, and no check for duplicates.
		counters->delivered[header->class]++;
		counters->delivered_bytes[header->class] += header->payload_size;
		wire_reader_init(
			&reader, packet->frame + header->header_size, header->payload_size
		);
		ras_relay_deliver_once(ras, header->source, header->port, &reader);
		if (!wire_reader_ok(&reader))
			relay_record_end(ras, packet, RAS_RELAY_UNDECODABLE);
		return;
	}
	source = packet_source(ras, packet);
	if (source == NULL)
		return;
	switch (relay_source_seen(source, header->sequence)) {
	case RELAY_DELIVERED:
		relay_record_end(ras, packet, RAS_RELAY_DUPLICATE);
		relay_answer(ras, packet, RELAY_ACK, RAS_RELAY_REASON_NONE);
		return;
	case RELAY_REFUSED:
		relay_refuse(ras, packet, RAS_RELAY_LATE);
		return;
	case RELAY_FRESH:
		break;
	}
	held = ras->relay->held;
	while (held != NULL &&
	       (held->header.source != header->source || held->header.sequence != header->sequence))
		held = held->next;
	if (held == NULL) {
		packet_receive_new(ras, source, packet);
		return;
	}
	// The source sent a held message again: count a duplicate. If the source has given up the
	// earlier message of the flow, the held message need not wait for it any longer.
	relay_record_end(ras, packet, RAS_RELAY_DUPLICATE);
	if (held->header.behind == header->behind)
		return;
	held->header.behind = header->behind;
	held_messages_deliver_ready(ras, 0);
}
