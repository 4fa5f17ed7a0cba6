// SPDX-License-Identifier: BSD-3-Clause
// Devices that are removed or reset at any driver call, and that return or do not.
#include "control/fabric/fabric_bed.h"
#include "control/fabric/probe_bed.h"

#include <endian.h>
#include <string.h>

static struct fabric_device_view device(uint32_t agent) {
	struct fabric_device_view view;

	fabric_device_at(bed.agents[agent].fabric, 0, &view);
	return view;
}

static void lose(uint32_t agent) {
	fake_device_lose(bed.agents[agent].fakes[0]);
}

static void come_back(uint32_t agent) {
	fake_device_return(bed.agents[agent].fakes[0]);
}

static bool is_forgotten(uint32_t agent) {
	return nic_is_closed(&bed.agents[agent].fabric->nics[0]) &&
	       bed.agents[agent].workers[0].poll_count == 1;
}

static bool all_ready(void) {
	return bed_is_ready(0, 0) && bed_is_ready(0, 1) && bed_is_ready(1, 0);
}

static void lost_device_is_closed_and_taken_again_when_it_is_back(void **state) {
	uint64_t back_ns;

	(void)state;
	bed_start_both();
	lose(0);
	bed_until(is_forgotten(0));
	assert_int_equal(device(0).state, FABRIC_DEVICE_WAITING);
	bed_pass(60 * RAS_NS_PER_SEC);
	bed_until(is_forgotten(0));
	assert_int_equal(fake_verbs_alive().contexts, 1);
	come_back(0);
	back_ns = clock_now_ns(&bed.clock);
	bed_until(device(0).state == FABRIC_DEVICE_UP);
	assert_true(clock_now_ns(&bed.clock) - back_ns <= 2 * RAS_NS_PER_SEC);
	bed_until(all_ready());
	assert_int_equal(device(0).opened, 2);
}

// Closing must not wait for a drain, which takes two seconds if no work request is flushed.
static void lost_device_is_closed_at_once_though_nothing_completes(void **state) {
	struct bed_ping ping;
	uint64_t lost_ns;

	(void)state;
	bed_start_both();
	bed_ping_held(&ping);
	lose(0);
	lost_ns = clock_now_ns(&bed.clock);
	bed_until(is_forgotten(0));
	assert_true(clock_now_ns(&bed.clock) - lost_ns < RAS_NS_PER_SEC);
	assert_int_equal(ping.ended, 1);
	come_back(0);
	bed_until(all_ready());
}

static void device_that_is_lost_without_a_word_is_noticed_by_its_descriptor(void **state) {
	(void)state;
	bed_start_both();
	bed.agents[0].fakes[0]->loses_silently = true;
	lose(0);
	bed_until(is_forgotten(0));
	come_back(0);
	bed_until(all_ready());
}

static void device_that_is_back_before_it_was_closed_is_taken_again(void **state) {
	(void)state;
	bed_start_both();
	lose(0);
	come_back(0);
	bed_until(device(0).opened == 2 && all_ready());
	assert_int_equal(fake_verbs_alive().contexts, 2);
}

static void device_that_is_lost_again_and_again_is_taken_each_time(void **state) {
	(void)state;
	bed_start_both();
	for (uint32_t n = 2; n <= 6; n++) {
		lose(0);
		bed_pass(n * 300 * RAS_NS_PER_MS);
		come_back(0);
		bed_until(device(0).opened == n && all_ready());
	}
	assert_int_equal(fake_verbs_alive().contexts, 2);
}

// The device returns with another GID index and a new identity.
static void device_that_comes_back_as_another_is_taken_as_it_is(void **state) {
	struct fake_device *fake = bed.agents[0].fakes[0];
	struct ibv_gid_entry first = fake->ports[0].gids[1];

	(void)state;
	bed_start_both();
	lose(0);
	bed_until(is_forgotten(0));
	fake_device_rename(fake, "rdma0", 77);
	fake->ports[0].gids[1] = fake->ports[0].gids[3];
	fake->ports[0].gids[1].gid_index = 1;
	fake->ports[0].gids[3] = first;
	fake->ports[0].gids[3].gid_index = 3;
	come_back(0);
	bed_until(all_ready());
	assert_int_equal(device(0).facts.port.gid_index, 1);
	assert_int_equal(device(0).facts.guid, 77);
}

