// SPDX-License-Identifier: BSD-3-Clause
#include "member/peers.h"

#include <support/cmocka.h>
#include <support/heap.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEERS 24
#define NEWS_MAX 96
#define SEC RAS_NS_PER_SEC

struct fixture {
	struct memory memory;
	struct ras_interner *interner;
	struct heap heap;
	uint64_t random;
};

static int set_up(void **state) {
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->memory.source = (struct ras_memory)HEAP_MEMORY(&fixture->heap);
	fixture->random = 1;
	assert_int_equal(ras_interner_create(&fixture->memory.source, &fixture->interner), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state) {
	struct fixture *fixture = *state;

	assert_int_equal(ras_interner_count(fixture->interner), 0);
	ras_interner_destroy(fixture->interner);
	assert_int_equal(fixture->memory.used_bytes, 0);
	assert_int_equal(fixture->heap.used_bytes, 0);
	free(fixture);
	return 0;
}

static uint32_t random_below(struct fixture *fixture, uint32_t limit) {
	fixture->random = fixture->random * UINT64_C(6364136223846793005) + 1442695040888963407U;
	return (uint32_t)(fixture->random >> 33) % limit;
}

static struct ras_record *
record_of(struct fixture *fixture, uint32_t peer, uint64_t start, uint32_t variant) {
	struct ras_peer_info info = {
		.start = start,
		.key = {1}, // a record without a key is no news
		.pid = variant,
		.address_count = 1,
		.addresses = {{.family = SOCK_ADDR_V4, .port = 1, .address = {10, 0, 0, 1}}},
	};
	struct ras_record *record;

	snprintf(info.name, sizeof(info.name), "n%u", peer);
	snprintf(info.host, sizeof(info.host), "h%u", peer / 3);
	assert_int_equal(ras_record_from_info(fixture->interner, &info, &record), 0);
	return record;
}

static struct peer_news news_of(struct ras_record *record, uint64_t refutations, uint8_t state) {
	return (struct peer_news){
		.id = record->id,
		.incarnation = ras_incarnation(record->start, refutations),
		.record = record,
		.state = state,
		.cause = state == RAS_DEAD ? RAS_CAUSE_SILENT : RAS_CAUSE_NONE,
	};
}

static enum peers_change merge(struct peers *peers, const struct peer_news *news) {
	enum peers_change change;
	uint32_t slot;

	assert_int_equal(peers_merge(peers, news, SEC, &change, &slot), 0);
	return change;
}

static uint8_t merged(const struct peer_entry *entry) {
	return peer_is_member(entry) ? RAS_ALIVE : entry->state;
}

// Return the digest of a new table into which the contents of this one are merged.
static uint64_t digest_from_scratch(struct fixture *fixture, const struct peers *peers) {
	struct peers fresh;
	uint64_t digest;

	peers_init(&fresh, &fixture->memory, fixture->interner);
	for (uint32_t slot = 0; slot < peers->entry_count; slot++) {
		struct peer_news news;

		if (peers->entries[slot].record == NULL)
			continue;
		peers_news_fill(peers, slot, &news);
		merge(&fresh, &news);
	}
	digest = peers_digest(&fresh);
	for (uint32_t range = 0; range < PEERS_RANGES; range++)
		assert_int_equal(fresh.ranges[range], peers->ranges[range]);
	peers_fini(&fresh);
	return digest;
}

static void ring_is_sound(struct peers *peers) {
	uint32_t count = peers_ring_count(peers);
	uint32_t members = 0;

	for (uint32_t position = 0; position < count; position++) {
		const struct peer_entry *entry = peers_entry(peers, peers_ring_at(peers, position));

		assert_true(peer_is_member(entry));
		assert_int_equal(peers_ring_position(peers, entry->record), position);
		if (position > 0) {
			uint32_t before = peers_ring_at(peers, position - 1);

			assert_true(
				ras_record_compare(
					peers_entry(peers, before)->record, entry->record
				) < 0
			);
		}
	}
	for (uint32_t slot = 0; slot < peers->entry_count; slot++) {
		const struct peer_entry *entry = peers_entry(peers, slot);

		if (entry->record == NULL)
			continue;
		members += peer_is_member(entry);
		assert_int_equal(peers_find(peers, entry->record->id), slot);
	}
	assert_int_equal(members, count);
}

static void tables_are_equal(const struct peers *a, const struct peers *b) {
	assert_int_equal(peers_digest(a), peers_digest(b));
	assert_memory_equal(a->ranges, b->ranges, sizeof(a->ranges));
	assert_memory_equal(a->state_counts, b->state_counts, sizeof(a->state_counts));
	assert_int_equal(a->entry_count, b->entry_count);
	for (uint32_t slot = 0; slot < a->entry_count; slot++) {
		const struct peer_entry *left = &a->entries[slot];
		uint32_t other = peers_find(b, left->record->id);
		const struct peer_entry *right;

		assert_int_not_equal(other, RAS_NO_SLOT);
		right = &b->entries[other];
		assert_int_equal(left->incarnation, right->incarnation);
		assert_int_equal(merged(left), merged(right));
		assert_int_equal(left->maint, right->maint);
		assert_ptr_equal(left->record, right->record);
		assert_int_equal(left->weight, right->weight);
		assert_memory_equal(left->observers, right->observers, sizeof(left->observers));
		assert_int_equal(left->reached, right->reached);
		assert_int_equal(left->of, right->of);
		if (left->state == RAS_DEAD)
			assert_int_equal(left->cause, right->cause);
	}
}

// Draw a death: observers, cause, and how many of how many members their side reached.
static void death_draw(struct fixture *fixture, struct peer_news *news) {
	static const uint8_t causes[] = {RAS_CAUSE_SILENT, RAS_CAUSE_GONE, RAS_CAUSE_EXITED};

	news->cause = causes[random_below(fixture, sizeof(causes))];
	news->observer_count = (uint8_t)random_below(fixture, RAS_OBSERVERS_MAX + 1);
	for (uint32_t n = 0; n < news->observer_count; n++)
		news->observers[n] = 1 + random_below(fixture, 3);
	news->of = random_below(fixture, 3);
	news->reached = random_below(fixture, news->of + 1);
}

// Draw random news of a few peers: starts, refutations, deaths, leaves, maintenance, other facts.
static uint32_t news_draw(struct fixture *fixture, struct peer_news *news, uint32_t count) {
	static const uint8_t states[] = {RAS_ALIVE, RAS_ALIVE, RAS_ALIVE, RAS_DEAD, RAS_LEFT};

	for (uint32_t n = 0; n < count; n++) {
		struct ras_record *record = record_of(
			fixture, random_below(fixture, 5), 1 + random_below(fixture, 3),
			random_below(fixture, 2)
		);

		news[n] =
			news_of(record, random_below(fixture, 3), states[random_below(fixture, 5)]);
		news[n].maint = random_below(fixture, 4) == 0 ? random_below(fixture, 6) : 0;
		if (news[n].state == RAS_DEAD)
			death_draw(fixture, &news[n]);
	}
	return count;
}

static void shuffle(struct fixture *fixture, uint32_t *order, uint32_t count) {
	for (uint32_t n = count; n > 1; n--) {
		uint32_t other = random_below(fixture, n);
		uint32_t swap = order[n - 1];

		order[n - 1] = order[other];
		order[other] = swap;
	}
}

static void merge_all(
	struct fixture *fixture,
	struct peers *peers,
	const struct peer_news *news,
	uint32_t count,
	bool repeat
) {
	uint32_t order[NEWS_MAX];

	for (uint32_t n = 0; n < count; n++)
		order[n] = n;
	shuffle(fixture, order, count);
	for (uint32_t n = 0; n < count; n++) {
		merge(peers, &news[order[n]]);
		if (repeat && random_below(fixture, 3) == 0)
			merge(peers, &news[order[random_below(fixture, n + 1)]]);
	}
}

static void same_news_in_any_order_and_number_make_equal_tables(void **state) {
	struct fixture *fixture = *state;

	for (uint32_t round = 0; round < 300; round++) {
		struct peer_news news[NEWS_MAX];
		uint32_t count = news_draw(fixture, news, 2 + random_below(fixture, NEWS_MAX - 2));
		struct peers a;
		struct peers b;

		peers_init(&a, &fixture->memory, fixture->interner);
		peers_init(&b, &fixture->memory, fixture->interner);
		merge_all(fixture, &a, news, count, false);
		merge_all(fixture, &b, news, count, true);
		tables_are_equal(&a, &b);
		assert_int_equal(digest_from_scratch(fixture, &a), peers_digest(&a));
		ring_is_sound(&a);
		peers_fini(&a);
		peers_fini(&b);
		for (uint32_t n = 0; n < count; n++)
			ras_record_put(fixture->interner, news[n].record);
	}
}

// Regression: facts of a start were accepted or not, depending on whether a refutation without
// them came first. Both tables already hold the first news, as does every receiver of news
// without a record.
static void facts_and_refutations_told_apart_make_equal_tables_in_any_order(void **state) {
	struct fixture *fixture = *state;

	for (uint32_t round = 0; round < 300; round++) {
		struct ras_record *base = record_of(fixture, 1, 1, 0);
		struct peer_news first = news_of(base, 0, RAS_ALIVE);
		struct peer_news news[8];
		struct ras_record *records[8];
		struct peers tables[2];

		for (uint32_t n = 0; n < 8; n++) {
			uint8_t state_told = random_below(fixture, 6) == 0 ? RAS_DEAD : RAS_ALIVE;

			records[n] = record_of(fixture, 1, 1, random_below(fixture, 4));
			news[n] = news_of(records[n], random_below(fixture, 4), state_told);
			if (random_below(fixture, 2) == 0)
				news[n].record = NULL;
		}
		for (uint32_t n = 0; n < 2; n++) {
			peers_init(&tables[n], &fixture->memory, fixture->interner);
			merge(&tables[n], &first);
			merge_all(fixture, &tables[n], news, 8, n == 1);
			assert_int_equal(
				digest_from_scratch(fixture, &tables[n]), peers_digest(&tables[n])
			);
			ring_is_sound(&tables[n]);
		}
		tables_are_equal(&tables[0], &tables[1]);
		peers_fini(&tables[0]);
		peers_fini(&tables[1]);
		for (uint32_t n = 0; n < 8; n++)
			ras_record_put(fixture->interner, records[n]);
		ras_record_put(fixture->interner, base);
	}
}

// Sending a whole table is equivalent to sending all news it was made of.
static void telling_a_whole_table_is_as_good_as_telling_its_news(void **state) {
	struct fixture *fixture = *state;

	for (uint32_t round = 0; round < 200; round++) {
		struct peer_news news[NEWS_MAX];
		uint32_t count = news_draw(fixture, news, 2 + random_below(fixture, 40));
		uint32_t half = count / 2;
		struct peers a;
		struct peers b;
		struct peers all;

		peers_init(&a, &fixture->memory, fixture->interner);
		peers_init(&b, &fixture->memory, fixture->interner);
		peers_init(&all, &fixture->memory, fixture->interner);
		merge_all(fixture, &a, news, half, true);
		merge_all(fixture, &b, news + half, count - half, true);
		merge_all(fixture, &all, news, count, false);
		for (uint32_t slot = 0; slot < a.entry_count; slot++) {
			struct peer_news told;

			peers_news_fill(&a, slot, &told);
			merge(&b, &told);
		}
		tables_are_equal(&b, &all);
		peers_fini(&a);
		peers_fini(&b);
		peers_fini(&all);
		for (uint32_t n = 0; n < count; n++)
			ras_record_put(fixture->interner, news[n].record);
	}
}

// The transition table: held state, received state, result.
static void transitions_are_those_of_the_table(void **state) {
	static const struct {
		uint8_t held;
		uint64_t held_start, held_refuted;
		uint8_t told;
		uint64_t told_start, told_refuted;
		enum peers_change change;
		uint8_t then;
	} rows[] = {
		{RAS_ALIVE, 2, 1, RAS_ALIVE, 2, 1, PEERS_SAME, RAS_ALIVE},
		{RAS_ALIVE, 2, 1, RAS_ALIVE, 2, 0, PEERS_SAME, RAS_ALIVE},
		{RAS_ALIVE, 2, 1, RAS_ALIVE, 2, 2, PEERS_REFUTED, RAS_ALIVE},
		{RAS_ALIVE, 2, 1, RAS_ALIVE, 1, 9, PEERS_SAME, RAS_ALIVE},
		{RAS_ALIVE, 2, 1, RAS_ALIVE, 3, 0, PEERS_JOINED, RAS_ALIVE},
		{RAS_ALIVE, 2, 1, RAS_DEAD, 2, 0, PEERS_SAME, RAS_ALIVE},
		{RAS_ALIVE, 2, 1, RAS_DEAD, 2, 1, PEERS_DEAD, RAS_DEAD},
		{RAS_ALIVE, 2, 1, RAS_DEAD, 2, 2, PEERS_DEAD, RAS_DEAD},
		{RAS_ALIVE, 2, 1, RAS_DEAD, 1, 9, PEERS_SAME, RAS_ALIVE},
		{RAS_ALIVE, 2, 1, RAS_LEFT, 2, 1, PEERS_LEFT, RAS_LEFT},
		{RAS_SUSPECT, 2, 1, RAS_ALIVE, 2, 1, PEERS_SAME, RAS_SUSPECT},
		{RAS_SUSPECT, 2, 1, RAS_ALIVE, 2, 2, PEERS_REFUTED, RAS_SUSPECT},
		{RAS_SUSPECT, 2, 1, RAS_ALIVE, 3, 0, PEERS_JOINED, RAS_ALIVE},
		{RAS_SUSPECT, 2, 1, RAS_DEAD, 2, 1, PEERS_DEAD, RAS_DEAD},
		{RAS_UNREACHABLE, 2, 1, RAS_DEAD, 2, 1, PEERS_DEAD, RAS_DEAD},
		{RAS_UNREACHABLE, 2, 1, RAS_LEFT, 2, 1, PEERS_LEFT, RAS_LEFT},
		{RAS_DEAD, 2, 1, RAS_ALIVE, 2, 1, PEERS_SAME, RAS_DEAD},
		{RAS_DEAD, 2, 1, RAS_ALIVE, 2, 2, PEERS_REJOINED, RAS_ALIVE},
		{RAS_DEAD, 2, 1, RAS_ALIVE, 3, 0, PEERS_JOINED, RAS_ALIVE},
		{RAS_DEAD, 2, 1, RAS_DEAD, 2, 1, PEERS_SAME, RAS_DEAD},
		{RAS_DEAD, 2, 1, RAS_LEFT, 2, 1, PEERS_LEFT, RAS_LEFT},
		{RAS_LEFT, 2, 1, RAS_DEAD, 2, 1, PEERS_SAME, RAS_LEFT},
		{RAS_LEFT, 2, 1, RAS_ALIVE, 2, 1, PEERS_SAME, RAS_LEFT},
		{RAS_LEFT, 2, 1, RAS_ALIVE, 3, 0, PEERS_JOINED, RAS_ALIVE},
	};
	struct fixture *fixture = *state;

	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		bool local = rows[n].held == RAS_SUSPECT || rows[n].held == RAS_UNREACHABLE;
		struct ras_record *held = record_of(fixture, 1, rows[n].held_start, 0);
		struct ras_record *told = record_of(fixture, 1, rows[n].told_start, 0);
		struct peer_news first =
			news_of(held, rows[n].held_refuted, local ? RAS_ALIVE : rows[n].held);
		struct peer_news next = news_of(told, rows[n].told_refuted, rows[n].told);
		struct peers peers;
		enum peers_change change;

		peers_init(&peers, &fixture->memory, fixture->interner);
		merge(&peers, &first);
		if (local)
			peers_set_local(&peers, 0, rows[n].held, RAS_CAUSE_SILENT, SEC);
		change = merge(&peers, &next);
		if (change != rows[n].change || peers.entries[0].state != rows[n].then)
			fail_msg(
				"row %zu: change %d, then %s", n, (int)change,
				ras_state_name(peers.entries[0].state)
			);
		assert_int_equal(peers.state_counts[rows[n].then], 1);
		peers_fini(&peers);
		ras_record_put(fixture->interner, held);
		ras_record_put(fixture->interner, told);
	}
}

