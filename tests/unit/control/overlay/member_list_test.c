// SPDX-License-Identifier: BSD-3-Clause
// The file of remembered members: what was written reads the same, and all other input is
// rejected.
#include <control/member_list.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW_S UINT64_C(1795000000)
#define CLUSTER "c \"1\""
#define NODE "n1"

static struct member_list list, read_back;
static const char *reason;

static int begin(void **state) {
	(void)state;
	memset(&list, 0, sizeof(list));
	memset(&read_back, 0xff, sizeof(read_back));
	reason = NULL;
	return 0;
}

static struct member member_of(uint32_t n, uint32_t host, uint64_t proven_s) {
	struct member member = {
		.address =
			{.family = SOCK_ADDR_V4, .port = 28030, .address = {10, 0, 0, (uint8_t)n}},
		.proven_s = proven_s,
	};

	snprintf(member.name, sizeof(member.name), "n%u", n);
	snprintf(member.host, sizeof(member.host), "h%u", host);
	return member;
}

static bool put(uint32_t n, uint32_t host, uint64_t proven_s) {
	struct member member = member_of(n, host, proven_s);

	return member_list_put(&list, &member);
}

static int parse(const char *text) {
	return member_list_parse(&read_back, text, CLUSTER, NODE, &reason);
}

static void what_was_written_reads_the_same(void **state) {
	static const uint32_t counts[] = {0, 1, MEMBER_LIST_MAX};

	for (size_t n = 0; n < COUNT_OF(counts); n++) {
		char *text;

		begin(state);
		for (uint32_t k = 1; k <= counts[n]; k++)
			assert_true(put(k, k, NOW_S + k));
		if (counts[n] > 0) {
			list.members[0].left = true;
			memset(list.members[0].name, '"', RAS_NAME_MAX);
			list.members[0].address = (struct sock_addr
			){.family = SOCK_ADDR_V6, .port = 1, .address = {0xfd, [15] = 1}};
		}
		text = member_list_format(&list, CLUSTER, NODE);
		assert_true(strlen(text) < MEMBER_LIST_BYTES);
		assert_int_equal(parse(text), 0);
		assert_int_equal(read_back.count, list.count);
		assert_memory_equal(
			read_back.members, list.members, list.count * sizeof(list.members[0])
		);
		free(text);
	}
}

// 63 bytes that need six characters each.
static void the_longest_names_there_are_fit_into_the_file(void **state) {
	char *text;

	(void)state;
	for (uint32_t n = 1; n <= MEMBER_LIST_MAX; n++) {
		struct member member = member_of(n, n, UINT64_MAX / 2);

		memset(member.name, '\1', RAS_NAME_MAX);
		memset(member.host, '\1', RAS_NAME_MAX);
		member.name[0] = (char)n;
		assert_true(member_list_put(&list, &member));
	}
	text = member_list_format(&list, CLUSTER, NODE);
	assert_true(strlen(text) < MEMBER_LIST_BYTES);
	assert_int_equal(parse(text), 0);
	assert_int_equal(read_back.count, MEMBER_LIST_MAX);
	free(text);
}

static void list_of_another_cluster_or_node_is_not_taken(void **state) {
	char *text;

	(void)state;
	put(2, 2, NOW_S);
	text = member_list_format(&list, CLUSTER, NODE);
	assert_int_equal(member_list_parse(&read_back, text, "other", NODE, &reason), -EXDEV);
	assert_string_equal(reason, "the file belongs to another cluster");
	assert_int_equal(read_back.count, 0);
	assert_int_equal(member_list_parse(&read_back, text, CLUSTER, "n2", &reason), -EXDEV);
	assert_string_equal(reason, "the file belongs to another node");
	assert_int_equal(read_back.count, 0);
	free(text);
}

#define HEAD "{\"version\":1,\"cluster\":\"c \\\"1\\\"\",\"node\":\"n1\",\"members\":"
#define MEMBER(address, node, host, proven, left)                             \
	"{\"address\":\"" address "\",\"node\":\"" node "\",\"host\":\"" host \
	"\",\"proven\":" proven ",\"left\":" left "}"
