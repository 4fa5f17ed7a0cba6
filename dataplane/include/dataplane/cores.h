// SPDX-License-Identifier: BSD-3-Clause
// Which processors workers take when nobody said which.
#pragma once

#include <lib/cpu_set.h>

#include <stdint.h>

// `count` of those allowed: those near the device first (none, if it is not known), of these and of
// the others isolated ones first, the highest first, and processor 0, which serves the most
// interrupts, only if there is no other left. -ERANGE if fewer are allowed, or count is 0.
int cores_choose(
	const struct cpu_set *allowed,
	const struct cpu_set *isolated,
	const struct cpu_set *near,
	uint32_t count,
	struct cpu_set *ret_cores
);

// What the kernel keeps its scheduler away from (isolcpus), by this file
// (/sys/devices/system/cpu/isolated). Empty if it does not say.
void cores_read_isolated(const char *path, struct cpu_set *ret_isolated);
