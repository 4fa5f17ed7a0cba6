// SPDX-License-Identifier: BSD-3-Clause
// Machines with devices, and the device choice on them.
#pragma once

#include "dataplane/choice/machine.h"

#include <dataplane/device_choice.h>

#define DEVICES_MAX 16

enum state {
	USABLE,
	NO_PORT,
	NO_RC,
	IN_PROCESS,
};

struct row {
	const char *name;
	const char *pci;
	uint32_t speed_mbps;
	enum state state;
};

// A machine, and the devices that libibverbs lists there, in its order.
struct scene {
	const char *machine;
	struct row rows[DEVICES_MAX];
};

extern const struct scene scene_eight;	   // every distance and every state
extern const struct scene scene_cascade;   // NICs on one socket only
extern const struct scene scene_flat;	   // a virtual machine
extern const struct scene scene_unplaced;  // unknown NUMA nodes
extern const struct scene scene_soft_roce; // Soft-RoCE without PCI, and the software device
extern const struct scene scene_mixed;
extern const struct scene scene_none;
extern const struct scene scene_no_rc; // no usable device, but one waits for its port
extern const struct scene scene_lone;  // only one device, which is unusable

extern const struct device_gpus scene_gpus; // five GPUs, numbered in another order than on the bus
extern const struct device_gpus scene_other_gpus;
extern const struct device_gpus scene_only_gpu;
extern const struct device_gpus scene_no_gpus;
extern const struct device_gpus scene_silent_gpus; // the query fails
extern const struct device_gpus scene_gpus_gone;   // libcuda cannot be loaded

// Choose a device in a scene. The facts in the result are valid until the next call.
int scene_choose(
	const struct scene *scene,
	const char *target,
	const struct device_gpus *gpus,
	struct parse_error *error,
	struct device_choice **ret_choice
);
