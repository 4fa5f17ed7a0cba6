// SPDX-License-Identifier: BSD-3-Clause
// The life of one device: opened, watched, closed and opened again.
#include "fabric/inside.h"
#include "fabric/probing.h"

#include <dataplane/telemetry.h>
#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define RETRY_NS RAS_NS_PER_SEC
#define RETRY_MAX_NS (30 * RAS_NS_PER_SEC)
#define RETRY_PORT_NS (5 * RAS_NS_PER_SEC) // for a port that has been down for AWAITED_NS
#define AWAITED_NS (300 * RAS_NS_PER_SEC)
#define EVENTS_PER_TURN 16

static uint64_t nic_clock_ns(const struct nic *nic) {
	return fabric_clock_ns(nic->fabric);
}

static void nic_set_state(struct nic *nic, enum fabric_device_state state, const char *reason) {
	bool is_expected = state == FABRIC_DEVICE_UP || state == FABRIC_DEVICE_CLOSING ||
			   nic->fabric->stopping || nic->retired ||
			   (nic->config.announce_after_open && nic->opened == 0);

	if (nic->state == state && strcmp(nic->reason, reason) == 0)
		return;
	if (nic->state != state)
		nic->since_ns = nic_clock_ns(nic);
	nic->state = state;
	if (reason != nic->reason)
		snprintf(nic->reason, sizeof(nic->reason), "%s", reason);
	if (state == FABRIC_DEVICE_OPENING ||
	    (state == nic->told && strcmp(reason, nic->logged_reason) == 0))
		return; // a retry failed as before: nothing to log
	nic->told = state;
	snprintf(nic->logged_reason, sizeof(nic->logged_reason), "%s", reason);
	log_event(
		is_expected ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "rdma_device",
		log_str("device", nic->config.name),
		log_str("state", fabric_device_state_name(state)), log_str("reason", reason)
	);
}

static void nic_set_retry(struct nic *nic, uint64_t after_ns) {
	struct loop *loop = nic->fabric->loop;

	must(loop_timer_set(loop, &nic->retry, loop_now_ns(loop) + after_ns) == 0);
}

int nic_run_on_keeper(
	struct nic *nic,
	int (*call)(void *),
	struct keeper_request *request,
	const struct nic_parts *parts
) {
	struct fabric *fabric = nic->fabric;
	struct keeper_call job = {
		.call = call,
		.drop = nic_work_drop,
		.limit_ns = call == nic_work_open ? FABRIC_OPEN_STUCK_NS : 0,
	};
	struct nic_work *work = calloc(1, sizeof(*work));
	int err;

	if (work == NULL)
		return -ENOMEM;
	work->nic = nic;
	if (parts != NULL)
		work->parts = *parts;
	work->taken = parts != NULL; // the nic keeps its parts when the work is dropped
	work->config = nic->config;
	work->guid = nic->guid;
	memcpy(work->open_name, nic->open_name, sizeof(work->open_name));

	// Collect the GUIDs of other own devices. Rails with different ports may share one device.
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		const struct nic *other = &fabric->nics[n];

		if (other != nic && !other->retired && other->guid != 0 &&
		    other->config.settings.port == nic->config.settings.port)
			work->others[work->other_count++] = other->guid;
	}

	work->pulse = pulse_memory(fabric->pulse);
	work->scratch = fabric->scratch;
	work->write_sink = fabric->write_sink;
	work->gpu = nic->gpu != NULL ? nic->gpu->page : NULL;
	work->lane = (struct lane_config){
		.pair_max = fabric->config.pair_max,
		.depth = FABRIC_PAIR_DEPTH,
		.op_max = FABRIC_OPS_MAX,
		.drain_ns = FABRIC_DRAIN_NS,
		.clock = worker_clock(fabric->config.workers[nic->worker]),
		.near = worker_near(fabric->config.workers[nic->worker]),
		.vector =
			{
				.cpu = worker_cpu(fabric->config.workers[nic->worker]),
				.turn = nic->worker,
			},
	};
	job.arg = work;
	err = keeper_run(nic->keeper, &job, request);
	if (err != 0)
		free(work);
	return err;
}

static void post_lane_request(struct nic *nic, enum lane_request kind) {
	struct worker_record record = {
		.kind = kind,
		.words = {(uintptr_t)nic->parts.lane},
	};

	fabric_post(nic->fabric, nic->worker, &record);
}

