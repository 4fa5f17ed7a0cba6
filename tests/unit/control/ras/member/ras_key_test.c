// SPDX-License-Identifier: BSD-3-Clause
// The key of an agent: who may speak in its name, and which key a name belongs to.
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>
#include <support/fake_departure.h>
#include <support/fake_notice.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEC RAS_NS_PER_SEC
#define OTHER_KEY 1000 // seed of a key that no node of the world has

static struct world *ring_create(uint32_t count) {
	struct world *world =
		world_create(&(struct world_setup){.count = count, .seeds = 2, .idle = true});

	for (uint32_t n = 0; n < count; n++)
		world_start(world, n, 0, n);
	world_pass(world, 15 * SEC);
	assert_true(world_agrees(world));
	world_mark(world);
	return world;
}

// Return the fingerprint of the key that `node` knows of another node.
static uint64_t known_key_fingerprint(const struct world *world, uint32_t node, uint32_t of) {
	struct ras_peer peer;

	assert_int_equal(ras_peer_find(world->nodes[node].ras, world_id(world, of), &peer), 0);
	return ras_key_fingerprint(peer.record->key);
}

static uint64_t key_of_seed(uint64_t seed) {
	uint8_t key[RAS_KEY_BYTES];

	fake_key(seed, key);
	return ras_key_fingerprint(key);
}

// Signed notices

// A member sends a notice in the name of another one to all its neighbours, signed with its own
// key. The id is 16 starts ahead, so as a known id it would hide all real notices of the origin.
static void notice_forge(struct world *world, uint32_t liar, uint32_t origin) {
	struct ras *ras = world->nodes[liar].ras;
	const struct collect_notice notice = {
		.origin = world_id(world, origin),
		.id = (UINT64_C(17) << 32) + 1,
		.kind = RAS_NOTICE_OWN_MIN,
		.hops = 1,
		.payload = "DiskFailed",
		.size = 10,
	};
	uint8_t frame[256];
	struct wire_writer writer;

	wire_writer_init(&writer, frame, sizeof(frame));
	fake_notice_encode(&notice, ras->cluster, world->nodes[liar].key, &writer);
	ras_enter(ras, world->now_ns);
	for (uint32_t n = 0; n < ras->links.count; n++) {
		if (link_is_good(ras->links.table[n]))
			link_send(ras, ras->links.table[n], frame, wire_writer_used(&writer));
	}
	ras_exit(ras);
}

static void member_that_forges_a_notice_is_believed_by_nobody_and_mutes_nobody(void **state) {
	struct world *world = ring_create(4);
	const uint32_t liar = 3, victim = 2;

	(void)state;
	assert_true(world_is_linked(world, liar, victim));
	notice_forge(world, liar, victim);
	world_pass(world, SEC);
	for (uint32_t n = 0; n < 4; n++)
		assert_int_equal(world->nodes[n].notices, 0);
	// The victim names its neighbour that brought the notice.
	assert_int_equal(world_events_all(world, RAS_EVENT_FORGED), 1);
	assert_int_equal(world_event(world, victim, RAS_EVENT_FORGED)->peer, world_id(world, liar));
	assert_int_equal(
		world_event(world, victim, RAS_EVENT_FORGED)->value, world_id(world, victim)
	);
	// A real notice of the victim arrives everywhere.
	assert_int_equal(
		ras_notice(world->nodes[victim].ras, world->now_ns, RAS_NOTICE_OWN_MIN, "x", 1), 0
	);
	world_pass(world, SEC);
	for (uint32_t n = 0; n < 4; n++)
		assert_int_equal(world->nodes[n].notices, n == victim ? 0 : 1);
	assert_int_equal(world->nodes[liar].notice_origin, world_id(world, victim));
	world_destroy(world);
}

// Names

