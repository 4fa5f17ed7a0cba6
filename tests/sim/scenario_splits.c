// SPDX-License-Identifier: BSD-3-Clause
// Partitions of either plane: verdicts on the other side, and that no node is drained because of
// it.
#include "random.h"
#include "run.h"
#include "scenario_parts.h"
#include "scenario_verdicts.h"
#include "verdicts.h"

#include <lib/must.h>

#define AUDIT_NS (5 * WORLD_SEC)
#define SPLIT_PERCENT 30
#define SPLIT_SAMPLES 20
#define BEGIN_NS (10 * WORLD_SEC)
#define GOOD_NS (10 * WORLD_SEC)
#define REST_NS (20 * WORLD_SEC)
#define SPLIT_EACH_NS (3600 * WORLD_SEC)
#define SPLIT_LEAST_NS (10 * WORLD_SEC)
#define SPLIT_MOST_NS (300 * WORLD_SEC)
#define SPLIT_AFTER_NS (120 * WORLD_SEC)
#define SMALL_PERCENT 5
#define BRAKE_EACH_NS (1200 * WORLD_SEC)

void verdicts_audit_to(struct run *run, uint64_t until_ns) {
	while (world_now(run->world) < until_ns && !run->world->invariants.broken) {
		uint64_t next_ns = world_now(run->world) + AUDIT_NS;

		run_until(run, next_ns < until_ns ? next_ns : until_ns);
		verdicts_audit(run->world);
	}
}

static void watch_all(struct run *run, bool watched) {
	for (uint32_t n = 0; n < run->options->nodes; n++)
		run->world->verdicts->nodes[n].watched = watched;
}

// Draw a node of the smaller side that is read by two nodes of the larger side. The larger side
// cannot judge any other node.
static uint32_t draw_read(struct world *world, uint32_t nodes, uint32_t island) {
	uint32_t node = 0;

	for (uint32_t tries = 0; tries < 1000; tries++) {
		uint32_t readers = 0;

		node = random_below(&world->random, island);
		for (uint32_t n = island; n < nodes && readers < 2; n++)
			readers += verdicts_reads(world, n, node);
		if (readers > 1)
			break;
	}
	return node;
}

// Record the verdicts that the larger side holds on nodes of the smaller side.
static void look_over(struct run *run, uint32_t island, uint32_t looks[MATRIX_COLUMNS]) {
	struct world *world = run->world;
	uint32_t nodes = run->options->nodes;

	for (uint32_t n = 0; n < SPLIT_SAMPLES; n++) {
		uint32_t observer = island + random_below(&world->random, nodes - island);
		uint32_t node = draw_read(world, nodes, island);

		looks[verdicts_held_by(world, observer, node)]++;
	}
}

// Take samples at the time to reach, at the end, and 10 s after the end.
static void play_split(struct run *run, bool of_fabric, uint64_t length_ns) {
	struct world *world = run->world;
	struct verdict_matrix *matrix = &run->result->matrix;
	uint32_t island = run->options->nodes * SPLIT_PERCENT / 100;
	enum matrix_row row = of_fabric ? ROW_FABRIC_SPLIT : ROW_MGMT_SPLIT;
	uint64_t look_ns = matrix_rows[row].reach_s * WORLD_SEC;
	uint64_t begin_ns = world_now(world);
	struct fault split = {
		.kind = FAULT_SPLIT,
		.value = SPLIT_PERCENT,
		.at_ns = begin_ns - world->faults.begin_ns,
		.duration_ns = length_ns,
	};

	watch_all(run, true);
	if (of_fabric)
		world->verdicts->island = island;
	else
		fault_add(world, &split);
	if (look_ns < length_ns) {
		verdicts_audit_to(run, begin_ns + look_ns);
		look_over(run, island, matrix->single[row]);
	}
	verdicts_audit_to(run, begin_ns + length_ns);
	look_over(
		run, island,
		matrix->single[row == ROW_MGMT_SPLIT ? ROW_MGMT_SPLIT_END : ROW_FABRIC_SPLIT_END]
	);
	world->verdicts->island = 0;
	verdicts_audit_to(run, world_now(world) + GOOD_NS);
	look_over(run, island, matrix->after[row]);
	verdicts_audit_to(run, world_now(world) + REST_NS);
	watch_all(run, false);
	verdicts_audit_to(run, world_now(world) + REST_NS);
}

