// SPDX-License-Identifier: BSD-3-Clause
// Maintenance switches over a restart of all agents, and the orders behind them.
//
// The core merges a switch by its version number, but holds it in memory only. So each agent stores
// the versions of all switches in the file `maintenance`. It raises the switch of each peer that
// joins to the stored version, if that is higher. The file of one member suffices. A file that is
// old loses against a higher version, and no wall clock is involved.
//
// An order (maintenance_detail.c) holds the author, the reason and the end of a switch that is on.
// The file stores the orders as well. Only the time that an agent was stopped is taken from the
// wall clock, and an agent that still runs corrects it.
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
// Least remaining time of an order from the file. The wall clock may be wrong after a boot, and an
// agent that still runs reports the true time.
#define FILE_ORDER_MIN_NS (60 * RAS_NS_PER_SEC)

static void timer_set_at(struct overlay *overlay, uint64_t at_ns) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;

	if (!maintenance->is_due)
		maintenance->is_due =
			loop_timer_set(overlay->loop, &maintenance->timer, at_ns) == 0;
}

void maintenance_set_timer(struct overlay *overlay) {
	timer_set_at(overlay, overlay_now_ns(overlay) + EXCHANGE_DELAY_NS);
}

uint32_t maintenance_version(const struct overlay *overlay, const char *name) {
	return (uint32_t)json_integer_value(json_object_get(overlay->maintenance.versions, name));
}

// If `versions` is full, members have invented names. Then a new name is not stored.
void maintenance_store(struct overlay *overlay, const char *name, uint32_t version) {
	struct maintenance_detail *detail = maintenance_detail_find(overlay, name);
	json_t *versions = overlay->maintenance.versions;

	if (detail != NULL && detail->version < version)
		maintenance_detail_drop(overlay, detail);
	if (json_object_get(versions, name) == NULL && json_object_size(versions) >= RAS_PEERS_MAX)
		return;
	if (json_object_set_new(versions, name, json_integer((json_int_t)version)) == 0)
		overlay->maintenance.is_changed = true;
	maintenance_set_timer(overlay);
}

void overlay_maintenance_exchange(struct overlay *overlay) {
	const json_t *versions = overlay->maintenance.versions;
	struct ras_view view;

	ras_view(overlay->ras, &view);
	if (!view.joined)
		return;
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		struct maintenance_detail *detail;
		char name[RAS_NAME_MAX + 1] = "";
		struct ras_peer peer;
		uint32_t stored;

		if (ras_peer_at(overlay->ras, slot, &peer) != 0 ||
		    (peer.maint_version == 0 && json_object_size(versions) == 0))
			continue;
		memcpy(name, peer.record->name, peer.record->name_length);
		stored = maintenance_version(overlay, name);
		if (stored > peer.maint_version) {
			if (ras_restore_maintenance(
				    overlay->ras, overlay_now_ns(overlay), peer.record->id, stored
			    ) == -ENOMEM)
				timer_set_at(overlay, overlay_now_ns(overlay) + WRITE_INTERVAL_NS);
			detail = maintenance_detail_find(overlay, name);
			if (detail != NULL)
				detail->is_unsent = true; // members lack the order as well
		} else if (stored < peer.maint_version)
			maintenance_store(overlay, name, peer.maint_version);
	}
}

static void maintenance_write(struct overlay *overlay) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;
	uint64_t now_ns = overlay_now_ns(overlay);
	json_t *object, *orders;
	char *text;

	if (overlay->state == NULL)
		return;
	orders = json_array();
	for (uint32_t n = 0; n < maintenance->detail_count; n++)
		json_array_append_new(
			orders, maintenance_detail_json(&maintenance->details[n], now_ns)
		);
	// An older agent reads the versions and ignores the rest.
	object = json_pack(
		"{s:i,s:s,s:O,s:I,s:o}", "version", MAINTENANCE_VERSION, "cluster",
		overlay->remember.cluster, "switches", maintenance->versions, "saved_s",
		(json_int_t)(overlay_realtime_ns(overlay, now_ns) / (int64_t)RAS_NS_PER_SEC),
		"orders", orders
	);
	maintenance->write_ns = now_ns + WRITE_INTERVAL_NS;
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
	maintenance_send_unsent(overlay);
	if (maintenance->is_changed && now_ns >= maintenance->write_ns)
		maintenance_write(overlay);
	if (maintenance->is_changed && overlay->state != NULL)
		timer_set_at(overlay, maintenance->write_ns);
}

void overlay_maintenance_event(struct overlay *overlay, const struct ras_event *event) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;
	struct maintenance_detail *detail;

	switch (event->kind) {
	case RAS_EVENT_FORGOTTEN:
		// A person forgot the peer if the value is 0.
		if (event->value != 0 || json_object_del(maintenance->versions, event->name) != 0)
			return;
		detail = maintenance_detail_find(overlay, event->name);
		if (detail != NULL)
			maintenance_detail_drop(overlay, detail);
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
	maintenance_set_timer(overlay);
}

