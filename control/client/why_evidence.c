// SPDX-License-Identifier: BSD-3-Clause
// WHY node, the part that the store of verdicts tells: the verdict, who saw what and when, what the
// node says of itself, and what was said of it before.
#include "client/why_evidence.h"

#include "client/event_text.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <control/finding.h>
#include <control/health.h>
#include <lib/show.h>

#include <stdio.h>
#include <string.h>

#define CHECK_FOLLOWS \
	"Do what the check asks for; `tocsin checks`, with --node and its name, lists them all."

// What a verdict means for whoever is woken by it, and what to do; NULL: what the state says.
static const struct {
	const char *means, *follows;
} words_of[VERDICT_COUNT] = {
	[VERDICT_PATH_DEGRADED] =
		{"It works, but its fabric is slower than it was and than its like is.",
		 "Jobs on it run at the speed of the slow path. Look at cables, ports and congestion."},
	[VERDICT_PATH_LOSSY] =
		{"Small messages pass, large ones are lost: MTU, a bad cable, or a full queue on the way.",
		 "Jobs stall on it. Compare MTUs along the path; look at the error counters of its ports."},
	[VERDICT_UNSTABLE] =
		{"What is seen of it changes faster than anybody could act on: a loose cable, a service\n"
		 "  that restarts again and again, or a size of packets that passes only now and then.",
		 "`tocsin why` with its name lists the words. Nobody is drained by it, nor undrained."},
	[VERDICT_MGMT_NET_DOWN] =
		{"Its agent works and its fabric does; the network that the overlay uses does not reach it.",
		 "Jobs that run on it may go on. Look at its management port and switch."},
	[VERDICT_AGENT_DOWN] =
		{"Its agent is gone while its host still answers. That alone says nothing bad of\n"
		 "  the host, its fabric or its jobs.",
		 "Start tocsind on it again (its log says why it ended); it rejoins by itself."},
	[VERDICT_AGENT_FROZEN] =
		{"Its host lives: something below the agent answers. The agent itself does nothing.",
		 "Look at the host: is it out of memory, in a stuck driver, or is the process stopped?"},
	[VERDICT_DEVICE_STUCK] =
		{"A call into a driver hangs there. Programs that use that device will hang, too.",
		 "Look at its kernel's log; as a rule only a restart of the host ends this."},
	[VERDICT_FABRIC_DOWN] =
		{"Its agent answers, its fabric does not: jobs on it cannot communicate.",
		 "Look at its port, cable and switch port. Schedulers are advised to drain it."},
	[VERDICT_NODE_DOWN] =
		{"Neither its agent nor its fabric answers anybody: the host is down, or cut off.",
		 "Look at the host by another way: console, power. Schedulers are advised to drain it."},
	[VERDICT_CHECK_WARNING] = {"A local check of that node warns.", CHECK_FOLLOWS},
	[VERDICT_CHECK_FAILED] = {"A local check of that node says critical.", CHECK_FOLLOWS},
};

static const struct verdict_engine *engine_of(const struct session *session) {
	const struct health *health = session->server->config.health;

	return health != NULL ? health_engine(health) : NULL;
}

static void clean_words(const char *words, char clean[static STATE_TEXT_BYTES]) {
	names_text(words, strlen(words), clean, STATE_TEXT_BYTES);
}

static void
say_verdict(struct session *session, const struct ras_peer *peer, const struct finding *finding) {
	const struct verdict_view *view = &finding->view;
	uint64_t since_ns = view->since_ns != 0 ? view->since_ns : peer->since_ns;
	char age[SHOW_BYTES], evidence[STATE_TEXT_BYTES], line[256];

	show_duration(time_age_ns(session, since_ns), age);
	clean_words(view->evidence, evidence);
	snprintf(
		line, sizeof(line), "%s (%s), for %s, %s%s; advice to schedulers: %s%s%s",
		finding->verdict, view->reason, age,
		view->confidence == VERDICT_SURE ? "sure" : "likely",
		view->both_planes ? ", seen on both planes" : "",
		verdict_advice_name(finding->advice),
		finding->withheld != NULL ? ", no drain: " : "",
		finding->withheld != NULL ? finding->withheld : ""
	);
	text_print(&session->out, "\nVerdict\n");
	event_text_wrap(session, 2, 4, line);
	event_text_words(session, evidence);
}

static void show_path(const struct observation *observation, char text[static SHOW_BYTES]) {
	if (observation->device[0] == '\0')
		snprintf(text, SHOW_BYTES, "overlay");
	else
		snprintf(
			text, SHOW_BYTES, "%.15s -> %.15s", observation->device,
			observation->peer_device[0] != '\0' ? observation->peer_device : "?"
		);
}

