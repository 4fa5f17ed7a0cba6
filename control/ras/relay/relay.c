// SPDX-License-Identifier: BSD-3-Clause
// Entry points of the relay: dispatches, forwards, answers and refuses messages.
#include "relay/relay.h"

#include "relay/relay_state.h"

#define ANSWER_LIFE_US 10000000u // life of an ACK or NAK

static const char *const class_names[RAS_RELAY_CLASS_COUNT] = {
	[RAS_RELAY_CONTROL] = "control",
	[RAS_RELAY_EVENT] = "event",
	[RAS_RELAY_BULK] = "bulk",
};

static const char *const reason_names[RAS_RELAY_REASON_COUNT] = {
	[RAS_RELAY_REASON_NONE] = "none",
	[RAS_RELAY_NO_ROUTE] = "no-route",
	[RAS_RELAY_STALE_VIEW] = "stale-view",
	[RAS_RELAY_HOPS] = "hops",
	[RAS_RELAY_QUEUE_FULL] = "queue-full",
	[RAS_RELAY_DESTINATION_DOWN] = "destination-down",
	[RAS_RELAY_WRONG_INCARNATION] = "wrong-incarnation",
	[RAS_RELAY_NO_CONSUMER] = "no-consumer",
	[RAS_RELAY_EXPIRED] = "expired",
	[RAS_RELAY_UNDECODABLE] = "undecodable",
	[RAS_RELAY_LATE] = "late",
	[RAS_RELAY_DUPLICATE] = "duplicate",
	[RAS_RELAY_NO_ANSWER] = "no-answer",
};

static const char *const outcome_names[RAS_RELAY_OUTCOME_COUNT] = {
	[RAS_RELAY_OUTCOME_DELIVERED] = "delivered",
	[RAS_RELAY_OUTCOME_REFUSED] = "refused",
	[RAS_RELAY_OUTCOME_EXPIRED] = "expired",
};

const char *ras_relay_class_name(enum ras_relay_class class) {
	must(class < RAS_RELAY_CLASS_COUNT);
	return class_names[class];
}

const char *ras_relay_reason_name(enum ras_relay_reason reason) {
	must(reason < RAS_RELAY_REASON_COUNT);
	return reason_names[reason];
}

const char *ras_relay_outcome_name(enum ras_relay_outcome outcome) {
	must(outcome < RAS_RELAY_OUTCOME_COUNT);
	return outcome_names[outcome];
}

int relay_create(struct ras *ras) {
	ras->relay = memory_allocate(&ras->memory, sizeof(*ras->relay));
	if (ras->relay == NULL)
		return -ENOMEM;
	ras->relay->due_ns = RAS_NEVER;
	ras->relay->reclaim_ns = RAS_NEVER;
	return 0;
}

void relay_destroy(struct ras *ras) {
	if (ras->relay == NULL)
		return;
	relay_pending_fini(ras);
	relay_held_fini(ras);
	relay_sources_fini(ras);
	relay_queue_fini(ras);
	memory_release(&ras->memory, ras->relay, sizeof(*ras->relay));
	ras->relay = NULL;
}

void relay_schedule_reclaim(struct ras *ras) {
	struct relay *relay = ras->relay;

	if (relay->reclaim_ns == RAS_NEVER)
		relay->reclaim_ns = ras->now_ns + RELAY_IDLE_NS;
	relay_wake_at(relay, relay->reclaim_ns);
}

// Ends of messages

static uint64_t peer_id_at(const struct ras *ras, uint32_t slot) {
	if (slot == RAS_NO_SLOT || ras_entry(ras, slot)->record == NULL)
		return 0;
	return ras_entry(ras, slot)->record->id;
}

void relay_record_end(
	struct ras *ras, const struct relay_packet *packet, enum ras_relay_reason reason
) {
	struct ras_relay_incident *incident = &ras->relay->incidents[reason];

	ras->relay->counters.ended[reason][packet->header.class]++;
	incident->count++;
	incident->at_ns = ras->now_ns;
	incident->class = packet->header.class;
	incident->source = packet->header.source;
	incident->destination = packet->header.destination;
	incident->from = peer_id_at(ras, packet->from);
	incident->hop = peer_id_at(ras, packet->hop);
}