int overlay_set_maintenance(
	struct overlay *overlay, uint64_t peer_id, const struct overlay_maintenance_order *order
) {
	struct maintenance_detail detail = {.origin = ras_self_id(overlay->ras), .is_unsent = true};
	struct ras_peer peer;
	uint64_t now_ns;
	int err;

	// A stored version that comes later would undo this order, if it is higher.
	overlay_maintenance_exchange(overlay);
	// Read the time after the exchange, because the exchange advances the time of the core.
	now_ns = overlay_now_ns(overlay);
	err = ras_peer_find(overlay->ras, peer_id, &peer);
	if (err != 0 || order == NULL)
		return err != 0 ? err : ras_set_maintenance(overlay->ras, now_ns, peer_id, false);
	memcpy(detail.node, peer.record->name, peer.record->name_length);
	detail.order = *order;
	detail.version = peer.maint_version + 1 + (peer.maint_version & 1);
	detail.begun_ns = (int64_t)now_ns;
	detail.ends_ns = order->for_ns == RAS_NEVER ? RAS_NEVER : now_ns + order->for_ns;
	if (detail.version > RAS_MAINT_VERSION_MAX)
		return -EOVERFLOW;
	if (detail.version <= maintenance_version(overlay, detail.node))
		return -ENOMEM; // the core had no memory for the stored version
	// Change the core before the table. If the core refused an order of the table, the order
	// would begin later.
	err = maintenance_detail_reserve(overlay, detail.node);
	if (err == 0)
		err = ras_restore_maintenance(overlay->ras, now_ns, peer_id, detail.version);
	if (err != 0)
		return err;
	(void)maintenance_detail_put(overlay, &detail); // has room, and the highest version
	maintenance_send_unsent(overlay);
	maintenance_tick_start(overlay, false);
	return 0;
}

// Check a parsed file. Returns 0 with a reference to its switches, or -errno with a reason.
static int maintenance_file_check(
	json_t *object, const char *cluster, const char **ret_reason, json_t **ret_map
) {
	const char *its_cluster, *name;
	json_t *map, *value;
	void *next;
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
	json_object_foreach_safe(map, next, name, value) {
		if (strlen(name) > RAS_NAME_MAX || json_integer_value(value) <= 0 ||
		    json_integer_value(value) > UINT32_MAX)
			return -EBADMSG;
		// An agent of an earlier build stored what a lying member claimed.
		if (json_integer_value(value) > RAS_MAINT_VERSION_MAX)
			json_object_del(map, name);
	}
	*ret_map = json_incref(map);
	return 0;
}

// Insert the orders of a checked file. One that is damaged leaves its node in maintenance without
// an order.
static void orders_load(struct overlay *overlay, const json_t *file) {
	uint64_t now_ns = overlay_now_ns(overlay);
	int64_t now_s = overlay_realtime_ns(overlay, now_ns) / (int64_t)RAS_NS_PER_SEC;
	int64_t saved_s = json_integer_value(json_object_get(file, "saved_s"));
	const int64_t stopped_max_s = (int64_t)(OVERLAY_MAINTENANCE_FOR_MAX_NS / RAS_NS_PER_SEC);
	uint64_t stopped_ns = 0;
	json_t *orders = json_object_get(file, "orders"), *order;
	size_t n;

	// A longer pause means a wrong clock. Even the limit expires every order that has an end.
	if (saved_s < now_s - stopped_max_s)
		stopped_ns = OVERLAY_MAINTENANCE_FOR_MAX_NS;
	else if (saved_s < now_s)
		stopped_ns = (uint64_t)(now_s - saved_s) * RAS_NS_PER_SEC;
	json_array_foreach(orders, n, order) {
		struct maintenance_detail detail;

		if (maintenance_detail_parse(order, now_ns, &detail) != 0)
			continue;
		detail.is_from_file = true;
		detail.begun_ns -= (int64_t)stopped_ns;
		if (detail.ends_ns != RAS_NEVER &&
		    detail.ends_ns < now_ns + stopped_ns + FILE_ORDER_MIN_NS)
			detail.ends_ns = now_ns + FILE_ORDER_MIN_NS;
		else if (detail.ends_ns != RAS_NEVER)
			detail.ends_ns -= stopped_ns;
		(void)maintenance_detail_put(overlay, &detail); // best effort
	}
	overlay->maintenance.is_changed = false;
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
			orders_load(overlay, object);
		}
		json_decref(object);
	}
	free(text);
	overlay_set_notice_consumer(
		overlay, OVERLAY_NOTICE_MAINTENANCE, overlay_maintenance_notice, overlay
	);
	maintenance_tick_start(overlay, true);
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
	loop_timer_cancel(overlay->loop, &overlay->maintenance.tick);
	json_decref(overlay->maintenance.versions);
	free(overlay->maintenance.details);
	overlay->maintenance.versions = NULL;
	overlay->maintenance.details = NULL;
}
