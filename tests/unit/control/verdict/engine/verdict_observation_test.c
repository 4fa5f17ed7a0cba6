// SPDX-License-Identifier: BSD-3-Clause
// Evidence in wire format, and input that is no valid evidence.
#include <lib/wire.h>
#include <support/cmocka.h>
#include <verdict/observation.h>

#include <stdio.h>
#include <string.h>

static const struct observation sound = {
	.observer = 1,
	.subject = 2,
	.incarnation = 3 << 16,
	.kind = OBSERVATION_LOSSY,
	.responder = OBSERVATION_RESPONDER_KERNEL,
	.reach = VERDICT_REACH_ACCEPTS,
	.own_good = true,
	.device = "mlx5_0",
	.peer_device = "rocep1s0",
	.median_ns = 12000,
	.baseline_ns = 9000,
	.lost_permille = 125,
	.lost_bytes = 65536,
	.age_ms = 1500,
};

static const struct statement said = {
	.subject = 7,
	.verdict = VERDICT_DEVICE_STUCK,
	.reason = "DeviceStuck",
	.evidence = "ibv_create_qp on mlx5_0 hangs for 3 s",
	.age_s = 3,
};

struct notice {
	uint8_t bytes[1024];
	struct wire_writer writer;
};

static void begin(struct notice *notice) {
	wire_writer_init(&notice->writer, notice->bytes, sizeof(notice->bytes));
}

// The bytes in a buffer of exactly their size, so that the sanitizer detects a read beyond the
// end.
static int read_one(const struct notice *notice, struct told *ret_told) {
	struct wire_reader reader;

	wire_reader_init(&reader, notice->bytes, wire_writer_used(&notice->writer));
	return notice_item_get(&reader, ret_told);
}

static void what_is_put_is_got(void **state) {
	struct observation most = sound;
	struct notice notice;
	struct wire_reader reader;
	struct told told;

	(void)state;
	most.median_ns = most.baseline_ns = most.lost_bytes = most.age_ms = UINT32_MAX;
	most.shares = true;
	most.own_good = false;
	memset(most.device, 'd', VERDICT_DEVICE_MAX);
	begin(&notice);
	assert_int_equal(observation_put(&notice.writer, &sound), 0);
	assert_int_equal(statement_put(&notice.writer, &said), 0);
	assert_int_equal(observation_put(&notice.writer, &most), 0);

	wire_reader_init(&reader, notice.bytes, wire_writer_used(&notice.writer));
	assert_int_equal(notice_item_get(&reader, &told), 0);
	assert_int_equal(told.kind, TOLD_OBSERVATION);
	assert_memory_equal(&told.observation, &sound, sizeof(sound));
	assert_int_equal(notice_item_get(&reader, &told), 0);
	assert_int_equal(told.kind, TOLD_STATEMENT);
	assert_memory_equal(&told.statement, &said, sizeof(said));
	assert_int_equal(notice_item_get(&reader, &told), 0);
	assert_memory_equal(&told.observation, &most, sizeof(most));
	assert_int_equal(notice_item_get(&reader, &told), -ENODATA);
}

// Each function makes one field invalid.
static void no_observer(struct observation *observation) {
	observation->observer = 0;
}

static void no_subject(struct observation *observation) {
	observation->subject = 0;
}

static void of_itself(struct observation *observation) {
	observation->subject = observation->observer;
}

static void kind_beyond(struct observation *observation) {
	observation->kind = OBSERVATION_KIND_COUNT;
}

static void responder_beyond(struct observation *observation) {
	observation->responder = OBSERVATION_RESPONDER_COUNT;
}

static void reach_beyond(struct observation *observation) {
	observation->reach = VERDICT_REACH_COUNT;
}

static void loses_more_than_all(struct observation *observation) {
	observation->lost_permille = 1001;
}

static void line_break_in_device(struct observation *observation) {
	memcpy(observation->device, "a\nb", 4);
}

static void escape_in_peer_device(struct observation *observation) {
	memcpy(observation->peer_device, "a\x1b[", 4);
}

static void c1_control_in_device(struct observation *observation) {
	memcpy(observation->device, "a\xc2\x9b", 4);
}

static void no_text(struct observation *observation) {
	memcpy(observation->device, "\xff\xfe", 3);
}

static const struct {
	const char *what;
	void (*spoil)(struct observation *observation);
} spoilt[] = {
	{"no observer", no_observer},
	{"no subject", no_subject},
	{"of itself", of_itself},
	{"kind", kind_beyond},
	{"responder", responder_beyond},
	{"reach", reach_beyond},
	{"per mille", loses_more_than_all},
	{"line break", line_break_in_device},
	{"escape", escape_in_peer_device},
	{"no UTF-8", no_text},
	{"C1 control", c1_control_in_device},
};

