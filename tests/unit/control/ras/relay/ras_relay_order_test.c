// SPDX-License-Identifier: BSD-3-Clause
// Order within a flow, despite retries, detours, lost messages and full consumers.
#include "control/ras/relay/ras_relay_net.h"
#include "relay/relay_state.h"

#include <support/cmocka.h>

#include <stdlib.h>

#define MS RAS_NS_PER_MS

static int
send_ordered(struct net *net, uint32_t from, uint32_t flow, uint64_t value, uint64_t life_ns) {
	struct ras_relay_message message = {
		.destination = net->ids[3],
		.class = RAS_RELAY_EVENT,
		.flags = RAS_RELAY_REPORT | RAS_RELAY_ORDERED,
		.port = NET_PORT,
		.flow = flow,
		.life_ns = life_ns,
		.payload = &value,
		.size = sizeof(value),
	};
	uint64_t id;

	return net_send_message(net, from, &message, &id);
}

// Lose first tries of data by a pattern: bit n is the n-th data frame that 0 sends.
static bool lose_by_pattern(struct net *net, struct net_frame *frame) {
	uint64_t *pattern = net->filter_ctx;
	struct relay_header header;
	bool lost;

	assert_int_equal(relay_header_decode(frame->bytes, frame->size, &header), 0);
	if (header.kind != RELAY_DATA || frame->from != 0)
		return true;
	lost = (*pattern & 1) != 0;
	*pattern >>= 1;
	return !lost;
}

static void assert_in_order(struct net *net, uint32_t node, uint32_t count) {
	assert_int_equal(net->nodes[node].delivery_count, count);
	for (uint32_t n = 0; n < count; n++)
		assert_int_equal(net->nodes[node].deliveries[n].value, n);
}

static void messages_of_a_flow_keep_their_order_whatever_is_lost(void **state) {
	(void)state;
	for (uint64_t lost = 0; lost < 1 << 8; lost++) {
		struct net *net = net_create(8);
		uint64_t pattern = lost;

		net_link_long(net);
		net->filter = lose_by_pattern;
		net->filter_ctx = &pattern;
		for (uint64_t value = 0; value < 6; value++)
			assert_int_equal(send_ordered(net, 0, 1, value, 0), 0);
		net_settle(net);
		assert_in_order(net, 3, 6);
		net_destroy(net);
	}
}

static void order_holds_when_the_way_changes_between_two_messages(void **state) {
	struct net *net = net_create(16);

	(void)state;
	net_link_long(net);
	// The first message waits at 2 or 4, next to the destination; the others go through 1.
	net_wire(net, 2, 3, NET_BLOCKED);
	net_wire(net, 4, 3, NET_BLOCKED);
	assert_int_equal(send_ordered(net, 0, 1, 0, 0), 0);
	net_carry(net);
	net_wire(net, 0, 2, NET_DOWN);
	net_wire(net, 0, 4, NET_DOWN);
	for (uint64_t value = 1; value < 4; value++)
		assert_int_equal(send_ordered(net, 0, 1, value, 0), 0);
	net_carry(net);
	assert_int_equal(net->nodes[3].delivery_count, 0);
	assert_int_equal(ras_relay_counters(&net->nodes[3].ras)->reordered, 3);
	net_wire(net, 2, 3, NET_GOOD);
	net_wire(net, 4, 3, NET_GOOD);
	net_settle(net);
	assert_in_order(net, 3, 4);
	net_destroy(net);
}

static void unordered_messages_do_not_wait_for_a_lost_one(void **state) {
	struct net *net = net_create(8);
	uint64_t pattern = 1;

	(void)state;
	net->filter = lose_by_pattern;
	net->filter_ctx = &pattern;
	assert_int_equal(net_send(net, 0, 3, 0), 0);
	assert_int_equal(net_send(net, 0, 3, 1), 0);
	net_carry(net);
	assert_int_equal(net->nodes[3].delivery_count, 1);
	net_settle(net);
	assert_int_equal(net->nodes[3].deliveries[1].value, 0);
	net_destroy(net);
}

static void one_flow_does_not_wait_for_another(void **state) {
	struct net *net = net_create(8);
	uint64_t pattern = 1;

	(void)state;
	net->filter = lose_by_pattern;
	net->filter_ctx = &pattern;
	assert_int_equal(send_ordered(net, 0, 1, 0, 0), 0);
	assert_int_equal(send_ordered(net, 0, 2, 1, 0), 0);
	assert_int_equal(send_ordered(net, 1, 1, 2, 0), 0);
	net_carry(net);
	assert_int_equal(net->nodes[3].delivery_count, 2);
	net_settle(net);
	assert_int_equal(net->nodes[3].delivery_count, 3);
	net_destroy(net);
}

