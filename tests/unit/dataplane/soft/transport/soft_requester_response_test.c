// SPDX-License-Identifier: BSD-3-Clause
// Tests of handling answers: completions in order, data in place, and no effect of answers that do
// not fit.
#include "dataplane/soft/transport/requester_bed.h"

#define MTU BED_MTU
#define COUNTER(name) bed->nic.counters.name

static uint8_t read_opcode(uint32_t n, uint32_t packets) {
	if (packets == 1)
		return PACKET_READ_ONLY;
	return n == 0		  ? PACKET_READ_FIRST
	       : n + 1 == packets ? PACKET_READ_LAST
				  : PACKET_READ_MIDDLE;
}

static void an_acknowledgement_is_of_all_up_to_it(void **state) {
	static const struct {
		uint32_t psn; // offset from the first PSN
		uint32_t done;
	} cases[] = {{0, 1}, {1, 1}, {2, 1}, {3, 2}, {4, 3}};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		uint32_t psn = PSN_MASK - 1;

		bed_start(psn, MTU);
		bed->wc_seen = bed->wc_count;
		bed_post(IBV_WR_RDMA_WRITE, 0, 8);
		bed_post(IBV_WR_SEND, 0, 3 * MTU);
		bed_post(IBV_WR_RDMA_WRITE, 0, 0);
		bed_transmit();
		bed_ack(psn + cases[n].psn);
		bed_wcs(cases[n].done, IBV_WC_SUCCESS);
		bed_no_wc();
		assert_int_equal(
			requester_next_timer_ns(&bed->qp) == NIC_NEVER, cases[n].done == 3
		);
		assert_int_equal(requester_is_idle(&bed->qp), cases[n].done == 3);
	}
}

static void any_five_bits_acknowledge(void **state) {
	(void)state;
	for (uint8_t credits = 0; credits < 0x20; credits++) {
		bed_post(IBV_WR_SEND, 0, 8);
		bed_transmit();
		bed_syndrome(1000u + credits, credits);
		bed_wc(IBV_WC_SUCCESS);
	}
}

static void answers_to_nothing_under_way_are_counted_and_dropped(void **state) {
	static const int32_t away[] = {-1, -2, -100, 3, 4, 63, 1 << 22, -(1 << 23), (1 << 23) - 1};
	static const uint8_t syndromes[] = {0x1f, 0x00, 0x20, 0x2c, 0x60, 0x61, 0x62, 0x63};
	uint64_t ghosts = 0;

	(void)state;
	bed_start(PSN_MASK, MTU);
	bed_post(IBV_WR_SEND, 0, 8);
	bed_transmit();
	bed_ack(PSN_MASK);
	bed_wc(IBV_WC_SUCCESS);
	bed_post(IBV_WR_SEND, 0, 3 * MTU);
	bed_post(IBV_WR_SEND, 0, 8 * MTU);
	assert_true(requester_transmit(&bed->qp, 3));
	for (size_t n = 0; n < COUNT_OF(away); n++) {
		uint32_t psn = (uint32_t)away[n] & PSN_MASK;

		for (size_t i = 0; i < COUNT_OF(syndromes); i++)
			bed_syndrome(psn, syndromes[i]);
		bed_read_answer(PACKET_READ_ONLY, psn, 1, 8);
		bed_atomic_answer(psn, 1);
		ghosts += COUNT_OF(syndromes) + 2;
		assert_int_equal(COUNTER(drop_ghost), ghosts);
	}
	bed_no_wc();
	assert_int_equal(bed->errors, 0);
	bed_ack(2);
	bed_wc(IBV_WC_SUCCESS);
}

static void an_acknowledgement_that_comes_twice_counts_once(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 5; n++)
		bed_post(IBV_WR_SEND, 0, 8);
	bed_transmit();
	for (uint32_t n = 0; n < 5; n++) {
		bed_ack(1000 + n);
		bed_wc(IBV_WC_SUCCESS);
		bed_ack(1000 + n);
		bed_ack(1000);
		bed_no_wc();
	}
	assert_int_equal(COUNTER(drop_ghost), 10);
	assert_int_equal(bed_transmit(), 0);
}

