// SPDX-License-Identifier: BSD-3-Clause
// WHY node: the story of one node, for who is woken at night: what it is, why, who says so, what
// that means and what will follow.
#include "client/absent.h"
#include "client/answers.h"
#include "client/congestion.h"
#include "client/event_text.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "client/why_comm.h"
#include "client/why_evidence.h"
#include "client/why_pairs.h"
#include "joblook/comm_look.h"

#include <control/finding.h>
#include <control/state.h>
#include <lib/show.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHY_EVENTS 8
#define WHY_LINKS_MAX 8
#define WHY_READ 64
#define FUTURE_BYTES (256 + NAMES_TEXT_BYTES)
#define TITLE_BYTES (256 + NAMES_TEXT_BYTES)

struct why {
	uint64_t id;
	struct ras_peer peer; // state UNKNOWN, and no record: it is expected, and was not seen
	char name[NAMES_TEXT_BYTES];
	bool self;
	const char *means, *follows;	       // in words
	struct state_event events[WHY_EVENTS]; // the last about it, a ring
	uint32_t event_count;		       // ever seen
	struct ras_link_info links[WHY_LINKS_MAX];
	uint32_t link_count;
	struct state_event link_event; // the last of a link to it in this run
	bool has_link_event;
	struct state_event report; // the last one in this run
	bool has_report;
	uint32_t links_lost;		      // as far as the history goes back
	char address_words[STATE_TEXT_BYTES]; // what is wrong with the one it tells; ""
	char join_words[STATE_TEXT_BYTES];    // and why it is no member; ""
};

static void add_event(struct why *why, const struct state_event *event) {
	why->events[why->event_count++ % WHY_EVENTS] = *event;
}

// Of earlier runs of this agent, from its journal.
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

// The link itself may be gone, or begun anew to try the peer again: its past is here.
static void note_past(struct why *why, const struct state_event *state_event) {
	if (state_event->event.kind == RAS_EVENT_REPORTED) {
		why->report = *state_event;
		why->has_report = true;
	}
	if (!is_of_link(state_event->event.kind))
		return;
	why->link_event = *state_event;
	why->has_link_event = true;
	why->links_lost += state_event->event.kind == RAS_EVENT_LINK_DOWN;
}

// The last events about the peer; the history is bounded, so this is.
static void collect_events(struct session *session, struct why *why) {
	struct ras_event read[WHY_READ];
	uint64_t next = 0, oldest;
	uint32_t count;

	do {
		count = ras_history(session_ras(session), next, read, WHY_READ, &oldest);
		for (uint32_t n = 0; n < count; n++) {
			struct state_event state_event;

			next = read[n].sequence + 1;
			if (read[n].peer != why->id)
				continue;
			state_event = event_text_of(session, &read[n]);
			add_event(why, &state_event);
			note_past(why, &state_event);
		}
	} while (count == WHY_READ);
}

static void collect_links(const struct ras *ras, struct why *why) {
	struct ras_link_info info;

	for (uint32_t n = 0; ras_link_at(ras, n, &info) == 0; n++) {
		if (info.peer == why->id && why->link_count < WHY_LINKS_MAX)
			why->links[why->link_count++] = info;
	}
}

// Only of ourselves this is known here.
static void collect_address(struct session *session, struct why *why) {
	const struct overlay_reach *reach = overlay_reach(session->server->overlay);
	char words[STATE_TEXT_BYTES];

	if (why->self && overlay_join_problem(session->server->overlay, words))
		names_text(words, strlen(words), why->join_words, sizeof(why->join_words));
	if (why->self && reach->state == OVERLAY_REACH_UNPROVEN)
		names_text(
			reach->words, strlen(reach->words), why->address_words,
			sizeof(why->address_words)
		);
}

static const struct state_event *event_at(const struct why *why, uint32_t n) {
	uint32_t first = why->event_count > WHY_EVENTS ? why->event_count - WHY_EVENTS : 0;

	return first + n < why->event_count ? &why->events[(first + n) % WHY_EVENTS] : NULL;
}