// State of the device.

void nic_update_pairing(struct nic *nic) {
	struct fabric *fabric = nic->fabric;
	struct pairing_device device = {
		.responder = nic->parts.facts.responder,
		.traffic_class = nic->config.settings.traffic_class,
		.shares_overlay = fabric->config.interface[0] != '\0' &&
				  strcmp(fabric->config.interface, nic->parts.facts.netdev) == 0,
		.pulse =
			{
				.address = nic->parts.pulse.wire_address,
				.key = nic->parts.pulse.remote_key,
				.layout = nic->open ? PULSE_LAYOUT : 0,
			},
		.write_sink =
			{
				.address = nic->parts.write_sink.wire_address,
				.key = nic->parts.write_sink.remote_key,
				.length = nic->open ? WATCH_WRITE_SINK_BYTES : 0,
			},
		.gpu = nic_gpu_announced(nic),
	};

	memcpy(device.name, nic->config.name, sizeof(device.name));
	must(pairing_device(fabric->pairing, &device, &nic->number) == 0);
	must(nic->number == nic->place);
}

static void nic_report_to_pairing(struct nic *nic) {
	bool up = nic->parts.facts.usable;
	const char *reason = nic->parts.facts.reason;
	struct lane_facts facts;

	nic_update_pairing(nic);
	lane_facts(nic->parts.lane, &facts);
	if (!facts.events && !nic->eventless_logged) {
		nic->eventless_logged = true; // once per device, however often it is opened
		log_event(
			LOG_LEVEL_WARN, "rdma_device_without_events",
			log_str("device", nic->config.name),
			log_str("effect", "a timer polls for its completions, up to 10 ms late")
		);
	}
	nic_set_state(nic, up ? FABRIC_DEVICE_UP : FABRIC_DEVICE_DOWN, up ? "" : reason);
	pairing_device_state(
		nic->fabric->pairing, nic_clock_ns(nic), nic->number,
		up ? PAIRING_DEVICE_ACTIVE : PAIRING_DEVICE_DOWN, up ? NULL : reason
	);
	if (up)
		nic_retire_fallbacks(nic);
}

static void nic_refresh(struct nic *nic);

// Read the port again later. Otherwise a stale state would stay until the next event of the device.
static void nic_refresh_later(struct nic *nic) {
	nic->refresh_again = true;
	nic_set_retry(nic, RETRY_NS);
}

static void on_nic_refreshed(struct keeper_request *request, void *arg, int result) {
	struct nic *nic = container_of(request, struct nic, refreshing);
	struct nic_work *work = arg;

	if (nic->lost || !nic->open)
		return;
	if (result != 0) {
		log_event(
			LOG_LEVEL_WARN, "rdma_device_unread", log_str("device", nic->config.name),
			log_errno("error", result)
		);
		nic_refresh_later(nic);
		return;
	}
	nic->parts.facts = work->parts.facts;
	rails_own_changed(nic->fabric);
	if (nic->attached)
		nic_report_to_pairing(nic);
	if (nic->refresh_again)
		nic_refresh(nic);
}

// Read the device's facts. Only one read runs at a time; a request during a read is served after
// it.
static void nic_refresh(struct nic *nic) {
	nic->refresh_again = nic->refreshing.job != NULL;
	if (nic->refresh_again)
		return;
	nic->refreshing.ended = on_nic_refreshed;
	if (nic_run_on_keeper(nic, nic_work_refresh, &nic->refreshing, &nic->parts) != 0)
		nic_refresh_later(nic);
}

void nic_mark_lost(struct nic *nic, const char *why) {
	if (nic->lost)
		return;
	nic->lost = true;
	nic->lost_ns = nic_clock_ns(nic);
	// No further events are needed, and the event descriptor of a removed device stays readable
	// for ever.
	loop_remove(&nic->events);
	nic_set_state(nic, FABRIC_DEVICE_CLOSING, why);
	device_mark_lost(nic->parts.device);
	pairing_device_state(
		nic->fabric->pairing, nic_clock_ns(nic), nic->number, PAIRING_DEVICE_LOST, why
	);
	fabric_pairs_cut_off(nic);
	nic_close(nic);
}

