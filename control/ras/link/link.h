// SPDX-License-Identifier: BSD-3-Clause
// A link is the relation to one peer; it outlives its connections.
//
// It holds the send queue, the evidence clocks and what each side uses it for. At most one
// connection is its current one; another may be in its handshake until both sides have agreed,
// by the same rule, which of the two stays (conn.c).
//
// All times are observed time: what passed while we ourselves were stopped does not count.
#pragma once

#include "core/message.h"
#include "link/wall_clock.h"

#include <ras/ras.h>

#include <assert.h>

struct conn;

#define LINK_QUEUE_BYTES_MAX (4u << 20) // beyond this what is new is dropped and counted

// A message that waits for its connection. Kept whole: after a reconnect it starts again.
struct link_frame {
	struct link_frame *next;
	uint64_t queued_ns;
	uint32_t size;
	uint8_t bytes[];
};

struct link_rtt {
	uint64_t min_ns, max_ns, sum_ns;
	uint32_t count;
};

// In the order of use: a tick of the clock reads the first line of all links, a message the first
// two of one.
struct link {
	uint32_t beat_tick;    // of ours: what we promised with the last one
	bool used;	       // false: dropped, freed when no input is being handled
	bool delayed;	       // floods go round it, collectives were purged of it
	bool watched;	       // the next message from it is news to liveness.c
	bool gone;	       // refused twice, gone_recheck_ns apart
	uint32_t mine, theirs; // RAS_USE_*: who needs it for what
	struct conn *current;  // ready, or NULL
	uint64_t heard_ns;     // last authenticated message; at first: when we began to wait
	uint64_t period_ns;    // the peer promised to speak again within this
	uint64_t retry_ns;     // next connect, RAS_NEVER while one is under way or none is due
	uint64_t idle_ns;      // since when nobody needs it, or RAS_NEVER
	struct link_frame *queue_head;

	uint32_t slot;
	uint32_t sent_sequence, heard_sequence;
	uint8_t bit;  // 0 to 63, in the masks of news.h; may be another's too
	bool unheard; // wanted anew, and silent since: heard_ns is no word of its
	uint64_t heard_sequence_ns;
	uint64_t sent_sequence_ns;
	uint64_t checked_ns; // a ping or connect awaits its answer since, or RAS_NEVER
	uint64_t differs_ns; // since when the two digests below stand still, or RAS_NEVER
	uint64_t received_bytes, received_frames;

	uint64_t sent_bytes, sent_frames;
	struct link_rtt rtt;
	struct wall_offset wall;

	uint64_t peer;
	struct conn *pending;	// in its handshake, or NULL
	uint64_t refused_ns;	// first refused connect since the last proof of life, or RAS_NEVER
	uint64_t gone_ns;	// if `gone`: the latest refused connect
	uint64_t down_ns;	// since when nothing is ready
	uint64_t resumed_ns;	// it spoke again then, later than promised; 0: never
	uint64_t peer_digest;	// as last heard
	uint64_t own_digest;	// ours at that time
	uint64_t unequal_ns;	// since when they differ, whatever they were, or RAS_NEVER
	uint64_t agreed_ns;	// when they were last heard to be equal; 0: never
	uint64_t agreed_digest; // and what they were
	uint64_t synced_ns;	// last comparison of the tables that we began
	uint64_t briefed_ns;	// and the last one that we answered
	uint64_t position_ring; // the ring_number of `position`
	uint64_t renewed_ns;	// after a pause of ours another connection was tried then
	uint64_t proven_ns;	// another observer saw the peer then:
	uint64_t excused_ns;	// our silence counts again after this
	struct link_frame *queue_tail;
	uint32_t queue_bytes;
	uint32_t position; // in the ring, of its peer
	uint32_t retries;
	uint32_t connects; // connections that were ready
	uint64_t begun_ns; // what is counted is counted since
	bool exited;	   // if `gone`: refused by our own machine each time, which is the peer's
};
static_assert(offsetof(struct link, slot) == 64 && offsetof(struct link, sent_bytes) == 128, "");

