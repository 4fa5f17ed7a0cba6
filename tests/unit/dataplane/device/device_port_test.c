// SPDX-License-Identifier: BSD-3-Clause
// Tests of the port, its MTU and its addresses, with and without settings, and after the port
// flapped.
#include "dataplane/device/device_bed.h"

#include <lib/scoped.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void a_port_that_is_not_active_is_awaited(void **state) {
	static const struct {
		enum ibv_port_state port;
		const char *reason;
	} cases[] = {
		{IBV_PORT_NOP, "port 1 of fake0 is in state NOP"},
		{IBV_PORT_DOWN, "port 1 of fake0 is down"},
		{IBV_PORT_INIT, "port 1 of fake0 is initializing"},
		{IBV_PORT_ARMED, "port 1 of fake0 is armed"},
		{IBV_PORT_ACTIVE_DEFER, "port 1 of fake0 is deferred"},
		{(enum ibv_port_state)9, "port 1 of fake0 is in an unknown state"},
	};
	struct fake_device *device = fake_device_add("fake0");

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		device->ports[0].attr.state = cases[n].port;
		device_bed_refuses(NULL, -ENETDOWN, cases[n].reason);
	}
	// A port that is down still reports its known facts, because they help to find the cause.
	assert_true(device_bed_list(NULL).port.gid_index >= 0);
}

static void the_first_active_port_is_taken_unless_one_is_named(void **state) {
	struct fake_device *device = fake_device_add("fake0");
	struct device_settings settings = device_settings_default;

	(void)state;
	device->attr.phys_port_cnt = 2;
	assert_int_equal(device_bed_list(NULL).port.number, 1);
	device->ports[0].attr.state = IBV_PORT_DOWN;
	assert_int_equal(device_bed_list(NULL).port.number, 2);
	assert_true(device_bed_list(NULL).usable);
	settings.port = 1;
	device_bed_refuses(&settings, -ENETDOWN, "port 1 of fake0 is down");
	settings.port = 2;
	assert_int_equal(device_bed_list(&settings).port.number, 2);
	device->ports[1].attr.state = IBV_PORT_DOWN;
	device_bed_refuses(NULL, -ENETDOWN, "port 1 of fake0 is down");
	settings.port = 3;
	device_bed_refuses(&settings, -EINVAL, "port 3: fake0 has the ports 1 to 2");
}

static void settings_are_within_their_bits_or_named_with_what_is_allowed(void **state) {
#define SET(member, value, why)                                                   \
	{                                                                         \
		offsetof(struct device_settings, member),                         \
			sizeof(((struct device_settings *)0)->member), value, why \
	}
	static const struct {
		size_t offset, size;
		int value;
		const char *reason; // NULL: the value is allowed
	} cases[] = {
		SET(retry, 0, NULL),
		SET(retry, 7, NULL),
		SET(retry, 8, "retry 8: 0 to 7 are allowed"),
		SET(rnr_retry, 7, NULL),
		SET(rnr_retry, 255, "rnr_retry 255: 0 to 7 are allowed"),
		SET(timeout, 0, NULL),
		SET(timeout, 31, NULL),
		SET(timeout, 32, "timeout 32: 0 to 31 are allowed"),
		SET(min_rnr_timer, 31, NULL),
		SET(min_rnr_timer, 32, "min_rnr_timer 32: 0 to 31 are allowed"),
		SET(service_level, 15, NULL),
		SET(service_level, 16, "service_level 16: 0 to 15 are allowed"),
		SET(traffic_class, 255, NULL),
		SET(mtu, 256, NULL),
		SET(mtu, 2048, NULL),
		SET(mtu, 4096, "mtu 4096: port 1 of fake0 has only 2048"),
		SET(mtu, 7, "mtu 7: 256, 512, 1024, 2048 and 4096 are allowed"),
		SET(mtu, 128, "mtu 128: 256, 512, 1024, 2048 and 4096 are allowed"),
		SET(mtu, 8192, "mtu 8192: 256, 512, 1024, 2048 and 4096 are allowed"),
		SET(gid_index, -2, "gid_index -2: auto or 0 and above are allowed"),
		SET(pkey_index, 1, "pkey_index 1: port 1 of fake0 has 1 P_Keys"),
		SET(pkey_index, 65535, "pkey_index 65535: port 1 of fake0 has 1 P_Keys"),
	};
	struct fake_device *device = fake_device_add("fake0");

	(void)state;
	device->ports[0].attr.active_mtu = IBV_MTU_2048;
	for (size_t n = 0; n < COUNT(cases); n++) {
		struct device_settings settings = device_settings_default;
		char reason[DEVICE_REASON_MAX + 1];

		memcpy((char *)&settings + cases[n].offset, &cases[n].value, cases[n].size);
		if (cases[n].reason != NULL)
			device_bed_refuses(&settings, -EINVAL, cases[n].reason);
		else
			assert_int_equal(device_bed_open("fake0", &settings, reason), 0);
	}
}

