// SPDX-License-Identifier: BSD-3-Clause
// WHY node @time: what this agent knew of a node at a time in the past. State and verdict follow
// from the events before that time, and from the records of the history if the events are gone.
#include "verdict/answers/why_at.h"

#include "client/event_text.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "history/history_rows.h"

#include <verdict/verdict.h>

#include <stdlib.h>
#include <string.h>

#define BEFORE_S 1800 // records of this time before `at` are shown
#define POINTS 30
#define EVENTS_READ HISTORY_EVENTS_MAX
#define EVENTS_SHOWN 8

// Return the state that an event gives its peer; RAS_UNKNOWN if it gives none.
static enum ras_state state_after(enum ras_event_kind kind) {
	switch (kind) {
	case RAS_EVENT_JOINED:
	case RAS_EVENT_ALIVE:
	case RAS_EVENT_REFUTED:
	case RAS_EVENT_REJOINED:
		return RAS_ALIVE;
	case RAS_EVENT_SUSPECT:
		return RAS_SUSPECT;
	case RAS_EVENT_UNREACHABLE:
		return RAS_UNREACHABLE;
	case RAS_EVENT_DEAD:
		return RAS_DEAD;
	case RAS_EVENT_LEFT:
		return RAS_LEFT;
	default:
		return RAS_UNKNOWN;
	}
}

struct past_state {
	const struct state_event *state,
		*verdict; // last event of the state and of the verdict; NULL: none
	const struct history_node_point *point; // the period of the time; NULL: no record
};

static struct past_state past_state_find(const struct past *past) {
	const struct history_answer *answer = past->answer;
	struct past_state known = {NULL, NULL, NULL};
	int64_t at_s = past->at_ns / (int64_t)RAS_NS_PER_SEC;
	uint32_t point;

	for (uint32_t n = 0; n < answer->event_count; n++) {
		const struct state_event *event = &answer->events[n];

		if (state_after(event->event.kind) != RAS_UNKNOWN)
			known.state = event;
		if (event->event.kind == RAS_EVENT_VERDICT && event->event.value < VERDICT_COUNT)
			known.verdict = event;
	}
	if (answer->step_s > 0 && at_s >= answer->since_s) {
		point = (uint32_t)((at_s - answer->since_s) / answer->step_s);
		if (point < answer->points && answer->node[point].is_covered)
			known.point = &answer->node[point];
	}
	return known;
}

// Return the state: of an event, else of the record of that time.
static json_t *state_json(const struct past_state *known) {
	if (known->state != NULL)
		return json_string(ras_state_name(state_after(known->state->event.kind)));
	if (known->point == NULL)
		return json_null();
	return json_string(ras_state_name(
		known->point->state == RAS_UNKNOWN ? RAS_ALIVE
		: known->point->state <= RAS_LEFT  ? (enum ras_state)known->point->state
						   : RAS_UNKNOWN
	));
}

static json_t *verdict_json(const struct past_state *known) {
	enum verdict verdict = VERDICT_HEALTHY;

	if (known->verdict != NULL)
		verdict = (enum verdict)known->verdict->event.value;
	else if (known->point == NULL)
		return json_null();
	else if (known->point->state != RAS_UNKNOWN && known->point->verdict < VERDICT_COUNT)
		verdict = (enum verdict)known->point->verdict;
	return json_string(verdict_name(verdict));
}

static json_t *event_time_json(const struct state_event *event) {
	char when[SHOW_BYTES];

	if (event == NULL)
		return json_null();
	show_time(event->realtime_ns, when);
	return json_string(when);
}

// Keep the last events.
static void events_cut(struct history_answer *answer) {
	uint32_t hidden = answer->event_count;

	hidden = hidden > EVENTS_SHOWN ? hidden - EVENTS_SHOWN : 0;
	if (hidden == 0)
		return;
	answer->event_count -= hidden;
	memmove(answer->events, answer->events + hidden,
		answer->event_count * sizeof(answer->events[0]));
}

static bool why_at_step(struct session *session) {
	struct past *past = session->work;
	struct history_answer *answer = past->answer;
	json_t *state, *verdict, *since, *verdict_since, *evidence;
	char at[SHOW_BYTES], oldest[SHOW_BYTES];
	struct past_state known;

	if (past->has_begun)
		return past_write_path(session, past);
	if (past_has_failed(session, past) || past_node_is_unknown(session, past))
		return true;
	known = past_state_find(past);
	show_time(past->at_ns, at);
	state = state_json(&known);
	since = event_time_json(known.state);
	verdict = verdict_json(&known);
	verdict_since = event_time_json(known.verdict);
	evidence = known.verdict != NULL ? safe_string_json(known.verdict->text) : json_null();
	events_cut(answer); // `known` points into the events
	past_begin(
		session, past,
		json_pack(
			"{s:o,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:o,s:I}", "node",
			safe_string_json(past->name), "at", at, "state", state, "since", since,
			"verdict", verdict, "verdict_since", verdict_since, "evidence", evidence,
			"oldest",
			answer->oldest_s != INT64_MAX
				? json_string(past_time_text(answer->oldest_s, oldest))
				: json_null(),
			"recorded", answer->has_file, "events", past_events_json(session, answer),
			"step_ns", (json_int_t)answer->step_s * (json_int_t)RAS_NS_PER_SEC
		)
	);
	return false;
}

bool why_at(struct session *session, const char *rest) {
	char word[CLIENT_LINE_BYTES_MAX];
	const char *after = rest;
	struct history_question question = {.points = POINTS, .events = EVENTS_READ};
	struct past *past;
	int64_t at_ns;

	if (!command_word(&after, word, sizeof(word)) || *after == '\0' ||
	    !time_parse(session, after, strlen(after), &at_ns))
		return false;
	if (at_ns > overlay_realtime_ns(
			    session->server->overlay, overlay_now_ns(session->server->overlay)
		    )) {
		session_fail(session, "the time lies in the future");
		return true;
	}
	past = calloc(1, sizeof(*past));
	if (past == NULL) {
		session_fail(session, "out of memory");
		return true;
	}
	if (!past_parse_node(session, &rest, past)) {
		free(past);
		return true;
	}
	past->at_ns = question.events_until_ns = at_ns;
	question.until_s = at_ns / (int64_t)RAS_NS_PER_SEC;
	question.since_s = question.until_s - BEFORE_S;
	question.peer = past->id;
	question.all_paths = false;
	past_ask(session, past, &question, why_at_step);
	return true;
}
