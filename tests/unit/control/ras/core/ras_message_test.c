// SPDX-License-Identifier: BSD-3-Clause
#include "core/message.h"

#include <ras/record.h>
#include <support/cmocka.h>
#include <support/heap.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 4096
// Field offsets in the samples, without the type byte.
#define NEWS_AT 2 // behind the length of the item
#define BRIEF_HEAD_BYTES 11
#define BRIEF_STATE_AT (BRIEF_HEAD_BYTES + 28)
#define BRIEF_WEIGHT_AT (BRIEF_HEAD_BYTES + 29)

struct fixture {
	struct ras_memory memory;
	struct ras_interner *interner;
	struct ras_record *record;
};

static struct ras_peer_info sample_info(void) {
	struct ras_peer_info info = {
		.name = "node001",
		.host = "host1",
		.boot_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		.start = 3,
		.pid = 4711,
		.version = "1.0",
		.address_count = 2,
		.addresses =
			{
				{.family = SOCK_ADDR_V4, .port = 7000, .address = {10, 0, 0, 1}},
				{.family = SOCK_ADDR_V6, .port = 7001, .address = {0xfe, 0x80}},
			},
		.device_count = 1,
		.devices = {{.name = "mlx5_0", .link_layer = RAS_LINK_LAYER_INFINIBAND}},
	};

	return info;
}

