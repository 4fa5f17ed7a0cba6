// SPDX-License-Identifier: BSD-3-Clause
// Observations of a peer over the fabric while the test changes its device, its agent or the
// path: kind, delay, and the reported reachability of its host.
#include "control/fabric/probe_bed.h"
#include "fabric/probing.h"

#include <support/tree.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static uint64_t passed_since(uint64_t begin_ns) {
	return clock_now_ns(&bed.clock) - begin_ns;
}

static void device_that_is_cut_off_is_silent_within_three_seconds(void **state) {
	uint64_t begin_ns;

	(void)state;
	for (uint32_t n = 0; n < 3; n++) {
		bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && told[0].last[1].own_good);
		bed_pass(2 * SEC + n * 300 * RAS_NS_PER_MS);
		begin_ns = clock_now_ns(&bed.clock);
		fake_device_cut(bed.agents[1].fakes[0], true);
		bed_until(bed_seen(0, 1) == OBSERVATION_SILENT);
		assert_in_range(passed_since(begin_ns), 0, 3 * SEC);
		assert_true(told[0].last[1].own_good);
		// The other agent can read nobody, not even itself, so it blames only its own
		// port.
		bed_until(bed_seen(1, 0) == OBSERVATION_SILENT && !told[1].last[0].own_good);
		fake_device_cut(bed.agents[1].fakes[0], false);
	}
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && bed_seen(1, 0) == OBSERVATION_GOOD);
}

// The NIC loops reads of itself internally, so such reads would hide the fault.
static void port_whose_cable_is_dead_blames_nobody_else(void **state) {
	(void)state;
	bed_link(0, 2, true);
	bed_link(1, 2, true);
	for (uint32_t n = 0; n < 3; n++)
		bed_start_probing(n);
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && bed_seen(0, 2) == OBSERVATION_GOOD);
	bed_until(bed_seen(1, 0) == OBSERVATION_GOOD && bed_seen(1, 2) == OBSERVATION_GOOD);
	assert_true(told[0].last[1].own_good && told[0].last[2].own_good);
	fake_device_unplug(bed.agents[0].fakes[0], true);
	bed_until(bed_seen(0, 1) == OBSERVATION_SILENT && bed_seen(0, 2) == OBSERVATION_SILENT);
	bed_until(!told[0].last[1].own_good && !told[0].last[2].own_good);
	bed_until(bed_seen(1, 0) == OBSERVATION_SILENT);
	assert_true(told[1].last[0].own_good);
	fake_device_unplug(bed.agents[0].fakes[0], false);
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && bed_seen(0, 2) == OBSERVATION_GOOD);
	bed_until(told[0].last[1].own_good && told[0].last[2].own_good);
}

// This models a failed host, or a frozen agent whose device runs inside the agent. The pair
// breaks with the first read, and no new pair can be made.
static void one_who_is_gone_from_both_networks_is_silent_within_three_seconds(void **state) {
	uint64_t begin_ns;

	(void)state;
	// Repeat at other phases, so that sometimes a write is lost first.
	for (uint32_t n = 0; n < 20; n++) {
		bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && told[0].last[1].own_good);
		bed_pass(2 * SEC + n * 130 * RAS_NS_PER_MS);
		begin_ns = clock_now_ns(&bed.clock);
		played.agents[0].deaf = played.agents[1].deaf = true;
		fake_device_cut(bed.agents[1].fakes[0], true);
		bed_until(bed_seen(0, 1) == OBSERVATION_SILENT);
		assert_in_range(passed_since(begin_ns), 0, 3 * SEC);
		assert_true(told[0].last[1].own_good);
		bed_pass(30 * SEC);
		assert_int_equal(bed_seen(0, 1), OBSERVATION_SILENT);
		played.agents[0].deaf = played.agents[1].deaf = false;
		fake_device_cut(bed.agents[1].fakes[0], false);
	}
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && bed_seen(1, 0) == OBSERVATION_GOOD);
}

static void agent_whose_pulse_stands_is_seen_and_doubted_within_three_seconds(void **state) {
	uint64_t begin_ns;

	(void)state;
	for (uint32_t n = 0; n < 6; n++) {
		bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
		bed_pass(3 * SEC + n * 170 * RAS_NS_PER_MS);
		played.agents[0].doubts[1] = 0;
		begin_ns = clock_now_ns(&bed.clock);
		loop_timer_cancel(bed.loop, &bed.agents[1].fabric->beat);
		bed_until(bed_seen(0, 1) == OBSERVATION_STANDING);
		assert_in_range(passed_since(begin_ns), 0, 3 * SEC);
		assert_true(played.agents[0].doubts[1] > 0);
		loop_timer_set(bed.loop, &bed.agents[1].fabric->beat, loop_now_ns(bed.loop));
	}
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
}

