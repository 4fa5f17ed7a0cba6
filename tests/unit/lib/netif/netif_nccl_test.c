// SPDX-License-Identifier: BSD-3-Clause
#include "lib/netif/fixture.h"

#include <lib/netif/nccl.h>
#include <support/cmocka.h>

#include <stdio.h>
#include <string.h>

// One case: three settings, and the addresses found, in order.
struct row {
	const char *ifname;
	const char *family;
	const char *comm_id;
	const char *found;
};

static struct netif_choice *
choose(const struct netif_table *table, const char *ifname, const char *family, const char *comm_id
) {
	struct netif_nccl_settings settings = {
		{ifname, "NCCL_SOCKET_IFNAME"},
		{family, "NCCL_SOCKET_FAMILY"},
		{comm_id, "NCCL_COMM_ID"},
	};
	struct netif_choice *choice;

	assert_int_equal(netif_choose_nccl(table, &settings, &choice), 0);
	return choice;
}

static void check_rows(struct netif_table *table, const struct row *rows, size_t count) {
	char text[FIXTURE_TEXT_BYTES];

	for (size_t n = 0; n < count; n++) {
		struct netif_choice *choice =
			choose(table, rows[n].ifname, rows[n].family, rows[n].comm_id);

		fixture_chosen(table, choice, NETIF_CHOSEN_MAX, text);
		if (strcmp(text, rows[n].found) != 0)
			fail_msg(
				"row %zu (%s, %s, %s): \"%s\", not \"%s\"", n,
				rows[n].ifname == NULL ? "-" : rows[n].ifname,
				rows[n].family == NULL ? "-" : rows[n].family,
				rows[n].comm_id == NULL ? "-" : rows[n].comm_id, text, rows[n].found
			);
		netif_choice_destroy(choice);
	}
	netif_table_destroy(table);
}

static const struct fixture_link server[] = {
	{.name = "lo", .addresses = {"127.0.0.1/8", "::1/128"}},
	{.name = "eth0", .addresses = {"10.0.0.1/24", "10.0.1.1/24", "fd00::1/64", "fe80::1/64"}},
	{.name = "eth1", .flags = IFF_BROADCAST, .addresses = {"10.1.0.1/24"}},
	{.name = "docker0", .addresses = {"172.17.0.1/16"}},
	{.name = "eno1", .addresses = {"fd01::1/64"}},
	{.name = NULL},
};

static void names_are_prefixes_in_kernel_order_with_one_address_each(void **state) {
	static const struct row rows[] = {
		{"eth", NULL, NULL, "eth0 10.0.0.1/24, eth1 10.1.0.1/24"},
		// One letter: not set.
		{"l", NULL, NULL, "eth0 10.0.0.1/24, eth1 10.1.0.1/24, eno1 fd01::1/64"},
		{"eth1,eth0", NULL, NULL, "eth0 10.0.0.1/24, eth1 10.1.0.1/24"},
		{"en", NULL, NULL, "eno1 fd01::1/64"},
		{"^eth", NULL, NULL, "lo 127.0.0.1/8, docker0 172.17.0.1/16, eno1 fd01::1/64"},
		{"^eth,lo,docker", NULL, NULL, "eno1 fd01::1/64"},
		{"=eth", NULL, NULL, ""},
		{"=eth1", NULL, NULL, "eth1 10.1.0.1/24"},
		{"^=eth0", NULL, NULL,
		 "lo 127.0.0.1/8, eth1 10.1.0.1/24, docker0 172.17.0.1/16, eno1 fd01::1/64"},
		{"=^eth0", NULL, NULL, ""},
		{"nosuch", NULL, NULL, ""}, // set: only what matches is used, even if nothing does
	};

	(void)state;
	check_rows(fixture_table(server), rows, sizeof(rows) / sizeof(rows[0]));
}

static void lists_without_a_name_match_everything_or_nothing(void **state) {
	static const char all[] = "lo 127.0.0.1/8, eth0 10.0.0.1/24, eth1 10.1.0.1/24, "
				  "docker0 172.17.0.1/16, eno1 fd01::1/64";
	static const char others[] = "eth0 10.0.0.1/24, eth1 10.1.0.1/24, eno1 fd01::1/64";
	static const struct row rows[] = {
		{"=,", NULL, NULL, all},   {"^=", NULL, NULL, ""},     {"^,", NULL, NULL, ""},
		{",,", NULL, NULL, all},   {":4000", NULL, NULL, all}, {"^", NULL, NULL, others},
		{"=", NULL, NULL, others}, {"", NULL, NULL, others},   {NULL, NULL, NULL, others},
	};

	(void)state;
	check_rows(fixture_table(server), rows, sizeof(rows) / sizeof(rows[0]));
}

