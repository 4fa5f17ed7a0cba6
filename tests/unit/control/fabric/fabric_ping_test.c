// SPDX-License-Identifier: BSD-3-Clause
// Pings over RDMA, on an existing or a new pair, and every early end of one.
#include "control/fabric/fabric_bed.h"

#include <support/cases.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NOT_LATER_NS (RAS_NS_PER_SEC + 50 * RAS_NS_PER_MS) // one second; turns take time

static struct bed_ping ping_until_ended(uint32_t agent, uint32_t peer) {
	struct fabric_ping_request request = bed_ping_request(peer);
	struct bed_ping ping;

	assert_int_equal(bed_ping(agent, &request, &ping), 0);
	assert_int_equal(ping.ended, 0); // callbacks never run from inside the call
	bed_until(ping.ended > 0);
	return ping;
}

static void ping_reads_the_peer_and_ourselves_and_says_how_long_it_took(void **state) {
	struct bed_ping ping;

	(void)state;
	bed_start_both();
	for (uint32_t peer = 0; peer < 2; peer++) {
		ping = ping_until_ended(0, peer);
		assert_int_equal(ping.result.err, 0);
		assert_int_equal(ping.result.end, PROBE_COMPLETE);
		assert_int_equal(ping.result.sent, 3);
		assert_int_equal(ping.result.answered, 3);
		assert_int_equal(ping.count, 3);
		assert_int_equal(ping.result.key.peer, bed_id(peer));
	}
}

static void ping_of_one_who_is_no_neighbour_has_a_pair_made(void **state) {
	struct bed_ping ping;

	(void)state;
	bed_link(0, 1, false);
	bed_start(0);
	bed_start(1);
	bed_until(bed_is_ready(0, 0) && bed_is_ready(1, 1));
	assert_false(bed_is_ready(0, 1));
	ping = ping_until_ended(0, 1);
	assert_int_equal(ping.result.err, 0);
	assert_int_equal(ping.result.answered, 3);
	assert_true(bed_is_ready(0, 1));
}

static void ping_keeps_the_time_of_each_read_for_who_asks_for_it(void **state) {
	struct fabric_ping_request request;
	struct bed_ping ping = {.ended = 0};

	(void)state;
	bed_start_both();
	request = bed_ping_request(1);
	request.keeps_times = true;
	assert_int_equal(bed_ping(0, &request, &ping), 0);
	bed_until(ping.ended > 0);
	assert_int_equal(ping.result.answered, 3);
	assert_non_null(ping.result.times_ns);
	// Values that were not written have all bits set.
	assert_true(ping.sum_ns <= ping.result.took_ns);
	request.count = FABRIC_PING_TIMES_MAX + 1;
	assert_int_equal(bed_ping(0, &request, &ping), -EINVAL);
	ping = ping_until_ended(0, 1);
	assert_null(ping.result.times_ns);
}

static void ping_that_cannot_begin_says_so_at_once(void **state) {
	static const struct {
		const char *device;
		uint32_t bytes, count;
		int err;
	} cases[] = {
		{"", 0, 1, -EINVAL},	  {"", PULSE_BYTES + 1, 1, -EINVAL},
		{"", 1, 0, -EINVAL},	  {"", 1, FABRIC_PING_COUNT_MAX + 1, -EINVAL},
		{"rdma9", 1, 1, -ENODEV},
	};
	struct fabric_ping_request request;
	struct bed_ping ping;

	(void)state;
	bed_start_both();
	for (uint32_t n = 0; n < COUNT_OF(cases); n++) {
		request = bed_ping_request(1);
		request.bytes = cases[n].bytes;
		request.count = cases[n].count;
		snprintf(request.device, sizeof(request.device), "%s", cases[n].device);
		assert_int_equal(bed_ping(0, &request, &ping), cases[n].err);
	}
	request = bed_ping_request(1);
	request.peer = 12345;
	assert_int_equal(bed_ping(0, &request, &ping), -ENOENT);
	request = bed_ping_request(1);
	bed.agents[0].overlay->states[1] = RAS_DEAD;
	assert_int_equal(bed_ping(0, &request, &ping), -EHOSTDOWN);
	bed.agents[0].overlay->states[1] = RAS_LEFT;
	assert_int_equal(bed_ping(0, &request, &ping), -EHOSTDOWN);
}

