// SPDX-License-Identifier: BSD-3-Clause
// Peers that an administrator forgets although they may live: unreachable ones, a single one or
// all.
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>
#include <support/fake_notice.h>

#include <errno.h>
#include <stdio.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

// Regression: the last of three could not tell whether the other two, gone at once, were really
// gone.
static void last_of_three_forgets_the_others_when_it_is_told_to(void **state) {
	struct world *world = world_of(3);

	(void)state;
	assert_int_equal(
		ras_forget(world->nodes[0].ras, world->now_ns, world_id(world, 1)), -EBUSY
	);
	world_split(world, 1, WORLD_STALLED);
	world_pass(world, 30 * SEC);
	assert_int_equal(world_view(world, 0).unreachable, 2);
	for (uint32_t n = 1; n < 3; n++) {
		assert_int_equal(
			ras_forget(world->nodes[0].ras, world->now_ns, world_id(world, n)), 0
		);
		assert_int_equal(world_state(world, 0, n), RAS_UNKNOWN);
	}
	assert_int_equal(world_events(world, 0, RAS_EVENT_FORGOTTEN), 2);
	assert_int_equal(world_events(world, 0, RAS_EVENT_LEFT), 0);
	assert_int_equal(world_view(world, 0).alive, 1);
	world_pass(world, 100 * SEC);
	assert_int_equal(world_view(world, 0).alive, 1);
	world_destroy(world);
}

static void one_that_was_forgotten_as_unreachable_and_lives_comes_back(void **state) {
	struct world *world = world_of(8);

	(void)state;
	world_split(world, 4, WORLD_STALLED);
	world_pass(world, 30 * SEC);
	assert_int_equal(world_state(world, 0, 6), RAS_UNREACHABLE);
	assert_int_equal(ras_forget(world->nodes[0].ras, world->now_ns, world_id(world, 6)), 0);
	world_pass(world, 3 * SEC);
	for (uint32_t n = 0; n < 8; n++)
		assert_int_equal(world_state(world, n, 6), n < 4 ? RAS_UNKNOWN : RAS_ALIVE);
	assert_int_equal(world_view(world, 0).digest, world_view(world, 3).digest);
	world_split(world, 4, WORLD_OPEN);
	world_pass(world, 30 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_events_all(world, RAS_EVENT_DEAD), 0);
	world_destroy(world);
}

static void part_that_waits_says_how_many_it_misses_and_forgets_them_by_one_order(void **state) {
	static const uint32_t parts[][2] = {{6, 3}, {6, 2}, {24, 12}};

	(void)state;
	for (size_t n = 0; n < sizeof(parts) / sizeof(parts[0]); n++) {
		uint32_t count = parts[n][0], part = parts[n][1];
		struct world *world = world_of(count);

		assert_int_equal(ras_forget_unreachable(world->nodes[0].ras, world->now_ns), 0);
		world_split(world, part, WORLD_STALLED);
		world_pass(world, 30 * SEC);
		for (uint32_t m = 0; m < part; m++) {
			assert_true(world_view(world, m).waits);
			assert_int_equal(world_view(world, m).reached, part);
			assert_int_equal(world_view(world, m).reached_of, count);
		}
		if (part < count - part)
			assert_false(world_view(world, count - 1).waits);
		assert_true(ras_forget_unreachable(world->nodes[0].ras, world->now_ns) > 0);
		world_pass(world, 60 * SEC);
		for (uint32_t m = 0; m < part; m++) {
			assert_int_equal(world_view(world, m).alive, part);
			assert_false(world_view(world, m).brake);
			assert_int_equal(world_events(world, m, RAS_EVENT_DEAD), 0);
		}
		world_split(world, part, WORLD_OPEN);
		world_pass(world, 60 * SEC);
		assert_true(world_agrees(world));
		world_destroy(world);
	}
}

// The status that a user reads. The old census still reports missing members, and the next one
// follows within a minute.
static void part_of_which_all_are_back_waits_for_nobody(void **state) {
	struct world *world = world_of(6);

	(void)state;
	world_split(world, 2, WORLD_STALLED);
	world_pass(world, 90 * SEC);
	assert_true(world_view(world, 0).waits);
	assert_int_equal(world_view(world, 5).dead, 2);
	world_split(world, 2, WORLD_OPEN);
	for (uint32_t step = 0; step < 600; step++) {
		struct ras_view view = world_view(world, 0);

		assert_true(!view.waits || view.suspect + view.unreachable > 0);
		world_pass(world, SEC / 10);
	}
	assert_true(world_agrees(world));
	world_destroy(world);
}

