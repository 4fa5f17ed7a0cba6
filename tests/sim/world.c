// SPDX-License-Identifier: BSD-3-Clause
#include "world.h"

#include "random.h"
#include "verdicts.h"

#include <lib/must.h>
#include <support/fake_sign.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_BUFFER_BYTES (1u << 20)
#define WORLD_USER_TIMEOUT_NS (20 * WORLD_SEC)
#define WORLD_BACKLOG_MAX 128
#define WORLD_STALL_NS (2 * WORLD_SEC)

static void *world_allocate(void *ctx, size_t size) {
	return pool_take_zeroed(ctx, size);
}

static void *world_copy(void *ctx, const void *model, size_t size) {
	return pool_copy(ctx, model, size);
}

static void world_release(void *ctx, void *memory, size_t size) {
	pool_give(ctx, memory, size);
}

static int world_init_net(struct world *world) {
	struct net_config config = {
		.nodes = world->options.nodes,
		.hosts = world->options.hosts,
		.seed = world->options.seed,
		.delay_median_ns = 100000,
		.delay_p99_ns = 1000000,
		.stall_ppm = world->options.stall_ppm,
		.stall_ns = WORLD_STALL_NS,
		.buffer_bytes = WORLD_BUFFER_BYTES,
		.user_timeout_ns = WORLD_USER_TIMEOUT_NS,
		.backlog_max = WORLD_BACKLOG_MAX,
	};

	return net_init(&world->net, &config, &world->queue, &world->trace, &node_sink, world);
}

static int world_init_ids(struct world *world) {
	uint32_t capacity = 16;

	while (capacity < 3 * world->options.nodes)
		capacity *= 2;
	world->id_mask = capacity - 1;
	world->ids = calloc(capacity, sizeof(*world->ids));
	world->id_nodes = calloc(capacity, sizeof(*world->id_nodes));
	return world->ids != NULL && world->id_nodes != NULL ? 0 : -ENOMEM;
}

static void world_add_id(struct world *world, uint64_t id, uint32_t node) {
	uint32_t at = (uint32_t)id & world->id_mask;

	while (world->ids[at] != 0)
		at = (at + 1) & world->id_mask;
	world->ids[at] = id;
	world->id_nodes[at] = node;
}

uint32_t world_node_of_id(const struct world *world, uint64_t id) {
	uint32_t at = (uint32_t)id & world->id_mask;

	while (world->ids[at] != 0 && world->ids[at] != id)
		at = (at + 1) & world->id_mask;
	return world->ids[at] == id ? world->id_nodes[at] : NET_NOBODY;
}

static int world_init_nodes(struct world *world) {
	uint32_t count = world->options.nodes;

	world->nodes = calloc(count, sizeof(*world->nodes));
	world->tenants = calloc(WORLD_PLACES(count), sizeof(*world->tenants));
	if (world->options.remember)
		world->directories = calloc(count, sizeof(*world->directories));
	if (world->nodes == NULL || world->tenants == NULL ||
	    (world->options.remember && world->directories == NULL))
		return -ENOMEM;
	for (uint32_t n = count; n < WORLD_PLACES(count); n++)
		world->tenants[n] = NET_NOBODY;
	for (uint32_t n = 0; n < count; n++) {
		struct node *node = &world->nodes[n];
		int err;

		node->world = world;
		node->index = n;
		node->place = n;
		node->claim = NET_NOBODY;
		if (world->directories != NULL)
			node->directory = &world->directories[n];
		world->tenants[n] = n;
		node->wake_ns = RAS_NEVER;
		node->timer_ns = RAS_NEVER;
		node->start = 1;
		err = node_record(world, n, &node->record);
		if (err != 0)
			return err;
		world_add_id(world, node->record->id, n);
	}
	world->seed_count = count < WORLD_SEEDS ? count : WORLD_SEEDS;
	for (uint32_t n = 0; n < world->seed_count; n++)
		world->seeds[n] = world->nodes[n * count / world->seed_count].record->address;
	return 0;
}

int world_create(const struct world_options *options, struct world **ret_world) {
	struct world *world = calloc(1, sizeof(*world));
	int err;

	if (world == NULL)
		return -ENOMEM;
	world->options = *options;
	world->random = random_stream(options->seed, 2);
	err = pool_create(&world->pool);
	world->memory = (struct ras_memory){
		.allocate = world_allocate,
		.release = world_release,
		.copy = world_copy,
		.ctx = world->pool,
	};
	if (err == 0)
		err = queue_init(&world->queue, world->pool);
	if (err == 0)
		err = trace_init(&world->trace, options->trace);
	if (err == 0)
		err = world_init_net(world);
	if (err == 0)
		err = ras_interner_create(&world->memory, &world->interner);
	if (err == 0)
		ras_interner_set_signer(world->interner, &fake_signer);
	if (err == 0)
		err = world_init_ids(world);
	if (err == 0)
		err = world_init_nodes(world);
	if (err == 0)
		err = measure_init(&world->measure, world);
	if (err == 0)
		err = invariants_init(&world->invariants, world);
	if (err != 0) {
		world_destroy(world);
		return err;
	}
	// Start above 0, which some clocks use for "never".
	world->queue.now_ns = WORLD_SEC;
	*ret_world = world;
	return 0;
}

