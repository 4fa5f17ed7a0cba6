// SPDX-License-Identifier: BSD-3-Clause
// Tests of reads and atomics: responses, the number in flight, repeated requests, and the state
// kept for them.
#include "dataplane/soft/transport/responder_bed.h"

#include <support/cases.h>
#include <support/cmocka.h>

#define ACK PACKET_SYNDROME_ACK
#define ACCESS PACKET_SYNDROME_NAK_ACCESS
#define INVALID PACKET_SYNDROME_NAK_INVALID
#define ANSWER 64 // all bytes from this offset on are distinct

static struct responder *const responder = &bed.qps[0].responder;

static void fill(void) {
	for (uint32_t n = 0; n < BED_REGION; n++)
		bed.memory[n] = (uint8_t)(n + n / 256);
}

static struct packet read_of(uint32_t psn, uint32_t offset, uint32_t bytes) {
	struct packet packet = bed_packet(PACKET_READ_REQUEST, psn, 0);

	packet.address = bed_address(offset);
	packet.length = bytes;
	return packet;
}

static void request_read(uint32_t psn, uint32_t offset, uint32_t bytes) {
	struct packet packet = read_of(psn, offset, bytes);

	bed_request(&packet);
}

static void request_add(uint32_t psn, uint64_t number) {
	struct packet packet = bed_packet(PACKET_FETCH_ADD, psn, 0);

	packet.swap_add = number;
	bed_request(&packet);
}

// Check the response to a read of these bytes, with this first PSN.
static void expect_response(uint32_t psn, uint32_t offset, uint32_t bytes) {
	uint32_t done = 0;

	do {
		const struct packet *packet = &bed_next_sent()->packet;
		uint32_t part = bytes - done < BED_MTU ? bytes - done : BED_MTU;
		bool last = done + part == bytes;
		uint8_t opcode = last ? PACKET_READ_LAST : PACKET_READ_MIDDLE;

		if (done == 0)
			opcode = last ? PACKET_READ_ONLY : PACKET_READ_FIRST;
		assert_int_equal(packet->opcode, opcode);
		assert_int_equal(packet->psn, psn_add(psn, done / BED_MTU));
		assert_int_equal(packet->payload_bytes, part);
		assert_memory_equal(packet->payload, bed.memory + offset + done, part);
		done += part;
	} while (done < bytes);
}

static void a_read_is_answered_by_as_many_packets_as_it_needs(void **state) {
	static const uint32_t sizes[] = {0,	      1,	   BED_MTU - 1,	    BED_MTU,
					 BED_MTU + 1, 2 * BED_MTU, 3 * BED_MTU + 7, BED_REGION};
	uint32_t psn = BED_PSN;

	(void)state;
	fill();
	for (uint32_t n = 0; n < COUNT_OF(sizes); n++) {
		uint32_t packets = sizes[n] == 0 ? 1 : (sizes[n] + BED_MTU - 1) / BED_MTU;

		request_read(psn, 0, sizes[n]);
		bed_transmit();
		expect_response(psn, 0, sizes[n]);
		assert_int_equal(bed.sent[bed.sent_tail - 1].packet.msn, n + 1);
		psn = psn_add(psn, packets);
		assert_int_equal(responder->expected_psn, psn);
	}
	bed_expect_quiet();
}

static void a_long_answer_leaves_in_parts_of_the_budget(void **state) {
	(void)state;
	fill();
	request_read(BED_PSN, 0, 10 * BED_MTU);
	for (uint32_t n = 0; n < 3; n++) {
		assert_true(responder_transmit(&bed.qps[0], 3, false));
		assert_int_equal(bed.sent_tail, 3 * n + 3);
	}
	assert_false(responder_transmit(&bed.qps[0], 3, false));
	expect_response(BED_PSN, 0, 10 * BED_MTU);
	bed_expect_quiet();
}

static void the_wire_may_be_full_between_any_two_packets(void **state) {
	(void)state;
	fill();
	bed.wire_room = 0;
	request_read(BED_PSN, 0, 5 * BED_MTU);
	for (uint32_t n = 0; n < 5; n++) {
		assert_true(responder_transmit(&bed.qps[0], 9, false));
		bed.wire_room = 1;
	}
	assert_false(responder_transmit(&bed.qps[0], 9, false));
	expect_response(BED_PSN, 0, 5 * BED_MTU);
}

