// SPDX-License-Identifier: BSD-3-Clause
// The header of a relayed message, and the handling of invalid ones.
#include "control/ras/relay/ras_relay_net.h"
#include "relay/relay_state.h"

#include <support/cmocka.h>

#define FRAME_BYTES (RELAY_HEADER_BYTES + 8)

static struct relay_header sample(void) {
	return (struct relay_header){
		.header_size = RELAY_HEADER_BYTES,
		.kind = RELAY_DATA,
		.class = RAS_RELAY_BULK,
		.flags = RELAY_FLAG_ORDERED,
		.detours = 1,
		.attempt = 2,
		.hops = 1,
		.hops_left = 9,
		.life_us = 1000000,
		.source = UINT64_C(0x1122334455667788),
		.source_incarnation = ras_incarnation(1, 0),
		.destination = UINT64_C(0x99aabbccddeeff00),
		.destination_run = 1,
		.view = 5,
		.sequence = 6,
		.flow = 7,
		.port = NET_PORT,
		.behind = 2,
		.payload_size = 8,
	};
}

static void frame_of(const struct relay_header *header, uint8_t frame[static FRAME_BYTES]) {
	memset(frame, 0xa5, FRAME_BYTES);
	relay_header_encode(header, frame);
}

static void a_header_comes_back_as_it_was_written(void **state) {
	struct relay_header header = sample(), read;
	uint8_t frame[FRAME_BYTES];

	(void)state;
	memset(&read, 0, sizeof(read));
	frame_of(&header, frame);
	assert_int_equal(relay_header_decode(frame, sizeof(frame), &read), 0);
	assert_int_equal(read.hops_left, header.hops_left);
	assert_int_equal(read.life_us, header.life_us);
	assert_true(read.source == header.source && read.destination == header.destination);
	assert_int_equal(read.sequence, header.sequence);
	assert_int_equal(read.behind, header.behind);
	assert_int_equal(read.attempt, header.attempt);
	assert_int_equal(read.payload_size, 8);
}

static void a_patch_changes_its_four_fields_and_no_other_byte(void **state) {
	struct relay_header header = sample(), read;
	uint8_t frame[FRAME_BYTES], patched[FRAME_BYTES];
	uint32_t changed = 0;

	(void)state;
	frame_of(&header, frame);
	memcpy(patched, frame, sizeof(frame));
	header.detours = 0;
	header.hops = 0x1234;
	header.hops_left = 0x2345;
	header.life_us = 0x3456789a;
	relay_header_patch(patched, &header);
	for (uint32_t n = 0; n < FRAME_BYTES; n++)
		changed += frame[n] != patched[n];
	assert_true(changed <= 9);
	assert_int_equal(relay_header_decode(patched, sizeof(patched), &read), 0);
	assert_int_equal(read.detours, 0);
	assert_int_equal(read.hops, 0x1234);
	assert_int_equal(read.hops_left, 0x2345);
	assert_int_equal(read.life_us, 0x3456789a);
}

static void a_truncated_or_longer_frame_is_refused_and_writes_nothing(void **state) {
	struct relay_header header = sample(), read, untouched;
	uint8_t frame[FRAME_BYTES + 1] = {0};

	(void)state;
	memset(&untouched, 0x5a, sizeof(untouched));
	frame_of(&header, frame);
	for (size_t size = 0; size <= sizeof(frame); size++) {
		if (size == FRAME_BYTES)
			continue;
		memcpy(&read, &untouched, sizeof(read));
		assert_int_equal(relay_header_decode(frame, size, &read), -EBADMSG);
		assert_memory_equal(&read, &untouched, sizeof(read));
	}
}