void relay_refuse(
	struct ras *ras, const struct relay_packet *packet, enum ras_relay_reason reason
) {
	relay_record_end(ras, packet, reason);
	if (packet->header.kind == RELAY_DATA && packet->header.sequence != 0)
		relay_answer(ras, packet, RELAY_NAK, reason);
	else if (packet->header.kind != RELAY_DATA)
		ras->relay->counters.replies_lost++;
}

void relay_answer(
	struct ras *ras,
	const struct relay_packet *about,
	enum relay_kind kind,
	enum ras_relay_reason reason
) {
	struct ras_relay_counters *counters = &ras->relay->counters;
	uint8_t frame[RELAY_HEADER_BYTES];
	struct relay_header header = {
		.header_size = RELAY_HEADER_BYTES,
		.kind = (uint8_t)kind,
		.class = RAS_RELAY_CONTROL,
		.reason = (uint8_t)reason,
		.detours = RELAY_DETOURS_MAX,
		.attempt = about->header.attempt,
		.life_us = ANSWER_LIFE_US,
		.source = ras->self_id,
		.source_incarnation = ras_self(ras)->incarnation,
		.source_run = ras_self(ras)->record->run,
		.destination = about->header.source,
		.destination_run = about->header.source_run,
		.view = peers_digest(&ras->peers),
		.sequence = about->header.sequence,
		.about = about->header.destination,
		.behind = about->header.hops,
	};
	struct relay_packet packet;
	enum ras_relay_reason failed;

	if (about->header.source == ras->self_id) {
		relay_answer_received(ras, &header, reason);
		return;
	}
	header.hops_left =
		(uint16_t)relay_hops_max(peers_ring_count(&ras->peers), ras->profile->long_rings);
	relay_header_encode(&header, frame);
	packet = relay_packet_make(&header, frame, RAS_NO_SLOT);
	if (header.attempt > 0)
		packet.back = about->from;
	if (kind == RELAY_ACK)
		counters->acks_sent++;
	else
		counters->naks_sent++;
	failed = relay_dispatch(ras, &packet, NULL, 0);
	if (failed != RAS_RELAY_REASON_NONE) {
		relay_record_end(ras, &packet, failed);
		counters->replies_lost++;
	}
}

// Dispatch and forwarding

// Send a packet over the link. `header` has the remaining life; `frame` is a private copy.
static void packet_depart(
	struct ras *ras, struct link *link, uint8_t *frame, struct relay_header header, bool detour
) {
	struct ras_relay_counters *counters = &ras->relay->counters;
	size_t size = relay_packet_bytes(&header);

	if (header.hops > 0) {
		counters->forwarded[header.class]++;
		counters->forwarded_bytes[header.class] += size;
	}
	header.hops++;
	header.hops_left--;
	if (detour) {
		header.detours--;
		counters->detours++;
	}
	relay_header_patch(frame, &header);
	link_send(ras, link, frame, size);
}

enum ras_relay_reason relay_dispatch(
	struct ras *ras, struct relay_packet *packet, const uint32_t *avoid, uint32_t avoid_count
) {
	enum ras_relay_reason reason;
	struct link *link;
	bool detour;

	packet->hop = RAS_NO_SLOT;
	if (packet->header.life_us == 0)
		return RAS_RELAY_EXPIRED;
	if (packet->header.hops_left == 0 || packet->header.hops == UINT16_MAX)
		return RAS_RELAY_HOPS;
	reason = relay_route(ras, packet, avoid, avoid_count, &link, &detour);
	if (reason != RAS_RELAY_REASON_NONE)
		return reason;

	packet->hop = link->slot;
	if (link_can_send_now(ras, link) && !relay_queue_waits(ras->relay, link->slot)) {
		uint8_t frame[RELAY_PACKET_BYTES_MAX];

		memcpy(frame, packet->frame, relay_packet_bytes(&packet->header));
		packet_depart(ras, link, frame, packet->header, detour);
		return RAS_RELAY_REASON_NONE;
	}
	if (relay_queue_put(ras, packet, detour) < 0)
		return RAS_RELAY_QUEUE_FULL;
	return RAS_RELAY_REASON_NONE;
}

// Return the remaining life of a queued message, 0 if it has expired.
static uint32_t life_left_us(const struct ras *ras, const struct relay_item *item) {
	if (item->expires_ns <= ras->now_ns)
		return 0;
	return (uint32_t)((item->expires_ns - ras->now_ns) / 1000);
}

