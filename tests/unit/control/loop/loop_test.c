// SPDX-License-Identifier: BSD-3-Clause
#include <control/loop.h>
#include <lib/container.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define START_NS UINT64_C(1000000)
#define ACTORS_MAX 300

// One of everything that a loop can call, with a number. Calls are recorded in order.
struct actor {
	struct loop_source source;
	struct loop_timer timer;
	struct loop_job job;
	uint32_t number;
	void (*then)(struct actor *actor);
};

static struct clock fake_clock;
static struct loop *loop;
static struct actor actors[ACTORS_MAX];
static uint32_t called[4096];
static uint32_t called_count;
static uint32_t events_seen;

static void note(struct actor *actor) {
	assert_true(called_count < COUNT_OF(called));
	called[called_count++] = actor->number;
	if (actor->then != NULL)
		actor->then(actor);
}

static void on_ready(struct loop_source *source, uint32_t events) {
	events_seen = events;
	note(container_of(source, struct actor, source));
}

static void on_expired(struct loop_timer *timer, uint64_t now_ns) {
	assert_int_equal(now_ns, loop_now_ns(loop));
	note(container_of(timer, struct actor, timer));
}

static void on_run(struct loop_job *job) {
	note(container_of(job, struct actor, job));
}

static int make_loop(void **state) {
	(void)state;
	clock_init_fake(&fake_clock, START_NS);
	memset(actors, 0, sizeof(actors));
	called_count = 0;
	for (uint32_t n = 0; n < ACTORS_MAX; n++) {
		actors[n].number = n;
		actors[n].source.fd = -1;
		actors[n].source.ready = on_ready;
		actors[n].timer.expired = on_expired;
		actors[n].job.run = on_run;
	}
	return loop_create(&fake_clock, &loop);
}

static int end_loop(void **state) {
	(void)state;
	for (uint32_t n = 0; n < ACTORS_MAX; n++) {
		loop_remove(&actors[n].source);
		if (actors[n].source.fd >= 0)
			close(actors[n].source.fd);
	}
	loop = loop_destroy(loop);
	return 0;
}

// Add an eventfd that is readable and writable.
static void add_ready(uint32_t number, enum loop_rank rank) {
	struct loop_source *source = &actors[number].source;

	source->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(source->fd >= 0);
	source->events = EPOLLIN;
	source->rank = rank;
	assert_int_equal(loop_add(loop, source), 0);
}

static void make_quiet(uint32_t number) {
	eventfd_t value;

	assert_int_equal(eventfd_read(actors[number].source.fd, &value), 0);
}

static void set_timer(uint32_t number, uint64_t at_ns) {
	assert_int_equal(loop_timer_set(loop, &actors[number].timer, at_ns), 0);
}

static void turn(void) {
	called_count = 0;
	assert_int_equal(loop_turn(loop, 0), 0);
}

static uint32_t times_called(uint32_t number) {
	uint32_t times = 0;

	for (uint32_t n = 0; n < called_count; n++)
		times += called[n] == number;
	return times;
}

static void source_is_called_in_each_turn_while_it_is_ready(void **state) {
	(void)state;
	add_ready(0, LOOP_OVERLAY);
	for (unsigned n = 0; n < 3; n++) {
		turn();
		assert_int_equal(called_count, 1);
		assert_int_equal(events_seen, EPOLLIN);
	}
	make_quiet(0);
	turn();
	assert_int_equal(called_count, 0);
}

static uint64_t swept_ns;

static void note_swept(struct actor *actor) {
	(void)actor;
	swept_ns = loop_all_served_ns(loop);
}

static void what_is_ready_was_not_at_the_last_sweep(void **state) {
	(void)state;
	turn();
	clock_advance(&fake_clock, 500);
	add_ready(0, LOOP_CLIENTS);
	actors[0].then = note_swept;
	turn();
	assert_int_equal(swept_ns, START_NS);
	assert_int_equal(loop_all_served_ns(loop), START_NS + 500);
	// More clients are ready than a turn serves, so some may be ready and unserved.
	for (uint32_t n = 1; n < 20; n++)
		add_ready(n, LOOP_CLIENTS);
	clock_advance(&fake_clock, 500);
	turn();
	assert_int_equal(loop_all_served_ns(loop), START_NS + 500);
}

