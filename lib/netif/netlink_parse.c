// SPDX-License-Identifier: BSD-3-Clause
// Parses netlink messages by libmnl. All input is untrusted, because a recording may hold anything.
// libmnl stops silently at a malformed attribute and does not compare lengths of values. This file
// checks both.
#include "address.h"

#include <lib/netif/netlink.h>

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

// IFF_LOWER_UP of <linux/if.h>, which conflicts with <net/if.h>.
#define LINK_LOWER_UP 0x10000U
#define INFO_MAX IFLA_INFO_SLAVE_KIND // the last one that is read

// Store each attribute at the index of its type. Returns false if an attribute is malformed.
static bool
attrs_parse(const void *bytes, size_t size, const struct nlattr **attrs, uint16_t type_max) {
	const char *end = (const char *)bytes + size;
	const struct nlattr *attr;

	for (attr = bytes; mnl_attr_ok(attr, (int)(end - (const char *)attr));
	     attr = mnl_attr_next(attr)) {
		if (mnl_attr_get_type(attr) <= type_max)
			attrs[mnl_attr_get_type(attr)] = attr;
	}
	return (const char *)attr >= end;
}

static bool message_parse(
	const struct nlmsghdr *message,
	size_t header_size,
	const struct nlattr **attrs,
	uint16_t type_max
) {
	size_t size = mnl_nlmsg_get_payload_len(message);

	if (size < header_size)
		return false;
	return attrs_parse(
		mnl_nlmsg_get_payload_offset(message, header_size), size - header_size, attrs,
		type_max
	);
}

// The readers below keep the value of an absent attribute, and return false for a malformed one.
static bool read_u32(const struct nlattr *attr, uint32_t *number) {
	if (attr == NULL)
		return true;
	if (mnl_attr_get_payload_len(attr) != sizeof(*number))
		return false;
	*number = mnl_attr_get_u32(attr);
	return true;
}

// Copy a text; one that is too long cannot come from the kernel and is an error.
static bool read_text(const struct nlattr *attr, char *text, size_t text_size) {
	size_t length;

	if (attr == NULL)
		return true;
	length = strnlen(mnl_attr_get_str(attr), mnl_attr_get_payload_len(attr));
	if (length == mnl_attr_get_payload_len(attr) || length >= text_size)
		return false;
	memcpy(text, mnl_attr_get_str(attr), length + 1);
	return true;
}

// Like read_text(), but truncate: a kind longer than all known kinds is unknown anyway.
static void read_kind(const struct nlattr *attr, char text[NETIF_KIND_BYTES]) {
	if (attr != NULL)
		snprintf(
			text, NETIF_KIND_BYTES, "%.*s", (int)mnl_attr_get_payload_len(attr),
			mnl_attr_get_str(attr)
		);
}

static bool
read_address(const struct nlattr *attr, int family, uint32_t scope, struct sock_addr *address) {
	if (attr == NULL)
		return true;
	return address_from_bytes(
		       family, mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr), scope,
		       address
	       ) == 0;
}

static int parse_link(const struct nlmsghdr *message, struct netif_table *table) {
	const struct ifinfomsg *header = mnl_nlmsg_get_payload(message);
	const struct nlattr *infos[INFO_MAX + 1] = {0};
	const struct nlattr *attrs[IFLA_MAX + 1] = {0};
	const struct nlattr *info, *carrier;
	struct netif_link link = {0};

	if (!message_parse(message, sizeof(*header), attrs, IFLA_MAX))
		return -EBADMSG;
	link.index = (uint32_t)header->ifi_index;
	link.flags = header->ifi_flags;
	link.hardware_type = header->ifi_type;
	if (!read_text(attrs[IFLA_IFNAME], link.name, sizeof(link.name)) ||
	    !read_u32(attrs[IFLA_MTU], &link.mtu_bytes) ||
	    !read_u32(attrs[IFLA_LINK], &link.lower_index) ||
	    !read_u32(attrs[IFLA_MASTER], &link.master_index) || link.index == 0 ||
	    link.name[0] == '\0')
		return -EBADMSG;
	carrier = attrs[IFLA_CARRIER]; // kernels before 3.9 send none
	if (carrier != NULL && mnl_attr_get_payload_len(carrier) != 1)
		return -EBADMSG;
	link.has_carrier = carrier != NULL ? mnl_attr_get_u8(carrier) != 0
					   : (header->ifi_flags & LINK_LOWER_UP) != 0;
	info = attrs[IFLA_LINKINFO];
	if (info != NULL &&
	    !attrs_parse(
		    mnl_attr_get_payload(info), mnl_attr_get_payload_len(info), infos, INFO_MAX
	    ))
		return -EBADMSG;
	read_kind(infos[IFLA_INFO_KIND], link.kind);
	read_kind(infos[IFLA_INFO_SLAVE_KIND], link.port_kind);
	read_kind(attrs[IFLA_PARENT_DEV_BUS_NAME], link.bus);
	return netif_table_add_link(table, &link);
}