static void what_comes_after_a_read_is_acknowledged_after_it(void **state) {
	struct packet write = bed_packet(PACKET_WRITE_ONLY, BED_PSN + 4, 8);

	(void)state;
	request_read(BED_PSN, BED_MTU, 4 * BED_MTU);
	bed_request(&write);
	assert_true(responder_transmit(&bed.qps[0], 2, false));
	bed_transmit();
	expect_response(BED_PSN, BED_MTU, 4 * BED_MTU);
	bed_expect(PACKET_ACK, BED_PSN + 4, ACK);
	bed_expect_quiet();
}

static void a_gap_is_told_of_after_the_reads_before_it(void **state) {
	struct packet early = bed_packet(PACKET_WRITE_ONLY, BED_PSN + 3, 8);

	(void)state;
	request_read(BED_PSN, 0, 2 * BED_MTU);
	bed_request(&early);
	bed_transmit();
	expect_response(BED_PSN, 0, 2 * BED_MTU);
	bed_expect(PACKET_ACK, BED_PSN + 2, PACKET_SYNDROME_NAK_SEQUENCE);
}

// A read response also acknowledges the writes before it.
static void a_read_makes_an_acknowledgement_before_it_needless(void **state) {
	struct packet write = bed_packet(PACKET_WRITE_ONLY, BED_PSN, 8);

	(void)state;
	bed_request(&write);
	request_read(BED_PSN + 1, 0, 8);
	bed_transmit();
	bed_expect(PACKET_READ_ONLY, BED_PSN + 1, ACK);
	bed_expect_quiet();
}

static void the_data_are_taken_when_they_leave(void **state) {
	(void)state;
	request_read(BED_PSN, 0, 2 * BED_MTU);
	assert_true(responder_transmit(&bed.qps[0], 1, false));
	memset(bed.memory, 0x77, BED_REGION);
	bed_transmit();
	assert_int_equal(bed.sent[0].payload[0], 0x11);
	assert_int_equal(bed.sent[1].payload[0], 0x77);
}

static void as_many_may_be_under_way_as_was_agreed(void **state) {
	static const uint8_t depths[] = {0, 1, 2, 15, 16, 17, 255};

	bed_end(state);
	for (uint32_t n = 0; n < COUNT_OF(depths); n++) {
		uint32_t depth = depths[n] < RESPONDER_READS_MAX ? depths[n] : RESPONDER_READS_MAX;

		bed_make(state);
		bed.qps[0].attr.max_dest_rd_atomic = depths[n];
		for (uint32_t m = 0; m < depth; m++)
			m % 2 == 0 ? request_read(BED_PSN + m, 0, 8) : request_add(BED_PSN + m, 1);
		assert_int_equal(responder->nak.syndrome, 0);
		request_read(BED_PSN + depth, 0, 8);
		bed_transmit();
		bed.sent_head += depth;
		bed_expect(PACKET_ACK, BED_PSN + depth, INVALID);
		bed_expect_over(IBV_EVENT_QP_REQ_ERR);
		bed_end(state);
	}
	bed_make(state);
}

static void what_is_answered_is_not_under_way(void **state) {
	(void)state;
	bed.qps[0].attr.max_dest_rd_atomic = 1;
	for (uint32_t n = 0; n < 5 * RESPONDER_READS_MAX; n++) {
		request_read(BED_PSN + n, 0, 8);
		bed_transmit();
		bed_expect(PACKET_READ_ONLY, BED_PSN + n, ACK);
	}
	bed_expect_quiet();
}

// Duplicates of all remembered reads wait for the wire while new reads arrive.
static void what_is_answered_again_is_not_under_way(void **state) {
	(void)state;
	for (uint32_t n = 0; n < RESPONDER_READS_MAX; n++)
		request_read(BED_PSN + n, 0, 8);
	bed_transmit();
	bed.sent_head = bed.sent_tail;
	for (uint32_t n = 0; n < RESPONDER_READS_MAX; n++)
		request_read(BED_PSN + n, 0, 8);
	for (uint32_t n = 0; n < RESPONDER_READS_MAX; n++)
		request_read(BED_PSN + RESPONDER_READS_MAX + n, 0, 8);
	bed_transmit();
	for (uint32_t n = 0; n < RESPONDER_READS_MAX; n++)
		bed_expect(PACKET_READ_ONLY, BED_PSN + RESPONDER_READS_MAX + n, ACK);
	bed_expect_quiet();
}

