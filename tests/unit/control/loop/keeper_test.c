// SPDX-License-Identifier: BSD-3-Clause
// The test sets the clock, and a call hangs in read() until the test writes. No result depends on
// real time.
#include <control/keeper.h>
#include <lib/container.h>
#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define SEC UINT64_C(1000000000)

static struct clock fake_clock;
static struct loop *loop;
static struct keeper *keeper;
static uint32_t stuck_count;
// pipes: what a call waits for, and one byte for each argument that was dropped.
static int gate[2], dropped[2];

struct argument {
	int (*act)(struct argument *argument);
	int number;
	pthread_t thread;
};

struct asker {
	struct keeper_request request;
	int number, result;
	bool answered;
};

static struct asker *order[KEEPER_PENDING_MAX];
static uint32_t answered_count;

static int call(void *arg) {
	struct argument *argument = arg;

	argument->thread = pthread_self();
	return argument->act != NULL ? argument->act(argument) : argument->number;
}

static void drop(void *arg) {
	free(arg);
	assert_int_equal(write(dropped[1], "", 1), 1);
}

static int hang(struct argument *argument) {
	char byte;

	return read(gate[0], &byte, 1) == 1 ? argument->number : -EIO;
}

static void ended(struct keeper_request *request, void *arg, int result) {
	struct asker *asker = container_of(request, struct asker, request);
	const struct argument *argument = arg;

	assert_false(pthread_equal(argument->thread, pthread_self()));
	assert_null(request->job);
	asker->answered = true;
	asker->result = result;
	order[answered_count++] = asker;
}

static void stuck(void *ctx, struct keeper *which) {
	assert_ptr_equal(ctx, &stuck_count);
	assert_ptr_equal(which, keeper);
	stuck_count++;
}

static struct keeper_counters totals;

static int begin(void **state) {
	const struct keeper_ops ops = {.stuck = stuck, .ctx = &stuck_count, .totals = &totals};

	(void)state;
	stuck_count = answered_count = 0;
	totals = (struct keeper_counters){.calls = 1000, .stuck = 1000, .refused = 1000};
	clock_init_fake(&fake_clock, SEC);
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	assert_int_equal(pipe2(dropped, O_CLOEXEC), 0);
	assert_int_equal(loop_create(&fake_clock, &loop), 0);
	return keeper_create(loop, "keeper-of-the-longest-name", &ops, &keeper);
}

static int end(void **state) {
	(void)state;
	keeper = keeper_destroy(keeper);
	loop = loop_destroy(loop);
	for (unsigned n = 0; n < 2; n++) {
		close(gate[n]);
		close(dropped[n]);
	}
	return 0;
}

static int ask_within(
	struct asker *asker, int number, int (*act)(struct argument *argument), uint64_t limit_ns
) {
	struct argument *argument = calloc(1, sizeof(*argument));
	const struct keeper_call given = {
		.call = call, .drop = drop, .arg = argument, .limit_ns = limit_ns};
	int err;

	assert_non_null(argument);
	argument->act = act;
	argument->number = number;
	*asker = (struct asker){.request.ended = ended, .number = number};
	err = keeper_run(keeper, &given, &asker->request);
	if (err != 0)
		free(argument);
	return err;
}

static int ask(struct asker *asker, int number, int (*act)(struct argument *argument)) {
	return ask_within(asker, number, act, 0);
}

static void turn_until_answered(uint32_t count) {
	while (answered_count < count)
		assert_int_equal(loop_turn(loop, -1), 0);
}

static void wait_dropped(uint32_t count) {
	char byte;

	while (count-- > 0)
		assert_int_equal(read(dropped[0], &byte, 1), 1);
}

static void pass(uint64_t ns) {
	clock_advance(&fake_clock, ns);
	assert_int_equal(loop_turn(loop, 0), 0);
}

