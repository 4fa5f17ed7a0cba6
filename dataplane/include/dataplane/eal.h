// SPDX-License-Identifier: BSD-3-Clause
// DPDK's environment (EAL), started once per process for rings, memory and telemetry.
//
// EAL pins the thread that starts it, and all threads that this one creates later. Therefore a
// helper thread starts EAL and ends afterwards. The helper may run on all processors of the
// process, so no other thread changes its affinity. EAL scans no bus unless asked, and shares no
// configuration with other processes. It uses huge pages only if some are free.
//
// The control thread makes all calls except thread registration.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum eal_memory {
	EAL_MEMORY_AUTO,  // huge pages if some are free
	EAL_MEMORY_PLAIN, // --no-huge: fixed in size
	EAL_MEMORY_HUGE,  // --in-memory: grows
};

// Log levels, as in syslog.
#define EAL_LOG_ERROR 4	 // and more severe
#define EAL_LOG_NOTICE 6 // warnings are 5, information is 7, the rest is 8

// Receives one line of EAL's log, without newline, on the EAL thread that logs.
typedef void eal_log_fn(uint32_t level, const char *line, size_t length);

struct eal_config {
	const char *name; // agent name; the file prefix is tocsin-NAME
	enum eal_memory memory;
	uint32_t memory_mib; // for EAL_MEMORY_PLAIN
	eal_log_fn *log;     // NULL: EAL's lines are dropped
	// For use inside foreign programs: no telemetry, and no files remain however the program
	// ends.
	bool bare;
	bool loads_drivers; // load driver plugins with a shared EAL; needed to attach ports later
	bool pci; // allow PCI devices to be attached later; none is attached automatically
};

struct eal_facts {
	bool huge_pages;
	uint64_t start_ns;     // duration of the start
	char file_prefix[96];  // dpdk-telemetry.py -f PREFIX
	char runtime_dir[160]; // where the telemetry socket is
};

// Start EAL. Returns -EALREADY (it was started before in this process; a second start is
// impossible, even after eal_stop()), -EAGAIN (no thread), -ENOMEM, -EMFILE or -ENFILE (EAL would
// end the process for lack of descriptors), -EOPNOTSUPP (built without DPDK), or the error of
// rte_eal_init(). The log has the reason.
int eal_start(const struct eal_config *config, struct eal_facts *ret_facts);
// Stop EAL and remove the runtime directory of this process. Does nothing if EAL does not run.
void eal_stop(void);
// Remove the runtime directory at process exit, and leave everything else to the kernel. Use this
// when abandoned threads may still use EAL's memory and ports.
void eal_remove_directory(void);
bool eal_is_running(void);
// Return false in a build without DPDK (-Ddpdk=off); there eal_start() fails.
bool eal_is_built(void);

// Register the calling thread with EAL, so that it gets memory pool caches; this does not pin it.
// Returns 0, or -ENOMEM if EAL has no thread id left.
int eal_thread_register(void);
void eal_thread_unregister(void);
