// SPDX-License-Identifier: BSD-3-Clause
// Tests of the requests that a requester accepts from a program, and of those that it refuses.
#include "dataplane/soft/transport/requester_bed.h"

#include <errno.h>

#define MTU BED_MTU

static void what_it_does_not_know_is_refused(void **state) {
	static const struct {
		enum ibv_wr_opcode opcode;
		unsigned int flags;
		uint32_t length;
		int sges;
	} cases[] = {
		{IBV_WR_SEND_WITH_INV, 0, 8, 1},
		{IBV_WR_LOCAL_INV, 0, 0, 0},
		{IBV_WR_BIND_MW, 0, 0, 0},
		{IBV_WR_TSO, 0, 8, 1},
		{(enum ibv_wr_opcode)1000, 0, 8, 1},
		{(enum ibv_wr_opcode) - 1, 0, 8, 1},
		{IBV_WR_SEND, IBV_SEND_IP_CSUM, 8, 1},
		{IBV_WR_SEND, 1u << 31, 8, 1},
		{IBV_WR_SEND, 0, 8, -1},
		{IBV_WR_SEND, 0, 8, 5},
		{IBV_WR_SEND, 0, 8, INT32_MAX},
		{IBV_WR_SEND, IBV_SEND_INLINE, 65, 1},
		{IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 33, 2},
		{IBV_WR_RDMA_READ, IBV_SEND_INLINE, 8, 1},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_SEND_INLINE, 8, 1},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 7, 1},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 2},
		{IBV_WR_ATOMIC_CMP_AND_SWP, 0, 0, 0},
		{IBV_WR_ATOMIC_CMP_AND_SWP, 0, 16, 1},
		{IBV_WR_RDMA_WRITE, 0, REQUESTER_MESSAGE_MAX + 1, 1},
		{IBV_WR_RDMA_READ, 0, UINT32_MAX, 4},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct ibv_send_wr wr = bed_wr(cases[n].opcode, 0, 8);
		struct ibv_sge sges[5];

		for (size_t i = 0; i < COUNT_OF(sges); i++) {
			sges[i] = *wr.sg_list;
			sges[i].length = cases[n].length;
		}
		wr.sg_list = sges;
		wr.num_sge = cases[n].sges;
		wr.send_flags = cases[n].flags;
		assert_int_equal(requester_post(&bed->qp, &wr), -EINVAL);
	}
	assert_int_equal(bed_transmit(), 0);
	bed_no_wc();
}

static void reads_and_atomics_are_refused_where_none_may_be_under_way(void **state) {
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};

	(void)state;
	bed->qp.attr.max_rd_atomic = 0;
	for (size_t n = 0; n < COUNT_OF(opcodes); n++) {
		struct ibv_send_wr wr = bed_wr(opcodes[n], 0, 8);

		assert_int_equal(requester_post(&bed->qp, &wr), -EINVAL);
	}
}

static void work_is_taken_in_rts_and_sqd_flushed_in_err_and_else_refused(void **state) {
	static const struct {
		enum ibv_qp_state state;
		int err;
	} cases[] = {
		{IBV_QPS_RESET, -EINVAL}, {IBV_QPS_INIT, -EINVAL}, {IBV_QPS_RTR, -EINVAL},
		{IBV_QPS_RTS, 0},	  {IBV_QPS_SQD, 0},	   {IBV_QPS_SQE, -EINVAL},
		{IBV_QPS_ERR, 0},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct ibv_send_wr wr = bed_wr(IBV_WR_RDMA_WRITE, 0, 8);

		bed_start(5, MTU);
		bed_state(cases[n].state);
		wr.send_flags = 0;
		assert_int_equal(requester_post(&bed->qp, &wr), cases[n].err);
		if (cases[n].state == IBV_QPS_ERR)
			assert_int_equal(bed_wc(IBV_WC_WR_FLUSH_ERR)->wr_id, wr.wr_id);
		bed_no_wc();
	}
}