static void nic_fail_queue_pair(struct nic *nic, uint32_t queue_number) {
	struct fabric *fabric = nic->fabric;

	for (const struct fabric_pair *fabric_pair = fabric->fabric_pairs; fabric_pair != NULL;
	     fabric_pair = fabric_pair->next) {
		struct worker_record record = {
			.kind = LANE_REQUEST_FAIL,
			.words =
				{(uintptr_t)nic->parts.lane, 0, fabric_pair->generation,
				 (uint64_t)(int64_t)-EIO},
		};

		if (fabric_pair->nic != nic || fabric_pair->stage != FABRIC_PAIR_IN_LANE ||
		    pair_queue_number(fabric_pair->pair) != queue_number)
			continue;
		record.words[1] = pair_slot(fabric_pair->pair);
		fabric_post(fabric, nic->worker, &record);
	}
}

static void on_device_event(struct nic *nic, const struct device_event *event) {
	nic->event_count++;
	nic->fabric->counters.device_events++;
	log_event(
		LOG_LEVEL_INFO, "rdma_device_event", log_str("device", nic->config.name),
		log_str("event", event->name), log_u64("port", event->port)
	);
	switch (event->kind) {
	case DEVICE_EVENT_PORT_ACTIVE:
	case DEVICE_EVENT_PORT_DOWN:
	case DEVICE_EVENT_PORT_CHANGED:
		if (event->port == nic->parts.facts.port.number)
			nic_refresh(nic);
		break;
	case DEVICE_EVENT_PAIR_FATAL:
		nic_fail_queue_pair(nic, event->queue_number);
		break;
	case DEVICE_EVENT_COMPLETIONS_FATAL:
	case DEVICE_EVENT_FATAL:
		nic_mark_lost(nic, event->name);
		break;
	case DEVICE_EVENT_OTHER:
		break;
	}
}

static void on_device_readable(struct loop_source *source, uint32_t events) {
	struct nic *nic = container_of(source, struct nic, events);
	struct device_event event;
	int err;

	(void)events;
	for (uint32_t n = 0; n < EVENTS_PER_TURN && !nic->lost; n++) {
		err = device_event(nic->parts.device, &event);
		if (err == -EAGAIN || err == -EINTR)
			return;
		if (err == 0)
			on_device_event(nic, &event);
		else
			nic_mark_lost(nic, "its events cannot be read");
	}
}

// Opening.

// If the driver kept some parts of a failed open, treat the device like one that failed later.
static void nic_open_failed(struct nic *nic, struct nic_work *work, int err) {
	struct fabric *fabric = nic->fabric;
	uint64_t now_ns = nic_clock_ns(nic), delay_ns = nic->retry_ns;

	fabric->counters.open_failures++;
	nic->tried = true;
	nic_set_state(
		nic, FABRIC_DEVICE_WAITING,
		work->reason[0] != '\0' ? work->reason : strerrordesc_np(-err)
	);
	if (work->parts.device != NULL) {
		nic->parts = work->parts;
		work->taken = true;
		nic->open = nic->lost = true;
	}

	// A device that was reset is back soon, and its return may not be announced here. Nothing
	// announces a port of a closed device, and opening a device costs its driver much work.
	if (nic->lost_ns != 0 && now_ns - nic->lost_ns < AWAITED_NS)
		delay_ns = RETRY_NS;
	else if (err == -ENETDOWN)
		delay_ns = now_ns - nic->begun_ns < AWAITED_NS ? RETRY_NS : RETRY_PORT_NS;
	nic_set_retry(nic, delay_ns);
	nic->retry_ns = nic->retry_ns * 2 < RETRY_MAX_NS ? nic->retry_ns * 2 : RETRY_MAX_NS;
	fabric_check_stopped(fabric);
}

// Remember GUID and name. Names may change or pass to another device, so the GUID identifies a
// device.
static void nic_note_identity(struct nic *nic) {
	const struct device_facts *facts = &nic->parts.facts;

	if (nic->guid != 0 && nic->guid != facts->guid)
		log_event(
			LOG_LEVEL_WARN, "rdma_device_replaced", log_str("device", nic->config.name),
			log_str("effect", "another device has this name now, and is used instead")
		);
	if (strcmp(facts->name, nic->config.name) != 0 && strcmp(facts->name, nic->open_name) != 0)
		log_event(
			LOG_LEVEL_WARN, "rdma_device_renamed", log_str("device", nic->config.name),
			log_str("now", facts->name),
			log_str("effect",
				"the agent uses the old name of the device until the agent restarts"
			)
		);
	nic->guid = facts->guid;
	memcpy(nic->open_name, facts->name, sizeof(nic->open_name));
}

