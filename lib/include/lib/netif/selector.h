// SPDX-License-Identifier: BSD-3-Clause
// The list that steers the rules `tocsin`: NCCL_SOCKET_IFNAME's grammar and more.
//
//	list  := ['^'] ['='] item {',' item}     ^ excludes what the list names, = takes names whole
//	item  := ['^'] ['='] what [':' port]     the same for one item of a list without the mark
//	what  := NAME                            interfaces whose name begins so (whole with =)
//	       | NETWORK '/' BITS | ADDRESS      interfaces with an address in it; IPv6 before a
//	                                         port stands in [ ]
//	       | 'peer:' ADDRESS                 the way that the kernel takes to it
//	       | 'default-route'                 the way of the default route, by lowest metric
//
// An interface that is called peer or default-route is named with =. An earlier item is preferred
// to a later one. A list of exclusions alone stands for everything else.
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
	char text[NETIF_ITEM_BYTES]; // as it was given, quoted for people
	char name[IFNAMSIZ];
	struct cidr network;
	struct sock_addr peer; // port 0
	uint16_t port;	       // 0: none
};

struct netif_selector {
	struct netif_item items[NETIF_ITEMS_MAX];
	size_t count; // 0: nothing is asked, everything may be chosen
};

// -EINVAL with a sentence that quotes the item. A value of NULL gives an empty selector.
int netif_selector_parse(
	const struct netif_setting *setting,
	struct netif_selector *ret_selector,
	struct netif_error *error
);

// Whether an item names this address. address is NULL for a link without any.
bool netif_item_matches(
	const struct netif_item *item,
	const struct netif_table *table,
	const struct netif_link *link,
	const struct netif_address *address
);
