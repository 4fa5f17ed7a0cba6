// SPDX-License-Identifier: BSD-3-Clause
#include "lib/netif/fixture.h"

#include <lib/netif/classify.h>
#include <lib/netif/netlink.h>
#include <support/cmocka.h>

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Writes netlink messages in sequence, in the kernel's format.
struct writer {
	uint8_t bytes[8192];
	size_t size;
	size_t message; // offset of the message under construction
};

static void put(struct writer *writer, const void *bytes, size_t size) {
	assert_true(writer->size + size + 3 < sizeof(writer->bytes));
	memcpy(writer->bytes + writer->size, bytes, size);
	memset(writer->bytes + writer->size + size, 0, 3);
	writer->size += (size + 3) & ~(size_t)3;
}

static void
begin(struct writer *writer, uint16_t type, uint16_t flags, const void *body, size_t size) {
	struct nlmsghdr header = {.nlmsg_type = type, .nlmsg_flags = flags};

	writer->message = writer->size;
	put(writer, &header, sizeof(header));
	put(writer, body, size);
}

static void end(struct writer *writer) {
	uint32_t length = (uint32_t)(writer->size - writer->message);

	memcpy(writer->bytes + writer->message, &length, sizeof(length));
}

static void attr(struct writer *writer, uint16_t type, const void *value, size_t size) {
	struct rtattr header = {.rta_type = type, .rta_len = (uint16_t)(sizeof(header) + size)};

	put(writer, &header, sizeof(header));
	if (size > 0)
		put(writer, value, size);
}

static void begin_link(struct writer *writer, int index, unsigned short type, const char *name) {
	struct ifinfomsg body = {.ifi_index = index, .ifi_type = type, .ifi_flags = IFF_UP};

	begin(writer, RTM_NEWLINK, 0, &body, sizeof(body));
	if (name != NULL)
		attr(writer, IFLA_IFNAME, name, strlen(name) + 1);
}

static void write_link(struct writer *writer, int index, unsigned short type, const char *name) {
	begin_link(writer, index, type, name);
	end(writer);
}

static void begin_address(struct writer *writer, uint8_t family, uint8_t prefix, uint32_t index) {
	struct ifaddrmsg body = {.ifa_family = family, .ifa_prefixlen = prefix, .ifa_index = index};

	begin(writer, RTM_NEWADDR, 0, &body, sizeof(body));
}

static int parse(const struct writer *writer, struct netif_table *table, bool *ret_done) {
	return netif_netlink_parse(writer->bytes, writer->size, NULL, table, ret_done);
}

// Read one file of the recording; the caller frees the buffer.
static uint8_t *read_recorded(const char *name, size_t *ret_size) {
	char path[512];
	uint8_t *bytes = malloc(1 << 20);
	FILE *file;

	snprintf(path, sizeof(path), "%s/rack/%s", RECORDINGS, name);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(bytes);
	*ret_size = fread(bytes, 1, 1 << 20, file);
	assert_true(*ret_size > 0);
	fclose(file);
	return bytes;
}

static void every_truncation_of_a_real_dump_is_refused_or_shorter(void **state) {
	size_t size;
	uint8_t *bytes = read_recorded("links.nl", &size);

	(void)state;
	for (size_t cut = 0; cut < size; cut += 3) {
		struct netif_table *table;
		// Exact size, so that the sanitizer sees reads past the end.
		uint8_t *copy = malloc(cut + 1);
		bool done = false;
		int err;

		assert_non_null(copy);
		memcpy(copy, bytes, cut);
		assert_int_equal(netif_table_create(&table), 0);
		err = netif_netlink_parse(copy, cut, NULL, table, &done);
		assert_true(err == 0 || err == -EBADMSG);
		assert_false(done); // the last message ends the dump, and it is always cut off
		assert_true(table->link_count <= 17);
		netif_table_destroy(table);
		free(copy);
	}
	free(bytes);
}

static void a_real_dump_is_read_to_its_end(void **state) {
	static const struct {
		const char *file;
		size_t links, addresses;
	} rows[] = {{"links.nl", 17, 0}, {"addresses.nl", 0, 0}};
	struct netif_table *table;

	(void)state;
	for (size_t n = 0; n < 2; n++) {
		bool done = false;
		size_t size;
		uint8_t *bytes = read_recorded(rows[n].file, &size);

		assert_int_equal(netif_table_create(&table), 0);
		assert_int_equal(netif_netlink_parse(bytes, size, NULL, table, &done), 0);
		assert_true(done);
		assert_int_equal(table->link_count, rows[n].links);
		// The table has none of the links of these addresses.
		assert_int_equal(table->address_count, rows[n].addresses);
		netif_table_destroy(table);
		free(bytes);
	}
}

