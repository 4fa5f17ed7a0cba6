// SPDX-License-Identifier: BSD-3-Clause
// Learnt baselines of paths across restarts of agents, with a real state directory.
#include "control/fabric/probe_bed.h"
#include "fabric/probing.h"

#include <control/path_book.h>
#include <control/state.h>
#include <lib/log.h>

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS RAS_NS_PER_MS
#define DAY (86400 * SEC)
#define JOURNAL_BYTES 65536
#define USUAL_NS (20 * MS) // so slow that turns of a millisecond do not matter
#define SLOW_NS (60 * MS)

static char directory[PATH_MAX];

static void open_state(void) {
	char detail[STATE_DETAIL_BYTES];

	if (state_open(directory, JOURNAL_BYTES, detail, &bed.agents[0].config.state) != 0)
		fail_msg("%s", detail);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where) {
	(void)info;
	(void)type;
	(void)where;
	return remove(path);
}

static int open_pair(void **state) {
	snprintf(directory, sizeof(directory), "/tmp/tocsin-past-XXXXXX");
	if (mkdtemp(directory) == NULL)
		return -1;
	log_set_level(LOG_LEVEL_ERROR);
	memset(told, 0, sizeof(told));
	bed_pair_open(state);
	played.realtime_ns = (int64_t)(20000 * DAY);
	bed.agents[0].fakes[0]->delay_ns = USUAL_NS;
	open_state();
	bed_start_probing(0);
	bed_start_probing(1);
	return 0;
}

static int close_pair(void **state) {
	struct state *last = bed.agents[0].config.state;
	int err = bed_pair_close(state);

	state_close(last);
	nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	return err;
}

static uint64_t baseline_ns(void) {
	struct fabric_path_view view;

	return bed_find_path(0, 1, &view) ? view.summary.baseline_ns : 0;
}

static void leave(void) {
	bed_stop(0);
	bed_until(bed.agents[0].stopped);
	bed_destroy(0);
	bed.agents[0].config.state = state_close(bed.agents[0].config.state);
}

static void come_back(void) {
	open_state();
	memset(told, 0, sizeof(told));
	bed_start_probing(0);
	bed_until(bed_is_ready(0, 0) && bed_is_ready(0, 1));
	bed_pass(100 * MS); // both paths are watched
}

static void learn(void) {
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	bed_pass(60 * SEC);
	assert_in_range(baseline_ns(), USUAL_NS, USUAL_NS + 5 * MS);
}

static void path_in(char path[static PATH_MAX + 8]) {
	snprintf(path, PATH_MAX + 8, "%s/paths", directory);
}

static void path_that_was_slow_before_a_restart_is_degraded_after_it(void **state) {
	uint64_t begin_ns;

	(void)state;
	learn();
	fake_qp_delay(bed_qp(0, 1), SLOW_NS);
	bed_until(bed_seen(0, 1) == OBSERVATION_DEGRADED);
	leave();
	played.realtime_ns += (int64_t)(3 * DAY); // the agent was off for a long time
	come_back();
	fake_qp_delay(bed_qp(0, 1), SLOW_NS);
	assert_in_range(baseline_ns(), USUAL_NS, USUAL_NS + 5 * MS);
	assert_int_equal(bed_probes(0).baselines_taken, 2); // the other one is the path to itself
	begin_ns = clock_now_ns(&bed.clock);
	bed_until(bed_seen(0, 1) == OBSERVATION_DEGRADED);
	assert_in_range(clock_now_ns(&bed.clock) - begin_ns, 0, 20 * SEC);
	fake_qp_delay(bed_qp(0, 1), USUAL_NS);
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
}

static void past_that_is_too_old_is_not_taken(void **state) {
	(void)state;
	learn();
	leave();
	played.realtime_ns += (int64_t)(7 * DAY + 10 * SEC);
	come_back();
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	assert_int_equal(bed_probes(0).baselines_taken, 0);
	assert_int_equal(bed_probes(0).baselines_outdated, 2);
	assert_int_equal(bed_probes(0).path_files_unreadable, 0);
	learn();
}

static void past_from_a_time_to_come_is_taken_for_new(void **state) {
	(void)state;
	learn();
	leave();
	played.realtime_ns -= (int64_t)(300 * DAY);
	come_back();
	assert_int_equal(bed_probes(0).baselines_taken, 2);
	bed_pass(20 * SEC);
	leave();
	played.realtime_ns += (int64_t)(8 * DAY);
	come_back();
	assert_int_equal(bed_probes(0).baselines_taken, 0);
}

