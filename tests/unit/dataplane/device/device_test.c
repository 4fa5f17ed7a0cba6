// SPDX-License-Identifier: BSD-3-Clause
// Tests of devices with arbitrary attributes: how they are listed, opened and refused, with the
// exact messages.
#include "dataplane/device/device_bed.h"

#include <lib/scoped.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>

#include <endian.h>
#include <errno.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void a_machine_without_devices_or_rdma_has_an_empty_list(void **state) {
	scoped_mem struct device_facts *none = NULL, *unsupported = NULL;
	uint32_t count = 7;

	(void)state;
	assert_int_equal(device_list(&fake_verbs_calls, NULL, &none, &count), 0);
	assert_int_equal(count, 0);
	count = 7;
	fake_verbs_fail(FAKE_DEVICE_LIST, 1, 1, -ENOSYS);
	assert_int_equal(device_list(&fake_verbs_calls, NULL, &unsupported, &count), 0);
	assert_int_equal(count, 0);
}

static void a_device_that_is_not_there_is_refused_with_those_that_are(void **state) {
	char reason[DEVICE_REASON_MAX + 1];

	(void)state;
	assert_int_equal(device_bed_open("mlx5_0", NULL, reason), -ENODEV);
	assert_string_equal(reason, "no device 'mlx5_0'; this machine has no RDMA device");
	fake_device_add("fake0");
	fake_device_add("fake1");
	assert_int_equal(device_bed_open("mlx5_0", NULL, reason), -ENODEV);
	assert_string_equal(reason, "no device 'mlx5_0'; this machine has fake0, fake1");
	for (int c = 'a'; c < 'o'; c++) {
		char name[] = "a_long_name_of_one_device_x";

		name[sizeof(name) - 2] = (char)c;
		fake_device_add(name);
	}
	// The reason is truncated to its buffer.
	assert_int_equal(device_bed_open("", NULL, reason), -ENODEV);
	assert_int_equal(strlen(reason), DEVICE_REASON_MAX);
}

static void facts_are_those_that_the_device_reports(void **state) {
	struct fake_device *device = fake_device_add("fake0");
	struct device_facts facts;

	(void)state;
	device->attr.vendor_id = 0x2c9;
	device->attr.node_guid = htobe64(0x0123456789abcdef);
	device->attr.max_qp = 1000;
	device->attr.max_qp_wr = 512;
	device->attr.max_cqe = 4096;
	device->attr.max_sge = 30;
	device->attr.max_mr = 77;
	device->attr.max_mr_size = UINT64_MAX;
	device->attr.max_qp_rd_atom = 16;
	device->attr.max_qp_init_rd_atom = 300;
	device->attr.atomic_cap = IBV_ATOMIC_HCA;
	facts = device_bed_list(NULL);
	assert_true(facts.usable);
	assert_false(facts.awaits_port);
	assert_string_equal(facts.name, "fake0");
	assert_string_equal(facts.path, "");
	assert_string_equal(facts.pci, "");
	assert_string_equal(facts.netdev, "");
	assert_int_equal(facts.numa_node, -1);
	assert_int_equal(facts.vendor_id, 0x2c9);
	assert_true(facts.guid == 0x0123456789abcdef);
	assert_int_equal(facts.limits.pair_max, 1000);
	assert_int_equal(facts.limits.queue_depth_max, 512);
	assert_int_equal(facts.limits.completions_max, 4096);
	assert_int_equal(facts.limits.sge_max, 30);
	assert_int_equal(facts.limits.regions_max, 77);
	assert_true(facts.limits.region_bytes_max == UINT64_MAX);
	assert_int_equal(facts.limits.reads_in_max, 16);
	// The maximum of the 8-bit attribute in ibv_modify_qp().
	assert_int_equal(facts.limits.reads_out_max, 255);
	assert_true(facts.limits.atomics);
	assert_int_equal(facts.port.number, 1);
	assert_int_equal(facts.port.state, IBV_PORT_ACTIVE);
	assert_int_equal(facts.port.link, DEVICE_LINK_ETHERNET);
	assert_int_equal(facts.port.lid, 0);
	assert_int_equal(facts.port.active_mtu, 4096);
	assert_int_equal(facts.port.speed_mbps, 100000);
	assert_int_equal(facts.port.gid_type, IBV_GID_TYPE_ROCE_V2);
	device->attr.atomic_cap = IBV_ATOMIC_NONE;
	assert_false(device_bed_list(NULL).limits.atomics);
}