static void a_read_that_comes_again_is_executed_again(void **state) {
	(void)state;
	fill();
	request_read(BED_PSN, 0, 3 * BED_MTU);
	bed_transmit();
	bed.sent_head = bed.sent_tail;
	bed.memory[0] ^= 0xff;
	request_read(BED_PSN, 0, 3 * BED_MTU);
	bed_transmit();
	expect_response(BED_PSN, 0, 3 * BED_MTU);
	assert_int_equal(responder->expected_psn, psn_add(BED_PSN, 3));
	assert_int_equal(responder->msn, 1);
	bed_expect_quiet();
}

struct partial {
	uint32_t psn, offset, bytes; // part of a read of 5 packets and 9 bytes at ANSWER
	bool answered;
};

static void a_part_of_a_read_may_be_asked_for_again_where_it_was(void **state) {
	static const uint32_t whole = 5 * BED_MTU + 9;
	static const struct partial cases[] = {
		{0, 0, 5 * BED_MTU + 9, true},	 {1, BED_MTU, 4 * BED_MTU + 9, true},
		{1, BED_MTU, BED_MTU, true},	 {2, 2 * BED_MTU, 10, true},
		{5, 5 * BED_MTU, 9, true},	 {5, 5 * BED_MTU, 1, true},
		{0, 0, 5 * BED_MTU + 10, false}, {1, BED_MTU, 4 * BED_MTU + 10, false},
		{5, 5 * BED_MTU, 10, false},	 {1, 0, BED_MTU, false},
		{0, BED_MTU, BED_MTU, false},	 {1, BED_MTU - 1, BED_MTU, false},
		{1, BED_MTU, 0, false},		 {1, BED_MTU, UINT32_MAX, false},
		{0, UINT32_MAX, 1, false},	 {PSN_MASK, 0, BED_MTU, false}, // too early
	};

	(void)state;
	fill();
	request_read(BED_PSN, ANSWER, whole);
	bed_transmit();
	for (uint32_t n = 0; n < COUNT_OF(cases); n++) {
		uint64_t dropped = bed.nic.counters.drop_old_read;

		bed.sent_head = bed.sent_tail;
		request_read(BED_PSN + cases[n].psn, ANSWER + cases[n].offset, cases[n].bytes);
		bed_transmit();
		if (cases[n].answered)
			expect_response(
				psn_add(BED_PSN, cases[n].psn), ANSWER + cases[n].offset,
				cases[n].bytes
			);
		assert_int_equal(
			bed.nic.counters.drop_old_read - dropped, cases[n].answered ? 0 : 1
		);
		bed_expect_quiet();
	}
}

static void a_read_again_needs_the_same_key(void **state) {
	struct packet packet;

	(void)state;
	request_read(BED_PSN, 0, 8);
	bed_transmit();
	bed.sent_head = bed.sent_tail;
	packet = read_of(BED_PSN, 0, 8);
	packet.key ^= 1;
	bed_exchange(&packet);
	assert_int_equal(bed.nic.counters.drop_old_read, 1);
	bed_expect_quiet();
}

// The requester asks again in the middle of the response. Only the missed packets are sent again.
static void an_answer_on_its_way_goes_back_only_if_it_must(void **state) {
	static const struct {
		uint32_t out, again; // packets sent, and first packet asked for again
		uint32_t from;	     // packet where the response continues
	} cases[] = {{4, 0, 0}, {4, 2, 2}, {4, 4, 4}, {4, 6, 4}, {0, 3, 0}};

	bed_end(state);
	for (uint32_t n = 0; n < COUNT_OF(cases); n++) {
		uint32_t again = cases[n].again, left;

		bed_make(state);
		request_read(BED_PSN, 0, 8 * BED_MTU);
		if (cases[n].out > 0)
			responder_transmit(&bed.qps[0], cases[n].out, false);
		bed.sent_head = bed.sent_tail;
		request_read(BED_PSN + again, again * BED_MTU, (8 - again) * BED_MTU);
		bed_transmit();
		left = 8 - cases[n].from;
		assert_int_equal(bed.sent_tail - bed.sent_head, left);
		for (uint32_t m = 0; m < left; m++)
			assert_int_equal(
				bed_next_sent()->packet.psn, psn_add(BED_PSN, cases[n].from + m)
			);
		bed_end(state);
	}
	bed_make(state);
}