static void a_queue_that_is_full_takes_no_more_until_one_completes(void **state) {
	struct ibv_send_wr wr;

	(void)state;
	for (uint32_t n = 0; n < bed->qp.requester.capacity; n++)
		bed_post(IBV_WR_RDMA_WRITE, 0, 8);
	wr = bed_wr(IBV_WR_RDMA_WRITE, 0, 8);
	assert_int_equal(requester_post(&bed->qp, &wr), -ENOMEM);
	bed_transmit();
	assert_int_equal(requester_post(&bed->qp, &wr), -ENOMEM);
	bed_ack(1000);
	assert_int_equal(requester_post(&bed->qp, &wr), 0);
	assert_int_equal(requester_post(&bed->qp, &wr), -ENOMEM);
}

static void a_capacity_that_is_no_power_of_two_is_kept_to(void **state) {
	static const struct ibv_qp_cap cap = {.max_send_wr = 5, .max_send_sge = 4};
	uint32_t posted = 0;

	(void)state;
	requester_fini(&bed->qp.requester);
	assert_int_equal(requester_init(&bed->qp.requester, &cap), 0);
	bed_start(0, MTU);
	for (uint32_t round = 0; round < 7; round++) {
		struct ibv_send_wr wr = bed_wr(IBV_WR_SEND, 0, 8);

		while (requester_post(&bed->qp, &wr) == 0)
			posted++;
		assert_int_equal(posted, 5 + round * 3);
		bed_transmit();
		bed_ack(round * 3 + 2);
	}
	bed_wcs(21, IBV_WC_SUCCESS);
}

static void inline_bytes_are_those_of_the_time_of_posting(void **state) {
	struct ibv_send_wr wr = bed_wr(IBV_WR_SEND, 0, 0);
	uint8_t one[10], two[20], expected[30];
	struct ibv_sge sges[3] = {
		{.addr = (uintptr_t)one, .length = sizeof(one)},
		{.addr = 0, .length = 0, .lkey = 77},
		{.addr = (uintptr_t)two, .length = sizeof(two)},
	};

	(void)state;
	memset(one, 1, sizeof(one));
	memset(two, 2, sizeof(two));
	memcpy(expected, one, sizeof(one));
	memcpy(expected + sizeof(one), two, sizeof(two));
	wr.sg_list = sges;
	wr.num_sge = 3;
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(requester_post(&bed->qp, &wr), 0);
	memset(one, 9, sizeof(one));
	memset(two, 9, sizeof(two));
	memset(sges, 9, sizeof(sges));
	bed_transmit();
	assert_int_equal(bed_sent_as(PACKET_SEND_ONLY, 1000)->size, sizeof(expected));
	assert_memory_equal(bed->sent[0].payload, expected, sizeof(expected));
	// A retransmission must have the same bytes.
	bed_due();
	bed_transmit();
	assert_memory_equal(bed_sent()->payload, expected, sizeof(expected));
}

static void inline_without_bytes_is_an_empty_message(void **state) {
	(void)state;
	bed_post_flags(IBV_WR_SEND, 0, 0, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
	bed_transmit();
	assert_int_equal(bed_sent_as(PACKET_SEND_ONLY, 1000)->size, 0);
	bed_ack(1000);
	bed_wc(IBV_WC_SUCCESS);
}

static void each_request_takes_as_many_psns_as_it_has_packets(void **state) {
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t length, packets;
	} cases[] = {
		{IBV_WR_SEND, 0, 1},
		{IBV_WR_SEND, 1, 1},
		{IBV_WR_RDMA_WRITE, MTU - 1, 1},
		{IBV_WR_RDMA_WRITE, MTU, 1},
		{IBV_WR_RDMA_WRITE, MTU + 1, 2},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 3 * MTU, 3},
		{IBV_WR_RDMA_READ, 0, 1},
		{IBV_WR_RDMA_READ, 3 * MTU + 1, 4},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1},
		{IBV_WR_ATOMIC_CMP_AND_SWP, 8, 1},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		bed_start(PSN_MASK, MTU);
		bed_post(cases[n].opcode, 0, cases[n].length);
		assert_int_equal(bed->qp.requester.post_psn, psn_add(PSN_MASK, cases[n].packets));
	}
}

