// SPDX-License-Identifier: BSD-3-Clause
// Neighbour discovery of IPv6 for the DPDK wire.
#include "packet/frame.h"
#include "wire/link.h"

#include <errno.h>
#include <string.h>

// ICMPv6 message: type, code, checksum, flags, target, options.
#define ND_BYTES 24
#define ND_CHECKSUM 2
#define ND_FLAGS 4
#define ND_TARGET 8
#define ND_OPTION_BYTES 8 // a link-layer address
#define ND_SOLICITATION 135
#define ND_ADVERTISEMENT 136
#define ND_FLAG_SOLICITED 0x40
#define ND_FLAG_OVERRIDE 0x20
#define ND_OPTION_SOURCE 1
#define ND_OPTION_TARGET 2
#define ND_HOP_LIMIT 255 // a packet that crossed a router has less
#define ND_PROTOCOL 58
#define IP6_LENGTH 4
#define IP6_PROTOCOL 6
#define IP6_HOP_LIMIT 7
#define IP6_FROM 8
#define IP6_TO 24

static const union ibv_gid nobody;
static const union ibv_gid all_nodes = {.raw = {0xff, 0x02, [15] = 0x01}};

// Return the folded sum of pseudo header and message; 0xffff if the contained checksum is right.
static uint16_t checksum_fold(const uint8_t *ip, const uint8_t *message, size_t size) {
	uint32_t total = ND_PROTOCOL + (uint32_t)size;

	for (size_t at = IP6_FROM; at < FRAME_IP6_BYTES; at += 2)
		total += link_get16(ip + at);
	for (size_t at = 0; at + 1 < size; at += 2)
		total += link_get16(message + at);
	if (size % 2 != 0)
		total += (uint32_t)message[size - 1] << 8;
	while (total > UINT16_MAX)
		total = (total & UINT16_MAX) + (total >> 16);
	return (uint16_t)total;
}

static bool ip6_is_host(const uint8_t *ip6) {
	return ip6[0] != 0xff && memcmp(ip6, nobody.raw, sizeof(nobody.raw)) != 0;
}

// Find the option with the wanted link-layer address. Returns -EBADMSG.
static int
parse_options(const uint8_t *bytes, size_t size, uint8_t wanted, struct link_message *talk) {
	for (size_t length; size > 0; bytes += length, size -= length) {
		if (size < 8)
			return -EBADMSG;
		length = (size_t)bytes[1] * 8;
		if (length == 0 || length > size)
			return -EBADMSG;
		if (bytes[0] != wanted || length != ND_OPTION_BYTES)
			continue;
		memcpy(talk->mac, bytes + 2, LINK_MAC_BYTES);
		talk->mac_known = true;
	}
	return talk->mac_known && (talk->mac[0] & 1) != 0 ? -EBADMSG : 0;
}

// Parse a message whose lengths and checksum are right.
static int
parse_message(const uint8_t *ip, const uint8_t *message, size_t size, struct link_message *talk) {
	bool asks = message[0] == ND_SOLICITATION;
	const uint8_t *about = asks ? ip + IP6_FROM : message + ND_TARGET;
	int err;

	if ((!asks && message[0] != ND_ADVERTISEMENT) || message[1] != 0)
		return -EBADMSG;
	if (!ip6_is_host(message + ND_TARGET))
		return -EBADMSG;
	talk->asks = asks;
	err = parse_options(
		message + ND_BYTES, size - ND_BYTES, asks ? ND_OPTION_SOURCE : ND_OPTION_TARGET,
		talk
	);
	if (err != 0)
		return err;
	if (asks)
		memcpy(talk->target.raw, message + ND_TARGET, sizeof(talk->target.raw));
	// A sender without an address asks whether the target address is free; it names no hardware
	// address.
	if (!ip6_is_host(about))
		return asks && !talk->mac_known && about[0] == 0 ? 0 : -EBADMSG;
	memcpy(talk->about.raw, about, sizeof(talk->about.raw));
	return 0;
}