// The signature of a departure lives in the place of the observers of a death.
static void departure_keeps_its_signature_until_the_peer_is_back_or_removed(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *record = record_of(fixture, 1, 1, 0);
	size_t used = fixture->memory.used_bytes;
	uint8_t signature[RAS_SIGNATURE_BYTES] = {1, 2, 3};
	struct peer_news left = news_of(record, 1, RAS_LEFT), news;
	enum peers_change change;
	struct peers peers;
	uint32_t slot;

	peers_init(&peers, &fixture->memory, fixture->interner);
	left.signature = signature;
	for (uint32_t round = 0; round < 3; round++) {
		size_t before;

		news = news_of(record, 2 * round, round == 1 ? RAS_DEAD : RAS_ALIVE);
		merge(&peers, &news);
		peers_ring_count(&peers);
		before = fixture->memory.used_bytes;
		left.incarnation = ras_incarnation(1, 2 * round + 1);
		signature[0] = (uint8_t)round;
		assert_int_equal(peers_merge(&peers, &left, SEC, &change, &slot), 0);
		assert_int_equal(change, PEERS_LEFT);
		assert_int_equal(fixture->memory.used_bytes - before, RAS_SIGNATURE_BYTES);
		peers_news_fill(&peers, slot, &news);
		assert_ptr_not_equal(news.signature, signature);
		assert_memory_equal(news.signature, signature, sizeof(signature));
		assert_int_equal(merge(&peers, &news), PEERS_SAME);
		if (round == 0)
			peers_remove(&peers, slot);
	}
	news = news_of(record, 9, RAS_ALIVE);
	assert_int_equal(merge(&peers, &news), PEERS_REJOINED);
	peers_news_fill(&peers, slot, &news);
	assert_null(news.signature);
	assert_int_equal(peers.entries[slot].observers[0], 0);
	peers_fini(&peers);
	assert_int_equal(fixture->memory.used_bytes, used);
	ras_record_put(fixture->interner, record);
}

