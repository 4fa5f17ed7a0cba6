// SPDX-License-Identifier: BSD-3-Clause
// COUNTERS: all counters of this agent by name.
#include "client/answers.h"
#include "client/server.h"

#include <control/counters.h>
#include <control/transport.h>

static json_t *json_member(json_t *object, const char *key) {
	json_t *inner = json_object_get(object, key);

	if (inner == NULL) {
		inner = json_object();
		json_object_set_new(object, key, inner);
	}
	return inner;
}

void answer_counters(struct session *session, const char *rest) {
	const struct client_server *server = session->server;
	const struct counter_sources sources = {
		.ras = session_ras(session),
		.transport = transport_counters(overlay_transport(server->overlay)),
		.loop = loop_counters(server->loop),
		.clients = &server->counters,
		.state = overlay_state(server->overlay),
		.spawn = server->config.spawn,
		.keepers = server->config.keepers,
		.webhook = server->config.webhook,
		.http = server->config.http,
		.jobs = server->config.jobs,
		.reach = &overlay_reach(server->overlay)->counters,
		.maintenance = overlay_maintenance_counters(server->overlay),
		.checks = server->checks,
		.fabric_calls = server->fabric_calls,
		.fabric = server->fabric,
		.health = server->config.health,
	};
	uint64_t values[COUNTERS_MAX];
	json_t *object = json_object();
	struct counter counter;

	(void)rest;
	counters_read(&sources, values);
	for (uint32_t n = 0; n < counters_count(); n++) {
		json_t *inner;

		counter_at(n, &counter);
		inner = json_member(object, counter.group);
		if (counter.labels[0] != '\0')
			json_object_set_new(
				json_member(inner, counter.name), counter.labels,
				json_integer((json_int_t)values[n])
			);
		else
			json_object_set_new(
				inner, counter.name, json_integer((json_int_t)values[n])
			);
	}
	session_json(session, object);
}