static void the_mtu_is_that_of_the_port_or_less_if_the_setting_is(void **state) {
	struct fake_device *device = fake_device_add("fake0");
	struct device_settings settings = device_settings_default;

	(void)state;
	for (enum ibv_mtu code = IBV_MTU_256; code <= IBV_MTU_4096; code++) {
		device->ports[0].attr.active_mtu = code;
		assert_int_equal(device_bed_list(NULL).port.active_mtu, 128 << code);
	}
	settings.mtu = 1024;
	assert_int_equal(device_bed_list(&settings).port.active_mtu, 1024);
	device->ports[0].attr.active_mtu = 0;
	device_bed_refuses(NULL, -ENOTSUP, "port 1 of fake0 reports an invalid MTU");
	device->ports[0].attr.active_mtu = 7;
	device_bed_refuses(NULL, -ENOTSUP, "port 1 of fake0 reports an invalid MTU");
}

static void a_p_key_that_is_missing_is_awaited(void **state) {
	struct fake_device *device = fake_device_add("fake0");
	struct device_settings settings = device_settings_default;

	(void)state;
	settings.pkey_index = 1;
	device->ports[0].attr.pkey_tbl_len = 2;
	device->ports[0].pkeys[1] = 0x8000; // the member bit without a partition
	device_bed_refuses(
		&settings, -ENETDOWN, "pkey_index 1: port 1 of fake0 has no P_Key there"
	);
	device->ports[0].pkeys[1] = 0x0001; // a limited member
	assert_true(device_bed_list(&settings).usable);
}

static void a_full_membership_is_preferred_and_among_equals_the_first(void **state) {
	static const struct {
		uint16_t pkeys[4];
		int index;
	} cases[] = {
		{{0xffff, 0x8001, 0, 0}, 0},	  {{0x7fff, 0xffff, 0, 0}, 1},
		{{0x7fff, 0, 0x8001, 0x8002}, 2}, {{0, 0x0001, 0x7fff, 0}, 1},
		{{0x8000, 0, 0, 0x7fff}, 3},	  {{0, 0, 0x8000, 0}, -1},
	};
	struct fake_device *device = fake_device_add("fake0");

	(void)state;
	device->ports[0].attr.pkey_tbl_len = 4;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct device_facts facts;

		memcpy(device->ports[0].pkeys, cases[n].pkeys, sizeof(cases[n].pkeys));
		if (cases[n].index < 0) {
			device_bed_refuses(
				NULL, -ENETDOWN,
				"port 1 of fake0 is in no partition: it has no P_Key"
			);
			continue;
		}
		facts = device_bed_list(NULL);
		assert_true(facts.usable);
		assert_int_equal(facts.port.pkey_index, cases[n].index);
		assert_int_equal(facts.port.pkey, cases[n].pkeys[cases[n].index]);
	}
}

static void set_gids(struct fake_device *device, const char *const *texts, uint32_t type) {
	struct fake_port *port = &device->ports[0];

	for (port->gid_count = 0; texts[port->gid_count] != NULL; port->gid_count++) {
		struct ibv_gid_entry *entry = &port->gids[port->gid_count];

		memset(entry, 0, sizeof(*entry));
		assert_int_equal(inet_pton(AF_INET6, texts[port->gid_count], entry->gid.raw), 1);
		entry->gid_index = port->gid_count;
		entry->port_num = 1;
		entry->gid_type = type;
	}
}