static int set_up(void **state) {
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct ras_peer_info info = sample_info();

	assert_non_null(fixture);
	fixture->memory = (struct ras_memory)HEAP_MEMORY(NULL);
	assert_int_equal(ras_interner_create(&fixture->memory, &fixture->interner), 0);
	assert_int_equal(ras_record_from_info(fixture->interner, &info, &fixture->record), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state) {
	struct fixture *fixture = *state;

	ras_record_put(fixture->interner, fixture->record);
	ras_interner_destroy(fixture->interner);
	free(fixture);
	return 0;
}

#define NEWS_RECORD 0x01
#define NEWS_DEATH 0x02
#define NEWS_SIGNED 0x04

// An encoded sample and a decoder for each type; the union compares decoded messages.
union decoded {
	struct message_init init;
	struct message_init_ack ack;
	struct message_beat beat;
	struct message_news news;
	struct message_brief brief;
	struct sock_addr address;
};

static int encode_init(const struct fixture *fixture, struct wire_writer *writer) {
	struct message_init init = {
		.version_min = 1,
		.version_max = 2,
		.cluster = UINT64_C(0x1122334455667788),
		.flags = MESSAGE_INIT_JOIN,
		.uses = RAS_USE_NEXT | RAS_USE_LEVEL(3),
		.record = fixture->record->encoding,
		.record_size = fixture->record->size,
		.incarnation = ras_incarnation(3, 7),
		.digest = UINT64_MAX,
		.your_state = RAS_DEAD,
		.your_incarnation = 99,
		.sought = 5,
	};

	return message_init_encode(&init, writer);
}

static int encode_ack(const struct fixture *fixture, struct wire_writer *writer) {
	struct message_init_ack ack = {
		.version_min = 1,
		.version = 2,
		.refusal = RAS_CAUSE_BUSY,
		.uses = RAS_USE_PREV,
		.record = fixture->record->encoding,
		.record_size = fixture->record->size,
		.incarnation = ras_incarnation(3, 7),
		.digest = 12,
		.your_state = RAS_ALIVE,
		.your_incarnation = 13,
		.your_start = 14,
		.redirect_count = 2,
		.flags = MESSAGE_ACK_MEMBER,
	};

	ack.redirects[0] = fixture->record->address;
	ack.redirects[1] = (struct sock_addr
	){.family = SOCK_ADDR_V6, .port = 9, .address = {0x20, 0x01, 0x0d, 0xb8}};
	return message_init_ack_encode(&ack, writer);
}

static int encode_beat(const struct fixture *fixture, struct wire_writer *writer) {
	struct message_beat beat = {
		.sequence = 5,
		.echo = 4,
		.echo_delay_us = 1000,
		.digest = 77,
		.uses = RAS_USE_RING,
		.period = 3,
		.flags = MESSAGE_BEAT_PING,
	};

	(void)fixture;
	message_beat_encode(&beat, writer);
	return wire_writer_finish(writer, &(size_t){0});
}

static int encode_news(const struct fixture *fixture, struct wire_writer *writer) {
	struct peer_news news = {
		.id = fixture->record->id,
		.incarnation = ras_incarnation(3, 0),
		.record = fixture->record,
		.maint = 5,
		.state = RAS_DEAD,
		.cause = RAS_CAUSE_SILENT,
		.hops = 3,
		.observer_count = 2,
		.observers = {10, 20},
		.reached = 5,
		.of = 7,
	};

	wire_put_u8(writer, MESSAGE_UPDATE);
	message_news_encode(&news, writer);
	return wire_writer_finish(writer, &(size_t){0});
}

static int encode_brief(const struct fixture *fixture, struct wire_writer *writer) {
	struct message_brief brief = {
		.id = fixture->record->id,
		.incarnation = 8,
		.record_digest = fixture->record->digest,
		.maint = 2,
		.state = RAS_LEFT,
	};

	message_brief_begin(UINT64_MAX, MESSAGE_BRIEF_LAST, writer);
	message_brief_encode(&brief, writer);
	return wire_writer_finish(writer, &(size_t){0});
}

static int decode_init(struct wire_reader *reader, union decoded *ret) {
	return message_init_decode(reader, &ret->init);
}

static int decode_ack(struct wire_reader *reader, union decoded *ret) {
	return message_init_ack_decode(reader, &ret->ack);
}

static int decode_beat(struct wire_reader *reader, union decoded *ret) {
	return message_beat_decode(reader, &ret->beat);
}

static int decode_news(struct wire_reader *reader, union decoded *ret) {
	return message_news_decode(reader, &ret->news);
}

static int decode_brief(struct wire_reader *reader, union decoded *ret) {
	struct message_brief_head head;
	int err = message_brief_head_decode(reader, &head);

	return err != 0 ? err : message_brief_decode(reader, head.entry_bytes, &ret->brief);
}

static const struct kind {
	uint8_t type;
	int (*encode)(const struct fixture *fixture, struct wire_writer *writer);
	int (*decode)(struct wire_reader *reader, union decoded *ret);
} kinds[] = {
	{MESSAGE_INIT, encode_init, decode_init},    {MESSAGE_INIT_ACK, encode_ack, decode_ack},
	{MESSAGE_BEAT, encode_beat, decode_beat},    {MESSAGE_UPDATE, encode_news, decode_news},
	{MESSAGE_BRIEF, encode_brief, decode_brief},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

// Encode the message without its type byte.
static size_t sample(const struct fixture *fixture, const struct kind *kind, uint8_t *ret_bytes) {
	uint8_t bytes[BYTES_MAX];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(kind->encode(fixture, &writer), 0);
	assert_int_equal(bytes[0], kind->type);
	memcpy(ret_bytes, bytes + 1, wire_writer_used(&writer) - 1);
	return wire_writer_used(&writer) - 1;
}

static int decode(const struct kind *kind, const void *bytes, size_t size, union decoded *ret) {
	struct wire_reader reader;

	wire_reader_init(&reader, bytes, size);
	return kind->decode(&reader, ret);
}

static void every_shorter_message_is_refused_and_leaves_the_output_alone(void **state) {
	for (size_t n = 0; n < KINDS; n++) {
		uint8_t bytes[BYTES_MAX];
		size_t size = sample(*state, &kinds[n], bytes);

		for (size_t shorter = 0; shorter < size; shorter++) {
			// An exact-size copy, so that the sanitizer detects reads beyond the end.
			uint8_t *cut;
			union decoded before;
			union decoded after;

			// Older agents omit the identifier of the called peer at the end of INIT.
			if (kinds[n].type == MESSAGE_INIT && shorter == size - sizeof(uint64_t))
				continue;
			cut = malloc(shorter + 1);
			assert_non_null(cut);
			memset(&before, 0xa5, sizeof(before));
			after = before;
			memcpy(cut, bytes, shorter);
			assert_in_range(-decode(&kinds[n], cut, shorter, &after), 1, 4095);
			assert_memory_equal(&before, &after, sizeof(after));
			free(cut);
		}
	}
}

// Row 20: fields appended by a newer minor version are ignored.
static void trailing_bytes_of_a_newer_version_are_left_alone(void **state) {
	for (size_t n = 0; n < KINDS; n++) {
		uint8_t bytes[BYTES_MAX];
		size_t size = sample(*state, &kinds[n], bytes);
		struct wire_reader reader;
		union decoded decoded;

		memset(bytes + size, 0xff, 5);
		wire_reader_init(&reader, bytes, size + 5);
		assert_int_equal(kinds[n].decode(&reader, &decoded), 0);
		assert_int_equal(wire_reader_left(&reader), 5);
	}
}

static void init_comes_back_as_it_was_sent(void **state) {
	const struct fixture *fixture = *state;
	uint8_t bytes[BYTES_MAX];
	size_t size = sample(fixture, &kinds[0], bytes);
	union decoded decoded;

	assert_int_equal(decode(&kinds[0], bytes, size, &decoded), 0);
	assert_int_equal(decoded.init.version_min, 1);
	assert_int_equal(decoded.init.version_max, 2);
	assert_int_equal(decoded.init.cluster, UINT64_C(0x1122334455667788));
	assert_int_equal(decoded.init.flags, MESSAGE_INIT_JOIN);
	assert_int_equal(decoded.init.uses, RAS_USE_NEXT | RAS_USE_LEVEL(3));
	assert_int_equal(decoded.init.record_size, fixture->record->size);
	assert_memory_equal(decoded.init.record, fixture->record->encoding, fixture->record->size);
	assert_int_equal(decoded.init.incarnation, ras_incarnation(3, 7));
	assert_int_equal(decoded.init.digest, UINT64_MAX);
	assert_int_equal(decoded.init.your_state, RAS_DEAD);
	assert_int_equal(decoded.init.your_incarnation, 99);
}

static void acknowledgement_comes_back_with_refusal_and_redirects(void **state) {
	const struct fixture *fixture = *state;
	uint8_t bytes[BYTES_MAX];
	size_t size = sample(fixture, &kinds[1], bytes);
	union decoded decoded;

	assert_int_equal(decode(&kinds[1], bytes, size, &decoded), 0);
	assert_int_equal(decoded.ack.version_min, 1);
	assert_int_equal(decoded.ack.version, 2);
	assert_int_equal(decoded.ack.refusal, RAS_CAUSE_BUSY);
	assert_int_equal(decoded.ack.uses, RAS_USE_PREV);
	assert_int_equal(decoded.ack.your_start, 14);
	assert_int_equal(decoded.ack.redirect_count, 2);
	assert_true(sock_addr_equal(&decoded.ack.redirects[0], &fixture->record->address));
	assert_int_equal(decoded.ack.redirects[1].family, SOCK_ADDR_V6);
	assert_int_equal(decoded.ack.redirects[1].port, 9);
	assert_int_equal(decoded.ack.flags, MESSAGE_ACK_MEMBER);
}

static void beat_comes_back_as_it_was_sent(void **state) {
	uint8_t bytes[BYTES_MAX];
	size_t size = sample(*state, &kinds[2], bytes);
	union decoded decoded;

	assert_int_equal(decode(&kinds[2], bytes, size, &decoded), 0);
	assert_int_equal(decoded.beat.sequence, 5);
	assert_int_equal(decoded.beat.echo, 4);
	assert_int_equal(decoded.beat.echo_delay_us, 1000);
	assert_int_equal(decoded.beat.digest, 77);
	assert_int_equal(decoded.beat.uses, RAS_USE_RING);
	assert_int_equal(decoded.beat.period, 3);
	assert_int_equal(decoded.beat.flags, MESSAGE_BEAT_PING);
}

static void departure_comes_back_with_its_signature(void **state) {
	const struct fixture *fixture = *state;
	const uint8_t signature[RAS_SIGNATURE_BYTES] = {1, [RAS_SIGNATURE_BYTES - 1] = 2};
	struct peer_news news = {.id = 7, .incarnation = 8, .state = RAS_LEFT};
	uint8_t bytes[BYTES_MAX];

	for (uint32_t n = 0; n < 4; n++) {
		size_t size =
			(n & 1) * sizeof(signature) + (n & 2) / 2 * (2 + fixture->record->size);
		struct message_news decoded;
		struct wire_reader reader;
		struct wire_writer writer;

		news.signature = (n & 1) != 0 ? signature : NULL;
		news.record = (n & 2) != 0 ? fixture->record : NULL;
		wire_writer_init(&writer, bytes, sizeof(bytes));
		message_news_encode(&news, &writer);
		assert_int_equal(wire_writer_used(&writer), NEWS_AT + 23 + size);
		assert_int_equal(message_news_bytes(&news), NEWS_AT + 23 + size);
		wire_reader_init(&reader, bytes, wire_writer_used(&writer));
		assert_int_equal(message_news_decode(&reader, &decoded), 0);
		assert_int_equal(decoded.news.state, RAS_LEFT);
		assert_false(decoded.foreign);
		assert_int_equal(decoded.record != NULL, (n & 2) != 0);
		if ((n & 1) == 0)
			assert_null(decoded.news.signature);
		else
			assert_memory_equal(decoded.news.signature, signature, sizeof(signature));
	}
}

static void news_come_back_with_record_and_observers(void **state) {
	const struct fixture *fixture = *state;
	uint8_t bytes[BYTES_MAX];
	size_t size = sample(fixture, &kinds[3], bytes);
	union decoded decoded;
	const struct peer_news *news = &decoded.news.news;

	assert_int_equal(decode(&kinds[3], bytes, size, &decoded), 0);
	assert_int_equal(news->id, fixture->record->id);
	assert_int_equal(news->incarnation, ras_incarnation(3, 0));
	assert_int_equal(news->maint, 5);
	assert_int_equal(news->state, RAS_DEAD);
	assert_int_equal(news->cause, RAS_CAUSE_SILENT);
	assert_int_equal(news->hops, 3);
	assert_int_equal(news->observer_count, 2);
	assert_int_equal(news->observers[1], 20);
	assert_int_equal(news->reached, 5);
	assert_int_equal(news->of, 7);
	assert_null(news->record);
	assert_int_equal(decoded.news.record_size, fixture->record->size);
}

static void brief_comes_back_as_it_was_sent(void **state) {
	const struct fixture *fixture = *state;
	uint8_t bytes[BYTES_MAX];
	size_t size = sample(fixture, &kinds[4], bytes);
	union decoded decoded;

	assert_int_equal(size, BRIEF_HEAD_BYTES + MESSAGE_BRIEF_BYTES);
	assert_int_equal(decode(&kinds[4], bytes, size, &decoded), 0);
	assert_int_equal(decoded.brief.id, fixture->record->id);
	assert_int_equal(decoded.brief.incarnation, 8);
	assert_int_equal(decoded.brief.record_digest, fixture->record->digest);
	assert_int_equal(decoded.brief.maint, 2);
	assert_int_equal(decoded.brief.state, RAS_LEFT);
}

// Regression: a member that claimed the highest version blocked the switch for good.
static void version_of_a_switch_beyond_the_limit_says_nothing(void **state) {
	static const struct {
		uint32_t sent, decoded;
	} cases[] = {
		{RAS_MAINT_VERSION_MAX, RAS_MAINT_VERSION_MAX},
		{RAS_MAINT_VERSION_MAX + 1, 0},
		{UINT32_MAX, 0},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct peer_news news = {.id = 1, .state = RAS_ALIVE, .maint = cases[n].sent};
		struct message_brief brief = {.id = 1, .state = RAS_ALIVE, .maint = cases[n].sent};
		struct message_brief_head head;
		struct message_news decoded;
		struct wire_writer writer;
		struct wire_reader reader;
		uint8_t bytes[256];

		wire_writer_init(&writer, bytes, sizeof(bytes));
		message_news_encode(&news, &writer);
		wire_reader_init(&reader, bytes, wire_writer_used(&writer));
		assert_int_equal(message_news_decode(&reader, &decoded), 0);
		assert_int_equal(decoded.news.maint, cases[n].decoded);
		wire_writer_init(&writer, bytes, sizeof(bytes));
		message_brief_begin(UINT64_MAX, 0, &writer);
		message_brief_encode(&brief, &writer);
		wire_reader_init(&reader, bytes + 1, wire_writer_used(&writer) - 1);
		assert_int_equal(message_brief_head_decode(&reader, &head), 0);
		assert_int_equal(message_brief_decode(&reader, head.entry_bytes, &brief), 0);
		assert_int_equal(brief.maint, cases[n].decoded);
	}
}

static void news_take_the_room_that_was_announced(void **state) {
	const struct fixture *fixture = *state;

	for (uint8_t with = 0; with < 4; with++) {
		struct peer_news news = {
			.id = 1,
			.record = (with & 1) != 0 ? fixture->record : NULL,
			.state = (with & 2) != 0 ? RAS_DEAD : RAS_ALIVE,
			.observer_count = 1,
		};
		uint8_t bytes[BYTES_MAX];
		struct wire_writer writer;

		wire_writer_init(&writer, bytes, sizeof(bytes));
		message_news_encode(&news, &writer);
		assert_int_equal(wire_writer_used(&writer), message_news_bytes(&news));
	}
}

// A peer of an older version decodes the same fields as before.
static void clock_of_a_beat_is_appended_behind_all_that_older_peers_read(void **state) {
	struct message_beat beat = {.sequence = 1, .period = 1, .flags = MESSAGE_BEAT_PING};
	struct message_beat decoded;
	uint8_t with[64], without[64];
	struct wire_writer writer;
	struct wire_reader reader;
	size_t size;

	(void)state;
	wire_writer_init(&writer, without, sizeof(without));
	message_beat_encode(&beat, &writer);
	size = wire_writer_used(&writer);
	beat.wall_ns = UINT64_C(1) << 60;
	wire_writer_init(&writer, with, sizeof(with));
	message_beat_encode(&beat, &writer);
	assert_int_equal(wire_writer_used(&writer), size + 8);
	assert_memory_equal(with, without, size - 1);
	assert_int_equal(with[size - 1], MESSAGE_BEAT_PING | MESSAGE_BEAT_WALL);
	wire_reader_init(&reader, with + 1, size + 8 - 1);
	assert_int_equal(message_beat_decode(&reader, &decoded), 0);
	assert_true(decoded.wall_ns == beat.wall_ns);
	// A field that is announced and missing, or empty.
	wire_reader_init(&reader, with + 1, size + 7 - 1);
	assert_true(message_beat_decode(&reader, &decoded) != 0);
	memset(with + size, 0, 8);
	wire_reader_init(&reader, with + 1, size + 8 - 1);
	assert_int_equal(message_beat_decode(&reader, &decoded), -EBADMSG);
}

// Offsets at which one or two bytes of a sample are replaced by a value that no agent sends.
static void values_that_cannot_be_are_refused(void **state) {
	static const struct {
		size_t kind, offset;
		uint8_t value;
		const char *what;
	} cases[] = {
		{0, 1, 3, "a version range that ends before it begins"},
		{0, 18, 0x07, "a record longer than any"},
		{1, 1, 3, "an answer whose versions end before they begin"},
		{3, NEWS_AT + 1, RAS_UNKNOWN, "news of nobody"},
		{3, NEWS_AT + 1, RAS_SUSPECT, "a suspicion as a fact"},
		{3, NEWS_AT + 1, RAS_UNREACHABLE, "a held verdict as a fact"},
		{3, NEWS_AT, NEWS_RECORD, "a death without its cause and observers"},
		{3, NEWS_AT + 1, RAS_ALIVE, "the observers of a death of one alive"},
		{3, NEWS_AT + 1, RAS_LEFT, "the observers of a death of one who left"},
		{3, NEWS_AT + 24, RAS_OBSERVERS_MAX + 1, "a death with a crowd of observers"},
		{3, NEWS_AT, NEWS_RECORD | NEWS_DEATH | NEWS_SIGNED, "a signed death"},
		{3, NEWS_AT + 41, 8, "a part that reached more than there are"},
		{3, NEWS_AT + 50, 0x07, "a record longer than its item"},
		{4, 9, MESSAGE_BRIEF_BYTES - 1, "entries of a brief that hold too little"},
		{4, 9, 0, "entries of a brief that hold nothing"},
		{4, 9, MESSAGE_BRIEF_BYTES + 1, "an entry of a brief longer than the message"},
		{4, BRIEF_WEIGHT_AT, RAS_OBSERVERS_MAX + 1, "a death with a crowd of observers"},
		{4, BRIEF_WEIGHT_AT, 1, "the observers of a death of one who left"},
		{4, BRIEF_STATE_AT, RAS_UNKNOWN, "a brief of nobody"},
		{4, BRIEF_STATE_AT, RAS_SUSPECT, "a brief of a suspect"},
		{4, BRIEF_STATE_AT, RAS_UNREACHABLE, "a brief of an unreachable one"},
	};

	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		uint8_t bytes[BYTES_MAX];
		size_t size = sample(*state, &kinds[cases[n].kind], bytes);
		union decoded decoded;

		bytes[cases[n].offset] = cases[n].value;
		if (decode(&kinds[cases[n].kind], bytes, size, &decoded) == 0)
			fail_msg("%s was decoded", cases[n].what);
	}
}

// Decode the sample with one byte changed.
static int decode_with(
	const struct fixture *fixture,
	const struct kind *kind,
	size_t offset,
	uint8_t value,
	union decoded *ret
) {
	uint8_t bytes[BYTES_MAX];
	size_t size = sample(fixture, kind, bytes);

	bytes[offset] = value;
	return decode(kind, bytes, size, ret);
}

static void numbers_of_a_newer_version_are_no_fault(void **state) {
	const struct fixture *fixture = *state;
	// Behind versions, cluster, flags, uses, record, incarnation and digest.
	size_t held_at = 2 + 2 + 8 + 1 + 4 + 2 + fixture->record->size + 8 + 8;
	union decoded decoded;

	assert_int_equal(decode_with(fixture, &kinds[0], held_at, RAS_LEFT + 1, &decoded), 0);
	assert_int_equal(decoded.init.your_state, RAS_UNKNOWN);
	held_at -= 8; // INIT_ACK has no cluster
	assert_int_equal(decode_with(fixture, &kinds[1], held_at, RAS_LEFT + 1, &decoded), 0);
	assert_int_equal(decoded.ack.your_state, RAS_UNKNOWN);
	assert_int_equal(decode_with(fixture, &kinds[1], 4, 200, &decoded), 0);
	assert_int_equal(decoded.ack.refusal, 200);
	assert_int_equal(decode_with(fixture, &kinds[4], BRIEF_STATE_AT, 200, &decoded), 0);
	assert_true(message_state_is_foreign(decoded.brief.state));
}

static void item_of_what_we_know_alone_is_not_foreign(void **state) {
	union decoded decoded;

	assert_int_equal(decode_with(*state, &kinds[3], NEWS_AT + 2, 9, &decoded), 0);
	assert_false(decoded.news.foreign || decoded.news.state_foreign);
}

static void item_with_anything_unknown_is_foreign_and_tells_what_is_known(void **state) {
	static const struct {
		size_t offset;
		uint8_t value;
	} cases[] = {
		{NEWS_AT, NEWS_RECORD | NEWS_DEATH | 0x80},
		{NEWS_AT + 23, RAS_CAUSE_COUNT},
	};
	const struct fixture *fixture = *state;

	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		union decoded decoded;

		assert_int_equal(
			decode_with(fixture, &kinds[3], cases[n].offset, cases[n].value, &decoded),
			0
		);
		assert_true(decoded.news.foreign);
		assert_false(decoded.news.state_foreign);
		assert_int_equal(decoded.news.news.state, RAS_DEAD);
		assert_int_equal(decoded.news.news.observers[1], 20);
		assert_int_equal(decoded.news.record_size, fixture->record->size);
	}
}

