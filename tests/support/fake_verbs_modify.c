// SPDX-License-Identifier: BSD-3-Clause
// Attributes and values that each transition of an RC queue pair requires and allows (InfiniBand
// 1.3, 11.2.5.2).
#include "fake_verbs_impl.h"

#include <support/cases.h>

struct transition {
	enum ibv_qp_state from, to;
	int required, optional;
};

static const struct transition transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_RTR, IBV_QPS_RTS,
	 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
};

static const struct transition *transition_find(enum ibv_qp_state from, enum ibv_qp_state to) {
	for (uint32_t n = 0; n < COUNT_OF(transitions); n++) {
		if (transitions[n].from == from && transitions[n].to == to)
			return &transitions[n];
	}
	return NULL;
}

static bool gid_is_zero(const union ibv_gid *gid) {
	return gid->global.subnet_prefix == 0 && gid->global.interface_id == 0;
}

static bool port_has_gid(const struct fake_port *port, uint8_t index) {
	for (uint32_t n = 0; n < port->gid_count; n++) {
		if (port->gids[n].gid_index == index)
			return true;
	}
	return false;
}

static bool address_is_sound(const struct fake_qp *qp, const struct ibv_ah_attr *address) {
	const struct fake_port *port;

	if (address->port_num == 0 || address->port_num > qp->device->attr.phys_port_cnt)
		return false;
	port = &qp->device->ports[address->port_num - 1];
	if (address->sl > 15)
		return false;
	if (port->attr.link_layer == IBV_LINK_LAYER_ETHERNET && !address->is_global)
		return false;
	if (port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND && address->dlid == 0)
		return false;
	if (!address->is_global)
		return true;
	return !gid_is_zero(&address->grh.dgid) && port_has_gid(port, address->grh.sgid_index) &&
	       address->grh.flow_label < UINT32_C(1) << 20;
}

static bool init_is_sound(const struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask) {
	uint8_t port = (mask & IBV_QP_PORT) != 0 ? attr->port_num : 1;

	if (port == 0 || port > qp->device->attr.phys_port_cnt)
		return false;
	return (mask & IBV_QP_PKEY_INDEX) == 0 ||
	       attr->pkey_index < qp->device->ports[port - 1].attr.pkey_tbl_len;
}

static bool rtr_is_sound(const struct fake_qp *qp, const struct ibv_qp_attr *attr) {
	const struct fake_port *port = &qp->device->ports[qp->attr.port_num - 1];

	return address_is_sound(qp, &attr->ah_attr) && attr->path_mtu >= IBV_MTU_256 &&
	       attr->path_mtu <= port->attr.active_mtu && attr->dest_qp_num < UINT32_C(1) << 24 &&
	       attr->rq_psn < UINT32_C(1) << 24 &&
	       attr->max_dest_rd_atomic <= qp->device->attr.max_qp_rd_atom &&
	       attr->min_rnr_timer <= 31;
}

static bool rts_is_sound(const struct fake_qp *qp, const struct ibv_qp_attr *attr) {
	return attr->timeout <= 31 && attr->retry_cnt <= 7 && attr->rnr_retry <= 7 &&
	       attr->sq_psn < UINT32_C(1) << 24 &&
	       attr->max_rd_atomic <= qp->device->attr.max_qp_init_rd_atom;
}

int fake_modify_check(
	const struct fake_qp *qp,
	const struct ibv_qp_attr *attr,
	int mask,
	enum ibv_qp_state *ret_next
) {
	enum ibv_qp_state from = qp->attr.qp_state;
	enum ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : from;
	int rest = mask & ~IBV_QP_STATE;
	const struct transition *transition = transition_find(from, to);

	if (to == IBV_QPS_ERR || to == IBV_QPS_RESET) {
		*ret_next = to;
		return rest == 0 ? 0 : -EINVAL;
	}
	if (transition == NULL || (rest & transition->required) != transition->required ||
	    (rest & ~(transition->required | transition->optional)) != 0)
		return -EINVAL;
	if ((to == IBV_QPS_INIT && !init_is_sound(qp, attr, mask)) ||
	    (to == IBV_QPS_RTR && !rtr_is_sound(qp, attr)) ||
	    (to == IBV_QPS_RTS && from == IBV_QPS_RTR && !rts_is_sound(qp, attr)))
		return -EINVAL;
	*ret_next = to;
	return 0;
}
