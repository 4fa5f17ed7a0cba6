// SPDX-License-Identifier: BSD-3-Clause
// DEVICES: the RDMA devices that this agent probes with.
#include "client/answers.h"
#include "client/gpus.h"
#include "client/listing.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <lib/show.h>

#include <inttypes.h>
#include <stdlib.h>

struct devices {
	struct listing listing;
	struct fabric_device_view rows[FABRIC_DEVICES_MAX];
};

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	const struct fabric_device_view *row = &((struct devices *)work)->rows[n];
	char since[SHOW_BYTES];
	uint64_t failed = 0;
	json_t *object = json_pack(
		"{s:s,s:s,s:s,s:s,s:i,s:b,s:i,s:i}", "name", row->name, "state",
		fabric_device_state_name(row->state), "since",
		time_text(session, row->since_ns, since), "reason", row->reason, "worker",
		(int)row->worker, "open", row->open, "opened", (int)row->opened, "driver_events",
		(int)row->events
	);

	json_object_set_new(object, "gpu", gpu_device_json(&row->gpu));
	if (!row->open || object == NULL)
		return object;
	for (uint32_t outcome = 0; outcome < OP_OUTCOME_COUNT; outcome++)
		failed += outcome != OP_OK ? row->counters.ended[outcome] : 0;
	json_object_update_new(
		object,
		json_pack(
			"{s:s,s:i,s:I,s:i,s:i,s:i,s:i,s:I,s:I,s:I,s:b}", "responder",
			device_responder_name(row->facts.responder), "port",
			(int)row->facts.port.number, "speed_mbps",
			(json_int_t)row->facts.port.speed_mbps, "mtu",
			(int)row->facts.port.active_mtu, "gid_index", row->facts.port.gid_index,
			"pair_max", (int)row->lane.pair_max, "depth", (int)row->lane.depth, "pairs",
			(json_int_t)row->counters.pairs, "submitted",
			(json_int_t)row->counters.submitted, "unsuccessful", (json_int_t)failed,
			"completion_events", row->lane.events
		)
	);
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
