// SPDX-License-Identifier: BSD-3-Clause
// Executes SEND: its packets fill the pieces of one receive in order.
#include "transport/responder_impl.h"

// Copy payload to the pieces; the length was checked. Returns false if a piece is not in a writable
// region.
static bool pieces_scatter(struct soft_qp *qp, const uint8_t *from, uint32_t size) {
	struct responder *responder = &qp->responder;
	// A shared receive uses the PD of the shared queue.
	const struct ibv_pd *pd = qp->srq != NULL ? qp->srq->verbs.pd : qp->verbs.pd;

	while (size > 0) {
		const struct ibv_sge *sge = &responder->receive_sges[responder->receive_sge];
		uint32_t room = sge->length - responder->receive_sge_used;
		uint32_t bytes = size < room ? size : room;
		uint8_t *to;

		if (bytes == 0) {
			responder->receive_sge++;
			responder->receive_sge_used = 0;
			continue;
		}
		to = region_resolve(
			qp->nic, pd, sge->lkey, sge->addr + responder->receive_sge_used, bytes,
			IBV_ACCESS_LOCAL_WRITE
		);
		if (to == NULL)
			return false;
		copy_last_byte_last(to, from, bytes);
		responder->receive_sge_used += bytes;
		from += bytes;
		size -= bytes;
	}
	return true;
}

static bool
send_length_is_valid(const struct soft_qp *qp, const struct packet *packet, uint8_t flags) {
	if ((flags & PACKET_LAST) == 0)
		return packet->payload_bytes == qp->mtu;
	if ((flags & PACKET_FIRST) == 0 && packet->payload_bytes == 0)
		return false;
	return packet->payload_bytes <= qp->mtu;
}

uint32_t responder_send(struct soft_qp *qp, const struct packet *packet, uint8_t flags) {
	struct responder *responder = &qp->responder;

	if (!responder->receiving && !responder_has_receive(qp))
		return 0;
	if (!send_length_is_valid(qp, packet, flags) || !packet_has_valid_pad(packet))
		return responder_refuse(qp, PACKET_SYNDROME_NAK_INVALID);
	if (!responder->receiving)
		responder_take_receive(qp);
	if (packet->payload_bytes > responder->receive.length - responder->received)
		return responder_fail_receive(qp, PACKET_SYNDROME_NAK_INVALID, IBV_WC_LOC_LEN_ERR);
	if (!pieces_scatter(qp, packet->payload, packet->payload_bytes))
		return responder_fail_receive(
			qp, PACKET_SYNDROME_NAK_OPERATION, IBV_WC_LOC_PROT_ERR
		);
	responder->received += packet->payload_bytes;
	if ((flags & PACKET_LAST) != 0)
		responder_complete_receive(qp, packet, IBV_WC_RECV, responder->received);
	return 1;
}