// How it came to be so, a line each, in the words of the state.
static const char *meaning_of(const struct ras_peer *peer) {
	switch (peer->state) {
	case RAS_ALIVE:
		return "Its agent answers on the overlay. That alone says nothing of its fabric; its "
		       "verdict does.";
	case RAS_SUSPECT:
		return "There is evidence against it, and others are looking. Any sign of life ends "
		       "this.";
	case RAS_UNREACHABLE:
		if (finding_is_agent_only(peer->cause))
			return "Too many refuse at the same time, as where a firewall between does "
			       "so for them:\n  nobody is declared dead by that. If no firewall "
			       "does, its agent is gone.";
		return "Too many fell silent at the same time: this side may be the one that is cut "
		       "off,\n  so nobody is declared dead by silence.";
	case RAS_DEAD:
		if (peer->sole)
			return "No second agent could look, so this is one agent's word and not "
			       "acted upon.";
		if (finding_is_agent_only(peer->cause))
			return "Its agent is gone while its host still answers. That alone says "
			       "nothing bad of\n  the host, its fabric or its jobs.";
		return "Whether the host died, the agent froze or only this network failed cannot "
		       "be told\n  from the overlay alone.";
	case RAS_LEFT:
		return "Its agent was stopped in good order. No alarm is due.";
	case RAS_UNKNOWN:
		break;
	}
	return "It is expected ([overlay] expect) and no table knows it: it never came, or was forgotten.";
}

static const char *future_of(const struct ras_peer *peer) {
	switch (peer->state) {
	case RAS_ALIVE:
		return "Nothing, as long as it is heard.";
	case RAS_SUSPECT:
		return "It refutes, or a second agent confirms and it is declared dead, within "
		       "seconds.";
	case RAS_UNREACHABLE:
		return "It is alive again at its first word, or judged when the brake lets go.";
	case RAS_DEAD:
		if (finding_is_agent_only(peer->cause))
			return "Start tocsind on it again (its log says why it ended); it rejoins "
			       "by itself.";
		return "It is tried again all the time and rejoins at its first word. Look at the "
		       "host by\n  another way: console, power, switch port.";
	case RAS_LEFT:
		return "It joins again when it is started; its entry expires by itself.";
	case RAS_UNKNOWN:
		break;
	}
	return "Start tocsind on it, or take it off the roster.";
}

static void show_future(const struct why *why, char text[static FUTURE_BYTES]) {
	const char *future = why->follows;

	if (why->peer.maint)
		snprintf(
			text, FUTURE_BYTES,
			"As long as it is in maintenance nobody is alarmed, and it is neither "
			"drained nor\n  undrained. Its end: `tocsin maint %s off`.",
			why->name
		);
	else if (why->peer.state == RAS_DEAD)
		snprintf(
			text, FUTURE_BYTES, "%s\n  If it is gone for good: `tocsin forget %s`.",
			future, why->name
		);
	else if (why->peer.state == RAS_UNREACHABLE)
		snprintf(
			text, FUTURE_BYTES,
			"%s\n  If all whom this side does not reach are gone for good: "
			"`tocsin forget --unreachable`.",
			future
		);
	else
		snprintf(text, FUTURE_BYTES, "%s", future);
}

static void say_title(struct session *session, const struct why *why) {
	const struct ras_peer *peer = &why->peer;
	const char *cause = "", *comma = "";
	char title[TITLE_BYTES];

	if (why->self) {
		cause = ", and it is the node you ask";
	} else if (peer->state != RAS_ALIVE && peer->state != RAS_LEFT) {
		comma = ": ";
		cause = finding_cause(peer->cause);
	}
	snprintf(
		title, sizeof(title), "%s %s %s%s%s%s.", why->name,
		peer->state == RAS_LEFT ? "has" : "is", ras_state_name(peer->state), comma, cause,
		peer->maint ? "; it is in maintenance, no alarm is raised" : ""
	);
	event_text_wrap(session, 0, 2, title);
	text_print(&session->out, "\n");
}

static void say_facts(struct session *session, const struct why *why) {
	const struct ras_peer *peer = &why->peer;
	char since[SHOW_BYTES], age[SHOW_BYTES], address[SOCK_ADDR_TEXT_BYTES];
	char observers[NAMES_PAIR_BYTES], host[NAMES_TEXT_BYTES], version[NAMES_TEXT_BYTES];
	struct ras_peer_info info;
	struct text *out = &session->out;

	ras_record_info(peer->record, &info);
	names_host(peer->record, host);
	names_clean(info.version, strlen(info.version), version);
	show_time(overlay_realtime_ns(session->server->overlay, peer->since_ns), since);
	show_duration(time_age_ns(session, peer->since_ns), age);
	sock_addr_format(&peer->record->address, address);
	names_observers(session_ras(session), peer->observers, peer->observer_count, observers);
	if (peer->since_ns != 0)
		text_print(out, "  since        %s, %s ago\n", since, age);
	if (observers[0] != '\0')
		text_print(out, "  says who     %s\n", observers);
	text_print(
		out, "  incarnation  start %" PRIu64 ", suspicions refuted %" PRIu64 "\n",
		ras_incarnation_start(peer->incarnation), peer->incarnation & RAS_REFUTATIONS_MAX
	);
	text_print(out, "  agent        %s, pid %u, version %s\n", address, info.pid, version);
	text_print(out, "  host         %s\n", host);
}

