// SPDX-License-Identifier: BSD-3-Clause
// One event as people and programs read it.
#pragma once

#include "client/session.h"

#include <control/state.h>

#define EVENT_TEXT_BYTES 512 // holds the longest whole: nothing is cut within a character

// What the event says beside its name and peer: cause, who saw it, how long it took, and what was
// said of it in words.
void event_text_detail(
	const struct ras *ras,
	const struct ras_event *event,
	const char *words,
	char text[static EVENT_TEXT_BYTES]
);
// An event of this run, with its time and words.
struct state_event event_text_of(const struct session *session, const struct ras_event *event);
json_t *event_text_json(struct session *session, const struct state_event *state_event);
