// SPDX-License-Identifier: BSD-3-Clause
// DEVICES: the RDMA devices that this agent probes with.
#include "client/answers.h"
#include "client/listing.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "fabric/answers/gpus.h"

#include <records/devices.h>

#include <stdlib.h>

struct devices {
	struct listing listing;
	struct fabric_device_view rows[FABRIC_DEVICES_MAX];
};

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	const struct fabric_device_view *row = &((struct devices *)work)->rows[n];
	char since[SHOW_BYTES];
	struct agent_device_row device = {
		.name = row->name,
		.state = fabric_device_state_name(row->state),
		.since = time_text(session, row->since_ns, since),
		.reason = row->reason,
		.worker = row->worker,
		.open = row->open,
		.opened = row->opened,
		.driver_events = row->events,
		.gpu = gpu_device_json(&row->gpu),
	};
	json_t *object = record_to_json(&agent_device_record, &device);

	if (!row->open)
		return object;
	device.responder = device_responder_name(row->facts.responder);
	device.port = row->facts.port.number;
	device.speed_mbps = row->facts.port.speed_mbps;
	device.mtu_bytes = row->facts.port.active_mtu;
	device.gid_index = row->facts.port.gid_index;
	device.pair_max = row->lane.pair_max;
	device.depth = row->lane.depth;
	device.pairs = row->counters.pairs;
	device.submitted = row->counters.submitted;
	for (uint32_t outcome = 0; outcome < OP_OUTCOME_COUNT; outcome++)
		device.unsuccessful += outcome != OP_OK ? row->counters.ended[outcome] : 0;
	device.completion_events = row->lane.events;
	json_object_update_new(object, record_to_json(&agent_port_record, &device));
	return object;
}

static const struct listing_ops ops = {.key = "devices", .row_json = row_json};

void answer_devices(struct session *session, const char *rest) {
	const struct client_server *server = session->server;
	struct devices *devices = calloc(1, sizeof(*devices));

	(void)rest;
	if (!session_begin(session, listing_step, free, devices))
		return;
	devices->listing.ops = &ops;
	if (server->fabric == NULL)
		return;
	devices->listing.count = server->fabric_calls->device_count(server->fabric);
	for (uint32_t n = 0; n < devices->listing.count; n++)
		server->fabric_calls->device_at(server->fabric, n, &devices->rows[n]);
}
