// SPDX-License-Identifier: BSD-3-Clause
// Several rails: which rails are paired, what follows from changes at run time, and reports on
// rails without a partner.
#include "control/fabric/probe_bed.h"

#include <dataplane/verbs.h>
#include <support/cases.h>

#include <endian.h>
#include <stdio.h>
#include <string.h>

// Rails: one letter for the subnet of each device, in order.

static void set_prefix(uint32_t agent, uint32_t device, char subnet) {
	struct fake_port *port = &bed.agents[agent].fakes[device]->ports[0];

	port->gids[0].gid.global.subnet_prefix =
		htobe64(UINT64_C(0xfec0000000000000) | (uint8_t)subnet);
}

static void node_has(uint32_t agent, const char *subnets) {
	uint32_t count = (uint32_t)strlen(subnets);

	bed.agents[agent].config.device_count = count;
	played_has_devices(agent, count);
	for (uint32_t n = 0; n < count; n++) {
		fake_device_infiniband(
			bed.agents[agent].fakes[n], (uint16_t)(1 + agent * PLAYED_DEVICES_MAX + n)
		);
		set_prefix(agent, n, subnets[n]);
	}
}

static void link_all(uint32_t agents) {
	for (uint32_t n = 0; n < agents; n++) {
		for (uint32_t k = n + 1; k < agents; k++)
			bed_link(n, k, true);
	}
}

// Pairs.

static bool find(uint32_t agent, uint32_t device, uint32_t peer, struct fabric_pair_view *ret) {
	uint32_t cursor = 0;

	while (fabric_pair_next(bed.agents[agent].fabric, &cursor, ret)) {
		if (ret->pairing.wanted && ret->pairing.key.peer == bed_id(peer) &&
		    ret->pairing.key.device == device)
			return true;
	}
	return false;
}

// Return the digit of the peer's rail that this device is ready with, "-" without a common
// fabric, else ".".
static char seen(uint32_t agent, uint32_t device, uint32_t peer) {
	struct fabric_pair_view view;

	if (!find(agent, device, peer, &view))
		return '.';
	if (view.pairing.state == PAIRING_FAILED &&
	    view.pairing.failure.reason == PAIRING_NO_COMMON_FABRIC)
		return '-';
	if (view.pairing.state != PAIRING_READY)
		return '.';
	for (uint32_t n = 0; n < bed.agents[peer].config.device_count; n++) {
		if (strcmp(view.pairing.key.peer_device, bed.agents[peer].config.devices[n].name) ==
		    0)
			return (char)('0' + n);
	}
	return '?';
}

static bool is_seen(uint32_t agent, uint32_t peer, const char *wanted) {
	for (uint32_t n = 0; wanted[n] != '\0'; n++) {
		if (seen(agent, n, peer) != wanted[n])
			return false;
	}
	return true;
}

static uint64_t failed(uint32_t agent) {
	struct fabric_numbers numbers;
	uint64_t sum = 0;

	fabric_numbers(bed.agents[agent].fabric, &numbers);
	for (uint32_t n = 1; n < PAIRING_REASON_COUNT; n++)
		sum += numbers.pairing.failed[n];
	return sum;
}

static uint32_t pairs(uint32_t agent) {
	struct fabric_numbers numbers;

	fabric_numbers(bed.agents[agent].fabric, &numbers);
	return numbers.counters.pairs;
}

static void start_all(uint32_t agents) {
	for (uint32_t n = 0; n < agents; n++)
		bed_start(n);
}

static int open_two(void **state) {
	(void)state;
	bed_open(2, 4);
	bed_link(0, 1, true);
	return 0;
}

#define TWO(name) cmocka_unit_test_setup_teardown(name, open_two, bed_pair_close)

static const struct {
	const char *what, *here, *there, *here_sees, *there_sees;
	uint32_t pairs_here;
} cases[] = {
	{"alike", "ab", "ab", "01", "01", 4},
	{"in another order there", "abc", "cab", "120", "201", 6},
	{"one here and four there", "c", "abcd", "2", "--0-", 2},
	{"two in one subnet", "aab", "baa", "120", "201", 6},
	{"one here and two there in one subnet", "a", "aa", "0", "00", 3},
	{"one of them elsewhere", "ab", "ax", "0-", "0-", 3},
	{"no subnet in common: through a router", "ab", "xy", "01", "01", 4},
};

