// SPDX-License-Identifier: BSD-3-Clause
// Items of a newer version pass through agents of this version. The instance under test is the
// middle of a chain whose ends speak version 3: the far end must receive what the near end sends.
#include "control/ras/ras_lone.h"
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#include <string.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS
#define HOUR (3600 * SEC)

#define FLAG_RECORD 0x01
#define FLAG_DEATH 0x02
#define FLAG_SIGNED 0x04
#define FLAG_NEW 0x40 // an unknown flag
#define STATE_NEW 9   // an unknown state
#define CAUSE_NEW 200 // an unknown cause
#define PEERS 8	      // number of peers; this node is 1, the ends of the chain are 2 and 0
#define SUBJECT 5

struct item {
	uint8_t bytes[4200]; // including the length
	size_t size;
};

static struct item item_of(uint8_t flags, uint8_t state, uint64_t id, uint64_t incarnation) {
	struct item item;
	struct wire_writer writer;

	wire_writer_init(&writer, item.bytes, sizeof(item.bytes));
	wire_put_u16(&writer, 0);
	wire_put_u8(&writer, flags);
	wire_put_u8(&writer, state);
	wire_put_u8(&writer, 3); // hops
	wire_put_u64(&writer, id);
	wire_put_u64(&writer, incarnation);
	wire_put_u32(&writer, 0); // maintenance
	item.size = wire_writer_used(&writer);
	wire_patch_u16(&writer, 0, (uint16_t)(item.size - MESSAGE_ITEM_LENGTH_BYTES));
	return item;
}

static void item_append(struct item *item, const void *bytes, size_t size) {
	uint16_t length = (uint16_t)(item->size - MESSAGE_ITEM_LENGTH_BYTES + size);

	assert_true(item->size + size <= sizeof(item->bytes));
	memcpy(item->bytes + item->size, bytes, size);
	item->size += size;
	item->bytes[0] = (uint8_t)length;
	item->bytes[1] = (uint8_t)(length >> 8);
}

// Append a death by this many unknown observers.
static void item_append_death(struct item *item, uint8_t cause, uint8_t observers) {
	uint8_t death[2 + 2 * 8 + 8] = {cause, observers, 1};
	size_t size = 2 + observers * 8u;

	memset(death + size, 0, 8); // no count of members
	item_append(item, death, size + 8);
}

static struct item item_with_new_state(uint64_t id) {
	struct item item = item_of(FLAG_NEW, STATE_NEW, id, ras_incarnation(1, 0));

	item_append(&item, "only version 3 reads this", 25);
	return item;
}

static void
update_send(struct lone *lone, uint32_t conn, const struct item *items, uint32_t count) {
	static uint8_t frame[RAS_FRAME_MAX];
	size_t size = 1;

	frame[0] = MESSAGE_UPDATE;
	for (uint32_t n = 0; n < count; n++) {
		assert_true(size + items[n].size <= sizeof(frame));
		memcpy(frame + size, items[n].bytes, items[n].size);
		size += items[n].size;
	}
	lone_frame(lone, conn, frame, size);
}

// Return how often exactly this item was sent on the connection.
static uint32_t item_sent(const struct lone *lone, uint32_t conn, const struct item *item) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < lone->frame_count; n++) {
		const struct lone_frame *frame = &lone->frames[n];
		size_t at = 1;

		if (frame->conn != conn || frame->bytes[0] != MESSAGE_UPDATE)
			continue;
		while (at < frame->size) {
			size_t size = 2 + (size_t)(frame->bytes[at] | frame->bytes[at + 1] << 8);

			assert_true(at + size <= frame->size);
			count += size == item->size &&
				 memcmp(frame->bytes + at, item->bytes, size) == 0;
			at += size;
		}
	}
	return count;
}

// Return an item with an unknown flag: the subject has left.
static struct item item_of_departure(const struct lone *lone) {
	uint64_t incarnation = ras_incarnation(1, 0);
	struct item item =
		item_of(FLAG_SIGNED | FLAG_NEW, RAS_LEFT, lone_id(lone, SUBJECT), incarnation);

	item_append(&item, lone_departure(lone, SUBJECT, incarnation), RAS_SIGNATURE_BYTES);
	return item;
}