static void answers_again_leave_in_the_order_of_their_requests(void **state) {
	(void)state;
	request_read(BED_PSN, 0, 2 * BED_MTU);
	request_add(BED_PSN + 2, 1);
	bed_transmit();
	bed.sent_head = bed.sent_tail;
	request_read(BED_PSN + 3, 0, 2 * BED_MTU);
	assert_true(responder_transmit(&bed.qps[0], 1, false));
	request_read(BED_PSN, 0, 2 * BED_MTU);
	request_add(BED_PSN + 2, 1);
	request_read(BED_PSN + 3, 0, 2 * BED_MTU);
	bed_transmit();
	bed_expect(PACKET_READ_FIRST, BED_PSN + 3, ACK);
	bed_expect(PACKET_READ_FIRST, BED_PSN, ACK);
	bed_expect(PACKET_READ_LAST, BED_PSN + 1, ACK);
	bed_expect(PACKET_ATOMIC_ACK, BED_PSN + 2, ACK);
	bed_expect(PACKET_READ_FIRST, BED_PSN + 3, ACK);
	bed_expect(PACKET_READ_LAST, BED_PSN + 4, ACK);
	bed_expect_quiet();
}

static void only_the_last_sixteen_are_kept(void **state) {
	(void)state;
	for (uint32_t n = 0; n < RESPONDER_READS_MAX + 2; n++) {
		n % 2 == 0 ? request_read(BED_PSN + n, 0, 8) : request_add(BED_PSN + n, 1);
		bed_transmit();
	}
	bed.sent_head = bed.sent_tail;
	for (uint32_t n = 0; n < RESPONDER_READS_MAX + 2; n++) {
		n % 2 == 0 ? request_read(BED_PSN + n, 0, 8) : request_add(BED_PSN + n, 1);
		bed_transmit();
		if (n >= 2)
			assert_int_equal(bed_next_sent()->packet.psn, psn_add(BED_PSN, n));
		bed_expect_quiet();
	}
	assert_int_equal(bed.nic.counters.drop_old_read, 2);
}

static void what_was_no_read_is_not_answered_as_one(void **state) {
	struct packet write = bed_packet(PACKET_WRITE_ONLY, BED_PSN, 8);

	(void)state;
	bed_request(&write);
	request_add(BED_PSN + 1, 1);
	request_read(BED_PSN + 2, 0, 8);
	bed_transmit();
	bed.sent_head = bed.sent_tail;
	request_read(BED_PSN, 0, 8);
	request_read(BED_PSN + 1, 0, 8);
	request_add(BED_PSN + 2, 1);
	bed_transmit();
	assert_int_equal(bed.nic.counters.drop_old_read, 3);
	bed_expect_quiet();
}

static void a_read_whose_region_goes_away_ends_where_it_is(void **state) {
	(void)state;
	request_read(BED_PSN, 0, 4 * BED_MTU);
	request_read(BED_PSN + 4, 0, 8);
	responder_transmit(&bed.qps[0], 2, false);
	region_remove(&bed.nic, &bed.mr);
	bed_transmit();
	bed_expect(PACKET_READ_FIRST, BED_PSN, ACK);
	bed_expect(PACKET_READ_MIDDLE, BED_PSN + 1, ACK);
	bed_expect(PACKET_ACK, BED_PSN + 2, ACCESS);
	bed_expect_over(IBV_EVENT_QP_ACCESS_ERR);
	bed_expect_quiet();
	assert_int_equal(region_add(&bed.nic, &bed.mr), 0);
}

// The duplicate may have been in flight for long, so the program made no mistake.
static void a_late_duplicate_of_a_read_whose_region_is_gone_is_dropped(void **state) {
	(void)state;
	request_read(BED_PSN, 0, 4 * BED_MTU);
	bed_transmit();
	region_remove(&bed.nic, &bed.mr);
	bed.sent_head = bed.sent_tail;
	request_read(BED_PSN, 0, 4 * BED_MTU);
	bed_transmit();
	assert_int_equal(bed.qps[0].verbs.state, IBV_QPS_RTS);
	assert_int_equal(bed.nic.counters.drop_old_read, 1);
	bed_expect_quiet();
	assert_int_equal(region_add(&bed.nic, &bed.mr), 0);
}

// Return a 64-bit word of the memory, in host byte order.
static uint64_t word(uint32_t offset) {
	uint64_t number;

	memcpy(&number, bed.memory + offset, sizeof(number));
	return number;
}