static void what_is_not_sound_is_not_put(void **state) {
	(void)state;
	for (uint32_t n = 0; n < sizeof(spoilt) / sizeof(spoilt[0]); n++) {
		struct observation observation = sound;
		struct notice notice;

		begin(&notice);
		spoilt[n].spoil(&observation);
		if (observation_put(&notice.writer, &observation) != -EINVAL)
			fail_msg("%s was put", spoilt[n].what);
		assert_int_equal(wire_writer_used(&notice.writer), 0);
	}
}

// Offsets in the output of observation_put().
enum {
	AT_SIZE = 1,
	AT_OBSERVER = 3,
	AT_SUBJECT = 11,
	AT_KIND = 27,
	AT_RESPONDER,
	AT_REACH,
	AT_FLAGS,
	AT_DEVICE_LENGTH,
	AT_DEVICE = AT_DEVICE_LENGTH + 2,
};

static const struct {
	const char *what;
	uint32_t at;
	uint8_t byte;
	int err;
} hostile[] = {
	{"a size beyond the end", AT_SIZE + 1, 0xff, -EBADMSG},
	{"a size below what it holds", AT_SIZE, 20, -EBADMSG},
	{"its own subject", AT_OBSERVER, 2, -EBADMSG},
	{"nobody as observer", AT_OBSERVER, 0, -EBADMSG},
	{"nobody as subject", AT_SUBJECT, 0, -EBADMSG},
	{"an unknown kind", AT_KIND, OBSERVATION_KIND_COUNT, -EBADMSG},
	{"an unknown responder", AT_RESPONDER, OBSERVATION_RESPONDER_COUNT, -EBADMSG},
	{"an unknown reach", AT_REACH, VERDICT_REACH_COUNT, -EBADMSG},
	{"an unknown flag", AT_FLAGS, 0x04, -EBADMSG},
	{"a device longer than any", AT_DEVICE_LENGTH, 16, -EMSGSIZE},
	{"a NUL in a device", AT_DEVICE, 0, -EILSEQ},
	{"a control byte in a device", AT_DEVICE, 7, -EILSEQ},
	{"no UTF-8 in a device", AT_DEVICE, 0xff, -EILSEQ},
};

static void what_no_agent_says_is_not_got(void **state) {
	(void)state;
	for (uint32_t n = 0; n < sizeof(hostile) / sizeof(hostile[0]); n++) {
		struct told told = {.kind = 77};
		struct notice notice;
		int err;

		begin(&notice);
		assert_int_equal(observation_put(&notice.writer, &sound), 0);
		notice.bytes[hostile[n].at] = hostile[n].byte;
		err = read_one(&notice, &told);
		if (err != hostile[n].err)
			fail_msg("%s: %d, not %d", hostile[n].what, err, hostile[n].err);
		assert_int_equal(told.kind, 77);
	}
}

static void a_notice_that_is_cut_anywhere_is_refused_after_its_last_whole_part(void **state) {
	struct notice notice;
	size_t first;
	size_t size;

	(void)state;
	begin(&notice);
	assert_int_equal(statement_put(&notice.writer, &said), 0);
	first = wire_writer_used(&notice.writer);
	assert_int_equal(observation_put(&notice.writer, &sound), 0);
	size = wire_writer_used(&notice.writer);
	for (size_t cut = 0; cut < size; cut++) {
		struct wire_reader reader;
		struct told told;

		wire_reader_init(&reader, notice.bytes, cut);
		if (cut >= first)
			assert_int_equal(notice_item_get(&reader, &told), 0);
		assert_int_equal(
			notice_item_get(&reader, &told),
			cut == 0 || cut == first ? -ENODATA : -EBADMSG
		);
	}
}

static void kinds_of_a_newer_version_are_skipped(void **state) {
	struct notice notice;
	struct told told;

	(void)state;
	begin(&notice);
	wire_put_u8(&notice.writer, 200);
	wire_put_u16(&notice.writer, 3);
	wire_put_bytes(&notice.writer, "new", 3);
	assert_int_equal(observation_put(&notice.writer, &sound), 0);
	assert_int_equal(read_one(&notice, &told), 0);
	assert_memory_equal(&told.observation, &sound, sizeof(sound));
}

