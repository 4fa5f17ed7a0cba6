// SPDX-License-Identifier: BSD-3-Clause
// Builds and parses the IP and UDP headers around a RoCEv2 packet, and its ICRC.
#include "packet/frame.h"

#include "packet/bytes.h"
#include "packet/icrc.h"

#include <dataplane/soft.h>
#include <lib/error.h>
#include <lib/must.h>

#include <netinet/in.h>
#include <string.h>

// Byte offsets of header fields.
#define IP4_TRAFFIC_CLASS 1
#define IP4_LENGTH 2
#define IP4_ID 4
#define IP4_FRAGMENT 6
#define IP4_TTL 8
#define IP4_PROTOCOL 9
#define IP4_CHECKSUM 10
#define IP4_FROM 12
#define IP4_TO 16
#define IP6_LENGTH 4
#define IP6_NEXT 6
#define IP6_HOPS 7
#define IP6_FROM 8
#define IP6_TO 24
#define UDP_TO 2
#define UDP_LENGTH 4
#define UDP_CHECKSUM 6
#define BTH_CONGESTION 4 // FECN, BECN and six reserved bits

#define IP4_VERSION_WORDS 0x45 // five words, so no options
#define IP4_DF 0x4000
#define IP6_FLOW_MASK 0xfffff

#define PACKET_BYTES_MIN (PACKET_BTH_BYTES + PACKET_ICRC_BYTES)

_Static_assert(FRAME_MASK_BYTES <= FRAME_HEADROOM, "the mask is written into the headroom");
_Static_assert(FRAME_BYTES_MAX <= ICRC_TRAILING_MAX, "an IP id can be found in every frame");

void frame_write_headers(const struct frame_route *route, uint32_t packet_bytes, uint8_t *bytes) {
	const uint32_t udp_bytes = FRAME_UDP_BYTES + packet_bytes;
	uint32_t sum = 0;

	must(udp_bytes <= UINT16_MAX - FRAME_IP4_BYTES);
	if (frame_is_ip4(&route->to)) {
		bytes[0] = IP4_VERSION_WORDS;
		bytes[IP4_TRAFFIC_CLASS] = route->traffic_class;
		store_be16(bytes + IP4_LENGTH, (uint16_t)(FRAME_IP4_BYTES + udp_bytes));
		store_be16(bytes + IP4_ID, 0);
		store_be16(bytes + IP4_FRAGMENT, IP4_DF);
		bytes[IP4_TTL] = route->hop_limit;
		bytes[IP4_PROTOCOL] = IPPROTO_UDP;
		store_be16(bytes + IP4_CHECKSUM, 0);
		memcpy(bytes + IP4_FROM, route->from.raw + 12, 4);
		memcpy(bytes + IP4_TO, route->to.raw + 12, 4);
		for (uint32_t at = 0; at < FRAME_IP4_BYTES; at += 2)
			sum += load_be16(bytes + at);
		sum = (sum & 0xffff) + (sum >> 16);
		store_be16(bytes + IP4_CHECKSUM, (uint16_t) ~(sum + (sum >> 16)));
		bytes += FRAME_IP4_BYTES;
	} else {
		store_be32(
			bytes, UINT32_C(6) << 28 | (uint32_t)route->traffic_class << 20 |
				       (route->flow_label & IP6_FLOW_MASK)
		);
		store_be16(bytes + IP6_LENGTH, (uint16_t)udp_bytes);
		bytes[IP6_NEXT] = IPPROTO_UDP;
		bytes[IP6_HOPS] = route->hop_limit;
		memcpy(bytes + IP6_FROM, route->from.raw, 16);
		memcpy(bytes + IP6_TO, route->to.raw, 16);
		bytes += FRAME_IP6_BYTES;
	}
	store_be16(bytes, route->source_port);
	store_be16(bytes + UDP_TO, SOFT_UDP_PORT);
	store_be16(bytes + UDP_LENGTH, (uint16_t)udp_bytes);
	store_be16(bytes + UDP_CHECKSUM, 0);
}

static bool frame_has_ip4_version(const uint8_t *frame) {
	return frame[0] >> 4 == 4;
}

