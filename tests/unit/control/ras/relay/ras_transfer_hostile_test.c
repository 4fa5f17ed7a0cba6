// SPDX-License-Identifier: BSD-3-Clause
// Messages that no agent sends, or not at that time or to that destination: counted and rejected.
#include "control/ras/relay/ras_transfer_bed.h"

#include <support/cmocka.h>

#include <errno.h>

#define SEGMENT RAS_TRANSFER_SEGMENT_BYTES_MAX
#define WINDOW RAS_TRANSFER_WINDOW_BYTES
#define LIAR 1 // sends by bed_inject() only
#define NODE 5
#define ID 4711
#define TAG 77

#define START_KNOWN                                                                           \
	{                                                                                     \
		.type = TRANSFER_START, .id = ID, .port = BED_PORT, .tag = TAG, .size = 1000, \
		.life_ms = 5000                                                               \
	}

static const struct transfer_message start_known = START_KNOWN;

// Inject DATA that the bed would send under TAG.
static int inject_data(uint32_t from, uint64_t id, uint32_t offset, uint32_t count, bool last) {
	uint8_t bytes[SEGMENT];
	struct transfer_message message = {
		.type = TRANSFER_DATA,
		.id = id,
		.offset = offset,
		.last = last,
		.bytes = bytes,
		.count = count,
	};

	for (uint32_t n = 0; n < count; n++)
		bytes[n] = bed_byte(TAG, (uint64_t)offset + n);
	return bed_inject_message(from, NODE, &message);
}

static void begin(uint64_t size) {
	struct transfer_message start = start_known;

	bed_create(8);
	start.size = size;
	assert_int_equal(bed_inject_message(LIAR, NODE, &start), 0);
	bed_pass_ms(5); // the credit was sent
	assert_int_equal(bed_stats(NODE).incoming, 1);
	assert_int_equal(bed_transfer(NODE, true)->in.limit, WINDOW);
}

// Check that the node still works and accepts honest transfers.
static void finish(void) {
	uint32_t arrivals;

	bed_settle(20);
	arrivals = bed.nodes[NODE].arrival_count;
	bed.nodes[NODE].take_room = UINT64_MAX;
	bed_start(0, NODE, TAG + 1, 3u * SEGMENT);
	bed_settle(5);
	assert_int_equal(bed.nodes[NODE].arrivals[arrivals].taken, 3u * SEGMENT);
	assert_true(world_agrees(bed.world));
	bed_destroy();
}

// Malformed messages

static const uint8_t some_bytes[SEGMENT];

enum sound_message {
	SOUND_START,
	SOUND_DATA,
	SOUND_LAST,
	SOUND_CANCEL,
	SOUND_CREDIT,
	SOUND_END,
	SOUND_COUNT,
};

static const struct transfer_message sound[SOUND_COUNT] = {
	[SOUND_START] = START_KNOWN,
	[SOUND_DATA] = {.type = TRANSFER_DATA, .id = ID, .bytes = some_bytes, .count = 1},
	[SOUND_LAST] =
		{.type = TRANSFER_DATA,
		 .id = ID,
		 .bytes = some_bytes,
		 .count = SEGMENT,
		 .last = true},
	[SOUND_CANCEL] = {.type = TRANSFER_CANCEL, .id = ID, .outcome = RAS_TRANSFER_CANCELLED},
	[SOUND_CREDIT] = {.type = TRANSFER_CREDIT, .id = ID, .received = 1, .limit = 2},
	[SOUND_END] = {.type = TRANSFER_END, .id = ID, .received = 1, .outcome = RAS_TRANSFER_DONE},
};

// A valid message with one byte replaced.
static const struct {
	const char *what;
	enum sound_message of;
	uint32_t offset;
	uint8_t value;
} edits[] = {
	{"no type", SOUND_START, 0, 0},
	{"a type that nobody knows", SOUND_START, 0, 6},
	{"a size beyond the maximum", SOUND_START, 24, 1},
	{"too long a life", SOUND_START, 32, 0x80},
	{"a flag that nobody knows", SOUND_DATA, 13, 2},
	{"an offset beyond the maximum", SOUND_DATA, 12, 0x80},
	{"CANCEL as done", SOUND_CANCEL, 9, RAS_TRANSFER_DONE},
	{"CANCEL as refused", SOUND_CANCEL, 9, RAS_TRANSFER_REFUSED},
	{"CANCEL for no reason that is", SOUND_CANCEL, 10, RAS_TRANSFER_REASON_COUNT},
	{"END as expired", SOUND_END, 13, RAS_TRANSFER_EXPIRED},
	{"END as dead", SOUND_END, 13, RAS_TRANSFER_DEAD},
	{"END as nothing that is", SOUND_END, 13, RAS_TRANSFER_OUTCOME_COUNT},
	{"END for no reason that is", SOUND_END, 14, RAS_TRANSFER_REASON_COUNT},
};

