// SPDX-License-Identifier: BSD-3-Clause
// Socket addresses: comparison, digest, classification.
#include <lib/must.h>
#include <lib/sockaddr.h>

#include <xxhash.h>

#include <errno.h>
#include <string.h>

static void sock_addr_set_v4(struct sock_addr *addr, const void *bytes) {
	addr->family = SOCK_ADDR_V4;
	memcpy(addr->address, bytes, sizeof(struct in_addr));
}

static void
sock_addr_set_v6(struct sock_addr *addr, const struct in6_addr *bytes, uint32_t scope_id) {
	if (IN6_IS_ADDR_V4MAPPED(bytes)) {
		sock_addr_set_v4(addr, bytes->s6_addr + 12);
		return;
	}
	addr->family = SOCK_ADDR_V6;
	memcpy(addr->address, bytes, sizeof(*bytes));
	if (IN6_IS_ADDR_LINKLOCAL(bytes) || IN6_IS_ADDR_MC_LINKLOCAL(bytes))
		addr->scope_id = scope_id;
}

int sock_addr_from_sockaddr(
	const struct sockaddr *sockaddr, socklen_t length, struct sock_addr *ret_addr
) {
	struct sock_addr addr = {0};
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	// Copy before use: addresses from accept() or netlink may be unaligned.
	if (length < sizeof(sockaddr->sa_family))
		return -EINVAL;
	memcpy(&in.sin_family, &sockaddr->sa_family, sizeof(in.sin_family));
	switch (in.sin_family) {
	case AF_INET:
		if (length < sizeof(in))
			return -EINVAL;
		memcpy(&in, sockaddr, sizeof(in));
		sock_addr_set_v4(&addr, &in.sin_addr);
		addr.port = ntohs(in.sin_port);
		break;
	case AF_INET6:
		if (length < sizeof(in6))
			return -EINVAL;
		memcpy(&in6, sockaddr, sizeof(in6));
		sock_addr_set_v6(&addr, &in6.sin6_addr, in6.sin6_scope_id);
		addr.port = ntohs(in6.sin6_port);
		break;
	default:
		return -EAFNOSUPPORT;
	}
	*ret_addr = addr;
	return 0;
}

socklen_t
sock_addr_to_sockaddr(const struct sock_addr *addr, struct sockaddr_storage *ret_storage) {
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct sockaddr_in in = {.sin_family = AF_INET};

	must(addr->family == SOCK_ADDR_V4 || addr->family == SOCK_ADDR_V6);
	memset(ret_storage, 0, sizeof(*ret_storage));
	if (addr->family == SOCK_ADDR_V4) {
		in.sin_port = htons(addr->port);
		memcpy(&in.sin_addr, addr->address, sizeof(in.sin_addr));
		memcpy(ret_storage, &in, sizeof(in));
		return sizeof(in);
	}
	in6.sin6_port = htons(addr->port);
	in6.sin6_scope_id = addr->scope_id;
	memcpy(&in6.sin6_addr, addr->address, sizeof(in6.sin6_addr));
	memcpy(ret_storage, &in6, sizeof(in6));
	return sizeof(in6);
}

static int compare_u32(uint32_t a, uint32_t b) {
	return (a > b) - (a < b);
}

int sock_addr_compare(const struct sock_addr *a, const struct sock_addr *b) {
	int order;

	if (a->family != b->family) {
		if (a->family == SOCK_ADDR_NONE || b->family == SOCK_ADDR_NONE)
			return a->family == SOCK_ADDR_NONE ? 1 : -1;
		return compare_u32(a->family, b->family);
	}
	order = memcmp(a->address, b->address, sizeof(a->address));
	if (order == 0)
		order = compare_u32(a->port, b->port);
	if (order == 0)
		order = compare_u32(a->scope_id, b->scope_id);
	return order;
}

bool sock_addr_equal(const struct sock_addr *a, const struct sock_addr *b) {
	return sock_addr_compare(a, b) == 0;
}

struct sock_addr sock_addr_ip_only(const struct sock_addr *addr) {
	struct sock_addr ip = *addr;

	ip.port = 0;
	ip.scope_id = 0;
	return ip;
}

uint64_t sock_addr_digest(const struct sock_addr *addr) {
	uint8_t encoding[1 + 16 + 2];

	encoding[0] = addr->family;
	memcpy(encoding + 1, addr->address, sizeof(addr->address));
	encoding[17] = (uint8_t)(addr->port >> 8);
	encoding[18] = (uint8_t)addr->port;
	return XXH3_64bits(encoding, sizeof(encoding));
}

bool sock_addr_is_loopback(const struct sock_addr *addr) {
	static const struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;

	if (addr->family == SOCK_ADDR_V4)
		return addr->address[0] == 127;
	return addr->family == SOCK_ADDR_V6 &&
	       memcmp(addr->address, &loopback, sizeof(loopback)) == 0;
}

bool sock_addr_is_link_local(const struct sock_addr *addr) {
	if (addr->family == SOCK_ADDR_V4)
		return addr->address[0] == 169 && addr->address[1] == 254;
	return addr->family == SOCK_ADDR_V6 && addr->address[0] == 0xfe &&
	       (addr->address[1] & 0xc0) == 0x80;
}

bool sock_addr_is_any(const struct sock_addr *addr) {
	static const uint8_t any[16];

	return addr->family != SOCK_ADDR_NONE && memcmp(addr->address, any, sizeof(any)) == 0;
}

bool sock_addr_same_subnet(
	const struct sock_addr *a, const struct sock_addr *b, const struct sock_addr *netmask
) {
	if (netmask == NULL || a->family == SOCK_ADDR_NONE)
		return false;
	if (a->family != b->family || a->family != netmask->family || a->scope_id != b->scope_id)
		return false;
	for (size_t i = 0; i < sizeof(a->address); i++) {
		if (((a->address[i] ^ b->address[i]) & netmask->address[i]) != 0)
			return false;
	}
	return true;
}

bool sock_addr_same_prefix(const struct sock_addr *a, const struct sock_addr *b, uint32_t bits) {
	struct sock_addr netmask = {.family = a->family};

	if (bits > (a->family == SOCK_ADDR_V4 ? 32U : 128U))
		return false;
	for (uint32_t bit = 0; bit < bits; bit++)
		netmask.address[bit / 8] |= (uint8_t)(0x80U >> bit % 8);
	return sock_addr_same_subnet(a, b, &netmask);
}