// Simulate a failed switch: so many ports go down at once that no single node is to blame.
static void play_dark(struct run *run) {
	struct world *world = run->world;
	struct verdict_matrix *matrix = &run->result->matrix;
	uint32_t island = run->options->nodes * SPLIT_PERCENT / 100;

	watch_all(run, true);
	for (uint32_t n = 0; n < island; n++)
		world->verdicts->nodes[n].cut = true;
	verdicts_audit_to(run, world_now(world) + matrix_rows[ROW_FABRIC_DARK].reach_s * WORLD_SEC);
	look_over(run, island, matrix->single[ROW_FABRIC_DARK]);
	for (uint32_t n = 0; n < island; n++)
		world->verdicts->nodes[n].cut = false;
	verdicts_audit_to(run, world_now(world) + GOOD_NS);
	look_over(run, island, matrix->after[ROW_FABRIC_DARK]);
	watch_all(run, false);
	verdicts_audit_to(run, world_now(world) + REST_NS);
}

// Play a short and a long partition of each plane.
void play_splits(struct run *run) {
	static const uint32_t lengths_s[2][2] = {{10, 40}, {130, 300}};

	for (uint32_t n = 0; n < 4; n++)
		play_split(
			run, n % 2 > 0,
			lengths_s[n / 2][random_below(&run->world->random, 2)] * WORLD_SEC
		);
	play_dark(run);
}

// Partition the overlay now and then, for less than the brake's hold time. The larger side must
// brake.
static void add_brakes(struct run *run) {
	for (uint64_t at_ns = BRAKE_EACH_NS / 4; at_ns + BRAKE_EACH_NS / 4 < run->length_ns;
	     at_ns += BRAKE_EACH_NS) {
		struct fault split = {
			.kind = FAULT_SPLIT,
			.value = 25 + random_below(&run->world->random, 26),
			.at_ns = at_ns,
			.duration_ns =
				random_between(&run->world->random, 10 * WORLD_SEC, 40 * WORLD_SEC),
		};

		fault_add(run->world, &split);
	}
}

// Slow members and brakes occur, and no other fault: no node may be drained.
void play_verdicts_slow(struct run *run) {
	uint64_t begin_ns = world_now(run->world);

	run->result->matrix.present = true;
	must(verdicts_begin(run->world) == 0);
	play_slow_members(run);
	add_brakes(run);
	verdicts_audit_to(run, begin_ns + run->length_ns);
	verdicts_result(run, begin_ns);
}

// Return whether the side is small enough to be drained within ten minutes. It is cut off from
// nearly all others during the partition, so draining it is correct.
static bool is_small_part(const struct run *run, uint32_t island) {
	return island * 100 <= run->options->nodes * SMALL_PERCENT;
}

static void play_one_split(struct run *run, bool of_fabric) {
	struct world *world = run->world;
	uint32_t percent = 3 + random_below(&world->random, 58);
	uint32_t island = run->options->nodes * percent / 100;
	uint64_t length_ns = SPLIT_LEAST_NS << random_below(&world->random, 5);
	struct fault split = {
		.kind = FAULT_SPLIT,
		.value = percent,
		.at_ns = world_now(world) - world->faults.begin_ns,
	};

	length_ns += random_between(&world->random, 0, length_ns);
	if (length_ns > SPLIT_MOST_NS)
		length_ns = SPLIT_MOST_NS;
	split.duration_ns = length_ns;
	watch_all(run, true);
	for (uint32_t n = 0; n < run->options->nodes; n++)
		world->verdicts->nodes[n].sick = n < island && is_small_part(run, island);
	if (of_fabric)
		world->verdicts->island = island;
	else
		fault_add(world, &split);
	verdicts_audit_to(run, world_now(world) + length_ns);
	world->verdicts->island = 0;
	verdicts_audit_to(run, world_now(world) + SPLIT_AFTER_NS);
	watch_all(run, false);
	for (uint32_t n = 0; n < run->options->nodes; n++)
		world->verdicts->nodes[n].sick = false;
}

// Every hour one plane is partitioned for ten seconds to five minutes. Neither side may drain any
// node because of it.
void play_verdicts_splits(struct run *run) {
	struct world *world = run->world;
	uint64_t begin_ns = world_now(world), next_ns = begin_ns + BEGIN_NS;
	bool of_fabric = false;

	run->result->matrix.present = true;
	must(verdicts_begin(world) == 0);
	while (next_ns + SPLIT_MOST_NS + SPLIT_AFTER_NS < begin_ns + run->length_ns &&
	       !world->invariants.broken) {
		verdicts_audit_to(
			run, next_ns + random_between(&world->random, 0, SPLIT_EACH_NS / 4)
		);
		play_one_split(run, of_fabric);
		of_fabric = !of_fabric;
		next_ns += SPLIT_EACH_NS;
	}
	verdicts_audit_to(run, begin_ns + run->length_ns);
	verdicts_result(run, begin_ns);
}
