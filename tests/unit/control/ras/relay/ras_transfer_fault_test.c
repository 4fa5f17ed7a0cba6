// SPDX-License-Identifier: BSD-3-Clause
// Transfers while nodes die, leave, restart and freeze, and while links are lost and return.
#include "control/ras/relay/ras_transfer_bed.h"

#include <support/cmocka.h>

#define SEGMENT RAS_TRANSFER_SEGMENT_BYTES_MAX
#define MANY (200u * SEGMENT + 17)
#define LONG (1600u * SEGMENT)

static void assert_done(uint32_t from, uint32_t to, uint64_t size) {
	assert_int_equal(bed_end(from)->outcome, RAS_TRANSFER_DONE);
	assert_int_equal(bed_end(to)->outcome, RAS_TRANSFER_DONE);
	assert_int_equal(bed.nodes[to].arrival_count, 1);
	assert_int_equal(bed.nodes[to].arrivals[0].taken, size);
}

// Let the relay of `node` give up the message of its transfer, as it would in reality.
static void give_up(uint32_t node, uint64_t message_id, enum ras_relay_reason reason) {
	struct ras *ras = bed.world->nodes[node].ras;
	struct ras_relay_report report = {
		.message_id = message_id,
		.outcome = RAS_RELAY_OUTCOME_EXPIRED,
		.reason = reason,
	};

	ras_enter(ras, bed.world->now_ns);
	relay_cancel_own(ras, message_id);
	transfer_report_received(ras, &report);
	ras_exit(ras);
}

static void what_the_relay_gives_up_is_sent_again(void **state) {
	(void)state;
	for (uint32_t lost = 0; lost < TRANSFER_SEGMENTS_MAX; lost++) {
		const struct transfer *transfer;

		bed_create(8);
		bed.nodes[0].read_piece = lost % 2 == 0 ? 0 : 3000;
		bed_start(0, 5, 1, LONG);
		bed_pass_ms(12);
		for (uint32_t n = 0; n < 3; n++) {
			transfer = bed_transfer(0, false);
			while (transfer->out.sent_count <= lost)
				bed_pass_ms(1);
			if (transfer->out.sent[lost].message_id != 0)
				give_up(0, transfer->out.sent[lost].message_id,
					RAS_RELAY_NO_ANSWER);
			bed_pass_ms(550);
		}
		bed_settle(20);
		assert_in_range(bed_counters(0)->resumed, 1, 3);
		assert_done(0, 5, LONG);
		bed_destroy();
	}
}

static void control_messages_that_are_given_up_are_sent_again(void **state) {
	(void)state;
	for (uint32_t ms = 0; ms < 40; ms++) {
		bed_create(8);
		bed_start(0, 5, 1, 40u * SEGMENT);
		for (uint32_t n = 0; n <= ms && bed_stats(0).outgoing > 0; n++)
			bed_pass_ms(1);
		for (uint32_t node = 0; node < 6; node += 5) {
			const struct transfer *transfer =
				bed.world->nodes[node].ras->transfers->first;

			if (transfer != NULL && transfer->control_id != 0)
				give_up(node, transfer->control_id, RAS_RELAY_NO_ROUTE);
		}
		bed_settle(20);
		assert_done(0, 5, 40u * SEGMENT);
		bed_destroy();
	}
}

static void what_the_other_side_can_never_read_ends_it(void **state) {
	(void)state;
	bed_create(8);
	bed_start(0, 5, 1, MANY);
	bed_pass_ms(12);
	give_up(0, bed_transfer(0, false)->out.sent[0].message_id, RAS_RELAY_UNDECODABLE);
	bed_settle(5);
	assert_int_equal(bed_end(0)->outcome, RAS_TRANSFER_REFUSED);
	assert_int_equal(bed_end(0)->reason, RAS_TRANSFER_UNREADABLE);
	assert_int_equal(bed_end(5)->outcome, RAS_TRANSFER_CANCELLED);
	bed_destroy();
}

// Lose every link of the node that the messages may take, one after the other.
static void links_that_are_lost_on_the_way_cost_nothing(void **state) {
	static const enum world_way ways[] = {WORLD_STALLED, WORLD_REFUSED, WORLD_FULL};

	(void)state;
	for (uint32_t row = 0; row < 3; row++) {
		bed_create(12);
		bed_start(0, 7, 1, MANY);
		for (uint32_t n = 1; n < 12; n++) {
			bed_pass_ms(8);
			if (n == 7)
				continue;
			world_reset(bed.world, 0, n);
			world_way(bed.world, 0, n, ways[row]);
			bed_pass_ms(800);
			world_way(bed.world, 0, n, WORLD_OPEN);
		}
		bed_settle(60);
		assert_done(0, 7, MANY);
		bed_destroy();
	}
}

static void resets_of_all_links_of_a_side_cost_nothing(void **state) {
	(void)state;
	for (uint32_t side = 0; side < 8; side += 7) {
		bed_create(12);
		bed_start(0, 7, 1, MANY);
		for (uint32_t round = 0; round < 20; round++) {
			bed_pass_ms(3);
			for (uint32_t n = 0; n < 12; n++)
				world_reset(bed.world, side, n);
		}
		bed_settle(60);
		assert_done(0, 7, MANY);
		bed_destroy();
	}
}

