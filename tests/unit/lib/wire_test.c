// SPDX-License-Identifier: BSD-3-Clause
#include <lib/wire.h>
#include <support/cases.h>
#include <support/cmocka.h>

static struct wire_reader reader_of(const void *data, size_t size) {
	struct wire_reader reader;

	wire_reader_init(&reader, data, size);
	return reader;
}

static void numbers_are_little_endian_and_come_back(void **state) {
	static const uint8_t expected[] = {
		0x01, 0x03, 0x02, 0x07, 0x06, 0x05, 0x04, 0x0f, 0x0e, 0x0d, 0x0c, 0x0b,
		0x0a, 0x09, 0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	};
	uint8_t buffer[sizeof(expected)];
	struct wire_writer writer;
	struct wire_reader reader;
	size_t used = 0;

	(void)state;
	wire_writer_init(&writer, buffer, sizeof(buffer));
	wire_put_u8(&writer, 0x01);
	wire_put_u16(&writer, 0x0203);
	wire_put_u32(&writer, 0x04050607);
	wire_put_u64(&writer, 0x08090a0b0c0d0e0f);
	wire_put_i64(&writer, -2);
	assert_int_equal(wire_writer_used(&writer), sizeof(expected));
	assert_int_equal(wire_writer_finish(&writer, &used), 0);
	assert_int_equal(used, sizeof(expected));
	assert_memory_equal(buffer, expected, sizeof(expected));

	reader = reader_of(buffer, used);
	assert_int_equal(wire_get_u8(&reader), 0x01);
	assert_int_equal(wire_get_u16(&reader), 0x0203);
	assert_int_equal(wire_get_u32(&reader), 0x04050607);
	assert_true(wire_get_u64(&reader) == 0x08090a0b0c0d0e0f);
	assert_int_equal(wire_reader_left(&reader), 8);
	assert_true(wire_get_i64(&reader) == -2);
	assert_int_equal(wire_reader_finish(&reader), 0);
}

static void a_writer_that_overflowed_once_writes_nothing_more(void **state) {
	uint8_t buffer[8] = {0};
	struct wire_writer writer;
	size_t used = 77;

	(void)state;
	wire_writer_init(&writer, buffer, 5);
	wire_put_u32(&writer, 0x11111111);
	wire_put_u32(&writer, 0x22222222); // too large for the remaining byte
	wire_put_u8(&writer, 0x33);	   // would fit, but the writer has failed already
	wire_put_bytes(&writer, "", 0);
	assert_int_equal(wire_writer_used(&writer), 4);
	assert_int_equal(wire_writer_finish(&writer, &used), -EMSGSIZE);
	assert_int_equal(used, 77);
	assert_int_equal(buffer[4], 0);
	wire_patch_u32(&writer, 0, 0x44444444);
	assert_int_equal(buffer[0], 0x11);
}

static void a_writer_without_room_takes_nothing_but_nothing(void **state) {
	uint8_t byte = 0xaa;
	struct wire_writer writer;
	size_t used = 77;

	(void)state;
	wire_writer_init(&writer, &byte, 0);
	wire_put_bytes(&writer, NULL, 0);
	assert_int_equal(wire_writer_finish(&writer, &used), 0);
	assert_int_equal(used, 0);
	wire_put_u8(&writer, 1);
	assert_int_equal(wire_writer_finish(&writer, &used), -EMSGSIZE);
	assert_int_equal(byte, 0xaa);
}

static void a_string_is_put_whole_or_not_at_all(void **state) {
	static char text[WIRE_STRING_LENGTH_MAX + 1];
	static uint8_t buffer[sizeof(text) + 2];
	struct wire_writer writer;
	size_t used;

	(void)state;
	wire_writer_init(&writer, buffer, 6);
	wire_put_string(&writer, "abcde", 5);
	assert_int_equal(wire_writer_used(&writer), 0);

	wire_writer_init(&writer, buffer, sizeof(buffer));
	wire_put_string(&writer, text, WIRE_STRING_LENGTH_MAX);
	assert_int_equal(wire_writer_finish(&writer, &used), 0);
	assert_int_equal(used, 2 + WIRE_STRING_LENGTH_MAX);

	wire_writer_init(&writer, buffer, sizeof(buffer));
	wire_put_string(&writer, text, WIRE_STRING_LENGTH_MAX + 1);
	assert_int_equal(wire_writer_finish(&writer, &used), -EMSGSIZE);
}

