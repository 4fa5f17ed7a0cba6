// SPDX-License-Identifier: BSD-3-Clause
#include <lib/cidr.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

static void cidr_refuses_what_is_not_a_block(void **state) {
	static const struct error_text rows[] = {
		{TEXT(""), -EINVAL},
		{TEXT("/"), -EINVAL},
		{TEXT("/8"), -EINVAL},
		{TEXT("10.0.0.0"), -EINVAL},
		{TEXT("10.0.0.0/"), -EINVAL},
		{TEXT("10.0.0.0/x"), -EINVAL},
		{TEXT("10.0.0.0/-1"), -EINVAL},
		{TEXT("10.0.0.0/0x8"), -EINVAL},
		{TEXT("10.0.0.0/8 "), -EINVAL},
		{TEXT("10.0.0.0/8\0"), -EINVAL},
		{TEXT("10.0.0.0\0/8"), -EINVAL},
		{TEXT("10.0.0.0/8/8"), -EINVAL},
		{TEXT("10.0.0/8"), -EINVAL},
		{TEXT("300.0.0.0/8"), -EINVAL},
		{TEXT("\xff/8"), -EINVAL},
		{TEXT("fe80::%lo/64"), -EINVAL},
		{TEXT("[::]/0"), -EINVAL},
		{TEXT("10.0.0.0/33"), -ERANGE},
		{TEXT("10.0.0.0/4294967304"), -ERANGE}, // would be 8 if truncated to 32 bits
		{TEXT("::/129"), -ERANGE},
		{TEXT("10.0.0.1/8"), -EINVAL}, // bits beyond the prefix
		{TEXT("128.0.0.0/0"), -EINVAL},
		{TEXT("2001:db8::1/127"), -EINVAL},
		{TEXT("::ffff:10.0.0.0/95"), -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct cidr cidr = {.bits = 77};
		struct parse_error error = {""};
		int err = cidr_parse(rows[i].text, rows[i].length, &error, &cidr);

		if (err != rows[i].err)
			fail_msg("%s: got %d: %s", rows[i].text, err, error.text);
		assert_int_equal(cidr.bits, 77);
		assert_int_equal(error.text[0], '"');
	}
}

static void cidr_error_says_what_is_allowed(void **state) {
	struct parse_error error;
	struct cidr cidr;

	(void)state;
	cidr_parse(TEXT("10.0.0.0"), &error, &cidr);
	assert_string_equal(
		error.text,
		"\"10.0.0.0\" is not an address block such as 10.0.0.0/8 or 2001:db8::/32"
	);
	cidr_parse(TEXT("10.0.0.0/33"), &error, &cidr);
	assert_string_equal(
		error.text, "\"10.0.0.0/33\" has no valid prefix length: 0 to 32 is allowed"
	);
	cidr_parse(TEXT("10.1.2.3/8"), &error, &cidr);
	assert_string_equal(
		error.text, "\"10.1.2.3/8\" has bits set beyond the prefix: the block is 10.0.0.0/8"
	);
}

static void cidr_parse_and_format_are_each_other_s_inverse(void **state) {
	static const struct {
		const char *text, *printed;
	} rows[] = {
		{"10.0.0.0/8", "10.0.0.0/8"},
		{"0.0.0.0/0", "0.0.0.0/0"},
		{"192.0.2.1/32", "192.0.2.1/32"},
		{"192.0.2.128/25", "192.0.2.128/25"},
		{"::/0", "::/0"},
		{"2001:DB8::/032", "2001:db8::/32"},
		{"2001:db8::1/128", "2001:db8::1/128"},
		{"::ffff:10.0.0.0/104", "10.0.0.0/8"},
		{"::ffff:0:0/96", "0.0.0.0/0"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128",
		 "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128"},
	};
	char text[CIDR_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct parse_error error;
		struct cidr cidr;

		if (cidr_parse(rows[i].text, strlen(rows[i].text), &error, &cidr) != 0)
			fail_msg("%s", error.text);
		cidr_format(&cidr, text);
		assert_string_equal(text, rows[i].printed);
	}
}

static void cidr_contains_its_own_addresses_only(void **state) {
	static const struct {
		const char *block, *addr;
		bool contains;
	} rows[] = {
		{"10.0.0.0/8", "10.255.255.255", true},
		{"10.0.0.0/8", "11.0.0.0", false},
		{"10.0.0.0/8", "9.255.255.255", false},
		{"10.0.0.0/8", "::ffff:10.1.2.3", true}, // a mapped address is IPv4
		{"10.0.0.0/8", "2001:db8::1", false},
		{"192.0.2.1/32", "192.0.2.1", true},
		{"192.0.2.1/32", "192.0.2.2", false},
		{"0.0.0.0/0", "203.0.113.1", true},
		{"0.0.0.0/0", "::1", false},
		{"::/0", "2001:db8::1", true},
		{"::/0", "10.0.0.1", false},
		{"2001:db8::/127", "2001:db8::1", true},
		{"2001:db8::/127", "2001:db8::2", false},
		{"2001:db8::1/128", "2001:db8::1", true},
		{"fe80::/10", "fe80::1%lo", true}, // the scope is ignored
	};
	struct cidr all = {.family = SOCK_ADDR_V4};
	struct sock_addr none = {0};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct sock_addr addr;
		struct cidr cidr;

		assert_int_equal(cidr_parse(rows[i].block, strlen(rows[i].block), NULL, &cidr), 0);
		assert_int_equal(
			sock_addr_parse_host(rows[i].addr, strlen(rows[i].addr), NULL, &addr), 0
		);
		addr.port = 80;
		assert_int_equal(cidr_contains(&cidr, &addr), rows[i].contains);
	}
	assert_false(cidr_contains(&all, &none));
}

UNIT_GROUP(cidr) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cidr_refuses_what_is_not_a_block),
		cmocka_unit_test(cidr_error_says_what_is_allowed),
		cmocka_unit_test(cidr_parse_and_format_are_each_other_s_inverse),
		cmocka_unit_test(cidr_contains_its_own_addresses_only),
	};

	return cmocka_run_group_tests_name("cidr", tests, NULL, NULL);
}