int nd_parse(const uint8_t *bytes, size_t size, struct link_message *ret_talk) {
	const uint8_t *message = bytes + FRAME_IP6_BYTES;
	struct link_message talk = {0};
	size_t length;
	int err;

	if (size < FRAME_IP6_BYTES + ND_BYTES)
		return -EMSGSIZE;
	length = link_get16(bytes + IP6_LENGTH);
	if (bytes[0] >> 4 != 6 || bytes[IP6_PROTOCOL] != ND_PROTOCOL)
		return -EBADMSG;
	if (length > size - FRAME_IP6_BYTES)
		return -EMSGSIZE;
	if (length < ND_BYTES || bytes[IP6_HOP_LIMIT] != ND_HOP_LIMIT)
		return -EBADMSG;
	if (checksum_fold(bytes, message, length) != UINT16_MAX)
		return -EBADMSG;
	err = parse_message(bytes, message, length, &talk);
	if (err != 0)
		return err;
	*ret_talk = talk;
	return 0;
}

struct nd_message {
	uint8_t type, flags, option;
	union ibv_gid to;
	const union ibv_gid *target;
	uint8_t mac[LINK_MAC_BYTES]; // receiver's hardware address
};

// The hardware address of a group contains the low 32 bits of its IP address.
static void group_mac(const union ibv_gid *group, uint8_t ret_mac[static LINK_MAC_BYTES]) {
	ret_mac[0] = 0x33;
	ret_mac[1] = 0x33;
	memcpy(ret_mac + 2, group->raw + 12, 4);
}

static size_t
message_build(const struct link_host *self, const struct nd_message *what, uint8_t *ret_frame) {
	uint8_t *ip = ret_frame + LINK_HEADER_BYTES;
	uint8_t *message = ip + FRAME_IP6_BYTES;

	memset(ret_frame, 0, LINK_MESSAGE_BYTES_MAX);
	link_header(what->mac, self->mac, LINK_TYPE_IP6, ret_frame);
	ip[0] = 0x60;
	link_put16(ip + IP6_LENGTH, ND_BYTES + ND_OPTION_BYTES);
	ip[IP6_PROTOCOL] = ND_PROTOCOL;
	ip[IP6_HOP_LIMIT] = ND_HOP_LIMIT;
	memcpy(ip + IP6_FROM, self->gid.raw, sizeof(self->gid.raw));
	memcpy(ip + IP6_TO, what->to.raw, sizeof(what->to.raw));
	message[0] = what->type;
	message[ND_FLAGS] = what->flags;
	memcpy(message + ND_TARGET, what->target->raw, sizeof(what->target->raw));
	message[ND_BYTES] = what->option;
	message[ND_BYTES + 1] = 1; // unit: 8 bytes
	memcpy(message + ND_BYTES + 2, self->mac, LINK_MAC_BYTES);
	link_put16(
		message + ND_CHECKSUM,
		(uint16_t)~checksum_fold(ip, message, ND_BYTES + ND_OPTION_BYTES)
	);
	return LINK_HEADER_BYTES + FRAME_IP6_BYTES + ND_BYTES + ND_OPTION_BYTES;
}

size_t nd_build_solicitation(
	const struct link_host *self,
	const union ibv_gid *target,
	uint8_t ret_frame[static LINK_MESSAGE_BYTES_MAX]
) {
	struct nd_message what = {
		.type = ND_SOLICITATION,
		.option = ND_OPTION_SOURCE,
		.to = {.raw = {0xff, 0x02, [11] = 0x01, [12] = 0xff}},
		.target = target,
	};

	memcpy(what.to.raw + 13, target->raw + 13, 3);
	group_mac(&what.to, what.mac);
	return message_build(self, &what, ret_frame);
}

size_t nd_build_advertisement(
	const struct link_host *self,
	const struct link_message *asked,
	uint8_t ret_frame[static LINK_MESSAGE_BYTES_MAX]
) {
	struct nd_message what = {
		.type = ND_ADVERTISEMENT,
		.flags = ND_FLAG_OVERRIDE,
		.option = ND_OPTION_TARGET,
		.to = all_nodes,
		.target = &self->gid,
	};

	group_mac(&what.to, what.mac);
	if (asked != NULL && asked->mac_known && !link_gid_equal(&asked->about, &nobody)) {
		what.flags |= ND_FLAG_SOLICITED;
		what.to = asked->about;
		memcpy(what.mac, asked->mac, LINK_MAC_BYTES);
	}
	return message_build(self, &what, ret_frame);
}