static void defer_seven(struct actor *actor) {
	(void)actor;
	loop_defer(loop, &actors[7].job);
}

static void order_is_events_then_deferred_then_timers(void **state) {
	(void)state;
	set_timer(9, START_NS);
	add_ready(0, LOOP_CLIENTS);
	add_ready(1, LOOP_OVERLAY);
	actors[1].then = defer_seven;
	turn();
	assert_int_equal(called_count, 4);
	assert_memory_equal(called, ((uint32_t[]){1, 0, 7, 9}), 4 * sizeof(uint32_t));
}

static void turn_has_one_time_and_the_clock_another(void **state) {
	(void)state;
	clock_advance(&fake_clock, 5);
	assert_int_equal(loop_now_ns(loop), START_NS);
	assert_int_equal(loop_clock_ns(loop), START_NS + 5);
	turn();
	assert_int_equal(loop_now_ns(loop), START_NS + 5);
}

static void timer_expires_with_its_nanosecond_once(void **state) {
	(void)state;
	set_timer(0, START_NS + 10);
	clock_advance(&fake_clock, 9);
	turn();
	assert_int_equal(called_count, 0);
	clock_advance(&fake_clock, 1);
	turn();
	assert_int_equal(called_count, 1);
	clock_advance(&fake_clock, 100);
	turn();
	assert_int_equal(called_count, 0);
}

static void timer_set_again_has_only_its_last_time(void **state) {
	(void)state;
	set_timer(0, START_NS + 10);
	set_timer(0, START_NS + 30);
	set_timer(0, START_NS + 20);
	clock_advance(&fake_clock, 19);
	turn();
	assert_int_equal(called_count, 0);
	clock_advance(&fake_clock, 100);
	turn();
	assert_int_equal(called_count, 1);
}

static void timer_that_never_comes_does_not(void **state) {
	(void)state;
	set_timer(0, UINT64_MAX);
	clock_advance(&fake_clock, UINT64_MAX - START_NS);
	turn();
	assert_int_equal(called_count, 0);
}

// Compare with the simplest model, which searches all timers.
static void timers_expire_in_order_whatever_was_set_and_cancelled(void **state) {
	uint64_t model[200] = {0};
	uint64_t now_ns = START_NS;
	uint64_t due;

	(void)state;
	srand48(1);
	for (unsigned step = 0; step < 5000; step++) {
		uint32_t n = (uint32_t)lrand48() % COUNT_OF(model);

		if (lrand48() % 4 == 0) {
			loop_timer_cancel(loop, &actors[n].timer);
			model[n] = 0;
		} else {
			model[n] = now_ns + 1 + (uint64_t)lrand48() % 1000;
			set_timer(n, model[n]);
		}
		if (step % 8 != 0)
			continue;
		clock_advance(&fake_clock, 20);
		now_ns += 20;
		due = 0;
		for (n = 0; n < COUNT_OF(model); n++)
			due += model[n] != 0 && model[n] <= now_ns;
		turn();
		assert_int_equal(called_count, due);
		for (n = 0; n < called_count; n++) {
			assert_true(n == 0 || model[called[n]] >= model[called[n - 1]]);
			assert_in_range(model[called[n]], 1, now_ns);
		}
		for (n = 0; n < called_count; n++)
			model[called[n]] = 0;
	}
}

static void set_to_now(struct actor *actor) {
	set_timer(actor->number, loop_now_ns(loop));
}

static void timer_that_sets_itself_to_now_does_not_hold_the_turn(void **state) {
	(void)state;
	actors[0].then = set_to_now;
	set_timer(0, START_NS);
	turn();
	assert_int_equal(called_count, 1);
	turn();
	assert_int_equal(called_count, 1);
}

static void cancel_one(struct actor *actor) {
	(void)actor;
	loop_timer_cancel(loop, &actors[1].timer);
}

