// SPDX-License-Identifier: BSD-3-Clause
// The lead of a mesh: waits for all processes, lets each pair measure in its round, and stores the
// results. It limits the measuring processes of a machine to the number of processors.
//
// Directions that stand out are measured again up to three times, and the fastest run counts.
//
// The loss of a process or the failure of a measurement is recorded in its cells; the other
// measurements continue.
#pragma once

#include "mesh/mesh.h"
#include "run/channel.h"
#include "run/proof.h"

#include <stdbool.h>
#include <stdint.h>

struct mesh_lead {
	const struct channel_listener *listener;
	const struct proof_secrets *secrets; // one of these admits a process
	uint32_t at_once;     // maximum number of pairs; 0: limited by the processors
	uint64_t patience_ns; // timeout until all processes have joined
	uint64_t answer_ns;   // timeout of a process for an order, even if it is busy
	bool quiet;	      // no progress messages on standard error
	int signal_fd;
};

// Return the timeout of one direction, counted from the time its server listens.
uint64_t mesh_direction_ns(const struct plan *plan);

// Measure a mesh whose plan and count are set. Returns 0, or -errno with the reason in `why` if it
// did not start. The reason of an early end is in mesh->partial.
int mesh_lead_run(const struct mesh_lead *lead, struct mesh *mesh, struct lab_why *why);
