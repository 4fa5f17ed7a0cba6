// SPDX-License-Identifier: BSD-3-Clause
// Tests of ARP and Neighbour Discovery: one end parses what the other sends, and invalid messages
// are refused.
#include "packet/frame.h"
#include "wire/link.h"
#include "wire/neighbour.h"

#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

#define ARP_SIZE 42
#define ND_SIZE 86

static const struct link_host ann = {
	.gid = {.raw = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}},
	.mac = {0x02, 0, 0, 0, 0, 0x01},
};
static const struct link_host bob = {
	.gid = {.raw = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 2}},
	.mac = {0x02, 0, 0, 0, 0, 0x02},
};
static const struct link_host ann6 = {
	.gid = {.raw = {0x20, 0x01, 0x0d, 0xb8, [15] = 0x01}},
	.mac = {0x02, 0, 0, 0, 0, 0x01},
};
static const struct link_host bob6 = {
	.gid = {.raw = {0x20, 0x01, 0x0d, 0xb8, [13] = 0xaa, 0xbb, 0xcc}},
	.mac = {0x02, 0, 0, 0, 0, 0x02},
};
// As in RFC 826: 10.0.0.1 with MAC 3a:91:b1:05:4e:5c asks for 10.0.0.2.
static const uint8_t rfc_question[ARP_SIZE] = {
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3a, 0x91, 0xb1, 0x05, 0x4e, 0x5c, 0x08, 0x06,
	0x00, 0x01, 0x08, 0x00, 0x06, 0x04, 0x00, 0x01, 0x3a, 0x91, 0xb1, 0x05, 0x4e, 0x5c,
	0x0a, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x02,
};

static int parse_arp(const uint8_t *frame, size_t size, struct link_message *ret_talk) {
	return arp_parse(frame + LINK_HEADER_BYTES, size - LINK_HEADER_BYTES, ret_talk);
}

static int parse_nd(const uint8_t *frame, size_t size, struct link_message *ret_talk) {
	return nd_parse(frame + LINK_HEADER_BYTES, size - LINK_HEADER_BYTES, ret_talk);
}

static void assert_told(const struct link_message *talk, const struct link_host *who) {
	assert_true(talk->mac_known);
	assert_memory_equal(talk->mac, who->mac, sizeof(who->mac));
	assert_memory_equal(talk->about.raw, who->gid.raw, sizeof(who->gid.raw));
}

static void an_arp_question_and_its_answer_are_understood(void **state) {
	uint8_t question[LINK_MESSAGE_BYTES_MAX], answer[LINK_MESSAGE_BYTES_MAX];
	struct link_message talk;

	(void)state;
	assert_int_equal(arp_build_request(&ann, &bob.gid, question), ARP_SIZE);
	assert_int_equal(parse_arp(question, ARP_SIZE, &talk), 0);
	assert_true(talk.asks);
	assert_told(&talk, &ann);
	assert_memory_equal(talk.target.raw, bob.gid.raw, sizeof(bob.gid.raw));
	assert_int_equal(arp_build_reply(&bob, &talk, answer), ARP_SIZE);
	assert_memory_equal(answer, ann.mac, sizeof(ann.mac));
	assert_int_equal(parse_arp(answer, ARP_SIZE, &talk), 0);
	assert_false(talk.asks);
	assert_told(&talk, &bob);
}

static void a_question_is_as_the_rfc_has_it(void **state) {
	static const struct link_host asker = {
		.gid = {.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}},
		.mac = {0x3a, 0x91, 0xb1, 0x05, 0x4e, 0x5c},
	};
	static const union ibv_gid sought = {.raw = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}};
	uint8_t frame[LINK_MESSAGE_BYTES_MAX];

	(void)state;
	assert_int_equal(arp_build_request(&asker, &sought, frame), ARP_SIZE);
	assert_memory_equal(frame, rfc_question, ARP_SIZE);
}

static void an_arp_that_nobody_may_send_is_refused(void **state) {
	static const struct {
		uint32_t at;
		uint8_t value;
		int err;
	} rows[] = {
		{15, 6, -EBADMSG},    // not Ethernet
		{16, 0x86, -EBADMSG}, // not IPv4
		{18, 8, -EBADMSG},    // hardware addresses of 8 bytes
		{19, 16, -EBADMSG},   // protocol addresses of 16 bytes
		{21, 0, -EBADMSG},    // invalid operation
		{21, 8, -EBADMSG},    // InARP
		{22, 0x01, -EBADMSG}, // the sender's MAC is multicast
		{28, 224, -EBADMSG},  // the sender's IP is multicast
		{28, 127, -EBADMSG},  // the sender's IP is a loopback address
		{28, 0, -EBADMSG},    // 0.0.2.1
	};
	struct link_message talk;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t frame[LINK_MESSAGE_BYTES_MAX];

		arp_build_request(&ann, &bob.gid, frame);
		frame[rows[i].at] = rows[i].value;
		assert_int_equal(parse_arp(frame, ARP_SIZE, &talk), rows[i].err);
	}
}

