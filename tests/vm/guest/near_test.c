// SPDX-License-Identifier: BSD-3-Clause
// Runs in the guest, whose two processors have one NUMA node each. Checks the node of a worker's
// memory, which is allocated by a thread on the other node.
#include <dataplane/device.h>
#include <dataplane/lane.h>
#include <dataplane/near.h>
#include <dataplane/pair.h>
#include <dataplane/prober.h>
#include <dataplane/worker.h>
#include <support/cmocka.h>

#include <numaif.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK_BYTES 20000
#define PAGE 4096

static struct clock monotonic;

static int go_to(void **state) {
	struct cpu_set first = {{0}};

	(void)state;
	clock_init_monotonic(&monotonic);
	cpu_set_add(&first, 0);
	return cpu_set_bind_thread(&first);
}

static void every_page_lies_on(const uint8_t *memory, size_t size, int node) {
	for (size_t at = 0; at < size; at += PAGE)
		assert_int_equal(near_node(memory + at), node);
}

static void memory_lies_on_the_node_of_its_core(void **state) {
	(void)state;
	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		struct near near = near_of_cpu(cpu);
		uint8_t *memory = near_alloc(near, BLOCK_BYTES);

		assert_true(near.known);
		assert_non_null(memory);
		memset(memory, 1, BLOCK_BYTES);
		every_page_lies_on(memory, BLOCK_BYTES, (int)cpu);
		near_free(near, memory, BLOCK_BYTES);
	}
}

static int policy_of(const uint8_t *memory) {
	int mode;

	assert_int_equal(get_mempolicy(&mode, NULL, 0, (void *)memory, MPOL_F_ADDR), 0);
	return mode;
}

// malloc() may give these pages to another user.
static void memory_that_was_freed_has_no_wish_left(void **state) {
	struct near near = near_of_cpu(1);
	uint8_t *memory = near_alloc(near, BLOCK_BYTES);
	void *behind = malloc(BLOCK_BYTES); // keeps the heap from shrinking

	(void)state;
	assert_non_null(memory);
	assert_non_null(behind);
	assert_int_equal(policy_of(memory), MPOL_PREFERRED);
	near_free(near, memory, BLOCK_BYTES);
	assert_int_equal(policy_of(memory), MPOL_DEFAULT); // asked from the kernel, per address
	free(behind);
}

static void worker_of_core_1_has_its_memory_on_node_1(void **state) {
	struct worker_config config = {
		.name = "worker",
		.cpu = 1,
		.clock = &monotonic,
		.idle = {.policy = IDLE_EVENT, .block_ns = 20000},
	};
	struct worker_facts facts;
	struct worker *worker;
	struct prober *prober;

	(void)state;
	assert_int_equal(worker_create(&config, &worker), 0);
	assert_int_equal(worker_start(worker, &facts), 0);
	assert_int_equal(facts.memory_node, 1);
	assert_int_equal(near_node(worker), 1);
	assert_int_equal(prober_create(NULL, NULL, &monotonic, worker_near(worker), &prober), 0);
	assert_int_equal(near_node(prober), 1);
	prober_destroy(prober);
	worker_destroy(worker);
}

static void lane_and_pair_lie_near_their_worker(void **state) {
	struct lane_config config = {
		.pair_max = 4,
		.depth = 16,
		.op_max = 64,
		.drain_ns = 1000000000,
		.clock = &monotonic,
		.near = near_of_cpu(1),
	};
	char reason[DEVICE_REASON_MAX + 1];
	struct device_endpoint endpoint;
	struct pair_config pair_config = {.generation = 1, .psn = 1};
	struct pair *pair;
	struct lane *lane;

	(void)state;
	assert_int_equal(device_open(&verbs_calls_system, "rxe0", NULL, reason, &config.device), 0);
	assert_int_equal(lane_create(&config, &lane), 0);
	assert_int_equal(near_node(lane), 1);
	pair_config.lane = lane;
	assert_int_equal(pair_create(&pair_config, &endpoint, &pair), 0);
	assert_int_equal(near_node(pair), 1);
	assert_int_equal(pair_destroy(pair), 0);
	assert_int_equal(lane_destroy(lane), 0);
	device_put(config.device);
}

// Locked memory is allocated before its node can be chosen.
static void locked_memory_is_moved_there(void **state) {
	(void)state;
	if (worker_lock_memory() != 0)
		fail();
	memory_lies_on_the_node_of_its_core(state);
	worker_of_core_1_has_its_memory_on_node_1(state);
	assert_int_equal(munlockall(), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_lies_on_the_node_of_its_core),
		cmocka_unit_test(memory_that_was_freed_has_no_wish_left),
		cmocka_unit_test(worker_of_core_1_has_its_memory_on_node_1),
		cmocka_unit_test(lane_and_pair_lie_near_their_worker),
		cmocka_unit_test(locked_memory_is_moved_there),
	};

	return cmocka_run_group_tests_name("near", tests, go_to, NULL);
}
