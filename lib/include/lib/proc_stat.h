// SPDX-License-Identifier: BSD-3-Clause
// State of a process, from /proc/PID/stat. The kernel produces that file under spin locks only, so
// reading it does not wait for a process that hangs.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define PROC_STAT_COMM_BYTES 16

struct proc_stat {
	char comm[PROC_STAT_COMM_BYTES]; // process name, cut; any bytes
	char state;
	pid_t parent_pid;
	pid_t group;
	uint32_t thread_count;	// threads that have not ended; a zombie counts its main thread
	uint64_t start_time;	// clock ticks since boot
	uint64_t cpu_ns;	// user and system time
	uint64_t reaped_cpu_ns; // the same of children that the process has waited for
	uint64_t major_faults;	// page faults that read from a disk
	uint64_t block_wait_ns; // waits for block devices; 0 unless the kernel counts them
	uint32_t exit_code; // encoded as by wait(); also 0 if the reader may not trace the process
};

// Returns 0, -ENOENT or -ESRCH (no such process), -EBADMSG, or -errno of open() or read().
int proc_stat_read(pid_t pid, struct proc_stat *ret_stat);
// The same below another root than /proc, for tests.
int proc_stat_read_under(const char *root, pid_t pid, struct proc_stat *ret_stat);