static void malformed_messages_are_refused(void **state) {
	struct writer rows[13] = {0};
	size_t count = 0;
	struct writer *row;
	uint32_t number = 1500;

	(void)state;
	row = &rows[count++]; // a message longer than the data
	write_link(row, 1, ARPHRD_ETHER, "eth0");
	row->size -= 4;
	row = &rows[count++]; // a message shorter than its own header
	write_link(row, 1, ARPHRD_ETHER, "eth0");
	memcpy(row->bytes, &(uint32_t){4}, 4);
	row = &rows[count++]; // a message whose length is negative as an int, which libmnl accepts
	write_link(row, 1, ARPHRD_ETHER, "eth0");
	memcpy(row->bytes, &(uint32_t){0x80000010}, 4);
	row = &rows[count++]; // an incomplete header
	row->size = 7;
	row = &rows[count++]; // a body shorter than its fixed part
	begin(row, RTM_NEWLINK, 0, "", 1);
	end(row);
	row = &rows[count++]; // an attribute longer than the message
	begin_link(row, 1, ARPHRD_ETHER, "eth0");
	attr(row, IFLA_MTU, &number, 4);
	memcpy(row->bytes + row->size - 8, &(uint16_t){200}, 2);
	end(row);
	row = &rows[count++]; // an attribute shorter than its header, which would loop for ever
	begin_link(row, 1, ARPHRD_ETHER, "eth0");
	attr(row, IFLA_MTU, &number, 4);
	memcpy(row->bytes + row->size - 8, &(uint16_t){0}, 2);
	end(row);
	row = &rows[count++]; // a number of three bytes
	begin_link(row, 1, ARPHRD_ETHER, "eth0");
	attr(row, IFLA_MTU, &number, 3);
	end(row);
	row = &rows[count++]; // a name without a terminator
	begin_link(row, 1, ARPHRD_ETHER, NULL);
	attr(row, IFLA_IFNAME, "eth0", 4);
	end(row);
	row = &rows[count++]; // a name that is too long
	write_link(row, 1, ARPHRD_ETHER, "sixteen-chars-16");
	row = &rows[count++]; // no name at all
	write_link(row, 1, ARPHRD_ETHER, NULL);
	row = &rows[count++]; // index 0, which means "no interface"
	write_link(row, 0, ARPHRD_ETHER, "eth0");
	row = &rows[count++]; // a positive error
	begin(row, NLMSG_ERROR, 0, &(int32_t){5}, 4);
	end(row);
	for (size_t n = 0; n < count; n++) {
		struct netif_table *table;
		bool done = false;

		assert_int_equal(netif_table_create(&table), 0);
		if (parse(&rows[n], table, &done) != -EBADMSG)
			fail_msg("row %zu was read", n);
		assert_false(done);
		assert_int_equal(table->link_count, 0);
		netif_table_destroy(table);
	}
}

static void malformed_addresses_are_refused(void **state) {
	static const struct {
		uint8_t family, prefix;
		uint16_t type;
		size_t size;
	} rows[] = {
		{AF_INET, 24, IFA_ADDRESS, 3},
		{AF_INET, 24, IFA_ADDRESS, 16},
		{AF_INET6, 64, IFA_ADDRESS, 4},
		{AF_INET, 33, IFA_ADDRESS, 4},
		{AF_INET6, 129, IFA_ADDRESS, 16},
		{AF_INET, 24, IFA_BROADCAST, 4}, // an entry without an own address
		{AF_INET, 24, IFA_FLAGS, 2},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct writer writer = {0};
		struct netif_table *table;
		bool done = false;

		assert_int_equal(netif_table_create(&table), 0);
		write_link(&writer, 1, ARPHRD_ETHER, "eth0");
		begin_address(&writer, rows[n].family, rows[n].prefix, 1);
		attr(&writer, rows[n].type, "\x0a\0\0\1\0\0\0\0\0\0\0\0\0\0\0", rows[n].size);
		end(&writer);
		if (parse(&writer, table, &done) != -EBADMSG)
			fail_msg("row %zu was read", n);
		netif_table_destroy(table);
	}
}

