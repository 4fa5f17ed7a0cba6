// SPDX-License-Identifier: BSD-3-Clause
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#include <stdio.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

static void diverge(struct world *world, uint32_t node, const struct peer_news *news) {
	struct ras *ras = world->nodes[node].ras;
	enum peers_change change;
	uint32_t slot;

	// Merge without the core, so that no peer is notified.
	assert_int_equal(peers_merge(&ras->peers, news, ras->observed_ns, &change, &slot), 0);
}

static struct peer_news stranger(struct world *world, const char *name, struct ras_record **ret) {
	struct ras_peer_info info;
	struct peer_news news = {.state = RAS_ALIVE, .incarnation = ras_incarnation(1, 0)};

	ras_record_info(world->nodes[0].record, &info);
	snprintf(info.name, sizeof(info.name), "%s", name);
	snprintf(info.host, sizeof(info.host), "%s", name);
	assert_int_equal(ras_record_from_info(world->interner, &info, ret), 0);
	news.id = (*ret)->id;
	news.record = *ret;
	return news;
}

static void tables_that_differ_in_anything_become_equal(void **state) {
	struct world *world = world_of(8);
	struct ras_record *record;
	struct peer_news news = stranger(world, "x", &record);
	uint64_t digest;

	(void)state;
	diverge(world, 2, &news); // a new name needs reports of two members
	diverge(world, 3, &news);
	peers_news_fill(&world->nodes[5].ras->peers, 0, &news);
	news.maint = 3;
	diverge(world, 5, &news); // a maintenance switch that only node 5 knows
	world_pass(world, 8 * SEC);
	digest = world_view(world, 0).digest;
	for (uint32_t n = 1; n < 8; n++)
		assert_int_equal(world_view(world, n).digest, digest);
	assert_int_equal(ras_peer_find(world->nodes[6].ras, record->id, &(struct ras_peer){0}), 0);
	assert_true(world_events_all(world, RAS_EVENT_DIVERGED) > 0);
	ras_record_put(world->interner, record);
	world_destroy(world);
}

// Regression: the table with the later refutation kept the lower record, and sent it, for ever.
static void table_that_knows_the_later_life_takes_the_higher_record_from_the_other(void **state) {
	struct world *world = world_of(6);
	struct ras_peer_info info;
	struct ras_record *records[2];
	struct peer_news news;

	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		ras_record_info(world->nodes[0].record, &info);
		snprintf(info.name, sizeof(info.name), "x");
		info.pid = 7 + n;
		assert_int_equal(ras_record_from_info(world->interner, &info, &records[n]), 0);
	}
	for (uint32_t n = 0; n < 6; n++) {
		bool high = (records[0]->digest > records[1]->digest) == (n != 2);

		news = (struct peer_news){
			.id = records[0]->id,
			.record = records[high ? 0 : 1],
			.state = RAS_ALIVE,
			.incarnation = ras_incarnation(1, n == 2 ? 3 : 0),
		};
		diverge(world, n, &news);
	}
	world_pass(world, 4 * SEC); // before the member is missed
	for (uint32_t n = 1; n < 6; n++)
		assert_int_equal(world_view(world, n).digest, world_view(world, 0).digest);
	for (uint32_t n = 0; n < 2; n++)
		ras_record_put(world->interner, records[n]);
	world_destroy(world);
}

// Regression: a node that had been cut off for minutes found the others one by one. Each one
// changed its table, and it compared tables only after the last change.
static void tables_that_go_on_changing_are_compared_as_well(void **state) {
	struct world *world = world_of(8);
	struct ras_record *record;
	struct peer_news news = stranger(world, "x", &record);

	(void)state;
	diverge(world, 2, &news);
	diverge(world, 3, &news);
	for (uint32_t n = 0; n < 60; n++) {
		assert_int_equal(
			ras_set_maintenance(
				world->nodes[1].ras, world->now_ns, world_id(world, 4), n % 2 == 0
			),
			0
		);
		world_pass(world, 500 * MS);
	}
	for (uint32_t n = 0; n < 8; n++)
		assert_int_equal(
			ras_peer_find(world->nodes[n].ras, record->id, &(struct ras_peer){0}), 0
		);
	ras_record_put(world->interner, record);
	world_destroy(world);
}

static void equal_tables_are_never_compared(void **state) {
	struct world *world = world_of(8);

	(void)state;
	world_pass(world, 60 * SEC);
	for (uint32_t n = 0; n < 8; n++)
		assert_int_equal(ras_counters(world->nodes[n].ras)->syncs, 0);
	world_destroy(world);
}