static void agent_stops_while_its_device_is_lost(void **state) {
	(void)state;
	bed_start_both();
	lose(0);
	bed_stop(0);
	bed_until(bed.agents[0].stopped);
	assert_true(nic_is_closed(&bed.agents[0].fabric->nics[0]));
}

static void device_that_is_lost_while_the_agent_stops_is_closed(void **state) {
	(void)state;
	bed_start_both();
	bed_stop(0);
	lose(0);
	bed_until(bed.agents[0].stopped);
	assert_true(nic_is_closed(&bed.agents[0].fabric->nics[0]));
}

static void lost_device_whose_driver_hangs_is_taken_again_when_it_no_longer_does(void **state) {
	(void)state;
	bed_start_both();
	bed_settle();
	bed_hang(FAKE_DESTROY_QP);
	lose(0);
	bed_until(bed_hangs());
	come_back(0);
	bed_pass(10 * RAS_NS_PER_SEC);
	assert_int_equal(device(0).state, FABRIC_DEVICE_STUCK);
	bed_let_go();
	bed_until(device(0).opened == 2 && all_ready());
}

// The administrator who removes the device waits for the agent, and neither an event nor an error
// reports the removal.
static void device_that_is_withdrawn_is_let_go_of_and_taken_again(void **state) {
	struct fake_device *fake = bed.agents[0].fakes[0];

	(void)state;
	bed_start_both();
	assert_false(fake_device_withdraw(fake));
	fabric_rescan_devices(bed.agents[0].fabric);
	bed_until(is_forgotten(0));
	assert_true(fake_device_withdraw(fake));
	assert_string_equal(device(0).reason, "it was removed");
	come_back(0);
	fabric_rescan_devices(bed.agents[0].fabric);
	bed_until(all_ready());
	assert_int_equal(device(0).opened, 2);
}

static void look_finds_what_is_awaited_at_once(void **state) {
	uint64_t back_ns;

	(void)state;
	bed_start_both();
	lose(0);
	bed_pass(400 * RAS_NS_PER_SEC); // retries are rare by now
	bed_until(is_forgotten(0));
	come_back(0);
	back_ns = clock_now_ns(&bed.clock);
	fabric_rescan_devices(bed.agents[0].fabric);
	bed_until(device(0).state == FABRIC_DEVICE_UP);
	assert_true(clock_now_ns(&bed.clock) - back_ns < RAS_NS_PER_SEC);
}

static void look_at_devices_that_are_all_there_changes_nothing(void **state) {
	(void)state;
	bed_start_both();
	for (uint32_t n = 0; n < 3; n++) {
		fabric_rescan_devices(bed.agents[0].fabric);
		bed_settle();
	}
	assert_int_equal(device(0).opened, 1);
	assert_true(all_ready());
}

// A renamed device keeps working; after removal, it is found under its new name by its GUID.
static void device_that_is_renamed_stays_and_is_taken_again_by_its_identity(void **state) {
	(void)state;
	bed_start_both();
	fake_device_rename(bed.agents[0].fakes[0], "mlx5_7", 0);
	fabric_rescan_devices(bed.agents[0].fabric);
	bed_settle();
	assert_int_equal(device(0).opened, 1);
	lose(0);
	bed_until(is_forgotten(0));
	come_back(0);
	bed_until(all_ready());
	assert_string_equal(device(0).facts.name, "mlx5_7");
	assert_string_equal(device(0).name, "rdma0");
}

// Each device is found by its identity, not by the name that the other one has now.
static void two_devices_that_swap_names_are_not_taken_for_each_other(void **state) {
	struct fabric_device_view views[2];
	uint64_t guids[2];

	(void)state;
	bed_close();
	bed_open(2, 2);
	bed_link(0, 1, true);
	bed_start_both();
	for (uint32_t n = 0; n < 2; n++) {
		fabric_device_at(bed.agents[0].fabric, n, &views[n]);
		guids[n] = views[n].facts.guid;
	}
	fake_device_rename(bed.agents[0].fakes[0], bed.agents[0].config.devices[1].name, 0);
	fake_device_rename(bed.agents[0].fakes[1], bed.agents[0].config.devices[0].name, 0);
	fabric_rescan_devices(bed.agents[0].fabric);
	bed_settle();
	for (uint32_t n = 0; n < 2; n++)
		fake_device_lose(bed.agents[0].fakes[n]);
	bed_until(nic_is_closed(&bed.agents[0].fabric->nics[0]));
	bed_until(nic_is_closed(&bed.agents[0].fabric->nics[1]));
	for (uint32_t n = 0; n < 2; n++)
		fake_device_return(bed.agents[0].fakes[n]);
	for (uint32_t n = 0; n < 2; n++) {
		do {
			bed_turn();
			fabric_device_at(bed.agents[0].fabric, n, &views[n]);
		} while (views[n].state != FABRIC_DEVICE_UP);
		assert_int_equal(views[n].facts.guid, guids[n]);
	}
}

