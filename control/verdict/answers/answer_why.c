// SPDX-License-Identifier: BSD-3-Clause
// WHY node: all information of this agent about one node: state, reason, observers, and past
// events.
#include "client/absent.h"
#include "client/answers.h"
#include "client/event_text.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "fabric/answers/congestion.h"
#include "jobs/answers/why_comm.h"
#include "jobs/look/comm_look.h"
#include "verdict/answers/why_at.h"
#include "verdict/answers/why_evidence.h"
#include "verdict/answers/why_pairs.h"

#include <control/finding.h>
#include <control/state.h>
#include <lib/show.h>
#include <records/why.h>

#include <string.h>

#define WHY_EVENTS 8
#define WHY_LINKS_MAX 8
#define WHY_READ 64

struct why {
	uint64_t id;
	struct ras_peer peer; // state UNKNOWN and no record: an absent node
	char name[NAMES_TEXT_BYTES];
	bool self;
	struct state_event events[WHY_EVENTS]; // the last events about the node; a ring
	uint32_t event_count;		       // total, including overwritten ones
	struct ras_link_info links[WHY_LINKS_MAX];
	uint32_t link_count;
	struct state_event link_event; // last event of a link to it in this run
	bool has_link_event;
	struct state_event report; // last user report in this run
	bool has_report;
	uint32_t links_lost;		      // as far as the history goes back
	char address_words[STATE_TEXT_BYTES]; // problem of this node's advertised address; ""
	char join_words[STATE_TEXT_BYTES];    // why this node has not joined; ""
};

static void add_event(struct why *why, const struct state_event *event) {
	why->events[why->event_count++ % WHY_EVENTS] = *event;
}

// Collect the events of earlier runs of this agent, from its journal.
static void collect_earlier(struct session *session, struct why *why) {
	const struct state *state = overlay_state(session->server->overlay);
	const struct state_event *earlier;
	uint32_t count;

	if (state == NULL)
		return;
	count = state_earlier(state, &earlier);
	for (uint32_t n = 0; n < count; n++) {
		if (earlier[n].event.peer == why->id)
			add_event(why, &earlier[n]);
	}
}

static bool is_of_link(enum ras_event_kind kind) {
	return kind == RAS_EVENT_LINK_UP || kind == RAS_EVENT_LINK_DOWN ||
	       kind == RAS_EVENT_LINK_DELAYED || kind == RAS_EVENT_LINK_RECOVERED ||
	       kind == RAS_EVENT_LINK_STUCK;
}

// Collect the last events about the peer, and remember the last link event and user report. The
// link itself may have been closed, or opened again to retry the peer.
static void collect_events(struct session *session, struct why *why) {
	struct ras_event read[WHY_READ];
	uint64_t next = 0, oldest;
	uint32_t count;

	// The history is bounded, so the loop is too.
	do {
		count = ras_history(session_ras(session), next, read, WHY_READ, &oldest);
		for (uint32_t n = 0; n < count; n++) {
			struct state_event state_event;

			next = read[n].sequence + 1;
			if (read[n].peer != why->id)
				continue;
			state_event = session_state_event(session, &read[n]);
			add_event(why, &state_event);
			if (read[n].kind == RAS_EVENT_REPORTED) {
				why->report = state_event;
				why->has_report = true;
			}
			if (!is_of_link(read[n].kind))
				continue;
			why->link_event = state_event;
			why->has_link_event = true;
			why->links_lost += read[n].kind == RAS_EVENT_LINK_DOWN;
		}
	} while (count == WHY_READ);
}

static json_t *links_json(const struct why *why) {
	json_t *array = json_array();

	for (uint32_t n = 0; n < why->link_count; n++) {
		const struct ras_link_info *link = &why->links[n];
		const struct peer_link_row row = {
			.ready = link->ready,
			.delayed = link->delayed,
			.outgoing = link->outgoing,
			.silent_ns = link->silent_ns,
			.rtt_mean_ns =
				link->rtt_min_ns != RAS_NEVER ? link->rtt_mean_ns : RECORD_UNKNOWN,
			.reconnects = link->reconnects,
		};

		json_array_append_new(array, record_to_json(&peer_link_record, &row));
	}
	return array;
}

static json_t *events_json(struct session *session, const struct why *why) {
	uint32_t first = why->event_count > WHY_EVENTS ? why->event_count - WHY_EVENTS : 0;
	json_t *array = json_array();

	for (uint32_t n = first; n < why->event_count; n++)
		json_array_append_new(
			array, event_text_json(session, &why->events[n % WHY_EVENTS])
		);
	return array;
}

