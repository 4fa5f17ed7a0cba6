// SPDX-License-Identifier: BSD-3-Clause
// Allocates memory on the NUMA node of the worker that uses it, independent of the allocating
// thread.
//
// The node is a preference. The kernel takes another node if this one is full, or if a container
// may not choose. Such memory works equally, only slower; near_node() returns its node. Use it for
// long-lived memory: each block moves pages. {0} means anywhere.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// {0}: anywhere.
struct near {
	bool known;
	uint32_t node;
};

// Return the node of a processor. Returns {0} if the kernel has no NUMA, has one node, or does not
// know this processor. Control thread.
struct near near_of_cpu(uint32_t cpu);

// Allocate memory; `size` is not 0. It is aligned to 64 bytes, not cleared, and newly mapped pages
// are untouched. With a node it has pages of its own, so it wastes less than one page. Returns NULL
// if out of memory. Any thread.
void *near_alloc(struct near near, size_t size);
// Free memory with the arguments of near_alloc(). NULL is fine.
void near_free(struct near near, void *memory, size_t size);

// Return the node of the page that contains this byte and has been touched; -1: unknown.
int near_node(const void *memory);
