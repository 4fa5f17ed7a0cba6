// SPDX-License-Identifier: BSD-3-Clause
// Tests of finding the subnet of a port.
#include <dataplane/device.h>
#include <support/cmocka.h>

#include <arpa/inet.h>
#include <string.h>

static struct device_port port_of(enum device_link link, const char *gid) {
	struct device_port port = {.link = link, .gid_index = 0};

	assert_int_equal(inet_pton(AF_INET6, gid, port.gid.raw), 1);
	return port;
}

static const char *words(enum device_link link, const char *gid) {
	static char text[DEVICE_SUBNET_TEXT_MAX + 1];
	struct device_port port = port_of(link, gid);
	struct device_subnet subnet = device_subnet_of(&port);

	return device_subnet_format(&subnet, text);
}

static void of_infiniband_it_is_the_prefix_of_the_gid(void **state) {
	(void)state;
	assert_string_equal(words(DEVICE_LINK_INFINIBAND, "fec0:0:0:7::9"), "fec0:0:0:7::/64");
	assert_string_equal(words(DEVICE_LINK_INFINIBAND, "fe80::9"), "fe80::/64");
}

static void of_ethernet_it_is_the_block_that_the_machine_has_the_address_in(void **state) {
	(void)state;
	assert_string_equal(words(DEVICE_LINK_ETHERNET, "::ffff:127.0.0.1"), "127.0.0.0/8");
	// An address of another machine, a link-local address, and no address.
	assert_string_equal(words(DEVICE_LINK_ETHERNET, "::ffff:203.0.113.77"), "unknown");
	assert_string_equal(words(DEVICE_LINK_ETHERNET, "fe80::1"), "unknown");
	assert_string_equal(words(DEVICE_LINK_ETHERNET, "::"), "unknown");
}

static void what_is_unknown_is_the_same_as_nothing(void **state) {
	struct device_port port = port_of(DEVICE_LINK_INFINIBAND, "fe80::9");
	struct device_subnet known = device_subnet_of(&port), unknown = {0}, other;

	(void)state;
	assert_true(device_subnet_equal(&known, &known));
	assert_false(device_subnet_equal(&unknown, &unknown));
	assert_false(device_subnet_equal(&known, &unknown));
	other = known;
	other.bytes[7] = 1;
	assert_false(device_subnet_equal(&known, &other));
	port.gid_index = -1;
	assert_int_equal(device_subnet_of(&port).kind, DEVICE_SUBNET_UNKNOWN);
}

UNIT_GROUP(device_subnet) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_infiniband_it_is_the_prefix_of_the_gid),
		cmocka_unit_test(of_ethernet_it_is_the_block_that_the_machine_has_the_address_in),
		cmocka_unit_test(what_is_unknown_is_the_same_as_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