struct links {
	struct link **table; // a pointer holds as long as an input is being handled
	uint32_t count, capacity;
	uint32_t dropped;     // to be freed
	uint32_t beats;	      // ticks so far
	uint64_t beat_due_ns; // next tick
	uint64_t heard_ns;    // of any of them
};

void links_fini(struct ras *ras);
void links_tick(struct ras *ras);

// NULL if there is none.
struct link *link_find(const struct ras *ras, uint32_t slot);
// Finds or makes, adds the uses, and connects if it is ours to connect. NULL without memory.
struct link *link_want(struct ras *ras, uint32_t slot, uint32_t uses);
// Takes uses back; a link that neither side uses is retired after a while.
void link_unwant(struct ras *ras, struct link *link, uint32_t uses);
// Notes since when nobody uses it: called after the uses of either side have changed.
void link_idle_check(struct ras *ras, struct link *link);

static inline bool link_is_ready(const struct link *link) {
	return link->current != NULL;
}

// Two links with one bit are taken for one: some news then go to one of them by other ways only.
static inline uint64_t link_bit(const struct link *link) {
	return UINT64_C(1) << link->bit;
}

// Ready and not delayed: floods, collectives and relayed messages use it.
static inline bool link_is_good(const struct link *link) {
	return link->used && link->current != NULL && !link->delayed;
}

// It speaks, as far as it promised to. A connection that nobody needed may be one to a host that
// went dark meanwhile: until its first word it says nothing of who lives.
bool link_speaks(const struct ras *ras, const struct link *link);

// It takes a frame at once: nothing waits before it. The relay asks before it hands one down.
bool link_takes(const struct ras *ras, const struct link *link);

// Sends now or queues; what finds no room is dropped and counted. Order is kept. On a link
// that is down only what is worth it waits; beats do not.
void link_send(struct ras *ras, struct link *link, const void *frame, size_t size);
// Hands down what waits, as far as the connection takes it.
void link_flush(struct ras *ras, struct link *link);
// Beats now, with our digest and uses; `ping` asks for an answer at once.
void link_beat(struct ras *ras, struct link *link, bool ping);
void link_beat_heard(struct ras *ras, struct link *link, const struct message_beat *beat);
// An authenticated message arrived on its current connection: proof of life.
void link_heard(struct ras *ras, struct link *link);
// The pending connection has become the current one.
void link_ready(struct ras *ras, struct link *link, struct conn *conn, uint32_t theirs);
// The current or pending connection came to an end.
void link_conn_ended(struct ras *ras, struct link *link, struct conn *conn, enum ras_cause cause);
// Looks right now: a ping if it is ready, else a connect.
void link_check(struct ras *ras, struct link *link);
// After a pause of our own: tells everybody at once that we are there.
void links_resume(struct ras *ras);
// Those that are wanted and have no connection are connected now, whenever they were to be.
void links_redial(struct ras *ras);
// Frees what was dropped. Called when no input is being handled any more.
void links_reap(struct ras *ras);
// Ends everything about it. The caller has routed round it and purged what used it.
void link_drop(struct ras *ras, struct link *link, enum ras_close how, enum ras_cause cause);

// Says goodbye on every link and ends it; one that takes nothing now keeps its connection until
// the word has gone out, close_ns at most. Whatever else waited is dropped: it is past now.
void links_leave(struct ras *ras);

// How long the peer has been silent beyond what it promised.
uint64_t link_silence_ns(const struct ras *ras, const struct link *link);

// The bound a node keeps: 2·ceil(log2 N).
uint32_t links_degree_max(uint32_t members);
// Links in use by either side.
uint32_t links_degree(const struct ras *ras);
// Beyond the bound the ring is linked anew, with fewer.
void links_degree_check(struct ras *ras);
