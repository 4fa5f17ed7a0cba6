// SPDX-License-Identifier: BSD-3-Clause
// Tests of the port state that a device reports. tests/smoke/agent_wires_test.py tests that it
// follows the kernel's interface.
#include "dataplane/soft/soft_bed.h"
#include "engine/port_watch.h"
#include "verbs/verbs_soft.h"

#include <support/cases.h>

#include <errno.h>

static const struct verbs_calls *const calls = &verbs_calls_soft;
static struct bed_end *const here = &bed.ends[0];

static void expect_event(struct ibv_context *context, int type) {
	struct ibv_async_event event;

	if (type < 0) {
		assert_int_equal(calls->get_async_event(context, &event), -EAGAIN);
		return;
	}
	assert_int_equal(calls->get_async_event(context, &event), 0);
	assert_int_equal(event.event_type, type);
	assert_int_equal(event.element.port_num, 1);
	calls->ack_async_event(&event);
}

static void every_context_is_told_of_a_change_once(void **state) {
	static const struct {
		enum nic_port port;
		int event;
		enum ibv_port_state state;
	} steps[] = {
		{NIC_PORT_ACTIVE, -1, IBV_PORT_ACTIVE},
		{NIC_PORT_DOWN, IBV_EVENT_PORT_ERR, IBV_PORT_DOWN},
		{NIC_PORT_DOWN, -1, IBV_PORT_DOWN},
		{NIC_PORT_ACTIVE, IBV_EVENT_PORT_ACTIVE, IBV_PORT_ACTIVE},
		{NIC_PORT_GONE, IBV_EVENT_DEVICE_FATAL, IBV_PORT_DOWN},
		// A port that is gone returns only after the device is opened again.
		{NIC_PORT_ACTIVE, -1, IBV_PORT_DOWN},
	};
	struct ibv_context *other = NULL, *closed = NULL;
	struct ibv_port_attr port;

	(void)state;
	assert_int_equal(calls->open(here->context->device, &closed), 0);
	assert_int_equal(calls->open(here->context->device, &other), 0);
	assert_int_equal(calls->close(closed), 0);
	for (size_t n = 0; n < COUNT_OF(steps); n++) {
		nic_port_report(nic_of(here->context), steps[n].port);
		expect_event(here->context, steps[n].event);
		expect_event(other, steps[n].event);
		assert_int_equal(calls->query_port(other, 1, &port), 0);
		assert_int_equal(port.state, steps[n].state);
	}
	assert_int_equal(calls->close(other), 0);
}

// A wire may detect the state of its port itself. Contexts receive the event in the same turn, even
// with fault injection.
static void contexts_are_told_what_the_wire_has_seen(void **state) {
	static const struct soft_faults lossy = {.any = true, .loss_ppm = 1};
	struct soft_nic *nic = nic_of(here->context);
	struct soft_wire *inner = nic->wire;

	(void)state;
	inner->port = NIC_PORT_DOWN;
	bed_run(0);
	expect_event(here->context, IBV_EVENT_PORT_ERR);
	bed_run(0);
	expect_event(here->context, -1);
	assert_int_equal(nic_set_faults(nic, &lossy), 0);
	assert_ptr_not_equal(nic->wire, inner);
	inner->port = NIC_PORT_ACTIVE;
	bed_run(0);
	expect_event(here->context, IBV_EVENT_PORT_ACTIVE);
	inner->port = NIC_PORT_GONE;
	bed_run(0);
	expect_event(here->context, IBV_EVENT_DEVICE_FATAL);
}

static void a_device_that_is_opened_anew_has_its_port_again(void **state) {
	struct ibv_device *device = here->context->device;
	struct ibv_port_attr port;

	(void)state;
	nic_port_report(nic_of(here->context), NIC_PORT_GONE);
	assert_int_equal(calls->close(here->context), 0);
	assert_int_equal(calls->open(device, &here->context), 0);
	assert_int_equal(calls->query_port(here->context, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
}

// A loopback address, or a wire without an interface, has no port that can go down.
static void no_thread_watches_what_cannot_go(void **state) {
	struct soft_config config = bed_config(2);
	struct ibv_context *context = NULL;
	struct ibv_device **list = bed.devices;
	uint32_t count;

	(void)state;
	assert_null(nic_of(here->context)->port_watch);
	config.clock = NULL;
	config.wire = SOFT_WIRE_UDP;
	config.address_any = true;
	assert_int_equal(soft_device_add(&config), 0);
	assert_int_equal(calls->device_list(&bed.devices, &count), 0);
	calls->device_list_free(list);
	assert_int_equal(calls->open(bed.devices[2], &context), 0);
	assert_null(nic_of(context)->port_watch);
	assert_int_equal(calls->close(context), 0);
}

UNIT_GROUP(soft_port) {
#define BARE(test) cmocka_unit_test_setup_teardown(test, bed_make_bare, bed_end)
	const struct CMUnitTest tests[] = {
		BARE(every_context_is_told_of_a_change_once),
		BARE(contexts_are_told_what_the_wire_has_seen),
		BARE(a_device_that_is_opened_anew_has_its_port_again),
		BARE(no_thread_watches_what_cannot_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