static void more_may_be_posted_than_half_of_all_psns(void **state) {
	struct ibv_send_wr wr = bed_wr(IBV_WR_RDMA_WRITE, 0, 8);
	struct ibv_sge sge = *wr.sg_list;
	uint32_t each = REQUESTER_MESSAGE_MAX / MTU;

	(void)state;
	sge.length = REQUESTER_MESSAGE_MAX;
	// Longer than the memory, but only its beginning is read.
	bed->mr.length = REQUESTER_MESSAGE_MAX;
	wr.sg_list = &sge;
	for (uint32_t n = 0; n < 8; n++)
		assert_int_equal(requester_post(&bed->qp, &wr), 0);
	assert_int_equal(bed->qp.requester.post_psn, psn_add(1000, 8 * each));
	assert_int_equal(bed_transmit(), 64);
	bed_ack(1010);
	assert_int_equal(bed_transmit(), 11);
	bed_syndrome(1020, PACKET_SYNDROME_NAK_SEQUENCE);
	assert_true(bed_transmit() > 0);
	bed_no_wc();
	bed->mr.length = BED_MEMORY;
}

static void completions_name_what_was_done(void **state) {
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t length;
		enum ibv_wc_opcode done;
	} cases[] = {
		{IBV_WR_RDMA_WRITE, 700, IBV_WC_RDMA_WRITE},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 10, IBV_WC_RDMA_WRITE},
		{IBV_WR_SEND, 0, IBV_WC_SEND},
		{IBV_WR_SEND_WITH_IMM, 20, IBV_WC_SEND},
		{IBV_WR_RDMA_READ, 100, IBV_WC_RDMA_READ},
		{IBV_WR_ATOMIC_CMP_AND_SWP, 8, IBV_WC_COMP_SWAP},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_FETCH_ADD},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		const struct ibv_wc *wc;

		bed_start(0, MTU);
		bed_post(cases[n].opcode, 0, cases[n].length);
		bed_transmit();
		if (cases[n].opcode == IBV_WR_RDMA_READ)
			bed_read_answer(PACKET_READ_ONLY, 0, 1, cases[n].length);
		else if (cases[n].opcode >= IBV_WR_ATOMIC_CMP_AND_SWP)
			bed_atomic_answer(0, 1);
		else
			bed_ack(psn_add(bed->qp.requester.post_psn, -1u));
		wc = bed_wc(IBV_WC_SUCCESS);
		assert_int_equal(wc->wr_id, n + 1);
		assert_int_equal(wc->opcode, cases[n].done);
		assert_int_equal(wc->byte_len, cases[n].length);
		bed_no_wc();
		assert_int_equal(requester_next_timer_ns(&bed->qp), NIC_NEVER);
	}
}

static void success_without_a_signal_is_silent_unless_all_are_signalled(void **state) {
	(void)state;
	bed_post_flags(IBV_WR_SEND, 0, 8, 0);
	bed_post_flags(IBV_WR_SEND, 0, 8, IBV_SEND_SIGNALED);
	bed->qp.signal_all = true;
	bed_post_flags(IBV_WR_SEND, 0, 8, 0);
	bed_transmit();
	bed_ack(1002);
	assert_int_equal(bed_wc(IBV_WC_SUCCESS)->wr_id, 2);
	assert_int_equal(bed_wc(IBV_WC_SUCCESS)->wr_id, 3);
	bed_no_wc();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_open, bed_close)

UNIT_GROUP(soft_requester_post) {
	const struct CMUnitTest tests[] = {
		TEST(what_it_does_not_know_is_refused),
		TEST(reads_and_atomics_are_refused_where_none_may_be_under_way),
		TEST(work_is_taken_in_rts_and_sqd_flushed_in_err_and_else_refused),
		TEST(a_queue_that_is_full_takes_no_more_until_one_completes),
		TEST(a_capacity_that_is_no_power_of_two_is_kept_to),
		TEST(inline_bytes_are_those_of_the_time_of_posting),
		TEST(inline_without_bytes_is_an_empty_message),
		TEST(each_request_takes_as_many_psns_as_it_has_packets),
		TEST(more_may_be_posted_than_half_of_all_psns),
		TEST(completions_name_what_was_done),
		TEST(success_without_a_signal_is_silent_unless_all_are_signalled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