static void item_of_an_unknown_state_tells_of_whom_it_is_and_no_more(void **state) {
	const struct fixture *fixture = *state;
	union decoded decoded;

	assert_int_equal(decode_with(fixture, &kinds[3], NEWS_AT + 1, 6, &decoded), 0);
	assert_true(decoded.news.foreign && decoded.news.state_foreign);
	assert_int_equal(decoded.news.news.id, fixture->record->id);
	assert_int_equal(decoded.news.news.incarnation, ras_incarnation(3, 0));
	assert_null(decoded.news.record);
}

// An item's length includes fields appended by a newer version; the next item follows behind
// them.
static void bytes_behind_the_known_fields_of_an_item_belong_to_it(void **state) {
	uint8_t bytes[2 * BYTES_MAX];
	size_t size = sample(*state, &kinds[3], bytes);
	struct message_news news;
	struct wire_reader reader;

	memcpy(bytes + size + 3, bytes, size);
	memcpy(bytes + size, "new", 3);
	bytes[0] += 3;
	assert_true(bytes[0] >= 3); // no carry
	wire_reader_init(&reader, bytes, 2 * size + 3);
	assert_int_equal(message_news_decode(&reader, &news), 0);
	assert_true(news.foreign);
	assert_int_equal(news.item_size, size + 3 - NEWS_AT);
	assert_ptr_equal(news.item, bytes + NEWS_AT);
	assert_int_equal(message_news_decode(&reader, &news), 0);
	assert_false(news.foreign);
	assert_int_equal(message_news_decode(&reader, &news), -ENODATA);
}

