// SPDX-License-Identifier: BSD-3-Clause
// Well-formed but wrong messages, one by one; hostile_messages.md lists them as a table.
#include "control/ras/ras_lone.h"
#include "relay/relay_packet.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>

#define SEC RAS_NS_PER_SEC

static struct ras_record *
record_with(struct lone *lone, uint32_t peer, uint64_t start, const char *name, uint32_t address) {
	struct ras_peer_info info = lone_info(lone, peer, start);
	struct ras_record *record;

	if (name != NULL)
		snprintf(info.name, sizeof(info.name), "%s", name);
	info.addresses[0] = lone_address(address);
	assert_int_equal(ras_record_from_info(lone->interner, &info, &record), 0);
	return record;
}

static void init_says(struct message_init *init, const struct ras_record *record) {
	init->record = record->encoding;
	init->record_size = record->size;
	init->incarnation = ras_incarnation(record->start, 0);
}

// Send INIT and return the cause of its rejection; NONE if it was accepted.
static enum ras_cause refused_for(struct lone *lone, const struct message_init *init) {
	uint32_t conn = lone_accept(lone);

	lone_send_init(lone, conn, init);
	return lone_refusal(lone, conn);
}

static uint32_t next_of(struct lone *lone) {
	return lone_link(lone, (lone->self + 1) % lone->count);
}

static void frame_before_init_ends_the_connection(void **state) {
	static const uint8_t types[] = {0, MESSAGE_INIT_ACK, MESSAGE_BEAT, MESSAGE_UPDATE, 200};
	struct lone *lone = lone_of(4, 1);

	(void)state;
	for (size_t n = 0; n < sizeof(types); n++) {
		uint8_t frame[64] = {types[n]};
		uint32_t conn = lone_accept(lone);

		lone_frame(lone, conn, frame, sizeof(frame));
		assert_true(lone_is_closed(lone, conn));
	}
	assert_int_equal(ras_counters(lone->ras)->frames_malformed, sizeof(types));
	assert_int_equal(lone_events(lone, RAS_EVENT_SUSPECT), 0);
	lone_destroy(lone);
}

static void second_init_ends_the_connection_and_the_link_is_opened_anew(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = next_of(lone);
	struct message_init init = lone_init(lone, 2, RAS_USE_NEXT);

	(void)state;
	lone_send_init(lone, conn, &init);
	assert_true(lone_is_closed(lone, conn));
	assert_int_equal(lone_event(lone, RAS_EVENT_LINK_DOWN)->cause, RAS_CAUSE_PROTOCOL);
	lone_pass(lone, 2 * SEC);
	assert_int_not_equal(lone_opening(lone, 2), 0);
	lone_destroy(lone);
}

static void empty_and_oversized_frames_end_the_connection(void **state) {
	static uint8_t frame[RAS_FRAME_MAX + 1] = {200};
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = next_of(lone);

	(void)state;
	lone_frame(lone, conn, frame, RAS_FRAME_MAX); // an unknown type with the maximum length
	assert_false(lone_is_closed(lone, conn));
	lone_frame(lone, conn, frame, sizeof(frame));
	assert_true(lone_is_closed(lone, conn));
	conn = lone_link(lone, 0);
	lone_frame(lone, conn, frame, 0);
	assert_true(lone_is_closed(lone, conn));
	lone_destroy(lone);
}

// Row 20: a type of a newer minor version.
static void unknown_type_is_skipped_and_counted(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = next_of(lone);

	(void)state;
	lone_frame(lone, conn, (uint8_t[]){MESSAGE_TYPE_COUNT, 1, 2, 3}, 4);
	lone_frame(lone, conn, (uint8_t[]){255}, 1);
	assert_false(lone_is_closed(lone, conn));
	assert_int_equal(ras_counters(lone->ras)->frames_unknown, 2);
	lone_destroy(lone);
}

static void every_prefix_of_a_message_ends_the_connection_and_changes_no_table(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint64_t digest = peers_digest(&lone->ras->peers);
	struct peer_news news = lone_told(lone, 3, RAS_DEAD, ras_incarnation(1, 0));
	uint8_t bytes[256];
	struct wire_writer writer;

	(void)state;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	wire_put_u8(&writer, MESSAGE_UPDATE);
	message_news_encode(&news, &writer);
	for (size_t size = 2; size < wire_writer_used(&writer); size++) {
		uint32_t conn = lone_connect(lone, 0, RAS_USE_NEXT);

		lone_frame(lone, conn, bytes, size);
		assert_true(lone_is_closed(lone, conn));
		lone_mark(lone);
	}
	assert_int_equal(peers_digest(&lone->ras->peers), digest);
	lone_destroy(lone);
}

