// SPDX-License-Identifier: BSD-3-Clause
// Cost of a wake-up of the core in a small and a large ring, in basic blocks of control/ras:
// wake_cost_test SMALL LARGE. TAP.
//
// The core is compiled with a call in each basic block, so the count is equal on every machine. A
// wake-up that walks the table of members would have a cost in proportion to their number. The
// mean cost must not, nor the maximum cost in an idle ring, which is a search for a seed.
#include "world.h"

#include <lib/must.h>

#include <inttypes.h>
#include <stdlib.h>

#define SETTLE_NS (3 * WORLD_SEC)
#define LOOK_NS (2 * WORLD_SEC)
// Maximum growth of the cost from 200 to 2,000 members. The number of links and the work per
// wake-up grow with the logarithm of the members, by 1.4. One more block for each member would
// exceed this.
#define GROWTH_MAX 2.0

struct cost {
	uint64_t wakes, blocks, most;
	uint64_t inputs, input_blocks; // all calls but ticks: frames, connections
};

static uint64_t blocks; // basic blocks executed so far
static struct cost cost;

// Names that are fixed by the compiler and the linker. NOLINTBEGIN(bugprone-reserved-identifier)
void __sanitizer_cov_trace_pc(void);
void __wrap_ras_tick(struct ras *ras, uint64_t now_ns);
void __real_ras_tick(struct ras *ras, uint64_t now_ns);
void __wrap_ras_conn_frame(
	struct ras *ras, uint64_t now_ns, uint32_t conn, const void *frame, size_t size
);
void __real_ras_conn_frame(
	struct ras *ras, uint64_t now_ns, uint32_t conn, const void *frame, size_t size
);
// NOLINTEND(bugprone-reserved-identifier)

void __sanitizer_cov_trace_pc(void) {
	blocks++;
}

// The simulator calls this function instead, through the linker's --wrap.
void __wrap_ras_tick(struct ras *ras, uint64_t now_ns) {
	uint64_t before = blocks;

	__real_ras_tick(ras, now_ns);
	cost.wakes++;
	cost.blocks += blocks - before;
	if (blocks - before > cost.most)
		cost.most = blocks - before;
}

void __wrap_ras_conn_frame(
	struct ras *ras, uint64_t now_ns, uint32_t conn, const void *frame, size_t size
) {
	uint64_t before = blocks;

	__real_ras_conn_frame(ras, now_ns, conn, frame, size);
	cost.inputs++;
	cost.input_blocks += blocks - before;
}

static struct world *make(uint32_t nodes) {
	struct world_options options = {
		.nodes = nodes,
		.hosts = nodes,
		.profile = &ras_profile_fast,
		.seed = 1,
	};
	struct ras_table *table;
	struct world *world;

	must(world_create(&options, &world) == 0);
	table = world_table(world);
	for (uint32_t n = 0; n < nodes; n++)
		node_start(world, n, table, NODE_REMEMBERS);
	ras_table_destroy(table);
	world_run(world, world_now(world) + SETTLE_NS);
	return world;
}

static struct cost look(struct world *world, const char *what) {
	cost = (struct cost){0};
	world_run(world, world_now(world) + LOOK_NS);
	must(cost.wakes > 0 && cost.inputs > 0);
	printf("# %5u nodes, %s: %.1f blocks a wake (%" PRIu64 " wakes, %" PRIu64
	       " at most), %.1f a frame (%" PRIu64 ")\n",
	       world->options.nodes, what, (double)cost.blocks / (double)cost.wakes, cost.wakes,
	       cost.most, (double)cost.input_blocks / (double)cost.inputs, cost.inputs);
	return cost;
}

static void
judge(int number, const char *what, const struct cost *small, const struct cost *large) {
	double before = (double)small->blocks / (double)small->wakes;
	double after = (double)large->blocks / (double)large->wakes;

	printf("%s %d - a wake of a large ring costs what is due, %s\n",
	       after <= GROWTH_MAX * before ? "ok" : "not ok", number, what);
}

static void judge_most(int number, const struct cost *small, const struct cost *large) {
	bool due = (double)large->most <= GROWTH_MAX * (double)small->most;

	printf("%s %d - no wake of a large ring walks its members while nothing happens\n",
	       due ? "ok" : "not ok", number);
}

int main(int argc, char **argv) {
	struct cost quiet[2], fault[2];

	if (argc != 3)
		return 2;
	printf("1..3\n");
	for (int n = 0; n < 2; n++) {
		struct world *world = make((uint32_t)strtoul(argv[n + 1], NULL, 10));

		quiet[n] = look(world, "nothing happens");
		node_kill(world, world->options.nodes / 2);
		fault[n] = look(world, "one is killed");
		world_destroy(world);
	}
	judge(1, "when nothing happens", &quiet[0], &quiet[1]);
	judge(2, "when one is killed", &fault[0], &fault[1]);
	judge_most(3, &quiet[0], &quiet[1]);
	return 0;
}
