// SPDX-License-Identifier: BSD-3-Clause
#include "lib/netif/fixture.h"

#include <support/cmocka.h>

#include <string.h>

static struct netif_choice *
choose(const struct netif_table *table, const char *ifname, const char *family, const char *peer) {
	struct netif_policy policy;
	struct netif_choice *choice;
	struct netif_error error = {""};

	fixture_policy(ifname, family, peer, &policy);
	if (netif_choose(table, &policy, &choice, &error) != 0)
		fail_msg("%s", error.text);
	return choice;
}

// Check the best `count` addresses of a machine, and destroy the table.
static void
expect(struct netif_table *table,
       const char *ifname,
       const char *peer,
       size_t count,
       const char *found) {
	struct netif_choice *choice = choose(table, ifname, NULL, peer);
	char text[FIXTURE_TEXT_BYTES];

	fixture_chosen(table, choice, count, text);
	assert_string_equal(text, found);
	netif_choice_destroy(choice);
	netif_table_destroy(table);
}

static void links_and_addresses_that_cannot_carry_are_dropped_with_the_reason(void **state) {
	static const struct fixture_link links[] = {
		{.name = "lo",
		 .class = NETIF_CLASS_LOOPBACK,
		 .addresses = {"127.0.0.1/8", "::1/128"}},
		{.name = "down",
		 .class = NETIF_CLASS_ETHERNET,
		 .flags = IFF_BROADCAST,
		 .addresses = {"10.0.0.1/24"}},
		{.name = "nocarrier",
		 .class = NETIF_CLASS_ETHERNET,
		 .flags = IFF_UP,
		 .addresses = {"10.1.0.1/24"}},
		{.name = "bond0", .class = NETIF_CLASS_BOND},
		{.name = "slave",
		 .class = NETIF_CLASS_ETHERNET,
		 .master_index = 4,
		 .addresses = {"10.2.0.1/24"}},
		{.name = "flagged",
		 .class = NETIF_CLASS_ETHERNET,
		 .flags = FIXTURE_UP | IFF_SLAVE,
		 .addresses = {"10.3.0.1/24"}},
		{.name = "br0", .class = NETIF_CLASS_BRIDGE},
		{.name = "port",
		 .class = NETIF_CLASS_ETHERNET,
		 .master_index = 7,
		 .addresses = {"10.4.0.1/24"}},
		{.name = "eth0",
		 .class = NETIF_CLASS_ETHERNET,
		 .addresses =
			 {"169.254.3.1/24", "fe80::1/64", "fd00::1/64+tentative",
			  "fd00::2/64+deprecated", "fd00::3/64+dadfailed+tentative"}},
		{.name = "docker0",
		 .class = NETIF_CLASS_CONTAINER_BRIDGE,
		 .addresses = {"172.17.0.1/16"}},
		{.name = NULL},
	};
	static const struct {
		const char *candidate;
		enum netif_reason reason;
	} rows[] = {
		{"lo 127.0.0.1/8", NETIF_ADDRESS_LOOPBACK},
		{"lo ::1/128", NETIF_ADDRESS_LOOPBACK},
		{"down 10.0.0.1/24", NETIF_LINK_DOWN},
		{"nocarrier 10.1.0.1/24", NETIF_LINK_WITHOUT_CARRIER},
		{"bond0", NETIF_LINK_WITHOUT_ADDRESS},
		{"slave 10.2.0.1/24", NETIF_LINK_IS_BOND_PORT},
		{"flagged 10.3.0.1/24", NETIF_LINK_IS_BOND_PORT},
		{"port 10.4.0.1/24", NETIF_LINK_IS_BRIDGE_PORT},
		{"eth0 169.254.3.1/24", NETIF_ADDRESS_LINK_LOCAL},
		{"eth0 fe80::1/64", NETIF_ADDRESS_LINK_LOCAL},
		{"eth0 fd00::1/64", NETIF_ADDRESS_TENTATIVE},
		{"eth0 fd00::2/64", NETIF_ADDRESS_DEPRECATED},
		{"eth0 fd00::3/64", NETIF_ADDRESS_DUPLICATE},
		{"docker0 172.17.0.1/16", NETIF_CONTAINER_ONLY},
	};
	struct netif_table *table = fixture_table(links);
	struct netif_choice *choice = choose(table, NULL, NULL, NULL);

	(void)state;
	assert_int_equal(choice->chosen_count, 0);
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		assert_string_equal(
			netif_reason_text(
				fixture_judgement(table, choice, rows[n].candidate)->reason
			),
			netif_reason_text(rows[n].reason)
		);
	netif_choice_destroy(choice);
	netif_table_destroy(table);
}

