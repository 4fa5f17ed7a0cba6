// SPDX-License-Identifier: BSD-3-Clause
// HTTP server, and the snapshots of this node's counters that it reads.
#include "agent.h"

#include <control/client.h>
#include <control/fabric.h>
#include <control/http.h>
#include <control/jobhost.h>
#include <control/snapshot.h>
#include <control/transport.h>
#include <lib/config.h>
#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/rcu_thread.h>

#include <string.h>

#define ALLOW_MAX 64
#define SNAPSHOT_NS RAS_NS_PER_SEC

static void counters_snapshot(struct loop_timer *timer, uint64_t now_ns) {
	struct agent *agent = container_of(timer, struct agent, snapshot_timer);
	const struct counter_sources sources = {
		.ras = overlay_ras(agent->overlay),
		.transport = transport_counters(overlay_transport(agent->overlay)),
		.loop = loop_counters(agent->loop),
		.clients = agent->clients != NULL ? client_counters(agent->clients) : NULL,
		.state = agent->state,
		.spawn = spawn_counters(agent->spawn),
		.keepers = &agent->keeper_counters,
		.webhook = &agent->webhook_counters,
		.http = &agent->http_counters,
		.jobhost = agent->jobhost,
		.jobs = agent->jobhost != NULL ? jobhost_counters(agent->jobhost) : NULL,
		.reach = &overlay_reach(agent->overlay)->counters,
		.maintenance = overlay_maintenance_counters(agent->overlay),
		.checks = agent->checks,
		.fabric_calls = &fabric_calls,
		.fabric = agent->fabric,
		.health = agent->health,
	};
	struct snapshot snapshot;
	int err;

	snapshot_take(agent->overlay, agent->health, &sources, now_ns, &snapshot);
	rcu_thread_online(now_ns);
	err = snapshots_publish(agent->snapshots, &snapshot);
	rcu_thread_offline();
	if (err != 0)
		log_event(LOG_LEVEL_WARN, "numbers_not_published", log_errno("error", err));
	err = loop_timer_set(agent->loop, timer, now_ns + SNAPSHOT_NS);
	if (err != 0)
		log_event(LOG_LEVEL_ERROR, "numbers_end", log_errno("error", err));
}

int http_part_start(struct agent *agent) {
	const char *listen = agent->settings->http.listen;
	const struct config_list *list = &agent->settings->http.allow;
	struct cidr allow[ALLOW_MAX];
	struct http_config config = {
		.allow = allow,
		.allow_count = list->count,
		.clock = &agent->clock,
		.peers = agent->peers,
		.version = TOCSIN_VERSION,
		.counters = &agent->http_counters,
	};
	int err;

	if (listen[0] == '\0')
		return 0;
	err = snapshots_create(&agent->snapshots);
	if (err != 0)
		return err;
	agent->snapshot_timer.expired = counters_snapshot;
	counters_snapshot(&agent->snapshot_timer, loop_now_ns(agent->loop));

	config.snapshots = agent->snapshots;
	must(list->count <= ALLOW_MAX);
	for (size_t n = 0; n < list->count; n++)
		must(cidr_parse(list->items[n], strlen(list->items[n]), NULL, &allow[n]) == 0);
	must(sock_addr_parse(listen, strlen(listen), HTTP_PORT, NULL, &config.listen) == 0);
	err = http_start(&config, agent->detail, &agent->http);
	if (err != 0)
		http_part_stop(agent);
	return err;
}

void http_part_stop(struct agent *agent) {
	agent->http = http_stop(agent->http);
	loop_timer_cancel(agent->loop, &agent->snapshot_timer);
	agent->snapshots = snapshots_destroy(agent->snapshots);
}
