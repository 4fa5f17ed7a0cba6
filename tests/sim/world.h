// SPDX-License-Identifier: BSD-3-Clause
// One simulation: thousands of cores on a virtual network, in virtual time.
//
// All state of a run is in this structure and none is global: equal options give equal runs.
// Parts: queue (future events), net (links and kernels), node (a process with a core), fault
// (faults), load (users), measure (measurements), invariant (invariants), verdicts (the data
// plane and the verdicts).
#pragma once

#include "fault.h"
#include "invariant.h"
#include "load.h"
#include "measure.h"
#include "net.h"
#include "pool.h"
#include "queue.h"
#include "trace.h"

#include <ras/ras.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define WORLD_NODES_MAX 20000
#define WORLD_PORT 28030
#define WORLD_SEEDS 3
#define WORLD_MS UINT64_C(1000000)
#define WORLD_SEC UINT64_C(1000000000)

// Event kinds in addition to those of the network.
enum world_event {
	WORLD_TIMER = NET_EVENT_COUNT, // of a node
	WORLD_FAULT,
	WORLD_LOAD,
	WORLD_VERDICT,
};

enum node_state {
	NODE_OFF,
	NODE_UP,
	NODE_FROZEN,
};

#define NODE_REMEMBERED_MAX 32

// Contents of a node's state directory at its start.
enum node_memory {
	NODE_REMEMBERS,
	NODE_STALE, // a copy from before its last life
	// A copy of another node's: with its start counter; its list of members is ignored.
	NODE_CLONED,
	NODE_FORGETS, // empty
};

struct node_members {
	struct sock_addr list[NODE_REMEMBERED_MAX];
	uint64_t ids[NODE_REMEMBERED_MAX];
	uint32_t count;
};

struct node_directory {
	struct node_members members;
	struct node_members earlier; // copy from before the current life
};

#define NODE_VIEWS_MAX 4096 // of each node, in small worlds; the latest views

struct node {
	struct world *world;
	struct ras *ras; // NULL while the node is off
	struct ras_record *record;
	uint32_t index;
	uint32_t place; // number of its address; initially the node's own index
	uint32_t claim; // place whose address it claims; NET_NOBODY: its own
	uint32_t model; // node whose state directory it copies when it starts as a clone
	enum node_state state;
	bool leaving;
	bool left;    // its last life ended with a leave
	bool refused; // it was rejected at join: the agent gives up
	uint16_t version_max;
	uint16_t version_min;
	uint32_t start;	   // number of starts
	uint64_t key_seed; // seed of its key; 0: never lost its first one
	uint64_t leap_ns;  // its clock is ahead by this
	uint64_t wake_ns;  // requested wake-up, in virtual time
	uint64_t timer_ns; // time of the scheduled timer event
	uint32_t timer_generation;
	uint32_t ailing;   // number of current faults that make it hard to reach
	uint64_t ailed_ns; // end of the last of these faults; 0: never
	uint64_t echo_ns;  // lost data may still be retransmitted until then
	uint64_t started_ns;
	uint64_t ended_ns; // end of its previous life
	// Latest period in which its host could not send or receive, or was stopped; it may be
	// ongoing.
	uint64_t dark_ns, dark_until_ns;
	uint64_t declared_ns;		  // when a node last declared it dead; 0: never
	struct node_directory *directory; // NULL if members are not remembered
	// When the members will be saved (0: not planned), and were saved.
	uint64_t keep_ns, kept_ns;
	// Begin of the time in which it ran and could be reached without a fault.
	uint64_t healthy_ns;
	uint64_t *views; // digests of its latest views in this life
	uint32_t view_count, view_capacity;
};

struct world_options {
	uint32_t nodes;
	uint32_t hosts;
	const struct ras_profile *profile;
	uint64_t seed;
	uint32_t stall_ppm;
	bool preload;  // the ring exists from the start
	bool check;    // check the invariants
	bool remember; // remembered members are asked at start, beside the seeds
	FILE *trace;   // where every step is written, or NULL
};

