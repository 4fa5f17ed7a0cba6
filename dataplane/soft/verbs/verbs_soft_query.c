// SPDX-License-Identifier: BSD-3-Clause
// Answers queries about a software device, through the table and libibverbs' inline calls. All
// reported limits are supported. Cold.
#include "transport/qp.h"
#include "transport/verbs_limits.h"
#include "verbs/verbs_soft.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PHYS_STATE_DISABLED 3
#define PHYS_STATE_LINK_UP 5
#define WIDTH_1X 1
#define SPEED_10 4 // 10 Gbit/s per lane, roughly what sockets reach

int soft_query_device(struct ibv_context *context, struct ibv_device_attr *ret_attr) {
	struct soft_device *device = device_of(context->device);
	__be64 guid;

	nic_lock(&device->nic); // another thread may open the device, which sets the GUID
	guid = device->guid;
	nic_unlock(&device->nic);
	*ret_attr = (struct ibv_device_attr){
		.fw_ver = "tocsin",
		.node_guid = guid,
		.sys_image_guid = guid,
		.max_mr_size = LIMIT_MR_BYTES,
		.page_size_cap = 4096,
		.vendor_id = LIMIT_VENDOR,
		.vendor_part_id = LIMIT_VENDOR_PART,
		.max_qp = LIMIT_QPS,
		.max_qp_wr = LIMIT_QP_WORKS,
		.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_CURR_QP_STATE_MOD |
				    IBV_DEVICE_SYS_IMAGE_GUID,
		.max_sge = REQUESTER_SGE_MAX,
		.max_sge_rd = REQUESTER_SGE_MAX,
		.max_cq = LIMIT_CQS,
		.max_cqe = LIMIT_CQ_ENTRIES,
		.max_mr = LIMIT_MRS,
		.max_pd = LIMIT_PDS,
		.max_qp_rd_atom = RESPONDER_READS_MAX,
		.max_res_rd_atom = RESPONDER_READS_MAX * LIMIT_QPS,
		.max_qp_init_rd_atom = RESPONDER_READS_MAX,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_srq = LIMIT_SRQS,
		.max_srq_wr = LIMIT_SRQ_WORKS,
		.max_srq_sge = REQUESTER_SGE_MAX,
		.max_pkeys = 1,
		.phys_port_cnt = 1,
	};
	return 0;
}

int soft_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *ret_attr) {
	struct soft_nic *nic = nic_of(context);
	enum ibv_mtu active_mtu = IBV_MTU_4096;
	uint16_t mtu;
	bool active;

	if (port != 1)
		return -EINVAL;
	nic_lock(nic);
	active = nic->port == NIC_PORT_ACTIVE;
	mtu = nic->wire->mtu;
	nic_unlock(nic);
	while (active_mtu > IBV_MTU_256 && (128u << active_mtu) > mtu)
		active_mtu--;
	*ret_attr = (struct ibv_port_attr){
		.state = active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = active_mtu,
		.gid_tbl_len = LIMIT_GIDS,
		.port_cap_flags = IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = LIMIT_MESSAGE_BYTES,
		.pkey_tbl_len = 1,
		.active_width = WIDTH_1X,
		.active_speed = SPEED_10,
		.phys_state = active ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};
	return 0;
}

// The same address has two indexes: programs use 0 by default, and 1 where real ports have RoCE v1
// at 0.
int soft_query_gids(
	struct ibv_context *context,
	struct ibv_gid_entry *entries,
	uint32_t max,
	uint32_t *ret_count
) {
	struct soft_nic *nic = nic_of(context);
	union ibv_gid gid;

	if (max < LIMIT_GIDS)
		return -EINVAL;
	nic_lock(nic); // nic_set_faults() replaces the wire
	gid = nic->wire->gid;
	nic_unlock(nic);
	for (uint32_t n = 0; n < LIMIT_GIDS; n++)
		entries[n] = (struct ibv_gid_entry
		){.gid = gid, .gid_index = n, .port_num = 1, .gid_type = IBV_GID_TYPE_ROCE_V2};
	*ret_count = LIMIT_GIDS;
	return 0;
}

int soft_query_pkey(struct ibv_context *context, uint8_t port, uint16_t index, uint16_t *ret_pkey) {
	(void)context;
	if (port != 1 || index != 0)
		return -EINVAL;
	*ret_pkey = PACKET_PKEY_DEFAULT;
	return 0;
}

// Inline calls pass the struct size that the program was built with.

static int inline_query_port(
	struct ibv_context *context, uint8_t port, struct ibv_port_attr *ret_attr, size_t size
) {
	struct ibv_port_attr attr;
	int err = soft_query_port(context, port, &attr);

	if (err != 0)
		return -err;
	memset(ret_attr, 0, size);
	memcpy(ret_attr, &attr, size < sizeof(attr) ? size : sizeof(attr));
	return 0;
}

static int inline_query_device_ex(
	struct ibv_context *context,
	const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *ret_attr,
	size_t size
) {
	struct ibv_device_attr_ex attr = {0};

	if ((input != NULL && input->comp_mask != 0) || size < sizeof(attr.orig_attr))
		return EINVAL;
	(void)soft_query_device(context, &attr.orig_attr);
	attr.phys_port_cnt_ex = attr.orig_attr.phys_port_cnt;
	(void
	)soft_query_stamp_clock(context, &attr.completion_timestamp_mask, &attr.hca_core_clock);
	memset(ret_attr, 0, size);
	memcpy(ret_attr, &attr, size < sizeof(attr) ? size : sizeof(attr));
	return 0;
}

void soft_set_query_calls(struct verbs_context *context) {
	context->query_port = inline_query_port;
	context->query_device_ex = inline_query_device_ex;
	context->query_rt_values = soft_query_rt_values;
}
