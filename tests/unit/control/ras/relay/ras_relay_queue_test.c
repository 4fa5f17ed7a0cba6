// SPDX-License-Identifier: BSD-3-Clause
// Queues behind a stalled link: classes, fairness, bounds, age.
#include "control/ras/relay/ras_relay_net.h"
#include "relay/relay_state.h"

#include <support/cmocka.h>

#define MS RAS_NS_PER_MS
#define TRANSIT_EVENTS 32 // half of the buffers of the class, which is the limit of one link

// Nodes 0 … 3 of a ring of nine form a line: messages of 0 and 1 to 3 pass through 2.
static struct net *line_net(void) {
	return net_create(9);
}

static int send_class(struct net *net, uint32_t from, enum ras_relay_class class, uint64_t value) {
	struct ras_relay_message message = {
		.destination = net->ids[3],
		.class = class,
		.flags = RAS_RELAY_REPORT,
		.port = NET_PORT,
		.flow = class,
		.payload = &value,
		.size = sizeof(value),
	};
	uint64_t id;

	return net_send_message(net, from, &message, &id);
}

static uint64_t full_count(struct net *net, uint32_t node, enum ras_relay_class class) {
	return ras_relay_counters(&net->nodes[node].ras)->ended[RAS_RELAY_QUEUE_FULL][class];
}

static void queue_stats(struct net *net, uint32_t node, struct ras_relay_stats *ret_stats) {
	net->nodes[node].ras.now_ns = net->now_ns;
	ras_relay_stats(&net->nodes[node].ras, ret_stats);
}

static void a_flood_pushes_out_itself_and_no_other_source(void **state) {
	struct net *net = line_net();
	struct ras_relay_stats stats;
	uint32_t others = 0;

	(void)state;
	net_wire(net, 2, 3, NET_BLOCKED);
	for (uint64_t value = 0; value < 100; value++)
		assert_int_equal(send_class(net, 1, RAS_RELAY_EVENT, value), 0);
	net_carry(net);
	queue_stats(net, 2, &stats);
	assert_int_equal(stats.queued[RAS_RELAY_EVENT], TRANSIT_EVENTS);
	assert_int_equal(full_count(net, 2, RAS_RELAY_EVENT), 100 - TRANSIT_EVENTS);
	for (uint64_t value = 0; value < 5; value++)
		assert_int_equal(send_class(net, 0, RAS_RELAY_EVENT, value), 0);
	net_carry(net);
	queue_stats(net, 2, &stats);
	assert_int_equal(stats.queued[RAS_RELAY_EVENT], TRANSIT_EVENTS);
	assert_int_equal(full_count(net, 2, RAS_RELAY_EVENT), 105 - TRANSIT_EVENTS);

	// The queues alternate, so the five are among the first ten or eleven frames.
	net_wire(net, 2, 3, NET_GOOD);
	net_carry(net);
	for (uint32_t n = 0; n < 11; n++)
		others += net->nodes[3].deliveries[n].source == net->ids[0];
	assert_int_equal(others, 5);
	net_settle(net);
	// Rejections cause retries: no message was lost.
	assert_int_equal(net->nodes[3].delivery_count, 105);
	net_destroy(net);
}

static void large_messages_get_no_more_of_a_link_than_small_ones(void **state) {
	static uint8_t large[RAS_RELAY_EVENT_BYTES_MAX];
	struct net *net = line_net();
	uint64_t bytes[2] = {0};
	uint32_t id = 0;

	(void)state;
	net_wire(net, 2, 3, NET_BLOCKED);
	for (uint32_t n = 0; n < 16; n++) {
		struct ras_relay_message message = {
			.destination = net->ids[3],
			.class = RAS_RELAY_EVENT,
			.port = NET_PORT,
			.payload = large,
			.size = sizeof(large)};
		uint64_t ret;

		assert_int_equal(net_send_message(net, 1, &message, &ret), 0);
		message.size = sizeof(large) / 4;
		assert_int_equal(net_send_message(net, 0, &message, &ret), 0);
	}
	net_carry(net);
	net_wire(net, 2, 3, NET_GOOD);
	net_carry(net);
	assert_int_equal(net->nodes[3].delivery_count, 32);
	// While both queues have messages: four small ones for each large one, as close as frames
	// allow.
	for (uint32_t n = 0; n < 20; n++, id++)
		bytes[net->nodes[3].deliveries[n].source == net->ids[0]] +=
			net->nodes[3].deliveries[n].size;
	assert_true(bytes[1] >= 3 * RAS_RELAY_EVENT_BYTES_MAX);
	assert_true(bytes[0] <= bytes[1] + 2 * RAS_RELAY_EVENT_BYTES_MAX);
	net_settle(net);
	net_destroy(net);
}

