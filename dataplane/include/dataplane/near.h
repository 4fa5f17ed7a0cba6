// SPDX-License-Identifier: BSD-3-Clause
// Memory near a processor: on the NUMA node of the worker that uses it, whoever allocates it.
//
// It is a wish: the kernel is told which node is preferred, and takes another if that one is full,
// if it refuses (a container may), or if there is only one. The memory is as good, only farther
// away; near_node() says where it lies. For what is made once and stays: each block moves pages.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// {0}: anywhere.
struct near {
	bool known;
	uint32_t node;
};

// Control. Anywhere if the kernel has no NUMA or one node, or does not say where this processor is
// (none that is above those there are).
struct near near_cpu(uint32_t cpu);

// Any thread; `size` is not 0. Aligned to 64 bytes, not cleared, and not touched unless it was
// before. With a node it has pages of its own, less than one more than its size. NULL: no memory.
void *near_alloc(struct near near, size_t size);
// With what near_alloc() was given; NULL is fine.
void near_free(struct near near, void *memory, size_t size);

// The node where the page lies that this byte is on, which was touched; -1: nobody says.
int near_node(const void *memory);
