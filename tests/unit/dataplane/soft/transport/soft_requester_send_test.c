// SPDX-License-Identifier: BSD-3-Clause
// Tests of the packets that a requester sends, and of what it waits for.
#include "dataplane/soft/transport/requester_bed.h"

#define MTU BED_MTU

// Return the opcode of packet `n` of a message with that many packets.
static uint8_t expected_opcode(enum ibv_wr_opcode opcode, uint32_t n, uint32_t packets) {
	static const uint8_t opcodes[][4] = {
		[IBV_WR_RDMA_WRITE] = {0x06, 0x07, 0x08, 0x0a},
		[IBV_WR_RDMA_WRITE_WITH_IMM] = {0x06, 0x07, 0x09, 0x0b},
		[IBV_WR_SEND] = {0x00, 0x01, 0x02, 0x04},
		[IBV_WR_SEND_WITH_IMM] = {0x00, 0x01, 0x03, 0x05},
	};
	uint32_t place = packets == 1 ? 3 : n == 0 ? 0 : n + 1 == packets ? 2 : 1;

	return opcodes[opcode][place];
}

static void check_message(enum ibv_wr_opcode opcode, uint32_t psn, uint32_t length, uint32_t mtu) {
	uint32_t packets = length == 0 ? 1 : (length + mtu - 1) / mtu;

	for (uint32_t n = 0; n < packets; n++) {
		const struct bed_packet *sent =
			bed_sent_as(expected_opcode(opcode, n, packets), psn + n);
		uint8_t flags = packet_opcode_info(sent->packet.opcode)->flags;
		uint32_t size = n + 1 == packets ? length - n * mtu : mtu;

		assert_int_equal(sent->size, size);
		assert_memory_equal(sent->payload, bed->memory + 64 + n * mtu, size);
		if (n + 1 == packets)
			assert_true(sent->packet.ack_request);
		if ((flags & PACKET_RETH) != 0) {
			assert_int_equal(sent->packet.address, BED_REMOTE + 64);
			assert_int_equal(sent->packet.key, BED_RKEY);
			assert_int_equal(sent->packet.length, length);
		}
		if ((flags & PACKET_IMM) != 0)
			assert_int_equal(sent->packet.immediate, 0x01020304);
		assert_int_equal(
			sent->packet.solicited, n + 1 == packets && opcode != IBV_WR_RDMA_WRITE
		);
	}
	bed_sent_nothing();
}

static void a_message_is_cut_at_the_mtu(void **state) {
	static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};

	(void)state;
	for (size_t m = 0; m < COUNT_OF(mtus); m++) {
		const uint32_t mtu = mtus[m];
		const uint32_t lengths[] = {0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 5 * mtu + 3};

		bed->wire.window_bytes = 128 * mtu;
		for (size_t n = 0; n < 4 * COUNT_OF(lengths); n++) {
			enum ibv_wr_opcode opcode = (enum ibv_wr_opcode)(n % 4);
			struct ibv_send_wr wr = bed_wr(opcode, 64, lengths[n / 4]);

			bed_start(PSN_MASK - 1, mtu);
			wr.send_flags |= IBV_SEND_SOLICITED;
			wr.imm_data = htobe32(0x01020304);
			assert_int_equal(requester_post(&bed->qp, &wr), 0);
			bed_transmit();
			check_message(opcode, PSN_MASK - 1, lengths[n / 4], mtu);
			bed_ack(psn_add(bed->qp.requester.post_psn, -1u));
			bed_wc(IBV_WC_SUCCESS);
		}
	}
}