static void a_longer_header_of_a_newer_version_is_read_and_passed_on(void **state) {
	struct relay_header header = sample(), read;
	uint8_t frame[RELAY_HEADER_BYTES_MAX + 8] = {0};

	(void)state;
	relay_header_encode(&header, frame);
	frame[1] = RELAY_HEADER_BYTES_MAX;
	assert_int_equal(relay_header_decode(frame, sizeof(frame), &read), 0);
	assert_int_equal(relay_packet_bytes(&read), sizeof(frame));
	frame[1] = RELAY_HEADER_BYTES_MAX + 1;
	assert_int_equal(relay_header_decode(frame, sizeof(frame), &read), -EBADMSG);
	frame[1] = RELAY_HEADER_BYTES - 1;
	assert_int_equal(relay_header_decode(frame, RELAY_HEADER_BYTES - 1 + 8, &read), -EBADMSG);
}

struct wrong {
	const char *what;
	void (*spoil)(struct relay_header *header);
};

static void no_kind(struct relay_header *header) {
	header->kind = 0;
}

static void no_class(struct relay_header *header) {
	header->class = RAS_RELAY_CLASS_COUNT;
}

static void too_long_for_its_class(struct relay_header *header) {
	header->class = RAS_RELAY_CONTROL;
	header->payload_size = RAS_RELAY_CONTROL_BYTES_MAX + 1;
}

static void nobody_as_source(struct relay_header *header) {
	header->source = 0;
}

static void nobody_as_destination(struct relay_header *header) {
	header->destination = 0;
}

static void many_detours(struct relay_header *header) {
	header->detours = 2;
}

static void public_port_without_sequence(struct relay_header *header) {
	header->sequence = 0;
	header->flags = 0;
	header->behind = 0;
}

static void before_the_first(struct relay_header *header) {
	header->behind = 6;
}

static void behind_without_order(struct relay_header *header) {
	header->flags = 0;
}

static void data_with_a_reason(struct relay_header *header) {
	header->reason = RAS_RELAY_HOPS;
}

static void nak_without_reason(struct relay_header *header) {
	header->kind = RELAY_NAK;
	header->about = 3;
}

static void nak_about_nobody(struct relay_header *header) {
	header->kind = RELAY_NAK;
	header->reason = RAS_RELAY_HOPS;
}

static void ack_without_sequence(struct relay_header *header) {
	header->kind = RELAY_ACK;
	header->about = 3;
	header->sequence = 0;
}

static void ack_with_reason(struct relay_header *header) {
	header->kind = RELAY_ACK;
	header->about = 3;
	header->reason = RAS_RELAY_HOPS;
}

static const struct wrong wrongs[] = {
	{"no kind", no_kind},
	{"no class", no_class},
	{"too long for its class", too_long_for_its_class},
	{"nobody as source", nobody_as_source},
	{"nobody as destination", nobody_as_destination},
	{"more detours than there are", many_detours},
	{"a port of others without one", public_port_without_sequence},
	{"behind what was before the first", before_the_first},
	{"behind without order", behind_without_order},
	{"data with a reason", data_with_a_reason},
	{"a NAK without", nak_without_reason},
	{"a NAK about nobody", nak_about_nobody},
	{"an ACK of no sequence", ack_without_sequence},
	{"an ACK with a reason", ack_with_reason},
};

static void fields_that_contradict_each_other_are_refused(void **state) {
	static uint8_t frame[RELAY_PACKET_BYTES_MAX];

	(void)state;
	for (size_t n = 0; n < sizeof(wrongs) / sizeof(wrongs[0]); n++) {
		struct relay_header header = sample(), read;

		wrongs[n].spoil(&header);
		relay_header_encode(&header, frame);
		if (relay_header_decode(frame, relay_packet_bytes(&header), &read) != -EBADMSG)
			fail_msg("%s was accepted", wrongs[n].what);
	}
}

// Frames as neighbour 0 would send them to node 1 of a ring of 8.

static struct relay_header from_zero(struct net *net, uint32_t to) {
	struct relay_header header = sample();

	header.source = net->ids[0];
	header.source_run = net->records[0]->run;
	header.destination = net->ids[to];
	header.destination_run = net->records[to]->run;
	header.flags = 0;
	header.behind = 0;
	return header;
}

