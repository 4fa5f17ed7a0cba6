// SPDX-License-Identifier: BSD-3-Clause
// A mesh of running agents: each live node reads the page of every other one. The agent of this
// machine relays the requests. Pairs meet in rounds, one direction at a time.
#pragma once

#include "mesh/mesh.h"
#include "run/why.h"

struct mesh_agents {
	const char *socket; // socket of the asked agent; NULL: the default socket
	struct plan plan;
	int signal_fd; // as in lab_session
};

// Measure the mesh. Returns 0 also after an early end, which ret_mesh->partial reports, else -errno
// with the reason in `why`. The caller must release *ret_mesh in any case.
int mesh_agents_run(const struct mesh_agents *agents, struct mesh *ret_mesh, struct lab_why *why);
