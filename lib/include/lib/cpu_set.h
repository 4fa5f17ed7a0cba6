// SPDX-License-Identifier: BSD-3-Clause
// Sets of processors as people and the kernel write them: 0-3,8
//
// Fixed size, so a set is copied and compared as a value; {0} is empty. Any thread.
#pragma once

#include <lib/parse.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CPU_SET_CPUS_MAX 4096 // processors 0 to 4095

struct cpu_set {
	uint64_t words[CPU_SET_CPUS_MAX / 64];
};

// cpu is below CPU_SET_CPUS_MAX.
void cpu_set_add(struct cpu_set *set, uint32_t cpu);
bool cpu_set_has(const struct cpu_set *set, uint32_t cpu);

uint32_t cpu_set_count(const struct cpu_set *set);

// The lowest processor of the set that is not below `from`; CPU_SET_CPUS_MAX if there is none:
//	for (cpu = cpu_set_next(set, 0); cpu < CPU_SET_CPUS_MAX; cpu = cpu_set_next(set, cpu + 1))
uint32_t cpu_set_next(const struct cpu_set *set, uint32_t from);

// Numbers and ranges parted by commas; they may overlap and come in any order. No blanks; a set
// of nothing is not text. Errors as in lib/parse.h: -EINVAL, -ERANGE (a processor above 4095).
int cpu_set_parse(
	const char *text, size_t length, struct parse_error *error, struct cpu_set *ret_set
);

// The same, and every processor must be one of `allowed`; else -ERANGE, and *error lists those that
// are not, and what is allowed.
int cpu_set_parse_allowed(
	const char *text,
	size_t length,
	const struct cpu_set *allowed,
	struct parse_error *error,
	struct cpu_set *ret_set
);

// Ascending, neighbours joined: the form that cpu_set_parse reads; empty for the empty set. Every
// set fits into CPU_SET_TEXT_BYTES. What does not fit into text_size, at least 4, is left out and
// shown by "..." at the end.
#define CPU_SET_TEXT_BYTES (4 * CPU_SET_CPUS_MAX)
void cpu_set_format(const struct cpu_set *set, char *text, size_t text_size);

// What the calling thread may run on: its affinity, which cpusets and containers narrow.
// Returns 0 or -EINVAL (the kernel counts more processors than CPU_SET_CPUS_MAX).
int cpu_set_get_allowed(struct cpu_set *ret_set);
// The same of another thread of this process; -ESRCH.
int cpu_set_get_thread(pid_t tid, struct cpu_set *ret_set);

// Binds the calling thread to the set. Returns 0, or -EINVAL if nothing of it is allowed.
int cpu_set_bind_thread(const struct cpu_set *set);
