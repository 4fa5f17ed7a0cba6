// SPDX-License-Identifier: BSD-3-Clause
// Tests of the endpoint data that a peer may send, and of the route to it.
#include <dataplane/device.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void set_gid(union ibv_gid *gid, const char *text) {
	assert_int_equal(inet_pton(AF_INET6, text, gid->raw), 1);
}

static struct device_facts roce(const char *gid) {
	struct device_facts facts = {
		.name = "mlx5_0",
		.usable = true,
		.port =
			{
				.number = 1,
				.link = DEVICE_LINK_ETHERNET,
				.active_mtu = 4096,
				.gid_index = 3,
				.gid_type = IBV_GID_TYPE_ROCE_V2,
			},
	};

	set_gid(&facts.port.gid, gid);
	return facts;
}

static struct device_facts infiniband(uint16_t lid, const char *gid) {
	struct device_facts facts = roce(gid != NULL ? gid : "::");

	facts.port.link = DEVICE_LINK_INFINIBAND;
	facts.port.lid = lid;
	facts.port.gid_index = gid != NULL ? 0 : -1;
	facts.port.gid_type = IBV_GID_TYPE_IB;
	return facts;
}

// Return a valid endpoint of a peer with the same kind of port.
static struct device_endpoint sound(const struct device_facts *like) {
	return (struct device_endpoint){
		.link = like->port.link,
		.lid = like->port.lid,
		.gid = like->port.gid,
		.mtu = 1024,
		.reads_in_max = 16,
		.reads_out_max = 16,
		.queue_number = 0x11,
		.psn = 0xffffff,
	};
}

static void an_end_that_no_device_can_be_is_refused_with_what_is_wrong(void **state) {
#define SET(member, value, why)                                                   \
	{                                                                         \
		offsetof(struct device_endpoint, member),                         \
			sizeof(((struct device_endpoint *)0)->member), value, why \
	}
	static const struct {
		size_t offset, size;
		uint32_t value;
		const char *reason;
	} cases[] = {
		SET(mtu, 7, "mtu 7 is not 256, 512, 1024, 2048 or 4096"),
		SET(mtu, 0, "mtu 0 is not 256, 512, 1024, 2048 or 4096"),
		SET(mtu, 1, "mtu 1 is not 256, 512, 1024, 2048 or 4096"),
		SET(mtu, 1500, "mtu 1500 is not 256, 512, 1024, 2048 or 4096"),
		SET(mtu, 8192, "mtu 8192 is not 256, 512, 1024, 2048 or 4096"),
		SET(psn, 0x1000000, "psn 0x1000000 does not fit in 24 bits"),
		SET(psn, UINT32_MAX, "psn 0xffffffff does not fit in 24 bits"),
		SET(queue_number, 0, "queue pair number 0x0 is reserved or invalid"),
		SET(queue_number, 1, "queue pair number 0x1 is reserved or invalid"),
		SET(queue_number, 0xffffff, "queue pair number 0xffffff is reserved or invalid"),
		SET(queue_number, 0x1000011, "queue pair number 0x1000011 is reserved or invalid"),
		SET(reads_in_max, 0, "no RDMA reads possible: limit in 0, out 16"),
		SET(reads_out_max, 0, "no RDMA reads possible: limit in 16, out 0"),
		SET(link, 2, "unknown link type 2"),
		SET(link, UINT32_MAX, "unknown link type 4294967295"),
	};
	const struct device_facts own = roce("::ffff:10.0.0.1");
	char reason[DEVICE_REASON_MAX + 1];

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		struct device_endpoint theirs = sound(&own);

		assert_int_equal(device_endpoint_check(&own, &theirs, reason), 0);
		memcpy((char *)&theirs + cases[n].offset, &cases[n].value, cases[n].size);
		assert_int_equal(device_endpoint_check(&own, &theirs, reason), -EBADMSG);
		assert_string_equal(reason, cases[n].reason);
	}
}

static void a_number_of_reads_that_is_huge_is_sound_and_left_to_the_smaller_end(void **state) {
	const struct device_facts own = roce("::ffff:10.0.0.1");
	struct device_endpoint theirs = sound(&own);
	char reason[DEVICE_REASON_MAX + 1];

	(void)state;
	theirs.reads_in_max = theirs.reads_out_max = 255;
	assert_int_equal(device_endpoint_check(&own, &theirs, reason), 0);
}

