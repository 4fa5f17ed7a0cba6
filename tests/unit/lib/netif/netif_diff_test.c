// SPDX-License-Identifier: BSD-3-Clause
#include "lib/netif/fixture.h"

#include <lib/netif/diff.h>
#include <support/cmocka.h>

#include <linux/if_addr.h>
#include <stdio.h>
#include <string.h>

static void collect(void *context, const struct netif_change *change) {
	char ip[SOCK_ADDR_TEXT_BYTES] = "";
	char *text = context;
	size_t used = strlen(text);

	if (change->address != NULL)
		sock_addr_format_host(&change->address->address, ip);
	snprintf(
		text + used, FIXTURE_TEXT_BYTES - used, "%s%s %s%s%s", used == 0 ? "" : "; ",
		change->link == NULL ? "-" : change->link->name, netif_change_text(change->kind),
		ip[0] == '\0' ? "" : " ", ip
	);
}

static void expect(struct netif_table *before, struct netif_table *after, const char *changes) {
	char text[FIXTURE_TEXT_BYTES] = "";

	assert_int_equal(netif_diff(before, after, collect, text), 0);
	assert_string_equal(text, changes);
	netif_table_destroy(before);
	netif_table_destroy(after);
}

static const struct fixture_link plain[] = {
	{.name = "eth0", .addresses = {"10.0.0.1/24", "10.0.0.2/24"}},
	{.name = "eth1", .addresses = {"10.1.0.1/24"}},
	{.name = NULL},
};

static void equal_tables_have_no_difference(void **state) {
	(void)state;
	expect(fixture_table(plain), fixture_table(plain), "");
	expect(fixture_recording("rack", NULL), fixture_recording("rack", NULL), "");
}

static void the_kernels_order_is_no_difference(void **state) {
	static const struct fixture_link turned[] = {
		{.name = "eth1", .index = 2, .addresses = {"10.1.0.1/24"}},
		{.name = "eth0", .index = 1, .addresses = {"10.0.0.2/24", "10.0.0.1/24"}},
		{.name = NULL},
	};

	(void)state;
	expect(fixture_table(plain), fixture_table(turned), "");
}

static void what_comes_goes_and_changes_is_reported(void **state) {
	static const struct fixture_link later[] = {
		{.name = "eth0",
		 .flags = IFF_BROADCAST,
		 .addresses = {"10.0.0.1/24+tentative", "10.0.0.3/24"}},
		{.name = "eth7", .index = 7, .addresses = {"10.7.0.1/24"}},
		{.name = NULL},
	};

	(void)state;
	expect(fixture_table(plain), fixture_table(later),
	       "eth0 link changed; eth1 link removed; eth7 link added; "
	       "eth0 address changed 10.0.0.1; eth0 address removed 10.0.0.2; "
	       "eth0 address added 10.0.0.3; eth1 address removed 10.1.0.1; "
	       "eth7 address added 10.7.0.1");
}

static void another_prefix_is_another_address(void **state) {
	static const struct fixture_link narrower[] = {
		{.name = "eth0", .addresses = {"10.0.0.1/24", "10.0.0.2/25"}},
		{.name = "eth1", .addresses = {"10.1.0.1/24"}},
		{.name = NULL},
	};

	(void)state;
	expect(fixture_table(plain), fixture_table(narrower),
	       "eth0 address removed 10.0.0.2; eth0 address added 10.0.0.2");
}

static void routes_are_compared_as_a_whole(void **state) {
	struct netif_table *before = fixture_table(plain);
	struct netif_table *after = fixture_table(plain);
	struct netif_table *again = fixture_table(plain);

	(void)state;
	fixture_add_route(before, "192.0.2.1", 1, "10.0.0.1");
	fixture_add_route(after, "192.0.2.1", 2, "10.1.0.1");
	fixture_add_default(again, SOCK_ADDR_V4, 1, 100);
	expect(before, after, "- routes changed");
	expect(fixture_table(plain), again, "- routes changed");
}

static void everything_gone_is_reported_link_by_link(void **state) {
	static const struct fixture_link none[] = {{.name = NULL}};

	(void)state;
	expect(fixture_table(plain), fixture_table(none),
	       "eth0 link removed; eth1 link removed; eth0 address removed 10.0.0.1; "
	       "eth0 address removed 10.0.0.2; eth1 address removed 10.1.0.1");
	expect(fixture_table(none), fixture_table(none), "");
}

UNIT_GROUP(netif_diff) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_tables_have_no_difference),
		cmocka_unit_test(the_kernels_order_is_no_difference),
		cmocka_unit_test(what_comes_goes_and_changes_is_reported),
		cmocka_unit_test(another_prefix_is_another_address),
		cmocka_unit_test(routes_are_compared_as_a_whole),
		cmocka_unit_test(everything_gone_is_reported_link_by_link),
	};

	return cmocka_run_group_tests_name("netif_diff", tests, NULL, NULL);
}