static void a_side_that_stands_still_for_a_while_goes_on(void **state) {
	(void)state;
	for (uint32_t side = 0; side < 6; side += 5) {
		bed_create(8);
		bed_start(0, 5, 1, MANY);
		bed_pass_ms(12);
		world_freeze(bed.world, side);
		bed_pass_ms(6000);
		world_resume(bed.world, side);
		bed_settle(40);
		assert_done(0, 5, MANY);
		bed_destroy();
	}
}

static void the_death_of_either_side_ends_it_at_the_other(void **state) {
	(void)state;
	for (uint32_t ms = 0; ms < 24; ms += 4) {
		for (uint32_t victim = 0; victim < 6; victim += 5) {
			uint32_t other = 5 - victim;
			bool known;

			bed_create(8);
			bed_start(0, 5, 1, LONG);
			bed_pass_ms(ms);
			known = other == 0 || bed.nodes[5].arrival_count > 0;
			world_kill(bed.world, victim);
			bed_settle(20);
			if (known)
				assert_int_equal(bed_end(other)->outcome, RAS_TRANSFER_DEAD);
			assert_true(bed.world->now_ns < 1040 * RAS_NS_PER_SEC);
			bed_destroy();
		}
	}
}

static void a_side_that_leaves_tells_both(void **state) {
	(void)state;
	for (uint32_t leaver = 0; leaver < 6; leaver += 5) {
		struct ras_transfer_stats stats;

		bed_create(8);
		bed_start(0, 5, 1, LONG);
		bed_pass_ms(20);
		ras_leave(bed.world->nodes[leaver].ras, bed.world->now_ns);
		assert_int_equal(bed_end(leaver)->outcome, RAS_TRANSFER_LEAVING);
		stats = bed_stats(leaver);
		assert_int_equal(stats.outgoing + stats.incoming, 0);
		bed_settle(20);
		assert_int_equal(bed_end(5 - leaver)->outcome, RAS_TRANSFER_LEFT);
		bed_destroy();
	}
}

static void the_next_start_of_a_side_is_another_side(void **state) {
	(void)state;
	for (uint32_t victim = 0; victim < 6; victim += 5) {
		uint32_t other = 5 - victim;

		bed_create(8);
		bed.world->seeds = 8;
		bed_start(0, 5, 1, LONG);
		bed_pass_ms(20);
		world_kill(bed.world, victim);
		world_start(bed.world, victim, 2, victim);
		bed_settle(20);
		// Depends on whether its death or its next start was received first.
		assert_true(
			bed_end(other)->outcome == RAS_TRANSFER_RESTARTED ||
			bed_end(other)->outcome == RAS_TRANSFER_DEAD
		);
		assert_int_equal(bed_stats(victim).incoming, 0);
		bed_pass_ms(10000);
		assert_true(world_agrees(bed.world));
		bed.nodes[0].end_count = bed.nodes[5].end_count = 0;
		bed.nodes[5].arrival_count = 0;
		bed_start(0, 5, 2, MANY);
		bed_settle(20);
		assert_done(0, 5, MANY);
		bed_destroy();
	}
}

static void what_is_under_way_is_freed_with_the_instance(void **state) {
	(void)state;
	for (uint32_t ms = 0; ms < 30; ms++) {
		bed_create(8);
		bed.nodes[5].take_result = -EAGAIN;
		bed.nodes[5].take_room = 30u * SEGMENT;
		bed_start(0, 5, 1, LONG);
		bed_start(5, 0, 1, LONG);
		bed_pass_ms(ms);
		world_destroy(bed.world); // fails if anything leaked
	}
}

static void keepalives_do_not_wait_behind_transfers(void **state) {
	(void)state;
	bed_create(8);
	for (uint32_t n = 0; n < RAS_TRANSFERS_PEER_MAX; n++) {
		bed_start(0, 5, n, LONG);
		bed_start(5, 0, n, LONG);
	}
	for (uint32_t n = 0; n < 8; n++)
		world_way(bed.world, 0, n, WORLD_FULL);
	bed_pass_ms(500);
	for (uint32_t n = 0; n < 8; n++)
		world_way(bed.world, 0, n, WORLD_OPEN);
	bed_settle(600);
	assert_int_equal(world_events_all(bed.world, RAS_EVENT_SUSPECT), 0);
	assert_int_equal(bed.nodes[0].end_count, 2 * RAS_TRANSFERS_PEER_MAX);
	bed_destroy();
}

UNIT_GROUP(ras_transfer_fault) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_relay_gives_up_is_sent_again),
		cmocka_unit_test(control_messages_that_are_given_up_are_sent_again),
		cmocka_unit_test(what_the_other_side_can_never_read_ends_it),
		cmocka_unit_test(links_that_are_lost_on_the_way_cost_nothing),
		cmocka_unit_test(resets_of_all_links_of_a_side_cost_nothing),
		cmocka_unit_test(a_side_that_stands_still_for_a_while_goes_on),
		cmocka_unit_test(the_death_of_either_side_ends_it_at_the_other),
		cmocka_unit_test(a_side_that_leaves_tells_both),
		cmocka_unit_test(the_next_start_of_a_side_is_another_side),
		cmocka_unit_test(what_is_under_way_is_freed_with_the_instance),
		cmocka_unit_test(keepalives_do_not_wait_behind_transfers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