#define ORDERED 40

// Receive a notice from peer 2 with `origin` as its origin.
static void
notice_of(struct lone *lone, uint32_t conn, uint32_t origin, uint32_t kind, uint64_t forgotten) {
	uint8_t payload[16], frame[128];
	struct wire_writer writer;
	struct collect_notice notice = {
		.origin = lone_id(lone, origin),
		.id = (UINT64_C(1) << 32) + kind,
		.kind = kind,
		.hops = 1,
		.payload = payload,
		.size = kind == FLOOD_NOTICE_FORGET ? sizeof(payload) : 0,
	};

	wire_writer_init(&writer, payload, sizeof(payload));
	wire_put_u64(&writer, forgotten);
	wire_put_u64(&writer, ras_incarnation(1, 0));
	wire_writer_init(&writer, frame, sizeof(frame));
	fake_notice_encode(&notice, lone->ras->cluster, lone->records[origin]->key, &writer);
	lone_frame(lone, conn, frame, wire_writer_used(&writer));
}

// Count our own FORGET notices on the connection since the last mark.
static uint32_t forgets_told(const struct lone *lone, uint32_t conn) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < lone->frame_count; n++) {
		const struct lone_frame *frame = &lone->frames[n];
		struct collect_notice notice;
		struct wire_reader reader;

		if (frame->conn != conn || frame->bytes[0] != MESSAGE_NOTICE)
			continue;
		wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
		assert_int_equal(collect_notice_decode(&reader, &notice), 0);
		count += notice.kind == FLOOD_NOTICE_FORGET &&
			 notice.origin == lone_id(lone, lone->self);
	}
	return count;
}

// Add unreachable peers; `ret_ids` are their ids.
static void strangers_add(struct lone *lone, uint32_t conn, uint64_t ret_ids[static ORDERED]) {
	struct ras_peer_info info = lone_info(lone, 3, 1);
	struct peer_news news = {.state = RAS_ALIVE, .incarnation = ras_incarnation(1, 0)};

	for (uint32_t n = 0; n < ORDERED; n++) {
		snprintf(info.name, sizeof(info.name), "s%02u", n);
		assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
		news.id = news.record->id;
		lone_news(lone, conn, &news);
		ras_record_put(lone->interner, news.record);
		ret_ids[n] = news.id;
		peers_set_local(
			&lone->ras->peers, peers_find(&lone->ras->peers, news.id), RAS_UNREACHABLE,
			RAS_CAUSE_SILENT, lone->ras->observed_ns
		);
	}
}

// Regression: each member sent all of its unreachable peers at once, although others sent the
// same.
static void who_hears_an_order_tells_later_a_few_a_second_and_only_what_others_did_not(void **state
) {
	struct lone *lone = lone_of(8, 1);
	uint32_t conn = lone_link(lone, 2);
	struct peers *peers = &lone->ras->peers;
	uint32_t told = 0, most = 0;
	uint64_t ids[ORDERED];

	(void)state;
	strangers_add(lone, conn, ids);
	lone_mark(lone);
	notice_of(lone, conn, 4, FLOOD_NOTICE_FORGET_UNREACHABLE, 0);
	assert_int_equal(forgets_told(lone, conn), 0);
	notice_of(lone, conn, 5, FLOOD_NOTICE_FORGET, ids[7]);
	assert_int_equal(peers_find(peers, ids[7]), RAS_NO_SLOT);
	for (uint32_t n = 0; n < 60; n++) {
		uint32_t now;

		lone_mark(lone);
		lone_pass_beating(lone, 100 * MS, conn);
		now = forgets_told(lone, conn);
		told += now;
		most = now > most ? now : most;
	}
	assert_int_equal(told, ORDERED - 1);
	assert_int_equal(most, 16);
	for (uint32_t n = 0; n < ORDERED; n++)
		assert_int_equal(peers_find(peers, ids[n]), RAS_NO_SLOT);
	lone_destroy(lone);
}

UNIT_GROUP(ras_forget) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_of_three_forgets_the_others_when_it_is_told_to),
		cmocka_unit_test(one_that_was_forgotten_as_unreachable_and_lives_comes_back),
		cmocka_unit_test(
			part_that_waits_says_how_many_it_misses_and_forgets_them_by_one_order
		),
		cmocka_unit_test(part_of_which_all_are_back_waits_for_nobody),
		cmocka_unit_test(
			who_hears_an_order_tells_later_a_few_a_second_and_only_what_others_did_not
		),
	};

	return cmocka_run_group_tests_name("ras_forget", tests, NULL, NULL);
}
