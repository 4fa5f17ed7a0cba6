// SPDX-License-Identifier: BSD-3-Clause
// Completion channels, completion queues and queue pairs: creation, and destruction in an order
// that a driver allows.
#include "fake_verbs_impl.h"

#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int fake_create_comp_channel(struct ibv_context *context, struct ibv_comp_channel **ret_channel) {
	struct fake_channel *channel;
	int err = fake_enter_on(FAKE_CREATE_COMP_CHANNEL, context);

	if (err != 0)
		return err;
	channel = calloc(1, sizeof(*channel));
	must(channel != NULL);
	channel->verbs.context = context;
	channel->verbs.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
	must(channel->verbs.fd >= 0);
	fake_context_of(context)->objects++;
	fake_object_add(context, &channel->object, channel, channel->verbs.fd);
	fake_alive_of(context)->channels++;
	*ret_channel = &channel->verbs;
	return fake_leave(0);
}

int fake_destroy_comp_channel(struct ibv_comp_channel *verbs) {
	struct fake_channel *channel = container_of(verbs, struct fake_channel, verbs);
	int err = fake_enter(FAKE_DESTROY_COMP_CHANNEL);

	if (err != 0)
		return err;
	// Libibverbs itself refuses this without a system call, so also on a lost device.
	if (verbs->refcnt > 0 && fake_context_of(verbs->context)->lost)
		return fake_leave(-EBUSY);
	if (verbs->refcnt > 0) {
		fake_break("a completion channel was destroyed before its completion queue");
		return fake_leave(-EBUSY);
	}
	fake_context_of(verbs->context)->objects--;
	fake_object_remove(&channel->object);
	fake_alive_of(verbs->context)->channels--;
	close(verbs->fd);
	free(channel);
	return fake_leave(0);
}

int fake_create_cq(
	struct ibv_context *context,
	uint32_t entries,
	struct ibv_comp_channel *channel,
	struct ibv_cq **ret_cq
) {
	const struct fake_device *device = fake_device_of(context);
	struct fake_cq *cq;
	int err = fake_enter_on(FAKE_CREATE_CQ, context);

	if (err != 0)
		return err;
	if (entries == 0 || entries > (uint32_t)device->attr.max_cqe)
		return fake_leave(-EINVAL);
	if (fake_alive_of(context)->cqs >= (uint32_t)device->attr.max_cq)
		return fake_leave(-ENOMEM);
	// One allocation, because objects of a lost device are freed without knowing their type.
	cq = calloc(1, sizeof(*cq) + entries * sizeof(*cq->entries));
	must(cq != NULL);
	cq->entries = (struct fake_cqe *)(cq + 1);
	cq->verbs.context = context;
	cq->verbs.channel = channel;
	cq->verbs.cqe = (int)entries;
	if (channel != NULL)
		channel->refcnt++;
	fake_context_of(context)->objects++;
	fake_object_add(context, &cq->object, cq, -1);
	fake_alive_of(context)->cqs++;
	*ret_cq = &cq->verbs;
	return fake_leave(0);
}

int fake_create_cq_at(
	struct ibv_context *context,
	uint32_t entries,
	struct ibv_comp_channel *channel,
	uint32_t vector,
	struct ibv_cq **ret_cq
) {
	int err;

	if (vector >= (uint32_t)context->num_comp_vectors)
		return -EINVAL;
	err = fake_create_cq(context, entries, channel, ret_cq);
	if (err == 0)
		fake_cq_of(*ret_cq)->vector = vector;
	return err;
}

// Drop the pending events of a destroyed queue, as the kernel does.
static void channel_drop(struct fake_channel *channel, struct fake_cq *cq) {
	struct fake_cq **place = &channel->ready;
	uint64_t one;

	while (*place != NULL && *place != cq)
		place = &(*place)->next_event;
	if (*place == cq)
		*place = cq->next_event;
	for (; cq->events_waiting > 0; cq->events_waiting--)
		must(read(channel->verbs.fd, &one, sizeof(one)) == sizeof(one));
	channel->verbs.refcnt--;
}

int fake_destroy_cq(struct ibv_cq *verbs) {
	struct fake_cq *cq = fake_cq_of(verbs);
	int err = fake_enter_on(FAKE_DESTROY_CQ, verbs->context);

	if (err != 0)
		return err;
	if (cq->users > 0) {
		fake_break("a completion queue was destroyed before its queue pairs");
		return fake_leave(-EBUSY);
	}
	if (cq->events_taken != cq->events_acked || cq->async_taken != cq->async_acked) {
		fake_break("a completion queue was destroyed with events not acknowledged");
		return fake_leave(-EBUSY);
	}
	if (verbs->channel != NULL)
		channel_drop(container_of(verbs->channel, struct fake_channel, verbs), cq);
	fake_events_drop(fake_context_of(verbs->context), verbs);
	fake_context_of(verbs->context)->objects--;
	fake_object_remove(&cq->object);
	fake_alive_of(verbs->context)->cqs--;
	free(cq);
	return fake_leave(0);
}

