// SPDX-License-Identifier: BSD-3-Clause
// The key of an agent: who may speak in its name, and which key a name belongs to.
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>
#include <support/fake_notice.h>

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

UNIT_GROUP(ras_key) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(member_that_forges_a_notice_is_believed_by_nobody_and_mutes_nobody
		),
		cmocka_unit_test(agents_that_lose_their_state_come_back_with_new_keys),
		cmocka_unit_test(start_that_its_agent_did_not_sign_is_refused_and_mutes_nobody),
		cmocka_unit_test(hearsay_gives_the_name_of_a_living_member_to_no_other_key),
		cmocka_unit_test(agent_at_another_address_gets_a_name_only_when_its_member_is_dead),
		cmocka_unit_test(member_that_cannot_reach_the_address_goes_by_what_others_report),
		cmocka_unit_test(name_of_one_who_left_goes_to_the_next_key_at_once),
	};

	return cmocka_run_group_tests_name("ras_key", tests, NULL, NULL);
}
