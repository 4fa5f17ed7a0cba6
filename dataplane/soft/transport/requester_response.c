// SPDX-License-Identifier: BSD-3-Clause
// Handles the peer's answers, which are untrusted. An answer that matches nothing in flight is
// counted and dropped, or ends the queue pair. Nothing is written outside the request's pieces.
#include "transport/requester_impl.h"

#include <string.h>

#define SYNDROME_KIND(syndrome) ((syndrome)&0xe0)

// Acknowledge everything before `end` because of an answer for `psn`. Returns true if it succeeded
// and the answer needs more handling.
static bool acknowledge_up_to(struct soft_qp *qp, uint32_t psn, uint32_t end) {
	uint32_t before = qp->requester.acked_psn;
	bool all = requester_acknowledge(qp, end);

	if (!requester_finish_advance(qp, before))
		return false;
	if (!all)
		requester_handle_gap(qp, psn);
	return all;
}

static void handle_nak(struct soft_qp *qp, uint8_t syndrome) {
	switch (syndrome) {
	case PACKET_SYNDROME_NAK_SEQUENCE:
		requester_go_back(qp);
		break;
	case PACKET_SYNDROME_NAK_INVALID:
		requester_fail(qp, IBV_WC_REM_INV_REQ_ERR);
		break;
	case PACKET_SYNDROME_NAK_ACCESS:
		requester_fail(qp, IBV_WC_REM_ACCESS_ERR);
		break;
	default:
		requester_fail(qp, IBV_WC_REM_OP_ERR);
		break;
	}
}

static void handle_ack(struct soft_qp *qp, const struct packet *packet) {
	struct soft_counters *counters = &qp->nic->counters;

	switch (SYNDROME_KIND(packet->syndrome)) {
	case 0:
		acknowledge_up_to(qp, packet->psn, psn_add(packet->psn, 1));
		return;
	case PACKET_SYNDROME_RNR:
		counter_add(&counters->rnr_naks_received, 1);
		if (acknowledge_up_to(qp, packet->psn, packet->psn))
			requester_handle_rnr(qp, packet->syndrome);
		return;
	case PACKET_SYNDROME_NAK_SEQUENCE:
		if (packet->syndrome > PACKET_SYNDROME_NAK_OPERATION)
			break;
		counter_add(&counters->naks_received, 1);
		if (acknowledge_up_to(qp, packet->psn, packet->psn))
			handle_nak(qp, packet->syndrome);
		return;
	default:
		break;
	}
	counter_add(&counters->drop_answer, 1);
}

static void response_reject(struct soft_qp *qp) {
	counter_add(&qp->nic->counters.drop_answer, 1);
	requester_fail(qp, IBV_WC_BAD_RESP_ERR);
}

// Check the position of a read response. Requests end where pieces end; they begin where pieces
// begin or where a read was resumed. After a resume, a peer may continue its first response instead
// of beginning a new one.
static bool read_position_is_valid(
	const struct requester *requester, uint32_t done, uint32_t packets, uint8_t flags
) {
	uint32_t in_piece = done & (requester->piece - 1);
	bool ends = in_piece + 1 == requester->piece || done + 1 == packets;
	bool first = (flags & PACKET_FIRST) != 0;

	if (ends != ((flags & PACKET_LAST) != 0))
		return false;
	if (in_piece == 0)
		return first;
	return !first || requester->acked_psn == requester->resumed_psn;
}

static bool read_response_is_valid(
	const struct soft_qp *qp,
	const struct send_work *work,
	uint32_t done,
	const struct packet *packet
) {
	const struct packet_opcode_info *facts = packet_opcode_info(packet->opcode);
	uint32_t left = work->length - done * qp->mtu;

	if (work->opcode != IBV_WR_RDMA_READ)
		return false;
	if ((facts->flags & PACKET_AETH) != 0 && SYNDROME_KIND(packet->syndrome) != 0)
		return false;
	return packet->payload_bytes == (left < qp->mtu ? left : qp->mtu) &&
	       read_position_is_valid(&qp->requester, done, work->packets, facts->flags);
}

// Advance the oldest request: the peer has answered it up to, but not including, `psn`. `ends` is
// true if this was the last packet of a response to a read or atomic request.
static void request_answered(struct soft_qp *qp, uint32_t psn, bool ends) {
	struct requester *requester = &qp->requester;
	uint32_t before = requester->acked_psn;

	if (ends && requester->reads_out > 0 && psn_diff(psn, requester->next_psn) <= 0)
		requester->reads_out--;
	requester_advance(qp, psn);
	requester_finish_advance(qp, before);
}

static void handle_read_response(struct soft_qp *qp, const struct packet *packet) {
	struct requester *requester = &qp->requester;
	const struct send_work *work;
	uint32_t done;

	if (!acknowledge_up_to(qp, packet->psn, packet->psn))
		return;
	work = work_at(requester, requester->head);
	done = psn_add(packet->psn, -work->first_psn);
	if (!read_response_is_valid(qp, work, done, packet)) {
		response_reject(qp);
		return;
	}
	if (packet->payload_bytes > 0 &&
	    !work_scatter(
		    qp, requester->head, done * qp->mtu, packet->payload, packet->payload_bytes
	    )) {
		requester_fail(qp, IBV_WC_LOC_PROT_ERR);
		return;
	}
	request_answered(
		qp, psn_add(packet->psn, 1),
		(packet_opcode_info(packet->opcode)->flags & PACKET_LAST) != 0
	);
}

static void handle_atomic_response(struct soft_qp *qp, const struct packet *packet) {
	struct requester *requester = &qp->requester;
	const struct send_work *work;
	uint8_t bytes[sizeof(packet->original)];

	if (!acknowledge_up_to(qp, packet->psn, packet->psn))
		return;
	work = work_at(requester, requester->head);
	if (!work_is_atomic(work) || SYNDROME_KIND(packet->syndrome) != 0) {
		response_reject(qp);
		return;
	}
	memcpy(bytes, &packet->original, sizeof(bytes));
	if (!work_scatter(qp, requester->head, 0, bytes, sizeof(bytes))) {
		requester_fail(qp, IBV_WC_LOC_PROT_ERR);
		return;
	}
	request_answered(qp, psn_add(packet->psn, 1), true);
}

void requester_response(struct soft_qp *qp, const struct packet *packet) {
	const struct requester *requester = &qp->requester;
	struct soft_counters *counters = &qp->nic->counters;

	// Drop an answer for a PSN that was not sent or is already acknowledged.
	if (psn_add(packet->psn, -requester->acked_psn) >=
	    psn_add(requester->high_psn, -requester->acked_psn)) {
		counter_add(&counters->drop_ghost, 1);
		return;
	}
	switch (packet_opcode_info(packet->opcode)->kind) {
	case PACKET_KIND_ACK:
		handle_ack(qp, packet);
		break;
	case PACKET_KIND_READ_RESPONSE:
		handle_read_response(qp, packet);
		break;
	case PACKET_KIND_ATOMIC_ACK:
		handle_atomic_response(qp, packet);
		break;
	default:
		counter_add(&counters->drop_opcode, 1);
		break;
	}
}
