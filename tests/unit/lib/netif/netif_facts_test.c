// SPDX-License-Identifier: BSD-3-Clause
#include "lib/netif/fixture.h"

#include <lib/netif/diff.h>
#include <lib/netif/source.h>
#include <lib/netif/sysfs.h>
#include <support/cmocka.h>
#include <support/tree.h>

#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_directory(void **state) {
	char *path = strdup("/tmp/netif-test-XXXXXX");

	*state = path;
	return path == NULL || mkdtemp(path) == NULL;
}

static int remove_directory(void **state) {
	int err = tree_remove(*state);

	free(*state);
	return err;
}

static void write_file(const char *directory, const char *name, const char *text) {
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void every_kind_of_the_rack_has_its_class_speed_and_master(void **state) {
	static const struct {
		const char *name;
		enum netif_class class;
		uint32_t speed_mbps;
		const char *master;
	} rows[] = {
		{"lo", NETIF_CLASS_LOOPBACK, 0, NULL},
		{"eth0", NETIF_CLASS_ETHERNET, 0, "bond0"},
		{"eth1", NETIF_CLASS_ETHERNET, 0, "bond0"},
		{"eth2", NETIF_CLASS_ETHERNET, 1000, "br0"},
		{"eth3", NETIF_CLASS_ETHERNET, 1000, NULL},
		{"usb0", NETIF_CLASS_USB, 0, NULL},
		{"bond0", NETIF_CLASS_BOND, 0, NULL},
		{"bond0.100", NETIF_CLASS_VLAN, 0, NULL},
		{"br0", NETIF_CLASS_BRIDGE, 1000, NULL},
		{"docker0", NETIF_CLASS_CONTAINER_BRIDGE, 10000, NULL},
		{"vh0", NETIF_CLASS_VETH, 10000, "docker0"},
		{"vc0", NETIF_CLASS_VETH, 10000, NULL},
		{"dummy0", NETIF_CLASS_DUMMY, 0, NULL},
		{"wg0", NETIF_CLASS_TUNNEL, 0, NULL},
		{"tun0", NETIF_CLASS_TUNNEL, 10, NULL},
		{"vx0", NETIF_CLASS_TUNNEL, 0, NULL},
		{"mv0", NETIF_CLASS_MACVLAN, 0, NULL},
	};
	struct netif_table *table = fixture_recording("rack", NULL);

	(void)state;
	assert_int_equal(table->link_count, sizeof(rows) / sizeof(rows[0]));
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		const struct netif_link *link = netif_table_link_by_name(table, rows[n].name);

		assert_non_null(link);
		assert_string_equal(netif_class_name(link->class), netif_class_name(rows[n].class));
		assert_int_equal(link->sysfs.speed_mbps, rows[n].speed_mbps);
		if (rows[n].master == NULL)
			assert_int_equal(link->master_index, 0);
		else
			assert_string_equal(
				netif_table_link_by_index(table, link->master_index)->name,
				rows[n].master
			);
	}
	netif_table_destroy(table);
}

static void sysfs_tells_what_netlink_does_not(void **state) {
	static const struct {
		const char *file, *text;
		size_t offset; // offset of the flag in struct netif_sysfs
	} rows[] = {
		{"wireless", "", offsetof(struct netif_sysfs, is_wireless)},
		{"phy80211", "", offsetof(struct netif_sysfs, is_wireless)},
		{"tun_flags", "0x1\n", offsetof(struct netif_sysfs, is_tun)},
		{"bridge", "", offsetof(struct netif_sysfs, is_bridge)},
		{"bonding", "", offsetof(struct netif_sysfs, is_bond)},
		{"device", "", offsetof(struct netif_sysfs, has_device)},
	};
	char path[512];

	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct netif_link link = {.index = 5};

		snprintf(link.name, sizeof(link.name), "link%zu", n);
		snprintf(path, sizeof(path), "%s/%s", (char *)*state, link.name);
		assert_int_equal(mkdir(path, 0755), 0);
		write_file(path, "ifindex", "5\n");
		netif_sysfs_read(*state, &link);
		assert_true(link.sysfs.present);
		assert_false(*((bool *)&link.sysfs + rows[n].offset));
		write_file(path, rows[n].file, rows[n].text);
		netif_sysfs_read(*state, &link);
		assert_true(*((bool *)&link.sysfs + rows[n].offset));
	}
}

static void sysfs_of_another_namespace_is_not_believed(void **state) {
	static const char *const others[] = {"6\n",   "",     "x\n",
					     "5 5\n", "-5\n", "99999999999999999999\n"};
	struct netif_link link = {.name = "eth0", .index = 5};
	char path[512];

	snprintf(path, sizeof(path), "%s/eth0", (char *)*state);
	netif_sysfs_read(*state, &link);
	assert_false(link.sysfs.present);
	assert_int_equal(mkdir(path, 0755), 0);
	write_file(path, "speed", "100\n");
	for (size_t n = 0; n < sizeof(others) / sizeof(others[0]); n++) {
		write_file(path, "ifindex", others[n]);
		netif_sysfs_read(*state, &link);
		assert_false(link.sysfs.present);
		assert_int_equal(link.sysfs.speed_mbps, 0);
	}
}