// The kernel limits the size of its answer to 16 bits and returns EINVAL beyond that.
static int query_gids_as_the_kernel(
	struct ibv_context *context,
	struct ibv_gid_entry *entries,
	uint32_t max,
	uint32_t *ret_count
) {
	if (max * sizeof(*entries) > UINT16_MAX)
		return -EINVAL;
	return fake_verbs_calls.query_gids(context, entries, max, ret_count);
}

static void no_more_gids_are_asked_for_than_the_kernel_can_answer(void **state) {
	struct verbs_calls calls = fake_verbs_calls;
	scoped_mem struct device_facts *facts = NULL;
	uint32_t count;

	(void)state;
	fake_device_add("fake0");
	calls.query_gids = query_gids_as_the_kernel;
	assert_int_equal(device_list(&calls, NULL, &facts, &count), 0);
	assert_string_equal(facts[0].reason, "");
}

static void a_port_without_a_gid_for_pairs_is_awaited(void **state) {
	static const char *const none[] = {NULL}, *const useless[] = {"::", "ff02::1", NULL};
	static const char why[] =
		"port 1 of fake0 has no RoCE v2 GID: its interface has no address";
	struct fake_device *device = fake_device_add("fake0");

	(void)state;
	set_gids(device, none, IBV_GID_TYPE_ROCE_V2);
	device_bed_refuses(NULL, -ENETDOWN, why);
	assert_int_equal(device_bed_list(NULL).port.gid_index, -1);
	set_gids(device, useless, IBV_GID_TYPE_ROCE_V2);
	device_bed_refuses(NULL, -ENETDOWN, why);
	set_gids(device, (const char *const[]){"::ffff:10.0.0.1", NULL}, IBV_GID_TYPE_ROCE_V1);
	device_bed_refuses(NULL, -ENETDOWN, why);
}

