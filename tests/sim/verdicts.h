// SPDX-License-Identifier: BSD-3-Clause
// The simulated data plane: which nodes read which pulses, and a verdict engine with its exchange
// on every node.
//
// Engines, path memories (where latency or loss matters) and the loss book are the product's
// code. The fabric is simulated: packets of a read may be lost at both ends and in between, with
// RC's timer and retries. The overlay's TCP loses packets on the same links (net.h). Each node
// reads the pulse of each of its links once a second. No engine is given the true fault.
#pragma once

#include <ras/collective.h>
#include <ras/event.h>
#include <verdict/engine.h>
#include <verdict/grants.h>
#include <verdict/loss.h>
#include <verdict/path_memory.h>

#include <stdbool.h>
#include <stdint.h>

struct event;
struct node;
struct world;

#define VERDICTS_NOTICE (RAS_NOTICE_OWN_MIN + 7)
#define VERDICTS_GRANTS (RAS_NOTICE_OWN_MIN + 8)
#define VERDICTS_PATHS_MAX 64 // of one node
#define VERDICTS_FAULTS_MAX 64

// State of the reads of one peer's pulse by one node.
struct pulse_path {
	uint32_t peer;
	uint32_t count;	   // number of reads so far
	uint32_t misses;   // consecutive failed reads
	bool linked;	   // the overlay still has a link to the peer
	uint64_t until_ns; // without a link: end of the reads
	uint64_t miss_ns;  // begin of the first failed read
	uint64_t beats, beats_ns;
	uint64_t told_ns; // time of the last report to the exchange
	enum observation_kind kind;
	enum verdict_reach reach;
	struct path_memory *memory; // NULL: the path is only observed as readable or not
};

struct verdict_node {
	struct node *node;
	struct verdict_engine *engine; // NULL while the node is off
	struct observation_exchange *exchange;
	struct grants *grants;
	struct loss_book *losses;
	uint64_t losses_look_ns; // time of the next look at the losses of all links
	struct pulse_path *paths;
	uint32_t path_count;
	uint32_t generation; // events of earlier generations are ignored
	uint64_t engine_wake_ns, exchange_wake_ns, grants_wake_ns;
	uint64_t timer_ns;
	uint64_t frozen_ns;
	uint64_t resumed_ns; // time when this node itself resumed
	// Last pause that the core noticed, as the agent reports it to the engine.
	uint64_t paused_until_ns, paused_ns;
	bool braking;
	bool feeding; // the core's table is to be read again
	// Faults of the node's end of the fabric.
	enum observation_responder responder;
	bool cut;	   // the cable is dead
	uint64_t uncut_ns; // end of its last fabric fault (FAULT_FABRIC); 0: never
	bool lossy;	   // seven of eight large packets are lost
	bool hole;	   // all large packets are lost
	uint32_t slow;	   // percent of the usual latency; 0: not slow
	bool watched;	   // the node has a fault: its readers report every observation
	bool sick;	   // the node has a fault, so any verdict on it may be right
};

// Fault between two nodes, in both directions.
struct path_fault {
	uint32_t a, b;
	bool cut, lossy, hole;
	uint32_t slow; // percent of the usual latency; 0: not slow
	uint32_t loss; // percent of the packets of both planes
};

struct verdicts {
	struct world *world;
	struct verdict_node *nodes;
	struct ras_memory memory; // counts the bytes in use
	uint64_t bytes, bytes_max;
	struct path_fault faults[VERDICTS_FAULTS_MAX];
	uint32_t fault_count;
	// Nodes below this index and the other nodes cannot read each other; 0: no split.
	uint32_t island;
	uint64_t random;
	bool by_faults;	  // a node is sick unless verdicts_is_well()
	uint8_t *drained; // by node: a healthy node that an observer would have drained
	uint32_t healthy_drained;
	uint64_t granted;      // drains granted, for any node, by engines that have ended
	uint32_t drained_node; // the first drained node
	char drained_text[512];
	uint64_t told, told_bytes; // sums of the engines that have ended
};

