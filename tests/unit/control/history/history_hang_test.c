// SPDX-License-Identifier: BSD-3-Clause
// A history whose disk hangs, fails and answers again. The test sets the clock, and plays the
// cluster and the disk.
#include <control/finding.h>
#include <control/history.h>
#include <control/loop.h>
#include <control/overlay.h>
#include <lib/log.h>
#include <support/cmocka.h>
#include <support/leaks.h>
#include <support/tree.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEC RAS_NS_PER_SEC
#define BEGIN_S INT64_C(1795980007)

static char directory[PATH_MAX];
static struct clock fake_clock;
static struct loop *loop;
static struct history *history;
static uint64_t free_bytes;
static int64_t clock_ahead_ns; // of the system's clock
static uint32_t dead_nodes;    // members that are dead, with the ids from 1000 on

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool shut, hangs;
	int err;
	uint32_t writes;
} disk = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

// Fakes, instead of the C library and the libraries of the product.

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
	int err;

	pthread_mutex_lock(&disk.mutex);
	while (disk.shut) {
		disk.hangs = true;
		pthread_cond_broadcast(&disk.changed);
		pthread_cond_wait(&disk.changed, &disk.mutex);
	}
	disk.writes++;
	err = disk.err;
	pthread_mutex_unlock(&disk.mutex);
	if (err != 0) {
		errno = err;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

int fstatvfs(int fd, struct statvfs *info) {
	(void)fd;
	*info = (struct statvfs){.f_bavail = free_bytes / 512, .f_frsize = 512};
	return 0;
}

const struct ras *overlay_ras(const struct overlay *overlay) {
	(void)overlay;
	return NULL;
}

uint64_t overlay_now_ns(const struct overlay *overlay) {
	(void)overlay;
	return loop_now_ns(loop);
}

int64_t overlay_realtime_ns(const struct overlay *overlay, uint64_t now_ns) {
	(void)overlay;
	return BEGIN_S * (int64_t)SEC + (int64_t)now_ns + clock_ahead_ns;
}

uint64_t ras_self_id(const struct ras *ras) {
	(void)ras;
	return 7;
}

void ras_view(const struct ras *ras, struct ras_view *ret_view) {
	(void)ras;
	*ret_view = (struct ras_view){.slots_max = dead_nodes};
}

int ras_peer_at(const struct ras *ras, uint32_t slot, struct ras_peer *ret_peer) {
	static struct ras_record record = {.name = "n", .name_length = 1};

	(void)ras;
	if (slot >= dead_nodes)
		return -ENOENT;
	record.id = 1000 + slot;
	*ret_peer = (struct ras_peer){.record = &record, .state = RAS_DEAD};
	return 0;
}

int ras_peer_find(const struct ras *ras, uint64_t id, struct ras_peer *ret_peer) {
	(void)ras;
	(void)id;
	(void)ret_peer;
	return -ENOENT;
}

void finding_for_peer(
	const struct health *health, const struct ras_peer *peer, struct finding *ret_finding
) {
	(void)health;
	(void)peer;
	*ret_finding = (struct finding){0};
}

// The disk.

static void disk_set(bool shut, int err) {
	pthread_mutex_lock(&disk.mutex);
	disk.shut = shut;
	disk.err = err;
	disk.hangs = false;
	pthread_cond_broadcast(&disk.changed);
	pthread_mutex_unlock(&disk.mutex);
}

static uint32_t disk_writes(void) {
	uint32_t writes;

	pthread_mutex_lock(&disk.mutex);
	writes = disk.writes;
	pthread_mutex_unlock(&disk.mutex);
	return writes;
}

static void disk_await_hang(void) {
	pthread_mutex_lock(&disk.mutex);
	while (!disk.hangs)
		pthread_cond_wait(&disk.changed, &disk.mutex);
	pthread_mutex_unlock(&disk.mutex);
}

// Questions.

struct asker {
	struct history_query query;
	bool ended;
	int err;
	struct history_answer *answer;
};

static void on_end(struct history_query *query, int err, struct history_answer *answer) {
	struct asker *asker = (struct asker *)query;

	asker->ended = true;
	asker->err = err;
	asker->answer = answer;
}

static int ask(struct asker *asker) {
	const struct history_question question = {
		.since_s = BEGIN_S - 600,
		.until_s = BEGIN_S + 6000,
		.points = HISTORY_POINTS_MAX,
		.peer = 9,
		.events_until_ns = INT64_MAX,
		.events = 10,
	};

	*asker = (struct asker){.query.ended = on_end};
	return history_ask(history, &question, &asker->query);
}

static void pass(uint64_t ns) {
	clock_advance(&fake_clock, ns);
	assert_int_equal(loop_turn(loop, 0), 0);
}

// Return the number of probes that the file holds.
static uint64_t probes_stored(void) {
	struct asker asker;
	uint64_t sent = 0;
	int err;

	// The loop has yet to learn that the disk answers again.
	while ((err = ask(&asker)) == -ETIMEDOUT)
		assert_int_equal(loop_turn(loop, -1), 0);
	assert_int_equal(err, 0);
	while (!asker.ended)
		assert_int_equal(loop_turn(loop, -1), 0);
	assert_int_equal(asker.err, 0);
	assert_true(asker.answer->has_file);
	assert_true(asker.answer->series_count <= 1);
	for (uint32_t n = 0; asker.answer->series_count == 1 && n < asker.answer->points; n++)
		sent += asker.answer->series[0]->points[n].sent;
	history_answer_free(asker.answer);
	return sent;
}

static void probe(void) {
	const struct history_path_name path = {.peer = 9, .device = "a", .peer_device = "b"};

	history_add_probe(history, &path, true, 5000);
}

// Let two seconds pass: the period ends, and its block is written.
static void period_pass(void) {
	uint32_t before = disk_writes();

	pass(SEC);
	pass(SEC);
	while (disk_writes() == before)
		assert_int_equal(loop_turn(loop, 0), 0);
}

// Let periods pass until the file holds so many probes. A block of the other tier may come first.
static void await_stored(uint64_t probes) {
	for (uint32_t n = 0; n < 20 && probes_stored() < probes; n++)
		period_pass();
	assert_int_equal(probes_stored(), probes);
}

static int begin(void **state) {
	const struct history_config config = {
		.directory = directory, .size_bytes = HISTORY_SIZE_MIN, .interval_s = 1};

	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/tocsin-history-XXXXXX");
	log_set_level(LOG_LEVEL_ERROR);
	disk_set(false, 0);
	clock_ahead_ns = 0;
	dead_nodes = 0;
	free_bytes = UINT64_C(1) << 40;
	clock_init_fake(&fake_clock, SEC);
	if (mkdtemp(directory) == NULL || loop_create(&fake_clock, &loop) != 0 ||
	    history_create(loop, &config, &history) != 0)
		return -1;
	(void)probes_stored(); // the file is open now
	return 0;
}

static int end(void **state) {
	(void)state;
	disk_set(false, 0);
	history = history_destroy(history);
	loop = loop_destroy(loop);
	return tree_remove(directory);
}

static void questions_behind_a_slow_disk_are_limited(void **state) {
	struct asker askers[HISTORY_QUESTIONS_MAX + 1];

	(void)state;
	probe();
	disk_set(true, 0);
	pass(SEC);
	pass(SEC);
	disk_await_hang();
	for (uint32_t n = 0; n < HISTORY_QUESTIONS_MAX; n++)
		assert_int_equal(ask(&askers[n]), 0);
	assert_int_equal(ask(&askers[HISTORY_QUESTIONS_MAX]), -EAGAIN);
	// A question that was cancelled gives its place to another one.
	history_cancel(&askers[0].query);
	assert_int_equal(ask(&askers[0]), 0);
	disk_set(false, 0);
	for (uint32_t n = 0; n < HISTORY_QUESTIONS_MAX; n++) {
		while (!askers[n].ended)
			assert_int_equal(loop_turn(loop, -1), 0);
		assert_int_equal(askers[n].err, 0);
		history_answer_free(askers[n].answer);
	}
}

static void records_wait_while_the_disk_hangs_and_questions_are_refused(void **state) {
	struct asker waiting, refused;

	(void)state;
	probe();
	period_pass();
	assert_int_equal(probes_stored(), 1);
	disk_set(true, 0);
	probe();
	pass(SEC);
	pass(SEC);
	disk_await_hang();
	assert_int_equal(ask(&waiting), 0);
	for (uint32_t n = 0; n < 60; n++) {
		probe();
		pass(SEC); // the loop goes on
	}
	assert_true(waiting.ended);
	assert_int_equal(waiting.err, -ETIMEDOUT);
	assert_int_equal(ask(&refused), -ETIMEDOUT);
	disk_set(false, 0);
	await_stored(62);
}

static void records_that_could_not_be_written_are_written_later(void **state) {
	(void)state;
	probe();
	period_pass();
	disk_set(false, EIO);
	probe();
	period_pass();
	assert_int_equal(probes_stored(), 1);
	disk_set(false, 0);
	await_stored(2);
}

static void at_most_one_block_is_written_in_a_second(void **state) {
	uint32_t before = disk_writes();

	(void)state;
	for (uint32_t n = 0; n < 100; n++) {
		probe();
		for (uint32_t turn = 0; turn < 5; turn++)
			pass(SEC / 5);
		(void)probes_stored(); // wait: the keeper answers after the write
	}
	assert_in_range(disk_writes() - before, 50, 101);
}

static void a_clock_that_jumps_back_costs_no_record(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 20; n++) {
		probe();
		period_pass();
	}
	clock_ahead_ns = -15 * (int64_t)SEC;
	for (uint32_t n = 0; n < 10; n++) {
		probe();
		period_pass();
	}
	await_stored(30);
}

