// SPDX-License-Identifier: BSD-3-Clause
// Watches for RDMA devices that appear or disappear while the agent runs. A uevent of the kernel
// makes the fabric check its devices at once, and starts a device discovery. A slow timer replaces
// uevents where there are none, as in a container. The timer alone starts a full discovery only if
// the device list changed.
#include "agent.h"
#include "discovery.h"

#include <control/fabric.h>
#include <dataplane/uevent.h>
#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define UEVENT_SETTLE_NS (50 * RAS_NS_PER_MS) // one device causes several messages
#define RESCAN_INTERVAL_NS (30 * RAS_NS_PER_SEC)
// A device that was just registered may not have its /dev node yet.
#define QUICK_RESCAN_NS RAS_NS_PER_SEC
#define QUICK_RESCANS 5
#define DISCOVERY_STUCK_NS (20 * RAS_NS_PER_SEC) // same limit as at the start

static void rescan_timer_set(struct agent *agent, uint64_t at_ns) {
	must(loop_timer_set(agent->loop, &agent->device_rescan_timer, at_ns) == 0);
}

static int keeper_discovery_scan(void *arg) {
	return discovery_scan(arg);
}

static void discovery_start(struct agent *agent, bool only_if_changed);

static void on_discovery_done(struct keeper_request *request, void *arg, int result) {
	struct agent *agent = container_of(request, struct agent, discovering);

	// After a failure the timer tries again.
	if (result == 0)
		devices_add_discovered(agent, arg);
	if (agent->rescan_is_queued) {
		discovery_start(agent, false);
	} else if (result == 0 && agent->discovery->has_unjudged && agent->rescans_left > 0) {
		agent->rescans_left--;
		agent->rescan_is_forced = true;
		rescan_timer_set(agent, loop_now_ns(agent->loop) + QUICK_RESCAN_NS);
	}
}

// Start a discovery on a keeper, because it calls drivers.
static void discovery_start(struct agent *agent, bool only_if_changed) {
	const struct discovery *known = agent->discovery;
	struct keeper_call job = {
		.call = keeper_discovery_scan, .drop = free, .limit_ns = DISCOVERY_STUCK_NS};
	struct discovery *discovery;

	agent->rescan_is_queued = agent->discovering.job != NULL && !only_if_changed;
	if (agent->discovering.job != NULL)
		return;
	discovery = calloc(1, sizeof(*discovery));
	if (discovery == NULL)
		return; // the timer tries again
	memcpy(discovery->targets, known->targets, sizeof(known->targets));
	memcpy(discovery->served, known->served, sizeof(known->served));
	discovery->target_count = known->target_count;
	discovery->digest = known->digest;
	discovery->only_if_changed = only_if_changed && !known->has_unjudged;
	agent->discovering.ended = on_discovery_done;
	job.arg = discovery;
	if (keeper_run(agent->discoverer, &job, &agent->discovering) != 0)
		free(discovery);
}

static void on_rescan_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct agent *agent = container_of(timer, struct agent, device_rescan_timer);

	fabric_rescan_devices(agent->fabric);
	discovery_start(agent, !agent->rescan_is_forced);
	agent->rescan_is_forced = false;
	rescan_timer_set(agent, now_ns + RESCAN_INTERVAL_NS);
}

void devwatch_rescan_soon(struct agent *agent) {
	if (agent->discoverer == NULL)
		return; // no RDMA device is configured
	agent->rescan_is_forced = true;
	agent->rescans_left = QUICK_RESCANS;
	rescan_timer_set(agent, loop_now_ns(agent->loop) + UEVENT_SETTLE_NS);
}

static void on_uevent_readable(struct loop_source *source, uint32_t events) {
	struct agent *agent = container_of(source, struct agent, uevents_source);

	(void)events;
	if (uevent_read(agent->uevents))
		devwatch_rescan_soon(agent);
}

static void on_discovery_stuck(void *ctx, struct keeper *keeper) {
	(void)ctx;
	(void)keeper;
	log_event(
		LOG_LEVEL_ERROR, "rdma_device_stuck",
		log_str("effect", "a driver call does not return; new devices are not detected")
	);
}

// Start the watch. Without uevents the timer remains, so their failure does not fail the start.
int devwatch_start(struct agent *agent) {
	struct keeper_ops ops = {.stuck = on_discovery_stuck, .totals = &agent->keeper_counters};
	int err;

	agent->uevents = -1;
	if (agent->discovery->target_count == discovery_count_soft(agent->discovery))
		return 0;
	err = keeper_create(agent->loop, "tocsin-devices", &ops, &agent->discoverer);
	if (err != 0)
		return err;
	agent->device_rescan_timer.expired = on_rescan_timer;
	rescan_timer_set(agent, loop_now_ns(agent->loop) + RESCAN_INTERVAL_NS);
	err = uevent_open(&agent->uevents);
	if (err == 0) {
		agent->uevents_source = (struct loop_source){
			.fd = agent->uevents,
			.events = EPOLLIN,
			.rank = LOOP_OVERLAY,
			.ready = on_uevent_readable,
		};
		err = loop_add(agent->loop, &agent->uevents_source);
	}
	if (err != 0)
		log_event(
			LOG_LEVEL_WARN, "devices_unwatched", log_errno("error", err),
			log_str("effect",
				"devices that appear or disappear are detected up to 30 s late")
		);
	return 0;
}

void devwatch_stop(struct agent *agent) {
	loop_timer_cancel(agent->loop, &agent->device_rescan_timer);
	loop_remove(&agent->uevents_source);
	keeper_cancel(&agent->discovering);
	agent->discoverer = keeper_destroy(agent->discoverer);
	if (agent->uevents >= 0)
		close(agent->uevents);
	agent->uevents = -1;
}
