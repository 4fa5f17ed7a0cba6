// SPDX-License-Identifier: BSD-3-Clause
// Tests of the attributes of a pair's queue pair, which follow from the device, the port and the
// peer's endpoint.
#include "dataplane/device/device_bed.h"

#include <dataplane/lane.h>
#include <dataplane/pair.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static struct clock still;
static struct device *device;
static struct lane *lane;

static void open_lane(const struct device_settings *settings) {
	struct lane_config config = {
		.pair_max = 1, .depth = 4, .op_max = 4, .drain_ns = 1, .clock = &still};
	char reason[DEVICE_REASON_MAX + 1];

	clock_init_fake(&still, 1);
	assert_int_equal(device_open(&fake_verbs_calls, "fake0", settings, reason, &device), 0);
	config.device = device;
	assert_int_equal(lane_create(&config, &lane), 0);
}

static void close_lane(void) {
	assert_int_equal(lane_destroy(lane), 0);
	device = device_put(device);
}

static struct pair *create(struct device_endpoint *endpoint) {
	struct pair_config config = {.lane = lane, .generation = 1, .psn = 0x123456};
	struct pair *pair = NULL;

	assert_int_equal(pair_create(&config, endpoint, &pair), 0);
	return pair;
}

// Connect a pair to this endpoint; return the attributes of its queue pair.
static struct ibv_qp_attr connected(const struct device_endpoint *theirs) {
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	char reason[DEVICE_REASON_MAX + 1];
	struct device_endpoint endpoint;
	struct pair *pair = create(&endpoint);
	struct fake_device *fake = fake_device_of(device_context(device));
	struct ibv_qp *qp = fake_qp_find(fake, pair_queue_number(pair));