static void a_marked_slot_is_filled_later(void **state) {
	static const uint8_t expected[] = {0x02, 0x01, 0xee, 0x06, 0x05, 0x04, 0x03};
	uint8_t buffer[sizeof(expected)];
	struct wire_writer writer;
	size_t slot_u16, slot_u32;

	(void)state;
	wire_writer_init(&writer, buffer, sizeof(buffer));
	slot_u16 = wire_reserve_u16(&writer);
	wire_put_u8(&writer, 0xee);
	slot_u32 = wire_reserve_u32(&writer);
	wire_patch_u16(&writer, slot_u16, 0x0102);
	wire_patch_u32(&writer, slot_u32, 0x03040506);
	assert_int_equal(wire_writer_used(&writer), sizeof(expected));
	assert_memory_equal(buffer, expected, sizeof(expected));
}

static void every_truncation_is_ebadmsg_and_reads_as_zero(void **state) {
	static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct wire_reader reader;
	uint8_t bytes[8] = {0x5a};

	(void)state;
	for (size_t size = 0; size < sizeof(ones); size++) {
		reader = reader_of(ones, size);
		assert_true(wire_get_u64(&reader) == 0);
		assert_int_equal(wire_reader_finish(&reader), -EBADMSG);
		reader = reader_of(ones, size);
		wire_get_bytes(&reader, bytes, size + 1);
		assert_int_equal(wire_reader_error(&reader), -EBADMSG);
		assert_int_equal(bytes[0], 0x5a);
		reader = reader_of(ones, size);
		assert_null(wire_get_view(&reader, size + 1));
		assert_false(wire_reader_ok(&reader));
	}
	for (size_t size = 0; size < 4; size++) {
		reader = reader_of(ones, size);
		assert_int_equal(wire_get_u32(&reader), 0);
		assert_int_equal(wire_reader_error(&reader), -EBADMSG);
	}
	reader = reader_of(ones, 1);
	assert_int_equal(wire_get_u16(&reader), 0);
	assert_int_equal(wire_reader_error(&reader), -EBADMSG);
	reader = reader_of(NULL, 0);
	assert_int_equal(wire_get_u8(&reader), 0);
	assert_int_equal(wire_reader_error(&reader), -EBADMSG);
}

static void a_reader_that_failed_once_stays_failed_with_its_first_error(void **state) {
	static const uint8_t data[16] = {1, 2, 3};
	struct wire_reader reader = reader_of(data, sizeof(data));

	(void)state;
	wire_reader_fail(&reader, 0);
	assert_true(wire_reader_ok(&reader));
	wire_reader_fail(&reader, -EPROTO);
	wire_reader_fail(&reader, -EINVAL);
	assert_int_equal(wire_get_u8(&reader), 0);
	assert_int_equal(wire_reader_left(&reader), 0);
	assert_null(wire_get_view(&reader, 0));
	assert_int_equal(wire_reader_finish(&reader), -EPROTO);
}

static void trailing_bytes_are_ebadmsg(void **state) {
	struct wire_reader reader = reader_of("ab", 2);

	(void)state;
	assert_int_equal(wire_get_u8(&reader), 'a');
	assert_int_equal(wire_reader_finish(&reader), -EBADMSG);
	assert_int_equal(wire_get_u8(&reader), 'b');
	assert_int_equal(wire_reader_finish(&reader), 0);
}

static void a_view_of_nothing_is_not_a_failure(void **state) {
	struct wire_reader reader = reader_of(NULL, 0);

	(void)state;
	assert_non_null(wire_get_view(&reader, 0));
	assert_int_equal(wire_reader_finish(&reader), 0);
}

static void string_reading_answers_each_fault_by_its_error(void **state) {
	static const struct {
		const char *data;
		size_t size, text_size;
		int error;
	} rows[] = {
		{"\x03", 1, 8, -EBADMSG}, // an incomplete length field
		{"\x03\0ab", 4, 8, -EBADMSG},	 {"\xff\xff", 2, 8, -EMSGSIZE},
		{"\x04\0abcd", 6, 4, -EMSGSIZE}, // no room for the terminator
		{"\x01\0a", 3, 1, -EMSGSIZE},	 {"\x03\0a\0b", 5, 8, -EILSEQ},
		{"\x01\0\xff", 3, 8, -EILSEQ},	 {"\x02\0\xc3(", 4, 8, -EILSEQ},
		{"\x04\0abcd", 6, 5, 0},	 {"\0\0", 2, 1, 0},
		{"\x03\0\xe2\x82\xac", 5, 4, 0},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct wire_reader reader = reader_of(rows[n].data, rows[n].size);
		char text[8] = "before";
		size_t length;

		length = wire_get_string(&reader, text, rows[n].text_size);
		assert_int_equal(wire_reader_finish(&reader), rows[n].error);
		if (rows[n].error != 0) {
			assert_int_equal(length, 0);
			assert_string_equal(text, "before");
		} else {
			assert_int_equal(length, rows[n].size - 2);
			assert_int_equal(strlen(text), length);
			assert_memory_equal(text, rows[n].data + 2, length);
		}
	}
}

