// SPDX-License-Identifier: BSD-3-Clause
// The machine as hwloc sees it: its NUMA nodes, and the PCI bridges between them and its devices.
//
// Made once, constant after that: any thread may ask. PCI addresses are text, "0000:17:00.0".
#pragma once

#include <lib/cpu_set.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOPOLOGY_NODES_TEXT_BYTES 128

struct topology;

// From the nearest to the farthest.
enum topology_class {
	TOPOLOGY_SWITCH,  // a PCI switch in common
	TOPOLOGY_BRIDGES, // several PCI bridges between, but no host bridge
	TOPOLOGY_HOST,	  // a host bridge or a NUMA node in common
	TOPOLOGY_FAR,	  // another NUMA node, or one that nobody knows
	TOPOLOGY_UNKNOWN, // one end is not in the machine's PCI tree
};

// From a PCI device to something else.
struct topology_way {
	enum topology_class class;
	uint32_t pci_mbps; // the narrowest link, what payload it carries
	bool assumed;	   // no link of it can be read: 3rd generation, 16 lanes
};

// Of this machine, by the kernel's files alone: nothing of hwloc's that would ask drivers or a
// display. Tens of milliseconds. -ENOMEM or what the reading failed with.
int topology_create(struct topology **ret_topology);

// Of another machine: what `lstopo --of xml` wrote there, or hwloc's short description
// ("node:2 pu:4", without PCI). -EINVAL if hwloc does not understand it.
int topology_create_xml(const char *xml, struct topology **ret_topology);
int topology_create_synthetic(const char *description, struct topology **ret_topology);

struct topology *topology_destroy(struct topology *topology);

bool topology_has_node(const struct topology *topology, uint32_t node);

// "0-1"; cut if it is longer.
void topology_nodes(const struct topology *topology, char text[static TOPOLOGY_NODES_TEXT_BYTES]);

// The NUMA node of a PCI device, -1 if it is not known.
int topology_node_of(const struct topology *topology, const char *pci);

// The processors that a PCI device is near, of those that lib's sets can hold. -ENOENT: it is not
// in the tree, or at no place that is known.
int topology_near_cpus(const struct topology *topology, const char *pci, struct cpu_set *ret_cpus);

// From a PCI device up to the host, whichever NUMA node that is; to a NUMA node that the machine
// has; and to another PCI device, whose own link is left out: it is the same for all that are
// compared, and that of a GPU at rest says the first generation.
void topology_way_to_host(
	const struct topology *topology, const char *pci, struct topology_way *ret_way
);
void topology_way_to_node(
	const struct topology *topology,
	const char *pci,
	uint32_t node,
	struct topology_way *ret_way
);
void topology_way_to_device(
	const struct topology *topology,
	const char *pci,
	const char *to_pci,
	struct topology_way *ret_way
);

// "switch", "bridges", "host", "far", "unknown"; and half a sentence for people.
const char *topology_class_name(enum topology_class class);
const char *topology_class_text(enum topology_class class);
