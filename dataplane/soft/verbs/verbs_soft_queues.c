// SPDX-License-Identifier: BSD-3-Clause
// Completion channels, completion queues and queue pairs: verbs calls that take the device's lock.
// Cold.
#include "transport/qp.h"
#include "verbs/verbs_soft.h"

int soft_create_comp_channel(struct ibv_context *context, struct ibv_comp_channel **ret_channel) {
	struct soft_nic *nic = nic_of(context);
	struct soft_channel *channel;
	int err;

	nic_lock(nic);
	err = channel_create(soft_context_of(context), &channel);
	nic_unlock(nic);
	if (err == 0)
		*ret_channel = &channel->verbs;
	return err;
}

int soft_destroy_comp_channel(struct ibv_comp_channel *channel) {
	struct soft_nic *nic = nic_of(channel->context);
	int err;

	nic_lock(nic);
	err = channel_destroy(soft_channel_of(channel));
	nic_unlock(nic);
	return err;
}

int soft_create_cq(
	struct ibv_context *context,
	uint32_t entries,
	struct ibv_comp_channel *channel,
	struct ibv_cq **ret_cq
) {
	struct soft_nic *nic = nic_of(context);
	struct soft_cq *cq;
	int err;

	nic_lock(nic);
	err = cq_create(soft_context_of(context), entries, channel, &cq);
	nic_unlock(nic);
	if (err == 0)
		*ret_cq = &cq->verbs;
	return err;
}

int soft_destroy_cq(struct ibv_cq *cq) {
	struct soft_nic *nic = nic_of(cq->context);
	int err;

	nic_lock(nic);
	err = cq_destroy(soft_cq_of(cq));
	nic_unlock(nic);
	return err;
}

int soft_resize_cq(struct ibv_cq *cq, int entries) {
	struct soft_nic *nic = nic_of(cq->context);
	int err;

	nic_lock(nic);
	err = cq_resize(soft_cq_of(cq), entries > 0 ? (uint32_t)entries : 0);
	nic_unlock(nic);
	return err;
}

int soft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **ret_qp) {
	struct soft_nic *nic = nic_of(pd->context);
	struct soft_qp *qp;
	int err;

	nic_lock(nic);
	err = qp_create(pd, attr, &qp);
	nic_unlock(nic);
	if (err == 0)
		*ret_qp = &qp->verbs;
	return err;
}

int soft_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
	struct soft_nic *nic = nic_of(qp->context);
	int err;

	nic_lock(nic);
	err = qp_modify(soft_qp_of(qp), attr, mask);
	nic_unlock_and_ring(nic);
	return err;
}

int soft_query_qp(
	struct ibv_qp *qp, int mask, struct ibv_qp_attr *ret_attr, struct ibv_qp_init_attr *ret_init
) {
	struct soft_nic *nic = nic_of(qp->context);

	(void)mask;
	nic_lock(nic);
	qp_query(soft_qp_of(qp), ret_attr, ret_init);
	nic_unlock(nic);
	return 0;
}

int soft_destroy_qp(struct ibv_qp *qp) {
	struct soft_nic *nic = nic_of(qp->context);

	nic_lock(nic);
	qp_destroy(soft_qp_of(qp));
	nic_unlock(nic);
	return 0;
}
