// SPDX-License-Identifier: BSD-3-Clause
// Faults of a fabric: drivers that hang or fail, no memory, workers that do not read their ring;
// and its end at any moment.
#include "control/fabric/fabric_bed.h"

#include <errno.h>

static void open_two_devices(void) {
	bed_close();
	bed_open(2, 2);
	bed_link(0, 1, true);
}

static struct fabric_device_view device(uint32_t agent, uint32_t place) {
	struct fabric_device_view view;

	fabric_device_at(bed.agents[agent].fabric, place, &view);
	return view;
}

static struct fabric_counters counters(uint32_t agent) {
	struct fabric_numbers numbers;

	fabric_numbers(bed.agents[agent].fabric, &numbers);
	return numbers.counters;
}

// Hanging driver calls.

static void device_whose_driver_hangs_is_shown_as_stuck_and_costs_nobody_else(void **state) {
	struct fabric_ping_request request;
	struct bed_ping ping;

	(void)state;
	bed_start(1);
	bed_until(bed_is_ready(1, 1));
	bed_hang(FAKE_OPEN);
	bed_start(0);
	bed_until(bed_hangs());
	bed_pass(FABRIC_OPEN_STUCK_NS - RAS_NS_PER_SEC);
	assert_int_equal(device(0, 0).state, FABRIC_DEVICE_OPENING);
	bed_pass(2 * RAS_NS_PER_SEC);
	assert_int_equal(device(0, 0).state, FABRIC_DEVICE_STUCK);
	assert_true(device(0, 0).stuck_ns >= FABRIC_OPEN_STUCK_NS);
	assert_int_equal(counters(0).driver_stuck, 1);
	assert_true(bed_is_ready(1, 1));
	request = bed_ping_request(1);
	assert_int_equal(bed_ping(0, &request, &ping), 0);
	bed_pass(RAS_NS_PER_SEC);
	assert_int_equal(ping.ended, 1);
	assert_int_equal(ping.result.failure.reason, PAIRING_NO_DEVICE);
	bed_let_go();
	bed_until(bed_is_ready(0, 1));
	assert_int_equal(device(0, 0).state, FABRIC_DEVICE_UP);
}

static void pair_whose_making_hangs_is_told_as_stuck_and_made_when_it_no_longer_does(void **state) {
	struct fabric_pair_view view;

	(void)state;
	bed_hang(FAKE_CREATE_QP);
	bed_start(0);
	bed_until(bed_hangs());
	bed_pass(7 * RAS_NS_PER_SEC);
	assert_true(bed_find_pair(0, 0, &view));
	assert_int_equal(view.pairing.state, PAIRING_FAILED);
	assert_int_equal(view.pairing.failure.reason, PAIRING_DEVICE_STUCK);
	assert_true(view.pairing.stuck);
	bed_let_go();
	bed_until(bed_is_ready(0, 0));
}

static void stop_ends_by_its_limit_when_a_driver_hangs(void **state) {
	uint64_t before;

	(void)state;
	bed_start_both();
	bed_hang(FAKE_DESTROY_QP);
	before = clock_now_ns(&bed.clock);
	bed_stop(0);
	bed_until(bed_hangs());
	bed_pass(FABRIC_STOP_NS - RAS_NS_PER_SEC);
	assert_false(bed.agents[0].stopped);
	bed_pass(2 * RAS_NS_PER_SEC);
	assert_true(bed.agents[0].stopped);
	assert_true(clock_now_ns(&bed.clock) - before >= FABRIC_STOP_NS);
	bed_destroy(0); // while a call runs
	bed_let_go();
}

static void device_that_hangs_does_not_keep_another_open_when_the_agent_stops(void **state) {
	(void)state;
	open_two_devices();
	bed_start(0);
	bed_until(bed_is_ready(0, 0) && device(0, 1).state == FABRIC_DEVICE_UP);
	bed_link(0, 1, false);
	bed_settle();
	bed_hang(FAKE_QUERY_PORT);
	fake_device_event(bed.agents[0].fakes[0], IBV_EVENT_PORT_ERR, 1);
	bed_until(bed_hangs());
	bed_stop(0);
	bed_pass(2 * RAS_NS_PER_SEC);
	bed_until(nic_is_closed(&bed.agents[0].fabric->nics[1]));
	assert_false(nic_is_closed(&bed.agents[0].fabric->nics[0]));
	assert_false(bed.agents[0].stopped);
	bed_let_go();
	bed_until(bed.agents[0].stopped);
}