static void show_lost(uint32_t count, char text[static SHOW_BYTES]) {
	if (count == 0)
		snprintf(text, SHOW_BYTES, "never lost");
	else if (count == 1)
		snprintf(text, SHOW_BYTES, "lost once");
	else
		snprintf(text, SHOW_BYTES, "lost %u times", count);
}

static void
say_link(struct session *session, const struct why *why, const struct ras_link_info *link) {
	uint32_t count = link->reconnects > why->links_lost ? link->reconnects : why->links_lost;
	char silent[SHOW_BYTES], rtt[SHOW_BYTES], lost[SHOW_BYTES];

	show_duration(link->silent_ns, silent);
	show_lost(count, lost);
	text_print(
		&session->out, "  %s, %s, silent for %s, %s", link->outgoing ? "out" : "in",
		link->delayed ? "delayed" : "up", silent, lost
	);
	if (link->rtt_min_ns != RAS_NEVER) {
		show_duration(link->rtt_mean_ns, rtt);
		text_print(&session->out, ", round trip %s", rtt);
	}
	text_print(&session->out, "\n");
}

static void say_no_link(struct session *session, const struct why *why) {
	const struct ras_event *event = &why->link_event.event;
	const char *cause = event->cause != RAS_CAUSE_NONE ? ras_cause_name(event->cause) : "";
	char age[SHOW_BYTES], lost[SHOW_BYTES];

	if (!why->has_link_event) {
		text_print(
			&session->out, "  none, nor was there one: what is known came from others\n"
		);
		return;
	}
	show_duration(time_age_ns(session, event->at_ns), age);
	show_lost(why->links_lost, lost);
	text_print(
		&session->out, "  none now: the last said %s%s%s %s ago; %s\n",
		ras_event_name(event->kind), *cause != '\0' ? ", " : "", cause, age, lost
	);
}

// One that is down is a try to come through, and has no past of its own.
static void say_links(struct session *session, const struct why *why) {
	uint32_t ready = 0;

	if (why->self)
		return;
	text_print(&session->out, "\nLinks from here to it\n");
	for (uint32_t n = 0; n < why->link_count; n++) {
		if (!why->links[n].ready)
			continue;
		say_link(session, why, &why->links[n]);
		ready++;
	}
	if (ready == 0)
		say_no_link(session, why);
}

static void say_events(struct session *session, const struct why *why) {
	const struct state_event *event;

	text_print(
		&session->out, "\nLast events of it seen here%s\n",
		why->event_count == 0 ? ": none is kept" : ""
	);
	for (uint32_t n = 0; (event = event_at(why, n)) != NULL; n++)
		event_text_say(session, event);
	session_ok(session);
}

static void say_missing(struct session *session, const struct why *why) {
	struct finding finding;

	finding_of(session->server->config.health, &why->peer, &finding);
	text_print(
		&session->out,
		"%s is missing: expected, and not seen.\n\nWhat it means\n  %s\n\n"
		"What follows\n  %s\n\nVerdict\n  %s (%s); advice to schedulers: %s\n",
		why->name, why->means, why->follows, finding.verdict, finding.reason,
		verdict_advice_name(finding.advice)
	);
	say_events(session, why);
}

static void say_report(struct session *session, const struct why *why) {
	char when[SHOW_BYTES], words[STATE_TEXT_BYTES];

	if (!why->has_report)
		return;
	show_time(why->report.realtime_ns, when);
	names_text(why->report.text, strlen(why->report.text), words, sizeof(words));
	text_print(
		&session->out, "  Reported %s by uid %" PRIu64 "%s\n", when,
		why->report.event.value, words[0] != '\0' ? ":" : ""
	);
	event_text_words(session, words);
	text_print(
		&session->out,
		"  Then its neighbours were asked to look; what they see counts, not the "
		"report.\n"
	);
}

static void why_text(struct session *session, const struct why *why) {
	char future[FUTURE_BYTES];

	say_title(session, why);
	say_facts(session, why);
	show_future(why, future);
	text_print(&session->out, "\nWhat it means\n  %s\n", why->means);
	if (why->join_words[0] != '\0')
		text_print(
			&session->out, "\nIt is alone, and tries to join\n  %s\n", why->join_words
		);
	if (why->address_words[0] != '\0')
		text_print(
			&session->out,
			"\nIts address\n  %s\n  Others cannot connect to it: see listen and advertise "
			"in [overlay], and firewalls.\n",
			why->address_words
		);
	text_print(&session->out, "\nWhat follows\n  %s\n", future);
	say_report(session, why);
	why_say_evidence(session, &why->peer);
	say_links(session, why);
	why_say_pairs(session, &why->peer);
	why_say_congestion(session);
	say_events(session, why);
}