struct chain {
	struct lone *lone;
	uint32_t from, to; // connections to both ends
};

static struct chain chain_make(void) {
	struct chain chain = {.lone = lone_of(PEERS, 1)};

	chain.from = lone_link(chain.lone, 2);
	chain.to = lone_link(chain.lone, 0);
	lone_pass(chain.lone, SEC);
	lone_mark(chain.lone);
	return chain;
}

// Check that both ends are still linked.
static void chain_end(struct chain *chain) {
	assert_false(lone_is_closed(chain->lone, chain->from));
	assert_false(lone_is_closed(chain->lone, chain->to));
	assert_int_equal(ras_counters(chain->lone->ras)->frames_malformed, 0);
	lone_destroy(chain->lone);
}

static void chain_take(struct chain *chain, const struct item *item) {
	update_send(chain->lone, chain->from, item, 1);
	lone_beat(chain->lone, chain->from, 2, RAS_USE_NEXT);
	lone_beat(chain->lone, chain->to, 2, RAS_USE_NEXT);
	lone_pass(chain->lone, 100 * MS);
}

static void item_of_an_unknown_state_passes_and_judges_nobody(void **state) {
	struct chain chain = chain_make();
	uint64_t digest = peers_digest(&chain.lone->ras->peers);
	struct ras_view before, after;
	struct item items[] = {
		item_with_new_state(lone_id(chain.lone, SUBJECT)),
		item_with_new_state(lone_id(chain.lone, 1)), // about this node
		item_with_new_state(lone_id(chain.lone, 2)), // about its sender
		item_with_new_state(424242),		     // about an unknown peer
	};

	(void)state;
	ras_view(chain.lone->ras, &before);
	update_send(chain.lone, chain.from, items, 4);
	lone_pass(chain.lone, 100 * MS);
	for (uint32_t n = 0; n < 4; n++) {
		assert_int_equal(item_sent(chain.lone, chain.to, &items[n]), 1);
		assert_int_equal(item_sent(chain.lone, chain.from, &items[n]), 0);
	}
	ras_view(chain.lone->ras, &after);
	assert_int_equal(after.number, before.number);
	assert_int_equal(peers_digest(&chain.lone->ras->peers), digest);
	assert_int_equal(lone_peer(chain.lone, SUBJECT).state, RAS_ALIVE);
	assert_int_equal(chain.lone->event_count, 0);
	assert_int_equal(ras_counters(chain.lone->ras)->news_foreign, 4);
	chain_end(&chain);
}

static void item_with_an_unknown_flag_passes_and_what_is_known_is_merged(void **state) {
	struct chain chain = chain_make();
	uint64_t id = lone_id(chain.lone, SUBJECT);
	uint64_t digest = peers_digest(&chain.lone->ras->peers);
	struct item item = item_of(FLAG_NEW, RAS_ALIVE, id, ras_incarnation(1, 4));

	(void)state;
	item_append(&item, "\1\2\3", 3);
	chain_take(&chain, &item);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 1);
	assert_int_equal(lone_peer(chain.lone, SUBJECT).incarnation, ras_incarnation(1, 4));
	assert_int_equal(peers_digest(&chain.lone->ras->peers), digest);
	chain_end(&chain);
}

static void item_with_bytes_behind_passes_with_the_record_before_them(void **state) {
	struct chain chain = chain_make();
	struct ras_peer_info info = lone_info(chain.lone, SUBJECT, 7);
	struct ras_record *record;
	struct item item;

	(void)state;
	assert_int_equal(ras_record_from_info(chain.lone->interner, &info, &record), 0);
	item = item_of(FLAG_RECORD, RAS_ALIVE, record->id, ras_incarnation(7, 0));
	item_append(&item, (uint8_t[]){(uint8_t)record->size, (uint8_t)(record->size >> 8)}, 2);
	item_append(&item, record->encoding, record->size);
	item_append(&item, "appended", 8);
	chain_take(&chain, &item);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 1);
	assert_ptr_equal(lone_peer(chain.lone, SUBJECT).record, record);
	ras_record_put(chain.lone->interner, record);
	chain_end(&chain);
}