static void lanes_of_two_workers_do_not_share_an_interrupt(void **state) {
	(void)state;
	open_two_devices();
	for (uint32_t n = 0; n < 2; n++)
		bed.agents[0].fakes[n]->vectors = 4;
	bed_start(0);
	bed_until(device(0, 0).state == FABRIC_DEVICE_UP);
	bed_until(device(0, 1).state == FABRIC_DEVICE_UP);
	assert_int_equal(device(0, 0).lane.vector, 0);
	assert_int_equal(device(0, 1).lane.vector, 1);
}

// Failing driver calls.

static void live_with_a_failure(enum fake_call call, uint32_t nth) {
	bed_close();
	bed_open(2, 1);
	bed_link(0, 1, true);
	fake_verbs_fail(call, nth, 1, -EIO);
	bed_start_both();
	bed_say(0, 1, RAS_DEAD);
	bed_pass(RAS_NS_PER_SEC);
	bed_settle();
	for (uint32_t n = 0; n < 2; n++)
		bed_stop(n);
	bed_until(bed.agents[0].stopped && bed.agents[1].stopped);
}

// Each fault occurs once, at any call from the first to the last of a whole life. If a driver
// fails to destroy a domain or a context, the device is given up as well.
static void any_driver_call_may_fail_once_and_nothing_is_left(void **state) {
	uint32_t lives = 0;

	(void)state;
	for (enum fake_call call = 0; call <= FAKE_DESTROY_QP; call++) {
		uint32_t nth = 0;

		if (call == FAKE_CLOSE || call == FAKE_DEALLOC_PD)
			continue;
		do {
			live_with_a_failure(call, ++nth);
			lives++;
		} while (nth < fake_verbs_calls_made(call));
	}
	assert_true(lives > 50);
}

// A failure after the device was found is not reported as "not found".
static void device_that_has_no_room_for_a_queue_waits_for_that_reason(void **state) {
	(void)state;
	fake_verbs_fail(FAKE_CREATE_CQ, 1, 1, -ENOMEM);
	bed_start(0);
	bed_until(bed_device(0) == FABRIC_DEVICE_WAITING);
	assert_string_equal(device(0, 0).reason, "Cannot allocate memory");
	bed_until(bed_is_ready(0, 0));
}

static void device_that_could_be_neither_opened_nor_closed_is_closed_later(void **state) {
	(void)state;
	fake_verbs_fail(FAKE_CREATE_CQ, 1, 1, -ENOMEM);
	fake_verbs_fail(FAKE_DEREG_MR, 1, 2, -EBUSY);
	bed_start(0);
	bed_until(bed_is_ready(0, 0));
	assert_int_equal(fake_verbs_alive().contexts, 1);
	assert_int_equal(device(0, 0).opened, 1);
}

static void close_that_fails_while_the_agent_stops_is_tried_again(void **state) {
	(void)state;
	bed_start_both();
	bed_settle();
	fake_verbs_fail(FAKE_DESTROY_CQ, 1, 2, -EBUSY);
	bed_stop(0);
	bed_until(bed.agents[0].stopped);
	assert_true(nic_is_closed(&bed.agents[0].fabric->nics[0]));
}

// Memory.

static int poll_in_vain(struct ibv_cq *cq, int max, struct ibv_wc *wc) {
	(void)cq;
	(void)max;
	(void)wc;
	return -1;
}

