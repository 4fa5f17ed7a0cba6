// SPDX-License-Identifier: BSD-3-Clause
// One event as people and programs read it.
#pragma once

#include "session.h"

#define HAPPENING_BYTES 256

// What the event says beside its name and peer: cause, who saw it, how long it took.
void happening_detail(
	const struct ras *ras, const struct ras_event *event, char text[static HAPPENING_BYTES]
);
// `realtime_ns` is when it happened.
void happening_say(struct session *session, const struct ras_event *event, int64_t realtime_ns);
int64_t happening_time(const struct session *session, const struct ras_event *event);
json_t *happening_json(struct session *session, const struct ras_event *event, int64_t realtime_ns);
