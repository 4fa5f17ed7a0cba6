// SPDX-License-Identifier: BSD-3-Clause
// Orders requests: next, early, or duplicate; and the parts common to all kinds of requests. Used
// under the device's lock.
#include "transport/responder.h"

#include "transport/responder_impl.h"

#include <errno.h>
#include <stdlib.h>

int responder_init(struct responder *responder, uint32_t sge_max) {
	*responder = (struct responder){0};
	responder->receive_sges = calloc(sge_max > 0 ? sge_max : 1, sizeof(struct ibv_sge));
	return responder->receive_sges != NULL ? 0 : -ENOMEM;
}

void responder_fini(struct responder *responder) {
	free(responder->receive_sges);
	*responder = (struct responder){0};
}

void responder_start(struct soft_qp *qp) {
	struct ibv_sge *sges = qp->responder.receive_sges;

	qp->responder = (struct responder){
		.expected_psn = qp->attr.rq_psn & PSN_MASK,
		.receive_sges = sges,
	};
}

void responder_reset(struct soft_qp *qp) {
	struct ibv_sge *sges = qp->responder.receive_sges;

	qp->responder = (struct responder){.receive_sges = sges};
	qp->receives.head = qp->receives.tail;
}

uint32_t responder_refuse(struct soft_qp *qp, uint8_t syndrome) {
	struct responder *responder = &qp->responder;

	responder->nak = (struct responder_nak){
		.syndrome = syndrome,
		.fatal = true,
		.event = syndrome == PACKET_SYNDROME_NAK_ACCESS ? IBV_EVENT_QP_ACCESS_ERR
								: IBV_EVENT_QP_REQ_ERR,
		.psn = responder->expected_psn,
	};
	return 0;
}

// Record a gap. Only the expected PSN ends it; later packets meanwhile need no further answer.
static void responder_begin_gap(struct responder *responder, uint8_t syndrome, uint32_t psn) {
	responder->nak = (struct responder_nak){
		.syndrome = syndrome,
		.psn = responder->expected_psn,
	};
	responder->nak_sent = true;
	responder->gap_psn = psn;
}

bool responder_has_receive(struct soft_qp *qp) {
	const struct receive_queue *queue = qp->srq != NULL ? &qp->srq->queue : &qp->receives;

	if (receive_queue_count(queue) > 0)
		return true;
	responder_begin_gap(
		&qp->responder, PACKET_SYNDROME_RNR | (qp->attr.min_rnr_timer & 0x1f),
		qp->responder.expected_psn
	);
	return false;
}

static void responder_owe_ack(struct soft_qp *qp, bool single) {
	qp->responder.ack_due = true;
	ack_rule_note_request(&qp->responder.ack_rule, qp->nic->now_ns, single);
}

// Return the access right that this kind of request needs; 0: none.
static unsigned int access_needed_by(uint8_t kind) {
	switch (kind) {
	case PACKET_KIND_WRITE:
		return IBV_ACCESS_REMOTE_WRITE;
	case PACKET_KIND_READ:
		return IBV_ACCESS_REMOTE_READ;
	case PACKET_KIND_ATOMIC:
		return IBV_ACCESS_REMOTE_ATOMIC;
	default:
		return 0;
	}
}

static uint32_t request_execute(struct soft_qp *qp, const struct packet *packet) {
	const struct packet_opcode_info *facts = packet_opcode_info(packet->opcode);
	uint8_t begun = (facts->flags & PACKET_FIRST) != 0 ? PACKET_KIND_NONE : facts->kind;
	unsigned int access = access_needed_by(facts->kind);

	if (begun != qp->responder.kind || (qp->attr.qp_access_flags & access) != access)
		return responder_refuse(qp, PACKET_SYNDROME_NAK_INVALID);
	switch (facts->kind) {
	case PACKET_KIND_SEND:
		return responder_send(qp, packet, facts->flags);
	case PACKET_KIND_WRITE:
		return responder_write(qp, packet, facts->flags);
	case PACKET_KIND_READ:
		return responder_read(qp, packet);
	default:
		return responder_atomic(qp, packet);
	}
}

static void handle_next_request(struct soft_qp *qp, const struct packet *packet) {
	const struct packet_opcode_info *facts = packet_opcode_info(packet->opcode);
	struct responder *responder = &qp->responder;
	uint32_t psns;

	// The pending NAK about the gap or the missing receive is obsolete.
	responder->nak = (struct responder_nak){0};
	responder->nak_sent = false;
	psns = request_execute(qp, packet);
	if (psns == 0)
		return;
	responder->expected_psn = psn_add(responder->expected_psn, psns);
	if ((facts->flags & PACKET_LAST) != 0) {
		responder->kind = PACKET_KIND_NONE;
		responder->msn = (responder->msn + 1) & PSN_MASK;
	} else {
		responder->kind = facts->kind;
	}
	// The response to a read or atomic acknowledges it and all requests before it.
	if (facts->kind == PACKET_KIND_READ || facts->kind == PACKET_KIND_ATOMIC)
		responder_clear_ack(responder);
	else if (packet->ack_request)
		responder_owe_ack(
			qp, (facts->flags & PACKET_FIRST) != 0 && (facts->flags & PACKET_LAST) != 0
		);
}

void responder_request(struct soft_qp *qp, const struct packet *packet) {
	uint8_t kind = packet_opcode_info(packet->opcode)->kind;
	struct responder *responder = &qp->responder;
	int32_t after = psn_diff(packet->psn, responder->expected_psn);

	if (responder->nak.fatal || (kind != PACKET_KIND_SEND && access_needed_by(kind) == 0)) {
		counter_add(&qp->nic->counters.drop_state, 1);
		return;
	}
	if (!responder->established && qp->verbs.state == IBV_QPS_RTR)
		async_raise_qp_event(qp, IBV_EVENT_COMM_EST);
	responder->established = true;
	if (after == 0) {
		handle_next_request(qp, packet);
	} else if (after > 0) {
		// A PSN not after the latest one means that the sender went back. The expected
		// packet is still missing, so it was lost again.
		counter_add(&qp->nic->counters.out_of_sequence, 1);
		if (responder->nak_sent && psn_diff(packet->psn, responder->gap_psn) > 0) {
			responder->gap_psn = packet->psn;
			counter_add(&qp->nic->counters.drop_sequence, 1);
		} else if (responder->nak.syndrome != 0) {
			responder->gap_psn = packet->psn;
		} else {
			responder_begin_gap(responder, PACKET_SYNDROME_NAK_SEQUENCE, packet->psn);
		}
	} else {
		counter_add(&qp->nic->counters.duplicates, 1);
		if (kind == PACKET_KIND_READ)
			responder_duplicate_read(qp, packet);
		else if (kind == PACKET_KIND_ATOMIC)
			responder_duplicate_atomic(qp, packet);
		else
			responder_owe_ack(qp, false);
	}
	qp_mark_ready(qp);
}