bool frame_read_destination(const uint8_t *frame, uint32_t size, union ibv_gid *ret_gid) {
	static const union ibv_gid mapped = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (frame[0] >> 4 == 4 && size >= FRAME_IP4_BYTES) {
		*ret_gid = mapped;
		memcpy(ret_gid->raw + 12, frame + IP4_TO, 4);
		return true;
	}
	if (frame[0] >> 4 != 6 || size < FRAME_IP6_BYTES)
		return false;
	memcpy(ret_gid->raw, frame + IP6_TO, sizeof(ret_gid->raw));
	return true;
}

#define IN_MASK(at) [FRAME_MASK_BYTES + (at)]
#define IN_MASK4_UDP(at) IN_MASK(FRAME_IP4_BYTES + (at))
#define IN_MASK6_UDP(at) IN_MASK(FRAME_IP6_BYTES + (at))

// Bits that the ICRC sees as ones, from FRAME_MASK_BYTES in front of the IP header on; these bytes
// stand for InfiniBand's local route header. The masks are whole words within the shortest frame.
// Smaller stores would stall the CRC's wide loads (store forwarding).
static const uint8_t mask_ip4[48] = {
	[0 ... FRAME_MASK_BYTES - 1] = 0xff,
	IN_MASK(IP4_TRAFFIC_CLASS) = 0xff,
	IN_MASK(IP4_TTL) = 0xff,
	IN_MASK(IP4_CHECKSUM) = 0xff,
	IN_MASK(IP4_CHECKSUM + 1) = 0xff,
	IN_MASK4_UDP(UDP_CHECKSUM) = 0xff,
	IN_MASK4_UDP(UDP_CHECKSUM + 1) = 0xff,
	IN_MASK4_UDP(FRAME_UDP_BYTES + BTH_CONGESTION) = 0xff,
};
static const uint8_t mask_ip6[64] = {
	[0 ... FRAME_MASK_BYTES - 1] = 0xff,
	// Traffic class and flow label, but not the version.
	IN_MASK(0) = 0x0f,
	IN_MASK(1) = 0xff,
	IN_MASK(2) = 0xff,
	IN_MASK(3) = 0xff,
	IN_MASK(IP6_HOPS) = 0xff,
	IN_MASK6_UDP(UDP_CHECKSUM) = 0xff,
	IN_MASK6_UDP(UDP_CHECKSUM + 1) = 0xff,
	IN_MASK6_UDP(FRAME_UDP_BYTES + BTH_CONGESTION) = 0xff,
};

_Static_assert(
	sizeof(mask_ip4) <= FRAME_MASK_BYTES + FRAME_IP4_BYTES + FRAME_UDP_BYTES + PACKET_BYTES_MIN,
	"the mask is within every frame"
);
_Static_assert(
	sizeof(mask_ip6) <= FRAME_MASK_BYTES + FRAME_IP6_BYTES + FRAME_UDP_BYTES + PACKET_BYTES_MIN,
	"the mask is within every frame"
);

static inline uint32_t
masked_crc(uint8_t *from, uint32_t size, const uint8_t *mask, size_t mask_bytes) {
	uint8_t saved[sizeof(mask_ip6)], masked[sizeof(mask_ip6)];
	uint32_t crc;

	memcpy(saved, from, mask_bytes);
	for (size_t n = 0; n < mask_bytes; n++)
		masked[n] = saved[n] | mask[n];
	memcpy(from, masked, mask_bytes);
	crc = icrc_crc32(from, size);
	memcpy(from, saved, mask_bytes);
	return crc;
}

static uint32_t frame_crc(uint8_t *frame, uint32_t size) {
	uint8_t *from = frame - FRAME_MASK_BYTES;

	size += FRAME_MASK_BYTES - PACKET_ICRC_BYTES;
	return frame_has_ip4_version(frame) ? masked_crc(from, size, mask_ip4, sizeof(mask_ip4))
					    : masked_crc(from, size, mask_ip6, sizeof(mask_ip6));
}

static bool has_packet(const uint8_t *frame, uint32_t size) {
	return size > 0 && size <= FRAME_BYTES_MAX &&
	       size >= frame_headers_bytes(frame_has_ip4_version(frame)) + PACKET_BYTES_MIN;
}

