// SPDX-License-Identifier: BSD-3-Clause
// Blocks of malloc()'s, so that sanitizers see what happens to them, whose pages have a policy from
// near_alloc() to near_free().
#include <dataplane/near.h>

#include <numa.h>
#include <numaif.h>
#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <unistd.h>

#define LINE_BYTES 64
#define NODES_MAX 1024 // the kernel's largest
#define WORD_BITS (8 * sizeof(unsigned long))

static size_t page_bytes(void) {
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t size) {
	return (size + page_bytes() - 1) & ~(page_bytes() - 1);
}

struct near near_cpu(uint32_t cpu) {
	int node;

	if (cpu > INT32_MAX || numa_available() < 0 || numa_num_configured_nodes() < 2)
		return (struct near){.known = false};
	node = numa_node_of_cpu((int)cpu);
	if (node < 0 || node >= NODES_MAX)
		return (struct near){.known = false};
	return (struct near){.known = true, .node = (uint32_t)node};
}

// A refusal changes nothing but the distance.
static void pages_prefer(uint32_t node, void *pages, size_t size) {
	unsigned long nodes[NODES_MAX / WORD_BITS] = {0};

	nodes[node / WORD_BITS] = 1UL << node % WORD_BITS;
	// Moved, since some were used before, and where memory is locked all are there at once. The
	// kernel counts one bit less than it is told.
	(void)mbind(pages, size, MPOL_PREFERRED, nodes, NODES_MAX + 1, MPOL_MF_MOVE);
}

void *near_alloc(struct near near, size_t size) {
	size_t whole = near.known ? whole_pages(size) : size;
	void *memory;

	if (whole < size ||
	    posix_memalign(&memory, near.known ? page_bytes() : LINE_BYTES, whole) != 0)
		return NULL;
	if (near.known) {
		pages_prefer(near.node, memory, whole);
		ASAN_POISON_MEMORY_REGION((char *)memory + size, whole - size);
	}
	return memory;
}

void near_free(struct near near, void *memory, size_t size) {
	// Who is given these pages next wished for nothing.
	if (near.known && memory != NULL)
		(void)mbind(memory, whole_pages(size), MPOL_DEFAULT, NULL, 0, 0);
	free(memory);
}

int near_node(const void *memory) {
	int node;

	// Only read, which numaif.h does not say.
	if (get_mempolicy(&node, NULL, 0, (void *)memory, MPOL_F_NODE | MPOL_F_ADDR) != 0)
		return -1;
	return node;
}
