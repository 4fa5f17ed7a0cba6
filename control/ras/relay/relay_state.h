// SPDX-License-Identifier: BSD-3-Clause
// What the files of the relay share with each other and with nobody else.
//
//	relay_packet	the header
//	relay_route	which link is next
//	relay_pool	buffers
//	relay_queue	what waits for a link: classes, and fairness between sources
//	relay_send	own messages: tries, answers, reports
//	relay_source	who sent what here: the window against duplicates, the flows
//	relay_receive	delivery, order, what waits for a consumer
//	relay		the core's hooks, refusals, counters
//
// An instance that relays nothing holds struct relay alone; all else is allocated when it is
// first needed, is bounded by the limits below, and is given back when it has been idle.
#pragma once

#include "core/core.h"
#include "relay/relay_packet.h"

#define RELAY_LIFE_DEFAULT_NS (10 * RAS_NS_PER_SEC)
#define RELAY_TRIES_MAX 8	  // whatever the profile says
#define RELAY_WINDOW 256	  // sequences of one source that are told apart
#define RELAY_SOURCES_MAX 4096	  // senders and destinations remembered
#define RELAY_FLOWS_MAX 4096	  // ordered flows that end here, all in all
#define RELAY_SOURCE_FLOWS_MAX 64 // and of one source
#define RELAY_HELD_MAX 64	  // messages that wait for a consumer or their turn
#define RELAY_HELD_BYTES_MAX (256u << 10)
#define RELAY_HELD_SOURCE_MAX 16	    // of one source among them
#define RELAY_EARLY_NS (2 * RAS_NS_PER_SEC) // a port may stay without a consumer
// A copy may outlive its life: in the stream of one that stands still, until that is closed, it
// takes as long as the profile `nccl` needs to declare a death, and what is behind it some seconds
// more.
#define RELAY_KEEP_SLACK_NS (90 * RAS_NS_PER_SEC)
#define RELAY_IDLE_NS (30 * RAS_NS_PER_SEC) // between looks at what can be given back
#define RELAY_SOURCE_BUCKETS 256

// A message in a buffer of a pool, waiting for a link.
struct relay_item {
	struct relay_item *next;
	struct relay_pool *pool;
	uint64_t queued_ns;
	uint64_t expires_ns;
	uint32_t from; // the neighbour it came by, RAS_NO_SLOT for our own
	bool detour;   // going this way spends it
	struct relay_header header;
	uint8_t frame[];
};

// What one source has waiting for one link, in one class.
struct relay_backlog {
	struct relay_backlog *next; // round robin; in the pool's free list else
	struct relay_pool *pool;
	uint64_t source;
	struct relay_item *head, *tail;
	uint32_t count;
	uint32_t deficit; // bytes it may still send in its turn
};

// Buffers of one class, for transit or for our own messages, made at once when first needed.
struct relay_pool {
	uint8_t *slab;
	struct relay_item *free;
	struct relay_backlog *free_backlogs;
	uint32_t used;
	uint64_t used_ns; // last time one was taken
};

enum relay_origin {
	RELAY_TRANSIT,
	RELAY_OWN,
	RELAY_ORIGIN_COUNT,
};

// What waits for one link. `last[class]->next` has the turn.
struct relay_lane {
	uint32_t slot;
	uint32_t served; // frames, to give the lower classes their share
	struct relay_backlog *last[RAS_RELAY_CLASS_COUNT];
	uint32_t count[RAS_RELAY_CLASS_COUNT];
};

struct relay_queue {
	struct relay_pool pools[RAS_RELAY_CLASS_COUNT][RELAY_ORIGIN_COUNT];
	struct relay_lane *lanes;
	uint32_t lane_count, lane_capacity;
};

// A message of ours that has not been answered yet.
struct relay_pending {
	struct relay_pending *next;
	uint64_t message_id;
	uint64_t first_ns;
	uint64_t retry_ns;
	uint64_t deadline_ns;
	bool report;
	bool over;    // no further try: to be ended with `reason`
	bool certain; // the destination itself refused it for good
	uint8_t tries;
	uint8_t refused; // bit per try
	uint8_t reason;	 // of the last refusal
	uint64_t refuser;
	uint32_t refused_hops;
	uint32_t hop_count; // first hops that were tried
	uint32_t hops[RELAY_TRIES_MAX];
	struct relay_header header;
	uint8_t frame[]; // header and payload
};

// A flow that ends here.
struct relay_flow {
	uint32_t flow;
	uint32_t port;
	uint64_t delivered; // latest sequence
};

// A peer that sends to us, or that we send to.
struct relay_source {
	struct relay_source *next; // in its bucket
	uint64_t id;
	uint64_t sent; // latest sequence to it
	uint64_t keep_ns;

	// What came from it, in this start.
	uint64_t start;
	uint64_t run;			     // of its record in that start
	uint64_t highest;		     // sequence that was decided
	uint64_t decided[RELAY_WINDOW / 64]; // bit sequence % RELAY_WINDOW
	uint64_t refused[RELAY_WINDOW / 64]; // of the decided ones
	struct relay_flow *flows;
	uint32_t flow_count, flow_capacity;
};

// A message that waits here for its consumer or for an earlier one of its flow.
struct relay_held {
	struct relay_held *next;
	uint64_t until_ns;
	uint8_t reason; // to refuse it for when the time is over
	struct relay_header header;
	uint8_t payload[];
};

struct relay_bucket {
	struct relay_source *first;
};

