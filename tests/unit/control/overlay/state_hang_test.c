// SPDX-License-Identifier: BSD-3-Clause
// A state directory on a disk that hangs while the directory is closed.
#include <control/state.h>
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
#include <sys/syscall.h>
#include <unistd.h>

#define JOURNAL_BYTES 65536

static char directory[PATH_MAX];
static char detail[STATE_DETAIL_BYTES];

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool shut, hangs;
} disk = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

// Replaces the C library's function in this program.
int fsync(int fd) {
	pthread_mutex_lock(&disk.mutex);
	while (disk.shut) {
		disk.hangs = true;
		pthread_cond_broadcast(&disk.changed);
		pthread_cond_wait(&disk.changed, &disk.mutex);
	}
	pthread_mutex_unlock(&disk.mutex);
	return (int)syscall(SYS_fsync, fd);
}

static void disk_shut(bool shut) {
	pthread_mutex_lock(&disk.mutex);
	disk.shut = shut;
	pthread_cond_broadcast(&disk.changed);
	pthread_mutex_unlock(&disk.mutex);
}

static void disk_await_hang(void) {
	pthread_mutex_lock(&disk.mutex);
	while (!disk.hangs)
		pthread_cond_wait(&disk.changed, &disk.mutex);
	pthread_mutex_unlock(&disk.mutex);
}

static int make_directory(void **state) {
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/tocsin-state-XXXXXX");
	log_set_level(LOG_LEVEL_ERROR);
	return mkdtemp(directory) == NULL;
}

static int remove_directory(void **state) {
	(void)state;
	return tree_remove(directory);
}

static struct state *open_when_it_is_free(void) {
	struct state *opened = NULL;
	int err;

	while ((err = state_open(directory, JOURNAL_BYTES, detail, &opened)) == -EBUSY)
		sched_yield();
	if (err != 0)
		fail_msg("%s", detail);
	return opened;
}

static void directory_whose_disk_hung_at_the_end_is_let_go_of_when_it_answers(void **state) {
	struct state_event event = {.event = {.kind = RAS_EVENT_DEAD, .peer = 1}};
	struct state *opened = open_when_it_is_free();

	(void)state;
	disk_shut(true);
	state_save_start(opened, 7);
	disk_await_hang();
	state_journal(opened, &event); // both wait behind the hanging write
	state_save_text(opened, STATE_PATHS, strdup("paths"));
	assert_null(state_close(opened));
	assert_int_equal(state_open(directory, JOURNAL_BYTES, detail, &opened), -EBUSY);
	assert_false(leaks_are_there());
	disk_shut(false);
	opened = open_when_it_is_free();
	assert_int_equal(state_start(opened), 8);
	state_close(opened);
	assert_false(leaks_are_there());
}

UNIT_GROUP(state_hang) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			directory_whose_disk_hung_at_the_end_is_let_go_of_when_it_answers,
			make_directory, remove_directory
		),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