static void item_of_a_stranger_who_lives_is_passed_on_when_its_record_is_there(void **state) {
	struct chain chain = chain_make();
	struct ras_peer_info info = lone_info(chain.lone, SUBJECT, 1);
	struct peer_news news = {.incarnation = ras_incarnation(1, 0), .state = RAS_ALIVE};
	struct item item;

	(void)state;
	memcpy(info.name, "stranger", sizeof("stranger"));
	assert_int_equal(ras_record_from_info(chain.lone->interner, &info, &news.record), 0);
	news.id = news.record->id;
	item = item_of(FLAG_NEW, RAS_ALIVE, news.id, news.incarnation);
	chain_take(&chain, &item);
	assert_int_equal(lone_sent(chain.lone, chain.from, MESSAGE_PULL), 1);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 0);
	lone_news(chain.lone, chain.from, &news);
	lone_pass(chain.lone, 100 * MS);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 1);
	ras_record_put(chain.lone->interner, news.record);
	chain_end(&chain);
}

static void death_of_a_stranger_is_not_kept(void **state) {
	struct chain chain = chain_make();
	struct item item = item_of(FLAG_DEATH | FLAG_NEW, RAS_DEAD, 424242, ras_incarnation(1, 0));

	(void)state;
	item_append_death(&item, RAS_CAUSE_SILENT, 2);
	chain_take(&chain, &item);
	assert_int_equal(chain.lone->ras->foreign.count, 0);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 0);
	chain_end(&chain);
}

// A death counts whatever its cause; the cause's number is forwarded, also in our own messages.
static void death_for_an_unknown_cause_passes_and_counts(void **state) {
	struct chain chain = chain_make();
	uint64_t id = lone_id(chain.lone, SUBJECT);
	struct item item = item_of(FLAG_DEATH, RAS_DEAD, id, ras_incarnation(1, 0));
	struct ras_peer peer;
	struct peer_news news;

	(void)state;
	item_append_death(&item, CAUSE_NEW, 2);
	chain_take(&chain, &item);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 1);
	peer = lone_peer(chain.lone, SUBJECT);
	assert_int_equal(peer.state, RAS_DEAD);
	assert_int_equal(peer.cause, CAUSE_NEW);
	assert_string_equal(ras_cause_name(peer.cause), "unknown");
	assert_int_equal(lone_event(chain.lone, RAS_EVENT_DEAD)->cause, CAUSE_NEW);
	peers_news_fill(&chain.lone->ras->peers, peer.slot, &news);
	assert_int_equal(news.cause, CAUSE_NEW);
	chain_end(&chain);
}

static void item_that_came_before_or_by_a_longer_way_is_not_passed_on_again(void **state) {
	struct chain chain = chain_make();
	struct item item = item_with_new_state(lone_id(chain.lone, SUBJECT));
	struct item later = item;
	struct item older = item;

	(void)state;
	chain_take(&chain, &item);
	lone_mark(chain.lone);
	chain_take(&chain, &item);
	update_send(chain.lone, chain.to, &item, 1);
	later.bytes[4] += 5; // hops
	chain_take(&chain, &later);
	older.bytes[older.size - 1]--;
	chain_take(&chain, &older);
	assert_int_equal(lone_sent(chain.lone, chain.to, MESSAGE_UPDATE), 0);
	assert_int_equal(lone_sent(chain.lone, chain.from, MESSAGE_UPDATE), 0);
	later.bytes[later.size - 1]++; // a higher value
	chain_take(&chain, &later);
	assert_int_equal(item_sent(chain.lone, chain.to, &later), 1);
	assert_int_equal(chain.lone->ras->foreign.count, 1);
	chain_end(&chain);
}

static void of_two_items_of_a_peer_that_of_the_higher_incarnation_is_kept(void **state) {
	struct chain chain = chain_make();
	uint64_t id = lone_id(chain.lone, SUBJECT);
	struct item low = item_of(0, STATE_NEW + 1, id, ras_incarnation(1, 0));
	struct item high = item_of(0, STATE_NEW, id, ras_incarnation(1, 1));

	(void)state;
	chain_take(&chain, &high);
	chain_take(&chain, &low);
	assert_int_equal(item_sent(chain.lone, chain.to, &high), 1);
	assert_int_equal(item_sent(chain.lone, chain.to, &low), 0);
	chain_end(&chain);
}

