// SPDX-License-Identifier: BSD-3-Clause
// Guarantees to sender and receiver, one per test.
#include "control/ras/relay/ras_relay_net.h"
#include "relay/relay_state.h"

#include <support/cmocka.h>

#define MS RAS_NS_PER_MS

static struct net_delivery *delivery_at(struct net *net, uint32_t node, uint32_t n) {
	assert_true(n < net->nodes[node].delivery_count);
	return &net->nodes[node].deliveries[n];
}

static const struct ras_relay_report *only_report(struct net *net, uint32_t node) {
	assert_int_equal(net->nodes[node].report_count, 1);
	return &net->nodes[node].reports[0];
}

static const struct ras_relay_counters *counters_of(struct net *net, uint32_t node) {
	return ras_relay_counters(&net->nodes[node].ras);
}

static uint64_t ended(struct net *net, uint32_t node, enum ras_relay_reason reason) {
	uint64_t count = 0;

	for (uint32_t rank = 0; rank < RAS_RELAY_CLASS_COUNT; rank++)
		count += counters_of(net, node)->ended[reason][rank];
	return count;
}

static struct ras_relay_message message_to(struct net *net, uint32_t to, const uint64_t *value) {
	return (struct ras_relay_message){
		.destination = net->ids[to],
		.class = RAS_RELAY_EVENT,
		.flags = RAS_RELAY_REPORT,
		.port = NET_PORT,
		.payload = value,
		.size = sizeof(*value),
	};
}

// Filters

static uint8_t frame_kind(const struct net_frame *frame) {
	struct relay_header header;

	assert_int_equal(relay_header_decode(frame->bytes, frame->size, &header), 0);
	return header.kind;
}

// Lose frames by the context: [kind, count].
static bool lose_some(struct net *net, struct net_frame *frame) {
	uint32_t *left = net->filter_ctx;

	if (frame_kind(frame) != left[0] || left[1] == 0)
		return true;
	left[1]--;
	return false;
}

// Acceptance

static void send_refuses_what_it_cannot_carry_and_leaves_the_id_alone(void **state) {
	uint64_t value = 1;
	struct net *net = net_create(4);
	const struct {
		struct ras_relay_message change;
		int expected;
	} rows[] = {
		{{.class = RAS_RELAY_CLASS_COUNT, .port = NET_PORT}, -EINVAL},
		{{.port = RAS_RELAY_PORT_MIN - 1}, -EINVAL},
		{{.port = 0}, -EINVAL},
		{{.port = NET_PORT, .flags = 0x80}, -EINVAL},
		{{.port = NET_PORT, .life_ns = RAS_RELAY_LIFE_MAX_NS + 1}, -EINVAL},
		{{.port = NET_PORT, .size = RAS_RELAY_CONTROL_BYTES_MAX + 1}, -EMSGSIZE},
		{{.port = NET_PORT,
		  .class = RAS_RELAY_EVENT,
		  .size = RAS_RELAY_EVENT_BYTES_MAX + 1},
		 -EMSGSIZE},
		{{.port = NET_PORT, .class = RAS_RELAY_BULK, .size = SIZE_MAX}, -EMSGSIZE},
		{{.port = NET_PORT, .destination = 12345}, -ENOENT},
		{{.port = NET_PORT, .destination = net->ids[2]}, -EHOSTDOWN},
	};

	(void)state;
	net_tell(net, 0, 2, RAS_DEAD, 1);
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct ras_relay_message message = rows[n].change;
		uint64_t id = 77;

		message.payload = &value;
		assert_int_equal(net_send_message(net, 0, &message, &id), rows[n].expected);
		assert_int_equal(id, 77);
	}
	assert_int_equal(net->frames, 0);
	net_destroy(net);
}

static void too_many_on_their_way_are_refused_until_one_has_ended(void **state) {
	struct net *net = net_create(4);
	uint32_t accepted = 0;

	(void)state;
	net_wire(net, 0, 1, NET_SILENT);
	net_wire(net, 0, 3, NET_SILENT);
	while (net_send(net, 0, 1, accepted) == 0)
		accepted++;
	// The window of one destination; the others share the rest of the total.
	assert_int_equal(accepted, RELAY_WINDOW);
	assert_int_equal(net_send(net, 0, 1, 1), -EAGAIN);
	assert_int_equal(net_send(net, 0, 2, 1), -EAGAIN);
	net_wire(net, 0, 1, NET_GOOD);
	net_wire(net, 0, 3, NET_GOOD);
	net_settle(net);
	assert_int_equal(net->nodes[1].delivery_count, accepted);
	assert_int_equal(net_send(net, 0, 1, 1), 0);
	net_settle(net);
	net_destroy(net);
}