static void ping_of_a_device_that_the_peer_does_not_have_fails_with_its_word(void **state) {
	struct fabric_ping_request request;
	struct bed_ping ping;

	(void)state;
	bed_start_both();
	request = bed_ping_request(1);
	memcpy(request.peer_device, "nosuch", 7);
	assert_int_equal(bed_ping(0, &request, &ping), 0);
	bed_until(ping.ended);
	assert_int_equal(ping.result.err, -ENETDOWN);
	assert_int_equal(ping.result.failure.reason, PAIRING_NO_DEVICE);
	assert_true(ping.result.failure.by_peer);
	assert_string_equal(ping.result.key.peer_device, "nosuch");
}

static void more_pings_than_may_be_are_refused_until_one_ends(void **state) {
	struct fabric_ping_request request;
	struct bed_ping pings[FABRIC_PINGS_MAX + 1];

	(void)state;
	bed_start_both();
	request = bed_ping_request(1);
	for (uint32_t n = 0; n < FABRIC_PINGS_MAX; n++)
		assert_int_equal(bed_ping(0, &request, &pings[n]), 0);
	assert_int_equal(bed_ping(0, &request, &pings[FABRIC_PINGS_MAX]), -EAGAIN);
	for (uint32_t n = 0; n < FABRIC_PINGS_MAX; n++)
		bed_until(pings[n].ended);
	assert_int_equal(bed_ping(0, &request, &pings[0]), 0);
	bed_until(pings[0].ended);
}

// The time limit of a request covers both the pairing and the first read.

static void ping_without_a_pair_ends_in_time_and_says_what_was_missing(void **state) {
	struct fabric_ping_request request;
	struct bed_ping ping;

	(void)state;
	bed_link(0, 1, false);
	bed_start(0);
	bed_start(1);
	bed_until(bed_is_ready(0, 0) && bed_is_ready(1, 1));
	bed_hang(FAKE_CREATE_QP);
	request = bed_ping_request(1);
	request.deadline_ns = clock_now_ns(&bed.clock) + RAS_NS_PER_SEC;
	assert_int_equal(bed_ping(0, &request, &ping), 0);
	bed_until(bed_hangs());
	bed_pass(request.deadline_ns - 5 * RAS_NS_PER_MS - clock_now_ns(&bed.clock));
	assert_int_equal(ping.ended, 0);
	bed_pass(10 * RAS_NS_PER_MS);
	assert_int_equal(ping.ended, 1);
	assert_int_equal(ping.result.err, -ENETDOWN);
	assert_int_equal(ping.result.failure.reason, PAIRING_DEADLINE);
	assert_string_equal(
		ping.result.failure.text, "no pair was ready in time; its state is pending"
	);
	assert_int_equal(ping.result.sent, 0);
	bed_let_go();
}

// The driver uses most of the time, and then the read is not answered.
static void read_has_what_its_pair_left_of_the_time(void **state) {
	struct fabric_ping_request request;
	struct bed_ping ping;
	uint64_t begin_ns;

	(void)state;
	bed_link(0, 1, false);
	bed_start(0);
	bed_start(1);
	bed_until(bed_is_ready(0, 0) && bed_is_ready(1, 1));
	bed.agents[0].fakes[0]->delay_ns = 10 * RAS_NS_PER_SEC;
	bed_hang(FAKE_CREATE_QP);
	begin_ns = clock_now_ns(&bed.clock);
	request = bed_ping_request(1);
	request.deadline_ns = begin_ns + RAS_NS_PER_SEC;
	assert_int_equal(bed_ping(0, &request, &ping), 0);
	bed_until(bed_hangs());
	bed_pass(900 * RAS_NS_PER_MS);
	bed_let_go();
	bed_until(ping.ended);
	assert_in_range(clock_now_ns(&bed.clock) - begin_ns, RAS_NS_PER_SEC, NOT_LATER_NS);
	assert_int_equal(ping.result.err, 0);
	assert_true(ping.result.paired_ns >= 900 * RAS_NS_PER_MS);
	assert_int_equal(ping.result.end, PROBE_FAILED);
	assert_int_equal(ping.result.sent, 1);
	assert_int_equal(ping.result.outcome, OP_TIMED_OUT);
	assert_int_equal(ping.result.cause.err, -ETIMEDOUT);
	bed.agents[0].fakes[0]->delay_ns = 0;
}