// Each node may use two addresses, one at a time.
#define WORLD_PLACES(nodes) (2 * (nodes))

struct jobs;
struct verdicts;

struct world {
	struct world_options options;
	struct pool *pool;
	struct queue queue;
	struct trace trace;
	struct net net;
	struct ras_memory memory;
	struct ras_interner *interner;
	struct node *nodes;
	struct node_directory *directories;
	uint32_t *tenants; // by place: the node with this address now, or NET_NOBODY
	struct sock_addr seeds[WORLD_SEEDS];
	uint32_t seed_count;
	struct faults faults;
	struct load load;
	struct measure measure;
	struct invariants invariants;
	struct verdicts *verdicts; // NULL: not used by the scenario
	struct jobs *jobs;	   // NULL: not used by the scenario
	uint64_t random;	   // random state of the scenario
	uint32_t fetch_turn;
	uint64_t *ids; // open addressing: identifiers; their nodes are in `id_nodes`
	uint32_t *id_nodes;
	uint32_t id_mask;
	uint32_t straggler; // the last node found without the common view
};

// Returns 0, -ENOMEM, or the error of the core.
int world_create(const struct world_options *options, struct world **ret_world);
struct world *world_destroy(struct world *world);

static inline uint64_t world_now(const struct world *world) {
	return world->queue.now_ns;
}

// Process events until then. Stops early if an invariant breaks.
void world_run(struct world *world, uint64_t until_ns);
// Return whether the views differ only by nodes that are off, each held by one node, while the
// others let a name wait: the known fault N7 of docs/internals/membership.md.
bool world_has_unproven_loss(const struct world *world);
// Process events until all nodes that are up share one view of exactly those nodes; checks every
// `step_ns`. Returns false if they do not by then.
bool world_await_one_view(struct world *world, uint64_t until_ns, uint64_t step_ns);
bool world_has_one_view(struct world *world);

// Return whether nodes ask this one when they start, in a world of that size.
bool world_is_seed(uint32_t nodes, uint32_t node);
// Returns NET_NOBODY if there is no such node.
uint32_t world_node_of_id(const struct world *world, uint64_t id);
uint32_t world_count_up(const struct world *world);
// Return whether a node that is up can reach this one, in both directions.
bool world_is_reached(const struct world *world, uint32_t node);
// Draw a node that is up, from the scenario's random state.
uint32_t world_draw_up(struct world *world);

// Life of a node (node.c). Starting a running node, or ending one that is off, does nothing. With
// a table the node starts as a member of the ring in the table.
void node_start(
	struct world *world, uint32_t node, const struct ras_table *table, enum node_memory memory
);
// Use the node's second address from its next start on; a second move returns to the first.
void node_fini(struct node *node);
void node_move(struct world *world, uint32_t node);
// Return a table of all nodes that start as members.
struct ras_table *world_table(struct world *world);
void node_kill(struct world *world, uint32_t node);
void node_vanish(struct world *world, uint32_t node); // its host is down; the network already knows
void node_leave(struct world *world, uint32_t node);
// Record that the node is cut off in one direction, or no longer.
void node_dark(struct node *node, bool begins);
void node_freeze(struct world *world, uint32_t node);
void node_thaw(struct world *world, uint32_t node);
void node_leap(struct world *world, uint32_t node, uint64_t leap_ns);
void node_timer(struct world *world, struct event *event);
// Handle the result of an input: a core that has finished ends its process.
void node_settle(struct node *node);
// Swap the addresses of two nodes that are off; valid from their next starts.
void node_swap_places(struct world *world, uint32_t a, uint32_t b);
// Let the node claim the address of that place from its next start on; NET_NOBODY: its own.
void node_claim(struct world *world, uint32_t node, uint32_t place);
int node_record(struct world *world, uint32_t node, struct ras_record **ret_record);

static inline uint64_t node_now(const struct node *node) {
	return node->world->queue.now_ns + node->leap_ns;
}

extern const struct net_sink node_sink;
