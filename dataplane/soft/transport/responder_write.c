// SPDX-License-Identifier: BSD-3-Clause
// Executes WRITE: the first packet holds address and length, further packets continue.
#include "transport/responder_impl.h"

// Target of one packet, and the remaining length of the message including the packet.
struct write_part {
	uint64_t address;
	uint32_t key, left, length; // length: of the whole message
};

static struct write_part write_part_of_packet(
	const struct responder *responder, const struct packet *packet, uint8_t flags
) {
	if ((flags & PACKET_FIRST) != 0)
		return (struct write_part){
			.address = packet->address,
			.key = packet->key,
			.left = packet->length,
			.length = packet->length,
		};
	return (struct write_part){
		.address = responder->write_address,
		.key = responder->write_key,
		.left = responder->write_left,
		.length = responder->write_length,
	};
}

static bool write_length_is_valid(
	const struct soft_qp *qp,
	const struct write_part *part,
	uint32_t payload_bytes,
	uint8_t flags
) {
	if (part->length > LIMIT_MESSAGE_BYTES)
		return false;
	if ((flags & PACKET_LAST) == 0)
		return payload_bytes == qp->mtu && part->left > qp->mtu;
	return payload_bytes <= qp->mtu && payload_bytes == part->left;
}

// Check access. The first packet needs access to the whole range. Later packets need it only to
// their part, but the region may be gone by then. Zero bytes need no region.
static bool write_resolve_range(
	struct soft_qp *qp, const struct write_part *part, uint32_t bytes, uint8_t **ret
) {
	*ret = NULL;
	if (bytes == 0)
		return true;
	*ret = region_resolve(
		qp->nic, qp->verbs.pd, part->key, part->address, bytes, IBV_ACCESS_REMOTE_WRITE
	);
	return *ret != NULL;
}

uint32_t responder_write(struct soft_qp *qp, const struct packet *packet, uint8_t flags) {
	struct responder *responder = &qp->responder;
	struct write_part part = write_part_of_packet(responder, packet, flags);
	uint32_t bytes = packet->payload_bytes;
	uint8_t *to;

	if ((flags & PACKET_IMM) != 0 && !responder_has_receive(qp))
		return 0;
	if (!write_length_is_valid(qp, &part, bytes, flags))
		return responder_refuse(qp, PACKET_SYNDROME_NAK_INVALID);
	if (!write_resolve_range(qp, &part, (flags & PACKET_FIRST) != 0 ? part.length : bytes, &to))
		return responder_refuse(qp, PACKET_SYNDROME_NAK_ACCESS);
	if (!packet_has_valid_pad(packet))
		return responder_refuse(qp, PACKET_SYNDROME_NAK_INVALID);
	if (bytes > 0)
		copy_last_byte_last(to, packet->payload, bytes);
	responder->write_address = part.address + bytes;
	responder->write_key = part.key;
	responder->write_left = part.left - bytes;
	responder->write_length = part.length;
	if ((flags & PACKET_IMM) != 0) {
		responder_take_receive(qp);
		responder_complete_receive(qp, packet, IBV_WC_RECV_RDMA_WITH_IMM, part.length);
	}
	return 1;
}
