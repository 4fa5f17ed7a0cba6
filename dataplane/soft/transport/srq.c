// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues. Programs create, limit and fill them on any thread; responders of the
// sharing queue pairs take from them.
#include "transport/cq.h"
#include "transport/receive_queue.h"
#include "transport/requester.h"
#include "transport/verbs_limits.h"

#include <errno.h>
#include <stdlib.h>

static struct soft_srq *srq_free(struct soft_srq *srq) {
	receive_queue_fini(&srq->queue);
	free(srq);
	return NULL;
}

int soft_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **ret_srq) {
	uint32_t wr_max = attr->attr.max_wr, sge_max = attr->attr.max_sge;
	struct soft_srq *srq;
	int err = -ENOMEM;

	if (wr_max == 0 || wr_max > LIMIT_SRQ_WORKS || sge_max > REQUESTER_SGE_MAX)
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (srq == NULL)
		return -ENOMEM;
	if (receive_queue_init(&srq->queue, wr_max, sge_max) != 0) {
		srq_free(srq);
		return -ENOMEM;
	}
	srq->verbs = (struct ibv_srq){
		.context = pd->context,
		.srq_context = attr->srq_context,
		.pd = pd,
	};
	srq->nic = soft_context_of(pd->context)->nic;

	nic_lock(srq->nic);
	if (srq->nic->count.srqs < LIMIT_SRQS) {
		srq->nic->count.srqs++;
		soft_pd_of(pd)->users++;
		soft_context_of(pd->context)->objects++;
		err = 0;
	}
	nic_unlock(srq->nic);
	if (err != 0) {
		srq_free(srq);
		return err;
	}
	attr->attr.max_wr = srq->queue.capacity;
	*ret_srq = &srq->verbs;
	return 0;
}

// A queue keeps its size, because the device does not report the resize capability.
int soft_modify_srq(struct ibv_srq *verbs, struct ibv_srq_attr *attr, int mask) {
	struct soft_srq *srq = soft_srq_of(verbs);

	if ((mask & ~IBV_SRQ_LIMIT) != 0)
		return (mask & IBV_SRQ_MAX_WR) != 0 ? -EOPNOTSUPP : -EINVAL;
	if (mask == 0)
		return 0;
	if (attr->srq_limit > srq->queue.capacity)
		return -EINVAL;
	nic_lock(srq->nic);
	srq->limit = attr->srq_limit;
	nic_unlock(srq->nic);
	return 0;
}

int soft_query_srq(struct ibv_srq *verbs, struct ibv_srq_attr *ret_attr) {
	struct soft_srq *srq = soft_srq_of(verbs);

	nic_lock(srq->nic);
	*ret_attr = (struct ibv_srq_attr){
		.max_wr = srq->queue.capacity,
		.max_sge = srq->queue.sge_max,
		.srq_limit = srq->limit,
	};
	nic_unlock(srq->nic);
	return 0;
}

int soft_destroy_srq(struct ibv_srq *verbs) {
	struct soft_srq *srq = soft_srq_of(verbs);
	struct soft_nic *nic = srq->nic;

	nic_lock(nic);
	if (srq->users > 0) {
		nic_unlock(nic);
		return -EBUSY;
	}
	async_settle_events(soft_context_of(verbs->context), verbs, &srq->events);
	soft_pd_of(verbs->pd)->users--;
	soft_context_of(verbs->context)->objects--;
	nic->count.srqs--;
	nic_unlock(nic);
	srq_free(srq);
	return 0;
}

// Returns a positive errno, as libibverbs requires.
int srq_post_recv(struct ibv_srq *verbs, struct ibv_recv_wr *wr, struct ibv_recv_wr **ret_bad) {
	struct soft_srq *srq = soft_srq_of(verbs);
	int err = 0;

	nic_lock(srq->nic);
	for (; wr != NULL; wr = wr->next) {
		err = receive_queue_post(&srq->queue, wr);
		if (err != 0) {
			*ret_bad = wr;
			break;
		}
	}
	nic_unlock(srq->nic);
	return -err;
}

bool srq_take_receive(struct soft_srq *srq, struct receive_work *ret_work, struct ibv_sge *sges) {
	struct ibv_async_event event = {
		.event_type = IBV_EVENT_SRQ_LIMIT_REACHED,
		.element.srq = &srq->verbs,
	};

	if (!receive_queue_pop(&srq->queue, ret_work, sges))
		return false;
	if (receive_queue_count(&srq->queue) < srq->limit) {
		srq->limit = 0;
		async_raise_event(soft_context_of(srq->verbs.context), &event);
	}
	return true;
}
