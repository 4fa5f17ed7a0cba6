// SPDX-License-Identifier: BSD-3-Clause
// Events as text and as JSON.
#pragma once

#include "client/session.h"

#include <control/state.h>

#define EVENT_TEXT_BYTES 512 // holds the longest text, so no character is cut

// Write the details of an event after its name and peer: cause, observers, duration and
// description.
void event_text_detail(
	const struct ras *ras,
	const struct ras_event *event,
	const char *words,
	char text[static EVENT_TEXT_BYTES]
);
// Return an event of this run with its time and its description.
struct state_event
session_state_event(const struct session *session, const struct ras_event *event);
json_t *event_text_json(struct session *session, const struct state_event *state_event);
// Return the sequence number after the newest event in the history. *ret_oldest is the oldest one.
uint64_t event_history_end(const struct ras *ras, uint64_t *ret_oldest);
