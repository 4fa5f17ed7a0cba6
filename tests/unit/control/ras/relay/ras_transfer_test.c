// SPDX-License-Identifier: BSD-3-Clause
// Transfers between nodes that are healthy, slow, or cancel.
#include "control/ras/relay/ras_transfer_bed.h"

#include <support/cmocka.h>

#include <errno.h>

#define SEGMENT RAS_TRANSFER_SEGMENT_BYTES_MAX
#define WINDOW RAS_TRANSFER_WINDOW_BYTES
#define MANY (40u * SEGMENT + 17)

static void assert_done(uint32_t from, uint32_t to, uint64_t size) {
	const struct bed_arrival *arrival = &bed.nodes[to].arrivals[0];

	assert_int_equal(bed_end(from)->outcome, RAS_TRANSFER_DONE);
	assert_int_equal(bed_end(from)->bytes, size);
	assert_true(bed_end(from)->by_peer);
	assert_int_equal(bed_end(to)->outcome, RAS_TRANSFER_DONE);
	assert_int_equal(bed.nodes[to].arrival_count, 1);
	assert_int_equal(arrival->taken, size);
	assert_true(arrival->last);
}

static void what_is_sent_arrives_once_and_whole_whatever_its_size(void **state) {
	static const uint64_t sizes[] = {
		0,	     1,
		SEGMENT - 1, SEGMENT,
		SEGMENT + 1, 2u * SEGMENT,
		WINDOW,	     WINDOW + 1,
		MANY,	     RAS_TRANSFER_BYTES_MAX,
	};

	(void)state;
	for (uint32_t row = 0; row < 2 * sizeof(sizes) / sizeof(*sizes); row++) {
		uint64_t size = sizes[row / 2];
		bool known = row % 2 == 0;

		bed_create(8);
		if (!known)
			bed.nodes[0].read_total = size;
		bed_start(0, 5, 7000 + row, known ? size : RAS_TRANSFER_SIZE_UNKNOWN);
		bed_settle(60);
		assert_done(0, 5, size);
		assert_int_equal(bed_end(5)->tag, 7000 + row);
		assert_int_equal(bed_counters(0)->bytes_sent, size);
		assert_int_equal(bed_counters(5)->bytes_taken, size);
		assert_int_equal(bed_counters(5)->duplicates, 0);
		bed_destroy();
	}
}

static void a_node_may_send_to_itself(void **state) {
	(void)state;
	bed_create(3);
	bed_start(1, 1, 5, MANY);
	bed_settle(10);
	assert_int_equal(bed.nodes[1].end_count, 2);
	assert_int_equal(bed.nodes[1].ends[0].outcome, RAS_TRANSFER_DONE);
	assert_int_equal(bed.nodes[1].ends[1].outcome, RAS_TRANSFER_DONE);
	assert_int_equal(bed.nodes[1].arrivals[0].taken, MANY);
	bed_destroy();
}

static void what_cannot_be_sent_is_refused_at_once(void **state) {
	struct ras_transfer_request good, request;
	struct ras *ras;
	uint64_t id = 99, now_ns;

	(void)state;
	bed_create(4);
	ras = bed.world->nodes[0].ras;
	now_ns = bed.world->now_ns;
	good = (struct ras_transfer_request
	){.destination = world_id(bed.world, 2), .port = BED_PORT, .size = 10};
	request = good;
	request.size = RAS_TRANSFER_BYTES_MAX + 1;
	assert_int_equal(ras_transfer_send(ras, now_ns, &request, &id), -EMSGSIZE);
	request = good;
	request.life_ns = RAS_TRANSFER_LIFE_MAX_NS + 1;
	assert_int_equal(ras_transfer_send(ras, now_ns, &request, &id), -EINVAL);
	request = good;
	request.destination = 12345;
	assert_int_equal(ras_transfer_send(ras, now_ns, &request, &id), -ENOENT);
	ras->ops.transfer_read = NULL;
	assert_int_equal(ras_transfer_send(ras, now_ns, &good, &id), -EINVAL);
	assert_int_equal(ras_transfer_cancel(ras, now_ns, 77), -ENOENT);
	assert_int_equal(ras_transfer_ready(ras, now_ns, 77), -ENOENT);
	ras_leave(ras, now_ns);
	ras->ops.transfer_read = bed.world->users->transfer_read;
	assert_int_equal(ras_transfer_send(ras, now_ns, &good, &id), -ESHUTDOWN);
	assert_int_equal(bed_send(1, 0, 1, 1, &id), 0);
	bed_pass_ms(3000);
	assert_int_equal(bed_send(1, 0, 1, 1, &id), -EHOSTDOWN);
	assert_int_equal(bed_end(1)->outcome, RAS_TRANSFER_LEFT);
	bed_settle(10);
	bed_destroy();
}

