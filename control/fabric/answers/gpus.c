// SPDX-License-Identifier: BSD-3-Clause
// JSON for pages in GPU memory: pages that this node offers, and reads of other nodes' pages.
#include "fabric/answers/gpus.h"

#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <records/gpus.h>

#include <string.h>

static uint64_t time_or_unknown(uint64_t ns) {
	return ns != 0 ? ns : RECORD_UNKNOWN;
}

json_t *gpu_path_json(struct session *session, const struct fabric_gpu_path *gpu) {
	struct gpu_read_row row;

	if (!gpu->shown)
		return json_null();
	row = (struct gpu_read_row){
		.ordinal = gpu->ordinal,
		.seen = fabric_gpu_seen_name(gpu->seen),
		.for_ns = time_age_ns(session, gpu->since_ns),
		.probes = gpu->probes,
		.silent = gpu->silent,
		.refused = gpu->refused,
		.wrong = gpu->wrong,
		.median_ns = time_or_unknown(gpu->median_ns),
		.usual_ns = time_or_unknown(gpu->usual_ns),
		.p99_ns = time_or_unknown(gpu->p99_ns),
	};
	return record_to_json(&gpu_read_record, &row);
}

json_t *gpu_device_json(const struct fabric_gpu_view *gpu) {
	const struct gpu_page_row row = {
		.ordinal = gpu->ordinal,
		.state = fabric_gpu_state_name(gpu->state),
		.pci = gpu->pci,
		.reason = gpu->reason,
	};

	return gpu->state != FABRIC_GPU_NONE ? record_to_json(&gpu_page_record, &row) : json_null();
}

void gpus_add_devices(const struct session *session, json_t *object) {
	const struct client_server *server = session->server;
	uint32_t count =
		server->fabric != NULL ? server->fabric_calls->device_count(server->fabric) : 0;
	json_t *array = json_array(), *gpu;
	struct fabric_device_view view;
	struct gpu_place_row place = {0};

	for (uint32_t n = 0; n < count; n++) {
		server->fabric_calls->device_at(server->fabric, n, &view);
		if (view.gpu.state == FABRIC_GPU_NONE)
			continue; // the device is not configured to offer a page
		gpu = gpu_device_json(&view.gpu);
		place.device = view.name;
		json_object_update_new(gpu, record_to_json(&gpu_page_place_record, &place));
		json_array_append_new(array, gpu);
	}
	json_object_set_new(object, "gpus", array);
}

void gpus_add_paths(struct session *session, uint64_t peer, json_t *object) {
	const struct client_server *server = session->server;
	char theirs[DEVICE_NAME_MAX + 1], name[NAMES_TEXT_BYTES];
	struct gpu_place_row place = {.peer = name, .peer_device = theirs};
	json_t *array = json_array(), *gpu;
	struct fabric_path_view view;
	uint32_t cursor = 0;

	while (server->fabric != NULL &&
	       server->fabric_calls->path_next(server->fabric, &cursor, &view)) {
		if (!view.gpu.shown || (peer != 0 && view.peer != peer))
			continue;
		place.device = view.device;
		gpu = gpu_path_json(session, &view.gpu);
		names_sanitize_text(
			view.peer_device, strlen(view.peer_device), theirs, sizeof(theirs)
		);
		names_format_id(session_ras(session), view.peer, name);
		json_object_update_new(gpu, record_to_json(&gpu_read_place_record, &place));
		json_array_append_new(array, gpu);
	}
	json_object_set_new(object, "gpus", array);
}
