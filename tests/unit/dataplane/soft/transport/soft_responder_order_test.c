// SPDX-License-Identifier: BSD-3-Clause
// Tests of the order of requests: allowed successors of a packet, gaps, duplicates, and
// acknowledgements.
#include "dataplane/soft/transport/responder_bed.h"

#include <support/cases.h>
#include <support/cmocka.h>

#define ACK PACKET_SYNDROME_ACK
#define SEQUENCE PACKET_SYNDROME_NAK_SEQUENCE
#define INVALID PACKET_SYNDROME_NAK_INVALID
#define TAIL_BYTES 10

static struct responder *const responder = &bed.qps[0].responder;

static void exchange(uint8_t opcode, uint32_t psn, uint32_t payload_bytes) {
	struct packet packet = bed_packet(opcode, psn, payload_bytes);

	if (opcode == PACKET_WRITE_FIRST)
		packet.length = 2 * BED_MTU;
	bed_exchange(&packet);
}

// Begin a message that a packet with this opcode could continue or end.
static void begin(uint8_t kind, uint8_t opcode) {
	bool last = (packet_opcode_info(opcode)->flags & PACKET_LAST) != 0;
	struct packet packet = bed_packet(
		kind == PACKET_KIND_SEND ? PACKET_SEND_FIRST : PACKET_WRITE_FIRST, BED_PSN, BED_MTU
	);

	packet.length = last ? BED_MTU + TAIL_BYTES : 3 * BED_MTU;
	packet.ack_request = false;
	bed_exchange(&packet);
	bed_expect_quiet();
}

static uint32_t payload_of(uint8_t opcode) {
	const struct packet_opcode_info *facts = packet_opcode_info(opcode);

	if (facts->kind == PACKET_KIND_READ || facts->kind == PACKET_KIND_ATOMIC)
		return 0;
	return (facts->flags & PACKET_LAST) != 0 ? TAIL_BYTES : BED_MTU;
}

static bool may_follow(uint8_t kind, uint8_t opcode) {
	const struct packet_opcode_info *facts = packet_opcode_info(opcode);

	return kind == ((facts->flags & PACKET_FIRST) != 0 ? PACKET_KIND_NONE : facts->kind);
}

static void each_opcode_is_taken_only_where_it_may_follow(void **state) {
	static const uint8_t kinds[] = {PACKET_KIND_NONE, PACKET_KIND_SEND, PACKET_KIND_WRITE};

	bed_end(state);
	for (uint32_t n = 0; n < COUNT_OF(kinds); n++) {
		for (uint32_t m = 0; m <= PACKET_FETCH_ADD; m++) {
			uint8_t opcode = (uint8_t)m;
			uint32_t psn = BED_PSN + (kinds[n] != PACKET_KIND_NONE);

			if ((packet_opcode_info(opcode)->flags & PACKET_RESPONSE) != 0)
				continue;
			bed_make(state);
			bed_receive(1, 0, 2 * BED_MTU);
			bed_receive(2, 0, 2 * BED_MTU);
			if (kinds[n] != PACKET_KIND_NONE)
				begin(kinds[n], opcode);
			exchange(opcode, psn, payload_of(opcode));
			if (may_follow(kinds[n], opcode)) {
				assert_int_equal(bed_next_sent()->packet.syndrome, ACK);
				assert_int_equal(bed.qps[0].verbs.state, IBV_QPS_RTS);
			} else {
				bed_expect(PACKET_ACK, psn, INVALID);
				bed_expect_over(IBV_EVENT_QP_REQ_ERR);
			}
			assert_int_equal(bed_end(state), 0);
		}
	}
	bed_make(state);
}

static void what_no_request_is_is_dropped_and_counted(void **state) {
	uint32_t dropped = 0;

	(void)state;
	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		const struct packet_opcode_info *facts = packet_opcode_info((uint8_t)opcode);

		if (facts->kind != PACKET_KIND_NONE && (facts->flags & PACKET_RESPONSE) == 0)
			continue;
		exchange((uint8_t)opcode, BED_PSN, 0);
		dropped++;
	}
	assert_int_equal(bed.nic.counters.drop_state, dropped);
	bed_expect_quiet();
}

