// SPDX-License-Identifier: BSD-3-Clause
// Thousands of random requests are made to a registry and to a list that is searched linearly. Both
// must find the same, and nothing may be left at the end.
#include "dataplane/memory/memory_world.h"

#include <support/cases.h>

#define VIEWS_MAX 64
#define STEPS 20000
#define SEEDS 8
#define MEMORY_BYTES (16 * WORLD_PAGE)

static struct world world;
static uint8_t memory[MEMORY_BYTES] __attribute__((aligned(WORLD_PAGE)));

struct held {
	struct memory_view view;
	uint32_t access;
};

static struct held held[VIEWS_MAX];
static uint32_t held_count;
static uint64_t drawn;

static uint32_t draw(uint32_t below) {
	drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(drawn >> 33) % below;
}

static struct memory_request request_drawn(void) {
	static const uint32_t accesses[] = {
		0,
		MEMORY_LOCAL_WRITES,
		MEMORY_PEER_READS,
		MEMORY_PEER_READS | MEMORY_LOCAL_WRITES,
		MEMORY_PEER_READS | MEMORY_PEER_WRITES | MEMORY_LOCAL_WRITES,
		MEMORY_PEER_READS | MEMORY_UNSHARED,
	};
	uint32_t begin = draw(MEMORY_BYTES), length = 1 + draw(draw(4) == 0 ? MEMORY_BYTES : 300);

	if (length > MEMORY_BYTES - begin)
		length = MEMORY_BYTES - begin;
	return (struct memory_request){
		.address = (uintptr_t)memory + begin,
		.length = length,
		.access = accesses[draw(COUNT_OF(accesses))],
	};
}

// Return whether a held region can serve the request by the rules of <dataplane/memory.h>.
static bool one_is_held_for(const struct memory_request *request) {
	const uint32_t peers = MEMORY_PEER_READS | MEMORY_PEER_WRITES | MEMORY_PEER_ATOMICS;

	for (uint32_t n = 0; n < held_count; n++) {
		const struct memory_region *region = held[n].view.region;
		bool enough = (request->access & peers) != 0
				      ? held[n].view.region->access == request->access
				      : (region->access & request->access) == request->access;

		if (enough && ((request->access | region->access) & MEMORY_UNSHARED) == 0 &&
		    request->address >= region->address &&
		    request->address + request->length <= region->address + region->length)
			return true;
	}
	return false;
}

static void hold(const struct memory_view *view, const struct memory_request *request) {
	const struct ibv_mr *mr = view->region->mr;
	uint64_t begin = (uintptr_t)mr->addr;

	assert_true(view->address >= begin);
	assert_true(view->address + view->length <= begin + mr->length);
	assert_int_equal(view->length, request->length);
	held[held_count++] = (struct held){*view, request->access};
}

static void give_back(uint32_t n) {
	memory_view_put(&held[n].view);
	held[n] = held[--held_count];
}

static void take(bool refused) {
	struct memory_request request = request_drawn();
	bool expected = one_is_held_for(&request);
	uint64_t before = memory_counts(world.registry).registered;
	struct memory_view view;
	int err;

	if (held_count == VIEWS_MAX)
		return;
	if (refused)
		fake_verbs_fail(FAKE_REG_MR, 1, 1, -EFAULT);
	err = memory_view_get(world.registry, &request, world.reason, &view);
	fake_verbs_fail_no_more();
	if (expected)
		assert_int_equal(err, 0);
	assert_int_equal(memory_counts(world.registry).registered - before, err == 0 && !expected);
	if (err == 0)
		hold(&view, &request);
	else
		assert_int_equal(err, -EFAULT);
}

static void reap(bool refused) {
	int err;

	if (refused)
		fake_verbs_fail(FAKE_DEREG_MR, 1, 1, -EIO);
	err = memory_deregister_dead(world.registry);
	fake_verbs_fail_no_more();
	assert_true(err == 0 || (refused && err == -EIO));
}

static void step(void) {
	uint32_t what = draw(100);

	if (what < 60)
		take(what == 0);
	else if (what < 95 && held_count > 0)
		give_back(draw(held_count));
	else if (what < 99)
		reap(what == 95);
	else
		clock_advance(&world.clock, WORLD_FAILURE_NS / 2);
	assert_int_equal(memory_counts(world.registry).regions, fake_verbs_alive().mrs);
}

static void random_requests_find_what_a_search_finds(void **state) {
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		drawn = seed;
		world_open(&world);
		world_register(&world, (struct memory_config){0});
		for (uint32_t n = 0; n < STEPS; n++)
			step();
		while (held_count > 0)
			give_back(0);
		assert_int_equal(memory_deregister_dead(world.registry), 0);
		assert_int_equal(memory_counts(world.registry).bytes, 0);
		assert_int_equal(world_close(&world), 0);
	}
}

UNIT_GROUP(memory_swarm) {
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_requests_find_what_a_search_finds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
