// SPDX-License-Identifier: BSD-3-Clause
// Readers on their own threads, which the test moves step by step with an invented time.
#include <lib/rcu.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

// A thread that runs one step when asked and sleeps in between. It keeps the RCU state in which the
// last step left it.
struct reader {
	pthread_t thread;
	pid_t tid;
	sem_t told;
	sem_t done;
	void (*step)(uint64_t now_ns); // NULL: the thread ends
	uint64_t now_ns;
};

static void *reader_run(void *argument) {
	struct reader *reader = argument;

	reader->tid = gettid();
	for (;;) {
		while (sem_wait(&reader->told) != 0)
			;
		if (reader->step == NULL)
			return NULL;
		reader->step(reader->now_ns);
		sem_post(&reader->done);
	}
}

static void reader_start(struct reader *reader) {
	assert_int_equal(sem_init(&reader->told, 0, 0), 0);
	assert_int_equal(sem_init(&reader->done, 0, 0), 0);
	assert_int_equal(pthread_create(&reader->thread, NULL, reader_run, reader), 0);
}

static void reader_do(struct reader *reader, void (*step)(uint64_t now_ns), uint64_t now_ns) {
	reader->step = step;
	reader->now_ns = now_ns;
	sem_post(&reader->told);
	while (sem_wait(&reader->done) != 0)
		;
}

static void reader_stop(struct reader *reader) {
	reader->step = NULL;
	sem_post(&reader->told);
	assert_int_equal(pthread_join(reader->thread, NULL), 0);
	sem_destroy(&reader->told);
	sem_destroy(&reader->done);
}

static void register_slow(uint64_t now_ns) {
	assert_int_equal(rcu_thread_register("worker-slow", now_ns), 0);
}

static void register_brisk(uint64_t now_ns) {
	assert_int_equal(rcu_thread_register("worker-brisk", now_ns), 0);
}

static void offline(uint64_t now_ns) {
	(void)now_ns;
	rcu_thread_offline();
}

static void unregister(uint64_t now_ns) {
	(void)now_ns;
	rcu_thread_unregister();
}

static void reader_that_sleeps_online_is_named_with_thread_and_time(void **state) {
	struct rcu_thread_stall stall;
	struct reader slow;
	struct reader brisk;

	(void)state;
	reader_start(&slow);
	reader_start(&brisk);
	reader_do(&slow, register_slow, 10 * SECOND_NS);
	reader_do(&brisk, register_brisk, 9 * SECOND_NS);
	reader_do(&brisk, rcu_thread_quiescent, 12 * SECOND_NS);

	assert_true(rcu_thread_find_stalled(2 * SECOND_NS, 13 * SECOND_NS, &stall));
	assert_string_equal(stall.name, "worker-slow");
	assert_int_equal(stall.tid, slow.tid);
	assert_int_equal(stall.quiet_ns, 3 * SECOND_NS);

	reader_do(&slow, rcu_thread_quiescent, 13 * SECOND_NS);
	assert_true(rcu_thread_find_stalled(1, 13 * SECOND_NS, &stall));
	assert_string_equal(stall.name, "worker-brisk");

	reader_do(&slow, unregister, 0);
	reader_do(&brisk, unregister, 0);
	reader_stop(&slow);
	reader_stop(&brisk);
}

static void nobody_is_named_below_the_threshold_and_the_output_is_left_alone(void **state) {
	struct rcu_thread_stall stall = {.name = "before", .tid = 7, .quiet_ns = 9};
	struct reader slow;

	(void)state;
	assert_false(rcu_thread_find_stalled(1, UINT64_MAX, &stall));
	reader_start(&slow);
	reader_do(&slow, register_slow, 10 * SECOND_NS);
	assert_false(rcu_thread_find_stalled(SECOND_NS + 1, 11 * SECOND_NS, &stall));
	// The caller read its clock before the reader did.
	assert_false(rcu_thread_find_stalled(1, 9 * SECOND_NS, &stall));
	assert_string_equal(stall.name, "before");
	assert_int_equal(stall.tid, 7);
	assert_int_equal(stall.quiet_ns, 9);
	assert_true(rcu_thread_find_stalled(SECOND_NS, 11 * SECOND_NS, &stall));
	reader_do(&slow, unregister, 0);
	reader_stop(&slow);
}

static void reader_that_sleeps_offline_is_not_named_until_it_is_back_for_as_long(void **state) {
	struct rcu_thread_stall stall;
	struct reader slow;

	(void)state;
	reader_start(&slow);
	reader_do(&slow, register_slow, 10 * SECOND_NS);
	reader_do(&slow, offline, 0);
	assert_false(rcu_thread_find_stalled(1, 1000 * SECOND_NS, &stall));
	reader_do(&slow, rcu_thread_online, 1000 * SECOND_NS);
	assert_false(rcu_thread_find_stalled(SECOND_NS, 1000 * SECOND_NS, &stall));
	assert_true(rcu_thread_find_stalled(SECOND_NS, 1001 * SECOND_NS, &stall));
	reader_do(&slow, offline, 0);
	reader_do(&slow, unregister, 0);
	assert_false(rcu_thread_find_stalled(1, 1001 * SECOND_NS, &stall));
	reader_stop(&slow);
}

