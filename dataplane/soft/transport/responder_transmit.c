// SPDX-License-Identifier: BSD-3-Clause
// Sends answers in this order: responses of reads and atomics, then the NAK or the acknowledgement
// up to the expected PSN.
#include "transport/output.h"
#include "transport/responder_impl.h"

#include <string.h>

enum sent {
	SENT,
	SENT_NONE, // nothing was left to send
	SENT_FULL, // the wire is full for now
};

static enum sent send_syndrome(struct soft_qp *qp, uint8_t syndrome, uint32_t psn) {
	struct packet packet = {
		.opcode = PACKET_ACK,
		.psn = psn,
		.syndrome = syndrome,
		.msn = qp->responder.msn,
	};

	if (output_begin(qp, &packet, 0) == NULL)
		return SENT_FULL;
	output_end(qp);
	return SENT;
}

// A NAK also acknowledges everything before its PSN.
static enum sent send_nak(struct soft_qp *qp) {
	struct soft_counters *counters = &qp->nic->counters;
	struct responder_nak nak = qp->responder.nak;
	enum sent sent = send_syndrome(qp, nak.syndrome, nak.psn);

	if (sent != SENT)
		return sent;
	counter_add(
		nak.syndrome < PACKET_SYNDROME_NAK_SEQUENCE ? &counters->rnr_naks_sent
							    : &counters->naks_sent,
		1
	);
	qp->responder.nak = (struct responder_nak){0};
	responder_clear_ack(&qp->responder);
	if (nak.fatal && nak.told)
		qp_enter_error(qp);
	else if (nak.fatal)
		qp_raise_fatal(qp, nak.event);
	return SENT;
}

static enum sent send_ack(struct soft_qp *qp) {
	enum sent sent =
		send_syndrome(qp, PACKET_SYNDROME_ACK, (qp->responder.expected_psn - 1) & PSN_MASK);

	if (sent != SENT)
		return sent;
	counter_add(&qp->nic->counters.acks_sent, 1);
	responder_clear_ack(&qp->responder);
	return SENT;
}

// Finish a response; after its first time the work no longer counts as in progress.
static void response_finish(struct responder *responder, struct response_work *work) {
	work->pending = false;
	responder->answering++;
	if ((int32_t)(responder->answering - responder->answered) > 0)
		responder->answered = responder->answering;
}

static enum sent send_atomic_response(struct soft_qp *qp, struct response_work *work) {
	struct packet packet = {
		.opcode = PACKET_ATOMIC_ACK,
		.psn = work->first_psn,
		.syndrome = PACKET_SYNDROME_ACK,
		.msn = work->msn,
		.original = work->original,
	};

	if (output_begin(qp, &packet, 0) == NULL)
		return SENT_FULL;
	output_end(qp);
	response_finish(&qp->responder, work);
	return SENT;
}

// The region was deregistered. A first request gets an access NAK. A late duplicate is only
// counted: it may be old, and the program has no interest in it.
static enum sent
response_region_gone(struct soft_qp *qp, struct response_work *work, uint32_t psn) {
	struct responder *responder = &qp->responder;

	if ((int32_t)(responder->answering - responder->answered) < 0) {
		counter_add(&qp->nic->counters.drop_old_read, 1);
		response_finish(responder, work);
		return SENT_NONE;
	}
	responder_refuse(qp, PACKET_SYNDROME_NAK_ACCESS);
	responder->nak.psn = psn;
	responder->answering = responder->work_tail;
	return SENT_NONE;
}

static enum sent send_read_response(struct soft_qp *qp, struct response_work *work) {
	uint32_t left = work->answer_end - work->answer_next;
	uint32_t bytes = left < qp->mtu ? left : qp->mtu;
	struct packet packet = {
		.psn = psn_add(work->first_psn, work->answer_next / qp->mtu),
		.syndrome = PACKET_SYNDROME_ACK,
		.msn = work->msn,
	};
	const uint8_t *from = NULL;
	uint8_t *to;

	if (work->answer_next == work->answer_from)
		packet.opcode = bytes == left ? PACKET_READ_ONLY : PACKET_READ_FIRST;
	else
		packet.opcode = bytes == left ? PACKET_READ_LAST : PACKET_READ_MIDDLE;
	if (bytes > 0) {
		from = region_resolve(
			qp->nic, qp->verbs.pd, work->key, work->address + work->answer_next, bytes,
			IBV_ACCESS_REMOTE_READ
		);
		if (from == NULL)
			return response_region_gone(qp, work, packet.psn);
	}
	to = output_begin(qp, &packet, bytes);
	if (to == NULL)
		return SENT_FULL;
	if (bytes > 0)
		memcpy(to, from, bytes);
	output_end(qp);
	work->answer_next += bytes;
	if (bytes == left)
		response_finish(&qp->responder, work);
	return SENT;
}

static enum sent answer_next(struct soft_qp *qp) {
	struct responder *responder = &qp->responder;

	while (responder->answering != responder->work_tail) {
		struct response_work *work =
			&responder->works[responder->answering % RESPONDER_READS_MAX];
		enum sent sent = SENT_NONE;

		if (!work->pending)
			responder->answering++;
		else
			sent = work->atomic ? send_atomic_response(qp, work)
					    : send_read_response(qp, work);
		if (sent != SENT_NONE)
			return sent;
	}
	return SENT_NONE;
}

bool responder_transmit(struct soft_qp *qp, uint32_t budget, bool defer_acks) {
	const struct responder *responder = &qp->responder;
	enum sent sent = SENT;

	while (budget > 0 && sent == SENT) {
		sent = answer_next(qp);
		if (sent == SENT_NONE && responder->nak.syndrome != 0)
			sent = send_nak(qp);
		else if (sent == SENT_NONE && responder->ack_due && !defer_acks)
			sent = send_ack(qp);
		budget--;
	}
	return responder->answering != responder->work_tail || responder->nak.syndrome != 0 ||
	       (responder->ack_due && !defer_acks);
}