static void lane_that_cannot_be_polled_is_made_anew_with_its_device(void **state) {
	struct fabric_device_view view;
	struct ibv_context *context;

	(void)state;
	bed_start_both();
	context = bed_qp(0, 1)->context;
	context->ops.poll_cq = poll_in_vain;
	// The first read has requests in flight again.
	for (uint32_t n = 0; n < 3; n++) {
		struct fabric_ping_request request = bed_ping_request(1);
		struct bed_ping ping = {.ended = 0};

		if (bed_ping(0, &request, &ping) == 0)
			bed_until(ping.ended == 1);
		bed_pass(RAS_NS_PER_SEC);
	}
	bed_until(bed_is_ready(0, 1) && bed_is_ready(0, 0));
	fabric_device_at(bed.agents[0].fabric, 0, &view);
	assert_int_equal(view.opened, 2);
	assert_int_equal(view.counters.poll_failures, 0);
}

static void any_allocation_may_fail_once_and_nothing_is_left(void **state) {
	uint32_t nth = 0;
	bool failed;

	(void)state;
	do {
		bed_close();
		bed_open(2, 1);
		bed_link(0, 1, true);
		bed_start(1);
		bed_until(bed_is_ready(1, 1));
		bed_settle();
		bed_fail_allocation(++nth);
		if (fabric_create(
			    bed.loop, bed.agents[0].overlay, &bed.agents[0].config,
			    &bed.agents[0].fabric
		    ) != 0) {
			assert_true(bed_allocation_failed());
			bed_start(0);
		}
		bed_until(bed_is_ready(0, 1) && bed_is_ready(1, 0) && bed_is_ready(0, 0));
		bed_say(0, 1, RAS_DEAD);
		bed_pass(RAS_NS_PER_SEC);
		bed_say(0, 1, RAS_ALIVE);
		bed_until(bed_is_ready(0, 1));
		for (uint32_t n = 0; n < 2; n++)
			bed_stop(n);
		bed_until(bed.agents[0].stopped && bed.agents[1].stopped);
		failed = bed_allocation_failed();
		bed_fail_allocation(0);
	} while (failed);
	assert_true(nth > 20);
}

static void ping_without_memory_is_refused(void **state) {
	struct fabric_ping_request request;
	struct bed_ping ping;

	(void)state;
	bed_start_both();
	bed_settle();
	request = bed_ping_request(1);
	bed_fail_allocation(1);
	assert_int_equal(bed_ping(0, &request, &ping), -ENOMEM);
	assert_int_equal(bed_ping(0, &request, &ping), 0);
	bed_until(ping.ended);
}

// Workers that do not read their ring.

static void requests_to_a_worker_whose_ring_is_full_come_later_and_in_order(void **state) {
	struct fabric_ping_request request;
	struct bed_ping pings[4];

	(void)state;
	bed_start(1);
	bed.agents[0].workers[0].room = 1;
	bed_start(0);
	bed_until(bed_is_ready(0, 1) && bed_is_ready(1, 0) && bed_is_ready(0, 0));
	request = bed_ping_request(1);
	for (uint32_t n = 0; n < 4; n++)
		assert_int_equal(bed_ping(0, &request, &pings[n]), 0);
	fabric_ping_cancel(pings[3].ping);
	for (uint32_t n = 0; n < 3; n++)
		bed_until(pings[n].ended);
	assert_int_equal(pings[0].result.answered, 3);
	assert_true(counters(0).records_waited > 0);
}

static void fabric_whose_worker_hangs_stops_by_its_limit(void **state) {
	(void)state;
	bed_start_both();
	bed.agents[0].workers[0].halted = true;
	bed.agents[0].workers[0].room = 0;
	bed_stop(0);
	bed_pass(FABRIC_STOP_NS + RAS_NS_PER_SEC);
	assert_true(bed.agents[0].stopped);
	bed_destroy(0);
}

// Stopping at any moment.

static void fabric_may_be_stopped_at_any_moment_and_nothing_is_left(void **state) {
	(void)state;
	for (uint32_t turns = 0; turns < 60; turns++) {
		bed_close();
		bed_open(2, 1);
		bed_link(0, 1, true);
		bed_start(0);
		bed_start(1);
		for (uint32_t n = 0; n < turns; n++)
			bed_turn();
		bed_stop(0);
		bed_until(bed.agents[0].stopped);
		assert_int_equal(counters(0).left_behind, 0);
		assert_null(bed.agents[0].fabric->fabric_pairs);
		assert_true(nic_is_closed(&bed.agents[0].fabric->nics[0]));
	}
}