static const char *reach_words(enum verdict_reach reach) {
	static const char *const words[] = {
		[VERDICT_REACH_UNKNOWN] = "was not tried",
		[VERDICT_REACH_ANSWERS] = "answers",
		[VERDICT_REACH_ACCEPTS] = "its kernel takes connections, its agent says nothing",
		[VERDICT_REACH_REFUSES] = "its host refuses: nobody listens there",
		[VERDICT_REACH_NONE] = "nothing comes back",
		[VERDICT_REACH_LOSES] = "answers, and much that is sent to it is sent again",
	};

	return words[reach];
}

// What was seen, in half a sentence.
static void show_observation(const struct observation *observation, char *text, size_t size) {
	char median[SHOW_BYTES], baseline[SHOW_BYTES], which[40] = "any size";

	if (observation->device[0] == '\0') {
		snprintf(text, size, "%s", reach_words(observation->reach));
		return;
	}
	show_duration(observation->median_ns, median);
	show_duration(observation->baseline_ns, baseline);
	switch (observation->kind) {
	case OBSERVATION_DEGRADED:
		snprintf(text, size, "slow: %s, usually %s", median, baseline);
		break;
	case OBSERVATION_LOSSY:
		if (observation->lost_bytes > 0)
			snprintf(
				which, sizeof(which), "%u bytes and more", observation->lost_bytes
			);
		snprintf(
			text, size, "loses %u.%u %% of probes of %s",
			observation->lost_permille / 10, observation->lost_permille % 10, which
		);
		break;
	case OBSERVATION_SILENT:
		snprintf(
			text, size, "its pulse is not read; own port %s",
			observation->own_good ? "good" : "not known to be good"
		);
		break;
	case OBSERVATION_STANDING:
		snprintf(
			text, size, "its pulse is read and stands; answered by %s",
			observation_responder_name(observation->responder)
		);
		break;
	default:
		snprintf(
			text, size, "%s%s%s", observation_kind_name(observation->kind),
			observation->median_ns != 0 ? ", " : "",
			observation->median_ns != 0 ? median : ""
		);
	}
}

static void say_observations(struct session *session, uint64_t id) {
	const struct verdict_engine *engine = engine_of(session);
	char name[NAMES_TEXT_BYTES], path[SHOW_BYTES], age[SHOW_BYTES], cell[SHOW_BYTES];
	char words[256];
	struct observation observation;
	uint32_t cursor = 0;
	uint64_t seen_ns;
	bool any = false;

	while (verdict_observation_next(engine, id, &cursor, &observation, &seen_ns)) {
		if (!any)
			text_print(&session->out, "\nWho saw what\n");
		any = true;
		names_id(session_ras(session), observation.observer, name);
		show_path(&observation, path);
		show_observation(&observation, words, sizeof(words));
		show_duration(time_age_ns(session, seen_ns), age);
		text_print(
			&session->out, "  %-16s %-20s %-8s %s\n",
			session_cell(session, name, 16, cell), path, age, words
		);
	}
}

static void say_statements(struct session *session, uint64_t id) {
	const struct verdict_engine *engine = engine_of(session);
	char evidence[STATE_TEXT_BYTES], age[SHOW_BYTES];
	struct statement statement;
	uint32_t cursor = 0;
	uint64_t said_ns;
	bool any = false;

	while (verdict_statement_next(engine, id, &cursor, &statement, &said_ns)) {
		if (!any)
			text_print(&session->out, "\nWhat it says of itself\n");
		any = true;
		clean_words(statement.evidence, evidence);
		show_duration(time_age_ns(session, said_ns), age);
		text_print(
			&session->out, "  %s, %s, %s ago\n", verdict_name(statement.verdict),
			statement.reason, age
		);
		event_text_words(session, evidence);
	}
}

static void say_past(struct session *session, uint64_t id) {
	const struct overlay *overlay = session->server->overlay;
	char from[SHOW_BYTES], lasted[SHOW_BYTES];
	struct verdict_past past;
	uint32_t cursor = 0;
	bool any = false;

	while (verdict_past_next(engine_of(session), id, &cursor, &past)) {
		if (past.since_ns == 0)
			continue; // before anything was known of it
		if (!any)
			text_print(&session->out, "\nVerdicts before\n");
		any = true;
		show_time(overlay_realtime_ns(overlay, past.since_ns), from);
		show_duration(past.until_ns - past.since_ns, lasted);
		text_print(
			&session->out, "  %-24s %-14s %-8s %s\n", from, verdict_name(past.verdict),
			lasted, past.reason
		);
	}
}