struct relay {
	struct relay_queue queue;

	struct relay_pending *pending; // oldest first
	uint32_t pending_count;
	uint64_t last_message_id;

	struct relay_bucket *buckets;
	uint32_t source_count, flow_count;
	uint64_t last_sequence; // highest one given to any destination

	struct relay_held *held; // in order of arrival
	uint32_t held_count;
	size_t held_bytes;

	uint64_t due_ns;     // nothing happens by time before; may be too early, never too late
	uint64_t reclaim_ns; // next look at what can be given back, RAS_NEVER if there is nothing

	struct ras_relay_counters counters;
	struct ras_relay_incident incidents[RAS_RELAY_REASON_COUNT];
};

// A message in hand: its header decoded, its bytes where they lie.
struct relay_packet {
	struct relay_header header;
	const uint8_t *frame;
	uint32_t from; // the neighbour it came by, RAS_NO_SLOT for our own
	uint32_t hop;  // set by relay_dispatch(): the neighbour it went to, or should have
	uint32_t back; // the first hop of an answer to a retry, RAS_NO_SLOT for any
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

static inline void relay_due(struct relay *relay, uint64_t at_ns) {
	if (at_ns < relay->due_ns)
		relay->due_ns = at_ns;
}

// relay.c

// Something was allocated that is given back when it has been idle.
void relay_reclaim_later(struct ras *ras);
// A message ended here for a reason: counts it, and tells its source if that wants to know.
void relay_refuse(struct ras *ras, const struct relay_packet *packet, enum ras_relay_reason reason);
void relay_count(struct ras *ras, const struct relay_packet *packet, enum ras_relay_reason reason);
// Sends it to the next hop now, or queues it. NONE, or why not; then nothing was kept or counted.
enum ras_relay_reason relay_dispatch(
	struct ras *ras, struct relay_packet *packet, const uint32_t *avoid, uint32_t avoid_count
);
// Answers a message. The answer to a retry leaves by the link that brought it: the way that
// was chosen before may be why there is a retry.
void relay_answer(
	struct ras *ras,
	const struct relay_packet *about,
	enum relay_kind kind,
	enum ras_relay_reason reason
);

// relay_route.c

// NONE and a link, or the reason why there is none. `avoid` are slots not to go by.
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
// Makes the buffers unless it has them. -ENOMEM.
int relay_pool_open(
	struct ras *ras, struct relay_pool *pool, uint32_t rank, enum relay_origin origin
);
void relay_item_release(struct relay_item *item);
// Gives back what has been idle; true if that is all.
bool relay_pools_reclaim(struct ras *ras);
void relay_pools_fini(struct ras *ras);

// relay_queue.c

void relay_queue_fini(struct ras *ras);
bool relay_queue_waits(const struct relay *relay, uint32_t slot);
// Copies the packet into the lane of its hop. If the buffers are used up, the newest message
// of the source that has most of them makes room, or the packet is the one: -ENOBUFS.
int relay_queue_put(struct ras *ras, const struct relay_packet *packet, bool detour);
// The next one for the link by class and turn, out of the queue; NULL if none waits.
struct relay_item *relay_queue_next(struct ras *ras, uint32_t slot);

// Which ones to take out of turn; a field that is not set matches all.
struct relay_match {
	uint32_t slot;	      // RAS_NO_SLOT for all
	uint64_t destination; // 0 for all
	uint64_t expired_ns;  // RAS_NEVER for all
};

// A chain through `next`, each to be given back.
struct relay_item *relay_queue_extract(struct ras *ras, const struct relay_match *match);
uint64_t relay_queue_due_ns(const struct relay *relay);
void relay_queue_stats(const struct ras *ras, struct ras_relay_stats *stats);

// relay_send.c

void relay_pending_fini(struct ras *ras);
// An ACK or NAK for one of ours, or a refusal of our own node.
void relay_answered(
	struct ras *ras, const struct relay_header *answer, enum ras_relay_reason reason
);
void relay_pending_peer_changed(struct ras *ras, uint32_t slot);
void relay_pending_tick(struct ras *ras);
uint64_t relay_pending_due_ns(const struct relay *relay);

// relay_source.c

enum relay_seen {
	RELAY_FRESH,
	RELAY_DELIVERED,
	RELAY_REFUSED, // or so old that it cannot be told
};

void relay_sources_fini(struct ras *ras);
struct relay_source *relay_source_find(const struct relay *relay, uint64_t id);
// Finds or makes, and keeps it that long; NULL if there is no room or memory.
struct relay_source *relay_source_want(struct ras *ras, uint64_t id, uint64_t keep_ns);
// A newer start of it has an empty window.
void relay_source_restart(
	struct ras *ras, struct relay_source *source, uint64_t start, uint64_t run
);
enum relay_seen relay_source_seen(const struct relay_source *source, uint64_t sequence);
void relay_source_decide(struct relay_source *source, uint64_t sequence, bool refused);
// The flow, made if there is room; NULL else.
struct relay_flow *
relay_source_flow(struct ras *ras, struct relay_source *source, uint32_t flow, uint32_t port);
void relay_sources_reclaim(struct ras *ras);

// relay_receive.c

void relay_held_fini(struct ras *ras);
// A message for us, well-formed.
void relay_receive(struct ras *ras, const struct relay_packet *packet);
void relay_held_tick(struct ras *ras);
uint64_t relay_held_due_ns(const struct relay *relay);
