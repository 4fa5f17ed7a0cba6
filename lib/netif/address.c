// SPDX-License-Identifier: BSD-3-Clause
// IP addresses of interfaces.
#include "address.h"

#include <errno.h>
#include <string.h>

int address_from_bytes(
	int family,
	const uint8_t *bytes,
	size_t size,
	uint32_t scope_index,
	struct sock_addr *ret_address
) {
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_scope_id = scope_index};
	struct sockaddr_in in = {.sin_family = AF_INET};

	if (family == AF_INET && size == sizeof(in.sin_addr)) {
		memcpy(&in.sin_addr, bytes, size);
		return sock_addr_from_sockaddr((struct sockaddr *)&in, sizeof(in), ret_address);
	}
	if (family == AF_INET6 && size == sizeof(in6.sin6_addr)) {
		memcpy(&in6.sin6_addr, bytes, size);
		return sock_addr_from_sockaddr((struct sockaddr *)&in6, sizeof(in6), ret_address);
	}
	return -EBADMSG;
}

uint32_t address_bits(const struct sock_addr *address) {
	return address_bytes(address) * 8;
}

uint32_t address_bytes(const struct sock_addr *address) {
	return address->family == SOCK_ADDR_V4 ? 4 : 16;
}

bool address_equal_ip(const struct sock_addr *a, const struct sock_addr *b) {
	return a->family == b->family && memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

const char *address_fault_as_peer(const struct sock_addr *address) {
	bool is_v4 = address->family == SOCK_ADDR_V4;

	if (sock_addr_is_any(address))
		return "is the unspecified address, not that of a node";
	if (is_v4 ? (address->address[0] & 0xf0) == 0xe0 : address->address[0] == 0xff)
		return "is a multicast address, not that of a node";
	if (is_v4 && memcmp(address->address, "\xff\xff\xff\xff", 4) == 0)
		return "is the broadcast address, not that of a node";
	return NULL;
}

void address_print(const struct sock_addr *address, char text[static SOCK_ADDR_TEXT_BYTES]) {
	struct sock_addr bare = sock_addr_ip_only(address);

	sock_addr_format_host(&bare, text);
}
