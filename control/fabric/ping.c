// SPDX-License-Identifier: BSD-3-Clause
// Ping over RDMA: uses a ready pair or makes one, then runs reads on the prober of its worker.
//
// A ping that is cancelled during its run is freed when the worker returns the run.
#include "fabric/inside.h"

#include <lib/container.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fabric_ping {
	struct fabric_ping *next;
	struct fabric *fabric;
	struct fabric_ping_request request;
	fabric_ping_fn *ended; // NULL: cancelled
	void *ctx;
	struct pairing_key key;
	struct pairing_waiter waiter;
	struct loop_job begin; // deferred until the pairing has returned
	struct pairing_answer answer;
	uint64_t begun_ns, paired_ns;
	uint32_t worker;
	bool waits;
	bool runs;
	struct probe_run run;
};

static void ping_free(struct fabric_ping *ping) {
	struct fabric_ping **at = &ping->fabric->pings;

	while (*at != ping)
		at = &(*at)->next;
	*at = ping->next;
	ping->fabric->runs--;
	loop_undefer(ping->fabric->loop, &ping->begin);
	histogram_destroy(ping->run.latency);
	free(ping->run.times_ns);
	free(ping);
}

static void ping_end(struct fabric_ping *ping, struct fabric_ping_result *result) {
	fabric_ping_fn *ended = ping->ended;
	void *ctx = ping->ctx;

	result->key = ping->key;
	result->device = ping->fabric->nics[ping->key.device].config.name;
	result->paired_ns = ping->paired_ns;
	result->latency = ping->run.latency;
	result->times_ns = ping->run.times_ns;
	ping->ended = NULL;
	if (ended != NULL)
		ended(ctx, result);
	ping_free(ping);
}

static void ping_end_unpaired(struct fabric_ping *ping, int err) {
	struct fabric_ping_result result = {.err = err, .failure = ping->answer.failure};

	ping_end(ping, &result);
}

// Start the run. The pair is ready, so its path is already in the table.
static void on_ping_begin(struct loop_job *job) {
	struct fabric_ping *ping = container_of(job, struct fabric_ping, begin);
	struct fabric *fabric = ping->fabric;
	const struct fabric_pair *fabric_pair;
	struct worker_record record = {.kind = PROBER_REQUEST_RUN};
	struct pairing_view view;

	if (ping->answer.failure.reason != PAIRING_REASON_NONE) {
		ping_end_unpaired(ping, -ENETDOWN);
		return;
	}
	ping->paired_ns = fabric_clock_ns(fabric) - ping->begun_ns;
	fabric_pair = fabric_pair_find(fabric, ping->answer.generation);
	if (fabric_pair == NULL || fabric_pair->stage != FABRIC_PAIR_IN_LANE ||
	    fabric_pair->path == FABRIC_PATH_NONE) {
		// The pair was ready when it was requested, but failed before the run began.
		ping->answer.failure = (struct pairing_failure){
			.reason = PAIRING_BROKEN,
			.err = -ENETDOWN,
			.text = "the pair failed before it was used",
		};
		if (pairing_find(fabric->pairing, &ping->key, &view) &&
		    view.failure.reason != PAIRING_REASON_NONE)
			ping->answer.failure = view.failure;
		ping_end_unpaired(ping, -ENETDOWN);
		return;
	}
	if (fabric_pair->theirs.pulse.layout != PULSE_LAYOUT) {
		ping_end_unpaired(ping, -ENODEV);
		return;
	}
	ping->worker = fabric_pair->nic->worker;
	ping->run.path = fabric_pair->path;
	ping->run.generation = fabric_pair->generation;
	ping->run.view = fabric_pair->nic->parts.scratch;
	ping->run.first = (struct deadline){ping->request.deadline_ns};
	record.words[0] = (uintptr_t)fabric->config.probers[ping->worker];
	record.words[1] = (uintptr_t)&ping->run;
	ping->runs = true;
	fabric_post(fabric, ping->worker, &record);
}