static void neighbour_that_told_it_too_is_not_told(void **state) {
	struct chain chain = chain_make();
	struct item item = item_with_new_state(lone_id(chain.lone, SUBJECT));

	(void)state;
	update_send(chain.lone, chain.from, &item, 1);
	update_send(chain.lone, chain.to, &item, 1);
	lone_pass(chain.lone, 100 * MS);
	assert_int_equal(item_sent(chain.lone, chain.from, &item), 0);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 0);
	chain_end(&chain);
}

static void link_whose_session_begins_later_is_told_what_is_kept(void **state) {
	struct chain chain = chain_make();
	struct item item = item_with_new_state(lone_id(chain.lone, SUBJECT));
	uint32_t later;

	(void)state;
	chain_take(&chain, &item);
	later = lone_connect(chain.lone, 4, RAS_USE_LEVEL(1));
	assert_int_equal(item_sent(chain.lone, later, &item), 1);
	chain_end(&chain);
}

// Regression: nodes that had forgotten the item learned it again from each other, for ever.
static void item_of_a_stranger_is_told_at_no_session_and_to_no_joiner(void **state) {
	struct chain chain = chain_make();
	struct item item = item_with_new_state(424242);
	struct message_init init = lone_init(chain.lone, 6, 0);
	uint32_t later, joiner;

	(void)state;
	chain_take(&chain, &item);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 1);
	later = lone_connect(chain.lone, 4, RAS_USE_LEVEL(1));
	assert_int_equal(item_sent(chain.lone, later, &item), 0);
	init.flags = MESSAGE_INIT_JOIN;
	joiner = lone_accept(chain.lone);
	lone_send_init(chain.lone, joiner, &init);
	assert_int_equal(lone_sent(chain.lone, joiner, MESSAGE_BEAT), 1); // the table is complete
	assert_int_equal(item_sent(chain.lone, joiner, &item), 0);
	assert_int_equal(chain.lone->ras->foreign.count, 1);
	chain_end(&chain);
}

static void who_takes_our_table_takes_what_is_kept_with_it(void **state) {
	struct chain chain = chain_make();
	struct item item = item_with_new_state(lone_id(chain.lone, SUBJECT));
	struct message_init init = lone_init(chain.lone, 6, 0);
	uint32_t joiner;

	(void)state;
	chain_take(&chain, &item);
	init.flags = MESSAGE_INIT_JOIN;
	joiner = lone_accept(chain.lone);
	lone_send_init(chain.lone, joiner, &init);
	assert_int_equal(item_sent(chain.lone, joiner, &item), 1);
	assert_int_equal(lone_sent(chain.lone, joiner, MESSAGE_BEAT), 1); // the table is complete
	chain_end(&chain);
}

// The table of a seed, and then the first link.
static void joiner_keeps_what_came_with_the_table_it_took(void **state) {
	struct lone *lone =
		lone_create(&(struct lone_setup){.count = 3, .self = 1, .joining = true});
	struct message_init_ack ack = lone_ack(lone, 0);
	struct item item = item_with_new_state(lone_id(lone, 2));
	uint32_t seed, link;
	struct peer_news news;

	(void)state;
	lone_pass(lone, 300 * MS);
	seed = lone_opening(lone, 0);
	ack.your_start = 4;
	lone_send_ack(lone, seed, &ack);
	for (uint32_t n = 0; n < 3; n += 2) {
		news = lone_told(lone, n, RAS_ALIVE, ras_incarnation(1, 0));
		news.record = lone->records[n];
		lone_news(lone, seed, &news);
	}
	update_send(lone, seed, &item, 1);
	lone_beat(lone, seed, 1, 0);
	lone_pass(lone, 10 * MS);
	link = lone_link(lone, 2);
	assert_int_equal(item_sent(lone, link, &item), 1);
	lone_destroy(lone);
}