static void member_that_started_anew_is_alive_since_then(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *old = record_of(fixture, 1, 1, 0), *next = record_of(fixture, 1, 2, 0);
	struct peer_news first = news_of(old, 0, RAS_ALIVE), refuted = news_of(old, 1, RAS_ALIVE);
	struct peer_news second = news_of(next, 0, RAS_ALIVE);
	enum peers_change change;
	struct peers peers;
	uint32_t slot;

	peers_init(&peers, &fixture->memory, fixture->interner);
	merge(&peers, &first);
	assert_int_equal(peers_merge(&peers, &refuted, 2 * SEC, &change, &slot), 0);
	assert_int_equal(peers.entries[0].since_ns, SEC);
	assert_int_equal(peers_merge(&peers, &second, 3 * SEC, &change, &slot), 0);
	assert_int_equal(peers.entries[0].since_ns, 3 * SEC);
	peers_fini(&peers);
	ras_record_put(fixture->interner, old);
	ras_record_put(fixture->interner, next);
}

static void news_without_a_record_are_asked_for_only_if_it_is_needed(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *record = record_of(fixture, 1, 2, 0);
	struct peer_news news = news_of(record, 0, RAS_ALIVE);
	struct peers peers;

	peers_init(&peers, &fixture->memory, fixture->interner);
	news.record = NULL;
	assert_int_equal(merge(&peers, &news), PEERS_RECORD_NEEDED);
	news.state = RAS_DEAD;
	assert_int_equal(merge(&peers, &news), PEERS_SAME); // death of an unknown peer
	news.state = RAS_ALIVE;
	news.record = record;
	assert_int_equal(merge(&peers, &news), PEERS_JOINED);
	news.record = NULL;
	news.incarnation = ras_incarnation(2, 1);
	assert_int_equal(merge(&peers, &news), PEERS_REFUTED);
	news.incarnation = ras_incarnation(3, 0);
	assert_int_equal(merge(&peers, &news), PEERS_RECORD_NEEDED);
	assert_int_equal(peers.entries[0].incarnation, ras_incarnation(2, 1));
	peers_fini(&peers);
	ras_record_put(fixture->interner, record);
}

