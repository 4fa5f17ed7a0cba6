// SPDX-License-Identifier: BSD-3-Clause
// Tests of the events of an open device and of our names for them.
#include <dataplane/device.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>

#include <errno.h>
#include <poll.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct fake_device *fake;
static struct device *device;

static int set_up(void **state) {
	char reason[DEVICE_REASON_MAX + 1];

	(void)state;
	fake_verbs_init(NULL);
	fake = fake_device_add("fake0");
	fake->attr.phys_port_cnt = 2;
	return device_open(&fake_verbs_calls, "fake0", NULL, reason, &device);
}

static int tear_down(void **state) {
	(void)state;
	device = device_put(device);
	return fake_verbs_fini() == NULL ? 0 : -1;
}

static bool is_readable(void) {
	struct pollfd fd = {.fd = device_event_fd(device), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static void without_an_event_there_is_nothing_to_read_and_nothing_written(void **state) {
	struct device_event event, before;

	(void)state;
	memset(&event, 0x55, sizeof(event));
	before = event;
	assert_false(is_readable());
	assert_int_equal(device_event(device, &event), -EAGAIN);
	assert_memory_equal(&event, &before, sizeof(event));
}

static void an_event_of_a_port_has_its_number_also_of_a_port_not_in_use(void **state) {
	static const struct {
		enum ibv_event_type type;
		enum device_event_kind kind;
		const char *name;
	} cases[] = {
		{IBV_EVENT_PORT_ACTIVE, DEVICE_EVENT_PORT_ACTIVE, "PORT_ACTIVE"},
		{IBV_EVENT_PORT_ERR, DEVICE_EVENT_PORT_DOWN, "PORT_ERR"},
		{IBV_EVENT_LID_CHANGE, DEVICE_EVENT_PORT_CHANGED, "LID_CHANGE"},
		{IBV_EVENT_PKEY_CHANGE, DEVICE_EVENT_PORT_CHANGED, "PKEY_CHANGE"},
		{IBV_EVENT_SM_CHANGE, DEVICE_EVENT_PORT_CHANGED, "SM_CHANGE"},
		{IBV_EVENT_CLIENT_REREGISTER, DEVICE_EVENT_PORT_CHANGED, "CLIENT_REREGISTER"},
		{IBV_EVENT_GID_CHANGE, DEVICE_EVENT_PORT_CHANGED, "GID_CHANGE"},
	};
	struct device_event event;

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		uint8_t port = 1 + n % 2;

		fake_device_event(fake, cases[n].type, port);
		assert_true(is_readable());
		assert_int_equal(device_event(device, &event), 0);
		assert_int_equal(event.kind, cases[n].kind);
		assert_int_equal(event.port, port);
		assert_int_equal(event.queue_number, 0);
		assert_string_equal(event.name, cases[n].name);
		assert_int_equal(fake_verbs_alive().async_events, 0); // the event is acknowledged
	}
	assert_int_equal(device_event(device, &event), -EAGAIN);
}

static void an_event_of_the_device_or_of_what_we_do_not_use_has_no_subject(void **state) {
	static const struct {
		enum ibv_event_type type;
		enum device_event_kind kind;
		const char *name;
	} cases[] = {
		{IBV_EVENT_DEVICE_FATAL, DEVICE_EVENT_FATAL, "DEVICE_FATAL"},
		{IBV_EVENT_SRQ_ERR, DEVICE_EVENT_OTHER, "SRQ_ERR"},
		{IBV_EVENT_SRQ_LIMIT_REACHED, DEVICE_EVENT_OTHER, "SRQ_LIMIT_REACHED"},
		{IBV_EVENT_WQ_FATAL, DEVICE_EVENT_OTHER, "WQ_FATAL"},
		// An event of a newer kernel.
		{(enum ibv_event_type)20, DEVICE_EVENT_OTHER, "unknown"},
		{(enum ibv_event_type)UINT32_MAX, DEVICE_EVENT_OTHER, "unknown"},
	};
	struct device_event event;

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		fake_device_event(fake, cases[n].type, 1);
		assert_int_equal(device_event(device, &event), 0);
		assert_int_equal(event.kind, cases[n].kind);
		assert_int_equal(event.port, 0);
		assert_string_equal(event.name, cases[n].name);
	}
}

static struct ibv_qp *make_qp(struct ibv_cq *cq) {
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = NULL;