static void flood_of_distinct_ids_fills_no_more_than_the_bound(void **state) {
	struct chain chain = chain_make();
	struct lone *lone = chain.lone;
	uint8_t filler[200] = {0};

	(void)state;
	for (uint64_t id = 1; id <= FOREIGN_ITEMS_MAX + 500; id++) {
		struct item item = item_of(0, STATE_NEW, id << 32, 1);

		item_append(&item, filler, id % 2 == 0 ? sizeof(filler) : 10);
		update_send(lone, chain.from, &item, 1);
		if (id % 100 == 0)
			lone_pass(lone, 100 * MS);
	}
	lone_pass_beating(lone, 200 * MS, chain.from);
	assert_int_equal(lone->ras->foreign.count, FOREIGN_ITEMS_MAX);
	assert_true(lone->ras->foreign.bytes <= FOREIGN_BYTES_MAX);
	assert_int_equal(ras_counters(lone->ras)->news_foreign, FOREIGN_ITEMS_MAX);
	assert_int_equal(ras_counters(lone->ras)->news_foreign_dropped, 500);
	chain_end(&chain);
}

// Regression: a member that sent many items of unknown ids used up the room of all others for an
// hour.
static void oldest_items_of_strangers_make_room_for_those_of_members(void **state) {
	struct chain chain = chain_make();
	struct foreign *foreign = &chain.lone->ras->foreign;
	struct item items[2] = {
		item_with_new_state(lone_id(chain.lone, SUBJECT)),
		item_with_new_state(lone_id(chain.lone, 3)),
	};
	uint32_t first = 0;
	struct item item;

	(void)state;
	for (uint64_t id = FOREIGN_ITEMS_MAX; id >= 1; id--) {
		item = item_of(0, STATE_NEW, id << 32, 1);
		update_send(chain.lone, chain.from, &item, 1);
		if (id % 100 == 0)
			lone_pass(chain.lone, 100 * MS);
	}
	assert_int_equal(foreign->count, FOREIGN_ITEMS_MAX);
	for (uint32_t n = 0; n < 2; n++) {
		lone_mark(chain.lone);
		chain_take(&chain, &items[n]);
		assert_int_equal(item_sent(chain.lone, chain.to, &items[n]), 1);
	}
	assert_int_equal(foreign->count, FOREIGN_ITEMS_MAX);
	for (uint32_t n = 0; n < foreign->count; n++) // 25 arrived at the same time
		first += (uint32_t)foreign->items[n].id == 0 && foreign->items[n].id >> 32 >= 1000;
	assert_int_equal(first, 23);
	assert_int_equal(ras_counters(chain.lone->ras)->news_foreign_dropped, 2);
	item = item_with_new_state(424242); // an item of a stranger replaces no other
	chain_take(&chain, &item);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 0);
	assert_int_equal(ras_counters(chain.lone->ras)->news_foreign_dropped, 3);
	chain_end(&chain);
}

static void long_items_fill_no_more_than_the_bytes_there_are(void **state) {
	static const uint8_t filler[FOREIGN_ITEM_BYTES_MAX];
	struct chain chain = chain_make();
	struct foreign *foreign = &chain.lone->ras->foreign;
	struct item item;

	(void)state;
	for (uint64_t id = 1; id <= 100; id++) {
		item = item_of(0, STATE_NEW, id, 1);
		item_append(&item, filler, sizeof(filler) - 23);
		chain_take(&chain, &item);
	}
	assert_int_equal(foreign->count, FOREIGN_BYTES_MAX / FOREIGN_ITEM_BYTES_MAX);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 0); // it was not forwarded
	item = item_of(0, STATE_NEW, 5, 2);			     // replaces a longer item
	chain_take(&chain, &item);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 1);
	item_append(&item, filler, sizeof(filler));
	item.bytes[12]++; // another peer's id; too long by itself
	chain_take(&chain, &item);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 0);
	chain_end(&chain);
}

static void without_memory_it_is_neither_kept_nor_passed_on(void **state) {
	struct chain chain = chain_make();
	struct item item = item_with_new_state(lone_id(chain.lone, SUBJECT));

	(void)state;
	chain.lone->memory_spent = true;
	chain_take(&chain, &item);
	chain.lone->memory_spent = false;
	assert_int_equal(chain.lone->ras->foreign.count, 0);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 0);
	chain_take(&chain, &item);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 1);
	chain_end(&chain);
}

