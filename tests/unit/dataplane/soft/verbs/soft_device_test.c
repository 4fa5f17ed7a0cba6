// SPDX-License-Identifier: BSD-3-Clause
// Tests of the software device through the agent's device interface: it is listed and opened, and
// two of them form a pair.
#include "dataplane/soft/soft_bed.h"

#include <dataplane/device.h>
#include <dataplane/gid.h>
#include <lib/scoped.h>

#include <errno.h>

static void facts_are_asked_without_leaving_the_device_open(void **state) {
	scoped_mem struct device_facts *facts = NULL;
	char gid[GID_TEXT_MAX + 1];
	struct sock_addr address;
	uint32_t count = 0;

	(void)state;
	assert_int_equal(verbs_calls_soft.close(bed.ends[1].context), 0);
	bed.ends[1].context = NULL;
	assert_int_equal(device_list(&verbs_calls_soft, NULL, &facts, &count), 0);
	assert_int_equal(count, 2);
	assert_string_equal(facts[1].reason, "");
	assert_true(facts[1].usable);
	assert_string_equal(facts[1].name, "soft1");
	assert_string_equal(facts[1].path, "");
	assert_int_equal(facts[1].responder, DEVICE_RESPONDER_IN_PROCESS);
	assert_string_equal(device_responder_name(facts[1].responder), "in-process");
	assert_int_equal(facts[1].port.number, 1);
	assert_int_equal(facts[1].port.link, DEVICE_LINK_ETHERNET);
	assert_int_equal(facts[1].port.active_mtu, 4096);
	assert_int_equal(facts[1].port.gid_index, 0);
	assert_string_equal(gid_format(&facts[1].port.gid, gid), "10.0.0.2");
	assert_int_equal(facts[1].port.message_max, UINT64_C(1) << 30);
	assert_int_equal(facts[1].limits.reads_out_max, 16);
	assert_int_equal(facts[1].limits.pair_max, 4096);
	assert_true(facts[1].limits.atomics);
	assert_int_equal(soft_device_address("soft1", &address), -ENOTCONN);
}

// A GID index that the user chose must be one that the wire carries.
static void a_gid_that_no_wire_carries_is_refused(void **state) {
	struct device_settings settings = device_settings_default;
	char reason[DEVICE_REASON_MAX + 1];
	struct device *device = NULL;

	(void)state;
	settings.gid_index = 2;
	assert_int_equal(
		device_open(&verbs_calls_soft, "soft0", &settings, reason, &device), -EINVAL
	);
	assert_string_not_equal(reason, "");
	assert_null(device);
}

static struct device_endpoint endpoint_of(const struct device *device, uint32_t queue_number) {
	const struct device_facts *facts = device_facts(device);

	return (struct device_endpoint
	){.link = facts->port.link,
	  .gid = facts->port.gid,
	  .mtu = facts->port.active_mtu,
	  .reads_in_max = facts->limits.reads_in_max,
	  .reads_out_max = facts->limits.reads_out_max,
	  .queue_number = queue_number};
}

static void two_of_them_can_have_a_pair(void **state) {
	struct device *devices[2] = {NULL};
	char reason[DEVICE_REASON_MAX + 1];
	struct device_endpoint theirs;
	struct ibv_ah_attr route = {0};
	struct device_event event;

	(void)state;
	for (int n = 0; n < 2; n++)
		assert_int_equal(
			device_open(
				&verbs_calls_soft, n == 0 ? "soft0" : "soft1", NULL, reason,
				&devices[n]
			),
			0
		);
	theirs = endpoint_of(devices[1], 77);
	assert_int_equal(device_endpoint_check(device_facts(devices[0]), &theirs, reason), 0);
	device_route(devices[0], device_facts(devices[0]), &theirs, 5, &route);
	assert_int_equal(route.is_global, 1);
	assert_int_equal(route.grh.sgid_index, 0);
	assert_memory_equal(&route.grh.dgid, &theirs.gid, sizeof(theirs.gid));
	assert_int_equal(device_event(devices[0], &event), -EAGAIN);
	for (int n = 0; n < 2; n++)
		device_put(devices[n]);
}

UNIT_GROUP(soft_device) {
#define BARE(test) cmocka_unit_test_setup_teardown(test, bed_make_bare, bed_end)
	const struct CMUnitTest tests[] = {
		BARE(facts_are_asked_without_leaving_the_device_open),
		BARE(a_gid_that_no_wire_carries_is_refused),
		BARE(two_of_them_can_have_a_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