static void a_message_is_acknowledged_once_it_asks_for_it(void **state) {
	struct packet first = bed_packet(PACKET_WRITE_FIRST, BED_PSN, BED_MTU);
	struct packet last = bed_packet(PACKET_WRITE_LAST, BED_PSN + 1, 1);

	(void)state;
	first.length = BED_MTU + 1;
	first.ack_request = false;
	bed_exchange(&first);
	bed_expect_quiet();
	bed_exchange(&last);
	bed_expect(PACKET_ACK, BED_PSN + 1, ACK);
	assert_int_equal(bed.sent[0].packet.msn, 1);
	bed_expect_quiet();
	assert_int_equal(bed.nic.counters.acks_sent, 1);
}

static void one_acknowledgement_stands_for_all_that_came(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 40; n++) {
		struct packet packet = bed_packet(PACKET_WRITE_ONLY, BED_PSN + n, 8);

		bed_request(&packet);
	}
	bed_transmit();
	bed_expect(PACKET_ACK, BED_PSN + 39, ACK);
	assert_int_equal(bed.sent[0].packet.msn, 40);
	bed_expect_quiet();
}

static void an_acknowledgement_waits_where_it_may_and_then_leaves(void **state) {
	struct packet packet = bed_packet(PACKET_WRITE_ONLY, BED_PSN, 8);

	(void)state;
	bed_request(&packet);
	assert_false(responder_transmit(&bed.qps[0], BED_BUDGET, true));
	bed_expect_quiet();
	assert_true(responder->ack_due);
	assert_false(responder_transmit(&bed.qps[0], BED_BUDGET, false));
	bed_expect(PACKET_ACK, BED_PSN, ACK);
}

static void a_full_wire_delays_what_is_to_be_said(void **state) {
	struct packet packet = bed_packet(PACKET_WRITE_ONLY, BED_PSN, 8);
	struct packet early = bed_packet(PACKET_WRITE_ONLY, BED_PSN + 5, 8);

	(void)state;
	bed.wire_room = 0;
	bed_request(&packet);
	assert_true(responder_transmit(&bed.qps[0], BED_BUDGET, false));
	bed_request(&early);
	assert_true(responder_transmit(&bed.qps[0], BED_BUDGET, false));
	assert_true(responder_transmit(&bed.qps[0], 0, false));
	bed.wire_room = 1;
	assert_false(responder_transmit(&bed.qps[0], BED_BUDGET, false));
	bed_expect(PACKET_ACK, BED_PSN + 1, SEQUENCE);
	bed_expect_quiet();
}

static void a_gap_is_told_of_once(void **state) {
	(void)state;
	for (uint32_t n = 1; n < 30; n++)
		exchange(PACKET_WRITE_ONLY, BED_PSN + n, 8);
	bed_expect(PACKET_ACK, BED_PSN, SEQUENCE);
	bed_expect_quiet();
	assert_int_equal(bed.nic.counters.naks_sent, 1);
	assert_int_equal(bed.nic.counters.out_of_sequence, 29);
	assert_int_equal(bed.nic.counters.drop_sequence, 28);
}

static void each_gap_is_told_of_anew(void **state) {
	(void)state;
	exchange(PACKET_WRITE_ONLY, BED_PSN + 1, 8);
	bed_expect(PACKET_ACK, BED_PSN, SEQUENCE);
	exchange(PACKET_WRITE_ONLY, BED_PSN, 8);
	bed_expect(PACKET_ACK, BED_PSN, ACK);
	exchange(PACKET_WRITE_ONLY, BED_PSN + 2, 8);
	bed_expect(PACKET_ACK, BED_PSN + 1, SEQUENCE);
}

// The retransmitted packet is lost again. The next packet shows it, because its PSN does not follow
// the latest one.
static void a_lost_retransmission_is_told_of_at_once(void **state) {
	(void)state;
	exchange(PACKET_WRITE_ONLY, BED_PSN + 1, 8);
	exchange(PACKET_WRITE_ONLY, BED_PSN + 2, 8);
	bed_expect(PACKET_ACK, BED_PSN, SEQUENCE);
	for (uint32_t round = 0; round < 5; round++) {
		exchange(PACKET_WRITE_ONLY, BED_PSN + 1, 8);
		bed_expect(PACKET_ACK, BED_PSN, SEQUENCE);
		exchange(PACKET_WRITE_ONLY, BED_PSN + 2, 8);
		exchange(PACKET_WRITE_ONLY, BED_PSN + 3, 8);
		bed_expect_quiet();
	}
}

