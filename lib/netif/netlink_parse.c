// SPDX-License-Identifier: BSD-3-Clause
// Parses netlink messages. All input is untrusted, because a recording may hold anything. So
// headers are copied before use, and each length is checked against the enclosing data.
#include "address.h"

#include <lib/netif/netlink.h>

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

// The two high bits of a type are encoding flags.
#define ATTR_TYPE_MASK 0x3fffU
// IFF_LOWER_UP of <linux/if.h>, which conflicts with <net/if.h>.
#define LINK_LOWER_UP 0x10000U

// Unread attributes or messages.
struct span {
	const uint8_t *at;
	size_t size;
};

struct attr {
	uint16_t type;
	struct span value;
};

// Cut `size` bytes and their padding off the front; the last entry may have no padding.
static struct span span_cut(struct span *span, size_t header_size, size_t size) {
	struct span cut = {span->at + header_size, size - header_size};
	size_t padded = (size + 3) & ~(size_t)3;

	if (padded > span->size)
		padded = span->size;
	span->at += padded;
	span->size -= padded;
	return cut;
}

// Returns 1 and the next attribute, 0 at the end, or -EBADMSG.
static int attr_next(struct span *span, struct attr *ret_attr) {
	struct rtattr header;

	if (span->size == 0)
		return 0;
	if (span->size < sizeof(header))
		return -EBADMSG;
	memcpy(&header, span->at, sizeof(header));
	if (header.rta_len < sizeof(header) || header.rta_len > span->size)
		return -EBADMSG;
	ret_attr->type = header.rta_type & ATTR_TYPE_MASK;
	ret_attr->value = span_cut(span, sizeof(header), header.rta_len);
	return 1;
}

static int read_u32(struct span value, uint32_t *ret_number) {
	if (value.size != sizeof(*ret_number))
		return -EBADMSG;
	memcpy(ret_number, value.at, sizeof(*ret_number));
	return 0;
}

// Copy a text; one that is too long cannot come from the kernel and is an error.
static int read_text(struct span value, char *text, size_t text_size) {
	size_t length = strnlen((const char *)value.at, value.size);

	if (length == value.size || length >= text_size)
		return -EBADMSG;
	memcpy(text, value.at, length + 1);
	return 0;
}

// Like read_text(), but truncate: a kind longer than all known kinds is unknown anyway.
static int read_kind(struct span value, char *text) {
	size_t length = strnlen((const char *)value.at, value.size);

	if (length >= NETIF_KIND_BYTES)
		length = NETIF_KIND_BYTES - 1;
	memcpy(text, value.at, length);
	text[length] = '\0';
	return 0;
}

static int parse_link_info(struct span info, struct netif_link *link) {
	struct attr attr;
	int more;

	while ((more = attr_next(&info, &attr)) > 0) {
		if (attr.type == IFLA_INFO_KIND)
			read_kind(attr.value, link->kind);
		else if (attr.type == IFLA_INFO_SLAVE_KIND)
			read_kind(attr.value, link->port_kind);
	}
	return more;
}

static int parse_link(struct span body, struct netif_table *table) {
	struct netif_link link = {0};
	struct ifinfomsg header;
	struct attr attr;
	int more;
	int err;

	if (body.size < sizeof(header))
		return -EBADMSG;
	memcpy(&header, body.at, sizeof(header));
	span_cut(&body, 0, sizeof(header));
	link.index = (uint32_t)header.ifi_index;
	link.flags = header.ifi_flags;
	link.hardware_type = header.ifi_type;
	link.has_carrier =
		(header.ifi_flags & LINK_LOWER_UP) != 0; // kernels before 3.9 send no IFLA_CARRIER
	while ((more = attr_next(&body, &attr)) > 0) {
		err = 0;
		switch (attr.type) {
		case IFLA_IFNAME:
			err = read_text(attr.value, link.name, sizeof(link.name));
			break;
		case IFLA_MTU:
			err = read_u32(attr.value, &link.mtu_bytes);
			break;
		case IFLA_LINK:
			err = read_u32(attr.value, &link.lower_index);
			break;
		case IFLA_MASTER:
			err = read_u32(attr.value, &link.master_index);
			break;
		case IFLA_CARRIER:
			if (attr.value.size != 1)
				return -EBADMSG;
			link.has_carrier = attr.value.at[0] != 0;
			break;
		case IFLA_LINKINFO:
			err = parse_link_info(attr.value, &link);
			break;
		case IFLA_PARENT_DEV_BUS_NAME:
			err = read_kind(attr.value, link.bus);
			break;
		}
		if (err != 0)
			return err;
	}
	if (more < 0)
		return more;
	if (link.index == 0 || link.name[0] == '\0')
		return -EBADMSG;
	return netif_table_add_link(table, &link);
}

