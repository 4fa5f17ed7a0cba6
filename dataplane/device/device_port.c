// SPDX-License-Identifier: BSD-3-Clause
// Selects the port of pairs and reads its state and address.
#include "device/device_impl.h"

#include <dataplane/gid.h>
#include <lib/scoped.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

// Limit of valid entries of all ports. The kernel's answer has less than 64 KiB. A larger buffer
// fails with EINVAL, as does an answer with more entries.
#define GIDS_MAX 2047
static_assert(GIDS_MAX * sizeof(struct ibv_gid_entry) <= UINT16_MAX, "the kernel's interface");

#define SPEED_NDR 128 // largest value that fits libibverbs' field

// Both arguments are one bit each, as in the InfiniBand specification.
uint32_t device_speed_mbps(uint32_t width, uint32_t speed) {
	static const struct {
		uint32_t bit, lanes;
	} widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
	static const struct {
		uint32_t bit, mbps;
	} speeds[] = {
		{1, 2500},			    // SDR
		{2, 5000},			    // DDR
		{4, 10000},			    // QDR
		{8, 10000},			    // FDR10
		{16, 14000},			    // FDR
		{32, 25000},			    // EDR
		{64, 50000},			    // HDR
		{SPEED_NDR, 100000}, {256, 200000}, // XDR
	};
	uint32_t lanes = 0, mbps = 0;

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		lanes = widths[i].bit == width ? widths[i].lanes : lanes;
	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		mbps = speeds[i].bit == speed ? speeds[i].mbps : mbps;
	return lanes * mbps;
}

static int port_query(struct device_inspection *look, uint8_t number, struct ibv_port_attr *attr) {
	int err = look->calls->query_port(look->context, number, attr);

	return err != 0 ? device_inspection_fail(look, err, "query_port") : 0;
}

static int
find_active(struct device_inspection *look, uint8_t *number, struct ibv_port_attr *attr) {
	struct ibv_port_attr first = {0};
	int err;

	for (uint8_t i = 1; i <= look->port_count && i < UINT8_MAX; i++) {
		err = port_query(look, i, attr);
		if (err != 0)
			return err;
		*number = i;
		if (attr->state == IBV_PORT_ACTIVE)
			return 0;
		if (i == 1)
			first = *attr;
	}
	*number = 1;
	*attr = first;
	return 0;
}

static void
port_fill(struct device_inspection *look, uint8_t number, const struct ibv_port_attr *attr) {
	struct device_port *port = &look->facts->port;
	uint32_t speed = device_speed_mbps(attr->active_width, attr->active_speed);

	if (speed == 0 || attr->active_speed == SPEED_NDR) {
		uint32_t told = device_sysfs_speed_mbps(look->facts->path, number);

		speed = told > speed ? told : speed;
	}
	memset(port, 0, sizeof(*port));
	port->number = number;
	port->state = attr->state;
	// Old kernels do not report the link layer and supported only InfiniBand.
	port->link = attr->link_layer == IBV_LINK_LAYER_ETHERNET ? DEVICE_LINK_ETHERNET
								 : DEVICE_LINK_INFINIBAND;
	port->lid = port->link == DEVICE_LINK_INFINIBAND ? attr->lid : 0;
	port->grh_needed = (attr->flags & IBV_QPF_GRH_REQUIRED) != 0;
	port->active_mtu = device_mtu_bytes(attr->active_mtu);
	port->speed_mbps = speed;
	port->gid_index = -1;
	port->pkey_index = -1;
	port->message_max = attr->max_msg_sz;
}

// Return the GID entry that the settings name; refuse the device and return NULL if it is invalid.
static const struct ibv_gid_entry *port_configured_gid(
	struct device_inspection *look,
	const struct ibv_gid_entry *entries,
	uint32_t count,
	int gid_table_length
) {
	const struct device_port *port = &look->facts->port;
	uint32_t type = port->link == DEVICE_LINK_ETHERNET ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
	int index = look->settings->gid_index;
	const struct ibv_gid_entry *entry =
		gid_entry_at(entries, count, port->number, (uint32_t)index);

	if (index >= gid_table_length) {
		device_inspection_refuse(
			look, -EINVAL, "gid_index %d: port %u of %s has the indexes 0 to %d", index,
			port->number, look->facts->name, gid_table_length - 1
		);
		return NULL;
	}
	if (entry == NULL || gid_is_zero(&entry->gid)) {
		device_inspection_refuse(
			look, -ENETDOWN, "gid_index %d: port %u of %s has no GID there", index,
			port->number, look->facts->name
		);
		return NULL;
	}
	if (entry->gid_type != type) {
		device_inspection_refuse(
			look, -EINVAL, "gid_index %d: port %u of %s has %s there, but %s is needed",
			index, port->number, look->facts->name, gid_type_name(entry->gid_type),
			gid_type_name(type)
		);
		return NULL;
	}
	return entry;
}

// Return the default GID entry; for InfiniBand the first one, which is the port's own.
static const struct ibv_gid_entry *port_default_gid(
	struct device_inspection *look,
	const struct ibv_gid_entry *entries,
	uint32_t count,
	const union ibv_gid *before
) {
	const struct device_port *port = &look->facts->port;
	const struct ibv_gid_entry *entry;

	if (port->link == DEVICE_LINK_INFINIBAND) {
		entry = gid_entry_at(entries, count, port->number, 0);
		if ((entry == NULL || gid_is_zero(&entry->gid)) && port->lid == 0)
			device_inspection_refuse(
				look, -ENETDOWN, "port %u of %s has neither LID nor GID",
				port->number, look->facts->name
			);
		return entry;
	}
	entry = gid_choose(entries, count, port->number, before);
	if (entry == NULL)
		device_inspection_refuse(
			look, -ENETDOWN,
			"port %u of %s has no RoCE v2 GID: its interface has no "
			"address",
			port->number, look->facts->name
		);
	return entry;
}