static const struct {
	const char *what;
	struct transfer_message message;
} unsound[] = {
	{"no id", {.type = TRANSFER_CREDIT}},
	{"one byte beyond the maximum",
	 {.type = TRANSFER_START, .id = ID, .size = RAS_TRANSFER_BYTES_MAX + 1, .life_ms = 1}},
	{"no life", {.type = TRANSFER_START, .id = ID, .size = 1}},
	{"a life a little too long",
	 {.type = TRANSFER_START, .id = ID, .size = 1, .life_ms = 600001}},
	{"a segment of nothing", {.type = TRANSFER_DATA, .id = ID}},
};

static void assert_malformed(const char *what, const uint8_t *payload, size_t size) {
	uint64_t before = bed_counters(NODE)->malformed;

	if (bed_inject(LIAR, NODE, payload, size) != -EBADMSG)
		fail_msg("taken: %s", what);
	assert_int_equal(bed_counters(NODE)->malformed, before + 1);
}

static void what_cannot_be_read_is_refused_and_changes_nothing(void **state) {
	uint8_t payload[TRANSFER_MESSAGE_BYTES_MAX + 1];

	(void)state;
	begin(1000);
	for (uint32_t n = 0; n < sizeof(edits) / sizeof(*edits); n++) {
		size_t size = transfer_message_encode(&sound[edits[n].of], payload);

		payload[edits[n].offset] = edits[n].value;
		assert_malformed(edits[n].what, payload, size);
	}
	for (uint32_t n = 0; n < sizeof(unsound) / sizeof(*unsound); n++) {
		size_t size = transfer_message_encode(&unsound[n].message, payload);

		assert_malformed(unsound[n].what, payload, size);
	}
	for (uint32_t n = 0; n < SOUND_COUNT; n++) {
		size_t size = transfer_message_encode(&sound[n], payload);

		payload[size] = 0;
		if (sound[n].type != TRANSFER_DATA || sound[n].count == SEGMENT)
			assert_malformed("a byte too many", payload, size + 1);
		while (size-- > 0) {
			// A segment has no length of its own: it ends with its message.
			if (sound[n].type != TRANSFER_DATA || size < TRANSFER_DATA_HEADER_BYTES)
				assert_malformed("cut off", payload, size);
		}
	}
	assert_int_equal(bed_stats(NODE).incoming, 1);
	assert_int_equal(bed_transfer(NODE, true)->in.received, 0);
	finish();
}

static void any_other_port_of_the_core_refuses_what_is_acknowledged(void **state) {
	struct ras_relay_message message = {.flags = RAS_RELAY_REPORT};
	struct ras *ras;
	uint64_t id;

	(void)state;
	bed_create(8);
	ras = bed.world->nodes[LIAR].ras;
	message.destination = world_id(bed.world, NODE);
	for (uint32_t port = 0; port < RAS_RELAY_PORT_MIN; port++) {
		message.port = port;
		if (port == RELAY_PORT_TRANSFER)
			continue;
		ras_enter(ras, bed.world->now_ns);
		assert_int_equal(relay_send_own(ras, &message, &id), 0);
		ras_exit(ras);
	}
	bed_pass_ms(100);
	assert_int_equal(
		ras_relay_counters(bed.world->nodes[NODE].ras)
			->ended[RAS_RELAY_UNDECODABLE][RAS_RELAY_CONTROL],
		RAS_RELAY_PORT_MIN - 1
	);
	assert_int_equal(
		ras_relay_counters(ras)->outcomes[RAS_RELAY_OUTCOME_REFUSED], RAS_RELAY_PORT_MIN - 1
	);
	finish();
}

// Messages of unknown transfers

static void messages_about_no_transfer_are_counted(void **state) {
	(void)state;
	begin(1000);
	for (uint32_t n = 1; n < SOUND_COUNT; n++) {
		struct transfer_message message = sound[n];

		message.id = ID + 1;
		assert_int_equal(bed_inject_message(LIAR, NODE, &message), 0);
		assert_int_equal(bed_counters(NODE)->unknown, 2 * n - 1);
		// The transfer belongs to another sender.
		assert_int_equal(bed_inject_message(LIAR + 1, NODE, &sound[n]), 0);
	}
	assert_int_equal(bed_counters(NODE)->unknown, 10);
	assert_int_equal(bed_transfer(NODE, true)->in.received, 0);
	assert_int_equal(bed.nodes[NODE].arrival_count, 0);
	finish();
}

