// SPDX-License-Identifier: BSD-3-Clause
// Sets of processors in the notation of people and the kernel: 0-3,8
//
// The size is fixed, so a set is copied and compared as a value; {0} is empty. Any thread.
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

// `cpu` must be below CPU_SET_CPUS_MAX.
void cpu_set_add(struct cpu_set *set, uint32_t cpu);
bool cpu_set_has(const struct cpu_set *set, uint32_t cpu);

uint32_t cpu_set_count(const struct cpu_set *set);

// Return the lowest processor of the set that is at least `from`; CPU_SET_CPUS_MAX if there is
// none. Loop over a set:
//	for (cpu = cpu_set_next(set, 0); cpu < CPU_SET_CPUS_MAX; cpu = cpu_set_next(set, cpu + 1))
uint32_t cpu_set_next(const struct cpu_set *set, uint32_t from);

// Parse numbers and ranges separated by commas, in any order, overlaps allowed. Blanks and empty
// text are rejected. Errors as in lib/parse.h: -EINVAL, -ERANGE (a processor above 4095).
int cpu_set_parse(
	const char *text, size_t length, struct parse_error *error, struct cpu_set *ret_set
);

// Like cpu_set_parse(), and every processor must be in `allowed`. Otherwise returns -ERANGE, and
// *error lists the rejected processors and the allowed ones.
int cpu_set_parse_allowed(
	const char *text,
	size_t length,
	const struct cpu_set *allowed,
	struct parse_error *error,
	struct cpu_set *ret_set
);

// Format a set in the form that cpu_set_parse() reads: ascending, neighbours joined, empty for the
// empty set. Every set fits into CPU_SET_TEXT_BYTES. A text that exceeds text_size (at least 4) is
// truncated and ends in "...".
#define CPU_SET_TEXT_BYTES (4 * CPU_SET_CPUS_MAX)
void cpu_set_format(const struct cpu_set *set, char *text, size_t text_size);

// Get the affinity of the calling thread, which cpusets and containers restrict. Returns 0, or
// -EINVAL if the kernel counts more processors than CPU_SET_CPUS_MAX.
int cpu_set_get_allowed(struct cpu_set *ret_set);
// Get the affinity of another thread of this process. Also returns -ESRCH.
int cpu_set_get_thread(pid_t tid, struct cpu_set *ret_set);

// Bind the calling thread to the set. Returns 0, or -EINVAL if no processor of the set is allowed.
int cpu_set_bind_thread(const struct cpu_set *set);
