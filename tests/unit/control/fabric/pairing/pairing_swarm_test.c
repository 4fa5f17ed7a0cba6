// SPDX-License-Identifier: BSD-3-Clause
// Thousands of small clusters, each with its own mix of faults by seed. The net checks its
// invariants after each step; the tests check the final state.
#include "control/fabric/pairing/pairing_net.h"

#include <support/cases.h>
#include <support/cmocka.h>
#include <support/sanitized.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS OR_SANITIZED(2000, 300)

static uint64_t seed; // of the current run

static uint32_t any_node(void) {
	return (uint32_t)(net_random() % net.node_count);
}

static uint32_t any_device(void) {
	return (uint32_t)(net_random() % net.device_count);
}

static uint32_t other_node(uint32_t node) {
	return (node + 1 + (uint32_t)(net_random() % (net.node_count - 1))) % net.node_count;
}

static struct pairing_key any_key(uint32_t node) {
	uint32_t peer = net_chance(10) ? node : other_node(node);

	return net_key(any_device(), peer, any_device());
}

// Create a cluster of 2 to 8 nodes with 1 to 3 devices; some nodes want some pairs.
static void make_cluster(void) {
	uint64_t random;

	net = (struct net){.random = seed};
	random = net_random();
	net_create((uint32_t)(2 + random % 7), (uint32_t)(1 + (random >> 8) % 3), seed);
	net.delay_min_ns = MS / 10;
	net.delay_max_ns = net_chance(30) ? 2 * SECOND : net_chance(50) ? 50 * MS : 2 * MS;
	net.call_max_ns = net_chance(20) ? 500 * MS : 5 * MS;
	for (uint32_t n = 0; n < 2 * net.node_count && n < NET_WANTED_MAX; n++) {
		uint32_t node = any_node(), peer = other_node(node);
		uint32_t device = any_device(), peer_device = any_device();

		net_want(node, device, peer, peer_device);
		if (net_chance(70))
			net_want(peer, peer_device, node, device);
	}
}

static void make_faults(void) {
	net.loss = net_chance(60) ? (uint32_t)(net_random() % 60) : 0;
	net.repeat = net_chance(60) ? (uint32_t)(net_random() % 60) : 0;
	net.driver_errors = net_chance(30) ? (uint32_t)(net_random() % 40) : 0;
	net.undeliverable = net_chance(50);
}

static void end_faults(void) {
	net.loss = 0;
	net.repeat = 0;
	net.driver_errors = 0;
	memset(net.cut, 0, sizeof(net.cut));
	for (uint32_t n = 0; n < net.node_count; n++) {
		net_release(n);
		if (net.nodes[n].pairing == NULL)
			net_start(n, true);
	}
}

static void use_some_pair(uint32_t node) {
	struct pairing_view view = net_view(node, any_key(node));

	if (view.state == PAIRING_READY)
		pairing_report_success(net.nodes[node].pairing, net.now_ns, view.generation);
}

// Let a random event happen to a node that is up.
static void one_thing(uint32_t node) {
	struct pairing *pairing = net.nodes[node].pairing;
	uint32_t device = any_device(), waiter;

	switch (net_random() % 12) {
	case 0:
		net_crash(node, net_chance(70));
		return;
	case 1:
		net_break(node, any_key(node));
		return;
	case 2:
		net.nodes[node].hold[net_random() % NET_CALL_COUNT] = true;
		return;
	case 3:
		net_release(node);
		return;
	case 4:
		pairing_device_state(
			pairing, net.now_ns, device,
			net_chance(20) ? PAIRING_DEVICE_LOST : PAIRING_DEVICE_DOWN, "cable"
		);
		return;
	case 5:
		pairing_device_state(pairing, net.now_ns, device, PAIRING_DEVICE_ACTIVE, NULL);
		return;
	case 6:
		use_some_pair(node);
		return;
	case 7:
		waiter = (uint32_t)(net_random() % NET_WAITERS_MAX);
		if (waiter < net.waiter_count && net.waiters[waiter].answers == 0 &&
		    net.nodes[net.waiters[waiter].node].pairing != NULL)
			pairing_cancel(
				net.nodes[net.waiters[waiter].node].pairing,
				&net.waiters[waiter].waiter
			);
		return;
	case 8:
		net.cut[node][other_node(node)] = net_chance(50);
		return;
	default:
		if (net.waiter_count < NET_WAITERS_MAX)
			net_request(
				node, any_key(node),
				net_chance(20) ? PAIRING_NEVER : net_random() % (8 * SECOND)
			);
	}
}

static void live(uint32_t things) {
	for (uint32_t n = 0; n < things; n++) {
		uint32_t node = any_node();

		net_pass(net_random() % (net_chance(20) ? 4 * SECOND : 200 * MS));
		if (net.nodes[node].pairing != NULL)
			one_thing(node);
		else if (net_chance(50))
			net_start(node, net_chance(70));
	}
}

static void end_of_news(void) {
	for (uint32_t n = 0; n < net.node_count; n++) {
		for (uint32_t d = 0; d < net.device_count; d++)
			pairing_device_state(
				net.nodes[n].pairing, net.now_ns, d, PAIRING_DEVICE_ACTIVE, NULL
			);
		for (uint32_t peer = 0; peer < net.node_count; peer++) {
			if (peer != n)
				net_tell(n, peer, PAIRING_PEER_IS_ALIVE, net.nodes[peer].start);
		}
	}
}

static void run(void) {
	make_cluster();
	make_faults();
	live(60);
	end_faults();
	net_pass(10 * SECOND);
	end_of_news();
	net_settle();
	net_destroy();
}

// The environment sets the first seed: TOCSIN_SEED=17 starts with the run that failed.
static int begin(void **state) {
	const char *text = getenv("TOCSIN_SEED");

	(void)state;
	seed = text != NULL ? strtoull(text, NULL, 10) : 1;
	return 0;
}

static int say_seed(void **state) {
	(void)state;
	print_message("# the last one was seed %" PRIu64 "\n", seed);
	return 0;
}

static void pairs_converge_on_one_whatever_happened_before(void **state) {
	(void)state;
	for (uint64_t n = 0; n < SEEDS; n++, seed++)
		run();
	seed--;
}

UNIT_GROUP(pairing_swarm) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			pairs_converge_on_one_whatever_happened_before, begin, say_seed
		),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