static void a_read_is_placed_packet_by_packet(void **state) {
	static const uint32_t lengths[] = {1, MTU - 1, MTU, MTU + 1, 7 * MTU + 9, 16 * MTU};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(lengths); n++) {
		uint32_t packets = (lengths[n] + MTU - 1) / MTU;

		bed_start(PSN_MASK - 2, MTU);
		memset(bed->memory, 0, BED_MEMORY);
		bed_post(IBV_WR_RDMA_READ, 64, lengths[n]);
		bed_transmit();
		for (uint32_t i = 0; i < packets; i++) {
			uint32_t size = i + 1 == packets ? lengths[n] - i * MTU : MTU;

			bed_no_wc();
			bed_read_answer(
				read_opcode(i, packets), PSN_MASK - 2 + i, (uint8_t)(i + 1), size
			);
			assert_int_equal(bed->memory[64 + i * MTU], i + 1);
			assert_int_equal(bed->memory[64 + i * MTU + size - 1], i + 1);
			assert_int_equal(bed->memory[64 + i * MTU + size], 0);
		}
		assert_int_equal(bed->memory[63], 0);
		assert_int_equal(bed_wc(IBV_WC_SUCCESS)->byte_len, lengths[n]);
		bed_no_wc();
		assert_int_equal(requester_next_timer_ns(&bed->qp), NIC_NEVER);
	}
}

static void a_read_of_nothing_is_answered_by_nothing(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_READ, 0, 0);
	bed_transmit();
	assert_int_equal(bed_sent_as(PACKET_READ_REQUEST, 1000)->packet.length, 0);
	bed_read_answer(PACKET_READ_ONLY, 1000, 0, 0);
	assert_int_equal(bed_wc(IBV_WC_SUCCESS)->byte_len, 0);
}

static void a_read_is_scattered_over_its_pieces(void **state) {
	static const uint32_t lengths[] = {MTU + 1, 0, 3, 2 * MTU};
	struct ibv_send_wr wr = bed_wr(IBV_WR_RDMA_READ, 0, 0);
	struct ibv_sge sges[4];
	uint32_t left = 0, packets;

	(void)state;
	memset(bed->memory, 0, BED_MEMORY);
	for (uint32_t n = 0; n < 4; n++) {
		sges[n] = (struct ibv_sge){
			.addr = (uintptr_t)bed->memory + 1 + n * 4 * MTU,
			.length = lengths[n],
			.lkey = bed->mr.verbs.lkey,
		};
		left += lengths[n];
	}
	packets = (left + MTU - 1) / MTU;
	wr.sg_list = sges;
	wr.num_sge = 4;
	assert_int_equal(requester_post(&bed->qp, &wr), 0);
	bed_transmit();
	for (uint32_t n = 0; n < packets; n++, left -= MTU)
		bed_read_answer(read_opcode(n, packets), 1000 + n, 7, left < MTU ? left : MTU);
	bed_wc(IBV_WC_SUCCESS);
	for (uint32_t n = 0; n < 4; n++) {
		const uint8_t *piece = bed->memory + 1 + n * 4 * MTU;

		for (uint32_t i = 0; i < lengths[n]; i++)
			assert_int_equal(piece[i], 7);
		assert_int_equal(piece[-1], 0);
		assert_int_equal(piece[lengths[n]], 0);
	}
}

static void an_atomic_gives_back_what_was_there(void **state) {
	struct ibv_send_wr wr = bed_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
	struct ibv_sge sges[2] = {*wr.sg_list, *wr.sg_list};
	uint64_t value;

	(void)state;
	bed_post(IBV_WR_ATOMIC_CMP_AND_SWP, 16, 8);
	sges[0].length = 3;
	sges[1].addr += 32;
	sges[1].length = 5;
	wr.sg_list = sges;
	wr.num_sge = 2;
	assert_int_equal(requester_post(&bed->qp, &wr), 0);
	bed_transmit();
	bed_atomic_answer(1000, UINT64_C(0x0123456789abcdef));
	bed_atomic_answer(1001, UINT64_C(0x0123456789abcdef));
	bed_wcs(2, IBV_WC_SUCCESS);
	memcpy(&value, bed->memory + 16, sizeof(value));
	assert_int_equal(value, UINT64_C(0x0123456789abcdef));
	memcpy(&value, bed->memory, 3);
	memcpy((uint8_t *)&value + 3, bed->memory + 32, 5);
	assert_int_equal(value, UINT64_C(0x0123456789abcdef));
}