static json_t *links_json(const struct why *why) {
	json_t *array = json_array();

	for (uint32_t n = 0; n < why->link_count; n++) {
		const struct ras_link_info *link = &why->links[n];

		json_array_append_new(
			array, json_pack(
				       "{s:b,s:b,s:b,s:I,s:o,s:i}", "ready", link->ready, "delayed",
				       link->delayed, "outgoing", link->outgoing, "silent_ns",
				       (json_int_t)link->silent_ns, "rtt_mean_ns",
				       link->rtt_min_ns != RAS_NEVER
					       ? json_integer((json_int_t)link->rtt_mean_ns)
					       : json_null(),
				       "reconnects", (int)link->reconnects
			       )
		);
	}
	return array;
}

static json_t *events_json(struct session *session, const struct why *why) {
	json_t *array = json_array();
	const struct state_event *event;

	for (uint32_t n = 0; (event = event_at(why, n)) != NULL; n++)
		json_array_append_new(array, event_text_json(session, event));
	return array;
}

static void put_missing(struct session *session, const struct why *why) {
	struct finding finding;
	json_t *object;

	finding_of(session->server->config.health, &why->peer, &finding);
	object = json_pack(
		"{s:o,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:[],s:o}", "node", peer_name_json(why->name),
		"state", ABSENT_STATE, "verdict", finding.verdict, "reason", finding.reason,
		"advice", verdict_advice_name(finding.advice), "because", "expected, and not seen",
		"meaning", why->means, "follows", why->follows, "links", "events",
		events_json(session, why)
	);
	session_json(session, object);
}

static void why_json(struct session *session, const struct why *why) {
	json_t *object = peer_list_json(session, &why->peer);
	char future[FUTURE_BYTES];

	show_future(why, future);
	json_object_set_new(object, "because", json_string(finding_cause(why->peer.cause)));
	json_object_set_new(object, "meaning", json_string(why->means));
	json_object_set_new(object, "follows", peer_name_json(future));
	json_object_set_new(
		object, "address_problem",
		why->address_words[0] != '\0' ? peer_name_json(why->address_words) : json_null()
	);
	json_object_set_new(
		object, "join_problem",
		why->join_words[0] != '\0' ? peer_name_json(why->join_words) : json_null()
	);
	why_put_evidence(session, &why->peer, object);
	why_put_pairs(session, &why->peer, object);
	why_put_congestion(session, object);
	json_object_set_new(object, "links", links_json(why));
	json_object_set_new(object, "events", events_json(session, why));
	session_json(session, object);
}

// One of the roster whom no table knows has no peer, but it has a story.
static bool answer_missing(struct session *session, const char *rest) {
	const struct overlay *overlay = session->server->overlay;
	struct why why = {0};
	char word[CLIENT_LINE_BYTES_MAX];

	if (!command_word(&rest, word, sizeof(word)) || *rest != '\0' || !absent_is(overlay, word))
		return false;
	why.id = ras_id(word, strlen(word));
	names_clean(word, strlen(word), why.name);
	why.means = meaning_of(&why.peer);
	why.follows = future_of(&why.peer);
	collect_earlier(session, &why);
	collect_events(session, &why);
	if (session->json)
		put_missing(session, &why);
	else
		say_missing(session, &why);
	return true;
}

// What is no node, and looks as jobs and communicators are called, is looked for at all nodes.
static bool answer_job(struct session *session, const char *rest) {
	char word[CLIENT_LINE_BYTES_MAX];

	if (!command_word(&rest, word, sizeof(word)) || *rest != '\0' ||
	    names_is_known(session, word) || !comm_look_may_be_called(word))
		return false;
	why_comm(session, word);
	return true;
}

void answer_why(struct session *session, const char *rest) {
	const struct ras *ras = session_ras(session);
	struct why why = {0};

	if (answer_missing(session, rest) || answer_job(session, rest) ||
	    !names_only(session, rest, &why.peer))
		return;
	why.id = why.peer.record->id;
	names_record(why.peer.record, why.name);
	why.self = why.id == ras_self_id(ras);
	why.means = meaning_of(&why.peer);
	why.follows = future_of(&why.peer);
	(void)why_verdict_words(session, &why.peer, &why.means, &why.follows);
	collect_earlier(session, &why);
	collect_events(session, &why);
	collect_links(ras, &why);
	collect_address(session, &why);
	if (session->json)
		why_json(session, &why);
	else
		why_text(session, &why);
}