static void update_whose_item_has_a_wrong_length_ends_the_connection(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct peer_news news = lone_told(lone, 3, RAS_DEAD, ras_incarnation(1, 0));
	uint16_t whole = (uint16_t)(message_news_bytes(&news) - MESSAGE_ITEM_LENGTH_BYTES);
	const uint16_t lengths[] = {
		0, 22, (uint16_t)(whole - 1), (uint16_t)(whole + 1), UINT16_MAX};

	(void)state;
	for (size_t n = 0; n < sizeof(lengths) / sizeof(lengths[0]); n++) {
		uint32_t conn = lone_connect(lone, 0, RAS_USE_NEXT);
		uint8_t bytes[256];
		struct wire_writer writer;

		wire_writer_init(&writer, bytes, sizeof(bytes));
		wire_put_u8(&writer, MESSAGE_UPDATE);
		message_news_encode(&news, &writer);
		wire_patch_u16(&writer, 1, lengths[n]);
		lone_frame(lone, conn, bytes, wire_writer_used(&writer));
		assert_true(lone_is_closed(lone, conn));
		lone_mark(lone);
	}
	assert_int_equal(lone_peer(lone, 3).state, RAS_ALIVE);
	assert_int_equal(lone->ras->foreign.count, 0);
	lone_destroy(lone);
}

static void brief_whose_entries_have_a_wrong_length_ends_the_connection(void **state) {
	static const uint16_t lengths[] = {
		0,
		MESSAGE_BRIEF_BYTES - 1,
		MESSAGE_BRIEF_BYTES + 1,
		UINT16_MAX,
	};
	struct lone *lone = lone_of(4, 1);
	struct message_brief brief = {.id = lone_id(lone, 3), .state = RAS_ALIVE};

	(void)state;
	for (size_t n = 0; n < sizeof(lengths) / sizeof(lengths[0]); n++) {
		uint32_t conn = lone_connect(lone, 0, RAS_USE_NEXT);
		uint8_t bytes[64];
		struct wire_writer writer;

		wire_writer_init(&writer, bytes, sizeof(bytes));
		message_brief_begin(UINT64_MAX, MESSAGE_BRIEF_FIRST, &writer);
		wire_patch_u16(&writer, MESSAGE_BRIEF_FLAGS_AT + 1, lengths[n]);
		message_brief_encode(&brief, &writer);
		lone_frame(lone, conn, bytes, wire_writer_used(&writer));
		assert_true(lone_is_closed(lone, conn));
		lone_mark(lone);
	}
	lone_destroy(lone);
}

static void unknown_sender_with_a_whole_record_becomes_a_member(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct ras_record *stranger = record_with(lone, 2, 1, "stranger", 9);
	struct message_init init = lone_init(lone, 2, RAS_USE_NEXT);
	struct ras_peer peer;

	(void)state;
	init_says(&init, stranger);
	assert_int_equal(refused_for(lone, &init), RAS_CAUSE_NONE);
	assert_int_equal(ras_peer_find(lone->ras, stranger->id, &peer), 0);
	assert_int_equal(peer.state, RAS_ALIVE);
	assert_int_equal(lone_events(lone, RAS_EVENT_JOINED), 1);
	ras_record_put(lone->interner, stranger);
	lone_destroy(lone);
}

static void record_that_is_none_is_refused(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct message_init init = lone_init(lone, 2, RAS_USE_NEXT);

	(void)state;
	init.record = "\xff\xff\xff";
	init.record_size = 3;
	assert_int_equal(refused_for(lone, &init), RAS_CAUSE_PROTOCOL);
	init.record_size = 0;
	assert_int_equal(refused_for(lone, &init), RAS_CAUSE_PROTOCOL);
	lone_destroy(lone);
}