static void item_refuse(struct ras *ras, struct relay_item *item, enum ras_relay_reason reason) {
	struct relay_packet packet = relay_packet_make(&item->header, NULL, item->from);

	relay_item_release(item);
	relay_refuse(ras, &packet, reason);
}

void relay_link_flush(struct ras *ras, struct link *link) {
	struct relay_item *item;

	while (link_is_good(link) && link_can_send_now(ras, link)) {
		item = relay_queue_next(ras, link->slot);
		if (item == NULL)
			return;
		item->header.life_us = life_left_us(ras, item);
		if (item->header.life_us == 0) {
			item_refuse(ras, item, RAS_RELAY_EXPIRED);
			continue;
		}
		packet_depart(ras, link, item->frame, item->header, item->detour);
		relay_item_release(item);
	}
}

// Route a queued message again. Its buffer is released first, so that a full pool cannot stop it.
static void
item_reroute(struct ras *ras, struct relay_item *item, const uint32_t *avoid, uint32_t count) {
	uint8_t frame[RELAY_PACKET_BYTES_MAX];
	struct relay_packet packet = relay_packet_make(&item->header, frame, item->from);
	enum ras_relay_reason reason;

	packet.header.life_us = life_left_us(ras, item);
	memcpy(frame, item->frame, relay_packet_bytes(&item->header));
	relay_item_release(item);
	ras->relay->counters.rerouted++;
	reason = relay_dispatch(ras, &packet, avoid, count);
	if (reason != RAS_RELAY_REASON_NONE)
		relay_refuse(ras, &packet, reason);
}

void relay_link_lost(struct ras *ras, struct link *link) {
	struct relay_match match = {.slot = link->slot, .expired_ns = RAS_NEVER};
	struct relay_item *item = relay_queue_extract(ras, &match);

	while (item != NULL) {
		struct relay_item *next = item->next;

		item_reroute(ras, item, &link->slot, 1);
		item = next;
	}
}

void relay_peer_changed(struct ras *ras, uint32_t slot) {
	const struct peer_entry *entry = ras_entry(ras, slot);
	struct relay_match match = {
		.slot = RAS_NO_SLOT, .destination = entry->record->id, .expired_ns = RAS_NEVER};
	struct relay_item *item = relay_queue_extract(ras, &match);

	while (item != NULL) {
		struct relay_item *next = item->next;

		if (!peer_is_member(entry))
			item_refuse(ras, item, RAS_RELAY_DESTINATION_DOWN);
		else if (item->header.destination_run != entry->record->run)
			item_refuse(ras, item, RAS_RELAY_WRONG_INCARNATION);
		else
			item_reroute(ras, item, NULL, 0);
		item = next;
	}
	relay_pending_peer_changed(ras, slot);
}

void relay_send_once(
	struct ras *ras,
	uint32_t slot,
	enum relay_port port,
	enum ras_relay_class rank,
	const void *payload,
	size_t size
) {
	const struct peer_entry *entry = ras_entry(ras, slot);
	uint8_t frame[RELAY_PACKET_BYTES_MAX];
	struct relay_packet packet;
	struct relay_header header;
	enum ras_relay_reason reason;

	must(slot != ras->self_slot && (uint32_t)port < RAS_RELAY_PORT_MIN);
	must(size <= ras_relay_size_max(rank));
	header = (struct relay_header){
		.header_size = RELAY_HEADER_BYTES,
		.kind = RELAY_DATA,
		.class = (uint8_t)rank,
		.detours = RELAY_DETOURS_MAX,
		.hops_left = (uint16_t
		)relay_hops_max(peers_ring_count(&ras->peers), ras->profile->long_rings),
		.life_us = (uint32_t)(RELAY_LIFE_DEFAULT_NS / 1000),
		.source = ras->self_id,
		.source_incarnation = ras_self(ras)->incarnation,
		.source_run = ras_self(ras)->record->run,
		.destination = entry->record->id,
		.destination_run = entry->record->run,
		.view = peers_digest(&ras->peers),
		.port = port,
		.payload_size = (uint16_t)size,
	};
	relay_header_encode(&header, frame);
	if (size > 0)
		memcpy(frame + RELAY_HEADER_BYTES, payload, size);
	packet = relay_packet_make(&header, frame, RAS_NO_SLOT);
	reason = relay_dispatch(ras, &packet, NULL, 0);
	if (reason != RAS_RELAY_REASON_NONE)
		relay_record_end(ras, &packet, reason);
}