static void without_memory_nothing_is_accepted_and_nothing_breaks(void **state) {
	struct net *net = net_create(4);

	(void)state;
	net_memory_fail(true);
	assert_true(net_send(net, 0, 1, 1) < 0);
	net_memory_fail(false);
	assert_int_equal(net_send(net, 0, 1, 1), 0);
	net_memory_fail(true);
	net_carry(net);
	net_memory_fail(false);
	// The receiver had no memory for the source: a rejection, and then the retry.
	net_settle(net);
	assert_int_equal(only_report(net, 0)->outcome, RAS_RELAY_OUTCOME_DELIVERED);
	assert_int_equal(only_report(net, 0)->tries, 2);
	net_destroy(net);
}

static void a_message_to_oneself_is_delivered_by_the_next_tick(void **state) {
	struct net *net = net_create(4);

	(void)state;
	assert_int_equal(net_send(net, 1, 1, 42), 0);
	assert_int_equal(net->nodes[1].delivery_count, 0);
	assert_true(relay_next_ns(&net->nodes[1].ras) <= net->now_ns);
	net_advance(net, 0);
	assert_int_equal(delivery_at(net, 1, 0)->value, 42);
	assert_int_equal(delivery_at(net, 1, 0)->hops, 0);
	assert_int_equal(only_report(net, 1)->outcome, RAS_RELAY_OUTCOME_DELIVERED);
	assert_int_equal(net->frames, 0);
	net_destroy(net);
}

static void a_failed_direct_link_falls_through_to_the_others(void **state) {
	struct net *net = net_create(8);

	(void)state;
	net_link_long(net);
	net_wire(net, 0, 1, NET_DOWN);
	assert_int_equal(net_send(net, 0, 1, 42), 0);
	net_settle(net);
	assert_int_equal(only_report(net, 0)->outcome, RAS_RELAY_OUTCOME_DELIVERED);
	assert_int_equal(only_report(net, 0)->tries, 1);
	assert_int_equal(only_report(net, 0)->hops, 2);
	net_destroy(net);
}

static void whoever_leaves_sends_no_more_and_asks_for_no_tick(void **state) {
	struct net *net = net_create(4);
	struct ras *ras = &net->nodes[0].ras;

	(void)state;
	assert_int_equal(net_send(net, 0, 1, 1), 0);
	assert_true(relay_next_ns(ras) != RAS_NEVER);
	ras->leaving = true;
	assert_int_equal(net_send(net, 0, 1, 2), -ESHUTDOWN);
	assert_true(relay_next_ns(ras) == RAS_NEVER);
	net_carry(net);
	assert_int_equal(net->nodes[1].delivery_count, 1);
	net_destroy(net);
}

static void a_cancelled_message_is_not_tried_again_nor_reported(void **state) {
	uint64_t value = 1, id = 0;
	struct net *net = net_create(4);
	struct ras_relay_message message = message_to(net, 1, &value);
	uint64_t frames;

	(void)state;
	net_wire(net, 0, 1, NET_SILENT);
	net_wire(net, 0, 3, NET_SILENT);
	assert_int_equal(net_send_message(net, 0, &message, &id), 0);
	net_carry(net);
	frames = net->frames;
	assert_int_equal(ras_relay_cancel(&net->nodes[0].ras, net->now_ns, id), 0);
	assert_int_equal(ras_relay_cancel(&net->nodes[0].ras, net->now_ns, id), -ENOENT);
	net_advance(net, 20 * RAS_NS_PER_SEC);
	assert_int_equal(net->frames, frames);
	assert_int_equal(net->nodes[0].report_count, 0);
	net_destroy(net);
}

// Delivery only once

