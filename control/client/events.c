// SPDX-License-Identifier: BSD-3-Clause
// EVENTS [since]: the events of this agent, oldest first. `since` is a sequence number, after which
// events are shown, or a duration before now. The default is the last EVENTS_SHOWN events.
//
// Each step continues from its position in the history. Events that were overwritten meanwhile are
// missing, which a gap in the sequence numbers shows.
#include "client/answers.h"
#include "client/event_text.h"
#include "client/server.h"

#include <lib/escape.h>
#include <lib/parse.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_SHOWN 100
#define EVENTS_PER_STEP 128
#define EVENTS_SINCE_MAX_NS (365 * UINT64_C(86400) * RAS_NS_PER_SEC)
#define QUOTED_BYTES 96

struct events {
	uint64_t next;
	uint64_t not_before_ns;
	uint64_t skipped; // older events in the history that were not requested
	bool begun;
	bool any;
};

static bool events_step(struct session *session) {
	struct ras_event read[EVENTS_PER_STEP];
	struct events *events = session->work;
	struct state_event state_event;
	uint64_t oldest;
	uint32_t count;

	if (!events->begun)
		text_print(
			&session->out, "{\"schema\":%d,\"skipped\":%" PRIu64 ",\"events\":[",
			SESSION_JSON_SCHEMA, events->skipped
		);
	events->begun = true;
	count = ras_history(session_ras(session), events->next, read, EVENTS_PER_STEP, &oldest);
	for (uint32_t n = 0; n < count; n++) {
		events->next = read[n].sequence + 1;
		if (read[n].at_ns < events->not_before_ns)
			continue;
		state_event = session_state_event(session, &read[n]);
		if (events->any)
			text_add(&session->out, ",", 1);
		events->any = true;
		text_add_json(&session->out, event_text_json(session, &state_event));
	}
	if (count == EVENTS_PER_STEP)
		return false;
	text_print(&session->out, "],\"last\":%" PRIu64 "}\n", events->next - 1);
	return true;
}

uint64_t event_history_end(const struct ras *ras, uint64_t *ret_oldest) {
	struct ras_event read[EVENTS_PER_STEP];
	uint64_t next = 0;
	uint32_t count;

	do {
		count = ras_history(ras, next, read, EVENTS_PER_STEP, ret_oldest);
		if (count > 0)
			next = read[count - 1].sequence + 1;
	} while (count == EVENTS_PER_STEP);
	return next > 0 ? next : 1;
}

void answer_events(struct session *session, const char *rest) {
	uint64_t now_ns = overlay_now_ns(session->server->overlay);
	struct events wanted = {.next = 1};
	size_t size = strlen(rest);
	char quoted[QUOTED_BYTES];
	struct events *events;
	uint64_t value, end, oldest = 1;

	if (*rest == '\0') {
		end = event_history_end(session_ras(session), &oldest);
		wanted.next = end > oldest + EVENTS_SHOWN ? end - EVENTS_SHOWN : oldest;
		wanted.skipped = wanted.next - oldest;
	} else if (parse_u64(rest, size, 0, UINT64_MAX - 1, NULL, &value) == 0) {
		// A larger number is from an earlier run of this agent, so only future events
		// follow it.
		end = event_history_end(session_ras(session), &oldest);
		wanted.next = value + 1 < end ? value + 1 : end;
	} else if (parse_duration_ns(rest, size, 1, EVENTS_SINCE_MAX_NS, NULL, &value) == 0) {
		wanted.not_before_ns = now_ns > value ? now_ns - value : 0;
	} else {
		escape_quote(rest, size, quoted, sizeof(quoted));
		session_fail(
			session,
			"%s is neither the number of an event nor a duration such as 90s, 10m or 2h",
			quoted
		);
		return;
	}
	events = calloc(1, sizeof(*events));
	if (!session_begin(session, events_step, free, events))
		return;
	*events = wanted;
}
