// SPDX-License-Identifier: BSD-3-Clause
#include "core/core.h"

#include <support/cmocka.h>
#include <support/heap.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 40
#define SEC RAS_NS_PER_SEC

struct fixture {
	struct ras_memory memory;
	struct ras_interner *interner;
	struct ras_record *records[NODES + 1]; // the last record is in no table
	struct heap heap;
};

static uint32_t copies; // number of copies made by memory_repeat()

static void *memory_repeat(void *ctx, const void *model, size_t size) {
	void *copy = heap_allocate(ctx, size);

	if (copy == NULL)
		return NULL;
	copies++;
	return memcpy(copy, model, size);
}

static int set_up(void **state) {
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->memory = (struct ras_memory)HEAP_MEMORY(&fixture->heap);
	assert_int_equal(ras_interner_create(&fixture->memory, &fixture->interner), 0);
	for (uint32_t n = 0; n < NODES + 1; n++) {
		struct ras_peer_info info = {
			.start = 1,
			.key = {1}, // a record without a key is no news
			.address_count = 1,
			.addresses =
				{{.family = SOCK_ADDR_V4, .port = 1, .address = {10, 0, 0, 1}}},
		};

		// Not in ring order.
		snprintf(info.name, sizeof(info.name), "n%u", n * 7 % (NODES + 1));
		snprintf(info.host, sizeof(info.host), "h%u", n % 5);
		assert_int_equal(
			ras_record_from_info(fixture->interner, &info, &fixture->records[n]), 0
		);
	}
	*state = fixture;
	return 0;
}

static int tear_down(void **state) {
	struct fixture *fixture = *state;

	for (uint32_t n = 0; n < NODES + 1; n++)
		ras_record_put(fixture->interner, fixture->records[n]);
	assert_int_equal(ras_interner_count(fixture->interner), 0);
	ras_interner_destroy(fixture->interner);
	assert_int_equal(fixture->heap.used_bytes, 0);
	free(fixture);
	return 0;
}

static struct ras *instance_of(struct fixture *fixture, uint32_t node) {
	static const struct ras_ops ops = {.open = NULL};
	struct ras_config config = {
		.profile = &ras_profile_fast,
		.cluster = "preload",
		.conns_max = 8,
	};
	struct ras *ras;

	ras_record_info(fixture->records[node], &config.self);
	assert_int_equal(
		ras_create(&config, &fixture->memory, fixture->interner, &ops, NULL, &ras), 0
	);
	return ras;
}

static struct ras_table *table_of(struct fixture *fixture) {
	struct ras_table *table;

	assert_int_equal(
		ras_table_create(
			&fixture->memory, fixture->interner, fixture->records, NODES, &table
		),
		0
	);
	return table;
}

static void assert_equal_tables(struct ras *ras, struct ras *other) {
	assert_int_equal(peers_digest(&ras->peers), peers_digest(&other->peers));
	assert_memory_equal(ras->peers.ranges, other->peers.ranges, sizeof(ras->peers.ranges));
	assert_int_equal(peers_ring_count(&ras->peers), peers_ring_count(&other->peers));
	for (uint32_t n = 0; n < peers_ring_count(&ras->peers); n++)
		assert_ptr_equal(
			ras_entry(ras, peers_ring_at(&ras->peers, n))->record,
			ras_entry(other, peers_ring_at(&other->peers, n))->record
		);
}

static void a_copied_table_equals_one_that_was_given_as_records(void **state) {
	struct fixture *fixture = *state;
	struct ras_table *table = table_of(fixture);
	struct ras *copied = instance_of(fixture, 3);
	struct ras *given = instance_of(fixture, 3);

	assert_int_equal(ras_preload_table(copied, table), 0);
	assert_int_equal(ras_preload(given, fixture->records, NODES), 0);
	assert_equal_tables(copied, given);
	assert_ptr_equal(ras_self(copied)->record, fixture->records[3]);
	for (uint32_t slot = 0; slot < NODES; slot++)
		assert_int_equal(ras_entry(copied, slot)->flags & PEER_SEEN, PEER_SEEN);
	ras_destroy(copied);
	ras_destroy(given);
	ras_table_destroy(table);
}

