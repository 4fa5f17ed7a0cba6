// SPDX-License-Identifier: BSD-3-Clause
// Lifecycle of the fabric, messages of the relay, records of workers, and views.
#include "fabric/inside.h"
#include "fabric/probing.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PULSE_INTERVAL_NS (100 * RAS_NS_PER_MS)

// The relay.

static void on_message(
	struct overlay_port *port,
	uint64_t node,
	uint64_t incarnation,
	const void *bytes,
	size_t size
) {
	struct fabric *fabric = container_of(port, struct fabric, port);

	// pairing_receive() counts malformed messages.
	(void)pairing_receive(
		fabric->pairing, loop_clock_ns(fabric->loop), node,
		ras_incarnation_start(incarnation), bytes, size
	);
}

static void
on_undelivered(struct overlay_port *port, uint32_t tag, const struct ras_relay_report *report) {
	struct fabric *fabric = container_of(port, struct fabric, port);

	pairing_undelivered(
		fabric->pairing, loop_clock_ns(fabric->loop), report->destination, tag,
		ras_relay_reason_name(report->reason)
	);
}

// Timers.

static void on_wake(struct loop_timer *timer, uint64_t now_ns) {
	struct fabric *fabric = container_of(timer, struct fabric, wake);

	// now_ns is the start of the loop turn. The pairing may have seen a later time since.
	(void)now_ns;
	pairing_tick(fabric->pairing, loop_clock_ns(fabric->loop));
	fabric_check_stopped(fabric);
}

// Only turns of this loop update the pulse, so a peer that reads it sees whether the loop turns.
static void on_pulse_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct fabric *fabric = container_of(timer, struct fabric, beat);

	for (uint32_t n = 0; n < fabric->config.worker_count; n++) {
		struct worker_progress sign;

		worker_progress(fabric->config.workers[n], &sign);
		if (worker_life_observe(&fabric->lives[n], &sign, now_ns) == 0)
			pulse_beat_worker(fabric->pulse, n);
	}
	pulse_beat(fabric->pulse, ras_self_incarnation(overlay_ras(fabric->overlay)), now_ns);
	must(loop_timer_set(fabric->loop, timer, now_ns + PULSE_INTERVAL_NS) == 0);
}

void fabric_start_pulse(struct fabric *fabric) {
	on_pulse_timer(&fabric->beat, loop_now_ns(fabric->loop));
}

// Workers.

static struct nic *nic_by_lane(struct fabric *fabric, const struct lane *lane) {
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		if (fabric->nics[n].open && fabric->nics[n].parts.lane == lane)
			return &fabric->nics[n];
	}
	return NULL;
}

static void on_pair_event(struct fabric *fabric, const struct worker_record *record) {
	struct fabric_pair *fabric_pair =
		fabric_pair_find_by_pair(fabric, worker_word_to_pointer(record->words[1]));
	struct lane_counters counters;
	struct nic *nic;

	must(fabric_pair != NULL); // a pair in a lane is in the list
	nic = fabric_pair->nic;
	if (record->kind == LANE_EVENT_FAILED)
		fabric_pair_failed(
			fabric_pair, (int)(int64_t)record->words[2],
			(enum ibv_wc_status)record->words[3]
		);
	else if (record->kind == LANE_EVENT_DRAINED)
		fabric_pair_drained(fabric_pair);
	else
		fabric_pair_stuck(fabric_pair);

	// Lose the device if its completion queue cannot be polled: the lane takes no pairs any
	// more. Opening the device again creates another lane.
	if (record->kind != LANE_EVENT_FAILED || nic->lost || !nic_has_lane(nic))
		return;
	lane_counters(nic->parts.lane, &counters);
	if (counters.poll_failures > 0)
		nic_mark_lost(nic, "its completion queue cannot be polled");
}

bool fabric_worker_event(
	struct fabric *fabric, uint32_t worker, const struct worker_record *record
) {
	struct nic *nic;

	(void)worker;
	switch (record->kind) {
	case LANE_EVENT_ATTACHED:
	case LANE_EVENT_DETACHED:
		nic = nic_by_lane(fabric, worker_word_to_pointer(record->words[0]));
		must(nic != NULL); // a device is closed only when it is detached
		if (record->kind == LANE_EVENT_ATTACHED)
			nic_attached(nic, (int)(int64_t)record->words[1]);
		else
			nic_detached(nic, (int)(int64_t)record->words[1]);
		return true;
	case LANE_EVENT_FAILED:
	case LANE_EVENT_DRAINED:
	case LANE_EVENT_STUCK:
		on_pair_event(fabric, record);
		return true;
	case PROBER_EVENT_ENDED:
		fabric_run_ended(fabric, worker_word_to_pointer(record->words[1]));
		return true;
	default:
		return probing_worker_event(fabric, record);
	}
}

