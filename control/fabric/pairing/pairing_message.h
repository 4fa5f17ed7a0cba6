// SPDX-License-Identifier: BSD-3-Clause
// Messages between two agents about one pair.
//
//	all      version u8, least version u8, type u8, flags u8,
//	         start u64, generation u32 (0: none), your start u64, your generation u32 (0: none),
//	         device, your device (strings)
//	INFO     link u8, LID u16, GID 16, MTU u16, reads in u8, reads out u8, queue u32, PSN u32,
//	         flow label u32, traffic class u8, responder u8, flags u8,
//	         pulse: address u64, key u32, layout u16,
//	         since version 2 write sink: address u64, key u32, length u32,
//	         since version 3 P_Key u16 (0: unknown),
//	         since version 4 GPU memory: address u64, word u64, key u32, length u32, ordinal u16
//	READY    the same: the sender's end is connected and can receive
//	REFUSE   reason u8, text (string): no pair for the receiver's end
//	CLOSE    the same: the sender's end is gone
//
// Every message says all that its sender knows, so any message may be lost or repeated. The common
// part, REFUSE and CLOSE never change. A newer version adds fields at the end of INFO and READY.
#pragma once

#include <control/pairing.h>

#define PAIRING_VERSION 4
#define PAIRING_VERSION_LEAST 1

enum pairing_message_type {
	PAIRING_INFO = 1,
	PAIRING_READY_SENT, // message READY; PAIRING_READY is a state
	PAIRING_REFUSE,
	PAIRING_CLOSE,
	PAIRING_MESSAGE_TYPE_END,
};

#define PAIRING_FLAG_SEEN 0x01 // in READY: the peer's READY was received, no answer needed

struct pairing_message {
	uint8_t version;
	uint8_t version_least;
	enum pairing_message_type type;
	uint8_t flags;
	uint64_t your_start;
	uint32_t your_generation;
	char device[DEVICE_NAME_MAX + 1]; // name of the sender's device
	char your_device[DEVICE_NAME_MAX + 1];
	struct pairing_end end; // in REFUSE and CLOSE only start and generation
	struct pairing_failure failure;
};

// Encode a message. version and version_least must be ours. Returns its size in bytes.
size_t pairing_message_encode(
	const struct pairing_message *message, uint8_t bytes[static PAIRING_MESSAGE_BYTES_MAX]
);
// Decode a message. Returns 0, or -EBADMSG if no agent sends such a message. -EPROTO and -EINVAL:
// the head is valid and in *ret_message, but the rest is unusable. The failure says why
// (NO_COMMON_VERSION, MALFORMED).
int pairing_message_decode(const void *bytes, size_t size, struct pairing_message *ret_message);
