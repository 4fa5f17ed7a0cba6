// SPDX-License-Identifier: BSD-3-Clause
// Tests of every check of a request. The checks have an order, which decides which of two faults is
// reported.
#include "dataplane/soft/transport/responder_bed.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <stdio.h>

#define INVALID PACKET_SYNDROME_NAK_INVALID
#define ACCESS PACKET_SYNDROME_NAK_ACCESS
#define OPERATION PACKET_SYNDROME_NAK_OPERATION
#define RNR (PACKET_SYNDROME_RNR | 14)

// Faults of a request, which can be combined.
#define NO_RIGHT 0x001 // of the queue pair
#define NO_RECEIVE 0x002
#define NO_DEPTH 0x004 // no read or atomic may be under way
#define LENGTH 0x008   // wrong packet length
#define KEY 0x010      // unknown key
#define STRANGE 0x020  // key of another PD
#define CLOSED 0x040   // region without access rights
#define RANGE 0x080    // one byte beyond the region
#define PAD 0x100
#define ALIGNMENT 0x200
#define SMALL 0x400	// receive one byte too short
#define BAD_PIECE 0x800 // wrong key in the receive

struct check {
	uint8_t opcode;
	uint32_t faults;
	uint8_t syndrome; // 0: the request is acknowledged or answered
};

