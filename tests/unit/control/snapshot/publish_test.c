// SPDX-License-Identifier: BSD-3-Clause
// The core's table as readers see it. The test's thread is both control thread and reader.
#include "control/ras/ras_lone.h"

#include <control/publish.h>
#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>

#include <stdio.h>

#define SECOND_NS RAS_NS_PER_SEC

struct scene {
	struct lone *lone;
	struct peer_table *table;
	struct publish *publish;
};

static struct scene scene_of(uint32_t count) {
	struct scene scene = {.lone = lone_of(count, 0)};

	assert_int_equal(peer_table_create(&scene.table), 0);
	assert_int_equal(
		publish_create(scene.lone->ras, scene.table, scene.lone->now_ns, &scene.publish), 0
	);
	return scene;
}

static void scene_drop(struct scene *scene) {
	assert_null(publish_destroy(scene->publish));
	assert_null(peer_table_destroy(scene->table));
	lone_destroy(scene->lone);
}

static uint64_t dirty(struct scene *scene) {
	return publish_changed_peers(scene->publish, scene->lone->now_ns);
}

// Rows remain valid until this thread publishes again.
static const struct peer_row *row_of(const struct scene *scene, uint32_t peer) {
	return peer_snapshot_find(peer_table_snapshot(scene->table), lone_id(scene->lone, peer));
}

static uint64_t published(const struct scene *scene) {
	struct peer_table_memory_use memory;

	peer_table_memory_use(scene->table, &memory);
	return memory.published;
}

static void all_that_the_core_knows_is_in_the_first_version(void **state) {
	struct scene scene = scene_of(6);
	const struct peer_snapshot *snapshot;
	struct ras_view view;

	(void)state;
	assert_int_equal(dirty(&scene), RAS_NEVER);
	ras_view(scene.lone->ras, &view);
	snapshot = peer_table_snapshot(scene.table);
	assert_int_equal(peer_snapshot_view(snapshot)->row_count, 6);
	assert_int_equal(peer_snapshot_view(snapshot)->alive, 6);
	assert_int_equal(peer_snapshot_view(snapshot)->number, view.number);
	assert_int_equal(peer_snapshot_view(snapshot)->digest, view.digest);
	for (uint32_t n = 0; n < 6; n++) {
		struct ras_peer peer = lone_peer(scene.lone, n);
		struct sock_addr address = lone_address(n);
		const struct peer_row *row = peer_snapshot_row(snapshot, peer.slot);

		assert_ptr_equal(row, row_of(&scene, n));
		assert_int_equal(row->incarnation, peer.incarnation);
		assert_int_equal(row->state, PEER_ALIVE);
		assert_true(sock_addr_equal(&row->address, &address));
		assert_int_equal(row->name_length, 3);
	}
	scene_drop(&scene);
}

static void nothing_is_published_while_nothing_changes(void **state) {
	struct scene scene = scene_of(3);

	(void)state;
	dirty(&scene);
	for (int n = 0; n < 10; n++) {
		publish_mark_peer(scene.publish, lone_id(scene.lone, 1));
		scene.lone->now_ns += PUBLISH_INTERVAL_NS;
		assert_int_equal(dirty(&scene), RAS_NEVER);
	}
	assert_int_equal(published(&scene), 1);
	publish_mark_peer(scene.publish, 0);
	publish_mark_peer(scene.publish, 12345);
	assert_int_equal(dirty(&scene), RAS_NEVER);
	scene_drop(&scene);
}

static void changes_within_an_interval_make_one_version(void **state) {
	struct scene scene = scene_of(4);
	uint64_t due_ns = scene.lone->now_ns + PUBLISH_INTERVAL_NS;

	(void)state;
	dirty(&scene);
	for (uint32_t n = 1; n < 4; n++) {
		ras_set_maintenance(
			scene.lone->ras, scene.lone->now_ns, lone_id(scene.lone, n), true
		);
		publish_mark_peer(scene.publish, lone_id(scene.lone, n));
		assert_int_equal(dirty(&scene), due_ns);
		assert_false(row_of(&scene, n)->maint);
	}
	scene.lone->now_ns = due_ns;
	assert_int_equal(dirty(&scene), RAS_NEVER);
	for (uint32_t n = 1; n < 4; n++)
		assert_true(row_of(&scene, n)->maint);
	assert_int_equal(published(&scene), 2);
	scene_drop(&scene);
}