static void an_answer_acknowledges_the_writes_before_it(void **state) {
	(void)state;
	bed_post(IBV_WR_RDMA_WRITE, 0, 2 * MTU);
	bed_post(IBV_WR_SEND, 0, 8);
	bed_post(IBV_WR_RDMA_READ, 0, 8);
	bed_post(IBV_WR_RDMA_WRITE, 0, 8);
	bed_post(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
	bed_transmit();
	bed_read_answer(PACKET_READ_ONLY, 1003, 1, 8);
	bed_wcs(3, IBV_WC_SUCCESS);
	bed_no_wc();
	bed_atomic_answer(1005, 1);
	bed_wcs(2, IBV_WC_SUCCESS);
	bed_no_wc();
}

static void an_answer_past_a_missing_one_makes_it_ask_again(void **state) {
	static const enum ibv_wr_opcode missing[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	static const uint8_t seen[] = {PACKET_ACK, PACKET_READ_ONLY, PACKET_ATOMIC_ACK};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(missing) * COUNT_OF(seen); n++) {
		uint8_t opcode = seen[n % COUNT_OF(seen)];
		enum ibv_wr_opcode lost = missing[n / COUNT_OF(seen)];

		bed_start(1000, MTU);
		bed_post(IBV_WR_RDMA_WRITE, 0, 8);
		bed_post(lost, 0, 8);
		bed_post(
			opcode == PACKET_READ_ONLY    ? IBV_WR_RDMA_READ
			: opcode == PACKET_ATOMIC_ACK ? IBV_WR_ATOMIC_CMP_AND_SWP
						      : IBV_WR_SEND,
			0, 8
		);
		assert_int_equal(bed_transmit(), 3);
		if (opcode == PACKET_ACK)
			bed_ack(1002);
		else if (opcode == PACKET_READ_ONLY)
			bed_read_answer(opcode, 1002, 1, 8);
		else
			bed_atomic_answer(1002, 1);
		bed_wc(IBV_WC_SUCCESS);
		bed_no_wc();
		assert_int_equal(bed_transmit(), 2);
		bed->seen = bed->sent_count - 2;
		bed_sent_as(
			lost == IBV_WR_RDMA_READ ? PACKET_READ_REQUEST : PACKET_FETCH_ADD, 1001
		);
	}
}

struct lie {
	uint8_t opcode;
	uint32_t psn, bytes; // `psn` is the offset from the first PSN
	uint8_t syndrome;
};

// Check that the oldest request ends with BAD_RESP and that no byte was written.
static void expect_refused(const struct lie *lie) {
	uint8_t payload[PACKET_PAYLOAD_MAX];
	struct packet packet = {
		.opcode = lie->opcode,
		.psn = 1000 + lie->psn,
		.payload = payload,
		.payload_bytes = lie->bytes,
		.syndrome = lie->syndrome,
	};

	memset(payload, 0xee, sizeof(payload));
	bed_answer(&packet);
	assert_int_equal(COUNTER(drop_answer), 1);
	assert_int_equal(bed->qp.verbs.state, IBV_QPS_ERR);
	bed_wc(IBV_WC_BAD_RESP_ERR);
	while (bed->wc_seen < bed->wc_count)
		bed_wc(IBV_WC_WR_FLUSH_ERR);
	for (uint32_t n = 0; n < BED_MEMORY; n++)
		assert_int_not_equal(bed->memory[n], 0xee);
}

static void anew(void **state) {
	bed_close(state);
	bed_open(state);
	memset(bed->memory, 0, BED_MEMORY);
}

static void an_answer_of_another_size_or_place_ends_the_queue_pair(void **state) {
	static const struct lie lies[] = {
		{PACKET_READ_FIRST, 0, MTU - 1, 0x1f}, {PACKET_READ_FIRST, 0, MTU + 1, 0x1f},
		{PACKET_READ_FIRST, 0, 0, 0x1f},       {PACKET_READ_FIRST, 0, 4096, 0x1f},
		{PACKET_READ_MIDDLE, 0, MTU, 0},       {PACKET_READ_LAST, 0, MTU, 0x1f},
		{PACKET_READ_ONLY, 0, MTU, 0x1f},      {PACKET_READ_FIRST, 0, MTU, 0x60},
		{PACKET_READ_FIRST, 0, MTU, 0x3f},     {PACKET_READ_FIRST, 0, MTU, 0x9f},
		{PACKET_ATOMIC_ACK, 0, 0, 0x1f},
	};

	for (size_t n = 0; n < COUNT_OF(lies); n++) {
		anew(state);
		bed_post(IBV_WR_RDMA_READ, 0, 20 * MTU + 1);
		bed_transmit();
		expect_refused(&lies[n]);
	}
}

static void an_answer_that_ends_too_early_or_too_late_ends_the_queue_pair(void **state) {
	static const struct lie lies[] = {
		{PACKET_READ_FIRST, 1, MTU, 0x1f}, // no request starts at this PSN
		{PACKET_READ_ONLY, 1, MTU, 0x1f},   {PACKET_READ_LAST, 1, MTU, 0x1f},
		{PACKET_READ_MIDDLE, 1, 1, 0},	    {PACKET_READ_MIDDLE, 15, MTU, 0},
		{PACKET_READ_FIRST, 15, MTU, 0x1f}, {PACKET_READ_LAST, 15, 1, 0x1f},
		{PACKET_READ_MIDDLE, 16, MTU, 0},   {PACKET_READ_LAST, 16, MTU, 0x1f},
		{PACKET_READ_LAST, 20, MTU, 0x1f},  {PACKET_READ_LAST, 20, 2, 0x1f},
		{PACKET_READ_LAST, 20, 0, 0x1f},    {PACKET_READ_MIDDLE, 20, 1, 0},
	};

	for (size_t n = 0; n < COUNT_OF(lies); n++) {
		anew(state);
		bed_post(IBV_WR_RDMA_READ, 0, 20 * MTU + 1);
		bed_transmit();
		for (uint32_t psn = 0; psn < lies[n].psn; psn++)
			bed_read_answer(read_opcode(psn & 15, 16), 1000 + psn, 1, MTU);
		bed_no_wc();
		expect_refused(&lies[n]);
	}
}

static void an_answer_of_another_kind_than_the_request_ends_the_queue_pair(void **state) {
	static const struct {
		enum ibv_wr_opcode opcode;
		struct lie lie;
	} cases[] = {
		{IBV_WR_RDMA_WRITE, {PACKET_READ_ONLY, 0, 8, 0x1f}},
		{IBV_WR_SEND, {PACKET_READ_FIRST, 0, MTU, 0x1f}},
		{IBV_WR_SEND, {PACKET_ATOMIC_ACK, 0, 0, 0x1f}},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, {PACKET_READ_ONLY, 0, 8, 0x1f}},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, {PACKET_ATOMIC_ACK, 0, 0, 0x62}},
		{IBV_WR_RDMA_READ, {PACKET_ATOMIC_ACK, 0, 0, 0x1f}},
		{IBV_WR_RDMA_READ, {PACKET_READ_ONLY, 0, 7, 0x1f}},
		{IBV_WR_RDMA_READ, {PACKET_READ_ONLY, 0, 9, 0x1f}},
	};

	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		anew(state);
		bed_post(cases[n].opcode, 0, 8);
		bed_post(IBV_WR_SEND, 0, 8);
		bed_transmit();
		expect_refused(&cases[n].lie);
	}
}