	assert_int_equal(fake_verbs_calls.create_qp(device_pd(device), &init, &qp), 0);
	return qp;
}

// ibv_destroy_qp() blocks until all events are acknowledged. The fake reports an unacknowledged
// event as a violation.
static void a_queue_pair_that_broke_is_named_and_can_be_destroyed_at_once(void **state) {
	static const struct {
		enum ibv_event_type type;
		enum device_event_kind kind;
		const char *name;
	} cases[] = {
		{IBV_EVENT_QP_FATAL, DEVICE_EVENT_PAIR_FATAL, "QP_FATAL"},
		{IBV_EVENT_QP_REQ_ERR, DEVICE_EVENT_PAIR_FATAL, "QP_REQ_ERR"},
		{IBV_EVENT_QP_ACCESS_ERR, DEVICE_EVENT_PAIR_FATAL, "QP_ACCESS_ERR"},
		{IBV_EVENT_COMM_EST, DEVICE_EVENT_OTHER, "COMM_EST"},
		{IBV_EVENT_SQ_DRAINED, DEVICE_EVENT_OTHER, "SQ_DRAINED"},
		{IBV_EVENT_PATH_MIG, DEVICE_EVENT_OTHER, "PATH_MIG"},
		{IBV_EVENT_PATH_MIG_ERR, DEVICE_EVENT_OTHER, "PATH_MIG_ERR"},
		{IBV_EVENT_QP_LAST_WQE_REACHED, DEVICE_EVENT_OTHER, "QP_LAST_WQE_REACHED"},
	};
	struct device_event event;
	struct ibv_cq *cq = NULL;

	(void)state;
	assert_int_equal(fake_verbs_calls.create_cq(device_context(device), 16, NULL, &cq), 0);
	for (size_t n = 0; n < COUNT(cases); n++) {
		struct ibv_qp *qp = make_qp(cq);
		uint32_t number = qp->qp_num;

		fake_qp_event(qp, cases[n].type);
		assert_int_equal(device_event(device, &event), 0);
		assert_int_equal(fake_verbs_calls.destroy_qp(qp), 0);
		assert_int_equal(event.kind, cases[n].kind);
		assert_string_equal(event.name, cases[n].name);
		assert_int_equal(
			event.queue_number, event.kind == DEVICE_EVENT_PAIR_FATAL ? number : 0
		);
	}
	fake_cq_event(cq, IBV_EVENT_CQ_ERR);
	assert_int_equal(device_event(device, &event), 0);
	assert_int_equal(event.kind, DEVICE_EVENT_COMPLETIONS_FATAL);
	assert_string_equal(event.name, "CQ_ERR");
	assert_int_equal(fake_verbs_calls.destroy_cq(cq), 0);
}

static void events_come_in_order_and_a_device_that_is_gone_says_so(void **state) {
	struct device_event event;

	(void)state;
	fake_device_event(fake, IBV_EVENT_PORT_ERR, 1);
	fake_device_event(fake, IBV_EVENT_PORT_ACTIVE, 1);
	fake_device_event(fake, IBV_EVENT_DEVICE_FATAL, 0);
	assert_int_equal(device_event(device, &event), 0);
	assert_int_equal(event.kind, DEVICE_EVENT_PORT_DOWN);
	assert_int_equal(device_event(device, &event), 0);
	assert_int_equal(event.kind, DEVICE_EVENT_PORT_ACTIVE);
	assert_int_equal(device_event(device, &event), 0);
	assert_int_equal(event.kind, DEVICE_EVENT_FATAL);
	fake_verbs_fail(FAKE_GET_ASYNC_EVENT, 1, 1, -EIO);
	assert_int_equal(device_event(device, &event), -EIO);
	assert_int_equal(event.kind, DEVICE_EVENT_FATAL);
	fake_verbs_fail_no_more();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

UNIT_GROUP(device_event) {
	const struct CMUnitTest tests[] = {
		TEST(without_an_event_there_is_nothing_to_read_and_nothing_written),
		TEST(an_event_of_a_port_has_its_number_also_of_a_port_not_in_use),
		TEST(an_event_of_the_device_or_of_what_we_do_not_use_has_no_subject),
		TEST(a_queue_pair_that_broke_is_named_and_can_be_destroyed_at_once),
		TEST(events_come_in_order_and_a_device_that_is_gone_says_so),
	};

	return cmocka_run_group_tests_name("device_event", tests, NULL, NULL);
}
