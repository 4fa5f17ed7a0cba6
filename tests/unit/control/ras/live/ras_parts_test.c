// SPDX-License-Identifier: BSD-3-Clause
// A network with three different partitions in sequence. Two sides never declare each other's
// members dead, and the whole network has one view again.
#include "control/ras/ras_world.h"

#include <support/cmocka.h>

#include <stdlib.h>

#define SEC RAS_NS_PER_SEC
#define STEPS 3

struct step {
	uint32_t side; // one bit for each node of one side; 0: no partition
	uint64_t lasts_ns;
};

static uint64_t drawn;

static uint32_t draw(uint32_t below) {
	drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(drawn >> 33) % below;
}

static void parts_set(struct world *world, uint32_t side) {
	for (uint32_t n = 0; n < world->count; n++) {
		for (uint32_t m = 0; m < world->count; m++)
			world_way(
				world, n, m,
				(side >> n & 1) == (side >> m & 1) ? WORLD_OPEN : WORLD_STALLED
			);
	}
}

// Return the sides (as bits) that declared a member of the other side dead since the events were
// marked.
static uint32_t parts_declaring(const struct world *world, uint32_t side) {
	uint32_t parts = 0;

	for (uint32_t n = 0; n < world->count; n++) {
		const struct world_node *node = &world->nodes[n];

		for (uint32_t m = 0; m < node->event_count; m++) {
			const struct ras_event *event = &node->events[m];

			if (event->kind != RAS_EVENT_DEAD || event->observer_count == 0 ||
			    event->observers[0] != world_id(world, n))
				continue;
			for (uint32_t of = 0; of < world->count; of++) {
				if (world_id(world, of) == event->peer &&
				    (side >> of & 1) != (side >> n & 1))
					parts |= 1u << (side >> n & 1);
			}
		}
	}
	return parts;
}

static void parts_play(uint32_t count, const struct step *steps, uint32_t step_count) {
	struct world *world = world_of(count);

	for (uint32_t n = 0; n < step_count; n++) {
		uint32_t parts;

		world_mark(world);
		parts_set(world, steps[n].side);
		world_pass(world, steps[n].lasts_ns);
		parts = parts_declaring(world, steps[n].side);
		if (parts == 3)
			fail_msg(
				"of %u, in step %u: %x and the others declared each other", count,
				n, steps[n].side
			);
	}
	parts_set(world, 0);
	world_pass(world, 40 * SEC);
	assert_true(world_agrees(world));
	world_destroy(world);
}

// First abc|de, then bc|ade: a readmits d and e, which were declared dead, and b and c were on
// both larger sides. In some runs the network is whole in between, also for less time than votes
// need to return.
static void of_abc_and_de_then_bc_and_ade_never_two_declare_each_other(void **state) {
	static const uint64_t whole_ns[] = {0, 2 * SEC, 10 * SEC, 50 * SEC, 70 * SEC, 100 * SEC};

	(void)state;
	for (size_t n = 0; n < sizeof(whole_ns) / sizeof(whole_ns[0]); n++) {
		const struct step steps[] = {
			{0x18, 30 * SEC}, // d e
			{0, whole_ns[n]},
			{0x06, 150 * SEC}, // b c
			{0x01, 30 * SEC},  // a
		};

		parts_play(5, steps, 4);
	}
}

static void step_draw(uint32_t count, struct step *step, struct step *whole) {
	static const uint32_t lasts_s[] = {6, 12, 30, 65, 90, 150};
	static const uint32_t whole_s[] = {0, 0, 1, 4, 12, 40, 70, 90};
	uint32_t all = (1u << count) - 1;

	step->side = 1 + draw(all - 1);
	step->lasts_ns = lasts_s[draw(6)] * SEC;
	whole->side = 0;
	whole->lasts_ns = whole_s[draw(8)] * SEC + draw(1000) * RAS_NS_PER_MS;
}

// Random sides at each step. PARTS=N sets the number of runs.
static void parts_that_shift_three_times_never_declare_each_other(void **state) {
	static const uint32_t counts[] = {5, 6, 7, 9};
	const char *wanted = getenv("PARTS");
	uint32_t plays = wanted != NULL ? (uint32_t)strtoul(wanted, NULL, 10) : 60;

	(void)state;
	for (uint32_t n = 0; n < plays; n++) {
		uint32_t count = counts[n % 4];
		struct step steps[2 * STEPS];

		drawn = 1 + n;
		draw(2);
		for (uint32_t m = 0; m < STEPS; m++)
			step_draw(count, &steps[2 * m], &steps[2 * m + 1]);
		parts_play(count, steps, 2 * STEPS);
	}
}

UNIT_GROUP(ras_parts) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_abc_and_de_then_bc_and_ade_never_two_declare_each_other),
		cmocka_unit_test(parts_that_shift_three_times_never_declare_each_other),
	};

	return cmocka_run_group_tests_name("ras_parts", tests, NULL, NULL);
}
