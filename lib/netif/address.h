// SPDX-License-Identifier: BSD-3-Clause
// IP addresses as netlink tells them; private to lib/netif.
#pragma once

#include <lib/netif/table.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// family is AF_INET or AF_INET6; scope_index is kept for a link-local IPv6 address only, as
// getifaddrs(3) does. -EBADMSG when size is not that of the family.
int address_from_bytes(
	int family,
	const uint8_t *bytes,
	size_t size,
	uint32_t scope_index,
	struct sock_addr *ret_address
);

uint32_t address_bits(const struct sock_addr *address);	 // 32 or 128
uint32_t address_bytes(const struct sock_addr *address); // 4 or 16

// The same IP address, whatever the scopes: a route's source address has none.
bool address_equal_ip(const struct sock_addr *a, const struct sock_addr *b);

// What is wrong with it as the address of a node to be reached, or NULL.
const char *address_fault_as_peer(const struct sock_addr *address);

// Without the scope, which on a recording is not an interface of this machine.
void address_print(const struct sock_addr *address, char text[static SOCK_ADDR_TEXT_BYTES]);
