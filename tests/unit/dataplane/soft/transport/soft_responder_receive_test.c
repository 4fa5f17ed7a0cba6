// SPDX-License-Identifier: BSD-3-Clause
// Tests of receives: the placement of sent bytes, completions, receiver-not-ready, flushing, and a
// queue shared by several queue pairs.
#include "dataplane/soft/transport/responder_bed.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <endian.h>
#include <errno.h>

#define ACK PACKET_SYNDROME_ACK
#define RNR (PACKET_SYNDROME_RNR | 14)

static void exchange(uint8_t opcode, uint32_t psn, uint32_t payload_bytes) {
	struct packet packet = bed_packet(opcode, psn, payload_bytes);

	bed_exchange(&packet);
}

static int post(uint32_t qp, uint64_t wr_id, struct ibv_sge *sges, int count) {
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sges, .num_sge = count};

	return responder_post(&bed.qps[qp], &wr);
}

static void a_completion_says_what_came(void **state) {
	static const struct {
		uint8_t opcode;
		bool solicited;
		enum ibv_wc_opcode says;
		unsigned int flags;
	} cases[] = {
		{PACKET_SEND_ONLY, false, IBV_WC_RECV, 0},
		{PACKET_SEND_ONLY, true, IBV_WC_RECV, 0},
		{PACKET_SEND_ONLY_IMM, false, IBV_WC_RECV, IBV_WC_WITH_IMM},
		{PACKET_WRITE_ONLY_IMM, true, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM},
	};

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(cases); n++) {
		struct packet packet = bed_packet(cases[n].opcode, BED_PSN + n, 20);
		const struct ibv_wc *wc;

		packet.solicited = cases[n].solicited;
		packet.immediate = 0x01020304;
		bed_receive(n + 7, 512, 100);
		bed_exchange(&packet);
		wc = bed_next_done();
		assert_int_equal(wc->wr_id, n + 7);
		assert_int_equal(wc->status, IBV_WC_SUCCESS);
		assert_int_equal(wc->opcode, cases[n].says);
		assert_int_equal(wc->byte_len, 20);
		assert_int_equal(wc->qp_num, 1);
		assert_int_equal(wc->src_qp, 101);
		assert_int_equal(wc->wc_flags, cases[n].flags);
		if (cases[n].flags != 0)
			assert_int_equal(wc->imm_data, htobe32(0x01020304));
		assert_int_equal(bed.done_solicited[n], cases[n].solicited);
	}
	assert_memory_equal(bed.memory, bed.payload, 20);
	assert_memory_equal(bed.memory + 512, bed.payload, 20);
}

// Pieces of odd sizes, one of them empty; packets end within pieces.
static void a_message_fills_the_pieces_one_after_the_other(void **state) {
	static const uint32_t sizes[] = {1, 0, BED_MTU + 44, 2 * BED_MTU};
	struct ibv_sge sges[COUNT_OF(sizes)];
	uint8_t expected[2 * BED_MTU + 99], whole[BED_REGION];
	uint32_t from = 0;

	(void)state;
	memset(whole, 0x11, sizeof(whole));
	memcpy(expected, bed.payload, BED_MTU);
	memcpy(expected + BED_MTU, bed.payload, BED_MTU);
	memcpy(expected + (size_t)2 * BED_MTU, bed.payload, 99);
	for (uint32_t n = 0; n < COUNT_OF(sizes); n++) {
		uint32_t left = (uint32_t)sizeof(expected) - from;
		uint32_t bytes = sizes[n] < left ? sizes[n] : left;

		sges[n] =
			(struct ibv_sge){bed_address(3000 - 900 * n), sizes[n], bed.mr.verbs.lkey};
		memcpy(whole + 3000 - (size_t)900 * n, expected + from, bytes);
		from += bytes;
	}
	assert_int_equal(post(0, 1, sges, COUNT_OF(sizes)), 0);
	exchange(PACKET_SEND_FIRST, BED_PSN, BED_MTU);
	exchange(PACKET_SEND_MIDDLE, BED_PSN + 1, BED_MTU);
	exchange(PACKET_SEND_LAST, BED_PSN + 2, 99);
	assert_int_equal(bed_next_done()->byte_len, sizeof(expected));
	assert_memory_equal(bed.memory, whole, BED_REGION);
}