static void a_string_view_lies_in_the_message_and_keeps_its_length_on_failure(void **state) {
	static const char data[] = "\x03\0abc";
	struct wire_reader reader = reader_of(data, 5);
	size_t length = 77;

	(void)state;
	assert_null(wire_get_string_view(&reader, 2, &length));
	assert_int_equal(length, 77);
	assert_int_equal(wire_reader_error(&reader), -EMSGSIZE);
	reader = reader_of(data, 5);
	assert_ptr_equal(wire_get_string_view(&reader, 3, &length), data + 2);
	assert_int_equal(length, 3);
}

static void utf8_is_judged_as_rfc_3629_says(void **state) {
	static const struct {
		const char *text;
		bool valid;
	} rows[] = {
		{"", true},
		{"plain", true},
		{"\x7f", true},
		{"\xc2\x80", true},
		{"\xdf\xbf", true},
		{"\xe0\xa0\x80", true},
		{"\xed\x9f\xbf", true},
		{"\xee\x80\x80", true},
		{"\xef\xbf\xbf", true},
		{"\xf0\x90\x80\x80", true},
		{"\xf4\x8f\xbf\xbf", true},
		{"a\xe2\x82\xac z", true},
		{"\x80", false},     // a continuation byte without a lead byte
		{"\xc0\xaf", false}, // overlong '/'
		{"\xc1\xbf", false},
		{"\xe0\x9f\xbf", false},     // overlong
		{"\xed\xa0\x80", false},     // surrogate
		{"\xf0\x8f\xbf\xbf", false}, // overlong
		{"\xf4\x90\x80\x80", false}, // past U+10FFFF
		{"\xf5\x80\x80\x80", false},
		{"\xff", false},
		{"\xc2", false}, // cut short
		{"\xe2\x82", false},
		{"\xf0\x90\x80", false},
		{"\xe2\x82z", false},
		{"\xf0\x90z\x80", false},
		{"ok\xc2 ", false},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++)
		assert_int_equal(
			wire_utf8_valid(rows[n].text, strlen(rows[n].text)), rows[n].valid
		);
	assert_true(wire_utf8_valid("\0", 1));
}

static void a_count_is_capped_and_must_fit_in_what_is_left(void **state) {
	static const uint8_t data[] = {3, 0, 0, 0, 1, 2, 3, 4, 5, 6};
	static const struct {
		uint32_t count_max;
		size_t element_bytes_min;
		int error;
	} rows[] = {
		{2, 1, -EMSGSIZE},
		{3, 3, -EBADMSG},
		{3, SIZE_MAX, -EBADMSG},
		{UINT32_MAX, SIZE_MAX / 2, -EBADMSG},
		{3, 2, 0},
		{3, 0, 0},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct wire_reader reader = reader_of(data, sizeof(data));
		uint32_t count;

		count = wire_get_count_u32(&reader, rows[n].count_max, rows[n].element_bytes_min);
		assert_int_equal(count, rows[n].error == 0 ? 3 : 0);
		assert_int_equal(wire_reader_error(&reader), rows[n].error);
	}
}

static void a_count_of_sixteen_bits_follows_the_same_rules(void **state) {
	struct wire_reader reader = reader_of("\x02\0ab", 4);

	(void)state;
	assert_int_equal(wire_get_count_u16(&reader, 2, 1), 2);
	assert_int_equal(wire_reader_left(&reader), 2);
	reader = reader_of("\xff\xff", 2);
	assert_int_equal(wire_get_count_u16(&reader, UINT16_MAX, 1), 0);
	assert_int_equal(wire_reader_error(&reader), -EBADMSG);
}

