// SPDX-License-Identifier: BSD-3-Clause
// Tests of lanes on a running worker. Requests add and remove them, completions end the worker's
// sleep, and control receives everything as events.
#include "dataplane/lane/lane_bed.h"
#include "worker/worker_impl.h"

#include <errno.h>
#include <poll.h>

#define OPERATIONS_MAX 5000 // limit of operations until a worker sleeps

#define WAIT_MS 1 // the fake completes operations only when it is called

static const struct bed_config threaded = {
	.pair_max = 4,
	.depth = 8,
	.op_max = 64,
	.message_max = 4096,
	.threaded = true,
};

static void post(struct bed *bed, int side, uint32_t kind, uint64_t word1, uint64_t word2) {
	const struct worker_record record = {
		.kind = kind,
		.words =
			{worker_pointer_to_word(bed->lanes[side]), word1, word2,
			 (uint64_t)-EHOSTDOWN},
	};

	assert_int_equal(worker_post_request(bed->worker, &record), 0);
}

#define PAIRS 16

static const struct bed_config crowded = {
	.pair_max = PAIRS,
	.depth = 8,
	.op_max = 64,
	.message_max = 4096,
	.threaded = true,
};

static struct worker_record next_event(struct bed *bed) {
	struct pollfd fd = {.fd = worker_event_fd(bed->worker), .events = POLLIN};
	struct worker_record record;

	while (worker_take_events(bed->worker, &record, 1) == 0) {
		fake_verbs_run();
		(void)poll(&fd, 1, WAIT_MS);
	}
	return record;
}

static struct worker_record wait_for(struct bed *bed, enum lane_event kind) {
	struct worker_record record = next_event(bed);

	assert_int_equal(record.kind, kind);
	return record;
}

static void start(struct bed *bed, enum idle_policy policy) {
	struct worker_facts facts;

	bed->worker->config.idle.policy = policy;
	bed->worker->config.idle.window_ns = 1000;
	assert_int_equal(worker_start(bed->worker, &facts), 0);
	for (int side = 0; side < 2; side++) {
		post(bed, side, LANE_REQUEST_ATTACH, 0, 0);
		assert_int_equal(wait_for(bed, LANE_EVENT_ATTACHED).words[1], 0);
	}
}

static struct bed_pair pair_up(struct bed *bed) {
	struct bed_pair pair;

	bed_connect(bed, pair.ends);
	for (int side = 0; side < 2; side++) {
		pair.slots[side] = pair_slot(pair.ends[side]);
		pair.generations[side] = pair_generation(pair.ends[side]);
		pair.qps[side] = pair.ends[side]->qp;
		post(bed, side, LANE_REQUEST_ADD, worker_pointer_to_word(pair.ends[side]), 0);
	}
	return pair;
}

static void end_pair(struct bed *bed, const struct bed_pair *pair) {
	for (int side = 0; side < 2; side++) {
		struct worker_record record;

		post(bed, side, LANE_REQUEST_FAIL, pair->slots[side], pair->generations[side]);
		record = wait_for(bed, LANE_EVENT_FAILED);
		assert_ptr_equal(worker_word_to_pointer(record.words[1]), pair->ends[side]);
		assert_int_equal((int)(int64_t)record.words[2], -EHOSTDOWN);
		assert_int_equal(pair_fail(pair->ends[side]), 0);
		wait_for(bed, LANE_EVENT_DRAINED);
		assert_int_equal(pair_cause(pair->ends[side])->err, -EHOSTDOWN);
		assert_int_equal(pair_destroy(pair->ends[side]), 0);
	}
}

// End both sides of each pair, as control does for a dead peer. Then detach the lanes and stop the
// worker.
static void finish(struct bed *bed, const struct bed_pair *pairs, uint32_t count) {
	for (int side = 0; side < 2; side++) {
		post(bed, side, LANE_REQUEST_DETACH, 0, 0);
		assert_int_equal((int)wait_for(bed, LANE_EVENT_DETACHED).words[1], -EBUSY);
	}
	for (uint32_t n = 0; n < count; n++)
		end_pair(bed, &pairs[n]);
	for (int side = 0; side < 2; side++) {
		post(bed, side, LANE_REQUEST_DETACH, 0, 0);
		assert_int_equal(wait_for(bed, LANE_EVENT_DETACHED).words[1], 0);
	}
	worker_stop(bed->worker);
	bed_close(bed);
}

static void operations_are_done_under_every_policy(void **state) {
	(void)state;
	for (int policy = 0; policy < IDLE_POLICY_COUNT; policy++) {
		struct lane_counters counters;
		struct bed_pair pair;
		struct bed bed;

		bed_open(&bed, &threaded);
		bed.fakes[0]->delay_ns = 300000; // the worker is asleep by then
		start(&bed, (enum idle_policy)policy);
		pair = pair_up(&bed);
		for (uint32_t n = 0; n < 20; n++) {
			struct op op = bed_op(&bed, &pair, n % 2 == 0 ? OP_WRITE : OP_READ, 0, 64);

			op.done = NULL;
			post(&bed, 0, LANE_REQUEST_SUBMIT, worker_pointer_to_word(&op), 0);
			assert_ptr_equal(
				worker_word_to_pointer(wait_for(&bed, LANE_EVENT_OP_ENDED).words[1]
				),
				&op
			);
			assert_int_equal(op.outcome, OP_OK);
			assert_true(op.done_ns - op.posted_ns >= 300000);
		}
		lane_counters(bed.lanes[0], &counters);
		assert_int_equal(counters.ended[OP_OK], 20);
		assert_int_equal(counters.submitted, 20);
		if (policy == IDLE_EVENT)
			assert_true(counters.completion_events > 0);
		finish(&bed, &pair, 1);
	}
}