static void suspect_whose_pulse_goes_on_is_read_and_stays_suspect(void **state) {
	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	bed.agents[0].overlay->states[1] = RAS_SUSPECT;
	bed_pass(2 * SEC);
	assert_int_equal(bed_seen(0, 1), OBSERVATION_GOOD);
	assert_int_equal(played.agents[0].proofs[1], 0);
	assert_int_equal(played.agents[0].doubts[1], 0);
}

static void path_that_becomes_three_times_slower_is_degraded_within_twenty_seconds(void **state) {
	uint64_t begin_ns;

	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && bed_seen(1, 0) == OBSERVATION_GOOD);
	// So slow that the bed's turns of a millisecond do not matter.
	bed.agents[0].fakes[0]->delay_ns = 20 * RAS_NS_PER_MS;
	bed_pass(60 * SEC);
	assert_int_equal(bed_seen(0, 1), OBSERVATION_GOOD);
	begin_ns = clock_now_ns(&bed.clock);
	fake_qp_delay(bed_qp(0, 1), 60 * RAS_NS_PER_MS);
	bed_until(bed_seen(0, 1) == OBSERVATION_DEGRADED);
	assert_in_range(passed_since(begin_ns), 0, 20 * SEC);
	assert_true(told[0].last[1].median_ns > 2 * told[0].last[1].baseline_ns);
	assert_true(told[0].last[1].baseline_ns > 0);
	fake_qp_delay(bed_qp(0, 1), 20 * RAS_NS_PER_MS);
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
}

static void device_that_reads_itself_as_slowly_blames_no_path(void **state) {
	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	bed.agents[0].fakes[0]->delay_ns = 20 * RAS_NS_PER_MS;
	bed_pass(60 * SEC);
	bed.agents[0].fakes[0]->delay_ns = 60 * RAS_NS_PER_MS;
	bed_pass(30 * SEC);
	assert_int_equal(bed_seen(0, 1), OBSERVATION_GOOD);
	assert_true(told[0].last[1].median_ns > 2 * told[0].last[1].baseline_ns);
}

static char place[] = "/tmp/tocsin-hardware-XXXXXX";

// Let two agents probe each other on devices with a place in the PCI tree, which identifies
// hardware.
static int hardware_open(void **state) {
	char path[sizeof(place) + 8];

	memcpy(place + sizeof(place) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(place));
	snprintf(path, sizeof(path), "%s/device", place);
	assert_int_equal(mkdir(path, 0700), 0);
	memset(told, 0, sizeof(told));
	bed_pair_open(state);
	for (uint32_t n = 0; n < 2; n++) {
		struct fake_device *fake = bed.agents[n].fakes[0];

		fake->delay_ns = 20 * US;
		snprintf(fake->verbs.ibdev_path, sizeof(fake->verbs.ibdev_path), "%s", place);
		bed_start_probing(n);
	}
	return 0;
}

static int hardware_close(void **state) {
	assert_int_equal(tree_remove(place), 0);
	return bed_pair_close(state);
}

#define HARDWARE(name) cmocka_unit_test_setup_teardown(name, hardware_open, hardware_close)

#define AGAIN_NS (67 * RAS_NS_PER_MS)

// Wait up to this many seconds of the bed's clock.
static bool is_seen_within(enum observation_kind kind, uint32_t most_s) {
	for (uint32_t n = 0; n < most_s && bed_seen(0, 1) != kind; n++)
		bed_pass(SEC);
	return bed_seen(0, 1) == kind;
}

// On hardware a lost packet is only an answer that comes one timeout later, so no probe is lost.
static void path_whose_device_hides_its_losses_is_lossy_and_well_again(void **state) {
	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && bed_seen(1, 0) == OBSERVATION_GOOD);
	bed_pass(30 * SEC);
	fake_qp_lose(bed_qp(0, 1), 200, AGAIN_NS);
	assert_true(is_seen_within(OBSERVATION_LOSSY, 150));
	assert_in_range(told[0].last[1].lost_permille, 20, 500);
	assert_int_equal(told[0].last[1].lost_bytes, 0);    // of any size
	assert_int_equal(bed_seen(1, 0), OBSERVATION_GOOD); // its own reads are not lost
	for (uint32_t n = 0; n < PATH_SIZES; n++)
		assert_int_equal(bed_probes(0).lost[n], 0);
	fake_qp_lose(bed_qp(0, 1), 0, 0);
	assert_true(is_seen_within(OBSERVATION_GOOD, 150));
}