	assert_int_equal(pair_connect(pair, theirs, 0x12345, reason), 0);
	assert_int_equal(fake_verbs_calls.query_qp(qp, IBV_QP_STATE, &attr, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(pair_destroy(pair), 0);
	return attr;
}

static struct device_endpoint sound(enum device_link link, uint16_t lid, const char *gid) {
	struct device_endpoint theirs = {
		.link = link,
		.lid = lid,
		.mtu = 1024,
		.reads_in_max = 3,
		.reads_out_max = 5,
		.queue_number = 0x77,
		.psn = 0xabcdef,
	};

	assert_int_equal(inet_pton(AF_INET6, gid, theirs.gid.raw), 1);
	return theirs;
}

static void a_queue_pair_is_as_the_settings_and_the_smaller_end_want(void **state) {
	const struct device_endpoint theirs = sound(DEVICE_LINK_ETHERNET, 0, "::ffff:10.0.0.200");
	struct device_settings settings = device_settings_default;
	struct fake_device *fake = fake_device_add("fake0");
	struct ibv_qp_attr attr;

	(void)state;
	fake->ports[0].attr.pkey_tbl_len = 2;
	fake->ports[0].pkeys[1] = 0x8001;
	settings.mtu = 2048;
	settings.traffic_class = 104;
	settings.service_level = 3;
	settings.timeout = 11;
	settings.retry = 4;
	settings.rnr_retry = 5;
	settings.min_rnr_timer = 13;
	settings.pkey_index = 1;
	open_lane(&settings);
	attr = connected(&theirs);
	assert_int_equal(attr.path_mtu, IBV_MTU_1024);
	assert_int_equal(attr.dest_qp_num, 0x77);
	assert_int_equal(attr.rq_psn, 0xabcdef);
	assert_int_equal(attr.sq_psn, 0x123456);
	assert_int_equal(attr.max_rd_atomic, 3);
	assert_int_equal(attr.max_dest_rd_atomic, 5);
	assert_int_equal(attr.timeout, 11);
	assert_int_equal(attr.retry_cnt, 4);
	assert_int_equal(attr.rnr_retry, 5);
	assert_int_equal(attr.min_rnr_timer, 13);
	assert_int_equal(attr.pkey_index, 1);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.ah_attr.is_global, 1);
	assert_int_equal(attr.ah_attr.sl, 3);
	assert_int_equal(attr.ah_attr.grh.traffic_class, 104);
	assert_int_equal(attr.ah_attr.grh.flow_label, 0x12345);
	assert_int_equal(attr.ah_attr.grh.sgid_index, device_facts(device)->port.gid_index);
	close_lane();
	settings.mtu = 512; // now our MTU is the smaller one
	open_lane(&settings);
	assert_int_equal(connected(&theirs).path_mtu, IBV_MTU_512);
	close_lane();
}

static void a_peer_behind_a_router_is_reached_by_gid_and_a_near_one_by_lid(void **state) {
	struct fake_device *fake = fake_device_add("fake0");
	struct device_endpoint near = sound(DEVICE_LINK_INFINIBAND, 9, "fe80::9");
	struct device_endpoint far = sound(DEVICE_LINK_INFINIBAND, 9, "fec0::9");
	struct ibv_qp_attr attr;

	(void)state;
	fake_device_infiniband(fake, 5);
	open_lane(NULL);
	attr = connected(&near);
	assert_int_equal(attr.ah_attr.is_global, 0);
	assert_int_equal(attr.ah_attr.dlid, 9);
	attr = connected(&far);
	assert_int_equal(attr.ah_attr.is_global, 1);
	assert_memory_equal(&attr.ah_attr.grh.dgid, &far.gid, sizeof(far.gid));
	close_lane();
}

static void a_port_that_went_down_makes_no_pair_and_leaves_nothing(void **state) {
	struct pair_config config = {.generation = 1};
	struct fake_device *fake = fake_device_add("fake0");
	struct device_endpoint endpoint;
	struct pair *pair = NULL;

	(void)state;
	open_lane(NULL);
	config.lane = lane;
	fake->ports[0].attr.state = IBV_PORT_DOWN;
	assert_int_equal(pair_create(&config, &endpoint, &pair), -ENETDOWN);
	assert_null(pair);
	assert_int_equal(fake_verbs_alive().qps, 0);
	fake->ports[0].attr.state = IBV_PORT_ACTIVE;
	fake->ports[0].gid_count = 0;
	assert_int_equal(pair_create(&config, &endpoint, &pair), -ENETDOWN);
	close_lane();
}

static void an_impossible_other_end_is_refused_before_the_device_is_asked(void **state) {
	struct device_endpoint theirs = sound(DEVICE_LINK_ETHERNET, 0, "::ffff:10.0.0.200");
	char reason[DEVICE_REASON_MAX + 1];
	struct device_endpoint endpoint;
	struct pair *pair;
	uint64_t asked;

	(void)state;
	fake_device_add("fake0");
	open_lane(NULL);
	pair = create(&endpoint);
	asked = fake_verbs_calls_made(FAKE_MODIFY_QP);
	theirs.mtu = 7;
	assert_int_equal(pair_connect(pair, &theirs, 0, reason), -EBADMSG);
	assert_string_equal(reason, "mtu 7 is not 256, 512, 1024, 2048 or 4096");
	theirs = sound(DEVICE_LINK_INFINIBAND, 9, "fe80::9");
	assert_int_equal(pair_connect(pair, &theirs, 0, reason), -EPROTONOSUPPORT);
	assert_int_equal(fake_verbs_calls_made(FAKE_MODIFY_QP), asked);
	assert_int_equal(pair_destroy(pair), 0);
	close_lane();
}

static void a_pair_carries_as_many_bytes_in_a_request_as_were_asked_for_or_none(void **state) {
	// The fake device allows 512 inline bytes.
	static const struct {
		uint32_t asked, granted;
	} cases[] = {{0, 0}, {1, 1}, {PAIR_INLINE_BYTES, PAIR_INLINE_BYTES}, {512, 512}, {513, 0}};

	(void)state;
	fake_device_add("fake0");
	open_lane(NULL);
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct pair_config config = {
			.lane = lane, .generation = 1, .inline_bytes = cases[k].asked};
		struct device_endpoint endpoint;
		struct pair *pair;

		assert_int_equal(pair_create(&config, &endpoint, &pair), 0);
		assert_int_equal(pair_inline_bytes(pair), cases[k].granted);
		assert_int_equal(pair_destroy(pair), 0);
	}
	close_lane();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, device_bed_make, device_bed_end)

UNIT_GROUP(pair_route) {
	const struct CMUnitTest tests[] = {
		TEST(a_queue_pair_is_as_the_settings_and_the_smaller_end_want),
		TEST(a_peer_behind_a_router_is_reached_by_gid_and_a_near_one_by_lid),
		TEST(a_port_that_went_down_makes_no_pair_and_leaves_nothing),
		TEST(an_impossible_other_end_is_refused_before_the_device_is_asked),
		TEST(a_pair_carries_as_many_bytes_in_a_request_as_were_asked_for_or_none),
	};

	return cmocka_run_group_tests_name("pair_route", tests, NULL, NULL);
}
