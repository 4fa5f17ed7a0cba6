// SPDX-License-Identifier: BSD-3-Clause
// One RoCEv2 RC packet from the BTH on: properties of its opcode, decoding and encoding of its
// headers. Pure functions; the bytes are untrusted.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_BTH_BYTES 12
#define PACKET_HEADERS_MAX 40 // BTH and AtomicETH
#define PACKET_ICRC_BYTES 4
#define PACKET_PAYLOAD_MAX 4096
#define PACKET_PKEY_DEFAULT 0xffff

// Values as on the wire.
enum packet_opcode {
	PACKET_SEND_FIRST = 0x00,
	PACKET_SEND_MIDDLE = 0x01,
	PACKET_SEND_LAST = 0x02,
	PACKET_SEND_LAST_IMM = 0x03,
	PACKET_SEND_ONLY = 0x04,
	PACKET_SEND_ONLY_IMM = 0x05,
	PACKET_WRITE_FIRST = 0x06,
	PACKET_WRITE_MIDDLE = 0x07,
	PACKET_WRITE_LAST = 0x08,
	PACKET_WRITE_LAST_IMM = 0x09,
	PACKET_WRITE_ONLY = 0x0a,
	PACKET_WRITE_ONLY_IMM = 0x0b,
	PACKET_READ_REQUEST = 0x0c,
	PACKET_READ_FIRST = 0x0d,
	PACKET_READ_MIDDLE = 0x0e,
	PACKET_READ_LAST = 0x0f,
	PACKET_READ_ONLY = 0x10,
	PACKET_ACK = 0x11,
	PACKET_ATOMIC_ACK = 0x12,
	PACKET_COMPARE_SWAP = 0x13,
	PACKET_FETCH_ADD = 0x14,
};

enum packet_kind {
	PACKET_KIND_NONE, // no supported RC opcode
	PACKET_KIND_SEND,
	PACKET_KIND_WRITE,
	PACKET_KIND_READ,
	PACKET_KIND_ATOMIC,
	PACKET_KIND_READ_RESPONSE,
	PACKET_KIND_ACK, // also NAKs
	PACKET_KIND_ATOMIC_ACK,
};

// Properties of an opcode. A request or response of one packet is both first and last.
#define PACKET_FIRST 0x01
#define PACKET_LAST 0x02
#define PACKET_RESPONSE 0x04
#define PACKET_RETH 0x08
#define PACKET_IMM 0x10
#define PACKET_AETH 0x20
#define PACKET_ATOMIC_ETH 0x40
#define PACKET_ATOMIC_ACK_ETH 0x80

struct packet_opcode_info {
	uint8_t kind; // enum packet_kind
	uint8_t flags;
	uint8_t header_bytes; // BTH and extension headers
};

// Return the properties of any opcode byte; kind NONE if unknown.
const struct packet_opcode_info *packet_opcode_info(uint8_t opcode);
// Return "WRITE_FIRST" and so on; "unknown".
const char *packet_opcode_name(uint8_t opcode);

// AETH syndromes.
#define PACKET_SYNDROME_ACK 0x1f // without credits, as every implementation sends
#define PACKET_SYNDROME_RNR 0x20 // | timer code
#define PACKET_SYNDROME_NAK_SEQUENCE 0x60
#define PACKET_SYNDROME_NAK_INVALID 0x61
#define PACKET_SYNDROME_NAK_ACCESS 0x62
#define PACKET_SYNDROME_NAK_OPERATION 0x63

// Fields that an opcode does not have are 0.
struct packet {
	uint8_t opcode;
	bool solicited;
	bool ack_request;
	bool migration; // sent as 1, accepted as both
	uint8_t pad;	// bytes after the payload, 0 to 3
	uint16_t pkey;
	uint32_t queue_pair; // destination
	uint32_t psn;
	uint64_t address; // RETH, AtomicETH
	uint32_t key;
	uint32_t length; // RETH
	uint32_t immediate;
	uint8_t syndrome; // AETH
	uint32_t msn;
	uint64_t swap_add, compare; // AtomicETH
	uint64_t original;	    // AtomicAckETH
	// Received packets: a pointer into their bytes, without the pad.
	const uint8_t *payload;
	uint32_t payload_bytes;
};

// Decode a packet from the BTH to before the ICRC. Returns -EMSGSIZE (shorter than its headers and
// pad), -EBADMSG (TVer is not 0, payload exceeds PACKET_PAYLOAD_MAX), or -EPROTO (opcode); then
// outputs are untouched.
int packet_decode(const uint8_t *bytes, size_t size, struct packet *ret_packet);
// Write the headers and return their size; payload and payload_bytes are ignored.
size_t packet_encode(const struct packet *packet, uint8_t ret_bytes[static PACKET_HEADERS_MAX]);

// Return the delay of an RNR timer code; 0 is the longest. Only the low 5 bits count.
uint64_t packet_rnr_delay_ns(uint8_t code);