static void a_gid_that_is_named_is_looked_at_and_not_replaced(void **state) {
	static const char *const texts[] = {"fe80::1", "::", "::ffff:10.0.0.1", NULL};
	struct fake_device *device = fake_device_add("fake0");
	struct device_settings settings = device_settings_default;

	(void)state;
	set_gids(device, texts, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(device_bed_list(NULL).port.gid_index, 2);
	settings.gid_index = 0;
	assert_int_equal(device_bed_list(&settings).port.gid_index, 0);
	settings.gid_index = 1;
	device_bed_refuses(&settings, -ENETDOWN, "gid_index 1: port 1 of fake0 has no GID there");
	settings.gid_index = 3;
	device_bed_refuses(&settings, -ENETDOWN, "gid_index 3: port 1 of fake0 has no GID there");
	settings.gid_index = 16;
	device_bed_refuses(
		&settings, -EINVAL, "gid_index 16: port 1 of fake0 has the indexes 0 to 15"
	);
	settings.gid_index = 2;
	set_gids(device, texts, IBV_GID_TYPE_ROCE_V1);
	device_bed_refuses(
		&settings, -EINVAL,
		"gid_index 2: port 1 of fake0 has RoCE v1 there, but RoCE v2 is needed"
	);
}

static void infiniband_goes_by_lid_and_its_first_gid(void **state) {
	struct fake_device *device = fake_device_add("fake0");
	struct device_facts facts;

	(void)state;
	fake_device_infiniband(device, 0x2a);
	facts = device_bed_list(NULL);
	assert_true(facts.usable);
	assert_int_equal(facts.port.link, DEVICE_LINK_INFINIBAND);
	assert_int_equal(facts.port.lid, 0x2a);
	assert_int_equal(facts.port.gid_index, 0);
	assert_int_equal(facts.port.gid_type, IBV_GID_TYPE_IB);
	assert_false(facts.port.grh_needed);
	device->ports[0].attr.flags = IBV_QPF_GRH_REQUIRED;
	assert_true(device_bed_list(NULL).port.grh_needed);

	// A LID or a GID is enough. Old kernels do not report the link layer.
	device->ports[0].attr.link_layer = IBV_LINK_LAYER_UNSPECIFIED;
	device->ports[0].attr.lid = 0;
	assert_true(device_bed_list(NULL).usable);
	device->ports[0].gid_count = 0;
	device_bed_refuses(NULL, -ENETDOWN, "port 1 of fake0 has neither LID nor GID");
	device->ports[0].attr.lid = 0x2a;
	facts = device_bed_list(NULL);
	assert_true(facts.usable);
	assert_int_equal(facts.port.gid_index, -1);
}

static void a_refresh_finds_the_address_again_where_it_is_now(void **state) {
	static const char *const before[] = {"fe80::1", "::ffff:10.0.0.7", NULL};
	static const char *const after[] = {"::ffff:10.0.0.1", "fe80::1", "::ffff:10.0.0.7", NULL};
	static const char *const gone[] = {"::ffff:10.0.0.1", "fe80::1", NULL};
	struct fake_device *fake = fake_device_add("fake0");
	char reason[DEVICE_REASON_MAX + 1];
	struct device *device = NULL;
	struct device_facts facts;

	(void)state;
	set_gids(fake, before, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(device_open(&fake_verbs_calls, "fake0", NULL, reason, &device), 0);
	assert_int_equal(device_facts(device)->port.gid_index, 1);
	set_gids(fake, after, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(device_refresh(device, &facts), 0);
	assert_true(facts.usable);
	assert_int_equal(facts.port.gid_index, 2);
	assert_memory_equal(&facts.port.gid, &device_facts(device)->port.gid, 16);
	set_gids(fake, gone, IBV_GID_TYPE_ROCE_V2);
	assert_int_equal(device_refresh(device, &facts), 0);
	assert_int_equal(facts.port.gid_index, 0);
	// Unchanged since the device was opened.
	assert_int_equal(device_facts(device)->port.gid_index, 1);
	device_put(device);
}

static void a_refresh_says_that_the_port_went_down_and_came_back(void **state) {
	struct fake_device *fake = fake_device_add("fake0");
	char reason[DEVICE_REASON_MAX + 1];
	struct device *device = NULL;
	struct device_facts facts, kept;

	(void)state;
	fake->attr.phys_port_cnt = 2;
	fake->ports[0].attr.state = IBV_PORT_DOWN;
	assert_int_equal(device_open(&fake_verbs_calls, "fake0", NULL, reason, &device), 0);
	assert_int_equal(device_facts(device)->port.number, 2);
	fake->ports[0].attr.state = IBV_PORT_ACTIVE; // not the port in use
	fake->ports[1].attr.state = IBV_PORT_DOWN;
	assert_int_equal(device_refresh(device, &facts), 0);
	assert_int_equal(facts.port.number, 2);
	assert_false(facts.usable);
	assert_true(facts.awaits_port);
	assert_string_equal(facts.reason, "port 2 of fake0 is down");
	kept = facts;
	fake_verbs_fail(FAKE_QUERY_PORT, 1, 1, -EIO);
	assert_int_equal(device_refresh(device, &facts), -EIO);
	assert_memory_equal(&kept, &facts, sizeof(facts));
	fake_verbs_fail_no_more();
	fake->ports[1].attr.state = IBV_PORT_ACTIVE;
	assert_int_equal(device_refresh(device, &facts), 0);
	assert_true(facts.usable);
	assert_string_equal(facts.reason, "");
	device_put(device);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, device_bed_make, device_bed_end)

UNIT_GROUP(device_port) {
	const struct CMUnitTest tests[] = {
		TEST(a_port_that_is_not_active_is_awaited),
		TEST(the_first_active_port_is_taken_unless_one_is_named),
		TEST(settings_are_within_their_bits_or_named_with_what_is_allowed),
		TEST(the_mtu_is_that_of_the_port_or_less_if_the_setting_is),
		TEST(a_full_membership_is_preferred_and_among_equals_the_first),
		TEST(a_p_key_that_is_missing_is_awaited),
		TEST(no_more_gids_are_asked_for_than_the_kernel_can_answer),
		TEST(a_port_without_a_gid_for_pairs_is_awaited),
		TEST(a_gid_that_is_named_is_looked_at_and_not_replaced),
		TEST(infiniband_goes_by_lid_and_its_first_gid),
		TEST(a_refresh_finds_the_address_again_where_it_is_now),
		TEST(a_refresh_says_that_the_port_went_down_and_came_back),
	};

	return cmocka_run_group_tests_name("device_port", tests, NULL, NULL);
}