// A version that an agent stored before a restart of all agents wins over lower ones only. The
// position that all members know already is no event.
static void stored_version_of_a_switch_wins_if_it_is_higher(void **state) {
	static const struct {
		uint32_t version;
		uint32_t expected;
		uint32_t events;
	} cases[] = {{3, 3, 1}, {2, 3, 1}, {5, 5, 1}, {6, 6, 2}};
	struct world *world = world_of(4);
	uint64_t subject = world_id(world, 2);
	struct ras_peer peer;

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		assert_int_equal(
			ras_restore_maintenance(
				world->nodes[1].ras, world->now_ns, subject, cases[n].version
			),
			0
		);
		world_pass(world, SEC);
		for (uint32_t node = 0; node < 4; node++) {
			assert_int_equal(ras_peer_find(world->nodes[node].ras, subject, &peer), 0);
			assert_int_equal(peer.maint_version, cases[n].expected);
			assert_int_equal(peer.maint, cases[n].expected & 1);
		}
		assert_int_equal(world_events_all(world, RAS_EVENT_MAINT), 4 * cases[n].events);
	}
	assert_true(world_agrees(world));
	assert_int_equal(
		ras_restore_maintenance(world->nodes[1].ras, world->now_ns, 12345, 1), -ENOENT
	);
	world_destroy(world);
}

// Regression: the switch never reached its subject, and digests differed for ever.
static void maintenance_set_by_another_reaches_the_one_it_is_for(void **state) {
	struct world *world = world_of(6);
	struct ras_peer peer;

	(void)state;
	assert_int_equal(
		ras_set_maintenance(world->nodes[1].ras, world->now_ns, world_id(world, 4), true), 0
	);
	world_pass(world, SEC);
	for (uint32_t n = 0; n < 6; n++) {
		assert_int_equal(ras_peer_find(world->nodes[n].ras, world_id(world, 4), &peer), 0);
		assert_true(peer.maint);
		assert_int_equal(world_event(world, n, RAS_EVENT_MAINT)->value, 1);
	}
	assert_true(world_agrees(world));
	assert_int_equal(
		ras_set_maintenance(world->nodes[4].ras, world->now_ns, world_id(world, 4), false),
		0
	);
	world_pass(world, 10 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(world_events_all(world, RAS_EVENT_DIVERGED), 0);
	assert_int_equal(
		ras_set_maintenance(world->nodes[4].ras, world->now_ns, 12345, true), -ENOENT
	);
	world_destroy(world);
}

// Frame level: the requests and the resulting frames.

static void send_digests(struct lone *lone, uint32_t conn, uint64_t changed) {
	uint8_t bytes[1 + PEERS_RANGES * 8];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	wire_put_u8(&writer, MESSAGE_DIGESTS);
	for (uint32_t range = 0; range < PEERS_RANGES; range++)
		wire_put_u64(&writer, lone->ras->peers.ranges[range] + (changed >> range & 1));
	lone_frame(lone, conn, bytes, wire_writer_used(&writer));
}

static void only_ranges_that_differ_are_listed(void **state) {
	struct lone *lone = lone_of(12, 1);
	uint32_t conn = lone_link(lone, 2);
	uint32_t range = peers_digest_range(lone_id(lone, 7));
	const struct lone_frame *frame;
	struct message_brief_head head;
	struct message_brief brief;
	struct wire_reader reader;
	uint32_t listed = 0;
	uint32_t there = 0;

	(void)state;
	send_digests(lone, conn, UINT64_C(1) << range);
	frame = lone_latest(lone, conn, MESSAGE_BRIEF);
	wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
	assert_int_equal(message_brief_head_decode(&reader, &head), 0);
	assert_int_equal(head.mask, UINT64_C(1) << range);
	assert_int_equal(head.flags, MESSAGE_BRIEF_FIRST | MESSAGE_BRIEF_LAST);
	while (message_brief_decode(&reader, head.entry_bytes, &brief) == 0) {
		assert_int_equal(peers_digest_range(brief.id), range);
		listed++;
	}
	for (uint32_t n = 0; n < 12; n++)
		there += peers_digest_range(lone_id(lone, n)) == range;
	assert_int_equal(listed, there);
	lone_destroy(lone);
}

static void equal_digests_are_answered_by_nothing(void **state) {
	struct lone *lone = lone_of(6, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	send_digests(lone, conn, 0);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_BRIEF), 0);
	lone_destroy(lone);
}