static int (*real_poll_cq)(struct ibv_cq *cq, int count, struct ibv_wc *wcs);
static atomic_bool poll_hangs, poll_hung;

static int poll_cq_of_a_driver_that_hangs(struct ibv_cq *cq, int count, struct ibv_wc *wcs) {
	while (atomic_load(&poll_hangs)) {
		atomic_store(&poll_hung, true);
		sched_yield();
	}
	return real_poll_cq(cq, count, wcs);
}

// An operation is in flight; it ends when the driver's poll returns.
static void a_worker_whose_driver_hangs_in_a_poll_shows_no_life(void **state) {
	struct worker_life life = {0};
	struct worker_progress sign;
	struct bed_pair pair;
	struct op op;
	struct bed bed;

	(void)state;
	bed_open(&bed, &threaded);
	real_poll_cq = bed.lanes[0]->cq->context->ops.poll_cq;
	bed.lanes[0]->cq->context->ops.poll_cq = poll_cq_of_a_driver_that_hangs;
	start(&bed, IDLE_ADAPTIVE);
	pair = pair_up(&bed);
	atomic_store(&poll_hangs, true);
	op = bed_op(&bed, &pair, OP_READ, 0, 64);
	op.done = NULL;
	post(&bed, 0, LANE_REQUEST_SUBMIT, worker_pointer_to_word(&op), 0);
	while (!atomic_load(&poll_hung))
		sched_yield();
	worker_progress(bed.worker, &sign);
	worker_life_observe(&life, &sign, clock_monotonic_ns());
	for (uint32_t n = 1; n < 8; n++) {
		worker_progress(bed.worker, &sign);
		assert_int_equal(worker_life_observe(&life, &sign, clock_monotonic_ns()), n);
	}
	atomic_store(&poll_hangs, false);
	assert_ptr_equal(worker_word_to_pointer(wait_for(&bed, LANE_EVENT_OP_ENDED).words[1]), &op);
	do
		worker_progress(bed.worker, &sign);
	while (worker_life_observe(&life, &sign, clock_monotonic_ns()) > 0);
	finish(&bed, &pair, 1);
}

// The operation on one pair has no deadline and never completes. Other pairs continue, and the
// worker can sleep when they are idle.
static void a_pair_that_never_completes_holds_up_no_other_and_keeps_nobody_awake(void **state) {
	struct worker_counters before, after;
	struct bed_pair pairs[PAIRS];
	struct worker_progress sign;
	struct op stuck;
	struct bed bed;

	(void)state;
	bed_open(&bed, &crowded);
	bed.fakes[0]->delay_ns = 100000;
	start(&bed, IDLE_ADAPTIVE);
	for (uint32_t n = 0; n < PAIRS; n++)
		pairs[n] = pair_up(&bed);
	fake_qp_hold(pairs[5].qps[0]);
	stuck = bed_op(&bed, &pairs[5], OP_READ, 0, 64);
	stuck.done = NULL;
	post(&bed, 0, LANE_REQUEST_SUBMIT, worker_pointer_to_word(&stuck), 0);
	worker_counters(bed.worker, &before);
	for (uint32_t n = 0; n < 20 * PAIRS; n++) {
		struct op op = bed_op(&bed, &pairs[n % PAIRS], OP_READ, 64, 64);

		if (n % PAIRS == 5)
			continue;
		op.done = NULL;
		post(&bed, 0, LANE_REQUEST_SUBMIT, worker_pointer_to_word(&op), 0);
		assert_ptr_equal(
			worker_word_to_pointer(wait_for(&bed, LANE_EVENT_OP_ENDED).words[1]), &op
		);
		assert_int_equal(op.outcome, OP_OK);
	}
	do {
		sched_yield();
		worker_progress(bed.worker, &sign);
	} while (sign.asleep_until_ns == 0);
	worker_counters(bed.worker, &after);
	assert_true(after.blocks > before.blocks);
	fake_qp_let_go(pairs[5].qps[0], UINT32_MAX);
	assert_ptr_equal(
		worker_word_to_pointer(wait_for(&bed, LANE_EVENT_OP_ENDED).words[1]), &stuck
	);
	assert_int_equal(stuck.outcome, OP_OK);
	finish(&bed, pairs, PAIRS);
}