static void a_segment_without_a_start_is_offered_to_nobody(void **state) {
	(void)state;
	bed_create(8);
	assert_int_equal(inject_data(LIAR, ID, 0, 10, true), 0);
	assert_int_equal(bed_counters(NODE)->unknown, 1);
	assert_int_equal(bed.nodes[NODE].arrival_count, 0);
	finish();
}

static void a_start_of_nobody_in_the_table_is_not_taken(void **state) {
	uint8_t payload[TRANSFER_MESSAGE_BYTES_MAX];
	struct ras_relay_delivery delivery = {.payload = payload, .port = RELAY_PORT_TRANSFER};
	struct ras *ras;

	(void)state;
	bed_create(8);
	ras = bed.world->nodes[NODE].ras;
	delivery.size = transfer_message_encode(&start_known, payload);
	delivery.source = 12345;
	delivery.source_incarnation = ras_incarnation(1, 0);
	assert_int_equal(
		transfer_message_received(ras, &delivery), -EAGAIN
	); // the relay retries later
	delivery.source = world_id(bed.world, LIAR);
	delivery.source_incarnation = ras_incarnation(2, 0);
	assert_int_equal(transfer_message_received(ras, &delivery), -EAGAIN);
	assert_int_equal(bed_counters(NODE)->busy, 2);
	assert_int_equal(bed_stats(NODE).incoming, 0);
	finish();
}

static void a_start_without_end_takes_its_share_and_no_more(void **state) {
	struct transfer_message start = start_known;

	(void)state;
	bed_create(8);
	for (uint32_t n = 0; n < 100; n++) {
		start.id = ID + n;
		assert_int_equal(
			bed_inject_message(LIAR, NODE, &start),
			n < RAS_TRANSFERS_PEER_MAX ? 0 : -EAGAIN
		);
	}
	assert_int_equal(bed_stats(NODE).incoming, RAS_TRANSFERS_PEER_MAX);
	bed_start(0, NODE, TAG, 3u * SEGMENT);
	bed_pass_ms(100);
	// Other transfers continue.
	assert_int_equal(bed.nodes[NODE].arrivals[0].taken, 3u * SEGMENT);
	bed_pass_ms(5000);
	assert_int_equal(bed_stats(NODE).incoming, 0); // their lifetime is over
	bed.nodes[NODE].arrival_count = bed.nodes[NODE].end_count = 0;
	finish();
}

// Starts

static void a_repeated_start_is_answered_again(void **state) {
	uint64_t credits;

	(void)state;
	begin(1000);
	credits = bed_counters(NODE)->credits_sent;
	assert_int_equal(inject_data(LIAR, ID, 0, 10, false), 0);
	assert_int_equal(bed_inject_message(LIAR, NODE, &start_known), 0);
	bed_pass_ms(5);
	assert_int_equal(bed_counters(NODE)->credits_sent, credits + 1);
	assert_int_equal(bed_counters(NODE)->duplicates, 1);
	assert_int_equal(inject_data(LIAR, ID, 10, 990, true), 0);
	bed_pass_ms(5);
	assert_int_equal(bed_end(NODE)->outcome, RAS_TRANSFER_DONE);
	finish();
}

static void a_start_that_disagrees_with_the_first_ends_it(void **state) {
	(void)state;
	for (uint32_t field = 0; field < 3; field++) {
		struct transfer_message start = start_known;

		begin(1000);
		start.size += field == 0;
		start.tag += field == 1;
		start.port += field == 2;
		assert_int_equal(inject_data(LIAR, ID, 0, 10, false), 0);
		assert_int_equal(bed_inject_message(LIAR, NODE, &start), 0);
		bed_pass_ms(5);
		assert_int_equal(bed_counters(NODE)->lies, 1);
		assert_int_equal(bed_end(NODE)->outcome, RAS_TRANSFER_BROKEN);
		finish();
	}
}

// Segments

struct piece {
	uint32_t offset, count;
	bool last;
};

// Messages about a transfer of 1,000 bytes, or of unknown size, after `before`.
struct lie {
	const char *what;
	uint64_t size;
	struct piece before, told;
};

