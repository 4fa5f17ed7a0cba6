// SPDX-License-Identifier: BSD-3-Clause
// Runs in the guest: dataplane/device.h on the kernel's devices. The test changes and restores
// their links and addresses.
#include "hear.h"

#include <dataplane/device.h>
#include <lib/scoped.h>
#include <support/cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EVENT_MS_MAX 10000
#define OPENS 200

static const struct verbs_calls *const calls = &verbs_calls_system;

#define RUN(...)                                                                              \
	do {                                                                                  \
		char said_[256];                                                              \
		run_and_hear((const char *const[]){__VA_ARGS__, NULL}, said_, sizeof(said_)); \
	} while (0)

static union ibv_gid gid_of(const char *address) {
	union ibv_gid gid;
	char text[64];

	snprintf(text, sizeof(text), "::ffff:%s", address);
	assert_int_equal(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

static void assert_gid(const struct device_facts *facts, const char *address) {
	const union ibv_gid gid = gid_of(address);

	assert_memory_equal(&facts->port.gid, &gid, sizeof(gid));
}

static struct device *open_named(const char *name, const struct device_settings *settings) {
	char reason[DEVICE_REASON_MAX + 1] = "";
	struct device *device = NULL;
	int err = device_open(calls, name, settings, reason, &device);

	if (err != 0)
		print_error("%s\n", reason);
	assert_int_equal(err, 0);
	return device;
}

static void both_devices_are_listed_with_what_they_are(void **state) {
	scoped_mem struct device_facts *facts = NULL;
	uint32_t count;

	(void)state;
	assert_int_equal(device_list(calls, NULL, &facts, &count), 0);
	assert_int_equal(count, 2);
	for (uint32_t n = 0; n < count; n++) {
		bool is_first = strcmp(facts[n].name, "rxe0") == 0;

		assert_string_equal(facts[n].name, is_first ? "rxe0" : "rxe1");
		assert_string_equal(facts[n].reason, "");
		assert_true(facts[n].usable);
		assert_string_equal(facts[n].netdev, is_first ? "ve0" : "ve1");
		assert_string_equal(
			facts[n].path,
			is_first ? "/sys/class/infiniband/rxe0" : "/sys/class/infiniband/rxe1"
		);
		assert_string_equal(facts[n].pci, "");
		assert_int_equal(facts[n].numa_node, -1);
		assert_int_equal(facts[n].responder, DEVICE_RESPONDER_KERNEL);
		assert_true(facts[n].guid != 0);
		assert_int_equal(facts[n].port.number, 1);
		assert_int_equal(facts[n].port.state, IBV_PORT_ACTIVE);
		assert_int_equal(facts[n].port.link, DEVICE_LINK_ETHERNET);
		// The largest that fits into 1,500 bytes.
		assert_int_equal(facts[n].port.active_mtu, 1024);
		assert_int_equal(facts[n].port.speed_mbps, 10000);
		assert_int_equal(facts[n].port.gid_type, IBV_GID_TYPE_ROCE_V2);
		assert_gid(&facts[n], is_first ? "10.0.0.1" : "10.0.0.2");
		assert_true(facts[n].limits.atomics);
		assert_true(facts[n].limits.pair_max >= 1000);
	}
}

static void settings_that_the_device_cannot_do_are_refused_with_what_it_has(void **state) {
	static const struct {
		struct device_settings settings;
		int err;
		const char *reason;
	} cases[] = {
		{{.gid_index = -1, .mtu = 4096}, -EINVAL, "mtu 4096: port 1 of rxe0 has only 1024"},
		{{.gid_index = -1, .port = 2}, -EINVAL, "port 2: rxe0 has the ports 1 to 1"},
		{{.gid_index = 9}, -ENETDOWN, "gid_index 9: port 1 of rxe0 has no GID there"},
		{{.gid_index = 9999},
		 -EINVAL,
		 "gid_index 9999: port 1 of rxe0 has the indexes 0 to 1023"},
		{{.gid_index = -1, .pkey_index = 64},
		 -EINVAL,
		 "pkey_index 64: port 1 of rxe0 has 1 P_Keys"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		char reason[DEVICE_REASON_MAX + 1] = "";
		struct device *device = NULL;

		assert_int_equal(
			device_open(calls, "rxe0", &cases[n].settings, reason, &device),
			cases[n].err
		);
		assert_string_equal(reason, cases[n].reason);
		assert_null(device);
	}
}

static void settings_are_what_pairs_get(void **state) {
	struct device_settings settings = device_settings_default;
	struct device *device;

	(void)state;
	settings.mtu = 512;
	settings.gid_index = 0;
	device = open_named("rxe0", &settings);
	assert_int_equal(device_facts(device)->port.active_mtu, 512);
	assert_int_equal(device_facts(device)->port.gid_index, 0);
	assert_int_equal(device_facts(device)->port.gid.raw[0], 0xfe); // link-local, as requested
	assert_int_equal(fcntl(device_event_fd(device), F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	assert_int_equal(fcntl(device_event_fd(device), F_GETFD), FD_CLOEXEC);
	device_put(device);
}

// Wait for an event of this kind; earlier events are discarded.
static void await(struct device *device, enum device_event_kind kind) {
	struct device_event event = {.kind = DEVICE_EVENT_OTHER};

	while (event.kind != kind) {
		struct pollfd fd = {.fd = device_event_fd(device), .events = POLLIN};

		assert_int_equal(poll(&fd, 1, EVENT_MS_MAX), 1);
		assert_int_equal(device_event(device, &event), 0);
	}
	assert_int_equal(event.port, 1);
}

static void drain(struct device *device) {
	struct device_event event;
	int err;

	do
		err = device_event(device, &event);
	while (err == 0);
	assert_int_equal(err, -EAGAIN);
}

static void a_link_that_goes_down_and_up_is_told_on_both_ends(void **state) {
	struct device *devices[] = {open_named("rxe0", NULL), open_named("rxe1", NULL)};
	char reason[DEVICE_REASON_MAX + 1];
	struct device *refused = NULL;
	struct device_facts facts;

	(void)state;
	RUN("ip", "link", "set", "ve1", "down");
	for (size_t n = 0; n < 2; n++) {
		await(devices[n], DEVICE_EVENT_PORT_DOWN);
		assert_int_equal(device_refresh(devices[n], &facts), 0);
		assert_false(facts.usable);
		assert_true(facts.awaits_port);
		assert_int_equal(facts.port.state, IBV_PORT_DOWN);
	}
	assert_string_equal(facts.reason, "port 1 of rxe1 is down");
	assert_int_equal(device_open(calls, "rxe1", NULL, reason, &refused), -ENETDOWN);
	assert_string_equal(reason, "port 1 of rxe1 is down");

	RUN("ip", "link", "set", "ve1", "up");
	for (size_t n = 0; n < 2; n++) {
		await(devices[n], DEVICE_EVENT_PORT_ACTIVE);
		assert_int_equal(device_refresh(devices[n], &facts), 0);
		assert_true(facts.usable);
		assert_string_equal(facts.reason, "");
		assert_gid(&facts, n == 0 ? "10.0.0.1" : "10.0.0.2");
		device_put(devices[n]);
	}
}

static void an_address_is_followed_to_its_new_index(void **state) {
	struct device *device = open_named("rxe0", NULL);
	int index = device_facts(device)->port.gid_index;
	struct device_facts facts;

	(void)state;
	RUN("ip", "addr", "del", "10.0.0.1/24", "dev", "ve0");
	await(device, DEVICE_EVENT_PORT_CHANGED);
	assert_int_equal(device_refresh(device, &facts), 0);
	assert_true(facts.usable); // through its link-local address, until there is a better one
	assert_int_equal(facts.port.gid.raw[0], 0xfe);
	drain(device);

	RUN("ip", "addr", "add", "10.0.0.77/32", "dev", "ve0");
	await(device, DEVICE_EVENT_PORT_CHANGED);
	drain(device);
	RUN("ip", "addr", "add", "10.0.0.1/24", "dev", "ve0");
	await(device, DEVICE_EVENT_PORT_CHANGED);
	assert_int_equal(device_refresh(device, &facts), 0);
	assert_gid(&facts, "10.0.0.1"); // not 10.0.0.77, which has the old index now
	assert_int_not_equal(facts.port.gid_index, index);
	drain(device);

	RUN("ip", "addr", "del", "10.0.0.77/32", "dev", "ve0");
	await(device, DEVICE_EVENT_PORT_CHANGED);
	RUN("ip", "addr", "del", "10.0.0.1/24", "dev", "ve0");
	RUN("ip", "addr", "add", "10.0.0.1/24", "dev", "ve0"); // restores the original address
	device_put(device);
}

static void hear_resources(char *said, size_t size) {
	run_and_hear((const char *const[]){"rdma", "resource", "show", NULL}, said, size);
}

static void two_hundred_openings_leave_nothing_in_the_kernel(void **state) {
	char before[1024], open[1024], after[1024];
	struct device *device;
	int fd_before = dup(STDIN_FILENO), fd_after;

	(void)state;
	hear_resources(before, sizeof(before));
	for (int n = 0; n < OPENS; n++) {
		device = open_named(n % 2 == 0 ? "rxe0" : "rxe1", NULL);
		if (n == 0) {
			hear_resources(open, sizeof(open));
			assert_string_not_equal(before, open); // an open device is visible
		}
		device_put(device);
	}
	hear_resources(after, sizeof(after));
	assert_string_equal(before, after);
	// The lowest free descriptor must be unchanged.
	close(fd_before);
	fd_after = dup(STDIN_FILENO);
	assert_int_equal(fd_after, fd_before);
	close(fd_after);
}

// Move a queue pair of rxe0 to RTR towards a peer with this address.
static int connect_to(struct device *device, struct ibv_cq *cq, const union ibv_gid *gid) {
	struct device_endpoint theirs = {
		.link = DEVICE_LINK_ETHERNET,
		.gid = *gid,
		.mtu = 1024,
		.reads_in_max = 16,
		.reads_out_max = 16,
		.queue_number = 0x11,
	};
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp = NULL;
	int err;

	assert_int_equal(calls->create_qp(device_pd(device), &init, &qp), 0);
	assert_int_equal(
		calls->modify_qp(
			qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
		),
		0
	);
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = theirs.queue_number;
	attr.max_dest_rd_atomic = 16;
	attr.min_rnr_timer = 12;
	device_route(device, device_facts(device), &theirs, 0, &attr.ah_attr);
	err = calls->modify_qp(
		qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
	);
	assert_int_equal(calls->destroy_qp(qp), 0);
	return err;
}

static void the_way_to_a_peer_is_one_the_kernel_takes_and_families_do_not_mix(void **state) {
	struct device *device = open_named("rxe0", NULL), *other = open_named("rxe1", NULL);
	union ibv_gid ipv6;
	struct ibv_cq *cq = NULL;

	(void)state;
	assert_int_equal(inet_pton(AF_INET6, "fe80::2", ipv6.raw), 1);
	assert_int_equal(calls->create_cq(device_context(device), 16, NULL, &cq), 0);
	assert_int_equal(connect_to(device, cq, &device_facts(other)->port.gid), 0);
	// device_endpoint_check() rejects this earlier.
	assert_int_equal(connect_to(device, cq, &ipv6), -EINVAL);
	assert_int_equal(calls->destroy_cq(cq), 0);
	device_put(device);
	device_put(other);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_devices_are_listed_with_what_they_are),
		cmocka_unit_test(settings_that_the_device_cannot_do_are_refused_with_what_it_has),
		cmocka_unit_test(settings_are_what_pairs_get),
		cmocka_unit_test(a_link_that_goes_down_and_up_is_told_on_both_ends),
		cmocka_unit_test(an_address_is_followed_to_its_new_index),
		cmocka_unit_test(two_hundred_openings_leave_nothing_in_the_kernel),
		cmocka_unit_test(the_way_to_a_peer_is_one_the_kernel_takes_and_families_do_not_mix),
	};

	return cmocka_run_group_tests_name("real_device", tests, NULL, NULL);
}
