// SPDX-License-Identifier: BSD-3-Clause
// A few real instances on a network in memory, advanced by the test.
//
// Node n is nNN on host hNN (or two nodes to a host) at 10.0.0.n+1; its ring position is n.
// Frames and connects take WORLD_DELAY_NS. Events are ordered by (time, sending), so a test
// always runs the same way.
#pragma once

#include "core/core.h"

#define WORLD_NODES_MAX 128
#define WORLD_CONNS_MAX 16384
#define WORLD_EVENTS_MAX 1024
#define WORLD_DELAY_NS RAS_NS_PER_MS

// State of the network path from one node to another.
enum world_way {
	WORLD_OPEN,
	// Nothing passes and no end is notified; sent data arrives once the path opens.
	WORLD_STALLED,
	WORLD_REFUSED, // connects are refused; open connections work
	WORLD_FULL,    // the sender's buffer accepts nothing more
};

struct world_node {
	struct ras *ras; // NULL while it does not run
	struct world *world;
	uint32_t index;
	bool frozen; // process stopped: its host still accepts connections and data
	uint64_t wake_ns;
	uint8_t key[RAS_KEY_BYTES]; // with which it signs
	struct ras_record *record;
	uint32_t notices; // delivered here, and the origin of the latest one
	uint64_t notice_origin;
	struct ras_event events[WORLD_EVENTS_MAX];
	uint32_t event_count;
};

// Boot identifiers in the records.
enum world_boots {
	WORLD_BOOT_UNKNOWN,
	WORLD_BOOT_OF_HOST,
	WORLD_BOOT_OF_NODE, // machines of one image: the same host name, different boots
};

struct world_setup {
	uint32_t count;
	uint32_t seeds; // the first nodes are seeds; 0: all nodes know each other from the start
	// Two nodes per host, whose kernel reports refused connects between them as exits.
	bool pairs;
	enum world_boots boots;
	bool idle;			   // start no node
	const struct ras_profile *profile; // NULL: fast
	// NULL, or the transfer_* callbacks of all nodes; ctx is the node.
	const struct ras_ops *users;
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
	uint64_t allocation_fails_at; // number of the failing allocation, counted from 1; 0: none
	uint64_t allocation_fails_every; // each n-th allocation fails; 0: none
	uint32_t pid_offset;		 // of processes started from now on
	uint64_t key_seed;		 // of processes started from now on; 0: key of the name
	uint64_t remembers; // bit set of those of the first 64 nodes that new processes remember
	bool seeds_unknown; // new processes have seeds that they cannot resolve
	const struct ras_ops *users;
	uint8_t ways[WORLD_NODES_MAX][WORLD_NODES_MAX]; // enum world_way
	struct world_conn *conns;
	uint32_t conn_count;
	struct world_item *head, **tail;
};

struct world *world_create(const struct world_setup *setup);
struct world *world_of(uint32_t count); // all know each other from the start
void world_destroy(struct world *world);
void world_pass(struct world *world, uint64_t ns);

// Start a process. `start` 0: learned at join. `name`: the node whose name it claims, usually
// itself.
void world_start(struct world *world, uint32_t node, uint64_t start, uint32_t name);
void world_start_as(struct world *world, uint32_t node, const char *cluster, uint16_t version);
void world_kill(struct world *world, uint32_t node); // ends the process; its host answers
void world_off(struct world *world, uint32_t node);  // ends the host: silence
void world_freeze(struct world *world, uint32_t node);
void world_resume(struct world *world, uint32_t node);
void world_way(struct world *world, uint32_t from, uint32_t to, enum world_way way);
// Set the path between the nodes below `split` and the others, in both directions.
void world_split(struct world *world, uint32_t split, enum world_way way);
void world_reset(struct world *world, uint32_t a, uint32_t b); // resets their connections

uint64_t world_id(const struct world *world, uint32_t node);
struct ras_view world_view(const struct world *world, uint32_t node);
// Return the state of another node in the node's view; RAS_UNKNOWN if it has none.
enum ras_state world_state(const struct world *world, uint32_t node, uint32_t of);
struct link *world_link(const struct world *world, uint32_t node, uint32_t to);
bool world_is_linked(const struct world *world, uint32_t node, uint32_t to); // with a good link
uint32_t world_links(const struct world *world, uint32_t node); // number of ready links
uint32_t world_open_conns(const struct world *world, uint32_t node);
// Return whether all running nodes consider each other alive and have one digest.
bool world_agrees(const struct world *world);
void world_mark(struct world *world);
uint32_t world_events(const struct world *world, uint32_t node, enum ras_event_kind kind);
uint32_t world_events_all(const struct world *world, enum ras_event_kind kind);
// Return the latest event of a kind; fails the test if there is none.
const struct ras_event *
world_event(const struct world *world, uint32_t node, enum ras_event_kind kind);