// Stopping and destroying.

static void report_stopped(struct loop_job *job) {
	struct fabric *fabric = container_of(job, struct fabric, report_stopped);
	void (*stopped)(void *ctx) = fabric->stopped;

	loop_timer_cancel(fabric->loop, &fabric->stop_deadline);
	fabric->stopped = NULL;
	if (stopped != NULL)
		stopped(fabric->stopped_ctx);
}

static void stop_deadline(struct loop_timer *timer, uint64_t now_ns) {
	struct fabric *fabric = container_of(timer, struct fabric, stop_deadline);

	(void)now_ns;
	log_event(
		LOG_LEVEL_WARN, "rdma_left_behind", log_u64("pairs", fabric->counters.pairs),
		log_str("effect",
			"a call into a driver did not return in time; its memory is not freed")
	);
	report_stopped(&fabric->report_stopped);
}

void fabric_check_stopped(struct fabric *fabric) {
	bool closed = true;

	if (!fabric->stopping || fabric->stopped == NULL)
		return;
	// Close each device independently, so that a hanging driver does not keep the others open.
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		nic_close(&fabric->nics[n]);
		closed = closed && nic_is_closed(&fabric->nics[n]);
	}
	if (closed && gpus_stop(fabric) && fabric->fabric_pairs == NULL &&
	    pairing_is_empty(fabric->pairing))
		loop_defer(fabric->loop, &fabric->report_stopped);
}

void fabric_stop(struct fabric *fabric, void (*done)(void *ctx), void *ctx) {
	uint64_t now_ns = loop_clock_ns(fabric->loop);

	fabric->stopping = true;
	fabric->stopped = done;
	fabric->stopped_ctx = ctx;
	if (fabric->probing != NULL)
		path_baselines_save(fabric->probing, now_ns);
	neighbours_stop(fabric);
	probing_stop(fabric);
	must(loop_timer_set(fabric->loop, &fabric->stop_deadline, now_ns + FABRIC_STOP_NS) == 0);
	pairing_stop(fabric->pairing, now_ns);
	fabric_check_stopped(fabric);
}

struct fabric *fabric_left_behind;

bool fabric_has_left_memory_behind(void) {
	return fabric_left_behind != NULL;
}

struct fabric *fabric_destroy(struct fabric *fabric) {
	bool closed = true;

	if (fabric == NULL)
		return NULL;
	fabric->stopping = true; // no new requests from here on
	neighbours_stop(fabric);
	rails_stop(fabric);
	paths_stop(fabric);
	fabric_pings_fini(fabric);
	probing_stop(fabric);
	posts_fini(fabric);
	overlay_port_close(&fabric->port);
	overlay_contributor(fabric->overlay, RAS_COLLECT_CONNS, NULL, NULL);
	loop_timer_cancel(fabric->loop, &fabric->wake);
	loop_timer_cancel(fabric->loop, &fabric->beat);
	loop_timer_cancel(fabric->loop, &fabric->stop_deadline);
	loop_undefer(fabric->loop, &fabric->report_stopped);
	fabric->pairing = pairing_destroy(fabric->pairing);
	probing_destroy(fabric);
	fabric_pairs_fini(fabric);
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		closed = closed && nic_is_closed(&fabric->nics[n]);
		fabric_nic_fini(&fabric->nics[n]);
	}
	// Free the pages after the devices, because a device may still expose one.
	if (!gpus_fini(fabric) || !closed) {
		fabric->left_next = fabric_left_behind;
		fabric_left_behind = fabric;
		return NULL;
	}
	pulse_destroy(fabric->pulse);
	free(fabric->scratch);
	free(fabric->write_sink);
	free(fabric);
	return NULL;
}