static void ports_are_read_over(void **state) {
	static const struct row rows[] = {
		{"eth1:4000", NULL, NULL, "eth1 10.1.0.1/24"},
		{"=eth1:4000,eth0:x:y", NULL, NULL, "eth0 10.0.0.1/24, eth1 10.1.0.1/24"},
		{"^eth0:1,lo:2,docker", NULL, NULL, "eth1 10.1.0.1/24, eno1 fd01::1/64"},
		{":9,eth1", NULL, NULL, "eth1 10.1.0.1/24"},
	};

	(void)state;
	check_rows(fixture_table(server), rows, sizeof(rows) / sizeof(rows[0]));
}

static void a_name_too_long_for_any_place_matches_nothing(void **state) {
	static char name[200];
	struct row row = {name, NULL, NULL, ""};

	(void)state;
	memset(name, 'e', sizeof(name) - 1);
	check_rows(fixture_table(server), &row, 1);
}

static void only_the_first_sixteen_items_count(void **state) {
	static const struct row rows[] = {
		{"a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,eth1", NULL, NULL, "eth1 10.1.0.1/24"},
		{"a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,eth1", NULL, NULL, ""},
	};

	(void)state;
	check_rows(fixture_table(server), rows, sizeof(rows) / sizeof(rows[0]));
}

static void family_filters_and_a_word_that_is_none_is_passed_over(void **state) {
	static const struct row rows[] = {
		{"eth", "AF_INET6", NULL, "eth0 fd00::1/64"},
		{"eth", "AF_INET", NULL, "eth0 10.0.0.1/24, eth1 10.1.0.1/24"},
		{"eth", "inet6", NULL, "eth0 10.0.0.1/24, eth1 10.1.0.1/24"},
		{"=eno1", "AF_INET", NULL, ""},
		{"lo", "AF_INET6", NULL, ""}, // ::1 is never used
		{NULL, "AF_INET6", NULL, "eth0 fd00::1/64, eno1 fd01::1/64"},
	};
	struct netif_table *table = fixture_table(server);
	struct netif_choice *choice = choose(table, NULL, "inet6", NULL);

	(void)state;
	assert_int_equal(choice->note_count, 1);
	assert_non_null(strstr(choice->notes[0], "\"inet6\""));
	netif_choice_destroy(choice);
	check_rows(table, rows, sizeof(rows) / sizeof(rows[0]));
}

static void without_names_ib_comes_first_then_others_then_docker_then_lo(void **state) {
	static const struct fixture_link with_ib[] = {
		{.name = "eth0", .addresses = {"10.0.0.1/24"}},
		{.name = "ib0", .addresses = {"10.9.0.1/24"}},
		{.name = "ibs5", .addresses = {"10.8.0.1/24"}},
		{.name = NULL},
	};
	static const struct fixture_link only_docker[] = {
		{.name = "lo", .addresses = {"127.0.0.1/8"}},
		{.name = "docker0", .addresses = {"172.17.0.1/16"}},
		{.name = NULL},
	};
	static const struct fixture_link only_lo[] = {
		{.name = "lo", .addresses = {"127.0.0.1/8", "::1/128"}},
		{.name = NULL},
	};
	static const struct row ib = {
		NULL, NULL, "10.0.0.9:1", "ib0 10.9.0.1/24, ibs5 10.8.0.1/24"};
	static const struct row docker = {NULL, NULL, NULL, "docker0 172.17.0.1/16"};
	static const struct row lo = {NULL, NULL, NULL, "lo 127.0.0.1/8"};
	static const struct row none = {NULL, "AF_INET6", NULL, ""};

	(void)state;
	check_rows(fixture_table(with_ib), &ib, 1);
	check_rows(fixture_table(only_docker), &docker, 1);
	check_rows(fixture_table(only_lo), &lo, 1);
	check_rows(fixture_table(only_lo), &none, 1);
}