static void syndromes_that_mean_nothing_are_counted_and_dropped(void **state) {
	uint64_t dropped = 0;

	(void)state;
	bed_post(IBV_WR_SEND, 0, 8);
	bed_transmit();
	for (uint32_t syndrome = 0x40; syndrome < 0x100; syndrome++) {
		if (syndrome >= 0x60 && syndrome <= 0x63)
			continue;
		bed_syndrome(1000, (uint8_t)syndrome);
		assert_int_equal(COUNTER(drop_answer), ++dropped);
	}
	bed_no_wc();
	bed_ack(1000);
	bed_wc(IBV_WC_SUCCESS);
}

static void requests_are_no_answers(void **state) {
	uint64_t dropped = 0;

	(void)state;
	bed_post(IBV_WR_SEND, 0, 8);
	bed_transmit();
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		struct packet packet = {.opcode = (uint8_t)opcode, .psn = 1000};
		uint8_t kind = packet_opcode_info(packet.opcode)->kind;

		if (kind == PACKET_KIND_ACK || kind == PACKET_KIND_READ_RESPONSE ||
		    kind == PACKET_KIND_ATOMIC_ACK)
			continue;
		bed_answer(&packet);
		assert_int_equal(COUNTER(drop_opcode), ++dropped);
	}
	bed_no_wc();
}