static void on_nic_opened(struct keeper_request *request, void *arg, int result) {
	struct nic *nic = container_of(request, struct nic, opening);
	struct fabric *fabric = nic->fabric;
	struct nic_work *work = arg;

	if (result != 0) {
		nic_open_failed(nic, work, result);
		return;
	}
	nic->parts = work->parts;
	work->taken = true;
	nic->open = nic->tried = true;
	nic->lost = nic->refresh_again = false;
	nic->opened++;
	rails_own_changed(fabric);
	nic_note_identity(nic);
	nic->retry_ns = RETRY_NS;
	loop_timer_cancel(fabric->loop, &nic->retry);
	fabric->counters.devices_opened++;
	if (fabric->stopping) {
		nic_close(nic);
		return;
	}
	if (nic->retired) {
		nic_mark_lost(nic, "replaced by another device while it was opened");
		return;
	}
	nic->events = (struct loop_source){
		.fd = device_event_fd(nic->parts.device),
		.events = EPOLLIN,
		.rank = LOOP_OVERLAY,
		.ready = on_device_readable,
	};
	if (loop_add(fabric->loop, &nic->events) != 0) {
		nic_mark_lost(nic, "its events cannot be watched");
		return;
	}
	nic->attaching = true;
	post_lane_request(nic, LANE_REQUEST_ATTACH);
}

void nic_open(struct nic *nic) {
	if (nic->open || nic->retired || nic->fabric->stopping || nic->opening.job != NULL ||
	    nic->closing.job != NULL)
		return;
	nic->opening.ended = on_nic_opened;
	if (nic_run_on_keeper(nic, nic_work_open, &nic->opening, NULL) != 0) {
		nic_set_retry(nic, nic->retry_ns);
		return;
	}
	nic_set_state(nic, FABRIC_DEVICE_OPENING, nic->reason);
}

void nic_attached(struct nic *nic, int err) {
	nic->attaching = false;
	nic->attached = err == 0;
	if (nic->lost || nic->fabric->stopping) {
		nic_close(nic);
	} else if (err != 0) {
		nic_mark_lost(nic, "its worker has no room to poll another device");
	} else {
		// Show the lane in DPDK's telemetry. If there is no room, it is not shown.
		(void)telemetry_add_lane(nic->config.name, nic->parts.lane);
		nic_report_to_pairing(nic);
		nic_register_gpu_page(nic);
	}
}

// Closing.

static void on_nic_closed(struct keeper_request *request, void *arg, int result) {
	struct nic *nic = container_of(request, struct nic, closing);
	struct fabric *fabric = nic->fabric;
	struct nic_work *work = arg;

	if (result != 0) {
		nic->parts = work->parts; // the parts that still exist
		log_event(
			LOG_LEVEL_ERROR, "rdma_device_held", log_str("device", nic->config.name),
			log_errno("error", result)
		);
		nic_set_retry(nic, RETRY_NS);
		return;
	}
	memset(&nic->parts, 0, sizeof(nic->parts));
	nic->open = false;
	nic_set_state(nic, FABRIC_DEVICE_WAITING, fabric->stopping ? "" : nic->reason);
	nic_set_retry(nic, nic->retry_ns);
	fabric_check_stopped(fabric);
}

void nic_close(struct nic *nic) {
	const struct fabric_pair *fabric_pair = nic->fabric->fabric_pairs;

	while (fabric_pair != NULL && fabric_pair->nic != nic)
		fabric_pair = fabric_pair->next;
	if (!nic->open || nic->attaching || nic->offering.job != NULL || fabric_pair != NULL ||
	    probing_uses_nic(nic->fabric, nic))
		return;
	if (nic->attached) {
		nic->attached = false;
		nic->attaching = true; // until the worker has released the lane
		post_lane_request(nic, LANE_REQUEST_DETACH);
		return;
	}
	loop_remove(&nic->events);
	if (nic->closing.job != NULL)
		return;
	keeper_cancel(&nic->refreshing);
	keeper_cancel(&nic->looking);
	telemetry_remove(nic->parts.lane);
	nic->closing.ended = on_nic_closed;
	if (nic_run_on_keeper(nic, nic_work_close, &nic->closing, &nic->parts) != 0)
		nic_set_retry(nic, RETRY_NS);
}