static void timer_cancelled_by_another_of_the_turn_does_not_expire(void **state) {
	(void)state;
	actors[0].then = cancel_one;
	set_timer(0, START_NS - 2);
	set_timer(1, START_NS - 1);
	turn();
	assert_int_equal(called_count, 1);
	loop_timer_cancel(loop, &actors[1].timer); // cancelling again has no effect
}

static void remove_the_other(struct actor *actor) {
	loop_remove(&actors[1 - actor->number].source);
}

static void source_removed_in_the_turn_it_was_ready_in_is_not_called(void **state) {
	(void)state;
	add_ready(0, LOOP_OVERLAY);
	add_ready(1, LOOP_OVERLAY);
	actors[0].then = remove_the_other;
	actors[1].then = remove_the_other;
	turn();
	assert_int_equal(called_count, 1);
}

// The new source takes over the slot for which an event is already fetched.
static void replace_the_other(struct actor *actor) {
	remove_the_other(actor);
	actors[1 - actor->number].then = NULL;
	actor->then = NULL;
	add_ready(2, LOOP_OVERLAY);
}

static void event_of_a_removed_source_reaches_no_successor(void **state) {
	(void)state;
	add_ready(0, LOOP_OVERLAY);
	add_ready(1, LOOP_OVERLAY);
	actors[0].then = replace_the_other;
	actors[1].then = replace_the_other;
	turn();
	assert_int_equal(called_count, 1);
	turn();
	assert_int_equal(called_count, 2);
	assert_int_equal(times_called(2), 1);
}

static void remove_and_forget(struct actor *actor) {
	loop_remove(&actor->source);
	close(actor->source.fd);
	memset(actor, 0xee, sizeof(*actor));
	actor->source.loop = NULL;
	actor->source.fd = -1;
}

static void source_may_remove_itself_and_be_gone(void **state) {
	(void)state;
	add_ready(0, LOOP_CLIENTS);
	actors[0].then = remove_and_forget;
	turn();
	assert_int_equal(called_count, 1);
	turn();
	assert_int_equal(called_count, 0);
}

static void make_writer_of_the_other(struct actor *actor) {
	uint32_t other = 1 - actor->number;

	actors[other].then = NULL;
	loop_set_events(&actors[other].source, EPOLLOUT);
}

static void source_is_not_told_of_what_it_no_longer_wants(void **state) {
	(void)state;
	add_ready(0, LOOP_OVERLAY);
	add_ready(1, LOOP_OVERLAY);
	actors[0].then = make_writer_of_the_other;
	actors[1].then = make_writer_of_the_other;
	turn();
	assert_int_equal(called_count, 1);
	assert_int_equal(events_seen, EPOLLIN);
	turn();
	assert_int_equal(called_count, 2);
	loop_set_events(&actors[0].source, 0);
	loop_set_events(&actors[1].source, 0);
	turn();
	assert_int_equal(called_count, 0);
}

static void hang_up_comes_unasked(void **state) {
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	actors[0].source.fd = ends[0];
	assert_int_equal(loop_add(loop, &actors[0].source), 0);
	turn();
	assert_int_equal(called_count, 0);
	close(ends[1]);
	turn();
	assert_int_equal(called_count, 1);
	assert_true((events_seen & EPOLLHUP) != 0);
}

static void add_many(struct actor *actor) {
	actor->then = NULL;
	for (uint32_t n = 100; n < ACTORS_MAX; n++)
		add_ready(n, LOOP_OVERLAY);
}

static void every_ready_source_of_the_overlay_is_served_in_a_turn(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 100; n++) {
		add_ready(n, LOOP_OVERLAY);
		actors[n].then = n == 0 ? add_many : NULL; // while fetched events wait
	}
	turn();
	assert_int_equal(called_count, 100);
	turn();
	assert_int_equal(called_count, ACTORS_MAX);
	for (uint32_t n = 0; n < ACTORS_MAX; n++)
		assert_int_equal(times_called(n), 1);
}

