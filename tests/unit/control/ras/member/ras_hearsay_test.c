// SPDX-License-Identifier: BSD-3-Clause
// Names that members invent: they wait until they are proven, and have no part in any count.
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#include <stdio.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS
#define LIAR 7
#define FROZEN 3
#define INVENTED 6000

// Make news of a name that nobody has, at the address of another agent. The caller puts the record.
static struct peer_news invent(struct ras_interner *interner, struct ras *ras, uint32_t number) {
	struct peer_news news = {.state = RAS_ALIVE, .incarnation = ras_incarnation(1, 0)};
	struct ras_peer_info info;

	ras_record_info(ras_self(ras)->record, &info);
	snprintf(info.name, sizeof(info.name), "ghost%u", number);
	snprintf(info.host, sizeof(info.host), "ghost%u", number);
	info.start = 1;
	info.addresses[0].address[3] = (uint8_t)(number % 7 + 1);
	assert_int_equal(ras_record_from_info(interner, &info, &news.record), 0);
	news.id = news.record->id;
	return news;
}

static void lone_report(struct lone *lone, uint64_t source, const struct peer_news *news) {
	uint8_t bytes[4096];
	struct wire_writer writer;
	struct wire_reader reader;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	message_news_encode(news, &writer);
	wire_reader_init(&reader, bytes, wire_writer_used(&writer));
	ras_enter(lone->ras, lone->now_ns);
	assert_int_equal(news_update_received(lone->ras, NULL, source, &reader), 0);
	ras_exit(lone->ras);
}

static bool lone_knows(const struct lone *lone, uint64_t id) {
	return peers_find(&lone->ras->peers, id) != RAS_NO_SLOT;
}

static void name_of_one_source_waits_until_another_one_reports_it(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct peer_news news = invent(lone->interner, lone->ras, 1);
	uint64_t digest = peers_digest(&lone->ras->peers);

	(void)state;
	lone_mark(lone);
	for (uint32_t n = 0; n < 5; n++)
		lone_report(lone, 11, &news);
	assert_false(lone_knows(lone, news.id));
	assert_int_equal(peers_member_count(&lone->ras->peers), 8);
	assert_true(peers_digest(&lone->ras->peers) == digest);
	assert_int_equal(lone_events(lone, RAS_EVENT_JOINED), 0);
	lone_report(lone, 12, &news);
	assert_true(lone_knows(lone, news.id));
	assert_int_equal(lone_events(lone, RAS_EVENT_JOINED), 1);
	assert_int_equal(peers_tombstone_count(&lone->ras->hearsay.names), 0);
	ras_record_put(lone->interner, news.record);
	lone_destroy(lone);
}

// Different records of one name from two members do not prove the name.
static void another_record_of_the_name_is_no_second_report(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct peer_news news = invent(lone->interner, lone->ras, 1);
	struct peer_news other = news;
	struct ras_peer_info info;

	(void)state;
	ras_record_info(news.record, &info);
	info.pid++;
	assert_int_equal(ras_record_from_info(lone->interner, &info, &other.record), 0);
	lone_report(lone, 11, &news);
	lone_report(lone, 12, &other);
	assert_false(lone_knows(lone, news.id));
	lone_report(lone, 11, &other);
	assert_true(lone_knows(lone, news.id));
	ras_record_put(lone->interner, news.record);
	ras_record_put(lone->interner, other.record);
	lone_destroy(lone);
}

static void view_of_three_believes_each_report(void **state) {
	struct lone *lone = lone_of(3, 1);
	struct peer_news news = invent(lone->interner, lone->ras, 1);
	struct peer_news next = invent(lone->interner, lone->ras, 2);

	(void)state;
	lone_report(lone, 11, &news);
	assert_true(lone_knows(lone, news.id));
	lone_report(lone, 11, &next);
	assert_false(lone_knows(lone, next.id));
	ras_record_put(lone->interner, news.record);
	ras_record_put(lone->interner, next.record);
	lone_destroy(lone);
}

// Regression: an invented name whose death came first was believed as soon as it refuted the death.
static void refuted_death_of_an_invented_name_proves_nothing(void **state) {
	struct lone *lone = lone_of(8, 1);
	struct peer_news alive = invent(lone->interner, lone->ras, 1);
	struct peer_news dead = alive;
	struct peer_news refuted = alive;
	struct ras_record *record = alive.record;

	(void)state;
	dead.state = RAS_DEAD;
	dead.cause = RAS_CAUSE_SILENT;
	dead.observer_count = 2;
	dead.observers[0] = lone_id(lone, 2);
	dead.observers[1] = lone_id(lone, 3);
	alive.incarnation = refuted.incarnation = ras_incarnation(1, 1);
	refuted.record = NULL;
	lone_report(lone, 11, &dead);
	assert_int_equal(peers_tombstone_count(&lone->ras->peers), 1);
	for (uint32_t n = 0; n < 3; n++) {
		lone_report(lone, 11, &alive);
		lone_report(lone, 11, &refuted);
		assert_int_equal(peers_member_count(&lone->ras->peers), 8);
	}
	lone_report(lone, 12, &refuted);
	assert_int_equal(peers_member_count(&lone->ras->peers), 9);
	assert_int_equal(peers_tombstone_count(&lone->ras->hearsay.names), 0);
	// This agent has seen the start as a member, so a later refutation needs no proof.
	alive.incarnation = ras_incarnation(1, 3);
	dead.incarnation = ras_incarnation(1, 2);
	lone_report(lone, 11, &dead);
	assert_int_equal(peers_member_count(&lone->ras->peers), 8);
	lone_report(lone, 11, &alive);
	assert_int_equal(peers_member_count(&lone->ras->peers), 9);
	ras_record_put(lone->interner, record);
	lone_destroy(lone);
}

