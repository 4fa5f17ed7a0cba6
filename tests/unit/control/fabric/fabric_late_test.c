// SPDX-License-Identifier: BSD-3-Clause
// Devices that appear after the start: they become rails, peers learn of them, and the fallback
// device is closed.
#include "control/fabric/probe_bed.h"

#include <support/cases.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

// At the start, agent 0 has its first `here` devices and agent 1 its first `there`.
static void begin_with(uint32_t here, uint32_t there) {
	const uint32_t counts[] = {here, there};

	for (uint32_t n = 0; n < 2; n++) {
		bed.agents[n].config.device_count = counts[n];
		bed.agents[n].config.probe = (struct fabric_probe_config){.on = true, BED_PROBES};
		played_has_devices(n, counts[n]);
	}
}

static void start_both(void) {
	bed_start(0);
	bed_start(1);
}

static const char *name(uint32_t agent, uint32_t device) {
	return bed.agents[agent].config.devices[device].name;
}

static int add(uint32_t agent, uint32_t device) {
	return fabric_add_device(
		bed.agents[agent].fabric, &bed.agents[agent].config.devices[device], 0, 8
	);
}

static bool is_paired(uint32_t agent, uint32_t device, uint32_t peer, uint32_t theirs) {
	struct fabric_pair_view view;
	uint32_t cursor = 0;

	while (fabric_pair_next(bed.agents[agent].fabric, &cursor, &view)) {
		if (view.pairing.key.peer == bed_id(peer) && view.pairing.state == PAIRING_READY &&
		    strcmp(view.device, name(agent, device)) == 0 &&
		    strcmp(view.pairing.key.peer_device, name(peer, theirs)) == 0)
			return true;
	}
	return false;
}

// Each device is paired with itself, and both with each other.
static bool are_paired(uint32_t here, uint32_t there) {
	return is_paired(0, here, 0, here) && is_paired(1, there, 1, there) &&
	       is_paired(0, here, 1, there) && is_paired(1, there, 0, here);
}

static uint32_t ready(uint32_t agent) {
	struct fabric_pair_view view;
	uint32_t cursor = 0, count = 0;

	while (fabric_pair_next(bed.agents[agent].fabric, &cursor, &view))
		count += view.pairing.state == PAIRING_READY;
	return count;
}

static int open_two(void **state) {
	(void)state;
	bed_open(2, 3);
	bed_link(0, 1, true);
	return 0;
}

#define TWO(name) cmocka_unit_test_setup_teardown(name, open_two, bed_pair_close)

static void a_device_that_comes_late_is_a_rail_and_peers_learn_of_it(void **state) {
	(void)state;
	begin_with(1, 2);
	start_both();
	bed_until(are_paired(0, 0));
	assert_int_equal(add(0, 1), 0);
	bed_until(are_paired(0, 0) && are_paired(1, 1) && bed.agents[1].overlay->notes > 0);
	assert_string_equal(bed.agents[0].overlay->note, "measures with rdma0, rdma1");
	assert_int_equal(bed.agents[1].overlay->note_of, bed_id(0));
	assert_string_equal(bed.agents[1].overlay->note, "measures with rdma0, rdma1");
	assert_int_equal(bed.agents[0].overlay->notes, 1);
	assert_int_equal(bed.agents[1].overlay->notes, 1);
}

static bool asked[3]; // for the retransmissions of agent 0's devices

static uint64_t count_resent(void *ctx, const char *device) {
	(void)ctx;
	for (uint32_t n = 0; n < COUNT_OF(asked); n++)
		asked[n] |= strcmp(device, name(0, n)) == 0;
	return 0;
}

// Regression: a device that came late asked for the counter of another device, or of none.
static void a_device_that_comes_late_asks_for_its_own_counters(void **state) {
	(void)state;
	begin_with(1, 3);
	bed.agents[0].config.resent = count_resent;
	start_both();
	bed_until(are_paired(0, 0));
	assert_int_equal(add(0, 2), 0);
	bed_until(is_paired(0, 2, 0, 2));
	memset(asked, 0, sizeof(asked));
	bed_pass(30 * SEC);
	assert_true(asked[0] && asked[2]);
	assert_false(asked[1]);
}

static void an_agent_without_devices_measures_with_the_first_that_comes(void **state) {
	(void)state;
	begin_with(0, 1);
	start_both();
	bed_until(is_paired(1, 0, 1, 0));
	assert_int_equal(add(0, 0), 0);
	bed_until(are_paired(0, 0));
	bed_pass(5 * SEC);
	assert_true(are_paired(0, 0));
	assert_int_equal(bed.agents[1].overlay->notes, 1);
}

static void a_device_that_stands_in_goes_when_the_first_other_one_is_up(void **state) {
	struct fabric_device_view view;
	struct fake_device *late = bed.agents[0].fakes[1];

	(void)state;
	begin_with(1, 1);
	bed.agents[0].config.devices[0].is_fallback = true;
	start_both();
	bed_until(are_paired(0, 0));
	late->ports[0].attr.state = IBV_PORT_DOWN;
	assert_int_equal(add(0, 1), 0);
	bed_pass(5 * SEC);
	assert_true(are_paired(0, 0)); // the device waits, and no peer was notified
	assert_int_equal(bed.agents[1].overlay->notes, 0);
	late->ports[0].attr.state = IBV_PORT_ACTIVE;
	bed_until(are_paired(1, 0) && ready(0) == 2 && ready(1) == 2);
	bed_pass(5 * SEC);
	assert_true(are_paired(1, 0));
	assert_int_equal(fabric_device_count(bed.agents[0].fabric), 1);
	fabric_device_at(bed.agents[0].fabric, 0, &view);
	assert_string_equal(view.name, "rdma1");
	assert_string_equal(bed.agents[0].overlay->note, "measures with rdma1");
	assert_string_equal(bed.agents[1].overlay->note, "measures with rdma1");
	// The removed device is not opened again, whatever device events arrive.
	fabric_rescan_devices(bed.agents[0].fabric);
	bed_pass(60 * SEC);
	assert_int_equal(bed.agents[0].fabric->nics[0].opened, 1);
}

