// SPDX-License-Identifier: BSD-3-Clause
// Maintenance switches over a restart of all agents.
//
// The core merges a switch by its version number, but holds it in memory only. So each agent stores
// the versions of all switches in the file `maintenance`. It raises the switch of each peer that
// joins to the stored version, if that is higher. The file of one member suffices. A file that is
// old loses against a higher version, and no wall clock is involved.
//
// A version is kept until a person forgets the node: a node may come back after its tombstone
// expired. The version of a switch that is off is kept as well, because an older file may say on.
#include "overlay/inside.h"

#include <lib/container.h>
#include <lib/log.h>

#include <jansson.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAINTENANCE_VERSION 1
#define EXCHANGE_DELAY_NS (100 * RAS_NS_PER_MS) // one pass serves many joins
#define WRITE_INTERVAL_NS RAS_NS_PER_SEC

static void maintenance_set_timer(struct overlay *overlay, uint64_t at_ns) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;

	if (!maintenance->is_due)
		maintenance->is_due =
			loop_timer_set(overlay->loop, &maintenance->timer, at_ns) == 0;
}

// Store the version of one switch. A table is full of names only if members invent them.
static void maintenance_store(struct overlay *overlay, const char *name, uint32_t version) {
	json_t *versions = overlay->maintenance.versions;

	if (json_object_get(versions, name) == NULL && json_object_size(versions) >= RAS_PEERS_MAX)
		return;
	if (json_object_set_new(versions, name, json_integer((json_int_t)version)) == 0)
		overlay->maintenance.is_changed = true;
}

void overlay_maintenance_exchange(struct overlay *overlay) {
	const json_t *versions = overlay->maintenance.versions;
	struct ras_view view;

	ras_view(overlay->ras, &view);
	if (overlay->state == NULL || !view.joined)
		return;
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		char name[RAS_NAME_MAX + 1] = "";
		struct ras_peer peer;
		uint32_t stored;

		if (ras_peer_at(overlay->ras, slot, &peer) != 0 ||
		    (peer.maint_version == 0 && json_object_size(versions) == 0))
			continue;
		memcpy(name, peer.record->name, peer.record->name_length);
		stored = (uint32_t)json_integer_value(json_object_get(versions, name));
		if (stored > peer.maint_version)
			(void)ras_restore_maintenance(
				overlay->ras, overlay_now_ns(overlay), peer.record->id, stored
			); // -ENOMEM: the next exchange tries again
		else if (stored < peer.maint_version)
			maintenance_store(overlay, name, peer.maint_version);
	}
}

static void maintenance_write(struct overlay *overlay) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;
	json_t *object;
	char *text;

	object = json_pack(
		"{s:i,s:s,s:O}", "version", MAINTENANCE_VERSION, "cluster",
		overlay->remember.cluster, "switches", maintenance->versions
	);
	maintenance->write_ns = overlay_now_ns(overlay) + WRITE_INTERVAL_NS;
	text = object != NULL ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(object);
	if (text == NULL)
		return; // the next write may find memory
	maintenance->is_changed = false;
	state_save_text(overlay->state, STATE_MAINTENANCE, text);
}

static void on_maintenance_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct overlay *overlay = container_of(timer, struct overlay, maintenance.timer);
	struct overlay_maintenance *maintenance = &overlay->maintenance;

	maintenance->is_due = false;
	overlay_maintenance_exchange(overlay);
	if (maintenance->is_changed && now_ns >= maintenance->write_ns)
		maintenance_write(overlay);
	if (maintenance->is_changed)
		maintenance_set_timer(overlay, maintenance->write_ns);
}

void overlay_maintenance_event(struct overlay *overlay, const struct ras_event *event) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;

	switch (event->kind) {
	case RAS_EVENT_FORGOTTEN:
		// A person forgot the peer if the value is 0.
		if (event->value != 0 || json_object_del(maintenance->versions, event->name) != 0)
			return;
		maintenance->is_changed = true;
		break;
	case RAS_EVENT_MAINT:
	case RAS_EVENT_JOIN_DONE:
	case RAS_EVENT_JOINED:
	case RAS_EVENT_REJOINED:
		break;
	default:
		return;
	}
	if (overlay->state != NULL)
		maintenance_set_timer(overlay, overlay_now_ns(overlay) + EXCHANGE_DELAY_NS);
}

// Check a parsed file. Returns 0 with a reference to its switches, or -errno with a reason.
static int maintenance_file_check(
	json_t *object, const char *cluster, const char **ret_reason, json_t **ret_map
) {
	const char *its_cluster, *name;
	json_t *map, *value;
	int version;

	*ret_reason = "the file is not a list of maintenance switches";
	if (json_unpack(
		    object, "{s:i,s:s,s:o}", "version", &version, "cluster", &its_cluster,
		    "switches", &map
	    ) != 0 ||
	    !json_is_object(map))
		return -EBADMSG;
	*ret_reason = "the file has an unsupported version";
	if (version != MAINTENANCE_VERSION)
		return -EBADMSG;
	*ret_reason = "the file belongs to another cluster";
	if (strcmp(its_cluster, cluster) != 0)
		return -EXDEV;
	*ret_reason = "the file has too many switches";
	if (json_object_size(map) > RAS_PEERS_MAX)
		return -EBADMSG;
	*ret_reason = "the file has an invalid switch";
	json_object_foreach(map, name, value) {
		if (strlen(name) > RAS_NAME_MAX || json_integer_value(value) <= 0 ||
		    json_integer_value(value) > UINT32_MAX)
			return -EBADMSG;
	}
	*ret_map = json_incref(map);
	return 0;
}

int overlay_maintenance_start(struct overlay *overlay) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;
	const char *reason = "the file cannot be read";
	char *text = NULL;
	json_t *object;
	int err;

	maintenance->timer.expired = on_maintenance_timer;
	maintenance->versions = json_object();
	if (maintenance->versions == NULL)
		return -ENOMEM;
	err = overlay->state != NULL ? state_read_text(overlay->state, STATE_MAINTENANCE, &text)
				     : -ENOENT;
	if (err == 0) {
		json_t *map = NULL;

		object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
		err = maintenance_file_check(object, overlay->remember.cluster, &reason, &map);
		if (err == 0) {
			json_decref(maintenance->versions);
			maintenance->versions = map;
		}
		json_decref(object);
	}
	free(text);
	if (err != 0 && err != -ENOENT)
		log_event(
			LOG_LEVEL_WARN, "maintenance_ignored", log_errno("error", err),
			log_str("reason", reason),
			log_str("effect", "maintenance is known from other agents only")
		);
	return 0;
}

void overlay_maintenance_end(struct overlay *overlay) {
	overlay_maintenance_exchange(overlay);
	if (overlay->maintenance.is_changed)
		maintenance_write(overlay);
	loop_timer_cancel(overlay->loop, &overlay->maintenance.timer);
}

void overlay_maintenance_fini(struct overlay *overlay) {
	loop_timer_cancel(overlay->loop, &overlay->maintenance.timer);
	json_decref(overlay->maintenance.versions);
	overlay->maintenance.versions = NULL;
}
