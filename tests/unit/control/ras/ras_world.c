// SPDX-License-Identifier: BSD-3-Clause
#include "control/ras/ras_world_net.h"

#include <support/cmocka.h>
#include <support/fake_sign.h>

#include <stdio.h>
#include <stdlib.h>

static void *memory_take(void *ctx, size_t size) {
	struct world *world = ctx;

	world->allocations++;
	if (world->memory_spent || world->allocations == world->allocation_fails_at ||
	    (world->allocation_fails_every > 0 &&
	     world->allocations % world->allocation_fails_every == 0))
		return NULL;
	world->allocated_bytes += size;
	return calloc(1, size);
}

static void memory_give(void *ctx, void *memory, size_t size) {
	if (memory != NULL)
		((struct world *)ctx)->allocated_bytes -= size;
	free(memory);
}

// Nodes.

static struct ras_record *
record_of(struct world *world, uint32_t node, const struct world_setup *setup) {
	uint32_t host = setup->pairs ? node / 2 : node;
	struct ras_peer_info info = {
		.start = 1,
		.pid = 100 + node,
		.address_count = 1,
		.addresses = {{
			.family = SOCK_ADDR_V4,
			.port = 7000,
			.address = {10, 0, 0, (uint8_t)(node + 1)},
		}},
	};
	struct ras_record *record;

	fake_key(node, info.key);
	snprintf(info.name, sizeof(info.name), "n%02u", node);
	snprintf(info.host, sizeof(info.host), "h%02u", host);
	if (setup->boots != WORLD_BOOT_UNKNOWN)
		info.boot_id[0] = (uint8_t)(1 + (setup->boots == WORLD_BOOT_OF_HOST ? host : node));
	assert_int_equal(ras_record_from_info(world->interner, &info, &record), 0);
	return record;
}

static void remember(const struct world *world, struct ras *ras) {
	struct sock_addr addresses[WORLD_NODES_MAX];
	uint32_t count = 0;

	for (uint32_t n = 0; n < world->count && n < 64; n++) {
		if ((world->remembers & UINT64_C(1) << n) != 0)
			addresses[count++] = world->nodes[n].record->address;
	}
	assert_int_equal(ras_remembered(ras, addresses, count), 0);
	if (world->seeds_unknown)
		ras_set_seeds_unresolved(ras);
}

static void
node_create(struct world *world, uint32_t node, const struct ras_config *given, bool preload) {
	struct ras_memory memory = {.allocate = memory_take, .release = memory_give, .ctx = world};
	struct sock_addr seeds[WORLD_NODES_MAX];
	struct ras_config config = *given;
	struct ras_record *records[WORLD_NODES_MAX];
	struct ras **ras = &world->nodes[node].ras;
	struct ras_ops ops = world_ops;

	assert_null(*ras);
	if (world->users != NULL) {
		ops.transfer_read = world->users->transfer_read;
		ops.transfer_take = world->users->transfer_take;
		ops.transfer_ended = world->users->transfer_ended;
	}
	for (uint32_t n = 0; n < world->count; n++) {
		seeds[n] = world->nodes[n].record->address;
		records[n] = world->nodes[n].record;
	}
	config.profile = &world->profile;
	config.seeds = seeds;
	config.seed_count = world->seeds;
	config.random_seed = 100 + node;
	config.history_events = 32;
	config.conns_max = 256;
	world->nodes[node].wake_ns = RAS_NEVER;
	memcpy(world->nodes[node].key, config.self.key, sizeof(config.self.key));
	assert_int_equal(
		ras_create(&config, &memory, world->interner, &ops, &world->nodes[node], ras), 0
	);
	if (preload)
		assert_int_equal(ras_preload(*ras, records, world->count), 0);
	remember(world, *ras);
	ras_start(*ras, world->now_ns);
}