struct world *world_destroy(struct world *world) {
	if (world == NULL)
		return NULL;
	verdicts_end(world);
	for (uint32_t n = 0; world->nodes != NULL && n < world->options.nodes; n++) {
		struct node *node = &world->nodes[n];

		node->state = NODE_OFF;
		node->ras = ras_destroy(node->ras);
		if (node->record != NULL)
			ras_record_put(world->interner, node->record);
		node_fini(node);
	}
	invariants_fini(&world->invariants);
	measure_fini(&world->measure);
	load_fini(&world->load);
	faults_fini(&world->faults);
	free(world->nodes);
	free(world->directories);
	free(world->tenants);
	free(world->ids);
	free(world->id_nodes);
	if (world->interner != NULL)
		ras_interner_destroy(world->interner);
	if (world->net.nodes != NULL)
		net_fini(&world->net);
	trace_fini(&world->trace);
	if (world->queue.heap != NULL)
		queue_fini(&world->queue);
	pool_destroy(world->pool);
	free(world);
	return NULL;
}

static void world_fetch_node(const struct world *world, uint32_t node) {
	__builtin_prefetch(&world->nodes[node]);
	__builtin_prefetch(&world->net.nodes[node]);
	__builtin_prefetch((const char *)&world->net.nodes[node + 1] - 1);
}

// A tick sends beats on many connections, so fetch several.
static void world_fetch_sockets(const struct world *world, uint32_t node, uint32_t step) {
	const struct socket_map *map = &world->net.nodes[node].sockets;

	for (uint32_t n = 0; n < map->capacity; n++) {
		if (step == 1 && n % 8 == 0)
			__builtin_prefetch(&map->places[n]);
		if (step == 2 && map->places[n].socket != SOCKET_NONE)
			__builtin_prefetch(&world->net.conns[map->places[n].socket >> 1]);
	}
}

static void world_fetch_tick(const struct world *world, uint32_t index, uint32_t step) {
	const struct node *node = &world->nodes[index];

	if (step == 0) {
		world_fetch_node(world, index);
	} else if (node->ras != NULL) {
		ras_prefetch_tick(node->ras, step - 1);
		world_fetch_sockets(world, index, step - 1);
	}
}

static void world_fetch_frame(const struct world *world, uint32_t socket, uint32_t step) {
	const struct net_conn *conn = &world->net.conns[socket >> 1];
	uint32_t node = conn->node[socket & 1];

	// The first steps were taken when the frame was sent. The event's connection may have
	// ended by now, and its slot may have no node.
	if (step > 1 && node != NET_NOBODY && world->nodes[node].ras != NULL)
		ras_prefetch_frame(world->nodes[node].ras, conn->handle[socket & 1], step - 1);
}

// Prefetch the data of coming events, pointer by pointer, while earlier events are handled.
// Thousands of instances do not fit in a cache. In the queue's heap, level n holds events that
// are about 2^n events away. Each turn prefetches one event of each level, so most events are
// prefetched once on their way up.
static void world_fetch(struct world *world) {
	uint32_t turn = world->fetch_turn++;

	for (uint32_t level = 0; level <= RAS_PREFETCH_STEPS; level++) {
		uint32_t first = (1u << level) - 1;
		const struct event *event = queue_hint(&world->queue, first + (turn & first));

		if (event == NULL)
			return;
		if (event->kind == WORLD_TIMER)
			world_fetch_tick(world, event->target, RAS_PREFETCH_STEPS - level);
		else if (event->kind < NET_INBOX)
			world_fetch_frame(world, event->target, RAS_PREFETCH_STEPS - level);
	}
}

void world_run(struct world *world, uint64_t until_ns) {
	struct event *event;

	while (!world->invariants.broken && (event = queue_pop(&world->queue, until_ns)) != NULL) {
		world_fetch(world);
		switch (event->kind) {
		case WORLD_TIMER:
			node_timer(world, event);
			break;
		case WORLD_FAULT:
			fault_happen(world, event);
			break;
		case WORLD_LOAD:
			load_happen(world, event);
			break;
		case WORLD_VERDICT:
			verdicts_happen(world, event);
			break;
		default:
			net_dispatch(&world->net, event);
			break;
		}
		if (world->queue.now_ns >= world->invariants.next_ns)
			invariants_step(world);
	}
	if (!world->invariants.broken && world->queue.now_ns < until_ns)
		world->queue.now_ns = until_ns;
}

// Return whether the node certainly has a vote. It may have none if it was declared dead or
// restarted shortly before `at_ns`, or later.
static bool world_counts(const struct node *node, uint64_t at_ns) {
	uint64_t uncounted_ns = 2 * node->world->options.profile->brake_hold_ns;

	if (node->declared_ns != 0 && node->declared_ns + uncounted_ns > at_ns)
		return false;
	return node->start == 1 || node->started_ns + uncounted_ns <= at_ns;
}