static void each_rail_is_paired_with_the_one_that_belongs_to_it(void **state) {
	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		print_message("# %s\n", cases[n].what);
		if (n > 0) {
			bed_close();
			open_two(NULL);
		}
		node_has(0, cases[n].here);
		node_has(1, cases[n].there);
		start_all(2);
		bed_until(is_seen(0, 1, cases[n].here_sees) && is_seen(1, 0, cases[n].there_sees));
		bed_pass(3 * SEC);
		assert_true(is_seen(0, 1, cases[n].here_sees));
		// No impossible pair was attempted.
		assert_int_equal(failed(0) + failed(1), 0);
		assert_int_equal(pairs(0), cases[n].pairs_here);
	}
}

static void a_rail_without_a_common_fabric_says_so(void **state) {
	struct fabric_pair_view view;

	(void)state;
	node_has(0, "ab");
	node_has(1, "a");
	start_all(2);
	bed_until(is_seen(0, 1, "0-"));
	assert_true(find(0, 1, 1, &view));
	assert_string_equal(view.device, "rdma1");
	assert_string_equal(view.pairing.key.peer_device, "-");
	assert_string_equal(
		view.pairing.failure.text,
		"the peer has no rail in the subnet of rdma1, fec0:0:0:62::/64"
	);
}

// Regression: the device was taken by its index among the announced rails.
static void a_rail_without_a_common_fabric_is_named_beside_an_unannounced_one(void **state) {
	struct fabric_pair_view view;

	(void)state;
	node_has(0, "abc");
	node_has(1, "b");
	bed.agents[0].config.devices[0].announce_after_open = true;
	bed.agents[0].fakes[0]->ports[0].attr.state = IBV_PORT_DOWN;
	start_all(2);
	bed_until(seen(0, 1, 1) == '0' && seen(0, 2, 1) == '-');
	assert_true(find(0, 2, 1, &view));
	assert_string_equal(view.device, "rdma0_2");
	assert_string_equal(
		view.pairing.failure.text,
		"the peer has no rail in the subnet of rdma0_2, fec0:0:0:63::/64"
	);
}

static void pairs_follow_a_rail_whose_subnet_changes(void **state) {
	(void)state;
	node_has(0, "ab");
	node_has(1, "ab");
	start_all(2);
	bed_until(is_seen(0, 1, "01") && is_seen(1, 0, "01"));
	// The cables of two ports were swapped.
	for (uint32_t n = 0; n < 2; n++) {
		set_prefix(1, n, n == 0 ? 'b' : 'a');
		fake_device_event(bed.agents[1].fakes[n], IBV_EVENT_GID_CHANGE, 1);
	}
	bed_until(is_seen(0, 1, "10") && is_seen(1, 0, "10"));
	set_prefix(1, 0, 'x');
	fake_device_event(bed.agents[1].fakes[0], IBV_EVENT_GID_CHANGE, 1);
	bed_until(is_seen(0, 1, "1-") && is_seen(1, 0, "-0"));
}

static void a_rail_that_was_down_at_the_start_finds_its_own(void **state) {
	struct fake_device *late;

	(void)state;
	node_has(0, "abc");
	node_has(1, "cab");
	late = bed.agents[1].fakes[0];
	late->ports[0].attr.state = IBV_PORT_DOWN;
	start_all(2);
	bed_until(seen(0, 0, 1) == '1' && seen(0, 1, 1) == '2');
	bed_until(seen(1, 1, 0) == '0' && seen(1, 2, 0) == '1');
	late->ports[0].attr.state = IBV_PORT_ACTIVE;
	bed_until(is_seen(0, 1, "120") && is_seen(1, 0, "201"));
}

static void a_rail_that_goes_down_and_comes_back_moves_no_other(void **state) {
	struct fake_device *flaps;
	uint64_t made;

	(void)state;
	node_has(0, "abc");
	node_has(1, "cab");
	start_all(2);
	bed_until(is_seen(0, 1, "120") && is_seen(1, 0, "201"));
	flaps = bed.agents[1].fakes[1];
	made = fake_verbs_calls_made(FAKE_CREATE_QP);
	flaps->ports[0].attr.state = IBV_PORT_DOWN;
	fake_device_event(flaps, IBV_EVENT_PORT_ERR, 1);
	bed_pass(5 * SEC);
	flaps->ports[0].attr.state = IBV_PORT_ACTIVE;
	fake_device_event(flaps, IBV_EVENT_PORT_ACTIVE, 1);
	bed_pass(2 * SEC);
	bed_until(is_seen(0, 1, "120") && is_seen(1, 0, "201"));
	assert_int_equal(fake_verbs_calls_made(FAKE_CREATE_QP), made);
}

static void an_agent_that_knows_no_rails_is_paired_by_its_record(void **state) {
	(void)state;
	node_has(0, "abcd");
	node_has(1, "abcd");
	played.agents[1].knows_no_rails = true;
	bed_start(0);
	bed_until(pairs(0) == 4); // each with itself: the peer is asked first
	bed_start(1);
	bed_until(is_seen(0, 1, "0123"));
}

