// SPDX-License-Identifier: BSD-3-Clause
// How much an agent reports: within its budget, less the more it receives, and each path in turn.
#include "control/verdict/engine/verdict_net.h"

#include <lib/wire.h>

#include <stdio.h>

static void nobody_tells_more_than_its_budget(void **state) {
	struct net *net = net_create();

	(void)state;
	for (uint32_t second = 0; second < 4; second++) {
		uint64_t before = told(net, 1);

		for (uint32_t subject = 2; subject < AGENTS; subject++)
			see(net, 1, subject, OBSERVATION_SILENT);
		pass(net, SEC);
		assert_true(told(net, 1) - before <= 2 * OBSERVATION_BUDGET);
	}
	assert_true(observation_exchange_counters(net->agents[1].exchange)->held_by_budget > 0);
	assert_true(told(net, 1) <= 5 * OBSERVATION_BUDGET);
	net_destroy(net);
}

static void the_more_is_heard_the_less_everybody_tells(void **state) {
	static const enum observation_kind kinds[] = {
		OBSERVATION_SILENT, OBSERVATION_DEGRADED, OBSERVATION_LOSSY};
	struct net *net = net_create();
	uint64_t before = 0;

	(void)state;
	// All agents read all others badly, and change every second: 380 reports a second without
	// a limit.
	for (uint32_t second = 0; second < 12; second++) {
		for (uint32_t n = 0; n < AGENTS; n++) {
			for (uint32_t subject = 0; subject < AGENTS; subject++) {
				if (n != subject)
					see(net, n, subject, kinds[second % 3]);
			}
		}
		pass(net, SEC);
		if (second == 1)
			before = told_by_all(net);
	}
	assert_true(told_by_all(net) - before < 10 * AGENTS * OBSERVATION_BUDGET / 2);
	net_destroy(net);
}

// Report an observation of agent 0 through `device`.
static int
see_through(struct net *net, uint32_t subject, enum observation_kind kind, const char *device) {
	struct observation observation = {
		.observer = id_of(0),
		.subject = id_of(subject),
		.incarnation = ras_incarnation(1, 0),
		.kind = kind,
		.reach = VERDICT_REACH_ANSWERS,
		.own_good = true,
		.device = "dev0",
	};

	snprintf(observation.peer_device, sizeof(observation.peer_device), "%s", device);
	return observation_exchange_update(net->agents[0].exchange, net->now_ns, &observation);
}

#define PORTS 8

static void see_all_ports(struct net *net) {
	for (uint32_t n = 0; n < (AGENTS - 1) * PORTS; n++) {
		char port[2] = {(char)('0' + n % PORTS), '\0'};

		(void)see_through(net, 1 + n / PORTS, OBSERVATION_SILENT, port);
	}
}

// Ticks occur whenever paths are due, possibly each millisecond.
static void who_hears_much_still_says_something(void **state) {
	struct net *net = net_create();
	uint8_t bytes[128];
	struct wire_writer writer;
	struct observation other = {
		.observer = id_of(13),
		.subject = id_of(18),
		.incarnation = ras_incarnation(1, 0),
		.kind = OBSERVATION_SILENT,
		.own_good = true,
	};
	uint64_t before = 0;
	size_t size = 0;

	(void)state;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(observation_put(&writer, &other), 0);
	assert_int_equal(wire_writer_finish(&writer, &size), 0);
	for (uint32_t ms = 0; ms < 30000; ms++) {
		net->now_ns += MS;
		if (ms % 1000 == 0)
			see_all_ports(net);
		if (ms % 3 == 0)
			observation_exchange_receive(
				net->agents[0].exchange, net->now_ns, id_of(13), 0, bytes, size
			);
		observation_exchange_tick(net->agents[0].exchange, net->now_ns);
		if (ms == 10000)
			before = told(net, 0);
	}
	// A share of 16 / (16 + 333) of eight per second.
	assert_in_range(told(net, 0) - before, 4, 10);
	net_destroy(net);
}

static bool was_told[AGENTS][PORTS];

static void mark_told(void *ctx, const void *bytes, size_t size) {
	struct wire_reader reader;
	struct told told;

	(void)ctx;
	wire_reader_init(&reader, bytes, size);
	while (notice_item_get(&reader, &told) == 0)
		was_told[told.observation.subject - 1][told.observation.peer_device[0] - '0'] =
			true;
}

static void of_more_paths_than_the_budget_each_has_its_turn(void **state) {
	static const struct observation_exchange_ops ops = {.tell = mark_told, .wake = on_wake};
	struct net *net = net_create();
	struct ras_memory memory = HEAP_MEMORY(&net->heap);

	(void)state;
	observation_exchange_destroy(net->agents[0].exchange);
	assert_int_equal(
		observation_exchange_create(
			net->agents[0].engine, id_of(0), 7, &memory, &ops, NULL,
			&net->agents[0].exchange
		),
		0
	);
	for (uint32_t second = 0; second < 60; second++) {
		see_all_ports(net);
		pass(net, SEC);
	}
	for (uint32_t n = 0; n < (AGENTS - 1) * PORTS; n++)
		assert_true(was_told[1 + n / PORTS][n % PORTS]);
	net_destroy(net);
}

// A name chosen by another agent may be one that every reader rejects.
static void a_observation_that_cannot_be_told_keeps_no_other_back(void **state) {
	struct net *net = net_create();

	(void)state;
	assert_int_equal(see_through(net, 5, OBSERVATION_SILENT, "\n"), 0);
	assert_int_equal(see_through(net, 6, OBSERVATION_SILENT, "dev0"), 0);
	pass(net, SEC);
	assert_int_equal(told(net, 0), 1);
	net_destroy(net);
}

UNIT_GROUP(verdict_exchange_budget) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_tells_more_than_its_budget),
		cmocka_unit_test(the_more_is_heard_the_less_everybody_tells),
		cmocka_unit_test(who_hears_much_still_says_something),
		cmocka_unit_test(of_more_paths_than_the_budget_each_has_its_turn),
		cmocka_unit_test(a_observation_that_cannot_be_told_keeps_no_other_back),
	};

	return cmocka_run_group_tests_name("verdict_exchange_budget", tests, NULL, NULL);
}
