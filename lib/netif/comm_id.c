// SPDX-License-Identifier: BSD-3-Clause
// Parses the address in NCCL_COMM_ID.
#include "comm_id.h"

#include "address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define HOST_BYTES 64

// Parse an address up to ']'. A '%' separates the address from the interface that is its scope.
static const char *
parse_ipv6(const struct netif_table *table, const char *text, struct sock_addr *ret_peer) {
	size_t length = strcspn(text, "]");
	const char *percent = memrchr(text, '%', length);
	size_t ip_length = percent == NULL ? length : (size_t)(percent - text);
	char ip[INET6_ADDRSTRLEN];
	char name[IFNAMSIZ] = "";
	const struct netif_link *link;
	uint8_t bytes[16];

	if (text[length] != ']')
		return "no ] after the address";
	if (ip_length >= sizeof(ip) || length - ip_length > sizeof(name))
		return "not an IPv6 address";
	snprintf(ip, sizeof(ip), "%.*s", (int)ip_length, text);
	if (inet_pton(AF_INET6, ip, bytes) != 1)
		return "not an IPv6 address";
	address_from_bytes(AF_INET6, bytes, sizeof(bytes), 0, ret_peer);
	if (percent == NULL)
		return NULL;
	if (!sock_addr_is_link_local(ret_peer))
		return "a scope on an address that cannot have one";
	snprintf(name, sizeof(name), "%.*s", (int)(length - ip_length - 1), percent + 1);
	link = netif_table_link_by_name(table, name);
	if (link == NULL)
		return "no such interface after the %";
	ret_peer->scope_id = link->index;
	return NULL;
}

const char *
comm_id_parse(const struct netif_table *table, const char *text, struct sock_addr *ret_peer) {
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	char host[HOST_BYTES];
	size_t length;
	int err;

	if (*text == '[')
		return parse_ipv6(table, text + 1, ret_peer);
	text += strspn(text, ",");
	length = strcspn(text, ":,");
	if (length == 0)
		return "no host before the port";
	if (length >= sizeof(host))
		return "the host name is longer than 63 characters";
	snprintf(host, sizeof(host), "%.*s", (int)length, text);
	if (getaddrinfo(host, NULL, &hints, &found) != 0)
		return "no address for that name";
	// NCCL uses the first address.
	err = sock_addr_from_sockaddr(found->ai_addr, found->ai_addrlen, ret_peer);
	freeaddrinfo(found);
	return err == 0 ? NULL : "neither an IPv4 nor an IPv6 address";
}
