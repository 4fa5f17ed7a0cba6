// SPDX-License-Identifier: BSD-3-Clause
// Tests on a simulated machine with any number of NUMA nodes, whose kernel may refuse a request.
// Only the location of memory comes from the real kernel.
#include <dataplane/near.h>
#include <dataplane/worker.h>
#include <support/cmocka.h>

#include <numa.h>
#include <numaif.h>
#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

static struct {
	int available, nodes;
	bool refuses;
	uint32_t wishes;
	struct wish {
		const void *pages;
		unsigned long size;
		unsigned long nodes; // first word of the node mask
		int mode;
		unsigned flags;
	} last;
} machine;

// Replaces libnuma: 8 processors, with processor n on node n % nodes.
int numa_available(void) {
	return machine.available;
}

int numa_num_configured_nodes(void) {
	return machine.nodes;
}

int numa_node_of_cpu(int cpu) {
	return cpu < 8 ? cpu % machine.nodes : -1;
}

long mbind(
	void *pages,
	unsigned long size,
	int mode,
	const unsigned long *nodes,
	unsigned long nodes_max,
	unsigned flags
) {
	machine.wishes++;
	machine.last = (struct wish){pages, size, nodes_max > 0 ? nodes[0] : 0, mode, flags};
	return machine.refuses ? -1 : 0;
}

long get_mempolicy(
	int *ret_mode, unsigned long *nodes, unsigned long nodes_max, void *address, unsigned flags
) {
	if (machine.refuses)
		return -1;
	return syscall(SYS_get_mempolicy, ret_mode, nodes, nodes_max, address, flags);
}

static void play(int nodes) {
	memset(&machine, 0, sizeof(machine));
	machine.nodes = nodes;
}

static bool is_aligned(const void *memory, size_t to) {
	return (uintptr_t)memory % to == 0;
}

static void memory_of_a_core_is_wished_for_on_its_node_until_it_is_freed(void **state) {
	static const struct {
		size_t size, pages;
	} cases[] = {{1, 1}, {100, 1}, {4096, 1}, {4097, 2}, {1000000, 245}};

	(void)state;
	if (PAGE != 4096)
		skip();
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct near near;
		uint8_t *memory;

		play(2);
		near = near_of_cpu(3);
		assert_true(near.known);
		assert_int_equal(near.node, 1);
		memory = near_alloc(near, cases[n].size);
		assert_non_null(memory);
		assert_true(is_aligned(memory, PAGE));
		assert_int_equal(machine.wishes, 1);
		assert_ptr_equal(machine.last.pages, memory);
		assert_int_equal(machine.last.size, cases[n].pages * PAGE);
		assert_int_equal(machine.last.mode, MPOL_PREFERRED);
		assert_int_equal(machine.last.nodes, 1 << 1);
		assert_int_equal(machine.last.flags, MPOL_MF_MOVE);
		memset(memory, 0xff, cases[n].size);
		near_free(near, memory, cases[n].size);
		assert_int_equal(machine.wishes, 2);
		assert_int_equal(machine.last.size, cases[n].pages * PAGE);
		assert_int_equal(machine.last.mode, MPOL_DEFAULT);
	}
}

static void without_a_node_it_is_plain_memory(void **state) {
	static const struct {
		int available, nodes;
		uint32_t cpu;
	} cases[] = {
		{-1, 2, 1},		// the kernel has no NUMA support
		{0, 1, 1},		// one node
		{0, 2, WORKER_CPU_ANY}, // a worker that is not pinned
		{0, 2, 8},		// this processor does not exist
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct near near;
		uint8_t *memory;

		play(cases[n].nodes);
		machine.available = cases[n].available;
		near = near_of_cpu(cases[n].cpu);
		assert_false(near.known);
		memory = near_alloc(near, 100);
		assert_non_null(memory);
		assert_true(is_aligned(memory, 64));
		memset(memory, 0xff, 100);
		near_free(near, memory, 100);
		assert_int_equal(machine.wishes, 0);
	}
}

static void refused_policy_costs_nothing_but_the_distance(void **state) {
	struct near near;
	uint8_t *memory;

	(void)state;
	play(2);
	machine.refuses = true;
	near = near_of_cpu(1);
	memory = near_alloc(near, 5000);
	assert_non_null(memory);
	memset(memory, 0xff, 5000);
	assert_int_equal(near_node(memory), -1);
	near_free(near, memory, 5000);
	assert_int_equal(machine.wishes, 2);
}

static void node_of_memory_is_what_the_kernel_says(void **state) {
	struct near near = {.known = false};
	uint8_t *memory;
	int node;

	(void)state;
	play(1);
	memory = near_alloc(near, 100);
	assert_non_null(memory);
	memset(memory, 0, 100);
	if (syscall(SYS_get_mempolicy, &node, NULL, 0, memory, MPOL_F_NODE | MPOL_F_ADDR) != 0)
		node = -1;
	assert_int_equal(near_node(memory), node);
	near_free(near, memory, 100);
}

static void size_that_no_pages_hold_is_refused_and_nothing_is_freed(void **state) {
	static const struct near near = {.known = true, .node = 1};

	(void)state;
	play(2);
	assert_null(near_alloc(near, SIZE_MAX));
	near_free(near, NULL, SIZE_MAX);
	assert_int_equal(machine.wishes, 0);
}

#ifdef __SANITIZE_ADDRESS__
static void sanitizer_sees_the_end_of_each_block(void **state) {
	static const struct near nears[] = {{.known = false}, {.known = true, .node = 1}};

	(void)state;
	play(2);
	for (size_t n = 0; n < sizeof(nears) / sizeof(nears[0]); n++) {
		uint8_t *memory = near_alloc(nears[n], 5000);

		assert_non_null(memory);
		assert_int_equal(__asan_address_is_poisoned(memory + 4999), 0);
		assert_int_equal(__asan_address_is_poisoned(memory + 5000), 1);
		near_free(nears[n], memory, 5000);
		assert_int_equal(__asan_address_is_poisoned(memory), 1);
	}
}
#endif

UNIT_GROUP(near) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_a_core_is_wished_for_on_its_node_until_it_is_freed),
		cmocka_unit_test(without_a_node_it_is_plain_memory),
		cmocka_unit_test(refused_policy_costs_nothing_but_the_distance),
		cmocka_unit_test(node_of_memory_is_what_the_kernel_says),
		cmocka_unit_test(size_that_no_pages_hold_is_refused_and_nothing_is_freed),
#ifdef __SANITIZE_ADDRESS__
		cmocka_unit_test(sanitizer_sees_the_end_of_each_block),
#endif
	};

	return cmocka_run_group_tests_name("near", tests, NULL, NULL);
}