static int arrive_from(struct net *net, uint32_t from, const struct relay_header *header) {
	uint8_t frame[FRAME_BYTES];

	frame_of(header, frame);
	net->nodes[1].ras.now_ns = net->now_ns;
	return relay_frame_received(
		&net->nodes[1].ras, net_find_link(net, 1, from), frame, sizeof(frame)
	);
}

static int arrive(struct net *net, const struct relay_header *header) {
	return arrive_from(net, 0, header);
}

static void a_neighbour_cannot_send_in_the_name_of_another(void **state) {
	struct net *net = net_create(8);
	struct relay_header header = from_zero(net, 1);

	(void)state;
	header.source = net->ids[5];
	assert_int_equal(arrive(net, &header), -EBADMSG);
	header.source = net->ids[0];
	header.hops = 0;
	assert_int_equal(arrive(net, &header), -EBADMSG);
	assert_int_equal(net->nodes[1].delivery_count, 0);
	assert_int_equal(net->frames, 0);
	net_destroy(net);
}

static void the_hop_limit_ends_a_message(void **state) {
	struct net *net = net_create(8);
	struct relay_header header = from_zero(net, 3);

	(void)state;
	header.hops_left = 0;
	assert_int_equal(arrive(net, &header), 0);
	assert_int_equal(net->frames, 1); // the NAK
	net_carry(net);
	assert_int_equal(net->nodes[3].delivery_count, 0);
	header.hops_left = 9;
	header.hops = UINT16_MAX;
	assert_int_equal(arrive(net, &header), 0);
	assert_int_equal(
		ras_relay_counters(&net->nodes[1].ras)->ended[RAS_RELAY_HOPS][RAS_RELAY_BULK], 2
	);
	net_destroy(net);
}

static void a_message_out_of_life_goes_no_further(void **state) {
	struct net *net = net_create(8);

	(void)state;
	for (uint32_t to = 1; to <= 3; to += 2) {
		struct relay_header header = from_zero(net, to);

		header.life_us = 0;
		assert_int_equal(arrive(net, &header), 0);
		assert_int_equal(net->nodes[to].delivery_count, 0);
	}
	net_carry(net);
	assert_int_equal(
		ras_relay_counters(&net->nodes[1].ras)->ended[RAS_RELAY_EXPIRED][RAS_RELAY_BULK], 2
	);
	net_destroy(net);
}

static void a_source_that_floods_is_forwarded_up_to_its_limit_and_the_others_pass(void **state) {
	struct net *net = net_create(8);
	struct ras *ras = &net->nodes[1].ras;
	const struct ras_relay_counters *counters = ras_relay_counters(ras);
	struct relay_header header = from_zero(net, 3);
	uint64_t flood = 2 * RELAY_FORWARD_MAX;

	(void)state;
	header.sequence = 0; // expects no answer
	header.port = 1;
	for (uint64_t n = 0; n < flood; n++)
		assert_int_equal(arrive(net, &header), 0);
	assert_int_equal(counters->forwarded[RAS_RELAY_BULK], RELAY_FORWARD_MAX);
	assert_int_equal(
		counters->ended[RAS_RELAY_QUEUE_FULL][RAS_RELAY_BULK], flood - RELAY_FORWARD_MAX
	);
	assert_int_equal(counters->naks_sent, 0);
	// Another source has its own counter, and the next second begins anew.
	header.source = net->ids[7];
	header.source_run = net->records[7]->run;
	header.hops = 2;
	assert_int_equal(arrive(net, &header), 0);
	assert_int_equal(counters->forwarded[RAS_RELAY_BULK], RELAY_FORWARD_MAX + 1);
	header = from_zero(net, 3);
	ras->observed_ns += RAS_NS_PER_SEC;
	assert_int_equal(arrive(net, &header), 0);
	assert_int_equal(counters->forwarded[RAS_RELAY_BULK], RELAY_FORWARD_MAX + 2);
	net_destroy(net);
}