static void answers_are_placed_only_where_the_program_may_have_them(void **state) {
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};

	for (size_t n = 0; n < 2 * COUNT_OF(opcodes); n++) {
		bool gone = n % 2 == 1;

		anew(state);
		bed_post(IBV_WR_SEND, 0, 8);
		bed_post(opcodes[n / 2], 0, 8);
		bed_post(IBV_WR_SEND, 0, 8);
		bed_transmit();
		bed->mr.access = 0;
		if (gone)
			region_remove(&bed->nic, &bed->mr);
		if (opcodes[n / 2] == IBV_WR_RDMA_READ)
			bed_read_answer(PACKET_READ_ONLY, 1001, 0xee, 8);
		else
			bed_atomic_answer(1001, UINT64_MAX);
		bed_wc(IBV_WC_SUCCESS);
		bed_wc(IBV_WC_LOC_PROT_ERR);
		bed_wc(IBV_WC_WR_FLUSH_ERR);
		bed_no_wc();
		assert_int_equal(bed->errors, 1);
		assert_int_equal(bed->memory[0], 0);
		if (gone)
			assert_int_equal(region_add(&bed->nic, &bed->mr), 0);
	}
}

static void nothing_is_answered_in_states_without_requests(void **state) {
	static const enum ibv_qp_state states[] = {
		IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_ERR};

	(void)state;
	requester_reset(&bed->qp);
	for (size_t n = 0; n < COUNT_OF(states); n++) {
		bed_state(states[n]);
		bed_ack(0);
		bed_syndrome(0, PACKET_SYNDROME_NAK_SEQUENCE);
		bed_read_answer(PACKET_READ_ONLY, 0, 1, 8);
	}
	assert_int_equal(COUNTER(drop_ghost), 3 * COUNT_OF(states));
}

static void flushed_requests_complete_in_order_signalled_or_not(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 10; n++)
		bed_post_flags(
			n % 3 == 0 ? IBV_WR_RDMA_READ : IBV_WR_SEND, 0, 8,
			n % 2 == 0 ? IBV_SEND_SIGNALED : 0
		);
	bed_transmit();
	bed_read_answer(PACKET_READ_ONLY, 1000, 1, 8);
	qp_enter_error(&bed->qp);
	assert_int_equal(bed_wc(IBV_WC_SUCCESS)->wr_id, 1);
	for (uint32_t n = 2; n <= 10; n++)
		assert_int_equal(bed_wc(IBV_WC_WR_FLUSH_ERR)->wr_id, n);
	bed_no_wc();
	bed_ack(1005);
	bed_no_wc();
	assert_true(requester_is_idle(&bed->qp));
	assert_int_equal(bed_transmit(), 0);
}

static void after_a_reset_it_begins_anew(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 10; n++)
		bed_post(IBV_WR_RDMA_READ, 0, 40 * MTU);
	bed_transmit();
	bed_start(7, MTU);
	bed_no_wc();
	assert_int_equal(requester_next_timer_ns(&bed->qp), NIC_NEVER);
	bed->seen = bed->sent_count;
	bed_post(IBV_WR_SEND, 0, 8);
	assert_int_equal(bed_transmit(), 1);
	bed_sent_as(PACKET_SEND_ONLY, 7);
	bed_ack(7);
	assert_int_equal(bed_wc(IBV_WC_SUCCESS)->wr_id, 11);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_open, bed_close)

UNIT_GROUP(soft_requester_response) {
	const struct CMUnitTest tests[] = {
		TEST(an_acknowledgement_is_of_all_up_to_it),
		TEST(any_five_bits_acknowledge),
		TEST(answers_to_nothing_under_way_are_counted_and_dropped),
		TEST(an_acknowledgement_that_comes_twice_counts_once),
		TEST(a_read_is_placed_packet_by_packet),
		TEST(a_read_of_nothing_is_answered_by_nothing),
		TEST(a_read_is_scattered_over_its_pieces),
		TEST(an_atomic_gives_back_what_was_there),
		TEST(an_answer_acknowledges_the_writes_before_it),
		TEST(an_answer_past_a_missing_one_makes_it_ask_again),
		TEST(an_answer_of_another_size_or_place_ends_the_queue_pair),
		TEST(an_answer_that_ends_too_early_or_too_late_ends_the_queue_pair),
		TEST(an_answer_of_another_kind_than_the_request_ends_the_queue_pair),
		TEST(syndromes_that_mean_nothing_are_counted_and_dropped),
		TEST(requests_are_no_answers),
		TEST(answers_are_placed_only_where_the_program_may_have_them),
		TEST(nothing_is_answered_in_states_without_requests),
		TEST(flushed_requests_complete_in_order_signalled_or_not),
		TEST(after_a_reset_it_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