static void agents_that_lose_their_state_come_back_with_new_keys(void **state) {
	struct world *world = ring_create(8);

	(void)state;
	for (uint32_t n = 0; n < 8; n++) {
		world_mark(world);
		world_kill(world, n);
		world_pass(world, SEC / 10); // sooner than the death of the earlier run
		world->key_seed = OTHER_KEY + n;
		world_start(world, n, 0, n);
		world_pass(world, 20 * SEC);
		assert_true(world_agrees(world));
		for (uint32_t other = 0; other < 8; other++) {
			assert_int_equal(
				known_key_fingerprint(world, other, n), key_of_seed(OTHER_KEY + n)
			);
			if (other == n)
				continue;
			assert_int_equal(world_events(world, other, RAS_EVENT_KEY_CHANGED), 1);
			assert_int_equal(
				world_event(world, other, RAS_EVENT_KEY_CHANGED)->value,
				key_of_seed(n)
			);
		}
		assert_int_equal(world_events_all(world, RAS_EVENT_KEY_REFUSED), 0);
	}
	world_destroy(world);
}

// Node `liar` floods an update about another member to all others.
static void news_flood(struct world *world, uint32_t liar, const struct peer_news *update) {
	struct peer_news news = *update;
	struct ras *ras = world->nodes[liar].ras;
	uint8_t frame[1024];
	struct wire_writer writer;

	wire_writer_init(&writer, frame, sizeof(frame));
	wire_put_u8(&writer, MESSAGE_UPDATE);
	message_news_encode(&news, &writer);
	ras_enter(ras, world->now_ns);
	for (uint32_t n = 0; n < ras->links.count; n++) {
		struct link *link = ras->links.table[n];

		if (link_is_good(link) && link->peer != news.id)
			link_send(ras, link, frame, wire_writer_used(&writer));
	}
	ras_exit(ras);
}

// Flood a newer start of another member, with a key of the liar's own.
static void record_forge(struct world *world, uint32_t liar, uint32_t victim) {
	struct peer_news news = {.state = RAS_ALIVE, .incarnation = ras_incarnation(9, 0)};
	struct ras_peer_info info;

	ras_record_info(world->nodes[victim].record, &info);
	info.start = 9;
	fake_key(OTHER_KEY, info.key);
	assert_int_equal(ras_record_from_info(world->interner, &info, &news.record), 0);
	news.id = news.record->id;
	news_flood(world, liar, &news);
	ras_record_put(world->interner, news.record);
}

static void start_that_its_agent_did_not_sign_is_refused_and_mutes_nobody(void **state) {
	struct world *world = ring_create(4);
	const uint32_t liar = 3, victim = 1;
	const struct ras_record *real = ras_self(world->nodes[victim].ras)->record;
	size_t start_at = 3 + real->name_length + 2U + real->host_length + 16;
	struct ras_record *forged = malloc(sizeof(*forged) + real->size);
	struct peer_news news = {.state = RAS_ALIVE, .incarnation = ras_incarnation(9, 0)};

	(void)state;
	// The public key of the victim is known to all, and its name and address as well.
	assert_non_null(forged);
	memcpy(forged, real, sizeof(*forged) + real->size);
	assert_int_equal(forged->encoding[start_at], 1);
	forged->encoding[start_at] = 9;
	news.id = real->id;
	news.record = forged;
	news_flood(world, liar, &news);
	free(forged);
	world_pass(world, 5 * SEC);
	for (uint32_t n = 0; n < 3; n++) {
		struct ras_peer peer;

		assert_int_equal(ras_peer_find(world->nodes[n].ras, news.id, &peer), 0);
		assert_int_equal(peer.record->start, 1);
		assert_int_equal(peer.state, RAS_ALIVE);
	}
	assert_true(ras_counters(world->nodes[0].ras)->frames_malformed > 0);
	assert_int_equal(
		ras_notice(world->nodes[victim].ras, world->now_ns, RAS_NOTICE_OWN_MIN, "x", 1), 0
	);
	world_pass(world, SEC);
	for (uint32_t n = 0; n < 4; n++)
		assert_int_equal(world->nodes[n].notices, n == victim ? 0 : 1);
	world_destroy(world);
}