static int fabric_begin(struct fabric *fabric) {
	const struct ras *ras = overlay_ras(fabric->overlay);
	struct pairing_config config;
	int err;

	fabric->start = ras_incarnation_start(ras_self_incarnation(ras));
	config = (struct pairing_config){
		.self = ras_self_id(ras),
		.start = fabric->start != 0 ? fabric->start : 1, // until the join assigns it
		.random_seed = fabric->config.random_seed,
	};
	err = pairing_create(&config, &fabric->ops, &fabric->pairing);

	if (err == 0)
		err = pulse_create(config.self, fabric->config.worker_count, &fabric->pulse);
	if (err != 0)
		return err;
	fabric->scratch = aligned_alloc(4096, FABRIC_SCRATCH_BYTES);
	fabric->write_sink = aligned_alloc(4096, WATCH_WRITE_SINK_BYTES);
	if (fabric->scratch == NULL || fabric->write_sink == NULL)
		return -ENOMEM;
	memset(fabric->scratch, 0, FABRIC_SCRATCH_BYTES);
	memset(fabric->write_sink, 0, WATCH_WRITE_SINK_BYTES);
	err = paths_start(fabric);
	if (err == 0 && fabric->config.probe.on && fabric->config.device_count > 0)
		err = probing_create(fabric);
	for (uint32_t n = 0; n < fabric->config.device_count && err == 0; n++) {
		err = fabric_nic_init(fabric, &fabric->nics[n], n, &fabric->config.devices[n]);
		fabric->nic_count += err == 0;
	}
	return err;
}

int fabric_create(
	struct loop *loop,
	struct overlay *overlay,
	const struct fabric_config *config,
	struct fabric **ret_fabric
) {
	struct fabric *fabric = calloc(1, sizeof(*fabric));
	int err;

	if (fabric == NULL)
		return -ENOMEM;
	must(config->device_count <= FABRIC_DEVICES_MAX);
	must(config->worker_count > 0 && config->worker_count <= FABRIC_WORKERS_MAX);
	fabric->loop = loop;
	fabric->overlay = overlay;
	fabric->config = *config;
	fabric->ops = fabric_pairing_ops;
	fabric->ops.ctx = fabric;
	fabric->wake.expired = on_wake;
	fabric->beat.expired = on_pulse_timer;
	fabric->stop_deadline.expired = stop_deadline;
	fabric->report_stopped.run = report_stopped;
	posts_init(fabric);
	paths_init(fabric);
	neighbours_start(fabric);
	fabric->port = (struct overlay_port){
		.message = on_message,
		.undelivered = on_undelivered,
		.number = OVERLAY_PORT_PAIRING,
	};
	err = fabric_begin(fabric);
	if (err != 0) {
		fabric_destroy(fabric);
		return err;
	}
	overlay_port_open(overlay, &fabric->port);
	rails_start(fabric);
	overlay_contributor(overlay, RAS_COLLECT_CONNS, fabric_contribute, fabric);
	if (config->device_count > 0)
		fabric_start_pulse(fabric);
	for (uint32_t n = 0; n < fabric->nic_count; n++)
		nic_open(&fabric->nics[n]);
	*ret_fabric = fabric;
	return 0;
}

// Views.

uint32_t fabric_device_count(const struct fabric *fabric) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < fabric->nic_count; n++)
		count += !fabric->nics[n].retired;
	return count;
}

void fabric_device_at(
	const struct fabric *fabric, uint32_t n, struct fabric_device_view *ret_view
) {
	uint32_t place = 0;

	must(n < fabric_device_count(fabric));
	while (fabric->nics[place].retired || n-- > 0)
		place++;
	nic_view(&fabric->nics[place], ret_view);
}

// Cursor of own rails without a counterpart, which follow the pairs.
#define MISSING_CURSOR UINT32_C(0x80000000)

static bool missing_rail_next(
	const struct fabric *fabric, uint32_t *cursor, struct fabric_pair_view *ret_view
) {
	uint32_t place = *cursor >= MISSING_CURSOR ? *cursor - MISSING_CURSOR : 0;
	char subnet[DEVICE_SUBNET_TEXT_MAX + 1];
	struct rail_missing missing;
	struct fabric_pair_view view = {0};
	struct pairing_view *pairing = &view.pairing;

	if (!rails_missing_next(fabric, &place, &missing))
		return false;
	*cursor = MISSING_CURSOR + place;
	view.device = fabric->nics[missing.device].config.name;
	pairing->key = (struct pairing_key){missing.device, missing.peer, "-"};
	pairing->state = PAIRING_FAILED;
	pairing->since_ns = missing.since_ns;
	pairing->wanted = true;
	pairing->next_try_ns = PAIRING_NEVER;
	pairing->failure.reason = PAIRING_NO_COMMON_FABRIC;
	pairing->failure.err = -EPROTONOSUPPORT;
	snprintf(
		pairing->failure.text, sizeof(pairing->failure.text),
		"the peer has no rail in the subnet of %s, %s", view.device,
		device_subnet_format(&fabric->nics[missing.device].rail.subnet, subnet)
	);
	*ret_view = view;
	return true;
}