static void a_flood_in_the_name_of_another_takes_its_share_on_that_link_alone(void **state) {
	struct net *net = net_create(8);
	const struct ras_relay_counters *counters = ras_relay_counters(&net->nodes[1].ras);
	struct relay_header header = from_zero(net, 3);

	(void)state;
	header.sequence = 0; // expects no answer
	header.port = 1;
	header.source = net->ids[7];
	header.source_run = net->records[7]->run;
	header.hops = 2;
	for (uint64_t n = 0; n <= RELAY_FORWARD_MAX; n++)
		assert_int_equal(arrive(net, &header), 0);
	assert_int_equal(counters->ended[RAS_RELAY_QUEUE_FULL][RAS_RELAY_BULK], 1);
	// The source itself sends through another neighbour.
	header.destination = net->ids[0];
	header.destination_run = net->records[0]->run;
	assert_int_equal(arrive_from(net, 2, &header), 0);
	assert_int_equal(counters->ended[RAS_RELAY_QUEUE_FULL][RAS_RELAY_BULK], 1);
	assert_int_equal(counters->forwarded[RAS_RELAY_BULK], RELAY_FORWARD_MAX + 1);
	net_destroy(net);
}

// An agent that lost its state directory may have the start counter of an earlier run.
static void a_message_of_or_for_another_run_of_the_same_number_is_refused(void **state) {
	struct net *net = net_create(8);
	const struct ras_relay_counters *counters = ras_relay_counters(&net->nodes[1].ras);
	struct relay_header header;

	(void)state;
	header = from_zero(net, 1);
	header.destination_run++;
	assert_int_equal(arrive(net, &header), 0);
	header = from_zero(net, 1);
	header.source_run++;
	assert_int_equal(arrive(net, &header), 0);
	assert_int_equal(net->nodes[1].delivery_count, 0);
	assert_int_equal(counters->ended[RAS_RELAY_WRONG_INCARNATION][RAS_RELAY_BULK], 2);
	header = from_zero(net, 1);
	assert_int_equal(arrive(net, &header), 0);
	assert_int_equal(net->nodes[1].delivery_count, 1);
	net_destroy(net);
}

// Regression: the two runs reset the window in turn, and messages of both were delivered again.
static void two_runs_of_a_stranger_of_one_number_are_not_delivered_in_turn(void **state) {
	struct net *net = net_create(8);
	const struct ras_relay_counters *counters = ras_relay_counters(&net->nodes[1].ras);
	struct relay_header header = from_zero(net, 1);

	(void)state;
	header.source = 0x5eed;
	header.hops = 3;
	for (uint32_t n = 0; n < 4; n++) {
		header.source_run = 7 + n % 2;
		assert_int_equal(arrive(net, &header), 0);
	}
	assert_int_equal(net->nodes[1].delivery_count, 1);
	assert_int_equal(counters->ended[RAS_RELAY_WRONG_INCARNATION][RAS_RELAY_BULK], 2);
	assert_int_equal(counters->ended[RAS_RELAY_DUPLICATE][RAS_RELAY_BULK], 1);
	net_destroy(net);
}

static void an_answer_is_never_answered(void **state) {
	struct net *net = net_create(8);
	static const uint8_t kinds[] = {RELAY_ACK, RELAY_NAK};

	(void)state;
	net_tell(net, 1, 3, RAS_DEAD, 1);
	for (uint32_t n = 0; n < 2; n++) {
		struct relay_header header = from_zero(net, 3);

		header.kind = kinds[n];
		header.reason = kinds[n] == RELAY_NAK ? RAS_RELAY_NO_ROUTE : 0;
		header.about = net->ids[0];
		assert_int_equal(arrive(net, &header), 0); // for a dead node
		header.destination = net->ids[1];
		header.destination_run = 9;
		assert_int_equal(arrive(net, &header), 0); // for another start of this node
	}
	assert_int_equal(net->frames, 0);
	assert_int_equal(ras_relay_counters(&net->nodes[1].ras)->replies_lost, 4);
	net_destroy(net);
}