static int parse_address(struct span body, struct netif_table *table) {
	struct netif_address address = {0};
	struct span local = {0};
	struct span remote = {0};
	struct ifaddrmsg header;
	struct attr attr;
	int more;
	int err = 0;

	if (body.size < sizeof(header))
		return -EBADMSG;
	memcpy(&header, body.at, sizeof(header));
	span_cut(&body, 0, sizeof(header));
	if (header.ifa_family != AF_INET && header.ifa_family != AF_INET6)
		return 0;
	address.prefix_bits = header.ifa_prefixlen;
	address.scope = header.ifa_scope;
	address.flags = header.ifa_flags;
	while (err == 0 && (more = attr_next(&body, &attr)) != 0) {
		if (more < 0)
			return more;
		if (attr.type == IFA_LOCAL)
			local = attr.value;
		else if (attr.type == IFA_ADDRESS)
			remote = attr.value;
		else if (attr.type == IFA_LABEL)
			err = read_text(attr.value, address.label, sizeof(address.label));
		else if (attr.type == IFA_FLAGS)
			err = read_u32(attr.value, &address.flags);
	}
	if (err != 0)
		return err;
	// On a point-to-point link, IFA_LOCAL is our address and IFA_ADDRESS that of the peer.
	err = address_from_bytes(
		header.ifa_family, local.at != NULL ? local.at : remote.at,
		local.at != NULL ? local.size : remote.size, header.ifa_index, &address.address
	);
	if (err != 0)
		return err;
	if (header.ifa_prefixlen > (header.ifa_family == AF_INET ? 32 : 128))
		return -EBADMSG;
	return netif_table_add_address(table, header.ifa_index, &address);
}

// Use the first of several next hops; all have equal cost.
static int parse_multipath(int family, struct span hops, struct netif_route *route) {
	struct rtnexthop header;
	struct attr attr;
	int more;

	if (hops.size < sizeof(header))
		return -EBADMSG;
	memcpy(&header, hops.at, sizeof(header));
	if (header.rtnh_len < sizeof(header) || header.rtnh_len > hops.size)
		return -EBADMSG;
	route->link_index = (uint32_t)header.rtnh_ifindex;
	hops = span_cut(&hops, sizeof(header), header.rtnh_len);
	while ((more = attr_next(&hops, &attr)) > 0) {
		if (attr.type == RTA_GATEWAY)
			more = address_from_bytes(
				family, attr.value.at, attr.value.size, 0, &route->gateway
			);
		if (more < 0)
			return more;
	}
	return more;
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

static int parse_route(struct span body, const struct sock_addr *peer, struct netif_table *table) {
	struct netif_route route = {0};
	struct span value;
	uint32_t table_id;
	struct rtmsg header;
	struct attr attr;
	int more, family;
	int err = 0;

	if (body.size < sizeof(header))
		return -EBADMSG;
	memcpy(&header, body.at, sizeof(header));
	span_cut(&body, 0, sizeof(header));
	family = header.rtm_family;
	if (family != AF_INET && family != AF_INET6)
		return 0;
	table_id = header.rtm_table;
	route.family = family == AF_INET ? SOCK_ADDR_V4 : SOCK_ADDR_V6;
	while ((more = attr_next(&body, &attr)) > 0) {
		value = attr.value;
		if (attr.type == RTA_TABLE)
			err = read_u32(value, &table_id);
		else if (attr.type == RTA_OIF)
			err = read_u32(value, &route.link_index);
		else if (attr.type == RTA_PRIORITY)
			err = read_u32(value, &route.metric);
		else if (attr.type == RTA_PREFSRC)
			err = address_from_bytes(family, value.at, value.size, 0, &route.source);
		else if (attr.type == RTA_GATEWAY)
			err = address_from_bytes(family, value.at, value.size, 0, &route.gateway);
		else if (attr.type == RTA_MULTIPATH)
			err = parse_multipath(family, value, &route);
		if (err != 0)
			return err;
	}
	if (more < 0)
		return more;
	route.error = route_error(header.rtm_type);
	if (peer != NULL) {
		route.peer = *peer;
		return netif_table_add_route(table, &route);
	}
	if (header.rtm_dst_len != 0 || table_id != RT_TABLE_MAIN || route.error != 0 ||
	    route.link_index == 0)
		return 0;
	return netif_table_add_default(table, &route);
}

static int parse_message(
	uint16_t type, struct span body, const struct sock_addr *peer, struct netif_table *table
) {
	int32_t error;

	switch (type) {
	case RTM_NEWLINK:
		return parse_link(body, table);
	case RTM_NEWADDR:
		return parse_address(body, table);
	case RTM_NEWROUTE:
		return parse_route(body, peer, table);
	case NLMSG_ERROR:
	case NLMSG_DONE:
		// Both start with 0 or a negative errno.
		if (body.size < sizeof(error))
			return -EBADMSG;
		memcpy(&error, body.at, sizeof(error));
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
	struct span span = {bytes, size};
	bool done = false;

	while (span.size > 0) {
		struct nlmsghdr header;
		struct span body;
		int err;

		if (span.size < sizeof(header))
			return -EBADMSG;
		memcpy(&header, span.at, sizeof(header));
		if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > span.size)
			return -EBADMSG;
		body = span_cut(&span, sizeof(header), header.nlmsg_len);
		if ((header.nlmsg_flags & NLM_F_DUMP_INTR) != 0)
			return -EINTR;
		err = parse_message(header.nlmsg_type, body, peer, table);
		if (err != 0)
			return err;
		if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR ||
		    (peer != NULL && header.nlmsg_type == RTM_NEWROUTE))
			done = true;
	}
	if (done)
		*ret_done = true;
	return 0;
}