static void a_speed_that_is_none_is_not_known(void **state) {
	static const struct {
		const char *text;
		uint32_t speed_mbps;
	} rows[] = {
		{"400000\n", 400000}, {"-1\n", 0}, {"4294967295\n", 0}, {"0\n", 0},
		{"fast\n", 0},	      {"", 0},	   {"10x\n", 0},	{"100", 100},
	};
	struct netif_link link = {.name = "eth0", .index = 5};
	char path[512];

	snprintf(path, sizeof(path), "%s/eth0", (char *)*state);
	assert_int_equal(mkdir(path, 0755), 0);
	write_file(path, "ifindex", "5\n");
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		write_file(path, "speed", rows[n].text);
		netif_sysfs_read(*state, &link);
		assert_int_equal(link.sysfs.speed_mbps, rows[n].speed_mbps);
	}
}

static void a_name_cannot_lead_out_of_sysfs(void **state) {
	static const char *const names[] = {"..", ".", "../etc", "a/b"};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		struct netif_link link = {.index = 5};

		snprintf(link.name, sizeof(link.name), "%s", names[n]);
		netif_sysfs_read(*state, &link);
		assert_false(link.sysfs.present);
	}
}

static void a_recording_that_is_absent_or_damaged_is_an_error(void **state) {
	struct netif_query query = {.recording = "/nonexistent"};
	struct netif_table *table = NULL;

	assert_int_equal(netif_gather(&query, &table), -ENOENT);
	query.recording = *state;
	write_file(*state, "links.nl", "not netlink at all");
	assert_int_equal(netif_gather(&query, &table), -EBADMSG);
	assert_null(table);
}

static void an_empty_recording_is_a_machine_without_links(void **state) {
	struct netif_query query = {.recording = *state};
	struct netif_table *table;

	assert_int_equal(netif_gather(&query, &table), 0);
	assert_int_equal(table->link_count, 0);
	netif_table_destroy(table);
}

static void count_change(void *context, const struct netif_change *change) {
	(void)change;
	++*(size_t *)context;
}

static void what_is_recorded_is_what_was_there(void **state) {
	struct sock_addr peer = fixture_address("127.0.0.1");
	struct netif_query query = {.peers = &peer, .peer_count = 1, .want_defaults = true};
	struct netif_table *live;
	struct netif_table *recorded;
	char path[512];
	size_t changes = 0;

	snprintf(path, sizeof(path), "%s/new", (char *)*state);
	assert_int_equal(netif_gather(&query, &live), 0);
	assert_int_equal(netif_record(&query, path), 0);
	assert_int_equal(netif_record(&query, path), -EEXIST);
	query.recording = path;
	assert_int_equal(netif_gather(&query, &recorded), 0);
	assert_int_equal(netif_diff(live, recorded, count_change, &changes), 0);
	assert_int_equal(changes, 0);
	assert_true(live->link_count > 0);
	netif_table_destroy(recorded);
	netif_table_destroy(live);
}

static void addresses_come_in_the_order_of_getifaddrs(void **state) {
	struct netif_query query = {0};
	struct netif_table *table;
	struct ifaddrs *all;
	size_t n = 0;

	(void)state;
	assert_int_equal(getifaddrs(&all), 0);
	assert_int_equal(netif_gather(&query, &table), 0);
	for (struct ifaddrs *one = all; one != NULL; one = one->ifa_next) {
		const struct netif_address *address = &table->addresses[n];
		struct sock_addr theirs;
		int family = one->ifa_addr == NULL ? AF_UNSPEC : one->ifa_addr->sa_family;

		if (family != AF_INET && family != AF_INET6)
			continue;
		assert_true(n++ < table->address_count);
		assert_int_equal(
			sock_addr_from_sockaddr(
				one->ifa_addr, sizeof(struct sockaddr_in6), &theirs
			),
			0
		);
		assert_true(sock_addr_equal(&theirs, &address->address));
		assert_string_equal(
			one->ifa_name, address->label[0] != '\0' ? address->label
								 : table->links[address->link].name
		);
	}
	assert_int_equal(n, table->address_count);
	netif_table_destroy(table);
	freeifaddrs(all);
}

UNIT_GROUP(netif_facts) {
#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_the_rack_has_its_class_speed_and_master),
		IN_DIRECTORY(sysfs_tells_what_netlink_does_not),
		IN_DIRECTORY(sysfs_of_another_namespace_is_not_believed),
		IN_DIRECTORY(a_speed_that_is_none_is_not_known),
		IN_DIRECTORY(a_name_cannot_lead_out_of_sysfs),
		IN_DIRECTORY(a_recording_that_is_absent_or_damaged_is_an_error),
		IN_DIRECTORY(an_empty_recording_is_a_machine_without_links),
		IN_DIRECTORY(what_is_recorded_is_what_was_there),
		cmocka_unit_test(addresses_come_in_the_order_of_getifaddrs),
	};

	return cmocka_run_group_tests_name("netif_facts", tests, NULL, NULL);
}
