// SPDX-License-Identifier: BSD-3-Clause
// What must never be, whatever goes wrong. The first breach stops the run.
//
// A. Nobody is declared dead by fewer different observers than the profile asks for, as long
//    as there is anybody else to look, nor by two of one host as long as anybody of another
//    host can; and who was declared by one alone is nowhere shown as
//    declared by more.
// B. A node that ran and could be reached for longer than the time that kills is never
//    declared dead.
// C. What a core tells of a peer obeys the transition table.
// D. What it told is what it holds.
// E. Queues, connections and memory stay within their bounds.
// F. A relayed message is delivered at most once, where it was meant to be, within its hops,
//    and what was reported of it is so (load.c).
// G. A collective ends by its deadline and counts each node once (load.c).
// H. Once the faults are over there is one view, within the time of the scenario (run.c).
// I. A notice is heard at most once by each start of a node (load.c).
// J. Where a scenario says that nobody is to be taken for dead who lives, nobody is (run.c).
// K. While a part of the hosts is an island, nobody declares a member across the gap dead that was
//    apart for less than the brake's time if so many are there that the brake has to hold it,
//    and never, however long it takes, if no more than half of those who count are on its own
//    side. Never do both sides. Who may count or not is counted in the declarer's favour. Those who
//    never had one view, in these runs of theirs, are of two rings and not of two parts of one.
// L. The consumer of a transfer gets its bytes in order, each once and as they were sent; each
//    side that lives on is told once how it ended, and done means whole (load_transfer.c).
// M. No healthy node would be drained, and 99 of 100 single faults are named exactly, by nodes that
//    have no part in them (scenario_verdicts.c).
// N. Who declared a death that was refuted declares none of the same start and cause within the
//    profile's time.
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
	uint32_t nodes[INVARIANT_NODES_MAX]; // concerned
	uint32_t node_count;
	uint64_t at_ns;
	uint64_t next_ns; // of the checks that look at everything
	uint32_t cursor;
	uint16_t *told;	    // per observer and subject: what the last event said
	uint64_t *declared; // per observer: deaths it declared itself
	// Per subject: the incarnation of its last death, and by how many it was declared.
	struct invariants_weight {
		uint64_t incarnation;
		uint32_t weight;
		// By whom its start was declared last, why, and when that one heard otherwise.
		uint64_t start, refuted_ns;
		uint32_t declarer, declarer_start;
		enum ras_cause cause;
	} * weights;
	bool *preloaded; // per observer: it knew all others as alive when it started
};

int invariants_init(struct invariants *invariants, const struct world *world);
void invariants_fini(struct invariants *invariants);

void invariants_started(struct world *world, const struct node *node, bool preloaded);
void invariants_event(struct world *world, const struct node *node, const struct ras_event *event);
// The costly ones, on a few nodes each virtual second.
void invariants_step(struct world *world);

// Notes a breach that concerns `node` and, unless it is the network's nobody, `other`.
__attribute__((format(printf, 4, 5))) void
invariants_break(struct world *world, uint32_t node, uint32_t other, const char *format, ...);