static int
inspect_port_gids(struct device_inspection *look, int table_length, const union ibv_gid *before) {
	scoped_mem struct ibv_gid_entry *entries = calloc(GIDS_MAX, sizeof(*entries));
	struct device_port *port = &look->facts->port;
	const struct ibv_gid_entry *entry;
	uint32_t count;
	int err;

	if (entries == NULL)
		return device_inspection_fail(look, -ENOMEM, "query_gids");
	err = look->calls->query_gids(look->context, entries, GIDS_MAX, &count);
	if (err != 0)
		return device_inspection_fail(look, err, "query_gids");
	if (look->settings->gid_index == DEVICE_GID_AUTO)
		entry = port_default_gid(look, entries, count, before);
	else
		entry = port_configured_gid(look, entries, count, table_length);
	if (entry != NULL && !gid_is_zero(&entry->gid)) {
		port->gid = entry->gid;
		port->gid_index = (int)entry->gid_index;
		port->gid_type = entry->gid_type;
	}
	return 0;
}

static bool pkey_is_member(uint16_t pkey) {
	return (pkey & DEVICE_PKEY_PARTITION) != 0;
}

static int port_use_pkey(struct device_inspection *look, uint16_t index, bool *ret_full) {
	struct device_port *port = &look->facts->port;
	uint16_t pkey;
	int err = look->calls->query_pkey(look->context, port->number, index, &pkey);

	if (err != 0)
		return device_inspection_fail(look, err, "query_pkey");
	*ret_full = pkey_is_member(pkey) && (pkey & DEVICE_PKEY_FULL) != 0;
	if (*ret_full || (pkey_is_member(pkey) && port->pkey_index < 0)) {
		port->pkey_index = index;
		port->pkey = pkey;
	}
	return 0;
}

// Choose a P_Key. Limited members of a partition cannot reach each other, so the first full
// membership is chosen. The subnet manager's entries there are the same on all nodes. Tables have
// about 128 entries, and the first is nearly always a full membership.
static int inspect_port_pkeys(struct device_inspection *look, uint16_t table_length) {
	struct device_port *port = &look->facts->port;
	bool full = false;
	int named = look->settings->pkey_index, err = 0;

	if (named != DEVICE_PKEY_AUTO) {
		if (named >= table_length) {
			device_inspection_refuse(
				look, -EINVAL, "pkey_index %d: port %u of %s has %u P_Keys", named,
				port->number, look->facts->name, table_length
			);
			return 0;
		}
		err = port_use_pkey(look, (uint16_t)named, &full);
		if (err == 0 && port->pkey_index < 0)
			device_inspection_refuse(
				look, -ENETDOWN, "pkey_index %d: port %u of %s has no P_Key there",
				named, port->number, look->facts->name
			);
		return err;
	}
	for (uint16_t index = 0; index < table_length && !full && err == 0; index++)
		err = port_use_pkey(look, index, &full);
	if (err == 0 && port->pkey_index < 0)
		device_inspection_refuse(
			look, -ENETDOWN, "port %u of %s is in no partition: it has no P_Key",
			port->number, look->facts->name
		);
	return err;
}

int device_port_inspect(
	struct device_inspection *look, uint8_t number, const union ibv_gid *before
) {
	struct device_facts *facts = look->facts;
	struct device_port *port = &facts->port;
	uint16_t wanted_mtu = look->settings->mtu;
	struct ibv_port_attr attr;
	int err;

	if (look->port_count == 0)
		return 0;
	if (number > look->port_count) {
		device_inspection_refuse(
			look, -EINVAL, "port %u: %s has the ports 1 to %u", number, facts->name,
			look->port_count
		);
		return 0;
	}
	err = number != 0 ? port_query(look, number, &attr) : find_active(look, &number, &attr);
	if (err != 0)
		return err;
	port_fill(look, number, &attr);
	if (port->state != IBV_PORT_ACTIVE)
		device_inspection_refuse(
			look, -ENETDOWN, "port %u of %s is %s", port->number, facts->name,
			device_port_state_name(port->state)
		);
	if (port->message_max == 0)
		device_inspection_refuse(
			look, -ENOTSUP, "port %u of %s reports 0 for max_msg_sz", port->number,
			facts->name
		);
	err = inspect_port_gids(look, attr.gid_tbl_len, before);
	if (err != 0)
		return err;
	port->subnet = device_subnet_of(port);

	if (port->active_mtu == 0)
		device_inspection_refuse(
			look, -ENOTSUP, "port %u of %s reports an invalid MTU", port->number,
			facts->name
		);
	if (wanted_mtu > port->active_mtu)
		device_inspection_refuse(
			look, -EINVAL, "mtu %u: port %u of %s has only %u", wanted_mtu,
			port->number, facts->name, port->active_mtu
		);
	else if (wanted_mtu != 0)
		port->active_mtu = wanted_mtu;
	err = inspect_port_pkeys(look, attr.pkey_tbl_len);
	if (err != 0)
		return err;
	device_sysfs_netdev(facts->path, number, port->gid_index, facts->netdev);
	return 0;
}