static void grace_period_ends_while_a_reader_sleeps_offline(void **state) {
	struct reader slow;

	(void)state;
	reader_start(&slow);
	reader_do(&slow, register_slow, 0);
	reader_do(&slow, offline, 0);
	urcu_qsbr_synchronize_rcu(); // would never return if it waited for the offline reader
	reader_do(&slow, unregister, 0);
	reader_stop(&slow);
}

static atomic_bool grace_period_ended;

static void *wait_for_grace_period(void *argument) {
	urcu_qsbr_synchronize_rcu();
	atomic_store(&grace_period_ended, true);
	return argument;
}

static void grace_period_waits_for_a_reader_online_and_ends_at_its_quiescent_state(void **state) {
	struct rcu_thread_stall stall;
	struct reader slow;
	pthread_t waiter;

	(void)state;
	atomic_store(&grace_period_ended, false);
	reader_start(&slow);
	reader_do(&slow, register_slow, 0);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_grace_period, NULL), 0);
	assert_true(rcu_thread_find_stalled(1, SECOND_NS, &stall));
	assert_string_equal(stall.name, "worker-slow");
	assert_false(atomic_load(&grace_period_ended));
	// The waiter may start after any quiescent state. The first quiescent state after its start
	// releases it.
	while (!atomic_load(&grace_period_ended))
		reader_do(&slow, rcu_thread_quiescent, SECOND_NS);
	assert_int_equal(pthread_join(waiter, NULL), 0);
	reader_do(&slow, unregister, 0);
	reader_stop(&slow);
}

static void name_too_long_is_cut(void **state) {
	struct rcu_thread_stall stall;

	(void)state;
	assert_int_equal(rcu_thread_register("a-name-of-more-than-thirty-one-letters", 0), 0);
	assert_true(rcu_thread_find_stalled(1, 1, &stall));
	assert_string_equal(stall.name, "a-name-of-more-than-thirty-one-");
	rcu_thread_unregister();
}

static void thread_may_register_again_after_it_left(void **state) {
	(void)state;
	for (int i = 0; i < 2 * RCU_THREAD_COUNT_MAX; i++) {
		assert_int_equal(rcu_thread_register("again", 0), 0);
		rcu_thread_unregister();
	}
}

static void register_one(uint64_t now_ns) {
	assert_int_equal(rcu_thread_register("one", now_ns), 0);
}

static void registry_that_is_full_says_so_and_takes_the_next_when_one_leaves(void **state) {
	struct reader *readers = calloc(RCU_THREAD_COUNT_MAX, sizeof(*readers));

	(void)state;
	assert_non_null(readers);
	for (size_t i = 0; i < RCU_THREAD_COUNT_MAX; i++) {
		reader_start(&readers[i]);
		reader_do(&readers[i], register_one, 0);
	}
	assert_int_equal(rcu_thread_register("too-many", 0), -ENOSPC);
	reader_do(&readers[7], unregister, 0);
	assert_int_equal(rcu_thread_register("fits", 0), 0);
	rcu_thread_unregister();
	for (size_t i = 0; i < RCU_THREAD_COUNT_MAX; i++) {
		if (i != 7)
			reader_do(&readers[i], unregister, 0);
		reader_stop(&readers[i]);
	}
	free(readers);
}

static void register_twice(void) {
	rcu_thread_register("once", 0);
	rcu_thread_register("twice", 0);
}

static void quiescent_while_offline(void) {
	rcu_thread_register("x", 0);
	rcu_thread_offline();
	rcu_thread_quiescent(0);
}

static void quiescent_while_not_registered(void) {
	rcu_thread_quiescent(0);
}

static void online_while_online(void) {
	rcu_thread_register("x", 0);
	rcu_thread_online(0);
}

static void offline_while_offline(void) {
	rcu_thread_register("x", 0);
	rcu_thread_offline();
	rcu_thread_offline();
}

static void *register_and_end(void *argument) {
	rcu_thread_register("x", 0);
	return argument;
}

static void thread_ends_registered(void) {
	pthread_t thread;

	pthread_create(&thread, NULL, register_and_end, NULL);
	pthread_join(thread, NULL);
}

static void call_out_of_turn_stops_the_process(void **state) {
	void (*const mistakes[])(void) = {
		register_twice,		quiescent_while_offline, quiescent_while_not_registered,
		online_while_online,	offline_while_offline,	 rcu_thread_unregister,
		thread_ends_registered,
	};
	int status;

	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			signal(SIGABRT, SIG_DFL);
			close(STDERR_FILENO);
			mistakes[i]();
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
}

UNIT_GROUP(rcu_thread) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_that_sleeps_online_is_named_with_thread_and_time),
		cmocka_unit_test(nobody_is_named_below_the_threshold_and_the_output_is_left_alone),
		cmocka_unit_test(
			reader_that_sleeps_offline_is_not_named_until_it_is_back_for_as_long
		),
		cmocka_unit_test(grace_period_ends_while_a_reader_sleeps_offline),
		cmocka_unit_test(
			grace_period_waits_for_a_reader_online_and_ends_at_its_quiescent_state
		),
		cmocka_unit_test(name_too_long_is_cut),
		cmocka_unit_test(thread_may_register_again_after_it_left),
		cmocka_unit_test(registry_that_is_full_says_so_and_takes_the_next_when_one_leaves),
		cmocka_unit_test(call_out_of_turn_stops_the_process),
	};

	return cmocka_run_group_tests_name("rcu_thread", tests, NULL, NULL);
}
