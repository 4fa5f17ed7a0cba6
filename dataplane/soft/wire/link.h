// SPDX-License-Identifier: BSD-3-Clause
// ARP and Neighbour Discovery messages, which map addresses to hardware addresses. Pure functions;
// the bytes are untrusted.
#pragma once

#include <dataplane/verbs.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_MAC_BYTES 6
#define LINK_HEADER_BYTES 14
#define LINK_TYPE_IP4 0x0800
#define LINK_TYPE_ARP 0x0806
#define LINK_TYPE_IP6 0x86dd
#define LINK_MESSAGE_BYTES_MAX 86 // neighbour solicitation with its Ethernet header

// Own end of the link; an IPv4 address is mapped.
struct link_host {
	union ibv_gid gid;
	uint8_t mac[LINK_MAC_BYTES];
};

// One message of ARP or Neighbour Discovery.
struct link_message {
	bool asks;	      // request for `target`; else an answer or announcement
	bool mac_known;	      // `mac` is valid and belongs to `about`
	union ibv_gid about;  // sender's address; all zero: the sender has none yet
	union ibv_gid target; // requested address; valid if `asks`
	uint8_t mac[LINK_MAC_BYTES];
};

static inline uint16_t link_get16(const uint8_t *bytes) {
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static inline void link_put16(uint8_t *bytes, uint32_t value) {
	bytes[0] = (uint8_t)(value >> 8);
	bytes[1] = (uint8_t)value;
}

static inline bool link_gid_equal(const union ibv_gid *a, const union ibv_gid *b) {
	return __builtin_memcmp(a->raw, b->raw, sizeof(a->raw)) == 0;
}

// Write an Ethernet header with this type.
void link_header(
	const uint8_t to[static LINK_MAC_BYTES],
	const uint8_t from[static LINK_MAC_BYTES],
	uint16_t type,
	uint8_t *ret_bytes
);

// Parse `size` bytes behind the Ethernet header; trailing padding is allowed. Returns -EMSGSIZE
// (truncated) or -EBADMSG (not ARP for Ethernet and IPv4; invalid IP or hardware address).
int arp_parse(const uint8_t *bytes, size_t size, struct link_message *ret_talk);
// Build a whole frame and return its size. A request for the own address announces it.
size_t arp_build_request(
	const struct link_host *self,
	const union ibv_gid *target,
	uint8_t ret_frame[static LINK_MESSAGE_BYTES_MAX]
);
size_t arp_build_reply(
	const struct link_host *self,
	const struct link_message *asked,
	uint8_t ret_frame[static LINK_MESSAGE_BYTES_MAX]
);

// Parse `size` bytes from the IPv6 header on. Returns -EMSGSIZE, or -EBADMSG (no neighbour
// solicitation or advertisement, extension headers, not from this link, checksum, contradictory
// options).
int nd_parse(const uint8_t *bytes, size_t size, struct link_message *ret_talk);
size_t nd_build_solicitation(
	const struct link_host *self,
	const union ibv_gid *target,
	uint8_t ret_frame[static LINK_MESSAGE_BYTES_MAX]
);
// Build an answer to the requester; asked NULL: an announcement to all nodes of the link.
size_t nd_build_advertisement(
	const struct link_host *self,
	const struct link_message *asked,
	uint8_t ret_frame[static LINK_MESSAGE_BYTES_MAX]
);
