// SPDX-License-Identifier: BSD-3-Clause
// RDMA devices that come and go while the agent runs: the kernel's uevents make the fabric look at
// once; where there are none, as in a container, a slow timer does.
#include "agent.h"

#include <control/fabric.h>
#include <dataplane/uevent.h>
#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>

#include <sys/epoll.h>
#include <unistd.h>

#define QUIET_NS (50 * RAS_NS_PER_MS) // a device comes as several messages
#define SLOW_NS (30 * RAS_NS_PER_SEC)

static void look_at(struct agent *agent, uint64_t at_ns) {
	must(loop_timer_set(agent->loop, &agent->devices_look, at_ns) == 0);
}

static void look(struct loop_timer *timer, uint64_t now_ns) {
	struct agent *agent = container_of(timer, struct agent, devices_look);

	fabric_look_at_devices(agent->fabric);
	look_at(agent, now_ns + SLOW_NS);
}

static void readable(struct loop_source *source, uint32_t events) {
	struct agent *agent = container_of(source, struct agent, uevents_source);

	(void)events;
	if (uevent_read(agent->uevents))
		look_at(agent, loop_now_ns(agent->loop) + QUIET_NS);
}

// Without uevents the timer is left, so nothing of this ends a start.
int devwatch_start(struct agent *agent) {
	int err;

	agent->uevents = -1;
	if (agent->device_count == 0)
		return 0;
	agent->devices_look.expired = look;
	look_at(agent, loop_now_ns(agent->loop) + SLOW_NS);
	err = uevent_open(&agent->uevents);
	if (err == 0) {
		agent->uevents_source = (struct loop_source){
			.fd = agent->uevents,
			.events = EPOLLIN,
			.rank = LOOP_OVERLAY,
			.ready = readable,
		};
		err = loop_add(agent->loop, &agent->uevents_source);
	}
	if (err != 0)
		log_event(
			LOG_LEVEL_WARN, "devices_unwatched", log_errno("error", err),
			log_str("effect", "devices that come or go are seen up to 30 s late")
		);
	return 0;
}

void devwatch_stop(struct agent *agent) {
	loop_timer_cancel(agent->loop, &agent->devices_look);
	loop_remove(&agent->uevents_source);
	if (agent->uevents >= 0)
		close(agent->uevents);
	agent->uevents = -1;
}