static void an_address_is_one_that_a_port_can_have_and_reach(void **state) {
	static const struct {
		const char *own, *theirs;
		int err;
		const char *reason;
	} cases[] = {
		{"::ffff:10.0.0.1", "::ffff:192.168.7.9", 0, NULL},
		{"::ffff:127.0.0.1", "::ffff:127.0.0.2", 0, NULL},
		{"2001:db8::1", "fe80::2", 0, NULL},
		{"fe80::1", "fd00::2", 0, NULL},
		{"::ffff:10.0.0.1", "::", -EBADMSG, "the GID is zero"},
		{"::ffff:10.0.0.1", "ff02::1", -EBADMSG, "GID ff02::1 is not a unicast address"},
		{"::ffff:10.0.0.1", "::1", -EBADMSG, "GID ::1 is not a unicast address"},
		{"::ffff:10.0.0.1", "::ffff:0.0.0.0", -EBADMSG,
		 "GID 0.0.0.0 is not a unicast address"},
		{"::ffff:10.0.0.1", "::ffff:239.1.2.3", -EBADMSG,
		 "GID 239.1.2.3 is not a unicast address"},
		{"::ffff:10.0.0.1", "2001:db8::1", -EPROTONOSUPPORT,
		 "NoCommonFabric: mlx5_0 has an IPv4 GID, the peer's device an IPv6 GID"},
		{"fe80::1", "::ffff:10.0.0.1", -EPROTONOSUPPORT,
		 "NoCommonFabric: mlx5_0 has an IPv6 GID, the peer's device an IPv4 GID"},
		{"::ffff:10.0.0.1", "::ffff:127.0.0.2", -EPROTONOSUPPORT,
		 "NoCommonFabric: mlx5_0 has a network address, the peer's device a loopback "
		 "address"},
		{"::ffff:127.0.0.1", "::ffff:10.0.0.2", -EPROTONOSUPPORT,
		 "NoCommonFabric: mlx5_0 has a loopback address, the peer's device a network "
		 "address"},
	};

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		const struct device_facts own = roce(cases[n].own);
		struct device_endpoint theirs = sound(&own);
		char reason[DEVICE_REASON_MAX + 1];

		set_gid(&theirs.gid, cases[n].theirs);
		assert_int_equal(device_endpoint_check(&own, &theirs, reason), cases[n].err);
		if (cases[n].reason != NULL)
			assert_string_equal(reason, cases[n].reason);
	}
}

static void two_ports_share_a_partition_and_one_of_them_is_a_full_member(void **state) {
	static const struct {
		uint16_t own, theirs;
		int err;
		const char *reason;
	} cases[] = {
		{0xffff, 0xffff, 0, NULL},
		{0xffff, 0x7fff, 0, NULL},
		{0x0001, 0x8001, 0, NULL},
		{0x0001, 0, 0, NULL}, // an agent that does not send its P_Key
		{0xffff, 0x8000, -EBADMSG, "P_Key 0x8000 belongs to no partition"},
		{0x7fff, 0x7fff, -EKEYREJECTED,
		 "LimitedMembers: mlx5_0 and the peer's device are both limited members of "
		 "partition 0x7fff; one must be a full member"},
		{0x8001, 0x8002, -EPROTONOSUPPORT,
		 "NoCommonFabric: mlx5_0 is in partition 0x0001, the peer's device in 0x0002"},
		{0x0001, 0xffff, -EPROTONOSUPPORT,
		 "NoCommonFabric: mlx5_0 is in partition 0x0001, the peer's device in 0x7fff"},
	};

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		struct device_facts own = infiniband(5, "fe80::5");
		struct device_endpoint theirs = sound(&own);
		char reason[DEVICE_REASON_MAX + 1];

		own.port.pkey = cases[n].own;
		theirs.pkey = cases[n].theirs;
		assert_int_equal(device_endpoint_check(&own, &theirs, reason), cases[n].err);
		if (cases[n].reason != NULL)
			assert_string_equal(reason, cases[n].reason);
	}
}

static void infiniband_and_roce_have_no_fabric_in_common(void **state) {
	const struct device_facts own = roce("::ffff:10.0.0.1"), other = infiniband(5, "fe80::5");
	struct device_endpoint theirs = sound(&other);
	char reason[DEVICE_REASON_MAX + 1];

	(void)state;
	assert_int_equal(device_endpoint_check(&own, &theirs, reason), -EPROTONOSUPPORT);
	assert_string_equal(
		reason, "NoCommonFabric: mlx5_0 is on Ethernet, the peer's device on InfiniBand"
	);
	theirs = sound(&own);
	assert_int_equal(device_endpoint_check(&other, &theirs, reason), -EPROTONOSUPPORT);
	assert_string_equal(
		reason, "NoCommonFabric: mlx5_0 is on InfiniBand, the peer's device on Ethernet"
	);
}

// Return the route to the endpoint from an open device with these settings.
static struct ibv_ah_attr
route(const struct device_facts *own, const struct device_endpoint *theirs, uint32_t flow_label) {
	struct device_settings settings = device_settings_default;
	char reason[DEVICE_REASON_MAX + 1];
	struct device *device = NULL;
	struct ibv_ah_attr attr;

	settings.service_level = 3;
	settings.traffic_class = 104;
	fake_verbs_init(NULL);
	fake_device_add("fake0");
	assert_int_equal(device_open(&fake_verbs_calls, "fake0", &settings, reason, &device), 0);
	memset(&attr, 0x55, sizeof(attr));
	device_route(device, own, theirs, flow_label, &attr);
	device_put(device);
	assert_null(fake_verbs_fini());
	return attr;
}