static void pieces_are_put_together_wherever_they_are_cut(void **state) {
	static const uint32_t lengths[][4] = {
		{1, 2, 3, 4},	    {0, 300, 0, 300},	      {MTU, MTU, MTU, MTU},
		{MTU - 1, 1, 1, 5}, {1, 3 * MTU, 1, 0},	      {0, 0, 0, 7},
		{5, 0, 0, 0},	    {2 * MTU + 1, 1, 0, MTU}, {0, 0, 0, 0},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(lengths); n++) {
		struct ibv_send_wr wr = bed_wr(IBV_WR_RDMA_WRITE, 0, 0);
		uint8_t whole[16 * MTU];
		uint32_t size = 0;
		struct ibv_sge sges[4];

		for (uint32_t i = 0; i < 4; i++) {
			uint32_t offset = (3 - i) * 4 * MTU;

			sges[i] = (struct ibv_sge){
				.addr = (uintptr_t)bed->memory + offset,
				.length = lengths[n][i],
				.lkey = bed->mr.verbs.lkey,
			};
			memcpy(whole + size, bed->memory + offset, lengths[n][i]);
			size += lengths[n][i];
		}
		wr.sg_list = sges;
		wr.num_sge = 4;
		assert_int_equal(requester_post(&bed->qp, &wr), 0);
		bed_transmit();
		for (uint32_t sent = 0; sent < size; sent += MTU) {
			const struct bed_packet *packet = bed_sent();

			assert_memory_equal(packet->payload, whole + sent, packet->size);
		}
		bed->seen = bed->sent_count;
		bed_ack(psn_add(bed->qp.requester.post_psn, -1u));
		bed_wc(IBV_WC_SUCCESS);
	}
}

static void atomics_carry_their_operands(void **state) {
	struct ibv_send_wr wr = bed_wr(IBV_WR_ATOMIC_CMP_AND_SWP, 8, 8);
	const struct packet *packet;

	(void)state;
	wr.wr.atomic.compare_add = 11;
	wr.wr.atomic.swap = 22;
	assert_int_equal(requester_post(&bed->qp, &wr), 0);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	assert_int_equal(requester_post(&bed->qp, &wr), 0);
	bed_transmit();
	packet = &bed_sent_as(PACKET_COMPARE_SWAP, 1000)->packet;
	assert_int_equal(packet->address, BED_REMOTE + 8);
	assert_int_equal(packet->key, BED_RKEY);
	assert_int_equal(packet->compare, 11);
	assert_int_equal(packet->swap_add, 22);
	packet = &bed_sent_as(PACKET_FETCH_ADD, 1001)->packet;
	assert_int_equal(packet->swap_add, 11);
	assert_int_equal(packet->compare, 0);
}

static void an_acknowledgement_is_asked_for_every_16_packets_and_at_the_end(void **state) {
	uint32_t asked = 0, since = 0;

	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 60 * MTU);
	assert_int_equal(bed_transmit(), 60);
	for (uint32_t n = 0; n < 60; n++) {
		bool ask = bed_sent()->packet.ack_request;

		asked += ask;
		since = ask ? 0 : since + 1;
		assert_true(since < 16);
	}
	assert_int_equal(since, 0);
	assert_true(asked <= 5);
}

static void the_packet_that_fills_the_window_asks_for_an_acknowledgement(void **state) {
	(void)state;
	for (uint32_t psn = 0; psn < 16; psn++) {
		bed_start(psn, MTU);
		bed_post(IBV_WR_RDMA_WRITE, 0, 200 * MTU);
		assert_int_equal(bed_transmit(), 64);
		assert_true(bed->sent[bed->sent_count - 1].packet.ack_request);
		// The same holds after each acknowledgement that was requested.
		bed_ack(psn + 63);
		assert_int_equal(bed_transmit(), 65);
	}
}

static void the_window_is_what_the_wire_can_hold_and_at_least_two(void **state) {
	static const struct {
		uint32_t bytes, window;
	} cases[] = {
		{0, 2}, {MTU, 2}, {8 * MTU, 4}, {100 * MTU, 50}, {128 * MTU, 64}, {UINT32_MAX, 64},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		bed->wire.window_bytes = cases[n].bytes;
		bed_start(0, MTU);
		bed_post(IBV_WR_RDMA_WRITE, 0, 100 * MTU);
		assert_int_equal(bed_transmit(), cases[n].window);
	}
}