static void reads_after_the_first_have_their_own_time(void **state) {
	static const uint64_t deadlines_ns[] = {RAS_NS_PER_SEC, UINT64_MAX};
	struct fabric_ping_request request;
	struct bed_ping ping;

	(void)state;
	bed_start_both();
	for (size_t n = 0; n < COUNT_OF(deadlines_ns); n++) {
		request = bed_ping_request(1);
		request.interval_ns = 2 * RAS_NS_PER_SEC;
		request.deadline_ns =
			deadline_after(clock_now_ns(&bed.clock), deadlines_ns[n]).at_ns;
		assert_int_equal(bed_ping(0, &request, &ping), 0);
		bed_until(ping.ended);
		assert_int_equal(ping.result.end, PROBE_COMPLETE);
		assert_int_equal(ping.result.answered, 3);
	}
}

static void ping_of_one_who_does_not_hear_ends_with_the_reason(void **state) {
	struct bed_ping ping;

	(void)state;
	bed_link(0, 1, false);
	bed_start(0);
	bed_until(bed_is_ready(0, 0));
	ping = ping_until_ended(0, 1);
	assert_int_equal(ping.result.err, -ENETDOWN);
	assert_int_equal(ping.result.failure.reason, PAIRING_UNREACHABLE);
	assert_int_equal(ping.result.sent, 0);
}

static void ping_ends_with_the_death_of_whom_it_waits_for(void **state) {
	struct fabric_ping_request request;
	struct bed_ping ping;

	(void)state;
	bed_link(0, 1, false);
	bed_start(0);
	bed_until(bed_is_ready(0, 0));
	bed_hang(FAKE_CREATE_QP);
	request = bed_ping_request(1);
	assert_int_equal(bed_ping(0, &request, &ping), 0);
	bed_until(bed_hangs());
	bed_say(0, 1, RAS_DEAD);
	bed_until(ping.ended);
	assert_int_equal(ping.result.failure.reason, PAIRING_PEER_DEAD);
	bed_let_go();
}

static void ping_that_is_cancelled_while_it_waits_is_not_heard_of(void **state) {
	struct fabric_ping_request request;
	struct bed_ping ping;

	(void)state;
	bed_link(0, 1, false);
	bed_start(0);
	bed_start(1);
	bed_until(bed_is_ready(0, 0));
	request = bed_ping_request(1);
	for (uint32_t turns = 0; turns < 12; turns++) { // in every stage of the handshake
		assert_int_equal(bed_ping(0, &request, &ping), 0);
		for (uint32_t n = 0; n < turns; n++)
			bed_turn();
		if (ping.ended == 0)
			fabric_ping_cancel(ping.ping);
		bed_pass(50 * RAS_NS_PER_MS);
		assert_true(bed.agents[0].fabric->pings == NULL);
	}
}

static void ping_that_is_cancelled_while_a_worker_has_it_is_freed_when_it_comes_back(void **state) {
	struct bed_ping ping;

	(void)state;
	bed_start_both();
	bed_ping_held(&ping);
	fabric_ping_cancel(ping.ping);
	bed_pass(10 * RAS_NS_PER_MS);
	assert_non_null(bed.agents[0].fabric->pings);
	fake_qp_let_go(bed_qp(0, 1), UINT32_MAX);
	bed_until(bed.agents[0].fabric->pings == NULL);
	assert_int_equal(ping.ended, 0);
}

struct careless {
	struct fabric_ping *own, *other;
	uint32_t ended;
};

static void cancel_all(void *ctx, const struct fabric_ping_result *result) {
	struct careless *careless = ctx;

	(void)result;
	careless->ended++;
	fabric_ping_cancel(careless->own);
	if (careless->other != NULL)
		fabric_ping_cancel(careless->other);
	careless->other = NULL;
}

static void ping_may_be_cancelled_from_inside_its_end_and_others_with_it(void **state) {
	struct fabric_ping_request request;
	struct careless careless = {0};
	struct fabric *fabric;

	(void)state;
	bed_start_both();
	fabric = bed.agents[0].fabric;
	request = bed_ping_request(1);
	assert_int_equal(
		fabric_ping_start(fabric, &request, cancel_all, &careless, &careless.own), 0
	);
	request.interval_ns = RAS_NS_PER_SEC;
	assert_int_equal(
		fabric_ping_start(fabric, &request, cancel_all, &careless, &careless.other), 0
	);
	bed_until(fabric->pings == NULL);
	assert_int_equal(careless.ended, 1);
}