static void record_of_another_peer_or_start_is_refused_whole(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *mine = record_of(fixture, 1, 2, 0);
	struct ras_record *other = record_of(fixture, 2, 2, 0);
	struct peer_news news = news_of(mine, 0, RAS_ALIVE);
	enum peers_change change = PEERS_RECORD;
	uint32_t slot = 77;
	struct peers peers;

	peers_init(&peers, &fixture->memory, fixture->interner);
	news.record = other;
	assert_int_equal(peers_merge(&peers, &news, SEC, &change, &slot), -EBADMSG);
	news.record = mine;
	news.incarnation = ras_incarnation(3, 0);
	assert_int_equal(peers_merge(&peers, &news, SEC, &change, &slot), -EBADMSG);
	assert_int_equal(slot, 77);
	assert_int_equal(change, PEERS_RECORD);
	assert_int_equal(peers.entry_count, 0);
	peers_fini(&peers);
	ras_record_put(fixture->interner, mine);
	ras_record_put(fixture->interner, other);
}

static void without_memory_a_merge_changes_nothing(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *record = record_of(fixture, 1, 2, 0);
	struct peer_news news = news_of(record, 0, RAS_ALIVE);
	enum peers_change change;
	struct peers peers;
	uint32_t slot;

	peers_init(&peers, &fixture->memory, fixture->interner);
	heap_leave(&fixture->heap, 0);
	assert_int_equal(peers_merge(&peers, &news, SEC, &change, &slot), -ENOMEM);
	heap_refill(&fixture->heap);
	assert_int_equal(peers_ring_count(&peers), 0);
	assert_int_equal(peers_digest(&peers), 0);
	assert_int_equal(merge(&peers, &news), PEERS_JOINED);
	peers_fini(&peers);
	ras_record_put(fixture->interner, record);
}

