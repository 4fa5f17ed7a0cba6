// SPDX-License-Identifier: BSD-3-Clause
// Parts of `tocsin devices`.
#pragma once

#include <dataplane/device_choice.h>
#include <dataplane/device_rails.h>

#include <stdio.h>

// Query and result; all pointers are borrowed.
struct devices {
	const struct topology *topology;
	const struct device_choice *choice;
	bool explain;
	const struct device_rail *rails; // rails that an agent uses with `auto`
	uint32_t rail_count, rails_left_out;
};

// Return "RoCE", "InfiniBand", or the transport name of another device.
const char *devices_kind(const struct device_facts *device);
// Return the NUMA node, or -1 if unknown.
int devices_node(const struct devices *devices, const struct device_facts *device);

// Return the name of the device that an agent uses for this target, or NULL.
const char *devices_agent_choice(const struct device_choice *choice);

void devices_print(const struct devices *devices, FILE *out);
// Print the result as JSON. Returns 0 or -ENOMEM.
int devices_print_json(const struct devices *devices, FILE *out);
