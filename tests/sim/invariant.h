// SPDX-License-Identifier: BSD-3-Clause
// Invariants that must hold under any fault. The first breach stops the run.
//
// A. A death needs as many different observers as the profile requires, while other nodes can
//    look. Two observers of one host do not suffice while another host has a node that can look.
//    A death by a sole observer is shown as sole everywhere.
// B. A node that ran and could be reached for longer than the death timeout is never declared
//    dead.
// C. Events of a core about a peer follow the transition table.
// D. The last event about a peer matches the table.
// E. Queues, connections and memory stay within their bounds.
// F. A relayed message is delivered at most once, at its destination and within its hop limit;
//    its report is correct (load.c).
// G. A collective ends by its deadline and counts each node once (load.c).
// H. When the faults are over, there is one view within the time of the scenario (run.c).
// I. Each start of a node receives a notice at most once (load.c).
// J. If the scenario demands that no living node is declared dead, none is (run.c).
// K. During a partition, the brake's limit applies: if it is exceeded, members across are not
//    declared dead within the brake's hold time. A side without more than half of the votes never
//    declares members across dead. The two sides never declare each other's members dead.
//    Uncertain votes count in the declarer's favour. Nodes that never had a common view in their
//    present runs belong to two rings, and are exempt.
// L. The consumer of a transfer receives its bytes in order, each once and unchanged. Each
//    surviving side is notified of the end once, and "done" means complete (load_transfer.c).
// M. No healthy node would be drained. Uninvolved nodes name 99 of 100 single faults exactly
//    (scenario_verdicts.c).
// N. A node whose death declaration was refuted does not repeat it within the profile's time, for
//    the same start and cause.
#pragma once

#include <ras/event.h>

#include <stdbool.h>
#include <stdint.h>

struct world;
struct node;

#define INVARIANT_TEXT_BYTES 256
#define INVARIANT_NODES_MAX 4

struct invariants {
	bool broken;
	char text[INVARIANT_TEXT_BYTES];
	uint32_t nodes[INVARIANT_NODES_MAX]; // nodes concerned by the breach
	uint32_t node_count;
	uint64_t at_ns;
	uint64_t next_ns; // time of the next costly checks
	uint32_t cursor;
	uint16_t *told;	    // by observer and subject: state in the last event
	uint64_t *declared; // by observer: number of deaths it declared itself
	// For each subject: the incarnation of its last death, and how many observers declared
	// it.
	struct invariants_weight {
		uint64_t incarnation;
		uint32_t weight;
		// Declarer and cause of the last death of this start, and when the declarer
		// learned of its refutation.
		uint64_t start, refuted_ns;
		uint32_t declarer, declarer_start;
		enum ras_cause cause;
	} * weights;
	bool *preloaded; // by observer: its table held all other nodes as alive at its start
};

int invariants_init(struct invariants *invariants, const struct world *world);
void invariants_fini(struct invariants *invariants);

void invariants_started(struct world *world, const struct node *node, bool preloaded);
void invariants_event(struct world *world, const struct node *node, const struct ras_event *event);
// Run the costly checks on a few nodes each virtual second.
void invariants_step(struct world *world);

// Record a breach that concerns `node` and, unless it is NET_NOBODY, `other`.
__attribute__((format(printf, 4, 5))) void
invariants_break(struct world *world, uint32_t node, uint32_t other, const char *format, ...);