static const struct check checks[] = {
	// Order for SEND: receive, length and padding, size of the receive, access to its memory.
	{PACKET_SEND_ONLY, 0, 0},
	{PACKET_SEND_ONLY, NO_RIGHT | NO_DEPTH, 0},
	{PACKET_SEND_ONLY, NO_RECEIVE, RNR},
	{PACKET_SEND_ONLY, LENGTH, INVALID},
	{PACKET_SEND_ONLY, PAD, INVALID},
	{PACKET_SEND_ONLY, SMALL, INVALID},
	{PACKET_SEND_ONLY, BAD_PIECE, OPERATION},
	{PACKET_SEND_ONLY, NO_RECEIVE | LENGTH, RNR},
	{PACKET_SEND_ONLY, LENGTH | BAD_PIECE, INVALID},
	{PACKET_SEND_ONLY, PAD | BAD_PIECE, INVALID},
	{PACKET_SEND_ONLY, SMALL | BAD_PIECE, INVALID},
	{PACKET_SEND_ONLY_IMM, 0, 0},
	{PACKET_SEND_ONLY_IMM, NO_RECEIVE, RNR},
	{PACKET_SEND_FIRST, 0, 0},
	{PACKET_SEND_FIRST, NO_RECEIVE, RNR},
	{PACKET_SEND_FIRST, LENGTH, INVALID},
	{PACKET_SEND_FIRST, SMALL, INVALID},
	{PACKET_SEND_FIRST, BAD_PIECE, OPERATION},
	// Order for WRITE: right, length, key and range, padding. Without immediate data no receive
	// is needed.
	{PACKET_WRITE_ONLY, 0, 0},
	{PACKET_WRITE_ONLY, NO_RECEIVE | NO_DEPTH, 0},
	{PACKET_WRITE_ONLY, NO_RIGHT, INVALID},
	{PACKET_WRITE_ONLY, LENGTH, INVALID},
	{PACKET_WRITE_ONLY, KEY, ACCESS},
	{PACKET_WRITE_ONLY, STRANGE, ACCESS},
	{PACKET_WRITE_ONLY, CLOSED, ACCESS},
	{PACKET_WRITE_ONLY, RANGE, ACCESS},
	{PACKET_WRITE_ONLY, PAD, INVALID},
	{PACKET_WRITE_ONLY, NO_RIGHT | KEY, INVALID},
	{PACKET_WRITE_ONLY, LENGTH | KEY, INVALID},
	{PACKET_WRITE_ONLY, KEY | PAD, ACCESS},
	{PACKET_WRITE_ONLY, RANGE | PAD, ACCESS},
	{PACKET_WRITE_FIRST, 0, 0},
	{PACKET_WRITE_FIRST, NO_RIGHT, INVALID},
	{PACKET_WRITE_FIRST, LENGTH, INVALID},
	{PACKET_WRITE_FIRST, RANGE, ACCESS},
	{PACKET_WRITE_FIRST, LENGTH | RANGE, INVALID},
	// WRITE with immediate data also needs a receive, checked after the right.
	{PACKET_WRITE_ONLY_IMM, 0, 0},
	{PACKET_WRITE_ONLY_IMM, NO_RECEIVE, RNR},
	{PACKET_WRITE_ONLY_IMM, NO_RIGHT | NO_RECEIVE, INVALID},
	{PACKET_WRITE_ONLY_IMM, NO_RECEIVE | LENGTH, RNR},
	{PACKET_WRITE_ONLY_IMM, NO_RECEIVE | KEY, RNR},
	{PACKET_WRITE_ONLY_IMM, SMALL | BAD_PIECE, 0},
	{PACKET_WRITE_ONLY_IMM, KEY, ACCESS},
	// Order for READ: right, depth, length, key and range, padding.
	{PACKET_READ_REQUEST, 0, 0},
	{PACKET_READ_REQUEST, NO_RECEIVE, 0},
	{PACKET_READ_REQUEST, NO_RIGHT, INVALID},
	{PACKET_READ_REQUEST, NO_DEPTH, INVALID},
	{PACKET_READ_REQUEST, LENGTH, INVALID},
	{PACKET_READ_REQUEST, KEY, ACCESS},
	{PACKET_READ_REQUEST, STRANGE, ACCESS},
	{PACKET_READ_REQUEST, CLOSED, ACCESS},
	{PACKET_READ_REQUEST, RANGE, ACCESS},
	{PACKET_READ_REQUEST, PAD, INVALID},
	{PACKET_READ_REQUEST, NO_RIGHT | KEY, INVALID},
	{PACKET_READ_REQUEST, NO_DEPTH | KEY, INVALID},
	{PACKET_READ_REQUEST, LENGTH | KEY, INVALID},
	{PACKET_READ_REQUEST, RANGE | PAD, ACCESS},
	// Order for atomics: right, depth, length, key and range, alignment, padding.
	{PACKET_COMPARE_SWAP, 0, 0},
	{PACKET_COMPARE_SWAP, NO_RIGHT, INVALID},
	{PACKET_COMPARE_SWAP, NO_DEPTH, INVALID},
	{PACKET_COMPARE_SWAP, LENGTH, INVALID},
	{PACKET_COMPARE_SWAP, KEY, ACCESS},
	{PACKET_FETCH_ADD, 0, 0},
	{PACKET_FETCH_ADD, NO_RECEIVE, 0},
	{PACKET_FETCH_ADD, STRANGE, ACCESS},
	{PACKET_FETCH_ADD, CLOSED, ACCESS},
	{PACKET_FETCH_ADD, RANGE, ACCESS},
	{PACKET_FETCH_ADD, ALIGNMENT, INVALID},
	{PACKET_FETCH_ADD, PAD, INVALID},
	{PACKET_FETCH_ADD, KEY | ALIGNMENT, ACCESS},
	{PACKET_FETCH_ADD, LENGTH | KEY, INVALID},
};

static void spoil_queue_pair(uint32_t faults) {
	struct soft_qp *qp = &bed.qps[0];

	if ((faults & NO_RIGHT) != 0)
		qp->attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE;
	if ((faults & NO_DEPTH) != 0)
		qp->attr.max_dest_rd_atomic = 0;
	if ((faults & NO_RECEIVE) == 0)
		bed_receive(77, 0, (faults & SMALL) != 0 ? 19 : 2 * BED_MTU);
	if ((faults & BAD_PIECE) != 0)
		qp->receives.sges[0].lkey ^= 1;
}

static void spoil_packet(struct packet *packet, uint32_t faults) {
	bool atomic = packet_opcode_info(packet->opcode)->kind == PACKET_KIND_ATOMIC;

	if ((faults & KEY) != 0)
		packet->key ^= 1;
	if ((faults & STRANGE) != 0)
		packet->key = bed.strange_mr.verbs.rkey;
	if ((faults & CLOSED) != 0)
		packet->key = bed.closed_mr.verbs.rkey;
	if ((faults & ALIGNMENT) != 0)
		packet->address += 4;
	if ((faults & RANGE) != 0)
		packet->address += BED_REGION - (atomic ? 0 : packet->length - 1);
	if ((faults & LENGTH) != 0)
		packet->payload_bytes += 4;
	if ((faults & PAD) != 0)
		packet->pad = (packet->pad + 1) & 3;
}

