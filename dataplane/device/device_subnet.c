// SPDX-License-Identifier: BSD-3-Clause
// Determines the network of a port from its address. It is the InfiniBand subnet prefix, or the
// address block of the interface that has a RoCE port's address.
#include "device/device_impl.h"

#include <dataplane/gid.h>

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define PREFIX_BITS 64
#define MAPPED_BITS 96 // bits before the four bytes of an IPv4 address

static uint8_t count_bits(const uint8_t *mask, size_t size) {
	uint8_t bits = 0;

	for (size_t n = 0; n < size; n++)
		bits = (uint8_t)(bits + __builtin_popcount(mask[n]));
	return bits;
}

// Return the prefix length of this address as an IPv6 length; 0 if the interface does not have it.
static uint8_t interface_prefix_bits(const struct ifaddrs *one, const union ibv_gid *gid) {
	const struct sockaddr_in6 *v6 = (const void *)one->ifa_addr;
	const struct sockaddr_in *v4 = (const void *)one->ifa_addr;

	if (one->ifa_addr == NULL || one->ifa_netmask == NULL)
		return 0;
	if (one->ifa_addr->sa_family == AF_INET && gid_is_ipv4(gid) &&
	    memcmp(&v4->sin_addr, gid->raw + 12, 4) == 0)
		return MAPPED_BITS +
		       count_bits(
			       (const uint8_t *)&(
				       (const struct sockaddr_in *)(const void *)one->ifa_netmask
			       )
				       ->sin_addr,
			       4
		       );
	if (one->ifa_addr->sa_family == AF_INET6 && !gid_is_ipv4(gid) &&
	    memcmp(&v6->sin6_addr, gid->raw, 16) == 0)
		return count_bits(
			(const uint8_t *)&(
				(const struct sockaddr_in6 *)(const void *)one->ifa_netmask
			)
				->sin6_addr,
			16
		);
	return 0;
}

struct device_subnet device_subnet_of(const struct device_port *port) {
	struct device_subnet subnet = {.kind = DEVICE_SUBNET_UNKNOWN};
	struct ifaddrs *all;

	if (port->gid_index < 0 || gid_is_zero(&port->gid))
		return subnet;
	if (port->link == DEVICE_LINK_INFINIBAND) {
		subnet.kind = DEVICE_SUBNET_INFINIBAND;
		subnet.bits = PREFIX_BITS;
	} else if (gid_scope(&port->gid) == GID_SCOPE_GLOBAL && getifaddrs(&all) == 0) {
		// Link-local addresses are the same on all networks, so they identify none.
		for (const struct ifaddrs *one = all; one != NULL && subnet.bits == 0;
		     one = one->ifa_next)
			subnet.bits = interface_prefix_bits(one, &port->gid);
		freeifaddrs(all);
		subnet.kind = subnet.bits > 0 ? DEVICE_SUBNET_IP : DEVICE_SUBNET_UNKNOWN;
	}
	if (subnet.kind == DEVICE_SUBNET_UNKNOWN)
		return subnet;
	memcpy(subnet.bytes, port->gid.raw, sizeof(subnet.bytes));
	for (uint32_t n = 0; n < sizeof(subnet.bytes); n++) {
		uint32_t left = subnet.bits > 8 * n ? subnet.bits - 8 * n : 0;

		if (left < 8)
			subnet.bytes[n] &= (uint8_t)(0xff00 >> left); // host bits
	}
	return subnet;
}

bool device_subnet_equal(const struct device_subnet *a, const struct device_subnet *b) {
	return a->kind != DEVICE_SUBNET_UNKNOWN && a->kind == b->kind && a->bits == b->bits &&
	       memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

const char *device_subnet_format(
	const struct device_subnet *subnet, char text[static DEVICE_SUBNET_TEXT_MAX + 1]
) {
	union ibv_gid gid;
	char address[GID_TEXT_MAX + 1];
	uint32_t bits = subnet->bits;

	if (subnet->kind == DEVICE_SUBNET_UNKNOWN) {
		snprintf(text, DEVICE_SUBNET_TEXT_MAX + 1, "unknown");
		return text;
	}
	memcpy(gid.raw, subnet->bytes, sizeof(gid.raw));
	if (gid_is_ipv4(&gid) && bits >= MAPPED_BITS)
		bits -= MAPPED_BITS;
	snprintf(text, DEVICE_SUBNET_TEXT_MAX + 1, "%s/%u", gid_format(&gid, address), bits);
	return text;
}