static void invented_names_are_bounded_and_forgotten(void **state) {
	struct lone *lone = lone_of(8, 1);
	size_t before;

	(void)state;
	before = ras_memory_used(lone->ras);
	for (uint32_t n = 0; n < INVENTED; n++) {
		struct peer_news news = invent(lone->interner, lone->ras, n);

		lone_report(lone, 11, &news);
		ras_record_put(lone->interner, news.record);
	}
	assert_int_equal(peers_member_count(&lone->ras->peers), 8);
	assert_int_equal(lone->ras->counters.names_held, HEARSAY_REPORTS_MAX);
	assert_true(peers_tombstone_count(&lone->ras->hearsay.names) <= HEARSAY_NAMES_MAX);
	assert_true(ras_memory_used(lone->ras) - before < 1 << 20);
	// A name from another source is stored, and replaces a waiting name.
	for (uint32_t n = INVENTED; n < INVENTED + 10; n++) {
		struct peer_news news = invent(lone->interner, lone->ras, n);

		lone_report(lone, 12, &news);
		lone_report(lone, 13, &news);
		assert_true(lone_knows(lone, news.id));
		ras_record_put(lone->interner, news.record);
	}
	lone_destroy(lone);
}

// Report names from the liar over all its links, as many as fit into one frame each.
static void liar_reports(struct world *world, uint32_t *number) {
	struct ras *liar = world->nodes[LIAR].ras;
	uint8_t frame[RAS_FRAME_MAX];
	struct wire_writer writer;

	ras_enter(liar, world->now_ns);
	news_frame_begin(liar, &writer);
	for (uint32_t n = 0; n < 20; n++) {
		struct peer_news news = invent(world->interner, liar, (*number)++);

		message_news_encode(&news, &writer);
		ras_record_put(world->interner, news.record);
	}
	memcpy(frame, liar->scratch, wire_writer_used(&writer));
	for (uint32_t n = 0; n < liar->links.count; n++) {
		if (link_is_good(liar->links.table[n]))
			link_send(liar, liar->links.table[n], frame, wire_writer_used(&writer));
	}
	ras_exit(liar);
}

// Regression: the invented names counted in the electorate, so the brake held each death.
static void silent_node_is_dead_in_the_usual_time_while_names_are_invented(void **state) {
	struct world *world = world_of(8);
	uint32_t number = 0;

	(void)state;
	world_pass(world, 5 * SEC);
	for (uint32_t n = 0; n < 50; n++) {
		liar_reports(world, &number);
		world_pass(world, 100 * MS);
	}
	world_freeze(world, FROZEN);
	for (uint32_t n = 0; n < 130; n++) {
		liar_reports(world, &number);
		world_pass(world, 100 * MS);
	}
	for (uint32_t n = 0; n < 8; n++) {
		if (n == FROZEN)
			continue;
		assert_int_equal(world_state(world, n, FROZEN), RAS_DEAD);
		assert_int_equal(world_view(world, n).alive, 7);
	}
	assert_int_equal(world_events_all(world, RAS_EVENT_BRAKE_ON), 0);
	world_destroy(world);
}

// A member that missed both reports of a real name asks at the address of that name.
static void name_that_one_member_reports_is_proven_at_its_address(void **state) {
	const struct world_setup setup = {.count = 6, .seeds = 1, .idle = true};
	struct world *world = world_create(&setup);
	struct ras *ras;

	(void)state;
	for (uint32_t n = 0; n < 5; n++)
		world_start(world, n, 1, n);
	world_pass(world, 10 * SEC);
	assert_true(world_agrees(world));
	ras = world->nodes[2].ras;
	world_way(world, 5, 2, WORLD_REFUSED); // the newcomer cannot call this member
	world_way(world, 4, 2, WORLD_STALLED);
	world_start(world, 5, 1, 5);
	world_pass(world, 8 * SEC);
	assert_int_not_equal(peers_find(&ras->peers, world_id(world, 5)), RAS_NO_SLOT);
	world_destroy(world);
}

UNIT_GROUP(ras_hearsay) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_of_one_source_waits_until_another_one_reports_it),
		cmocka_unit_test(another_record_of_the_name_is_no_second_report),
		cmocka_unit_test(view_of_three_believes_each_report),
		cmocka_unit_test(refuted_death_of_an_invented_name_proves_nothing),
		cmocka_unit_test(invented_names_are_bounded_and_forgotten),
		cmocka_unit_test(silent_node_is_dead_in_the_usual_time_while_names_are_invented),
		cmocka_unit_test(name_that_one_member_reports_is_proven_at_its_address),
	};

	return cmocka_run_group_tests_name("ras_hearsay", tests, NULL, NULL);
}
