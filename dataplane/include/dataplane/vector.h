// SPDX-License-Identifier: BSD-3-Clause
// Chooses a completion vector for a completion queue. It prefers a vector whose interrupt goes to
// the worker's processor, then to the worker's NUMA node. Otherwise vectors are used in turn, so
// that the queues of several workers do not share one interrupt.
//
// Known facts are the interrupts of the device's PCI function (msi_irqs), the names of their
// handlers, and their present affinity. Some names contain the vector (mlx5_comp3, bnxt_re-nq-3,
// irdma-ceq-3). Without such names the last interrupts count as the vectors, in order; earlier ones
// serve commands and events. A bad choice only costs a wake-up across processors.
#pragma once

#include <stdint.h>

#define VECTOR_CPU_ANY UINT32_MAX

struct vector_preference {
	uint32_t cpu;  // processor of the worker; VECTOR_CPU_ANY: unknown
	uint32_t turn; // index among workers that would choose alike
};

// Return a vector from 0 to count - 1; 0 if there is at most one. `device` is the device's sysfs
// directory, "" if unknown; `root` is "" except in tests. Reads files, so call it on the keeper.
uint32_t vector_choose(
	const char *root, const char *device, uint32_t count, const struct vector_preference *wish
);