static void hearsay_gives_the_name_of_a_living_member_to_no_other_key(void **state) {
	struct world *world = ring_create(4);
	const uint32_t liar = 3, victim = 1;
	uint32_t refused = 0;

	(void)state;
	for (uint32_t second = 0; second < 5; second++) {
		record_forge(world, liar, victim);
		world_pass(world, SEC);
	}
	world_pass(world, 15 * SEC);
	for (uint32_t n = 0; n < 4; n++) {
		uint32_t events = world_events(world, n, RAS_EVENT_KEY_REFUSED);

		assert_int_equal(known_key_fingerprint(world, n, victim), key_of_seed(victim));
		assert_int_equal(world_state(world, n, victim), RAS_ALIVE);
		assert_in_range(events, 0, 1); // one event for all records of ten seconds
		refused += events;
		if (events > 0)
			assert_int_equal(
				world_event(world, n, RAS_EVENT_KEY_REFUSED)->value,
				key_of_seed(OTHER_KEY)
			);
	}
	assert_true(refused > 0);
	assert_int_equal(world_events_all(world, RAS_EVENT_KEY_CHANGED), 0);
	assert_true(world_agrees(world));
	world_destroy(world);
}

static void one_liar_leaves_places_to_check_what_others_report(void **state) {
	struct world *world = ring_create(8);
	const struct key_checks *checks = &world->nodes[7].ras->key_checks;
	uint32_t tellers[2], linked = 0, victim = 0;

	(void)state;
	for (uint32_t n = 0; n < 7 && linked < 2; n++) {
		if (world_is_linked(world, n, 7))
			tellers[linked++] = n;
	}
	assert_int_equal(linked, 2);
	for (uint32_t n = 0; n < 7; n++) {
		if (n == tellers[0] || n == tellers[1])
			continue;
		record_forge(world, tellers[0], n);
		victim = n;
	}
	world_pass(world, SEC / 10);
	assert_int_equal(checks->count, KEY_CHECKS_PER_TELLER);
	record_forge(world, tellers[1], victim);
	world_pass(world, SEC / 10);
	assert_int_equal(checks->count, KEY_CHECKS_PER_TELLER + 1);
	assert_int_equal(checks->list[KEY_CHECKS_PER_TELLER].peer, world_id(world, victim));
	// The places are free again after the checks.
	world_pass(world, 12 * SEC);
	assert_int_equal(checks->count, 0);
	assert_true(world_agrees(world));
	world_destroy(world);
}

static void agent_at_another_address_gets_a_name_only_when_its_member_is_dead(void **state) {
	struct world *world = ring_create(5);
	const uint32_t holder = 2, newcomer = 4;

	(void)state;
	world_kill(world, newcomer);
	world_pass(world, 15 * SEC);
	world_freeze(world, holder); // its host answers, its agent does not
	world->key_seed = OTHER_KEY;
	world_start(world, newcomer, 0, holder);
	world_pass(world, 4 * SEC);
	for (uint32_t n = 0; n < 4; n++) {
		if (n != holder)
			assert_int_equal(
				known_key_fingerprint(world, n, holder), key_of_seed(holder)
			);
	}
	world_pass(world, 40 * SEC);
	for (uint32_t n = 0; n < 4; n++) {
		if (n == holder)
			continue;
		assert_int_equal(known_key_fingerprint(world, n, holder), key_of_seed(OTHER_KEY));
		assert_int_equal(world_state(world, n, holder), RAS_ALIVE);
	}
	world_destroy(world);
}

static void member_that_cannot_reach_the_address_goes_by_what_others_report(void **state) {
	struct world *world = ring_create(6);
	const uint32_t cut = 0, lost = 3;

	(void)state;
	world_way(world, cut, lost, WORLD_STALLED);
	world_way(world, lost, cut, WORLD_STALLED);
	world_kill(world, lost);
	world_pass(world, SEC / 10);
	world->key_seed = OTHER_KEY;
	world_start(world, lost, 0, lost);
	world_pass(world, 60 * SEC);
	for (uint32_t n = 0; n < 6; n++) {
		assert_int_equal(known_key_fingerprint(world, n, lost), key_of_seed(OTHER_KEY));
		assert_int_equal(world_state(world, n, lost), RAS_ALIVE);
	}
	world_destroy(world);
}

