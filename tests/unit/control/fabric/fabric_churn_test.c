// SPDX-License-Identifier: BSD-3-Clause
// Fabrics with real workers on their own threads and the real clock. Devices fail, peers die and
// queue pairs break while reads are in flight. Nothing may be used after it was freed, which
// AddressSanitizer and the fake devices check. Everything must recover and end. The number of
// faults in a run depends on the machine.
//
// Not for ThreadSanitizer, which does not see the ordering by liburcu and by the rings of DPDK.
#include "control/fabric/played_overlay.h"
#include "fabric/inside.h"

#include <dataplane/dispatch.h>
#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGENTS 2
#define DEVICES 2 // devices and workers of each agent
#define ROUNDS 120
#define PINGS 8

struct agent {
	struct fabric *fabric;
	struct path_table *paths;
	struct worker *workers[DEVICES];
	struct prober *probers[DEVICES];
	struct fake_device *fakes[DEVICES];
	bool stopped;
};

static struct clock monotonic;
static struct loop *loop;
static struct agent agents[AGENTS];
static struct fabric_ping *pings[PINGS];
static uint32_t ended, answered, changes;

static void begin_worker(struct agent *agent, uint32_t number) {
	struct worker_config config = {
		.name = "churn",
		.cpu = WORKER_CPU_ANY,
		.clock = &monotonic,
		.idle = {.policy = IDLE_ADAPTIVE, .block_ns = 20000},
		.request = dispatch_worker_request,
	};
	struct worker_facts facts;

	assert_int_equal(
		prober_create(
			agent->paths, NULL, &monotonic, (struct near){0}, &agent->probers[number]
		),
		0
	);
	config.polls[config.poll_count++] = prober_poll(agent->probers[number]);
	assert_int_equal(worker_create(&config, &agent->workers[number]), 0);
	assert_int_equal(worker_start(agent->workers[number], &facts), 0);
}

static void begin_agent(uint32_t number) {
	struct agent *agent = &agents[number];
	struct fabric_config config = {
		.device_count = DEVICES,
		.worker_count = DEVICES,
		.pair_max = 16,
		.random_seed = number + 1,
	};

	assert_int_equal(path_table_create(&agent->paths), 0);
	config.paths = agent->paths;
	for (uint32_t n = 0; n < DEVICES; n++) {
		char name[16];

		played_device_name(number, n, name);
		config.devices[n].calls = &fake_verbs_calls;
		memcpy(config.devices[n].name, name, sizeof(name));
		config.devices[n].settings = device_settings_default;
		begin_worker(agent, n);
		config.workers[n] = agent->workers[n];
		config.probers[n] = agent->probers[n];
	}
	assert_int_equal(fabric_create(loop, &played.agents[number], &config, &agent->fabric), 0);
}

static void turn(void) {
	struct worker_record record;

	assert_int_equal(loop_turn(loop, 1), 0);
	played_deliver();
	for (uint32_t n = 0; n < AGENTS; n++) {
		for (uint32_t m = 0; m < DEVICES; m++) {
			while (worker_take_events(agents[n].workers[m], &record, 1) == 1)
				assert_true(fabric_worker_event(agents[n].fabric, m, &record));
		}
	}
}

static bool is_ready(uint32_t agent, uint32_t peer) {
	struct fabric_pair_view view;
	uint32_t cursor = 0, ready = 0;

	while (fabric_pair_next(agents[agent].fabric, &cursor, &view))
		ready += view.pairing.key.peer == played_id(peer) && view.pairing.wanted &&
			 view.pairing.state == PAIRING_READY;
	return ready >= DEVICES;
}

// Wait without a limit of its own: the suite's time limit applies.
static void until_ready(void) {
	while (!is_ready(0, 1) || !is_ready(1, 0) || !is_ready(0, 0) || !is_ready(1, 1))
		turn();
}

static void note_end(void *ctx, const struct fabric_ping_result *result) {
	*(struct fabric_ping **)ctx = NULL;
	ended++;
	answered += result->answered;
}

static void ping(uint32_t n) {
	struct fabric_ping_request request = {
		.peer = played_id(n % 2),
		.bytes = UINT32_C(64) << n % 4,
		.count = 500,
		.interval_ns = n % 3 == 0 ? 100000 : 0,
		.timeout_ns = RAS_NS_PER_SEC,
		.deadline_ns = clock_now_ns(&monotonic) + RAS_NS_PER_SEC,
	};

	played_device_name(0, n / 2 % DEVICES, request.device);
	if (pings[n] == NULL &&
	    fabric_ping_start(agents[0].fabric, &request, note_end, &pings[n], &pings[n]) != 0)
		pings[n] = NULL;
}

