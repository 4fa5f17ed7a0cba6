// SPDX-License-Identifier: BSD-3-Clause
// lat through running agents: reads of a node's page by the agent of this one.
//
// The samples are the agent's own: its worker submits one read after the other on the pair that it
// probes by, waits by its policy, and serves its probes meanwhile. Nothing runs at the other end
// for it. Warm-up, statistics and files are those of any run.
#pragma once

#include "result.h"
#include "why.h"

// Beside the samples of a quick run, in the one question that it is: warm-up and lead.
#define VIA_AGENT_QUICK_DROPS (2 * WARMUP_SAMPLES_MIN + RESULT_LEAD)

struct via_agent {
	const char *from;   // who reads, asked over the relay; NULL: the agent that is asked
	const char *node;   // whose page is read
	const char *socket; // of the agent that reads; NULL: where agents have it
	struct plan plan;
	bool quick;	   // one of many: short warm-up, no yardsticks, no file
	size_t file_bytes; // what its file may have
	int signal_fd;	   // as lab_session
};

// As session_client(): *run has what there is, and is released by the caller either way.
int via_agent_run(const struct via_agent *via, struct lab_run *run, struct lab_why *why);
