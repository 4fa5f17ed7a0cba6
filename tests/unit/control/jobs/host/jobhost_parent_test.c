// SPDX-License-Identifier: BSD-3-Clause
// A parent's report of how a process ended: when it is accepted, and how long the agent waits for
// it.
#include "control/jobs/host/jobhost_child.h"

#include <signal.h>
#include <sys/wait.h>

static int parent_open(struct bed *bed) {
	const struct job_parent parent = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_PARENT}};
	int fd = raw_connect(bed);

	raw_send(fd, &parent, sizeof(parent), -1);
	settle(bed);
	return fd;
}

static void parent_says(struct bed *bed, int fd, uint32_t cause, int value) {
	const struct job_exited exited = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_EXITED},
		.cause = cause,
		.value = value,
	};

	raw_send(fd, &exited, sizeof(exited), -1);
	settle(bed);
}

static void kill_and_turn(struct bed *bed, const struct child *child) {
	assert_int_equal(kill(child->pid, SIGKILL), 0);
	for (int n = 0; n < 100; n++)
		turn(bed, 1);
}

static void a_parent_says_how_its_child_ended(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	int parent = parent_open(bed);
	struct child child;
	struct tocsin_event event = TOCSIN_INIT(struct tocsin_event);

	member_connect(bed, &self);
	child = child_start(bed, 3, 0);
	kill_and_turn(bed, &child);
	assert_false(next_event(bed, &self, &event)); // the agent waits for the parent's report
	parent_says(bed, parent, JOB_EXIT_MEMORY, SIGKILL);
	child_end(bed, &child, 0);
	assert_true(next_event(bed, &self, &event));
	assert_int_equal(event.kind, TOCSIN_PEER_GONE);
	assert_non_null(strstr(event.text, "memory ran out"));
	close(parent);
	member_close(bed, &self);
}

static void a_parent_that_says_nothing_is_waited_for_a_moment(void **state) {
	struct bed *bed = *state;

	for (int closes = 0; closes < 2; closes++) {
		struct member self = member_open(bed, 0, 4);
		int parent = parent_open(bed);
		struct child child;
		struct tocsin_event event = TOCSIN_INIT(struct tocsin_event);

		member_connect(bed, &self);
		child = child_start(bed, 3, 0);
		kill_and_turn(bed, &child);
		assert_false(next_event(bed, &self, &event));
		if (closes == 1)
			close(parent);
		else
			clock_advance(&bed->clock, SECOND);
		child_end(bed, &child, 0);
		assert_true(next_event(bed, &self, &event));
		assert_non_null(strstr(event.text, "signal 9"));
		if (closes == 0)
			close(parent);
		member_close(bed, &self);
		look_again(bed);
	}
}

static void who_is_no_parent_is_not_believed(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct child child;
	struct tocsin_event event = TOCSIN_INIT(struct tocsin_event);
	int stranger[2], fd;
	char letter;
	pid_t pid;

	member_connect(bed, &self);
	child = child_start(bed, 3, 0);
	fd = raw_connect(bed);
	parent_says(bed, fd, JOB_EXIT_MEMORY, SIGKILL); // without a greeting
	close(fd);
	assert_int_equal(pipe(stranger), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct job_parent parent = {
			.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_PARENT}};
		const struct job_exited exited = {
			.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_EXITED},
			.cause = JOB_EXIT_MEMORY,
			.value = SIGKILL,
		};

		fd = raw_connect(bed);
		raw_send(fd, &parent, sizeof(parent), -1);
		raw_send(fd, &exited, sizeof(exited), -1);
		(void)!write(stranger[1], "d", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(stranger[0], &letter, 1), 1);
	settle(bed);
	child_end(bed, &child, SIGKILL);
	assert_true(next_event(bed, &self, &event));
	assert_non_null(strstr(event.text, "signal 9"));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(stranger[0]);
	close(stranger[1]);
	member_close(bed, &self);
}

UNIT_GROUP(jobhost_parent) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_parent_says_how_its_child_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_parent_that_says_nothing_is_waited_for_a_moment, setup, teardown
		),
		cmocka_unit_test_setup_teardown(who_is_no_parent_is_not_believed, setup, teardown),
	};

	return cmocka_run_group_tests_name("jobhost_parent", tests, NULL, NULL);
}