static void brief_is_answered_with_what_it_lacks_and_a_pull_of_what_we_lack(void **state) {
	struct lone *lone = lone_of(6, 1);
	uint32_t conn = lone_link(lone, 2);
	uint8_t bytes[256];
	struct wire_writer writer;

	(void)state;
	lone_mark(lone);
	wire_writer_init(&writer, bytes, sizeof(bytes));
	message_brief_begin(UINT64_MAX, MESSAGE_BRIEF_FIRST | MESSAGE_BRIEF_LAST, &writer);
	for (uint32_t n = 0; n < 5; n++) { // all except 5
		struct message_brief brief = {
			.id = lone_id(lone, n),
			.incarnation = ras_incarnation(1, 0),
			.record_digest = lone->records[n]->digest,
			.state = RAS_ALIVE,
		};

		message_brief_encode(&brief, &writer);
	}
	message_brief_encode(
		&(struct message_brief){.id = 99, .incarnation = 1 << 16, .state = RAS_ALIVE},
		&writer
	);
	lone_frame(lone, conn, bytes, wire_writer_used(&writer));
	assert_int_equal(lone_sent(lone, conn, MESSAGE_UPDATE), 1);
	assert_int_equal(
		lone_latest(lone, conn, MESSAGE_UPDATE)->size,
		1 + message_news_bytes(&(struct peer_news
		    ){.record = lone->records[5], .state = RAS_ALIVE})
	);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_PULL), 1);
	assert_int_equal(lone_latest(lone, conn, MESSAGE_PULL)->size, 9);
	lone_destroy(lone);
}

// A changing digest means that news are in progress.
static void comparison_waits_until_both_digests_stand_still(void **state) {
	struct lone *lone = lone_of(6, 1);
	uint32_t conn = lone_link(lone, 2);
	struct message_beat beat = {.period = 1, .uses = RAS_USE_NEXT};
	uint64_t still = 0;

	(void)state;
	for (uint32_t n = 0; n < 60; n++) {
		uint8_t bytes[64];
		struct wire_writer writer;

		beat.sequence = n;
		beat.digest = n < 40 ? n : 777; // changes for four seconds, then is constant
		wire_writer_init(&writer, bytes, sizeof(bytes));
		message_beat_encode(&beat, &writer);
		lone_frame(lone, conn, bytes, wire_writer_used(&writer));
		if (n < 40)
			assert_int_equal(lone_sent(lone, conn, MESSAGE_DIGESTS), 0);
		else if (lone_sent(lone, conn, MESSAGE_DIGESTS) == 0)
			still += 100 * MS;
		lone_pass(lone, 100 * MS);
	}
	assert_in_range(still, lone->profile.sync_ns, lone->profile.sync_ns + 200 * MS);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_DIGESTS), 1);
	assert_int_equal(lone_events(lone, RAS_EVENT_DIVERGED), 1);
	lone_destroy(lone);
}

// News are collected and sent on every good link, except the one they came from.
static void news_go_once_over_every_other_link_in_one_frame(void **state) {
	struct lone *lone = lone_of(8, 1);
	uint32_t from = lone_link(lone, 2);
	uint32_t other = lone_link(lone, 0);
	struct peer_news news;

	(void)state;
	lone_pass(lone, SEC);
	lone_mark(lone);
	for (uint32_t n = 4; n < 8; n++) {
		news = lone_told(lone, n, RAS_DEAD, ras_incarnation(1, 0));
		lone_news(lone, from, &news);
	}
	lone_pass(lone, 100 * MS);
	assert_int_equal(lone_sent(lone, from, MESSAGE_UPDATE), 0);
	assert_int_equal(lone_sent(lone, other, MESSAGE_UPDATE), 1);
	lone_destroy(lone);
}

static void news_go_round_a_silent_link(void **state) {
	struct lone *lone = lone_of(8, 1);
	uint32_t silent = lone_link(lone, 2);
	uint32_t from = lone_link(lone, 0);
	struct peer_news news;

	(void)state;
	lone_pass_beating(lone, 4 * SEC, from);
	// Row 8: from the delay warning on, before the verdict.
	assert_true(lone_find_link(lone, 2)->delayed);
	lone_mark(lone);
	news = lone_told(lone, 5, RAS_DEAD, ras_incarnation(1, 0));
	lone_news(lone, from, &news);
	lone_pass_beating(lone, 200 * MS, from);
	assert_int_equal(lone_sent(lone, silent, MESSAGE_UPDATE), 0);
	lone_destroy(lone);
}

UNIT_GROUP(ras_sync) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_that_differ_in_anything_become_equal),
		cmocka_unit_test(
			table_that_knows_the_later_life_takes_the_higher_record_from_the_other
		),
		cmocka_unit_test(tables_that_go_on_changing_are_compared_as_well),
		cmocka_unit_test(equal_tables_are_never_compared),
		cmocka_unit_test(maintenance_set_by_another_reaches_the_one_it_is_for),
		cmocka_unit_test(stored_version_of_a_switch_wins_if_it_is_higher),
		cmocka_unit_test(only_ranges_that_differ_are_listed),
		cmocka_unit_test(equal_digests_are_answered_by_nothing),
		cmocka_unit_test(brief_is_answered_with_what_it_lacks_and_a_pull_of_what_we_lack),
		cmocka_unit_test(comparison_waits_until_both_digests_stand_still),
		cmocka_unit_test(news_go_once_over_every_other_link_in_one_frame),
		cmocka_unit_test(news_go_round_a_silent_link),
	};

	return cmocka_run_group_tests_name("ras_sync", tests, NULL, NULL);
}
