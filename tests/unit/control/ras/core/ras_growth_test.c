// SPDX-License-Identifier: BSD-3-Clause
// Messages of newer versions, besides items of UPDATE (ras_foreign_test.c), and of older ones.
#include "collect/collect_message.h"
#include "control/ras/ras_lone.h"

#include <support/cmocka.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

#define STATE_NEW 9   // an unknown state
#define CAUSE_NEW 200 // an unknown cause

static void refusal_for_an_unknown_reason_is_one_by_a_living_agent(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct message_init_ack ack = lone_ack(lone, 2);
	uint32_t conn = lone_opening(lone, 2);

	(void)state;
	assert_int_not_equal(conn, 0);
	ack.refusal = CAUSE_NEW;
	ack.your_state = STATE_NEW;
	lone_send_ack(lone, conn, &ack);
	assert_true(lone_is_closed(lone, conn));
	assert_int_equal(ras_counters(lone->ras)->frames_malformed, 0);
	assert_false(link_is_ready(lone_find_link(lone, 2)));
	lone_pass(lone, 5 * SEC);
	assert_int_equal(lone_events(lone, RAS_EVENT_DECLARED_DEAD), 0);
	assert_int_not_equal(lone_opening(lone, 2), 0); // retried
	lone_destroy(lone);
}

static void joiner_that_is_refused_for_an_unknown_reason_asks_on(void **state) {
	struct lone *lone =
		lone_create(&(struct lone_setup){.count = 3, .self = 1, .joining = true});
	struct message_init_ack ack = lone_ack(lone, 0);

	(void)state;
	ack.refusal = CAUSE_NEW;
	lone_pass(lone, 300 * MS);
	lone_send_ack(lone, lone_opening(lone, 0), &ack);
	for (uint32_t n = 0; n < 40 && lone_opening(lone, 0) == 0; n++)
		lone_pass(lone, 250 * MS);
	assert_int_not_equal(lone_opening(lone, 0), 0);
	assert_int_equal(lone_events(lone, RAS_EVENT_JOIN_REFUSED), 0);
	lone_destroy(lone);
}

// The state may be older or newer, so it is neither merged, nor forwarded, nor requested.
static void brief_of_an_unknown_state_is_skipped(void **state) {
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);
	struct message_brief brief = {.id = lone_id(lone, 3), .state = STATE_NEW, .weight = 99};
	uint8_t bytes[64];
	struct wire_writer writer;

	(void)state;
	lone_mark(lone);
	wire_writer_init(&writer, bytes, sizeof(bytes));
	message_brief_begin(
		UINT64_C(1) << peers_digest_range(brief.id),
		MESSAGE_BRIEF_FIRST | MESSAGE_BRIEF_LAST, &writer
	);
	message_brief_encode(&brief, &writer);
	lone_frame(lone, conn, bytes, wire_writer_used(&writer));
	assert_false(lone_is_closed(lone, conn));
	assert_int_equal(lone_sent(lone, conn, MESSAGE_PULL), 0);
	assert_int_equal(lone_sent(lone, conn, MESSAGE_UPDATE), 0);
	assert_int_equal(lone_peer(lone, 3).state, RAS_ALIVE);
	lone_destroy(lone);
}

static void put_beat(struct wire_writer *writer) {
	message_beat_encode(&(struct message_beat){.period = 1, .uses = RAS_USE_NEXT}, writer);
}

static void put_digests(struct wire_writer *writer) {
	wire_put_u8(writer, MESSAGE_DIGESTS);
	for (uint32_t n = 0; n < PEERS_RANGES; n++)
		wire_put_u64(writer, 0);
}

static void put_notice(struct wire_writer *writer) {
	static const uint8_t signature[RAS_SIGNATURE_BYTES];
	struct collect_notice notice = {
		.origin = 77, .id = 1, .kind = RAS_NOTICE_OWN_MIN, .signature = signature};

	notice.payload = "told";
	notice.size = 4;
	collect_notice_encode(&notice, writer);
}

static void put_collect(struct wire_writer *writer) {
	struct collect_request request = {.origin = 77, .id = 2, .kind = 1, .budget_ns = SEC};

	collect_request_encode(&request, NULL, 0, writer);
}

static void put_cancel(struct wire_writer *writer) {
	collect_cancel_encode(77, 2, writer);
}

static void fields_behind_those_we_know_close_no_link(void **state) {
	static void (*const puts[])(struct wire_writer * writer) = {
		put_beat, put_digests, put_notice, put_collect, put_cancel,
	};
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	for (size_t n = 0; n < sizeof(puts) / sizeof(puts[0]); n++) {
		uint8_t bytes[1024];
		struct wire_writer writer;

		wire_writer_init(&writer, bytes, sizeof(bytes));
		puts[n](&writer);
		wire_put_bytes(&writer, "\xff\xff\xff\xff\xff", 5);
		lone_frame(lone, conn, bytes, wire_writer_used(&writer));
		assert_false(lone_is_closed(lone, conn));
	}
	lone_destroy(lone);
}

static void older_versions_are_refused_with_their_reason_and_our_range(void **state) {
	struct lone *lone = lone_of(4, 1);
	struct message_init init = lone_init(lone, 2, RAS_USE_NEXT);

	(void)state;
	for (uint16_t version = 1; version <= 2; version++) {
		const struct lone_frame *frame;
		struct message_init_ack ack;
		struct wire_reader reader;
		uint32_t conn = lone_accept(lone);

		init.version_min = version;
		init.version_max = version;
		lone_send_init(lone, conn, &init);
		frame = lone_latest(lone, conn, MESSAGE_INIT_ACK);
		wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
		assert_int_equal(message_init_ack_decode(&reader, &ack), 0);
		assert_int_equal(ack.refusal, RAS_CAUSE_VERSION);
		assert_int_equal(ack.version_min, 3);
		assert_int_equal(ack.version, 3);
	}
	lone_destroy(lone);
}

UNIT_GROUP(ras_growth) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusal_for_an_unknown_reason_is_one_by_a_living_agent),
		cmocka_unit_test(joiner_that_is_refused_for_an_unknown_reason_asks_on),
		cmocka_unit_test(brief_of_an_unknown_state_is_skipped),
		cmocka_unit_test(fields_behind_those_we_know_close_no_link),
		cmocka_unit_test(older_versions_are_refused_with_their_reason_and_our_range),
	};

	return cmocka_run_group_tests_name("ras_growth", tests, NULL, NULL);
}
