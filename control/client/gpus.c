// SPDX-License-Identifier: BSD-3-Clause
// JSON for pages in GPU memory: pages that this node offers, and reads of other nodes' pages.
#include "client/gpus.h"

#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <lib/show.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Paths.

static json_t *time_json(uint64_t ns) {
	return ns != 0 ? json_integer((json_int_t)ns) : json_null();
}

json_t *gpu_path_json(struct session *session, const struct fabric_gpu_path *gpu) {
	if (!gpu->shown)
		return json_null();
	return json_pack(
		"{s:i,s:s,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:o}", "ordinal", (int)gpu->ordinal, "seen",
		fabric_gpu_seen_name(gpu->seen), "for_s",
		(json_int_t)(time_age_ns(session, gpu->since_ns) / RAS_NS_PER_SEC), "probes",
		(json_int_t)gpu->probes, "silent", (json_int_t)gpu->silent, "refused",
		(json_int_t)gpu->refused, "wrong", (json_int_t)gpu->wrong, "median_ns",
		time_json(gpu->median_ns), "usual_ns", time_json(gpu->usual_ns), "p99_ns",
		time_json(gpu->p99_ns)
	);
}

// Devices.

json_t *gpu_device_json(const struct fabric_gpu_view *gpu) {
	if (gpu->state == FABRIC_GPU_NONE)
		return json_null();
	return json_pack(
		"{s:i,s:s,s:s,s:s}", "ordinal", (int)gpu->ordinal, "state",
		fabric_gpu_state_name(gpu->state), "pci", gpu->pci, "reason", gpu->reason
	);
}

void gpus_add_devices(const struct session *session, json_t *object) {
	const struct client_server *server = session->server;
	uint32_t count =
		server->fabric != NULL ? server->fabric_calls->device_count(server->fabric) : 0;
	json_t *array = json_array(), *gpu;
	struct fabric_device_view view;

	for (uint32_t n = 0; n < count; n++) {
		server->fabric_calls->device_at(server->fabric, n, &view);
		if (view.gpu.state == FABRIC_GPU_NONE)
			continue; // the device is not configured to offer a page
		gpu = gpu_device_json(&view.gpu);
		json_object_set_new(gpu, "device", json_string(view.name));
		json_array_append_new(array, gpu);
	}
	json_object_set_new(object, "gpus", array);
}

void gpus_add_paths(struct session *session, uint64_t peer, json_t *object) {
	const struct client_server *server = session->server;
	char theirs[DEVICE_NAME_MAX + 1], name[NAMES_TEXT_BYTES];
	json_t *array = json_array(), *gpu;
	struct fabric_path_view view;
	uint32_t cursor = 0;

	while (server->fabric != NULL &&
	       server->fabric_calls->path_next(server->fabric, &cursor, &view)) {
		if (!view.gpu.shown || (peer != 0 && view.peer != peer))
			continue;
		gpu = gpu_path_json(session, &view.gpu);
		names_sanitize_text(
			view.peer_device, strlen(view.peer_device), theirs, sizeof(theirs)
		);
		names_format_id(session_ras(session), view.peer, name);
		json_object_set_new(gpu, "peer", safe_string_json(name));
		json_object_set_new(gpu, "device", json_string(view.device));
		json_object_set_new(gpu, "peer_device", json_string(theirs));
		json_array_append_new(array, gpu);
	}
	json_object_set_new(object, "gpus", array);
}
