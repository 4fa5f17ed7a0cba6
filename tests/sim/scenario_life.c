// SPDX-License-Identifier: BSD-3-Clause
// Scenarios with processes that are started, killed, stopped and restarted.
#include "random.h"
#include "run.h"
#include "scenario_parts.h"

#include <math.h>

#define SLOW_PART 20 // one node in this many pauses now and then
#define SLOW_STALL_PPM 10000
#define SOME_MAX 20
#define ROLLING_MAX 100

// Return the k-th of `count` different nodes, spread evenly from the node `from` on.
static uint32_t life_pick(const struct run *run, uint32_t from, uint32_t k, uint32_t count) {
	uint32_t nodes = run->options->nodes;

	return (from + (uint32_t)((uint64_t)k * nodes / count)) % nodes;
}

static uint32_t life_draw(struct run *run) {
	return random_below(&run->world->random, run->options->nodes);
}

// Return a part of the number of nodes, at least one.
static uint32_t life_some(const struct run *run, uint32_t part) {
	uint32_t some = run->options->nodes / part;

	some = some > SOME_MAX ? SOME_MAX : some;
	return some > 0 ? some : 1;
}

void play_tiny(struct run *run) {
	uint32_t nodes = run->options->nodes;
	uint64_t back_ns = 3 * run->options->profile->dead_ns;
	struct fault kill = {FAULT_KILL, nodes - 1, 0, 2 * WORLD_SEC, back_ns};
	struct fault leave = {FAULT_LEAVE, 0, 0, 2 * back_ns, 5 * WORLD_SEC};
	struct fault freeze = {FAULT_FREEZE, 1, 0, 4 * back_ns, back_ns};

	if (nodes == 1)
		return;
	fault_add(run->world, &kill);
	fault_add(run->world, &leave);
	if (nodes > 2)
		fault_add(run->world, &freeze);
}

void play_crash(struct run *run) {
	struct fault kill = {FAULT_KILL, life_draw(run), 0, 2 * WORLD_SEC, 0};

	fault_add(run->world, &kill);
}

void play_pause_short(struct run *run) {
	uint64_t dead_ns = run->options->profile->dead_ns;
	uint32_t some = life_some(run, 10);
	uint32_t from = life_draw(run);

	for (uint32_t n = 0; n < some; n++) {
		struct fault freeze = {
			.kind = FAULT_FREEZE,
			.node = life_pick(run, from, n, some),
			.at_ns = random_between(&run->world->random, 0, dead_ns),
			.duration_ns = random_between(
				&run->world->random, dead_ns * 3 / 10, dead_ns * 65 / 100
			),
		};

		fault_add(run->world, &freeze);
	}
}

void play_pause_long(struct run *run) {
	struct fault freeze = {
		.kind = FAULT_FREEZE,
		.node = life_draw(run),
		.at_ns = 2 * WORLD_SEC,
		.duration_ns = 2 * run->options->profile->dead_ns + 10 * WORLD_SEC,
	};

	fault_add(run->world, &freeze);
}

// Pause the node until the end of the run. Each pause takes 1 to 6 s (uniform), one a minute on
// average, with at least 1 s between two.
static void life_pauses(struct run *run, uint32_t node) {
	uint64_t *random = &run->world->random;
	uint64_t at_ns = random_between(random, 0, 60 * WORLD_SEC);

	while (at_ns + 6 * WORLD_SEC < run->length_ns) {
		struct fault freeze = {
			.kind = FAULT_FREEZE,
			.node = node,
			.at_ns = at_ns,
			.duration_ns = random_between(random, WORLD_SEC, 6 * WORLD_SEC),
		};
		double draw = ((double)random_below(random, 1u << 24) + 1) / (1u << 24);

		fault_add(run->world, &freeze);
		// The average distance of starts is 60 s: 3.5 s of pause, at least 1 s, and the
		// exponential rest.
		at_ns += freeze.duration_ns + WORLD_SEC;
		at_ns += (uint64_t)(-log(draw) * 55.5 * 1e9);
	}
}