static void a_cut_message_is_refused_wherever_it_is_cut(void **state) {
	uint8_t arp[LINK_MESSAGE_BYTES_MAX], nd[LINK_MESSAGE_BYTES_MAX];
	struct link_message talk;

	(void)state;
	arp_build_request(&ann, &bob.gid, arp);
	nd_build_solicitation(&ann6, &bob6.gid, nd);
	for (size_t size = LINK_HEADER_BYTES; size < ARP_SIZE; size++)
		assert_int_equal(parse_arp(arp, size, &talk), -EMSGSIZE);
	for (size_t size = LINK_HEADER_BYTES; size < ND_SIZE; size++)
		assert_int_equal(parse_nd(nd, size, &talk), -EMSGSIZE);
}

static void a_probe_teaches_nothing(void **state) {
	uint8_t frame[LINK_MESSAGE_BYTES_MAX];
	struct link_message talk;

	(void)state;
	arp_build_request(&ann, &bob.gid, frame);
	memset(frame + 28, 0, 4);
	assert_int_equal(parse_arp(frame, ARP_SIZE, &talk), 0);
	assert_true(talk.asks);
	assert_int_equal(talk.about.global.interface_id, 0);
	// An answer without a sender address is refused.
	frame[21] = 2;
	assert_int_equal(parse_arp(frame, ARP_SIZE, &talk), -EBADMSG);
}

static void a_solicitation_and_its_advertisement_are_understood(void **state) {
	static const uint8_t group[] = {0x33, 0x33, 0xff, 0xaa, 0xbb, 0xcc};
	uint8_t question[LINK_MESSAGE_BYTES_MAX], answer[LINK_MESSAGE_BYTES_MAX];
	struct link_message talk;

	(void)state;
	assert_int_equal(nd_build_solicitation(&ann6, &bob6.gid, question), ND_SIZE);
	assert_memory_equal(question, group, sizeof(group));
	assert_int_equal(parse_nd(question, ND_SIZE, &talk), 0);
	assert_true(talk.asks);
	assert_told(&talk, &ann6);
	assert_memory_equal(talk.target.raw, bob6.gid.raw, sizeof(bob6.gid.raw));
	assert_int_equal(nd_build_advertisement(&bob6, &talk, answer), ND_SIZE);
	assert_memory_equal(answer, ann6.mac, sizeof(ann6.mac));
	assert_int_equal(parse_nd(answer, ND_SIZE, &talk), 0);
	assert_false(talk.asks);
	assert_told(&talk, &bob6);
}

static void an_unasked_advertisement_goes_to_all_nodes(void **state) {
	static const uint8_t all[] = {0x33, 0x33, 0, 0, 0, 1};
	uint8_t frame[LINK_MESSAGE_BYTES_MAX];
	struct link_message talk;

	(void)state;
	assert_int_equal(nd_build_advertisement(&bob6, NULL, frame), ND_SIZE);
	assert_memory_equal(frame, all, sizeof(all));
	assert_int_equal(parse_nd(frame, ND_SIZE, &talk), 0);
	assert_told(&talk, &bob6);
}

// Recompute the checksum after a change, so that the message is refused for the change itself.
static void mend(uint8_t *frame) {
	uint8_t *ip = frame + LINK_HEADER_BYTES, *message = ip + FRAME_IP6_BYTES;
	uint32_t total = 58 + 32;

	message[2] = 0;
	message[3] = 0;
	for (uint32_t at = 8; at < FRAME_IP6_BYTES + 32; at += 2)
		total += link_get16(ip + at);
	while (total > UINT16_MAX)
		total = (total & UINT16_MAX) + (total >> 16);
	link_put16(message + 2, (uint16_t)~total);
}

static void a_discovery_that_nobody_may_send_is_refused(void **state) {
	static const struct {
		uint32_t at;
		uint8_t value;
	} rows[] = {
		{20, 6},    // not ICMPv6
		{21, 254},  // was forwarded by a router
		{54, 128},  // echo request
		{55, 1},    // nonzero code
		{62, 0xff}, // the target is multicast
		{22, 0xff}, // the source is multicast
		{79, 0},    // an option without length
		{79, 2},    // the option exceeds the message
		{80, 0x33}, // the option has a multicast MAC
	};
	struct link_message talk;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t frame[LINK_MESSAGE_BYTES_MAX];

		nd_build_solicitation(&ann6, &bob6.gid, frame);
		frame[rows[i].at] = rows[i].value;
		mend(frame);
		assert_int_equal(parse_nd(frame, ND_SIZE, &talk), -EBADMSG);
	}
}

