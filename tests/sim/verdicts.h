// SPDX-License-Identifier: BSD-3-Clause
// The data plane of a simulation: who reads whose pulse, and a verdict engine with its exchange on
// every node.
//
// The engines are the product's; so is the memory of a path wherever latency or loss matters, and
// the book of links that lose. What is played is the fabric: a read is answered or not, and takes
// so long, by what becomes of its packets at its two ends and between, with RC's timer and retries;
// the overlay's TCP loses packets on the same wires (net.h). Each node reads the pulse of each of
// its links once a second. No engine is told what is wrong.
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

// A pulse that one node reads.
struct pulse_path {
	uint32_t peer;
	uint32_t count;	   // reads so far
	uint32_t misses;   // in a row
	bool linked;	   // still a link of the overlay
	uint64_t until_ns; // if not: looked at until then
	uint64_t miss_ns;  // when the first of them was begun
	uint64_t beats, beats_ns;
	uint64_t told_ns; // handed to the exchange
	enum observation_kind kind;
	enum verdict_reach reach;
	struct path_memory *memory; // NULL: only told whether it is read
};

struct verdict_node {
	struct node *node;
	struct verdict_engine *engine; // NULL while the node is off
	struct observation_exchange *exchange;
	struct grants *grants;
	struct loss_book *losses;
	uint64_t losses_look_ns; // the next look at all links
	struct pulse_path *paths;
	uint32_t path_count;
	uint32_t generation; // of its events
	uint64_t engine_wake_ns, exchange_wake_ns, grants_wake_ns;
	uint64_t timer_ns;
	uint64_t frozen_ns;
	uint64_t resumed_ns; // it went on itself
	bool braking;
	bool feeding; // its table is to be read anew
	// The truth of its end of the fabric.
	enum observation_responder responder;
	bool cut;      // its cable is dead
	bool lossy;    // loses seven of eight of what is large
	bool hole;     // and here all of it
	uint32_t slow; // percent of the usual time, 0: not
	bool watched;  // something is wrong there: those who read it say what they see each time
	bool sick;     // whatever is held against it may be right
};

// Between two nodes, whichever reads.
struct path_fault {
	uint32_t a, b;
	bool cut, lossy, hole;
	uint32_t slow; // percent
	uint32_t loss; // percent of the packets, of both planes
};

struct verdicts {
	struct world *world;
	struct verdict_node *nodes;
	struct ras_memory memory; // counted
	uint64_t bytes, bytes_max;
	struct path_fault faults[VERDICTS_FAULTS_MAX];
	uint32_t fault_count;
	uint32_t island; // nodes below it and the others do not read each other; 0: no split
	uint64_t random;
	uint8_t *drained; // healthy nodes that somebody would have drained
	uint32_t healthy_drained;
	uint64_t granted;      // drains, of whomever, by those who ended
	uint32_t drained_node; // the first of them
	char drained_text[512];
	uint64_t told, told_bytes; // of those that ended
};

// On all nodes that are up; they know what the cores know. -ENOMEM.
int verdicts_begin(struct world *world);
void verdicts_end(struct world *world);

// Between its two ends, until it is taken away. Both ends were well so far, and remember that.
void verdicts_path_fault(struct world *world, const struct path_fault *fault);
void verdicts_path_heal(struct world *world, uint32_t a, uint32_t b);
// Paths on which nothing matters any more are forgotten: they cost what they are judged by.
void verdicts_settle_paths(struct world *world);
// Those who read this node, and whom it reads, remember how fast and lossless that was.
void verdicts_remember(struct world *world, uint32_t node);
void verdicts_say(
	struct world *world,
	uint32_t node,
	enum verdict verdict,
	const char *reason,
	const char *evidence
);

// Whether the observer reads its pulse, so that it is a party to what befalls it.
bool verdicts_reads(const struct world *world, uint32_t observer, uint32_t node);
// And will for a while if it is watched: the overlay has had a link there for some time.
bool verdicts_reads_on(const struct world *world, uint32_t observer, uint32_t node);
// What the exchanges told so far.
void verdicts_sum(const struct world *world, double *ret_told, double *ret_bytes);
// Looks through all that is held for healthy nodes that would be drained by it.
void verdicts_audit(struct world *world);

// Hooks; do nothing while there are no engines.
void verdicts_started(struct world *world, struct node *node);
void verdicts_stopped(struct world *world, struct node *node);
void verdicts_frozen(struct world *world, struct node *node, bool frozen);
void verdicts_event(struct world *world, struct node *node, const struct ras_event *event);
void verdicts_notice(
	struct world *world, struct node *node, uint64_t origin, const void *bytes, size_t size
);
void verdicts_granted(struct world *world, struct node *node, const void *bytes, size_t size);
// Drains granted so far.
uint64_t verdicts_grants(const struct world *world);
void verdicts_happen(struct world *world, struct event *event);

// What it knows of itself, to its engine.
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
// The node stood still itself: what it did not read then says nothing.
void verdicts_resume(struct world *world, struct verdict_node *own);

// verdicts_wire.c: what a read finds.
#define VERDICTS_READ_LIMIT_NS (300 * WORLD_MS) // then it was not answered
#define VERDICTS_BEAT_NS (100 * WORLD_MS)	// of the counter in the page
#define VERDICTS_BASE_NS 4000
#define VERDICTS_PAST_S 90 // of a path, which is read once a second
struct found {
	bool answered;
	uint64_t beats;
	uint64_t latency_ns;
};
void verdicts_read(
	struct world *world,
	const struct verdict_node *own,
	uint32_t peer,
	uint32_t size, // its place
	struct found *ret_found
);
// What its host's kernel makes of a connection.
enum verdict_reach
verdicts_knock(struct world *world, const struct verdict_node *own, const struct verdict_node *far);
bool verdicts_latency_matters(const struct world *world, uint32_t a, uint32_t b);
// Which links lose, as the agent looks; returns when it looks again.
uint64_t verdicts_losses(struct world *world, struct verdict_node *own);
#define VERDICTS_PHASES 4 // of a second
