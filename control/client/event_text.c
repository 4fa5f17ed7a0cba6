// SPDX-License-Identifier: BSD-3-Clause
// Writes an event of the core as text and as JSON.
#include "client/event_text.h"

#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <lib/show.h>
#include <records/events.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Meaning of ras_event.value, by event kind.
enum meaning {
	MEANS_NOTHING,
	MEANS_DURATION,
	MEANS_COUNT,
	MEANS_SWITCH,
	MEANS_DIRECTION,
	MEANS_USER,
};

static const struct {
	enum meaning meaning;
	const char *words;
	const char *word_of_one;
} values[RAS_EVENT_KIND_COUNT] = {
	[RAS_EVENT_MAINT] = {.meaning = MEANS_SWITCH},
	[RAS_EVENT_LINK_UP] = {.meaning = MEANS_DURATION, .words = "after"},
	[RAS_EVENT_LINK_RECOVERED] = {.meaning = MEANS_DURATION, .words = "silent for"},
	[RAS_EVENT_LINK_DELAYED] = {.meaning = MEANS_DURATION, .words = "silent for"},
	[RAS_EVENT_LINK_FALLBACK] = {.meaning = MEANS_DIRECTION},
	[RAS_EVENT_LINK_STUCK] = {.meaning = MEANS_DURATION, .words = "send queue stalled for"},
	[RAS_EVENT_BRAKE_ON] = {MEANS_COUNT, "silent peers", "silent peer"},
	[RAS_EVENT_PAUSED] = {.meaning = MEANS_DURATION, .words = "this agent was stopped for"},
	[RAS_EVENT_JOIN_WAITING] = {MEANS_COUNT, "addresses tried", "address tried"},
	[RAS_EVENT_CLOCK_OFFSET] = {.meaning = MEANS_DURATION, .words = "clocks differ by"},
	[RAS_EVENT_CLOCK_AGREES] = {.meaning = MEANS_DURATION, .words = "clocks differ by"},
	[RAS_EVENT_FLAPPING] =
		{MEANS_COUNT, "state changes in ten minutes", "state change in ten minutes"},
	[RAS_EVENT_REPORTED] = {.meaning = MEANS_USER},
	[RAS_EVENT_JOIN_DONE] = {.meaning = MEANS_DURATION, .words = "took"},
};

// The value of an event with this cause is a range of versions, whatever its kind.
static bool event_has_duration(const struct ras_event *event) {
	return event->cause != RAS_CAUSE_VERSION &&
	       (event->kind == RAS_EVENT_SUSPECT || values[event->kind].meaning == MEANS_DURATION);
}

static void event_value_format(
	const struct ras *ras, const struct ras_event *event, char text[static EVENT_TEXT_BYTES]
) {
	const char *words = values[event->kind].words;
	char duration[SHOW_BYTES], theirs_text[SHOW_BYTES], ours_text[SHOW_BYTES];
	struct ras_versions theirs;
	struct ras_view view;

	text[0] = '\0';
	if (event->cause == RAS_CAUSE_VERSION) {
		theirs = ras_versions_unpack(event->value);
		ras_view(ras, &view);
		show_range(theirs.min, theirs.max, theirs_text);
		show_range(view.versions.min, view.versions.max, ours_text);
		snprintf(
			text, EVENT_TEXT_BYTES, "it speaks protocol %s, this agent %s", theirs_text,
			ours_text
		);
		return;
	}
	switch (values[event->kind].meaning) {
	case MEANS_NOTHING:
		break;
	case MEANS_DURATION:
		if (event->value == 0)
			break; // the other side opened the link, so this side did not wait
		show_duration(event->value, duration);
		snprintf(text, EVENT_TEXT_BYTES, "%s %s", words, duration);
		break;
	case MEANS_COUNT:
		if (event->value == 1)
			words = values[event->kind].word_of_one;
		snprintf(text, EVENT_TEXT_BYTES, "%" PRIu64 " %s", event->value, words);
		break;
	case MEANS_SWITCH:
		snprintf(text, EVENT_TEXT_BYTES, "%s", event->value != 0 ? "on" : "off");
		break;
	case MEANS_DIRECTION:
		snprintf(
			text, EVENT_TEXT_BYTES, "fallback of %s",
			event->value == 0 ? "next" : "prev"
		);
		break;
	case MEANS_USER:
		snprintf(text, EVENT_TEXT_BYTES, "by uid %" PRIu64, event->value);
		break;
	}
}

void event_text_detail(
	const struct ras *ras,
	const struct ras_event *event,
	const char *words,
	char text[static EVENT_TEXT_BYTES]
) {
	char value[EVENT_TEXT_BYTES], observers[NAMES_PAIR_BYTES], clean[STATE_TEXT_BYTES];
	const char *cause = event->cause != RAS_CAUSE_NONE ? ras_cause_name(event->cause) : "";
	bool has_value, has_seen;
	int used;

	event_value_format(ras, event, value);
	names_format_observers(ras, event->observers, event->observer_count, observers);
	has_value = value[0] != '\0';
	has_seen = observers[0] != '\0';
	used = snprintf(
		text, EVENT_TEXT_BYTES, "%s%s%.64s%s%s%.140s", cause,
		*cause != '\0' && has_value ? ", " : "", value,
		(*cause != '\0' || has_value) && has_seen ? ", " : "", has_seen ? "seen by " : "",
		observers
	);
	names_sanitize_text(words, strlen(words), clean, sizeof(clean));
	if (clean[0] != '\0')
		snprintf(
			text + used, EVENT_TEXT_BYTES - (size_t)used, "%s%s", used > 0 ? ": " : "",
			clean
		);
}

struct state_event
session_state_event(const struct session *session, const struct ras_event *event) {
	const struct overlay *overlay = session->server->overlay;
	struct state_event state_event = {
		.realtime_ns = overlay_realtime_ns(overlay, event->at_ns),
		.event = *event,
	};

	snprintf(
		state_event.text, sizeof(state_event.text), "%s",
		overlay_event_text(overlay, event->sequence)
	);
	return state_event;
}

json_t *event_text_json(struct session *session, const struct state_event *state_event) {
	const struct ras_event *event = &state_event->event;
	const struct ras *ras = session_ras(session);
	bool has_duration = event_has_duration(event);
	char detail[EVENT_TEXT_BYTES], when[SHOW_BYTES];
	const struct event_row row = {
		.sequence = event->sequence,
		.time = when,
		.event = ras_event_name(event->kind),
		.node = event->name[0] != '\0' ? event->name : NULL,
		.cause = ras_cause_name(event->cause),
		.start = ras_incarnation_start(event->incarnation),
		.refutations = names_refutations(event->incarnation),
		.duration_ns = has_duration ? event->value : RECORD_UNKNOWN,
		.value = has_duration ? RECORD_UNKNOWN : event->value,
		.hops = event->hops,
		.observers = node_names_json(
			ras, event->observers, event->observer_count, RAS_OBSERVERS_MAX
		),
		.detail = detail,
		.text = state_event->text,
	};

	event_text_detail(ras, event, state_event->text, detail);
	show_time(state_event->realtime_ns, when);
	return record_to_json(&event_record, &row);
}
