// SPDX-License-Identifier: BSD-3-Clause
// Tests of received frames: each reason to drop a frame, and that a dropped frame has no other
// effect.
#include "dataplane/soft/soft_bed.h"
#include "transport/qp.h"
#include "verbs/verbs_soft.h"

#include <support/cases.h>

#include <errno.h>
#include <string.h>

#define PAYLOAD 16

static struct bed_end *const here = &bed.ends[0], *const there = &bed.ends[1];

// A frame from `there` to `here`. Each test damages it before or after it is sealed.
struct made {
	struct packet packet;
	struct frame_route route;
	uint8_t room[FRAME_HEADROOM + FRAME_BYTES_MAX];
	uint32_t size;
	bool id_known;
};

static uint8_t *frame_of(struct made *made) {
	return made->room + FRAME_HEADROOM;
}

static void make(struct made *made) {
	const struct soft_qp *qp = soft_qp_of(here->qp);

	*made = (struct made){
		.packet =
			{
				.opcode = PACKET_WRITE_ONLY,
				.ack_request = true,
				.pkey = PACKET_PKEY_DEFAULT,
				.queue_pair = here->qp->qp_num,
				.psn = 0xfffff0,
				.address = (uintptr_t)here->bytes,
				.key = here->mr->rkey,
				.length = PAYLOAD,
			},
		.route =
			{.from = qp->route.to,
			 .to = qp->route.from,
			 .source_port = 0xc000,
			 .hop_limit = 64},
		.id_known = true,
	};
}

static void seal(struct made *made) {
	uint8_t *frame = frame_of(made), *at = frame + FRAME_IP4_BYTES + FRAME_UDP_BYTES;

	at += packet_encode(&made->packet, at);
	memset(at, 0x77, PAYLOAD);
	at += PAYLOAD + PACKET_ICRC_BYTES;
	made->size = (uint32_t)(at - frame);
	frame_write_headers(&made->route, made->size - FRAME_IP4_BYTES - FRAME_UDP_BYTES, frame);
	frame_seal(frame, made->size);
}

static struct soft_counters arrive(struct made *made) {
	struct soft_nic *nic = nic_of(here->context);
	const struct wire_frame frame = {frame_of(made), made->size, made->id_known};
	struct soft_counters counters;

	nic_lock(nic);
	nic_frame(nic, &frame);
	nic_unlock(nic);
	assert_int_equal(soft_counters_read("soft0", &counters), 0);
	return counters;
}

static void short_frame(struct made *made) {
	seal(made);
	made->size = FRAME_IP4_BYTES + FRAME_UDP_BYTES - 1;
}

static void empty_frame(struct made *made) {
	made->size = 0;
}

static void wrong_version(struct made *made) {
	seal(made);
	frame_of(made)[0] = 0x55;
}

static void wrong_udp_port(struct made *made) {
	seal(made);
	frame_of(made)[FRAME_IP4_BYTES + 3] ^= 1;
}

static void wrong_transport_version(struct made *made) {
	seal(made);
	frame_of(made)[FRAME_IP4_BYTES + FRAME_UDP_BYTES + 1] |= 1;
	frame_seal(frame_of(made), made->size);
}

static void wrong_pkey(struct made *made) {
	made->packet.pkey = 0x8001;
	seal(made);
}

static void wrong_icrc(struct made *made) {
	seal(made);
	frame_of(made)[made->size - PACKET_ICRC_BYTES - 1] ^= 1;
}

static void wrong_id(struct made *made) {
	seal(made);
	frame_of(made)[4] ^= 1;
}

static void unknown_opcode(struct made *made) {
	seal(made);
	frame_of(made)[FRAME_IP4_BYTES + FRAME_UDP_BYTES] = 0x64; // an opcode of UD
	frame_seal(frame_of(made), made->size);
}

static void unknown_queue_pair(struct made *made) {
	made->packet.queue_pair ^= 1;
	seal(made);
}

static void former_queue_pair(struct made *made) {
	made->packet.queue_pair ^= UINT32_C(1) << NIC_QP_INDEX_BITS;
	seal(made);
}

static void queue_pair_beyond(struct made *made) {
	made->packet.queue_pair = 0xffffff;
	seal(made);
}

static void from_stranger(struct made *made) {
	made->route.from.raw[15] ^= 0x10;
	seal(made);
}

static void to_stranger(struct made *made) {
	made->route.to.raw[15] ^= 0x10;
	seal(made);
}

static void in_state(enum ibv_qp_state state) {
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	assert_int_equal(verbs_calls_soft.modify_qp(here->qp, &attr, IBV_QP_STATE), 0);
	if (state == IBV_QPS_RESET)
		return;
	assert_int_equal(bed_to_init(here->qp), 0);
	if (state == IBV_QPS_INIT)
		return;
	attr = bed_rtr_attr(there, there->qp->qp_num);
	assert_int_equal(verbs_calls_soft.modify_qp(here->qp, &attr, bed_rtr_mask), 0);
}

static void while_reset(struct made *made) {
	seal(made);
	in_state(IBV_QPS_RESET);
}