void world_start(struct world *world, uint32_t node, uint64_t start, uint32_t name) {
	struct ras_config config = {.cluster = "world"};

	ras_record_info(world->nodes[name].record, &config.self);
	config.self.addresses[0] = world->nodes[node].record->address;
	config.self.start = start;
	config.self.pid += world->pid_offset;
	if (world->key_seed != 0)
		fake_key(world->key_seed, config.self.key);
	node_create(world, node, &config, false);
}

void world_start_as(struct world *world, uint32_t node, const char *cluster, uint16_t version) {
	struct ras_config config = {
		.cluster = cluster,
		.version_min = version,
		.version_max = version,
	};

	ras_record_info(world->nodes[node].record, &config.self);
	config.self.start = 0;
	node_create(world, node, &config, false);
}

struct world *world_create(const struct world_setup *setup) {
	struct world *world = calloc(1, sizeof(*world));
	struct ras_memory memory = {.allocate = memory_take, .release = memory_give, .ctx = world};

	assert_non_null(world);
	world->tail = &world->head;
	world->count = setup->count;
	world->seeds = setup->seeds;
	world->pairs = setup->pairs;
	world->users = setup->users;
	world->now_ns = 1000 * RAS_NS_PER_SEC;
	world->profile = setup->profile != NULL ? *setup->profile : ras_profile_fast;
	world->conns = calloc(WORLD_CONNS_MAX, sizeof(*world->conns));
	assert_non_null(world->conns);
	assert_int_equal(ras_interner_create(&memory, &world->interner), 0);
	ras_interner_set_signer(world->interner, &fake_signer);
	for (uint32_t n = 0; n < world->count; n++) {
		world->nodes[n].world = world;
		world->nodes[n].index = n;
		world->nodes[n].record = record_of(world, n, setup);
	}
	for (uint32_t n = 0; n < world->count && !setup->idle; n++) {
		struct ras_config config = {.cluster = "world"};

		ras_record_info(world->nodes[n].record, &config.self);
		if (world->seeds > 0)
			config.self.start = 0;
		node_create(world, n, &config, world->seeds == 0);
	}
	return world;
}

struct world *world_of(uint32_t count) {
	struct world *world = world_create(&(struct world_setup){.count = count});

	world_pass(world, 5 * RAS_NS_PER_SEC);
	assert_true(world_agrees(world));
	world_mark(world);
	return world;
}

void world_destroy(struct world *world) {
	world_items_free(world);
	for (uint32_t n = 0; n < world->count; n++) {
		ras_destroy(world->nodes[n].ras);
		ras_record_put(world->interner, world->nodes[n].record);
	}
	ras_interner_destroy(world->interner);
	assert_int_equal(world->allocated_bytes, 0);
	free(world->conns);
	free(world);
}

// Faults.

void world_kill(struct world *world, uint32_t node) {
	world->nodes[node].ras = ras_destroy(world->nodes[node].ras);
	world->nodes[node].frozen = false;
	for (uint32_t n = 0; n < world->conn_count; n++) {
		struct world_conn *conn = &world->conns[n];

		for (uint32_t end = 0; end < 2; end++) {
			if (conn->nodes[end] != node || (!conn->live[end] && !conn->live[1 - end]))
				continue;
			conn->live[end] = false;
			world_conn_end(world, n, 1 - end, RAS_CAUSE_RESET, WORLD_DELAY_NS);
		}
	}
}

void world_off(struct world *world, uint32_t node) {
	for (uint32_t n = 0; n < world->count; n++) {
		world_way(world, n, node, WORLD_STALLED);
		world_way(world, node, n, WORLD_STALLED);
	}
	world_kill(world, node);
}

void world_freeze(struct world *world, uint32_t node) {
	world->nodes[node].frozen = true;
}

void world_resume(struct world *world, uint32_t node) {
	world->nodes[node].frozen = false;
}

void world_way(struct world *world, uint32_t from, uint32_t to, enum world_way way) {
	world->ways[from][to] = (uint8_t)way;
	for (uint32_t n = 0; n < world->conn_count && way != WORLD_FULL; n++) {
		struct world_conn *conn = &world->conns[n];

		for (uint32_t end = 0; end < 2; end++) {
			if (conn->wanting[end] && conn->nodes[end] == from &&
			    conn->nodes[1 - end] == to) {
				conn->wanting[end] = false;
				world_conn_writable(world, n, end);
			}
		}
	}
}

