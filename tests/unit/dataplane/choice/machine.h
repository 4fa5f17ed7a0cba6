// SPDX-License-Identifier: BSD-3-Clause
// Machines for the tests of choice, each a file in machines/: a tree, one object a line, a blank
// deeper than what it hangs on:
//
//	node                        a package with a NUMA node and a processor
//	barred                      the same, where this process must not run; behind all others
//	memory                      a NUMA node without processors, last of all
//	pair                        a package; below it two of the nodes
//	 host                       a host bridge, below a node, or below none if none is known
//	  bridge 0000:00:01.0 gen4  a PCI bridge, and its link, of 16 lanes; -: it cannot be read
//	   dev 0000:01:00.0 gen4    a device
//
// hwloc reads them as it reads what lstopo writes.
#pragma once

#include <dataplane/topology.h>

// The one of that name in machines/.
struct topology *machine_create(const char *name);