static void packets_that_changed_places_in_one_turn_are_no_gap(void **state) {
	struct packet first = bed_packet(PACKET_WRITE_ONLY, BED_PSN, 8);
	struct packet second = bed_packet(PACKET_WRITE_ONLY, BED_PSN + 1, 8);

	(void)state;
	bed_request(&second);
	bed_request(&first);
	bed_request(&second);
	bed_transmit();
	bed_expect(PACKET_ACK, BED_PSN + 1, ACK);
	bed_expect_quiet();
}

static void a_send_or_write_that_comes_again_has_no_effect_but_an_answer(void **state) {
	static const uint8_t opcodes[] = {
		PACKET_SEND_FIRST, PACKET_SEND_MIDDLE,	  PACKET_SEND_LAST,   PACKET_SEND_LAST_IMM,
		PACKET_SEND_ONLY,  PACKET_SEND_ONLY_IMM,  PACKET_WRITE_FIRST, PACKET_WRITE_MIDDLE,
		PACKET_WRITE_LAST, PACKET_WRITE_LAST_IMM, PACKET_WRITE_ONLY,  PACKET_WRITE_ONLY_IMM,
	};

	(void)state;
	for (uint32_t n = 0; n < 20; n++)
		exchange(PACKET_WRITE_ONLY, BED_PSN + n, 8);
	bed.sent_head = bed.sent_tail;
	memset(bed.memory, 0x11, 8);
	bed_receive(1, 0, 100);
	for (uint32_t n = 0; n < COUNT_OF(opcodes); n++) {
		exchange(opcodes[n], BED_PSN + n, payload_of(opcodes[n]));
		bed_expect(PACKET_ACK, BED_PSN + 19, ACK);
		assert_int_equal(bed.sent[bed.sent_tail - 1].packet.msn, 20);
	}
	assert_int_equal(bed.memory[0], 0x11);
	assert_int_equal(bed.nic.counters.duplicates, COUNT_OF(opcodes));
	bed_expect_quiet();
}

static void sequence_numbers_are_compared_by_the_nearer_half(void **state) {
	static const struct {
		uint32_t after;
		uint8_t syndrome;
		uint32_t psn;
	} cases[] = {
		{0, ACK, BED_PSN},
		{1, SEQUENCE, BED_PSN},
		{0x7fffff, SEQUENCE, BED_PSN},
		{0x800000, ACK, BED_PSN - 1},
		{0xffffff, ACK, BED_PSN - 1},
	};

	bed_end(state);
	for (uint32_t n = 0; n < COUNT_OF(cases); n++) {
		bed_make(state);
		exchange(PACKET_WRITE_ONLY, BED_PSN + cases[n].after, 8);
		bed_expect(PACKET_ACK, cases[n].psn, cases[n].syndrome);
		bed_end(state);
	}
	bed_make(state);
}

static void messages_are_counted_modulo_their_24_bits(void **state) {
	(void)state;
	responder->msn = PSN_MASK;
	exchange(PACKET_WRITE_ONLY, BED_PSN, 8);
	assert_int_equal(bed_next_sent()->packet.msn, 0);
}

static void the_first_request_in_rtr_tells_that_the_peer_is_there(void **state) {
	(void)state;
	bed.qps[0].verbs.state = IBV_QPS_RTR;
	exchange(PACKET_WRITE_ONLY, BED_PSN, 8);
	exchange(PACKET_WRITE_ONLY, BED_PSN + 1, 8);
	bed_expect_event(IBV_EVENT_COMM_EST);
	bed.sent_head = bed.sent_tail;
	bed_expect_quiet();
}

static void who_is_in_rts_is_not_told_of_a_first_request(void **state) {
	(void)state;
	exchange(PACKET_WRITE_ONLY, BED_PSN, 8);
	bed_expect(PACKET_ACK, BED_PSN, ACK);
	bed.qps[0].verbs.state = IBV_QPS_RTR;
	exchange(PACKET_WRITE_ONLY, BED_PSN + 1, 8);
	bed_expect(PACKET_ACK, BED_PSN + 1, ACK);
	bed_expect_quiet();
}

