// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs: creation, numbering, lookup, errors, destruction. Used under the device's lock.
#include "transport/qp.h"

#include "transport/verbs_limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QPS_MIN 64
#define ACK_FLUSH_PACKETS 32 // packets: responses that precede the acknowledgement
#define QP_SALTS \
	((1u << (24 - NIC_QP_INDEX_BITS)) - 1) // 0 is not used: numbers 0 and 1 are special

struct soft_qp *qp_find(const struct soft_nic *nic, uint32_t number) {
	uint32_t index = number & (NIC_QPS_MAX - 1);
	struct soft_qp *qp = index < nic->qp_capacity ? nic->qps[index] : NULL;

	return qp != NULL && qp->verbs.qp_num == number ? qp : NULL;
}

// Indices are used in turn, so that each stays free for long and returns with another salt.
static int qp_assign_number(struct soft_nic *nic, struct soft_qp *qp) {
	uint32_t index, old = nic->qp_capacity;

	if (nic->qp_count == old) {
		uint32_t capacity = old == 0 ? QPS_MIN : old * 2;
		struct soft_qp **qps = realloc(nic->qps, capacity * sizeof(struct soft_qp *));
		uint16_t *salts;

		if (qps == NULL)
			return -ENOMEM;
		nic->qps = qps;
		salts = realloc(nic->qp_salts, capacity * sizeof(*salts));
		if (salts == NULL)
			return -ENOMEM;
		nic->qp_salts = salts;
		for (uint32_t n = old; n < capacity; n++) {
			qps[n] = NULL;
			salts[n] = (uint16_t)(nic_random(nic) % QP_SALTS);
		}
		nic->qp_next = old;
		nic->qp_capacity = capacity;
	}
	while (nic->qps[nic->qp_next & (nic->qp_capacity - 1)] != NULL)
		nic->qp_next++;
	index = nic->qp_next++ & (nic->qp_capacity - 1);
	nic->qp_salts[index] = (uint16_t)((nic->qp_salts[index] + 1) % QP_SALTS);
	qp->verbs.qp_num = (nic->qp_salts[index] + 1u) << NIC_QP_INDEX_BITS | index;
	qp->verbs.handle = index;
	nic->qps[index] = qp;
	nic->qp_count++;
	return 0;
}

static int qp_check_attr(const struct ibv_pd *pd, const struct ibv_qp_init_attr *attr) {
	const struct ibv_qp_cap *cap = &attr->cap;

	switch (attr->qp_type) {
	case IBV_QPT_RC:
		break;
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
	if (attr->send_cq == NULL || attr->recv_cq == NULL ||
	    attr->send_cq->context != pd->context || attr->recv_cq->context != pd->context ||
	    (attr->srq != NULL && attr->srq->context != pd->context))
		return -EINVAL;
	if (cap->max_send_wr > LIMIT_QP_WORKS || cap->max_recv_wr > LIMIT_QP_WORKS ||
	    cap->max_send_sge > REQUESTER_SGE_MAX || cap->max_recv_sge > REQUESTER_SGE_MAX ||
	    cap->max_inline_data > REQUESTER_INLINE_MAX)
		return -EINVAL;
	return 0;
}

static uint32_t count_or_one(uint32_t count) {
	return count > 0 ? count : 1;
}

static void qp_free(struct soft_qp *qp) {
	requester_fini(&qp->requester);
	receive_queue_fini(&qp->receives);
	responder_fini(&qp->responder);
	pthread_cond_destroy(&qp->verbs.cond);
	pthread_mutex_destroy(&qp->verbs.mutex);
	free(qp);
}

static void qp_count_users(struct soft_qp *qp, uint32_t more) {
	qp->send_cq->users += more;
	qp->receive_cq->users += more;
	soft_pd_of(qp->verbs.pd)->users += more;
	if (qp->srq != NULL)
		qp->srq->users += more;
	qp->context->objects += more;
}

static void
qp_init_fields(struct soft_qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr) {
	qp->context = soft_context_of(pd->context);
	qp->nic = qp->context->nic;
	qp->signal_all = attr->sq_sig_all != 0;
	qp->send_cq = soft_cq_of(attr->send_cq);
	qp->receive_cq = soft_cq_of(attr->recv_cq);
	qp->srq = attr->srq != NULL ? soft_srq_of(attr->srq) : NULL;
	qp->due_ns = NIC_NEVER;
	qp->cap = attr->cap;
	qp->cap.max_send_wr = count_or_one(attr->cap.max_send_wr);
	qp->cap.max_send_sge = count_or_one(attr->cap.max_send_sge);
	qp->cap.max_recv_wr = qp->srq != NULL ? 0 : count_or_one(attr->cap.max_recv_wr);
	qp->cap.max_recv_sge = qp->srq != NULL ? 0 : count_or_one(attr->cap.max_recv_sge);
	qp->verbs.context = pd->context;
	qp->verbs.qp_context = attr->qp_context;
	qp->verbs.pd = pd;
	qp->verbs.send_cq = attr->send_cq;
	qp->verbs.recv_cq = attr->recv_cq;
	qp->verbs.srq = attr->srq;
	qp->verbs.qp_type = attr->qp_type;
	qp->verbs.state = IBV_QPS_RESET;
	pthread_mutex_init(&qp->verbs.mutex, NULL);
	pthread_cond_init(&qp->verbs.cond, NULL);
}

int qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct soft_qp **ret_qp) {
	struct soft_nic *nic = soft_context_of(pd->context)->nic;
	uint32_t sge_max;
	struct soft_qp *qp;
	int err = qp_check_attr(pd, attr);

	if (err != 0)
		return err;
	if (nic->qp_count >= LIMIT_QPS)
		return -ENOMEM;
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return -ENOMEM;
	qp_init_fields(qp, pd, attr);
	sge_max = qp->srq != NULL ? qp->srq->queue.sge_max : qp->cap.max_recv_sge;
	err = requester_init(&qp->requester, &qp->cap);
	if (err == 0 && qp->srq == NULL)
		err = receive_queue_init(&qp->receives, qp->cap.max_recv_wr, sge_max);
	if (err == 0)
		err = responder_init(&qp->responder, sge_max);
	if (err == 0)
		err = qp_assign_number(nic, qp);
	if (err != 0) {
		qp_free(qp);
		return err;
	}
	qp_count_users(qp, 1);
	attr->cap = qp->cap;
	*ret_qp = qp;
	return 0;
}