static void higher_classes_go_first_and_lower_ones_still_go(void **state) {
	struct net *net = line_net();
	uint32_t first_bulk = 0, first_event = 0;

	(void)state;
	net_wire(net, 2, 3, NET_BLOCKED);
	for (uint64_t value = 0; value < 12; value++) {
		assert_int_equal(send_class(net, 1, RAS_RELAY_BULK, value), 0);
		assert_int_equal(send_class(net, 1, RAS_RELAY_EVENT, value), 0);
		assert_int_equal(send_class(net, 1, RAS_RELAY_CONTROL, value), 0);
	}
	net_carry(net);
	net_wire(net, 2, 3, NET_GOOD);
	net_carry(net);
	assert_int_equal(net->nodes[3].delivery_count, 36);
	for (uint32_t n = 36; n-- > 0;) {
		if (net->nodes[3].deliveries[n].flow == RAS_RELAY_BULK)
			first_bulk = n;
		if (net->nodes[3].deliveries[n].flow == RAS_RELAY_EVENT)
			first_event = n;
	}
	for (uint32_t n = 0; n < 7; n++)
		assert_int_equal(net->nodes[3].deliveries[n].flow, RAS_RELAY_CONTROL);
	assert_int_equal(first_bulk, 7);   // its share
	assert_int_equal(first_event, 13); // behind the last control message
	net_settle(net);
	net_destroy(net);
}

static void bulk_behind_a_stopped_link_leaves_control_its_buffers(void **state) {
	struct net *net = line_net();
	struct ras_relay_stats stats;

	(void)state;
	net_wire(net, 2, 3, NET_BLOCKED);
	for (uint64_t value = 0; value < 60; value++)
		assert_int_equal(send_class(net, 1, RAS_RELAY_BULK, value), 0);
	assert_int_equal(send_class(net, 1, RAS_RELAY_CONTROL, 1), 0);
	net_carry(net);
	queue_stats(net, 2, &stats);
	assert_int_equal(stats.queued[RAS_RELAY_CONTROL], 1);
	assert_int_equal(stats.queued[RAS_RELAY_BULK], 16);
	assert_int_equal(full_count(net, 2, RAS_RELAY_BULK), 44);
	assert_int_equal(full_count(net, 2, RAS_RELAY_CONTROL), 0);
	net_wire(net, 2, 3, NET_GOOD);
	net_settle(net);
	net_destroy(net);
}

static void one_stopped_link_leaves_buffers_for_another(void **state) {
	struct net *net = line_net();
	struct ras_relay_stats stats;

	(void)state;
	net_wire(net, 2, 3, NET_BLOCKED);
	net_wire(net, 2, 1, NET_BLOCKED);
	net_wire(net, 4, 3, NET_BLOCKED);
	for (uint64_t value = 0; value < 100; value++)
		assert_int_equal(send_class(net, 1, RAS_RELAY_EVENT, value), 0);
	net_wire(net, 2, 1, NET_GOOD);
	net_carry(net);
	queue_stats(net, 2, &stats);
	assert_true(stats.queued[RAS_RELAY_EVENT] <= TRANSIT_EVENTS);
	net_wire(net, 2, 1, NET_BLOCKED);
	for (uint64_t value = 0; value < 10; value++)
		assert_int_equal(net_send(net, 3, 1, value), 0);
	net_wire(net, 2, 3, NET_GOOD);
	net_wire(net, 4, 3, NET_GOOD);
	net_carry(net);
	queue_stats(net, 2, &stats);
	assert_true(stats.queued[RAS_RELAY_EVENT] >= 10);
	net_wire(net, 2, 1, NET_GOOD);
	net_settle(net);
	assert_int_equal(net->nodes[1].delivery_count, 10);
	net_destroy(net);
}

static void our_own_messages_have_buffers_of_their_own(void **state) {
	struct net *net = line_net();
	struct ras_relay_stats stats;

	(void)state;
	net_wire(net, 2, 3, NET_BLOCKED);
	for (uint64_t value = 0; value < 100; value++)
		assert_int_equal(send_class(net, 1, RAS_RELAY_EVENT, value), 0);
	net_carry(net);
	assert_int_equal(send_class(net, 2, RAS_RELAY_EVENT, 1), 0);
	queue_stats(net, 2, &stats);
	assert_int_equal(stats.queued[RAS_RELAY_EVENT], TRANSIT_EVENTS + 1);
	net_wire(net, 2, 3, NET_GOOD);
	net_settle(net);
	net_destroy(net);
}

