// SPDX-License-Identifier: BSD-3-Clause
#include "happening.h"

#include "names.h"
#include "roll.h"
#include "server.h"

#include <lib/show.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// What ras_event.value means, by kind.
enum meaning {
	MEANS_NOTHING,
	MEANS_DURATION,
	MEANS_COUNT,
	MEANS_SWITCH,
	MEANS_DIRECTION,
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
	[RAS_EVENT_LINK_STUCK] = {.meaning = MEANS_DURATION, .words = "queue stood for"},
	[RAS_EVENT_BRAKE_ON] = {MEANS_COUNT, "silent peers", "silent peer"},
	[RAS_EVENT_PAUSED] = {.meaning = MEANS_DURATION, .words = "this agent was stopped for"},
	[RAS_EVENT_JOIN_WAITING] = {MEANS_COUNT, "addresses tried", "address tried"},
	[RAS_EVENT_JOIN_DONE] = {.meaning = MEANS_DURATION, .words = "took"},
};

static void show_value(const struct ras_event *event, char text[static HAPPENING_BYTES]) {
	const char *words = values[event->kind].words;
	char duration[SHOW_BYTES];

	text[0] = '\0';
	switch (values[event->kind].meaning) {
	case MEANS_NOTHING:
		break;
	case MEANS_DURATION:
		if (event->value == 0)
			break; // the other side began it: there was nothing to wait for
		show_duration(event->value, duration);
		snprintf(text, HAPPENING_BYTES, "%s %s", words, duration);
		break;
	case MEANS_COUNT:
		if (event->value == 1)
			words = values[event->kind].word_of_one;
		snprintf(text, HAPPENING_BYTES, "%" PRIu64 " %s", event->value, words);
		break;
	case MEANS_SWITCH:
		snprintf(text, HAPPENING_BYTES, "%s", event->value != 0 ? "on" : "off");
		break;
	case MEANS_DIRECTION:
		snprintf(text, HAPPENING_BYTES, "of %s", event->value == 0 ? "next" : "prev");
		break;
	}
}

void happening_detail(
	const struct ras *ras, const struct ras_event *event, char text[static HAPPENING_BYTES]
) {
	char value[HAPPENING_BYTES], observers[NAMES_PAIR_BYTES];
	const char *cause = event->cause != RAS_CAUSE_NONE ? ras_cause_name(event->cause) : "";
	bool has_value, has_seen;

	show_value(event, value);
	names_observers(ras, event->observers, event->observer_count, observers);
	has_value = value[0] != '\0';
	has_seen = observers[0] != '\0';
	snprintf(
		text, HAPPENING_BYTES, "%s%s%.64s%s%s%.140s", cause,
		*cause != '\0' && has_value ? ", " : "", value,
		(*cause != '\0' || has_value) && has_seen ? ", " : "", has_seen ? "seen by " : "",
		observers
	);
}

int64_t happening_time(const struct session *session, const struct ras_event *event) {
	return overlay_realtime_ns(session->server->overlay, event->at_ns);
}

void happening_say(struct session *session, const struct ras_event *event, int64_t realtime_ns) {
	char detail[HAPPENING_BYTES], shown[SHOW_BYTES], node[SHOW_BYTES], when[SHOW_BYTES];
	char name[NAMES_TEXT_BYTES];

	happening_detail(session_ras(session), event, detail);
	show_time(realtime_ns, when);
	names_clean(event->name, strlen(event->name), name);
	show_cell(name[0] != '\0' ? name : "-", 18, node);
	show_cell(detail[0] != '\0' ? detail : "-", 32, shown);
	text_print(
		&session->out, "%7" PRIu64 " %-24s %-14s %-18s %s\n", event->sequence, when,
		ras_event_name(event->kind), node, shown
	);
}

static json_t *observers_json(const struct ras *ras, const struct ras_event *event) {
	json_t *array = json_array();
	char name[NAMES_TEXT_BYTES];

	for (uint32_t n = 0; n < event->observer_count && n < RAS_OBSERVERS_MAX; n++) {
		names_id(ras, event->observers[n], name);
		json_array_append_new(array, roll_name_json(name));
	}
	return array;
}

json_t *
happening_json(struct session *session, const struct ras_event *event, int64_t realtime_ns) {
	const struct ras *ras = session_ras(session);
	char detail[HAPPENING_BYTES], when[SHOW_BYTES];

	happening_detail(ras, event, detail);
	show_time(realtime_ns, when);
	return json_pack(
		"{s:I,s:s,s:s,s:o,s:s,s:I,s:I,s:I,s:i,s:o,s:o}", "sequence",
		(json_int_t)event->sequence, "time", when, "event", ras_event_name(event->kind),
		"node", event->name[0] != '\0' ? roll_name_json(event->name) : json_null(), "cause",
		ras_cause_name(event->cause), "start",
		(json_int_t)ras_incarnation_start(event->incarnation), "refutations",
		(json_int_t)(event->incarnation & RAS_REFUTATIONS_MAX), "value",
		(json_int_t)event->value, "hops", (int)event->hops, "observers",
		observers_json(ras, event), "detail", roll_name_json(detail)
	);
}
