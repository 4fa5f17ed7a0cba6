// SPDX-License-Identifier: BSD-3-Clause
// Peer table for other threads, copied from the overlay and published by RCU after each change.
#include "agent.h"

#include <control/overlay.h>
#include <control/publish.h>
#include <dataplane/peer_table.h>
#include <lib/container.h>
#include <lib/log.h>
#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>

#include <errno.h>

static void on_publish_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct agent *agent = container_of(timer, struct agent, publish_timer);
	uint64_t again_ns = publish_changed_peers(agent->publish, now_ns);

	if (again_ns != RAS_NEVER && loop_timer_set(agent->loop, timer, again_ns) != 0)
		log_event(LOG_LEVEL_ERROR, "publish_late", log_errno("error", ENOMEM));
}

// Mark the changed peer. Changes within one interval are published together.
static void on_member_event(struct overlay_listener *listener, const struct ras_event *event) {
	struct agent *agent = container_of(listener, struct agent, listener);

	publish_mark_peer(agent->publish, event->peer);
	publish_mark_peer(agent->publish, ras_self_id(overlay_ras(agent->overlay)));
	if (agent->publish_timer.place == 0 &&
	    loop_timer_set(agent->loop, &agent->publish_timer, loop_now_ns(agent->loop)) != 0)
		log_event(LOG_LEVEL_ERROR, "publish_late", log_errno("error", ENOMEM));
}

int rcu_start(struct agent *agent) {
	int err = rcu_reclaimer_start();

	(void)agent;
	if (err == 0)
		err = rcu_thread_register("control", clock_now_ns(&agent->clock));
	if (err == 0)
		rcu_thread_offline();
	return err;
}

void rcu_stop(struct agent *agent) {
	(void)agent;
	rcu_reclaimer_drain();
	rcu_thread_unregister();
}

int readers_start(struct agent *agent) {
	int err = peer_table_create(&agent->peers);

	if (err != 0)
		return err;
	err = publish_create(
		overlay_ras(agent->overlay), agent->peers, loop_now_ns(agent->loop), &agent->publish
	);
	if (err != 0) {
		agent->peers = peer_table_destroy(agent->peers);
		return err;
	}
	agent->publish_timer.expired = on_publish_timer;
	agent->listener.event = on_member_event;
	overlay_listen(agent->overlay, &agent->listener);
	return loop_timer_set(agent->loop, &agent->publish_timer, loop_now_ns(agent->loop));
}

void readers_stop(struct agent *agent) {
	overlay_unlisten(agent->overlay, &agent->listener);
	loop_timer_cancel(agent->loop, &agent->publish_timer);
	agent->publish = publish_destroy(agent->publish);
	agent->peers = peer_table_destroy(agent->peers);
}
