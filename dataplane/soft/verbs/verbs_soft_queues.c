// SPDX-License-Identifier: BSD-3-Clause
// Completion channels, completion queues and queue pairs: verbs calls that take the device's lock.
// Cold.
#include "transport/qp.h"
#include "verbs/verbs_soft.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int soft_create_comp_channel(struct ibv_context *context, struct ibv_comp_channel **ret_channel) {
	struct soft_nic *nic = nic_of(context);
	struct soft_channel *channel = calloc(1, sizeof(*channel));

	if (channel == NULL)
		return -ENOMEM;
	channel->verbs.context = context;
	channel->verbs.fd = event_fd_create();
	if (channel->verbs.fd < 0) {
		int err = channel->verbs.fd;

		free(channel);
		return err;
	}
	nic_lock(nic);
	soft_context_of(context)->objects++;
	nic_unlock(nic);
	*ret_channel = &channel->verbs;
	return 0;
}

int soft_destroy_comp_channel(struct ibv_comp_channel *channel) {
	struct soft_nic *nic = nic_of(channel->context);
	int err = -EBUSY;

	// The lock disables cancellation, and close() is a cancellation point.
	nic_lock(nic);
	if (channel->refcnt == 0) {
		soft_context_of(channel->context)->objects--;
		close(channel->fd);
		free(soft_channel_of(channel));
		err = 0;
	}
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
	struct ibv_qp *verbs,
	int mask,
	struct ibv_qp_attr *ret_attr,
	struct ibv_qp_init_attr *ret_init
) {
	const struct soft_qp *qp = soft_qp_of(verbs);

	(void)mask;
	nic_lock(qp->nic);
	*ret_attr = qp->attr;
	ret_attr->qp_state = ret_attr->cur_qp_state = verbs->state;
	ret_attr->cap = qp->cap;
	ret_attr->sq_draining = verbs->state == IBV_QPS_SQD && !requester_is_idle(qp);
	*ret_init = (struct ibv_qp_init_attr
	){.qp_context = verbs->qp_context,
	  .send_cq = verbs->send_cq,
	  .recv_cq = verbs->recv_cq,
	  .srq = verbs->srq,
	  .cap = qp->cap,
	  .qp_type = verbs->qp_type,
	  .sq_sig_all = qp->signal_all};
	nic_unlock(qp->nic);
	return 0;
}

int soft_destroy_qp(struct ibv_qp *qp) {
	struct soft_nic *nic = nic_of(qp->context);

	nic_lock(nic);
	qp_destroy(soft_qp_of(qp));
	nic_unlock(nic);
	return 0;
}
