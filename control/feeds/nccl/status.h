// SPDX-License-Identifier: BSD-3-Clause
// STATUS: the report on all communicators and agents, as text and as JSON in NCCL's formats.
//
// NCCL's terms have two meanings here. In the job summary, and for missing or dead agents, a
// "process" is an agent. There a "node" is a host. In a communicator, a "process" is the process of
// a rank. There a "node" is the agent that reported the rank. GPUs of the summary are RDMA devices.
//
// The report is written in phases, and each phase in steps, because merged tables may hold a
// million ranks.
#pragma once

#include "client/collect.h"
#include "jobs/answers/comm_table.h"
#include "jobs/look/comm_look.h"

struct status {
	struct collect collect;
	bool verbose;
	uint32_t phase;
	uint32_t comm; // positions within a phase
	uint32_t rank;
	// Position in the missing ranks of a communicator, for JSON.
	struct status_absent {
		bool begun;
		// the next rank; ranks present and ranks missing before it
		uint32_t rank, held, missed;
		uint32_t put;
	} absent;
	struct comm_table comms;
	struct comm_look look; // judges all communicators; valid if `judged`
	bool looked, judged;
};

// One phase; returns true when it is done.
typedef bool status_phase_fn(struct session *session, struct status *status);
// Arrays of phases, which end with NULL.
extern status_phase_fn *const status_text_phases[];
extern status_phase_fn *const status_json_phases[];

// The first phase of both formats: summarizes and judges the communicators.
bool status_summarise(struct session *session, struct status *status);

// Write the text before the question is sent, up to and including the title of the communicators.
void status_print_banner(struct session *session);

// Return whether `count` is a small enough part of `total` that each gets its own line.
bool status_is_outlier(const struct status *status, uint32_t count, uint32_t total);