static void calls_are_made_in_order_and_their_results_passed_on(void **state) {
	struct asker askers[20];

	(void)state;
	for (int n = 0; n < 20; n++)
		assert_int_equal(ask(&askers[n], -n, NULL), 0);
	assert_int_equal(answered_count, 0); // callbacks never run during the request itself
	turn_until_answered(20);
	for (int n = 0; n < 20; n++) {
		assert_ptr_equal(order[n], &askers[n]);
		assert_int_equal(askers[n].result, -n);
	}
	wait_dropped(20);
	assert_int_equal(keeper_counters(keeper)->calls, 20);
	assert_int_equal(totals.calls, 1020);
	assert_int_equal(keeper_busy_ns(keeper), 0);
}

static void a_call_that_hangs_is_reported_once_and_the_loop_goes_on(void **state) {
	struct asker slow, behind;

	(void)state;
	assert_int_equal(ask(&slow, 7, hang), 0);
	assert_int_equal(ask(&behind, 8, NULL), 0);
	pass(KEEPER_STUCK_NS - 1);
	assert_int_equal(stuck_count, 0);
	assert_false(keeper_is_stuck(keeper));
	pass(1);
	assert_int_equal(stuck_count, 1);
	assert_true(keeper_is_stuck(keeper));
	pass(100 * SEC);
	assert_int_equal(stuck_count, 1);
	assert_int_equal(keeper_busy_ns(keeper), KEEPER_STUCK_NS + 100 * SEC);
	assert_int_equal(write(gate[1], "", 1), 1);
	turn_until_answered(2);
	assert_int_equal(slow.result, 7);
	assert_int_equal(behind.result, 8);
	assert_false(keeper_is_stuck(keeper));
	assert_int_equal(keeper_counters(keeper)->stuck, 1);
	assert_int_equal(totals.stuck, 1001);
	assert_int_equal(totals.longest_ns, KEEPER_STUCK_NS + 100 * SEC);
	assert_int_equal(keeper_counters(keeper)->longest_ns, KEEPER_STUCK_NS + 100 * SEC);
	wait_dropped(2);
}

static void a_call_with_a_limit_of_its_own_may_take_as_long(void **state) {
	struct asker slow, behind;

	(void)state;
	assert_int_equal(ask_within(&slow, 7, hang, 10 * KEEPER_STUCK_NS), 0);
	assert_int_equal(ask(&behind, 8, hang), 0);
	pass(10 * KEEPER_STUCK_NS - 1);
	assert_int_equal(stuck_count, 0);
	pass(1);
	assert_int_equal(stuck_count, 1);
	assert_int_equal(write(gate[1], "", 1), 1);
	turn_until_answered(1);
	pass(KEEPER_STUCK_NS);
	assert_int_equal(stuck_count, 2);
	assert_int_equal(write(gate[1], "", 1), 1);
	turn_until_answered(2);
	wait_dropped(2);
}

static void the_next_call_is_timed_from_when_the_first_came_back(void **state) {
	struct asker first, second;

	(void)state;
	assert_int_equal(ask(&first, 1, hang), 0);
	assert_int_equal(ask(&second, 2, hang), 0);
	pass(KEEPER_STUCK_NS - 1);
	assert_int_equal(write(gate[1], "", 1), 1);
	turn_until_answered(1);
	pass(KEEPER_STUCK_NS - 1);
	assert_int_equal(stuck_count, 0);
	pass(1);
	assert_int_equal(stuck_count, 1);
	assert_int_equal(write(gate[1], "", 1), 1);
	turn_until_answered(2);
	wait_dropped(2);
}

static void stop_with_a_stuck_call_leaves_it_behind_and_drops_what_waits(void **state) {
	struct asker slow, behind;

	(void)state;
	assert_int_equal(ask(&slow, 1, hang), 0);
	assert_int_equal(ask(&behind, 2, NULL), 0);
	pass(KEEPER_STUCK_NS);
	keeper = keeper_destroy(keeper);
	assert_null(slow.request.job);
	assert_null(behind.request.job);
	assert_int_equal(write(gate[1], "", 1), 1);
	wait_dropped(2); // dropped by the keeper's thread once the call has returned
	assert_false(slow.answered || behind.answered);
}

