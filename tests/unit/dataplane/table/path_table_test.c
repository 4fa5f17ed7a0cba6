// SPDX-License-Identifier: BSD-3-Clause
// The test's thread is both writer and reader, and reports its own quiescent states.
#include <dataplane/path_table.h>
#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>
#include <support/rcu_group.h>

#include <errno.h>
#include <poll.h>

static void set(struct path_table *table, uint32_t slot, uint64_t peer) {
	struct path_row row = {.peer = peer, .pair = slot, .generation = 1};

	assert_int_equal(path_table_set(table, slot, &row), 0);
}

static uint64_t publish(struct path_table *table) {
	uint64_t version;

	assert_int_equal(path_table_publish(table, &version), 0);
	return version;
}

static const struct path_row *seen(struct path_table *table, uint32_t slot) {
	return path_snapshot_row(path_table_snapshot(table), slot);
}

static bool is_readable(struct path_table *table) {
	struct pollfd fd = {.fd = path_table_fd(table), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static void let_go(void) {
	rcu_thread_offline();
	rcu_reclaimer_drain();
	rcu_thread_online(0);
}

static int table_make(void **state) {
	struct path_table *table;

	assert_int_equal(path_table_create(&table), 0);
	rcu_thread_online(0);
	*state = table;
	return 0;
}

static int table_drop(void **state) {
	rcu_thread_offline();
	assert_null(path_table_destroy(*state));
	return 0;
}

static void new_table_has_no_paths(void **state) {
	assert_null(seen(*state, 0));
	assert_null(seen(*state, UINT32_MAX));
	assert_null(path_table_next_row(*state, 0));
}

static void path_is_seen_when_it_is_published_and_not_before(void **state) {
	set(*state, 5, 77);
	assert_null(seen(*state, 5));
	assert_int_equal(path_table_next_row(*state, 5)->peer, 77);
	publish(*state);
	assert_int_equal(seen(*state, 5)->peer, 77);
	assert_null(seen(*state, 4));
}

static void version_held_keeps_the_path_that_was_taken_away(void **state) {
	const struct path_snapshot *held;

	set(*state, 1, 11);
	set(*state, 2, 22);
	publish(*state);
	held = path_table_snapshot(*state);
	assert_int_equal(path_table_clear(*state, 1), 0);
	publish(*state);
	assert_int_equal(path_snapshot_row(held, 1)->peer, 11);
	assert_null(seen(*state, 1));
	assert_int_equal(seen(*state, 2)->peer, 22);
}

static void version_is_settled_only_when_no_reader_can_hold_what_it_replaced(void **state) {
	uint64_t version;

	set(*state, 1, 11);
	version = publish(*state);
	rcu_thread_quiescent(0);
	let_go();
	assert_true(path_table_oldest_in_use(*state) >= version);
	assert_int_equal(path_table_clear(*state, 1), 0);
	version = publish(*state);
	// This thread is online and still holds the old version.
	assert_true(path_table_oldest_in_use(*state) < version);
	assert_false(is_readable(*state));
	let_go();
	assert_true(is_readable(*state));
	assert_true(path_table_oldest_in_use(*state) >= version);
	assert_false(is_readable(*state));
}

static void nothing_to_publish_is_the_present_version(void **state) {
	uint64_t version;

	set(*state, 1, 11);
	version = publish(*state);
	assert_int_equal(publish(*state), version);
	assert_int_equal(path_table_clear(*state, 3), 0); // the slot is empty already
	assert_int_equal(publish(*state), version);
}

static void readers_that_hold_too_many_versions_stop_publishing_until_they_let_go(void **state) {
	uint64_t version;
	uint32_t n = 0;

	for (; n < PATH_TABLE_WAITING_MAX; n++) {
		set(*state, 1, 100 + n);
		publish(*state);
	}
	set(*state, 1, 999);
	assert_int_equal(path_table_publish(*state, &version), -EAGAIN);
	assert_int_equal(seen(*state, 1)->peer, 100 + n - 1);
	let_go();
	publish(*state);
	assert_int_equal(seen(*state, 1)->peer, 999);
}

static void row_that_cannot_be_is_refused(void **state) {
	struct path_row row = {.peer = 1};

	assert_int_equal(path_table_set(*state, PATH_TABLE_ROWS_MAX, &row), -EINVAL);
	row.peer = 0;
	assert_int_equal(path_table_set(*state, 0, &row), -EINVAL);
	assert_int_equal(path_table_clear(*state, PATH_TABLE_ROWS_MAX), -EINVAL);
}

#define TABLE_TEST(name) cmocka_unit_test_setup_teardown(name, table_make, table_drop)

UNIT_GROUP(path_table) {
	const struct CMUnitTest tests[] = {
		TABLE_TEST(new_table_has_no_paths),
		TABLE_TEST(path_is_seen_when_it_is_published_and_not_before),
		TABLE_TEST(version_held_keeps_the_path_that_was_taken_away),
		TABLE_TEST(version_is_settled_only_when_no_reader_can_hold_what_it_replaced),
		TABLE_TEST(nothing_to_publish_is_the_present_version),
		TABLE_TEST(readers_that_hold_too_many_versions_stop_publishing_until_they_let_go),
		TABLE_TEST(row_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, rcu_group_begin, rcu_group_end);
}
