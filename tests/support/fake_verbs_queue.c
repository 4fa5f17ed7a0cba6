// SPDX-License-Identifier: BSD-3-Clause
// Order in which posted work is done, and its completions.
#include "fake_verbs_impl.h"

// Value of completion fields that verbs leaves undefined.
#define RUBBISH UINT32_C(0xdeadbeef)

// The list of queue pairs with work.

void fake_qp_list(struct fake_qp *qp) {
	if (qp->listed)
		return;
	qp->listed = true;
	qp->previous = NULL;
	qp->next = fake.busy;
	if (fake.busy != NULL)
		fake.busy->previous = qp;
	fake.busy = qp;
}

void fake_qp_unlist(struct fake_qp *qp) {
	if (!qp->listed)
		return;
	qp->listed = false;
	if (qp->previous != NULL)
		qp->previous->next = qp->next;
	else
		fake.busy = qp->next;
	if (qp->next != NULL)
		qp->next->previous = qp->previous;
}

static uint32_t sends_waiting(const struct fake_qp *qp) {
	return qp->sends_posted - qp->sends_done;
}

static uint32_t receives_waiting(const struct fake_qp *qp) {
	return qp->receives_posted - qp->receives_done;
}

bool fake_qp_has_work(const struct fake_qp *qp) {
	return sends_waiting(qp) > 0 ||
	       (qp->attr.qp_state == IBV_QPS_ERR && receives_waiting(qp) > 0);
}

static struct fake_send *send_head(const struct fake_qp *qp) {
	return &qp->sends[qp->sends_done % qp->init.cap.max_send_wr];
}

void fake_qp_changed(void) {
	fake.epoch++;
	fake.peer_epoch++;
}

void fake_qp_to_error(struct fake_qp *qp) {
	if (qp->attr.qp_state == IBV_QPS_ERR)
		return;
	qp->attr.qp_state = IBV_QPS_ERR;
	qp->error_ns = fake_now_ns();
	fake_qp_changed();
	if (fake_qp_has_work(qp))
		fake_qp_list(qp);
}

void fake_qp_empty(struct fake_qp *qp) {
	fake_qp_unlist(qp);
	qp->sends_free = qp->sends_done = qp->sends_posted;
	qp->receives_free = qp->receives_done = qp->receives_posted;
	qp->last_due_ns = 0;
}

static void cq_forget(struct fake_cq *cq, const struct fake_qp *qp, bool keep) {
	uint32_t size = (uint32_t)cq->verbs.cqe, kept = 0;

	for (uint32_t n = 0; n < cq->count; n++) {
		struct fake_cqe entry = cq->entries[(cq->head + n) % size];

		if (entry.qp == qp) {
			entry.qp = NULL;
			if (!keep)
				continue;
		}
		cq->entries[(cq->head + kept++) % size] = entry;
	}
	cq->count = kept;
}

void fake_qp_forget(struct fake_qp *qp, bool keep) {
	cq_forget(fake_cq_of(qp->verbs.send_cq), qp, keep);
	cq_forget(fake_cq_of(qp->verbs.recv_cq), qp, keep);
}

// Completions of the local queues.

static enum ibv_wc_opcode completion_opcode(enum ibv_wr_opcode opcode) {
	switch (opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return IBV_WC_SEND;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_RDMA_WRITE;
	}
}

// Push a send completion. byte_len is defined only for operations that deliver bytes here.
static void send_push(
	struct fake_qp *qp,
	const struct fake_send *send,
	struct fake_outcome outcome,
	uint32_t vendor
) {
	bool good = outcome.status == IBV_WC_SUCCESS;
	enum ibv_wc_opcode opcode = completion_opcode(send->wr.opcode);
	struct fake_cqe entry = {
		.wc =
			{
				.wr_id = send->wr.wr_id,
				.status = outcome.status,
				.opcode = good ? opcode : (enum ibv_wc_opcode)0x5a,
				.vendor_err = good ? RUBBISH : vendor,
				.byte_len = good && opcode >= IBV_WC_RDMA_READ ? outcome.bytes
									       : RUBBISH,
				.imm_data = RUBBISH,
				.qp_num = qp->verbs.qp_num,
				.src_qp = RUBBISH,
			},
		.qp = qp,
		.end = qp->sends_done,
	};

	fake_cq_push(fake_cq_of(qp->verbs.send_cq), &entry);
}

static void send_end(struct fake_qp *qp, struct fake_outcome outcome, uint32_t vendor) {
	const struct fake_send *send = send_head(qp);

	qp->sends_done++;
	qp->sends_tried++;
	if (qp->held && qp->let_go > 0)
		qp->let_go--;
	if (outcome.status != IBV_WC_SUCCESS || qp->init.sq_sig_all != 0 ||
	    (send->wr.send_flags & IBV_SEND_SIGNALED) != 0)
		send_push(qp, send, outcome, vendor);
	if (outcome.status != IBV_WC_SUCCESS)
		fake_qp_to_error(qp);
}