static void a_device_without_rc_is_listed_with_its_reason_and_not_opened(void **state) {
	static const struct {
		enum ibv_transport_type transport;
		const char *reason;
	} cases[] = {
		{IBV_TRANSPORT_IWARP, "iWARP: its queue pairs can be connected by rdma_cm only"},
		{IBV_TRANSPORT_USNIC, "usNIC: datagrams only, no reliable connections (RC)"},
		{IBV_TRANSPORT_USNIC_UDP, "usNIC: datagrams only, no reliable connections (RC)"},
		{IBV_TRANSPORT_UNSPECIFIED,
		 "a transport of its vendor, such as EFA: no reliable connections (RC)"},
		{IBV_TRANSPORT_UNKNOWN, "a transport that libibverbs does not know"},
		{(enum ibv_transport_type)77, "a transport that libibverbs does not know"},
	};
	struct fake_device *device = fake_device_add("fake0");

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		device->verbs.transport_type = cases[n].transport;
		device_bed_refuses(NULL, -ENOTSUP, cases[n].reason);
	}
	assert_int_equal(fake_verbs_calls_made(FAKE_OPEN), 0);
}

static void a_name_that_the_overlay_cannot_carry_is_refused(void **state) {
	static const char longest[] = "a_name_of_exactly_31_characters";
	char reason[DEVICE_REASON_MAX + 1];

	(void)state;
	assert_int_equal(strlen(longest), DEVICE_NAME_MAX);
	fake_device_add(longest);
	fake_device_add("a_name_of_more_than_31_characters");
	assert_int_equal(device_bed_open(longest, NULL, reason), 0);
	assert_int_equal(
		device_bed_open("a_name_of_more_than_31_characters", NULL, reason), -ENOTSUP
	);
	assert_string_equal(
		reason,
		"the name is longer than 31 characters: rename the device with 'rdma dev set'"
	);
}

static void a_limit_of_zero_or_less_makes_a_device_useless_and_is_named(void **state) {
	struct fake_device *device = fake_device_add("fake0");
	const struct {
		int *limit;
		const char *reason;
	} cases[] = {
		{&device->attr.max_qp, "fake0 reports 0 for max_qp"},
		{&device->attr.max_qp_wr, "fake0 reports 0 for max_qp_wr"},
		{&device->attr.max_cq, "fake0 reports 0 for max_cq"},
		{&device->attr.max_cqe, "fake0 reports 0 for max_cqe"},
		{&device->attr.max_sge, "fake0 reports 0 for max_sge"},
		{&device->attr.max_pd, "fake0 reports 0 for max_pd"},
		{&device->attr.max_mr, "fake0 reports 0 for max_mr"},
		{&device->attr.max_qp_rd_atom, "fake0 reports 0 for max_qp_rd_atom"},
		{&device->attr.max_qp_init_rd_atom, "fake0 reports 0 for max_qp_init_rd_atom"},
	};

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		int before = *cases[n].limit;

		*cases[n].limit = 0;
		device_bed_refuses(NULL, -ENOTSUP, cases[n].reason);
		*cases[n].limit = -1;
		device_bed_refuses(NULL, -ENOTSUP, cases[n].reason);
		*cases[n].limit = before;
	}
	device->attr.max_mr_size = 0;
	device_bed_refuses(NULL, -ENOTSUP, "fake0 reports 0 for max_mr_size");
	device->attr.max_mr_size = 1;
	device->attr.phys_port_cnt = 0;
	device_bed_refuses(NULL, -ENOTSUP, "fake0 reports 0 for phys_port_cnt");
	device->attr.phys_port_cnt = 1;
	device->ports[0].attr.max_msg_sz = 0;
	device_bed_refuses(NULL, -ENOTSUP, "port 1 of fake0 reports 0 for max_msg_sz");
}

