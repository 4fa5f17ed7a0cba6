// SPDX-License-Identifier: BSD-3-Clause
#include "lib/netif/fixture.h"

#include <lib/netif/selector.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int parse(const char *value, struct netif_selector *selector, struct netif_error *error) {
	struct netif_setting setting = {value, "TOCSIN_SOCKET_IFNAME"};

	return netif_selector_parse(&setting, selector, error);
}

static void malformed_lists_are_errors_that_quote_the_item(void **state) {
	static const struct {
		const char *value;
		const char *quotes; // text that the error must contain
	} rows[] = {
		{"", "\"\""},
		{"^", "\"^\""},
		{"=", "\"=\""},
		{"^=", "\"^=\""},
		{",", "item 1 of \",\" is empty"},
		{"eth0,,ib", "item 2 of \"eth0,,ib\" is empty"},
		{"eth0,", "item 2 of \"eth0,\" is empty"},
		{"^eth0,^ib", "\"^ib\""},
		{"eth0,^", "item 2 of \"eth0,^\" is empty"},
		{"=eth0,=ib", "\"=ib\""},
		{"eth0,=", "\"=\""},
		{"averylonginterfacename", "\"averylonginterfacename\""},
		{"eth0,has space", "\"has space\""},
		{"tab\there", "\"tab\\there\""},
		{"eth0:", "\"eth0:\""},
		{"eth0:0", "\"eth0:0\""},
		{"eth0:65536", "\"eth0:65536\""},
		{"eth0:-1", "\"eth0:-1\""},
		{"eth0:12x", "\"eth0:12x\""},
		{":4000", "\":4000\""},
		{"=a:b:5", "\"a:b:5\""},
		{"10.0.0.0/33", "\"10.0.0.0/33\""},
		{"10.0.0.0/", "\"10.0.0.0/\""},
		{"10.0.0.0/-1", "\"10.0.0.0/-1\""},
		{"10.0.0.1/8", "\"10.0.0.1/8\""}, // ambiguous: an address or a network?
		{"fd00::/129", "\"fd00::/129\""},
		{"/8", "\"/8\""},
		{"eth0/8", "\"eth0/8\""},
		{"300.1.2.3", "\"300.1.2.3\""},
		{"10.1.2", "\"10.1.2\""},
		{"10.1.2.3:0x", "\"10.1.2.3:0x\""},
		{"fd00::g", "\"fd00::g\""},
		{"[fd00::1", "\"[fd00::1\""},
		{"[fd00::1]x", "\"[fd00::1]x\""},
		{"[fd00::1]:99999", "\"[fd00::1]:99999\""},
		{"peer:", "\"peer:\""},
		{"peer:4000", "\"peer:4000\""},
		{"peer:10.0.0", "\"peer:10.0.0\""},
		{"peer:fe80::1%nosuchlink", "\"peer:fe80::1%nosuchlink\""},
		{"default-route:", "\"default-route:\""},
		{"default-route:x", "\"default-route:x\""},
		{"\xff\xfe/", "\"\\xff\\xfe/\""},
		{"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "more than 16"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct netif_selector selector = {.count = 77};
		struct netif_error error = {""};

		if (parse(rows[n].value, &selector, &error) != -EINVAL)
			fail_msg("row %zu: \"%s\" was read", n, rows[n].value);
		if (strstr(error.text, rows[n].quotes) == NULL ||
		    strstr(error.text, "TOCSIN_SOCKET_IFNAME") == NULL)
			fail_msg("row %zu: %s", n, error.text);
		assert_int_equal(selector.count, 77); // unchanged
		assert_int_equal(parse(rows[n].value, &selector, NULL), -EINVAL);
	}
}

static void long_values_are_cut_in_the_complaint(void **state) {
	static char value[100000];
	struct netif_selector selector;
	struct netif_error error;

	(void)state;
	memset(value, 'x', sizeof(value) - 1);
	assert_int_equal(parse(value, &selector, &error), -EINVAL);
	assert_true(strlen(error.text) < 300);
}

static void items_are_read_as_what_they_are(void **state) {
	static const struct {
		const char *value;
		enum netif_item_kind kind;
		bool excludes;
		const char *name;
		uint16_t port;
	} rows[] = {
		{"e", NETIF_ITEM_PREFIX, false, "e", 0},
		{"eth", NETIF_ITEM_PREFIX, false, "eth", 0},
		{"^eth", NETIF_ITEM_PREFIX, true, "eth", 0},
		{"=eth0", NETIF_ITEM_NAME, false, "eth0", 0},
		{"^=eth0", NETIF_ITEM_NAME, true, "eth0", 0},
		{"fifteen-chars15", NETIF_ITEM_PREFIX, false, "fifteen-chars15", 0},
		{"eth0:4000", NETIF_ITEM_PREFIX, false, "eth0", 4000},
		{"bond0.100", NETIF_ITEM_PREFIX, false, "bond0.100", 0},
		{"=peer:65535", NETIF_ITEM_NAME, false, "peer", 65535},
		{"=default-route", NETIF_ITEM_NAME, false, "default-route", 0},
		{"default-route", NETIF_ITEM_DEFAULT_ROUTE, false, "", 0},
		{"default-route:99", NETIF_ITEM_DEFAULT_ROUTE, false, "", 99},
		{"default-route2", NETIF_ITEM_PREFIX, false, "default-route2", 0},
		{"peer:10.0.0.1", NETIF_ITEM_PEER, false, "", 0},
		{"peer:10.0.0.1:80", NETIF_ITEM_PEER, false, "", 80},
		{"peer:fd00::1", NETIF_ITEM_PEER, false, "", 0},
		{"peer:[fd00::1]:80", NETIF_ITEM_PEER, false, "", 80},
		{"10.0.0.0/8", NETIF_ITEM_NETWORK, false, "", 0},
		{"^10.0.0.0/8", NETIF_ITEM_NETWORK, true, "", 0},
		{"0.0.0.0/0", NETIF_ITEM_NETWORK, false, "", 0},
		{"10.0.0.0/8:7", NETIF_ITEM_NETWORK, false, "", 7},
		{"fd00::/64:7", NETIF_ITEM_NETWORK, false, "", 7},
		{"10.1.2.3", NETIF_ITEM_NETWORK, false, "", 0},
		{"10.1.2.3:7", NETIF_ITEM_NETWORK, false, "", 7},
		{"[fd00::1]:7", NETIF_ITEM_NETWORK, false, "", 7},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct netif_selector selector;
		struct netif_error error;

		if (parse(rows[n].value, &selector, &error) != 0)
			fail_msg("row %zu: %s", n, error.text);
		assert_int_equal(selector.count, 1);
		assert_int_equal(selector.items[0].kind, rows[n].kind);
		assert_int_equal(selector.items[0].excludes, rows[n].excludes);
		assert_string_equal(selector.items[0].name, rows[n].name);
		assert_int_equal(selector.items[0].port, rows[n].port);
	}
}

static void marks_stand_before_the_list_or_before_an_item(void **state) {
	struct netif_selector selector;

	(void)state;
	assert_int_equal(parse("^a,=b,10.0.0.0/8", &selector, NULL), 0);
	assert_true(selector.items[0].excludes && selector.items[1].excludes);
	assert_true(selector.items[2].excludes);
	assert_int_equal(selector.items[1].kind, NETIF_ITEM_NAME);
	assert_int_equal(parse("a,^=b,=c", &selector, NULL), 0);
	assert_int_equal(selector.items[0].kind, NETIF_ITEM_PREFIX);
	assert_true(selector.items[1].excludes && selector.items[1].kind == NETIF_ITEM_NAME);
	assert_false(selector.items[2].excludes);
}

static void no_value_is_an_empty_selector(void **state) {
	struct netif_selector selector = {.count = 1};

	(void)state;
	assert_int_equal(parse(NULL, &selector, NULL), 0);
	assert_int_equal(selector.count, 0);
}

static void items_match_names_addresses_and_ways(void **state) {
	static const struct fixture_link links[] = {
		{.name = "eth0", .addresses = {"10.0.0.1/24"}},
		{.name = "eth1", .addresses = {"10.1.0.1/24", "fd00::1/64"}},
		{.name = "eth10", .addresses = {"fe80::5/64"}},
		{.name = NULL},
	};
	static const struct {
		const char *value;
		const char *matched; // one digit per address, in the order eth0, eth1, eth1, eth10
	} rows[] = {
		{"eth1", "0111"},	    {"=eth1", "0110"},		{"eth", "1111"},
		{"10.0.0.0/8", "1100"},	    {"10.1.0.0/16", "0100"},	{"10.1.0.1", "0100"},
		{"0.0.0.0/0", "1100"},	    {"::/0", "0011"},		{"fe80::/10", "0001"},
		{"fe80::5", "0001"},	    {"default-route", "0110"},	{"peer:192.0.2.1", "0100"},
		{"peer:192.0.2.2", "1000"}, {"peer:192.0.2.3", "0000"}, {"peer:192.0.2.4", "0000"},
		{"nosuch", "0000"},
	};
	struct netif_table *table = fixture_table(links);

	(void)state;
	fixture_add_default(table, SOCK_ADDR_V4, 2, 100);
	fixture_add_default(table, SOCK_ADDR_V4, 1, 200); // a higher metric is worse
	fixture_add_default(table, SOCK_ADDR_V6, 2, 1024);
	// Through eth0, with the address of eth1 as source.
	fixture_add_route(table, "192.0.2.1", 1, "10.1.0.1");
	fixture_add_route(table, "192.0.2.2", 1, NULL);
	fixture_add_route(table, "192.0.2.3", 0, NULL); // unreachable; 192.0.2.4 has no route entry
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct netif_selector selector;
		char matched[8] = "";

		assert_int_equal(parse(rows[n].value, &selector, NULL), 0);
		for (size_t m = 0; m < table->address_count; m++) {
			const struct netif_address *address = &table->addresses[m];

			matched[m] = netif_item_matches(
					     &selector.items[0], table,
					     &table->links[address->link], address
				     )
					     ? '1'
					     : '0';
		}
		if (strcmp(matched, rows[n].matched) != 0)
			fail_msg("%s matches %s", rows[n].value, matched);
	}
	netif_table_destroy(table);
}

UNIT_GROUP(netif_selector) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(malformed_lists_are_errors_that_quote_the_item),
		cmocka_unit_test(long_values_are_cut_in_the_complaint),
		cmocka_unit_test(items_are_read_as_what_they_are),
		cmocka_unit_test(marks_stand_before_the_list_or_before_an_item),
		cmocka_unit_test(no_value_is_an_empty_selector),
		cmocka_unit_test(items_match_names_addresses_and_ways),
	};

	return cmocka_run_group_tests_name("netif_selector", tests, NULL, NULL);
}