// Called from inside the pairing, so the run starts from a deferred job.
static void on_pairing_answer(struct pairing_waiter *waiter, const struct pairing_answer *answer) {
	struct fabric_ping *ping = container_of(waiter, struct fabric_ping, waiter);

	ping->waits = false;
	ping->answer = *answer;
	loop_defer(ping->fabric->loop, &ping->begin);
}

void fabric_run_ended(struct fabric *fabric, struct probe_run *run) {
	struct fabric_ping *ping = container_of(run, struct fabric_ping, run);
	const struct fabric_pair *fabric_pair = fabric_pair_find(fabric, ping->answer.generation);
	struct fabric_ping_result result = {
		.in_process = fabric_pair != NULL &&
			      fabric_pair->theirs.responder == DEVICE_RESPONDER_IN_PROCESS,
		.end = run->end,
		.sent = run->sent,
		.answered = run->answered,
		.outcome = run->outcome,
		.cause = run->cause,
		.took_ns = run->took_ns,
	};

	ping->runs = false;
	if (run->answered > 0)
		pairing_report_success(
			fabric->pairing, fabric_clock_ns(fabric), ping->answer.generation
		);
	ping_end(ping, &result);
}

// Find a ready pair that fits the request. It is preferred to a pair that must be made.
static bool find_ready_pair(
	const struct fabric *fabric,
	const struct fabric_ping_request *request,
	struct pairing_key *ret_key
) {
	struct pairing_view view;
	uint32_t cursor = 0;

	while (pairing_next(fabric->pairing, &cursor, &view)) {
		const char *device = fabric->nics[view.key.device].config.name;

		if (view.state != PAIRING_READY || view.key.peer != request->peer ||
		    (request->device[0] != '\0' && strcmp(request->device, device) != 0) ||
		    (request->peer_device[0] != '\0' &&
		     strcmp(request->peer_device, view.key.peer_device) != 0))
			continue;
		*ret_key = view.key;
		return true;
	}
	return false;
}

static const struct nic *choose_own_device(const struct fabric *fabric, const char *name) {
	const struct nic *found = NULL;

	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		const struct nic *nic = &fabric->nics[n];

		if (nic->retired)
			continue;
		if (name[0] != '\0' && strcmp(name, nic->config.name) == 0)
			return nic;
		if (name[0] == '\0' && (found == NULL || (nic->state == FABRIC_DEVICE_UP &&
							  found->state != FABRIC_DEVICE_UP)))
			found = nic;
	}
	return found;
}

// Find the peer's rail that belongs to an own rail which is up and fits the request. Returns false
// if none is known.
static bool choose_rail(
	const struct fabric *fabric,
	const struct fabric_ping_request *request,
	const struct ras_record *record,
	struct pairing_key *ret_key
) {
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		const struct nic *nic = &fabric->nics[n];

		if ((request->device[0] != '\0' ? strcmp(request->device, nic->config.name) == 0
						: nic->state == FABRIC_DEVICE_UP) &&
		    neighbours_find_key(nic, record, ret_key) == RAIL_FOUND)
			return true;
	}
	return false;
}

static int choose_key(
	const struct fabric *fabric,
	const struct fabric_ping_request *request,
	const struct ras_record *record,
	struct pairing_key *ret_key
) {
	struct pairing_key key = {.peer = request->peer};
	const struct nic *nic = choose_own_device(fabric, request->device);
	const char *theirs = request->peer_device;
	struct ras_peer_info info;

	if (find_ready_pair(fabric, request, ret_key))
		return 0;
	if (request->peer_device[0] == '\0' &&
	    request->peer != ras_self_id(overlay_ras(fabric->overlay)) &&
	    choose_rail(fabric, request, record, ret_key))
		return 0;
	ras_record_info(record, &info);
	if (request->peer == ras_self_id(overlay_ras(fabric->overlay)) && nic != NULL)
		theirs = theirs[0] != '\0' ? theirs : nic->config.name;
	else if (theirs[0] == '\0' && info.device_count > 0)
		theirs = info.devices[0].name;
	if (nic == NULL || theirs[0] == '\0')
		return -ENODEV;
	key.device = nic->number;
	snprintf(key.peer_device, sizeof(key.peer_device), "%s", theirs);
	*ret_key = key;
	return 0;
}