// Row 16: contents of the digest.
static void digest_covers_members_starts_facts_and_maintenance_alone(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *record = record_of(fixture, 1, 2, 0);
	struct peer_news news = news_of(record, 0, RAS_ALIVE);
	struct peers peers;
	uint64_t digest;

	peers_init(&peers, &fixture->memory, fixture->interner);
	merge(&peers, &news);
	digest = peers_digest(&peers);
	news.incarnation = ras_incarnation(2, 1);
	merge(&peers, &news);
	assert_int_equal(peers_digest(&peers), digest); // refutations are not in the digest
	peers_set_local(&peers, 0, RAS_SUSPECT, RAS_CAUSE_SILENT, SEC);
	assert_int_equal(peers_digest(&peers), digest); // the state of one observer is not in it
	news.maint = 1;
	assert_int_equal(merge(&peers, &news), PEERS_MAINT);
	assert_true(peers_digest(&peers) != digest);
	news.state = RAS_DEAD;
	merge(&peers, &news);
	assert_int_equal(peers_digest(&peers), 0); // dead members are not in it
	peers_fini(&peers);
	ras_record_put(fixture->interner, record);
}

static void death_names_its_observers_as_long_as_they_are_known(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *records[3];
	uint64_t ids[RAS_OBSERVERS_MAX];
	struct peer_news news;
	struct peers peers;
	enum peers_change change;
	uint32_t slot;

	peers_init(&peers, &fixture->memory, fixture->interner);
	for (uint32_t n = 0; n < 3; n++) {
		records[n] = record_of(fixture, n, 1, 0);
		news = news_of(records[n], 0, RAS_ALIVE);
		merge(&peers, &news);
	}
	news = news_of(records[0], 0, RAS_DEAD);
	news.observer_count = 2;
	news.observers[0] = records[1]->id;
	news.observers[1] = records[2]->id;
	assert_int_equal(peers_merge(&peers, &news, SEC, &change, &slot), 0);
	peers_news_fill(&peers, slot, &news);
	assert_int_equal(news.observer_count, 2);
	news = news_of(records[1], 0, RAS_LEFT);
	merge(&peers, &news);
	peers_remove(&peers, peers_find(&peers, records[1]->id));
	assert_int_equal(peers_known_observers(&peers, slot, ids), 1);
	assert_int_equal(ids[0], records[2]->id);
	// A receiver of our news does not mark the death sole.
	peers_news_fill(&peers, slot, &news);
	assert_int_equal(news.observer_count, 2);
	assert_int_equal(news.observers[0], records[1]->id); // another node may know this observer
	assert_int_equal(news.observers[1], records[2]->id);
	peers_fini(&peers);
	for (uint32_t n = 0; n < 3; n++)
		ras_record_put(fixture->interner, records[n]);
}