bool fabric_pair_next(
	const struct fabric *fabric, uint32_t *cursor, struct fabric_pair_view *ret_view
) {
	struct fabric_pair_view view = {0};
	const struct fabric_pair *fabric_pair;

	if (*cursor >= MISSING_CURSOR || !pairing_next(fabric->pairing, cursor, &view.pairing))
		return missing_rail_next(fabric, cursor, ret_view);
	view.device = fabric->nics[view.pairing.key.device].config.name;
	fabric_pair = fabric_pair_find(fabric, view.pairing.generation);
	if (fabric_pair != NULL && fabric_pair->stage == FABRIC_PAIR_IN_LANE) {
		view.in_lane = true;
		view.queue_number = pair_queue_number(fabric_pair->pair);
		pair_counters(fabric_pair->pair, &view.counters);
		view.timed = pair_times(fabric_pair->pair, &view.times) == 0;
	}
	*ret_view = view;
	return true;
}

// Add two structs that consist of 64-bit numbers.
static void counters_add(void *sum, const void *more, size_t size) {
	uint64_t *to = sum;
	const uint64_t *from = more;

	for (size_t n = 0; n < size / sizeof(*to); n++)
		to[n] += from[n];
}

void fabric_numbers(const struct fabric *fabric, struct fabric_numbers *ret_numbers) {
	struct fabric_numbers numbers = {
		.counters = fabric->counters,
		.pairing = *pairing_counters(fabric->pairing),
	};

	numbers.counters.devices = fabric_device_count(fabric);
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		const struct keeper_counters *calls = keeper_counters(fabric->nics[n].keeper);
		struct lane_counters lane;

		numbers.counters.devices_up += fabric->nics[n].state == FABRIC_DEVICE_UP;
		numbers.counters.driver_calls += calls->calls;
		numbers.counters.driver_stuck += calls->stuck;
		if (!nic_has_lane(&fabric->nics[n]))
			continue;
		lane_counters(fabric->nics[n].parts.lane, &lane);
		counters_add(&numbers.lanes, &lane, sizeof(lane));
	}
	for (uint32_t n = 0; n < fabric->config.worker_count; n++) {
		struct worker_counters worker;
		uint64_t off_ns = numbers.workers.clock_off_ns;

		worker_counters(fabric->config.workers[n], &worker);
		off_ns = off_ns > worker.clock_off_ns ? off_ns : worker.clock_off_ns;
		counters_add(&numbers.workers, &worker, sizeof(worker));
		numbers.workers.clock_off_ns = off_ns;
	}
	if (fabric->config.soft_counters != NULL)
		fabric->config.soft_counters(&numbers.soft);
	probing_numbers(fabric, &numbers.probes);
	*ret_numbers = numbers;
}

const struct fabric_calls fabric_calls = {
	.device_count = fabric_device_count,
	.device_at = fabric_device_at,
	.pair_next = fabric_pair_next,
	.ping_start = fabric_ping_start,
	.ping_cancel = fabric_ping_cancel,
	.numbers = fabric_numbers,
	.path_next = fabric_path_next,
	.path_row = fabric_path_row,
	.waits = fabric_waits,
};

// Check whether open devices are still listed, after a report that devices came or went.
static void nic_check_ended(struct keeper_request *request, void *arg, int result) {
	struct nic *nic = container_of(request, struct nic, looking);
	const struct nic_work *work = arg;

	if (work->guid == 0)
		nic->guid = 0; // several devices have this GUID, so it identifies none
	// If the check itself failed, the next report of a device change repeats it.
	if (result == -ENODEV && nic->open && !nic->lost)
		nic_mark_lost(nic, "it was removed");
}

void fabric_rescan_devices(struct fabric *fabric) {
	if (fabric->stopping)
		return;
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		struct nic *nic = &fabric->nics[n];

		if (!nic->open) {
			nic_open_now(nic);
			continue;
		}
		if (nic->lost || nic->looking.job != NULL || nic->closing.job != NULL)
			continue;
		nic->looking.ended = nic_check_ended;
		(void)nic_run_on_keeper(nic, nic_work_check_listed, &nic->looking, &nic->parts);
	}
}