static void a_copy_outlives_the_table_and_changes_alone(void **state) {
	struct fixture *fixture = *state;
	struct ras_table *table = table_of(fixture);
	struct ras *changed = instance_of(fixture, 0);
	struct ras *same = instance_of(fixture, 1);
	struct peer_news news = {
		.id = fixture->records[2]->id,
		.incarnation = ras_incarnation(1, 0),
		.state = RAS_DEAD,
	};
	enum peers_change change;
	uint64_t digest;
	uint32_t slot;

	assert_int_equal(ras_preload_table(changed, table), 0);
	assert_int_equal(ras_preload_table(same, table), 0);
	ras_table_destroy(table);
	digest = peers_digest(&same->peers);
	assert_int_equal(peers_merge(&changed->peers, &news, SEC, &change, &slot), 0);
	assert_int_equal(change, PEERS_DEAD);
	news.id = fixture->records[NODES]->id;
	news.record = fixture->records[NODES];
	news.state = RAS_ALIVE;
	assert_int_equal(peers_merge(&changed->peers, &news, SEC, &change, &slot), 0);
	assert_int_equal(change, PEERS_JOINED);
	assert_int_equal(peers_ring_count(&changed->peers), NODES);
	assert_int_equal(peers_ring_count(&same->peers), NODES);
	assert_int_equal(peers_digest(&same->peers), digest);
	assert_int_not_equal(peers_digest(&changed->peers), digest);
	assert_int_equal(peers_find(&same->peers, news.id), RAS_NO_SLOT);
	ras_destroy(changed);
	ras_destroy(same);
}

static void whoever_is_not_in_a_table_does_not_take_it(void **state) {
	struct fixture *fixture = *state;
	struct ras_table *table = table_of(fixture);
	struct ras *ras = instance_of(fixture, NODES);

	assert_int_equal(ras_preload_table(ras, table), -ENOENT);
	assert_int_equal(peers_ring_count(&ras->peers), 1);
	ras_destroy(ras);
	ras_table_destroy(table);
}

static void without_memory_no_table_is_made_and_none_is_taken(void **state) {
	struct fixture *fixture = *state;
	struct ras_table *table = NULL;
	struct ras *ras = instance_of(fixture, 5);
	size_t bytes = fixture->heap.used_bytes;
	uint32_t refused = 0;

	for (heap_leave(&fixture->heap, 0);
	     ras_table_create(
		     &fixture->memory, fixture->interner, fixture->records, NODES, &table
	     ) != 0;
	     heap_leave(&fixture->heap, ++refused)) {
		assert_null(table);
		assert_int_equal(fixture->heap.used_bytes, bytes);
	}
	assert_in_range(refused, 4, 8);
	bytes = fixture->heap.used_bytes;
	refused = 0;
	for (heap_leave(&fixture->heap, 0); ras_preload_table(ras, table) != 0;
	     heap_leave(&fixture->heap, ++refused)) {
		assert_int_equal(fixture->heap.used_bytes, bytes);
		assert_int_equal(peers_ring_count(&ras->peers), 1);
		assert_false(ras->preloaded);
	}
	assert_int_equal(refused, 3); // allocations for entries, index and ring
	heap_refill(&fixture->heap);
	ras_destroy(ras);
	ras_table_destroy(table);
}

static void memory_that_can_copy_is_asked_to(void **state) {
	struct fixture *fixture = *state;
	struct ras_table *table = table_of(fixture);
	struct ras *ras;

	fixture->memory.copy = memory_repeat;
	ras = instance_of(fixture, 5);
	heap_leave(&fixture->heap, 2);
	assert_int_equal(ras_preload_table(ras, table), -ENOMEM);
	heap_refill(&fixture->heap);
	copies = 0;
	assert_int_equal(ras_preload_table(ras, table), 0);
	assert_int_equal(copies, 3);
	ras_destroy(ras);
	ras_table_destroy(table);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

UNIT_GROUP(ras_preload) {
	const struct CMUnitTest tests[] = {
		TEST(whoever_is_not_in_a_table_does_not_take_it),
		TEST(without_memory_no_table_is_made_and_none_is_taken),
		TEST(memory_that_can_copy_is_asked_to),
		TEST(a_copied_table_equals_one_that_was_given_as_records),
		TEST(a_copy_outlives_the_table_and_changes_alone),
	};

	return cmocka_run_group_tests_name("ras_preload", tests, NULL, NULL);
}
