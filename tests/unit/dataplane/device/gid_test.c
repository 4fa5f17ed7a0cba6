// SPDX-License-Identifier: BSD-3-Clause
#include <dataplane/gid.h>
#include <support/cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static union ibv_gid gid(const char *text) {
	union ibv_gid parsed = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (inet_pton(AF_INET, text, parsed.raw + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, parsed.raw), 1);
	return parsed;
}

static void a_gid_is_known_by_scope_family_and_form(void **state) {
	static const struct {
		const char *text;
		enum gid_scope scope;
		bool ipv4;
		const char *shown; // NULL: printed as in `text`
	} cases[] = {
		{"10.0.0.1", GID_SCOPE_GLOBAL, true, NULL},
		// Address of a software device on one host.
		{"127.64.0.1", GID_SCOPE_GLOBAL, true, NULL},
		{"223.255.255.254", GID_SCOPE_GLOBAL, true, NULL},
		{"169.254.0.1", GID_SCOPE_LINK, true, NULL},
		{"169.253.0.1", GID_SCOPE_GLOBAL, true, NULL},
		{"0.0.0.0", GID_SCOPE_NONE, true, NULL},
		{"0.1.2.3", GID_SCOPE_NONE, true, NULL},
		{"224.0.0.1", GID_SCOPE_NONE, true, NULL},
		{"255.255.255.255", GID_SCOPE_NONE, true, NULL},
		{"2001:db8::1", GID_SCOPE_GLOBAL, false, NULL},
		{"fd00::1", GID_SCOPE_GLOBAL, false, NULL},
		{"::ffff:192.0.2.1", GID_SCOPE_GLOBAL, true, "192.0.2.1"},
		{"fe80::1", GID_SCOPE_LINK, false, NULL},
		{"febf:ffff::1", GID_SCOPE_LINK, false, NULL},
		{"fec0::1", GID_SCOPE_GLOBAL, false, NULL},
		{"ff02::1", GID_SCOPE_NONE, false, NULL},
		{"::1", GID_SCOPE_NONE, false, NULL},
		{"::", GID_SCOPE_NONE, false, NULL},
	};

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		const union ibv_gid parsed = gid(cases[n].text);
		char text[GID_TEXT_MAX + 1];

		assert_int_equal(gid_scope(&parsed), cases[n].scope);
		assert_int_equal(gid_is_ipv4(&parsed), cases[n].ipv4);
		assert_int_equal(gid_is_zero(&parsed), strcmp(cases[n].text, "::") == 0);
		assert_string_equal(
			gid_format(&parsed, text),
			cases[n].shown != NULL ? cases[n].shown : cases[n].text
		);
	}
}

