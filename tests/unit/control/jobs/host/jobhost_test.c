// SPDX-License-Identifier: BSD-3-Clause
// Which ends of processes are reported to the other ranks of a communicator; with real processes.
#include "control/jobs/host/jobhost_child.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

static bool is_zombie(pid_t pid) {
	siginfo_t end = {0};

	return waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT | WNOHANG) == 0 &&
	       end.si_pid == pid;
}

static struct tocsin_failed_set failed_of(struct member *member, uint32_t ranks[static 4]) {
	struct tocsin_failed_set set = {.struct_size = sizeof(set)};

	assert_int_equal(tocsin_comm_failed(member->comm, &set, ranks, 4), 0);
	return set;
}

static void a_member_that_is_killed_is_told_to_who_survives(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct child child;
	struct tocsin_event event = TOCSIN_INIT(struct tocsin_event);
	struct tocsin_failed_set set;
	uint32_t ranks[4];

	member_connect(bed, &self);
	child = child_start(bed, 3, 0);
	assert_false(tocsin_comm_should_abort(self.comm));
	assert_false(next_event(bed, &self, &event));
	child_end(bed, &child, SIGKILL);
	assert_true(next_event(bed, &self, &event));
	assert_int_equal(event.kind, TOCSIN_PEER_GONE);
	assert_int_equal(event.rank, 3);
	assert_non_null(strstr(event.text, "signal 9"));
	assert_true(tocsin_comm_should_abort(self.comm));
	set = failed_of(&self, ranks);
	assert_int_equal(set.agreement, TOCSIN_AGREED);
	assert_int_equal(set.count, 1);
	assert_int_equal(ranks[0], 3);
	assert_int_equal(set.view, event.view);
	assert_int_equal(tocsin_comm_wait_failed(self.comm, 0, 0), 0);
	assert_true(next_event(bed, &self, &event));
	assert_int_equal(event.kind, TOCSIN_COMM_SHOULD_ABORT);
	assert_false(next_event(bed, &self, &event));
	member_close(bed, &self);
}

// A callback that returns only when the test permits it.
struct slow_callback {
	atomic_bool began, over; // set with release, read with acquire by the other thread
};

static void wait_in_callback(void *context, const struct tocsin_event *event) {
	struct slow_callback *slow = context;

	(void)event;
	atomic_store_explicit(&slow->began, true, memory_order_release);
	while (!atomic_load_explicit(&slow->over, memory_order_acquire))
		(void)poll(NULL, 0, 1);
}

static void a_child_waits_for_no_callback_of_its_parent(void **state) {
	struct bed *bed = *state;
	struct slow_callback slow = {false, false};
	struct tocsin_job_config config = {
		.struct_size = sizeof(config),
		.socket_path = bed->path,
		.event = wait_in_callback,
		.event_context = &slow,
	};
	struct child child = child_start(bed, 2, 0);
	struct tocsin_comm_config comm_config;
	struct tocsin_comm *comm;
	struct tocsin_job *job;
	int status;
	pid_t forked;

	assert_int_equal(tocsin_job_open(&config, &job), 0);
	tocsin_comm_config_init(&comm_config);
	comm_config.comm_hash = 77;
	comm_config.size = 4;
	comm_config.rank = 1;
	assert_int_equal(tocsin_comm_register(job, &comm_config, &comm), 0);
	for (int n = 0; n < TURNS_MAX && ranks_shown(bed) < 2; n++)
		turn(bed, 1);
	assert_int_equal(ranks_shown(bed), 2);
	child_end(bed, &child, SIGKILL);
	for (int n = 0; n < TURNS_MAX && !atomic_load_explicit(&slow.began, memory_order_acquire);
	     n++)
		turn(bed, 1);
	assert_true(atomic_load_explicit(&slow.began, memory_order_acquire));
	forked = fork();
	assert_true(forked >= 0);
	if (forked == 0) {
		alarm(10);
		tocsin_comm_unregister(comm);
		tocsin_job_close(job);
		_exit(0);
	}
	assert_int_equal(waitpid(forked, &status, 0), forked);
	assert_int_equal(status, 0);
	atomic_store_explicit(&slow.over, true, memory_order_release);
	tocsin_comm_unregister(comm);
	tocsin_job_close(job);
	settle(bed);
}

static void who_leaves_or_has_finalized_is_not_gone(void **state) {
	static const char letters[] = "lf";
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct tocsin_event event = TOCSIN_INIT(struct tocsin_event);

	member_connect(bed, &self);
	for (size_t n = 0; n < strlen(letters); n++) {
		struct child child = child_start(bed, 1, 0);

		child_do(&child, letters[n]);
		child_end(bed, &child, letters[n] == 'f' ? SIGKILL : 0);
		assert_false(next_event(bed, &self, &event));
	}
	assert_false(tocsin_comm_should_abort(self.comm));
	member_close(bed, &self);
}