// Regression: the incident named the link of the message that got the buffer.
static void incident_of_a_full_pool_names_the_link_of_the_dropped_message(void **state) {
	struct net *net = line_net();
	const struct ras_relay_incident *incident;

	(void)state;
	net_wire(net, 2, 1, NET_BLOCKED);
	net_wire(net, 2, 3, NET_BLOCKED);
	for (uint32_t n = 0; n < relay_pool_items(RAS_RELAY_EVENT, RELAY_OWN); n++)
		assert_int_equal(net_send(net, 2, 3, n), 0);
	incident = ras_relay_incident(&net->nodes[2].ras, RAS_RELAY_QUEUE_FULL);
	assert_int_equal(incident->count, 0);
	assert_int_equal(net_send(net, 2, 1, 1), 0);
	assert_true(incident->count > 0);
	assert_int_equal(incident->destination, net->ids[3]);
	assert_int_equal(incident->hop, net->ids[3]);
	net_wire(net, 2, 1, NET_GOOD);
	net_wire(net, 2, 3, NET_GOOD);
	net_settle(net);
	net_destroy(net);
}

static void what_grows_too_old_in_a_queue_is_dropped_and_told(void **state) {
	struct net *net = line_net();
	uint64_t value = 1, id;
	struct ras_relay_message message = {
		.destination = net->ids[3],
		.class = RAS_RELAY_EVENT,
		.flags = RAS_RELAY_REPORT,
		.port = NET_PORT,
		.life_ns = 100 * MS,
		.payload = &value,
		.size = sizeof(value)};
	struct ras_relay_stats stats;

	(void)state;
	net_wire(net, 2, 3, NET_BLOCKED);
	assert_int_equal(net_send_message(net, 1, &message, &id), 0);
	net_advance(net, 60 * MS);
	queue_stats(net, 2, &stats);
	assert_int_equal(stats.oldest_ns[RAS_RELAY_EVENT], 60 * MS);
	assert_true(stats.queued_bytes[RAS_RELAY_EVENT] > sizeof(value));
	net_settle(net);
	assert_int_equal(net->now_ns, RAS_NS_PER_SEC + 100 * MS);
	assert_int_equal(net->nodes[1].report_count, 1);
	assert_int_equal(net->nodes[1].reports[0].outcome, RAS_RELAY_OUTCOME_EXPIRED);
	net_wire(net, 2, 3, NET_GOOD);
	net_carry(net);
	assert_int_equal(net->nodes[3].delivery_count, 0);
	assert_int_equal(
		ras_relay_counters(&net->nodes[2].ras)->ended[RAS_RELAY_EXPIRED][RAS_RELAY_EVENT], 1
	);
	net_destroy(net);
}

static void a_message_that_nobody_answers_expires_at_its_deadline(void **state) {
	struct net *net = line_net();

	(void)state;
	net_wire(net, 0, 1, NET_SILENT);
	net_wire(net, 0, 8, NET_SILENT);
	assert_int_equal(net_send(net, 0, 3, 1), 0);
	net_settle(net);
	assert_int_equal(net->now_ns, RAS_NS_PER_SEC + RELAY_LIFE_DEFAULT_NS);
	assert_int_equal(net->nodes[0].reports[0].outcome, RAS_RELAY_OUTCOME_EXPIRED);
	assert_int_equal(net->nodes[0].reports[0].reason, RAS_RELAY_NO_ANSWER);
	assert_int_equal(net->nodes[0].reports[0].tries, net->profile.relay_tries);
	net_destroy(net);
}

static void what_waits_for_a_link_that_is_lost_goes_another_way(void **state) {
	struct net *net = net_create(16);

	(void)state;
	net_link_long(net);
	net_wire(net, 1, 3, NET_DOWN);
	net_wire(net, 2, 3, NET_BLOCKED);
	for (uint64_t value = 0; value < 10; value++)
		assert_int_equal(net_send(net, 1, 3, value), 0);
	net_carry(net);
	assert_int_equal(net->nodes[3].delivery_count, 0);
	net_wire(net, 2, 3, NET_DOWN);
	net_carry(net);
	assert_int_equal(net->nodes[3].delivery_count, 10);
	assert_int_equal(ras_relay_counters(&net->nodes[2].ras)->rerouted, 10);
	net_settle(net);
	net_destroy(net);
}