static void name_of_one_who_left_goes_to_the_next_key_at_once(void **state) {
	struct world *world = ring_create(4);

	(void)state;
	ras_leave(world->nodes[1].ras, world->now_ns);
	world_pass(world, SEC);
	world_kill(world, 1);
	world->key_seed = OTHER_KEY;
	world_start(world, 1, 0, 1);
	world_pass(world, 2 * SEC);
	for (uint32_t n = 0; n < 4; n++)
		assert_int_equal(known_key_fingerprint(world, n, 1), key_of_seed(OTHER_KEY));
	assert_int_equal(world_events_all(world, RAS_EVENT_KEY_REFUSED), 0);
	world_destroy(world);
}

// Departures

enum forgery {
	FORGERY_UNSIGNED,
	FORGERY_OTHER_KEY,
	FORGERY_REPLAY, // signed by the member itself in its earlier start
	FORGERY_COUNT,
};

// Node `liar` floods to all but the victim: the victim has left.
static void departure_forge(
	struct world *world,
	uint32_t liar,
	uint32_t victim,
	enum forgery forgery,
	const uint8_t earlier[static RAS_SIGNATURE_BYTES]
) {
	const struct ras *ras = world->nodes[victim].ras;
	uint8_t signature[RAS_SIGNATURE_BYTES];
	struct peer_news news = {
		.id = world_id(world, victim),
		.incarnation = ras_self_incarnation(ras),
		.state = RAS_LEFT,
		.hops = 1,
	};

	fake_departure(ras->cluster, news.id, news.incarnation, world->nodes[liar].key, signature);
	if (forgery != FORGERY_UNSIGNED)
		news.signature = forgery == FORGERY_OTHER_KEY ? signature : earlier;
	news_flood(world, liar, &news);
}

static uint64_t departures_forged(const struct world *world) {
	uint64_t sum = 0;

	for (uint32_t n = 0; n < world->count; n++)
		sum += ras_counters(world->nodes[n].ras)->departures_forged;
	return sum;
}

static void departure_that_its_member_did_not_sign_frees_its_name_for_nobody(void **state) {
	struct world *world = ring_create(5);
	const uint32_t liar = 4, victim = 1;
	uint8_t earlier[RAS_SIGNATURE_BYTES];

	(void)state;
	fake_departure(
		world->nodes[0].ras->cluster, world_id(world, victim), ras_incarnation(1, 0),
		world->nodes[victim].key, earlier
	);
	ras_leave(world->nodes[victim].ras, world->now_ns);
	world_pass(world, SEC);
	world_kill(world, victim);
	world_start(world, victim, 0, victim);
	world_pass(world, 20 * SEC);
	assert_true(world_agrees(world));
	assert_int_equal(departures_forged(world), 0);
	world_mark(world);
	for (enum forgery forgery = 0; forgery < FORGERY_COUNT; forgery++) {
		uint64_t before = departures_forged(world);

		departure_forge(world, liar, victim, forgery, earlier);
		record_forge(world, liar, victim);
		world_pass(world, SEC);
		// Each neighbour of the liar dropped it, and no other member has heard of it.
		assert_in_range(departures_forged(world) - before, 1, 3);
		for (uint32_t n = 0; n < 5; n++) {
			assert_int_equal(world_state(world, n, victim), RAS_ALIVE);
			assert_int_equal(
				known_key_fingerprint(world, n, victim), key_of_seed(victim)
			);
		}
	}
	assert_int_equal(world_events_all(world, RAS_EVENT_LEFT), 0);
	assert_int_equal(world_events_all(world, RAS_EVENT_LINK_DOWN), 0);
	assert_int_equal(world_events_all(world, RAS_EVENT_DECLARED_DEAD), 0);
	world_destroy(world);
}

// Node `liar` floods a refutation of the victim that the victim did not make.
static void refutation_forge(struct world *world, uint32_t liar, uint32_t victim) {
	struct peer_news news = {
		.id = world_id(world, victim),
		.incarnation = ras_incarnation(1, 9),
		.state = RAS_ALIVE,
		.hops = 1,
	};

	news_flood(world, liar, &news);
}