void frame_seal(uint8_t *frame, uint32_t size) {
	uint32_t icrc;

	must(has_packet(frame, size));
	icrc = htole32(frame_crc(frame, size));
	memcpy(frame + size - PACKET_ICRC_BYTES, &icrc, sizeof(icrc));
}

enum frame_icrc frame_check_icrc(uint8_t *frame, uint32_t size, bool id_known) {
	uint32_t icrc, difference;
	uint16_t id;

	if (!has_packet(frame, size))
		return FRAME_ICRC_WRONG;
	memcpy(&icrc, frame + size - PACKET_ICRC_BYTES, sizeof(icrc));
	difference = le32toh(icrc) ^ frame_crc(frame, size);
	if (difference == 0)
		return FRAME_ICRC_RIGHT;
	if (id_known || !frame_has_ip4_version(frame))
		return FRAME_ICRC_WRONG;
	return icrc_find_changed_bytes(
		       difference, size - PACKET_ICRC_BYTES - IP4_ID - sizeof(id), &id
	       )
		       ? FRAME_ICRC_BY_ID
		       : FRAME_ICRC_WRONG;
}

// Both functions set *ret_bytes to the frame length from the header.
static int
ip4_parse(const uint8_t *frame, uint32_t size, struct frame_route *route, uint32_t *ret_bytes) {
	if (size < FRAME_IP4_BYTES)
		return -EMSGSIZE;
	if (frame[0] != IP4_VERSION_WORDS || frame[IP4_PROTOCOL] != IPPROTO_UDP ||
	    (load_be16(frame + IP4_FRAGMENT) & ~IP4_DF) != 0)
		return -EBADMSG;
	memset(route->from.raw + 10, 0xff, 2);
	memcpy(route->from.raw + 12, frame + IP4_FROM, 4);
	memset(route->to.raw + 10, 0xff, 2);
	memcpy(route->to.raw + 12, frame + IP4_TO, 4);
	route->traffic_class = frame[IP4_TRAFFIC_CLASS];
	route->hop_limit = frame[IP4_TTL];
	*ret_bytes = load_be16(frame + IP4_LENGTH);
	return 0;
}

static int
ip6_parse(const uint8_t *frame, uint32_t size, struct frame_route *route, uint32_t *ret_bytes) {
	if (size < FRAME_IP6_BYTES)
		return -EMSGSIZE;
	if (frame[IP6_NEXT] != IPPROTO_UDP)
		return -EBADMSG;
	memcpy(route->from.raw, frame + IP6_FROM, 16);
	memcpy(route->to.raw, frame + IP6_TO, 16);
	// Mapped addresses stand for IPv4 in GIDs and are invalid in an IPv6 header.
	if (frame_is_ip4(&route->from) || frame_is_ip4(&route->to))
		return -EBADMSG;
	route->traffic_class = (uint8_t)(load_be16(frame) >> 4);
	route->flow_label = load_be32(frame) & IP6_FLOW_MASK;
	route->hop_limit = frame[IP6_HOPS];
	*ret_bytes = FRAME_IP6_BYTES + (uint32_t)load_be16(frame + IP6_LENGTH);
	return 0;
}

int frame_parse(uint8_t *frame, uint32_t size, struct frame_view *ret_view) {
	struct frame_view view = {0};
	uint8_t *udp;
	int err;

	if (size == 0)
		return -EMSGSIZE;
	if (frame[0] >> 4 == 4)
		err = ip4_parse(frame, size, &view.route, &view.frame_bytes);
	else if (frame[0] >> 4 == 6)
		err = ip6_parse(frame, size, &view.route, &view.frame_bytes);
	else
		err = -EBADMSG;
	if (err != 0)
		return err;
	if (view.frame_bytes > size || !has_packet(frame, view.frame_bytes))
		return -EMSGSIZE;
	view.packet = frame + frame_headers_bytes(frame_has_ip4_version(frame));
	udp = view.packet - FRAME_UDP_BYTES;
	view.packet_bytes = view.frame_bytes - (uint32_t)(view.packet - frame);
	if (load_be16(udp + UDP_TO) != SOFT_UDP_PORT ||
	    load_be16(udp + UDP_LENGTH) != FRAME_UDP_BYTES + view.packet_bytes)
		return -EBADMSG;
	view.route.source_port = load_be16(udp);
	*ret_view = view;
	return 0;
}
