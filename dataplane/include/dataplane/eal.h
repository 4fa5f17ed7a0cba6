// SPDX-License-Identifier: BSD-3-Clause
// DPDK's environment (EAL): once per process, for its rings, memory and telemetry.
//
// EAL pins the thread that starts it and all that this one starts later. It is therefore started
// on a helper thread that may run wherever the process may, and ends there; nobody else's
// affinity changes. It scans no bus unless it is told to, shares no configuration with other
// processes, and takes no huge pages unless there are some.
//
// The control thread's, but for registering.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum eal_memory {
	EAL_MEMORY_AUTO,  // huge pages if some are free
	EAL_MEMORY_PLAIN, // --no-huge: fixed in size
	EAL_MEMORY_HUGE,  // --in-memory: grows
};

// As in syslog, which EAL goes by.
#define EAL_LOG_ERROR 4	 // and what is worse
#define EAL_LOG_NOTICE 6 // warnings are 5, information is 7, the rest 8

// A line of EAL's log, without its end; on whichever thread of EAL has something to say.
typedef void eal_log_fn(uint32_t level, const char *line, size_t length);

struct eal_config {
	const char *name; // of the agent: the file prefix is tocsin-NAME
	enum eal_memory memory;
	uint32_t memory_mib; // of EAL_MEMORY_PLAIN
	eal_log_fn *log;     // NULL: EAL's lines are dropped
	// Inside programs that are not ours: no telemetry, and nothing stays in the file system,
	// however the program ends.
	bool bare;
	bool loads_drivers; // load the driver plugins of a shared EAL; needed to attach ports later
	bool pci;	    // PCI devices may be attached later; none is attached automatically
};

struct eal_facts {
	bool huge_pages;
	uint64_t start_ns;     // how long it took
	char file_prefix[96];  // dpdk-telemetry.py -f PREFIX
	char runtime_dir[160]; // where the telemetry socket is
};

// -EALREADY (it was started before in this process; a second time is impossible, even after
// eal_stop()), -EAGAIN (no thread), -ENOMEM, -EMFILE and -ENFILE (too few descriptors for EAL,
// which would end the process), -EOPNOTSUPP (built without DPDK), or the error of rte_eal_init();
// the log has the reason.
int eal_start(const struct eal_config *config, struct eal_facts *ret_facts);
// Also removes the runtime directory, and only ours. Nothing happens if it does not run.
void eal_stop(void);
// At the end of a process of which threads that nobody waits for may still use its memory and
// ports: the runtime directory goes, the rest stays until the process ends.
void eal_leave(void);
bool eal_runs(void);
// Return false in a build without DPDK (-Ddpdk=off), where eal_start() fails.
bool eal_is_built(void);

// The calling thread becomes one that EAL knows (its memory pools have a cache for it); it is not
// pinned. 0, or -ENOMEM if there are as many as EAL can count.
int eal_thread_register(void);
void eal_thread_unregister(void);