static void older_start_than_the_known_one_is_refused_as_a_conflict(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct ras_record *newer = record_with(lone, 2, 5, NULL, 2);
	struct message_init init = lone_init(lone, 2, RAS_USE_NEXT);

	(void)state;
	init_says(&init, newer);
	assert_int_equal(refused_for(lone, &init), RAS_CAUSE_NONE);
	init = lone_init(lone, 2, RAS_USE_NEXT);
	assert_int_equal(refused_for(lone, &init), RAS_CAUSE_CONFLICT);
	assert_int_equal(lone_events(lone, RAS_EVENT_CONFLICT), 1);
	assert_int_equal(lone_peer(lone, 2).incarnation, ras_incarnation(5, 0));
	ras_record_put(lone->interner, newer);
	lone_destroy(lone);
}

static void same_start_with_other_facts_is_refused_as_a_conflict(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct ras_record *other = record_with(lone, 2, 1, NULL, 9);
	struct message_init init = lone_init(lone, 2, RAS_USE_NEXT);

	(void)state;
	init_says(&init, other);
	assert_int_equal(refused_for(lone, &init), RAS_CAUSE_CONFLICT);
	ras_record_put(lone->interner, other);
	lone_destroy(lone);
}

static void our_own_name_in_an_init_is_refused_as_a_conflict(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct message_init init = lone_init(lone, 1, RAS_USE_NEXT);

	(void)state;
	assert_int_equal(refused_for(lone, &init), RAS_CAUSE_CONFLICT);
	lone_destroy(lone);
}

// Regression: a look requested in our own name was answered to ourselves, which broke an
// assertion.
static void relayed_message_from_ourselves_to_us_ends_the_connection(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = next_of(lone);
	uint8_t frame[RELAY_HEADER_BYTES + 32];
	struct relay_header header = {
		.header_size = RELAY_HEADER_BYTES,
		.kind = RELAY_DATA,
		.class = RAS_RELAY_CONTROL,
		.hops = 2,
		.hops_left = 9,
		.life_us = 1000000,
		.source = lone_id(lone, 1),
		.source_incarnation = ras_incarnation(1, 0),
		.destination = lone_id(lone, 1),
		.destination_run = 1,
		.port = RELAY_PORT_CONFIRM,
		.payload_size = 29,
	};
	struct wire_writer writer;

	(void)state;
	relay_header_encode(&header, frame);
	wire_writer_init(&writer, frame + RELAY_HEADER_BYTES, 32);
	wire_put_u8(&writer, 1); // a look at the subject
	wire_put_u64(&writer, lone_id(lone, 1));
	wire_put_u64(&writer, ras_incarnation(1, 0));
	wire_put_u64(&writer, 1);
	wire_put_u32(&writer, 1);
	lone_frame(lone, conn, frame, RELAY_HEADER_BYTES + header.payload_size);
	assert_true(lone_is_closed(lone, conn));
	lone_destroy(lone);
}

static void start_that_is_not_the_record_s_is_refused(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct message_init init = lone_init(lone, 2, RAS_USE_NEXT);

	(void)state;
	init.incarnation = ras_incarnation(9, 0);
	assert_int_equal(refused_for(lone, &init), RAS_CAUSE_CONFLICT);
	assert_int_equal(lone_peer(lone, 2).incarnation, ras_incarnation(1, 0));
	lone_destroy(lone);
}

static void other_cluster_and_other_versions_are_refused_with_the_reason(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct message_init init = lone_init(lone, 2, RAS_USE_NEXT);

	(void)state;
	init.cluster++;
	assert_int_equal(refused_for(lone, &init), RAS_CAUSE_CLUSTER);
	init = lone_init(lone, 2, RAS_USE_NEXT);
	init.version_min = (uint16_t)(ras_versions_built.max + 1);
	init.version_max = (uint16_t)(ras_versions_built.max + 2);
	assert_int_equal(refused_for(lone, &init), RAS_CAUSE_VERSION);
	init.version_min = 0;
	init.version_max = 0;
	assert_int_equal(refused_for(lone, &init), RAS_CAUSE_VERSION);
	assert_int_equal(ras_counters(lone->ras)->inits_refused, 3);
	assert_int_equal(ras_counters(lone->ras)->versions_refused, 2);
	lone_destroy(lone);
}