// Arrivals

int relay_frame_received(struct ras *ras, struct link *link, const uint8_t *frame, size_t size) {
	enum ras_relay_reason reason;
	struct relay_header header;
	struct relay_packet packet;
	int err;

	err = relay_header_decode(frame, size, &header);
	if (err < 0)
		return err;
	// Each hop increments `hops` before it sends. So a packet with 1 comes from its source.
	if (header.hops == 0 || (header.hops == 1 && header.source != link->peer))
		return -EBADMSG;

	packet = relay_packet_make(&header, frame, link->slot);
	if (header.destination != ras->self_id) {
		// A NAK for each message of a flood would double the flood.
		// Only the first hop proves the source. Later ones count by their link as well,
		// so that a forged flood takes the share of this source on that link alone.
		if (!relay_limit_admit(
			    ras, header.hops == 1 ? header.source : header.source ^ link->peer
		    )) {
			relay_record_end(ras, &packet, RAS_RELAY_QUEUE_FULL);
			return 0;
		}
		reason = relay_dispatch(ras, &packet, NULL, 0);
		if (reason != RAS_RELAY_REASON_NONE)
			relay_refuse(ras, &packet, reason);
		return 0;
	}
	if (header.destination_run != ras_self(ras)->record->run) {
		relay_refuse(ras, &packet, RAS_RELAY_WRONG_INCARNATION);
		return 0;
	}
	switch (header.kind) {
	case RELAY_DATA:
		relay_receive(ras, &packet);
		break;
	case RELAY_ACK:
		relay_answer_received(ras, &header, RAS_RELAY_REASON_NONE);
		break;
	case RELAY_NAK:
		relay_answer_received(ras, &header, (enum ras_relay_reason)header.reason);
		break;
	default:
		relay_record_end(ras, &packet, RAS_RELAY_UNDECODABLE);
	}
	return 0;
}

// Timers: expiry of messages, retries, idle memory

void relay_tick(struct ras *ras) {
	struct relay_match expired = {.slot = RAS_NO_SLOT, .expired_ns = ras->now_ns};
	struct relay *relay = ras->relay;
	struct relay_item *item;

	if (ras->now_ns < relay->due_ns)
		return;
	item = relay_queue_extract(ras, &expired);
	while (item != NULL) {
		struct relay_item *next = item->next;

		item_refuse(ras, item, RAS_RELAY_EXPIRED);
		item = next;
	}
	relay_held_tick(ras);
	relay_pending_tick(ras);
	if (ras->now_ns >= relay->reclaim_ns) {
		bool pools_closed = relay_pools_reclaim(ras);

		relay_sources_reclaim(ras);
		relay->reclaim_ns = relay->source_count > 0 || !pools_closed
					    ? ras->now_ns + RELAY_IDLE_NS
					    : RAS_NEVER;
	}
	relay->due_ns = relay->reclaim_ns;
	relay_wake_at(relay, relay_queue_due_ns(relay));
	relay_wake_at(relay, relay_held_due_ns(relay));
	relay_wake_at(relay, relay_pending_due_ns(relay));
}

uint64_t relay_next_ns(const struct ras *ras) {
	// A leaving agent runs no more relay_tick() and reports no results of messages.
	return ras->leaving ? RAS_NEVER : ras->relay->due_ns;
}

void relay_prefetch(const struct ras *ras) {
	__builtin_prefetch(&ras->relay->due_ns);
}

// Counters

const struct ras_relay_counters *ras_relay_counters(const struct ras *ras) {
	return &ras->relay->counters;
}

const struct ras_relay_incident *
ras_relay_incident(const struct ras *ras, enum ras_relay_reason reason) {
	if (reason >= RAS_RELAY_REASON_COUNT)
		return NULL;
	return &ras->relay->incidents[reason];
}

void ras_relay_stats(const struct ras *ras, struct ras_relay_stats *ret_stats) {
	const struct relay *relay = ras->relay;

	*ret_stats = (struct ras_relay_stats){
		.pending = relay->pending_count,
		.held = relay->held_count,
		.sources = relay->source_count,
		.flows = relay->flow_count,
	};
	relay_queue_stats(ras, ret_stats);
}
