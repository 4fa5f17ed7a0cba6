// SPDX-License-Identifier: BSD-3-Clause
// The fixed header of a relayed message.
//
// A node between reads it, patches the four fields that change (hops, hops left, detours, life)
// where they lie, and passes the bytes on. It carries no checksum: every link is sealed, or on
// loopback. A longer header is one of a newer minor version; what it adds is passed on unread.
#pragma once

#include <lib/wire.h>
#include <ras/relay.h>

#define RELAY_HEADER_BYTES 92
#define RELAY_HEADER_BYTES_MAX 128 // of a newer minor version
#define RELAY_PACKET_BYTES_MAX (RELAY_HEADER_BYTES_MAX + RAS_RELAY_BULK_BYTES_MAX)
#define RELAY_DETOURS_MAX 1

enum relay_kind {
	RELAY_DATA = 1,
	RELAY_ACK, // delivered
	RELAY_NAK, // refused, with a reason; never answered itself
};

#define RELAY_FLAG_ORDERED 0x01

struct relay_header {
	uint8_t header_size;
	uint8_t kind; // passed on even if unknown
	uint8_t class;
	uint8_t flags;
	uint8_t reason;	    // of a NAK
	uint8_t detours;    // left; patched
	uint8_t attempt;    // which try of the source this is, from 0; echoed by the answer
	uint16_t hops;	    // travelled; patched
	uint16_t hops_left; // patched
	uint32_t life_us;   // left; patched by each node with the time it kept the message
	uint64_t source;
	uint64_t source_incarnation;
	uint64_t source_run; // of its record: two runs may have the same number
	uint64_t destination;
	uint64_t destination_run; // of the record that the source has of it
	uint64_t view;		  // digest of the table that the source had
	uint64_t sequence;	  // of source to destination; 0: sent once, not answered
	uint64_t about;		  // of an answer: the destination of the message meant
	uint32_t flow;
	uint32_t port;
	// DATA, ordered: distance to the sequence that must go first, 0 for none.
	// ACK, NAK: hops that the message meant had travelled.
	uint16_t behind;
	uint16_t payload_size;
};

// Writes exactly RELAY_HEADER_BYTES; `header_size` is ignored.
void relay_header_encode(const struct relay_header *header, uint8_t *frame);

// Reads and checks the header of a whole frame. -EBADMSG: no agent sends this.
int relay_header_decode(const uint8_t *frame, size_t size, struct relay_header *ret_header);

// Puts the four fields that change into the frame.
void relay_header_patch(uint8_t *frame, const struct relay_header *header);