bool why_verdict_words(
	struct session *session,
	const struct ras_peer *peer,
	const char **ret_means,
	const char **ret_follows
) {
	struct finding finding;

	finding_of(session->server->config.health, peer, &finding);
	if (!finding.has_view || words_of[finding.view.verdict].means == NULL)
		return false;
	*ret_means = words_of[finding.view.verdict].means;
	*ret_follows = words_of[finding.view.verdict].follows;
	return true;
}

void why_say_evidence(struct session *session, const struct ras_peer *peer) {
	struct finding finding;

	finding_of(session->server->config.health, peer, &finding);
	if (!finding.has_view)
		return;
	say_verdict(session, peer, &finding);
	say_observations(session, peer->record->id);
	say_statements(session, peer->record->id);
	say_past(session, peer->record->id);
}

static json_t *age_json(struct session *session, uint64_t at_ns) {
	return json_real((double)time_age_ns(session, at_ns) / (double)RAS_NS_PER_SEC);
}

static json_t *observations_json(struct session *session, uint64_t id) {
	json_t *array = json_array();
	char name[NAMES_TEXT_BYTES];
	struct observation observation;
	uint32_t cursor = 0;
	uint64_t seen_ns;

	while (verdict_observation_next(engine_of(session), id, &cursor, &observation, &seen_ns)) {
		names_id(session_ras(session), observation.observer, name);
		json_array_append_new(
			array,
			json_pack(
				"{s:o,s:s,s:s,s:o,s:o,s:b,s:b,s:s,s:I,s:I,s:i,s:I,s:o}", "observer",
				peer_name_json(name), "kind",
				observation_kind_name(observation.kind), "responder",
				observation_responder_name(observation.responder), "device",
				peer_name_json(observation.device), "peer_device",
				peer_name_json(observation.peer_device), "own_good",
				observation.own_good, "shares_interface", observation.shares,
				"reach", reach_words(observation.reach), "median_ns",
				(json_int_t)observation.median_ns, "baseline_ns",
				(json_int_t)observation.baseline_ns, "lost_permille",
				(int)observation.lost_permille, "lost_bytes",
				(json_int_t
				)(observation.kind == OBSERVATION_LOSSY ? observation.lost_bytes : 0
				),
				"age_s", age_json(session, seen_ns)
			)
		);
	}
	return array;
}

static json_t *statements_json(struct session *session, uint64_t id) {
	json_t *array = json_array();
	char evidence[STATE_TEXT_BYTES];
	struct statement statement;
	uint32_t cursor = 0;
	uint64_t said_ns;

	while (verdict_statement_next(engine_of(session), id, &cursor, &statement, &said_ns)) {
		clean_words(statement.evidence, evidence);
		json_array_append_new(
			array,
			json_pack(
				"{s:s,s:o,s:o,s:o}", "verdict", verdict_name(statement.verdict),
				"reason", peer_name_json(statement.reason), "evidence",
				peer_name_json(evidence), "age_s", age_json(session, said_ns)
			)
		);
	}
	return array;
}

static json_t *past_json(struct session *session, uint64_t id) {
	json_t *array = json_array();
	struct verdict_past past;
	uint32_t cursor = 0;

	while (verdict_past_next(engine_of(session), id, &cursor, &past)) {
		if (past.since_ns == 0)
			continue;
		json_array_append_new(
			array, json_pack(
				       "{s:s,s:s,s:o,s:o}", "verdict", verdict_name(past.verdict),
				       "reason", past.reason, "since",
				       time_at_json(session, past.since_ns), "until",
				       time_at_json(session, past.until_ns)
			       )
		);
	}
	return array;
}

void why_put_evidence(struct session *session, const struct ras_peer *peer, json_t *object) {
	struct finding finding;

	finding_of(session->server->config.health, peer, &finding);
	if (!finding.has_view)
		return;
	json_object_set_new(object, "reason", json_string(finding.reason));
	json_object_set_new(object, "evidence", peer_name_json(finding.evidence));
	json_object_set_new(object, "advice", json_string(verdict_advice_name(finding.advice)));
	json_object_set_new(
		object, "withheld",
		finding.withheld != NULL ? json_string(finding.withheld) : json_null()
	);
	json_object_set_new(object, "sights", observations_json(session, peer->record->id));
	json_object_set_new(object, "statements", statements_json(session, peer->record->id));
	json_object_set_new(object, "verdicts_before", past_json(session, peer->record->id));
}