// A delay that also affects reads of the own device is no fault of a path.
static void machine_that_waits_is_not_lossy(void **state) {
	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	bed_pass(30 * SEC);
	fake_qp_lose(bed_qp(0, 1), 200, AGAIN_NS);
	fake_qp_lose(bed_qp(0, 0), 200, AGAIN_NS);
	for (uint32_t n = 0; n < 120; n++) {
		bed_pass(SEC);
		assert_int_not_equal(bed_seen(0, 1), OBSERVATION_LOSSY);
	}
}

static uint64_t port_resent = 7;

static uint64_t resent(void *ctx, const char *device) {
	(void)ctx;
	assert_string_equal(device, "rdma0");
	return port_resent;
}

static void port_that_counts_has_to_have_counted(void **state) {
	(void)state;
	bed.agents[0].fabric->config.resent = resent;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	bed_pass(30 * SEC);
	fake_qp_lose(bed_qp(0, 1), 200, AGAIN_NS);
	for (uint32_t n = 0; n < 60; n++) {
		bed_pass(SEC);
		assert_int_not_equal(bed_seen(0, 1), OBSERVATION_LOSSY);
	}
	port_resent++;
	assert_true(is_seen_within(OBSERVATION_LOSSY, 30));
}

static void good_observation_is_as_old_as_the_last_advance(void **state) {
	uint64_t begin_ns;

	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	for (uint32_t n = 0; n < 3; n++) {
		bed_pass(3 * SEC + n * 170 * RAS_NS_PER_MS);
		assert_in_range(told[0].last[1].age_ms, 0, 1500);
		loop_timer_cancel(bed.loop, &bed.agents[1].fabric->beat);
		begin_ns = clock_now_ns(&bed.clock);
		do {
			told[0].count[1] = 0;
			bed_until(told[0].count[1] > 0);
			// The next read, within about a second, may still see an advanced
			// counter.
			assert_true(
				bed_seen(0, 1) != OBSERVATION_GOOD ||
				told[0].last[1].age_ms + 1300 >
					passed_since(begin_ns) / RAS_NS_PER_MS
			);
		} while (bed_seen(0, 1) == OBSERVATION_GOOD);
		assert_int_equal(bed_seen(0, 1), OBSERVATION_STANDING);
		loop_timer_set(bed.loop, &bed.agents[1].fabric->beat, loop_now_ns(bed.loop));
		bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	}
}

// The reachability that the overlay finds, and the one that a good and a silent observation
// report with it.
static const struct door {
	enum verdict_reach found;
	uint64_t ago_ns, quiet_ns;
	enum verdict_reach good, silent;
} doors[] = {
	{VERDICT_REACH_ANSWERS, 0, 0, VERDICT_REACH_ANSWERS, VERDICT_REACH_ANSWERS},
	// Heard shortly before the reads failed.
	{VERDICT_REACH_ANSWERS, 20 * SEC, 0, VERDICT_REACH_ANSWERS, VERDICT_REACH_UNKNOWN},
	// A beat that is slightly late, while the kernel acknowledges.
	{VERDICT_REACH_ACCEPTS, 0, 2 * SEC, VERDICT_REACH_ANSWERS, VERDICT_REACH_ACCEPTS},
	{VERDICT_REACH_ACCEPTS, 0, 4 * SEC, VERDICT_REACH_ACCEPTS, VERDICT_REACH_ACCEPTS},
	{VERDICT_REACH_NONE, 0, RAS_NEVER, VERDICT_REACH_NONE, VERDICT_REACH_NONE},
	// Found before the agent's last start.
	{VERDICT_REACH_REFUSES, 20 * SEC, RAS_NEVER, VERDICT_REACH_UNKNOWN, VERDICT_REACH_UNKNOWN},
	{VERDICT_REACH_UNKNOWN, 0, RAS_NEVER, VERDICT_REACH_UNKNOWN, VERDICT_REACH_UNKNOWN},
};