// Otherwise the death would enter the tables of joining nodes, which do not check weights.
static void death_that_weighs_too_little_is_told_to_nobody_by_this_way(void **state) {
	struct chain chain = chain_make();
	uint64_t id = lone_id(chain.lone, SUBJECT);
	struct item item = item_of(FLAG_DEATH | FLAG_NEW, RAS_DEAD, id, ras_incarnation(1, 0));
	uint32_t later;

	(void)state;
	item_append_death(&item, RAS_CAUSE_SILENT, 1);
	chain_take(&chain, &item);
	assert_int_not_equal(lone_peer(chain.lone, SUBJECT).state, RAS_DEAD);
	later = lone_connect(chain.lone, 4, RAS_USE_LEVEL(1));
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 0);
	assert_int_equal(item_sent(chain.lone, later, &item), 0);
	chain_end(&chain);
}

static void contested_death_is_passed_on_when_it_is_taken_over_and_not_before(void **state) {
	struct chain chain = chain_make();
	uint32_t subject = lone_connect(chain.lone, SUBJECT, RAS_USE_LEVEL(1));
	uint64_t id = lone_id(chain.lone, SUBJECT);
	struct item item = item_of(FLAG_DEATH | FLAG_NEW, RAS_DEAD, id, ras_incarnation(1, 0));

	(void)state;
	item_append_death(&item, RAS_CAUSE_SILENT, 2);
	chain_take(&chain, &item);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 0);
	lone_end(chain.lone, subject, RAS_CAUSE_RESET);
	for (uint32_t n = 0; n < 20; n++) {
		lone_beat(chain.lone, chain.to, n, RAS_USE_NEXT);
		lone_beat(chain.lone, chain.from, n, RAS_USE_NEXT);
		lone_pass(chain.lone, 300 * MS);
	}
	assert_int_equal(lone_peer(chain.lone, SUBJECT).state, RAS_DEAD);
	assert_int_equal(item_sent(chain.lone, chain.to, &item), 1);
	chain_end(&chain);
}

static void refuted_end_and_a_past_start_are_forgotten(void **state) {
	struct chain chain = chain_make();
	struct foreign *foreign = &chain.lone->ras->foreign;
	uint64_t id = lone_id(chain.lone, SUBJECT);
	struct item item = item_of_departure(chain.lone);
	struct ras_peer_info info = lone_info(chain.lone, SUBJECT, 3);
	struct peer_news news = lone_told(chain.lone, SUBJECT, RAS_ALIVE, ras_incarnation(1, 1));
	uint32_t later;

	(void)state;
	chain_take(&chain, &item);
	assert_int_equal(foreign->count, 1);
	lone_news(chain.lone, chain.from, &news);
	later = lone_connect(chain.lone, 4, RAS_USE_LEVEL(1));
	assert_int_equal(item_sent(chain.lone, later, &item), 0);
	chain_take(&chain, &item); // a repetition of an old item
	assert_int_equal(foreign->count, 0);

	item = item_with_new_state(id);
	chain_take(&chain, &item);
	assert_int_equal(foreign->count, 1);
	assert_int_equal(ras_record_from_info(chain.lone->interner, &info, &news.record), 0);
	news.incarnation = ras_incarnation(3, 0);
	lone_news(chain.lone, chain.from, &news);
	ras_record_put(chain.lone->interner, news.record);
	for (uint32_t n = 0; n < 130; n++) {
		lone_beat(chain.lone, chain.to, n, RAS_USE_NEXT);
		lone_beat(chain.lone, chain.from, n, RAS_USE_NEXT);
		lone_pass(chain.lone, 500 * MS);
	}
	assert_int_equal(foreign->count, 0);
	chain_end(&chain);
}

static void item_of_a_stranger_is_forgotten_after_an_hour(void **state) {
	struct lone *lone = lone_of(1, 0);
	struct foreign *foreign = &lone->ras->foreign;
	struct message_news heard = {.foreign = true, .state_foreign = true};
	struct item item = item_with_new_state(424242);
	struct wire_reader reader;

	(void)state;
	wire_reader_init(&reader, item.bytes, item.size);
	assert_int_equal(message_news_decode(&reader, &heard), 0);
	foreign_item_received(lone->ras, NULL, &heard);
	lone_pass(lone, HOUR - 120 * SEC);
	assert_int_equal(foreign->count, 1);
	lone_pass(lone, 240 * SEC);
	assert_int_equal(foreign->count, 0);
	lone_destroy(lone);
}