static void item_whose_length_is_wrong_is_refused(void **state) {
	uint8_t bytes[BYTES_MAX];
	size_t size = sample(*state, &kinds[3], bytes);
	const uint8_t lengths[] = {0, 1, 22, bytes[0] - 1, bytes[0] + 1, 255};
	union decoded decoded;

	assert_int_equal(bytes[1], 0);
	for (size_t n = 0; n < sizeof(lengths); n++) {
		bytes[0] = lengths[n];
		assert_int_equal(decode(&kinds[3], bytes, size, &decoded), -EBADMSG);
	}
}

static void longer_entries_of_a_brief_are_read_as_far_as_they_are_known(void **state) {
	struct message_brief brief = {.id = 5, .incarnation = 6, .state = RAS_ALIVE};
	uint8_t bytes[BYTES_MAX];
	struct message_brief_head head;
	struct wire_writer writer;
	struct wire_reader reader;

	(void)state;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	message_brief_begin(1, MESSAGE_BRIEF_FIRST, &writer);
	wire_patch_u16(&writer, 1 + 9, MESSAGE_BRIEF_BYTES + 4);
	for (uint32_t n = 0; n < 3; n++) {
		message_brief_encode(&brief, &writer);
		wire_put_u32(&writer, UINT32_MAX);
	}
	wire_reader_init(&reader, bytes + 1, wire_writer_used(&writer) - 1);
	assert_int_equal(message_brief_head_decode(&reader, &head), 0);
	assert_int_equal(head.flags, MESSAGE_BRIEF_FIRST);
	for (uint32_t n = 0; n < 3; n++) {
		memset(&brief, 0, sizeof(brief));
		assert_int_equal(message_brief_decode(&reader, head.entry_bytes, &brief), 0);
		assert_int_equal(brief.incarnation, 6);
	}
	assert_int_equal(message_brief_decode(&reader, head.entry_bytes, &brief), -ENODATA);
}