void qp_unlist(struct soft_qp *qp) {
	struct soft_nic *nic = qp->nic;

	if (qp->is_ready)
		TAILQ_REMOVE(&nic->ready, qp, ready_entry);
	else if (qp->ack_is_deferred)
		TAILQ_REMOVE(&nic->lazy, qp, ready_entry);
	qp->is_ready = qp->ack_is_deferred = qp->ack_now = false;
	qp_set_timer(qp, NIC_NEVER);
}

void qp_mark_ready(struct soft_qp *qp) {
	if (qp->is_ready)
		return;
	if (qp->ack_is_deferred)
		TAILQ_REMOVE(&qp->nic->lazy, qp, ready_entry);
	qp->ack_is_deferred = false;
	qp->is_ready = true;
	TAILQ_INSERT_TAIL(&qp->nic->ready, qp, ready_entry);
}

// due_ns of the device only decreases here; nic_run_timers() recomputes it.
void qp_set_timer(struct soft_qp *qp, uint64_t due_ns) {
	struct soft_nic *nic = qp->nic;
	bool timed = due_ns != NIC_NEVER;

	if (timed && !qp->is_timed)
		TAILQ_INSERT_TAIL(&nic->timed, qp, timed_entry);
	else if (!timed && qp->is_timed)
		TAILQ_REMOVE(&nic->timed, qp, timed_entry);
	qp->is_timed = timed;
	qp->due_ns = due_ns;
	if (due_ns < nic->due_ns)
		nic->due_ns = due_ns;
}

void qp_flush_ack(struct soft_qp *qp) {
	if (!qp->responder.ack_due || qp->verbs.state == IBV_QPS_ERR)
		return;
	(void)responder_transmit(qp, ACK_FLUSH_PACKETS, false);
	qp->nic->wire->calls->flush(qp->nic->wire);
}

void qp_reset(struct soft_qp *qp) {
	qp_flush_ack(qp);
	qp_unlist(qp);
	requester_reset(qp);
	responder_reset(qp);
	cq_remove_completions(qp->send_cq, qp->verbs.qp_num);
	cq_remove_completions(qp->receive_cq, qp->verbs.qp_num);
	qp->attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET};
	qp->verbs.state = IBV_QPS_RESET;
}

// The index stays in use until the program has acknowledged all events about the queue pair.
void qp_destroy(struct soft_qp *qp) {
	struct soft_nic *nic = qp->nic;

	qp_reset(qp);
	async_settle_events(qp->context, qp, &qp->events);
	nic->qps[qp->verbs.handle] = NULL;
	nic->qp_count--;
	qp_count_users(qp, UINT32_MAX);
	qp_free(qp);
}

void qp_enter_error(struct soft_qp *qp) {
	if (qp->verbs.state == IBV_QPS_ERR)
		return;
	qp->verbs.state = IBV_QPS_ERR;
	requester_flush(qp);
	responder_flush(qp);
	qp_unlist(qp);
}

void qp_raise_fatal(struct soft_qp *qp, enum ibv_event_type type) {
	if (qp->verbs.state == IBV_QPS_ERR)
		return;
	async_raise_qp_event(qp, type);
	qp_enter_error(qp);
}