void play_slow_members(struct run *run) {
	uint32_t slow = (run->options->nodes + SLOW_PART - 1) / SLOW_PART;
	uint32_t from = life_draw(run);
	struct fault stall = {FAULT_STALL, 0, SLOW_STALL_PPM, 0, run->length_ns};

	fault_add(run->world, &stall);
	for (uint32_t n = 0; n < slow; n++)
		life_pauses(run, life_pick(run, from, n, slow));
}

void play_flapping(struct run *run) {
	uint32_t process = life_draw(run);
	uint32_t host = (process + run->options->nodes / 2) % run->options->nodes;
	uint64_t dead_ns = run->options->profile->dead_ns;

	for (uint32_t n = 0; n < 6; n++) {
		struct fault kill = {
			FAULT_KILL, process, 0, (2 + 6 * n) * WORLD_SEC, 3 * WORLD_SEC};
		struct fault deaf = {
			FAULT_DEAF, host, 0, 2 * WORLD_SEC + n * dead_ns, dead_ns * (n + 1) / 6};

		fault_add(run->world, &kill);
		fault_add(run->world, &deaf);
	}
}

void play_rolling_restart(struct run *run) {
	uint32_t nodes = run->options->nodes;
	uint32_t some = nodes < ROLLING_MAX ? nodes : ROLLING_MAX;

	for (uint32_t n = 0; n < some; n++) {
		struct fault leave = {
			FAULT_LEAVE, life_pick(run, 0, n, some), 0, n * 500 * WORLD_MS, WORLD_SEC};

		fault_add(run->world, &leave);
	}
}

void play_leave(struct run *run) {
	uint32_t some = life_some(run, 20);
	uint32_t from = life_draw(run);

	for (uint32_t n = 0; n < some; n++) {
		struct fault leave = {
			FAULT_LEAVE, life_pick(run, from, n, some), 0,
			WORLD_SEC + n * 100 * WORLD_MS, 0};

		fault_add(run->world, &leave);
	}
}

// Every other node also speaks a newer version; the spare node speaks only that one.
void prepare_version_mix(struct run *run) {
	struct world *world = run->world;
	uint32_t spare = run->options->nodes;

	for (uint32_t n = 0; n < run->options->nodes; n++) {
		world->nodes[n].version_min = ras_versions_built.min;
		world->nodes[n].version_max = (uint16_t)(ras_versions_built.max + n % 2);
	}
	world->nodes[spare].version_min = 9;
	world->nodes[spare].version_max = 9;
}

void play_version_mix(struct run *run) {
	struct fault start = {FAULT_START, run->options->nodes, 0, WORLD_SEC, 10 * WORLD_SEC};
	struct fault kill = {FAULT_KILL, life_draw(run), 0, 3 * WORLD_SEC, 20 * WORLD_SEC};

	fault_add(run->world, &start);
	fault_add(run->world, &kill);
}

// E: once all nodes are linked, a node has no more connections than the bound of its degree.
static void life_check_degrees(struct world *world) {
	uint32_t allowed = 0;

	while ((UINT64_C(1) << allowed) < world_count_up(world))
		allowed++;
	allowed *= 2;
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		const struct node *node = &world->nodes[n];
		struct ras_link_info link;
		uint32_t held = 0;

		if (node->state != NODE_UP)
			continue;
		for (uint32_t m = 0; ras_link_at(node->ras, m, &link) == 0; m++)
			held += link.ready;
		if (held > allowed)
			invariants_break(
				world, n, NET_NOBODY, "E: %u links after a join storm, %u allowed",
				held, allowed
			);
	}
}

void finish_one_more(struct run *run) {
	const struct measure *measure = &run->world->measure;
	uint64_t quiet_ns = 20 * WORLD_SEC;
	double before = -1;

	// Wait until the storm's own rearrangement of links has ended, so that only the join is
	// measured.
	for (uint32_t n = 0; n < 10 && measure_links_up(measure) != before; n++) {
		before = measure_links_up(measure);
		run_until(run, world_now(run->world) + quiet_ns);
	}
	before = measure_links_up(measure);
	node_start(run->world, run->options->nodes, NULL, NODE_REMEMBERS);
	run_await_one_view(run, 10 * WORLD_SEC);
	run_until(run, world_now(run->world) + 2 * quiet_ns);
	run->result->links_changed_per_join = measure_links_up(measure) - before;
	life_check_degrees(run->world);
}
