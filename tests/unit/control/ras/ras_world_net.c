// SPDX-License-Identifier: BSD-3-Clause
#include "control/ras/ras_world_net.h"

#include "control/ras/ras_ignore.h"

#include <support/cmocka.h>
#include <support/fake_sign.h>

#include <errno.h>
#include <stdlib.h>

enum item_kind {
	ITEM_ACCEPT,
	ITEM_OPENED,
	ITEM_FRAME,
	ITEM_ENDED,
	ITEM_WRITABLE,
};

struct world_item {
	struct world_item *next;
	uint64_t due_ns;
	enum item_kind kind;
	enum ras_cause cause;
	uint32_t conn, end;
	size_t size;
	uint8_t bytes[];
};

static struct world_item *item_add_sized(
	struct world *world,
	uint32_t conn,
	uint32_t end,
	enum item_kind kind,
	uint64_t delay,
	size_t size
) {
	struct world_item *item = calloc(1, sizeof(*item) + size);

	assert_non_null(item);
	item->kind = kind;
	item->size = size;
	item->conn = conn;
	item->end = end;
	item->due_ns = world->now_ns + delay;
	world->conns[conn].items++;
	*world->tail = item;
	world->tail = &item->next;
	return item;
}

static struct world_item *
item_add(struct world *world, uint32_t conn, uint32_t end, enum item_kind kind, uint64_t delay) {
	return item_add_sized(world, conn, end, kind, delay, 0);
}

void world_conn_end(
	struct world *world, uint32_t conn, uint32_t end, enum ras_cause cause, uint64_t delay_ns
) {
	item_add(world, conn, end, ITEM_ENDED, delay_ns)->cause = cause;
}

void world_conn_writable(struct world *world, uint32_t conn, uint32_t end) {
	item_add(world, conn, end, ITEM_WRITABLE, 0);
}

void world_items_free(struct world *world) {
	while (world->head != NULL) {
		struct world_item *item = world->head;

		world->head = item->next;
		free(item);
	}
	world->tail = &world->head;
}

static uint32_t
conn_find_end(const struct world *world, uint32_t node, uint32_t handle, uint32_t *end) {
	for (uint32_t n = world->conn_count; n-- > 0;) {
		const struct world_conn *conn = &world->conns[n];

		for (*end = 0; *end < 2; ++*end) {
			if (conn->live[*end] && conn->nodes[*end] == node &&
			    conn->handles[*end] == handle)
				return n;
		}
	}
	fail_msg("node %u has no connection %u", node, handle);
	return 0;
}

static uint8_t way_of(const struct world *world, const struct world_conn *conn, uint32_t to_end) {
	return world->ways[conn->nodes[1 - to_end]][conn->nodes[to_end]];
}

static uint32_t conn_new(struct world *world) {
	for (uint32_t n = 0; n < world->conn_count; n++) {
		const struct world_conn *conn = &world->conns[n];

		if (!conn->live[0] && !conn->live[1] && conn->items == 0)
			return n;
	}
	assert_in_range(world->conn_count, 0, WORLD_CONNS_MAX - 1);
	return world->conn_count++;
}

static void op_open(void *ctx, uint32_t handle, const struct sock_addr *to) {
	struct world_node *node = ctx;
	struct world *world = node->world;
	uint32_t other = (uint32_t)to->address[3] - 1;
	uint32_t index = conn_new(world);
	struct world_conn *conn = &world->conns[index];

	assert_in_range(other, 0, world->count - 1);
	*conn = (struct world_conn){
		.nodes = {node->index, other},
		.handles = {handle, 0},
		.live = {true, false},
	};
	if (world->ways[node->index][other] == WORLD_STALLED ||
	    world->ways[other][node->index] == WORLD_STALLED)
		return; // the SYN or its answer is lost; the core's own timeout ends the connect
	if (world->nodes[other].ras == NULL || world->ways[node->index][other] == WORLD_REFUSED) {
		bool here = world->pairs && node->index / 2 == other / 2;

		world_conn_end(
			world, index, 0, here ? RAS_CAUSE_EXITED : RAS_CAUSE_REFUSED,
			2 * WORLD_DELAY_NS
		);
		return;
	}
	item_add(world, index, 1, ITEM_ACCEPT, WORLD_DELAY_NS);
	item_add(world, index, 0, ITEM_OPENED, 2 * WORLD_DELAY_NS);
}

static int op_send(void *ctx, uint32_t handle, const void *frame, size_t size) {
	struct world_node *node = ctx;
	struct world *world = node->world;
	uint32_t end = 0;
	uint32_t index = conn_find_end(world, node->index, handle, &end);
	struct world_item *item;

	assert_in_range(size, 1, RAS_FRAME_MAX);
	if (way_of(world, &world->conns[index], 1 - end) == WORLD_FULL) {
		world->conns[index].wanting[end] = true;
		return -EAGAIN;
	}
	item = item_add_sized(world, index, 1 - end, ITEM_FRAME, WORLD_DELAY_NS, size);
	memcpy(item->bytes, frame, size);
	return 0;
}

static void op_close(void *ctx, uint32_t handle, enum ras_close how) {
	struct world_node *node = ctx;
	struct world *world = node->world;
	uint32_t end = 0;
	uint32_t index = conn_find_end(world, node->index, handle, &end);

	(void)how;
	world->conns[index].live[end] = false;
	world_conn_end(world, index, 1 - end, RAS_CAUSE_RESET, WORLD_DELAY_NS);
}

