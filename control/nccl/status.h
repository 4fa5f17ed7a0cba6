// SPDX-License-Identifier: BSD-3-Clause
// STATUS: the report on all communicators and agents, in NCCL's two forms.
//
// A "process" of NCCL's report is an agent where the overlay is spoken of (job summary, missing
// data, dead) and a rank's process where a communicator is; a "node" of the job summary is a host,
// of a rank the agent that reported it. GPUs of the summary are RDMA devices.
//
// Said phase by phase, each of them in steps: merged tables hold a million ranks.
#pragma once

#include "client/session.h"
#include "joblook/comm_look.h"
#include "nccl/status_comms.h"

struct status {
	struct overlay_question question;
	struct session *session;
	struct overlay_answer *answer; // NULL if nobody could be asked
	int err;		       // why
	bool asked;
	bool verbose;
	uint32_t phase;
	uint32_t comm; // places within a phase
	uint32_t rank;
	// Of a communicator's missing ranks in JSON: begun, and where to go on.
	struct status_absent {
		bool begun;
		uint32_t rank, held, missed; // the next rank, those held and missing before it
		uint32_t put;
	} absent;
	struct comm_table comms;
	struct comm_look look; // of all of them; `judged`
	bool looked, judged;
};

// One phase: true when it is done.
typedef bool status_phase_fn(struct session *session, struct status *status);
// Each ends in NULL.
extern status_phase_fn *const status_text_phases[];
extern status_phase_fn *const status_json_phases[];

// The first phase of both: sums up the communicators, and judges them.
bool status_summarise(struct session *session, struct status *status);

// What text says before anybody is asked, up to and with the title of the communicators.
void status_say_banner(struct session *session);

bool status_node_answered(const struct status *status, uint64_t node);
double status_seconds(const struct status *status);
uint32_t status_timeouts(const struct status *status);
const char *status_trouble(const struct status *status); // NULL if all could be asked

// Whether so few of all that they are worth a line each.
bool status_is_outlier(const struct status *status, uint32_t count, uint32_t total);
