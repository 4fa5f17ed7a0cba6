// SPDX-License-Identifier: BSD-3-Clause
// Measurements of a run: detection, false alarms, traffic, memory, convergence.
#pragma once

#include "stats.h"

#include <ras/event.h>

#include <stdbool.h>
#include <stdint.h>

struct world;
struct node;

// A node ends, leaves, stops answering or returns: how many others noticed, and when.
struct incident {
	uint32_t node;
	uint32_t seen;
	uint64_t at_ns;
	uint64_t first_ns, last_ns; // delay after at_ns
};

struct measure_node {
	uint32_t death;	     // 1 + index of the open incident; 0: none
	uint32_t ret;	     // 1 + index of the open incident of its return; 0: none
	bool expected;	     // peers may declare the node dead although its process lives
	uint64_t false_seen; // 1 + the incarnation of the last death counted as false
	uint64_t started_bytes, started_frames; // values at the start of the window
};

struct measure {
	struct measure_node *nodes;
	struct incident *deaths;
	uint32_t death_count, death_capacity;
	struct incident *returns;
	uint32_t return_count, return_capacity;
	struct stats death_delay, return_delay; // of each incident and observer
	uint64_t false_suspect, false_dead;
	uint32_t false_node; // the latest node falsely declared dead
	uint64_t suspicions, refutations;
	uint32_t flood_hops_max;
	uint64_t window_ns;    // start of the traffic measurement
	uint64_t link_ends_up; // counts both ends of each link that comes up
	uint64_t brakes_on, own_pauses, conflicts, declared_dead, diverged;
	uint64_t refused_joins;
};

int measure_init(struct measure *measure, const struct world *world);
void measure_fini(struct measure *measure);

void measure_started(struct world *world, struct node *node);
void measure_event(struct world *world, const struct node *node, const struct ras_event *event);

// Expect all nodes to notice the death (or leave) of the node from now on. Set `alive` if its
// process lives on, so that its death is no false alarm.
void measure_expect_death(struct world *world, uint32_t node, bool alive);
// Expect all nodes to notice the return of the node from now on.
void measure_expect_return(struct world *world, uint32_t node);
// Count a death of the node as a false alarm again.
void measure_expect_life(struct world *world, uint32_t node);

// Start to measure traffic and links.
void measure_window(struct world *world);
struct measure_traffic {
	double bytes_mean, bytes_p99; // per node and second
	double frames_mean, frames_p99;
};
void measure_traffic(const struct world *world, struct measure_traffic *ret_traffic);
// Return the links that came up so far.
double measure_links_up(const struct measure *measure);
uint64_t measure_instance_bytes(const struct world *world);

// Return the worst incident, or NaN if nobody noticed one.
double measure_first_death_s(const struct measure *measure);
double measure_last_death_s(const struct measure *measure);
double measure_last_return_s(const struct measure *measure);