static void items_are_compared_without_the_way_they_came(void **state) {
	uint8_t a[BYTES_MAX], b[BYTES_MAX];
	size_t size = sample(*state, &kinds[3], a);

	memcpy(b, a, size);
	b[2] = (uint8_t)(a[2] + 7);
	assert_int_equal(message_item_compare(a, size, b, size), 0);
	assert_true(message_item_compare(a, size, b, size - 1) > 0);
	assert_true(message_item_compare(a, size - 1, b, size) < 0);
	b[1]++;
	assert_true(message_item_compare(a, size, b, size) < 0);
	b[1] = a[1];
	a[30]++;
	assert_true(message_item_compare(a, size, b, size) > 0);
}

static void lists_beyond_their_caps_are_refused(void **state) {
	uint8_t bytes[BYTES_MAX];
	size_t size = sample(*state, &kinds[1], bytes);
	size_t count_at = size - 2 - 7 - 19 - 1;
	union decoded decoded;

	assert_int_equal(bytes[count_at], 2);
	memset(bytes + size, SOCK_ADDR_V4, sizeof(bytes) - size);
	bytes[count_at] = MESSAGE_REDIRECTS_MAX + 1;
	assert_int_equal(decode(&kinds[1], bytes, sizeof(bytes), &decoded), -EMSGSIZE);
}