static void more_than_the_stated_maximum_ends_it_on_both_sides(void **state) {
	(void)state;
	bed_create(4);
	bed_start(0, 2, 1, RAS_TRANSFER_SIZE_UNKNOWN); // its source never ends
	bed_settle(60);
	assert_int_equal(bed_end(0)->outcome, RAS_TRANSFER_CANCELLED);
	assert_int_equal(bed_end(0)->reason, RAS_TRANSFER_TOO_LONG);
	assert_false(bed_end(0)->by_peer);
	assert_int_equal(bed_end(2)->outcome, RAS_TRANSFER_CANCELLED);
	assert_int_equal(bed_end(2)->reason, RAS_TRANSFER_TOO_LONG);
	assert_true(bed_end(2)->by_peer);
	bed_destroy();
}

static void a_slow_consumer_is_sent_no_more_than_the_window(void **state) {
	struct bed_node *consumer = &bed.nodes[2];

	(void)state;
	bed_create(4);
	consumer->take_result = -EAGAIN;
	consumer->take_room = 0;
	bed_start(0, 2, 1, MANY);
	bed_pass_ms(2000);
	assert_int_equal(bed_counters(0)->bytes_sent, WINDOW);
	assert_int_equal(bed_stats(2).held_bytes, WINDOW);
	for (uint32_t n = 0; consumer->end_count == 0; n++) {
		const struct transfer *transfer = bed_transfer(2, true);

		assert_in_range(n, 0, 200);
		assert_in_range(transfer->in.limit - transfer->in.taken, 0, WINDOW);
		consumer->take_room = SEGMENT;
		ras_transfer_ready(bed.world->nodes[2].ras, bed.world->now_ns, transfer->id);
		bed_pass_ms(20);
	}
	bed_settle(5);
	assert_done(0, 2, MANY);
	assert_int_equal(bed_counters(2)->overruns, 0);
	bed_destroy();
}

static void a_full_consumer_may_refuse_an_empty_end_for_now(void **state) {
	struct bed_node *consumer = &bed.nodes[2];

	(void)state;
	bed_create(4);
	consumer->take_result = -EAGAIN;
	consumer->take_room = 0;
	bed_start(0, 2, 1, 0);
	bed_pass_ms(200);
	assert_int_equal(consumer->end_count, 0);
	assert_int_equal(bed_stats(2).held_bytes, 0);
	consumer->take_result = 0;
	ras_transfer_ready(bed.world->nodes[2].ras, bed.world->now_ns, bed_transfer(2, true)->id);
	bed_settle(5);
	assert_done(0, 2, 0);
	bed_destroy();
}

static void a_slow_source_is_asked_again_when_it_is_ready(void **state) {
	struct bed_node *source = &bed.nodes[0];
	uint64_t id;

	(void)state;
	bed_create(4);
	source->read_result = -EAGAIN;
	source->read_until = 0;
	source->read_piece = 1000;
	id = bed_start(0, 2, 1, MANY);
	for (uint32_t n = 0; source->end_count == 0; n++) {
		assert_in_range(n, 0, 500);
		source->read_until += 3333;
		ras_transfer_ready(bed.world->nodes[0].ras, bed.world->now_ns, id);
		bed_pass_ms(20);
	}
	bed_settle(5);
	assert_done(0, 2, MANY);
	bed_destroy();
}

static void a_source_that_fails_ends_it_on_both_sides(void **state) {
	(void)state;
	bed_create(4);
	bed.nodes[0].read_result = -EIO;
	bed.nodes[0].read_until = 5u * SEGMENT;
	bed_start(0, 2, 1, MANY);
	bed_settle(5);
	assert_int_equal(bed_end(0)->outcome, RAS_TRANSFER_CANCELLED);
	assert_int_equal(bed_end(0)->reason, RAS_TRANSFER_NO_SOURCE);
	assert_int_equal(bed_end(2)->outcome, RAS_TRANSFER_CANCELLED);
	assert_int_equal(bed_end(2)->reason, RAS_TRANSFER_NO_SOURCE);
	bed_destroy();
}

static void a_source_that_says_last_too_early_ends_it(void **state) {
	(void)state;
	bed_create(4);
	bed.nodes[0].read_total = 5u * SEGMENT;
	bed_start(0, 2, 1, MANY);
	bed_settle(5);
	assert_int_equal(bed_end(0)->outcome, RAS_TRANSFER_CANCELLED);
	assert_int_equal(bed_end(0)->reason, RAS_TRANSFER_NO_SOURCE);
	bed_destroy();
}