static void a_lost_answer_brings_a_retry_and_no_second_delivery(void **state) {
	uint32_t lose[2] = {RELAY_ACK, 2};
	struct net *net = net_create(8);

	(void)state;
	net->filter = lose_some;
	net->filter_ctx = lose;
	assert_int_equal(net_send(net, 0, 3, 42), 0);
	net_settle(net);
	assert_int_equal(net->nodes[3].delivery_count, 1);
	assert_int_equal(only_report(net, 0)->outcome, RAS_RELAY_OUTCOME_DELIVERED);
	assert_int_equal(only_report(net, 0)->tries, 3);
	assert_int_equal(ended(net, 3, RAS_RELAY_DUPLICATE), 2);
	net_destroy(net);
}

static bool bring_twice(struct net *net, struct net_frame *frame) {
	struct ras *ras = &net->nodes[frame->to].ras;

	relay_frame_received(
		ras, net_find_link(net, frame->to, frame->from), frame->bytes, frame->size
	);
	return true;
}

static void a_frame_that_a_link_brings_twice_is_delivered_once(void **state) {
	struct net *net = net_create(8);

	(void)state;
	net->filter = bring_twice;
	for (uint64_t value = 0; value < 300; value++) {
		assert_int_equal(net_send(net, 0, 2, value), 0);
		net_settle(net);
	}
	assert_int_equal(net->nodes[2].delivery_count, 300);
	net->filter = NULL;
	net_destroy(net);
}

static void the_window_tells_fresh_delivered_refused_and_too_old_apart(void **state) {
	struct relay_source source = {0};

	(void)state;
	assert_int_equal(relay_source_seen(&source, 1), RELAY_FRESH);
	relay_source_decide(&source, 1, false);
	relay_source_decide(&source, 3, true);
	assert_int_equal(relay_source_seen(&source, 1), RELAY_DELIVERED);
	assert_int_equal(relay_source_seen(&source, 2), RELAY_FRESH);
	assert_int_equal(relay_source_seen(&source, 3), RELAY_REFUSED);
	relay_source_decide(&source, RELAY_WINDOW + 2, false);
	assert_int_equal(relay_source_seen(&source, 2), RELAY_REFUSED);
	assert_int_equal(relay_source_seen(&source, 3), RELAY_REFUSED);
	assert_int_equal(relay_source_seen(&source, 4), RELAY_FRESH);
	relay_source_decide(&source, UINT64_MAX, false);
	for (uint64_t n = 1; n < RELAY_WINDOW; n++)
		assert_int_equal(relay_source_seen(&source, UINT64_MAX - n), RELAY_FRESH);
	assert_int_equal(relay_source_seen(&source, UINT64_MAX), RELAY_DELIVERED);
}

// Delivery to one start of one agent only

static void a_message_for_an_older_start_is_refused(void **state) {
	struct net *net = net_create(8);

	(void)state;
	net_tell(net, 3, 3, RAS_ALIVE, 2);
	assert_int_equal(net_send(net, 0, 3, 42), 0);
	net_settle(net);
	assert_int_equal(net->nodes[3].delivery_count, 0);
	assert_int_equal(only_report(net, 0)->outcome, RAS_RELAY_OUTCOME_REFUSED);
	assert_int_equal(only_report(net, 0)->reason, RAS_RELAY_WRONG_INCARNATION);
	assert_true(only_report(net, 0)->refuser == net->ids[3]);
	net_destroy(net);
}

static void a_message_from_an_older_start_is_refused(void **state) {
	struct net *net = net_create(8);

	(void)state;
	net_tell(net, 3, 0, RAS_ALIVE, 2);
	assert_int_equal(net_send(net, 0, 3, 42), 0);
	net_carry(net);
	assert_int_equal(net->nodes[3].delivery_count, 0);
	assert_int_equal(ended(net, 3, RAS_RELAY_WRONG_INCARNATION), 1);
	net_destroy(net);
}

static void a_new_start_of_the_source_has_a_fresh_window(void **state) {
	struct net *net = net_create(4);

	(void)state;
	for (uint64_t start = 1; start <= 3; start++) {
		net_tell(net, 0, 0, RAS_ALIVE, start);
		net_tell(net, 1, 0, RAS_ALIVE, start);
		// The new start numbers its messages from 1.
		relay_destroy(&net->nodes[0].ras);
		assert_int_equal(relay_create(&net->nodes[0].ras), 0);
		assert_int_equal(net_send(net, 0, 1, start), 0);
		net_settle(net);
		assert_int_equal(net->nodes[1].delivery_count, start);
	}
	net_destroy(net);
}