static void the_subnet_step_yields_one_whatever_family_and_name(void **state) {
	static const struct row rows[] = {
		{NULL, NULL, "10.1.0.77:1234", "eth1 10.1.0.1/24"},
		{NULL, NULL, "10.1.0.77", "eth1 10.1.0.1/24"},
		{NULL, NULL, "10.1.0.77:port", "eth1 10.1.0.1/24"},
		// The source address is not the first of eth0.
		{NULL, NULL, "10.0.1.9:1", "eth0 10.0.1.1/24"},
		{NULL, NULL, "172.17.44.5:1", "docker0 172.17.0.1/16"},
		{NULL, NULL, "127.0.0.1:1", "lo 127.0.0.1/8"},
		{NULL, "AF_INET6", "10.1.0.77:1", "eth1 10.1.0.1/24"},
		{NULL, NULL, "[fd01::5]:1", "eno1 fd01::1/64"},
		{NULL, NULL, "[::1]:1", "lo ::1/128"},
		{NULL, NULL, "[fe80::7%eth0]:1", "eth0 fe80::1/64"},
		// The interface names take precedence over the peer.
		{"eth0", NULL, "10.1.0.77:1", "eth0 10.0.0.1/24"},
	};

	(void)state;
	check_rows(fixture_table(server), rows, sizeof(rows) / sizeof(rows[0]));
}

static void link_local_subnets_differ_by_scope(void **state) {
	static const struct fixture_link twins[] = {
		{.name = "eth0", .addresses = {"fe80::1/64"}},
		{.name = "eth1", .addresses = {"fe80::2/64"}},
		{.name = NULL},
	};
	static const struct row rows[] = {
		{NULL, NULL, "[fe80::9%eth1]:1", "eth1 fe80::2/64"},
		{NULL, NULL, "[fe80::9]:1",
		 "eth0 fe80::1/64, eth1 fe80::2/64"}, // no scope: no link matches
	};

	(void)state;
	check_rows(fixture_table(twins), rows, sizeof(rows) / sizeof(rows[0]));
}

static void prefixes_of_all_lengths_match(void **state) {
	static const struct fixture_link odd[] = {
		{.name = "a0", .addresses = {"10.0.0.1/32", "fd00::1/128"}},
		{.name = "b0", .addresses = {"10.0.0.4/30"}},
		{.name = "c0", .addresses = {"192.0.2.1/0"}},
		{.name = NULL},
	};
	static const struct row rows[] = {
		{NULL, NULL, "10.0.0.1:1", "a0 10.0.0.1/32"},
		{NULL, NULL, "10.0.0.7:1", "b0 10.0.0.4/30"},
		{NULL, NULL, "10.0.0.8:1", "c0 192.0.2.1/0"},
		{NULL, NULL, "[fd00::1]:1", "a0 fd00::1/128"},
	};

	(void)state;
	check_rows(fixture_table(odd), rows, sizeof(rows) / sizeof(rows[0]));
}

static void a_malformed_comm_id_is_reported_and_skipped(void **state) {
	static const char *const malformed[] = {
		"::::",
		"[fd00::1",
		"[nonsense]:1",
		"[]:1",
		"[fd00::1%]:1",
		"[fe80::1%nosuch]:1",
		"[fe80::1%averylonginterfacename]:1",
		",,",
		":80",
		"0123456789012345678901234567890123456789012345678901234567890123456789:1",
		"no host has this name:1",
		"\xff\xfe:1",
	};
	struct netif_table *table = fixture_table(server);
	char text[FIXTURE_TEXT_BYTES];

	(void)state;
	for (size_t n = 0; n < sizeof(malformed) / sizeof(malformed[0]); n++) {
		struct netif_choice *choice = choose(table, NULL, NULL, malformed[n]);

		fixture_chosen(table, choice, NETIF_CHOSEN_MAX, text);
		assert_string_equal(text, "eth0 10.0.0.1/24, eth1 10.1.0.1/24, eno1 fd01::1/64");
		assert_int_equal(choice->note_count, 1);
		assert_non_null(strstr(choice->notes[0], "NCCL_COMM_ID"));
		assert_non_null(strstr(choice->notes[0], "is ignored"));
		netif_choice_destroy(choice);
	}
	netif_table_destroy(table);
}

static void a_comm_id_in_no_subnet_leaves_the_later_steps(void **state) {
	static const struct row row = {
		NULL, NULL, "198.51.100.1:1",
		"eth0 10.0.0.1/24, eth1 10.1.0.1/24, eno1 fd01::1/64"};

	(void)state;
	check_rows(fixture_table(server), &row, 1);
}