static void a_consumer_that_refuses_tells_the_sender_why(void **state) {
	static const struct {
		int result;
		enum ras_transfer_reason reason;
	} rows[] = {
		{-ENOENT, RAS_TRANSFER_NO_CONSUMER},
		{-EBADMSG, RAS_TRANSFER_UNREADABLE},
		{-EMSGSIZE, RAS_TRANSFER_TOO_LONG},
		{-EPERM, RAS_TRANSFER_DECLINED},
	};

	(void)state;
	for (uint32_t n = 0; n < 8; n++) {
		bed_create(4);
		bed.nodes[2].take_result = rows[n / 2].result;
		// The first segment, or one in the middle.
		bed.nodes[2].take_room = n % 2 * 5u * SEGMENT;
		bed_start(0, 2, 1, MANY);
		bed_settle(5);
		assert_int_equal(bed_end(0)->outcome, RAS_TRANSFER_REFUSED);
		assert_int_equal(bed_end(0)->reason, rows[n / 2].reason);
		assert_true(bed_end(0)->by_peer);
		assert_int_equal(bed_end(2)->outcome, RAS_TRANSFER_REFUSED);
		assert_false(bed_end(2)->by_peer);
		bed_destroy();
	}
}

static void a_node_without_consumers_refuses(void **state) {
	(void)state;
	bed_create(4);
	bed.world->nodes[2].ras->ops.transfer_take = NULL;
	bed_start(0, 2, 1, MANY);
	bed_settle(5);
	assert_int_equal(bed_end(0)->outcome, RAS_TRANSFER_REFUSED);
	assert_int_equal(bed_end(0)->reason, RAS_TRANSFER_NO_CONSUMER);
	assert_int_equal(bed.nodes[2].end_count, 0); // no data was offered to it
	assert_int_equal(bed_counters(0)->segments_sent, 0);
	bed_destroy();
}

// Return true if there was a transfer to cancel.
static bool cancel(uint32_t node, bool incoming) {
	struct ras *ras = bed.world->nodes[node].ras;
	struct transfer *transfer = ras->transfers->first;

	return transfer != NULL && transfer->incoming == incoming &&
	       ras_transfer_cancel(ras, bed.world->now_ns, transfer->id) == 0;
}

static void either_side_may_cancel_at_any_moment(void **state) {
	(void)state;
	for (uint32_t ms = 0; ms < 40; ms++) {
		for (uint32_t side = 0; side < 2; side++) {
			uint32_t canceller = side == 0 ? 0 : 2;
			bool cancelled;

			bed_create(4);
			bed_start(0, 2, 1, MANY);
			bed_pass_ms(ms);
			cancelled = cancel(canceller, side == 1);
			assert_true(cancelled || side == 1 || ms > 5);
			assert_false(cancel(canceller, side == 1)); // only once
			bed_settle(5);
			assert_int_equal(
				bed_end(0)->outcome == RAS_TRANSFER_DONE,
				!cancelled && bed.nodes[2].end_count > 0
			);
			if (cancelled)
				assert_int_equal(
					bed.nodes[canceller].end_count,
					side == 0 || bed.nodes[2].arrival_count > 0
				);
			// A consumer that was offered data is notified of the end.
			assert_int_equal(bed.nodes[2].end_count, bed.nodes[2].arrival_count);
			bed_destroy();
		}
	}
}

static void both_may_cancel_at_once(void **state) {
	(void)state;
	bed_create(4);
	bed_start(0, 2, 1, MANY);
	bed_pass_ms(8);
	assert_true(cancel(0, false));
	assert_true(cancel(2, true));
	bed_settle(5);
	assert_int_equal(bed_end(0)->outcome, RAS_TRANSFER_CANCELLED);
	assert_int_equal(bed_end(2)->outcome, RAS_TRANSFER_CANCELLED);
	assert_false(bed_end(0)->by_peer);
	assert_false(bed_end(2)->by_peer);
	bed_destroy();
}

static void it_ends_at_its_deadline_at_the_latest(void **state) {
	struct ras_transfer_request request;
	uint64_t id;

	(void)state;
	bed_create(4);
	request = (struct ras_transfer_request){
		.destination = world_id(bed.world, 2),
		.port = BED_PORT,
		.size = MANY,
		.life_ns = 5 * RAS_NS_PER_SEC,
	};
	bed.nodes[2].take_result = -EAGAIN;
	bed.nodes[2].take_room = 3u * SEGMENT;
	assert_int_equal(
		ras_transfer_send(bed.world->nodes[0].ras, bed.world->now_ns, &request, &id), 0
	);
	bed_pass_ms(4900);
	assert_int_equal(bed.nodes[0].end_count, 0);
	bed_pass_ms(200);
	assert_int_equal(bed_end(0)->outcome, RAS_TRANSFER_EXPIRED);
	assert_int_equal(bed_end(2)->outcome, RAS_TRANSFER_EXPIRED);
	bed_destroy();
}