static void the_longest_address_has_room(void **state) {
	union ibv_gid all;
	char text[GID_TEXT_MAX + 1];

	(void)state;
	memset(&all, 0xff, sizeof(all));
	assert_string_equal(gid_format(&all, text), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
}

static void a_type_has_a_name_and_one_to_come_is_unknown(void **state) {
	(void)state;
	assert_string_equal(gid_type_name(IBV_GID_TYPE_IB), "InfiniBand");
	assert_string_equal(gid_type_name(IBV_GID_TYPE_ROCE_V1), "RoCE v1");
	assert_string_equal(gid_type_name(IBV_GID_TYPE_ROCE_V2), "RoCE v2");
	assert_string_equal(gid_type_name(3), "unknown");
	assert_string_equal(gid_type_name(UINT32_MAX), "unknown");
}

struct candidate {
	uint32_t index, port, type;
	const char *text;
};

#define V1 IBV_GID_TYPE_ROCE_V1
#define V2 IBV_GID_TYPE_ROCE_V2

static void of_a_ports_gids_the_widest_scope_is_taken_wherever_it_stands(void **state) {
	static const struct {
		struct candidate table[4];
		const char *before;
		int index; // -1: no entry is chosen
	} cases[] = {
		{{{0}}, "::", -1},
		// A port lists each address twice, with both RoCE versions.
		{{{0, 1, V1, "fe80::1"},
		  {1, 1, V2, "fe80::1"},
		  {2, 1, V1, "10.0.0.1"},
		  {3, 1, V2, "10.0.0.1"}},
		 "::",
		 3},
		// The same addresses after the port flapped.
		{{{1, 1, V2, "10.0.0.1"}, {2, 1, V1, "fe80::1"}, {5, 1, V2, "fe80::1"}},
		 "10.0.0.1",
		 1},
		{{{0, 1, V1, "10.0.0.1"}}, "::", -1},
		{{{0, 1, IBV_GID_TYPE_IB, "10.0.0.1"}}, "::", -1},
		{{{4, 1, V2, "fe80::1"}}, "::", 4},
		{{{4, 2, V2, "10.0.0.1"}, {5, 1, V2, "fe80::1"}}, "::", 5},
		// All nodes must choose the same family, regardless of the order of the addresses.
		{{{1, 1, V2, "2001:db8::1"}, {9, 1, V2, "10.0.0.1"}}, "::", 9},
		{{{1, 1, V2, "2001:db8::1"}, {9, 1, V2, "10.0.0.1"}}, "2001:db8::1", 9},
		{{{1, 1, V2, "169.254.0.1"}, {9, 1, V2, "fe80::1"}}, "::", 9},
		{{{1, 1, V2, "169.254.0.1"}, {9, 1, V2, "2001:db8::1"}}, "::", 9},
		{{{1, 1, V2, "169.254.0.1"}}, "::", 1},
		// Among equal entries the previous address is kept; otherwise the first is chosen.
		{{{7, 1, V2, "10.0.0.2"}, {3, 1, V2, "10.0.0.1"}}, "::", 3},
		{{{3, 1, V2, "10.0.0.1"}, {7, 1, V2, "10.0.0.2"}}, "10.0.0.2", 7},
		{{{7, 1, V2, "10.0.0.2"}, {3, 1, V2, "10.0.0.1"}}, "10.0.0.2", 7},
		{{{3, 1, V2, "10.0.0.1"}, {7, 1, V2, "10.0.0.2"}}, "10.0.0.3", 3},
		// Unusable addresses, and an entry that was removed while it was read.
		{{{0, 1, V2, "::"},
		  {1, 1, V2, "ff02::1"},
		  {2, 1, V2, "::1"},
		  {3, 1, V2, "0.0.0.0"}},
		 "::",
		 -1},
	};

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		struct ibv_gid_entry entries[4];
		const union ibv_gid before = gid(cases[n].before);
		const struct ibv_gid_entry *chosen;
		uint32_t count = 0;

		while (count < 4 && cases[n].table[count].text != NULL) {
			const struct candidate *candidate = &cases[n].table[count];

			memset(&entries[count], 0, sizeof(entries[count]));
			entries[count].gid = gid(candidate->text);
			entries[count].gid_index = candidate->index;
			entries[count].port_num = candidate->port;
			entries[count].gid_type = candidate->type;
			count++;
		}
		chosen = gid_choose(entries, count, 1, &before);
		if (cases[n].index < 0) {
			assert_null(chosen);
			continue;
		}
		assert_non_null(chosen);
		assert_int_equal(chosen->gid_index, cases[n].index);
		assert_ptr_equal(gid_entry_at(entries, count, 1, (uint32_t)cases[n].index), chosen);
		assert_null(gid_entry_at(entries, count, 2, (uint32_t)cases[n].index));
	}
}

UNIT_GROUP(gid) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gid_is_known_by_scope_family_and_form),
		cmocka_unit_test(the_longest_address_has_room),
		cmocka_unit_test(a_type_has_a_name_and_one_to_come_is_unknown),
		cmocka_unit_test(of_a_ports_gids_the_widest_scope_is_taken_wherever_it_stands),
	};

	return cmocka_run_group_tests_name("gid", tests, NULL, NULL);
}
