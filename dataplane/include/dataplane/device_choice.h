// SPDX-License-Identifier: BSD-3-Clause
// Chooses the RDMA devices that serve a location best, with the reason.
//
// Devices are ordered by nearness (enum topology_class), then by bandwidth: the narrowest PCIe link
// on the way, or the port's speed if lower. All devices equal in both are best, in natural order of
// their names (mlx5_2 before mlx5_10). Every caller therefore gets the same devices in the same
// order. Nothing here accesses a device, so any thread may call.
#pragma once

#include <dataplane/cuda.h>
#include <dataplane/device.h>
#include <dataplane/topology.h>
#include <lib/parse.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_PCI_BYTES CUDA_PCI_BYTES
#define DEVICE_TARGET_TEXT_BYTES (DEVICE_NAME_MAX + 5)
#define DEVICE_CHOICE_TEXT_BYTES 256

enum device_target_kind {
	// The fastest devices, each judged from its own location; for an agent: all devices
	DEVICE_TARGET_AUTO,
	DEVICE_TARGET_BEST, // the same; for an agent: only the first of the best
	DEVICE_TARGET_NIC,  // the device with this name
	DEVICE_TARGET_CPU,  // memory of one NUMA node
	DEVICE_TARGET_CUDA, // memory of one GPU
	DEVICE_TARGET_SOFT, // the software device
	DEVICE_TARGET_NONE,
};

struct device_target {
	enum device_target_kind kind;
	uint32_t number;		// for CPU and CUDA
	char name[DEVICE_NAME_MAX + 1]; // for NIC
};

// Parse auto, best, nic:NAME, cpu:N, cuda:N, soft or none, in lower case. Returns -EINVAL, or
// -ERANGE if N is too large for any machine. The error text quotes the input and lists what is
// allowed.
int device_target_parse(
	const char *text, size_t length, struct parse_error *error, struct device_target *ret_target
);
void device_target_format(
	const struct device_target *target, char text[static DEVICE_TARGET_TEXT_BYTES]
);

// Source of GPU locations in CUDA's numbering. The driver must be asked: CUDA_VISIBLE_DEVICES makes
// its order differ from that of /proc. pci() returns 0, -ENOENT (no such ordinal), or another
// -errno if the driver cannot be asked.
struct device_gpus {
	int (*pci)(void *ctx, uint32_t ordinal, char ret_pci[static DEVICE_PCI_BYTES]);
	void *ctx;
	char reason[CUDA_REASON_MAX + 1]; // why CUDA is unavailable; pci is NULL then
};

// Use libcuda as the source, if it is installed. This starts the CUDA driver, which takes time and
// may hang, so call it only if a target needs CUDA. Never fails: without CUDA it sets the reason.
void device_gpus_init(struct device_gpus *ret_gpus);
void device_gpus_fini(struct device_gpus *gpus);

enum device_eligibility {
	DEVICE_BEST,
	DEVICE_SLOWER, // as near as the best, with less bandwidth
	DEVICE_FARTHER,
	DEVICE_AWAITS_PORT, // no active port: used only if the target names it
	DEVICE_UNUSABLE,    // never used; its facts hold the reason
	DEVICE_NOT_ASKED,   // excluded by the target
};

struct device_judgement {
	uint32_t device; // index in the given facts
	enum device_eligibility verdict;
	struct topology_path way; // path to the target; pci_mbps is 0 without PCI
	uint32_t bandwidth_mbps;  // 0: unknown, ranked last in its class
};

struct device_choice {
	const struct device_facts *facts; // the caller's array; it must outlive this struct
	struct device_target target;
	char target_pci[DEVICE_PCI_BYTES]; // for CUDA
	uint32_t eligible_count;	   // devices that may be used
	uint32_t nearest_count;		   // nearest among the eligible
	uint32_t best_count;		   // best among the nearest
	uint32_t count;
	struct device_judgement judgements[]; // best device first, ineligible devices last
};

struct device_query {
	const struct topology *topology;
	struct device_target target;
	const struct device_gpus *gpus; // NULL: no GPU source and no reason
	const struct device_facts *facts;
	uint32_t count;
};

// Choose devices for a target. If no device is suitable, the choice has a best_count of 0. Returns
// -ENOMEM, or one of these with a text that lists what exists:
//
//	-ENOENT  no such device name, NUMA node or GPU
//	-ENOSYS  no GPU source: CUDA is unavailable
//	other    the error of device_gpus.pci()
int device_choice_create(
	const struct device_query *query,
	struct parse_error *error,
	struct device_choice **ret_choice
);
struct device_choice *device_choice_destroy(struct device_choice *choice);

// Return true if auto and best should use the software device: none of these devices can have
// pairs, now or once a port is up. Software devices in the list are ignored.
bool device_choice_needs_soft(const struct device_facts *facts, uint32_t count);

// Write one sentence about the result and its reason; truncated if too long.
void device_choice_say(
	const struct device_choice *choice, char text[static DEVICE_CHOICE_TEXT_BYTES]
);

// Write a clause about judgements[n].
void device_choice_say_one(
	const struct device_choice *choice, uint32_t n, char text[static DEVICE_CHOICE_TEXT_BYTES]
);

// Return a clause about the device's location relative to the target. For a target without a
// location, the clause says whether the device is in the PCI tree.
const char *
device_choice_location_text(const struct device_choice *choice, enum topology_class class);

// Return "best", "slower", "farther", "awaits-port", "unusable" or "not-asked".
const char *device_eligibility_name(enum device_eligibility verdict);
