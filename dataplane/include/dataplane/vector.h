// SPDX-License-Identifier: BSD-3-Clause
// Which completion vector of a device a completion queue takes: one whose interrupt comes to the
// worker's processor, else to the worker's NUMA node, else one in turn, so that the queues of
// several workers do not share one interrupt.
//
// What is known of vectors: the interrupts of the device's PCI function (msi_irqs), their handlers'
// names where they say which vector they are (mlx5_comp3, bnxt_re-nq-3, irdma-ceq-3), and where
// each interrupt goes at present. Without such names the last interrupts are taken for the vectors,
// in order: those before them are for commands and events. All of it is a wish: a vector that is
// chosen badly costs a wake-up across processors.
#pragma once

#include <stdint.h>

#define VECTOR_CPU_ANY UINT32_MAX

struct vector_wish {
	uint32_t cpu;  // the worker's; VECTOR_CPU_ANY: not known
	uint32_t turn; // among those who may choose alike
};

// From 0 to count - 1; 0 if there is one or none. `device` is the device's directory in sysfs, ""
// if not known; `root` is "" but in tests. Reads files: on the keeper.
uint32_t
vector_choose(const char *root, const char *device, uint32_t count, const struct vector_wish *wish);