// Fail any of the agent's pairs that a lane has.
static void break_a_pair(uint32_t agent, uint32_t device) {
	struct fabric_pair_view view;
	uint32_t cursor = 0;

	while (fabric_pair_next(agents[agent].fabric, &cursor, &view)) {
		struct ibv_qp *qp = NULL;

		if (view.in_lane && view.pairing.key.device == device)
			qp = fake_qp_find(agents[agent].fakes[device], view.queue_number);
		if (qp == NULL)
			continue;
		fake_qp_break(qp);
		fake_qp_event(qp, IBV_EVENT_QP_FATAL);
		changes++;
		return;
	}
}

static void change(uint32_t round) {
	uint32_t agent = round / 2 % AGENTS, device = round / 3 % DEVICES;

	switch (round % 6) {
	case 0:
	case 3:
		break_a_pair(agent, device);
		break;
	case 1:
		played_say(0, 1, RAS_DEAD);
		break;
	case 2:
		played_say(0, 1, RAS_ALIVE);
		break;
	case 4:
		if (round % 5 == 0)
			fake_device_event(agents[agent].fakes[device], IBV_EVENT_DEVICE_FATAL, 0);
		break;
	default:
		if (pings[round % PINGS] != NULL) {
			fabric_ping_cancel(pings[round % PINGS]);
			pings[round % PINGS] = NULL;
		}
	}
}

static void note_stopped(void *ctx) {
	((struct agent *)ctx)->stopped = true;
}

static void end_agent(struct agent *agent) {
	for (uint32_t n = 0; n < DEVICES; n++)
		worker_stop(agent->workers[n]);
	assert_null(agent->fabric->fabric_pairs);
	agent->fabric = fabric_destroy(agent->fabric);
	for (uint32_t n = 0; n < DEVICES; n++) {
		worker_destroy(agent->workers[n]);
		prober_destroy(agent->probers[n]);
	}
	path_table_destroy(agent->paths);
}

static void pairs_come_and_go_under_reads_of_real_workers(void **state) {
	struct fabric_numbers numbers;

	(void)state;
	for (uint32_t n = 0; n < AGENTS; n++)
		begin_agent(n);
	played_link(0, 1, true);
	until_ready();
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t n = 0; n < PINGS; n++)
			ping(n);
		change(round);
		for (uint32_t n = 0; n < 10; n++) {
			turn();
			fabric_numbers(agents[0].fabric, &numbers);
		}
	}
	played_say(0, 1, RAS_ALIVE);
	until_ready();
	while (agents[0].fabric->pings != NULL)
		turn();
	assert_true(ended > 0 && answered > 0 && changes > 0);
	assert_true(numbers.lanes.drained > 0);
	for (uint32_t n = 0; n < AGENTS; n++)
		fabric_stop(agents[n].fabric, note_stopped, &agents[n]);
	while (!agents[0].stopped || !agents[1].stopped)
		turn();
	for (uint32_t n = 0; n < AGENTS; n++)
		end_agent(&agents[n]);
}

static int begin(void **state) {
	(void)state;
	assert_int_equal(rcu_reclaimer_start(), 0);
	clock_init_monotonic(&monotonic);
	assert_int_equal(rcu_thread_register("test", 0), 0);
	rcu_thread_offline();
	assert_int_equal(loop_create(&monotonic, &loop), 0);
	fake_verbs_init(NULL);
	fake_verbs_share();
	for (uint32_t n = 0; n < AGENTS * DEVICES; n++) { // before any thread exists
		char name[16];

		played_device_name(n / DEVICES, n % DEVICES, name);
		agents[n / DEVICES].fakes[n % DEVICES] = fake_device_add(name);
	}
	played_begin(AGENTS, DEVICES);
	return 0;
}

static int end(void **state) {
	(void)state;
	played_end();
	assert_null(fake_verbs_fini());
	loop_destroy(loop);
	rcu_thread_unregister();
	return 0;
}

UNIT_GROUP(fabric_churn) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			pairs_come_and_go_under_reads_of_real_workers, begin, end
		),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
