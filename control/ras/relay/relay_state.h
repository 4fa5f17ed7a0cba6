// SPDX-License-Identifier: BSD-3-Clause
// Private state of the relay, shared by its files only.
//
//	relay_packet	header: encoding and decoding
//	relay_route	choice of the next link
//	relay_limit	most messages of one source that are forwarded
//	relay_pool	buffers
//	relay_queue	messages that wait for a link: classes, fairness between sources
//	relay_send	own messages: tries, answers, reports
//	relay_source	per peer: window against duplicates, flows
//	relay_receive	delivery, order, messages that wait for a consumer
//	relay		hooks for the core, refusals, counters
//
// An instance that relays nothing holds only struct relay. All other memory is allocated at its
// first use, bounded by the limits below, and freed when it has been idle.
#pragma once

#include "core/core.h"
#include "relay/relay_packet.h"

#define RELAY_LIFE_DEFAULT_NS (10 * RAS_NS_PER_SEC)
#define RELAY_TRIES_MAX 8	  // upper bound for profile->relay_tries
#define RELAY_WINDOW 256	  // latest sequences of one source, tracked against duplicates
#define RELAY_SOURCES_MAX 4096	  // remembered senders and destinations
#define RELAY_FLOWS_MAX 4096	  // ordered flows that end here, of all sources
#define RELAY_SOURCE_FLOWS_MAX 64 // ordered flows that end here, of one source
#define RELAY_HELD_MAX 64	  // held messages: they wait for a consumer or their turn
#define RELAY_HELD_BYTES_MAX (256u << 10)
#define RELAY_HELD_SOURCE_MAX 16	    // held messages of one source
#define RELAY_EARLY_NS (2 * RAS_NS_PER_SEC) // time that a message waits for a missing consumer
// A copy of a message may arrive after its life: it may be stuck in the connection of a stalled
// peer, until that connection is closed. This takes up to the time in which the profile `nccl`
// declares a death, plus some seconds for the frames that are queued behind the copy.
#define RELAY_KEEP_SLACK_NS (90 * RAS_NS_PER_SEC)
#define RELAY_IDLE_NS (30 * RAS_NS_PER_SEC) // between two searches for idle memory
#define RELAY_SOURCE_BUCKETS 256
#define RELAY_FORWARD_MAX 8192 // forwarded messages of one source in a second
#define RELAY_LIMIT_COUNTERS 256

// A message that waits for a link, in a buffer of a pool.
struct relay_item {
	struct relay_item *next;
	struct relay_pool *pool;
	uint64_t queued_ns;
	uint64_t expires_ns;
	uint32_t from; // slot of the neighbour that sent it; RAS_NO_SLOT: this agent
	bool detour;   // this hop uses up the detour that a message may take (relay_route.c)
	struct relay_header header;
	uint8_t frame[];
};

// Messages of one source that wait for one link, in one class.
struct relay_backlog {
	struct relay_backlog *next; // ring of the round robin, or free list of the pool
	struct relay_pool *pool;
	uint64_t source;
	struct relay_item *head, *tail;
	uint32_t count;
	uint32_t deficit; // bytes that the source may still send in its turn
};

// Buffers of one class for transit or for own messages, allocated together at their first use.
struct relay_pool {
	uint8_t *slab;
	struct relay_item *free;
	struct relay_backlog *free_backlogs;
	uint32_t used;
	uint64_t used_ns; // time of the last allocation from this pool
};

enum relay_origin {
	RELAY_TRANSIT,
	RELAY_OWN,
	RELAY_ORIGIN_COUNT,
};

// All messages that wait for one link. `last[class]->next` is served next.
struct relay_link_queue {
	uint32_t slot;
	uint32_t served; // frames sent; every LOWEST_CLASS_SHARE-th is of the lowest waiting class
	struct relay_backlog *last[RAS_RELAY_CLASS_COUNT];
	uint32_t count[RAS_RELAY_CLASS_COUNT];
};

struct relay_queue {
	struct relay_pool pools[RAS_RELAY_CLASS_COUNT][RELAY_ORIGIN_COUNT];
	struct relay_link_queue *links;
	uint32_t link_count, link_capacity;
};