static void a_write_lands_where_it_was_told_and_counts_as_a_whole(void **state) {
	struct packet first = bed_packet(PACKET_WRITE_FIRST, BED_PSN, BED_MTU);

	(void)state;
	bed_receive(1, 0, 0);
	first.address = bed_address(33);
	first.length = 2 * BED_MTU + 5;
	bed_exchange(&first);
	exchange(PACKET_WRITE_MIDDLE, BED_PSN + 1, BED_MTU);
	bed.sent_head = bed.sent_tail;
	bed_expect_quiet();
	exchange(PACKET_WRITE_LAST_IMM, BED_PSN + 2, 5);
	assert_int_equal(bed_next_done()->byte_len, 2 * BED_MTU + 5);
	assert_memory_equal(bed.memory + 33, bed.payload, BED_MTU);
	assert_memory_equal(bed.memory + 33 + BED_MTU, bed.payload, BED_MTU);
	assert_memory_equal(bed.memory + 33 + (size_t)2 * BED_MTU, bed.payload, 5);
	assert_int_equal(bed.memory[32], 0x11);
	assert_int_equal(bed.memory[33 + 2 * BED_MTU + 5], 0x11);
}

static void a_receive_of_no_bytes_takes_a_message_of_none(void **state) {
	(void)state;
	assert_int_equal(post(0, 1, NULL, 0), 0);
	exchange(PACKET_SEND_ONLY, BED_PSN, 0);
	assert_int_equal(bed_next_done()->byte_len, 0);
	assert_int_equal(post(0, 2, NULL, 0), 0);
	exchange(PACKET_SEND_ONLY, BED_PSN + 1, 1);
	assert_int_equal(bed_next_done()->status, IBV_WC_LOC_LEN_ERR);
}