static void the_death_of_the_destination_ends_what_is_on_its_way(void **state) {
	struct net *net = net_create(4);

	(void)state;
	net_wire(net, 0, 1, NET_BLOCKED);
	assert_int_equal(net_send(net, 0, 1, 42), 0);
	net_tell(net, 0, 1, RAS_DEAD, 1);
	net_advance(net, 0);
	assert_int_equal(only_report(net, 0)->outcome, RAS_RELAY_OUTCOME_REFUSED);
	assert_int_equal(only_report(net, 0)->reason, RAS_RELAY_DESTINATION_DOWN);
	net_destroy(net);
}

static void a_node_between_that_knows_of_the_death_refuses(void **state) {
	struct net *net = net_create(8);

	(void)state;
	net_tell(net, 1, 3, RAS_DEAD, 1);
	net_tell(net, 7, 3, RAS_DEAD, 1);
	assert_int_equal(net_send(net, 0, 3, 42), 0);
	net_settle(net);
	assert_int_equal(only_report(net, 0)->outcome, RAS_RELAY_OUTCOME_REFUSED);
	assert_int_equal(only_report(net, 0)->reason, RAS_RELAY_DESTINATION_DOWN);
	net_destroy(net);
}

static void no_way_on_with_another_table_is_called_a_stale_view(void **state) {
	struct net *net = net_create(8);

	(void)state;
	net_tell(net, 1, 6, RAS_LEFT, 1); // so that the tables of 1 and 0 differ
	net_wire(net, 1, 2, NET_DOWN);
	net_wire(net, 0, 7, NET_DOWN);
	assert_int_equal(net_send(net, 0, 2, 42), 0);
	net_settle(net);
	assert_int_equal(only_report(net, 0)->outcome, RAS_RELAY_OUTCOME_REFUSED);
	assert_int_equal(only_report(net, 0)->reason, RAS_RELAY_STALE_VIEW);
	net_destroy(net);
}

// Consumers

static void an_early_message_waits_for_its_port(void **state) {
	struct net *net = net_create(4);
	struct ras_relay_stats stats;

	(void)state;
	net->nodes[1].deliver_result = -ENOENT;
	assert_int_equal(net_send(net, 0, 1, 42), 0);
	net_advance(net, 900 * MS); // a retry in between creates no second copy
	ras_relay_stats(&net->nodes[1].ras, &stats);
	assert_int_equal(stats.held, 1);
	net->nodes[1].deliver_result = 0;
	ras_relay_port_ready(&net->nodes[1].ras, net->now_ns, NET_PORT + 1);
	assert_int_equal(net->nodes[1].delivery_count, 0);
	ras_relay_port_ready(&net->nodes[1].ras, net->now_ns, NET_PORT);
	net_settle(net);
	assert_int_equal(net->nodes[1].delivery_count, 1);
	assert_int_equal(only_report(net, 0)->outcome, RAS_RELAY_OUTCOME_DELIVERED);
	net_destroy(net);
}

static void a_port_that_nobody_takes_in_time_is_refused(void **state) {
	struct net *net = net_create(4);

	(void)state;
	net->nodes[1].deliver_result = -ENOENT;
	assert_int_equal(net_send(net, 0, 1, 42), 0);
	net_settle(net);
	assert_int_equal(only_report(net, 0)->outcome, RAS_RELAY_OUTCOME_REFUSED);
	assert_int_equal(only_report(net, 0)->reason, RAS_RELAY_NO_CONSUMER);
	assert_int_equal(only_report(net, 0)->round_trip_ns, RELAY_EARLY_NS);
	net_destroy(net);
}

static void early_messages_are_kept_up_to_a_bound(void **state) {
	struct net *net = net_create(4);
	struct ras_relay_stats stats;

	(void)state;
	net->nodes[1].deliver_result = -ENOENT;
	for (uint64_t value = 0; value < 2 * RELAY_HELD_SOURCE_MAX; value++)
		assert_int_equal(net_send(net, 0, 1, value), 0);
	net_carry(net);
	ras_relay_stats(&net->nodes[1].ras, &stats);
	assert_int_equal(stats.held, RELAY_HELD_SOURCE_MAX);
	assert_int_equal(ended(net, 1, RAS_RELAY_QUEUE_FULL), RELAY_HELD_SOURCE_MAX);
	net_settle(net);
	net_destroy(net);
}

