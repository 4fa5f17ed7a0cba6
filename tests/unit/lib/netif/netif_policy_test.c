// SPDX-License-Identifier: BSD-3-Clause
#include "lib/netif/fixture.h"

#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void settings_that_make_no_sense_are_refused(void **state) {
	static const struct {
		const char *ifname, *family, *peer;
		const char *quotes;
	} rows[] = {
		{"^", NULL, NULL, "TOCSIN_SOCKET_IFNAME"},
		{NULL, "", NULL, "TOCSIN_SOCKET_FAMILY: \"\""},
		{NULL, "ipx", NULL, "TOCSIN_SOCKET_FAMILY: \"ipx\""},
		{NULL, NULL, "300.1.2.3", "--peer: \"300.1.2.3\""},
		{NULL, NULL, "", "--peer: \"\" has no host: HOST[:PORT] is needed"},
		{NULL, NULL, "10.0.0.1 ", "--peer"},
		{NULL, NULL, "0.0.0.0", "--peer: \"0.0.0.0\" is the unspecified address"},
		{NULL, NULL, "[::]:80", "--peer: \"[::]:80\" is the unspecified address"},
		{NULL, NULL, "224.0.0.1", "\"224.0.0.1\" is a multicast address"},
		{NULL, NULL, "239.255.255.255", "is a multicast address"},
		{NULL, NULL, "ff02::1", "\"ff02::1\" is a multicast address"},
		{NULL, NULL, "::ffff:224.0.0.1", "is a multicast address"},
		{NULL, NULL, "255.255.255.255", "is the broadcast address"},
		{"eth,peer:ff02::1", NULL, NULL, "\"peer:ff02::1\" is a multicast address"},
		{NULL, "ipv4", "fd00::1", "--peer is IPv6, but TOCSIN_SOCKET_FAMILY asks for IPv4"},
		{NULL, "AF_INET6", "10.0.0.1",
		 "--peer is IPv4, but TOCSIN_SOCKET_FAMILY asks for IPv6"},
		{"10.0.0.0/8", "ipv6", NULL, "\"10.0.0.0/8\" is IPv4"},
		{"eth0,peer:fd00::1", "inet", NULL, "\"peer:fd00::1\" is IPv6"},
		{"fd00::/64", NULL, "10.0.0.1", "\"fd00::/64\" is IPv6, but --peer asks for IPv4"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct netif_tocsin_settings settings = {
			{rows[n].ifname, "TOCSIN_SOCKET_IFNAME"},
			{rows[n].family, "TOCSIN_SOCKET_FAMILY"},
			{rows[n].peer, "--peer"},
		};
		struct netif_policy policy = {.lookup_count = 77};
		struct netif_error error = {""};

		assert_int_equal(netif_policy_parse(&settings, &policy, &error), -EINVAL);
		if (strstr(error.text, rows[n].quotes) == NULL)
			fail_msg("row %zu: %s", n, error.text);
		assert_int_equal(policy.lookup_count, 77);
		assert_int_equal(netif_policy_parse(&settings, &policy, NULL), -EINVAL);
	}
}

static void families_are_accepted_in_either_case(void **state) {
	static const struct {
		const char *word;
		enum sock_addr_family family;
	} rows[] = {
		{"any", SOCK_ADDR_NONE},    {"ANY", SOCK_ADDR_NONE}, {"ipv4", SOCK_ADDR_V4},
		{"IPv4", SOCK_ADDR_V4},	    {"inet", SOCK_ADDR_V4},  {"AF_INET", SOCK_ADDR_V4},
		{"af_inet", SOCK_ADDR_V4},  {"IPv6", SOCK_ADDR_V6},  {"INET6", SOCK_ADDR_V6},
		{"AF_INET6", SOCK_ADDR_V6},
	};
	struct netif_policy policy;

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		fixture_policy(NULL, rows[n].word, NULL, &policy);
		assert_int_equal(policy.family, rows[n].family);
	}
}

static void a_word_that_is_nearly_default_route_is_told(void **state) {
	static const struct fixture_link links[] = {
		{.name = "lo", .class = NETIF_CLASS_LOOPBACK, .addresses = {"127.0.0.1/8"}},
		{.name = NULL},
	};
	struct netif_table *table = fixture_table(links);
	struct netif_choice *choice = NULL;
	struct netif_policy policy;
	struct netif_error error;

	(void)state;
	fixture_policy("default-rout", NULL, NULL, &policy);
	assert_int_equal(netif_choose(table, &policy, &choice, &error), -ENOENT);
	assert_non_null(strstr(error.text, "; did you mean default-route?\n"));
	fixture_policy("eth", NULL, NULL, &policy);
	assert_int_equal(netif_choose(table, &policy, &choice, &error), -ENOENT);
	assert_null(strstr(error.text, "did you mean"));
	netif_table_destroy(table);
}

