// SPDX-License-Identifier: BSD-3-Clause
// What is said on an Ethernet about who has which address: ARP and Neighbour Discovery. Pure; the
// bytes come from outside.
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
#define LINK_TALK_BYTES_MAX 86 // a neighbour solicitation with its Ethernet header

// One end: ours. An IPv4 address is the mapped one.
struct link_end {
	union ibv_gid gid;
	uint8_t mac[LINK_MAC_BYTES];
};

// A question or an answer, whatever its family.
struct link_talk {
	bool asks;	      // who has `target`? else it only tells
	bool mac_known;	      // `about` is at `mac`
	union ibv_gid about;  // all zero: a question of one that has no address yet
	union ibv_gid target; // of a question
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

// The Ethernet header in front of what `type` says.
void link_header(
	const uint8_t to[static LINK_MAC_BYTES],
	const uint8_t from[static LINK_MAC_BYTES],
	uint16_t type,
	uint8_t *ret_bytes
);

// size bytes behind the Ethernet header; more than needed is padding. -EMSGSIZE (cut off),
// -EBADMSG (no ARP of Ethernet and IPv4; an address or a hardware address that nobody can have).
int arp_parse(const uint8_t *bytes, size_t size, struct link_talk *ret_talk);
// Whole frames, of the size that is returned. Who asks for itself announces itself.
size_t arp_question(
	const struct link_end *self,
	const union ibv_gid *target,
	uint8_t ret_frame[static LINK_TALK_BYTES_MAX]
);
size_t arp_answer(
	const struct link_end *self,
	const struct link_talk *asked,
	uint8_t ret_frame[static LINK_TALK_BYTES_MAX]
);

// size bytes from the IPv6 header on. -EMSGSIZE, -EBADMSG (no neighbour solicitation or
// advertisement, extension headers, not from this link, checksum, options that contradict).
int nd_parse(const uint8_t *bytes, size_t size, struct link_talk *ret_talk);
size_t nd_question(
	const struct link_end *self,
	const union ibv_gid *target,
	uint8_t ret_frame[static LINK_TALK_BYTES_MAX]
);
// To who asked; asked NULL: to all nodes of the link, unasked.
size_t nd_answer(
	const struct link_end *self,
	const struct link_talk *asked,
	uint8_t ret_frame[static LINK_TALK_BYTES_MAX]
);