static void clients_are_served_in_turn_some_at_a_time_after_the_overlay(void **state) {
	uint32_t served[5 * LOOP_CLIENTS_PER_TURN] = {0};

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(served); n++)
		add_ready(n, LOOP_CLIENTS);
	add_ready(200, LOOP_OVERLAY);
	for (unsigned round = 1; round <= 3; round++) {
		for (unsigned n = 0; n < 5; n++) {
			turn();
			assert_int_equal(called_count, LOOP_CLIENTS_PER_TURN + 1);
			assert_int_equal(called[0], 200);
			for (uint32_t at = 1; at < called_count; at++)
				served[called[at]]++;
		}
		for (uint32_t n = 0; n < COUNT_OF(served); n++)
			assert_int_equal(served[n], round);
	}
	assert_int_equal(loop_counters(loop)->clients_full, 15);
}

static void client_that_the_overlay_removes_in_the_same_turn_is_not_called(void **state) {
	(void)state;
	add_ready(0, LOOP_CLIENTS);
	add_ready(1, LOOP_OVERLAY);
	actors[1].then = remove_the_other;
	turn();
	assert_int_equal(called_count, 1);
	assert_int_equal(called[0], 1);
}

static void plain_file_is_refused_and_counts_as_never_added(void **state) {
	(void)state;
	actors[0].source.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	actors[0].source.events = EPOLLIN;
	assert_int_equal(loop_add(loop, &actors[0].source), -EPERM);
	loop_remove(&actors[0].source);
	add_ready(1, LOOP_OVERLAY);
	turn();
	assert_int_equal(called_count, 1);
}

static void job_runs_once_however_often_it_is_deferred(void **state) {
	(void)state;
	loop_defer(loop, &actors[1].job);
	loop_defer(loop, &actors[0].job);
	loop_defer(loop, &actors[1].job);
	turn();
	assert_int_equal(called_count, 2);
	assert_int_equal(called[0], 1);
	turn();
	assert_int_equal(called_count, 0);
}

static void defer_self(struct actor *actor) {
	loop_defer(loop, &actor->job);
}

static void job_deferred_by_a_job_or_timer_runs_in_a_next_turn_without_waiting(void **state) {
	(void)state;
	actors[0].then = defer_self;
	loop_defer(loop, &actors[0].job);
	set_timer(1, START_NS);
	actors[1].then = defer_seven;
	turn();
	assert_int_equal(called_count, 2);
	actors[0].then = NULL;
	called_count = 0;
	assert_int_equal(loop_turn(loop, -1), 0); // hangs if the turn waits
	assert_int_equal(called_count, 2);
	assert_memory_equal(called, ((uint32_t[]){0, 7}), 2 * sizeof(uint32_t));
}

static void undefer_others(struct actor *actor) {
	for (uint32_t n = 0; n < 5; n++) {
		if (n != actor->number && n != 3)
			loop_undefer(loop, &actors[n].job);
	}
	loop_defer(loop, &actors[5].job);
	loop_undefer(loop, &actors[5].job);
	loop_defer(loop, &actors[6].job);
}

static void job_taken_back_does_not_run_even_if_its_turn_had_begun(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 5; n++)
		loop_defer(loop, &actors[n].job);
	loop_undefer(loop, &actors[0].job);
	actors[1].then = undefer_others;
	turn();
	assert_int_equal(called_count, 2);
	assert_memory_equal(called, ((uint32_t[]){1, 3}), 2 * sizeof(uint32_t));
	turn();
	assert_int_equal(called_count, 1);
	assert_int_equal(called[0], 6);
}

static void stop_loop(struct actor *actor) {
	(void)actor;
	loop_stop(loop);
}

static void sleeping_loop_is_woken_by_its_timers_and_by_them_alone(void **state) {
	struct clock clock;
	uint64_t start_ns;

	(void)state;
	loop_destroy(loop);
	clock_init_monotonic(&clock);
	assert_int_equal(loop_create(&clock, &loop), 0);
	start_ns = loop_now_ns(loop);
	set_timer(0, start_ns + 4000000);
	set_timer(1, start_ns + 2000000);
	actors[0].then = stop_loop;
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(called_count, 2);
	assert_int_equal(called[0], 1);
	assert_true(loop_now_ns(loop) >= start_ns + 4000000);
	assert_in_range(loop_counters(loop)->turns, 1, 2); // both in one turn on a slow machine
}

