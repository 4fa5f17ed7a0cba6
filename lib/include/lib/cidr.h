// SPDX-License-Identifier: BSD-3-Clause
// Address blocks (CIDR): 10.0.0.0/8, 2001:db8::/32.
#pragma once

#include <lib/sockaddr.h>

struct cidr {
	uint8_t address[16]; // as in struct sock_addr; bits beyond the prefix are zero
	uint8_t family;	     // SOCK_ADDR_V4 or SOCK_ADDR_V6
	uint8_t bits;	     // length of the prefix: 0 to 32 or 128
};

// Parse an address block. The prefix length is required, and bits beyond it must be zero.
// 10.1.2.3/8 is more likely a mistake than intended, so the error names the block that contains the
// address. A block of IPv4-mapped addresses (::ffff:10.0.0.0/104) becomes the IPv4 block. Scopes
// are not accepted. Any thread.
// Returns 0, -EINVAL (malformed, or bits set beyond the prefix) or -ERANGE (prefix too long).
int cidr_parse(const char *text, size_t length, struct parse_error *error, struct cidr *ret_cidr);

// Format a block in the form that cidr_parse() reads.
#define CIDR_TEXT_BYTES 52
void cidr_format(const struct cidr *cidr, char text[static CIDR_TEXT_BYTES]);

// Return true if the address lies in the block. Port and scope are ignored.
bool cidr_contains(const struct cidr *cidr, const struct sock_addr *addr);
