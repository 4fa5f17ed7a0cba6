// SPDX-License-Identifier: BSD-3-Clause
// Collectives of several instances over links that are lists in memory, with a fake clock. Only
// collectives and floods are real code. The peer table, the links and the liveness part provide
// only the functions that these call.
#pragma once

#include <ras/collective.h>
#include <ras/ras.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_NODES_MAX 320
#define NET_LINKS_MAX 24 // links per node
#define NET_RESULTS_MAX 8

struct link;
struct wire_writer;

// Copy of a result of ras_ops.collected, and of its parts.
struct net_result {
	struct ras_collective_result result;
	struct ras_missing_peer missing[NET_NODES_MAX];
	uint32_t parts_of[NET_NODES_MAX];
	uint32_t parts;
	size_t bytes;
};

struct net_node {
	struct ras *ras;
	uint32_t contributed;	      // calls of ops.contribute
	uint32_t weak[NET_NODES_MAX]; // weak evidence against each node
	uint32_t noticed;
	uint64_t notice_origin;
	uint32_t notice_kind;
	uint32_t forged; // events FORGED, and the latest neighbour that they name
	uint64_t forged_by;
	uint32_t forgotten;
	uint32_t result_count;
	struct net_result results[NET_RESULTS_MAX];

	// Contribution of this node: `part_count` parts of `part_bytes` bytes.
	uint32_t part_count;
	size_t part_bytes;
	bool deaf; // drops every received frame
};

struct net_frame {
	struct net_frame *next;
	uint32_t from, to;
	size_t size;
	uint8_t bytes[];
};

struct net {
	// Hooks of a test: its own contribution instead of the common one, and a check of arriving
	// parts.
	bool (*contribute
	)(struct net *net, const struct ras_contribution *wanted, struct wire_writer *writer);
	void (*arrived)(struct net *net, const struct ras_collected_part *part);
	void *test;

	uint32_t count;
	struct net_node *nodes;
	struct net_frame *first; // in flight, in sending order
	uint64_t now_ns;
	uint64_t random; // 0: delivery in order; else random state that picks a link
	uint64_t sent_frames;
	size_t used_bytes; // sum over all instances
	size_t used_bytes_max;
	uint64_t allocations;
	uint64_t allocation_fails_at; // 0: never
};

// Create `count` nodes that know each other and are alive. Node n has slot n everywhere and id
// net_id(n).
struct net *net_create(uint32_t count);
// Destroy the net. Fails the test if an instance released memory wrongly.
void net_destroy(struct net *net);

uint64_t net_id(uint32_t node);

void net_connect(struct net *net, uint32_t a, uint32_t b);
void net_ring(struct net *net);
void net_chords(struct net *net); // a ring and links to i ± 2^k
void net_tree(struct net *net);	  // binary, root 0

struct link *net_link(struct net *net, uint32_t from, uint32_t to); // NULL if there is no link
// Remove the connection on both sides, with all frames in flight, and notify both.
void net_cut(struct net *net, uint32_t a, uint32_t b);
// Mark the peer as delayed, on the observer's side only.
void net_delay(struct net *net, uint32_t observer, uint32_t peer);

// Deliver one frame to its receiver. Returns false if none is in flight.
bool net_step(struct net *net);
void net_run(struct net *net); // deliver until nothing is in flight
// Deliver frames and advance the clock to the next requested wake-up, until there is none.
void net_run_out(struct net *net);
void net_turn(struct net *net, uint64_t ns); // advance the clock and tick all nodes

// Deliver bytes to `to` as if `from` had sent them. Returns the result of the receiver.
int net_inject(struct net *net, uint32_t from, uint32_t to, const void *frame, size_t size);

// Return true if no node has a collective in progress.
bool net_idle(const struct net *net);
