// SPDX-License-Identifier: BSD-3-Clause
// [health] webhook: runs a program for each change of a verdict.
#include "agent.h"
#include "root_helper.h"

#include <control/health.h>
#include <control/webhook.h>
#include <lib/container.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define BAD_NODES_MAX 512 // nodes reported as bad, whose recovery must be reported too

struct webhook_part {
	struct health_listener listener;
	struct agent *agent;
	struct webhook *webhook;
	uint64_t bad[BAD_NODES_MAX]; // node ids; 0: free slot
	uint32_t bad_next;	     // slot to overwrite if none is free
};

static bool verdict_is_quiet(enum verdict verdict) {
	return verdict <= VERDICT_HEALTHY || verdict == VERDICT_UNKNOWN;
}

static void peer_copy_name(const struct ras_peer *peer, char name[static RAS_NAME_MAX + 1]) {
	snprintf(name, RAS_NAME_MAX + 1, "%.*s", peer->record->name_length, peer->record->name);
}

static uint64_t *bad_node_slot(struct webhook_part *part, uint64_t id) {
	for (uint32_t n = 0; n < BAD_NODES_MAX; n++) {
		if (part->bad[n] == id)
			return &part->bad[n];
	}
	return NULL;
}

// Return true if the change must be reported. A join is not reported, and neither is a suspicion
// that passes. A recovery often passes through `unknown`. So after a bad verdict, every change is
// reported until the node is healthy.
static bool change_needs_report(struct webhook_part *part, const struct verdict_change *change) {
	uint64_t *bad = bad_node_slot(part, change->now->subject);

	if (!verdict_is_quiet(change->now->verdict)) {
		if (bad == NULL)
			bad = bad_node_slot(part, 0);
		if (bad == NULL) {
			bad = &part->bad[part->bad_next];
			part->bad_next = (part->bad_next + 1) % BAD_NODES_MAX;
		}
		*bad = change->now->subject;
		return true;
	}
	if (bad == NULL)
		return !verdict_is_quiet(change->before);
	if (change->now->verdict != VERDICT_UNKNOWN)
		*bad = 0;
	return true;
}

static void
on_verdict_changed(struct health_listener *listener, const struct verdict_change *change) {
	struct webhook_part *part = container_of(listener, struct webhook_part, listener);
	const struct ras *ras = overlay_ras(part->agent->overlay);
	struct webhook_change told = {
		.cluster = part->agent->settings->overlay.cluster,
		.before = change->before,
		.advice = health_advice(part->agent->health, change->now),
		.would = health_suppressed_advice(part->agent->health, change->now),
		.now = change->now,
	};
	char node[RAS_NAME_MAX + 1], observer[RAS_NAME_MAX + 1];
	struct ras_peer peer, self;

	if (!change_needs_report(part, change))
		return;
	if (ras_peer_find(ras, change->now->subject, &peer) != 0 ||
	    ras_peer_find(ras, ras_self_id(ras), &self) != 0)
		return;
	peer_copy_name(&peer, node);
	peer_copy_name(&self, observer);
	told.node = node;
	told.observer = observer;
	webhook_notify(part->webhook, &told);
}

int webhook_part_start(struct agent *agent) {
	const char *user = agent->settings->health.webhook_user;
	struct webhook_config config = {
		.command = agent->settings->health.webhook,
		.user = user[0] != '\0' ? user : NULL,
		.timeout_ns = agent->settings->health.webhook_timeout_ns,
		.counters = &agent->webhook_counters,
	};
	bool by_root_helper = programs_need_root_helper(agent, user);
	struct webhook_part *part;
	int err;

	if (config.command[0] == '\0')
		return 0;
	part = calloc(1, sizeof(*part));
	if (part == NULL)
		return -ENOMEM;
	if (by_root_helper)
		config.root_name = ROOT_HELPER_WEBHOOK;
	err = webhook_create(
		by_root_helper ? agent->root_spawn : agent->spawn, &config, &part->webhook
	);
	if (err != 0) {
		free(part);
		return err;
	}
	part->agent = agent;
	part->listener.changed = on_verdict_changed;
	health_listen(agent->health, &part->listener);
	agent->webhook = part;
	return 0;
}

void webhook_part_stop(struct agent *agent) {
	struct webhook_part *part = agent->webhook;

	if (part == NULL)
		return;
	health_unlisten(agent->health, &part->listener);
	webhook_destroy(part->webhook);
	free(part);
	agent->webhook = NULL;
}