// Return whether the node holds all dead processes as unreachable. Without a majority of the
// earlier view, members are not declared dead by timeout. A node that started after the first of
// them ended does not count.
static bool world_holds_rest(const struct node *node, const struct ras_view *view, uint32_t up) {
	const struct world *world = node->world;
	uint64_t first_ns = UINT64_MAX;
	uint32_t held = 0;
	uint32_t voters = 0;

	for (uint32_t n = 0; n < world->options.nodes; n++) {
		const struct node *other = &world->nodes[n];
		struct ras_peer peer;

		if (other->state != NODE_OFF ||
		    ras_peer_find(node->ras, other->record->id, &peer) != 0 ||
		    peer.state < RAS_ALIVE || peer.state > RAS_UNREACHABLE)
			continue;
		held++;
		if (other->ended_ns < first_ns)
			first_ns = other->ended_ns;
	}
	for (uint32_t n = 0; n < world->options.nodes; n++)
		voters += world->nodes[n].state != NODE_OFF &&
			  world_counts(&world->nodes[n], first_ns);
	return up + held == view->alive && held > 0 && voters <= held;
}

// Return whether the node's view is correct: it has exactly the nodes that are up and agrees with
// `digest`.
static bool world_sees(const struct node *node, uint32_t up, uint64_t *digest) {
	struct ras_view view;

	if (node->state == NODE_OFF)
		return true;
	ras_view(node->ras, &view);
	// A node whose seeds are all gone waits for them, or for a call from another node.
	if (!view.joined && up == 1)
		return true;
	if (!view.joined || (view.alive != up && !world_holds_rest(node, &view, up)))
		return false;
	if (*digest == 0)
		*digest = view.digest;
	return view.digest == *digest;
}

uint32_t world_count_up(const struct world *world) {
	uint32_t up = 0;

	for (uint32_t n = 0; n < world->options.nodes; n++)
		up += world->nodes[n].state != NODE_OFF;
	return up;
}

bool world_is_seed(uint32_t nodes, uint32_t node) {
	uint32_t seeds = nodes < WORLD_SEEDS ? nodes : WORLD_SEEDS;

	for (uint32_t n = 0; n < seeds; n++) {
		if (node == n * nodes / seeds)
			return true;
	}
	return false;
}

bool world_is_reached(const struct world *world, uint32_t node) {
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		if (n != node && world->nodes[n].state == NODE_UP &&
		    net_reaches(&world->net, n, node) && net_reaches(&world->net, node, n))
			return true;
	}
	return false;
}

bool world_has_one_view(struct world *world) {
	uint32_t count = world->options.nodes;
	uint32_t up = world_count_up(world);
	uint64_t digest = 0;

	// Start with the last straggler, since it usually is still behind.
	for (uint32_t n = 0; n < count; n++) {
		uint32_t index = (world->straggler + n) % count;

		if (!world_sees(&world->nodes[index], up, &digest)) {
			world->straggler = index;
			return false;
		}
	}
	return true;
}

// Return whether all nodes that are up hold this node alike: 1 if it is up and alive, or off and
// held by all or none; 0 if it is off, one node holds it, and the others let a name wait; else -1.
static int world_compare_holders(const struct world *world, const struct node *held) {
	enum ras_state last = held->state == NODE_OFF ? RAS_UNREACHABLE : RAS_ALIVE;
	uint32_t holders = 0, waiting = 0, others = 0;

	for (uint32_t n = 0; n < world->options.nodes; n++) {
		const struct node *node = &world->nodes[n];
		struct ras_peer peer;
		bool is_known;

		if (node->state == NODE_OFF)
			continue;
		is_known = ras_peer_find(node->ras, held->record->id, &peer) == 0;
		if (is_known && peer.state >= RAS_ALIVE && peer.state <= last)
			holders++;
		else if (!is_known && ras_counters(node->ras)->names_held > 0)
			waiting++;
		else
			others++;
	}
	if (held->state != NODE_OFF)
		return waiting + others == 0 ? 1 : -1;
	if (holders == 0 || waiting + others == 0)
		return 1;
	return holders == 1 && others == 0 ? 0 : -1;
}

bool world_has_unproven_loss(const struct world *world) {
	bool found = false;

	for (uint32_t n = 0; n < world->options.nodes; n++) {
		int compared = world_compare_holders(world, &world->nodes[n]);

		if (compared < 0)
			return false;
		found = found || compared == 0;
	}
	return found;
}

bool world_await_one_view(struct world *world, uint64_t until_ns, uint64_t step_ns) {
	for (;;) {
		if (world->invariants.broken)
			return false;
		if (world_has_one_view(world))
			return true;
		if (world_now(world) >= until_ns)
			return false;
		world_run(world, world_now(world) + step_ns);
	}
}

uint32_t world_draw_up(struct world *world) {
	uint32_t count = world->options.nodes;
	uint32_t from = random_below(&world->random, count);

	for (uint32_t n = 0; n < count; n++) {
		uint32_t index = (from + n) % count;

		if (world->nodes[index].state == NODE_UP)
			return index;
	}
	return 0;
}