// Start an engine on every node that is up, with its core's view. Returns 0 or -ENOMEM.
int verdicts_begin(struct world *world);
void verdicts_end(struct world *world);

// Apply a fault between two nodes until it is healed. Both ends were healthy before and have that
// in their history.
void verdicts_path_fault(struct world *world, const struct path_fault *fault);
void verdicts_path_heal(struct world *world, uint32_t a, uint32_t b);
// Drop the history of paths that no longer matter, which saves memory.
void verdicts_settle_paths(struct world *world);
// Give a good history to the paths from and to this node.
void verdicts_remember(struct world *world, uint32_t node);
void verdicts_say(
	struct world *world,
	uint32_t node,
	enum verdict verdict,
	const char *reason,
	const char *evidence
);

// Return whether the observer reads the node's pulse, so that it is affected by the node's
// faults.
bool verdicts_reads(const struct world *world, uint32_t observer, uint32_t node);
// Return whether the observer reads the node now and keeps reading it while it is watched: the
// overlay has had a link there for some time.
bool verdicts_reads_on(const struct world *world, uint32_t observer, uint32_t node);
// Sum up what the exchanges sent so far.
void verdicts_sum(const struct world *world, double *ret_told, double *ret_bytes);
// Return whether no fault affects the node, and none did for longer than it takes to be declared
// dead. A node that no other node reaches is not well. A partition alone does not make a node sick.
bool verdicts_is_well(const struct world *world, uint32_t node);
// Search all verdicts for healthy nodes that would be drained.
void verdicts_audit(struct world *world);

// Hooks; they do nothing while there are no engines.
void verdicts_started(struct world *world, struct node *node);
void verdicts_stopped(struct world *world, struct node *node);
void verdicts_frozen(struct world *world, struct node *node, bool frozen);
void verdicts_event(struct world *world, struct node *node, const struct ras_event *event);
void verdicts_notice(
	struct world *world, struct node *node, uint64_t origin, const void *bytes, size_t size
);
void verdicts_granted(struct world *world, struct node *node, const void *bytes, size_t size);
// Return the number of drains granted so far.
uint64_t verdicts_grants(const struct world *world);
void verdicts_fabric_cut(struct world *world, uint32_t node, bool cut);
void verdicts_happen(struct world *world, struct event *event);

// Report the node's own state to its engine.
void verdicts_of_self(struct world *world, struct verdict_node *own);
void verdicts_miss_at(struct verdict_node *own, uint32_t peer, uint32_t size, uint64_t at_ns);

// verdicts_look.c
void verdicts_look(struct world *world, struct verdict_node *own, uint32_t phase);
void verdicts_missed(
	struct world *world,
	struct verdict_node *own,
	uint32_t peer,
	uint32_t size,
	uint64_t begun_ns
);
void verdicts_forget_paths(struct world *world, struct verdict_node *own);
// Discard pending reads after the node itself was frozen: their failures are no evidence.
void verdicts_resume(struct world *world, struct verdict_node *own);

// verdicts_wire.c: the result of a read.
#define VERDICTS_READ_LIMIT_NS (300 * WORLD_MS) // a slower read counts as not answered
#define VERDICTS_BEAT_NS (100 * WORLD_MS)	// period of the counter in the page
#define VERDICTS_BASE_NS 4000
#define VERDICTS_PAST_S 90 // length of a path's history, at one read per second
struct found {
	bool answered;
	uint64_t beats;
	uint64_t latency_ns;
};
void verdicts_read(
	struct world *world,
	const struct verdict_node *own,
	uint32_t peer,
	uint32_t size, // index of the size
	struct found *ret_found
);
// Return how the kernel of the peer's host responds to a connection.
enum verdict_reach
verdicts_knock(struct world *world, const struct verdict_node *own, const struct verdict_node *far);
bool verdicts_latency_matters(const struct world *world, uint32_t a, uint32_t b);
// Find the links with losses, as the agent does. Returns the time of the next look.
uint64_t verdicts_losses(struct world *world, struct verdict_node *own);
#define VERDICTS_PHASES 4 // phases per second
