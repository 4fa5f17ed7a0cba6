// SPDX-License-Identifier: BSD-3-Clause
// Collectives of several instances over links that are lists in memory, with a clock turned by
// hand. Only collectives and floods are real; the table, the links and the liveness part are
// reduced to what these ask of them.
#pragma once

#include <ras/collective.h>
#include <ras/ras.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_NODES_MAX 320
#define NET_LINKS_MAX 24 // of one node
#define NET_RESULTS_MAX 8

struct link;
struct wire_writer;

// A copy of what ras_ops.collected was told, and of the parts it could step through.
struct net_result {
	struct ras_collective_result result;
	struct ras_missing_peer missing[NET_NODES_MAX];
	uint32_t parts_of[NET_NODES_MAX];
	uint32_t parts;
	size_t bytes;
};

struct net_node {
	struct ras *ras;
	uint32_t contributed;	      // questions put to ops.contribute
	uint32_t weak[NET_NODES_MAX]; // weak evidence against each
	uint32_t noticed;
	uint64_t notice_origin;
	uint32_t notice_kind;
	uint32_t forgotten;
	uint32_t result_count;
	struct net_result results[NET_RESULTS_MAX];

	// What it contributes: `part_count` parts of `part_bytes`.
	uint32_t part_count;
	size_t part_bytes;
	bool deaf; // takes what is sent to it and does nothing
};

struct net_frame {
	struct net_frame *next;
	uint32_t from, to;
	size_t size;
	uint8_t bytes[];
};

struct net {
	// A test's own share instead of the common one, and its look at what arrives.
	bool (*contribute
	)(struct net *net, const struct ras_contribution *wanted, struct wire_writer *writer);
	void (*arrived)(struct net *net, const struct ras_collected_part *part);
	void *test;

	uint32_t count;
	struct net_node *nodes;
	struct net_frame *first; // in flight, in the order of sending
	uint64_t now_ns;
	uint64_t random; // 0: delivery in order; else a link is picked by it
	uint64_t sent_frames;
	size_t used_bytes; // of all instances
	size_t used_bytes_max;
	uint64_t allocations;
	uint64_t allocation_fails_at; // 0: never
};

// Nodes know each other and are alive; node n has slot n everywhere and id net_id(n).
struct net *net_create(uint32_t count);
// Fails the test if an instance gave memory back wrongly.
void net_destroy(struct net *net);

uint64_t net_id(uint32_t node);

void net_connect(struct net *net, uint32_t a, uint32_t b);
void net_ring(struct net *net);
void net_chords(struct net *net); // a ring and i ± 2^k
void net_tree(struct net *net);	  // binary, root 0

struct link *net_link(struct net *net, uint32_t from, uint32_t to); // NULL if there is none
// Takes the connection away on both sides, with all that is in flight, and tells both.
void net_cut(struct net *net, uint32_t a, uint32_t b);
// The same as one side sees it, who only holds the other for delayed.
void net_delay(struct net *net, uint32_t observer, uint32_t peer);

// Hands one frame to its receiver; false if none is in flight.
bool net_step(struct net *net);
void net_run(struct net *net); // until nothing is in flight
// Steps, and turns the clock to the next wake-up anybody wants, until nobody wants any.
void net_run_out(struct net *net);
void net_turn(struct net *net, uint64_t ns); // and ticks everybody

// As if `from` had sent these bytes to `to`; what the hook answered.
int net_inject(struct net *net, uint32_t from, uint32_t to, const void *frame, size_t size);

// Nobody has a collective running.
bool net_idle(const struct net *net);
