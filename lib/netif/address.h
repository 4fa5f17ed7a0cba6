// SPDX-License-Identifier: BSD-3-Clause
// IP addresses as netlink reports them; private to lib/netif.
#pragma once

#include <lib/netif/table.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Make an address from bytes. The family is AF_INET or AF_INET6. The scope_index is kept only for
// link-local IPv6 addresses, as getifaddrs(3) does. Returns 0, or -EBADMSG if `size` does not fit
// the family.
int address_from_bytes(
	int family,
	const uint8_t *bytes,
	size_t size,
	uint32_t scope_index,
	struct sock_addr *ret_address
);

uint32_t address_bits(const struct sock_addr *address);	 // 32 or 128
uint32_t address_bytes(const struct sock_addr *address); // 4 or 16

// Compare IP addresses without scopes, because the source address of a route has no scope.
bool address_equal_ip(const struct sock_addr *a, const struct sock_addr *b);

// Return why the address cannot be that of a peer, or NULL if it can.
const char *address_fault_as_peer(const struct sock_addr *address);

// Print the address without its scope: in a recording, the scope is no interface of this machine.
void address_print(const struct sock_addr *address, char text[static SOCK_ADDR_TEXT_BYTES]);
