// SPDX-License-Identifier: BSD-3-Clause
// A socket address as one value of fixed size: comparable, hashable, printable, without padding.
//
// An IPv4-mapped IPv6 address (::ffff:192.0.2.1) becomes IPv4. So a peer has the same address from
// a dual-stack listener and from a file. A scope is kept only for link-local addresses. It is an
// interface index of this machine: compared here, but never sent and not part of the digest.
#pragma once

#include <lib/parse.h>

#include <assert.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

// The values of IP's version field. They are in canonical order, except that NONE sorts last.
enum sock_addr_family {
	SOCK_ADDR_NONE = 0, // all other fields are zero as well
	SOCK_ADDR_V4 = 4,
	SOCK_ADDR_V6 = 6,
};

struct sock_addr {
	uint8_t address[16]; // network order; IPv4 fills the first four, the rest is zero
	uint32_t scope_id;   // interface index of a link-local address, else 0
	uint16_t port;	     // host order
	uint8_t family;	     // enum sock_addr_family
	uint8_t zero;
};
static_assert(sizeof(struct sock_addr) == 24, "compared and copied as bytes: no padding");

// All functions may be called from any thread; none keeps state.
// Convert from a struct sockaddr. Returns 0, -EINVAL (too short for its family) or -EAFNOSUPPORT.

// Returns 0, -EINVAL (length too short for its family) or -EAFNOSUPPORT.
int sock_addr_from_sockaddr(
	const struct sockaddr *sockaddr, socklen_t length, struct sock_addr *ret_addr
);

// Fill *ret_storage, with unused bytes zero. Returns the length for bind() or connect(). IPv4
// always becomes AF_INET; a caller with an AF_INET6 socket must map the address.
socklen_t sock_addr_to_sockaddr(const struct sock_addr *addr, struct sockaddr_storage *ret_storage);

// Parse an endpoint: "192.0.2.1:80", "[2001:db8::1]:80", "[fe80::1%eth0]:80". The scope is the name
// or index of an existing interface. Numeric only, never blocks. Without a port, default_port is
// used, and the brackets are optional. With SOCK_ADDR_PORT_NEEDED a missing port is an error. Port
// 0 is accepted, since listeners use it.
// Returns 0, -EINVAL (malformed), -ERANGE (port over 65535) or -ENODEV (unknown scope interface).
#define SOCK_ADDR_PORT_NEEDED (-1)
int sock_addr_parse(
	const char *text,
	size_t length,
	int32_t default_port,
	struct parse_error *error,
	struct sock_addr *ret_addr
);

// Parse an address without port and brackets. The port of *ret_addr is 0. Errors: see
// sock_addr_parse().
int sock_addr_parse_host(
	const char *text, size_t length, struct parse_error *error, struct sock_addr *ret_addr
);

// Parse an endpoint like sock_addr_parse(), or resolve a host name. BLOCKS in the resolver for its
// configured time, so never call it on a thread for which others wait.
//
// The result is the first usable address in the resolver's order, with those of family `prefer`
// first (SOCK_ADDR_NONE: no preference). An address is usable if this machine has a route to it.
// Returns the errors of sock_addr_parse(), -ENOENT (no such name), -EAGAIN (the resolver has no
// answer now), -ENETUNREACH (no usable address), -ENOMEM, or the system's error.
int sock_addr_resolve(
	const char *text,
	size_t length,
	int32_t default_port,
	enum sock_addr_family prefer,
	struct parse_error *error,
	struct sock_addr *ret_addr
);

// Format an address as sock_addr_parse() and sock_addr_parse_host() read it. A scope without
// interface is printed as its index, SOCK_ADDR_NONE as "none".
#define SOCK_ADDR_TEXT_BYTES 80
void sock_addr_format(const struct sock_addr *addr, char text[static SOCK_ADDR_TEXT_BYTES]);
void sock_addr_format_host(const struct sock_addr *addr, char text[static SOCK_ADDR_TEXT_BYTES]);

// Compare two addresses in canonical order: IPv4 before IPv6 before NONE, then the address bytes,
// then the port, both in network order. The scope comes last; it has a meaning on this machine
// only. Returns a negative value, 0 or a positive value.
int sock_addr_compare(const struct sock_addr *a, const struct sock_addr *b);
bool sock_addr_equal(const struct sock_addr *a, const struct sock_addr *b);

// Return the address without port and scope, to compare hosts.
struct sock_addr sock_addr_ip_only(const struct sock_addr *addr);

// Return XXH3 over family, address and port in a canonical encoding. The digest is the same on
// every machine and independent of the scope.
uint64_t sock_addr_digest(const struct sock_addr *addr);

bool sock_addr_is_loopback(const struct sock_addr *addr);   // 127.0.0.0/8, ::1
bool sock_addr_is_link_local(const struct sock_addr *addr); // 169.254.0.0/16, fe80::/10
bool sock_addr_is_any(const struct sock_addr *addr);	    // 0.0.0.0, ::

// Return true if a and b have the same family and scope, and agree in every bit of the netmask.
// Equal link-local prefixes on two interfaces are two networks. Ports are ignored. A NULL netmask,
// which the kernel returns for some tunnels, matches nothing. Neither does a netmask of another
// family.
bool sock_addr_same_subnet(
	const struct sock_addr *a, const struct sock_addr *b, const struct sock_addr *netmask
);

// Like sock_addr_same_subnet(), for a netmask of `bits` leading ones. Returns false if the family
// has fewer bits.
bool sock_addr_same_prefix(const struct sock_addr *a, const struct sock_addr *b, uint32_t bits);