#define GOOD MEMBER("10.0.0.2:1", "n2", "h2", "7", "false")

static void text_that_is_no_list_is_not_taken_in_parts(void **state) {
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"7",
		"{}",
		HEAD "7}",
		HEAD "{}}",
		HEAD "[7]}",
		HEAD "[" GOOD,
		HEAD "[" GOOD ",{}]}",
		HEAD "[" GOOD "," MEMBER("nowhere", "n3", "h3", "7", "false") "]}",
		HEAD "[" GOOD "," MEMBER("10.0.0.3", "n3", "h3", "7", "false") "]}",
		HEAD "[" GOOD "," MEMBER("10.0.0.3:0", "n3", "h3", "7", "false") "]}",
		HEAD "[" GOOD "," MEMBER("0.0.0.0:1", "n3", "h3", "7", "false") "]}",
		HEAD "[" GOOD "," MEMBER("10.0.0.3:1", "", "h3", "7", "false") "]}",
		HEAD "[" GOOD "," MEMBER("10.0.0.3:1", "n3", "", "7", "false") "]}",
		HEAD "[" GOOD "," MEMBER("10.0.0.3:1", "n3", "h3", "-1", "false") "]}",
		HEAD "[" GOOD "," MEMBER("10.0.0.3:1", "n3", "h3", "7.5", "false") "]}",
		HEAD "[" GOOD "," MEMBER("10.0.0.3:1", "n3", "h3", "7", "7") "]}",
		HEAD "[" GOOD "],\"members\":[]}",
		"{\"version\":2,\"cluster\":\"c \\\"1\\\"\",\"node\":\"n1\",\"members\":[]}",
	};

	(void)state;
	assert_int_equal(parse(HEAD "[" GOOD "]}"), 0);
	assert_int_equal(read_back.count, 1);
	for (size_t n = 0; n < COUNT_OF(texts); n++) {
		assert_int_equal(parse(texts[n]), -EBADMSG);
		assert_int_equal(read_back.count, 0);
		assert_non_null(reason);
	}
}

static void list_with_more_members_than_are_kept_is_not_taken(void **state) {
	char text[4 * MEMBER_LIST_MAX * 64] = HEAD "[";
	size_t used = strlen(text);

	(void)state;
	for (uint32_t n = 0; n <= MEMBER_LIST_MAX; n++)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used,
			"%s{\"address\":\"10.0.0.%u:1\",\"node\":\"n%u\",\"host\":\"h\","
			"\"proven\":1,\"left\":false}",
			n > 0 ? "," : "", n + 1, n
		);
	snprintf(text + used, sizeof(text) - used, "]}");
	assert_int_equal(parse(text), -EBADMSG);
	assert_int_equal(read_back.count, 0);
}

static void name_or_address_that_comes_again_replaces_the_one_before(void **state) {
	struct member moved = member_of(9, 9, NOW_S);

	(void)state;
	put(2, 2, NOW_S);
	put(3, 3, NOW_S);
	snprintf(moved.name, sizeof(moved.name), "n2");
	assert_true(member_list_put(&list, &moved)); // n2 has moved to another address
	assert_int_equal(list.count, 2);
	assert_int_equal(member_list_find(&list, "n2")->address.address[3], 9);
	put(9, 9, NOW_S); // n9 takes over n2's address
	assert_int_equal(list.count, 2);
	assert_null(member_list_find(&list, "n2"));
	assert_non_null(member_list_find(&list, "n9"));
}