static void infiniband_needs_gids_only_where_no_lid_leads(void **state) {
	static const struct {
		uint16_t own_lid;
		const char *own_gid; // NULL: no GID
		bool grh_needed;
		uint16_t their_lid;
		const char *their_gid;
		int err;
		bool is_global;
		const char *reason;
	} cases[] = {
		{1, "fe80::1", false, 2, "fe80::2", 0, false, NULL},
		{1, NULL, false, 2, "::", 0, false, NULL},
		{1, NULL, false, 2, "fe80::2", 0, false, NULL},
		{1, "fe80::1", false, 2, "fec0::2", 0, true, NULL}, // behind a router
		{1, "fe80::1", true, 2, "fe80::2", 0, true, NULL},
		{1, "fe80::1", false, 0, "fe80::2", 0, true, NULL},
		{0, "fe80::1", false, 2, "fe80::2", 0, true, NULL},
		{1, "fe80::1", false, 0xbfff, "::", 0, false, NULL},
		{1, "fe80::1", false, 0xc000, "fe80::2", -EBADMSG, false,
		 "lid 0xc000 is multicast"},
		{1, "fe80::1", false, 0, "::", -EBADMSG, false, "the peer has neither LID nor GID"},
		{1, "fe80::1", false, 2, "ff02::2", -EBADMSG, false,
		 "GID ff02::2 is not a unicast address"},
		{1, NULL, false, 0, "fe80::2", -EPROTONOSUPPORT, false,
		 "NoCommonFabric: the peer is not reachable by LID, and mlx5_0 has no GID"},
		{1, "fe80::1", true, 2, "::", -EPROTONOSUPPORT, false,
		 "NoCommonFabric: the peer is not reachable by LID, and it has no GID"},
	};

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		struct device_facts own = infiniband(cases[n].own_lid, cases[n].own_gid);
		struct device_endpoint theirs = sound(&own);
		char reason[DEVICE_REASON_MAX + 1];
		struct ibv_ah_attr attr;

		own.port.grh_needed = cases[n].grh_needed;
		theirs.lid = cases[n].their_lid;
		set_gid(&theirs.gid, cases[n].their_gid);
		assert_int_equal(device_endpoint_check(&own, &theirs, reason), cases[n].err);
		if (cases[n].err != 0) {
			assert_string_equal(reason, cases[n].reason);
			continue;
		}
		attr = route(&own, &theirs, 0);
		assert_int_equal(attr.is_global, cases[n].is_global);
		assert_int_equal(attr.dlid, cases[n].their_lid);
		assert_int_equal(attr.sl, 3);
		assert_int_equal(attr.port_num, 1);
		assert_int_equal(attr.grh.hop_limit, cases[n].is_global ? 255 : 0);
	}
}

static void the_way_on_ethernet_has_gids_traffic_class_and_a_flow_label_of_20_bits(void **state) {
	const struct device_facts own = roce("::ffff:10.0.0.1");
	struct device_endpoint theirs = sound(&own);
	struct ibv_ah_attr attr;

	(void)state;
	theirs.lid = 77; // a LID has no meaning on Ethernet
	set_gid(&theirs.gid, "::ffff:10.0.0.2");
	attr = route(&own, &theirs, 0xfff12345);
	assert_int_equal(attr.is_global, 1);
	assert_int_equal(attr.dlid, 0);
	assert_int_equal(attr.sl, 3);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.grh.sgid_index, 3);
	assert_memory_equal(&attr.grh.dgid, &theirs.gid, sizeof(theirs.gid));
	assert_int_equal(attr.grh.traffic_class, 104);
	assert_int_equal(attr.grh.flow_label, 0x12345);
	assert_int_equal(attr.grh.hop_limit, 255);
	assert_int_equal(attr.src_path_bits, 0);
	assert_int_equal(attr.static_rate, 0);
}

UNIT_GROUP(device_endpoint) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_that_no_device_can_be_is_refused_with_what_is_wrong),
		cmocka_unit_test(a_number_of_reads_that_is_huge_is_sound_and_left_to_the_smaller_end
		),
		cmocka_unit_test(an_address_is_one_that_a_port_can_have_and_reach),
		cmocka_unit_test(two_ports_share_a_partition_and_one_of_them_is_a_full_member),
		cmocka_unit_test(infiniband_and_roce_have_no_fabric_in_common),
		cmocka_unit_test(infiniband_needs_gids_only_where_no_lid_leads),
		cmocka_unit_test(
			the_way_on_ethernet_has_gids_traffic_class_and_a_flow_label_of_20_bits
		),
	};

	return cmocka_run_group_tests_name("device_endpoint", tests, NULL, NULL);
}