static void up_with_carrier_but_not_running_is_dropped(void **state) {
	static const struct fixture_link links[] = {
		{.name = "eth0",
		 .class = NETIF_CLASS_ETHERNET,
		 .flags = IFF_UP,
		 .addresses = {"10.0.0.1/24"}},
		{.name = NULL},
	};
	struct netif_table *table = fixture_table(links);
	struct netif_choice *choice;

	(void)state;
	table->links[0].has_carrier = true;
	choice = choose(table, NULL, NULL, NULL);
	assert_int_equal(choice->judgements[0].reason, NETIF_LINK_NOT_RUNNING);
	netif_choice_destroy(choice);
	netif_table_destroy(table);
}

static void what_is_dropped_by_default_is_taken_when_asked_for(void **state) {
	static const struct fixture_link links[] = {
		{.name = "lo", .class = NETIF_CLASS_LOOPBACK, .addresses = {"127.0.0.1/8"}},
		{.name = "eth0",
		 .class = NETIF_CLASS_ETHERNET,
		 .addresses = {"169.254.3.1/24", "fe80::1/64"}},
		{.name = "docker0",
		 .class = NETIF_CLASS_CONTAINER_BRIDGE,
		 .addresses = {"172.17.0.1/16"}},
		{.name = NULL},
	};
	static const struct {
		const char *ifname, *peer;
		const char *found;
	} rows[] = {
		{"lo", NULL, "lo 127.0.0.1/8"},
		{"127.0.0.0/8", NULL, "lo 127.0.0.1/8"},
		{NULL, "127.0.0.9", "lo 127.0.0.1/8"},
		{"docker", NULL, "docker0 172.17.0.1/16"},
		{"172.17.0.1", NULL, "docker0 172.17.0.1/16"},
		{"169.254.0.0/16", NULL, "eth0 169.254.3.1/24"},
		{"fe80::/10", NULL, "eth0 fe80::1/64"},
		{"0.0.0.0/0", "169.254.3.9", "eth0 169.254.3.1/24"},
		{"eth0", NULL, ""},  // an interface name does not select link-local addresses
		{"^eth0", NULL, ""}, // nor does an exclusion
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		expect(fixture_table(links), rows[n].ifname, rows[n].peer, 1, rows[n].found);
}

static void wires_come_before_all_else_then_speed_mtu_and_index(void **state) {
	static const struct fixture_link links[] = {
		{.name = "dummy0", .class = NETIF_CLASS_DUMMY, .addresses = {"10.0.0.1/24"}},
		{.name = "wg0",
		 .class = NETIF_CLASS_TUNNEL,
		 .speed_mbps = 400000,
		 .addresses = {"10.1.0.1/24"}},
		{.name = "veth0",
		 .class = NETIF_CLASS_VETH,
		 .speed_mbps = 10000,
		 .addresses = {"10.2.0.1/24"}},
		{.name = "z1",
		 .index = 30,
		 .class = NETIF_CLASS_ETHERNET,
		 .speed_mbps = 1000,
		 .mtu_bytes = 9000,
		 .addresses = {"10.3.0.1/24"}},
		{.name = "a2",
		 .index = 20,
		 .class = NETIF_CLASS_BOND,
		 .speed_mbps = 1000,
		 .mtu_bytes = 9000,
		 .addresses = {"10.4.0.1/24"}},
		{.name = "b1",
		 .index = 10,
		 .class = NETIF_CLASS_ETHERNET,
		 .speed_mbps = 1000,
		 .addresses = {"10.5.0.1/24"}},
		{.name = "fast",
		 .index = 40,
		 .class = NETIF_CLASS_IPOIB,
		 .speed_mbps = 200000,
		 .addresses = {"10.6.0.1/24"}},
		{.name = NULL},
	};

	(void)state;
	expect(fixture_table(links), NULL, NULL, 7,
	       "fast 10.6.0.1/24, a2 10.4.0.1/24, z1 10.3.0.1/24, b1 10.5.0.1/24, "
	       "veth0 10.2.0.1/24, wg0 10.1.0.1/24, dummy0 10.0.0.1/24");
}

static void the_choice_does_not_depend_on_the_kernels_order(void **state) {
	static const struct fixture_link one[] = {
		{.name = "eth0",
		 .index = 2,
		 .class = NETIF_CLASS_ETHERNET,
		 .addresses = {"10.0.0.1/24", "10.0.0.2/24"}},
		{.name = "eth1",
		 .index = 3,
		 .class = NETIF_CLASS_ETHERNET,
		 .addresses = {"10.1.0.1/24"}},
		{.name = NULL},
	};
	static const struct fixture_link other[] = {
		{.name = "eth1",
		 .index = 3,
		 .class = NETIF_CLASS_ETHERNET,
		 .addresses = {"10.1.0.1/24"}},
		{.name = "eth0",
		 .index = 2,
		 .class = NETIF_CLASS_ETHERNET,
		 .addresses = {"10.0.0.2/24", "10.0.0.1/24"}},
		{.name = NULL},
	};
	static const char found[] = "eth0 10.0.0.1/24, eth0 10.0.0.2/24, eth1 10.1.0.1/24";

	(void)state;
	expect(fixture_table(one), NULL, NULL, 3, found);
	expect(fixture_table(other), NULL, NULL, 3, found);
}

static void of_one_links_addresses_the_lasting_one_is_taken(void **state) {
	static const struct fixture_link links[] = {
		{.name = "eth0",
		 .class = NETIF_CLASS_ETHERNET,
		 .addresses =
			 {"10.0.0.9/24+secondary", "10.0.0.10/24+dynamic", "10.0.0.11/24",
			  "fd00::1/64", "fd00::2/64+secondary+dynamic"}},
		{.name = NULL},
	};

	(void)state;
	expect(fixture_table(links), NULL, NULL, 5,
	       "eth0 10.0.0.11/24, eth0 fd00::1/64, eth0 10.0.0.10/24, eth0 10.0.0.9/24, "
	       "eth0 fd00::2/64");
}

static void the_route_to_the_peer_beats_class_and_subnet(void **state) {
	static const struct fixture_link links[] = {
		{.name = "eth0",
		 .class = NETIF_CLASS_ETHERNET,
		 .speed_mbps = 100000,
		 .addresses = {"10.0.0.1/8"}},
		{.name = "wg0",
		 .class = NETIF_CLASS_TUNNEL,
		 .addresses = {"10.9.0.1/24", "10.9.0.2/24"}},
		{.name = NULL},
	};
	struct netif_table *table = fixture_table(links);

	(void)state;
	fixture_add_route(table, "10.200.0.1", 2, "10.9.0.2");
	expect(table, NULL, "10.200.0.1", 3, "wg0 10.9.0.2/24, wg0 10.9.0.1/24, eth0 10.0.0.1/8");
}

static void an_address_on_lo_that_the_kernel_sends_from_wins(void **state) {
	static const struct fixture_link links[] = {
		{.name = "lo",
		 .class = NETIF_CLASS_LOOPBACK,
		 .addresses = {"127.0.0.1/8", "192.0.2.7/32"}},
		{.name = "eth0", .class = NETIF_CLASS_ETHERNET, .addresses = {"10.0.0.1/31"}},
		{.name = NULL},
	};
	struct netif_table *table = fixture_table(links);

	(void)state;
	fixture_add_route(table, "192.0.2.8", 2, "192.0.2.7");
	expect(table, NULL, "192.0.2.8", 2, "lo 192.0.2.7/32, eth0 10.0.0.1/31");
}

static void unnumbered_links_leave_the_global_address_of_lo(void **state) {
	static const struct fixture_link links[] = {
		{.name = "lo",
		 .class = NETIF_CLASS_LOOPBACK,
		 .addresses = {"127.0.0.1/8", "192.0.2.7/32"}},
		{.name = "eth0", .class = NETIF_CLASS_ETHERNET, .addresses = {"fe80::1/64"}},
		{.name = NULL},
	};

	(void)state;
	expect(fixture_table(links), NULL, NULL, 2, "lo 192.0.2.7/32");
}

static void without_a_route_the_longest_subnet_with_the_peer_wins(void **state) {
	static const struct fixture_link links[] = {
		{.name = "eth0",
		 .class = NETIF_CLASS_ETHERNET,
		 .speed_mbps = 100000,
		 .addresses = {"10.0.0.1/8"}},
		{.name = "eth1", .class = NETIF_CLASS_ETHERNET, .addresses = {"10.1.0.1/30"}},
		{.name = "eth2", .class = NETIF_CLASS_ETHERNET, .addresses = {"10.1.0.5/30"}},
		{.name = NULL},
	};
	struct netif_table *table = fixture_table(links);
	struct netif_choice *choice;

	(void)state;
	expect(fixture_table(links), NULL, "10.1.0.6", 3,
	       "eth2 10.1.0.5/30, eth0 10.0.0.1/8, eth1 10.1.0.1/30");
	fixture_add_route(table, "10.1.0.6", 0, NULL);
	choice = choose(table, NULL, NULL, "10.1.0.6");
	assert_int_equal(choice->note_count, 1);
	assert_non_null(strstr(choice->notes[0], "no route (ENETUNREACH)"));
	netif_choice_destroy(choice);
	netif_table_destroy(table);
}

static void a_way_that_comes_later_in_the_list_is_noted(void **state) {
	static const struct fixture_link links[] = {
		{.name = "eth0", .class = NETIF_CLASS_ETHERNET, .addresses = {"10.0.0.1/24"}},
		{.name = "eth1", .class = NETIF_CLASS_ETHERNET, .addresses = {"10.1.0.1/24"}},
		{.name = NULL},
	};
	struct netif_table *table = fixture_table(links);
	struct netif_choice *choice;

	(void)state;
	fixture_add_route(table, "10.1.0.9", 2, "10.1.0.1");
	choice = choose(table, "eth0,eth1", NULL, "10.1.0.9");
	assert_string_equal(table->links[choice->judgements[choice->chosen[0]].link].name, "eth0");
	assert_int_equal(choice->note_count, 1);
	assert_non_null(strstr(choice->notes[0], "not chosen: it comes later in the list"));
	netif_choice_destroy(choice);
	netif_table_destroy(table);
}

static void a_way_that_does_not_qualify_is_noted(void **state) {
	static const struct fixture_link links[] = {
		{.name = "docker0",
		 .class = NETIF_CLASS_CONTAINER_BRIDGE,
		 .addresses = {"172.17.0.1/16"}},
		{.name = "eth0", .class = NETIF_CLASS_ETHERNET, .addresses = {"10.0.0.1/24"}},
		{.name = NULL},
	};
	struct netif_table *table = fixture_table(links);
	struct netif_choice *choice;

	(void)state;
	fixture_add_route(table, "172.17.0.9", 1, "172.17.0.1");
	choice = choose(table, NULL, NULL, "172.17.0.9");
	assert_string_equal(table->links[choice->judgements[choice->chosen[0]].link].name, "eth0");
	assert_int_equal(choice->note_count, 1);
	assert_non_null(
		strstr(choice->notes[0],
		       "is reached through docker0, which was not chosen: bridge without hardware")
	);
	netif_choice_destroy(choice);
	netif_table_destroy(table);
}

static void equal_subnets_fall_to_the_better_link(void **state) {
	static const struct fixture_link links[] = {
		{.name = "eth0",
		 .class = NETIF_CLASS_ETHERNET,
		 .speed_mbps = 1000,
		 .addresses = {"10.0.0.1/24"}},
		{.name = "eth1",
		 .class = NETIF_CLASS_ETHERNET,
		 .speed_mbps = 100000,
		 .addresses = {"10.0.0.2/24"}},
		{.name = NULL},
	};

	(void)state;
	expect(fixture_table(links), NULL, "10.0.0.9", 1, "eth1 10.0.0.2/24");
}

static void ranges_that_every_host_has_are_no_common_subnet(void **state) {
	static const struct fixture_link links[] = {
		{.name = "eth0", .class = NETIF_CLASS_VETH, .addresses = {"172.17.0.2/16"}},
		{.name = "virbr0",
		 .class = NETIF_CLASS_CONTAINER_BRIDGE,
		 .addresses = {"10.77.0.1/24"}},
		{.name = "ens1", .class = NETIF_CLASS_ETHERNET, .addresses = {"192.0.2.1/24"}},
		{.name = NULL},
	};
	static const struct fixture_link wired[] = {
		{.name = "slow", .class = NETIF_CLASS_ETHERNET, .addresses = {"172.17.0.2/16"}},
		{.name = "fast",
		 .class = NETIF_CLASS_ETHERNET,
		 .speed_mbps = 1000,
		 .addresses = {"192.0.2.1/24"}},
		{.name = NULL},
	};

	(void)state;
	expect(fixture_table(links), NULL, "172.17.0.9", 2,
	       "ens1 192.0.2.1/24, eth0 172.17.0.2/16");
	expect(fixture_table(links), "eth0,virbr0", "10.77.0.9", 1, "eth0 172.17.0.2/16");
	expect(fixture_table(wired), NULL, "172.17.0.9", 1, "slow 172.17.0.2/16");
}

static void a_list_prefers_its_earlier_items_and_exclusions_are_final(void **state) {
	static const struct fixture_link links[] = {
		{.name = "eth0",
		 .class = NETIF_CLASS_ETHERNET,
		 .speed_mbps = 100000,
		 .addresses = {"10.0.0.1/24"}},
		{.name = "eth1", .class = NETIF_CLASS_ETHERNET, .addresses = {"10.1.0.1/24"}},
		{.name = "veth2", .class = NETIF_CLASS_VETH, .addresses = {"10.2.0.1/24"}},
		{.name = NULL},
	};
	static const struct {
		const char *ifname, *found;
	} rows[] = {
		{"veth,eth", "veth2 10.2.0.1/24, eth0 10.0.0.1/24, eth1 10.1.0.1/24"},
		{"eth,^eth0", "eth1 10.1.0.1/24"},
		{"^eth0", "eth1 10.1.0.1/24, veth2 10.2.0.1/24"},
		{"^10.0.0.0/15", "veth2 10.2.0.1/24"},
		{"10.2.0.0/16,=eth1", "veth2 10.2.0.1/24, eth1 10.1.0.1/24"},
		{"^eth,=veth2", ""},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		expect(fixture_table(links), rows[n].ifname, NULL, 5, rows[n].found);
}

static void the_port_of_the_winning_item_is_the_choices(void **state) {
	static const struct fixture_link links[] = {
		{.name = "eth0",
		 .class = NETIF_CLASS_ETHERNET,
		 .flags = IFF_UP,
		 .addresses = {"10.0.0.1/24"}},
		{.name = "eth1", .class = NETIF_CLASS_ETHERNET, .addresses = {"10.1.0.1/24"}},
		{.name = NULL},
	};
	struct netif_table *table = fixture_table(links);
	struct netif_choice *choice = choose(table, "eth0:1111,eth1:2222", NULL, NULL);

	(void)state;
	assert_int_equal(choice->port, 2222);
	netif_choice_destroy(choice);
	netif_table_destroy(table);
}

static void an_existing_name_that_cannot_carry_is_no_choice_but_no_error(void **state) {
	static const struct fixture_link links[] = {
		{.name = "eth0",
		 .class = NETIF_CLASS_ETHERNET,
		 .flags = IFF_BROADCAST,
		 .addresses = {"10.0.0.1/24"}},
		{.name = "eth1", .class = NETIF_CLASS_ETHERNET, .addresses = {"10.1.0.1/24"}},
		{.name = NULL},
	};

	(void)state;
	expect(fixture_table(links), "eth0", NULL, 1, "");
}

static void the_family_of_setting_or_peer_decides(void **state) {
	static const struct fixture_link links[] = {
		{.name = "eth0",
		 .class = NETIF_CLASS_ETHERNET,
		 .addresses = {"10.0.0.1/24", "fd00::1/64"}},
		{.name = NULL},
	};
	struct netif_table *table = fixture_table(links);
	struct netif_choice *choice = choose(table, NULL, "ipv6", NULL);
	char text[FIXTURE_TEXT_BYTES];

	(void)state;
	fixture_chosen(table, choice, 5, text);
	assert_string_equal(text, "eth0 fd00::1/64");
	netif_choice_destroy(choice);
	expect(table, NULL, "fd01::1", 5, "eth0 fd00::1/64");
}

static void the_recorded_rack_is_understood(void **state) {
	static const char *const peers[] = {"10.2.0.77", "10.99.0.1", "fd10:1::77", NULL};
	static const struct {
		const char *ifname, *peer, *found;
	} rows[] = {
		{NULL, NULL, "eth3 10.4.0.5/24"},
		{"default-route", NULL, "eth3 10.4.0.5/24"},
		{"peer:10.99.0.1", NULL, "eth3 10.4.0.5/24"},
		{"bond", NULL, "bond0 10.1.0.5/24"},
		{NULL, "10.2.0.77", "bond0.100 10.2.0.5/24"},
		{NULL, "fd10:1::77", "bond0 fd10:1::5/64"},
		{"^eth", NULL, "br0 10.3.0.5/24"},
		{"^eth,br", NULL, "bond0 10.1.0.5/24"},
		{"docker", NULL, "docker0 172.17.0.1/16"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		expect(fixture_recording("rack", peers), rows[n].ifname, rows[n].peer, 1,
		       rows[n].found);
}

UNIT_GROUP(netif_tocsin) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_and_addresses_that_cannot_carry_are_dropped_with_the_reason),
		cmocka_unit_test(up_with_carrier_but_not_running_is_dropped),
		cmocka_unit_test(what_is_dropped_by_default_is_taken_when_asked_for),
		cmocka_unit_test(wires_come_before_all_else_then_speed_mtu_and_index),
		cmocka_unit_test(the_choice_does_not_depend_on_the_kernels_order),
		cmocka_unit_test(of_one_links_addresses_the_lasting_one_is_taken),
		cmocka_unit_test(the_route_to_the_peer_beats_class_and_subnet),
		cmocka_unit_test(an_address_on_lo_that_the_kernel_sends_from_wins),
		cmocka_unit_test(unnumbered_links_leave_the_global_address_of_lo),
		cmocka_unit_test(without_a_route_the_longest_subnet_with_the_peer_wins),
		cmocka_unit_test(a_way_that_comes_later_in_the_list_is_noted),
		cmocka_unit_test(a_way_that_does_not_qualify_is_noted),
		cmocka_unit_test(equal_subnets_fall_to_the_better_link),
		cmocka_unit_test(ranges_that_every_host_has_are_no_common_subnet),
		cmocka_unit_test(a_list_prefers_its_earlier_items_and_exclusions_are_final),
		cmocka_unit_test(the_port_of_the_winning_item_is_the_choices),
		cmocka_unit_test(an_existing_name_that_cannot_carry_is_no_choice_but_no_error),
		cmocka_unit_test(the_family_of_setting_or_peer_decides),
		cmocka_unit_test(the_recorded_rack_is_understood),
	};

	return cmocka_run_group_tests_name("netif_tocsin", tests, NULL, NULL);
}
