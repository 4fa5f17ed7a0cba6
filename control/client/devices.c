// SPDX-License-Identifier: BSD-3-Clause
// DEVICES: the RDMA devices that this agent measures with.
#include "client/answers.h"
#include "client/gpus.h"
#include "client/listing.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <lib/show.h>

#include <inttypes.h>
#include <stdlib.h>

#define REASON_WIDTH 97 // on a line of its own

const char no_device_words[] =
	"This agent measures with no RDMA device: `tocsin devices --explain` says why.\n";

struct devices {
	struct listing listing;
	struct fabric_device_view rows[FABRIC_DEVICES_MAX];
};

static void say_head(struct session *session, void *work) {
	const struct listing *listing = work;

	if (listing->count == 0) {
		text_print(&session->out, "0 devices\n%s", no_device_words);
		return;
	}
	text_print(
		&session->out, "%u device%s\n\n%-16s %-8s %-11s %-10s %-10s %5s %6s %8s %9s\n",
		listing->count, listing->count == 1 ? "" : "s", "DEVICE", "STATE", "FOR",
		"RESPONDER", "SPEED", "MTU", "PAIRS", "OPS", "FAILED"
	);
}

static uint64_t completions_failed(const struct lane_counters *counters) {
	uint64_t count = 0;

	for (uint32_t n = 0; n < OP_OUTCOME_COUNT; n++)
		count += n != OP_OK ? counters->ended[n] : 0;
	return count;
}

static void say_row(struct session *session, void *work, uint32_t n) {
	const struct fabric_device_view *row = &((struct devices *)work)->rows[n];
	char name[SHOW_BYTES], age[SHOW_BYTES], speed[SHOW_BYTES] = "-";

	show_duration(time_age_ns(session, row->since_ns), age);
	if (row->open && row->facts.port.speed_mbps > 0)
		snprintf(speed, sizeof(speed), "%.1f Gb/s", row->facts.port.speed_mbps / 1000.0);
	text_print(
		&session->out,
		"%-16s %-8s %-11s %-10s %-10s %5u %6" PRIu64 " %8" PRIu64 " %9" PRIu64 "\n",
		session_cell(session, row->name, 16, name), fabric_device_state_name(row->state),
		age, row->open ? device_responder_name(row->facts.responder) : "-", speed,
		row->open ? row->facts.port.active_mtu : 0, row->counters.pairs,
		row->counters.submitted, completions_failed(&row->counters)
	);
	if (row->reason[0] != '\0')
		text_print(
			&session->out, "  %.*s\n",
			session->whole ? DEVICE_REASON_MAX : REASON_WIDTH, row->reason
		);
	gpu_device_say(session, NULL, &row->gpu);
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	const struct fabric_device_view *row = &((struct devices *)work)->rows[n];
	json_t *object = json_pack(
		"{s:s,s:s,s:o,s:s,s:i,s:b,s:i,s:i}", "name", row->name, "state",
		fabric_device_state_name(row->state), "since", time_at_json(session, row->since_ns),
		"reason", row->reason, "worker", (int)row->worker, "open", row->open, "opened",
		(int)row->opened, "driver_events", (int)row->events
	);

	json_object_set_new(object, "gpu", gpu_device_json(&row->gpu));
	if (!row->open || object == NULL)
		return object;
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
			(json_int_t)row->counters.submitted, "unsuccessful",
			(json_int_t)completions_failed(&row->counters), "completion_events",
			row->lane.events
		)
	);
	return object;
}

static const struct listing_ops ops = {
	.key = "devices", .head = say_head, .row = say_row, .row_json = row_json};

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
