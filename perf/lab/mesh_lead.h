// SPDX-License-Identifier: BSD-3-Clause
// The lead of a mesh: waits for all processes, has each pair measured in its round, and keeps what
// came of it. On one machine at most as many processes measure at once as it has processors.
//
// A process that goes away or a measurement that fails is told in its cells; the others go on.
#pragma once

#include "channel.h"
#include "mesh.h"

#include <stdbool.h>
#include <stdint.h>

struct mesh_lead {
	const struct channel_listener *listener;
	uint32_t at_once;     // pairs at most; 0: as many as processors allow
	uint64_t patience_ns; // for all to join
	uint64_t answer_ns;   // for a process to answer an order, however busy it is
	bool quiet;	      // no progress on standard error
	int signal_fd;
};

// How long a direction may take at most, once its server listens.
uint64_t mesh_direction_ns(const struct plan *plan);

// Fills the matrix, whose plan and count are set. -errno with the reason if it did not begin;
// what ended it early is in mesh->partial.
int mesh_lead_run(const struct mesh_lead *lead, struct mesh *mesh, struct lab_why *why);