static void departure_is_undone_by_no_refutation_that_a_liar_made(void **state) {
	(void)state;
	for (int lies_first = 0; lies_first < 2; lies_first++) {
		struct world *world = ring_create(5);
		const uint32_t liar = 4, victim = 1;

		if (lies_first)
			refutation_forge(world, liar, victim);
		world_pass(world, SEC);
		ras_leave(world->nodes[victim].ras, world->now_ns);
		world_pass(world, SEC);
		world_kill(world, victim);
		if (!lies_first)
			refutation_forge(world, liar, victim);
		world_pass(world, 30 * SEC);
		for (uint32_t n = 0; n < 5; n++) {
			if (n != victim)
				assert_int_equal(world_state(world, n, victim), RAS_LEFT);
		}
		world_destroy(world);
	}
}

static void real_departure_reaches_who_was_cut_off_meanwhile(void **state) {
	struct world *world = ring_create(6);
	struct peer_news news;
	uint32_t slot;

	(void)state;
	world_split(world, 1, WORLD_STALLED); // node 0 alone hears nobody
	world_pass(world, SEC / 10);
	ras_leave(world->nodes[3].ras, world->now_ns);
	world_pass(world, SEC);
	world_kill(world, 3);
	world_reset(world, 0, 3); // its LEAVE to node 0 is lost
	world_split(world, 1, WORLD_OPEN);
	world_pass(world, 30 * SEC);
	// It came by a comparison of tables, with the signature.
	assert_int_equal(world_state(world, 0, 3), RAS_LEFT);
	slot = peers_find(&world->nodes[0].ras->peers, world_id(world, 3));
	peers_news_fill(&world->nodes[0].ras->peers, slot, &news);
	assert_non_null(news.signature);
	for (uint32_t n = 0; n < 6; n++) {
		if (n != 3)
			assert_int_equal(ras_counters(world->nodes[n].ras)->departures_forged, 0);
	}
	// A joiner gets it with the table, and the record with it.
	world_kill(world, 5);
	world_pass(world, 20 * SEC);
	world_start(world, 5, 0, 5);
	world_pass(world, 20 * SEC);
	assert_int_equal(world_state(world, 5, 3), RAS_LEFT);
	assert_int_equal(ras_counters(world->nodes[5].ras)->departures_forged, 0);
	assert_true(world_agrees(world));
	world_destroy(world);
}

static void farewell_that_the_neighbour_did_not_sign_only_breaks_its_link(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct peer_news left = lone_told(lone, 2, RAS_LEFT, ras_incarnation(1, 0));
	uint8_t wrong[RAS_SIGNATURE_BYTES];
	uint32_t conn;

	(void)state;
	memcpy(wrong, left.signature, sizeof(wrong));
	wrong[63] ^= 1;
	for (uint32_t n = 0; n < 2; n++) {
		conn = lone_link(lone, 2);
		lone_mark(lone);
		left.signature = n == 0 ? NULL : wrong;
		lone_news(lone, conn, &left);
		assert_true(lone_is_closed(lone, conn));
		assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
		assert_int_equal(lone_events(lone, RAS_EVENT_LEFT), 0);
		assert_int_equal(lone_event(lone, RAS_EVENT_LINK_DOWN)->cause, RAS_CAUSE_PROTOCOL);
		assert_int_equal(ras_counters(lone->ras)->departures_forged, n + 1);
		lone_pass(lone, SEC);
	}
	conn = lone_link(lone, 2);
	left = lone_told(lone, 2, RAS_LEFT, ras_incarnation(1, 0));
	lone_news(lone, conn, &left);
	assert_int_equal(lone_peer(lone, 2).state, RAS_LEFT);
	lone_destroy(lone);
}

