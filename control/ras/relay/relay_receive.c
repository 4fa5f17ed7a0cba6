// SPDX-License-Identifier: BSD-3-Clause
// Messages that end here: once each, in order where asked for, to a consumer that has room.
//
// An ordered message names the one of its flow that must go first, unless its source knows that
// one to be answered; until then it waits here, and its next try says if the earlier one was given
// up meanwhile. A message whose port has no consumer waits too, for a short while. Neither has
// been acknowledged, so nothing is lost if they are refused in the end. What passes through
// this node on the way to another never comes here, and never waits for a consumer.
#include "relay/relay_state.h"

static size_t held_bytes(const struct relay_header *header) {
	return sizeof(struct relay_held) + header->payload_size;
}

// Takes it out of the list, whose link to it is `at`.
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

// What waited here of an older start of the source is gone.
static void relay_held_forget(struct ras *ras, uint64_t source) {
	struct relay_held **at = &ras->relay->held;

	while (*at != NULL) {
		if ((*at)->header.source == source)
			held_release(ras, at);
		else
			at = &(*at)->next;
	}
}

static struct relay_held *held_find(const struct relay *relay, const struct relay_header *header) {
	struct relay_held *held = relay->held;

	while (held != NULL &&
	       (held->header.source != header->source || held->header.sequence != header->sequence))
		held = held->next;
	return held;
}

// Keeps a copy until its life or the time given is over. False: there is no room.
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
	relay_due(relay, held->until_ns);
	return true;
}

// Delivery

static void refuse_for_good(
	struct ras *ras,
	struct relay_source *source,
	const struct relay_packet *packet,
	enum ras_relay_reason reason
) {
	if (relay_source_seen(source, packet->header.sequence) == RELAY_FRESH)
		relay_source_decide(source, packet->header.sequence, true);
	relay_refuse(ras, packet, reason);
}

static void
packet_delivered(struct ras *ras, struct relay_source *source, const struct relay_packet *packet) {
	const struct relay_header *header = &packet->header;
	struct ras_relay_counters *counters = &ras->relay->counters;
	uint32_t bucket =
		header->hops < RAS_RELAY_HOPS_BUCKETS ? header->hops : RAS_RELAY_HOPS_BUCKETS - 1;

	relay_source_decide(source, header->sequence, false);
	counters->delivered[header->class]++;
	counters->delivered_bytes[header->class] += header->payload_size;
	counters->hops[bucket]++;
	relay_answer(ras, packet, RELAY_ACK, RAS_RELAY_REASON_NONE);
}

// 0 when it is decided, for good or bad; -EBUSY: an earlier one of its flow has to come first;
// -ENOENT, -EAGAIN: from the consumer; -ENOBUFS: no room for another flow.
static int packet_offer(
	struct ras *ras,
	struct relay_source *source,
	const struct relay_packet *packet,
	const uint8_t *payload
) {
	const struct relay_header *header = &packet->header;
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
		flow = relay_source_flow(ras, source, header->flow, header->port);
		if (flow == NULL)
			return -ENOBUFS;
		if (flow->delivered > header->sequence) {
			refuse_for_good(ras, source, packet, RAS_RELAY_LATE);
			return 0;
		}
	}
	err = ras_relay_deliver(ras, &delivery);
	if (err == -EBADMSG) {
		refuse_for_good(ras, source, packet, RAS_RELAY_UNDECODABLE);
		return 0;
	}
	if (err < 0)
		return err == -ENOENT ? -ENOENT : -EAGAIN;
	if (flow != NULL)
		flow->delivered = header->sequence;
	packet_delivered(ras, source, packet);
	return 0;
}

// Offers a held message again; true when it is decided.
static bool held_offer(struct ras *ras, struct relay_held *held) {
	struct relay_packet packet = relay_packet_make(&held->header, NULL, RAS_NO_SLOT);
	struct relay_source *source = relay_source_find(ras->relay, held->header.source);
	uint64_t early_ns = ras->now_ns + RELAY_EARLY_NS;
	int err;

	must(source != NULL); // kept longer than any message of its
	err = packet_offer(ras, source, &packet, held->payload);
	if (err == 0)
		return true;
	if (err == -EBUSY || held->reason == RAS_RELAY_NO_CONSUMER ||
	    held->reason == RAS_RELAY_QUEUE_FULL)
		return false;
	// Its turn has come, and its consumer is not ready: from now on it waits for that.
	held->reason = err == -ENOENT ? RAS_RELAY_NO_CONSUMER : RAS_RELAY_QUEUE_FULL;
	if (early_ns < held->until_ns)
		held->until_ns = early_ns;
	relay_due(ras->relay, held->until_ns);
	return false;
}

static bool waits_for_consumer(const struct relay_held *held) {
	return held->reason == RAS_RELAY_NO_CONSUMER || held->reason == RAS_RELAY_QUEUE_FULL;
}

