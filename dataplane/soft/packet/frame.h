// SPDX-License-Identifier: BSD-3-Clause
// A frame: IPv4 or IPv6 and UDP header, packet, ICRC. Built and checked here, whatever the wire.
//
// Addresses are GIDs; an IPv4 address is the mapped one. Pure; the bytes come from outside.
#pragma once

#include "packet/packet.h"

#include <dataplane/verbs.h>

// In front of each frame, its own or one that came, a wire has so many bytes that may be written
// to: for what it needs there itself (Ethernet), and for the mask of the ICRC, which is written
// and taken away again by frame_seal() and frame_check().
#define FRAME_HEADROOM 64
#define FRAME_MASK_BYTES 8
#define FRAME_IP4_BYTES 20
#define FRAME_IP6_BYTES 40
#define FRAME_UDP_BYTES 8
// From the IP header on.
#define FRAME_BYTES_MAX                                                                    \
	(FRAME_IP6_BYTES + FRAME_UDP_BYTES + PACKET_HEADERS_MAX + PACKET_PAYLOAD_MAX + 4 + \
	 PACKET_ICRC_BYTES)

// What the headers say beside sizes. The IP id of what we send is 0, with DF.
struct frame_route {
	union ibv_gid from, to;
	uint16_t source_port; // host order
	uint8_t traffic_class, hop_limit;
	uint32_t flow_label; // IPv6 only
};

static inline bool frame_is_ip4(const union ibv_gid *gid) {
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return __builtin_memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

static inline uint32_t frame_headers_bytes(bool ip4) {
	return (ip4 ? FRAME_IP4_BYTES : FRAME_IP6_BYTES) + FRAME_UDP_BYTES;
}

// Writes IP and UDP header for a packet of so many bytes (BTH to ICRC) in front of it: bytes is
// where the IP header begins. Complete but for the UDP checksum, which is 0.
void frame_headers(const struct frame_route *route, uint32_t packet_bytes, uint8_t *bytes);

// frame: size bytes from the IP header on, the last four of which become the ICRC. Only what the
// ICRC leaves out may change afterwards: traffic class, flow label, TTL, checksums.
void frame_seal(uint8_t *frame, uint32_t size);

enum frame_icrc {
	FRAME_ICRC_WRONG,
	FRAME_ICRC_RIGHT,
	FRAME_ICRC_BY_ID, // right with another IP id than the one that stands there
};

// id_known: the id in the IPv4 header is what was sent; else any id will do, after the one that
// stands there was tried. The header bytes that the ICRC leaves out may be anything. The frame is
// changed while it is checked, as are FRAME_MASK_BYTES in front of it, and is as before afterwards.
// size: frame_bytes of frame_parse(); one that no frame has is wrong.
enum frame_icrc frame_check(uint8_t *frame, uint32_t size, bool id_known);

// Of a frame as a NIC gave it: where the packet begins, its bytes with ICRC, and who sent it.
// -EMSGSIZE (cut, too short for a packet, over FRAME_BYTES_MAX), -EBADMSG (not IPv4 or IPv6,
// options, a fragment, not UDP to SOFT_UDP_PORT, lengths that contradict); size may exceed what the
// IP header says (Ethernet's own padding).
struct frame_view {
	struct frame_route route;
	uint8_t *packet;
	uint32_t packet_bytes;
	uint32_t frame_bytes;
};
int frame_parse(uint8_t *frame, uint32_t size, struct frame_view *ret_view);