static void a_death_empties_the_queues_of_what_was_for_it(void **state) {
	struct net *net = line_net();
	struct ras_relay_stats stats;

	(void)state;
	net_wire(net, 2, 3, NET_BLOCKED);
	for (uint64_t value = 0; value < 10; value++) {
		assert_int_equal(send_class(net, 1, RAS_RELAY_EVENT, value), 0);
		assert_int_equal(send_class(net, 0, RAS_RELAY_BULK, value), 0);
	}
	assert_int_equal(net_send(net, 1, 4, 1), 0); // passes through and waits
	net_carry(net);
	net_tell(net, 2, 3, RAS_DEAD, 1);
	queue_stats(net, 2, &stats);
	assert_int_equal(stats.queued[RAS_RELAY_EVENT] + stats.queued[RAS_RELAY_BULK], 1);
	net_wire(net, 2, 3, NET_GOOD);
	net_settle(net);
	assert_int_equal(net->nodes[4].delivery_count, 1);
	net_destroy(net);
}

// Random traffic over links that stall, are lost and return. Nothing leaks, no message is
// delivered twice, and each message has one end.
static void under_random_faults_every_message_ends_once(void **state) {
	struct net *net = net_create(16);
	uint64_t seed = 11;
	uint32_t sent = 0, ended = 0, delivered = 0;

	(void)state;
	net_link_long(net);
	for (uint32_t round = 0; round < 3000; round++) {
		uint32_t from = (uint32_t)(net_random(&seed) % net->count);
		uint32_t to = (uint32_t)(net_random(&seed) % net->count);
		uint32_t a = (uint32_t)(net_random(&seed) % net->count);
		uint32_t b = (uint32_t)(net_random(&seed) % net->count);

		sent += net_send(net, from, to, round) == 0;
		if (round % 3 == 0 && net->wires[a][b] != NET_ABSENT)
			net_wire(net, a, b, (enum net_wire)(NET_GOOD + net_random(&seed) % 4));
		if (round % 7 == 0)
			net_advance(net, net_random(&seed) % (200 * MS));
	}
	for (uint32_t a = 0; a < net->count; a++) {
		for (uint32_t b = 0; b < net->count; b++) {
			if (net->wires[a][b] != NET_ABSENT)
				net_wire(net, a, b, NET_GOOD);
		}
	}
	net_settle(net);
	for (uint32_t n = 0; n < net->count; n++) {
		const struct ras_relay_counters *counters = ras_relay_counters(&net->nodes[n].ras);
		struct ras_relay_stats stats;

		ended += net->nodes[n].report_count;
		delivered += net->nodes[n].delivery_count;
		assert_true(
			counters->outcomes[RAS_RELAY_OUTCOME_DELIVERED] <=
			counters->accepted[RAS_RELAY_EVENT]
		);
		queue_stats(net, n, &stats);
		for (uint32_t rank = 0; rank < RAS_RELAY_CLASS_COUNT; rank++)
			assert_int_equal(stats.queued[rank], 0);
	}
	assert_int_equal(ended, sent);
	assert_true(delivered <= sent && delivered > sent / 2);
	print_message("# %u sent, %u delivered under faults\n", sent, delivered);
	net_destroy(net);
}

UNIT_GROUP(ras_relay_queue) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flood_pushes_out_itself_and_no_other_source),
		cmocka_unit_test(large_messages_get_no_more_of_a_link_than_small_ones),
		cmocka_unit_test(higher_classes_go_first_and_lower_ones_still_go),
		cmocka_unit_test(bulk_behind_a_stopped_link_leaves_control_its_buffers),
		cmocka_unit_test(one_stopped_link_leaves_buffers_for_another),
		cmocka_unit_test(our_own_messages_have_buffers_of_their_own),
		cmocka_unit_test(incident_of_a_full_pool_names_the_link_of_the_dropped_message),
		cmocka_unit_test(what_grows_too_old_in_a_queue_is_dropped_and_told),
		cmocka_unit_test(a_message_that_nobody_answers_expires_at_its_deadline),
		cmocka_unit_test(what_waits_for_a_link_that_is_lost_goes_another_way),
		cmocka_unit_test(a_death_empties_the_queues_of_what_was_for_it),
		cmocka_unit_test(under_random_faults_every_message_ends_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
