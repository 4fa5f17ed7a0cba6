// SPDX-License-Identifier: BSD-3-Clause
// A handful of real instances on a network in memory, turned by hand.
//
// Node n is nNN on host hNN (or two to a host) at 10.0.0.n+1; its position in the ring is n.
// Frames and connects take WORLD_DELAY_NS; the order is that of (time, sending), so a test
// runs the same way each time.
#pragma once

#include "core/core.h"

#define WORLD_NODES_MAX 128
#define WORLD_CONNS_MAX 16384
#define WORLD_EVENTS_MAX 1024
#define WORLD_DELAY_NS RAS_NS_PER_MS

// What the network does from one node to another.
enum world_way {
	WORLD_OPEN,
	WORLD_STALLED, // nothing passes, nobody is told; what was sent arrives once it opens
	WORLD_REFUSED, // connects are refused, what is open stays
	WORLD_FULL,    // the sender's buffer takes nothing more
};

struct world_node {
	struct ras *ras; // NULL while it is not running
	struct world *world;
	uint32_t index;
	bool frozen; // stopped: its host takes connections and bytes, it does not
	uint64_t wake_ns;
	struct ras_record *record;
	struct ras_event events[WORLD_EVENTS_MAX];
	uint32_t event_count;
};

// What their records say of the boot of their machine.
enum world_boots {
	WORLD_BOOT_UNKNOWN,
	WORLD_BOOT_OF_HOST,
	WORLD_BOOT_OF_NODE, // machines of one image: one host by its name only
};

struct world_setup {
	uint32_t count;
	uint32_t seeds; // the first so many nodes are seeds; 0: all are known from the start
	bool pairs;	// two nodes a host, whose machine tells each that the other one refuses
	enum world_boots boots;
	bool idle;			   // no node is started
	const struct ras_profile *profile; // NULL for fast
	const struct ras_ops *users;	   // NULL, or the transfer_* of all; ctx is the node
};

struct world {
	struct world_node nodes[WORLD_NODES_MAX];
	uint32_t count, seeds;
	bool pairs;
	uint64_t now_ns;
	struct ras_profile profile;
	struct ras_interner *interner;
	size_t allocated_bytes;
	bool memory_spent; // allocations fail
	uint64_t allocations;
	uint64_t allocation_fails_at;	 // this one, counted from 1; 0 for none
	uint64_t allocation_fails_every; // 0 for none
	uint32_t pid_offset;		 // of processes started from now on
	uint64_t remembers;		 // they remember these of the first 64 nodes, by bits
	bool seeds_unknown;		 // and have seeds that they cannot look up
	const struct ras_ops *users;
	uint8_t ways[WORLD_NODES_MAX][WORLD_NODES_MAX]; // enum world_way
	struct world_conn *conns;
	uint32_t conn_count;
	struct world_item *head, **tail;
};

struct world *world_create(const struct world_setup *setup);
struct world *world_of(uint32_t count); // all are known from the start
void world_destroy(struct world *world);
void world_pass(struct world *world, uint64_t ns);

// A process starts; `start` 0 is learnt at join, `name` other than its own may be claimed.
void world_start(struct world *world, uint32_t node, uint64_t start, uint32_t name);
void world_start_as(struct world *world, uint32_t node, const char *cluster, uint16_t version);
void world_kill(struct world *world, uint32_t node); // the process; its host answers
void world_off(struct world *world, uint32_t node);  // the host: silence
void world_freeze(struct world *world, uint32_t node);
void world_resume(struct world *world, uint32_t node);
void world_way(struct world *world, uint32_t from, uint32_t to, enum world_way way);
// Both ways, between the nodes below `split` and the others.
void world_split(struct world *world, uint32_t split, enum world_way way);
void world_reset(struct world *world, uint32_t a, uint32_t b); // their connections

uint64_t world_id(const struct world *world, uint32_t node);
struct ras_view world_view(const struct world *world, uint32_t node);
// What a node thinks of another; RAS_UNKNOWN if nothing.
enum ras_state world_state(const struct world *world, uint32_t node, uint32_t of);
struct link *world_link(const struct world *world, uint32_t node, uint32_t to);
bool world_is_linked(const struct world *world, uint32_t node, uint32_t to); // and well
uint32_t world_links(const struct world *world, uint32_t node);		     // ready ones
uint32_t world_open_conns(const struct world *world, uint32_t node);
// All that run hold the others that run for alive, and show one digest.
bool world_agrees(const struct world *world);
void world_mark(struct world *world);
uint32_t world_events(const struct world *world, uint32_t node, enum ras_event_kind kind);
uint32_t world_events_all(const struct world *world, enum ras_event_kind kind);
// The latest of a kind; the test fails if there is none.
const struct ras_event *
world_event(const struct world *world, uint32_t node, enum ras_event_kind kind);