static void fabric_may_be_destroyed_at_any_moment(void **state) {
	(void)state;
	for (uint32_t turns = 0; turns < 25; turns++) {
		bed_close();
		bed_open(2, 1);
		bed_link(0, 1, true);
		bed_start(0);
		bed_start(1);
		for (uint32_t n = 0; n < turns; n++)
			bed_turn();
		bed_destroy(0);
		bed_pass(100 * RAS_NS_PER_MS);
	}
}

// Row 36: readers hold pairs while lanes use and destroy them.
static void pairs_come_and_go_under_reads_and_nothing_is_touched_that_is_gone(void **state) {
	struct fabric_ping_request request;
	struct bed_ping ping = {0};
	uint32_t ended = 0;

	(void)state;
	bed_start_both();
	request = bed_ping_request(1);
	request.count = 50;
	for (uint32_t round = 0; round < 40; round++) {
		if (ping.ping == NULL && bed_ping(0, &request, &ping) != 0)
			ping.ping = NULL;
		request.deadline_ns = clock_now_ns(&bed.clock) + 5 * RAS_NS_PER_SEC;
		bed_pass((round % 7) * RAS_NS_PER_MS);
		if (round % 4 == 0 && bed_is_ready(0, 1))
			fake_qp_error(bed_qp(0, 1), 1 + round % 5, IBV_WC_RETRY_EXC_ERR, 0);
		else if (round % 4 == 1)
			bed_say(0, 1, RAS_DEAD);
		else if (round % 4 == 2)
			bed_say(0, 1, RAS_ALIVE);
		else
			fake_device_event(
				bed.agents[round % 2].fakes[0], IBV_EVENT_DEVICE_FATAL, 0
			);
		bed_pass(20 * RAS_NS_PER_MS);
		ended += ping.ended;
		ping.ended = 0;
	}
	bed_say(0, 1, RAS_ALIVE);
	bed_until(bed_is_ready(0, 1) && bed_is_ready(1, 0));
	bed_until(bed.agents[0].fabric->pings == NULL);
	assert_true(ended > 0);
	assert_null(fake_verbs_broken());
}

UNIT_GROUP(fabric_fault) {
	const struct CMUnitTest tests[] = {
		BED_TEST(device_whose_driver_hangs_is_shown_as_stuck_and_costs_nobody_else),
		BED_TEST(pair_whose_making_hangs_is_told_as_stuck_and_made_when_it_no_longer_does),
		BED_TEST(stop_ends_by_its_limit_when_a_driver_hangs),
		BED_TEST(device_that_hangs_does_not_keep_another_open_when_the_agent_stops),
		BED_TEST(lanes_of_two_workers_do_not_share_an_interrupt),
		BED_TEST(any_driver_call_may_fail_once_and_nothing_is_left),
		BED_TEST(device_that_has_no_room_for_a_queue_waits_for_that_reason),
		BED_TEST(device_that_could_be_neither_opened_nor_closed_is_closed_later),
		BED_TEST(close_that_fails_while_the_agent_stops_is_tried_again),
		BED_TEST(lane_that_cannot_be_polled_is_made_anew_with_its_device),
		BED_TEST(any_allocation_may_fail_once_and_nothing_is_left),
		BED_TEST(ping_without_memory_is_refused),
		BED_TEST(requests_to_a_worker_whose_ring_is_full_come_later_and_in_order),
		BED_TEST(fabric_whose_worker_hangs_stops_by_its_limit),
		BED_TEST(fabric_may_be_stopped_at_any_moment_and_nothing_is_left),
		BED_TEST(fabric_may_be_destroyed_at_any_moment),
		BED_TEST(pairs_come_and_go_under_reads_and_nothing_is_touched_that_is_gone),
	};

	return cmocka_run_group_tests(tests, rcu_group_begin, rcu_group_end);
}