// Agents that cannot join retry for as long as they run.
static void other_version_is_one_event_in_ten_seconds_that_names_its_range(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct message_init init = lone_init(lone, 2, RAS_USE_NEXT);
	const struct ras_event *event;

	(void)state;
	init.version_min = 7;
	init.version_max = 9;
	for (uint32_t n = 0; n < 100; n++) {
		refused_for(lone, &init);
		lone_pass(lone, SEC / 10);
	}
	assert_int_equal(ras_counters(lone->ras)->versions_refused, 100);
	assert_int_equal(lone_events(lone, RAS_EVENT_OTHER_VERSION), 1);
	event = lone_event(lone, RAS_EVENT_OTHER_VERSION);
	assert_int_equal(event->peer, lone->records[2]->id);
	assert_string_equal(event->name, "n02");
	assert_int_equal(event->cause, RAS_CAUSE_VERSION);
	assert_int_equal(ras_versions_unpack(event->value).min, 7);
	assert_int_equal(ras_versions_unpack(event->value).max, 9);
	refused_for(lone, &init);
	assert_int_equal(lone_events(lone, RAS_EVENT_OTHER_VERSION), 2);
	lone_destroy(lone);
}

static void version_that_we_did_not_offer_is_no_acceptance(void **state) {
	static const int offered_less[] = {-1, 1};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(offered_less); n++) {
		struct lone *lone =
			lone_create(&(struct lone_setup){.count = 3, .self = 1, .joining = true});
		struct message_init_ack ack = lone_ack(lone, 0);
		uint32_t conn;

		lone_pass(lone, SEC / 10);
		conn = lone_opening(lone, 0);
		ack.version = (uint16_t)(ack.version + offered_less[n]);
		lone_send_ack(lone, conn, &ack);
		assert_true(lone_is_closed(lone, conn));
		assert_int_equal(ras_counters(lone->ras)->frames_malformed, 1);
		lone_destroy(lone);
	}
}

// News about members.

static void older_incarnation_changes_nothing_and_is_not_passed_on(void **state) {
	struct lone *lone = lone_of(5, 1);
	uint32_t conn = next_of(lone);
	uint32_t other = lone_connect(lone, 4, RAS_USE_NEXT);
	struct ras_record *newer = record_with(lone, 3, 4, NULL, 3);
	struct peer_news news = lone_told(lone, 3, RAS_ALIVE, ras_incarnation(4, 2));

	(void)state;
	news.record = newer;
	lone_news(lone, conn, &news);
	lone_pass(lone, SEC / 10);
	lone_mark(lone);
	news = lone_told(lone, 3, RAS_DEAD, ras_incarnation(4, 1));
	lone_news(lone, conn, &news);
	news = lone_told(lone, 3, RAS_DEAD, ras_incarnation(3, UINT16_MAX));
	lone_news(lone, conn, &news);
	lone_pass(lone, SEC / 10);
	assert_int_equal(lone_peer(lone, 3).state, RAS_ALIVE);
	assert_int_equal(lone_sent(lone, other, MESSAGE_UPDATE), 0);
	ras_record_put(lone->interner, newer);
	lone_destroy(lone);
}

static void replayed_news_change_nothing_and_are_not_passed_on(void **state) {
	struct lone *lone = lone_of(5, 1);
	uint32_t conn = next_of(lone);
	uint32_t other = lone_connect(lone, 4, RAS_USE_NEXT);
	struct peer_news news = lone_told(lone, 3, RAS_DEAD, ras_incarnation(1, 0));

	(void)state;
	lone_news(lone, conn, &news);
	lone_pass(lone, SEC / 10);
	assert_int_equal(lone_events(lone, RAS_EVENT_DEAD), 1);
	assert_int_equal(lone_sent(lone, other, MESSAGE_UPDATE), 1);
	for (uint32_t n = 0; n < 5; n++)
		lone_news(lone, conn, &news);
	lone_pass(lone, SEC / 10);
	assert_int_equal(lone_events(lone, RAS_EVENT_DEAD), 1);
	assert_int_equal(lone_sent(lone, other, MESSAGE_UPDATE), 1);
	lone_destroy(lone);
}

static void table_that_lists_us_as_dead_is_refuted_on_every_link(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = next_of(lone);
	uint32_t other = lone_connect(lone, 0, RAS_USE_NEXT);
	struct peer_news news = lone_told(lone, 1, RAS_DEAD, ras_incarnation(1, 3));

	(void)state;
	lone_mark(lone);
	lone_news(lone, conn, &news);
	assert_int_equal(ras_self_incarnation(lone->ras), ras_incarnation(1, 4));
	assert_int_equal(lone_event(lone, RAS_EVENT_DECLARED_DEAD)->value, ras_incarnation(1, 4));
	assert_int_equal(lone_sent(lone, conn, MESSAGE_UPDATE), 1);
	assert_int_equal(lone_sent(lone, other, MESSAGE_UPDATE), 1);
	lone_news(lone, conn, &news); // a repetition, which was already answered
	assert_int_equal(ras_self_incarnation(lone->ras), ras_incarnation(1, 4));
	assert_int_equal(lone_events(lone, RAS_EVENT_DECLARED_DEAD), 1);
	assert_int_equal(lone_peer(lone, 0).state, RAS_ALIVE); // no other member is affected
	lone_destroy(lone);
}