static void an_interrupted_dump_and_the_kernels_errors_are_told_apart(void **state) {
	struct writer interrupted = {0};
	struct writer refused = {0};
	struct writer ended = {0};
	struct netif_table *table;
	struct ifinfomsg body = {.ifi_index = 1};
	bool done = false;

	(void)state;
	assert_int_equal(netif_table_create(&table), 0);
	begin(&interrupted, RTM_NEWLINK, NLM_F_DUMP_INTR, &body, sizeof(body));
	end(&interrupted);
	assert_int_equal(parse(&interrupted, table, &done), -EINTR);
	begin(&refused, NLMSG_ERROR, 0, &(int32_t){-EPERM}, 4);
	end(&refused);
	assert_int_equal(parse(&refused, table, &done), -EPERM);
	begin(&ended, NLMSG_DONE, 0, &(int32_t){-ENOBUFS}, 4);
	end(&ended);
	assert_int_equal(parse(&ended, table, &done), -ENOBUFS);
	assert_false(done);
	netif_table_destroy(table);
}

static void unknown_messages_and_attributes_are_passed_over(void **state) {
	struct writer writer = {0};
	struct netif_table *table;
	bool done = false;

	(void)state;
	assert_int_equal(netif_table_create(&table), 0);
	begin(&writer, 9999, 0, "what", 4);
	end(&writer);
	begin_link(&writer, 7, ARPHRD_ETHER, "eth0");
	attr(&writer, 0x3fff, "unknown", 7);
	attr(&writer, IFLA_LINKINFO | NLA_F_NESTED, NULL, 0);
	end(&writer);
	begin_address(&writer, AF_UNIX, 0, 7);
	end(&writer);
	assert_int_equal(parse(&writer, table, &done), 0);
	assert_int_equal(table->link_count, 1);
	assert_int_equal(table->address_count, 0);
	netif_table_destroy(table);
}

static void the_local_end_of_a_point_to_point_link_is_its_address(void **state) {
	struct netif_table *table = fixture_recording("rack", NULL);
	const struct netif_link *tun = netif_table_link_by_name(table, "tun0");
	size_t found = 0;

	(void)state;
	for (size_t n = 0; n < table->address_count; n++) {
		struct sock_addr local = fixture_address("10.201.0.1");

		if (&table->links[table->addresses[n].link] == tun &&
		    sock_addr_equal(&table->addresses[n].address, &local))
			found++;
	}
	assert_int_equal(found, 1);
	netif_table_destroy(table);
}

static void an_address_has_the_name_of_its_label(void **state) {
	struct netif_table *table = fixture_recording("rack", NULL);
	struct sock_addr aliased = fixture_address("10.4.0.6");

	(void)state;
	for (size_t n = 0; n < table->address_count; n++) {
		if (sock_addr_equal(&table->addresses[n].address, &aliased))
			assert_string_equal(table->addresses[n].label, "eth3:1");
	}
	netif_table_destroy(table);
}

static void hardware_type_32_is_ipoib(void **state) {
	struct writer writer = {0};
	struct netif_table *table;
	bool done = false;

	(void)state;
	assert_int_equal(netif_table_create(&table), 0);
	write_link(&writer, 1, ARPHRD_INFINIBAND, "what-name-ever");
	write_link(&writer, 2, ARPHRD_ETHER, "ib0");
	assert_int_equal(parse(&writer, table, &done), 0);
	netif_classify(table);
	assert_int_equal(table->links[0].class, NETIF_CLASS_IPOIB);
	assert_int_equal(table->links[1].class, NETIF_CLASS_UNKNOWN);
	netif_table_destroy(table);
}

