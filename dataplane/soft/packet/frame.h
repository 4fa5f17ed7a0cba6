// SPDX-License-Identifier: BSD-3-Clause
// A frame: IPv4 or IPv6 header, UDP header, packet, ICRC. Built and checked here for all wires.
//
// Addresses are GIDs; IPv4 addresses are mapped. Pure functions; the bytes are untrusted.
#pragma once

#include "packet/packet.h"

#include <dataplane/verbs.h>

// Writable bytes that a wire reserves in front of each frame, sent or received. The wire uses them
// for its own header (Ethernet). frame_seal() and frame_check_icrc() put the ICRC mask there and
// restore the bytes.
#define FRAME_HEADROOM 64
#define FRAME_MASK_BYTES 8
#define FRAME_IP4_BYTES 20
#define FRAME_IP6_BYTES 40
#define FRAME_UDP_BYTES 8
// Counted from the start of the IP header.
#define FRAME_BYTES_MAX                                                                    \
	(FRAME_IP6_BYTES + FRAME_UDP_BYTES + PACKET_HEADERS_MAX + PACKET_PAYLOAD_MAX + 4 + \
	 PACKET_ICRC_BYTES)

// Header fields other than sizes. Sent frames have IP id 0 and DF.
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

// Write IP and UDP header in front of a packet of packet_bytes (BTH to ICRC); the IP header begins
// at `bytes`. Everything is set except the UDP checksum, which is 0.
void frame_write_headers(const struct frame_route *route, uint32_t packet_bytes, uint8_t *bytes);

// Read the destination address of a frame of `size` bytes (at least 1); IPv4 is mapped. Returns
// false if the IP header is incomplete or has another version.
bool frame_read_destination(const uint8_t *frame, uint32_t size, union ibv_gid *ret_gid);

// Compute the ICRC over `size` bytes from the IP header on, and store it in the last four.
// Afterwards only fields outside of the ICRC may change: traffic class, flow label, TTL, checksums.
void frame_seal(uint8_t *frame, uint32_t size);

enum frame_icrc {
	FRAME_ICRC_WRONG,
	FRAME_ICRC_RIGHT,
	FRAME_ICRC_BY_ID, // right with another IP id than the one in the header
};

// Check the ICRC. id_known: the id in the IPv4 header is as sent; else every id is accepted, the
// present one first. Header bytes outside of the ICRC may have any value. The frame and
// FRAME_MASK_BYTES in front of it are changed during the check and restored. size: frame_bytes of
// frame_parse(); an impossible size is WRONG.
enum frame_icrc frame_check_icrc(uint8_t *frame, uint32_t size, bool id_known);

// Parse a frame from a NIC: the start and size of its packet (with ICRC), and its route. Returns
// -EMSGSIZE (truncated, too short for a packet, over FRAME_BYTES_MAX), or -EBADMSG (not IPv4 or
// IPv6, options, fragment, not UDP to SOFT_UDP_PORT, contradictory lengths). size may exceed the
// length in the IP header, because of Ethernet padding.
struct frame_view {
	struct frame_route route;
	uint8_t *packet;
	uint32_t packet_bytes;
	uint32_t frame_bytes;
};
int frame_parse(uint8_t *frame, uint32_t size, struct frame_view *ret_view);