static struct packet sound(uint8_t opcode) {
	const struct packet_opcode_info *facts = packet_opcode_info(opcode);
	bool bytes = facts->kind == PACKET_KIND_SEND || facts->kind == PACKET_KIND_WRITE;
	bool last = (facts->flags & PACKET_LAST) != 0;
	struct packet packet = bed_packet(opcode, BED_PSN, !bytes ? 0 : last ? 20 : BED_MTU);

	if (facts->kind == PACKET_KIND_READ)
		packet.length = 20;
	if (opcode == PACKET_WRITE_FIRST)
		packet.length = BED_MTU + 1;
	return packet;
}

// A SEND packet has no length field, so only a packet larger than the MTU is too long.
static void make_too_long(struct packet *packet) {
	if (packet_opcode_info(packet->opcode)->kind == PACKET_KIND_SEND)
		packet->payload_bytes = BED_MTU + 4;
}

static void check(const struct check *this) {
	struct packet packet = sound(this->opcode);
	uint8_t before[BED_REGION];

	spoil_queue_pair(this->faults);
	spoil_packet(&packet, this->faults);
	if ((this->faults & LENGTH) != 0)
		make_too_long(&packet);
	memcpy(before, bed.memory, sizeof(before));
	bed_exchange(&packet);
	if (this->syndrome == 0) {
		assert_int_equal(bed_next_sent()->packet.syndrome, PACKET_SYNDROME_ACK);
		assert_int_equal(bed.qps[0].verbs.state, IBV_QPS_RTS);
		return;
	}
	bed_expect(PACKET_ACK, BED_PSN, this->syndrome);
	assert_int_equal(bed.qps[0].verbs.state, this->syndrome == RNR ? IBV_QPS_RTS : IBV_QPS_ERR);
	assert_memory_equal(before, bed.memory, sizeof(before));
	assert_int_equal(bed.qps[0].responder.expected_psn, BED_PSN);
}

static void each_fault_is_told_by_its_own_nak_and_the_first_one_wins(void **state) {
	bed_end(state);
	for (uint32_t n = 0; n < COUNT_OF(checks); n++) {
		print_message(
			"# %s, faults %#x\n", packet_opcode_name(checks[n].opcode), checks[n].faults
		);
		bed_make(state);
		check(&checks[n]);
		assert_int_equal(bed_end(state), 0);
	}
	bed_make(state);
}