static void item_is_forgotten_with_its_peer(void **state) {
	struct chain chain = chain_make();
	uint64_t id = lone_id(chain.lone, SUBJECT);
	struct item item = item_of_departure(chain.lone);

	(void)state;
	chain_take(&chain, &item);
	assert_int_equal(chain.lone->ras->foreign.count, 1);
	assert_int_equal(ras_forget(chain.lone->ras, chain.lone->now_ns, id), 0);
	assert_int_equal(chain.lone->ras->foreign.count, 0);
	chain_end(&chain);
}

// A ring of this version: each member receives the item, and it does not circulate.
static void ring_of_this_version_carries_an_item_to_all_once(void **state) {
	struct world *world = world_of(12);
	struct item item = item_with_new_state(world_id(world, 7));
	struct link *link = world_link(world, 3, 4);
	uint8_t frame[1 + sizeof(item.bytes)] = {MESSAGE_UPDATE};
	uint64_t digest = world_view(world, 0).digest;
	uint64_t sent = 0;

	(void)state;
	memcpy(frame + 1, item.bytes, item.size);
	ras_conn_frame(
		world->nodes[3].ras, world->now_ns, link->current->handle, frame, 1 + item.size
	);
	world_pass(world, 10 * SEC);
	for (uint32_t n = 0; n < world->count; n++) {
		const struct foreign *foreign = &world->nodes[n].ras->foreign;

		assert_int_equal(foreign->count, 1);
		assert_int_equal(foreign->pending, 0);
		assert_int_equal(foreign->items[0].size, item.size - 2);
		assert_memory_equal(foreign->items[0].bytes, item.bytes + 2, item.size - 2);
		assert_int_equal(world_view(world, n).digest, digest);
		sent += ras_counters(world->nodes[n].ras)->news_sent;
	}
	world_pass(world, 30 * SEC);
	for (uint32_t n = 0; n < world->count; n++)
		sent -= ras_counters(world->nodes[n].ras)->news_sent;
	assert_int_equal(sent, 0);
	assert_int_equal(world_events_all(world, RAS_EVENT_LINK_DOWN), 0);
	world_destroy(world);
}

UNIT_GROUP(ras_foreign) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(item_of_an_unknown_state_passes_and_judges_nobody),
		cmocka_unit_test(item_with_an_unknown_flag_passes_and_what_is_known_is_merged),
		cmocka_unit_test(item_with_bytes_behind_passes_with_the_record_before_them),
		cmocka_unit_test(item_of_a_stranger_who_lives_is_passed_on_when_its_record_is_there
		),
		cmocka_unit_test(death_of_a_stranger_is_not_kept),
		cmocka_unit_test(death_for_an_unknown_cause_passes_and_counts),
		cmocka_unit_test(item_that_came_before_or_by_a_longer_way_is_not_passed_on_again),
		cmocka_unit_test(of_two_items_of_a_peer_that_of_the_higher_incarnation_is_kept),
		cmocka_unit_test(neighbour_that_told_it_too_is_not_told),
		cmocka_unit_test(link_whose_session_begins_later_is_told_what_is_kept),
		cmocka_unit_test(who_takes_our_table_takes_what_is_kept_with_it),
		cmocka_unit_test(joiner_keeps_what_came_with_the_table_it_took),
		cmocka_unit_test(item_of_a_stranger_is_told_at_no_session_and_to_no_joiner),
		cmocka_unit_test(oldest_items_of_strangers_make_room_for_those_of_members),
		cmocka_unit_test(flood_of_distinct_ids_fills_no_more_than_the_bound),
		cmocka_unit_test(long_items_fill_no_more_than_the_bytes_there_are),
		cmocka_unit_test(without_memory_it_is_neither_kept_nor_passed_on),
		cmocka_unit_test(death_that_weighs_too_little_is_told_to_nobody_by_this_way),
		cmocka_unit_test(contested_death_is_passed_on_when_it_is_taken_over_and_not_before),
		cmocka_unit_test(refuted_end_and_a_past_start_are_forgotten),
		cmocka_unit_test(item_of_a_stranger_is_forgotten_after_an_hour),
		cmocka_unit_test(item_is_forgotten_with_its_peer),
		cmocka_unit_test(ring_of_this_version_carries_an_item_to_all_once),
	};

	return cmocka_run_group_tests_name("ras_foreign", tests, NULL, NULL);
}
