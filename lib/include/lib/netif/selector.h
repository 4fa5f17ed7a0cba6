// SPDX-License-Identifier: BSD-3-Clause
// The selector list of the rules `tocsin`. It extends the grammar of NCCL_SOCKET_IFNAME.
//
//	list  := ['^'] ['='] item {',' item}     ^ excludes all items, = compares whole names
//	item  := ['^'] ['='] what [':' port]     the same marks for one item, if the list has none
//	what  := NAME                            interfaces whose name begins with NAME
//	                                         (is NAME, with =)
//	       | NETWORK '/' BITS | ADDRESS      interfaces with such an address; IPv6 before a
//	                                         port must be in [ ]
//	       | 'peer:' ADDRESS                 the kernel's route to ADDRESS
//	       | 'default-route'                 the default route with the lowest metric
//
// An interface with the name peer or default-route needs the mark =. An earlier item is preferred
// to a later one. A list that has only exclusions allows everything else.
#pragma once

#include <lib/cidr.h>
#include <lib/netif/choice.h>
#include <lib/netif/table.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETIF_ITEMS_MAX 16
#define NETIF_ITEM_BYTES 80

enum netif_item_kind {
	NETIF_ITEM_PREFIX,
	NETIF_ITEM_NAME,
	NETIF_ITEM_NETWORK,
	NETIF_ITEM_PEER,
	NETIF_ITEM_DEFAULT_ROUTE,
};

struct netif_item {
	enum netif_item_kind kind;
	bool excludes;
	char text[NETIF_ITEM_BYTES]; // the item as given, quoted for messages
	char name[IFNAMSIZ];
	struct cidr network;
	struct sock_addr peer; // port 0
	uint16_t port;	       // 0: none
};

struct netif_selector {
	struct netif_item items[NETIF_ITEMS_MAX];
	size_t count; // 0: there is no list, everything may be chosen
};

// Parse a list. A value of NULL gives an empty selector. Returns 0, or -EINVAL with a sentence that
// quotes the item.
int netif_selector_parse(
	const struct netif_setting *setting,
	struct netif_selector *ret_selector,
	struct netif_error *error
);

// Return whether an item matches this address. `address` is NULL for a link without an address.
bool netif_item_matches(
	const struct netif_item *item,
	const struct netif_table *table,
	const struct netif_link *link,
	const struct netif_address *address
);
