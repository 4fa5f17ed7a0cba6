// SPDX-License-Identifier: BSD-3-Clause
// The test's thread is both control thread and reader.
#include <control/snapshot.h>
#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>

#include <errno.h>

static struct snapshots *made(void) {
	struct snapshots *snapshots;

	assert_int_equal(snapshots_create(&snapshots), 0);
	rcu_thread_online(0);
	return snapshots;
}

static void dropped(struct snapshots *snapshots) {
	rcu_thread_offline();
	assert_null(snapshots_destroy(snapshots));
}

static void snapshot_held_stays_as_it_was_while_others_are_published(void **state) {
	struct snapshots *snapshots = made();
	struct snapshot snapshot = {.at_ns = 1};
	const struct snapshot *held;

	(void)state;
	assert_int_equal(snapshots_current(snapshots)->at_ns, 0);
	assert_int_equal(snapshots_publish(snapshots, &snapshot), 0);
	held = snapshots_current(snapshots);
	for (uint32_t n = 2; n < 20; n++) {
		snapshot.at_ns = n;
		snapshot.view.alive = n;
		assert_int_equal(snapshots_publish(snapshots, &snapshot), 0);
	}
	assert_int_equal(held->at_ns, 1);
	assert_int_equal(held->view.alive, 0);
	assert_int_equal(snapshots_current(snapshots)->view.alive, 19);
	dropped(snapshots);
}

static void reader_that_never_lets_go_stops_publishing_and_not_the_memory(void **state) {
	struct snapshots *snapshots = made();
	struct snapshot snapshot = {.at_ns = 1};
	uint32_t published = 0;

	(void)state;
	while (published < 10 * SNAPSHOTS_WAITING_MAX &&
	       snapshots_publish(snapshots, &snapshot) == 0)
		published++;
	assert_int_equal(published, SNAPSHOTS_WAITING_MAX);
	assert_int_equal(snapshots_publish(snapshots, &snapshot), -EAGAIN);
	rcu_thread_offline();
	rcu_reclaimer_drain();
	rcu_thread_online(0);
	assert_int_equal(snapshots_publish(snapshots, &snapshot), 0);
	dropped(snapshots);
	assert_null(snapshots_destroy(NULL));
}

UNIT_GROUP(snapshot) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(snapshot_held_stays_as_it_was_while_others_are_published),
		cmocka_unit_test(reader_that_never_lets_go_stops_publishing_and_not_the_memory),
	};
	int failed;

	if (rcu_reclaimer_start() != 0 || rcu_thread_register("control", 0) != 0)
		return 1;
	rcu_thread_offline();
	failed = cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
	rcu_thread_unregister();
	return failed;
}