static void who_sends_too_much_ends_in_the_packet_that_does_not_fit(void **state) {
	(void)state;
	bed_receive(1, 0, 2 * BED_MTU - 1);
	bed_receive(2, 0, 100);
	exchange(PACKET_SEND_FIRST, BED_PSN, BED_MTU);
	bed_expect(PACKET_ACK, BED_PSN, ACK);
	exchange(PACKET_SEND_MIDDLE, BED_PSN + 1, BED_MTU);
	bed_expect(PACKET_ACK, BED_PSN + 1, PACKET_SYNDROME_NAK_INVALID);
	assert_int_equal(bed.memory[BED_MTU], 0x11);
	assert_int_equal(bed_next_done()->status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(bed_next_done()->status, IBV_WC_WR_FLUSH_ERR);
	bed_expect_over(IBV_EVENT_COMM_EST);
	bed_expect_quiet();
}

// The key of a piece is checked only when data arrives in it.
static void a_piece_that_nothing_reaches_may_be_bad(void **state) {
	struct ibv_sge sges[2] = {
		{bed_address(0), 20, bed.mr.verbs.lkey},
		{bed_address(0), 20, 1234},
	};

	(void)state;
	assert_int_equal(post(0, 1, sges, 2), 0);
	exchange(PACKET_SEND_ONLY, BED_PSN, 20);
	assert_int_equal(bed_next_done()->status, IBV_WC_SUCCESS);
	assert_int_equal(post(0, 2, sges, 2), 0);
	exchange(PACKET_SEND_ONLY, BED_PSN + 1, 21);
	assert_int_equal(bed_next_done()->status, IBV_WC_LOC_PROT_ERR);
	bed_expect_over(IBV_EVENT_COMM_EST);
}

static void who_is_not_ready_says_so_each_time_until_it_is(void **state) {
	static const uint8_t opcodes[] = {
		PACKET_SEND_ONLY, PACKET_SEND_ONLY_IMM, PACKET_SEND_FIRST, PACKET_WRITE_ONLY_IMM};

	bed_end(state);
	for (uint32_t n = 0; n < COUNT_OF(opcodes); n++) {
		bool first = opcodes[n] == PACKET_SEND_FIRST;

		bed_make(state);
		for (uint32_t m = 0; m < 3; m++) {
			exchange(opcodes[n], BED_PSN, first ? BED_MTU : 8);
			bed_expect(PACKET_ACK, BED_PSN, RNR);
			exchange(PACKET_WRITE_ONLY, BED_PSN + 1, 8);
			exchange(PACKET_WRITE_ONLY, BED_PSN + 2, 8);
			bed_expect_quiet();
		}
		assert_int_equal(bed.nic.counters.rnr_naks_sent, 3);
		assert_int_equal(bed.nic.counters.naks_sent, 0);
		assert_int_equal(bed.memory[0], 0x11);
		bed_receive(1, 0, BED_MTU);
		exchange(opcodes[n], BED_PSN, first ? BED_MTU : 8);
		bed_expect(PACKET_ACK, BED_PSN, ACK);
		bed_end(state);
	}
	bed_make(state);
}

static void a_receive_in_time_makes_the_rnr_nak_needless(void **state) {
	struct packet packet = bed_packet(PACKET_SEND_ONLY, BED_PSN, 8);

	(void)state;
	bed_request(&packet);
	bed_receive(1, 0, 8);
	bed_request(&packet);
	bed_transmit();
	bed_expect(PACKET_ACK, BED_PSN, ACK);
	assert_int_equal(bed_next_done()->status, IBV_WC_SUCCESS);
	bed_expect_quiet();
}

static void the_last_packet_of_a_write_waits_for_a_receive_of_its_immediate(void **state) {
	struct packet first = bed_packet(PACKET_WRITE_FIRST, BED_PSN, BED_MTU);

	(void)state;
	first.length = BED_MTU + 4;
	first.ack_request = false;
	bed_exchange(&first);
	exchange(PACKET_WRITE_LAST_IMM, BED_PSN + 1, 4);
	bed_expect(PACKET_ACK, BED_PSN + 1, RNR);
	assert_int_equal(bed.memory[BED_MTU], 0x11);
	bed_receive(1, 0, 0);
	exchange(PACKET_WRITE_LAST_IMM, BED_PSN + 1, 4);
	bed_expect(PACKET_ACK, BED_PSN + 1, ACK);
	assert_int_equal(bed_next_done()->byte_len, BED_MTU + 4);
}

static void an_error_flushes_what_is_under_way_and_then_what_waits(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 4; n++)
		bed_receive(n, 0, 2 * BED_MTU);
	exchange(PACKET_SEND_FIRST, BED_PSN, BED_MTU);
	qp_enter_error(&bed.qps[0]);
	for (uint32_t n = 0; n < 4; n++) {
		const struct ibv_wc *wc = bed_next_done();

		assert_int_equal(wc->wr_id, n);
		assert_int_equal(wc->status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wc->qp_num, 1);
		assert_true(bed.done_solicited[n]);
	}
	bed.sent_head = bed.sent_tail;
	bed_receive(9, 0, 8);
	assert_int_equal(bed_next_done()->wr_id, 9);
	bed_expect_quiet();
	assert_false(responder_transmit(&bed.qps[0], BED_BUDGET, false));
}

static void what_cannot_be_posted_is_refused(void **state) {
	struct ibv_sge sges[5] = {{0, UINT32_C(1) << 31, 0}, {0, 1, 0}};

	(void)state;
	assert_int_equal(post(0, 1, sges, 5), -EINVAL);
	assert_int_equal(post(0, 1, sges, -1), -EINVAL);
	assert_int_equal(post(0, 1, sges, 2), -EINVAL);
	assert_int_equal(post(0, 1, sges, 1), 0);
	for (uint32_t n = 0; n < 3; n++)
		assert_int_equal(post(0, 1, sges, 0), 0);
	assert_int_equal(post(0, 1, sges, 0), -ENOMEM);
	bed.qps[1].verbs.state = IBV_QPS_RESET;
	assert_int_equal(post(1, 1, sges, 0), -EINVAL);
	bed.qps[1].verbs.state = IBV_QPS_INIT;
	assert_int_equal(post(1, 1, sges, 0), 0);
}

static void who_shares_receives_posts_none_of_its_own(void **state) {
	(void)state;
	assert_int_equal(post(0, 1, NULL, 0), -EINVAL);
}