int fake_get_cq_event(struct ibv_comp_channel *verbs, struct ibv_cq **ret_cq) {
	struct fake_channel *channel = container_of(verbs, struct fake_channel, verbs);
	struct fake_cq *cq;
	uint64_t one;
	int err = fake_enter_on(FAKE_GET_CQ_EVENT, verbs->context);

	if (err != 0)
		return err;
	fake_run_locked();
	cq = channel->ready;
	if (cq == NULL)
		return fake_leave(-EAGAIN);
	must(read(verbs->fd, &one, sizeof(one)) == sizeof(one));
	if (--cq->events_waiting == 0)
		channel->ready = cq->next_event;
	cq->events_taken++;
	fake_alive_of(verbs->context)->completion_events++;
	*ret_cq = &cq->verbs;
	return fake_leave(0);
}

void fake_ack_cq_events(struct ibv_cq *verbs, uint32_t count) {
	struct fake_cq *cq = fake_cq_of(verbs);

	fake_lock();
	cq->events_acked += count;
	if (cq->events_acked > cq->events_taken)
		fake_break("more completion events were acknowledged than taken");
	else
		fake_alive_of(verbs->context)->completion_events -= count;
	fake_unlock();
}

// Queue pairs.

struct fake_qp *fake_qp_by_number(const struct fake_device *device, uint32_t queue_number) {
	uint32_t place = queue_number - FAKE_QPN_FIRST;

	return place < device->private->qp_places ? device->private->qps[place] : NULL;
}

static uint32_t qp_place(struct fake_device_private *private) {
	uint32_t place = 0, places = private->qp_places;

	while (place < places && private->qps[place] != NULL)
		place++;
	if (place < places)
		return place;
	places = places == 0 ? 16 : 2 * places;
	private->qps = realloc(private->qps, places * sizeof(struct fake_qp *));
	must(private->qps != NULL);
	for (uint32_t n = private->qp_places; n < places; n++)
	private->qps[n] = NULL;
	private->qp_places = places;
	return place;
}

static int qp_check(const struct ibv_pd *pd, const struct ibv_qp_init_attr *attr) {
	const struct fake_device *device = fake_device_of(pd->context);
	const struct ibv_qp_cap *cap = &attr->cap;
	uint32_t sge_max = (uint32_t)device->attr.max_sge;

	if (device->no_rc && attr->qp_type == IBV_QPT_RC)
		return -EOPNOTSUPP;
	if (sge_max > FAKE_SGE_MAX)
		sge_max = FAKE_SGE_MAX;
	if (attr->qp_type != IBV_QPT_RC || attr->send_cq == NULL || attr->recv_cq == NULL ||
	    attr->srq != NULL || attr->send_cq->context != pd->context ||
	    attr->recv_cq->context != pd->context)
		return -EINVAL;
	if (cap->max_send_wr == 0 || cap->max_send_wr > (uint32_t)device->attr.max_qp_wr ||
	    cap->max_recv_wr > (uint32_t)device->attr.max_qp_wr || cap->max_send_sge > sge_max ||
	    cap->max_recv_sge > sge_max || cap->max_inline_data > 512)
		return -EINVAL;
	if (fake_alive_of(pd->context)->qps >= (uint32_t)device->attr.max_qp)
		return -ENOMEM;
	return 0;
}

static void qp_users(const struct ibv_qp *qp, uint32_t more) {
	fake_cq_of(qp->send_cq)->users += more;
	fake_cq_of(qp->recv_cq)->users += more;
	container_of(qp->pd, struct fake_pd, verbs)->users += more;
	fake_context_of(qp->context)->objects += more;
	fake_alive_of(qp->context)->qps += more;
}

static struct fake_qp *qp_make(struct ibv_pd *pd, const struct ibv_qp_init_attr *attr) {
	struct fake_qp *qp = calloc(1, sizeof(*qp));

	must(qp != NULL);
	qp->device = fake_device_of(pd->context);
	qp->init = *attr;
	qp->delay_ns = FAKE_NEVER;
	qp->flush_left = UINT32_MAX;
	qp->sends = calloc(attr->cap.max_send_wr, sizeof(*qp->sends));
	qp->receives = calloc(attr->cap.max_recv_wr + 1, sizeof(*qp->receives));
	qp->inlined = calloc(attr->cap.max_send_wr, attr->cap.max_inline_data + 1);
	must(qp->sends != NULL && qp->receives != NULL && qp->inlined != NULL);
	qp->verbs.context = pd->context;
	qp->verbs.qp_context = attr->qp_context;
	qp->verbs.pd = pd;
	qp->verbs.send_cq = attr->send_cq;
	qp->verbs.recv_cq = attr->recv_cq;
	qp->verbs.qp_type = attr->qp_type;
	qp->verbs.state = IBV_QPS_RESET;
	return qp;
}

int fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **ret_qp) {
	struct fake_qp *qp;
	uint32_t place;
	int err = fake_enter_on(FAKE_CREATE_QP, pd->context);

	if (err != 0)
		return err;
	err = qp_check(pd, attr);
	if (err != 0)
		return fake_leave(err);
	qp = qp_make(pd, attr);
	place = qp_place(qp->device->private);
	qp->device->private->qps[place] = qp;
	qp->verbs.handle = place;
	qp->verbs.qp_num = FAKE_QPN_FIRST + place;
	qp_users(&qp->verbs, 1);
	fake_qp_changed();
	*ret_qp = &qp->verbs;
	return fake_leave(0);
}

static void qp_take(struct fake_qp *qp, const struct ibv_qp_attr *attr, int mask) {
	struct ibv_qp_attr *own = &qp->attr;

	if ((mask & IBV_QP_PORT) != 0)
		own->port_num = attr->port_num;
	if ((mask & IBV_QP_PKEY_INDEX) != 0)
		own->pkey_index = attr->pkey_index;
	if ((mask & IBV_QP_ACCESS_FLAGS) != 0)
		own->qp_access_flags = attr->qp_access_flags;
	if ((mask & IBV_QP_AV) != 0)
		own->ah_attr = attr->ah_attr;
	if ((mask & IBV_QP_PATH_MTU) != 0)
		own->path_mtu = attr->path_mtu;
	if ((mask & IBV_QP_DEST_QPN) != 0)
		own->dest_qp_num = attr->dest_qp_num;
	if ((mask & IBV_QP_RQ_PSN) != 0)
		own->rq_psn = attr->rq_psn;
	if ((mask & IBV_QP_SQ_PSN) != 0)
		own->sq_psn = attr->sq_psn;
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0)
		own->max_rd_atomic = attr->max_rd_atomic;
	if ((mask & IBV_QP_MIN_RNR_TIMER) != 0)
		own->min_rnr_timer = attr->min_rnr_timer;
	if ((mask & IBV_QP_TIMEOUT) != 0)
		own->timeout = attr->timeout;
	if ((mask & IBV_QP_RETRY_CNT) != 0)
		own->retry_cnt = attr->retry_cnt;
	if ((mask & IBV_QP_RNR_RETRY) != 0)
		own->rnr_retry = attr->rnr_retry;
}

int fake_modify_qp(struct ibv_qp *verbs, struct ibv_qp_attr *attr, int mask) {
	struct fake_qp *qp = fake_qp_of(verbs);
	enum ibv_qp_state next;
	int err = fake_enter_on(FAKE_MODIFY_QP, verbs->context);

	if (err != 0)
		return err;
	err = fake_modify_check(qp, attr, mask, &next);
	if (err != 0)
		return fake_leave(err);
	fake_run_locked();
	qp_take(qp, attr, mask);
	if (next == IBV_QPS_ERR) {
		fake_qp_to_error(qp);
	} else {
		qp->attr.qp_state = next;
		fake_qp_changed();
	}
	if (next == IBV_QPS_RESET) {
		fake_qp_empty(qp);
		fake_qp_forget(qp, false);
	}
	verbs->state = next;
	fake_run_locked();
	return fake_leave(0);
}

int fake_query_qp(
	struct ibv_qp *verbs,
	int mask,
	struct ibv_qp_attr *ret_attr,
	struct ibv_qp_init_attr *ret_init
) {
	struct fake_qp *qp = fake_qp_of(verbs);
	int err = fake_enter_on(FAKE_QUERY_QP, verbs->context);

	(void)mask;
	if (err != 0)
		return err;
	fake_run_locked();
	*ret_attr = qp->attr;
	ret_attr->cur_qp_state = qp->attr.qp_state;
	ret_attr->cap = qp->init.cap;
	*ret_init = qp->init;
	return fake_leave(0);
}

int fake_destroy_qp(struct ibv_qp *verbs) {
	struct fake_qp *qp = fake_qp_of(verbs);
	int err = fake_enter_on(FAKE_DESTROY_QP, verbs->context);

	if (err != 0)
		return err;
	if (qp->async_taken != qp->async_acked) {
		fake_break("a queue pair was destroyed with events not acknowledged");
		return fake_leave(-EBUSY);
	}
	fake_qp_empty(qp);
	fake_qp_forget(qp, qp->device->keeps_completions);
	fake_events_drop(fake_context_of(verbs->context), verbs);
	qp->device->private->qps[verbs->handle] = NULL;
	qp_users(verbs, UINT32_MAX);
	fake_qp_changed();
	free(qp->sends);
	free(qp->receives);
	free(qp->inlined);
	free(qp);
	fake_run_locked();
	return fake_leave(0);
}