// Random inserts, deaths and removals, compared with a model of one flag per peer.
static void index_ring_and_slots_stay_sound_under_random_changes(void **state) {
	struct fixture *fixture = *state;
	uint8_t model[PEERS] = {0}; // 0: unknown
	uint64_t starts[PEERS] = {0};
	struct peers peers;

	peers_init(&peers, &fixture->memory, fixture->interner);
	for (uint32_t step = 0; step < 4000; step++) {
		uint32_t peer = random_below(fixture, PEERS);
		uint32_t alive = 0;

		if (model[peer] == RAS_DEAD && random_below(fixture, 2) == 0) {
			struct ras_record *record = record_of(fixture, peer, starts[peer], 0);

			peers_remove(&peers, peers_find(&peers, record->id));
			ras_record_put(fixture->interner, record);
			model[peer] = RAS_UNKNOWN;
		} else {
			uint8_t told = model[peer] == RAS_ALIVE ? RAS_DEAD : RAS_ALIVE;
			struct ras_record *record;
			struct peer_news news;

			starts[peer] += told == RAS_ALIVE;
			record = record_of(fixture, peer, starts[peer], 0);
			news = news_of(record, 0, told);
			merge(&peers, &news);
			ras_record_put(fixture->interner, record);
			model[peer] = told;
		}
		for (uint32_t n = 0; n < PEERS; n++)
			alive += model[n] == RAS_ALIVE;
		assert_int_equal(peers.state_counts[RAS_ALIVE], alive);
		if (step % 3 == 0)
			ring_is_sound(&peers);
		assert_in_range(peers.entry_count, 0, PEERS); // slots are reused
	}
	assert_int_equal(digest_from_scratch(fixture, &peers), peers_digest(&peers));
	peers_fini(&peers);
}

