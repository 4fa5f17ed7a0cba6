// SPDX-License-Identifier: BSD-3-Clause
// Messages of agents about their rails.
#include "fabric/rail_message.h"

#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct rail_list some(uint32_t count) {
	struct rail_list list = {.count = count};

	for (uint32_t n = 0; n < count; n++) {
		struct rail *rail = &list.rails[n];

		memset(rail->name, 'm', DEVICE_NAME_MAX);
		rail->name[0] = (char)('a' + n);
		rail->link = n % 2 == 0 ? DEVICE_LINK_INFINIBAND : DEVICE_LINK_ETHERNET;
		rail->subnet = (struct device_subnet){DEVICE_SUBNET_INFINIBAND, 64, {0xfe, 0x80}};
	}
	return list;
}

static void sixteen_rails_with_long_names_come_back(void **state) {
	struct rail_list list = some(RAILS_MAX), read;
	uint8_t bytes[RAIL_MESSAGE_BYTES_MAX];
	size_t size = rail_message_encode(&list, true, bytes);
	bool asks;

	(void)state;
	assert_int_equal(rail_message_decode(bytes, size, &read, &asks), 0);
	assert_true(asks);
	assert_true(rail_list_same(&list, &read));
}

static void what_is_cut_off_anywhere_is_refused(void **state) {
	struct rail_list list = some(3), read;
	uint8_t bytes[RAIL_MESSAGE_BYTES_MAX];
	size_t size = rail_message_encode(&list, false, bytes);
	bool asks;

	(void)state;
	for (size_t n = 0; n < size; n++)
		assert_true(rail_message_decode(bytes, n, &read, &asks) < 0);
	assert_int_equal(rail_message_decode(bytes, size + 1, &read, &asks), -EBADMSG);
}

#define NAME_AT 8 // offset behind the head, the bytes of the rail and the length of its name
#define LINK_AT (NAME_AT + DEVICE_NAME_MAX)

static void what_no_agent_says_is_refused(void **state) {
	static const struct {
		const char *what;
		size_t at;
		uint8_t value;
	} cases[] = {
		{"a version of nobody", 0, 0},
		{"more rails than there are", 2, 3},
		{"a blank in a name", NAME_AT, ' '},
		{"a name that steers a terminal", NAME_AT, 27},
		{"a subnet of 129 bits", LINK_AT + 2, 129},
		{"a subnet of no bits", LINK_AT + 2, 0},
		{"an address, not a subnet", LINK_AT + 18, 1},
		{"a rail longer than the message", 5, 1},
	};
	struct rail_list list = some(2), read;
	uint8_t bytes[RAIL_MESSAGE_BYTES_MAX];
	bool asks;

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		size_t size = rail_message_encode(&list, false, bytes);

		print_message("# %s\n", cases[n].what);
		bytes[cases[n].at] = cases[n].value;
		assert_true(rail_message_decode(bytes, size, &read, &asks) < 0);
	}
	list.rails[1] = list.rails[0]; // a duplicate
	assert_int_equal(
		rail_message_decode(bytes, rail_message_encode(&list, false, bytes), &read, &asks),
		-EBADMSG
	);
}

static void what_a_newer_version_adds_is_passed_over(void **state) {
	struct rail_list list = some(2), read;
	uint8_t bytes[RAIL_MESSAGE_BYTES_MAX + 8];
	size_t size = rail_message_encode(&list, false, bytes);
	bool asks;

	(void)state;
	bytes[0] = 2;
	bytes[1] = 0x80;
	bytes[LINK_AT] = 7; // an unknown link type
	memset(bytes + size, 0xaa, 8);
	assert_int_equal(rail_message_decode(bytes, size + 8, &read, &asks), 0);
	assert_false(asks);
	assert_int_equal(read.count, 1);
	assert_string_equal(read.rails[0].name, list.rails[1].name);
	bytes[LINK_AT] = DEVICE_LINK_INFINIBAND;
	bytes[LINK_AT + 1] = 9; // an unknown kind of subnet
	assert_int_equal(rail_message_decode(bytes, size, &read, &asks), 0);
	assert_int_equal(read.count, 2);
	assert_int_equal(read.rails[0].subnet.kind, DEVICE_SUBNET_UNKNOWN);
}

UNIT_GROUP(rail_message) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sixteen_rails_with_long_names_come_back),
		cmocka_unit_test(what_is_cut_off_anywhere_is_refused),
		cmocka_unit_test(what_no_agent_says_is_refused),
		cmocka_unit_test(what_a_newer_version_adds_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
