// SPDX-License-Identifier: BSD-3-Clause
// The fixed header of a relayed message.
//
// A transit node reads the header and forwards the frame. It patches four fields in place: hops,
// hops left, detours and life. There is no checksum: every link is sealed, or on loopback. A longer
// header belongs to a newer minor version; its added fields are forwarded unread.
#pragma once

#include <lib/wire.h>
#include <ras/relay.h>

#define RELAY_HEADER_BYTES 92
#define RELAY_HEADER_BYTES_MAX 128 // longest header of a newer minor version
#define RELAY_PACKET_BYTES_MAX (RELAY_HEADER_BYTES_MAX + RAS_RELAY_BULK_BYTES_MAX)
#define RELAY_DETOURS_MAX 1

enum relay_kind {
	RELAY_DATA = 1,
	RELAY_ACK, // the message was delivered
	RELAY_NAK, // the message was refused, with a reason; a NAK is never answered
};

#define RELAY_FLAG_ORDERED 0x01

struct relay_header {
	uint8_t header_size;
	uint8_t kind; // enum relay_kind; unknown kinds are forwarded
	uint8_t class;
	uint8_t flags;
	uint8_t reason;	    // NAK: enum ras_relay_reason
	uint8_t detours;    // remaining detours; patched
	uint8_t attempt;    // number of the try at the source, from 0; echoed by the answer
	uint16_t hops;	    // links travelled; patched
	uint16_t hops_left; // patched
	uint32_t life_us;   // remaining life; each node subtracts the time it kept the message
	uint64_t source;
	uint64_t source_incarnation;
	uint64_t source_run; // run of the source's record: two runs may have one start number
	uint64_t destination;
	uint64_t destination_run; // run in the record that the source has of the destination
	uint64_t view;		  // digest of the source's table
	uint64_t sequence;	  // counts from source to destination; 0: sent once, not answered
	uint64_t about;		  // ACK, NAK: destination of the answered message
	uint32_t flow;
	uint32_t port;
	// Ordered DATA: distance to the sequence that must be delivered before, 0 for none.
	// ACK, NAK: hops that the answered message had travelled.
	uint16_t behind;
	uint16_t payload_size;
};

// Write exactly RELAY_HEADER_BYTES; `header_size` is ignored.
void relay_header_encode(const struct relay_header *header, uint8_t *frame);

// Decode and check the header of a whole frame. Returns 0, or -EBADMSG if no agent sends it.
int relay_header_decode(const uint8_t *frame, size_t size, struct relay_header *ret_header);

// Write the four fields that change into the frame.
void relay_header_patch(uint8_t *frame, const struct relay_header *header);