static void ring_distance_is_the_shorter_way_round(void **state) {
	(void)state;
	assert_int_equal(ring_distance(0, 0, 1), 0);
	assert_int_equal(ring_distance(0, 1, 2), 1);
	assert_int_equal(ring_distance(0, 9, 10), 1);
	assert_int_equal(ring_distance(9, 0, 10), 1);
	assert_int_equal(ring_distance(2, 7, 10), 5);
	assert_int_equal(ring_distance(2, 8, 10), 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

UNIT_GROUP(ras_peers) {
	const struct CMUnitTest tests[] = {
		TEST(record_of_another_peer_or_start_is_refused_whole),
		TEST(without_memory_a_merge_changes_nothing),
		TEST(departure_keeps_its_signature_until_the_peer_is_back_or_removed),
		TEST(member_that_started_anew_is_alive_since_then),
		TEST(news_without_a_record_are_asked_for_only_if_it_is_needed),
		TEST(transitions_are_those_of_the_table),
		TEST(same_news_in_any_order_and_number_make_equal_tables),
		TEST(facts_and_refutations_told_apart_make_equal_tables_in_any_order),
		TEST(telling_a_whole_table_is_as_good_as_telling_its_news),
		TEST(digest_covers_members_starts_facts_and_maintenance_alone),
		TEST(death_names_its_observers_as_long_as_they_are_known),
		TEST(index_ring_and_slots_stay_sound_under_random_changes),
		TEST(ring_distance_is_the_shorter_way_round),
	};

	return cmocka_run_group_tests_name("ras_peers", tests, NULL, NULL);
}
