// SPDX-License-Identifier: BSD-3-Clause
// Every allocation fails once: in joins, deaths, messages, collectives and transfers. Nothing
// leaks, no assertion breaks, and the instances continue.
#include "control/ras/ras_world.h"

#include <ras/collective.h>
#include <ras/relay.h>
#include <ras/transfer.h>
#include <support/cmocka.h>

#define SEC RAS_NS_PER_SEC
#define NODES 4
#define TRANSFER_BYTES 40000

static uint32_t transfers_taken; // completed transfers since the world began

static int on_read(void *ctx, struct ras_transfer_read *read) {
	(void)ctx;
	memset(read->bytes, 7, read->size);
	read->count = read->size;
	return 0;
}

static int on_take(void *ctx, const struct ras_transfer_segment *segment) {
	(void)ctx;
	transfers_taken += segment->last;
	return 0;
}

static void on_ended(void *ctx, const struct ras_transfer_end *end) {
	(void)ctx;
	(void)end;
}

static const struct ras_ops users = {
	.transfer_read = on_read,
	.transfer_take = on_take,
	.transfer_ended = on_ended,
};

// Issue every kind of request, whether it is accepted or not.
static void speak(struct world *world, uint32_t from, uint32_t to) {
	uint8_t payload[1000] = {0};
	struct ras *ras = world->nodes[from].ras;
	struct ras_relay_message message = {
		.destination = world_id(world, to),
		.flags = RAS_RELAY_REPORT | RAS_RELAY_ORDERED,
		.port = 20,
		.payload = payload,
		.size = sizeof(payload),
	};
	struct ras_transfer_request request = {
		.destination = world_id(world, to),
		.port = 30,
		.size = TRANSFER_BYTES,
	};
	uint64_t id;

	ras_relay_send(ras, world->now_ns, &message, &id);
	ras_relay_send(ras, world->now_ns, &message, &id);
	ras_transfer_send(ras, world->now_ns, &request, &id);
	ras_collect(ras, world->now_ns, RAS_COLLECT_COMMS, SEC, &id);
	ras_notice(ras, world->now_ns, RAS_NOTICE_OWN_MIN, payload, 100);
	ras_set_seeds(ras, &world->nodes[0].record->address, 1);
}

static void live(struct world *world) {
	world_pass(world, 10 * SEC);
	for (uint32_t n = 0; n < NODES; n++)
		speak(world, n, (n + 1) % NODES);
	world_way(world, 0, 1, WORLD_FULL); // sent data waits
	world_pass(world, SEC / 2);
	world_way(world, 0, 1, WORLD_OPEN);
	world_kill(world, 3);
	world_pass(world, 2 * SEC);
	speak(world, 1, 3);
	speak(world, 2, 0);
	world_pass(world, 10 * SEC);
	ras_forget(world->nodes[1].ras, world->now_ns, world_id(world, 3));
	ras_set_maintenance(world->nodes[1].ras, world->now_ns, world_id(world, 2), true);
	world_pass(world, 5 * SEC);
}

static struct world *begin(void) {
	struct world *world = world_create(&(struct world_setup
	){.count = NODES, .seeds = 1, .idle = true, .users = &users});

	transfers_taken = 0;
	for (uint32_t n = 0; n < NODES; n++)
		world_start(world, n, 0, n);
	return world;
}

// Run with this allocation failing. Returns false if there were fewer allocations.
static bool lives_without(uint64_t allocation) {
	struct world *world = begin();
	bool failed;

	world->allocation_fails_at = world->allocations + allocation;
	live(world);
	failed = world->allocations >= world->allocation_fails_at;
	world->allocation_fails_at = 0;
	world_pass(world, 60 * SEC);
	if (!world_agrees(world))
		fail_msg("no one view after allocation %u failed", (uint32_t)allocation);
	world_destroy(world);
	return failed;
}

static void any_one_allocation_may_fail(void **state) {
	uint64_t allocation = 1;

	(void)state;
	while (lives_without(allocation))
		allocation++;
	assert_true(allocation > 100);		      // otherwise the instances did nothing
	assert_int_equal(transfers_taken, NODES + 1); // nothing failed in the last run
}

static void every_so_many_may_fail_and_all_recover_afterwards(void **state) {
	(void)state;
	for (uint64_t every = 1; every < 20; every++) {
		struct world *world = begin();

		world->allocation_fails_every = every;
		live(world);
		world->allocation_fails_every = 0;
		world_pass(world, 100 * SEC);
		if (!world_agrees(world))
			fail_msg("no one view after each of %u failed", (uint32_t)every);
		world_destroy(world);
	}
}

UNIT_GROUP(ras_memory) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_one_allocation_may_fail),
		cmocka_unit_test(every_so_many_may_fail_and_all_recover_afterwards),
	};

	return cmocka_run_group_tests_name("ras_memory", tests, NULL, NULL);
}