// The NAK waits for room on the wire. Until it is sent, no request may be executed.
static void after_a_fault_nothing_more_is_executed(void **state) {
	struct packet bad = bed_packet(PACKET_WRITE_MIDDLE, BED_PSN, BED_MTU);
	struct packet good = bed_packet(PACKET_WRITE_ONLY, BED_PSN, 8);

	(void)state;
	bed.wire_room = 0;
	bed_request(&bad);
	assert_true(responder_transmit(&bed.qps[0], BED_BUDGET, false));
	assert_int_equal(bed.qps[0].verbs.state, IBV_QPS_RTS);
	bed_request(&good);
	assert_int_equal(bed.memory[0], 0x11);
	assert_int_equal(bed.nic.counters.drop_state, 1);
	bed.wire_room = 1;
	assert_false(responder_transmit(&bed.qps[0], BED_BUDGET, false));
	bed_expect(PACKET_ACK, BED_PSN, INVALID);
	bed_expect_over(IBV_EVENT_QP_REQ_ERR);
}

static void what_came_before_a_fault_is_answered_before_it(void **state) {
	struct packet read = bed_packet(PACKET_READ_REQUEST, BED_PSN, 0);
	struct packet bad = bed_packet(PACKET_WRITE_MIDDLE, BED_PSN + 2, BED_MTU);

	(void)state;
	read.length = 2 * BED_MTU;
	bed_request(&read);
	bed_request(&bad);
	bed_transmit();
	bed_expect(PACKET_READ_FIRST, BED_PSN, ACK);
	bed_expect(PACKET_READ_LAST, BED_PSN + 1, ACK);
	bed_expect(PACKET_ACK, BED_PSN + 2, INVALID);
	bed_expect_over(IBV_EVENT_QP_REQ_ERR);
}

static void a_reset_forgets_everything(void **state) {
	struct packet read = bed_packet(PACKET_READ_REQUEST, BED_PSN, 0);

	(void)state;
	bed_receive(1, 0, 2 * BED_MTU);
	bed_receive(2, 0, 100);
	read.length = BED_MTU;
	bed_request(&read);
	exchange(PACKET_SEND_FIRST, BED_PSN + 1, BED_MTU);
	responder_reset(&bed.qps[0]);
	responder_start(&bed.qps[0]);
	assert_int_equal(receive_queue_count(&bed.qps[0].receives), 0);
	bed.sent_head = bed.sent_tail;
	bed.done_head = bed.done_tail;
	exchange(PACKET_WRITE_ONLY, BED_PSN, 8);
	bed_expect(PACKET_ACK, BED_PSN, ACK);
	bed_expect_quiet();
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, bed_make, bed_end)

UNIT_GROUP(soft_responder_order) {
	const struct CMUnitTest tests[] = {
		CASE(each_opcode_is_taken_only_where_it_may_follow),
		CASE(what_no_request_is_is_dropped_and_counted),
		CASE(a_message_is_acknowledged_once_it_asks_for_it),
		CASE(one_acknowledgement_stands_for_all_that_came),
		CASE(an_acknowledgement_waits_where_it_may_and_then_leaves),
		CASE(a_full_wire_delays_what_is_to_be_said),
		CASE(a_gap_is_told_of_once),
		CASE(each_gap_is_told_of_anew),
		CASE(a_lost_retransmission_is_told_of_at_once),
		CASE(packets_that_changed_places_in_one_turn_are_no_gap),
		CASE(a_send_or_write_that_comes_again_has_no_effect_but_an_answer),
		CASE(sequence_numbers_are_compared_by_the_nearer_half),
		CASE(messages_are_counted_modulo_their_24_bits),
		CASE(the_first_request_in_rtr_tells_that_the_peer_is_there),
		CASE(who_is_in_rts_is_not_told_of_a_first_request),
		CASE(after_a_fault_nothing_more_is_executed),
		CASE(what_came_before_a_fault_is_answered_before_it),
		CASE(a_reset_forgets_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