// Send that many windows; each is acknowledged as a whole.
static void send_windows(uint32_t windows) {
	for (uint32_t n = 0; n < windows; n++) {
		while (bed->qp.requester.tail - bed->qp.requester.head < 2)
			bed_post_flags(IBV_WR_RDMA_WRITE, 0, 900 * MTU, 0);
		bed->sent_count = 0;
		bed_transmit();
		bed_ack(psn_add(bed->qp.requester.next_psn, -1u));
	}
}

static void the_window_grows_by_one_per_window_up_to_what_the_wire_can_hold(void **state) {
	(void)state;
	bed->wire.window_bytes = 140 * MTU;
	bed_start(0, MTU);
	assert_int_equal(bed->qp.requester.window, 64);
	send_windows(1);
	assert_int_equal(bed->qp.requester.window, 65);
	send_windows(10);
	assert_int_equal(bed->qp.requester.window, 75);
	send_windows(200);
	assert_int_equal(bed->qp.requester.window, 140);
}

static void the_window_shrinks_once_for_each_window_with_losses(void **state) {
	struct requester *requester = &bed->qp.requester;

	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 1000 * MTU);
	bed_transmit();
	bed_syndrome(1010, PACKET_SYNDROME_NAK_SEQUENCE);
	assert_int_equal(requester->window, 48);
	bed_transmit();
	bed_syndrome(1020, PACKET_SYNDROME_NAK_SEQUENCE);
	bed_transmit();
	bed_syndrome(1030, PACKET_SYNDROME_NAK_SEQUENCE);
	assert_int_equal(requester->window, 48);
	bed_transmit();
	bed_ack(1070);
	bed_transmit();
	bed_syndrome(1080, PACKET_SYNDROME_NAK_SEQUENCE);
	assert_int_equal(requester->window, 36);
	for (uint32_t psn = 1090; psn < 1900; psn += requester->window) {
		bed_transmit();
		bed_ack(psn_add(requester->next_psn, -1u));
		bed_transmit();
		bed_syndrome(requester->acked_psn, PACKET_SYNDROME_NAK_SEQUENCE);
	}
	assert_in_range(requester->window, 2, 8);
}

static void a_read_is_asked_for_in_pieces(void **state) {
	uint32_t psn = PSN_MASK - 5;

	(void)state;
	bed_start(psn, MTU);
	bed_post(IBV_WR_RDMA_READ, 128, 40 * MTU + 5);
	assert_int_equal(bed_transmit(), 3);
	for (uint32_t n = 0; n < 3; n++) {
		const struct packet *packet =
			&bed_sent_as(PACKET_READ_REQUEST, psn + 16 * n)->packet;

		assert_int_equal(packet->address, BED_REMOTE + 128 + n * 16 * MTU);
		assert_int_equal(packet->length, n < 2 ? 16 * MTU : 8 * MTU + 5);
		assert_int_equal(packet->key, BED_RKEY);
	}
}

static void reads_keep_within_what_the_wire_can_hold(void **state) {
	static const struct {
		uint32_t bytes, requests, psns;
	} cases[] = {
		{0, 2, 2}, {8 * MTU, 1, 4}, {32 * MTU, 1, 16}, {64 * MTU, 2, 32}, {1 << 20, 4, 64},
	};

	(void)state;
	bed->qp.attr.max_rd_atomic = 16;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		bed->wire.window_bytes = cases[n].bytes;
		bed_start(0, MTU);
		bed_post(IBV_WR_RDMA_READ, 0, 100 * MTU);
		assert_int_equal(bed_transmit(), cases[n].requests);
		assert_int_equal(bed->qp.requester.next_psn, cases[n].psns);
	}
}

