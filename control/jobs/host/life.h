// SPDX-License-Identifier: BSD-3-Clause
// Evidence that a process is alive while other ranks may wait for it: what the process, its
// descendants and its cgroup did in the last seconds. Only files that any user may read are used.
// Their kernel code takes no lock that a hanging process holds.
//
// Not safe for concurrent calls. Each look reads a bounded number of files.
#pragma once

#include <ras/comms.h>

#include <stdbool.h>
#include <sys/types.h>

// Roots of the two file systems, replaced by tests.
struct life_roots {
	const char *proc, *cgroup; // NULL: /proc, /sys/fs/cgroup
};

struct life; // opaque: the last looks at one process

struct life *life_create(void); // NULL without memory
struct life *life_destroy(struct life *life);
// Look at the process now. A source that cannot be read is noted, and counts as unknown.
void life_look(struct life *life, const struct life_roots *roots, pid_t pid, uint64_t now_ns);
// Look only whether the process is frozen, and forget what it did.
void life_look_at_freezer(struct life *life, const struct life_roots *roots, pid_t pid);
// Summarise the looks of the last JOBS_WORK_WINDOW_NS. After one look the activity is unknown.
void life_summarise(const struct life *life, struct ras_comm_doing *ret_doing);
// Return whether the last look found the process frozen by its cgroup.
bool life_is_frozen(const struct life *life);
