// SPDX-License-Identifier: BSD-3-Clause
// The test's thread is both writer and reader, and reports its own quiescent states.
#include <dataplane/peer_table.h>
#include <lib/rcu.h>
#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct peer_row row_of(uint32_t slot, uint64_t id, enum peer_state state) {
	struct peer_row row = {.id = id, .slot = slot, .state = (uint8_t)state};

	row.name_length = (uint8_t)snprintf(row.name, sizeof(row.name), "n%lu", (unsigned long)id);
	return row;
}

static void set(struct peer_table *table, uint32_t slot, uint64_t id, enum peer_state state) {
	struct peer_row row = row_of(slot, id, state);

	assert_int_equal(peer_table_set(table, &row), 0);
}

static void publish(struct peer_table *table, uint64_t number) {
	struct peer_view view = {.number = number};

	assert_int_equal(peer_table_publish(table, &view), 0);
}

static int table_make(void **state) {
	struct peer_table *table;

	assert_int_equal(peer_table_create(&table), 0);
	rcu_thread_online(0);
	*state = table;
	return 0;
}

static int table_drop(void **state) {
	rcu_thread_offline();
	assert_null(peer_table_destroy(*state));
	return 0;
}

// Make this thread release all versions and wait until they are freed.
static void let_go(void) {
	rcu_thread_offline();
	rcu_reclaimer_drain();
	rcu_thread_online(0);
}

static void new_table_has_an_empty_version(void **state) {
	const struct peer_snapshot *snapshot = peer_table_snapshot(*state);

	assert_non_null(snapshot);
	assert_int_equal(peer_snapshot_view(snapshot)->row_count, 0);
	assert_null(peer_snapshot_row(snapshot, 0));
	assert_null(peer_snapshot_row(snapshot, UINT32_MAX));
	assert_null(peer_snapshot_find(snapshot, 1));
}

static void change_is_seen_when_it_is_published_and_not_before(void **state) {
	const struct peer_row *row;

	set(*state, 3, 77, PEER_ALIVE);
	assert_null(peer_snapshot_row(peer_table_snapshot(*state), 3));
	publish(*state, 9);
	row = peer_snapshot_row(peer_table_snapshot(*state), 3);
	assert_non_null(row);
	assert_int_equal(row->id, 77);
	assert_string_equal(row->name, "n77");
	assert_ptr_equal(peer_snapshot_find(peer_table_snapshot(*state), 77), row);
	assert_int_equal(peer_snapshot_view(peer_table_snapshot(*state))->number, 9);
}

static void version_held_stays_as_it_was_while_others_are_published(void **state) {
	const struct peer_snapshot *held;
	const struct peer_row *row;

	set(*state, 0, 10, PEER_ALIVE);
	publish(*state, 1);
	held = peer_table_snapshot(*state);
	row = peer_snapshot_row(held, 0);
	for (uint32_t n = 0; n < 50; n++) {
		set(*state, 0, 10, n % 2 == 0 ? PEER_SUSPECT : PEER_ALIVE);
		set(*state, 40 + n, 100 + n, PEER_ALIVE);
		publish(*state, 2 + n);
	}
	assert_int_equal(row->state, PEER_ALIVE);
	assert_ptr_equal(peer_snapshot_find(held, 10), row);
	assert_null(peer_snapshot_find(held, 100));
	assert_int_equal(peer_snapshot_view(held)->row_count, 1);
	assert_int_equal(peer_snapshot_view(peer_table_snapshot(*state))->row_count, 51);
}

static void versions_share_the_chunks_that_did_not_change(void **state) {
	const struct peer_row *far, *near;

	set(*state, 0, 10, PEER_ALIVE);
	set(*state, 1000, 20, PEER_ALIVE);
	publish(*state, 1);
	near = peer_snapshot_row(peer_table_snapshot(*state), 0);
	far = peer_snapshot_row(peer_table_snapshot(*state), 1000);
	set(*state, 0, 10, PEER_DEAD);
	publish(*state, 2);
	assert_ptr_not_equal(peer_snapshot_row(peer_table_snapshot(*state), 0), near);
	assert_ptr_equal(peer_snapshot_row(peer_table_snapshot(*state), 1000), far);
}

static void slot_that_goes_to_another_peer_is_found_by_the_new_id_only(void **state) {
	set(*state, 5, 50, PEER_DEAD);
	publish(*state, 1);
	assert_int_equal(peer_table_clear(*state, 5), 0);
	publish(*state, 2);
	assert_null(peer_snapshot_row(peer_table_snapshot(*state), 5));
	assert_null(peer_snapshot_find(peer_table_snapshot(*state), 50));
	assert_int_equal(peer_snapshot_view(peer_table_snapshot(*state))->row_count, 0);
	set(*state, 5, 51, PEER_ALIVE);
	publish(*state, 3);
	// The slot gets another peer directly, without an empty version in between.
	set(*state, 5, 52, PEER_ALIVE);
	publish(*state, 4);
	assert_null(peer_snapshot_find(peer_table_snapshot(*state), 51));
	assert_int_equal(peer_snapshot_find(peer_table_snapshot(*state), 52)->slot, 5);
	assert_int_equal(peer_snapshot_view(peer_table_snapshot(*state))->row_count, 1);
}

static void clearing_what_is_not_there_changes_nothing(void **state) {
	assert_int_equal(peer_table_clear(*state, 0), 0);
	assert_int_equal(peer_table_clear(*state, UINT32_MAX), 0);
	publish(*state, 1);
	assert_int_equal(peer_snapshot_view(peer_table_snapshot(*state))->row_count, 0);
}