static void death_told_of_our_last_refutation_makes_us_a_new_start(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = next_of(lone);
	struct peer_news news = lone_told(lone, 1, RAS_DEAD, ras_incarnation(1, UINT16_MAX));

	(void)state;
	lone_news(lone, conn, &news);
	assert_int_equal(ras_self_incarnation(lone->ras), ras_incarnation(2, 0));
	assert_int_equal(lone_peer(lone, 1).record->start, 2);
	lone_destroy(lone);
}

static void start_of_ours_that_we_never_had_is_a_conflict_and_not_refuted(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = next_of(lone);
	struct peer_news news = lone_told(lone, 1, RAS_DEAD, ras_incarnation(RAS_START_MAX, 0));

	(void)state;
	lone_news(lone, conn, &news);
	assert_int_equal(ras_self_incarnation(lone->ras), ras_incarnation(1, 0));
	assert_int_equal(lone_events(lone, RAS_EVENT_CONFLICT), 1);
	lone_destroy(lone);
}

// Regression: the link to a living peer was closed before the merge rejected the news.
static void record_of_another_start_or_peer_leaves_the_live_link_alone(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = next_of(lone);
	struct peer_news news = lone_told(lone, 2, RAS_ALIVE, ras_incarnation(9, 0));

	(void)state;
	news.record = lone->records[2]; // a record of start 1
	lone_news(lone, conn, &news);
	news.record = lone->records[3];
	lone_news(lone, conn, &news);
	assert_false(lone_is_closed(lone, conn));
	assert_true(link_is_ready(lone_find_link(lone, 2)));
	assert_int_equal(lone_peer(lone, 2).incarnation, ras_incarnation(1, 0));
	assert_int_equal(ras_counters(lone->ras)->frames_unexpected, 2);
	lone_destroy(lone);
}

static void death_of_a_stranger_is_not_kept(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = next_of(lone);
	struct peer_news news = lone_told(lone, 3, RAS_DEAD, ras_incarnation(1, 0));
	struct ras_view view;

	(void)state;
	news.id = 12345;
	lone_news(lone, conn, &news);
	ras_view(lone->ras, &view);
	assert_int_equal(view.dead, 0);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_PULL), 0);
	lone_destroy(lone);
}

static void member_told_without_its_record_is_asked_for(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = next_of(lone);
	struct peer_news news = lone_told(lone, 3, RAS_ALIVE, ras_incarnation(1, 0));

	(void)state;
	news.id = 12345;
	lone_news(lone, conn, &news);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_PULL), 1);
	lone_destroy(lone);
}

// Regression: such a brief stopped the process.
static void brief_of_a_suspect_ends_the_connection(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = next_of(lone);
	struct message_brief brief = {
		.id = lone_id(lone, 3),
		.incarnation = ras_incarnation(1, 1),
		.record_digest = lone->records[3]->digest,
		.state = RAS_SUSPECT,
	};
	uint8_t bytes[64];
	struct wire_writer writer;

	(void)state;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	message_brief_begin(UINT64_MAX, MESSAGE_BRIEF_FIRST | MESSAGE_BRIEF_LAST, &writer);
	message_brief_encode(&brief, &writer);
	lone_frame(lone, conn, bytes, wire_writer_used(&writer));
	assert_true(lone_is_closed(lone, conn));
	assert_int_equal(lone_peer(lone, 3).state, RAS_ALIVE);
	lone_destroy(lone);
}

static void pull_of_strangers_is_answered_by_nothing(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = next_of(lone);

	(void)state;
	lone_mark(lone);
	lone_frame(lone, conn, (uint8_t[]){MESSAGE_PULL, 1, 2, 3, 4, 5, 6, 7, 8}, 9);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_UPDATE), 0);
	lone_frame(lone, conn, (uint8_t[]){MESSAGE_PULL, 1, 2, 3}, 4); // half of an identifier
	assert_true(lone_is_closed(lone, conn));
	lone_destroy(lone);
}