static void seven_nodes_with_mixed_rails_find_each_other(void **state) {
	static const char *const nodes[] = {"abcd", "dcba", "ab", "c", "aabb", "bd", "xa"};
	static const struct {
		uint32_t agent, peer;
		const char *sees;
	} wanted[] = {
		{0, 1, "3210"}, {0, 2, "01--"}, {0, 3, "--0-"}, {0, 4, "02--"}, {0, 5, "-0-1"},
		{0, 6, "1---"}, {1, 0, "3210"}, {2, 4, "02"},	{3, 0, "2"},	{3, 2, "0"},
		{4, 0, "0011"}, {4, 2, "0011"}, {5, 1, "20"},	{6, 0, "-0"},	{6, 4, "-0"},
	};

	(void)state;
	bed_close();
	bed_open(7, 4);
	for (uint32_t n = 0; n < 7; n++) {
		node_has(n, nodes[n]);
		bed.agents[n].config.pair_max = 64;
	}
	link_all(7);
	start_all(7);
	for (size_t n = 0; n < sizeof(wanted) / sizeof(wanted[0]); n++) {
		print_message("# %u of %u\n", wanted[n].agent, wanted[n].peer);
		bed_until(is_seen(wanted[n].agent, wanted[n].peer, wanted[n].sees));
	}
}

// Return whether agent 0 knows a path from its first device to a different rail of agent 1.
static bool is_visited_across(void) {
	struct fabric_path_view view;
	uint32_t cursor = 0;

	while (fabric_path_next(bed.agents[0].fabric, &cursor, &view)) {
		if (!view.neighbour && view.peer == bed_id(1) &&
		    strcmp(view.device, "rdma0") == 0 && strcmp(view.peer_device, "rdma3") == 0 &&
		    view.summary.kind == OBSERVATION_GOOD)
			return true;
	}
	return false;
}

static void rails_of_one_subnet_are_probed_across_in_turn(void **state) {
	(void)state;
	node_has(0, "aab");
	node_has(1, "aab");
	for (uint32_t n = 0; n < 2; n++) {
		bed.agents[n].config.probe =
			(struct fabric_probe_config){.on = true, .rotation = true, BED_PROBES};
		bed_start(n);
	}
	bed_until(is_seen(0, 1, "012"));
	bed_until(is_visited_across());
	// Matching rails are watched as before.
	assert_true(is_seen(0, 1, "012"));
}

static void rubbish_about_rails_is_counted_and_left(void **state) {
	struct rails *rails;
	uint8_t bytes[RAIL_MESSAGE_BYTES_MAX];

	(void)state;
	node_has(0, "ab");
	node_has(1, "ab");
	start_all(2);
	bed_until(is_seen(0, 1, "01"));
	rails = &bed.agents[0].fabric->rails;
	for (size_t size = 0; size < sizeof(bytes); size += 7) {
		memset(bytes, (int)size, size);
		rails->port.message(
			&rails->port, bed_id(1), bed.agents[1].overlay->incarnation, bytes, size
		);
	}
	assert_int_not_equal(bed.agents[0].fabric->counters.rails_malformed, 0);
	// A message of an earlier start is late; one of an unknown sender is ignored.
	bytes[0] = 1;
	bytes[1] = bytes[2] = bytes[3] = 0;
	rails->port.message(&rails->port, bed_id(1), 0, bytes, 4);
	rails->port.message(&rails->port, 77, UINT64_MAX, bytes, 4);
	bed_pass(3 * SEC);
	assert_true(is_seen(0, 1, "01"));
	assert_int_equal(failed(0), 0);
}

UNIT_GROUP(fabric_rails) {
	const struct CMUnitTest tests[] = {
		TWO(each_rail_is_paired_with_the_one_that_belongs_to_it),
		TWO(a_rail_without_a_common_fabric_says_so),
		TWO(a_rail_without_a_common_fabric_is_named_beside_an_unannounced_one),
		TWO(pairs_follow_a_rail_whose_subnet_changes),
		TWO(a_rail_that_was_down_at_the_start_finds_its_own),
		TWO(a_rail_that_goes_down_and_comes_back_moves_no_other),
		TWO(an_agent_that_knows_no_rails_is_paired_by_its_record),
		TWO(seven_nodes_with_mixed_rails_find_each_other),
		TWO(rails_of_one_subnet_are_probed_across_in_turn),
		TWO(rubbish_about_rails_is_counted_and_left),
	};

	return cmocka_run_group_tests(tests, rcu_group_begin, rcu_group_end);
}
