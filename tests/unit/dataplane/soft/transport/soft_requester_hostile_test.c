// SPDX-License-Identifier: BSD-3-Clause
// The peer sends random answers at random times. Every request must still complete once and in
// order. No byte may be written outside the pieces of a request, and every answer must be counted.
#include "dataplane/soft/transport/requester_bed.h"

#include <lib/splitmix.h>

#include <stdlib.h>

#define MTU BED_MTU
#define ROUNDS 3000
#define STEPS 200
#define GUARD (8 * MTU) // between and around the areas for answers
#define PLACE (24 * MTU)
#define PLACES 4

static uint64_t seed;

static uint32_t draw(uint32_t below) {
	return (uint32_t)(splitmix_next(&seed) >> 16) % below;
}

static uint32_t place_offset(uint32_t place) {
	return GUARD + place * (PLACE + GUARD);
}

static void post_something(uint32_t *posted) {
	enum ibv_wr_opcode opcode = (enum ibv_wr_opcode)draw(7);
	uint32_t length = draw(4) == 0 ? draw(PLACE + 1) : draw(3 * MTU);
	struct ibv_send_wr wr =
		bed_wr(opcode, place_offset(draw(PLACES)),
		       opcode >= IBV_WR_ATOMIC_CMP_AND_SWP ? 8 : length);
	struct ibv_sge sge = *wr.sg_list;

	wr.sg_list = &sge;
	if (draw(50) == 0)
		sge.lkey++;
	wr.wr_id = *posted;
	wr.send_flags = draw(3) == 0 ? IBV_SEND_FENCE | IBV_SEND_SIGNALED : IBV_SEND_SIGNALED;
	*posted += requester_post(&bed->qp, &wr) == 0;
}

// Return a random PSN, in most cases close to the unacknowledged ones.
static uint32_t some_psn(void) {
	const struct requester *requester = &bed->qp.requester;

	switch (draw(8)) {
	case 0:
		return draw(PSN_MASK + 1);
	case 1:
		return psn_add(requester->high_psn, draw(3) - 1);
	case 2:
		return psn_add(requester->acked_psn, draw(70));
	default:
		return psn_add(requester->acked_psn, draw(2));
	}
}

static uint8_t some_answer(void) {
	static const uint8_t opcodes[] = {
		PACKET_READ_FIRST, PACKET_READ_MIDDLE, PACKET_READ_LAST, PACKET_READ_ONLY,
		PACKET_ACK,	   PACKET_ACK,	       PACKET_ACK,	 PACKET_ATOMIC_ACK,
	};

	return draw(20) == 0 ? (uint8_t)draw(256) : opcodes[draw(COUNT_OF(opcodes))];
}

static uint8_t some_syndrome(void) {
	static const uint8_t syndromes[] = {0x1f, 0x1f, 0x1f, 0x1f, 0x60, 0x60, 0x21, 0x20};

	return draw(40) == 0 ? (uint8_t)draw(256) : syndromes[draw(COUNT_OF(syndromes))];
}

// Make the correct answer to the oldest request, so that some requests progress.
static void answer_truly(struct packet *packet) {
	const struct requester *requester = &bed->qp.requester;
	const struct send_work *work = work_at(requester, requester->head);
	uint32_t done = psn_add(requester->acked_psn, -work->first_psn);
	uint32_t left = work->length - done * MTU;
	bool first, last;

	packet->psn = requester->acked_psn;
	packet->syndrome = PACKET_SYNDROME_ACK;
	if (work_is_atomic(work)) {
		packet->opcode = PACKET_ATOMIC_ACK;
	} else if (work->opcode == IBV_WR_RDMA_READ) {
		first = (done & (requester->piece - 1)) == 0;
		last = (done & (requester->piece - 1)) == requester->piece - 1 ||
		       done + 1 == work->packets;
		packet->opcode = first && last ? PACKET_READ_ONLY
				 : first       ? PACKET_READ_FIRST
				 : last	       ? PACKET_READ_LAST
					       : PACKET_READ_MIDDLE;
		packet->payload_bytes = left < MTU ? left : MTU;
	} else {
		packet->opcode = PACKET_ACK;
		packet->psn = psn_add(packet->psn, draw(4));
	}
}

static void answer_something(void) {
	uint8_t payload[PACKET_PAYLOAD_MAX];
	struct packet packet = {
		.opcode = some_answer(),
		.psn = some_psn(),
		.syndrome = some_syndrome(),
		.original = UINT64_C(0x5555555555555555),
		.payload = payload,
		.payload_bytes = draw(3) == 0 ? draw(sizeof(payload) + 1) : MTU,
	};

	memset(payload, 0x55, sizeof(payload));
	if (draw(4) != 0 && bed->qp.requester.head != bed->qp.requester.tail)
		answer_truly(&packet);
	bed_answer(&packet);
}

static void check_guards(void) {
	for (uint32_t place = 0; place <= PLACES; place++) {
		const uint8_t *guard = bed->memory + place_offset(place) - GUARD;

		for (uint32_t n = 0; n < GUARD; n++)
			assert_int_equal(guard[n], 0xaa);
	}
}

// Completions must be in posting order: successes, at most one failure, then flushed requests.
static void check_completions(uint32_t posted) {
	bool broken = false;

	assert_int_equal(bed->wc_count, posted);
	for (uint32_t n = 0; n < posted; n++) {
		const struct ibv_wc *wc = &bed->wcs[n];

		assert_int_equal(wc->wr_id, n);
		if (broken)
			assert_int_equal(wc->status, IBV_WC_WR_FLUSH_ERR);
		broken = broken || wc->status != IBV_WC_SUCCESS;
	}
	bed->wc_count = 0;
}

static void check_requester(void) {
	const struct requester *requester = &bed->qp.requester;
	uint32_t sent = psn_add(requester->high_psn, -requester->acked_psn);

	assert_true(requester->tail - requester->head <= requester->capacity);
	assert_true(requester->next - requester->head <= requester->tail - requester->head);
	assert_true(requester_in_flight(requester) <= sent);
	assert_true(sent <= requester->window_max + requester->piece);
	assert_true(requester->reads_out <= bed->qp.attr.max_rd_atomic);
}

static void one_life(void) {
	uint32_t posted = 0;

	bed->wire.window_bytes = draw(200) * MTU;
	bed->qp.attr.max_rd_atomic = (uint8_t)(1 + draw(4));
	bed->qp.attr.rnr_retry = draw(2) == 0 ? 7 : 2;
	bed_start(draw(PSN_MASK + 1), MTU);
	for (uint32_t n = 0; n < STEPS; n++) {
		switch (draw(6)) {
		case 0:
			post_something(&posted);
			break;
		case 1:
			bed->sent_count = 0;
			requester_transmit(&bed->qp, draw(100));
			break;
		case 2:
			bed_advance(draw(2) == 0 ? draw(10000) : UINT64_C(5000000));
			break;
		default:
			answer_something();
			break;
		}
		check_requester();
	}
	qp_enter_error(&bed->qp);
	check_completions(posted);
}

static void whatever_comes_each_request_completes_once_in_order_and_in_bounds(void **state) {
	(void)state;
	memset(bed->memory, 0xaa, BED_MEMORY);
	for (uint32_t n = 0; n < ROUNDS; n++) {
		seed = n;
		one_life();
	}
	check_guards();
	assert_true(bed->nic.counters.drop_ghost > 0);
	assert_true(bed->nic.counters.drop_answer > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_open, bed_close)

UNIT_GROUP(soft_requester_hostile) {
	const struct CMUnitTest tests[] = {
		TEST(whatever_comes_each_request_completes_once_in_order_and_in_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