static void no_more_reads_and_atomics_are_under_way_than_agreed(void **state) {
	(void)state;
	bed->qp.attr.max_rd_atomic = 2;
	bed_post(IBV_WR_RDMA_READ, 0, 8);
	bed_post(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8);
	bed_post(IBV_WR_RDMA_READ, 16, 8);
	bed_post(IBV_WR_SEND, 24, 8);
	assert_int_equal(bed_transmit(), 2);
	bed_read_answer(PACKET_READ_ONLY, 1000, 1, 8);
	assert_true(bed->qp.is_ready);
	assert_int_equal(bed_transmit(), 2);
	bed_sent_as(PACKET_READ_REQUEST, 1000);
	bed_sent_as(PACKET_FETCH_ADD, 1001);
	bed_sent_as(PACKET_READ_REQUEST, 1002);
	bed_sent_as(PACKET_SEND_ONLY, 1003);
}

static void a_fence_waits_for_reads_and_atomics_but_not_for_writes(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 8);
	bed_post_flags(IBV_WR_SEND, 0, 8, IBV_SEND_FENCE);
	bed_post(IBV_WR_RDMA_READ, 0, 17 * MTU);
	bed_post(IBV_WR_ATOMIC_FETCH_AND_ADD, 8192, 8);
	bed_post_flags(IBV_WR_SEND, 0, 8, IBV_SEND_FENCE);
	bed_post(IBV_WR_SEND, 0, 8);
	assert_int_equal(bed_transmit(), 5);
	for (uint32_t n = 0; n < 15; n++)
		bed_read_answer(n == 0 ? PACKET_READ_FIRST : PACKET_READ_MIDDLE, 1002 + n, 1, MTU);
	assert_int_equal(bed_transmit(), 0);
	bed_read_answer(PACKET_READ_LAST, 1017, 1, MTU);
	bed_read_answer(PACKET_READ_ONLY, 1018, 1, MTU);
	assert_int_equal(bed_transmit(), 0);
	bed_atomic_answer(1019, 1);
	assert_int_equal(bed_transmit(), 2);
}

static void a_fence_holds_when_it_is_sent_again(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_READ, 0, 8);
	bed_post_flags(IBV_WR_SEND, 0, 8, IBV_SEND_FENCE);
	assert_int_equal(bed_transmit(), 1);
	bed_timeout();
	assert_int_equal(bed_transmit(), 1);
	bed_read_answer(PACKET_READ_ONLY, 1000, 1, 8);
	assert_int_equal(bed_transmit(), 1);
}

static void a_full_wire_and_a_spent_budget_leave_the_rest_for_later(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 64, 10 * MTU);
	bed->room = 3;
	assert_true(requester_transmit(&bed->qp, 100));
	assert_int_equal(bed->sent_count, 3);
	assert_true(requester_transmit(&bed->qp, 100));
	bed->room = UINT32_MAX;
	assert_true(requester_transmit(&bed->qp, 0));
	assert_true(requester_transmit(&bed->qp, 2));
	assert_int_equal(bed->sent_count, 5);
	assert_false(requester_transmit(&bed->qp, 5));
	check_message(IBV_WR_RDMA_WRITE, 1000, 10 * MTU, MTU);
	assert_false(requester_transmit(&bed->qp, 0));
}

static void a_full_wire_does_not_count_a_read_as_under_way(void **state) {
	(void)state;
	bed->qp.attr.max_rd_atomic = 1;
	bed_post(IBV_WR_RDMA_READ, 64, 8);
	bed->room = 0;
	assert_true(requester_transmit(&bed->qp, 100));
	assert_int_equal(requester_next_timer_ns(&bed->qp), NIC_NEVER);
	bed->room = 1;
	assert_int_equal(bed_transmit(), 1);
}

static void a_drained_queue_sends_only_what_is_begun(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 3 * MTU);
	bed_post(IBV_WR_SEND, 0, 8);
	assert_true(requester_transmit(&bed->qp, 2));
	assert_false(requester_is_idle(&bed->qp));
	bed_state(IBV_QPS_SQD);
	assert_int_equal(bed_transmit(), 1);
	assert_false(requester_is_idle(&bed->qp));
	// Packets sent before may be sent again, but no new ones.
	bed_timeout();
	assert_int_equal(bed_transmit(), 3);
	bed_ack(1002);
	bed_wc(IBV_WC_SUCCESS);
	assert_true(requester_is_idle(&bed->qp));
	bed_post(IBV_WR_SEND, 0, 8);
	assert_int_equal(bed_transmit(), 0);
	bed_state(IBV_QPS_RTS);
	assert_int_equal(bed_transmit(), 2);
	assert_false(requester_is_idle(&bed->qp));
}