static struct fabric_device_view device_at(uint32_t n) {
	struct fabric_device_view view;

	fabric_device_at(bed.agents[0].fabric, n, &view);
	return view;
}

static void begin_with_two(void) {
	bed_close();
	bed_open(2, 2);
	bed_link(0, 1, true);
}

static bool both_are_up(void) {
	return device_at(0).state == FABRIC_DEVICE_UP && device_at(1).state == FABRIC_DEVICE_UP;
}

// The fabric retries the device and takes no other one instead.
static void first_is_awaited(void) {
	fabric_rescan_devices(bed.agents[0].fabric);
	bed_until(device_at(0).state == FABRIC_DEVICE_WAITING);
	bed_pass(10 * RAS_NS_PER_SEC);
	bed_until(device_at(0).state == FABRIC_DEVICE_WAITING);
	assert_int_equal(device_at(0).opened, 1);
	// The clock is simulated: a call that waits for a processor looks stuck until it returns.
	bed_until(device_at(1).state == FABRIC_DEVICE_UP);
}

static void remove_first(void) {
	fake_device_withdraw(bed.agents[0].fakes[0]);
	first_is_awaited();
}

// Examples: Soft-RoCE on VLANs of one interface, functions with a copied GUID.
static void devices_of_one_guid_are_told_apart_by_name(void **state) {
	(void)state;
	begin_with_two();
	for (uint32_t n = 0; n < 2; n++)
		bed.agents[0].fakes[n]->attr.node_guid = htobe64(99);
	bed_start_both();
	bed_until(both_are_up());
	assert_int_equal(device_at(0).facts.guid, 0);
	remove_first();
	come_back(0);
	bed_until(both_are_up());
	assert_string_equal(device_at(0).facts.name, "rdma0");
	assert_int_equal(device_at(1).opened, 1);
}

static void a_guid_that_a_second_device_has_later_tells_nothing_any_more(void **state) {
	(void)state;
	begin_with_two();
	bed_start_both();
	bed_until(both_are_up());
	fake_device_rename(
		bed.agents[0].fakes[1], bed.agents[0].config.devices[1].name,
		device_at(0).facts.guid
	);
	fabric_rescan_devices(bed.agents[0].fabric);
	bed_settle();
	assert_true(both_are_up());
	remove_first();
}

// While the device is away, another configured device gets its name: that device must not be
// opened twice.
static void a_name_that_another_device_of_ours_has_now_is_not_taken(void **state) {
	const char *names[2];

	(void)state;
	begin_with_two();
	for (uint32_t n = 0; n < 2; n++)
		names[n] = bed.agents[0].config.devices[n].name;
	bed_start_both();
	bed_until(both_are_up());
	fake_device_withdraw(bed.agents[0].fakes[0]);
	fake_device_rename(bed.agents[0].fakes[0], "away", 0);
	fake_device_rename(bed.agents[0].fakes[1], names[0], 0);
	first_is_awaited();
	assert_string_equal(
		device_at(0).reason,
		"the device of this rail is gone, and 'rdma0' is now another rail's device"
	);
	fake_device_rename(bed.agents[0].fakes[0], names[1], 0);
	come_back(0);
	fabric_rescan_devices(bed.agents[0].fabric);
	bed_until(both_are_up());
	assert_string_equal(device_at(0).facts.name, names[1]);
	assert_int_equal(device_at(1).opened, 1);
}

