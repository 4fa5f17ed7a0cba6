// SPDX-License-Identifier: BSD-3-Clause
// Messages between the two ends of a transfer: payloads of relayed messages.
#pragma once

#include <lib/wire.h>
#include <ras/transfer.h>

#define TRANSFER_DATA_HEADER_BYTES 14
#define TRANSFER_MESSAGE_BYTES_MAX (TRANSFER_DATA_HEADER_BYTES + RAS_TRANSFER_SEGMENT_BYTES_MAX)

enum transfer_type {
	TRANSFER_START = 1,
	TRANSFER_DATA,
	TRANSFER_CANCEL, // START, DATA and CANCEL come from the sender
	TRANSFER_CREDIT,
	TRANSFER_END, // CREDIT and END come from the receiver
};

struct transfer_message {
	enum transfer_type type;
	uint64_t id; // given by the sender, unique in its start

	// START
	uint32_t port;
	uint64_t tag;
	uint64_t size; // or RAS_TRANSFER_SIZE_UNKNOWN
	uint32_t life_ms;

	// DATA
	uint32_t offset;
	bool last;
	const uint8_t *bytes; // borrowed
	uint32_t count;

	// CREDIT, END
	uint32_t received; // all bytes before this offset were received
	uint32_t limit;	   // CREDIT: only bytes before this offset may be sent

	// CANCEL, END
	enum ras_transfer_outcome outcome;
	enum ras_transfer_reason reason;
};

// Return the size of the payload, at most TRANSFER_MESSAGE_BYTES_MAX.
size_t transfer_message_encode(const struct transfer_message *message, uint8_t *payload);
// Return 0, or -EBADMSG if no agent sends such a message.
int transfer_message_decode(const void *payload, size_t size, struct transfer_message *ret_message);
