// SPDX-License-Identifier: BSD-3-Clause
// What came of it: detection, false alarms, traffic, memory, convergence.
#pragma once

#include "stats.h"

#include <ras/event.h>

#include <stdbool.h>
#include <stdint.h>

struct world;
struct node;

// Of a node that ends, leaves or stops answering: who notices when. And of one that returns.
struct incident {
	uint32_t node;
	uint32_t seen;
	uint64_t at_ns;
	uint64_t first_ns, last_ns; // after at_ns
};

struct measure_node {
	uint32_t death;	     // index + 1 of its open incident
	uint32_t ret;	     // the same of its return
	bool expected;	     // others may declare it dead, though its process lives
	uint64_t false_seen; // incarnation of which a false death was counted, plus one
	uint64_t started_bytes, started_frames; // at the start of the window
};

struct measure {
	struct measure_node *nodes;
	struct incident *deaths;
	uint32_t death_count, death_capacity;
	struct incident *returns;
	uint32_t return_count, return_capacity;
	struct stats death_delay, return_delay; // per incident and observer
	uint64_t false_suspect, false_dead;
	uint32_t false_node; // the latest that was taken for dead
	uint64_t suspicions, refutations;
	uint32_t flood_hops_max;
	uint64_t window_ns;    // traffic is counted from here
	uint64_t link_ends_up; // a link that comes up does so at both ends
	uint64_t brakes_on, own_pauses, conflicts, declared_dead, diverged;
	uint64_t refused_joins;
};

int measure_init(struct measure *measure, const struct world *world);
void measure_fini(struct measure *measure);

void measure_started(struct world *world, struct node *node);
void measure_event(struct world *world, const struct node *node, const struct ras_event *event);

// From now on the node is expected to be noticed dead (or left) by everybody; `alive` if its
// process goes on living, so that its death is not a false one.
void measure_expect_death(struct world *world, uint32_t node, bool alive);
// From now on it is expected to be seen again by everybody.
void measure_expect_return(struct world *world, uint32_t node);
// Its death would be false again.
void measure_expect_life(struct world *world, uint32_t node);

// Traffic and links are counted from here.
void measure_window(struct world *world);
struct measure_traffic {
	double bytes_mean, bytes_p99; // per node and second
	double frames_mean, frames_p99;
};
void measure_traffic(const struct world *world, struct measure_traffic *ret_traffic);
// Links that came up so far.
double measure_links_up(const struct measure *measure);
uint64_t measure_instance_bytes(const struct world *world);

// The worst incident; NaN if there was none that anybody noticed.
double measure_first_death_s(const struct measure *measure);
double measure_last_death_s(const struct measure *measure);
double measure_last_return_s(const struct measure *measure);
