// SPDX-License-Identifier: BSD-3-Clause
// Checks the endpoint of a peer and computes the route to it.
#include "device/device_impl.h"

#include <dataplane/gid.h>

#include <errno.h>
#include <string.h>

#define LID_UNICAST_MAX 0xbfff
#define NUMBER_MAX 0xffffffU // 24 bits
#define QUEUE_NUMBER_MIN 2   // 0 and 1 are for subnet management
#define HOPS_MAX 255

// Reject values that no device can have.
static int check_values(const struct device_endpoint *theirs, char *reason) {
	bool has_gid = !gid_is_zero(&theirs->gid);
	char text[GID_TEXT_MAX + 1];

	if (theirs->link > DEVICE_LINK_ETHERNET)
		return device_format_reason(reason, -EBADMSG, "unknown link type %u", theirs->link);
	if (device_mtu_code(theirs->mtu) == 0)
		return device_format_reason(
			reason, -EBADMSG, "mtu %u is not 256, 512, 1024, 2048 or 4096", theirs->mtu
		);
	if (theirs->psn > NUMBER_MAX)
		return device_format_reason(
			reason, -EBADMSG, "psn 0x%x does not fit in 24 bits", theirs->psn
		);
	// The highest number is for multicast.
	if (theirs->queue_number < QUEUE_NUMBER_MIN || theirs->queue_number >= NUMBER_MAX)
		return device_format_reason(
			reason, -EBADMSG, "queue pair number 0x%x is reserved or invalid",
			theirs->queue_number
		);
	if (theirs->pkey == DEVICE_PKEY_FULL)
		return device_format_reason(
			reason, -EBADMSG, "P_Key 0x8000 belongs to no partition"
		);
	if (theirs->reads_in_max == 0 || theirs->reads_out_max == 0)
		return device_format_reason(
			reason, -EBADMSG, "no RDMA reads possible: limit in %u, out %u",
			theirs->reads_in_max, theirs->reads_out_max
		);

	if (theirs->link == DEVICE_LINK_INFINIBAND && theirs->lid > LID_UNICAST_MAX)
		return device_format_reason(reason, -EBADMSG, "lid 0x%x is multicast", theirs->lid);
	if (theirs->link == DEVICE_LINK_INFINIBAND && theirs->lid == 0 && !has_gid)
		return device_format_reason(reason, -EBADMSG, "the peer has neither LID nor GID");
	if (theirs->link == DEVICE_LINK_ETHERNET && !has_gid)
		return device_format_reason(reason, -EBADMSG, "the GID is zero");
	if (has_gid && gid_scope(&theirs->gid) == GID_SCOPE_NONE)
		return device_format_reason(
			reason, -EBADMSG, "GID %s is not a unicast address",
			gid_format(&theirs->gid, text)
		);
	return 0;
}

// InfiniBand: return true if packets need a GRH. Within a subnet the LID is enough.
static bool path_needs_grh(const struct device_port *own, const struct device_endpoint *theirs) {
	if (own->grh_needed || own->lid == 0 || theirs->lid == 0)
		return true;
	return own->gid_index >= 0 && !gid_is_zero(&theirs->gid) &&
	       own->gid.global.subnet_prefix != theirs->gid.global.subnet_prefix;
}

static const char *gid_family(const union ibv_gid *gid) {
	return gid_is_ipv4(gid) ? "IPv4" : "IPv6";
}

static int
check_fabric(const struct device_facts *own, const struct device_endpoint *theirs, char *reason) {
	const struct device_port *port = &own->port;

	if (port->link != theirs->link)
		return device_format_reason(
			reason, -EPROTONOSUPPORT,
			"NoCommonFabric: %s is on %s, the peer's device on %s", own->name,
			device_link_name(port->link), device_link_name(theirs->link)
		);
	if (port->link == DEVICE_LINK_INFINIBAND) {
		if (path_needs_grh(port, theirs) &&
		    (port->gid_index < 0 || gid_is_zero(&theirs->gid)))
			return device_format_reason(
				reason, -EPROTONOSUPPORT,
				"NoCommonFabric: the peer is not reachable by LID, and %s has no "
				"GID",
				port->gid_index < 0 ? own->name : "it"
			);
		return 0;
	}
	// Both addresses of a RoCE v2 packet are of one family.
	if (gid_is_ipv4(&port->gid) != gid_is_ipv4(&theirs->gid))
		return device_format_reason(
			reason, -EPROTONOSUPPORT,
			"NoCommonFabric: %s has an %s GID, the peer's device an %s GID", own->name,
			gid_family(&port->gid), gid_family(&theirs->gid)
		);
	if (gid_is_loopback(&port->gid) != gid_is_loopback(&theirs->gid))
		return device_format_reason(
			reason, -EPROTONOSUPPORT,
			"NoCommonFabric: %s has a %s address, the peer's device a %s address",
			own->name, gid_is_loopback(&port->gid) ? "loopback" : "network",
			gid_is_loopback(&theirs->gid) ? "loopback" : "network"
		);
	return 0;
}

// A limited member's port silently drops packets of other limited members. Old agents do not send
// their P_Key; then nothing is checked.
static int check_partition(
	const struct device_facts *own, const struct device_endpoint *theirs, char *reason
) {
	uint16_t ours = own->port.pkey;

	if (ours == 0 || theirs->pkey == 0)
		return 0;
	if (((ours ^ theirs->pkey) & DEVICE_PKEY_PARTITION) != 0)
		return device_format_reason(
			reason, -EPROTONOSUPPORT,
			"NoCommonFabric: %s is in partition 0x%04x, the peer's device in 0x%04x",
			own->name, ours & DEVICE_PKEY_PARTITION,
			theirs->pkey & DEVICE_PKEY_PARTITION
		);
	if (((ours | theirs->pkey) & DEVICE_PKEY_FULL) == 0)
		return device_format_reason(
			reason, -EKEYREJECTED,
			"LimitedMembers: %s and the peer's device are both limited members of "
			"partition 0x%04x; one must be a full member",
			own->name, ours
		);
	return 0;
}

int device_endpoint_check(
	const struct device_facts *own,
	const struct device_endpoint *theirs,
	char ret_reason[static DEVICE_REASON_MAX + 1]
) {
	int err = check_values(theirs, ret_reason);

	if (err == 0)
		err = check_fabric(own, theirs, ret_reason);
	if (err == 0)
		err = check_partition(own, theirs, ret_reason);
	return err;
}

void device_route(
	const struct device *device,
	const struct device_facts *own,
	const struct device_endpoint *theirs,
	uint32_t flow_label,
	struct ibv_ah_attr *ret_route
) {
	const struct device_port *port = &own->port;
	bool is_infiniband = port->link == DEVICE_LINK_INFINIBAND;

	memset(ret_route, 0, sizeof(*ret_route));
	ret_route->port_num = port->number;
	ret_route->sl = device->settings.service_level;
	ret_route->dlid = is_infiniband ? theirs->lid : 0;
	ret_route->is_global = !is_infiniband || path_needs_grh(port, theirs);
	if (!ret_route->is_global)
		return;
	ret_route->grh.dgid = theirs->gid;
	ret_route->grh.sgid_index = (uint8_t)port->gid_index;
	ret_route->grh.flow_label = flow_label & 0xfffff;
	ret_route->grh.hop_limit = HOPS_MAX;
	ret_route->grh.traffic_class = device->settings.traffic_class;
}
