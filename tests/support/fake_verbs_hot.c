// SPDX-License-Identifier: BSD-3-Clause
// The calls that libibverbs makes through the context: posting, polling, arming.
#include "fake_verbs_impl.h"

#include <errno.h>

// Posting.

// Decide whether a request is lost. xorshift64*, the same sequence in each run.
static bool draw_lost(struct fake_qp *qp) {
	if (qp->lost_permille == 0)
		return false;
	if (qp->draws == 0)
		qp->draws = 88172645463325252 + qp->verbs.qp_num;
	qp->draws ^= qp->draws >> 12;
	qp->draws ^= qp->draws << 25;
	qp->draws ^= qp->draws >> 27;
	return (qp->draws * UINT64_C(0x2545f4914f6cdd1d) >> 33) % 1000 < qp->lost_permille;
}

static uint64_t due_ns(struct fake_qp *qp) {
	const struct fake_device *device = qp->device;
	uint64_t delay_ns = qp->delay_ns;
	uint64_t at_ns;

	if (fake.clock == NULL)
		return 0;
	if (delay_ns == FAKE_NEVER)
		delay_ns =
			device->delay != NULL ? device->delay(device->delay_ctx) : device->delay_ns;
	while (draw_lost(qp))
		delay_ns += qp->again_ns;
	at_ns = fake_now_ns() + delay_ns;
	if (at_ns < qp->last_due_ns)
		at_ns = qp->last_due_ns;
	qp->last_due_ns = at_ns;
	return at_ns;
}

static bool opcode_is_known(enum ibv_wr_opcode opcode) {
	return opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD;
}

// Copy inline data now: the caller may change the bytes at once.
static int send_inline(struct fake_qp *qp, struct fake_send *send, const struct ibv_send_wr *wr) {
	size_t size = qp->init.cap.max_inline_data;
	uint8_t *bytes = qp->inlined + qp->sends_posted % qp->init.cap.max_send_wr * size;
	size_t at = 0;

	for (int n = 0; n < wr->num_sge; n++) {
		if (wr->sg_list[n].length > size - at)
			return EINVAL;
		memcpy(bytes + at, fake_pointer(wr->sg_list[n].addr), wr->sg_list[n].length);
		at += wr->sg_list[n].length;
	}
	send->sge[0].addr = (uintptr_t)bytes;
	send->sge[0].length = (uint32_t)at;
	send->wr.num_sge = 1;
	return 0;
}

static int send_post(struct fake_qp *qp, const struct ibv_send_wr *wr) {
	struct fake_send *send = &qp->sends[qp->sends_posted % qp->init.cap.max_send_wr];
	int err = -fake_fault(FAKE_POST_SEND);

	if (err != 0)
		return err;
	if ((qp->attr.qp_state != IBV_QPS_RTS && qp->attr.qp_state != IBV_QPS_ERR) ||
	    wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->init.cap.max_send_sge ||
	    !opcode_is_known(wr->opcode))
		return EINVAL;
	if (qp->sends_posted - qp->sends_free >= qp->init.cap.max_send_wr)
		return ENOMEM;
	send->wr = *wr;
	send->wr.next = NULL;
	send->wr.sg_list = send->sge;
	send->give_up_ns = 0;
	if ((wr->send_flags & IBV_SEND_INLINE) != 0)
		err = send_inline(qp, send, wr);
	else if (wr->num_sge > 0)
		memcpy(send->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*wr->sg_list));
	if (err != 0)
		return err;
	send->order = ++fake.order;
	send->due_ns = due_ns(qp);
	qp->sends_posted++;
	return 0;
}

// Post a send in light mode, for benchmarks of the code around the device.
static int send_post_light(struct fake_qp *qp, const struct ibv_send_wr *wr) {
	struct fake_cqe entry = {
		.wc = {.wr_id = wr->wr_id, .qp_num = qp->verbs.qp_num},
		.qp = qp,
		.end = qp->sends_done + 1,
	};

	if (qp->sends_posted - qp->sends_free >= qp->init.cap.max_send_wr)
		return ENOMEM;
	qp->sends_posted++;
	qp->sends_done++;
	if ((wr->send_flags & IBV_SEND_SIGNALED) != 0)
		fake_cq_push(fake_cq_of(qp->verbs.send_cq), &entry);
	return 0;
}