static void a_removed_file_is_made_again(void **state) {
	char path[PATH_MAX + 16];

	(void)state;
	snprintf(path, sizeof(path), "%s/history", directory);
	probe();
	period_pass();
	assert_int_equal(unlink(path), 0);
	probe();
	pass(SEC);
	pass(SEC);
	while (access(path, F_OK) != 0) {
		pass(SEC);
		(void)sched_yield();
	}
	await_stored(2); // the block that was being filled is still whole
}

static void the_file_takes_half_of_the_free_space_at_most(void **state) {
	const struct history_config config = {
		.directory = directory, .size_bytes = HISTORY_SIZE_MIN, .interval_s = 1};
	char path[PATH_MAX + 16];
	struct stat info;

	(void)state;
	snprintf(path, sizeof(path), "%s/history", directory);
	history = history_destroy(history);
	assert_int_equal(unlink(path), 0);
	free_bytes = HISTORY_SIZE_MIN;
	assert_int_equal(history_create(loop, &config, &history), 0);
	probe();
	assert_int_equal(probes_stored(), 0);
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_size, HISTORY_SIZE_MIN / 2);
	period_pass();
	assert_int_equal(probes_stored(), 1);
}

static void a_history_is_destroyed_while_its_disk_hangs(void **state) {
	(void)state;
	disk_set(true, 0);
	probe();
	pass(SEC);
	pass(SEC);
	disk_await_hang();
	assert_null(history_destroy(history));
	history = NULL;
}