static void past_of_another_speed_is_not_taken(void **state) {
	(void)state;
	learn();
	leave();
	bed.agents[0].fakes[0]->ports[0].attr.active_speed = 1;
	come_back();
	assert_int_equal(bed_probes(0).baselines_taken, 0);
	assert_int_equal(bed_probes(0).baselines_outdated, 2);
	assert_int_equal(baseline_ns(), 0);
}

static void neighbour_that_comes_back_is_known(void **state) {
	(void)state;
	learn();
	bed_link(0, 1, false);
	bed_until(baseline_ns() == 0);
	bed_link(0, 1, true);
	bed_until(baseline_ns() != 0);
	assert_int_equal(bed_probes(0).baselines_taken, 1);
}

static void without_an_orderly_end_there_is_what_was_written_in_the_last_minutes(void **state) {
	char *text = NULL;
	struct path_book *book = calloc(1, sizeof(*book));
	const char *reason = NULL;
	char path[PATH_MAX + 8];
	struct stat info;

	(void)state;
	assert_non_null(book);
	learn();
	path_in(path);
	assert_int_not_equal(stat(path, &info), 0);
	bed_pass(PATH_BASELINES_SAVE_NS);
	// Waits for the write in progress and writes no more.
	state_close(bed.agents[0].config.state);
	open_state();
	assert_int_equal(state_read_text(bed.agents[0].config.state, STATE_PATHS, &text), 0);
	assert_int_equal(path_book_parse(book, text, bed_id(0), &reason), 0);
	assert_int_equal(book->count, 2);
	assert_non_null(path_book_find(book, bed_id(1), "rdma0", "rdma2"));
	bed.agents[0].fabric->config.state = bed.agents[0].config.state;
	free(text);
	free(book);
}

static void file_that_is_no_such_is_ignored_and_counted(void **state) {
	static const char *const texts[] = {"", "\n", "paths 1 0x1\nend 0 0x0\n", "\xff\xfe"};

	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	for (size_t n = 0; n < sizeof(texts) / sizeof(texts[0]); n++) {
		char path[PATH_MAX + 8];
		FILE *file;

		leave();
		path_in(path);
		file = fopen(path, "w");
		assert_non_null(file);
		fputs(texts[n], file);
		assert_int_equal(fclose(file), 0);
		come_back();
		assert_int_equal(bed_probes(0).path_files_unreadable, 1);
		assert_int_equal(
			bed_probes(0).baselines_taken + bed_probes(0).baselines_outdated, 0
		);
		bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	}
	leave(); // a valid file has replaced it
	come_back();
	assert_int_equal(bed_probes(0).path_files_unreadable, 0);
}

static void switched_off_what_was_learnt_is_forgotten_also_over_a_restart(void **state) {
	struct fabric_probe_config probe = bed.agents[0].config.probe;

	(void)state;
	learn();
	probe.on = false;
	assert_int_equal(fabric_configure_probes(bed.agents[0].fabric, &probe), 0);
	bed_pass(2 * SEC);
	probe.on = true;
	assert_int_equal(fabric_configure_probes(bed.agents[0].fabric, &probe), 0);
	bed_pass(5 * SEC);
	assert_int_equal(baseline_ns(), 0);
	leave();
	come_back();
	assert_int_equal(bed_probes(0).baselines_taken, 0);
}

#define KEPT(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

UNIT_GROUP(fabric_baselines) {
	const struct CMUnitTest tests[] = {
		KEPT(path_that_was_slow_before_a_restart_is_degraded_after_it),
		KEPT(past_that_is_too_old_is_not_taken),
		KEPT(past_from_a_time_to_come_is_taken_for_new),
		KEPT(past_of_another_speed_is_not_taken),
		KEPT(neighbour_that_comes_back_is_known),
		KEPT(without_an_orderly_end_there_is_what_was_written_in_the_last_minutes),
		KEPT(file_that_is_no_such_is_ignored_and_counted),
		KEPT(switched_off_what_was_learnt_is_forgotten_also_over_a_restart),
	};

	return cmocka_run_group_tests(tests, rcu_group_begin, rcu_group_end);
}
