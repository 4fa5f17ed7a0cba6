// SPDX-License-Identifier: BSD-3-Clause
// Modifies RC queue pairs: attributes required and allowed per transition (InfiniBand 1.3,
// 11.2.5.2), their valid values, and their effects. Used under the device's lock.
#include "transport/qp.h"
#include "transport/verbs_limits.h"

#include <dataplane/gid.h>

#include <errno.h>
#include <string.h>

#define FLOW_LABEL_MASK ((UINT32_C(1) << 20) - 1)
#define ACCESS_KNOWN                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

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
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0,
	 IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS |
		 IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
};

static bool transition_is_valid(enum ibv_qp_state from, enum ibv_qp_state to, int mask) {
	int rest = mask & ~IBV_QP_STATE;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return rest == 0;
	for (size_t n = 0; n < sizeof(transitions) / sizeof(transitions[0]); n++) {
		const struct transition *row = &transitions[n];

		if (row->from == from && row->to == to)
			return (rest & row->required) == row->required &&
			       (rest & ~(row->required | row->optional)) == 0;
	}
	return false;
}

static bool address_is_valid(const struct soft_wire *wire, const struct ibv_ah_attr *address) {
	const union ibv_gid *peer = &address->grh.dgid;

	if (address->port_num != 1 || !address->is_global || address->sl > 15 ||
	    address->grh.sgid_index >= LIMIT_GIDS)
		return false;
	// The IPv6 loopback address is valid only if it is the device's own.
	if (gid_scope(peer) == GID_SCOPE_NONE && memcmp(peer, &wire->gid, sizeof(*peer)) != 0)
		return false;
	return frame_is_ip4(peer) == frame_is_ip4(&wire->gid);
}

static uint32_t mtu_bytes(enum ibv_mtu mtu) {
	return UINT32_C(128) << mtu;
}

static bool values_are_valid(const struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask) {
	const struct {
		int bit;
		uint32_t value, least, most;
	} numbers[] = {
		{IBV_QP_PORT, attr->port_num, 1, 1},
		{IBV_QP_PKEY_INDEX, attr->pkey_index, 0, 0},
		{IBV_QP_DEST_QPN, attr->dest_qp_num, 0, PSN_MASK},
		{IBV_QP_RQ_PSN, attr->rq_psn, 0, PSN_MASK},
		{IBV_QP_SQ_PSN, attr->sq_psn, 0, PSN_MASK},
		{IBV_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic, 0, RESPONDER_READS_MAX},
		{IBV_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic, 0, RESPONDER_READS_MAX},
		{IBV_QP_MIN_RNR_TIMER, attr->min_rnr_timer, 0, 31},
		{IBV_QP_TIMEOUT, attr->timeout, 0, 31},
		{IBV_QP_RETRY_CNT, attr->retry_cnt, 0, 7},
		{IBV_QP_RNR_RETRY, attr->rnr_retry, 0, 7},
		{IBV_QP_PATH_MIG_STATE, (uint32_t)attr->path_mig_state, IBV_MIG_MIGRATED,
		 IBV_MIG_MIGRATED},
	};
	const struct soft_wire *wire = qp->nic->wire;

	if ((mask & IBV_QP_CUR_STATE) != 0 && attr->cur_qp_state != qp->verbs.state)
		return false;
	if ((mask & IBV_QP_ACCESS_FLAGS) != 0 &&
	    (attr->qp_access_flags & ~(uint32_t)ACCESS_KNOWN) != 0)
		return false;
	if ((mask & IBV_QP_AV) != 0 && !address_is_valid(wire, &attr->ah_attr))
		return false;
	if ((mask & IBV_QP_PATH_MTU) != 0 &&
	    (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096 ||
	     mtu_bytes(attr->path_mtu) > wire->mtu))
		return false;
	for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++) {
		if ((mask & numbers[n].bit) != 0 &&
		    (numbers[n].value < numbers[n].least || numbers[n].value > numbers[n].most))
			return false;
	}
	return true;
}

static void attr_copy_masked(struct ibv_qp_attr *own, const struct ibv_qp_attr *attr, int mask) {
#define TAKE(bit, field)         \
	if ((mask & (bit)) != 0) \
		own->field = attr->field;
	TAKE(IBV_QP_PORT, port_num)
	TAKE(IBV_QP_PKEY_INDEX, pkey_index)
	TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags)
	TAKE(IBV_QP_AV, ah_attr)
	TAKE(IBV_QP_PATH_MTU, path_mtu)
	TAKE(IBV_QP_DEST_QPN, dest_qp_num)
	TAKE(IBV_QP_RQ_PSN, rq_psn)
	TAKE(IBV_QP_SQ_PSN, sq_psn)
	TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic)
	TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic)
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer)
	TAKE(IBV_QP_TIMEOUT, timeout)
	TAKE(IBV_QP_RETRY_CNT, retry_cnt)
	TAKE(IBV_QP_RNR_RETRY, rnr_retry)
	TAKE(IBV_QP_PATH_MIG_STATE, path_mig_state)
#undef TAKE
	// Some programs set all bits, although the field has only 20; kernel drivers mask it too.
	own->ah_attr.grh.flow_label &= FLOW_LABEL_MASK;
	// Must be requested with each modify.
	own->en_sqd_async_notify =
		(mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 ? attr->en_sqd_async_notify : 0;
}

// The UDP source port is constant per queue pair and spreads queue pairs over paths and receive
// queues.
static void route_fill(struct soft_qp *qp) {
	const struct ibv_ah_attr *address = &qp->attr.ah_attr;
	uint32_t spread = qp->verbs.qp_num * UINT32_C(2654435761) >> 18;
	uint16_t port = qp->nic->wire->source_port;

	qp->mtu = mtu_bytes(qp->attr.path_mtu);
	qp->route = (struct frame_route){
		.from = qp->nic->wire->gid,
		.to = address->grh.dgid,
		.source_port = port != 0 ? port : (uint16_t)(0xc000 | spread),
		.traffic_class = address->grh.traffic_class,
		.hop_limit = address->grh.hop_limit != 0 ? address->grh.hop_limit : 64,
		.flow_label = address->grh.flow_label,
	};
}

int qp_modify(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask) {
	enum ibv_qp_state from = qp->verbs.state;
	enum ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : from;

	if (!transition_is_valid(from, to, mask) || !values_are_valid(qp, attr, mask))
		return -EINVAL;
	if (to == IBV_QPS_RESET) {
		qp_reset(qp);
		return 0;
	}
	if (to == IBV_QPS_ERR) {
		qp_flush_ack(qp);
		qp_enter_error(qp);
		return 0;
	}
	attr_copy_masked(&qp->attr, attr, mask);
	if ((mask & IBV_QP_AV) != 0)
		route_fill(qp);
	qp->verbs.state = to;
	if (to == IBV_QPS_RTR)
		responder_start(qp);
	else if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
		requester_start(qp);
	else if (from == IBV_QPS_SQD && to == IBV_QPS_RTS)
		requester_resume(qp);
	else if (from == IBV_QPS_RTS && to == IBV_QPS_SQD)
		requester_drain(qp);
	return 0;
}
