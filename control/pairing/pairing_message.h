// SPDX-License-Identifier: BSD-3-Clause
// What two agents say to each other about one pair.
//
//	all      version u8, least version u8, type u8, flags u8,
//	         start u64, generation u32 (0: none), your start u64, your generation u32 (0: none),
//	         device, your device (strings)
//	INFO     link u8, LID u16, GID 16, MTU u16, reads in u8, reads out u8, queue u32, PSN u32,
//	         flow label u32, traffic class u8, responder u8, flags u8,
//	         pulse: address u64, key u32, layout u16,
//	         since version 2 write sink: address u64, key u32, length u32,
//	         since version 3 P_Key u16 (0: not told),
//	         since version 4 GPU memory: address u64, word u64, key u32, length u32, ordinal u16
//	READY    the same: our end takes what you send
//	REFUSE   reason u8, text (string): there is no pair for yours
//	CLOSE    the same: ours is gone
//
// Every message says all that its sender knows, so that any one may be lost or repeated. What all
// have in common, REFUSE and CLOSE never change; a newer version adds at the end of INFO and READY.
#pragma once

#include <control/pairing.h>

#define PAIRING_VERSION 4
#define PAIRING_VERSION_LEAST 1

enum pairing_message_type {
	PAIRING_INFO = 1,
	PAIRING_READY_SENT, // READY: a name of its own, for a state has that one
	PAIRING_REFUSE,
	PAIRING_CLOSE,
	PAIRING_MESSAGE_TYPE_END,
};

#define PAIRING_FLAG_SEEN 0x01 // of READY: yours came, no answer is wanted

struct pairing_message {
	uint8_t version;
	uint8_t version_least;
	enum pairing_message_type type;
	uint8_t flags;
	uint64_t your_start;
	uint32_t your_generation;
	char device[DEVICE_NAME_MAX + 1]; // the sender's
	char your_device[DEVICE_NAME_MAX + 1];
	struct pairing_end end; // of REFUSE and CLOSE start and generation alone
	struct pairing_failure failure;
};

// Returns the size of what is in `bytes`. version and version_least are ours.
size_t pairing_message_encode(
	const struct pairing_message *message, uint8_t bytes[static PAIRING_MESSAGE_BYTES_MAX]
);
// 0, or -EBADMSG: no agent sends this. -EPROTO and -EINVAL: its head is sound, and *ret_message
// holds it, but nothing can come of it; the failure says why (NO_COMMON_VERSION, MALFORMED).
int pairing_message_decode(const void *bytes, size_t size, struct pairing_message *ret_message);
