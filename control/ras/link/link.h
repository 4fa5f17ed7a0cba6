// SPDX-License-Identifier: BSD-3-Clause
// A link is the relation to one peer; it outlives its connections.
//
// A link holds the send queue, the evidence clocks and the uses of each side. At most one
// connection is the current one. Another may be in its handshake until both sides agree by the same
// rule which one stays (handshake.c).
//
// All times are observed time, which leaves out the pauses of this agent.
#pragma once

#include "core/message.h"
#include "link/wall_clock.h"

#include <ras/ras.h>

#include <assert.h>

struct conn;

// Beats are keep-alives that prove life and carry digest, uses and wall clock. Ring links beat in
// every tick, long links in turns. Each beat promises when the next one comes.
#define LONG_BEATS_PER_TICK 6		// number of long links that beat in one tick
#define LINK_QUEUE_BYTES_MAX (4u << 20) // beyond this, new frames are dropped and counted

// A frame that waits for a connection. It is kept whole: after a reconnect it is sent from its
// beginning.
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

// Fields are in the order of use. A clock tick reads the first cache line of all links. A message
// reads the first two lines of one link.
struct link {
	uint32_t beat_tick;    // tick by which our next beat is promised
	bool used;	       // false: dropped, freed when no input is being handled
	bool delayed;	       // silent: excluded from floods, collectives and the relay
	bool watched;	       // the next message is reported to liveness.c
	bool gone;	       // refused twice, gone_recheck_ns apart
	uint32_t mine, theirs; // RAS_USE_*: uses by this agent and by the peer
	struct conn *current;  // ready connection, or NULL
	uint64_t heard_ns;     // last authenticated message, or the start of the wait for one
	uint64_t period_ns;    // time within which the peer promised to send again
	uint64_t retry_ns;     // next connect; RAS_NEVER if none is due or one is in progress
	uint64_t idle_ns;      // since when neither side needs the link, or RAS_NEVER
	struct link_frame *queue_head;

	uint32_t slot;
	uint32_t sent_sequence, heard_sequence;
	uint8_t bit;  // 0 to 63, for the masks of news.h; may be shared
	bool unheard; // wanted again but silent since: heard_ns is no message time
	uint64_t heard_sequence_ns;
	uint64_t sent_sequence_ns;
	uint64_t checked_ns; // since when a ping or connect awaits its answer, or RAS_NEVER
	uint64_t differs_ns; // since when both digests below differ unchanged, or RAS_NEVER
	uint64_t received_bytes, received_frames;

	uint64_t sent_bytes, sent_frames;
	struct link_rtt rtt;
	struct wall_offset wall;

	uint64_t peer;
	struct conn *pending;	// connection in its handshake, or NULL
	uint64_t refused_ns;	// first refused connect since the last proof of life, or RAS_NEVER
	uint64_t gone_ns;	// if `gone`: latest refused connect
	uint64_t down_ns;	// since when no connection is ready
	uint64_t resumed_ns;	// latest message that came later than promised; 0: never
	uint64_t peer_digest;	// digest of the peer, as last heard
	uint64_t own_digest;	// own digest at that time
	uint64_t unequal_ns;	// since when the digests differ, even if they change, or RAS_NEVER
	uint64_t agreed_ns;	// when the digests were last heard to be equal; 0: never
	uint64_t agreed_digest; // the digest at agreed_ns
	uint64_t synced_ns;	// last comparison of tables that this agent began
	uint64_t briefed_ns;	// last comparison of tables that this agent answered
	uint64_t position_ring_number; // ring_number for which `position` is valid
	uint64_t pause_reconnect_ns;   // when a second connection was tried after an own pause
	uint64_t proven_elsewhere_ns;  // when another observer proved the peer alive
	// End of the excuse for the peer's silence, after such a proof.
	uint64_t silence_excused_until_ns;
	struct link_frame *queue_tail;
	uint32_t queue_bytes;
	uint32_t position; // position of the peer in the ring
	uint32_t retries;
	uint32_t connects; // number of connections that became ready
	uint64_t begun_ns; // start of the counters, caller's time
	bool exited;	   // if `gone`: each refusal came from this machine, which the peer shares
};
static_assert(offsetof(struct link, slot) == 64 && offsetof(struct link, sent_bytes) == 128, "");