static void a_cancelled_call_that_waits_is_never_made(void **state) {
	struct asker slow, cancelled, last;

	(void)state;
	assert_int_equal(ask(&slow, 1, hang), 0);
	assert_int_equal(ask(&cancelled, 2, hang), 0); // would hang for ever
	assert_int_equal(ask(&last, 3, NULL), 0);
	keeper_cancel(&cancelled.request);
	// The keeper may not have started the first call yet; the second one is dropped
	// immediately.
	wait_dropped(1);
	keeper_cancel(&cancelled.request);
	assert_int_equal(write(gate[1], "", 1), 1);
	turn_until_answered(2);
	assert_false(cancelled.answered);
	assert_int_equal(last.result, 3);
	wait_dropped(2);
}

static void a_cancelled_call_under_way_is_not_answered(void **state) {
	struct asker slow, last;

	(void)state;
	assert_int_equal(ask(&slow, 1, hang), 0);
	assert_int_equal(write(gate[1], "", 1), 1);
	keeper_cancel(&slow.request);
	assert_int_equal(ask(&last, 3, NULL), 0);
	turn_until_answered(1);
	assert_false(slow.answered);
	assert_ptr_equal(order[0], &last);
	wait_dropped(2);
}

static void no_more_than_the_bound_may_wait(void **state) {
	static struct asker askers[KEEPER_PENDING_MAX + 1];

	(void)state;
	assert_int_equal(ask(&askers[0], 0, hang), 0);
	for (int n = 1; n < KEEPER_PENDING_MAX; n++)
		assert_int_equal(ask(&askers[n], n, NULL), 0);
	assert_int_equal(ask(&askers[KEEPER_PENDING_MAX], 0, NULL), -EAGAIN);
	assert_null(askers[KEEPER_PENDING_MAX].request.job);
	assert_int_equal(keeper_counters(keeper)->refused, 1);
	assert_int_equal(totals.refused, 1001);
	assert_int_equal(write(gate[1], "", 1), 1);
	turn_until_answered(KEEPER_PENDING_MAX);
	wait_dropped(KEEPER_PENDING_MAX);
}

static void ask_again(struct keeper_request *request, void *arg, int result) {
	ended(request, arg, result);
	if (result > 0)
		assert_int_equal(
			ask(container_of(request, struct asker, request), result - 1, NULL), 0
		);
	((struct asker *)request)->request.ended = ask_again;
}

static void an_answer_may_ask_again(void **state) {
	struct asker asker;

	(void)state;
	assert_int_equal(ask(&asker, 3, NULL), 0);
	asker.request.ended = ask_again;
	turn_until_answered(4);
	assert_int_equal(asker.result, 0);
	wait_dropped(4);
}

UNIT_GROUP(keeper) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			calls_are_made_in_order_and_their_results_passed_on, begin, end
		),
		cmocka_unit_test_setup_teardown(
			a_call_that_hangs_is_reported_once_and_the_loop_goes_on, begin, end
		),
		cmocka_unit_test_setup_teardown(
			a_call_with_a_limit_of_its_own_may_take_as_long, begin, end
		),
		cmocka_unit_test_setup_teardown(
			the_next_call_is_timed_from_when_the_first_came_back, begin, end
		),
		cmocka_unit_test_setup_teardown(
			stop_with_a_stuck_call_leaves_it_behind_and_drops_what_waits, begin, end
		),
		cmocka_unit_test_setup_teardown(
			a_cancelled_call_that_waits_is_never_made, begin, end
		),
		cmocka_unit_test_setup_teardown(
			a_cancelled_call_under_way_is_not_answered, begin, end
		),
		cmocka_unit_test_setup_teardown(no_more_than_the_bound_may_wait, begin, end),
		cmocka_unit_test_setup_teardown(an_answer_may_ask_again, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
