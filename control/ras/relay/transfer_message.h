// SPDX-License-Identifier: BSD-3-Clause
// What the two ends of a transfer say to each other: payloads of relayed messages.
#pragma once

#include <lib/wire.h>
#include <ras/transfer.h>

#define TRANSFER_DATA_HEADER_BYTES 14
#define TRANSFER_MESSAGE_BYTES_MAX (TRANSFER_DATA_HEADER_BYTES + RAS_TRANSFER_SEGMENT_BYTES_MAX)

enum transfer_type {
	TRANSFER_START = 1,
	TRANSFER_DATA,
	TRANSFER_CANCEL, // from who sends
	TRANSFER_CREDIT,
	TRANSFER_END, // from who receives
};

struct transfer_message {
	enum transfer_type type;
	uint64_t id; // the sender's, in its start

	// START
	uint32_t port;
	uint64_t tag;
	uint64_t size; // or RAS_TRANSFER_SIZE_UNKNOWN
	uint32_t life_ms;

	// DATA
	uint32_t offset;
	bool last;
	const uint8_t *bytes; // where they lie
	uint32_t count;

	// CREDIT, END
	uint32_t received; // everything before this offset
	uint32_t limit;	   // CREDIT: nothing at or beyond this offset

	// CANCEL, END
	enum ras_transfer_outcome outcome;
	enum ras_transfer_reason reason;
};

// Returns the size of the payload, at most TRANSFER_MESSAGE_BYTES_MAX.
size_t transfer_message_encode(const struct transfer_message *message, uint8_t *payload);
// -EBADMSG: no agent sends this.
int transfer_message_decode(const void *payload, size_t size, struct transfer_message *ret_message);