static void full_list_prefers_different_hosts_and_who_was_proven_last(void **state) {
	(void)state;
	for (uint32_t n = 1; n <= MEMBER_LIST_MAX; n++)
		assert_true(put(n, n < 4 ? 1 : n, n == 9 ? NOW_S - 5 : NOW_S));
	assert_false(member_list_is_full(&list, NOW_S));
	assert_false(put(100, 7, NOW_S));  // its host is in the list already
	assert_true(put(101, 101, NOW_S)); // replaces one of three members of the same host
	assert_true(put(102, 102, NOW_S));
	assert_non_null(member_list_find(&list, "n9"));
	assert_true(put(103, 103, NOW_S)); // replaces the member that was proven longest ago
	assert_null(member_list_find(&list, "n9"));
	assert_true(member_list_is_full(&list, NOW_S));
	assert_false(put(104, 104, NOW_S));
	assert_int_equal(list.count, MEMBER_LIST_MAX);
	assert_true(put(104, 104, NOW_S + 1));
}

static void member_that_was_not_proven_for_seven_days_is_let_go(void **state) {
	(void)state;
	put(2, 2, NOW_S - MEMBER_LIST_KEEP_S);
	put(3, 3, NOW_S - MEMBER_LIST_KEEP_S - 1);
	put(4, 4, NOW_S);
	put(5, 5, 0);
	assert_int_equal(member_list_expire(&list, NOW_S), 2);
	assert_int_equal(list.count, 2);
	assert_non_null(member_list_find(&list, "n2"));
	assert_non_null(member_list_find(&list, "n4"));
}

static void time_that_is_later_than_now_stays_until_the_member_is_proven_anew(void **state) {
	(void)state;
	put(2, 2, NOW_S);
	assert_int_equal(member_list_expire(&list, 7), 0);
	assert_int_equal(list.members[0].proven_s, NOW_S);
	assert_int_equal(member_list_expire(&list, NOW_S + MEMBER_LIST_KEEP_S), 0);
	assert_int_equal(member_list_expire(&list, NOW_S + MEMBER_LIST_KEEP_S + 1), 1);
}

static void full_list_of_later_times_makes_room_for_who_is_proven_now(void **state) {
	(void)state;
	for (uint32_t n = 1; n <= MEMBER_LIST_MAX; n++)
		assert_true(put(n, n, NOW_S + 1000000000));
	assert_false(member_list_is_full(&list, NOW_S));
	for (uint32_t n = 1; n <= MEMBER_LIST_MAX; n++)
		assert_true(put(100 + n, 100 + n, NOW_S));
	assert_true(member_list_is_full(&list, NOW_S));
	assert_null(member_list_find(&list, "n1"));
}

static void digest_is_of_names_addresses_and_goodbyes_and_not_of_times_or_order(void **state) {
	uint64_t before;

	(void)state;
	put(2, 2, NOW_S);
	put(3, 3, NOW_S);
	before = member_list_digest(&list);
	member_list_remove_at(&list, 0);
	put(2, 2, NOW_S + 7);
	assert_int_equal(member_list_digest(&list), before);
	list.members[0].left = true;
	assert_int_not_equal(member_list_digest(&list), before);
	list.members[0].left = false;
	list.members[0].address.port++;
	assert_int_not_equal(member_list_digest(&list), before);
	list.members[0].address.port--;
	member_list_remove_at(&list, 1);
	assert_int_not_equal(member_list_digest(&list), before);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

UNIT_GROUP(member_list) {
	const struct CMUnitTest tests[] = {
		TEST(what_was_written_reads_the_same),
		TEST(the_longest_names_there_are_fit_into_the_file),
		TEST(list_of_another_cluster_or_node_is_not_taken),
		TEST(text_that_is_no_list_is_not_taken_in_parts),
		TEST(list_with_more_members_than_are_kept_is_not_taken),
		TEST(name_or_address_that_comes_again_replaces_the_one_before),
		TEST(full_list_prefers_different_hosts_and_who_was_proven_last),
		TEST(member_that_was_not_proven_for_seven_days_is_let_go),
		TEST(time_that_is_later_than_now_stays_until_the_member_is_proven_anew),
		TEST(full_list_of_later_times_makes_room_for_who_is_proven_now),
		TEST(digest_is_of_names_addresses_and_goodbyes_and_not_of_times_or_order),
	};

	return cmocka_run_group_tests_name("member_list", tests, NULL, NULL);
}