// Offers what waits for its turn, and what waits for the consumer of this port, until a round
// brings nothing new. No port is 0.
static void held_pump(struct ras *ras, uint32_t port) {
	bool moved = true;

	while (moved) {
		struct relay_held **at = &ras->relay->held;

		moved = false;
		while (*at != NULL) {
			struct relay_held *held = *at;

			if ((waits_for_consumer(held) && held->header.port != port) ||
			    !held_offer(ras, held)) {
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
	held_pump(ras, port);
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
		// The source may come back to a full consumer, not to one that does not exist.
		if (reason == RAS_RELAY_QUEUE_FULL)
			relay_refuse(ras, &packet, reason);
		else
			refuse_for_good(ras, source, &packet, reason);
		refused = true;
	}
	if (refused)
		held_pump(ras, 0);
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

static void receive_internal(struct ras *ras, const struct relay_packet *packet) {
	const struct relay_header *header = &packet->header;
	struct ras_relay_counters *counters = &ras->relay->counters;
	struct wire_reader reader;

	counters->delivered[header->class]++;
	counters->delivered_bytes[header->class] += header->payload_size;
	wire_reader_init(&reader, packet->frame + header->header_size, header->payload_size);
	ras_relay_internal(ras, header->source, header->port, &reader);
	if (!wire_reader_ok(&reader))
		relay_count(ras, packet, RAS_RELAY_UNDECODABLE);
}

// Of a start that is not heard of yet, or of the very run that is known.
static bool is_of_known_run(const struct peer_entry *entry, const struct relay_header *header) {
	uint64_t start = ras_incarnation_start(header->source_incarnation);

	if (entry->record->start != start)
		return entry->record->start < start;
	return entry->record->run == header->source_run;
}

// The sender's entry, with the window of the start the message is from. NULL: refused.
static struct relay_source *source_of(struct ras *ras, const struct relay_packet *packet) {
	const struct relay_header *header = &packet->header;
	uint64_t start = ras_incarnation_start(header->source_incarnation);
	uint64_t life_ns = header->life_us * UINT64_C(1000);
	uint32_t slot = peers_find(&ras->peers, header->source);
	struct relay_source *source;

	if (slot != RAS_NO_SLOT && !is_of_known_run(ras_entry(ras, slot), header)) {
		relay_refuse(ras, packet, RAS_RELAY_WRONG_INCARNATION);
		return NULL;
	}
	source =
		relay_source_want(ras, header->source, ras->now_ns + life_ns + RELAY_KEEP_SLACK_NS);
	if (source == NULL) {
		relay_refuse(ras, packet, RAS_RELAY_QUEUE_FULL);
		return NULL;
	}
	// Of two runs of one number the one that the table has is the one that lives; of a stranger
	// the first, or the window would begin anew with each word of the other.
	if (start < source->start ||
	    (start == source->start && slot == RAS_NO_SLOT && header->source_run != source->run)) {
		relay_refuse(ras, packet, RAS_RELAY_WRONG_INCARNATION);
		return NULL;
	}
	if (start > source->start || header->source_run != source->run) {
		relay_held_forget(ras, header->source);
		relay_source_restart(ras, source, start, header->source_run);
	}
	return source;
}

// The next try of a message that waits here: its source may have given up the earlier one.
static void
held_again(struct ras *ras, struct relay_held *held, const struct relay_packet *packet) {
	relay_count(ras, packet, RAS_RELAY_DUPLICATE);
	if (held->header.behind == packet->header.behind)
		return;
	held->header.behind = packet->header.behind;
	held_pump(ras, 0);
}

static void
receive_fresh(struct ras *ras, struct relay_source *source, const struct relay_packet *packet) {
	struct ras_relay_counters *counters = &ras->relay->counters;
	bool kept = false;

	switch (packet_offer(ras, source, packet, packet->frame + packet->header.header_size)) {
	case 0:
		held_pump(ras, 0);
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
	struct relay_source *source;
	struct relay_held *held;

	if (header->life_us == 0) {
		relay_refuse(ras, packet, RAS_RELAY_EXPIRED);
		return;
	}
	if (header->sequence == 0) {
		receive_internal(ras, packet);
		return;
	}
	source = source_of(ras, packet);
	if (source == NULL)
		return;
	switch (relay_source_seen(source, header->sequence)) {
	case RELAY_DELIVERED:
		relay_count(ras, packet, RAS_RELAY_DUPLICATE);
		relay_answer(ras, packet, RELAY_ACK, RAS_RELAY_REASON_NONE);
		return;
	case RELAY_REFUSED:
		relay_refuse(ras, packet, RAS_RELAY_LATE);
		return;
	case RELAY_FRESH:
		break;
	}
	held = held_find(ras->relay, header);
	if (held != NULL)
		held_again(ras, held, packet);
	else
		receive_fresh(ras, source, packet);
}