static void find_by_tcp(const struct door *door) {
	played.agents[0].tcp_found[1] = (struct overlay_tcp_reach){
		.reach = door->found,
		.at_ns = clock_now_ns(&bed.clock) - door->ago_ns,
		.since_ns = clock_now_ns(&bed.clock) - door->ago_ns,
		.quiet_ns = door->quiet_ns,
	};
}

static void reach_beside_a_read_is_not_older_than_the_read(void **state) {
	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	bed_pass(30 * SEC);
	for (size_t n = 0; n < sizeof(doors) / sizeof(doors[0]); n++) {
		find_by_tcp(&doors[n]);
		bed_pass(1500 * RAS_NS_PER_MS);
		assert_int_equal(told[0].last[1].reach, doors[n].good);
	}
	fake_device_cut(bed.agents[1].fakes[0], true);
	bed_until(bed_seen(0, 1) == OBSERVATION_SILENT);
	for (size_t n = 0; n < sizeof(doors) / sizeof(doors[0]); n++) {
		bed_pass(SEC);
		find_by_tcp(&doors[n]);
		told[0].count[1] = 0;
		bed_until(told[0].count[1] > 0);
		assert_int_equal(bed_seen(0, 1), OBSERVATION_SILENT);
		assert_int_equal(told[0].last[1].reach, doors[n].silent);
	}
}

// A finding that is renewed at each look, like a silent kernel, never gets older than the last
// read. The time since it began counts.
static void silence_of_a_kernel_that_lasts_is_told_beside_good_reads(void **state) {
	static const struct {
		uint64_t for_ns;
		enum verdict_reach told;
	} rows[] = {{0, VERDICT_REACH_UNKNOWN}, {4 * SEC, VERDICT_REACH_NONE}};

	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	bed_pass(30 * SEC);
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		uint64_t later_ns = clock_now_ns(&bed.clock) + 2 * SEC;

		played.agents[0].tcp_found[1] = (struct overlay_tcp_reach){
			.reach = VERDICT_REACH_NONE,
			.at_ns = later_ns,
			.since_ns = later_ns - rows[n].for_ns,
			.quiet_ns = RAS_NEVER,
		};
		bed_pass(1500 * RAS_NS_PER_MS);
		assert_int_equal(told[0].last[1].reach, rows[n].told);
	}
}

// Set what answers n0's reads of n1, until a new pair is made.
static void answered_by(enum device_responder responder) {
	struct probing *probing = bed.agents[0].fabric->probing;

	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		if (probing->probed_paths[n].key.peer == bed_id(1))
			probing->probed_paths[n].responder = responder;
	}
}

// A software device waits for a processor like its agent. The read may be from before the last
// beat, and unanswered because the agent was stopped afterwards.
static void beat_that_came_during_a_read_proves_nothing_of_a_responder_in_the_agent(void **state) {
	static const struct {
		enum device_responder responder;
		uint64_t after_ns;
		enum verdict_reach reach;
	} beats[] = {
		{DEVICE_RESPONDER_KERNEL, 0, VERDICT_REACH_ANSWERS},
		{DEVICE_RESPONDER_IN_PROCESS, 0, VERDICT_REACH_UNKNOWN},
		{DEVICE_RESPONDER_IN_PROCESS, 399 * RAS_NS_PER_MS, VERDICT_REACH_UNKNOWN},
		{DEVICE_RESPONDER_IN_PROCESS, 401 * RAS_NS_PER_MS, VERDICT_REACH_ANSWERS},
	};
	struct fabric_path_view view;

	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	fake_device_cut(bed.agents[1].fakes[0], true);
	bed_until(bed_seen(0, 1) == OBSERVATION_SILENT);
	assert_true(bed_find_path(0, 1, &view));
	for (size_t n = 0; n < sizeof(beats) / sizeof(beats[0]); n++) {
		played.agents[0].tcp_found[1] = (struct overlay_tcp_reach){
			.reach = VERDICT_REACH_ANSWERS,
			.at_ns = view.summary.turned_ns + beats[n].after_ns,
		};
		told[0].count[1] = 0;
		while (told[0].count[1] == 0) {
			answered_by(beats[n].responder);
			bed_pass(10 * RAS_NS_PER_MS);
		}
		assert_int_equal(told[0].last[1].reach, beats[n].reach);
	}
}