// Keep the first data frame that 0 sends, to deliver it later.
static bool keep_first(struct net *net, struct net_frame *frame) {
	struct net_frame **kept = net->filter_ctx;

	if (*kept != NULL || frame->from != 0)
		return true;
	*kept = malloc(sizeof(*frame) + frame->size);
	assert_non_null(*kept);
	memcpy(*kept, frame, sizeof(*frame) + frame->size);
	return false;
}

static void one_that_was_given_up_is_left_out_and_does_not_come_later(void **state) {
	struct net *net = net_create(8);
	struct net_frame *kept = NULL;

	(void)state;
	net->filter = keep_first;
	net->filter_ctx = &kept;
	// Its lifetime ends before its first retry.
	assert_int_equal(send_ordered(net, 0, 1, 99, 300 * MS), 0);
	for (uint64_t value = 0; value < 3; value++)
		assert_int_equal(send_ordered(net, 0, 1, value, 0), 0);
	net_settle(net);
	assert_in_order(net, 3, 3);
	assert_int_equal(net->nodes[0].reports[0].outcome, RAS_RELAY_OUTCOME_EXPIRED);
	assert_non_null(kept);
	assert_int_equal(
		relay_frame_received(
			&net->nodes[kept->to].ras, net_find_link(net, kept->to, 0), kept->bytes,
			kept->size
		),
		0
	);
	net_carry(net);
	assert_in_order(net, 3, 3);
	assert_int_equal(
		ras_relay_counters(&net->nodes[3].ras)->ended[RAS_RELAY_LATE][RAS_RELAY_EVENT], 1
	);
	free(kept);
	net_destroy(net);
}

static void order_holds_while_the_consumer_is_full_or_missing(void **state) {
	static const int results[] = {-EAGAIN, -ENOENT};

	(void)state;
	for (uint32_t row = 0; row < 2; row++) {
		struct net *net = net_create(8);

		net->nodes[3].deliver_result = results[row];
		for (uint64_t value = 0; value < 5; value++)
			assert_int_equal(send_ordered(net, 0, 1, value, 0), 0);
		net_advance(net, 100 * MS);
		net->nodes[3].deliver_result = 0;
		ras_relay_port_ready(&net->nodes[3].ras, net->now_ns, NET_PORT);
		net_settle(net);
		assert_in_order(net, 3, 5);
		net_destroy(net);
	}
}

static void a_refused_message_does_not_hold_up_those_behind_it(void **state) {
	struct net *net = net_create(8);

	(void)state;
	net->nodes[3].deliver_result = -EBADMSG;
	assert_int_equal(send_ordered(net, 0, 1, 99, 0), 0);
	net_carry(net);
	net->nodes[3].deliver_result = 0;
	for (uint64_t value = 0; value < 3; value++)
		assert_int_equal(send_ordered(net, 0, 1, value, 0), 0);
	net_settle(net);
	assert_in_order(net, 3, 3);
	net_destroy(net);
}

static void flows_are_bounded_per_source_and_refused_beyond(void **state) {
	struct net *net = net_create(8);
	struct ras_relay_stats stats;

	(void)state;
	for (uint32_t flow = 0; flow <= RELAY_SOURCE_FLOWS_MAX; flow++) {
		assert_int_equal(send_ordered(net, 0, flow, flow, RAS_NS_PER_SEC), 0);
		net_carry(net);
	}
	ras_relay_stats(&net->nodes[3].ras, &stats);
	assert_int_equal(stats.flows, RELAY_SOURCE_FLOWS_MAX);
	assert_int_equal(net->nodes[3].delivery_count, RELAY_SOURCE_FLOWS_MAX);
	net_settle(net);
	assert_int_equal(
		net->nodes[0].reports[RELAY_SOURCE_FLOWS_MAX].reason, RAS_RELAY_QUEUE_FULL
	);
	net_destroy(net);
}

UNIT_GROUP(ras_relay_order) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_a_flow_keep_their_order_whatever_is_lost),
		cmocka_unit_test(order_holds_when_the_way_changes_between_two_messages),
		cmocka_unit_test(unordered_messages_do_not_wait_for_a_lost_one),
		cmocka_unit_test(one_flow_does_not_wait_for_another),
		cmocka_unit_test(one_that_was_given_up_is_left_out_and_does_not_come_later),
		cmocka_unit_test(order_holds_while_the_consumer_is_full_or_missing),
		cmocka_unit_test(a_refused_message_does_not_hold_up_those_behind_it),
		cmocka_unit_test(flows_are_bounded_per_source_and_refused_beyond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