static void op_wake(void *ctx, uint64_t at_ns) {
	((struct world_node *)ctx)->wake_ns = at_ns;
}

static void op_event(void *ctx, const struct ras_event *event) {
	struct world_node *node = ctx;

	assert_in_range(node->event_count, 0, WORLD_EVENTS_MAX - 1);
	node->events[node->event_count++] = *event;
}

static int op_deliver(void *ctx, const struct ras_relay_delivery *delivery) {
	(void)ctx;
	(void)delivery;
	return 0;
}

static void op_notice(void *ctx, uint64_t origin, uint32_t kind, const void *payload, size_t size) {
	struct world_node *node = ctx;

	(void)kind;
	(void)payload;
	(void)size;
	node->notices++;
	node->notice_origin = origin;
}

static void op_sign(void *ctx, const void *bytes, size_t size, uint8_t *ret_signature) {
	fake_sign(((const struct world_node *)ctx)->key, bytes, size, ret_signature);
}

const struct ras_ops world_ops = {
	.open = op_open,
	.send = op_send,
	.close = op_close,
	.wake = op_wake,
	.event = op_event,
	.deliver = op_deliver,
	.report = ignore_report,
	.contribute = ignore_contribute,
	.collected = ignore_collected,
	.notice = op_notice,
	.sign = op_sign,
	.verify = fake_verify_op,
};

// Time.

static bool item_may_arrive(const struct world *world, const struct world_item *item) {
	const struct world_conn *conn = &world->conns[item->conn];

	if (world->nodes[conn->nodes[item->end]].frozen)
		return false;
	// A refusal comes from the network itself, and a full buffer does not delay input.
	return way_of(world, conn, item->end) != WORLD_STALLED || item->kind == ITEM_WRITABLE;
}

static void item_accept(struct world *world, const struct world_item *item, struct ras *ras) {
	struct world_conn *conn = &world->conns[item->conn];
	struct sock_addr from = world->nodes[conn->nodes[0]].record->address;

	from.port = 40000;
	if (!conn->live[0])
		return; // ended meanwhile
	if (ras_conn_accepted(ras, world->now_ns, &from, &conn->handles[1]) == 0)
		conn->live[1] = true;
	else
		world_conn_end(world, item->conn, 0, RAS_CAUSE_RESET, WORLD_DELAY_NS);
}

static void item_arrive(struct world *world, const struct world_item *item) {
	struct world_conn *conn = &world->conns[item->conn];
	struct ras *ras = world->nodes[conn->nodes[item->end]].ras;
	uint32_t handle = conn->handles[item->end];

	if (ras == NULL)
		return;
	if (item->kind == ITEM_ACCEPT) {
		item_accept(world, item, ras);
		return;
	}
	if (!conn->live[item->end])
		return;
	switch (item->kind) {
	case ITEM_OPENED:
		ras_conn_opened(ras, world->now_ns, handle);
		break;
	case ITEM_FRAME:
		ras_conn_frame(ras, world->now_ns, handle, item->bytes, item->size);
		break;
	case ITEM_WRITABLE:
		ras_conn_writable(ras, world->now_ns, handle);
		break;
	default:
		// Until the core learns of the end, it may write, as a resumed node does first.
		ras_conn_ended(ras, world->now_ns, handle, item->cause);
		conn->live[item->end] = false;
	}
}

// Return the earliest item that may arrive (the first sent of several), or NULL.
static struct world_item **item_next(struct world *world) {
	struct world_item **best = NULL;

	for (struct world_item **place = &world->head; *place != NULL; place = &(*place)->next) {
		if (item_may_arrive(world, *place) &&
		    (best == NULL || (*place)->due_ns < (*best)->due_ns))
			best = place;
	}
	return best;
}

static struct world_node *node_next(struct world *world) {
	struct world_node *best = NULL;

	for (uint32_t n = 0; n < world->count; n++) {
		struct world_node *node = &world->nodes[n];

		if (node->ras != NULL && !node->frozen && node->wake_ns != RAS_NEVER &&
		    (best == NULL || node->wake_ns < best->wake_ns))
			best = node;
	}
	return best;
}

static void item_take(struct world *world, struct world_item **place) {
	struct world_item *item = *place;

	*place = item->next;
	if (*place == NULL)
		world->tail = place;
	if (item->due_ns > world->now_ns)
		world->now_ns = item->due_ns;
	item_arrive(world, item);
	world->conns[item->conn].items--;
	free(item);
}

void world_pass(struct world *world, uint64_t ns) {
	uint64_t until = world->now_ns + ns;

	for (;;) {
		struct world_item **place = item_next(world);
		struct world_node *node = node_next(world);
		uint64_t item_ns = place != NULL ? (*place)->due_ns : RAS_NEVER;
		uint64_t wake_ns = node != NULL ? node->wake_ns : RAS_NEVER;

		// Waiting input is processed before the core judges: a rule of ras.h.
		if (wake_ns < world->now_ns)
			wake_ns = world->now_ns;
		if (item_ns > until && wake_ns > until)
			break;
		if (place != NULL && item_ns <= wake_ns) {
			item_take(world, place);
			continue;
		}
		world->now_ns = wake_ns;
		node->wake_ns = RAS_NEVER;
		ras_tick(node->ras, world->now_ns);
	}
	world->now_ns = until;
}
