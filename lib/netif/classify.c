// SPDX-License-Identifier: BSD-3-Clause
// Determines the class of each link.
#include <lib/netif/classify.h>

#include <net/if_arp.h>
#include <string.h>

static const struct {
	const char *kind;
	enum netif_class class;
} kinds[] = {
	{"veth", NETIF_CLASS_VETH},
	{"bridge", NETIF_CLASS_CONTAINER_BRIDGE}, // changed to BRIDGE if a hardware port is found
	{"bond", NETIF_CLASS_BOND},
	{"team", NETIF_CLASS_BOND},
	{"vlan", NETIF_CLASS_VLAN},
	{"macvlan", NETIF_CLASS_MACVLAN},
	{"macvtap", NETIF_CLASS_MACVLAN},
	{"ipvlan", NETIF_CLASS_MACVLAN},
	{"dummy", NETIF_CLASS_DUMMY},
	{"ipoib", NETIF_CLASS_IPOIB},
	{"tun", NETIF_CLASS_TUNNEL},
	{"wireguard", NETIF_CLASS_TUNNEL},
	{"vxlan", NETIF_CLASS_TUNNEL},
	{"geneve", NETIF_CLASS_TUNNEL},
	{"gre", NETIF_CLASS_TUNNEL},
	{"gretap", NETIF_CLASS_TUNNEL},
	{"ip6gre", NETIF_CLASS_TUNNEL},
	{"ip6gretap", NETIF_CLASS_TUNNEL},
	{"ipip", NETIF_CLASS_TUNNEL},
	{"sit", NETIF_CLASS_TUNNEL},
	{"ip6tnl", NETIF_CLASS_TUNNEL},
	{"vti", NETIF_CLASS_TUNNEL},
	{"vti6", NETIF_CLASS_TUNNEL},
	{"xfrm", NETIF_CLASS_TUNNEL},
	{"ppp", NETIF_CLASS_TUNNEL},
};

static enum netif_class class_of_link(const struct netif_link *link) {
	const struct netif_sysfs *sysfs = &link->sysfs;

	if ((link->flags & IFF_LOOPBACK) != 0)
		return NETIF_CLASS_LOOPBACK;
	// Check the kind first: an IPoIB child or a VLAN shows the device of its parent.
	if (link->kind[0] != '\0') {
		for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
			if (strcmp(link->kind, kinds[n].kind) == 0)
				return kinds[n].class;
		}
		return NETIF_CLASS_UNKNOWN;
	}
	if (sysfs->is_bridge)
		return NETIF_CLASS_CONTAINER_BRIDGE;
	if (sysfs->is_bond)
		return NETIF_CLASS_BOND;
	if (sysfs->is_tun)
		return NETIF_CLASS_TUNNEL;
	if (link->hardware_type == ARPHRD_INFINIBAND)
		return NETIF_CLASS_IPOIB;
	if (sysfs->is_wireless)
		return NETIF_CLASS_WIRELESS;
	if (sysfs->on_usb || strcmp(link->bus, "usb") == 0)
		return NETIF_CLASS_USB;
	if (sysfs->has_device || link->bus[0] != '\0')
		return NETIF_CLASS_ETHERNET;
	return NETIF_CLASS_UNKNOWN;
}

static bool class_has_wire(enum netif_class class) {
	return class == NETIF_CLASS_ETHERNET || class == NETIF_CLASS_IPOIB ||
	       class == NETIF_CLASS_BOND || class == NETIF_CLASS_VLAN ||
	       class == NETIF_CLASS_WIRELESS || class == NETIF_CLASS_USB;
}

void netif_classify(struct netif_table *table) {
	for (size_t n = 0; n < table->link_count; n++)
		table->links[n].class = class_of_link(&table->links[n]);
	for (size_t n = 0; n < table->link_count; n++) {
		uint32_t master = table->links[n].master_index;

		if (master == 0 || !class_has_wire(table->links[n].class))
			continue;
		for (size_t m = 0; m < table->link_count; m++) {
			struct netif_link *link = &table->links[m];

			if (link->index == master && link->class == NETIF_CLASS_CONTAINER_BRIDGE)
				link->class = NETIF_CLASS_BRIDGE;
		}
	}
}
