// SPDX-License-Identifier: BSD-3-Clause
// Scenarios with faults of hosts and of paths.
#include "random.h"
#include "run.h"
#include "scenario_parts.h"

static uint32_t net_draw(struct run *run) {
	return random_below(&run->world->random, run->options->nodes);
}

void play_silent(struct run *run) {
	struct fault dark = {FAULT_HOST, net_draw(run), 0, 2 * WORLD_SEC, 0};

	fault_add(run->world, &dark);
}

void play_mass(struct run *run) {
	struct world *world = run->world;
	uint32_t hosts = world->options.hosts;
	uint32_t fallen = hosts / 10 > 0 ? hosts / 10 : 1;
	uint32_t from = random_below(&world->random, hosts);
	uint32_t last = NET_NOBODY;

	for (uint32_t n = 0; n < world->options.nodes; n++) {
		uint32_t host = world->net.nodes[n].host;
		struct fault dark = {FAULT_HOST, n, 0, 2 * WORLD_SEC, 0};

		// Take only the first node of each host, so that the chosen nodes lie apart.
		if (host == last)
			continue;
		last = host;
		if ((host + hosts - from) % hosts % (hosts / fallen) == 0 &&
		    (host + hosts - from) % hosts / (hosts / fallen) < fallen)
			fault_add(world, &dark);
	}
}

void play_partition(struct run *run) {
	struct fault split = {FAULT_SPLIT, 0, 50, 2 * WORLD_SEC, 60 * WORLD_SEC};

	fault_add(run->world, &split);
}

void play_one_way(struct run *run) {
	uint64_t long_ns = 2 * run->options->profile->dead_ns + 10 * WORLD_SEC;
	uint32_t node = net_draw(run);
	uint32_t other = (node + run->options->nodes / 2) % run->options->nodes;
	struct fault deaf = {FAULT_DEAF, node, 0, 2 * WORLD_SEC, long_ns};
	struct fault mute = {FAULT_MUTE, other, 0, 2 * long_ns, long_ns};

	fault_add(run->world, &deaf);
	fault_add(run->world, &mute);
}

void play_firewall_reject(struct run *run) {
	uint32_t node = net_draw(run);
	struct fault reject = {FAULT_REJECT, node, 0, WORLD_SEC, 60 * WORLD_SEC};
	struct fault reset = {FAULT_RESET, node, 0, 2 * WORLD_SEC, 0};

	fault_add(run->world, &reject);
	fault_add(run->world, &reset);
	reset.at_ns = 30 * WORLD_SEC;
	fault_add(run->world, &reset);
}