static int post_send(struct ibv_qp *verbs, struct ibv_send_wr *wr, struct ibv_send_wr **ret_bad) {
	struct fake_qp *qp = fake_qp_of(verbs);
	int err = 0;

	fake_lock();
	for (; wr != NULL; wr = wr->next) {
		err = fake.light && qp->attr.qp_state == IBV_QPS_RTS ? send_post_light(qp, wr)
								     : send_post(qp, wr);
		if (err != 0) {
			*ret_bad = wr;
			break;
		}
	}
	if (fake_qp_has_work(qp) && !fake_context_of(verbs->context)->lost)
		fake_qp_list(qp);
	if (fake.clock == NULL)
		fake_run_locked();
	fake_unlock();
	return err;
}

static int receive_post(struct fake_qp *qp, const struct ibv_recv_wr *wr) {
	struct fake_receive *receive =
		&qp->receives[qp->receives_posted % qp->init.cap.max_recv_wr];
	int err = -fake_fault(FAKE_POST_RECV);

	if (err != 0)
		return err;
	if (qp->attr.qp_state == IBV_QPS_RESET || wr->num_sge < 0 ||
	    (uint32_t)wr->num_sge > qp->init.cap.max_recv_sge)
		return EINVAL;
	if (qp->receives_posted - qp->receives_free >= qp->init.cap.max_recv_wr)
		return ENOMEM;
	receive->wr_id = wr->wr_id;
	receive->num_sge = wr->num_sge;
	if (wr->num_sge > 0)
		memcpy(receive->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*wr->sg_list));
	qp->receives_posted++;
	return 0;
}

static int post_recv(struct ibv_qp *verbs, struct ibv_recv_wr *wr, struct ibv_recv_wr **ret_bad) {
	struct fake_qp *qp = fake_qp_of(verbs);
	int err = 0;

	fake_lock();
	for (; wr != NULL; wr = wr->next) {
		err = receive_post(qp, wr);
		if (err != 0) {
			*ret_bad = wr;
			break;
		}
	}
	fake.epoch++;
	if (fake_qp_has_work(qp) && !fake_context_of(verbs->context)->lost)
		fake_qp_list(qp);
	if (fake.clock == NULL)
		fake_run_locked();
	fake_unlock();
	return err;
}

// Polling.

// Free the places of a queue up to this completion, once a program has polled it.
static void places_free(const struct fake_cqe *entry) {
	if (entry->qp == NULL)
		return;
	if (entry->receive)
		entry->qp->receives_free = entry->end;
	else
		entry->qp->sends_free = entry->end;
}

static int poll_cq(struct ibv_cq *verbs, int max, struct ibv_wc *wc) {
	struct fake_cq *cq = fake_cq_of(verbs);
	int count = 0;

	fake_lock();
	if (fake_fault(FAKE_POLL_CQ) != 0) {
		fake_unlock();
		return -1;
	}
	fake_run_locked();
	for (; count < max && cq->count > 0; count++) {
		const struct fake_cqe *entry = &cq->entries[cq->head];

		wc[count] = entry->wc;
		places_free(entry);
		if (++cq->head == (uint32_t)verbs->cqe)
			cq->head = 0;
		cq->count--;
	}
	fake_unlock();
	return count;
}

static int req_notify_cq(struct ibv_cq *verbs, int solicited_only) {
	struct fake_cq *cq = fake_cq_of(verbs);
	int err;

	fake_lock();
	err = -fake_fault(FAKE_REQ_NOTIFY_CQ);
	if (err == 0) {
		// Work that is already due raises no event: the poll after arming finds it.
		fake_run_locked();
		cq->armed_solicited = solicited_only != 0 && (!cq->armed || cq->armed_solicited);
		cq->armed = true;
	}
	fake_unlock();
	return err;
}

void fake_hot_ops(struct ibv_context_ops *ops) {
	ops->post_send = post_send;
	ops->post_recv = post_recv;
	ops->poll_cq = poll_cq;
	ops->req_notify_cq = req_notify_cq;
}
