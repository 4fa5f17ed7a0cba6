// SPDX-License-Identifier: BSD-3-Clause
// Chooses the processors of workers when the configuration names none.
#pragma once

#include <lib/cpu_set.h>

#include <stdbool.h>
#include <stdint.h>

struct cores_constraints {
	struct cpu_set allowed; // processors that this process may use
	// Processors that the system sets aside for jobs without disturbance
	struct cpu_set isolated;
	struct cpu_set near; // processors near the device; empty if unknown
	bool spins;	     // the workers never sleep, as jobs on isolated processors do
};

// Choose `count` of the allowed processors. Isolated processors are reserved for other jobs, so
// they are used last, or first by workers that spin. Within each kind, processors near the device
// come first, then the highest number. Processor 0 serves the most interrupts and is used only as
// the last of its kind. Returns -ERANGE if fewer are allowed, or if count is 0.
int cores_choose(const struct cores_constraints *places, uint32_t count, struct cpu_set *ret_cores);
// Return the reason for choosing this processor, as static text for a log line.
const char *cores_why(const struct cores_constraints *places, uint32_t cpu);

// Read the isolated processors from `root`, which is "/sys" except in tests. The kernel lists
// processors of isolcpus, of nohz_full and of isolated cgroup partitions there. The set is empty if
// the kernel lists none.
void cores_read_isolated(const char *root, struct cpu_set *ret_isolated);
