// SPDX-License-Identifier: BSD-3-Clause
// Which processors workers take when nobody said which.
#pragma once

#include <lib/cpu_set.h>

#include <stdbool.h>
#include <stdint.h>

struct cores_places {
	struct cpu_set allowed;	 // to this process
	struct cpu_set isolated; // which somebody set aside, for a job that suffers no other
	struct cpu_set near;	 // to the device; none, if it is not known
	bool spins;		 // the workers never rest, as a job on isolated ones does
};

// `count` of those allowed. Isolated ones are somebody's: they are taken last, or first by workers
// that spin. Of either kind those near the device come first, of these the highest; processor 0,
// which serves the most interrupts, only if there is no other left of its kind. -ERANGE if fewer
// are allowed, or count is 0.
int cores_choose(const struct cores_places *places, uint32_t count, struct cpu_set *ret_cores);
// Why this one, in words for a log line. Static text.
const char *cores_why(const struct cores_places *places, uint32_t cpu);

// What is set aside: `root` is "/sys", where the kernel lists processors of isolcpus, of nohz_full,
// and of isolated partitions of cgroups. Empty if it does not say.
void cores_read_isolated(const char *root, struct cpu_set *ret_isolated);