static int ping_request_check(
	const struct fabric *fabric,
	const struct fabric_ping_request *request,
	struct ras_peer *ret_peer
) {
	if (request->bytes == 0 || request->bytes > PULSE_BYTES || request->count == 0 ||
	    request->count > FABRIC_PING_COUNT_MAX ||
	    (request->keeps_times && request->count > FABRIC_PING_TIMES_MAX))
		return -EINVAL;
	if (fabric->runs >= FABRIC_PINGS_MAX || fabric->stopping)
		return -EAGAIN;
	if (ras_peer_find(overlay_ras(fabric->overlay), request->peer, ret_peer) != 0)
		return -ENOENT;
	return ret_peer->state == RAS_DEAD || ret_peer->state == RAS_LEFT ? -EHOSTDOWN : 0;
}

static int run_reserve(struct probe_run *run, const struct fabric_ping_request *request) {
	size_t size = request->count * sizeof(*run->times_ns);
	int err = histogram_create(&histogram_shape_latency, &run->latency);

	if (err != 0 || !request->keeps_times)
		return err;
	run->times_ns = malloc(size);
	if (run->times_ns == NULL) {
		histogram_destroy(run->latency);
		return -ENOMEM;
	}
	// Write to the memory once, so that no read has to wait for a page fault.
	memset(run->times_ns, 0xff, size);
	return 0;
}

int fabric_ping_start(
	struct fabric *fabric,
	const struct fabric_ping_request *request,
	fabric_ping_fn *ended,
	void *ctx,
	struct fabric_ping **ret_ping
) {
	struct fabric_ping *ping;
	struct pairing_key key;
	struct ras_peer peer;
	int err = ping_request_check(fabric, request, &peer);

	if (err == 0)
		err = choose_key(fabric, request, peer.record, &key);
	if (err != 0)
		return err;
	ping = calloc(1, sizeof(*ping));
	if (ping == NULL || run_reserve(&ping->run, request) != 0) {
		free(ping);
		return -ENOMEM;
	}
	ping->fabric = fabric;
	ping->request = *request;
	ping->ended = ended;
	ping->ctx = ctx;
	ping->key = key;
	ping->begin.run = on_ping_begin;
	ping->waiter.answered = on_pairing_answer;
	ping->begun_ns = fabric_clock_ns(fabric);
	ping->run.peer = request->peer;
	ping->run.kind = OP_READ;
	ping->run.bytes = request->bytes;
	ping->run.count = request->count;
	ping->run.interval_ns = request->interval_ns;
	ping->run.timeout_ns = request->timeout_ns;
	ping->next = fabric->pings;
	fabric->pings = ping;
	fabric->runs++;
	if (pairing_request(
		    fabric->pairing, ping->begun_ns, &key, request->deadline_ns, &ping->waiter,
		    &ping->answer
	    ))
		loop_defer(fabric->loop, &ping->begin);
	else
		ping->waits = true;
	*ret_ping = ping;
	return 0;
}

void fabric_ping_cancel(struct fabric_ping *ping) {
	struct fabric *fabric = ping->fabric;
	struct worker_record record = {
		.kind = PROBER_REQUEST_STOP,
		.words = {0, (uintptr_t)&ping->run},
	};

	if (ping->ended == NULL)
		return; // already cancelled, or its callback is running
	ping->ended = NULL;
	if (ping->runs) {
		record.words[0] = (uintptr_t)fabric->config.probers[ping->worker];
		fabric_post(fabric, ping->worker, &record);
		return;
	}
	if (ping->waits)
		(void)pairing_cancel(fabric->pairing, &ping->waiter);
	ping_free(ping);
}

// Must be called after the workers have ended. Waiting pings are answered here, because nobody else
// will answer them.
void fabric_pings_fini(struct fabric *fabric) {
	while (fabric->pings != NULL) {
		struct fabric_ping *ping = fabric->pings;

		if (ping->waits)
			(void)pairing_cancel(fabric->pairing, &ping->waiter);
		ping->answer.failure.reason = PAIRING_SHUTDOWN;
		ping_end_unpaired(ping, -ESHUTDOWN);
	}
}
