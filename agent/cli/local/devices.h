// SPDX-License-Identifier: BSD-3-Clause
// The parts of `tocsin devices`.
#pragma once

#include <dataplane/device_choice.h>
#include <dataplane/device_rails.h>

#include <stdio.h>

// What was asked for and what came of it; borrowed.
struct devices {
	const struct topology *topology;
	const struct device_choice *choice;
	bool explain;
	const struct device_rail *rails; // what an agent takes with auto
	uint32_t rail_count, rails_left_out;
};

// "RoCE", "InfiniBand", or the transport of what is neither.
const char *devices_kind(const struct device_facts *device);
// -1 if nobody knows.
int devices_node(const struct devices *devices, const struct device_facts *device);

// The device that an agent takes for this target, NULL if none.
const char *devices_taken(const struct device_choice *choice);

void devices_print(const struct devices *devices, FILE *out);
// 0 or -ENOMEM.
int devices_print_json(const struct devices *devices, FILE *out);
