// SPDX-License-Identifier: BSD-3-Clause
// ARP for the DPDK wire.
#include "packet/frame.h"
#include "wire/link.h"

#include <errno.h>
#include <string.h>

#define ARP_BYTES 28
#define ARP_REQUEST 1
#define ARP_REPLY 2
// Byte offsets of fields.
#define ARP_OPERATION 6
#define ARP_SENDER_MAC 8
#define ARP_SENDER 14
#define ARP_TARGET_MAC 18
#define ARP_TARGET 24

static const uint8_t everybody[LINK_MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
// Hardware type Ethernet, protocol IPv4, sizes of both.
static const uint8_t arp_head[ARP_OPERATION] = {0, 1, 8, 0, LINK_MAC_BYTES, 4};

void link_header(
	const uint8_t to[static LINK_MAC_BYTES],
	const uint8_t from[static LINK_MAC_BYTES],
	uint16_t type,
	uint8_t *ret_bytes
) {
	memcpy(ret_bytes, to, LINK_MAC_BYTES);
	memcpy(ret_bytes + LINK_MAC_BYTES, from, LINK_MAC_BYTES);
	link_put16(ret_bytes + (ptrdiff_t)2 * LINK_MAC_BYTES, type);
}

static union ibv_gid ip4_mapped(const uint8_t *ip4) {
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	memcpy(gid.raw + 12, ip4, 4);
	return gid;
}

static bool ip4_is_host(const uint8_t *ip4) {
	return ip4[0] != 0 && ip4[0] < 224 && ip4[0] != 127;
}

int arp_parse(const uint8_t *bytes, size_t size, struct link_message *ret_talk) {
	static const uint8_t zeros[4];
	struct link_message talk = {.mac_known = true};
	uint16_t operation;

	if (size < ARP_BYTES)
		return -EMSGSIZE;
	operation = link_get16(bytes + ARP_OPERATION);
	if (memcmp(bytes, arp_head, sizeof(arp_head)) != 0)
		return -EBADMSG;
	if (operation != ARP_REQUEST && operation != ARP_REPLY)
		return -EBADMSG;
	memcpy(talk.mac, bytes + ARP_SENDER_MAC, LINK_MAC_BYTES);
	// A group address cannot be a sender.
	if ((talk.mac[0] & 1) != 0)
		return -EBADMSG;
	talk.asks = operation == ARP_REQUEST;
	if (ip4_is_host(bytes + ARP_SENDER))
		talk.about = ip4_mapped(bytes + ARP_SENDER);
	// Only a request may come from 0.0.0.0, to ask whether an address is free.
	else if (!talk.asks || memcmp(bytes + ARP_SENDER, zeros, sizeof(zeros)) != 0)
		return -EBADMSG;
	if (talk.asks)
		talk.target = ip4_mapped(bytes + ARP_TARGET);
	*ret_talk = talk;
	return 0;
}

static uint8_t *arp_begin_frame(
	const struct link_host *self, const uint8_t *to, uint16_t operation, uint8_t *frame
) {
	uint8_t *arp = frame + LINK_HEADER_BYTES;

	link_header(to, self->mac, LINK_TYPE_ARP, frame);
	memcpy(arp, arp_head, sizeof(arp_head));
	link_put16(arp + ARP_OPERATION, operation);
	memcpy(arp + ARP_SENDER_MAC, self->mac, LINK_MAC_BYTES);
	memcpy(arp + ARP_SENDER, self->gid.raw + 12, 4);
	return arp;
}

size_t arp_build_request(
	const struct link_host *self,
	const union ibv_gid *target,
	uint8_t ret_frame[static LINK_MESSAGE_BYTES_MAX]
) {
	uint8_t *arp = arp_begin_frame(self, everybody, ARP_REQUEST, ret_frame);

	memset(arp + ARP_TARGET_MAC, 0, LINK_MAC_BYTES);
	memcpy(arp + ARP_TARGET, target->raw + 12, 4);
	return LINK_HEADER_BYTES + ARP_BYTES;
}

size_t arp_build_reply(
	const struct link_host *self,
	const struct link_message *asked,
	uint8_t ret_frame[static LINK_MESSAGE_BYTES_MAX]
) {
	uint8_t *arp = arp_begin_frame(self, asked->mac, ARP_REPLY, ret_frame);

	memcpy(arp + ARP_TARGET_MAC, asked->mac, LINK_MAC_BYTES);
	memcpy(arp + ARP_TARGET, asked->about.raw + 12, 4); // 0.0.0.0 for an address probe
	return LINK_HEADER_BYTES + ARP_BYTES;
}
