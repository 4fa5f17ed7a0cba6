// SPDX-License-Identifier: BSD-3-Clause
// The table of links, addresses and routes.
#include <lib/must.h>
#include <lib/netif/table.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 16

int netif_table_create(struct netif_table **ret_table) {
	struct netif_table *table = calloc(1, sizeof(*table));

	if (table == NULL)
		return -ENOMEM;
	*ret_table = table;
	return 0;
}

struct netif_table *netif_table_destroy(struct netif_table *table) {
	if (table == NULL)
		return NULL;
	free(table->links);
	free(table->addresses);
	free(table->defaults);
	free(table->routes);
	free(table);
	return NULL;
}

// Make room for one more item. The capacity is the next power of two, so it need not be stored.
static int items_grow(void *items, size_t count, size_t item_size, size_t count_max) {
	void **array = items;
	void *wider;

	if (count >= count_max)
		return -EOVERFLOW;
	if (count != 0 && (count < ROOM_FIRST || (count & (count - 1)) != 0))
		return 0;
	wider = reallocarray(*array, count < ROOM_FIRST ? ROOM_FIRST : count * 2, item_size);
	if (wider == NULL)
		return -ENOMEM;
	*array = wider;
	return 0;
}

int netif_table_add_link(struct netif_table *table, const struct netif_link *link) {
	int err = items_grow(&table->links, table->link_count, sizeof(*link), NETIF_LINKS_MAX);

	if (err != 0)
		return err;
	table->links[table->link_count++] = *link;
	return 0;
}

int netif_table_add_address(
	struct netif_table *table, uint32_t link_index, const struct netif_address *address
) {
	size_t position = 0, n;
	int err;

	// Addresses come in the order of links, so begin at the link of the previous address.
	for (n = 0; n < table->link_count; n++) {
		position = (table->address_hint + n) % table->link_count;
		if (table->links[position].index == link_index)
			break;
	}
	if (n == table->link_count)
		return 0;
	table->address_hint = position;
	err = items_grow(
		&table->addresses, table->address_count, sizeof(*address), NETIF_ADDRESSES_MAX
	);
	if (err != 0)
		return err;
	table->addresses[table->address_count] = *address;
	table->addresses[table->address_count].link = (uint32_t)position;
	table->address_count++;
	return 0;
}

int netif_table_add_default(struct netif_table *table, const struct netif_route *route) {
	size_t at;
	int err = items_grow(
		&table->defaults, table->default_count, sizeof(*route), NETIF_ROUTES_MAX
	);

	if (err != 0)
		return err;
	for (at = table->default_count; at > 0; at--) {
		if (table->defaults[at - 1].metric <= route->metric)
			break;
		table->defaults[at] = table->defaults[at - 1];
	}
	table->defaults[at] = *route;
	table->default_count++;
	return 0;
}

int netif_table_add_route(struct netif_table *table, const struct netif_route *route) {
	int err = items_grow(&table->routes, table->route_count, sizeof(*route), NETIF_ROUTES_MAX);

	if (err != 0)
		return err;
	table->routes[table->route_count++] = *route;
	return 0;
}

const struct netif_link *
netif_table_link_by_index(const struct netif_table *table, uint32_t index) {
	for (size_t n = 0; n < table->link_count; n++) {
		if (table->links[n].index == index)
			return &table->links[n];
	}
	return NULL;
}

const struct netif_link *
netif_table_link_by_name(const struct netif_table *table, const char *name) {
	for (size_t n = 0; n < table->link_count; n++) {
		if (strcmp(table->links[n].name, name) == 0)
			return &table->links[n];
	}
	return NULL;
}

const char *netif_class_name(enum netif_class class) {
	static const char *const names[NETIF_CLASS_COUNT] = {
		[NETIF_CLASS_UNKNOWN] = "unknown",
		[NETIF_CLASS_CONTAINER_BRIDGE] = "container-bridge",
		[NETIF_CLASS_LOOPBACK] = "loopback",
		[NETIF_CLASS_DUMMY] = "dummy",
		[NETIF_CLASS_TUNNEL] = "tunnel",
		[NETIF_CLASS_USB] = "usb",
		[NETIF_CLASS_WIRELESS] = "wireless",
		[NETIF_CLASS_VETH] = "veth",
		[NETIF_CLASS_MACVLAN] = "macvlan",
		[NETIF_CLASS_BRIDGE] = "bridge",
		[NETIF_CLASS_VLAN] = "vlan",
		[NETIF_CLASS_BOND] = "bond",
		[NETIF_CLASS_ETHERNET] = "ethernet",
		[NETIF_CLASS_IPOIB] = "ipoib",
	};

	must((size_t) class < NETIF_CLASS_COUNT);
	return names[class];
}

const struct netif_route *
netif_table_route(const struct netif_table *table, const struct sock_addr *peer) {
	for (size_t n = 0; n < table->route_count; n++) {
		if (sock_addr_equal(&table->routes[n].peer, peer))
			return &table->routes[n];
	}
	return NULL;
}