static void the_first_sixteen_interfaces_are_returned(void **state) {
	struct fixture_link links[21] = {0};
	char names[20][16];
	char addresses[20][32];
	struct netif_table *table;
	struct netif_choice *choice;

	(void)state;
	for (size_t n = 0; n < 20; n++) {
		snprintf(names[n], sizeof(names[n]), "fifteen-chars%02zu", n);
		snprintf(addresses[n], sizeof(addresses[n]), "10.0.%zu.1/24", n);
		links[n].name = names[n];
		// The kernel's order differs from the order of the indexes.
		links[n].index = (uint32_t)(100 - n);
		links[n].addresses[0] = addresses[n];
	}
	table = fixture_table(links);
	choice = choose(table, NULL, NULL, NULL);
	assert_int_equal(choice->chosen_count, 16);
	for (uint32_t n = 0; n < 16; n++)
		assert_int_equal(choice->chosen[n], n);
	assert_int_equal(choice->judgements[16].reason, NETIF_LIST_FULL);
	netif_choice_destroy(choice);
	netif_table_destroy(table);
}

static void an_alias_is_a_name_of_its_own(void **state) {
	static const struct fixture_link aliased[] = {
		{.name = "eth0", .addresses = {"10.0.0.1/24@eth0", "10.0.1.1/24@eth0:1"}},
		{.name = NULL},
	};
	static const struct row rows[] = {
		{"eth0", NULL, NULL, "eth0 10.0.0.1/24, eth0 10.0.1.1/24"},
		{"=eth0", NULL, NULL, "eth0 10.0.0.1/24"},
	};

	(void)state;
	check_rows(fixture_table(aliased), rows, sizeof(rows) / sizeof(rows[0]));
}

static void each_candidate_says_why_it_was_taken_or_not(void **state) {
	struct netif_table *table = fixture_table(server);
	struct netif_choice *choice = choose(table, NULL, NULL, "10.1.0.77:1");

	(void)state;
	assert_string_equal(
		fixture_judgement(table, choice, "eth1 10.1.0.1/24")->rule, "subnet of NCCL_COMM_ID"
	);
	assert_int_equal(
		fixture_judgement(table, choice, "eth0 10.0.0.1/24")->reason, NETIF_EARLIER_STEP_WON
	);
	netif_choice_destroy(choice);
	choice = choose(table, "^docker", "AF_INET", NULL);
	assert_int_equal(
		fixture_judgement(table, choice, "eth0 10.0.1.1/24")->reason,
		NETIF_NAME_TAKEN_BEFORE
	);
	assert_int_equal(
		fixture_judgement(table, choice, "docker0 172.17.0.1/16")->reason, NETIF_EXCLUDED
	);
	assert_int_equal(
		fixture_judgement(table, choice, "eno1 fd01::1/64")->reason, NETIF_FAMILY_NOT_ASKED
	);
	netif_choice_destroy(choice);
	netif_table_destroy(table);
}

static void a_machine_without_addresses_yields_nothing(void **state) {
	static const struct fixture_link bare[] = {{.name = "eth0"}, {.name = NULL}};
	static const struct fixture_link empty[] = {{.name = NULL}};
	static const struct row row = {NULL, NULL, "10.0.0.1:1", ""};

	(void)state;
	check_rows(fixture_table(bare), &row, 1);
	check_rows(fixture_table(empty), &row, 1);
}

UNIT_GROUP(netif_nccl) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_prefixes_in_kernel_order_with_one_address_each),
		cmocka_unit_test(lists_without_a_name_match_everything_or_nothing),
		cmocka_unit_test(ports_are_read_over),
		cmocka_unit_test(a_name_too_long_for_any_place_matches_nothing),
		cmocka_unit_test(only_the_first_sixteen_items_count),
		cmocka_unit_test(family_filters_and_a_word_that_is_none_is_passed_over),
		cmocka_unit_test(without_names_ib_comes_first_then_others_then_docker_then_lo),
		cmocka_unit_test(the_subnet_step_yields_one_whatever_family_and_name),
		cmocka_unit_test(link_local_subnets_differ_by_scope),
		cmocka_unit_test(prefixes_of_all_lengths_match),
		cmocka_unit_test(a_malformed_comm_id_is_reported_and_skipped),
		cmocka_unit_test(a_comm_id_in_no_subnet_leaves_the_later_steps),
		cmocka_unit_test(the_first_sixteen_interfaces_are_returned),
		cmocka_unit_test(an_alias_is_a_name_of_its_own),
		cmocka_unit_test(each_candidate_says_why_it_was_taken_or_not),
		cmocka_unit_test(a_machine_without_addresses_yields_nothing),
	};

	return cmocka_run_group_tests_name("netif_nccl", tests, NULL, NULL);
}
