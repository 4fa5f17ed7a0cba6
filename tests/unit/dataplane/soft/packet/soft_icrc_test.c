// SPDX-License-Identifier: BSD-3-Clause
// The reference is a bitwise CRC, which is itself checked against the check value of its
// definition.
#include "packet/icrc.h"

#include <support/cmocka.h>

#include <string.h>

#define TEXT_MAX (ICRC_TRAILING_MAX + 64)

static uint8_t text[TEXT_MAX + 64];

static uint32_t slow_crc(const uint8_t *bytes, size_t size) {
	uint32_t value = UINT32_MAX;

	for (size_t n = 0; n < size; n++) {
		value ^= bytes[n];
		for (uint32_t bit = 0; bit < 8; bit++)
			value = value >> 1 ^ ((value & 1) != 0 ? UINT32_C(0xedb88320) : 0);
	}
	return ~value;
}

static int fill(void **state) {
	uint32_t value = 1;

	(void)state;
	for (size_t n = 0; n < sizeof(text); n++) {
		value = value * 1664525 + 1013904223;
		text[n] = (uint8_t)(value >> 24);
	}
	return 0;
}

static void the_check_values_of_the_definition_come_out(void **state) {
	static const uint8_t digits[] = "123456789";
	static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	(void)state;
	assert_int_equal(slow_crc(digits, 9), 0xcbf43926);
	assert_int_equal(icrc_crc32(digits, 9), 0xcbf43926);
	// The start value of every ICRC.
	assert_int_equal(icrc_crc32(ones, sizeof(ones)) ^ UINT32_MAX, 0xdebb20e3);
}

static void every_length_agrees_with_the_slow_way(void **state) {
	(void)state;
	for (size_t size = 0; size <= 600; size++)
		assert_int_equal(icrc_crc32(text, size), slow_crc(text, size));
	for (size_t size = 601; size < TEXT_MAX; size += 61)
		assert_int_equal(icrc_crc32(text, size), slow_crc(text, size));
}

static void every_way_of_the_processor_agrees_with_the_slow_one(void **state) {
	const enum icrc_method ways[] = {ICRC_BY_TABLE, ICRC_BY_BLOCKS, ICRC_BY_WIDE_BLOCKS};
	uint32_t crc;

	(void)state;
	for (size_t size = 0; size < TEXT_MAX; size += size < 1100 ? 1 : 61) {
		const uint32_t wanted = slow_crc(text, size);

		for (size_t n = 0; n < sizeof(ways) / sizeof(ways[0]); n++) {
			if (icrc_crc32_by(ways[n], text, size, &crc))
				assert_int_equal(crc, wanted);
		}
	}
}

static void a_text_may_begin_anywhere(void **state) {
	(void)state;
	for (size_t at = 0; at < 64; at++) {
		assert_int_equal(icrc_crc32(text + at, 52), slow_crc(text + at, 52));
		assert_int_equal(icrc_crc32(text + at, 1060), slow_crc(text + at, 1060));
	}
}

static void two_changed_bytes_explain_the_difference_at_every_place(void **state) {
	static const uint16_t changes[] = {1, 0x8000, 0xffff, 0x1234, 0x00ff, 0xff00};

	(void)state;
	for (size_t after = 0; after <= ICRC_TRAILING_MAX; after++) {
		const uint16_t change = (uint16_t)(changes[after % 6] ^ after << 3);
		uint8_t *at = text + 10;
		const uint32_t before = icrc_crc32(text, 12 + after);
		uint16_t bits = 0;

		at[0] ^= (uint8_t)change;
		at[1] ^= (uint8_t)(change >> 8);
		assert_true(
			icrc_find_changed_bytes(before ^ icrc_crc32(text, 12 + after), after, &bits)
		);
		assert_int_equal(bits, change);
		at[0] ^= (uint8_t)change;
		at[1] ^= (uint8_t)(change >> 8);
	}
}

static void all_65536_changes_are_found_and_are_all_there_are(void **state) {
	const size_t after = 1041;
	uint32_t explained = 0;
	uint16_t bits;

	(void)state;
	for (uint32_t change = 0; change <= UINT16_MAX; change++) {
		uint8_t zeros[2] = {0}, changed[2] = {(uint8_t)change, (uint8_t)(change >> 8)};

		// With no bytes after the change the slow CRC is fast enough.
		assert_true(
			icrc_find_changed_bytes(slow_crc(zeros, 2) ^ slow_crc(changed, 2), 0, &bits)
		);
		assert_int_equal(bits, change);
	}
	// One in 65,536 differences can be explained, so about one of these random differences is.
	for (uint32_t n = 0, difference = 7; n < 65536; n++) {
		difference = difference * 1664525 + 1013904223;
		explained += icrc_find_changed_bytes(difference, after, &bits);
	}
	assert_in_range(explained, 0, 8);
}

static void another_change_is_not_explained_and_the_output_stays(void **state) {
	static const size_t lengths[] = {0, 1, 34, 60, 1040, 4150};
	uint16_t bits = 4711;

	(void)state;
	for (size_t n = 0; n < sizeof(lengths) / sizeof(lengths[0]); n++) {
		const size_t size = 12 + lengths[n] + 8;
		const uint32_t before = icrc_crc32(text, size);

		// Change one bit, before the two bytes and after them.
		for (size_t at = 9; at <= 12; at += 3) {
			text[at] ^= 0x10;
			assert_false(icrc_find_changed_bytes(
				before ^ icrc_crc32(text, size), lengths[n] + 8, &bits
			));
			text[at] ^= 0x10;
		}
		assert_int_equal(bits, 4711);
	}
}

static void no_difference_is_a_change_of_nothing(void **state) {
	uint16_t bits = 4711;

	(void)state;
	assert_true(icrc_find_changed_bytes(0, 100, &bits));
	assert_int_equal(bits, 0);
}

UNIT_GROUP(soft_icrc) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_check_values_of_the_definition_come_out),
		cmocka_unit_test(every_length_agrees_with_the_slow_way),
		cmocka_unit_test(every_way_of_the_processor_agrees_with_the_slow_one),
		cmocka_unit_test(a_text_may_begin_anywhere),
		cmocka_unit_test(two_changed_bytes_explain_the_difference_at_every_place),
		cmocka_unit_test(all_65536_changes_are_found_and_are_all_there_are),
		cmocka_unit_test(another_change_is_not_explained_and_the_output_stays),
		cmocka_unit_test(no_difference_is_a_change_of_nothing),
	};

	return cmocka_run_group_tests(tests, fill, NULL);
}