static void transfers_are_bounded_and_take_turns(void **state) {
	uint64_t id = 0;

	(void)state;
	bed_create(8);
	for (uint64_t n = 0; n < RAS_TRANSFERS_MAX; n++) {
		uint32_t to = (uint32_t)(1 + n / RAS_TRANSFERS_PEER_MAX);

		bed_start(0, to, n, MANY);
		if ((n + 1) % RAS_TRANSFERS_PEER_MAX == 0)
			assert_int_equal(bed_send(0, to, n, 1, &id), -EAGAIN);
	}
	assert_int_equal(bed_send(0, 6, 1, 1, &id), -EAGAIN);
	for (uint32_t ms = 0; ms < 60; ms++) {
		bed_pass_ms(1);
		assert_in_range(bed_stats(0).segments, 0, TRANSFER_IN_FLIGHT_MAX);
	}
	// All transfers have progressed about equally.
	for (const struct transfer *transfer = bed.world->nodes[0].ras->transfers->first;
	     transfer != NULL; transfer = transfer->next)
		assert_in_range(transfer->out.ahead, 5u * SEGMENT, 40u * SEGMENT);
	bed_settle(60);
	assert_int_equal(bed.nodes[0].end_count, RAS_TRANSFERS_MAX);
	for (uint32_t n = 0; n < RAS_TRANSFERS_MAX; n++)
		assert_int_equal(bed.nodes[0].ends[n].outcome, RAS_TRANSFER_DONE);
	bed_destroy();
}

static void a_receiver_with_all_it_takes_lets_the_others_wait(void **state) {
	(void)state;
	bed_create(8);
	for (uint64_t n = 0; n < 6 * RAS_TRANSFERS_PEER_MAX; n++)
		bed_start((uint32_t)(1 + n / RAS_TRANSFERS_PEER_MAX), 0, n, MANY);
	bed_pass_ms(5);
	assert_int_equal(bed_stats(0).incoming, RAS_TRANSFERS_MAX);
	bed_settle(60);
	assert_true(bed_counters(0)->busy > 0);
	assert_int_equal(bed.nodes[0].end_count, 6 * RAS_TRANSFERS_PEER_MAX);
	for (uint32_t n = 0; n < 6 * RAS_TRANSFERS_PEER_MAX; n++)
		assert_int_equal(bed.nodes[0].ends[n].outcome, RAS_TRANSFER_DONE);
	bed_destroy();
}

static void want_of_memory_delays_and_loses_nothing(void **state) {
	uint64_t id = 0;

	(void)state;
	bed_create(4);
	bed.world->memory_spent = true;
	assert_int_equal(bed_send(0, 2, 1, MANY, &id), -ENOMEM);
	bed.world->memory_spent = false;
	bed.nodes[2].take_result = -EAGAIN;
	bed.nodes[2].take_room = 9u * SEGMENT;
	bed_start(0, 2, 1, MANY);
	for (uint32_t n = 0; bed.nodes[2].end_count == 0; n++) {
		assert_in_range(n, 0, 2000);
		bed.world->memory_spent = n % 3 != 0;
		bed_pass_ms(10);
		bed.nodes[2].take_room += SEGMENT / 2;
		if (bed_stats(2).incoming > 0)
			ras_transfer_ready(
				bed.world->nodes[2].ras, bed.world->now_ns,
				bed_transfer(2, true)->id
			);
	}
	bed.world->memory_spent = false;
	bed_settle(10);
	assert_done(0, 2, MANY);
	bed_destroy();
}

UNIT_GROUP(ras_transfer) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sent_arrives_once_and_whole_whatever_its_size),
		cmocka_unit_test(a_node_may_send_to_itself),
		cmocka_unit_test(what_cannot_be_sent_is_refused_at_once),
		cmocka_unit_test(more_than_the_stated_maximum_ends_it_on_both_sides),
		cmocka_unit_test(a_slow_consumer_is_sent_no_more_than_the_window),
		cmocka_unit_test(a_full_consumer_may_refuse_an_empty_end_for_now),
		cmocka_unit_test(a_slow_source_is_asked_again_when_it_is_ready),
		cmocka_unit_test(a_source_that_fails_ends_it_on_both_sides),
		cmocka_unit_test(a_source_that_says_last_too_early_ends_it),
		cmocka_unit_test(a_consumer_that_refuses_tells_the_sender_why),
		cmocka_unit_test(a_node_without_consumers_refuses),
		cmocka_unit_test(either_side_may_cancel_at_any_moment),
		cmocka_unit_test(both_may_cancel_at_once),
		cmocka_unit_test(it_ends_at_its_deadline_at_the_latest),
		cmocka_unit_test(transfers_are_bounded_and_take_turns),
		cmocka_unit_test(a_receiver_with_all_it_takes_lets_the_others_wait),
		cmocka_unit_test(want_of_memory_delays_and_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
