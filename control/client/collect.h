// SPDX-License-Identifier: BSD-3-Clause
// A question of a session to the agents of all nodes, and their merged answer.
#pragma once

#include "client/session.h"

struct collect {
	struct overlay_question question;
	struct session *session;
	session_step_fn *step;
	struct overlay_answer *answer; // NULL if no node could be asked
	int err;		       // the error, if `answer` is NULL
	bool asked;
};

// Ask all nodes, and continue the session with `step` once the answer is there. If the question
// cannot be sent, the step runs next, without an answer.
void collect_ask(
	struct collect *collect,
	struct session *session,
	enum ras_collect_kind kind,
	session_step_fn *step
);
// Cancel the question or release the answer, whichever there is.
void collect_fini(struct collect *collect);

// Return whether a node is among those that answered.
bool collect_has_node(const struct collect *collect, uint64_t node);
double collect_seconds(const struct collect *collect);
uint32_t collect_timeouts(const struct collect *collect);
// Return why not all agents could be asked; NULL if they could.
const char *collect_error_text(const struct collect *collect);