static void a_wrong_checksum_is_refused(void **state) {
	uint8_t frame[LINK_MESSAGE_BYTES_MAX];
	struct link_message talk;

	(void)state;
	nd_build_solicitation(&ann6, &bob6.gid, frame);
	frame[LINK_HEADER_BYTES + FRAME_IP6_BYTES + 2] ^= 0x10;
	assert_int_equal(parse_nd(frame, ND_SIZE, &talk), -EBADMSG);
}

static const struct link_message told_of_bob = {
	.mac_known = true,
	.about = {.raw = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 2}},
	.mac = {0x02, 0, 0, 0, 0, 0x02},
};
static struct neighbour_table table;

static int empty_table(void **state) {
	(void)state;
	memset(&table, 0, sizeof(table));
	return 0;
}

static void a_neighbour_is_asked_for_now_and_then_until_it_answers(void **state) {
	uint64_t now_ns = 1000;
	struct neighbour *place;
	void *held;
	bool ask;

	(void)state;
	place = neighbour_get(&table, &bob.gid, now_ns, &held);
	assert_false(neighbour_is_usable(place, now_ns, &ask));
	assert_true(ask);
	assert_false(neighbour_is_usable(place, now_ns + NEIGHBOUR_REQUEST_NS - 1, &ask));
	assert_false(ask);
	assert_false(neighbour_is_usable(place, now_ns + NEIGHBOUR_REQUEST_NS, &ask));
	assert_true(ask);
	assert_ptr_equal(neighbour_learn(&table, &told_of_bob, false, now_ns, &held), place);
	assert_true(neighbour_is_usable(place, now_ns + 1, &ask));
	assert_false(ask);
	assert_memory_equal(place->mac, bob.mac, sizeof(bob.mac));
}

static void an_old_neighbour_is_used_while_it_is_asked_and_then_no_more(void **state) {
	uint64_t now_ns = 1000 + NEIGHBOUR_FRESH_NS;
	struct neighbour *place;
	void *held;
	bool ask;

	(void)state;
	place = neighbour_learn(&table, &told_of_bob, true, 1000, &held);
	assert_true(neighbour_is_usable(place, now_ns, &ask));
	assert_true(ask);
	assert_false(neighbour_is_usable(place, now_ns + NEIGHBOUR_GRACE_NS, &ask));
	assert_true(ask);
}

static void strangers_fill_nothing(void **state) {
	struct link_message talk = told_of_bob;
	void *held;

	(void)state;
	for (uint32_t i = 0; i < 10000; i++) {
		talk.about.raw[14] = (uint8_t)(i >> 8);
		talk.about.raw[15] = (uint8_t)i;
		assert_null(neighbour_learn(&table, &talk, false, i, &held));
	}
	talk.mac_known = false;
	assert_null(neighbour_learn(&table, &talk, true, 1, &held));
}

static void the_table_is_bounded_and_tells_what_was_held(void **state) {
	union ibv_gid gid = bob.gid;
	uint32_t given_back = 0;
	void *held;

	(void)state;
	for (uint32_t i = 0; i < 10000; i++) {
		gid.raw[14] = (uint8_t)(i >> 8);
		gid.raw[15] = (uint8_t)i;
		neighbour_get(&table, &gid, 1 + i, &held)->held = &table;
		given_back += held != NULL;
	}
	assert_int_equal(given_back, 10000 - NEIGHBOUR_SETS * NEIGHBOUR_WAYS);
	// The latest entry is never evicted.
	assert_ptr_equal(neighbour_get(&table, &gid, 10001, &held)->held, &table);
	assert_null(held);
}

UNIT_GROUP(soft_link) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_arp_question_and_its_answer_are_understood),
		cmocka_unit_test(a_question_is_as_the_rfc_has_it),
		cmocka_unit_test(an_arp_that_nobody_may_send_is_refused),
		cmocka_unit_test(a_cut_message_is_refused_wherever_it_is_cut),
		cmocka_unit_test(a_probe_teaches_nothing),
		cmocka_unit_test(a_solicitation_and_its_advertisement_are_understood),
		cmocka_unit_test(an_unasked_advertisement_goes_to_all_nodes),
		cmocka_unit_test(a_discovery_that_nobody_may_send_is_refused),
		cmocka_unit_test(a_wrong_checksum_is_refused),
		cmocka_unit_test_setup(
			a_neighbour_is_asked_for_now_and_then_until_it_answers, empty_table
		),
		cmocka_unit_test_setup(
			an_old_neighbour_is_used_while_it_is_asked_and_then_no_more, empty_table
		),
		cmocka_unit_test_setup(strangers_fill_nothing, empty_table),
		cmocka_unit_test_setup(the_table_is_bounded_and_tells_what_was_held, empty_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