static void ping_whose_pair_goes_before_it_begins_says_why(void **state) {
	struct fabric_ping_request request;
	struct bed_ping ping;

	(void)state;
	bed_start_both();
	request = bed_ping_request(1);
	assert_int_equal(bed_ping(0, &request, &ping), 0); // returns at once, starts in a job
	pairing_peer(
		bed.agents[0].fabric->pairing, clock_now_ns(&bed.clock), bed_id(1),
		PAIRING_PEER_HAS_DIED, ras_incarnation_start(bed.agents[1].overlay->incarnation)
	);
	bed_until(ping.ended);
	assert_int_equal(ping.result.err, -ENETDOWN);
	assert_int_equal(ping.result.failure.reason, PAIRING_PEER_DEAD);
}

static void pings_that_are_left_at_the_end_are_told_and_none_begins(void **state) {
	struct fabric_ping_request request;
	struct bed_ping waits, runs;

	(void)state;
	bed_start_both();
	fake_qp_hold(bed_qp(0, 1));
	request = bed_ping_request(1);
	assert_int_equal(bed_ping(0, &request, &runs), 0);
	bed_pass(10 * RAS_NS_PER_MS);
	memcpy(request.peer_device, "nosuch", 7);
	bed.agents[1].overlay->deaf = true;
	assert_int_equal(bed_ping(0, &request, &waits), 0);
	bed_destroy(0);
	assert_int_equal(waits.ended, 1);
	assert_int_equal(waits.result.err, -ESHUTDOWN);
	assert_int_equal(waits.result.failure.reason, PAIRING_SHUTDOWN);
	assert_int_equal(runs.ended, 1);
	assert_int_equal(runs.result.err, -ESHUTDOWN);
}

static struct fabric_ping *again;

static void ask_again(void *ctx, const struct fabric_ping_result *result) {
	struct fabric_ping_request request = bed_ping_request(1);

	(void)result;
	++*(uint32_t *)ctx;
	assert_int_equal(
		fabric_ping_start(bed.agents[0].fabric, &request, ask_again, ctx, &again), -EAGAIN
	);
}

static void who_is_told_of_the_end_cannot_ask_again(void **state) {
	struct fabric_ping_request request;
	uint32_t ended = 0;

	(void)state;
	bed_start(0);
	request = bed_ping_request(1);
	assert_int_equal(
		fabric_ping_start(bed.agents[0].fabric, &request, ask_again, &ended, &again), 0
	);
	bed_destroy(0);
	assert_int_equal(ended, 1);
}

UNIT_GROUP(fabric_ping) {
	const struct CMUnitTest tests[] = {
		BED_TEST(ping_reads_the_peer_and_ourselves_and_says_how_long_it_took),
		BED_TEST(ping_of_one_who_is_no_neighbour_has_a_pair_made),
		BED_TEST(ping_keeps_the_time_of_each_read_for_who_asks_for_it),
		BED_TEST(ping_that_cannot_begin_says_so_at_once),
		BED_TEST(ping_of_a_device_that_the_peer_does_not_have_fails_with_its_word),
		BED_TEST(more_pings_than_may_be_are_refused_until_one_ends),
		BED_TEST(ping_without_a_pair_ends_in_time_and_says_what_was_missing),
		BED_TEST(read_has_what_its_pair_left_of_the_time),
		BED_TEST(reads_after_the_first_have_their_own_time),
		BED_TEST(ping_of_one_who_does_not_hear_ends_with_the_reason),
		BED_TEST(ping_ends_with_the_death_of_whom_it_waits_for),
		BED_TEST(ping_that_is_cancelled_while_it_waits_is_not_heard_of),
		BED_TEST(ping_that_is_cancelled_while_a_worker_has_it_is_freed_when_it_comes_back),
		BED_TEST(ping_may_be_cancelled_from_inside_its_end_and_others_with_it),
		BED_TEST(ping_whose_pair_goes_before_it_begins_says_why),
		BED_TEST(pings_that_are_left_at_the_end_are_told_and_none_begins),
		BED_TEST(who_is_told_of_the_end_cannot_ask_again),
	};

	return cmocka_run_group_tests(tests, rcu_group_begin, rcu_group_end);
}
