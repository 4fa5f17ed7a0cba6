// SPDX-License-Identifier: BSD-3-Clause
// lat through running agents: the agent of this node reads the page of another node.
//
// The samples come from the agent. Its worker submits reads one by one on the pair of its probes.
// It waits by its own policy, and continues to serve its probes. Nothing runs at the other end.
// Warm-up, statistics and files are the same as for other runs.
#pragma once

#include "run/result.h"
#include "run/why.h"

// Samples that a quick run reads and drops in its single question: warm-up and lead.
#define VIA_AGENT_QUICK_DROPS (2 * WARMUP_SAMPLES_MIN + RESULT_LEAD)

struct via_agent {
	// Node that reads, asked over the relay; NULL: the node of the asked agent.
	const char *from;
	const char *node;   // node whose page is read
	const char *socket; // socket of the asked agent; NULL: the default socket
	struct plan plan;
	bool quick;	   // short warm-up, no yardsticks, no file; for one of many measurements
	size_t file_bytes; // size limit of the file
	int signal_fd;	   // as in lab_session
};

// Run the measurement, as session_client() does. *run gets all results so far; the caller releases
// it in any case. Returns 0, or -errno with the reason in `why`.
int via_agent_run(const struct via_agent *via, struct lab_run *run, struct lab_why *why);
