// SPDX-License-Identifier: BSD-3-Clause
// Sends the packets of requests, as far as window, fence and outstanding reads allow.
#include "transport/requester_impl.h"

#include <endian.h>

// An acknowledgement is requested at least once per this many packets.
#define ACK_EVERY 16
#define ACK_EVERY_SMALL 4

enum outcome {
	SENT,
	WIRE_FULL,
	MEMORY_UNREGISTERED, // memory of the request is not registered
};

// Indexed by first packet of the message (1) and last packet (2).
static const uint8_t opcodes[][4] = {
	[IBV_WR_RDMA_WRITE] =
		{PACKET_WRITE_MIDDLE, PACKET_WRITE_FIRST, PACKET_WRITE_LAST, PACKET_WRITE_ONLY},
	[IBV_WR_RDMA_WRITE_WITH_IMM] =
		{PACKET_WRITE_MIDDLE, PACKET_WRITE_FIRST, PACKET_WRITE_LAST_IMM,
		 PACKET_WRITE_ONLY_IMM},
	[IBV_WR_SEND] = {PACKET_SEND_MIDDLE, PACKET_SEND_FIRST, PACKET_SEND_LAST, PACKET_SEND_ONLY},
	[IBV_WR_SEND_WITH_IMM] =
		{PACKET_SEND_MIDDLE, PACKET_SEND_FIRST, PACKET_SEND_LAST_IMM, PACKET_SEND_ONLY_IMM},
};

// Return the number of PSNs of the next packet or read request.
static uint32_t next_count(const struct requester *requester, const struct send_work *work) {
	uint32_t done, in_piece;

	if (work->opcode != IBV_WR_RDMA_READ)
		return 1;
	done = psn_add(requester->next_psn, -work->first_psn);
	in_piece = requester->piece - (done & (requester->piece - 1));
	return in_piece < work->packets - done ? in_piece : work->packets - done;
}

static bool requester_may_send(const struct soft_qp *qp) {
	const struct requester *requester = &qp->requester;
	uint32_t in_flight = requester_in_flight(requester);
	const struct send_work *work;
	bool at_first;

	if (requester->next == requester->tail || in_flight >= requester->window)
		return false;
	if (requester->rnr_ns != 0 || requester->stuck != IBV_WC_SUCCESS)
		return false;
	work = work_at(requester, requester->next);
	at_first = requester->next_psn == work->first_psn;
	// In state SQD only begun requests are sent.
	if (qp->verbs.state != IBV_QPS_RTS && qp->verbs.state != IBV_QPS_SQD)
		return false;
	if (qp->verbs.state == IBV_QPS_SQD && at_first &&
	    psn_diff(requester->high_psn, requester->next_psn) <= 0)
		return false;
	if (at_first && (work->flags & IBV_SEND_FENCE) != 0 && requester->reads_out > 0)
		return false;
	if (!work_needs_response(work))
		return true;
	return requester->reads_out < qp->attr.max_rd_atomic &&
	       (in_flight == 0 || in_flight + next_count(requester, work) <= requester->window);
}

static bool packet_requests_ack(const struct requester *requester, bool last) {
	uint32_t every = requester->window >= 2 * ACK_EVERY ? ACK_EVERY : ACK_EVERY_SMALL;

	if (requester->next_psn == requester->acked_psn &&
	    requester->next_psn != requester->high_psn)
		return true; // sent again, so learn soon whether it arrived
	return last || (requester->next_psn & (every - 1)) == 0 ||
	       requester_in_flight(requester) + 1 >= requester->window;
}

static enum outcome send_data(struct soft_qp *qp, const struct send_work *work) {
	struct requester *requester = &qp->requester;
	uint32_t done = psn_add(requester->next_psn, -work->first_psn);
	uint32_t offset = done * qp->mtu;
	bool first = done == 0;
	bool last = done + 1 == work->packets;
	uint32_t size = last ? work->length - offset : qp->mtu;
	struct packet packet = {
		.opcode = opcodes[work->opcode][(first ? 1 : 0) | (last ? 2 : 0)],
		.solicited = last && (work->flags & IBV_SEND_SOLICITED) != 0 &&
			     work->opcode != IBV_WR_RDMA_WRITE,
		.ack_request = packet_requests_ack(requester, last),
		.psn = requester->next_psn,
		.address = work->remote_address,
		.key = work->rkey,
		.length = work->length,
		.immediate = be32toh(work->immediate),
	};
	uint8_t *payload = output_begin(qp, &packet, size);

