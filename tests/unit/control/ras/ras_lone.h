// SPDX-License-Identifier: BSD-3-Clause
// One instance of the core; its peers are only frames that the test writes.
//
// Peer n has the name nNN, the host hNN, the address 10.0.0.n+1 and the ring position n. Only
// lone_pass() advances the time; it calls ras_tick() whenever the instance asked for it.
#pragma once

#include "core/core.h"

#define LONE_PEERS_MAX 16
#define LONE_CONNS_MAX 512
#define LONE_LOG_MAX 2048
#define LONE_CLUSTER "lone"

struct lone_conn {
	uint32_t handle;
	struct sock_addr to; // of an outgoing connection
	bool outgoing, open, closed;
	enum ras_close how;
};

struct lone_frame {
	uint32_t conn;
	size_t size;
	uint8_t *bytes;
};

struct lone {
	struct ras *ras;
	struct ras_profile profile;
	struct ras_interner *interner;
	struct ras_record *records[LONE_PEERS_MAX];
	uint32_t count, self;
	uint64_t now_ns, wake_ns;
	size_t allocated_bytes;
	bool memory_spent; // allocations fail
	bool full;	   // connections accept no frame
	struct lone_conn conns[LONE_CONNS_MAX];
	uint32_t conn_count;
	struct lone_frame frames[LONE_LOG_MAX]; // frames sent by the instance
	uint32_t frame_count;
	struct ras_event events[LONE_LOG_MAX];
	uint32_t event_count;
	uint32_t who_count; // number of address queries that ended; the last result
	uint32_t who_conn;
	enum ras_cause who_cause;
	uint64_t who_found;
};

struct lone_setup {
	uint32_t count; // number of peers, including the instance, which is `self`
	uint32_t self;
	const struct ras_profile *profile; // NULL: fast
	bool joining;			   // joins through all the others; otherwise they are known
	uint32_t per_host;		   // peers on each host; 0: one
	uint32_t conns_max;		   // 0: enough
	uint64_t random_seed;		   // 0: a fixed default
};

struct lone *lone_create(const struct lone_setup *setup);
// Create an instance `self` that knows the members 0 … count-1.
struct lone *lone_of(uint32_t count, uint32_t self);
// Destroy the instance; fails the test if memory leaked.
void lone_destroy(struct lone *lone);
void lone_pass(struct lone *lone, uint64_t ns);
// Pass the time in steps, with a beat of the peer on the connection in each step.
void lone_pass_beating(struct lone *lone, uint64_t ns, uint32_t conn);

struct sock_addr lone_address(uint32_t peer);
struct ras_peer_info lone_info(const struct lone *lone, uint32_t peer, uint64_t start);
uint64_t lone_id(const struct lone *lone, uint32_t peer);
struct ras_peer lone_peer(const struct lone *lone, uint32_t peer);
struct link *lone_find_link(const struct lone *lone, uint32_t peer);

// Actions of peers.
uint32_t lone_accept(struct lone *lone);
// Return an INIT of the peer, which a test may change before it sends it.
struct message_init lone_init(const struct lone *lone, uint32_t peer, uint32_t uses);
void lone_send_init(struct lone *lone, uint32_t conn, const struct message_init *init);
// Connect as the peer and complete the handshake.
uint32_t lone_connect(struct lone *lone, uint32_t peer, uint32_t uses);
// Return the connection that the instance is opening to the peer; 0 if there is none.
uint32_t lone_opening(const struct lone *lone, uint32_t peer);
struct message_init_ack lone_ack(const struct lone *lone, uint32_t peer);
void lone_send_ack(struct lone *lone, uint32_t conn, const struct message_init_ack *ack);
// Accept the connection that the instance is opening.
uint32_t lone_answer(struct lone *lone, uint32_t peer);
// Make the link to the peer ready, whichever side has to connect.
uint32_t lone_link(struct lone *lone, uint32_t peer);
void lone_frame(struct lone *lone, uint32_t conn, const void *bytes, size_t size);
void lone_beat(struct lone *lone, uint32_t conn, uint32_t sequence, uint32_t uses);
// Report news on the connection. If the name has to wait, a second source reports it as well.
void lone_news(struct lone *lone, uint32_t conn, const struct peer_news *news);
// Return the signature of the peer under its departure; valid until the next call for this peer.
const uint8_t *lone_departure(const struct lone *lone, uint32_t peer, uint64_t incarnation);
// Return news of the peer in that state and incarnation, without its record. A death has two
// observers, a departure is signed.
struct peer_news
lone_told(const struct lone *lone, uint32_t peer, enum ras_state state, uint64_t incarnation);
void lone_end(struct lone *lone, uint32_t conn, enum ras_cause cause);
// Pass the time and refuse every connection that the instance opens to this peer.
void lone_pass_refusing(struct lone *lone, uint64_t ns, uint32_t peer);

// Actions of the instance. Counts restart with lone_mark().
void lone_mark(struct lone *lone);
uint32_t lone_sent(const struct lone *lone, uint32_t conn, enum message_type type);
// Return the latest frame of this type; fails the test if there is none.
const struct lone_frame *
lone_latest(const struct lone *lone, uint32_t conn, enum message_type type);
bool lone_is_closed(const struct lone *lone, uint32_t conn);
uint32_t lone_events(const struct lone *lone, enum ras_event_kind kind);
const struct ras_event *lone_event(const struct lone *lone, enum ras_event_kind kind);
// Return the refusal in the latest INIT_ACK on the connection.
enum ras_cause lone_refusal(const struct lone *lone, uint32_t conn);