static void address_of_an_unknown_family_is_refused(void **state) {
	static const uint8_t families[] = {SOCK_ADDR_NONE, 3, 5, 255};

	(void)state;
	for (size_t n = 0; n < sizeof(families); n++) {
		uint8_t bytes[19] = {families[n]};
		struct sock_addr address = {.port = 1};
		struct wire_reader reader;

		if (families[n] == SOCK_ADDR_V4 || families[n] == SOCK_ADDR_V6)
			continue;
		wire_reader_init(&reader, bytes, sizeof(bytes));
		message_sock_addr_decode(&reader, &address);
		assert_int_equal(wire_reader_error(&reader), -EBADMSG);
		assert_int_equal(address.port, 1);
	}
}

static void end_of_a_run_is_told_from_a_fault(void **state) {
	struct message_news news;
	struct message_brief brief;
	struct wire_reader reader;

	(void)state;
	wire_reader_init(&reader, "", 0);
	assert_int_equal(message_news_decode(&reader, &news), -ENODATA);
	assert_int_equal(message_brief_decode(&reader, MESSAGE_BRIEF_BYTES, &brief), -ENODATA);
	wire_reader_fail(&reader, -EILSEQ);
	assert_int_equal(message_news_decode(&reader, &news), -EILSEQ);
	assert_int_equal(message_brief_decode(&reader, MESSAGE_BRIEF_BYTES, &brief), -EILSEQ);
}