static void routes_carry_way_source_and_metric(void **state) {
	static const char *const peers[] = {"10.2.0.77", "10.99.0.1", "203.0.113.1", NULL};
	struct netif_table *table = fixture_recording("rack", peers);
	struct sock_addr source = fixture_address("10.2.0.5");
	struct sock_addr gateway = fixture_address("10.4.0.1");

	(void)state;
	assert_int_equal(table->route_count, 3);
	assert_true(sock_addr_equal(&table->routes[0].source, &source));
	assert_string_equal(
		netif_table_link_by_index(table, table->routes[0].link_index)->name, "bond0.100"
	);
	assert_true(sock_addr_equal(&table->routes[1].gateway, &gateway));
	assert_int_equal(table->routes[2].error, -ENETUNREACH); // the recording has no such route
	assert_true(table->default_count > 2);
	assert_int_equal(table->defaults[0].metric, 50);
	assert_int_equal(table->defaults[1].metric, 100);
	assert_int_equal(table->defaults[2].family, SOCK_ADDR_V6);
	netif_table_destroy(table);
}

static void the_first_of_several_next_hops_is_the_way(void **state) {
	struct {
		struct rtnexthop hop;
		struct rtattr gateway;
		uint8_t address[4];
		struct rtnexthop other;
	} hops = {
		{.rtnh_len = 16, .rtnh_ifindex = 5},
		{.rta_type = RTA_GATEWAY, .rta_len = 8},
		{10, 0, 0, 1},
		{.rtnh_len = 8, .rtnh_ifindex = 6},
	};
	struct rtmsg body = {
		.rtm_family = AF_INET, .rtm_type = RTN_UNICAST, .rtm_table = RT_TABLE_MAIN};
	struct writer writer = {0};
	struct netif_table *table;
	bool done = false;

	(void)state;
	assert_int_equal(netif_table_create(&table), 0);
	begin(&writer, RTM_NEWROUTE, 0, &body, sizeof(body));
	attr(&writer, RTA_MULTIPATH, &hops, sizeof(hops));
	end(&writer);
	assert_int_equal(parse(&writer, table, &done), 0);
	assert_int_equal(table->default_count, 1);
	assert_int_equal(table->defaults[0].link_index, 5);
	hops.hop.rtnh_len = 200;
	writer.size = 0;
	begin(&writer, RTM_NEWROUTE, 0, &body, sizeof(body));
	attr(&writer, RTA_MULTIPATH, &hops, sizeof(hops));
	end(&writer);
	assert_int_equal(parse(&writer, table, &done), -EBADMSG);
	netif_table_destroy(table);
}

static void more_links_than_any_host_has_are_an_error(void **state) {
	struct writer writer = {0};
	struct netif_table *table;
	bool done = false;
	int err = 0;

	(void)state;
	assert_int_equal(netif_table_create(&table), 0);
	write_link(&writer, 1, ARPHRD_ETHER, "eth0");
	for (size_t n = 0; n < NETIF_LINKS_MAX; n++)
		assert_int_equal(parse(&writer, table, &done), 0);
	err = parse(&writer, table, &done);
	assert_int_equal(err, -EOVERFLOW);
	netif_table_destroy(table);
}

static void the_kernel_tells_an_interface_by_its_name(void **state) {
	uint32_t index = 0;

	(void)state;
	assert_int_equal(netif_netlink_index("lo", &index), 0);
	assert_int_equal(index, 1);
	index = 7;
	assert_int_equal(netif_netlink_index("no-such-one", &index), -ENODEV);
	assert_int_equal(netif_netlink_index("", &index), -EINVAL);
	assert_int_equal(netif_netlink_index("sixteen-of-them!", &index), -EINVAL);
	assert_int_equal(index, 7);
}

UNIT_GROUP(netif_netlink) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_truncation_of_a_real_dump_is_refused_or_shorter),
		cmocka_unit_test(a_real_dump_is_read_to_its_end),
		cmocka_unit_test(malformed_messages_are_refused),
		cmocka_unit_test(malformed_addresses_are_refused),
		cmocka_unit_test(an_interrupted_dump_and_the_kernels_errors_are_told_apart),
		cmocka_unit_test(unknown_messages_and_attributes_are_passed_over),
		cmocka_unit_test(the_local_end_of_a_point_to_point_link_is_its_address),
		cmocka_unit_test(an_address_has_the_name_of_its_label),
		cmocka_unit_test(hardware_type_32_is_ipoib),
		cmocka_unit_test(routes_carry_way_source_and_metric),
		cmocka_unit_test(the_first_of_several_next_hops_is_the_way),
		cmocka_unit_test(more_links_than_any_host_has_are_an_error),
		cmocka_unit_test(the_kernel_tells_an_interface_by_its_name),
	};

	return cmocka_run_group_tests_name("netif_netlink", tests, NULL, NULL);
}