// When the agent sees the end, the last message is still unread in the socket, or only in the
// page.
static void who_leaves_while_the_agent_is_busy_is_not_gone(void **state) {
	static const char letters[] = "mu";
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct tocsin_event event = TOCSIN_INIT(struct tocsin_event);

	member_connect(bed, &self);
	for (size_t n = 0; n < strlen(letters); n++) {
		struct child child = child_start(bed, 1, 0);

		look_again(bed);
		child_do(&child, letters[n]);
		while (!is_zombie(child.pid))
			(void)poll(NULL, 0, 1);
		child_end(bed, &child, 0);
		assert_false(next_event(bed, &self, &event));
	}
	assert_false(tocsin_comm_should_abort(self.comm));
	assert_int_equal(jobhost_counters(bed->host)->gone, 0);
	member_close(bed, &self);
}

// The kernel reports the unread data of the other end before the data that was sent.
static void who_leaves_without_reading_all_is_not_gone(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4), other = member_open(bed, 1, 4);
	struct child child;
	struct tocsin_event event = TOCSIN_INIT(struct tocsin_event);

	member_connect(bed, &self);
	member_connect(bed, &other);
	child = child_start(bed, 3, 0);
	child_end(bed, &child, SIGKILL);
	tocsin_job_close(other.job); // it has not read the event that 3 is gone
	settle(bed);
	assert_int_equal(jobhost_counters(bed->host)->ranks, 1);
	while (next_event(bed, &self, &event))
		assert_int_not_equal(event.rank, 1);
	member_close(bed, &self);
}

static void who_restarts_the_agent_tells_nobody_gone_and_forgets_nobody(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct child first, second;
	struct tocsin_event event = TOCSIN_INIT(struct tocsin_event);
	struct tocsin_failed_set before, after;
	uint32_t ranks[4];

	member_connect(bed, &self);
	first = child_start(bed, 1, 0);
	second = child_start(bed, 2, 0);
	child_end(bed, &first, SIGKILL);
	while (next_event(bed, &self, &event)) {
	}
	before = failed_of(&self, ranks);
	assert_int_equal(before.count, 1);

	jobhost_destroy(bed->host);
	(void)tocsin_job_poll(self.job);
	assert_int_equal(failed_of(&self, ranks).agreement, TOCSIN_UNDECIDED);
	host_start(bed);
	member_connect(bed, &self);
	assert_false(next_event(bed, &self, &event));
	for (int n = 0; n < TURNS_MAX && ranks_shown(bed) < 2; n++)
		turn(bed, 1);
	settle(bed);
	child_end(bed, &second, SIGKILL);
	assert_true(next_event(bed, &self, &event));
	assert_int_equal(event.rank, 2);
	after = failed_of(&self, ranks);
	assert_true(after.view > before.view);
	assert_int_equal(after.agreement, TOCSIN_AGREED);
	assert_int_equal(after.count, 2);
	assert_int_equal(ranks[0], 1);
	assert_int_equal(ranks[1], 2);
	member_close(bed, &self);
}

static void a_real_time_signal_is_told_by_its_number(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct child child;
	struct tocsin_event event = TOCSIN_INIT(struct tocsin_event);

	member_connect(bed, &self);
	child = child_start(bed, 3, 0);
	child_end(bed, &child, SIGRTMIN + 3);
	assert_true(next_event(bed, &self, &event));
	assert_non_null(strstr(event.text, "(a real-time signal)"));
	member_close(bed, &self);
}

static void another_users_communicator_of_the_same_key_is_another_one(void **state) {
	struct bed *bed = *state;
	struct member self;
	struct child child;
	struct tocsin_event event = TOCSIN_INIT(struct tocsin_event);

	if (geteuid() != 0)
		skip();
	self = member_open(bed, 0, 4);
	member_connect(bed, &self);
	child = child_start(bed, 1, 65534);
	child_end(bed, &child, SIGKILL);
	assert_int_equal(jobhost_counters(bed->host)->exits, 1);
	assert_false(next_event(bed, &self, &event));
	assert_false(tocsin_comm_should_abort(self.comm));
	member_close(bed, &self);
}

UNIT_GROUP(jobhost) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_member_that_is_killed_is_told_to_who_survives, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_child_waits_for_no_callback_of_its_parent, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			who_leaves_or_has_finalized_is_not_gone, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			who_leaves_while_the_agent_is_busy_is_not_gone, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			who_leaves_without_reading_all_is_not_gone, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			who_restarts_the_agent_tells_nobody_gone_and_forgets_nobody, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_real_time_signal_is_told_by_its_number, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			another_users_communicator_of_the_same_key_is_another_one, setup, teardown
		),
	};

	return cmocka_run_group_tests_name("jobhost", tests, NULL, NULL);
}