void nic_detached(struct nic *nic, int err) {
	nic->attaching = false;
	nic->attached = err != 0; // the lane still has pairs, whose end will be reported
	nic_close(nic);
}

static void on_nic_retry(struct loop_timer *timer, uint64_t now_ns) {
	struct nic *nic = container_of(timer, struct nic, retry);

	(void)now_ns;
	if (!nic->open)
		nic_open(nic);
	else if (nic->lost || nic->fabric->stopping)
		nic_close(nic);
	else if (nic->refresh_again)
		nic_refresh(nic);
}

void nic_open_now(struct nic *nic) {
	if (nic->open)
		return;
	nic->retry_ns = RETRY_NS;
	nic_open(nic);
}

bool nic_is_closed(const struct nic *nic) {
	return !nic->open && nic->opening.job == NULL && nic->closing.job == NULL;
}

bool nic_has_lane(const struct nic *nic) {
	return nic->open && nic->closing.job == NULL && nic->parts.lane != NULL;
}

static void on_driver_stuck(void *ctx, struct keeper *keeper) {
	struct nic *nic = ctx;

	(void)keeper;
	log_event(
		LOG_LEVEL_ERROR, "rdma_device_stuck", log_str("device", nic->config.name),
		log_str("effect", "a call into its driver does not return")
	);
}

int fabric_nic_init(
	struct fabric *fabric, struct nic *nic, uint32_t place, const struct fabric_device *config
) {
	struct keeper_ops ops = {
		.stuck = on_driver_stuck, .totals = fabric->config.driver_calls, .ctx = nic};
	char name[KEEPER_NAME_BYTES + DEVICE_NAME_MAX];
	int err;

	nic->fabric = fabric;
	nic->place = place;
	nic->worker = place % fabric->config.worker_count;
	nic->config = *config;
	nic->rail_index = RAIL_NONE;
	nic->retry.expired = on_nic_retry;
	nic->retry_ns = RETRY_NS;
	nic->since_ns = nic->begun_ns = loop_now_ns(fabric->loop);
	snprintf(name, sizeof(name), "rdma-%s", nic->config.name);
	err = keeper_create(fabric->loop, name, &ops, &nic->keeper);
	if (err == 0 && config->gpu)
		nic->gpu = gpu_show_get(fabric, config->gpu_ordinal, &err);
	if (err == 0)
		nic_update_pairing(nic);
	else
		nic->keeper = keeper_destroy(nic->keeper);
	return err;
}

// Must be called after the loop has ended. A device that could not be closed is left to its driver,
// and the fabric is left behind.
void fabric_nic_fini(struct nic *nic) {
	struct fabric *fabric = nic->fabric;

	if (fabric == NULL)
		return;
	if (nic->open) {
		fabric->counters.left_behind++;
		telemetry_remove(nic->parts.lane);
		loop_remove(&nic->events);
	}
	loop_timer_cancel(fabric->loop, &nic->retry);
	keeper_cancel(&nic->opening);
	keeper_cancel(&nic->closing);
	keeper_cancel(&nic->refreshing);
	keeper_cancel(&nic->looking);
	keeper_cancel(&nic->offering);
	nic->keeper = keeper_destroy(nic->keeper);
}

void nic_view(const struct nic *nic, struct fabric_device_view *ret_view) {
	*ret_view = (struct fabric_device_view){
		.name = nic->config.name,
		.state = keeper_is_stuck(nic->keeper) ? FABRIC_DEVICE_STUCK : nic->state,
		.since_ns = nic->since_ns,
		.stuck_ns = keeper_is_stuck(nic->keeper) ? keeper_busy_ns(nic->keeper) : 0,
		.reason = nic->reason,
		.worker = nic->worker,
		.open = nic_has_lane(nic),
		.facts = nic->parts.facts,
		.opened = nic->opened,
		.events = nic->event_count,
		.gpu = gpu_view(nic),
	};
	if (!ret_view->open)
		return;
	lane_facts(nic->parts.lane, &ret_view->lane);
	lane_counters(nic->parts.lane, &ret_view->counters);
}