static void encoder_says_when_its_buffer_is_too_small(void **state) {
	uint8_t bytes[BYTES_MAX];
	size_t size = 1 + sample(*state, &kinds[0], bytes);
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, size - 1);
	assert_int_equal(encode_init(*state, &writer), -EMSGSIZE);
}

UNIT_GROUP(ras_message) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_shorter_message_is_refused_and_leaves_the_output_alone),
		cmocka_unit_test(clock_of_a_beat_is_appended_behind_all_that_older_peers_read),
		cmocka_unit_test(values_that_cannot_be_are_refused),
		cmocka_unit_test(numbers_of_a_newer_version_are_no_fault),
		cmocka_unit_test(item_of_what_we_know_alone_is_not_foreign),
		cmocka_unit_test(item_with_anything_unknown_is_foreign_and_tells_what_is_known),
		cmocka_unit_test(item_of_an_unknown_state_tells_of_whom_it_is_and_no_more),
		cmocka_unit_test(bytes_behind_the_known_fields_of_an_item_belong_to_it),
		cmocka_unit_test(item_whose_length_is_wrong_is_refused),
		cmocka_unit_test(longer_entries_of_a_brief_are_read_as_far_as_they_are_known),
		cmocka_unit_test(items_are_compared_without_the_way_they_came),
		cmocka_unit_test(lists_beyond_their_caps_are_refused),
		cmocka_unit_test(address_of_an_unknown_family_is_refused),
		cmocka_unit_test(encoder_says_when_its_buffer_is_too_small),
		cmocka_unit_test(end_of_a_run_is_told_from_a_fault),
		cmocka_unit_test(trailing_bytes_of_a_newer_version_are_left_alone),
		cmocka_unit_test(init_comes_back_as_it_was_sent),
		cmocka_unit_test(acknowledgement_comes_back_with_refusal_and_redirects),
		cmocka_unit_test(beat_comes_back_as_it_was_sent),
		cmocka_unit_test(departure_comes_back_with_its_signature),
		cmocka_unit_test(news_come_back_with_record_and_observers),
		cmocka_unit_test(brief_comes_back_as_it_was_sent),
		cmocka_unit_test(version_of_a_switch_beyond_the_limit_says_nothing),
		cmocka_unit_test(news_take_the_room_that_was_announced),
	};

	return cmocka_run_group_tests_name("ras_message", tests, set_up, tear_down);
}
