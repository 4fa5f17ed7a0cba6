// SPDX-License-Identifier: BSD-3-Clause
// Machines with devices, and what is chosen there.
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

// A scene: a machine, and what libibverbs would list there, in its order.
struct scene {
	const char *machine;
	struct row rows[DEVICES_MAX];
};

extern const struct scene scene_eight;	   // all that can be told apart
extern const struct scene scene_cascade;   // NICs on one socket only
extern const struct scene scene_flat;	   // a virtual machine
extern const struct scene scene_unplaced;  // nobody knows of which NUMA node
extern const struct scene scene_soft_roce; // no PCI; the software device beside it
extern const struct scene scene_mixed;
extern const struct scene scene_none;
extern const struct scene scene_no_rc; // nothing that may be taken
extern const struct scene scene_lone;  // the same, one device

extern const struct device_gpus scene_gpus; // five; CUDA's order is not that of the bus
extern const struct device_gpus scene_other_gpus;
extern const struct device_gpus scene_only_gpu;
extern const struct device_gpus scene_no_gpus;
extern const struct device_gpus scene_silent_gpus; // asking fails
extern const struct device_gpus scene_gpus_gone;   // nobody to ask

// The facts that the choice points to are those of the last call.
int scene_choose(
	const struct scene *scene,
	const char *target,
	const struct device_gpus *gpus,
	struct parse_error *error,
	struct device_choice **ret_choice
);
