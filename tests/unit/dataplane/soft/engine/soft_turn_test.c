// SPDX-License-Identifier: BSD-3-Clause
// Tests of single turns of a device: what may wait for the next turn, and how much one turn does.
#include "dataplane/soft/soft_bed.h"
#include "transport/qp.h"
#include "verbs/verbs_soft.h"

static struct bed_end *const here = &bed.ends[0], *const there = &bed.ends[1];

static bool turn(struct bed_end *end, bool defer_acks) {
	struct soft_nic *nic = nic_of(end->context);
	bool moved;

	nic_lock(nic);
	moved = nic_turn(nic, defer_acks);
	nic_unlock(nic);
	return moved;
}

static uint64_t due(struct bed_end *end) {
	struct soft_nic *nic = nic_of(end->context);
	uint64_t due_ns;

	nic_lock(nic);
	due_ns = nic_next_turn_ns(nic);
	nic_unlock(nic);
	return due_ns;
}

static struct soft_counters counters(const char *name) {
	struct soft_counters counters;

	assert_int_equal(soft_counters_read(name, &counters), 0);
	return counters;
}

static void write_there(struct ibv_qp *qp, uint32_t length) {
	struct ibv_sge sge = {(uintptr_t)here->bytes, length, here->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .wr.rdma = {(uintptr_t)there->bytes, there->mr->rkey},
				   },
			   *bad = NULL;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

// The acknowledgement of an earlier turn also covers requests of its own turn.
static void an_acknowledgement_waits_one_turn_though_frames_keep_coming(void **state) {
	(void)state;
	for (uint64_t n = 1; n < 10; n++) {
		write_there(here->qp, 8);
		turn(here, false);
		assert_true(turn(there, true));
		assert_int_equal(counters("soft1").acks_sent, n / 2);
		// An engine would send the deferred acknowledgement at once.
		assert_int_equal(due(there), n % 2 == 1 ? 0 : NIC_NEVER);
	}
	turn(there, true);
	assert_int_equal(counters("soft1").acks_sent, 5);
	assert_int_equal(due(there), NIC_NEVER);
	assert_false(turn(there, true));
}

static void the_engine_defers_nothing(void **state) {
	(void)state;
	write_there(here->qp, 8);
	turn(here, false);
	assert_true(turn(there, false));
	assert_int_equal(counters("soft1").acks_sent, 1);
	assert_int_equal(due(there), NIC_NEVER);
}

// Post a request and push it, as a program does whose calls drive the device.
static void post_back(void) {
	struct soft_nic *nic = nic_of(there->context);
	struct ibv_sge sge = {(uintptr_t)there->bytes, 8, there->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .wr.rdma = {(uintptr_t)here->bytes, here->mr->rkey},
				   },
			   *bad = NULL;

	assert_int_equal(ibv_post_send(there->qp, &wr, &bad), 0);
	nic_lock(nic);
	nic_push(nic);
	nic_unlock(nic);
}

static void who_posts_sends_before_what_it_owes(void **state) {
	struct soft_counters after;

	(void)state;
	write_there(here->qp, 8);
	turn(here, false);
	turn(there, true);
	post_back();
	after = counters("soft1");
	assert_int_equal(after.packets_sent, 1);
	assert_int_equal(after.acks_sent, 0);
	turn(there, true);
	assert_int_equal(counters("soft1").acks_sent, 1);
}

// Both ends only poll, as far as the device can see.
static void play_ping_pong(uint32_t volleys) {
	for (uint32_t n = 0; n < volleys; n++) {
		write_there(here->qp, 8);
		turn(here, true);
		turn(there, true);
		post_back();
		turn(there, true);
		turn(here, true);
		clock_advance(&bed.clock, 1000);
	}
}

static void in_a_ping_pong_an_acknowledgement_is_for_several_requests(void **state) {
	uint64_t sent;

	(void)state;
	play_ping_pong(20);
	sent = counters("soft1").acks_sent;
	play_ping_pong(64);
	assert_in_range(counters("soft1").acks_sent - sent, 2, 8);
}

static void what_is_held_leaves_by_itself_and_at_once_by_the_engine(void **state) {
	uint64_t sent;

	(void)state;
	for (int engine = 0; engine < 2; engine++) {
		do {
			play_ping_pong(1);
		} while (!soft_qp_of(there->qp)->ack_is_deferred);
		sent = counters("soft1").acks_sent;
		assert_false(turn(there, true));
		assert_int_equal(counters("soft1").acks_sent, sent);
		assert_int_equal(due(there), 0);
		if (!engine)
			clock_advance(&bed.clock, 20000);
		assert_true(turn(there, !engine));
		assert_int_equal(counters("soft1").acks_sent, sent + 1);
		assert_false(soft_qp_of(there->qp)->ack_is_deferred);
	}
}

// Two queue pairs have far more to send than a turn or their windows allow.
static void a_turn_is_bounded_and_shared(void **state) {
	struct ibv_qp_init_attr attr = bed_qp_attr(here);
	struct ibv_qp *qps[2] = {here->qp, NULL}, *peer = NULL;
	uint64_t sent;

	(void)state;
	assert_int_equal(verbs_calls_soft.create_qp(here->pd, &attr, &qps[1]), 0);
	attr = bed_qp_attr(there);
	assert_int_equal(verbs_calls_soft.create_qp(there->pd, &attr, &peer), 0);
	bed_connect(here, qps[1], there, peer);
	for (int n = 0; n < 10; n++) {
		write_there(qps[0], BED_BYTES);
		write_there(qps[1], BED_BYTES);
	}
	turn(here, true);
	sent = counters("soft0").packets_sent;
	assert_in_range(sent, 64, 128 + 32);
	for (int n = 0; n < 2; n++) {
		const struct soft_qp *qp = soft_qp_of(qps[n]);

		assert_in_range(psn_diff(qp->requester.next_psn, qp->attr.sq_psn), 32, 96);
	}
	bed_run(UINT64_C(1000000000));
	assert_int_equal(counters("soft1").drop_sequence, 0);
	assert_int_equal(counters("soft0").packets_sent, 20 * BED_BYTES / 1024);
	assert_int_equal(verbs_calls_soft.destroy_qp(qps[1]), 0);
	assert_int_equal(verbs_calls_soft.destroy_qp(peer), 0);
}

UNIT_GROUP(soft_turn) {
#define BED(test) cmocka_unit_test_setup_teardown(test, bed_make, bed_end)
	const struct CMUnitTest tests[] = {
		BED(an_acknowledgement_waits_one_turn_though_frames_keep_coming),
		BED(the_engine_defers_nothing),
		BED(who_posts_sends_before_what_it_owes),
		BED(in_a_ping_pong_an_acknowledgement_is_for_several_requests),
		BED(what_is_held_leaves_by_itself_and_at_once_by_the_engine),
		BED(a_turn_is_bounded_and_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