// A receive that was consumed completes with the reason, and no event is raised. Otherwise an event
// reports the fault.
static void the_program_learns_of_each_fault_once(void **state) {
	static const struct {
		uint8_t opcode;
		uint32_t faults;
		enum ibv_wc_status status;
		enum ibv_event_type event; // COMM_EST: no event
	} cases[] = {
		{PACKET_SEND_ONLY, SMALL, IBV_WC_LOC_LEN_ERR, IBV_EVENT_COMM_EST},
		{PACKET_SEND_ONLY, BAD_PIECE, IBV_WC_LOC_PROT_ERR, IBV_EVENT_COMM_EST},
		{PACKET_SEND_ONLY, PAD, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
		{PACKET_WRITE_ONLY, KEY, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR},
		{PACKET_WRITE_ONLY_IMM, KEY, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR},
		{PACKET_WRITE_ONLY, NO_RIGHT, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
		{PACKET_READ_REQUEST, RANGE, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_ACCESS_ERR},
		{PACKET_FETCH_ADD, ALIGNMENT, IBV_WC_WR_FLUSH_ERR, IBV_EVENT_QP_REQ_ERR},
	};

	bed_end(state);
	for (uint32_t n = 0; n < COUNT_OF(cases); n++) {
		struct packet packet;
		const struct ibv_wc *wc;

		bed_make(state);
		packet = sound(cases[n].opcode);
		spoil_queue_pair(cases[n].faults);
		spoil_packet(&packet, cases[n].faults);
		bed_exchange(&packet);
		bed_next_sent();
		wc = bed_next_done();
		assert_int_equal(wc->wr_id, 77);
		assert_int_equal(wc->status, cases[n].status);
		assert_int_equal(wc->qp_num, 1);
		assert_true(bed.done_solicited[0]);
		bed_expect_over(cases[n].event);
		bed_expect_quiet();
		bed_end(state);
	}
	bed_make(state);
}

// A message of several packets: the length of each packet, and their sum.
struct lengths {
	uint32_t total; // length stated in the first packet
	uint8_t opcodes[3];
	uint32_t bytes[3];
	uint32_t sound; // number of valid packets
};

static const struct lengths writes[] = {
	{0, {PACKET_WRITE_ONLY}, {0}, 1},
	{0, {PACKET_WRITE_ONLY}, {1}, 0},
	{1, {PACKET_WRITE_ONLY}, {0}, 0},
	{BED_MTU, {PACKET_WRITE_ONLY}, {BED_MTU}, 1},
	{BED_MTU + 1, {PACKET_WRITE_ONLY}, {BED_MTU}, 0},
	{BED_MTU + 1, {PACKET_WRITE_ONLY}, {BED_MTU + 1}, 0},
	{BED_MTU, {PACKET_WRITE_FIRST}, {BED_MTU}, 0},
	{0, {PACKET_WRITE_FIRST}, {0}, 0},
	{2 * BED_MTU, {PACKET_WRITE_FIRST}, {BED_MTU - 1}, 0},
	{2 * BED_MTU, {PACKET_WRITE_FIRST}, {BED_MTU + 1}, 0},
	{2 * BED_MTU, {PACKET_WRITE_FIRST, PACKET_WRITE_LAST}, {BED_MTU, BED_MTU}, 2},
	{2 * BED_MTU, {PACKET_WRITE_FIRST, PACKET_WRITE_MIDDLE}, {BED_MTU, BED_MTU}, 1},
	{2 * BED_MTU, {PACKET_WRITE_FIRST, PACKET_WRITE_LAST}, {BED_MTU, BED_MTU - 1}, 1},
	{BED_MTU + 1, {PACKET_WRITE_FIRST, PACKET_WRITE_LAST}, {BED_MTU, 0}, 1},
	{BED_MTU + 1, {PACKET_WRITE_FIRST, PACKET_WRITE_LAST}, {BED_MTU, 1}, 2},
	{BED_MTU + 1, {PACKET_WRITE_FIRST, PACKET_WRITE_LAST}, {BED_MTU, 2}, 1},
	{2 * BED_MTU + 1, {PACKET_WRITE_FIRST, PACKET_WRITE_LAST}, {BED_MTU, BED_MTU + 1}, 1},
	{2 * BED_MTU + 1,
	 {PACKET_WRITE_FIRST, PACKET_WRITE_MIDDLE, PACKET_WRITE_LAST},
	 {BED_MTU, BED_MTU, 1},
	 3},
	{2 * BED_MTU + 1, {PACKET_WRITE_FIRST, PACKET_WRITE_MIDDLE}, {BED_MTU, BED_MTU - 1}, 1},
	{LIMIT_MESSAGE_BYTES + 1, {PACKET_WRITE_FIRST}, {BED_MTU}, 0},
	{UINT32_MAX, {PACKET_WRITE_FIRST}, {BED_MTU}, 0},
};

static const struct lengths sends[] = {
	{0, {PACKET_SEND_ONLY}, {0}, 1},
	{0, {PACKET_SEND_ONLY}, {BED_MTU}, 1},
	{0, {PACKET_SEND_ONLY}, {BED_MTU + 1}, 0},
	{0, {PACKET_SEND_FIRST}, {0}, 0},
	{0, {PACKET_SEND_FIRST}, {BED_MTU - 1}, 0},
	{0, {PACKET_SEND_FIRST}, {BED_MTU + 1}, 0},
	{0, {PACKET_SEND_FIRST, PACKET_SEND_LAST}, {BED_MTU, 0}, 1},
	{0, {PACKET_SEND_FIRST, PACKET_SEND_LAST}, {BED_MTU, 1}, 2},
	{0, {PACKET_SEND_FIRST, PACKET_SEND_LAST}, {BED_MTU, BED_MTU}, 2},
	{0, {PACKET_SEND_FIRST, PACKET_SEND_LAST}, {BED_MTU, BED_MTU + 1}, 1},
	{0, {PACKET_SEND_FIRST, PACKET_SEND_MIDDLE}, {BED_MTU, BED_MTU - 1}, 1},
	{0,
	 {PACKET_SEND_FIRST, PACKET_SEND_MIDDLE, PACKET_SEND_LAST_IMM},
	 {BED_MTU, BED_MTU, BED_MTU},
	 3},
};

static void run_lengths(void **state, const struct lengths *cases, uint32_t count) {
	bed_end(state);
	for (uint32_t n = 0; n < count; n++) {
		bed_make(state);
		bed_receive(1, 0, BED_REGION);
		for (uint32_t m = 0; m < 3 && cases[n].opcodes[m] + cases[n].bytes[m] > 0; m++) {
			struct packet packet =
				bed_packet(cases[n].opcodes[m], BED_PSN + m, cases[n].bytes[m]);

			packet.length = cases[n].total;
			bed_exchange(&packet);
			if (m < cases[n].sound) {
				bed_expect(PACKET_ACK, BED_PSN + m, PACKET_SYNDROME_ACK);
				continue;
			}
			bed_expect(PACKET_ACK, BED_PSN + m, INVALID);
			break;
		}
		assert_int_equal(bed_end(state), 0);
	}
	bed_make(state);
}

static void the_packets_of_a_write_have_the_lengths_that_it_announced(void **state) {
	run_lengths(state, writes, COUNT_OF(writes));
}

static void the_packets_of_a_send_fill_the_mtu_but_for_the_last(void **state) {
	run_lengths(state, sends, COUNT_OF(sends));
}

static void no_bytes_need_no_region(void **state) {
	static const uint8_t opcodes[] = {
		PACKET_WRITE_ONLY, PACKET_WRITE_ONLY_IMM, PACKET_READ_REQUEST};

	(void)state;
	bed_receive(1, 0, 1);
	for (uint32_t n = 0; n < COUNT_OF(opcodes); n++) {
		struct packet packet = bed_packet(opcodes[n], BED_PSN + n, 0);

		packet.key = 0;
		packet.address = UINT64_MAX;
		bed_exchange(&packet);
		assert_int_equal(bed_next_sent()->packet.syndrome, PACKET_SYNDROME_ACK);
	}
	assert_int_equal(bed.sent[2].packet.opcode, PACKET_READ_ONLY);
	assert_int_equal(bed.sent[2].packet.payload_bytes, 0);
}

static void a_write_whose_region_goes_away_ends_there(void **state) {
	struct packet first = bed_packet(PACKET_WRITE_FIRST, BED_PSN, BED_MTU);
	struct packet last = bed_packet(PACKET_WRITE_LAST, BED_PSN + 1, 8);

	(void)state;
	first.length = BED_MTU + 8;
	first.ack_request = false;
	bed_exchange(&first);
	region_remove(&bed.nic, &bed.mr);
	bed_exchange(&last);
	bed_expect(PACKET_ACK, BED_PSN + 1, ACCESS);
	bed_expect_over(IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(bed.memory[BED_MTU], 0x11);
	assert_int_equal(region_add(&bed.nic, &bed.mr), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, bed_make, bed_end)

UNIT_GROUP(soft_responder_check) {
	const struct CMUnitTest tests[] = {
		CASE(each_fault_is_told_by_its_own_nak_and_the_first_one_wins),
		CASE(the_program_learns_of_each_fault_once),
		CASE(the_packets_of_a_write_have_the_lengths_that_it_announced),
		CASE(the_packets_of_a_send_fill_the_mtu_but_for_the_last),
		CASE(no_bytes_need_no_region),
		CASE(a_write_whose_region_goes_away_ends_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