// An outdated echo, an unknown sequence number, and undefined uses.
static void beat_with_impossible_numbers_is_only_a_sign_of_life(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = next_of(lone);
	struct message_beat beat = {
		.sequence = UINT32_MAX,
		.echo = UINT32_MAX,
		.echo_delay_us = UINT32_MAX,
		.uses = UINT32_MAX,
		.digest = peers_digest(&lone->ras->peers),
		.flags = 0xfe,
	};
	uint8_t bytes[64];
	struct wire_writer writer;

	(void)state;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	message_beat_encode(&beat, &writer);
	lone_frame(lone, conn, bytes, wire_writer_used(&writer));
	assert_false(lone_is_closed(lone, conn));
	assert_int_equal(lone_find_link(lone, 2)->rtt.count, 0);
	lone_destroy(lone);
}

// Regression: the number that a seed derives from such a table stopped the joiner's process.
static void table_with_our_last_possible_start_does_not_stop_a_joiner(void **state) {
	struct lone *lone =
		lone_create(&(struct lone_setup){.count = 3, .self = 1, .joining = true});
	struct message_init_ack ack;
	uint32_t conn;

	(void)state;
	lone_pass(lone, SEC / 10);
	conn = lone_opening(lone, 0);
	ack = lone_ack(lone, 0);
	ack.your_start = RAS_START_MAX + 1;
	lone_send_ack(lone, conn, &ack);
	lone_beat(lone, conn, 0, 0); // the table is complete
	assert_true(lone->ras->joined);
	assert_in_range(ras_self_incarnation(lone->ras), 1, ras_incarnation(RAS_START_MAX, 0));
	lone_destroy(lone);
}

UNIT_GROUP(ras_hostile) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_before_init_ends_the_connection),
		cmocka_unit_test(second_init_ends_the_connection_and_the_link_is_opened_anew),
		cmocka_unit_test(empty_and_oversized_frames_end_the_connection),
		cmocka_unit_test(unknown_type_is_skipped_and_counted),
		cmocka_unit_test(every_prefix_of_a_message_ends_the_connection_and_changes_no_table
		),
		cmocka_unit_test(update_whose_item_has_a_wrong_length_ends_the_connection),
		cmocka_unit_test(brief_whose_entries_have_a_wrong_length_ends_the_connection),
		cmocka_unit_test(unknown_sender_with_a_whole_record_becomes_a_member),
		cmocka_unit_test(record_that_is_none_is_refused),
		cmocka_unit_test(older_start_than_the_known_one_is_refused_as_a_conflict),
		cmocka_unit_test(same_start_with_other_facts_is_refused_as_a_conflict),
		cmocka_unit_test(our_own_name_in_an_init_is_refused_as_a_conflict),
		cmocka_unit_test(relayed_message_from_ourselves_to_us_ends_the_connection),
		cmocka_unit_test(start_that_is_not_the_record_s_is_refused),
		cmocka_unit_test(other_cluster_and_other_versions_are_refused_with_the_reason),
		cmocka_unit_test(older_incarnation_changes_nothing_and_is_not_passed_on),
		cmocka_unit_test(replayed_news_change_nothing_and_are_not_passed_on),
		cmocka_unit_test(table_that_lists_us_as_dead_is_refuted_on_every_link),
		cmocka_unit_test(death_told_of_our_last_refutation_makes_us_a_new_start),
		cmocka_unit_test(start_of_ours_that_we_never_had_is_a_conflict_and_not_refuted),
		cmocka_unit_test(record_of_another_start_or_peer_leaves_the_live_link_alone),
		cmocka_unit_test(death_of_a_stranger_is_not_kept),
		cmocka_unit_test(member_told_without_its_record_is_asked_for),
		cmocka_unit_test(brief_of_a_suspect_ends_the_connection),
		cmocka_unit_test(pull_of_strangers_is_answered_by_nothing),
		cmocka_unit_test(beat_with_impossible_numbers_is_only_a_sign_of_life),
		cmocka_unit_test(other_version_is_one_event_in_ten_seconds_that_names_its_range),
		cmocka_unit_test(version_that_we_did_not_offer_is_no_acceptance),
		cmocka_unit_test(table_with_our_last_possible_start_does_not_stop_a_joiner),
	};

	return cmocka_run_group_tests_name("ras_hostile", tests, NULL, NULL);
}
