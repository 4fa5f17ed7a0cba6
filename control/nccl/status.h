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

#include "client/session.h"
#include "joblook/comm_look.h"
#include "nccl/status_comms.h"

struct status {
	struct overlay_question question;
	struct session *session;
	struct overlay_answer *answer; // NULL if no node could be asked
	int err;		       // the error, if `answer` is NULL
	bool asked;
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

// Ask all nodes. `question.answered` must be set. If the question cannot be sent, the session
// continues with the step `failed`.
void status_ask(
	struct status *status,
	struct session *session,
	enum ras_collect_kind kind,
	session_step_fn *failed
);
// Take over the answer, or only its error.
void status_take_answer(struct status *status, struct overlay_answer *answer);
// Cancel the question and give back the answer, whichever there is.
void status_release(struct status *status);

bool status_node_answered(const struct status *status, uint64_t node);
double status_seconds(const struct status *status);
uint32_t status_timeouts(const struct status *status);
// why not all agents could be asked; NULL if they could
const char *status_error_text(const struct status *status);

// Return whether `count` is a small enough part of `total` that each gets its own line.
bool status_is_outlier(const struct status *status, uint32_t count, uint32_t total);
