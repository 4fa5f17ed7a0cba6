// SPDX-License-Identifier: BSD-3-Clause
// Finds the RDMA devices that match the configured targets. It calls drivers, which may hang, so it
// must run on a thread that can be abandoned.
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
	char name[DEVICE_NAME_MAX + 1]; // name of the rail
	char device[DEVICE_NAME_MAX + 1];
	uint8_t port; // 0: as configured for the device
	enum device_link link;
	enum device_responder responder;
	uint64_t guid;	  // 0: unknown
	uint32_t target;  // index of the target that selected the device
	bool waits;	  // port down or without an address, while other devices are usable
	bool is_fallback; // software device used only because there is no other
	bool gpu;	  // first GPU target that selected this device, if any
	uint32_t gpu_ordinal;
};

struct discovery {
	struct device_target targets[DISCOVERY_TARGETS_MAX];
	bool served[DISCOVERY_TARGETS_MAX]; // target has a device and needs no other
	uint32_t target_count;
	bool soft;				// a software device can be created
	char soft_reason[DISCOVERY_SOFT_BYTES]; // reason why it cannot
	bool only_if_changed; // skip the scan if the device list still has `digest`
	// Results of the scan.
	int err;
	uint64_t digest; // digest of the listed devices
	uint32_t listed;
	bool has_unjudged; // a device could not be judged, so the scan must be repeated
	bool unchanged;	   // list unchanged, scan skipped
	char reason[DISCOVERY_REASON_BYTES]; // why a requested device is missing
	char why[DEVICE_CHOICE_TEXT_BYTES];
	struct found found[DISCOVERY_FOUND_MAX];
	struct cpu_set near_cpus;
	uint32_t count, left_out;
	// Set by the first of two owners that releases the structure; the second one frees it.
	// Exchanged with acquire-release, so that the second owner sees all writes of the first.
	atomic_bool let_go;
};

// Scan for devices; any thread may call it. Returns 0, -ENOMEM or a driver's error.
int discovery_scan(struct discovery *discovery);
// Return the number of targets that are the software device. Such a target needs no driver call.
uint32_t discovery_count_soft(const struct discovery *discovery);