static void what_does_not_fit_leaves_the_writer_as_it_was(void **state) {
	uint8_t bytes[256];

	(void)state;
	for (size_t room = 0; room < 40; room++) {
		struct wire_writer writer;

		wire_writer_init(&writer, bytes, room);
		assert_int_equal(observation_put(&writer, &sound), -EMSGSIZE);
		assert_int_equal(statement_put(&writer, &said), -EMSGSIZE);
		assert_int_equal(wire_writer_used(&writer), 0);
		for (size_t n = 0; n < room; n++)
			wire_put_u8(&writer, 1);
		assert_int_equal(wire_writer_used(&writer), room);
	}
}

static void a_node_says_of_itself_only_what_it_can_know(void **state) {
	(void)state;
	for (uint32_t n = 0; n <= VERDICT_COUNT; n++) {
		struct statement statement = said;
		struct notice notice;
		struct told told;
		bool may = n == VERDICT_HEALTHY || n == VERDICT_NODE_BUSY ||
			   n == VERDICT_CHECK_WARNING || n == VERDICT_UNKNOWN ||
			   n == VERDICT_CHECK_FAILED || n == VERDICT_DEVICE_STUCK ||
			   n == VERDICT_FABRIC_DOWN;

		begin(&notice);
		statement.verdict = (enum verdict)n;
		assert_int_equal(statement_put(&notice.writer, &statement), may ? 0 : -EINVAL);
		if (may) {
			assert_int_equal(read_one(&notice, &told), 0);
			assert_int_equal(
				told.statement.verdict,
				n == VERDICT_NODE_BUSY ? VERDICT_CHECK_WARNING : n
			);
		}
	}
}

// The numbers of the wire are those of the first version, which had no node-busy.
static void numbers_on_the_wire_do_not_change(void **state) {
	static const enum verdict may[16] = {
		[1] = VERDICT_HEALTHY,	     [2] = VERDICT_CHECK_WARNING,
		[6] = VERDICT_UNKNOWN,	     [10] = VERDICT_CHECK_FAILED,
		[11] = VERDICT_DEVICE_STUCK, [12] = VERDICT_FABRIC_DOWN,
	};
	struct statement busy = said;
	struct notice notice;
	struct told told;

	(void)state;
	for (uint32_t n = 0; n < 16; n++) {
		begin(&notice);
		assert_int_equal(statement_put(&notice.writer, &said), 0);
		notice.bytes[11] = (uint8_t)n;
		assert_int_equal(read_one(&notice, &told), may[n] != VERDICT_NONE ? 0 : -EBADMSG);
		if (may[n] != VERDICT_NONE)
			assert_int_equal(told.statement.verdict, may[n]);
	}
	busy.verdict = VERDICT_NODE_BUSY;
	snprintf(busy.reason, sizeof(busy.reason), PROCESSOR_SHORT);
	begin(&notice);
	assert_int_equal(statement_put(&notice.writer, &busy), 0);
	assert_int_equal(notice.bytes[11], 2);
	assert_int_equal(read_one(&notice, &told), 0);
	assert_int_equal(told.statement.verdict, VERDICT_NODE_BUSY);
}

static void a_reason_is_a_word_and_the_evidence_one_line(void **state) {
	static const char *const reasons[] = {
		"", "Device Stuck", "Device-Stuck", "Ger\xc3\xa4t", "a\nb",
	};
	struct statement statement = said;
	struct notice notice;

	(void)state;
	for (uint32_t n = 0; n < sizeof(reasons) / sizeof(reasons[0]); n++) {
		begin(&notice);
		memcpy(statement.reason, reasons[n], strlen(reasons[n]) + 1);
		assert_int_equal(statement_put(&notice.writer, &statement), -EINVAL);
	}
	statement = said;
	memcpy(statement.evidence, "two\nlines", 10);
	assert_int_equal(statement_put(&notice.writer, &statement), -EINVAL);
	memset(statement.evidence, 'e', sizeof(statement.evidence)); // without a final NUL
	assert_int_equal(statement_put(&notice.writer, &statement), -EINVAL);
}

UNIT_GROUP(verdict_observation) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_is_got),
		cmocka_unit_test(what_is_not_sound_is_not_put),
		cmocka_unit_test(what_no_agent_says_is_not_got),
		cmocka_unit_test(a_notice_that_is_cut_anywhere_is_refused_after_its_last_whole_part
		),
		cmocka_unit_test(kinds_of_a_newer_version_are_skipped),
		cmocka_unit_test(what_does_not_fit_leaves_the_writer_as_it_was),
		cmocka_unit_test(a_node_says_of_itself_only_what_it_can_know),
		cmocka_unit_test(numbers_on_the_wire_do_not_change),
		cmocka_unit_test(a_reason_is_a_word_and_the_evidence_one_line),
	};

	return cmocka_run_group_tests_name("verdict_observation", tests, NULL, NULL);
}
