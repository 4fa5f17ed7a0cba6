// SPDX-License-Identifier: BSD-3-Clause
// Executes WRITE: the first packet holds address and length, further packets continue.
#include "transport/responder_impl.h"

uint32_t responder_write(struct soft_qp *qp, const struct packet *packet, uint8_t flags) {
	struct responder *responder = &qp->responder;
	bool first = (flags & PACKET_FIRST) != 0;
	uint64_t address = first ? packet->address : responder->write_address;
	uint32_t key = first ? packet->key : responder->write_key;
	uint32_t left = first ? packet->length : responder->write_left; // with this packet
	uint32_t length = first ? packet->length : responder->write_length;
	uint32_t bytes = packet->payload_bytes;
	uint32_t range = first ? length : bytes;
	uint8_t *to = NULL;

	if ((flags & PACKET_IMM) != 0 && !responder_has_receive(qp))
		return 0;
	if (length > LIMIT_MESSAGE_BYTES || bytes > qp->mtu)
		return responder_refuse(qp, PACKET_SYNDROME_NAK_INVALID);
	if ((flags & PACKET_LAST) != 0 ? bytes != left : bytes < qp->mtu || left <= qp->mtu)
		return responder_refuse(qp, PACKET_SYNDROME_NAK_INVALID);
	// The first packet needs access to the whole range. Later packets need it only to their
	// part, but the region may be gone by then. Zero bytes need no region.
	if (range > 0) {
		to = region_resolve(
			qp->nic, qp->verbs.pd, key, address, range, IBV_ACCESS_REMOTE_WRITE
		);
		if (to == NULL)
			return responder_refuse(qp, PACKET_SYNDROME_NAK_ACCESS);
	}
	if (!packet_has_valid_pad(packet))
		return responder_refuse(qp, PACKET_SYNDROME_NAK_INVALID);
	if (bytes > 0)
		copy_last_byte_last(to, packet->payload, bytes);
	responder->write_address = address + bytes;
	responder->write_key = key;
	responder->write_left = left - bytes;
	responder->write_length = length;
	if ((flags & PACKET_IMM) != 0) {
		responder_take_receive(qp);
		responder_complete_receive(qp, packet, IBV_WC_RECV_RDMA_WITH_IMM, length);
	}
	return 1;
}
