// SPDX-License-Identifier: BSD-3-Clause
// EVENTS [since [until]]: the events of this agent, oldest first. `since` is a sequence number,
// after which events are shown, or a time. A time is a duration before now, or @ and UNIX time in
// seconds. The default is the last EVENTS_SHOWN events. Events of earlier starts come first if
// `since` is a time. Their sequence numbers are 0.
//
// Each step continues from its position in the history. Events that were overwritten meanwhile are
// missing, which a gap in the sequence numbers shows.
#include "client/answers.h"
#include "client/event_text.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <lib/escape.h>
#include <lib/parse.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_SHOWN 100
#define EVENTS_PER_STEP 128
#define QUOTED_BYTES 96

struct events {
	uint32_t earlier; // next event of earlier starts
	uint64_t next;
	int64_t since_ns, until_ns; // UNIX time of the first and last event to show
	uint64_t skipped;	    // older events in the history that were not requested
	bool begun;
	bool any;
};

static void
event_add(struct session *session, struct events *events, const struct state_event *event) {
	if (event->realtime_ns < events->since_ns || event->realtime_ns > events->until_ns)
		return;
	if (events->any)
		text_add(&session->out, ",", 1);
	events->any = true;
	text_add_json(&session->out, event_text_json(session, event));
}

static bool events_step(struct session *session) {
	const struct state *state = overlay_state(session->server->overlay);
	struct ras_event read[EVENTS_PER_STEP];
	struct events *events = session->work;
	const struct state_event *earlier;
	struct state_event state_event;
	uint32_t count = 0;
	uint64_t oldest;

	if (!events->begun)
		text_print(
			&session->out, "{\"schema\":%d,\"skipped\":%" PRIu64 ",\"events\":[",
			SESSION_JSON_SCHEMA, events->skipped
		);
	events->begun = true;
	if (state != NULL)
		count = state_earlier(state, &earlier);
	if (events->earlier < count) {
		for (uint32_t n = 0; n < EVENTS_PER_STEP && events->earlier < count; n++)
			event_add(session, events, &earlier[events->earlier++]);
		return false;
	}
	count = ras_history(session_ras(session), events->next, read, EVENTS_PER_STEP, &oldest);
	for (uint32_t n = 0; n < count; n++) {
		events->next = read[n].sequence + 1;
		state_event = session_state_event(session, &read[n]);
		event_add(session, events, &state_event);
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
	struct events wanted = {
		.earlier = UINT32_MAX, .next = 1, .since_ns = INT64_MIN, .until_ns = INT64_MAX};
	size_t size = strcspn(rest, " ");
	const char *until = rest + size + strspn(rest + size, " ");
	char quoted[QUOTED_BYTES];
	struct events *events;
	uint64_t value, end, oldest = 1;
	bool sound = true;

	if (size == 0) {
		end = event_history_end(session_ras(session), &oldest);
		wanted.next = end > oldest + EVENTS_SHOWN ? end - EVENTS_SHOWN : oldest;
		wanted.skipped = wanted.next - oldest;
	} else if (parse_u64(rest, size, 0, UINT64_MAX - 1, NULL, &value) == 0) {
		// A larger number is from an earlier run of this agent, so only future events
		// follow it.
		end = event_history_end(session_ras(session), &oldest);
		wanted.next = value + 1 < end ? value + 1 : end;
	} else {
		sound = time_parse(session, rest, size, &wanted.since_ns);
		wanted.earlier = 0;
	}
	if (sound && *until != '\0') {
		rest = until;
		size = strlen(rest);
		sound = time_parse(session, rest, size, &wanted.until_ns);
	}
	if (!sound) {
		escape_quote(rest, size, quoted, sizeof(quoted));
		session_fail(
			session,
			"%s is neither the number of an event nor a time such as 90s, 10m, 2h or "
			"@1795965000",
			quoted
		);
		return;
	}
	if (wanted.since_ns > wanted.until_ns) {
		session_fail(session, "the begin is after the end; 1h is an hour ago");
		return;
	}
	events = calloc(1, sizeof(*events));
	if (!session_begin(session, events_step, free, events))
		return;
	*events = wanted;
}