// Regression: the device was opened after it was retired, and stayed open.
static void a_fallback_that_is_retired_while_it_is_opened_is_closed(void **state) {
	const struct fabric *fabric;

	(void)state;
	begin_with(2, 1);
	bed.agents[0].config.devices[0].is_fallback = true;
	bed_hang_nth(1);
	bed_start(0);
	fabric = bed.agents[0].fabric;
	bed_until(bed_hangs() && fabric->nics[1].state == FABRIC_DEVICE_UP);
	assert_true(fabric->nics[0].retired);
	assert_false(fabric->nics[0].open);
	bed_let_go();
	bed_until(fabric->nics[0].opened == 1);
	bed_until(!fabric->nics[0].open);
	bed_pass(5 * SEC);
	assert_int_equal(fabric->nics[0].opened, 1);
	assert_int_equal(fabric_device_count(fabric), 1);
	bed_until(is_paired(0, 1, 0, 1));
}

// A peer that learns of the device only from the record gets a pair as well.
static void a_peer_that_comes_later_learns_it_too(void **state) {
	(void)state;
	begin_with(1, 1);
	bed.agents[0].config.devices[0].is_fallback = true;
	bed_start(0);
	bed_until(is_paired(0, 0, 0, 0));
	assert_int_equal(add(0, 1), 0);
	bed_until(is_paired(0, 1, 0, 1) && fabric_device_count(bed.agents[0].fabric) == 1);
	bed_start(1);
	bed_until(are_paired(1, 0));
}

static void a_rail_that_may_never_come_is_told_to_nobody_before_it_does(void **state) {
	struct fake_device *waits = bed.agents[0].fakes[1];

	(void)state;
	begin_with(2, 2);
	played_has_devices(0, 1);
	bed.agents[0].config.devices[1].announce_after_open = true;
	waits->ports[0].attr.state = IBV_PORT_DOWN;
	start_both();
	bed_until(are_paired(0, 0));
	bed_pass(400 * SEC);
	assert_int_equal(bed.agents[1].overlay->notes, 0);
	assert_false(is_paired(1, 1, 0, 1));
	waits->ports[0].attr.state = IBV_PORT_ACTIVE;
	bed_until(are_paired(0, 0) && are_paired(1, 1));
}

static void what_is_known_is_not_added_again(void **state) {
	struct fabric *fabric;
	struct fabric_device other;

	(void)state;
	begin_with(1, 1);
	start_both();
	bed_until(are_paired(0, 0));
	fabric = bed.agents[0].fabric;
	assert_int_equal(add(0, 0), -EEXIST);
	other = bed.agents[0].config.devices[1];
	assert_int_equal(
		fabric_add_device(fabric, &other, fabric->nics[0].guid, 8),
		fabric->nics[0].guid != 0 ? -EEXIST : 0
	);
	for (uint32_t n = fabric->nic_count; n < FABRIC_DEVICES_MAX; n++) {
		snprintf(other.name, sizeof(other.name), "none%u", n);
		assert_int_equal(fabric_add_device(fabric, &other, 0, 8), 0);
	}
	snprintf(other.name, sizeof(other.name), "more");
	assert_int_equal(fabric_add_device(fabric, &other, 0, 8), -ENOSPC);
	bed_pass(5 * SEC);
	assert_true(are_paired(0, 0));
}

static void without_memory_a_device_is_not_added_and_nothing_is_broken(void **state) {
	uint32_t failed = 0;

	(void)state;
	begin_with(0, 1);
	start_both();
	bed_until(is_paired(1, 0, 1, 0));
	for (uint32_t n = 1;; n++) {
		int err;

		bed_fail_allocation(n);
		err = add(0, 0);
		if (!bed_allocation_failed())
			break;
		failed += err == -ENOMEM;
		if (err == 0)
			break; // the device is opened again later
	}
	bed_fail_allocation(0);
	assert_int_not_equal(failed, 0);
	if (fabric_device_count(bed.agents[0].fabric) == 0)
		assert_int_equal(add(0, 0), 0);
	bed_until(are_paired(0, 0));
}

UNIT_GROUP(fabric_late) {
	const struct CMUnitTest tests[] = {
		TWO(a_device_that_comes_late_is_a_rail_and_peers_learn_of_it),
		TWO(a_device_that_comes_late_asks_for_its_own_counters),
		TWO(an_agent_without_devices_measures_with_the_first_that_comes),
		TWO(a_device_that_stands_in_goes_when_the_first_other_one_is_up),
		TWO(a_fallback_that_is_retired_while_it_is_opened_is_closed),
		TWO(a_peer_that_comes_later_learns_it_too),
		TWO(a_rail_that_may_never_come_is_told_to_nobody_before_it_does),
		TWO(what_is_known_is_not_added_again),
		TWO(without_memory_a_device_is_not_added_and_nothing_is_broken),
	};

	return cmocka_run_group_tests(tests, rcu_group_begin, rcu_group_end);
}