static void an_excluded_network_of_the_other_family_is_no_conflict(void **state) {
	struct netif_policy policy;

	(void)state;
	fixture_policy("^fd00::/64", "ipv4", NULL, &policy);
	assert_int_equal(policy.family, SOCK_ADDR_V4);
}

static void each_peer_is_looked_up_once_and_defaults_only_when_asked(void **state) {
	struct netif_policy policy;
	struct netif_query query;

	(void)state;
	fixture_policy(
		"peer:10.0.0.1,peer:10.0.0.2:9,peer:10.0.0.1:7", NULL, "10.0.0.2:4000", &policy
	);
	netif_policy_query(&policy, &query);
	assert_int_equal(query.peer_count, 2);
	assert_false(query.want_defaults);
	fixture_policy("default-route", NULL, NULL, &policy);
	netif_policy_query(&policy, &query);
	assert_int_equal(query.peer_count, 0);
	assert_true(query.want_defaults);
}

static void an_item_that_names_nothing_is_an_error_listing_what_exists(void **state) {
	static const struct fixture_link links[] = {
		{.name = "lo", .class = NETIF_CLASS_LOOPBACK, .addresses = {"127.0.0.1/8"}},
		{.name = "eth0", .class = NETIF_CLASS_ETHERNET, .addresses = {"10.0.0.1/24"}},
		{.name = "eth1", .class = NETIF_CLASS_ETHERNET},
		{.name = NULL},
	};
	static const char *const items[] = {
		"ib",	  "=eth",   "10.1.0.0/16", "default-route", "peer:192.0.2.1",
		"eth,ib", "^docker"};
	struct netif_table *table = fixture_table(links);
	struct netif_choice *choice = NULL;
	struct netif_policy policy;

	(void)state;
	for (size_t n = 0; n < sizeof(items) / sizeof(items[0]); n++) {
		struct netif_error error = {""};

		fixture_policy(items[n], NULL, NULL, &policy);
		assert_int_equal(netif_choose(table, &policy, &choice, &error), -ENOENT);
		assert_null(choice);
		assert_non_null(strstr(
			error.text,
			"\nInterfaces of this machine:\n  lo 127.0.0.1/8\n  eth0 10.0.0.1/24\n  "
			"eth1"
		));
		assert_non_null(
			strstr(error.text, policy.selector.items[policy.selector.count - 1].text)
		);
		assert_int_equal(netif_choose(table, &policy, &choice, NULL), -ENOENT);
	}
	netif_table_destroy(table);
}

static void a_long_list_of_what_exists_says_how_many_more(void **state) {
	struct fixture_link links[101] = {0};
	char names[100][16];
	struct netif_table *table;
	struct netif_choice *choice;
	struct netif_policy policy;
	struct netif_error error;

	(void)state;
	for (size_t n = 0; n < 100; n++) {
		snprintf(names[n], sizeof(names[n]), "fifteen-chars%02zu", n);
		links[n].name = names[n];
	}
	table = fixture_table(links);
	fixture_policy("ib", NULL, NULL, &policy);
	assert_int_equal(netif_choose(table, &policy, &choice, &error), -ENOENT);
	assert_non_null(strstr(error.text, "\n  and "));
	assert_true(strlen(error.text) < sizeof(error.text));
	netif_table_destroy(table);
}

UNIT_GROUP(netif_policy) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_that_make_no_sense_are_refused),
		cmocka_unit_test(families_are_accepted_in_either_case),
		cmocka_unit_test(a_word_that_is_nearly_default_route_is_told),
		cmocka_unit_test(an_excluded_network_of_the_other_family_is_no_conflict),
		cmocka_unit_test(each_peer_is_looked_up_once_and_defaults_only_when_asked),
		cmocka_unit_test(an_item_that_names_nothing_is_an_error_listing_what_exists),
		cmocka_unit_test(a_long_list_of_what_exists_says_how_many_more),
	};

	return cmocka_run_group_tests_name("netif_policy", tests, NULL, NULL);
}
