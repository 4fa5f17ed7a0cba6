// SPDX-License-Identifier: BSD-3-Clause
// Handles READ requests, new and duplicate, and the ring of works for reads and atomics. Data are
// read when a response leaves (responder_transmit.c).
#include "transport/responder_impl.h"

#include <lib/must.h>

static struct response_work *response_work_at(struct responder *responder, uint32_t number) {
	return &responder->works[number % RESPONDER_READS_MAX];
}

// Works that were answered once do not count, even while they are answered again.
bool responder_has_room(struct soft_qp *qp) {
	struct responder *responder = &qp->responder;
	uint32_t max = qp->attr.max_dest_rd_atomic;

	if (max > RESPONDER_READS_MAX)
		max = RESPONDER_READS_MAX;
	if (responder->work_tail - responder->answered < max)
		return true;
	responder_refuse(qp, PACKET_SYNDROME_NAK_INVALID);
	return false;
}

struct response_work *responder_add_work(struct soft_qp *qp, const struct packet *packet) {
	struct responder *responder = &qp->responder;
	struct response_work *work = response_work_at(responder, responder->work_tail);

	if (responder->work_tail - responder->work_head == RESPONDER_READS_MAX) {
		responder->work_head++;
		if (responder->answering - responder->work_head > RESPONDER_READS_MAX)
			responder->answering = responder->work_head;
	}
	must(responder->answered - responder->work_head <= RESPONDER_READS_MAX);
	*work = (struct response_work){
		.pending = true,
		.first_psn = packet->psn,
		.packets = 1,
		.msn = (responder->msn + 1) & PSN_MASK,
	};
	responder->work_tail++;
	return work;
}

struct response_work *responder_find_work(struct responder *responder, uint32_t psn, bool atomic) {
	for (uint32_t n = responder->work_tail; n != responder->work_head; n--) {
		struct response_work *work = response_work_at(responder, n - 1);

		if (((psn - work->first_psn) & PSN_MASK) < work->packets)
			return work->atomic == atomic ? work : NULL;
	}
	return NULL;
}

void responder_schedule_response(struct soft_qp *qp, const struct response_work *work) {
	struct responder *responder = &qp->responder;
	uint32_t place = (uint32_t)(work - responder->works);
	uint32_t number =
		responder->work_head + (place - responder->work_head) % RESPONDER_READS_MAX;

	if (number - responder->work_head < responder->answering - responder->work_head)
		responder->answering = number;
}

uint32_t responder_read(struct soft_qp *qp, const struct packet *packet) {
	struct response_work *work;

	if (!responder_has_room(qp))
		return 0;
	if (packet->payload_bytes > 0 || packet->length > LIMIT_MESSAGE_BYTES)
		return responder_refuse(qp, PACKET_SYNDROME_NAK_INVALID);
	if (packet->length > 0 && region_resolve(
					  qp->nic, qp->verbs.pd, packet->key, packet->address,
					  packet->length, IBV_ACCESS_REMOTE_READ
				  ) == NULL)
		return responder_refuse(qp, PACKET_SYNDROME_NAK_ACCESS);
	if (!packet_has_valid_pad(packet))
		return responder_refuse(qp, PACKET_SYNDROME_NAK_INVALID);
	work = responder_add_work(qp, packet);
	work->address = packet->address;
	work->key = packet->key;
	work->length = work->answer_end = packet->length;
	if (packet->length > 0)
		work->packets = (packet->length + qp->mtu - 1) / qp->mtu;
	return work->packets;
}

void responder_duplicate_read(struct soft_qp *qp, const struct packet *packet) {
	struct response_work *work = responder_find_work(&qp->responder, packet->psn, false);
	uint32_t offset = 0;

	if (work != NULL)
		offset = ((packet->psn - work->first_psn) & PSN_MASK) * qp->mtu;
	// Drop a request for a range that is not part of the kept work.
	if (work == NULL || packet->key != work->key || packet->address - work->address != offset ||
	    packet->length > work->length - offset || (packet->length == 0 && work->length > 0)) {
		counter_add(&qp->nic->counters.drop_old_read, 1);
		return;
	}
	if (!work->pending) {
		work->pending = true;
		work->answer_from = work->answer_next = offset;
		work->answer_end = offset + packet->length;
	} else {
		// The response is still being sent: restart it only if it has passed the requested
		// range.
		if (work->answer_next > offset)
			work->answer_from = work->answer_next = offset;
		if (work->answer_end < offset + packet->length)
			work->answer_end = offset + packet->length;
	}
	responder_schedule_response(qp, work);
}
