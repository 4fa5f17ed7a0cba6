// SPDX-License-Identifier: BSD-3-Clause
// One RoCEv2 RC packet from the BTH on: facts of its opcode, its headers as numbers, and both
// directions between these and bytes. Pure; the bytes come from outside.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_BTH_BYTES 12
#define PACKET_HEADERS_MAX 40 // BTH and AtomicETH
#define PACKET_ICRC_BYTES 4
#define PACKET_PAYLOAD_MAX 4096
#define PACKET_PKEY_DEFAULT 0xffff

// As on the wire.
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
	PACKET_KIND_NONE, // no opcode of RC that we speak
	PACKET_KIND_SEND,
	PACKET_KIND_WRITE,
	PACKET_KIND_READ,
	PACKET_KIND_ATOMIC,
	PACKET_KIND_READ_RESPONSE,
	PACKET_KIND_ACK, // NAKs too
	PACKET_KIND_ATOMIC_ACK,
};

// What an opcode says, as flags; a request or response of one packet is both first and last.
#define PACKET_FIRST 0x01
#define PACKET_LAST 0x02
#define PACKET_RESPONSE 0x04
#define PACKET_RETH 0x08
#define PACKET_IMM 0x10
#define PACKET_AETH 0x20
#define PACKET_ATOMIC_ETH 0x40
#define PACKET_ATOMIC_ACK_ETH 0x80

struct packet_facts {
	uint8_t kind; // enum packet_kind
	uint8_t flags;
	uint8_t header_bytes; // BTH and what follows it
};

// Of any byte; kind NONE for those unknown.
const struct packet_facts *packet_facts(uint8_t opcode);
// "WRITE_FIRST"; "unknown".
const char *packet_opcode_name(uint8_t opcode);

// AETH syndromes.
#define PACKET_SYNDROME_ACK 0x1f // without credits: what everybody sends
#define PACKET_SYNDROME_RNR 0x20 // | timer code
#define PACKET_SYNDROME_NAK_SEQUENCE 0x60
#define PACKET_SYNDROME_NAK_INVALID 0x61
#define PACKET_SYNDROME_NAK_ACCESS 0x62
#define PACKET_SYNDROME_NAK_OPERATION 0x63

// The fields that an opcode does not have are 0.
struct packet {
	uint8_t opcode;
	bool solicited;
	bool ack_request;
	bool migration; // 1 is sent, both are accepted
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
	// Of a packet that came: into its bytes, without the pad.
	const uint8_t *payload;
	uint32_t payload_bytes;
};

// bytes: from the BTH to before the ICRC. -EMSGSIZE (shorter than its headers and pad), -EBADMSG
// (TVer is not 0, the payload exceeds PACKET_PAYLOAD_MAX), -EPROTO (opcode); outputs untouched.
int packet_decode(const uint8_t *bytes, size_t size, struct packet *ret_packet);
// Writes the headers; returns how many bytes. payload and payload_bytes are not looked at.
size_t packet_encode(const struct packet *packet, uint8_t ret_bytes[static PACKET_HEADERS_MAX]);

// What an RNR timer code stands for; 0 is the longest. Only the low 5 bits are looked at.
uint64_t packet_rnr_ns(uint8_t code);