static void an_atomic_finds_what_was_there_and_leaves_what_it_should(void **state) {
	static const struct {
		uint8_t opcode;
		uint64_t there, swap_add, compare, left;
	} cases[] = {
		{PACKET_FETCH_ADD, 5, 3, 99, 8},
		{PACKET_FETCH_ADD, UINT64_MAX, 2, 0, 1},
		{PACKET_COMPARE_SWAP, 5, 3, 5, 3},
		{PACKET_COMPARE_SWAP, 5, 3, 6, 5},
		{PACKET_COMPARE_SWAP, UINT64_C(0x0102030405060708), UINT64_MAX,
		 UINT64_C(0x0102030405060708), UINT64_MAX},
	};

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(cases); n++) {
		struct packet packet = bed_packet(cases[n].opcode, BED_PSN + n, 0);

		memcpy(bed.memory, &cases[n].there, sizeof(cases[n].there));
		packet.swap_add = cases[n].swap_add;
		packet.compare = cases[n].compare;
		bed_exchange(&packet);
		bed_expect(PACKET_ATOMIC_ACK, BED_PSN + n, ACK);
		assert_true(bed.sent[n].packet.original == cases[n].there);
		assert_int_equal(bed.sent[n].packet.msn, n + 1);
		assert_true(word(0) == cases[n].left);
	}
	bed_expect_quiet();
}

static void an_atomic_that_comes_again_is_told_its_first_answer(void **state) {
	(void)state;
	memset(bed.memory, 0, 8);
	for (uint32_t n = 0; n < RESPONDER_READS_MAX; n++)
		request_add(BED_PSN + n, 10);
	bed_transmit();
	bed.sent_head = bed.sent_tail;
	for (uint32_t n = 0; n < RESPONDER_READS_MAX; n++) {
		request_add(BED_PSN + n, 10);
		bed_transmit();
		bed_expect(PACKET_ATOMIC_ACK, BED_PSN + n, ACK);
		assert_int_equal(bed.sent[bed.sent_tail - 1].packet.original, 10 * n);
	}
	assert_int_equal(word(0), 10 * RESPONDER_READS_MAX);
	bed_expect_quiet();
}

static void an_atomic_whose_answer_waits_is_answered_once(void **state) {
	(void)state;
	request_add(BED_PSN, 10);
	request_add(BED_PSN, 10);
	bed_transmit();
	bed_expect(PACKET_ATOMIC_ACK, BED_PSN, ACK);
	bed_expect_quiet();
}

// The iova is aligned, but the memory is not. The processor needs aligned memory.
static void an_atomic_needs_its_memory_aligned_as_well(void **state) {
	struct packet packet = bed_packet(PACKET_FETCH_ADD, BED_PSN, 0);

	(void)state;
	bed.mr.iova = 0x1000 + 4;
	packet.address = 0x1008;
	bed_exchange(&packet);
	bed_expect(PACKET_ACK, BED_PSN, INVALID);
	bed_expect_over(IBV_EVENT_QP_REQ_ERR);
	assert_int_equal(bed.memory[4], 0x11);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, bed_make, bed_end)

UNIT_GROUP(soft_responder_read) {
	const struct CMUnitTest tests[] = {
		CASE(a_read_is_answered_by_as_many_packets_as_it_needs),
		CASE(a_long_answer_leaves_in_parts_of_the_budget),
		CASE(the_wire_may_be_full_between_any_two_packets),
		CASE(what_comes_after_a_read_is_acknowledged_after_it),
		CASE(a_gap_is_told_of_after_the_reads_before_it),
		CASE(a_read_makes_an_acknowledgement_before_it_needless),
		CASE(the_data_are_taken_when_they_leave),
		CASE(as_many_may_be_under_way_as_was_agreed),
		CASE(what_is_answered_is_not_under_way),
		CASE(what_is_answered_again_is_not_under_way),
		CASE(a_read_that_comes_again_is_executed_again),
		CASE(a_part_of_a_read_may_be_asked_for_again_where_it_was),
		CASE(a_read_again_needs_the_same_key),
		CASE(an_answer_on_its_way_goes_back_only_if_it_must),
		CASE(answers_again_leave_in_the_order_of_their_requests),
		CASE(only_the_last_sixteen_are_kept),
		CASE(what_was_no_read_is_not_answered_as_one),
		CASE(a_read_whose_region_goes_away_ends_where_it_is),
		CASE(a_late_duplicate_of_a_read_whose_region_is_gone_is_dropped),
		CASE(an_atomic_finds_what_was_there_and_leaves_what_it_should),
		CASE(an_atomic_that_comes_again_is_told_its_first_answer),
		CASE(an_atomic_whose_answer_waits_is_answered_once),
		CASE(an_atomic_needs_its_memory_aligned_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