// Send a departure of an agent that the instance does not know, and return whether it is in the
// table then.
static bool stranger_left(struct lone *lone, uint32_t conn, bool has_record, bool is_signed) {
	struct peer_news news = {.state = RAS_LEFT, .incarnation = ras_incarnation(1, 0)};
	struct ras_peer_info info = lone_info(lone, 3, 1);
	uint8_t signature[RAS_SIGNATURE_BYTES];
	struct ras_record *record;
	struct ras_peer peer;

	snprintf(info.name, sizeof(info.name), "stranger");
	assert_int_equal(ras_record_from_info(lone->interner, &info, &record), 0);
	news.id = record->id;
	news.record = has_record ? record : NULL;
	fake_departure(lone->ras->cluster, news.id, news.incarnation, record->key, signature);
	news.signature = is_signed ? signature : NULL;
	lone_news(lone, conn, &news);
	ras_record_put(lone->interner, record);
	return ras_peer_find(lone->ras, news.id, &peer) == 0;
}

static void departure_of_a_stranger_is_kept_only_with_its_record_and_signature(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	lone_mark(lone);
	assert_false(stranger_left(lone, conn, false, true));
	assert_int_equal(ras_counters(lone->ras)->departures_forged, 0);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_PULL), 0);
	assert_false(stranger_left(lone, conn, true, false));
	assert_int_equal(ras_counters(lone->ras)->departures_forged, 1);
	assert_true(stranger_left(lone, conn, true, true));
	assert_int_equal(ras_counters(lone->ras)->departures_forged, 1);
	assert_false(lone_is_closed(lone, conn));
	lone_destroy(lone);
}

// Two runs of one start differ in their records, and here in their keys. The departure of one is
// none of the other.
static void record_of_another_run_takes_no_departure_over(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);
	uint32_t kept = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 8; seed++) {
		struct peer_news left = lone_told(lone, 3, RAS_LEFT, ras_incarnation(1, 0));
		struct ras_peer_info info = lone_info(lone, 3, 1);
		struct peer_news news = lone_told(lone, 3, RAS_ALIVE, ras_incarnation(1, 0));

		if (seed == 0)
			lone_news(lone, conn, &left);
		assert_int_equal(lone_peer(lone, 3).state, RAS_LEFT);
		fake_key(OTHER_KEY + seed, info.key);
		assert_int_equal(ras_record_from_info(lone->interner, &info, &news.record), 0);
		kept += news.record->digest > lone->records[3]->digest;
		lone_news(lone, conn, &news);
		ras_record_put(lone->interner, news.record);
		assert_ptr_equal(lone_peer(lone, 3).record, lone->records[3]);
	}
	assert_in_range(kept, 1, 8);
	lone_destroy(lone);
}

UNIT_GROUP(ras_key) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(member_that_forges_a_notice_is_believed_by_nobody_and_mutes_nobody
		),
		cmocka_unit_test(agents_that_lose_their_state_come_back_with_new_keys),
		cmocka_unit_test(start_that_its_agent_did_not_sign_is_refused_and_mutes_nobody),
		cmocka_unit_test(hearsay_gives_the_name_of_a_living_member_to_no_other_key),
		cmocka_unit_test(one_liar_leaves_places_to_check_what_others_report),
		cmocka_unit_test(agent_at_another_address_gets_a_name_only_when_its_member_is_dead),
		cmocka_unit_test(member_that_cannot_reach_the_address_goes_by_what_others_report),
		cmocka_unit_test(name_of_one_who_left_goes_to_the_next_key_at_once),
		cmocka_unit_test(departure_that_its_member_did_not_sign_frees_its_name_for_nobody),
		cmocka_unit_test(departure_is_undone_by_no_refutation_that_a_liar_made),
		cmocka_unit_test(real_departure_reaches_who_was_cut_off_meanwhile),
		cmocka_unit_test(farewell_that_the_neighbour_did_not_sign_only_breaks_its_link),
		cmocka_unit_test(departure_of_a_stranger_is_kept_only_with_its_record_and_signature
		),
		cmocka_unit_test(record_of_another_run_takes_no_departure_over),
	};

	return cmocka_run_group_tests_name("ras_key", tests, NULL, NULL);
}