static const struct lie lies[] = {
	{"more than announced", 1000, {0, 500, false}, {500, 501, true}},
	{"last too early", 1000, {0, 500, false}, {500, 499, true}},
	{"not the last where it must be", 1000, {0, 500, false}, {500, 500, false}},
	{"empty, and last, in the middle", 1000, {0, 500, false}, {500, 0, true}},
	{"far behind the end", 1000, {0, 500, false}, {1 << 23, 10, false}},
	{"the last before what is there",
	 RAS_TRANSFER_SIZE_UNKNOWN,
	 {0, 500, false},
	 {0, 400, true}},
	{"beyond the maximum",
	 RAS_TRANSFER_SIZE_UNKNOWN,
	 {0, 500, false},
	 {RAS_TRANSFER_BYTES_MAX, 1, true}},
};

static void sizes_that_disagree_end_it(void **state) {
	(void)state;
	for (uint32_t n = 0; n < sizeof(lies) / sizeof(*lies); n++) {
		const struct lie *lie = &lies[n];

		begin(lie->size);
		inject_data(LIAR, ID, lie->before.offset, lie->before.count, lie->before.last);
		inject_data(LIAR, ID, lie->told.offset, lie->told.count, lie->told.last);
		if (bed_counters(NODE)->lies != 1)
			fail_msg("believed: %s", lie->what);
		bed_pass_ms(5);
		assert_int_equal(bed_end(NODE)->outcome, RAS_TRANSFER_BROKEN);
		assert_int_equal(bed_end(NODE)->bytes, 500);
		finish();
	}
}

static void what_follows_the_last_segment_is_not_taken(void **state) {
	(void)state;
	for (uint32_t more = 0; more < 2; more++) {
		begin(RAS_TRANSFER_SIZE_UNKNOWN);
		bed.nodes[NODE].take_result = -EAGAIN;
		bed.nodes[NODE].take_room = 0;
		inject_data(LIAR, ID, 0, 500, true);
		inject_data(LIAR, ID, 0, 500, true); // a repetition
		assert_int_equal(bed_counters(NODE)->duplicates, 1);
		inject_data(LIAR, ID, more == 0 ? 500 : 400, 101, false);
		assert_int_equal(bed_counters(NODE)->lies, 1);
		bed_pass_ms(5);
		assert_int_equal(bed_end(NODE)->outcome, RAS_TRANSFER_BROKEN);
		assert_int_equal(bed_stats(NODE).held_bytes, 0);
		finish();
	}
}

static void segments_beyond_the_credit_end_it(void **state) {
	(void)state;
	begin(RAS_TRANSFER_SIZE_UNKNOWN);
	bed.nodes[NODE].take_result = -EAGAIN;
	bed.nodes[NODE].take_room = 0;
	for (uint32_t n = 0; n < TRANSFER_SEGMENTS_MAX; n++)
		assert_int_equal(inject_data(LIAR, ID, n * SEGMENT, SEGMENT, false), 0);
	assert_int_equal(bed_counters(NODE)->overruns, 0);
	assert_int_equal(bed_stats(NODE).held_bytes, WINDOW);
	assert_int_equal(inject_data(LIAR, ID, WINDOW, 1, false), 0);
	assert_int_equal(bed_counters(NODE)->overruns, 1);
	bed_pass_ms(5);
	assert_int_equal(bed_end(NODE)->outcome, RAS_TRANSFER_BROKEN);
	assert_int_equal(bed_stats(NODE).held_bytes, 0);
	finish();
}

static void small_segments_take_no_more_memory_than_large_ones(void **state) {
	size_t before;

	(void)state;
	begin(RAS_TRANSFER_SIZE_UNKNOWN);
	bed.nodes[NODE].take_result = -EAGAIN;
	bed.nodes[NODE].take_room = 0;
	before = ras_memory_used(bed.world->nodes[NODE].ras);
	for (uint32_t n = 0; n < 10000; n++)
		assert_int_equal(inject_data(LIAR, ID, n, 1, false), 0);
	assert_int_equal(ras_memory_used(bed.world->nodes[NODE].ras), before + WINDOW);
	bed.nodes[NODE].take_room = UINT64_MAX;
	ras_transfer_ready(
		bed.world->nodes[NODE].ras, bed.world->now_ns, bed_transfer(NODE, true)->id
	);
	bed_pass_ms(5);
	assert_int_equal(bed.nodes[NODE].arrivals[0].taken, 10000);
	assert_int_equal(bed_stats(NODE).held_bytes, 0);
	finish();
}