void world_split(struct world *world, uint32_t split, enum world_way way) {
	for (uint32_t a = 0; a < split; a++) {
		for (uint32_t b = split; b < world->count; b++) {
			world_way(world, a, b, way);
			world_way(world, b, a, way);
		}
	}
}

void world_reset(struct world *world, uint32_t a, uint32_t b) {
	for (uint32_t n = 0; n < world->conn_count; n++) {
		struct world_conn *conn = &world->conns[n];

		if (!(conn->nodes[0] == a && conn->nodes[1] == b) &&
		    !(conn->nodes[0] == b && conn->nodes[1] == a))
			continue;
		for (uint32_t end = 0; end < 2; end++) {
			if (conn->live[end])
				world_conn_end(world, n, end, RAS_CAUSE_RESET, 0);
		}
	}
}

// Queries.

uint64_t world_id(const struct world *world, uint32_t node) {
	return world->nodes[node].record->id;
}

struct ras_view world_view(const struct world *world, uint32_t node) {
	struct ras_view view;

	ras_view(world->nodes[node].ras, &view);
	return view;
}

enum ras_state world_state(const struct world *world, uint32_t node, uint32_t of) {
	struct ras_peer peer;

	if (ras_peer_find(world->nodes[node].ras, world_id(world, of), &peer) != 0)
		return RAS_UNKNOWN;
	return peer.state;
}

struct link *world_link(const struct world *world, uint32_t node, uint32_t to) {
	const struct ras *ras = world->nodes[node].ras;
	uint32_t slot = peers_find(&ras->peers, world_id(world, to));

	return slot != RAS_NO_SLOT ? link_find(ras, slot) : NULL;
}

bool world_is_linked(const struct world *world, uint32_t node, uint32_t to) {
	const struct link *link = world_link(world, node, to);

	return link != NULL && link_is_good(link);
}

uint32_t world_links(const struct world *world, uint32_t node) {
	const struct ras *ras = world->nodes[node].ras;
	struct ras_link_info info;
	uint32_t ready = 0;

	for (uint32_t n = 0; ras_link_at(ras, n, &info) == 0; n++)
		ready += info.ready;
	return ready;
}

uint32_t world_open_conns(const struct world *world, uint32_t node) {
	return world->nodes[node].ras->conns.open;
}

bool world_agrees(const struct world *world) {
	const struct world_node *first = NULL;
	uint32_t running = 0;

	for (uint32_t n = 0; n < world->count; n++)
		running += world->nodes[n].ras != NULL;
	for (uint32_t n = 0; n < world->count; n++) {
		const struct world_node *node = &world->nodes[n];
		struct ras_view view;

		if (node->ras == NULL)
			continue;
		ras_view(node->ras, &view);
		if (!view.joined || view.alive != running || view.suspect > 0)
			return false;
		if (first == NULL)
			first = node;
		if (peers_digest(&first->ras->peers) != view.digest)
			return false;
	}
	return true;
}

void world_mark(struct world *world) {
	for (uint32_t n = 0; n < world->count; n++)
		world->nodes[n].event_count = 0;
}

uint32_t world_events(const struct world *world, uint32_t node, enum ras_event_kind kind) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < world->nodes[node].event_count; n++)
		count += world->nodes[node].events[n].kind == kind;
	return count;
}

uint32_t world_events_all(const struct world *world, enum ras_event_kind kind) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < world->count; n++)
		count += world_events(world, n, kind);
	return count;
}

const struct ras_event *
world_event(const struct world *world, uint32_t node, enum ras_event_kind kind) {
	for (uint32_t n = world->nodes[node].event_count; n-- > 0;) {
		if (world->nodes[node].events[n].kind == kind)
			return &world->nodes[node].events[n];
	}
	fail_msg("node %u had no event %s", node, ras_event_name(kind));
	return NULL;
}
