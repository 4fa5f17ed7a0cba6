// SPDX-License-Identifier: BSD-3-Clause
// Allocates memory on a NUMA node. Blocks come from malloc(), so that sanitizers see them; their
// pages have a memory policy until near_free().
#include <dataplane/near.h>

#include <numa.h>
#include <numaif.h>
#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <unistd.h>

#define LINE_BYTES 64
#define NODES_MAX 1024 // limit of the kernel
#define WORD_BITS (8 * sizeof(unsigned long))

static size_t page_bytes(void) {
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t size) {
	return (size + page_bytes() - 1) & ~(page_bytes() - 1);
}

struct near near_of_cpu(uint32_t cpu) {
	int node;

	if (cpu > INT32_MAX || numa_available() < 0 || numa_num_configured_nodes() < 2)
		return (struct near){.known = false};
	node = numa_node_of_cpu((int)cpu);
	if (node < 0 || node >= NODES_MAX)
		return (struct near){.known = false};
	return (struct near){.known = true, .node = (uint32_t)node};
}

void *near_alloc(struct near near, size_t size) {
	size_t whole = near.known ? whole_pages(size) : size;
	unsigned long nodes[NODES_MAX / WORD_BITS] = {0};
	void *memory;

	if (whole < size ||
	    posix_memalign(&memory, near.known ? page_bytes() : LINE_BYTES, whole) != 0)
		return NULL;
	if (near.known) {
		// Prefer the node. An error is ignored: the memory is then only farther away.
		// MPOL_MF_MOVE: some pages may already be in use, and locked memory is populated at
		// once. The kernel uses one bit less than the given count.
		nodes[near.node / WORD_BITS] = 1UL << near.node % WORD_BITS;
		(void)mbind(memory, whole, MPOL_PREFERRED, nodes, NODES_MAX + 1, MPOL_MF_MOVE);
		ASAN_POISON_MEMORY_REGION((char *)memory + size, whole - size);
	}
	return memory;
}

void near_free(struct near near, void *memory, size_t size) {
	// The next user of these pages has no preference.
	if (near.known && memory != NULL)
		(void)mbind(memory, whole_pages(size), MPOL_DEFAULT, NULL, 0, 0);
	free(memory);
}

int near_node(const void *memory) {
	int node;

	// get_mempolicy() does not write to the memory, although numaif.h lacks the const.
	if (get_mempolicy(&node, NULL, 0, (void *)memory, MPOL_F_NODE | MPOL_F_ADDR) != 0)
		return -1;
	return node;
}