static void segments_out_of_order_or_repeated_are_left(void **state) {
	(void)state;
	begin(1000);
	inject_data(LIAR, ID, 500, 500, true);
	assert_int_equal(bed_counters(NODE)->gaps, 1);
	inject_data(LIAR, ID, 0, 300, false);
	inject_data(LIAR, ID, 0, 300, false);
	inject_data(LIAR, ID, 100, 100, false);
	assert_int_equal(bed_counters(NODE)->duplicates, 2);
	inject_data(LIAR, ID, 200, 300, false); // the last 200 bytes are new
	assert_int_equal(bed.nodes[NODE].arrivals[0].taken, 500);
	inject_data(LIAR, ID, 500, 500, true);
	bed_pass_ms(5);
	assert_int_equal(bed_end(NODE)->outcome, RAS_TRANSFER_DONE);
	inject_data(LIAR, ID, 500, 500, true); // behind the end
	assert_int_equal(bed.nodes[NODE].arrivals[0].taken, 1000);
	finish();
}

static void a_replayed_transfer_does_not_reach_the_consumer_without_a_start(void **state) {
	struct transfer_message cancel = sound[SOUND_CANCEL];

	(void)state;
	begin(1000);
	inject_data(LIAR, ID, 0, 1000, true);
	bed_settle(5);
	assert_int_equal(inject_data(LIAR, ID, 0, 1000, true), 0);
	assert_int_equal(bed_inject_message(LIAR, NODE, &cancel), 0);
	assert_int_equal(bed_counters(NODE)->unknown, 2);
	assert_int_equal(bed.nodes[NODE].arrival_count, 1);
	assert_int_equal(bed_end(NODE)->outcome, RAS_TRANSFER_DONE);
	finish();
}

// Credits and ends

struct claim {
	const char *what;
	uint32_t received, limit;
};

static const struct claim claims[] = {
	{"more than was sent", WINDOW + 1, 2 * WINDOW},
	{"far more than was sent", UINT32_MAX, UINT32_MAX},
	{"a limit behind what was received", 10, 9},
	{"a window that overflows", 0, UINT32_MAX},
	{"a window beyond any", 1, TRANSFER_CREDIT_MAX + 2},
};

static void credits_that_overflow_or_lie_are_refused(void **state) {
	(void)state;
	for (uint32_t n = 0; n < sizeof(claims) / sizeof(*claims); n++) {
		struct transfer_message credit = {
			.type = TRANSFER_CREDIT,
			.received = claims[n].received,
			.limit = claims[n].limit,
		};

		bed_create(8);
		bed.nodes[LIAR].take_result = -EAGAIN;
		bed.nodes[LIAR].take_room = 0;
		credit.id = bed_start(NODE, LIAR, TAG, 40u * SEGMENT);
		bed_pass_ms(50);
		assert_int_equal(bed_inject_message(LIAR, NODE, &credit), 0);
		if (bed_counters(NODE)->credits_refused != 1)
			fail_msg("believed: %s", claims[n].what);
		bed_pass_ms(50);
		assert_int_equal(bed_counters(NODE)->bytes_sent, WINDOW);
		// An older credit does not reduce the limit.
		credit.received = 0;
		credit.limit = SEGMENT;
		assert_int_equal(bed_inject_message(LIAR, NODE, &credit), 0);
		assert_int_equal(bed_transfer(NODE, false)->out.limit, WINDOW);
		bed.nodes[LIAR].take_room = UINT64_MAX;
		ras_transfer_ready(
			bed.world->nodes[LIAR].ras, bed.world->now_ns, bed_transfer(LIAR, true)->id
		);
		bed_settle(5);
		assert_int_equal(bed_end(NODE)->outcome, RAS_TRANSFER_DONE);
		finish();
	}
}

static void a_credit_beyond_what_it_has_room_for_is_its_own_loss(void **state) {
	struct transfer_message credit = {.type = TRANSFER_CREDIT, .limit = 2 * WINDOW};

	(void)state;
	bed_create(8);
	bed.nodes[LIAR].take_result = -EAGAIN;
	bed.nodes[LIAR].take_room = 0;
	credit.id = bed_start(NODE, LIAR, TAG, 40u * SEGMENT);
	bed_pass_ms(50);
	assert_int_equal(bed_inject_message(LIAR, NODE, &credit), 0);
	bed_pass_ms(50);
	assert_int_equal(bed_counters(LIAR)->overruns, 1);
	bed_settle(5);
	assert_int_equal(bed_end(NODE)->outcome, RAS_TRANSFER_BROKEN);
	assert_true(bed_end(NODE)->by_peer);
	finish();
}