static void a_varint_comes_back_in_its_shortest_form(void **state) {
	static const struct {
		uint64_t value;
		size_t size;
	} rows[] = {
		{0, 1},		  {0x7f, 1},	   {0x80, 2},		{0x3fff, 2},
		{0x4000, 3},	  {UINT32_MAX, 5}, {UINT64_MAX / 2, 9}, {1ULL << 63, 10},
		{UINT64_MAX, 10},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		uint8_t buffer[WIRE_VARINT_BYTES_MAX];
		struct wire_writer writer;
		struct wire_reader reader;

		wire_writer_init(&writer, buffer, sizeof(buffer));
		wire_put_varint(&writer, rows[n].value);
		assert_int_equal(wire_writer_used(&writer), rows[n].size);
		reader = reader_of(buffer, rows[n].size);
		assert_true(wire_get_varint(&reader) == rows[n].value);
		assert_int_equal(wire_reader_finish(&reader), 0);
		reader = reader_of(buffer, rows[n].size - 1);
		assert_true(wire_get_varint(&reader) == 0);
		assert_int_equal(wire_reader_finish(&reader), -EBADMSG);
	}
}

static void a_varint_that_is_overlong_or_too_large_is_ebadmsg(void **state) {
	static const char *const rows[] = {
		"\x80\x80\x01\x80", // cut short
		"\xff\x80",	    // overlong: the terminating 0 of the literal follows
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", // sets bit 64
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct wire_reader reader = reader_of(rows[n], strlen(rows[n]) + (n == 1));

		wire_get_varint(&reader);
		wire_get_varint(&reader);
		assert_int_equal(wire_reader_finish(&reader), -EBADMSG);
	}
}

static void a_nested_message_ends_where_it_was_cut(void **state) {
	struct wire_reader reader = reader_of("\x01\x02\x03\x04", 4);
	struct wire_reader sub;

	(void)state;
	wire_reader_nested(&reader, 3, &sub);
	assert_int_equal(wire_get_u16(&sub), 0x0201);
	assert_int_equal(wire_reader_finish(&sub), -EBADMSG); // one byte left over
	assert_int_equal(wire_get_u16(&sub), 0); // the fourth byte is outside the nested message
	assert_int_equal(wire_get_u8(&reader), 4);
	assert_int_equal(wire_reader_finish(&reader), 0);
	wire_reader_fail(&reader, wire_reader_finish(&sub));
	assert_int_equal(wire_reader_finish(&reader), -EBADMSG);
}

static void a_nested_message_past_the_end_has_failed_too(void **state) {
	struct wire_reader reader = reader_of("ab", 2);
	struct wire_reader sub;

	(void)state;
	wire_reader_nested(&reader, 3, &sub);
	assert_int_equal(wire_get_u8(&sub), 0);
	assert_int_equal(wire_reader_finish(&sub), -EBADMSG);
	assert_int_equal(wire_reader_finish(&reader), -EBADMSG);
}

UNIT_GROUP(wire) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_little_endian_and_come_back),
		cmocka_unit_test(a_writer_that_overflowed_once_writes_nothing_more),
		cmocka_unit_test(a_writer_without_room_takes_nothing_but_nothing),
		cmocka_unit_test(a_string_is_put_whole_or_not_at_all),
		cmocka_unit_test(a_marked_slot_is_filled_later),
		cmocka_unit_test(every_truncation_is_ebadmsg_and_reads_as_zero),
		cmocka_unit_test(a_reader_that_failed_once_stays_failed_with_its_first_error),
		cmocka_unit_test(trailing_bytes_are_ebadmsg),
		cmocka_unit_test(a_view_of_nothing_is_not_a_failure),
		cmocka_unit_test(string_reading_answers_each_fault_by_its_error),
		cmocka_unit_test(a_string_view_lies_in_the_message_and_keeps_its_length_on_failure),
		cmocka_unit_test(utf8_is_judged_as_rfc_3629_says),
		cmocka_unit_test(a_count_is_capped_and_must_fit_in_what_is_left),
		cmocka_unit_test(a_count_of_sixteen_bits_follows_the_same_rules),
		cmocka_unit_test(a_varint_comes_back_in_its_shortest_form),
		cmocka_unit_test(a_varint_that_is_overlong_or_too_large_is_ebadmsg),
		cmocka_unit_test(a_nested_message_ends_where_it_was_cut),
		cmocka_unit_test(a_nested_message_past_the_end_has_failed_too),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
