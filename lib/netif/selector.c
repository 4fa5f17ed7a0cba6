// SPDX-License-Identifier: BSD-3-Clause
// Parses one selector of interfaces, and matches it.
#include "address.h"
#include "judge.h"

#include <lib/escape.h>
#include <lib/netif/selector.h>
#include <lib/parse.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define QUOTED_BYTES 80

// A part of the setting's value, which outlives the piece.
struct piece {
	const char *text;
	size_t length;
};

static bool piece_skip_prefix(struct piece *piece, const char *prefix) {
	size_t length = strlen(prefix);

	if (piece->length < length || memcmp(piece->text, prefix, length) != 0)
		return false;
	piece->text += length;
	piece->length -= length;
	return true;
}

static int fail_item(
	struct netif_error *error,
	const struct netif_setting *setting,
	const struct netif_item *item,
	const char *wrong
) {
	return netif_fail(error, -EINVAL, "%s: item %s %s", setting->origin, item->text, wrong);
}

// Cut ":PORT" off the end. A colon before `from` belongs to an IPv6 address.
static const char *split_port(struct piece *piece, size_t from, uint16_t *ret_port) {
	const char *colon = memrchr(piece->text + from, ':', piece->length - from);
	size_t length;
	uint64_t port;

	if (colon == NULL)
		return NULL;
	length = (size_t)(colon - piece->text);
	if (parse_u64(colon + 1, piece->length - length - 1, 1, UINT16_MAX, NULL, &port) != 0)
		return "has a port that is not a number from 1 to 65535";
	*ret_port = (uint16_t)port;
	piece->length = length;
	return NULL;
}

// Return an error text of our own, because the texts of sock_addr_parse() start with a quoted
// value.
static const char *parse_host(struct piece piece, struct netif_item *item) {
	switch (sock_addr_parse(piece.text, piece.length, 0, NULL, &item->peer)) {
	case 0:
		item->port = item->peer.port;
		item->peer.port = 0;
		return NULL;
	case -ERANGE:
		return "has a port that is not a number from 1 to 65535";
	case -ENODEV:
		return "has a scope that is no interface of this machine";
	default:
		return "is not an IP address";
	}
}

static const char *parse_network(struct piece piece, struct netif_item *item) {
	const char *slash = memchr(piece.text, '/', piece.length);
	const char *wrong = split_port(&piece, (size_t)(slash - piece.text), &item->port);

	if (wrong != NULL)
		return wrong;
	switch (cidr_parse(piece.text, piece.length, NULL, &item->network)) {
	case 0:
		return NULL;
	case -ERANGE:
		return "is not a network: the prefix is longer than the address";
	default:
		return "is not a network such as 10.0.0.0/8 or fd00::/64, with zeros after the "
		       "prefix";
	}
}

static const char *parse_name(struct piece piece, struct netif_item *item) {
	const char *wrong = split_port(&piece, 0, &item->port);

	if (wrong != NULL)
		return wrong;
	if (piece.length == 0)
		return "has no name";
	if (piece.length >= sizeof(item->name))
		return "is longer than 15 characters, the limit for interface names";
	for (size_t n = 0; n < piece.length; n++) {
		unsigned char c = (unsigned char)piece.text[n];

		if (c <= ' ' || c == 0x7f || c == ':' || c == '/')
			return "has a character that interface names cannot have";
	}
	memcpy(item->name, piece.text, piece.length);
	item->name[piece.length] = '\0';
	return NULL;
}

// Return whether the text is an address rather than a name. An address has brackets, two colons, or
// only digits and dots before the port.
static bool looks_like_host(struct piece piece) {
	const char *colon = memchr(piece.text, ':', piece.length);
	struct piece host = {
		piece.text, colon == NULL ? piece.length : (size_t)(colon - piece.text)};

	if (piece.length > 0 && piece.text[0] == '[')
		return true;
	if (colon != NULL && memrchr(piece.text, ':', piece.length) != colon)
		return true;
	// Treat 300.1.2.3 as a mistyped address: no interface is named by digits and dots.
	for (size_t n = 0; n < host.length; n++) {
		if (!isdigit((unsigned char)host.text[n]) && host.text[n] != '.')
			return false;
	}
	return memchr(host.text, '.', host.length) != NULL;
}

static const char *parse_item(struct piece piece, bool exact, struct netif_item *item) {
	const char *wrong;
	struct piece rest;

	if (piece_skip_prefix(&piece, "=")) {
		if (exact)
			return "begins with =, although the whole list begins with =";
		exact = true;
	}
	if (piece.length == 0)
		return "has no name after its ^ or =";
	if (exact) {
		item->kind = NETIF_ITEM_NAME;
		return parse_name(piece, item);
	}
	if (piece_skip_prefix(&piece, "default-route:")) {
		item->kind = NETIF_ITEM_DEFAULT_ROUTE;
		piece.text--;
		piece.length++;
		return split_port(&piece, 0, &item->port);
	}
	rest = piece;
	if (piece_skip_prefix(&rest, "default-route") && rest.length == 0) {
		item->kind = NETIF_ITEM_DEFAULT_ROUTE;
		return NULL;
	}
	if (piece_skip_prefix(&piece, "peer:")) {
		item->kind = NETIF_ITEM_PEER;
		wrong = parse_host(piece, item);
		return wrong == NULL ? address_fault_as_peer(&item->peer) : wrong;
	}
	if (memchr(piece.text, '/', piece.length) != NULL) {
		item->kind = NETIF_ITEM_NETWORK;
		return parse_network(piece, item);
	}
	if (looks_like_host(piece)) {
		// A single address is a network of one host.
		item->kind = NETIF_ITEM_NETWORK;
		wrong = parse_host(piece, item);
		if (wrong != NULL)
			return wrong;
		memcpy(item->network.address, item->peer.address, sizeof(item->network.address));
		item->network.family = item->peer.family;
		item->network.bits = (uint8_t)address_bits(&item->peer);
		return NULL;
	}
	item->kind = NETIF_ITEM_PREFIX;
	return parse_name(piece, item);
}