static void flush_one(struct fake_qp *qp) {
	static const struct fake_outcome flushed = {.status = IBV_WC_WR_FLUSH_ERR};
	const struct fake_receive *receive;
	struct fake_cqe entry = {.qp = qp, .receive = true};

	if (qp->flush_left != UINT32_MAX)
		qp->flush_left--;
	if (sends_waiting(qp) > 0) {
		qp->sends_done++;
		send_push(
			qp, &qp->sends[(qp->sends_done - 1) % qp->init.cap.max_send_wr], flushed,
			qp->device->vendor_error
		);
		return;
	}
	receive = &qp->receives[qp->receives_done++ % qp->init.cap.max_recv_wr];
	entry.end = qp->receives_done;
	entry.wc = (struct ibv_wc){
		.wr_id = receive->wr_id,
		.status = IBV_WC_WR_FLUSH_ERR,
		.opcode = (enum ibv_wc_opcode)0x5a,
		.vendor_err = qp->device->vendor_error,
		.byte_len = RUBBISH,
		.qp_num = qp->verbs.qp_num,
	};
	fake_cq_push(fake_cq_of(qp->verbs.recv_cq), &entry);
}

// Requests without response, and requests for which the peer has no receive.

// Return the time until a request without response fails: 4.096 us * 2^timeout, once and for each
// retry. 7 retries never end, as with Soft-RoCE.
static uint64_t silent_ns(const struct fake_qp *qp) {
	if (qp->attr.timeout == 0 || qp->attr.retry_cnt == 7)
		return FAKE_NEVER;
	return (UINT64_C(4096) << qp->attr.timeout) * (qp->attr.retry_cnt + UINT64_C(1));
}

// Return the RNR delay (InfiniBand 1.3, table 45; units of 10 us). The peer's timer applies, but
// both ends of this project use the same.
static uint64_t rnr_ns(const struct fake_qp *qp) {
	static const uint32_t units[32] = {
		65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
		48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	if (qp->attr.rnr_retry == 7)
		return FAKE_NEVER;
	return UINT64_C(10000) * units[qp->attr.min_rnr_timer & 31] * qp->attr.rnr_retry;
}

static void send_waits(struct fake_qp *qp, enum fake_answer answer, uint64_t now_ns) {
	struct fake_send *send = send_head(qp);
	bool silent = answer == FAKE_ANSWER_SILENT;
	uint64_t patience_ns = silent ? silent_ns(qp) : rnr_ns(qp);
	struct fake_outcome outcome = {
		.status = silent ? IBV_WC_RETRY_EXC_ERR : IBV_WC_RNR_RETRY_EXC_ERR};

	qp->tried_epoch = fake.epoch;
	if (send->give_up_ns == 0)
		send->give_up_ns = patience_ns == FAKE_NEVER ? FAKE_NEVER : now_ns + patience_ns;
	// Without a clock, requests wait only for a receive, never for a response.
	if (fake.clock == NULL && patience_ns != FAKE_NEVER && (silent || patience_ns == 0))
		send->give_up_ns = now_ns;
	if (now_ns >= send->give_up_ns)
		send_end(qp, outcome, qp->device->vendor_error);
}

static void send_step(struct fake_qp *qp, uint64_t now_ns) {
	struct fake_outcome outcome = {0};
	enum fake_answer answer;

	for (uint32_t n = 0; n < qp->error_count; n++) {
		struct fake_error error = qp->errors[n];

		if (error.at != qp->sends_tried)
			continue;
		qp->errors[n] = qp->errors[--qp->error_count];
		outcome.status = error.status;
		send_end(qp, outcome, error.vendor);
		return;
	}
	answer = fake_work_do(qp, send_head(qp), &outcome);
	if (answer == FAKE_ANSWER_DONE)
		send_end(qp, outcome, qp->device->vendor_error);
	else
		send_waits(qp, answer, now_ns);
}

// Order.

static uint64_t ready_ns(const struct fake_qp *qp) {
	const struct fake_send *send;

	if (qp->attr.qp_state == IBV_QPS_ERR) {
		if (qp->flush_left == 0 || qp->device->never_flushes || !fake_qp_has_work(qp))
			return FAKE_NEVER;
		return qp->error_ns + qp->device->flush_ns;
	}
	if (qp->attr.qp_state != IBV_QPS_RTS || sends_waiting(qp) == 0 ||
	    (qp->held && qp->let_go == 0))
		return FAKE_NEVER;
	send = send_head(qp);
	if (send->give_up_ns == 0 || qp->tried_epoch != fake.epoch)
		return send->due_ns;
	return send->give_up_ns;
}

static uint64_t order_of(const struct fake_qp *qp) {
	return sends_waiting(qp) > 0 ? send_head(qp)->order : 0;
}

static struct fake_qp *next_of(uint64_t *ret_ready_ns) {
	struct fake_qp *next = NULL;

	*ret_ready_ns = FAKE_NEVER;
	for (struct fake_qp *qp = fake.busy; qp != NULL; qp = qp->next) {
		uint64_t at_ns = ready_ns(qp);

		if (at_ns > *ret_ready_ns || at_ns == FAKE_NEVER)
			continue;
		if (next != NULL && at_ns == *ret_ready_ns && order_of(qp) > order_of(next))
			continue;
		next = qp;
		*ret_ready_ns = at_ns;
	}
	return next;
}

void fake_run_locked(void) {
	uint64_t now_ns, ready;
	struct fake_qp *qp;

	if (fake.busy == NULL)
		return;
	now_ns = fake_now_ns();
	for (;;) {
		qp = next_of(&ready);
		if (qp == NULL || ready > now_ns)
			return;
		if (qp->attr.qp_state == IBV_QPS_ERR)
			flush_one(qp);
		else
			send_step(qp, now_ns);
		if (!fake_qp_has_work(qp))
			fake_qp_unlist(qp);
	}
}

uint64_t fake_verbs_next_ns(void) {
	uint64_t ready;

	fake_lock();
	next_of(&ready);
	fake_unlock();
	return ready;
}
