// SPDX-License-Identifier: BSD-3-Clause
// Handles progress after acknowledgements and responses: completions, strictly in posting order,
// and the requests that may now be sent.
#include "transport/requester_impl.h"

static const enum ibv_wc_opcode completion_opcodes[] = {
	[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
	[IBV_WR_SEND] = IBV_WC_SEND,
	[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
	[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
};

void requester_complete(
	struct soft_qp *qp, const struct send_work *work, enum ibv_wc_status status
) {
	struct ibv_wc wc;

	if (status == IBV_WC_SUCCESS && (work->flags & IBV_SEND_SIGNALED) == 0)
		return;
	wc = (struct ibv_wc){
		.wr_id = work->wr_id,
		.status = status,
		.opcode = completion_opcodes[work->opcode],
		.byte_len = work->length,
		.qp_num = qp->verbs.qp_num,
	};
	cq_push(qp->send_cq, &wc, status != IBV_WC_SUCCESS);
}

void requester_fail(struct soft_qp *qp, enum ibv_wc_status status) {
	struct requester *requester = &qp->requester;

	must(requester->head != requester->tail);
	requester_complete(qp, work_at(requester, requester->head++), status);
	qp_enter_error(qp);
}

void requester_advance(struct soft_qp *qp, uint32_t psn) {
	struct requester *requester = &qp->requester;
	struct send_work *work = work_at(requester, requester->head);

	must_debug(requester->head != requester->tail);
	requester->acked_psn = psn;
	if (psn != work_end_psn(work))
		return;
	requester->head++;
	requester_complete(qp, work, IBV_WC_SUCCESS);
}

bool requester_acknowledge(struct soft_qp *qp, uint32_t psn) {
	struct requester *requester = &qp->requester;

	while (requester->acked_psn != psn) {
		const struct send_work *work = work_at(requester, requester->head);
		uint32_t end = work_end_psn(work);

		if (work_needs_response(work))
			return false;
		requester_advance(qp, psn_diff(psn, end) < 0 ? psn : end);
	}
	return true;
}

bool requester_finish_advance(struct soft_qp *qp, uint32_t before) {
	struct requester *requester = &qp->requester;

	if (requester->acked_psn == before)
		return true;
	// Acknowledgements of packets sent before going back still count: skip these packets.
	if (psn_diff(requester->next_psn, requester->acked_psn) < 0) {
		requester->next = requester->head;
		requester->next_psn = requester->acked_psn;
		requester->reads_out = 0;
		// A request that could not be sent again because its memory is gone needs no
		// retransmission now.
		requester->stuck = IBV_WC_SUCCESS;
	}

	// Grow the window by one packet for each window that was acknowledged.
	if (psn_diff(requester->acked_psn, requester->recover_psn) > 0)
		requester->recover_psn = requester->acked_psn;
	requester->window_acked += psn_add(requester->acked_psn, -before);
	if (requester->window_acked >= requester->window) {
		requester->window_acked = 0;
		if (requester->window < requester->window_max)
			requester->window++;
	}

	requester->retries = qp->attr.retry_cnt;
	requester->pauses = 0;
	requester->rnr_retries = qp->attr.rnr_retry;
	requester->lost = false;
	requester->rnr_ns = 0;
	requester_learn_answer_time(qp);
	requester_stop_timers(requester);
	if (requester->stuck != IBV_WC_SUCCESS && requester->head == requester->next) {
		requester_fail(qp, requester->stuck);
		return false;
	}
	if (requester_in_flight(requester) > 0)
		requester_start_timers(qp);
	if (requester->next != requester->tail)
		qp_mark_ready(qp);
	requester_report_drained(qp);
	return true;
}