static int parse_address(const struct nlmsghdr *message, struct netif_table *table) {
	const struct ifaddrmsg *header = mnl_nlmsg_get_payload(message);
	const struct nlattr *attrs[IFA_MAX + 1] = {0};
	struct netif_address address = {0};
	const struct nlattr *own;

	if (!message_parse(message, sizeof(*header), attrs, IFA_MAX))
		return -EBADMSG;
	if (header->ifa_family != AF_INET && header->ifa_family != AF_INET6)
		return 0;
	address.prefix_bits = header->ifa_prefixlen;
	address.scope = header->ifa_scope;
	address.flags = header->ifa_flags;
	// On a point-to-point link, IFA_LOCAL is our address and IFA_ADDRESS that of the peer.
	own = attrs[IFA_LOCAL] != NULL ? attrs[IFA_LOCAL] : attrs[IFA_ADDRESS];
	if (own == NULL ||
	    !read_address(own, header->ifa_family, header->ifa_index, &address.address) ||
	    !read_text(attrs[IFA_LABEL], address.label, sizeof(address.label)) ||
	    !read_u32(attrs[IFA_FLAGS], &address.flags) ||
	    header->ifa_prefixlen > (header->ifa_family == AF_INET ? 32 : 128))
		return -EBADMSG;
	return netif_table_add_address(table, header->ifa_index, &address);
}

// Use the first of several next hops; all have equal cost.
static bool read_multipath(const struct nlattr *hops, int family, struct netif_route *route) {
	const struct nlattr *attrs[RTA_GATEWAY + 1] = {0};
	const struct rtnexthop *hop;
	size_t size;

	if (hops == NULL)
		return true;
	hop = mnl_attr_get_payload(hops);
	size = mnl_attr_get_payload_len(hops);
	if (size < sizeof(*hop) || hop->rtnh_len < sizeof(*hop) || hop->rtnh_len > size ||
	    !attrs_parse(hop + 1, hop->rtnh_len - sizeof(*hop), attrs, RTA_GATEWAY))
		return false;
	route->link_index = (uint32_t)hop->rtnh_ifindex;
	return read_address(attrs[RTA_GATEWAY], family, 0, &route->gateway);
}

static int route_error(uint8_t type) {
	switch (type) {
	case RTN_UNICAST:
	case RTN_LOCAL:
		return 0;
	case RTN_PROHIBIT:
		return -EACCES;
	case RTN_BLACKHOLE:
		return -EINVAL;
	default:
		return -EHOSTUNREACH;
	}
}

static int parse_route(
	const struct nlmsghdr *message, const struct sock_addr *peer, struct netif_table *table
) {
	const struct rtmsg *header = mnl_nlmsg_get_payload(message);
	const struct nlattr *attrs[RTA_MAX + 1] = {0};
	struct netif_route route = {0};
	uint32_t table_id;
	int family;

	if (!message_parse(message, sizeof(*header), attrs, RTA_MAX))
		return -EBADMSG;
	family = header->rtm_family;
	if (family != AF_INET && family != AF_INET6)
		return 0;
	table_id = header->rtm_table;
	route.family = family == AF_INET ? SOCK_ADDR_V4 : SOCK_ADDR_V6;
	if (!read_u32(attrs[RTA_TABLE], &table_id) ||
	    !read_u32(attrs[RTA_OIF], &route.link_index) ||
	    !read_u32(attrs[RTA_PRIORITY], &route.metric) ||
	    !read_address(attrs[RTA_PREFSRC], family, 0, &route.source) ||
	    !read_address(attrs[RTA_GATEWAY], family, 0, &route.gateway) ||
	    !read_multipath(attrs[RTA_MULTIPATH], family, &route))
		return -EBADMSG;
	route.error = route_error(header->rtm_type);
	if (peer != NULL) {
		route.peer = *peer;
		return netif_table_add_route(table, &route);
	}
	if (header->rtm_dst_len != 0 || table_id != RT_TABLE_MAIN || route.error != 0 ||
	    route.link_index == 0)
		return 0;
	return netif_table_add_default(table, &route);
}

static int parse_message(
	const struct nlmsghdr *message, const struct sock_addr *peer, struct netif_table *table
) {
	int32_t error;

	switch (message->nlmsg_type) {
	case RTM_NEWLINK:
		return parse_link(message, table);
	case RTM_NEWADDR:
		return parse_address(message, table);
	case RTM_NEWROUTE:
		return parse_route(message, peer, table);
	case NLMSG_ERROR:
	case NLMSG_DONE:
		// Both start with 0 or a negative errno.
		if (mnl_nlmsg_get_payload_len(message) < sizeof(error))
			return -EBADMSG;
		memcpy(&error, mnl_nlmsg_get_payload(message), sizeof(error));
		return error > 0 || error == INT32_MIN ? -EBADMSG : error;
	default:
		return 0;
	}
}

int netif_netlink_parse(
	const void *bytes,
	size_t size,
	const struct sock_addr *peer,
	struct netif_table *table,
	bool *ret_done
) {
	const struct nlmsghdr *message = bytes;
	int left = (int)size;
	bool done = false;
	int err;

	if (size > INT_MAX)
		return -EBADMSG;
	for (; left > 0; message = mnl_nlmsg_next(message, &left)) {
		if (!netlink_message_is_whole(message, (size_t)left))
			return -EBADMSG;
		if ((message->nlmsg_flags & NLM_F_DUMP_INTR) != 0)
			return -EINTR;
		err = parse_message(message, peer, table);
		if (err != 0)
			return err;
		if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR ||
		    (peer != NULL && message->nlmsg_type == RTM_NEWROUTE))
			done = true;
	}
	if (done)
		*ret_done = true;
	return 0;
}