// A message of this agent that has not been answered yet.
struct relay_pending {
	struct relay_pending *next;
	uint64_t message_id;
	uint64_t first_ns; // time of the first try
	uint64_t retry_ns; // time of the next try, or of the message's end
	uint64_t deadline_ns;
	bool report;
	bool over;    // no further try; the next relay_tick() ends the message with `reason`
	bool certain; // the destination itself refused the message for good
	uint8_t tries;
	uint8_t refused; // mask of refused tries
	uint8_t reason;	 // enum ras_relay_reason of the last refusal
	uint64_t refuser;
	uint32_t refused_hops;
	uint32_t hop_count;		// number of entries in `hops`
	uint32_t hops[RELAY_TRIES_MAX]; // slots of the first hops tried so far
	struct relay_header header;
	uint8_t frame[]; // header and payload
};

// An ordered flow that ends here.
struct relay_flow {
	uint32_t flow;
	uint32_t port;
	uint64_t delivered; // latest delivered sequence
};

// A peer that sends to this agent, or to which this agent sends.
struct relay_source {
	struct relay_source *next; // next in the bucket
	uint64_t id;
	uint64_t sent;	  // latest sequence that this agent sent to the peer
	uint64_t keep_ns; // time until which the entry is needed

	// Received messages of the current start of the peer. A sequence is decided once its
	// message was delivered or refused for good.
	uint64_t start;
	uint64_t run;			     // run of the peer's record in that start
	uint64_t highest;		     // highest decided sequence
	uint64_t decided[RELAY_WINDOW / 64]; // bit sequence % RELAY_WINDOW
	uint64_t refused[RELAY_WINDOW / 64]; // the same; refused ones among the decided
	struct relay_flow *flows;
	uint32_t flow_count, flow_capacity;
};

// A received message that waits for its consumer or for an earlier message of its flow.
struct relay_held {
	struct relay_held *next;
	uint64_t until_ns; // deadline: the message is refused then
	uint8_t reason;	   // enum ras_relay_reason of that refusal
	struct relay_header header;
	uint8_t payload[];
};

struct relay_bucket {
	struct relay_source *first;
};

// Messages forwarded in one second of observed time, by a hash of their source.
struct relay_limit {
	uint32_t second;
	uint16_t counts[RELAY_LIMIT_COUNTERS];
};

struct relay {
	struct relay_queue queue;

	struct relay_pending *pending; // oldest first
	uint32_t pending_count;
	uint64_t last_message_id;

	struct relay_bucket *buckets;
	uint32_t source_count, flow_count;
	uint64_t last_sequence; // highest sequence used for any destination

	struct relay_held *held; // in order of arrival
	uint32_t held_count;
	size_t held_bytes;

	uint64_t due_ns;     // next time for relay_tick(); may be too early, never too late
	uint64_t reclaim_ns; // next search for idle memory, RAS_NEVER if nothing is allocated

	struct ras_relay_counters counters;
	struct ras_relay_incident incidents[RAS_RELAY_REASON_COUNT];
	struct relay_limit limit;
};

// A message that is being processed, with its decoded header.
struct relay_packet {
	struct relay_header header;
	const uint8_t *frame; // borrowed
	uint32_t from;	      // slot of the neighbour that sent it; RAS_NO_SLOT: this agent
	uint32_t hop;	      // set by relay_dispatch(): slot of the chosen next hop
	uint32_t back;	      // preferred first hop for an answer to a retry, RAS_NO_SLOT for any
};

static inline struct relay_packet
relay_packet_make(const struct relay_header *header, const uint8_t *frame, uint32_t from) {
	return (struct relay_packet){
		.header = *header,
		.frame = frame,
		.from = from,
		.hop = RAS_NO_SLOT,
		.back = RAS_NO_SLOT,
	};
}

static inline size_t relay_packet_bytes(const struct relay_header *header) {
	return (size_t)header->header_size + header->payload_size;
}

static inline void relay_wake_at(struct relay *relay, uint64_t at_ns) {
	if (at_ns < relay->due_ns)
		relay->due_ns = at_ns;
}

// relay.c

// Schedule the next search for idle memory, after an allocation.
void relay_schedule_reclaim(struct ras *ras);
// Drop a message: count the reason, and send a NAK to its source if it expects an answer.
void relay_refuse(struct ras *ras, const struct relay_packet *packet, enum ras_relay_reason reason);
void relay_record_end(
	struct ras *ras, const struct relay_packet *packet, enum ras_relay_reason reason
);
// Send the packet to its next hop, or queue it. Returns NONE, or a reason: then the packet was
// neither kept nor counted.
enum ras_relay_reason relay_dispatch(
	struct ras *ras, struct relay_packet *packet, const uint32_t *avoid, uint32_t avoid_count
);
// Send an ACK or NAK. The answer to a retry prefers the link over which the retry came: the way of
// an earlier answer may have failed.
void relay_answer(
	struct ras *ras,
	const struct relay_packet *about,
	enum relay_kind kind,
	enum ras_relay_reason reason
);

