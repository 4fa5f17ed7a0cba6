// SPDX-License-Identifier: BSD-3-Clause
// Processor time of a thread, from /proc/self/task/TID/schedstat. The kernel produces that file
// without locks, so reading it never waits.
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct schedstat {
	uint64_t ran_ns;    // time on a processor
	uint64_t waited_ns; // time in which the thread was runnable and had no processor
	uint64_t turns;	    // how often the thread got a processor
};

// Read the totals of a thread of this process. Returns 0, -ENOENT (no such thread, or a kernel
// without these counters), -EBADMSG, or -errno of open() or read().
int schedstat_read(pid_t tid, struct schedstat *ret_stat);
// Parse the text of such a file. Returns 0 or -EBADMSG.
int schedstat_parse(const char *text, struct schedstat *ret_stat);