static void while_init(struct made *made) {
	seal(made);
	in_state(IBV_QPS_INIT);
}

static void answer_while_rtr(struct made *made) {
	made->packet.opcode = PACKET_ACK;
	seal(made);
	in_state(IBV_QPS_RTR);
}

static void while_error(struct made *made) {
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	seal(made);
	assert_int_equal(verbs_calls_soft.modify_qp(here->qp, &attr, IBV_QP_STATE), 0);
}

#define DROP(field) offsetof(struct soft_counters, field)

static const struct {
	void (*spoil)(struct made *made);
	size_t drop;
} cases[] = {
	{short_frame, DROP(drop_short)},
	{empty_frame, DROP(drop_short)},
	{wrong_version, DROP(drop_header)},
	{wrong_udp_port, DROP(drop_header)},
	{wrong_transport_version, DROP(drop_header)},
	{wrong_pkey, DROP(drop_header)},
	{wrong_icrc, DROP(drop_icrc)},
	{wrong_id, DROP(drop_icrc)},
	{unknown_opcode, DROP(drop_opcode)},
	{unknown_queue_pair, DROP(drop_queue_pair)},
	{former_queue_pair, DROP(drop_queue_pair)},
	{queue_pair_beyond, DROP(drop_queue_pair)},
	{from_stranger, DROP(drop_address)},
	{to_stranger, DROP(drop_address)},
	{while_reset, DROP(drop_state)},
	{while_init, DROP(drop_state)},
	{answer_while_rtr, DROP(drop_state)},
	{while_error, DROP(drop_state)},
};

// For each frame only the counter of its own reason changes, and no byte is written.
static void each_reason_is_counted_by_itself(void **state) {
	bed_end(state);
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct soft_counters before, after, expected;
		struct made made;
		uint64_t drop;

		bed_make(state);
		make(&made);
		assert_int_equal(soft_counters_read("soft0", &before), 0);
		cases[n].spoil(&made);
		after = arrive(&made);
		expected = before;
		expected.packets_received++;
		expected.bytes_received += made.size;
		memcpy(&drop, (char *)&expected + cases[n].drop, sizeof(drop));
		drop++;
		memcpy((char *)&expected + cases[n].drop, &drop, sizeof(drop));
		if (memcmp(&after, &expected, sizeof(after)) != 0)
			print_error("cases[%zu]\n", n);
		assert_memory_equal(&after, &expected, sizeof(after));
		assert_int_equal(here->bytes[0], 0);
		bed_end(state);
	}
	bed_make(state);
}

static void a_sound_frame_is_executed(void **state) {
	struct soft_counters counters;
	struct made made;

	(void)state;
	make(&made);
	seal(&made);
	counters = arrive(&made);
	assert_int_equal(counters.packets_received, 1);
	assert_int_equal(here->bytes[0], 0x77);
	assert_int_equal(here->bytes[PAYLOAD - 1], 0x77);
	assert_int_equal(here->bytes[PAYLOAD], 0);
}

static void a_limited_member_is_heard(void **state) {
	struct made made;

	(void)state;
	make(&made);
	made.packet.pkey = 0x7fff;
	seal(&made);
	(void)arrive(&made);
	assert_int_equal(here->bytes[0], 0x77);
}

static void a_frame_sealed_with_another_id_is_counted_as_foreign(void **state) {
	struct soft_counters counters;
	struct made made;

	(void)state;
	make(&made);
	wrong_id(&made);
	made.id_known = false;
	counters = arrive(&made);
	assert_int_equal(counters.foreign_icrc, 1);
	assert_int_equal(counters.drop_icrc, 0);
	assert_int_equal(here->bytes[0], 0x77);
}

// The frame is cut to every size, and each of its bits is flipped. No byte may be written, except
// if the ICRC does not cover the bit.
static void no_cut_or_turned_frame_writes_a_byte(void **state) {
	struct made made;
	uint32_t whole;

	(void)state;
	make(&made);
	seal(&made);
	whole = made.size;
	for (made.size = 0; made.size < whole; made.size++) {
		(void)arrive(&made);
		assert_int_equal(here->bytes[0], 0);
	}
	for (uint32_t bit = (FRAME_IP4_BYTES + FRAME_UDP_BYTES) * 8; bit < whole * 8; bit++) {
		if (bit / 8 == FRAME_IP4_BYTES + FRAME_UDP_BYTES + 4)
			continue; // resv8a is not covered by the ICRC
		frame_of(&made)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		(void)arrive(&made);
		frame_of(&made)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(here->bytes[0], 0);
	}
	(void)arrive(&made);
	assert_int_equal(here->bytes[0], 0x77);
}

UNIT_GROUP(soft_nic_frame) {
#define BED(test) cmocka_unit_test_setup_teardown(test, bed_make, bed_end)
	const struct CMUnitTest tests[] = {
		BED(each_reason_is_counted_by_itself),
		BED(a_sound_frame_is_executed),
		BED(a_limited_member_is_heard),
		BED(a_frame_sealed_with_another_id_is_counted_as_foreign),
		BED(no_cut_or_turned_frame_writes_a_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
