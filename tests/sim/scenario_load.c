// SPDX-License-Identifier: BSD-3-Clause
// Scenarios with messages, collectives and transfers during faults.
#include "random.h"
#include "run.h"
#include "scenario_parts.h"

#include <math.h>

void play_relay_faults(struct run *run) {
	struct world *world = run->world;
	uint32_t nodes = run->options->nodes;
	uint32_t node = random_below(&world->random, nodes);
	struct fault kill = {FAULT_KILL, node, 0, 5 * WORLD_SEC, 0};
	struct fault reset = {FAULT_RESET, (node + nodes / 2) % nodes, 0, 25 * WORLD_SEC, 0};

	fault_add(world, &kill);
	fault_add(world, &reset);
	for (uint32_t n = 0; n < 4; n++) {
		uint32_t from = (node + nodes / 3 + n) % nodes;
		struct fault cut = {
			FAULT_CUT, from, (from + (1u << n)) % nodes, 12 * WORLD_SEC, 6 * WORLD_SEC};

		if (cut.value != from)
			fault_add(world, &cut);
	}
	load_relay(world, 5 * WORLD_MS, world_now(world) + run->length_ns);
	// Transfers last longer than messages. They stop earlier, so that the run takes no
	// longer.
	load_transfer(world, 100 * WORLD_MS, world_now(world) + run->length_ns - 7 * WORLD_SEC);
}

void play_collective_faults(struct run *run) {
	struct world *world = run->world;
	uint32_t nodes = run->options->nodes;
	uint32_t node = random_below(&world->random, nodes);
	uint64_t dead_ns = run->options->profile->dead_ns;
	struct fault kill = {FAULT_KILL, node, 0, 5 * WORLD_SEC, 0};
	struct fault freeze = {
		FAULT_FREEZE, (node + nodes / 2) % nodes, 0, 10 * WORLD_SEC, dead_ns / 2};
	struct fault dark = {FAULT_HOST, (node + nodes / 3) % nodes, 0, 20 * WORLD_SEC, 0};

	fault_add(world, &kill);
	fault_add(world, &freeze);
	fault_add(world, &dark);
	load_collect(world, 700 * WORLD_MS, world_now(world) + run->length_ns);
}

void play_mixed(struct run *run) {
	struct world *world = run->world;
	uint64_t dead_ns = run->options->profile->dead_ns;
	uint64_t every_ns = 8 * WORLD_SEC;

	for (uint64_t at_ns = 0; at_ns < run->length_ns; at_ns += every_ns) {
		struct fault fault;

		scenario_draw_fault(&world->random, run->options->nodes, dead_ns, every_ns, &fault);
		fault.at_ns += at_ns;
		// Every fault ends, or an hour of this scenario would empty the ring.
		if (fault.duration_ns == 0 && fault.kind != FAULT_LEAP && fault.kind != FAULT_RESET)
			fault.duration_ns = 2 * dead_ns;
		fault_add(world, &fault);
	}
	load_relay(world, 50 * WORLD_MS, world_now(world) + run->length_ns);
	load_collect(world, 3 * WORLD_SEC, world_now(world) + run->length_ns);
	load_notices(world, 5 * WORLD_SEC, world_now(world) + run->length_ns);
}

void play_quiet(struct run *run) {
	run_until(run, world_now(run->world) + run->length_ns);
}

void finish_collective(struct run *run) {
	struct world *world = run->world;

	load_collect_now(world, world_draw_up(world), RAS_COLLECT_COMMS);
	run_until(run, world_now(world) + WORLD_SEC);
	load_notice_now(world, world_draw_up(world));
	run_until(run, world_now(world) + WORLD_SEC);
}
