// SPDX-License-Identifier: BSD-3-Clause
// Orders of maintenance between members: a new order, a new neighbour, and the end of an order.
//
// The core announces the version of a switch, also to agents that do not know of orders. The order
// itself is a notice to all members. A member that joins, or returns after a partition, receives
// the orders from its neighbours on the ring. The agent that received an order repeats it, for
// members that missed the notice.
//
// Each agent ends an expired order by the next version of the switch, which is the same number on
// all agents. A longer order that was given in time has a higher version and wins.
#include "overlay/inside.h"

#include <lib/container.h>
#include <lib/log.h>

#include <jansson.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TICK_NS RAS_NS_PER_SEC
#define REPEAT_NS (600 * RAS_NS_PER_SEC)
#define ORDERS_PER_MESSAGE 6	  // an order is at most 600 bytes
#define ORDERS_PER_MESSAGE_MAX 32 // accepted

// Format the next orders from *cursor on as one message, which the caller frees. Returns NULL if
// there are no more, or if memory is short.
static char *orders_format(struct overlay *overlay, bool unsent_only, uint32_t *cursor) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;
	json_t *array = json_array();
	char *text = NULL;

	for (; *cursor < maintenance->detail_count; (*cursor)++) {
		struct maintenance_detail *detail = &maintenance->details[*cursor];

		if (unsent_only && !detail->is_unsent)
			continue;
		if (json_array_size(array) == ORDERS_PER_MESSAGE)
			break;
		json_array_append_new(
			array, maintenance_detail_json(detail, overlay_now_ns(overlay))
		);
	}
	if (json_array_size(array) > 0)
		text = json_dumps(array, JSON_COMPACT);
	json_decref(array);
	return text;
}

void maintenance_send_unsent(struct overlay *overlay) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;
	uint32_t cursor = 0, sent = 0;
	char *text;

	while ((text = orders_format(overlay, true, &cursor)) != NULL) {
		int err = overlay_notice_send(
			overlay, OVERLAY_NOTICE_MAINTENANCE, text, strlen(text)
		);

		free(text);
		if (err != 0)
			return; // the next tick tries again
		for (; sent < cursor; sent++)
			maintenance->details[sent].is_unsent = false;
	}
}

// Send all orders to a new neighbour. Best effort: another neighbour sends them as well.
static void orders_send_to(struct overlay *overlay, uint64_t peer) {
	uint32_t cursor = 0;
	int err = 0;
	char *text;

	while (err == 0 && (text = orders_format(overlay, false, &cursor)) != NULL) {
		const struct ras_relay_message message = {
			.destination = peer,
			.class = RAS_RELAY_BULK,
			.flow = OVERLAY_PORT_MAINTENANCE,
			.port = OVERLAY_PORT_MAINTENANCE,
			.payload = text,
			.size = strlen(text),
		};

		err = ras_relay_send(
			overlay->ras, overlay_now_ns(overlay), &message, &(uint64_t){0}
		);
		free(text);
	}
	if (err != 0)
		log_event(
			LOG_LEVEL_DEBUG, "maintenance_unsent", log_u64("peer", peer),
			log_errno("error", err)
		);
}

static bool neighbour_is_known(
	const struct overlay_maintenance *maintenance, uint64_t id, uint64_t incarnation
) {
	for (uint32_t n = 0; n < maintenance->neighbour_count; n++) {
		if (maintenance->neighbours[n].id == id &&
		    maintenance->neighbours[n].incarnation == incarnation)
			return true;
	}
	return false;
}

// Record the present neighbours on the ring. If `greet` is set, send all orders to the new ones.
static void neighbours_update(struct overlay *overlay, bool greet) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;
	struct overlay_maintenance now = {.neighbour_count = 0};
	struct ras_link_info link;
	struct ras_peer peer;

	for (uint32_t n = 0; ras_link_at(overlay->ras, n, &link) == 0; n++) {
		if (!link.ready || ((link.mine | link.theirs) & RAS_USE_RING) == 0 ||
		    now.neighbour_count == MAINTENANCE_NEIGHBOURS_MAX ||
		    ras_peer_find(overlay->ras, link.peer, &peer) != 0)
			continue;
		now.neighbours[now.neighbour_count].id = link.peer;
		now.neighbours[now.neighbour_count++].incarnation = peer.incarnation;
	}
	for (uint32_t n = 0; n < now.neighbour_count && greet; n++) {
		uint64_t id = now.neighbours[n].id;

		if (!neighbour_is_known(maintenance, id, now.neighbours[n].incarnation))
			orders_send_to(overlay, id);
	}
	memcpy(maintenance->neighbours, now.neighbours, sizeof(now.neighbours));
	maintenance->neighbour_count = now.neighbour_count;
}