static void peers_that_lose_their_devices_while_they_pair_have_a_pair_later(void **state) {
	(void)state;
	for (uint32_t turns = 0; turns < 24; turns++) {
		bed_close();
		bed_open(2, 1);
		bed_link(0, 1, true);
		bed_start(0);
		bed_start(1);
		bed_until(device(0).state == FABRIC_DEVICE_UP);
		for (uint32_t n = 0; n < 960 + turns * 4; n++)
			bed_turn();
		lose(0);
		for (uint32_t n = 0; n < turns % 5; n++)
			bed_turn();
		lose(1);
		come_back(0);
		bed_pass(turns % 3 * RAS_NS_PER_SEC);
		come_back(1);
		bed_until(all_ready() && bed_is_ready(1, 1));
		assert_int_equal(fake_verbs_alive().contexts, 2);
	}
}

static void port_that_flaps_fifty_times_in_a_second_ends_as_it_is(void **state) {
	struct fake_device *fake = bed.agents[0].fakes[0];

	(void)state;
	bed_start_both();
	for (uint32_t n = 0; n < 100; n++) {
		bool up = n % 2 == 1;

		fake->ports[0].attr.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
		fake_device_event(fake, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, 1);
		bed_pass(10 * RAS_NS_PER_MS);
	}
	bed_until(device(0).state == FABRIC_DEVICE_UP && all_ready());
	assert_int_equal(device(0).opened, 1);
	fake->ports[0].attr.state = IBV_PORT_DOWN;
	fake_device_event(fake, IBV_EVENT_PORT_ERR, 1);
	bed_until(device(0).state == FABRIC_DEVICE_DOWN);
}

// The device is lost while its reads of the peer and of itself, and the peer's reads, are in
// flight.
static void only_device_is_lost_with_probes_in_flight_and_probed_again_later(void **state) {
	(void)state;
	for (uint32_t round = 0; round < 8; round++) {
		bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && bed_seen(1, 0) == OBSERVATION_GOOD);
		for (uint32_t n = 0; n < 2; n++)
			bed.agents[n].fakes[0]->delay_ns = 30 * RAS_NS_PER_MS;
		bed_pass(RAS_NS_PER_SEC + round * 7 * RAS_NS_PER_MS);
		if (round % 2 == 0)
			lose(0);
		else
			(void)fake_device_withdraw(bed.agents[0].fakes[0]);
		fabric_rescan_devices(bed.agents[0].fabric);
		bed_until(is_forgotten(0));
		for (uint32_t n = 0; n < 2; n++)
			bed.agents[n].fakes[0]->delay_ns = 0;
		bed_pass(round % 3 * 2 * RAS_NS_PER_SEC);
		memset(told, 0, sizeof(told));
		come_back(0);
		fabric_rescan_devices(bed.agents[0].fabric);
		bed_until(all_ready());
	}
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && bed_seen(1, 0) == OBSERVATION_GOOD);
	assert_null(fake_verbs_broken());
}

// Run a whole life in which the device is lost before the nth driver call: opening, pairs, a dead
// peer, closing. Returns false if there were fewer calls.
static bool live_with_a_loss(uint32_t nth, uint64_t gone_ns) {
	bool lost;

	bed_close();
	bed_open(2, 1);
	bed_link(0, 1, true);
	bed_start(1);
	bed_until(bed_is_ready(1, 1));
	bed_lose_nth(nth);
	bed_start(0);
	for (uint32_t n = 0; n < 2000 && !bed_lost(); n++)
		bed_turn();
	if (!bed_lost())
		bed_say(0, 1, RAS_DEAD);
	for (uint32_t n = 0; n < 2000 && !bed_lost(); n++)
		bed_turn();
	lost = bed_lost();
	bed_lose_nth(0);
	bed_pass(gone_ns);
	come_back(0);
	bed_say(0, 1, RAS_ALIVE);
	bed_until(all_ready());
	assert_true(device(0).opened >= 1);
	assert_int_equal(fake_verbs_alive().contexts, 2);
	return lost;
}

static void device_may_be_lost_at_any_call_and_is_taken_again(void **state) {
	uint32_t nth = 1;

	(void)state;
	while (live_with_a_loss(nth, nth % 3 * RAS_NS_PER_SEC))
		nth++;
	assert_true(nth > 20);
}

