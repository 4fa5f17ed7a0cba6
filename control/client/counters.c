// SPDX-License-Identifier: BSD-3-Clause
// COUNTERS: what this agent did, dropped, refused and repeated, by name.
#include "answers.h"
#include "server.h"

#include <ras/collective.h>
#include <ras/relay.h>

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

struct counter {
	const char *name;
	size_t offset;
};

#define RAS(field) \
	{ #field, offsetof(struct ras_counters, field) }
static const struct counter ras_fields[] = {
	RAS(frames_sent),
	RAS(bytes_sent),
	RAS(frames_received),
	RAS(bytes_received),
	RAS(frames_malformed),
	RAS(frames_unknown),
	RAS(frames_unexpected),
	RAS(queue_dropped),
	RAS(conns_refused),
	RAS(inits_refused),
	RAS(joins_served),
	RAS(joins_redirected),
	RAS(syncs),
	RAS(news_sent),
	RAS(news_received),
	RAS(news_fresh),
	RAS(suspicions),
	RAS(suspicions_cleared),
	RAS(deaths_declared),
	RAS(long_links_opened),
	RAS(ring_links_opened),
	RAS(links_retired),
	RAS(own_pauses),
	RAS(own_paused_ns),
	RAS(memory_failures),
	RAS(news_hops_max),
	{NULL, 0},
};

#define COLLECT(field) \
	{ #field, offsetof(struct ras_collect_counters, field) }
static const struct counter collect_fields[] = {
	COLLECT(started),
	COLLECT(finished),
	COLLECT(cancelled),
	COLLECT(by_deadline),
	COLLECT(served),
	COLLECT(abandoned),
	COLLECT(requests_repeated),
	COLLECT(requests_refused),
	COLLECT(requests_forged),
	COLLECT(answers_late),
	COLLECT(answers_foreign),
	COLLECT(legs_lost),
	COLLECT(legs_timed_out),
	COLLECT(contributions_cut),
	{NULL, 0},
};

#define RELAY(field) \
	{ #field, offsetof(struct ras_relay_counters, field) }
static const struct counter relay_fields[] = {
	RELAY(retransmitted), RELAY(queued),	      RELAY(detours),	RELAY(rerouted),
	RELAY(early),	      RELAY(reordered),	      RELAY(acks_sent), RELAY(naks_sent),
	RELAY(replies_lost),  RELAY(replies_unknown), {NULL, 0},
};

#define LOOP(field) \
	{ #field, offsetof(struct loop_counters, field) }
static const struct counter loop_fields[] = {
	LOOP(turns),	       LOOP(events),
	LOOP(timers),	       LOOP(busy_ns),
	LOOP(turn_longest_ns), LOOP(timer_late_longest_ns),
	LOOP(clients_full),    {NULL, 0},
};

#define CLIENT(field) \
	{ #field, offsetof(struct client_counters, field) }
static const struct counter client_fields[] = {
	CLIENT(accepted),	CLIENT(turned_away),	CLIENT(accept_failures),
	CLIENT(lines),		CLIENT(lines_unknown),	CLIENT(lines_denied),
	CLIENT(lines_too_long), CLIENT(reports),	CLIENT(asks_refused),
	CLIENT(remote_served),	CLIENT(monitor_events), CLIENT(monitor_lost),
	CLIENT(closed_idle),	CLIENT(closed_slow),	{NULL, 0},
};

static void
say(struct session *session, const char *group, const struct counter *fields, const void *values) {
	uint64_t value;

	text_print(&session->out, "%s\n", group);
	for (; fields->name != NULL; fields++) {
		memcpy(&value, (const char *)values + fields->offset, sizeof(value));
		text_print(&session->out, "  %-26s %20" PRIu64 "\n", fields->name, value);
	}
}

static void
put(json_t *object, const char *group, const struct counter *fields, const void *values) {
	json_t *inner = json_object();
	uint64_t value;

	for (; fields->name != NULL; fields++) {
		memcpy(&value, (const char *)values + fields->offset, sizeof(value));
		json_object_set_new(inner, fields->name, json_integer((json_int_t)value));
	}
	json_object_set_new(object, group, inner);
}

void answer_counters(struct session *session, const char *rest) {
	const struct ras *ras = session_ras(session);
	const struct client_server *server = session->server;
	const struct {
		const char *name;
		const struct counter *fields;
		const void *values;
	} groups[] = {
		{"overlay", ras_fields, ras_counters(ras)},
		{"collectives", collect_fields, ras_collect_counters(ras)},
		{"relay", relay_fields, ras_relay_counters(ras)},
		{"loop", loop_fields, loop_counters(server->loop)},
		{"clients", client_fields, &server->counters},
	};
	json_t *object = json_object();

	(void)rest;
	for (size_t n = 0; n < sizeof(groups) / sizeof(groups[0]); n++) {
		if (session->json)
			put(object, groups[n].name, groups[n].fields, groups[n].values);
		else
			say(session, groups[n].name, groups[n].fields, groups[n].values);
	}
	if (session->json)
		session_json(session, json_incref(object));
	else
		session_ok(session);
	json_decref(object);
}