static void shared_receives_go_to_who_needs_one_first(void **state) {
	static const uint32_t order[] = {2, 0, 0, 1};

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(order); n++)
		bed_receive(n, 100 * n, 100);
	for (uint32_t n = 0; n < COUNT_OF(order); n++) {
		uint32_t qp = order[n];
		struct packet packet =
			bed_packet(PACKET_SEND_ONLY, bed.qps[qp].responder.expected_psn, 8);
		const struct ibv_wc *wc;

		bed_request_at(qp, &packet);
		wc = bed_next_done();
		assert_int_equal(wc->wr_id, n);
		assert_int_equal(wc->qp_num, qp + 1);
	}
}

static void messages_of_two_senders_do_not_mix_in_shared_receives(void **state) {
	struct packet first = bed_packet(PACKET_SEND_FIRST, BED_PSN, BED_MTU);
	struct packet last = bed_packet(PACKET_SEND_LAST, BED_PSN + 1, 4);

	(void)state;
	bed_receive(1, 0, 2 * BED_MTU);
	bed_receive(2, 2 * BED_MTU, 2 * BED_MTU);
	bed_request_at(1, &first);
	bed_request_at(0, &first);
	bed_request_at(0, &last);
	bed_request_at(1, &last);
	assert_int_equal(bed_next_done()->wr_id, 2);
	assert_int_equal(bed_next_done()->wr_id, 1);
	assert_memory_equal(bed.memory + BED_MTU, bed.payload, 4);
	assert_memory_equal(bed.memory + (size_t)3 * BED_MTU, bed.payload, 4);
	exchange(PACKET_SEND_ONLY, BED_PSN + 2, 4);
	bed_expect(PACKET_ACK, BED_PSN + 2, RNR);
}

static void an_error_leaves_shared_receives_to_the_others(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 3; n++)
		bed_receive(n, 0, 2 * BED_MTU);
	exchange(PACKET_SEND_FIRST, BED_PSN, BED_MTU);
	qp_enter_error(&bed.qps[0]);
	assert_int_equal(bed_next_done()->wr_id, 0);
	assert_int_equal(bed.done[0].status, IBV_WC_WR_FLUSH_ERR);
	bed_expect_event(IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(receive_queue_count(&bed.srq->queue), 2);
}

// The keys of a shared receive belong to the PD of the shared queue, not of the queue pair.
static void shared_pieces_are_of_the_pd_of_their_queue(void **state) {
	(void)state;
	bed.qps[0].verbs.pd = &bed.strange_pd.verbs;
	bed_receive(1, 0, 8);
	exchange(PACKET_SEND_ONLY, BED_PSN, 8);
	assert_int_equal(bed_next_done()->status, IBV_WC_SUCCESS);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, bed_make, bed_end)
#define SHARED(name) cmocka_unit_test_setup_teardown(name, bed_make_shared, bed_end)

UNIT_GROUP(soft_responder_receive) {
	const struct CMUnitTest tests[] = {
		CASE(a_completion_says_what_came),
		CASE(a_message_fills_the_pieces_one_after_the_other),
		CASE(a_write_lands_where_it_was_told_and_counts_as_a_whole),
		CASE(a_receive_of_no_bytes_takes_a_message_of_none),
		CASE(who_sends_too_much_ends_in_the_packet_that_does_not_fit),
		CASE(a_piece_that_nothing_reaches_may_be_bad),
		CASE(who_is_not_ready_says_so_each_time_until_it_is),
		CASE(a_receive_in_time_makes_the_rnr_nak_needless),
		CASE(the_last_packet_of_a_write_waits_for_a_receive_of_its_immediate),
		CASE(an_error_flushes_what_is_under_way_and_then_what_waits),
		CASE(what_cannot_be_posted_is_refused),
		SHARED(who_shares_receives_posts_none_of_its_own),
		SHARED(shared_receives_go_to_who_needs_one_first),
		SHARED(messages_of_two_senders_do_not_mix_in_shared_receives),
		SHARED(an_error_leaves_shared_receives_to_the_others),
		SHARED(shared_pieces_are_of_the_pd_of_their_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
