// SPDX-License-Identifier: BSD-3-Clause
// The machine's topology from hwloc: NUMA nodes, and the PCI bridges between nodes and devices.
//
// A topology is constant after its creation, so any thread may query it. PCI addresses are text,
// such as "0000:17:00.0".
#pragma once

#include <lib/cpu_set.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOPOLOGY_NODES_TEXT_BYTES 128

struct topology;

// Distance classes, nearest first.
enum topology_class {
	TOPOLOGY_SWITCH,  // both are below one PCI switch
	TOPOLOGY_BRIDGES, // several PCI bridges between them, but no host bridge
	TOPOLOGY_HOST,	  // both are below one host bridge or NUMA node
	TOPOLOGY_FAR,	  // another NUMA node, or an unknown one
	TOPOLOGY_UNKNOWN, // one end is not in the PCI tree
};

// Path from a PCI device to another object.
struct topology_path {
	enum topology_class class;
	uint32_t pci_mbps; // payload rate of the narrowest link
	bool assumed;	   // no link could be read; third generation with 16 lanes is assumed
};

// Read the topology of this machine, from kernel files only: hwloc parts that query drivers or a
// display are off. Takes tens of milliseconds. Returns -ENOMEM or the read error.
int topology_create(struct topology **ret_topology);

// Load the topology of another machine: output of `lstopo --of xml`, or a synthetic hwloc
// description ("node:2 pu:4", without PCI). Returns -EINVAL if hwloc rejects it.
int topology_create_xml(const char *xml, struct topology **ret_topology);
int topology_create_synthetic(const char *description, struct topology **ret_topology);

struct topology *topology_destroy(struct topology *topology);

bool topology_has_node(const struct topology *topology, uint32_t node);

// Write the NUMA nodes as text, "0-1"; truncated if too long.
void topology_nodes(const struct topology *topology, char text[static TOPOLOGY_NODES_TEXT_BYTES]);

// Return the NUMA node of a PCI device; -1: unknown.
int topology_pci_node(const struct topology *topology, const char *pci);

// Return the processors near a PCI device, as far as struct cpu_set can hold them. Returns -ENOENT
// if the device is not in the tree or its location is unknown.
int topology_near_cpus(const struct topology *topology, const char *pci, struct cpu_set *ret_cpus);

// Return the path from a PCI device. It leads to the host (any NUMA node), to an existing NUMA
// node, or to another PCI device. The link of that other device itself is left out. It is common to
// all compared paths, and an idle GPU reports it as first generation.
void topology_path_to_host(
	const struct topology *topology, const char *pci, struct topology_path *ret_way
);
void topology_path_to_node(
	const struct topology *topology,
	const char *pci,
	uint32_t node,
	struct topology_path *ret_way
);
void topology_path_to_device(
	const struct topology *topology,
	const char *pci,
	const char *to_pci,
	struct topology_path *ret_way
);

// Return "switch", "bridges", "host", "far" or "unknown"; or a clause for people.
const char *topology_class_name(enum topology_class class);
const char *topology_class_text(enum topology_class class);