static void device_may_be_lost_at_any_call_of_its_end(void **state) {
	uint32_t nth = 0;
	bool lost;

	(void)state;
	do {
		bed_close();
		bed_open(2, 1);
		bed_link(0, 1, true);
		bed_start_both();
		bed_settle();
		bed_lose_nth(++nth);
		bed_stop(0);
		bed_until(bed.agents[0].stopped);
		lost = bed_lost();
		bed_lose_nth(0);
		assert_true(nic_is_closed(&bed.agents[0].fabric->nics[0]));
		assert_int_equal(fake_verbs_alive().contexts, 1);
	} while (lost);
	assert_true(nth > 5);
}

// The device is lost at one call, returns, and is lost again at the next call, during closing or
// opening.
static void device_may_be_lost_again_at_any_call(void **state) {
	uint32_t nth = 0;
	bool lost;

	(void)state;
	do {
		bed_close();
		bed_open(2, 1);
		bed_link(0, 1, true);
		bed_start_both();
		bed_settle();
		bed_lose_nth(++nth);
		lose(0);
		come_back(0);
		for (uint32_t n = 0; n < 3000 && !bed_lost(); n++)
			bed_turn();
		lost = bed_lost();
		bed_lose_nth(0);
		bed_pass(RAS_NS_PER_SEC);
		come_back(0);
		bed_until(device(0).state == FABRIC_DEVICE_UP && all_ready());
		assert_int_equal(fake_verbs_alive().contexts, 2);
	} while (lost && nth < 60);
	assert_true(nth > 20);
}

// The pair's disconnection found no room and is queued for a retry. Meanwhile the lane reports
// the pair drained. The keeper runs its destruction, which frees it, before the retry.
static void pair_that_drained_meanwhile_is_not_cut_off_again(void **state) {
	(void)state;
	for (uint32_t nth = 1; nth <= 12; nth++) {
		bed_close();
		bed_open(2, 1);
		bed_link(0, 1, true);
		bed_start_both();
		bed_settle();
		bed_hang(FAKE_DESTROY_QP);
		bed_fail_allocation(nth);
		lose(0);
		bed_pass(3 * RAS_NS_PER_SEC);
		bed_fail_allocation(0);
		bed_let_go();
		bed_until(is_forgotten(0));
		come_back(0);
		bed_until(all_ready());
	}
}

UNIT_GROUP(fabric_loss) {
	const struct CMUnitTest tests[] = {
		BED_TEST(lost_device_is_closed_and_taken_again_when_it_is_back),
		BED_TEST(lost_device_is_closed_at_once_though_nothing_completes),
		BED_TEST(device_that_is_lost_without_a_word_is_noticed_by_its_descriptor),
		BED_TEST(device_that_is_back_before_it_was_closed_is_taken_again),
		BED_TEST(device_that_is_lost_again_and_again_is_taken_each_time),
		BED_TEST(device_that_comes_back_as_another_is_taken_as_it_is),
		BED_TEST(agent_stops_while_its_device_is_lost),
		BED_TEST(device_that_is_lost_while_the_agent_stops_is_closed),
		BED_TEST(lost_device_whose_driver_hangs_is_taken_again_when_it_no_longer_does),
		BED_TEST(device_that_is_withdrawn_is_let_go_of_and_taken_again),
		BED_TEST(look_finds_what_is_awaited_at_once),
		BED_TEST(look_at_devices_that_are_all_there_changes_nothing),
		BED_TEST(device_that_is_renamed_stays_and_is_taken_again_by_its_identity),
		BED_TEST(devices_of_one_guid_are_told_apart_by_name),
		BED_TEST(a_guid_that_a_second_device_has_later_tells_nothing_any_more),
		BED_TEST(a_name_that_another_device_of_ours_has_now_is_not_taken),
		BED_TEST(two_devices_that_swap_names_are_not_taken_for_each_other),
		BED_TEST(peers_that_lose_their_devices_while_they_pair_have_a_pair_later),
		BED_TEST(port_that_flaps_fifty_times_in_a_second_ends_as_it_is),
		PAIR(only_device_is_lost_with_probes_in_flight_and_probed_again_later),
		BED_TEST(device_may_be_lost_at_any_call_and_is_taken_again),
		BED_TEST(device_may_be_lost_at_any_call_of_its_end),
		BED_TEST(device_may_be_lost_again_at_any_call),
		BED_TEST(pair_that_drained_meanwhile_is_not_cut_off_again),
	};

	return cmocka_run_group_tests(tests, rcu_group_begin, rcu_group_end);
}