static uint32_t seconds_covered(void) {
	const struct history_question question = {
		.since_s = BEGIN_S,
		.until_s = BEGIN_S + 100,
		.points = 100,
	};
	struct asker asker = {.query.ended = on_end};
	uint32_t covered = 0;

	assert_int_equal(history_ask(history, &question, &asker.query), 0);
	while (!asker.ended)
		assert_int_equal(loop_turn(loop, -1), 0);
	assert_int_equal(asker.err, 0);
	assert_int_equal(asker.answer->step_s, 1);
	for (uint32_t n = 0; n < asker.answer->points; n++)
		covered += asker.answer->node[n].is_covered;
	history_answer_free(asker.answer);
	return covered;
}

static void an_agent_that_was_stopped_records_nothing_of_its_pause(void **state) {
	(void)state;
	probe();
	period_pass();
	period_pass();
	await_stored(1);
	pass(60 * SEC);
	probe();
	period_pass();
	period_pass();
	await_stored(2);
	assert_in_range(seconds_covered(), 4, 10);
}

// Return the states of a node in the points that have a record, as bits of enum ras_state, where
// RAS_UNKNOWN is a healthy node.
static uint32_t states_stored(uint64_t peer) {
	const struct history_question question = {
		.since_s = BEGIN_S - 600,
		.until_s = BEGIN_S + 6000,
		.points = HISTORY_POINTS_MAX,
		.peer = peer,
	};
	struct asker asker = {.query.ended = on_end};
	uint32_t states = 0;

	assert_int_equal(history_ask(history, &question, &asker.query), 0);
	while (!asker.ended)
		assert_int_equal(loop_turn(loop, -1), 0);
	assert_int_equal(asker.err, 0);
	for (uint32_t n = 0; n < asker.answer->points; n++) {
		if (asker.answer->node[n].is_covered)
			states |= 1U << asker.answer->node[n].state;
	}
	history_answer_free(asker.answer);
	return states;
}

static void up_to_256_dead_nodes_are_recorded_and_others_are_healthy(void **state) {
	(void)state;
	dead_nodes = 256;
	probe();
	await_stored(1);
	assert_int_equal(states_stored(1000), 1U << RAS_DEAD);
	assert_int_equal(states_stored(1255), 1U << RAS_DEAD);
	assert_int_equal(states_stored(999), 1U << RAS_UNKNOWN);
}

static void nodes_beyond_those_a_period_records_have_no_record(void **state) {
	(void)state;
	dead_nodes = 257;
	probe();
	await_stored(1);
	assert_int_equal(states_stored(1255), 1U << RAS_DEAD);
	assert_int_equal(states_stored(1256), 0);
	assert_int_equal(states_stored(999), 0);
}

UNIT_GROUP(history_hang) {
#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)
	const struct CMUnitTest tests[] = {
		CASE(questions_behind_a_slow_disk_are_limited),
		CASE(records_wait_while_the_disk_hangs_and_questions_are_refused),
		CASE(records_that_could_not_be_written_are_written_later),
		CASE(at_most_one_block_is_written_in_a_second),
		CASE(a_clock_that_jumps_back_costs_no_record),
		CASE(a_removed_file_is_made_again),
		CASE(the_file_takes_half_of_the_free_space_at_most),
		CASE(a_history_is_destroyed_while_its_disk_hangs),
		CASE(up_to_256_dead_nodes_are_recorded_and_others_are_healthy),
		CASE(nodes_beyond_those_a_period_records_have_no_record),
		CASE(an_agent_that_was_stopped_records_nothing_of_its_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