static void a_message_to_a_dead_destination_from_nobody_known_is_dropped(void **state) {
	struct net *net = net_create(8);
	struct relay_header header = from_zero(net, 3);

	(void)state;
	net_tell(net, 1, 3, RAS_DEAD, 1);
	header.source = 4711;
	header.hops = 2;
	assert_int_equal(arrive(net, &header), 0);
	assert_int_equal(net->frames, 0);
	assert_int_equal(ras_relay_counters(&net->nodes[1].ras)->replies_lost, 1);
	net_destroy(net);
}

static void answers_to_what_was_never_sent_are_counted_and_forgotten(void **state) {
	struct net *net = net_create(8);
	struct relay_header header = from_zero(net, 1);

	(void)state;
	header.kind = RELAY_ACK;
	header.about = net->ids[0];
	assert_int_equal(arrive(net, &header), 0);
	assert_int_equal(ras_relay_counters(&net->nodes[1].ras)->replies_unknown, 1);
	net_destroy(net);
}

static void only_the_destination_can_acknowledge(void **state) {
	struct net *net = net_create(8);
	struct relay_header header = from_zero(net, 1);

	(void)state;
	assert_int_equal(net_send(net, 1, 3, 1), 0);
	header.kind = RELAY_ACK;
	header.about = net->ids[3];
	header.sequence = 1;
	header.attempt = 0;
	assert_int_equal(arrive(net, &header), 0); // from 0
	assert_int_equal(net->nodes[1].report_count, 0);
	header.kind = RELAY_NAK;
	header.reason = RAS_RELAY_HOPS;
	header.attempt = 7; // a try that was never made
	assert_int_equal(arrive(net, &header), 0);
	header.attempt = 0;
	header.reason = 200; // an unknown reason
	assert_int_equal(arrive(net, &header), 0);
	assert_int_equal(ras_relay_counters(&net->nodes[1].ras)->replies_unknown, 3);
	net_settle(net);
	assert_int_equal(net->nodes[1].reports[0].outcome, RAS_RELAY_OUTCOME_DELIVERED);
	net_destroy(net);
}

static void an_unknown_kind_is_passed_on_and_counted_where_it_ends(void **state) {
	struct net *net = net_create(8);
	struct relay_header header = from_zero(net, 2);

	(void)state;
	header.kind = 9;
	assert_int_equal(arrive(net, &header), 0);
	net_carry(net);
	assert_int_equal(net->frames, 1);
	assert_int_equal(
		ras_relay_counters(&net->nodes[2].ras)
			->ended[RAS_RELAY_UNDECODABLE][RAS_RELAY_BULK],
		1
	);
	net_destroy(net);
}

UNIT_GROUP(ras_relay_packet) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_comes_back_as_it_was_written),
		cmocka_unit_test(a_patch_changes_its_four_fields_and_no_other_byte),
		cmocka_unit_test(a_truncated_or_longer_frame_is_refused_and_writes_nothing),
		cmocka_unit_test(a_longer_header_of_a_newer_version_is_read_and_passed_on),
		cmocka_unit_test(fields_that_contradict_each_other_are_refused),
		cmocka_unit_test(a_neighbour_cannot_send_in_the_name_of_another),
		cmocka_unit_test(the_hop_limit_ends_a_message),
		cmocka_unit_test(
			a_source_that_floods_is_forwarded_up_to_its_limit_and_the_others_pass
		),
		cmocka_unit_test(a_flood_in_the_name_of_another_takes_its_share_on_that_link_alone),
		cmocka_unit_test(a_message_out_of_life_goes_no_further),
		cmocka_unit_test(a_message_of_or_for_another_run_of_the_same_number_is_refused),
		cmocka_unit_test(two_runs_of_a_stranger_of_one_number_are_not_delivered_in_turn),
		cmocka_unit_test(an_answer_is_never_answered),
		cmocka_unit_test(a_message_to_a_dead_destination_from_nobody_known_is_dropped),
		cmocka_unit_test(answers_to_what_was_never_sent_are_counted_and_forgotten),
		cmocka_unit_test(only_the_destination_can_acknowledge),
		cmocka_unit_test(an_unknown_kind_is_passed_on_and_counted_where_it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
