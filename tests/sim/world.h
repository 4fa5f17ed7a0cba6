// SPDX-License-Identifier: BSD-3-Clause
// One simulation: thousands of cores on a virtual network, under virtual time.
//
// Everything a run needs hangs here and nothing is global: the same options give the same
// run. The parts: queue (what happens next), net (wires and kernels), node (a process around
// a core), fault (what goes wrong), load (what users ask), measure (what came of it),
// invariant (what must never be),
// verdicts (the data plane, and what is concluded from both).
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

// Kinds of events beyond the network's.
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

// What is left of its state directory when it starts.
enum node_memory {
	NODE_REMEMBERS,
	NODE_STALE,   // a copy of before its last life
	NODE_CLONED,  // a copy of another node's: its start, and a list that is not taken
	NODE_FORGETS, // nothing
};

struct node_members {
	struct sock_addr list[NODE_REMEMBERED_MAX];
	uint64_t ids[NODE_REMEMBERED_MAX];
	uint32_t count;
};

struct node_directory {
	struct node_members members;
	struct node_members earlier; // a copy of before its life
};

#define NODE_VIEWS_MAX 4096 // of each node, in small worlds; the latest ones

struct node {
	struct world *world;
	struct ras *ras; // NULL while off
	struct ras_record *record;
	uint32_t index;
	uint32_t place; // whose address it has, of those that the nodes had first
	uint32_t claim; // NET_NOBODY, or the place whose address it says to have
	uint32_t model; // of whose state directory it has a copy at a start as a clone
	enum node_state state;
	bool leaving;
	bool left;    // its last life ended so
	bool refused; // was told not to join: the agent gives up
	uint16_t version_max;
	uint16_t version_min;
	uint32_t start;	   // how often it was started
	uint64_t leap_ns;  // its clock is ahead by this much
	uint64_t wake_ns;  // asked for, in virtual time
	uint64_t timer_ns; // of the event that will wake it
	uint32_t timer_generation;
	uint32_t ailing;   // faults that now make it hard to reach
	uint64_t ailed_ns; // when the last one of them ended, 0 for never
	uint64_t echo_ns;  // until then what it lost may be waited for
	uint64_t started_ns;
	uint64_t ended_ns; // its last life that is over
	// Of the latest time in which its host heard nobody, or nobody heard it, or it stood still;
	// that may last.
	uint64_t dark_ns, dark_until_ns;
	uint64_t declared_ns;		  // when somebody last held it for dead, 0 for never
	struct node_directory *directory; // NULL if nobody remembers members
	uint64_t keep_ns, kept_ns; // when the members are to be written, 0 for never, and were
	uint64_t healthy_ns;	   // since when it runs and can be reached, as far as faults go
	uint64_t *views;	   // digests of the latest ones, of this life
	uint32_t view_count, view_capacity;
};

struct world_options {
	uint32_t nodes;
	uint32_t hosts;
	const struct ras_profile *profile;
	uint64_t seed;
	uint32_t stall_ppm;
	bool preload;  // the ring is there from the beginning
	bool check;    // invariants
	bool remember; // members of a last life are asked, beside the seeds
	FILE *trace;   // NULL, or where every step is written
};

// Each node may have two addresses, one after the other.
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
	uint32_t *tenants; // by place: the node that has the address now, NET_NOBODY if none has
	struct sock_addr seeds[WORLD_SEEDS];
	uint32_t seed_count;
	struct faults faults;
	struct load load;
	struct measure measure;
	struct invariants invariants;
	struct verdicts *verdicts; // NULL: this scenario has none
	struct jobs *jobs;	   // likewise
	uint64_t random;	   // of scenarios
	uint32_t fetch_turn;
	uint64_t *ids; // open addressing: id, and the node in `id_nodes`
	uint32_t *id_nodes;
	uint32_t id_mask;
	uint32_t straggler; // the last one seen not to share the view
};

// -ENOMEM, or what the core says.
int world_create(const struct world_options *options, struct world **ret_world);
struct world *world_destroy(struct world *world);

static inline uint64_t world_now(const struct world *world) {
	return world->queue.now_ns;
}

// Lets events happen until then. Stops early if an invariant is broken.
void world_run(struct world *world, uint64_t until_ns);
// The same until all that are up share one view of exactly those, looked at every `step_ns`;
// false if they do not by then.
bool world_await_one_view(struct world *world, uint64_t until_ns, uint64_t step_ns);
bool world_has_one_view(struct world *world);

// NET_NOBODY if there is no such node.
uint32_t world_node_of_id(const struct world *world, uint64_t id);
uint32_t world_count_up(const struct world *world);
// Whether anybody that is up could hear it, and be heard.
bool world_is_reached(const struct world *world, uint32_t node);
// A node that is up, drawn from the scenario's randomness.
uint32_t world_draw_up(struct world *world);

// A node's life (node.c). Starting one that is up, or ending one that is off, does nothing.
// With a table it begins as a member among those in it.
void node_start(
	struct world *world, uint32_t node, const struct ras_table *table, enum node_memory memory
);
// From its next start on it has an address that nobody had; the time after that its first one.
void node_fini(struct node *node);
void node_move(struct world *world, uint32_t node);
// A table of all nodes that are to begin as members.
struct ras_table *world_table(struct world *world);
void node_kill(struct world *world, uint32_t node);
void node_vanish(struct world *world, uint32_t node); // its host is down: the network knows
void node_leave(struct world *world, uint32_t node);
// From now on, or no more, nobody hears it or it hears nobody.
void node_dark(struct node *node, bool begins);
void node_freeze(struct world *world, uint32_t node);
void node_thaw(struct world *world, uint32_t node);
void node_leap(struct world *world, uint32_t node, uint64_t leap_ns);
void node_timer(struct world *world, struct event *event);
// What follows from an input: a core that is done ends its process.
void node_settle(struct node *node);
// Both are off: each has the other's address from its next start on.
void node_swap_places(struct world *world, uint32_t a, uint32_t b);
// From its next start on it says to have the address of that place; NET_NOBODY: its own.
void node_claim(struct world *world, uint32_t node, uint32_t place);
int node_record(struct world *world, uint32_t node, struct ras_record **ret_record);

static inline uint64_t node_now(const struct node *node) {
	return node->world->queue.now_ns + node->leap_ns;
}

extern const struct net_sink node_sink;
