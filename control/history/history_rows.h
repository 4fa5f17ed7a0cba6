// SPDX-License-Identifier: BSD-3-Clause
// A question about the past of one node, for HISTORY and WHY.
#pragma once

#include "client/names.h"

#include <control/history.h>

#define HISTORY_NAME_BYTES CLIENT_LINE_BYTES_MAX

struct past {
	struct history_query query;
	struct session *session;
	uint64_t id;
	char name[NAMES_TEXT_BYTES];
	bool is_known; // the node is in the table of this agent
	bool is_self;
	int64_t at_ns; // WHY: UNIX time that is asked about
	int err;
	session_step_fn *step;	       // runs when the answer has arrived
	struct history_answer *answer; // NULL until then, and after an error
	uint32_t next_path;	       // of those that are written in steps
	bool has_begun;
};

// Parse the name of a node at the start of *rest. The node may have left the table long ago.
// Returns false after an error message.
bool past_parse_node(struct session *session, const char **rest, struct past *past);
// Ask the question. The session then owns `past`, which must be the first member of the session's
// work. `step` runs when the answer has arrived or past->err is set.
void past_ask(
	struct session *session,
	struct past *past,
	const struct history_question *question,
	session_step_fn *step
);
void past_drop(void *work);
// If the question failed, write an error message and return true.
bool past_has_failed(struct session *session, const struct past *past);

// If neither the table nor the history knows the node, write an error message and return true.
bool past_node_is_unknown(struct session *session, const struct past *past);

const char *past_time_text(int64_t unix_s, char text[static SHOW_BYTES]);
json_t *past_periods_json(const struct history_answer *answer);
json_t *past_events_json(struct session *session, const struct history_answer *answer);

// An answer can have 128 paths, so each of them takes a step of its own.

// Write the members of an object, which is taken over. The array of paths follows them.
void past_begin(struct session *session, struct past *past, json_t *object);
// Write one more path, or the end of the answer. Returns true at the end.
bool past_write_path(struct session *session, struct past *past);