static void orders_expire(struct overlay *overlay, uint64_t now_ns) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;

	for (uint32_t n = maintenance->detail_count; n-- > 0;) {
		const struct maintenance_detail *detail = &maintenance->details[n];
		char name[RAS_NAME_MAX + 1];

		if (detail->ends_ns > now_ns)
			continue;
		log_event(
			LOG_LEVEL_INFO, "maintenance_expired", log_str("node", detail->node),
			log_str("reason", detail->order.reason), log_str("user", detail->order.user)
		);
		memcpy(name, detail->node, sizeof(name)); // storing the version drops the order
		maintenance_store(overlay, name, detail->version + 1);
	}
}

static void on_tick(struct loop_timer *timer, uint64_t now_ns) {
	struct overlay *overlay = container_of(timer, struct overlay, maintenance.tick);
	struct overlay_maintenance *maintenance = &overlay->maintenance;
	uint64_t self = ras_self_id(overlay->ras);

	(void)now_ns; // overlay_now_ns() is the clock of all times here
	maintenance->ticks = false;
	orders_expire(overlay, overlay_now_ns(overlay));
	if (overlay_now_ns(overlay) >= maintenance->repeat_ns) {
		maintenance->repeat_ns = overlay_now_ns(overlay) + REPEAT_NS;
		for (uint32_t n = 0; n < maintenance->detail_count; n++)
			maintenance->details[n].is_unsent |= maintenance->details[n].origin == self;
	}
	maintenance_send_unsent(overlay);
	neighbours_update(overlay, true);
	if (maintenance->detail_count > 0)
		maintenance_tick_start(overlay, true);
}

void maintenance_tick_start(struct overlay *overlay, bool greet) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;
	uint64_t now_ns = overlay_now_ns(overlay);

	if (maintenance->ticks || maintenance->detail_count == 0)
		return;
	if (!greet) {
		neighbours_update(overlay, false);
		maintenance->repeat_ns = now_ns + REPEAT_NS;
	}
	maintenance->tick.expired = on_tick;
	maintenance->ticks =
		loop_timer_set(overlay->loop, &maintenance->tick, now_ns + TICK_NS) == 0;
}

// Insert one order of a message. Returns false if the order is malformed.
static bool order_receive(struct overlay *overlay, json_t *object, bool spread) {
	const struct maintenance_detail *known;
	struct maintenance_detail detail;
	struct ras_peer peer;

	if (maintenance_detail_parse(object, overlay_now_ns(overlay), &detail) != 0)
		return false;
	// Accept orders only for nodes in the peer table. Otherwise a member could fill the
	// table of orders with invented names.
	if (ras_peer_find(overlay->ras, ras_id(detail.node, strlen(detail.node)), &peer) != 0)
		return true;
	// A member passes on orders of other agents, also of agents that are gone. So an origin
	// that is no member is accepted, but its order replaces no order of the same version.
	known = maintenance_detail_find(overlay, detail.node);
	if ((known == NULL || known->origin != detail.origin) &&
	    ras_peer_find(overlay->ras, detail.origin, &peer) != 0)
		detail.origin = 0;
	if (maintenance_detail_put(overlay, &detail) != 0)
		return true;
	if (spread && known != NULL)
		maintenance_detail_find(overlay, detail.node)->is_unsent = true;
	maintenance_tick_start(overlay, false);
	return true;
}

// Insert the orders of a message. The core may be the caller, so the exchange follows later.
// `spread`: pass on an order that replaced ours, because other members may lack it. A malformed
// order is refused; the other orders of the message count.
static int orders_receive(struct overlay *overlay, const void *bytes, size_t size, bool spread) {
	json_t *array = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, NULL);
	int err = json_is_array(array) && json_array_size(array) <= ORDERS_PER_MESSAGE_MAX
			  ? 0
			  : -EBADMSG;

	for (size_t n = 0; err == 0 && n < json_array_size(array); n++) {
		if (!order_receive(overlay, json_array_get(array, n), spread))
			overlay->maintenance.counters.orders_malformed++;
	}
	overlay->maintenance.counters.orders_malformed += err != 0;
	json_decref(array);
	return err;
}

void overlay_maintenance_notice(void *ctx, uint64_t origin, const void *bytes, size_t size) {
	int err = orders_receive(ctx, bytes, size, false);

	if (err != 0)
		log_event(
			LOG_LEVEL_DEBUG, "maintenance_malformed", log_u64("origin", origin),
			log_errno("error", err)
		);
}

int overlay_maintenance_deliver(struct overlay *overlay, const void *bytes, size_t size) {
	return orders_receive(overlay, bytes, size, true);
}