static void a_full_consumer_stops_no_transit_and_is_tried_again(void **state) {
	struct net *net = net_create(8);

	(void)state;
	net->nodes[2].deliver_result = -EAGAIN;
	assert_int_equal(net_send(net, 1, 2, 1), 0);
	assert_int_equal(net_send(net, 1, 3, 2), 0); // through 2
	net_carry(net);
	assert_int_equal(net->nodes[2].delivery_count, 0);
	assert_int_equal(net->nodes[3].delivery_count, 1);
	assert_int_equal(ended(net, 2, RAS_RELAY_QUEUE_FULL), 1);
	net->nodes[2].deliver_result = 0;
	net_settle(net);
	assert_int_equal(net->nodes[2].delivery_count, 1);
	net_destroy(net);
}

static void a_consumer_that_stays_full_is_reported_as_refusal(void **state) {
	struct net *net = net_create(8);

	(void)state;
	net->nodes[2].deliver_result = -EAGAIN;
	assert_int_equal(net_send(net, 1, 2, 1), 0);
	net_settle(net);
	assert_int_equal(only_report(net, 1)->outcome, RAS_RELAY_OUTCOME_REFUSED);
	assert_int_equal(only_report(net, 1)->reason, RAS_RELAY_QUEUE_FULL);
	assert_int_equal(only_report(net, 1)->tries, net->profile.relay_tries);
	// The end comes with the last try, after 0.5 + 1 + 2 seconds, and not with the lifetime.
	assert_int_equal(only_report(net, 1)->round_trip_ns, 3500 * MS);
	net_destroy(net);
}

static void what_its_consumer_cannot_read_is_refused(void **state) {
	struct net *net = net_create(8);
	const struct ras_relay_incident *incident;

	(void)state;
	net->nodes[2].deliver_result = -EBADMSG;
	assert_int_equal(net_send(net, 0, 2, 1), 0);
	net_settle(net);
	assert_int_equal(only_report(net, 0)->outcome, RAS_RELAY_OUTCOME_REFUSED);
	assert_int_equal(only_report(net, 0)->reason, RAS_RELAY_UNDECODABLE);
	incident = ras_relay_incident(&net->nodes[2].ras, RAS_RELAY_UNDECODABLE);
	assert_int_equal(incident->count, 1);
	assert_true(incident->source == net->ids[0] && incident->from == net->ids[1]);
	assert_null(ras_relay_incident(&net->nodes[2].ras, RAS_RELAY_REASON_COUNT));
	net_destroy(net);
}

static void the_cores_own_messages_go_once_and_are_not_answered(void **state) {
	struct net *net = net_create(8);
	struct ras *ras = &net->nodes[0].ras;
	uint32_t slot = peers_find(&ras->peers, net->ids[2]);

	(void)state;
	relay_send_once(ras, slot, RELAY_PORT_CONFIRM, RAS_RELAY_CONTROL, "abc", 3);
	net_carry(net);
	assert_int_equal(net->nodes[2].internal_count, 1);
	assert_int_equal(net->nodes[2].internal_port, RELAY_PORT_CONFIRM);
	assert_int_equal(net->frames, 2);
	net->nodes[2].internal_fails = true;
	relay_send_once(ras, slot, RELAY_PORT_CONFIRM, RAS_RELAY_CONTROL, NULL, 0);
	net_carry(net);
	assert_int_equal(net->frames, 4);
	assert_int_equal(ended(net, 2, RAS_RELAY_UNDECODABLE), 1);
	// No way at all: counted and dropped.
	net_wire(net, 0, 1, NET_DOWN);
	net_wire(net, 0, 7, NET_DOWN);
	relay_send_once(ras, slot, RELAY_PORT_CONFIRM, RAS_RELAY_CONTROL, NULL, 0);
	assert_int_equal(ended(net, 0, RAS_RELAY_NO_ROUTE), 1);
	assert_int_equal(net->frames, 4);
	net_destroy(net);
}