static void stop_before_running_ends_it_at_once(void **state) {
	(void)state;
	loop_stop(loop);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(loop_counters(loop)->turns, 0);
}

static void pass_time(struct actor *actor) {
	(void)actor;
	clock_advance(&fake_clock, 700);
}

static void counters_tell_the_longest_turn_and_the_latest_timer(void **state) {
	(void)state;
	add_ready(0, LOOP_OVERLAY);
	actors[0].then = pass_time;
	set_timer(1, START_NS - 50);
	turn();
	assert_int_equal(loop_counters(loop)->turn_longest_ns, 700);
	assert_int_equal(loop_counters(loop)->timer_late_longest_ns, 750);
	assert_int_equal(loop_counters(loop)->busy_ns, 700);
	actors[0].then = NULL;
	turn();
	assert_int_equal(loop_counters(loop)->turn_longest_ns, 700);
	assert_int_equal(loop_counters(loop)->turns, 2);
	assert_int_equal(loop_counters(loop)->events, 2);
	assert_int_equal(loop_counters(loop)->timers, 1);
}

static void what_was_longest_is_told_for_a_minute_and_not_for_three(void **state) {
	(void)state;
	add_ready(0, LOOP_OVERLAY);
	actors[0].then = pass_time;
	turn();
	actors[0].then = NULL;
	for (uint32_t n = 0; n < 2; n++) {
		clock_advance(&fake_clock, LOOP_LONGEST_NS - 1000);
		turn();
		assert_int_equal(loop_counters(loop)->turn_longest_ns, 700);
	}
	clock_advance(&fake_clock, LOOP_LONGEST_NS);
	turn();
	assert_int_equal(loop_counters(loop)->turn_longest_ns, 0);
}

#define ON_A_LOOP(test) cmocka_unit_test_setup_teardown(test, make_loop, end_loop)

UNIT_GROUP(loop) {
	const struct CMUnitTest tests[] = {
		ON_A_LOOP(source_is_called_in_each_turn_while_it_is_ready),
		ON_A_LOOP(what_is_ready_was_not_at_the_last_sweep),
		ON_A_LOOP(order_is_events_then_deferred_then_timers),
		ON_A_LOOP(turn_has_one_time_and_the_clock_another),
		ON_A_LOOP(timer_expires_with_its_nanosecond_once),
		ON_A_LOOP(timer_set_again_has_only_its_last_time),
		ON_A_LOOP(timer_that_never_comes_does_not),
		ON_A_LOOP(timers_expire_in_order_whatever_was_set_and_cancelled),
		ON_A_LOOP(timer_that_sets_itself_to_now_does_not_hold_the_turn),
		ON_A_LOOP(timer_cancelled_by_another_of_the_turn_does_not_expire),
		ON_A_LOOP(source_removed_in_the_turn_it_was_ready_in_is_not_called),
		ON_A_LOOP(event_of_a_removed_source_reaches_no_successor),
		ON_A_LOOP(source_may_remove_itself_and_be_gone),
		ON_A_LOOP(source_is_not_told_of_what_it_no_longer_wants),
		ON_A_LOOP(hang_up_comes_unasked),
		ON_A_LOOP(every_ready_source_of_the_overlay_is_served_in_a_turn),
		ON_A_LOOP(clients_are_served_in_turn_some_at_a_time_after_the_overlay),
		ON_A_LOOP(client_that_the_overlay_removes_in_the_same_turn_is_not_called),
		ON_A_LOOP(plain_file_is_refused_and_counts_as_never_added),
		ON_A_LOOP(job_runs_once_however_often_it_is_deferred),
		ON_A_LOOP(job_deferred_by_a_job_or_timer_runs_in_a_next_turn_without_waiting),
		ON_A_LOOP(job_taken_back_does_not_run_even_if_its_turn_had_begun),
		ON_A_LOOP(sleeping_loop_is_woken_by_its_timers_and_by_them_alone),
		ON_A_LOOP(stop_before_running_ends_it_at_once),
		ON_A_LOOP(counters_tell_the_longest_turn_and_the_latest_timer),
		ON_A_LOOP(what_was_longest_is_told_for_a_minute_and_not_for_three),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