static void an_open_device_lives_until_its_last_reference(void **state) {
	struct device_settings settings = device_settings_default;
	char reason[DEVICE_REASON_MAX + 1];
	struct device *device = NULL;

	(void)state;
	fake_device_add("fake0");
	settings.traffic_class = 104;
	assert_int_equal(device_open(&fake_verbs_calls, "fake0", &settings, reason, &device), 0);
	assert_string_equal(reason, "");
	assert_ptr_equal(device_calls(device), &fake_verbs_calls);
	assert_ptr_equal(device_pd(device)->context, device_context(device));
	assert_int_equal(device_settings(device)->traffic_class, 104);
	assert_int_equal(device_event_fd(device), device_context(device)->async_fd);
	assert_ptr_equal(device_get(device), device);
	assert_null(device_put(device));
	assert_int_equal(fake_verbs_alive().contexts, 1);
	assert_null(device_put(device));
	assert_int_equal(fake_verbs_alive().contexts, 0);
	assert_int_equal(fake_verbs_alive().pds, 0);
	assert_int_equal(fake_verbs_alive().lists, 0);
	assert_null(device_put(NULL));
}

static void each_call_that_fails_in_turn_is_told_and_leaves_nothing(void **state) {
	const uint32_t calls_made = 7; // list, open, device, port, GIDs, P_Key, PD
	char reason[DEVICE_REASON_MAX + 1];

	(void)state;
	fake_device_add("other");
	fake_device_add("fake0");
	for (uint32_t nth = 1; nth <= calls_made; nth++) {
		reason[0] = '\0';
		fake_verbs_fail(FAKE_ANY_COLD, nth, 1, -EIO);
		assert_int_equal(device_bed_open("fake0", NULL, reason), -EIO);
		fake_verbs_fail_no_more();
		assert_non_null(strstr(reason, "EIO"));
		assert_int_equal(fake_verbs_alive().contexts, 0);
		assert_int_equal(fake_verbs_alive().pds, 0);
		assert_int_equal(fake_verbs_alive().lists, 0);
	}
	assert_int_equal(device_bed_open("fake0", NULL, reason), 0);
}

static void a_device_that_fails_is_listed_beside_those_that_do_not(void **state) {
	static const struct {
		enum fake_call call;
		const char *reason;
	} cases[] = {
		{FAKE_OPEN, "open of fake0 failed: EACCES"},
		{FAKE_QUERY_DEVICE, "query_device of fake0 failed: EACCES"},
		{FAKE_QUERY_PORT, "query_port of fake0 failed: EACCES"},
		{FAKE_QUERY_GIDS, "query_gids of fake0 failed: EACCES"},
		{FAKE_QUERY_PKEY, "query_pkey of fake0 failed: EACCES"},
	};

	(void)state;
	fake_device_add("fake0");
	fake_device_add("fake1");
	for (size_t n = 0; n < COUNT(cases); n++) {
		scoped_mem struct device_facts *facts = NULL;
		uint32_t count;

		fake_verbs_fail(cases[n].call, 1, 1, -EACCES);
		assert_int_equal(device_list(&fake_verbs_calls, NULL, &facts, &count), 0);
		fake_verbs_fail_no_more();
		assert_int_equal(count, 2);
		assert_false(facts[0].usable);
		assert_string_equal(facts[0].reason, cases[n].reason);
		assert_true(facts[1].usable);
	}
}

static void no_memory_and_a_list_that_fails_are_told_and_leave_nothing(void **state) {
	struct device_facts *facts = NULL;
	uint32_t count = 7;

	(void)state;
	fake_device_add("fake0");
	fake_device_add("fake1");
	fake_verbs_fail(FAKE_DEVICE_LIST, 1, 1, -EMFILE);
	assert_int_equal(device_list(&fake_verbs_calls, NULL, &facts, &count), -EMFILE);
	fake_verbs_fail_no_more();
	fake_verbs_fail(FAKE_OPEN, 2, 1, -ENOMEM);
	assert_int_equal(device_list(&fake_verbs_calls, NULL, &facts, &count), -ENOMEM);
	fake_verbs_fail_no_more();
	assert_null(facts);
	assert_int_equal(count, 7);
}

static void the_table_says_who_answers_if_it_is_this_process(void **state) {
	struct verbs_calls in_process = fake_verbs_calls;
	scoped_mem struct device_facts *facts = NULL;
	uint32_t count;

	(void)state;
	fake_device_add("fake0");
	assert_int_equal(device_bed_list(NULL).responder, DEVICE_RESPONDER_KERNEL);
	in_process.in_process = true;
	assert_int_equal(device_list(&in_process, NULL, &facts, &count), 0);
	assert_int_equal(facts[0].responder, DEVICE_RESPONDER_IN_PROCESS);
}