	if (payload == NULL)
		return WIRE_FULL;
	if (size > 0 && !work_gather(qp, requester->next, offset, payload, size))
		return MEMORY_UNREGISTERED;
	output_end(qp);
	return SENT;
}

static enum outcome send_without_payload(struct soft_qp *qp, const struct packet *packet) {
	if (output_begin(qp, packet, 0) == NULL)
		return WIRE_FULL;
	output_end(qp);
	qp->requester.reads_out++;
	return SENT;
}

static enum outcome send_read(struct soft_qp *qp, const struct send_work *work) {
	struct requester *requester = &qp->requester;
	uint32_t done = psn_add(requester->next_psn, -work->first_psn);
	uint32_t offset = done * qp->mtu;
	uint32_t left = work->length - offset;
	uint32_t most = next_count(requester, work) * qp->mtu;
	struct packet packet = {
		.opcode = PACKET_READ_REQUEST,
		.ack_request = true,
		.psn = requester->next_psn,
		.address = work->remote_address + offset,
		.key = work->rkey,
		.length = left < most ? left : most,
	};
	enum outcome outcome = send_without_payload(qp, &packet);

	if (outcome == SENT && (done & (requester->piece - 1)) != 0)
		requester->resumed_psn = requester->next_psn;
	return outcome;
}

static enum outcome send_atomic(struct soft_qp *qp, const struct send_work *work) {
	bool swaps = work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	struct packet packet = {
		.opcode = swaps ? PACKET_COMPARE_SWAP : PACKET_FETCH_ADD,
		.ack_request = true,
		.psn = qp->requester.next_psn,
		.address = work->remote_address,
		.key = work->rkey,
		.swap_add = swaps ? work->swap : work->compare_add,
		.compare = swaps ? work->compare_add : 0,
	};

	return send_without_payload(qp, &packet);
}

static enum outcome send_next(struct soft_qp *qp, const struct send_work *work) {
	if (work->opcode == IBV_WR_RDMA_READ)
		return send_read(qp, work);
	if (work_is_atomic(work))
		return send_atomic(qp, work);
	return send_data(qp, work);
}

void requester_probe(struct soft_qp *qp) {
	struct requester *requester = &qp->requester;
	const uint32_t next = requester->next;
	const uint32_t next_psn = requester->next_psn;
	const uint32_t reads_out = requester->reads_out;

	requester->next = requester->head;
	requester->next_psn = requester->acked_psn;
	if (send_next(qp, work_at(requester, requester->head)) == SENT)
		counter_add(&qp->nic->counters.retransmitted, 1);
	requester->next = next;
	requester->next_psn = next_psn;
	requester->reads_out = reads_out;
}

bool requester_transmit(struct soft_qp *qp, uint32_t budget) {
	struct requester *requester = &qp->requester;

	for (; requester_may_send(qp); budget--) {
		const struct send_work *work = work_at(requester, requester->next);
		uint32_t end_psn = psn_add(requester->next_psn, next_count(requester, work));
		enum outcome outcome;

		if (budget == 0)
			return true;
		outcome = send_next(qp, work);
		if (outcome == WIRE_FULL)
			return true;
		// The request fails when the requests before it are done.
		if (outcome == MEMORY_UNREGISTERED) {
			requester->stuck = IBV_WC_LOC_PROT_ERR;
			if (requester->head == requester->next)
				requester_fail(qp, requester->stuck);
			return false;
		}

		if (psn_diff(requester->high_psn, requester->next_psn) > 0)
			counter_add(&qp->nic->counters.retransmitted, 1);
		if (psn_diff(end_psn, requester->high_psn) > 0)
			requester->high_psn = end_psn;
		// Time one packet at a time, among those that request an acknowledgement.
		if (requester->timed_ns == 0 &&
		    (end_psn == work_end_psn(work) || end_psn % ACK_EVERY == 1)) {
			requester->timed_psn = end_psn;
			requester->timed_ns = qp->nic->now_ns;
		}
		requester->next_psn = end_psn;
		if (end_psn == work_end_psn(work))
			requester->next++;
		if (requester->timeout_ns == NIC_NEVER)
			requester_start_timers(qp);
	}
	return false;
}