struct links {
	struct link **table; // pointers stay valid while an input is handled
	uint32_t count, capacity;
	uint32_t dropped;     // links to be freed
	uint32_t beats;	      // number of beat ticks so far
	uint64_t beat_due_ns; // next beat tick
	uint64_t heard_ns;    // latest message of any link
};

void links_fini(struct ras *ras);
void links_tick(struct ras *ras);
// Send the beats that are due, and request a wake-up for the next ones.
void beats_tick(struct ras *ras);

// Return the link to a slot, or NULL.
struct link *link_find(const struct ras *ras, uint32_t slot);
// Find or create a link and add uses to it. Connects if this side is to connect. Returns NULL
// without memory.
struct link *link_want(struct ras *ras, uint32_t slot, uint32_t uses);
// Remove uses. A link that neither side uses is retired after idle_ns.
void link_unwant(struct ras *ras, struct link *link, uint32_t uses);
// Update idle_ns. Call it after the uses of either side have changed.
void link_idle_check(struct ras *ras, struct link *link);

static inline bool link_is_ready(const struct link *link) {
	return link->current != NULL;
}

// Return the mask bit of a link. Links with the same bit are taken for one link: some news then
// reach one of the peers only by other links.
static inline uint64_t link_bit(const struct link *link) {
	return UINT64_C(1) << link->bit;
}

// Return true if the link is ready and not delayed. Floods, collectives and relayed messages use
// good links only.
static inline bool link_is_good(const struct link *link) {
	return link->used && link->current != NULL && !link->delayed;
}

// Return true if the link is good and its peer's silence is shorter than suspect_ns. A connection
// that was unused may lead to a host that has failed since. Until the first message it does not
// prove life.
bool link_has_live_peer(const struct ras *ras, const struct link *link);

// Return true if a frame can be sent at once, with no frame queued before it. The relay checks this
// before it passes a frame down.
bool link_can_send_now(const struct ras *ras, const struct link *link);

// Send a frame now, or queue it in order. A frame without room is dropped and counted. On a link
// that is down, frames are queued but beats are not.
void link_send(struct ras *ras, struct link *link, const void *frame, size_t size);
// Send queued frames as far as the connection accepts them.
void link_flush(struct ras *ras, struct link *link);
// Send a beat now, with our digest and uses; `ping` requests an answer at once.
void link_beat(struct ras *ras, struct link *link, bool ping);
void link_beat_heard(struct ras *ras, struct link *link, const struct message_beat *beat);
// Handle an authenticated message on the current connection: a proof of life.
void link_heard(struct ras *ras, struct link *link);
// Make the connection in its handshake the current one.
void link_ready(struct ras *ras, struct link *link, struct conn *conn, uint32_t theirs);
// Handle the end of the current or pending connection.
void link_conn_ended(struct ras *ras, struct link *link, struct conn *conn, enum ras_cause cause);
// Check the peer now: by a ping if the link is ready, else by a connect.
void link_probe(struct ras *ras, struct link *link);
// Send a beat on every link after a pause of this agent.
void links_beat_after_pause(struct ras *ras);
// Connect all links that are wanted and have no connection, before their retry time.
void links_reconnect(struct ras *ras);
// Free dropped links. Call it when no input is being handled any more.
void links_reap(struct ras *ras);
// Drop a link. The caller has already routed around it and purged its users.
void link_drop(struct ras *ras, struct link *link, enum ras_close how, enum ras_cause cause);

// Send LEAVE on every link and end the link. If a connection accepts nothing now, it is kept until
// the LEAVE was sent, close_ns at most. All other queued frames are discarded.
void links_say_leave(struct ras *ras);

// Judge a used link by the silence of its peer: it is delayed, its connection is replaced, and its
// peer is suspected.
void link_silence_judge(struct ras *ras, struct link *link);
// End a connection whose oldest queued frame has waited too long. Its frames go over the next
// connection.
void link_stuck_check(struct ras *ras, struct link *link);
// Return how long the peer has been silent beyond its promise.
uint64_t link_silence_ns(const struct ras *ras, const struct link *link);

// Return the maximum number of links of a member: 2·ceil(log2 N).
uint32_t links_degree_max(uint32_t members);
// Return the number of links that either side uses.
uint32_t links_degree(const struct ras *ras);
// Schedule a relink with fewer links if the maximum is exceeded.
void links_degree_check(struct ras *ras);