static void row_that_is_no_peer_is_refused(void **state) {
	struct peer_row rows[3];

	rows[0] = row_of(PEER_TABLE_SLOTS_MAX, 1, PEER_ALIVE);
	rows[1] = row_of(0, 0, PEER_ALIVE);
	rows[2] = row_of(0, 1, PEER_ALIVE);
	rows[2].name_length = 0;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		assert_int_equal(peer_table_set(*state, &rows[n]), -EINVAL);
	publish(*state, 1);
	assert_int_equal(peer_snapshot_view(peer_table_snapshot(*state))->row_count, 0);
}

// All ids have the same low half, so they form one chain in the index.
static void ids_that_share_a_place_are_told_apart(void **state) {
	const struct peer_snapshot *snapshot;

	for (uint32_t n = 0; n < 200; n++)
		set(*state, n, (uint64_t)(n / 2) << 32 | (n % 2) << 20 | 7, PEER_ALIVE);
	publish(*state, 1);
	snapshot = peer_table_snapshot(*state);
	for (uint32_t n = 0; n < 200; n++) {
		uint64_t id = (uint64_t)(n / 2) << 32 | (n % 2) << 20 | 7;

		assert_int_equal(peer_snapshot_find(snapshot, id)->slot, n);
	}
	assert_null(peer_snapshot_find(snapshot, UINT64_C(100) << 32 | 7));
}

static void ten_thousand_peers_are_found_by_slot_and_id(void **state) {
	const struct peer_snapshot *snapshot;

	for (uint32_t n = 0; n < 10000; n++)
		set(*state, n, (n + 1) * UINT64_C(0x9e3779b97f4a7c15), PEER_ALIVE);
	publish(*state, 1);
	snapshot = peer_table_snapshot(*state);
	assert_int_equal(peer_snapshot_view(snapshot)->slots_max, 10000);
	for (uint32_t n = 0; n < 10000; n++) {
		const struct peer_row *row = peer_snapshot_row(snapshot, n);

		assert_int_equal(row->slot, n);
		assert_ptr_equal(peer_snapshot_find(snapshot, row->id), row);
	}
}

static void reader_that_never_lets_go_stops_publishing_and_not_the_memory(void **state) {
	struct peer_view view = {.number = 0};
	struct peer_table_memory_use memory;
	uint64_t live_bytes;
	int err = 0;

	for (uint32_t n = 0; n < 10000; n++)
		set(*state, n, n + 1, PEER_ALIVE);
	publish(*state, 0);
	let_go();
	peer_table_memory_use(*state, &memory);
	assert_int_equal(memory.waiting_bytes, 0);
	live_bytes = memory.allocated_bytes;

	// From here on this thread is online and never quiescent.
	for (uint32_t n = 0; n < 100000 && err == 0; n++) {
		set(*state, n * 32 % 10000, n * 32 % 10000 + 1, PEER_SUSPECT);
		view.number = n;
		err = peer_table_publish(*state, &view);
	}
	assert_int_equal(err, -EAGAIN);
	peer_table_memory_use(*state, &memory);
	assert_true(memory.allocated_bytes <= 4 * live_bytes + PEER_TABLE_WAITING_BYTES);
	assert_int_equal(memory.refused, 1);

	// The refused changes are not lost.
	set(*state, 9999, 10000, PEER_LEFT);
	let_go();
	publish(*state, 1);
	assert_int_equal(peer_snapshot_find(peer_table_snapshot(*state), 10000)->state, PEER_LEFT);
}

static void table_destroyed_with_changes_never_published_leaks_nothing(void **state) {
	set(*state, 0, 1, PEER_ALIVE);
	publish(*state, 1);
	set(*state, 0, 1, PEER_DEAD);
	set(*state, 5000, 2, PEER_ALIVE); // makes the list of chunks grow
}

static void destroying_no_table_is_fine(void **state) {
	(void)state;
	assert_null(peer_table_destroy(NULL));
}

#define TABLE_TEST(test) cmocka_unit_test_setup_teardown(test, table_make, table_drop)

UNIT_GROUP(peer_table) {
	const struct CMUnitTest tests[] = {
		TABLE_TEST(new_table_has_an_empty_version),
		TABLE_TEST(change_is_seen_when_it_is_published_and_not_before),
		TABLE_TEST(version_held_stays_as_it_was_while_others_are_published),
		TABLE_TEST(versions_share_the_chunks_that_did_not_change),
		TABLE_TEST(slot_that_goes_to_another_peer_is_found_by_the_new_id_only),
		TABLE_TEST(clearing_what_is_not_there_changes_nothing),
		TABLE_TEST(row_that_is_no_peer_is_refused),
		TABLE_TEST(ids_that_share_a_place_are_told_apart),
		TABLE_TEST(ten_thousand_peers_are_found_by_slot_and_id),
		TABLE_TEST(reader_that_never_lets_go_stops_publishing_and_not_the_memory),
		TABLE_TEST(table_destroyed_with_changes_never_published_leaks_nothing),
		cmocka_unit_test(destroying_no_table_is_fine),
	};
	int failed;

	if (rcu_reclaimer_start() != 0 || rcu_thread_register("test", 0) != 0)
		return 1;
	rcu_thread_offline();
	failed = cmocka_run_group_tests_name("peer_table", tests, NULL, NULL);
	rcu_thread_unregister();
	return failed;
}
