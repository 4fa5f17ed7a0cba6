// SPDX-License-Identifier: BSD-3-Clause
// Machines for the tests of choice. Each is a file in machines/ with one object per line; an object
// is indented one blank more than its parent:
//
//	node                        a package with a NUMA node and a processor
//	barred                      the same, but this process must not run there; after all nodes
//	memory                      a NUMA node without processors, last of all
//	pair                        a package with two nodes below it
//	 host                       a host bridge below a node, or at the top if its node is unknown
//	  bridge 0000:00:01.0 gen4  a PCI bridge and its link of 16 lanes; -: unreadable
//	   dev 0000:01:00.0 gen4    a device
//
// hwloc reads them as it reads the output of lstopo.
#pragma once

#include <dataplane/topology.h>

// Build the topology of machines/NAME.
struct topology *machine_create(const char *name);
