// SPDX-License-Identifier: BSD-3-Clause
// Tells of pages in GPU memory: which are shown here, and how those of others are read.
#include "client/gpus.h"

#include "client/event_text.h"
#include "client/names.h"
#include "client/paths.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <lib/show.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 16
#define WORDS_BYTES 640 // a reason of the data plane, and what stands around it

// Of a path.

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

static uint64_t number_of(const json_t *object, const char *key) {
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static void time_of(const json_t *gpu, const char *key, char text[static SHOW_BYTES]) {
	uint64_t time_ns = number_of(gpu, key);

	snprintf(text, SHOW_BYTES, "-");
	if (time_ns != 0)
		show_duration(time_ns, text);
}

// One that we know; another node may be newer.
static const char *seen_of(const json_t *gpu) {
	const char *text = json_string_value(json_object_get(gpu, "seen"));

	for (uint32_t n = 0; n < FABRIC_GPU_SEEN_COUNT && text != NULL; n++) {
		const char *name = fabric_gpu_seen_name((enum fabric_gpu_seen)n);

		if (strcmp(name, text) == 0)
			return name;
	}
	return "?";
}

void gpu_path_words(const json_t *gpu, char words[static GPU_WORDS_BYTES]) {
	char age[SHOW_BYTES], probes[SHOW_BYTES];
	char silent[SHOW_BYTES], refused[SHOW_BYTES], wrong[SHOW_BYTES];

	paths_show_age(number_of(gpu, "for_s"), age);
	paths_show_count(number_of(gpu, "silent"), silent);
	paths_show_count(number_of(gpu, "refused"), refused);
	paths_show_count(number_of(gpu, "wrong"), wrong);
	paths_show_count(number_of(gpu, "probes"), probes);
	snprintf(
		words, GPU_WORDS_BYTES,
		"cuda:%" PRIu64 " %s, for %s; %s silent, %s refused, %s wrong of %s",
		number_of(gpu, "ordinal") % 10000, seen_of(gpu), age, silent, refused, wrong, probes
	);
}

void gpu_time_words(const json_t *gpu, char words[static GPU_WORDS_BYTES]) {
	char median[SHOW_BYTES], usual[SHOW_BYTES], p99[SHOW_BYTES];

	time_of(gpu, "median_ns", median);
	time_of(gpu, "usual_ns", usual);
	time_of(gpu, "p99_ns", p99);
	snprintf(words, GPU_WORDS_BYTES, "8 bytes take %s, usually %s, p99 %s", median, usual, p99);
}

// Of a device.

json_t *gpu_device_json(const struct fabric_gpu_view *gpu) {
	if (gpu->state == FABRIC_GPU_NONE)
		return json_null();
	return json_pack(
		"{s:i,s:s,s:s,s:s}", "ordinal", (int)gpu->ordinal, "state",
		fabric_gpu_state_name(gpu->state), "pci", gpu->pci, "reason", gpu->reason
	);
}

void gpu_device_say(
	struct session *session, const char *device, const struct fabric_gpu_view *gpu
) {
	const char *name = device != NULL ? device : "", *colon = device != NULL ? ": " : "";
	char words[WORDS_BYTES];

	switch (gpu->state) {
	case FABRIC_GPU_SHOWN:
		snprintf(
			words, sizeof(words), "%s%speers read memory of cuda:%u, %s, through it",
			name, colon, gpu->ordinal, gpu->pci[0] != '\0' ? gpu->pci : "place unknown"
		);
		break;
	case FABRIC_GPU_AWAITED:
		snprintf(
			words, sizeof(words), "%s%smemory of cuda:%u is awaited", name, colon,
			gpu->ordinal
		);
		break;
	case FABRIC_GPU_MISSING:
	case FABRIC_GPU_STUCK:
		snprintf(
			words, sizeof(words), "%s%sno memory of cuda:%u is shown: %s", name, colon,
			gpu->ordinal, gpu->reason
		);
		break;
	default:
		return;
	}
	event_text_wrap(session, 2, 4, words);
}

// Own devices that are to show some, one after the other.
static bool
next_device(const struct session *session, uint32_t *cursor, struct fabric_device_view *ret_view) {
	const struct client_server *server = session->server;

	while (server->fabric != NULL &&
	       *cursor < server->fabric_calls->device_count(server->fabric)) {
		server->fabric_calls->device_at(server->fabric, (*cursor)++, ret_view);
		if (ret_view->gpu.state != FABRIC_GPU_NONE)
			return true;
	}
	return false;
}

void gpus_say_devices(struct session *session) {
	struct fabric_device_view view;
	uint32_t cursor = 0, said = 0;

	while (next_device(session, &cursor, &view)) {
		if (said++ == 0)
			text_print(&session->out, "\n");
		gpu_device_say(session, view.name, &view.gpu);
	}
}

void gpus_put_devices(const struct session *session, json_t *object) {
	json_t *array = json_array();
	struct fabric_device_view view;
	uint32_t cursor = 0;

	while (next_device(session, &cursor, &view)) {
		json_t *gpu = gpu_device_json(&view.gpu);

		json_object_set_new(gpu, "device", json_string(view.name));
		json_array_append_new(array, gpu);
	}
	json_object_set_new(object, "gpus", array);
}

// Own paths.

static bool next_shown(
	const struct session *session,
	uint64_t peer,
	uint32_t *cursor,
	struct fabric_path_view *ret_view
) {
	const struct client_server *server = session->server;

	while (server->fabric != NULL &&
	       server->fabric_calls->path_next(server->fabric, cursor, ret_view)) {
		if (ret_view->gpu.shown && (peer == 0 || ret_view->peer == peer))
			return true;
	}
	return false;
}

static void say_path(struct session *session, const struct fabric_path_view *view, bool named) {
	char words[2 * DEVICE_NAME_MAX + NAMES_TEXT_BYTES + 2 * GPU_WORDS_BYTES + 16];
	char theirs[DEVICE_NAME_MAX + 1], peer[NAMES_TEXT_BYTES];
	char of_gpu[GPU_WORDS_BYTES], times[GPU_WORDS_BYTES];
	json_t *gpu = gpu_path_json(session, &view->gpu);

	names_text(view->peer_device, strlen(view->peer_device), theirs, sizeof(theirs));
	names_id(session_ras(session), view->peer, peer);
	gpu_path_words(gpu, of_gpu);
	gpu_time_words(gpu, times);
	json_decref(gpu);
	snprintf(
		words, sizeof(words), "%s%s%s>%s: %s; %s", named ? peer : "", named ? ", " : "",
		view->device, theirs, of_gpu, times
	);
	event_text_wrap(session, 2, 4, words);
}

void gpus_say_bad(struct session *session, uint64_t peer, const char *head) {
	struct fabric_path_view view;
	uint32_t cursor = 0, said = 0;

	while (next_shown(session, peer, &cursor, &view) && said < SHOWN_MAX) {
		if (view.gpu.seen <= FABRIC_GPU_GOOD)
			continue;
		if (said++ == 0)
			text_print(&session->out, "%s", head);
		say_path(session, &view, peer == 0);
	}
}

void gpus_put(struct session *session, uint64_t peer, json_t *object) {
	json_t *array = json_array();
	struct fabric_path_view view;
	uint32_t cursor = 0;

	while (next_shown(session, peer, &cursor, &view)) {
		char theirs[DEVICE_NAME_MAX + 1], name[NAMES_TEXT_BYTES];
		json_t *gpu = gpu_path_json(session, &view.gpu);

		names_text(view.peer_device, strlen(view.peer_device), theirs, sizeof(theirs));
		names_id(session_ras(session), view.peer, name);
		json_object_set_new(gpu, "peer", peer_name_json(name));
		json_object_set_new(gpu, "device", json_string(view.device));
		json_object_set_new(gpu, "peer_device", json_string(theirs));
		json_array_append_new(array, gpu);
	}
	json_object_set_new(object, "gpus", array);
}