// Marks of a whole list.
struct marks {
	bool excludes;
	bool exact;
};

static int add_item(
	const struct netif_setting *setting,
	struct piece piece,
	struct marks marks,
	struct netif_selector *selector,
	struct netif_error *error
) {
	char quoted[QUOTED_BYTES];
	struct netif_item *item;
	const char *wrong;

	if (selector->count == NETIF_ITEMS_MAX)
		return netif_fail(
			error, -EINVAL, "%s has more than %d items", setting->origin,
			NETIF_ITEMS_MAX
		);
	item = &selector->items[selector->count++];
	escape_quote(piece.text, piece.length, item->text, sizeof(item->text));
	item->excludes = marks.excludes;
	if (piece_skip_prefix(&piece, "^")) {
		if (marks.excludes)
			return fail_item(
				error, setting, item,
				"begins with ^, although the whole list begins with ^"
			);
		item->excludes = true;
	}
	if (piece.length == 0) {
		escape_quote(setting->value, strlen(setting->value), quoted, sizeof(quoted));
		return netif_fail(
			error, -EINVAL, "%s: item %zu of %s is empty", setting->origin,
			selector->count, quoted
		);
	}
	wrong = parse_item(piece, marks.exact, item);
	return wrong == NULL ? 0 : fail_item(error, setting, item, wrong);
}

int netif_selector_parse(
	const struct netif_setting *setting,
	struct netif_selector *ret_selector,
	struct netif_error *error
) {
	struct netif_selector selector = {0};
	struct piece rest = {setting->value, 0};
	struct marks marks = {0};
	char quoted[QUOTED_BYTES];
	int err = 0;

	if (setting->value == NULL) {
		*ret_selector = selector;
		return 0;
	}
	rest.length = strlen(setting->value);
	marks.excludes = piece_skip_prefix(&rest, "^");
	marks.exact = piece_skip_prefix(&rest, "=");
	if (rest.length == 0) {
		escape_quote(setting->value, strlen(setting->value), quoted, sizeof(quoted));
		return netif_fail(
			error, -EINVAL, "%s is %s, which contains no interface name",
			setting->origin, quoted
		);
	}
	while (err == 0) {
		const char *comma = memchr(rest.text, ',', rest.length);
		struct piece item = {
			rest.text, comma == NULL ? rest.length : (size_t)(comma - rest.text)};

		err = add_item(setting, item, marks, &selector, error);
		if (comma == NULL)
			break;
		rest.length -= item.length + 1;
		rest.text = comma + 1;
	}
	if (err != 0)
		return err;
	*ret_selector = selector;
	return 0;
}

static bool link_is_default_route(
	const struct netif_table *table,
	const struct netif_link *link,
	const struct sock_addr *address
) {
	const struct netif_route *best = NULL;

	for (size_t n = 0; n < table->default_count; n++) {
		const struct netif_route *route = &table->defaults[n];

		if (route->family != address->family ||
		    (best != NULL && route->metric > best->metric))
			continue;
		if (best == NULL)
			best = route;
		if (route->link_index == link->index)
			return true;
	}
	return false;
}

static bool address_is_source_for(
	const struct netif_table *table,
	const struct sock_addr *peer,
	const struct netif_link *link,
	const struct sock_addr *address
) {
	const struct netif_route *route = netif_table_route(table, peer);

	if (route == NULL || route->error != 0 || address->family != peer->family)
		return false;
	if (route->source.family != SOCK_ADDR_NONE)
		return address_equal_ip(&route->source, address);
	return route->link_index == link->index;
}

bool netif_item_matches(
	const struct netif_item *item,
	const struct netif_table *table,
	const struct netif_link *link,
	const struct netif_address *address
) {
	switch (item->kind) {
	case NETIF_ITEM_PREFIX:
		return strncmp(link->name, item->name, strlen(item->name)) == 0;
	case NETIF_ITEM_NAME:
		return strcmp(link->name, item->name) == 0;
	case NETIF_ITEM_NETWORK:
		return address != NULL && cidr_contains(&item->network, &address->address);
	case NETIF_ITEM_PEER:
		return address != NULL &&
		       address_is_source_for(table, &item->peer, link, &address->address);
	case NETIF_ITEM_DEFAULT_ROUTE:
		return address != NULL && link_is_default_route(table, link, &address->address);
	}
	return false;
}