static void done_is_not_believed_before_everything_was_sent(void **state) {
	struct transfer_message end = {.type = TRANSFER_END, .outcome = RAS_TRANSFER_DONE};

	(void)state;
	bed_create(8);
	bed.nodes[LIAR].take_result = -EAGAIN;
	bed.nodes[LIAR].take_room = 0;
	end.id = bed_start(NODE, LIAR, TAG, 40u * SEGMENT);
	bed_pass_ms(50);
	for (uint32_t n = 0; n < 3; n++) {
		static const uint32_t received[] = {0, WINDOW, 40u * SEGMENT};

		end.received = received[n];
		assert_int_equal(bed_inject_message(LIAR, NODE, &end), 0);
		assert_int_equal(bed_counters(NODE)->lies, n + 1);
	}
	bed_pass_ms(50);
	assert_int_equal(bed.nodes[NODE].end_count, 0);
	end.outcome = RAS_TRANSFER_REFUSED; // allowed at any time
	end.reason = RAS_TRANSFER_DECLINED;
	assert_int_equal(bed_inject_message(LIAR, NODE, &end), 0);
	bed_pass_ms(50);
	assert_int_equal(bed_end(NODE)->outcome, RAS_TRANSFER_REFUSED);
	assert_int_equal(
		ras_transfer_cancel(
			bed.world->nodes[LIAR].ras, bed.world->now_ns, bed_transfer(LIAR, true)->id
		),
		0
	);
	finish();
}

static void credits_and_ends_after_the_end_change_nothing(void **state) {
	struct transfer_message credit = {.type = TRANSFER_CREDIT, .limit = WINDOW};
	struct transfer_message end = {
		.type = TRANSFER_END,
		.outcome = RAS_TRANSFER_REFUSED,
		.reason = RAS_TRANSFER_DECLINED,
	};

	(void)state;
	bed_create(8);
	credit.id = end.id = bed_start(NODE, LIAR, TAG, 40u * SEGMENT);
	bed_pass_ms(8);
	assert_int_equal(
		ras_transfer_cancel(bed.world->nodes[NODE].ras, bed.world->now_ns, end.id), 0
	);
	assert_int_equal(bed_inject_message(LIAR, NODE, &credit), 0);
	assert_int_equal(bed_inject_message(LIAR, NODE, &end), 0);
	bed_pass_ms(50);
	assert_int_equal(bed_inject_message(LIAR, NODE, &end), 0);
	assert_int_equal(bed_end(NODE)->outcome, RAS_TRANSFER_CANCELLED);
	assert_false(bed_end(NODE)->by_peer);
	// The liar's END was forged, so its own side still has the transfer. It is cancelled here
	// instead of waiting for its timeout.
	end.id = bed_transfer(LIAR, true)->id;
	assert_int_equal(
		ras_transfer_cancel(bed.world->nodes[LIAR].ras, bed.world->now_ns, end.id), 0
	);
	finish();
}

UNIT_GROUP(ras_transfer_hostile) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_read_is_refused_and_changes_nothing),
		cmocka_unit_test(any_other_port_of_the_core_refuses_what_is_acknowledged),
		cmocka_unit_test(messages_about_no_transfer_are_counted),
		cmocka_unit_test(a_segment_without_a_start_is_offered_to_nobody),
		cmocka_unit_test(a_start_of_nobody_in_the_table_is_not_taken),
		cmocka_unit_test(a_start_without_end_takes_its_share_and_no_more),
		cmocka_unit_test(a_repeated_start_is_answered_again),
		cmocka_unit_test(a_start_that_disagrees_with_the_first_ends_it),
		cmocka_unit_test(sizes_that_disagree_end_it),
		cmocka_unit_test(what_follows_the_last_segment_is_not_taken),
		cmocka_unit_test(segments_beyond_the_credit_end_it),
		cmocka_unit_test(small_segments_take_no_more_memory_than_large_ones),
		cmocka_unit_test(segments_out_of_order_or_repeated_are_left),
		cmocka_unit_test(a_replayed_transfer_does_not_reach_the_consumer_without_a_start),
		cmocka_unit_test(credits_that_overflow_or_lie_are_refused),
		cmocka_unit_test(a_credit_beyond_what_it_has_room_for_is_its_own_loss),
		cmocka_unit_test(done_is_not_believed_before_everything_was_sent),
		cmocka_unit_test(credits_and_ends_after_the_end_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
