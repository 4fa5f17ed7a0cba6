// SPDX-License-Identifier: BSD-3-Clause
// Determines the class of each link from its properties, never from its name.
#pragma once

#include <lib/netif/table.h>

// Set the class of all links. A bridge with a port of a hardware class (Ethernet, IPoIB, bond,
// VLAN, wireless, USB) gets NETIF_CLASS_BRIDGE, any other bridge NETIF_CLASS_CONTAINER_BRIDGE.
void netif_classify(struct netif_table *table);