// Three devices, some with the same GUID, are searched by an earlier name and GUID.
static void a_device_is_found_by_what_tells_it_from_others(void **state) {
	static const struct {
		uint64_t guids[3];
		const char *name;
		uint64_t guid;
		const char *found;   // NULL: no device
		uint64_t guid_after; // 0: the GUID identifies no device
	} rows[] = {
		{{5, 6, 7}, "fake1", 6, "fake1", 6},
		{{5, 6, 7}, "fake0", 6, "fake1", 6}, // the name now belongs to another device
		{{5, 6, 7}, "gone", 6, "fake1", 6},
		{{5, 6, 7}, "fake1", 0, "fake1", 0},
		{{5, 6, 7}, "fake1", 9, NULL, 9},
		{{5, 5, 7}, "fake1", 5, "fake1", 0},
		{{5, 5, 7}, "gone", 5, NULL, 0}, // ambiguous: two devices have this GUID
		{{5, 5, 7}, "fake1", 9, "fake1", 9},
		{{5, 5, 7}, "fake0", 7, "fake2", 7},
		{{0, 0, 7}, "fake1", 9, "fake1", 9},
	};
	struct fake_device *devices[3];

	(void)state;
	for (int n = 0; n < 3; n++)
		devices[n] = fake_device_add((const char *[]){"fake0", "fake1", "fake2"}[n]);
	for (size_t row = 0; row < COUNT(rows); row++) {
		char found[DEVICE_NAME_MAX + 1] = "";
		uint64_t guid = rows[row].guid;

		for (int n = 0; n < 3; n++)
			devices[n]->attr.node_guid = htobe64(rows[row].guids[n]);
		assert_int_equal(
			device_find(&fake_verbs_calls, rows[row].name, &guid, found),
			rows[row].found != NULL ? 0 : -ENODEV
		);
		assert_string_equal(found, rows[row].found != NULL ? rows[row].found : "");
		assert_true(guid == rows[row].guid_after);
	}
}

static void a_guid_that_two_have_is_no_fact_of_either(void **state) {
	scoped_mem struct device_facts *facts = NULL;
	char reason[DEVICE_REASON_MAX + 1];
	uint32_t count;
	uint64_t guid = 1;

	(void)state;
	for (int n = 0; n < 3; n++) {
		struct fake_device *device =
			fake_device_add((const char *[]){"fake0", "fake1", "fake2"}[n]);

		device->attr.node_guid = htobe64(n < 2 ? 5 : 7);
	}
	assert_int_equal(device_list(&fake_verbs_calls, NULL, &facts, &count), 0);
	assert_true(facts[0].guid == 0 && facts[1].guid == 0 && facts[2].guid == 7);
	assert_int_equal(device_guid(&fake_verbs_calls, "fake1", &guid), 0);
	assert_true(guid == 0);
	assert_int_equal(device_guid(&fake_verbs_calls, "fake2", &guid), 0);
	assert_true(guid == 7);
	assert_int_equal(device_guid(&fake_verbs_calls, "fake3", &guid), -ENODEV);
	for (int n = 0; n < 3; n++) {
		struct device *device;

		assert_int_equal(
			device_open(&fake_verbs_calls, facts[n].name, NULL, reason, &device), 0
		);
		assert_true(device_facts(device)->guid == facts[n].guid);
		device_put(device);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, device_bed_make, device_bed_end)

UNIT_GROUP(device) {
	const struct CMUnitTest tests[] = {
		TEST(a_machine_without_devices_or_rdma_has_an_empty_list),
		TEST(a_device_that_is_not_there_is_refused_with_those_that_are),
		TEST(facts_are_those_that_the_device_reports),
		TEST(a_device_without_rc_is_listed_with_its_reason_and_not_opened),
		TEST(a_name_that_the_overlay_cannot_carry_is_refused),
		TEST(a_limit_of_zero_or_less_makes_a_device_useless_and_is_named),
		TEST(an_open_device_lives_until_its_last_reference),
		TEST(each_call_that_fails_in_turn_is_told_and_leaves_nothing),
		TEST(a_device_that_fails_is_listed_beside_those_that_do_not),
		TEST(no_memory_and_a_list_that_fails_are_told_and_leave_nothing),
		TEST(the_table_says_who_answers_if_it_is_this_process),
		TEST(a_device_is_found_by_what_tells_it_from_others),
		TEST(a_guid_that_two_have_is_no_fact_of_either),
	};

	return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
