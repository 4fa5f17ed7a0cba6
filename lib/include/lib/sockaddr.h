// SPDX-License-Identifier: BSD-3-Clause
// A socket address as one fixed value: comparable, hashable, printable, without padding.
//
// An IPv4-mapped IPv6 address (::ffff:192.0.2.1) is IPv4, wherever it comes from: one peer has one
// address, whether it was accepted by a dual-stack listener or written in a file. A scope is kept
// only where it means something (link-local addresses) and is the index of an interface of this
// machine: compared here, never sent, not part of the digest.
#pragma once

#include <lib/parse.h>

#include <assert.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

// The values are those of IP's version field, and in canonical order but for NONE, which is last.
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

// Every function here may be called from any thread; none keeps state.

// Returns 0, -EINVAL (length too short for its family) or -EAFNOSUPPORT.
int sock_addr_from_sockaddr(
	const struct sockaddr *sockaddr, socklen_t length, struct sock_addr *ret_addr
);

// Fills *ret_storage, unused bytes zero, and returns the length for bind() or connect(). IPv4 is
// AF_INET always: for a socket of AF_INET6 the caller has to choose the other family, or map.
socklen_t sock_addr_to_sockaddr(const struct sock_addr *addr, struct sockaddr_storage *ret_storage);

// "192.0.2.1:80", "[2001:db8::1]:80", "[fe80::1%eth0]:80"; the scope is the name or the index of an
// interface that exists. Numeric only, never blocks. Without a port (then brackets may be left
// away as well) default_port is taken; with SOCK_ADDR_PORT_NEEDED that is an error. Port 0 is read
// as it stands: a listener has a use for it.
// Returns 0, -EINVAL (malformed), -ERANGE (port over 65535) or -ENODEV (unknown scope interface).
#define SOCK_ADDR_PORT_NEEDED (-1)
int sock_addr_parse(
	const char *text,
	size_t length,
	int32_t default_port,
	struct parse_error *error,
	struct sock_addr *ret_addr
);

// The same for an address alone, with neither port nor brackets; the port of *ret_addr is 0.
int sock_addr_parse_host(
	const char *text, size_t length, struct parse_error *error, struct sock_addr *ret_addr
);

// As sock_addr_parse, and host names too. BLOCKS in the resolver for as long as that is configured
// to wait: never on a thread that others wait for.
//
// Of a name's addresses it takes the first usable one, in the resolver's order, those of `prefer`
// first (SOCK_ADDR_NONE: no preference). Usable is what this machine has a route to.
// Returns beside the above -ENOENT (no such name), -EAGAIN (the resolver has no answer now),
// -ENETUNREACH (no usable address), -ENOMEM, or what the system said.
int sock_addr_resolve(
	const char *text,
	size_t length,
	int32_t default_port,
	enum sock_addr_family prefer,
	struct parse_error *error,
	struct sock_addr *ret_addr
);

// The forms that sock_addr_parse and _parse_host read; a scope whose interface is gone is printed
// as its index, SOCK_ADDR_NONE as "none".
#define SOCK_ADDR_TEXT_BYTES 80
void sock_addr_format(const struct sock_addr *addr, char text[static SOCK_ADDR_TEXT_BYTES]);
void sock_addr_format_host(const struct sock_addr *addr, char text[static SOCK_ADDR_TEXT_BYTES]);

// Canonical order: IPv4 before IPv6 before NONE, then the address bytes, then the port (both as on
// the wire), then, meaningful on this machine only, the scope. Negative, 0 or positive.
int sock_addr_compare(const struct sock_addr *a, const struct sock_addr *b);
bool sock_addr_equal(const struct sock_addr *a, const struct sock_addr *b);

// XXH3 over family, address and port in one canonical encoding: the same on every machine, and the
// same for two addresses that differ in scope only.
uint64_t sock_addr_digest(const struct sock_addr *addr);

bool sock_addr_is_loopback(const struct sock_addr *addr);   // 127.0.0.0/8, ::1
bool sock_addr_is_link_local(const struct sock_addr *addr); // 169.254.0.0/16, fe80::/10
bool sock_addr_is_any(const struct sock_addr *addr);	    // 0.0.0.0, ::

// True if a and b agree in every bit that the netmask has set, are of one family, and of one
// scope: equal link-local prefixes on two interfaces are two networks. Ports do not count.
// A NULL netmask, which the kernel gives for some tunnels, or one of another family matches
// nothing.
bool sock_addr_same_subnet(
	const struct sock_addr *a, const struct sock_addr *b, const struct sock_addr *netmask
);

// The same for a netmask of `bits` leading ones; false if the family has not so many.
bool sock_addr_same_prefix(const struct sock_addr *a, const struct sock_addr *b, uint32_t bits);