// relay_limit.c

// Count a message to be forwarded. Returns false if its source has reached RELAY_FORWARD_MAX.
bool relay_limit_admit(struct ras *ras, uint64_t source);

// relay_route.c

// Choose the next link. Returns NONE, or the reason why there is no link. The slots in `avoid` are
// not used.
enum ras_relay_reason relay_route(
	struct ras *ras,
	const struct relay_packet *packet,
	const uint32_t *avoid,
	uint32_t avoid_count,
	struct link **ret_link,
	bool *ret_detour
);

// relay_pool.c

uint32_t relay_pool_items(uint32_t rank, enum relay_origin origin);
// Allocate the buffers of a pool, unless it has them. Returns 0 or -ENOMEM.
int relay_pool_open(
	struct ras *ras, struct relay_pool *pool, uint32_t rank, enum relay_origin origin
);
void relay_item_release(struct relay_item *item);
// Free the buffers of idle pools. Returns true if no pool has buffers any more.
bool relay_pools_reclaim(struct ras *ras);
void relay_pools_fini(struct ras *ras);

// relay_queue.c

void relay_queue_fini(struct ras *ras);
bool relay_queue_waits(const struct relay *relay, uint32_t slot);
// Copy the packet into the queue of its hop's link. If the pool is used up, the newest message of
// the source with the longest backlog is dropped. Returns 0, or -ENOBUFS if the packet itself is
// the one to drop, or without memory.
int relay_queue_put(struct ras *ras, const struct relay_packet *packet, bool detour);
// Remove and return the next message for the link, by class and turn; NULL if none waits.
struct relay_item *relay_queue_next(struct ras *ras, uint32_t slot);

// Filter for relay_queue_extract(). An item must match all three fields.
struct relay_match {
	uint32_t slot;	      // link that the item waits for, RAS_NO_SLOT for any
	uint64_t destination; // 0 for any
	uint64_t expired_ns;  // items that expire at this time or before, RAS_NEVER for any
};

// Remove all matching items. Returns a chain through `next`; the caller releases each item.
struct relay_item *relay_queue_extract(struct ras *ras, const struct relay_match *match);
uint64_t relay_queue_due_ns(const struct relay *relay);
void relay_queue_stats(const struct ras *ras, struct ras_relay_stats *stats);

// relay_send.c

void relay_pending_fini(struct ras *ras);
// Process an ACK or NAK for an own message, or a refusal by this node itself.
void relay_answer_received(
	struct ras *ras, const struct relay_header *answer, enum ras_relay_reason reason
);
void relay_pending_peer_changed(struct ras *ras, uint32_t slot);
void relay_pending_tick(struct ras *ras);
uint64_t relay_pending_due_ns(const struct relay *relay);

// relay_source.c

enum relay_seen {
	RELAY_FRESH,
	RELAY_DELIVERED,
	RELAY_REFUSED, // refused, or older than the window
};

void relay_sources_fini(struct ras *ras);
struct relay_source *relay_source_find(const struct relay *relay, uint64_t id);
// Find or create the entry of a peer, and keep it until `keep_ns`. Returns NULL without room or
// memory.
struct relay_source *relay_source_get(struct ras *ras, uint64_t id, uint64_t keep_ns);
// Reset the window and the flows for a new start of the peer.
void relay_source_restart(
	struct ras *ras, struct relay_source *source, uint64_t start, uint64_t run
);
enum relay_seen relay_source_seen(const struct relay_source *source, uint64_t sequence);
void relay_source_decide(struct relay_source *source, uint64_t sequence, bool refused);
// Find or create a flow. Returns NULL without room or memory.
struct relay_flow *
relay_source_get_flow(struct ras *ras, struct relay_source *source, uint32_t flow, uint32_t port);
void relay_sources_reclaim(struct ras *ras);

// relay_receive.c

void relay_held_fini(struct ras *ras);
// Process a well-formed DATA message for this node.
void relay_receive(struct ras *ras, const struct relay_packet *packet);
void relay_held_tick(struct ras *ras);
uint64_t relay_held_due_ns(const struct relay *relay);