static void a_drained_queue_is_not_idle_between_the_pieces_of_a_read(void **state) {
	(void)state;
	bed->qp.attr.max_rd_atomic = 1;
	bed_post(IBV_WR_RDMA_READ, 0, 17 * MTU);
	bed_transmit();
	bed_state(IBV_QPS_SQD);
	for (uint32_t n = 0; n < 16; n++) {
		uint8_t opcode = n == 0	   ? PACKET_READ_FIRST
				 : n == 15 ? PACKET_READ_LAST
					   : PACKET_READ_MIDDLE;

		bed_read_answer(opcode, 1000 + n, 1, MTU);
	}
	assert_false(requester_is_idle(&bed->qp));
	assert_int_equal(bed_transmit(), 1);
	bed_read_answer(PACKET_READ_ONLY, 1016, 1, MTU);
	assert_true(requester_is_idle(&bed->qp));
	bed_wc(IBV_WC_SUCCESS);
}

static void drain(bool notify) {
	bed_state(IBV_QPS_SQD);
	bed->qp.attr.en_sqd_async_notify = notify;
	requester_drain(&bed->qp);
}

static void that_it_has_drained_is_told_once_and_only_if_asked_for(void **state) {
	(void)state;
	drain(true);
	assert_int_equal(bed->drained, 1);
	bed_state(IBV_QPS_RTS);
	requester_resume(&bed->qp);
	bed_post(IBV_WR_RDMA_WRITE, 0, 2 * MTU);
	bed_transmit();
	bed_post(IBV_WR_SEND, 0, 8);
	drain(true);
	bed_ack(1000);
	assert_int_equal(bed->drained, 1);
	bed_ack(1001);
	bed_ack(1001);
	assert_int_equal(bed->drained, 2);
	bed_state(IBV_QPS_RTS);
	requester_resume(&bed->qp);
	assert_true(bed->qp.is_ready);
	bed_transmit();
	drain(false);
	bed_ack(1002);
	assert_int_equal(bed->drained, 2);
}

static void going_on_or_failing_before_it_has_drained_tells_nothing(void **state) {
	(void)state;
	bed_post(IBV_WR_SEND, 0, 8);
	bed_transmit();
	drain(true);
	bed_state(IBV_QPS_RTS);
	requester_resume(&bed->qp);
	bed_ack(1000);
	bed_post(IBV_WR_SEND, 0, 8);
	bed_transmit();
	drain(true);
	bed_syndrome(1001, PACKET_SYNDROME_NAK_ACCESS);
	assert_int_equal(bed->drained, 0);
}

static void nothing_is_sent_in_other_states(void **state) {
	static const enum ibv_qp_state states[] = {
		IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_SQE, IBV_QPS_ERR};

	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 8);
	for (size_t n = 0; n < COUNT_OF(states); n++) {
		bed_state(states[n]);
		assert_int_equal(bed_transmit(), 0);
	}
}

static void memory_that_is_not_registered_fails_when_its_turn_has_come(void **state) {
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 8);
	wr = bed_wr(IBV_WR_RDMA_WRITE, 0, 8);
	sge = *wr.sg_list;
	sge.lkey ^= 1;
	wr.sg_list = &sge;
	wr.send_flags = 0;
	assert_int_equal(requester_post(&bed->qp, &wr), 0);
	bed_post(IBV_WR_SEND, 0, 8);
	assert_int_equal(bed_transmit(), 1);
	assert_int_equal(bed_transmit(), 0);
	bed_no_wc();
	bed_ack(1000);
	assert_int_equal(bed_wc(IBV_WC_SUCCESS)->wr_id, 1);
	assert_int_equal(bed_wc(IBV_WC_LOC_PROT_ERR)->wr_id, 2);
	assert_int_equal(bed_wc(IBV_WC_WR_FLUSH_ERR)->wr_id, 3);
	bed_no_wc();
	assert_int_equal(bed->errors, 1);
	assert_int_equal(requester_next_timer_ns(&bed->qp), NIC_NEVER);
}