static void change_that_nobody_marked_is_found_by_the_walk(void **state) {
	struct scene scene = scene_of(4);

	(void)state;
	dirty(&scene);
	ras_set_maintenance(scene.lone->ras, scene.lone->now_ns, lone_id(scene.lone, 2), true);
	scene.lone->now_ns += PUBLISH_INTERVAL_NS;
	assert_int_equal(dirty(&scene), RAS_NEVER);
	assert_true(row_of(&scene, 2)->maint);
	scene_drop(&scene);
}

// With and without marks; in a ring of two the survivor decides alone.
static void forgotten_peer_is_gone_from_the_table(void **state) {
	(void)state;
	for (int marked = 0; marked < 2; marked++) {
		struct scene scene = scene_of(2);
		uint64_t id = lone_id(scene.lone, 1);
		struct ras_peer peer;

		lone_pass(scene.lone, 60 * SECOND_NS);
		assert_int_equal(lone_peer(scene.lone, 1).state, RAS_DEAD);
		dirty(&scene);
		peer = lone_peer(scene.lone, 1);
		assert_int_equal(row_of(&scene, 1)->state, PEER_DEAD);
		assert_int_equal(row_of(&scene, 1)->cause, peer.cause);
		assert_false(row_of(&scene, 1)->ended); // died by silence
		assert_int_equal(row_of(&scene, 1)->sole, peer.sole);
		assert_int_equal(ras_forget(scene.lone->ras, scene.lone->now_ns, id), 0);
		if (marked)
			publish_mark_peer(scene.publish, id);
		scene.lone->now_ns += PUBLISH_INTERVAL_NS;
		dirty(&scene);
		assert_null(row_of(&scene, 1));
		assert_int_equal(
			peer_snapshot_view(peer_table_snapshot(scene.table))->row_count, 1
		);
		scene_drop(&scene);
	}
}

static void tell(struct scene *scene, uint32_t conn, enum ras_state state, uint64_t incarnation) {
	const struct peer_news news = lone_told(scene->lone, 2, state, incarnation);

	lone_news(scene->lone, conn, &news);
	publish_mark_peer(scene->publish, lone_id(scene->lone, 2));
	scene->lone->now_ns += PUBLISH_INTERVAL_NS;
	dirty(scene);
}

// Workers check this before a probe.
static void peer_that_left_has_ended_until_it_starts_anew(void **state) {
	struct scene scene = scene_of(4);
	uint64_t first;
	uint32_t conn;

	(void)state;
	dirty(&scene);
	conn = lone_link(scene.lone, 1);
	first = row_of(&scene, 2)->incarnation;
	assert_int_equal(row_of(&scene, 2)->first_incarnation, first);
	assert_false(row_of(&scene, 2)->ended);
	tell(&scene, conn, RAS_ALIVE, first + 3); // refuted three times
	assert_int_equal(row_of(&scene, 2)->incarnation, first + 3);
	assert_int_equal(row_of(&scene, 2)->first_incarnation, first);
	tell(&scene, conn, RAS_LEFT, first + 3);
	assert_true(row_of(&scene, 2)->ended);
	scene_drop(&scene);
}

UNIT_GROUP(publish) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_the_core_knows_is_in_the_first_version),
		cmocka_unit_test(nothing_is_published_while_nothing_changes),
		cmocka_unit_test(changes_within_an_interval_make_one_version),
		cmocka_unit_test(change_that_nobody_marked_is_found_by_the_walk),
		cmocka_unit_test(forgotten_peer_is_gone_from_the_table),
		cmocka_unit_test(peer_that_left_has_ended_until_it_starts_anew),
	};
	int failed;

	if (rcu_reclaimer_start() != 0 || rcu_thread_register("control", 0) != 0)
		return 1;
	rcu_thread_offline();
	failed = cmocka_run_group_tests_name("publish", tests, NULL, NULL);
	rcu_thread_unregister();
	return failed;
}
