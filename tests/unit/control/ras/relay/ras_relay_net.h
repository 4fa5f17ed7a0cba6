// SPDX-License-Identifier: BSD-3-Clause
// Relay instances over links in memory: the real relay and peer tables, without the rest of the
// core. Frames arrive in the order of sending; time advances only on request.
#pragma once

#include "core/core.h"

#define NET_NODES_MAX 256
#define NET_LOG_MAX 512
#define NET_PORT 100

enum net_wire {
	NET_ABSENT,  // no such link
	NET_GOOD,    //
	NET_BLOCKED, // good, but accepts nothing now
	NET_DOWN,    // lost, and both ends know
	NET_SILENT,  // good for both ends, but frames are lost
};

struct net_delivery {
	uint64_t source;
	uint32_t port, flow, hops;
	uint64_t value; // first bytes of the payload
	size_t size;
};

struct net_node {
	struct ras ras;
	struct net *net;
	uint32_t index;
	struct link *links;
	struct link *table[NET_NODES_MAX]; // the table of ras.links

	int deliver_result;
	struct net_delivery deliveries[NET_LOG_MAX];
	uint32_t delivery_count;
	struct ras_relay_report reports[NET_LOG_MAX];
	uint32_t report_count;
	uint32_t internal_count;
	uint32_t internal_port;
	bool internal_fails;
};

struct net_frame {
	struct net_frame *next;
	uint32_t from, to;
	size_t size;
	uint8_t bytes[];
};

struct net {
	struct net_node *nodes;
	uint32_t count;
	uint64_t now_ns;
	struct ras_profile profile;
	struct ras_interner *interner;
	struct ras_record *records[NET_NODES_MAX];
	uint64_t ids[NET_NODES_MAX]; // in ring order
	uint8_t wires[NET_NODES_MAX][NET_NODES_MAX];
	struct net_frame *head, **tail;
	uint64_t frames; // number of frames sent
	// Called for each frame before it arrives. Returns false to lose the frame.
	bool (*filter)(struct net *net, struct net_frame *frame);
	void *filter_ctx;
};

// Create nodes in a ring; net_link() adds further links.
struct net *net_create(uint32_t count);
void net_destroy(struct net *net);
void net_link(struct net *net, uint32_t a, uint32_t b);
void net_link_ring(struct net *net);
// Add links from each i to i ± 2^k, for all k.
void net_link_long(struct net *net);

// Set both directions of a link; notifies the relays of lost links and of links that accept
// frames again.
void net_wire(struct net *net, uint32_t a, uint32_t b, enum net_wire wire);
struct link *net_find_link(struct net *net, uint32_t from, uint32_t to);
// Set the state or the newer start of `about` in the table of `who`.
void net_tell(struct net *net, uint32_t who, uint32_t about, enum ras_state state, uint64_t start);

// Deliver frames until none is left.
void net_carry(struct net *net);
// Deliver frames, with ticks and time, until no message is in progress.
void net_settle(struct net *net);
void net_advance(struct net *net, uint64_t by_ns);

// Send payload `value` with a report. Returns the result of ras_relay_send().
int net_send(struct net *net, uint32_t from, uint32_t to, uint64_t value);
int net_send_message(
	struct net *net, uint32_t from, const struct ras_relay_message *message, uint64_t *ret_id
);

// Let all allocations fail from now on, or succeed again.
void net_memory_fail(bool fail);

uint64_t net_random(uint64_t *state);