// A killed agent was read well a moment before its host refused connections.
static void refusal_that_came_after_a_good_read_is_not_said_beside_it(void **state) {
	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	bed_pass(5 * SEC);
	loop_timer_cancel(bed.loop, &bed.agents[1].fabric->beat);
	bed_pass(1100 * RAS_NS_PER_MS); // one more read
	find_by_tcp(&(struct door){.found = VERDICT_REACH_REFUSES, .quiet_ns = RAS_NEVER});
	told[0].count[1] = 0;
	bed_until(told[0].count[1] > 0);
	while (bed_seen(0, 1) == OBSERVATION_GOOD) {
		assert_int_equal(told[0].last[1].reach, VERDICT_REACH_UNKNOWN);
		bed_pass(10 * RAS_NS_PER_MS);
	}
	bed_until(bed_seen(0, 1) == OBSERVATION_STANDING);
	loop_timer_set(bed.loop, &bed.agents[1].fabric->beat, loop_now_ns(bed.loop));
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
}

static void what_was_seen_in_a_former_life_is_told_no_more(void **state) {
	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	fake_device_cut(bed.agents[1].fakes[0], true);
	bed_until(bed_seen(0, 1) == OBSERVATION_SILENT);
	bed_say(0, 1, RAS_DEAD);
	bed_pass(5 * SEC);
	fake_device_cut(bed.agents[1].fakes[0], false);
	played.agents[1].incarnation++;
	told[0].count[1] = 0;
	bed_say(0, 1, RAS_ALIVE);
	bed_until(told[0].count[1] > 0);
	while (bed_seen(0, 1) != OBSERVATION_GOOD) {
		assert_int_not_equal(bed_seen(0, 1), OBSERVATION_SILENT);
		bed_pass(10 * RAS_NS_PER_MS);
	}
}

static void own_pause_makes_nobody_silent(void **state) {
	(void)state;
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD && told[0].last[1].own_good);
	bed_pass(5 * SEC);
	fake_qp_hold(bed_qp(0, 1));
	bed_until(fake_qp_posted(bed_qp(0, 1)) > 0);
	fake_qp_let_go_after(bed_qp(0, 1), &bed.clock, 8 * SEC);
	bed_pass(3 * SEC);
	assert_true(bed_probes(0).pauses > 0);
	assert_int_equal(bed_seen(0, 1), OBSERVATION_GOOD);
	assert_int_equal(told[0].silent[1], 0);
}

static void switched_on_later_whoever_listens_is_told(void **state) {
	struct fabric_probe_config config = {.on = true, BED_PROBES};

	(void)state;
	memset(told, 0, sizeof(told));
	bed_start(0);
	bed_start(1);
	fabric_observations(bed.agents[0].fabric, bed_note_observation, NULL, &told[0]);
	bed_until(bed_is_ready(0, 1));
	assert_int_equal(fabric_configure_probes(bed.agents[0].fabric, &config), 0);
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
}

UNIT_GROUP(fabric_observations) {
	const struct CMUnitTest tests[] = {
		PAIR(device_that_is_cut_off_is_silent_within_three_seconds),
		THREE(port_whose_cable_is_dead_blames_nobody_else),
		PAIR(one_who_is_gone_from_both_networks_is_silent_within_three_seconds),
		PAIR(agent_whose_pulse_stands_is_seen_and_doubted_within_three_seconds),
		PAIR(suspect_whose_pulse_goes_on_is_read_and_stays_suspect),
		PAIR(path_that_becomes_three_times_slower_is_degraded_within_twenty_seconds),
		HARDWARE(path_whose_device_hides_its_losses_is_lossy_and_well_again),
		HARDWARE(machine_that_waits_is_not_lossy),
		HARDWARE(port_that_counts_has_to_have_counted),
		PAIR(device_that_reads_itself_as_slowly_blames_no_path),
		PAIR(good_observation_is_as_old_as_the_last_advance),
		PAIR(reach_beside_a_read_is_not_older_than_the_read),
		PAIR(silence_of_a_kernel_that_lasts_is_told_beside_good_reads),
		PAIR(beat_that_came_during_a_read_proves_nothing_of_a_responder_in_the_agent),
		PAIR(refusal_that_came_after_a_good_read_is_not_said_beside_it),
		PAIR(what_was_seen_in_a_former_life_is_told_no_more),
		PAIR(own_pause_makes_nobody_silent),
		BED_TEST(switched_on_later_whoever_listens_is_told),
	};

	return cmocka_run_group_tests(tests, rcu_group_begin, rcu_group_end);
}