static void why_json(struct session *session, const struct why *why) {
	const struct ras_event *event = &why->link_event.event;
	json_t *object = peer_list_json(session, &why->peer);
	json_t *report = json_null(), *link_event = json_null();
	char when[SHOW_BYTES], words[STATE_TEXT_BYTES];

	json_object_set_new(object, "because", json_string(ras_cause_text(why->peer.cause)));
	json_object_set_new(
		object, "agent_only", json_boolean(finding_is_agent_only(why->peer.cause))
	);
	if (why->has_report) {
		show_time(why->report.realtime_ns, when);
		names_sanitize_text(
			why->report.text, strlen(why->report.text), words, sizeof(words)
		);
		report = json_pack(
			"{s:s,s:I,s:o}", "time", when, "uid", (json_int_t)why->report.event.value,
			"text", safe_string_json(words)
		);
	}
	json_object_set_new(object, "report", report);
	json_object_set_new(
		object, "address_problem",
		why->address_words[0] != '\0' ? safe_string_json(why->address_words) : json_null()
	);
	json_object_set_new(
		object, "join_problem",
		why->join_words[0] != '\0' ? safe_string_json(why->join_words) : json_null()
	);
	why_put_evidence(session, &why->peer, object);
	why_put_pairs(session, &why->peer, object);
	json_object_set_new(object, "congestion", congestion_json(session, NULL));
	json_object_set_new(object, "links", links_json(why));
	json_object_set_new(object, "links_lost", json_integer(why->links_lost));
	if (why->has_link_event) // also of a link that no longer exists
		link_event = json_pack(
			"{s:s,s:s,s:I}", "event", ras_event_name(event->kind), "cause",
			ras_cause_name(event->cause), "ago_ns",
			(json_int_t)time_age_ns(session, event->at_ns)
		);
	json_object_set_new(object, "link_event", link_event);
	json_object_set_new(object, "events", events_json(session, why));
	session_json(session, object);
}

// Answer for an absent node: it has no peer entry, but past events.
static bool answer_missing(struct session *session, const char *rest) {
	const struct overlay *overlay = session->server->overlay;
	char word[CLIENT_LINE_BYTES_MAX];
	struct why why = {0};
	struct finding finding;

	if (!command_word(&rest, word, sizeof(word)) || *rest != '\0' ||
	    !absent_has_node(overlay, word))
		return false;
	why.id = ras_id(word, strlen(word));
	names_sanitize_name(word, strlen(word), why.name);
	collect_earlier(session, &why);
	collect_events(session, &why);
	finding_for_peer(session->server->config.health, &why.peer, &finding);
	session_json(
		session,
		json_pack(
			"{s:o,s:s,s:s,s:s,s:s,s:s,s:[],s:o}", "node", safe_string_json(why.name),
			"state", ABSENT_STATE, "verdict", finding.verdict, "reason", finding.reason,
			"advice", verdict_advice_name(finding.advice), "because",
			"expected, but not in the peer table", "links", "events",
			events_json(session, &why)
		)
	);
	return true;
}

void answer_why(struct session *session, const char *rest) {
	const struct overlay *overlay = session->server->overlay;
	const struct overlay_reach *reach = overlay_reach(overlay);
	const struct ras *ras = session_ras(session);
	char word[CLIENT_LINE_BYTES_MAX], words[STATE_TEXT_BYTES];
	const char *after = rest;
	struct ras_link_info info;
	struct why why = {0};

	if (why_at(session, rest) || answer_missing(session, rest))
		return;
	// A user may give a job any name, so ask all nodes for a word that is no node.
	if (command_word(&after, word, sizeof(word)) && *after == '\0' &&
	    !names_is_known(session, word)) {
		if (comm_name_is_plausible(word) || !names_fail_former_node(session, word))
			why_comm(session, word);
		return;
	}
	if (!names_parse_single(session, rest, &why.peer))
		return;
	why.id = why.peer.record->id;
	names_format_record(why.peer.record, why.name);
	why.self = why.id == ras_self_id(ras);
	collect_earlier(session, &why);
	collect_events(session, &why);
	for (uint32_t n = 0; ras_link_at(ras, n, &info) == 0; n++) {
		if (info.peer == why.id && why.link_count < WHY_LINKS_MAX)
			why.links[why.link_count++] = info;
	}
	// An agent knows its problems only of itself.
	if (why.self && overlay_join_problem(overlay, words))
		names_sanitize_text(words, strlen(words), why.join_words, sizeof(why.join_words));
	if (why.self && reach->state == OVERLAY_REACH_UNPROVEN)
		names_sanitize_text(
			reach->words, strlen(reach->words), why.address_words,
			sizeof(why.address_words)
		);
	why_json(session, &why);
}
