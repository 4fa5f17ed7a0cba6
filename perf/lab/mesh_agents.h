// SPDX-License-Identifier: BSD-3-Clause
// A mesh of running agents: each node that is alive reads the page of each other one, asked over
// the relay by the agent of this machine. Pairs meet in rounds, one direction at a time.
#pragma once

#include "mesh.h"
#include "why.h"

struct mesh_agents {
	const char *socket; // of the agent that is asked; NULL: where agents have it
	struct plan plan;
	int signal_fd; // as lab_session
};

// Returns 0 also where it ended before its time, which *ret_mesh says; else -errno with the reason.
// *ret_mesh is to be released in any case.
int mesh_agents_run(const struct mesh_agents *agents, struct mesh *ret_mesh, struct lab_why *why);
