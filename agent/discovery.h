// SPDX-License-Identifier: BSD-3-Clause
// Which RDMA devices there are for a configuration's targets. Asks drivers, which may hang: for a
// thread that can be left behind.
#pragma once

#include <control/fabric.h>
#include <dataplane/device_choice.h>
#include <lib/cpu_set.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DISCOVERY_TARGETS_MAX 16
#define DISCOVERY_FOUND_MAX 16
#define DISCOVERY_REASON_BYTES 512
#define DISCOVERY_SOFT_BYTES 200

struct found {
	const struct verbs_calls *calls;
	char name[DEVICE_NAME_MAX + 1]; // of the rail
	char device[DEVICE_NAME_MAX + 1];
	uint8_t port; // 0: as the settings of the device say
	enum device_link link;
	enum device_responder responder;
	uint64_t guid;	 // 0: not known
	uint32_t target; // whose it is
	bool waits;	 // for a port or an address, beside others that can be used
	bool stands_in;	 // the software device, where nothing else is
	bool gpu;	 // a GPU is what it was chosen for, the first of them
	uint32_t gpu_ordinal;
};

struct discovery {
	struct device_target targets[DISCOVERY_TARGETS_MAX];
	bool served[DISCOVERY_TARGETS_MAX]; // has a device already, and takes no other
	uint32_t target_count;
	bool soft;				// there can be a software device
	char soft_reason[DISCOVERY_SOFT_BYTES]; // else why not
	bool only_if_changed;			// what is listed, since it was `digest`
	// What came of it.
	int err;
	uint64_t digest; // of what is listed
	uint32_t listed;
	bool unclear;			     // a device could not be judged: to be looked at again
	bool unchanged;			     // so nothing was looked for
	char reason[DISCOVERY_REASON_BYTES]; // of what was asked for and is not there
	char why[DEVICE_WHY_BYTES];
	struct found found[DISCOVERY_FOUND_MAX];
	struct cpu_set near_cpus;
	uint32_t count, left_out;
	// Whoever comes second frees it. Acquire-release: what the one wrote is seen by the other.
	atomic_bool let_go;
};

// 0, -ENOMEM, or what drivers said; any thread.
int discovery_look(struct discovery *discovery);
// Of the targets: how many are the software device, which is had without asking a driver.
uint32_t discovery_count_soft(const struct discovery *discovery);