static void every_word_has_a_name(void **state) {
	(void)state;
	for (uint32_t n = 0; n < RAS_RELAY_REASON_COUNT; n++)
		assert_non_null(ras_relay_reason_name((enum ras_relay_reason)n));
	for (uint32_t n = 0; n < RAS_RELAY_CLASS_COUNT; n++)
		assert_non_null(ras_relay_class_name((enum ras_relay_class)n));
	for (uint32_t n = 0; n < RAS_RELAY_OUTCOME_COUNT; n++)
		assert_non_null(ras_relay_outcome_name((enum ras_relay_outcome)n));
}

static void what_was_remembered_is_given_back(void **state) {
	struct net *net = net_create(8);
	struct ras_relay_message message;
	struct ras_relay_stats stats;
	uint64_t value = 1, id;
	size_t before = net->nodes[1].ras.memory.used_bytes;

	(void)state;
	assert_true(sizeof(struct relay) <= 4096); // for an instance that relays nothing
	message = message_to(net, 2, &value);
	message.flags |= RAS_RELAY_ORDERED;
	net_wire(net, 1, 2, NET_BLOCKED);
	assert_int_equal(net_send_message(net, 0, &message, &id), 0);
	assert_int_equal(net_send(net, 1, 2, value), 0);
	net_carry(net);
	assert_true(net->nodes[1].ras.memory.used_bytes > before + 100000);
	net_wire(net, 1, 2, NET_GOOD);
	net_settle(net);
	ras_relay_stats(&net->nodes[2].ras, &stats);
	assert_int_equal(stats.sources, 2);
	assert_int_equal(stats.flows, 1);
	for (uint32_t n = 0; n < 10; n++)
		net_advance(net, 20 * RAS_NS_PER_SEC);
	ras_relay_stats(&net->nodes[2].ras, &stats);
	assert_int_equal(stats.sources, 0);
	assert_int_equal(stats.flows, 0);
	for (uint32_t n = 0; n < 3; n++) {
		struct net_node *node = &net->nodes[n];

		assert_true(relay_next_ns(&node->ras) == RAS_NEVER);
		// All memory except the array of lanes, which hold no buffer.
		assert_true(
			node->ras.memory.used_bytes <= before + 8 * sizeof(struct relay_link_queue)
		);
	}
	net_destroy(net);
}

UNIT_GROUP(ras_relay) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_refuses_what_it_cannot_carry_and_leaves_the_id_alone),
		cmocka_unit_test(too_many_on_their_way_are_refused_until_one_has_ended),
		cmocka_unit_test(without_memory_nothing_is_accepted_and_nothing_breaks),
		cmocka_unit_test(a_message_to_oneself_is_delivered_by_the_next_tick),
		cmocka_unit_test(a_failed_direct_link_falls_through_to_the_others),
		cmocka_unit_test(whoever_leaves_sends_no_more_and_asks_for_no_tick),
		cmocka_unit_test(a_cancelled_message_is_not_tried_again_nor_reported),
		cmocka_unit_test(a_lost_answer_brings_a_retry_and_no_second_delivery),
		cmocka_unit_test(a_frame_that_a_link_brings_twice_is_delivered_once),
		cmocka_unit_test(the_window_tells_fresh_delivered_refused_and_too_old_apart),
		cmocka_unit_test(a_message_for_an_older_start_is_refused),
		cmocka_unit_test(a_message_from_an_older_start_is_refused),
		cmocka_unit_test(a_new_start_of_the_source_has_a_fresh_window),
		cmocka_unit_test(the_death_of_the_destination_ends_what_is_on_its_way),
		cmocka_unit_test(a_node_between_that_knows_of_the_death_refuses),
		cmocka_unit_test(no_way_on_with_another_table_is_called_a_stale_view),
		cmocka_unit_test(an_early_message_waits_for_its_port),
		cmocka_unit_test(a_port_that_nobody_takes_in_time_is_refused),
		cmocka_unit_test(early_messages_are_kept_up_to_a_bound),
		cmocka_unit_test(a_full_consumer_stops_no_transit_and_is_tried_again),
		cmocka_unit_test(a_consumer_that_stays_full_is_reported_as_refusal),
		cmocka_unit_test(what_its_consumer_cannot_read_is_refused),
		cmocka_unit_test(the_cores_own_messages_go_once_and_are_not_answered),
		cmocka_unit_test(every_word_has_a_name),
		cmocka_unit_test(what_was_remembered_is_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