static void a_region_that_goes_away_under_way_fails_its_request_only_if_sent_again(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 3 * MTU);
	bed_transmit();
	region_remove(&bed->nic, &bed->mr);
	bed_syndrome(1001, PACKET_SYNDROME_NAK_SEQUENCE);
	bed_no_wc();
	assert_int_equal(bed_transmit(), 0);
	bed_wc(IBV_WC_LOC_PROT_ERR);
	bed_no_wc();
	assert_int_equal(region_add(&bed->nic, &bed->mr), 0);
}

static void memory_of_another_domain_or_out_of_range_is_not_sent(void **state) {
	static const struct {
		int64_t offset;
		uint32_t length;
		bool other_domain;
	} cases[] = {
		{0, 8, true},		{-1, 8, false},	       {BED_MEMORY - 7, 8, false},
		{BED_MEMORY, 1, false}, {INT64_MIN, 8, false},
	};
	struct soft_pd other = {0};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct ibv_send_wr wr = bed_wr(IBV_WR_SEND, 0, 8);
		struct ibv_sge sge = *wr.sg_list;

		bed_start(0, MTU);
		bed->qp.verbs.pd = cases[n].other_domain ? &other.verbs : &bed->pd.verbs;
		sge.addr += (uint64_t)cases[n].offset;
		sge.length = cases[n].length;
		wr.sg_list = &sge;
		assert_int_equal(requester_post(&bed->qp, &wr), 0);
		assert_int_equal(bed_transmit(), 0);
		bed_wc(IBV_WC_LOC_PROT_ERR);
		assert_int_equal(bed->qp.verbs.state, IBV_QPS_ERR);
	}
}

static void sending_needs_no_right_to_write(void **state) {
	(void)state;
	bed->mr.access = 0;
	bed_post(IBV_WR_SEND, 0, 8);
	assert_int_equal(bed_transmit(), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_open, bed_close)

UNIT_GROUP(soft_requester_send) {
	const struct CMUnitTest tests[] = {
		TEST(a_message_is_cut_at_the_mtu),
		TEST(pieces_are_put_together_wherever_they_are_cut),
		TEST(atomics_carry_their_operands),
		TEST(an_acknowledgement_is_asked_for_every_16_packets_and_at_the_end),
		TEST(the_packet_that_fills_the_window_asks_for_an_acknowledgement),
		TEST(the_window_is_what_the_wire_can_hold_and_at_least_two),
		TEST(the_window_grows_by_one_per_window_up_to_what_the_wire_can_hold),
		TEST(the_window_shrinks_once_for_each_window_with_losses),
		TEST(a_read_is_asked_for_in_pieces),
		TEST(reads_keep_within_what_the_wire_can_hold),
		TEST(no_more_reads_and_atomics_are_under_way_than_agreed),
		TEST(a_fence_waits_for_reads_and_atomics_but_not_for_writes),
		TEST(a_fence_holds_when_it_is_sent_again),
		TEST(a_full_wire_and_a_spent_budget_leave_the_rest_for_later),
		TEST(a_full_wire_does_not_count_a_read_as_under_way),
		TEST(a_drained_queue_sends_only_what_is_begun),
		TEST(a_drained_queue_is_not_idle_between_the_pieces_of_a_read),
		TEST(that_it_has_drained_is_told_once_and_only_if_asked_for),
		TEST(going_on_or_failing_before_it_has_drained_tells_nothing),
		TEST(nothing_is_sent_in_other_states),
		TEST(memory_that_is_not_registered_fails_when_its_turn_has_come),
		TEST(a_region_that_goes_away_under_way_fails_its_request_only_if_sent_again),
		TEST(memory_of_another_domain_or_out_of_range_is_not_sent),
		TEST(sending_needs_no_right_to_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
