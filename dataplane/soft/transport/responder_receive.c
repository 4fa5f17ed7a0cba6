// SPDX-License-Identifier: BSD-3-Clause
// Receives: post, take, complete, flush.
#include "transport/responder_impl.h"

#include <lib/must.h>

#include <endian.h>
#include <errno.h>

void responder_take_receive(struct soft_qp *qp) {
	struct responder *responder = &qp->responder;
	bool taken;

	taken = qp->srq != NULL
			? srq_take_receive(qp->srq, &responder->receive, responder->receive_sges)
			: receive_queue_pop(
				  &qp->receives, &responder->receive, responder->receive_sges
			  );
	must(taken);
	responder->receiving = true;
	responder->receive_sge = responder->receive_sge_used = 0;
	responder->received = 0;
}

void responder_complete_receive(
	struct soft_qp *qp, const struct packet *packet, enum ibv_wc_opcode opcode, uint32_t bytes
) {
	bool immediate = (packet_opcode_info(packet->opcode)->flags & PACKET_IMM) != 0;
	struct ibv_wc wc = {
		.wr_id = qp->responder.receive.wr_id,
		.status = IBV_WC_SUCCESS,
		.opcode = opcode,
		.byte_len = bytes,
		.qp_num = qp->verbs.qp_num,
		.src_qp = qp->attr.dest_qp_num,
	};

	if (immediate) {
		wc.imm_data = htobe32(packet->immediate);
		wc.wc_flags = IBV_WC_WITH_IMM;
	}
	qp->responder.receiving = false;
	cq_push(qp->receive_cq, &wc, packet->solicited);
}

static void complete_failed_receive(struct soft_qp *qp, enum ibv_wc_status status) {
	struct ibv_wc wc = {
		.wr_id = qp->responder.receive.wr_id,
		.status = status,
		.opcode = IBV_WC_RECV,
		.qp_num = qp->verbs.qp_num,
	};

	qp->responder.receiving = false;
	cq_push(qp->receive_cq, &wc, true);
}

uint32_t responder_fail_receive(struct soft_qp *qp, uint8_t syndrome, enum ibv_wc_status status) {
	complete_failed_receive(qp, status);
	responder_refuse(qp, syndrome);
	qp->responder.nak.told = true;
	return 0;
}

int responder_post(struct soft_qp *qp, const struct ibv_recv_wr *wr) {
	int err;

	if (qp->srq != NULL || qp->verbs.state == IBV_QPS_RESET)
		return -EINVAL;
	if (qp->receives.capacity == 0)
		return -ENOMEM;
	err = receive_queue_post(&qp->receives, wr);
	if (err == 0 && qp->verbs.state == IBV_QPS_ERR)
		responder_flush(qp);
	return err;
}

// Pending answers are dropped. Receives of a shared queue stay for other queue pairs. An event
// reports that this queue pair takes no more of them.
void responder_flush(struct soft_qp *qp) {
	struct responder *responder = &qp->responder;

	responder_clear_ack(responder);
	responder->nak = (struct responder_nak){0};
	responder->answering = responder->work_tail;
	if (responder->receiving)
		complete_failed_receive(qp, IBV_WC_WR_FLUSH_ERR);
	while (receive_queue_pop(&qp->receives, &responder->receive, responder->receive_sges))
		complete_failed_receive(qp, IBV_WC_WR_FLUSH_ERR);
	if (qp->srq != NULL)
		async_raise_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}