// Return whether the completion of an operation woke the worker.
static bool is_woken_by_a_completion(struct bed *bed, struct bed_pair *pair) {
	struct worker_counters before, after;
	struct op op = bed_op(bed, pair, OP_READ, 0, 64);

	op.done = NULL;
	fake_qp_hold(pair->qps[0]);
	post(bed, 0, LANE_REQUEST_SUBMIT, worker_pointer_to_word(&op), 0);
	while (fake_qp_posted(pair->qps[0]) == 0 || atomic_load(&bed->worker->bell.armed) == 0)
		sched_yield();
	worker_counters(bed->worker, &before);
	fake_qp_let_go(pair->qps[0], UINT32_MAX);
	fake_verbs_run();
	wait_for(bed, LANE_EVENT_OP_ENDED);
	worker_counters(bed->worker, &after);
	assert_int_equal(after.wakes_rung, before.wakes_rung);
	assert_int_equal(after.wakes_timed, before.wakes_timed);
	return after.wakes_polled > before.wakes_polled;
}

static void completion_ends_the_sleep_of_the_worker(void **state) {
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	bed_open(&bed, &threaded);
	start(&bed, IDLE_EVENT);
	pair = pair_up(&bed);
	// Only the completion channel can wake the worker: no doorbell rings, and no deadline is
	// set. Sometimes a completion arrives between arming and sleeping; then the worker finds it
	// without a wake.
	while (!is_woken_by_a_completion(&bed, &pair))
		sched_yield();
	finish(&bed, &pair, 1);
}

static void device_without_events_is_looked_at_by_a_timer(void **state) {
	static const enum idle_policy policies[] = {IDLE_ADAPTIVE, IDLE_EVENT};

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct lane_facts facts;
		struct bed_pair pair;
		struct bed bed;

		bed_open(&bed, &threaded);
		bed.fakes[0]->delay_ns = 2000000;
		fake_verbs_fail(FAKE_REQ_NOTIFY_CQ, 1, UINT32_MAX, -EOPNOTSUPP);
		start(&bed, policies[k]);
		pair = pair_up(&bed);
		facts.events = true;
		// On a busy machine the worker may find each completion without sleeping. Then it
		// does not request events.
		for (uint32_t n = 0; n < 5 || (facts.events && n < OPERATIONS_MAX); n++) {
			struct op op = bed_op(&bed, &pair, OP_READ, 0, 64);

			op.done = NULL;
			post(&bed, 0, LANE_REQUEST_SUBMIT, worker_pointer_to_word(&op), 0);
			wait_for(&bed, LANE_EVENT_OP_ENDED);
			assert_int_equal(op.outcome, OP_OK);
			lane_facts(bed.lanes[0], &facts);
		}
		assert_false(facts.events);
		finish(&bed, &pair, 1);
	}
}

static void device_that_makes_no_channel_has_a_lane_without_events(void **state) {
	struct clock clock;
	struct lane_config config = {
		.pair_max = 1, .depth = 1, .op_max = 1, .drain_ns = 1, .clock = &clock};
	char reason[DEVICE_REASON_MAX + 1];
	struct lane_facts facts;
	struct lane *lane;

	(void)state;
	clock_init_fake(&clock, 1);
	fake_verbs_init(&clock);
	fake_device_add("fake0");
	assert_int_equal(
		device_open(
			&fake_verbs_calls, "fake0", &device_settings_default, reason, &config.device
		),
		0
	);
	fake_verbs_fail(FAKE_CREATE_COMP_CHANNEL, 1, 1, -EOPNOTSUPP);
	assert_int_equal(lane_create(&config, &lane), 0);
	lane_facts(lane, &facts);
	assert_false(facts.events);
	assert_null(lane_poll(lane).woken);
	assert_int_equal(lane_destroy(lane), 0);
	device_put(config.device);
	assert_null(fake_verbs_fini());
}

static void thousand_operations_and_their_events_are_all_acknowledged(void **state) {
	struct bed_pair pair;
	struct bed bed;

	(void)state;
	bed_open(&bed, &threaded);
	start(&bed, IDLE_EVENT);
	pair = pair_up(&bed);
	for (uint32_t n = 0; n < 1000; n++) {
		struct op op = bed_op(&bed, &pair, OP_WRITE, 0, 64);

		op.done = NULL;
		post(&bed, 0, LANE_REQUEST_SUBMIT, worker_pointer_to_word(&op), 0);
		wait_for(&bed, LANE_EVENT_OP_ENDED);
	}
	finish(&bed, &pair, 1); // the fake reports completion events that were not acknowledged
}

UNIT_GROUP(lane_worker) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_are_done_under_every_policy),
		cmocka_unit_test(a_worker_whose_driver_hangs_in_a_poll_shows_no_life),
		cmocka_unit_test(
			a_pair_that_never_completes_holds_up_no_other_and_keeps_nobody_awake
		),
		cmocka_unit_test(completion_ends_the_sleep_of_the_worker),
		cmocka_unit_test(device_without_events_is_looked_at_by_a_timer),
		cmocka_unit_test(device_that_makes_no_channel_has_a_lane_without_events),
		cmocka_unit_test(thousand_operations_and_their_events_are_all_acknowledged),
	};

	return cmocka_run_group_tests_name("lane_worker", tests, NULL, NULL);
}
