// SPDX-License-Identifier: BSD-3-Clause
// Encodes and decodes the headers of RoCEv2 packets.
#include "packet/packet.h"

#include "packet/bytes.h"

#include <lib/error.h>
#include <lib/must.h>

#define BTH PACKET_BTH_BYTES
#define RETH_BYTES 16
#define IMM_BYTES 4
#define AETH_BYTES 4
#define ATOMIC_ETH_BYTES 28
#define ATOMIC_ACK_ETH_BYTES 8

// Bits of the second byte of the BTH, and of the byte before the PSN.
#define BTH_SOLICITED 0x80
#define BTH_MIGRATION 0x40
#define BTH_PAD_SHIFT 4
#define BTH_PAD_MASK 0x3
#define BTH_VERSION_MASK 0x0f
#define BTH_ACK_REQUEST 0x80

struct opcode {
	struct packet_opcode_info facts;
	const char *name;
};

#define OPCODE(name, kind, flags, bytes) \
	[PACKET_##name] = {{PACKET_KIND_##kind, (flags), BTH + (bytes)}, #name}
#define FIRST PACKET_FIRST
#define LAST PACKET_LAST
#define ONLY (FIRST | LAST)
#define ANSWER PACKET_RESPONSE
#define IMM PACKET_IMM
#define RETH PACKET_RETH
#define AETH PACKET_AETH

static const struct opcode opcodes[256] = {
	OPCODE(SEND_FIRST, SEND, FIRST, 0),
	OPCODE(SEND_MIDDLE, SEND, 0, 0),
	OPCODE(SEND_LAST, SEND, LAST, 0),
	OPCODE(SEND_LAST_IMM, SEND, LAST | IMM, IMM_BYTES),
	OPCODE(SEND_ONLY, SEND, ONLY, 0),
	OPCODE(SEND_ONLY_IMM, SEND, ONLY | IMM, IMM_BYTES),
	OPCODE(WRITE_FIRST, WRITE, FIRST | RETH, RETH_BYTES),
	OPCODE(WRITE_MIDDLE, WRITE, 0, 0),
	OPCODE(WRITE_LAST, WRITE, LAST, 0),
	OPCODE(WRITE_LAST_IMM, WRITE, LAST | IMM, IMM_BYTES),
	OPCODE(WRITE_ONLY, WRITE, ONLY | RETH, RETH_BYTES),
	OPCODE(WRITE_ONLY_IMM, WRITE, ONLY | RETH | IMM, RETH_BYTES + IMM_BYTES),
	OPCODE(READ_REQUEST, READ, ONLY | RETH, RETH_BYTES),
	OPCODE(READ_FIRST, READ_RESPONSE, ANSWER | FIRST | AETH, AETH_BYTES),
	OPCODE(READ_MIDDLE, READ_RESPONSE, ANSWER, 0),
	OPCODE(READ_LAST, READ_RESPONSE, ANSWER | LAST | AETH, AETH_BYTES),
	OPCODE(READ_ONLY, READ_RESPONSE, ANSWER | ONLY | AETH, AETH_BYTES),
	OPCODE(ACK, ACK, ANSWER | ONLY | AETH, AETH_BYTES),
	OPCODE(ATOMIC_ACK,
	       ATOMIC_ACK,
	       ANSWER | ONLY | AETH | PACKET_ATOMIC_ACK_ETH,
	       AETH_BYTES + ATOMIC_ACK_ETH_BYTES),
	OPCODE(COMPARE_SWAP, ATOMIC, ONLY | PACKET_ATOMIC_ETH, ATOMIC_ETH_BYTES),
	OPCODE(FETCH_ADD, ATOMIC, ONLY | PACKET_ATOMIC_ETH, ATOMIC_ETH_BYTES),
};

const struct packet_opcode_info *packet_opcode_info(uint8_t opcode) {
	return &opcodes[opcode].facts;
}

const char *packet_opcode_name(uint8_t opcode) {
	const char *name = opcodes[opcode].name;

	return name != NULL ? name : "unknown";
}

int packet_decode(const uint8_t *bytes, size_t size, struct packet *ret_packet) {
	struct packet packet = {0};
	const struct packet_opcode_info *facts;
	const uint8_t *at;
	size_t payload;

	if (size < BTH)
		return -EMSGSIZE;
	if ((bytes[1] & BTH_VERSION_MASK) != 0)
		return -EBADMSG;
	facts = packet_opcode_info(bytes[0]);
	if (facts->kind == PACKET_KIND_NONE)
		return -EPROTO;
	packet.opcode = bytes[0];
	packet.solicited = (bytes[1] & BTH_SOLICITED) != 0;
	packet.migration = (bytes[1] & BTH_MIGRATION) != 0;
	packet.pad = bytes[1] >> BTH_PAD_SHIFT & BTH_PAD_MASK;
	packet.pkey = load_be16(bytes + 2);
	packet.queue_pair = load_be24(bytes + 5);
	packet.ack_request = (bytes[8] & BTH_ACK_REQUEST) != 0;
	packet.psn = load_be24(bytes + 9);
	if (size < (size_t)facts->header_bytes + packet.pad)
		return -EMSGSIZE;
	payload = size - facts->header_bytes - packet.pad;
	if (payload > PACKET_PAYLOAD_MAX)
		return -EBADMSG;

	at = bytes + BTH;
	if ((facts->flags & (PACKET_RETH | PACKET_ATOMIC_ETH)) != 0) {
		packet.address = load_be64(at);
		packet.key = load_be32(at + 8);
	}
	if ((facts->flags & PACKET_RETH) != 0) {
		packet.length = load_be32(at + 12);
		at += RETH_BYTES;
	}
	if ((facts->flags & PACKET_ATOMIC_ETH) != 0) {
		packet.swap_add = load_be64(at + 12);
		packet.compare = load_be64(at + 20);
	}
	if ((facts->flags & PACKET_IMM) != 0)
		packet.immediate = load_be32(at);
	if ((facts->flags & PACKET_AETH) != 0) {
		packet.syndrome = at[0];
		packet.msn = load_be24(at + 1);
		at += AETH_BYTES;
	}
	if ((facts->flags & PACKET_ATOMIC_ACK_ETH) != 0)
		packet.original = load_be64(at);
	packet.payload = bytes + facts->header_bytes;
	packet.payload_bytes = (uint32_t)payload;
	*ret_packet = packet;
	return 0;
}

size_t packet_encode(const struct packet *packet, uint8_t ret_bytes[static PACKET_HEADERS_MAX]) {
	const struct packet_opcode_info *facts = packet_opcode_info(packet->opcode);
	uint8_t *at = ret_bytes + BTH;

	must(facts->kind != PACKET_KIND_NONE);
	ret_bytes[0] = packet->opcode;
	ret_bytes[1] = (uint8_t
	)((packet->solicited ? BTH_SOLICITED : 0) | (packet->migration ? BTH_MIGRATION : 0) |
	  (packet->pad & BTH_PAD_MASK) << BTH_PAD_SHIFT);
	store_be16(ret_bytes + 2, packet->pkey);
	store_be32(ret_bytes + 4, packet->queue_pair & 0xffffff);
	store_be32(ret_bytes + 8, packet->psn & 0xffffff);
	if (packet->ack_request)
		ret_bytes[8] = BTH_ACK_REQUEST;

	if ((facts->flags & (PACKET_RETH | PACKET_ATOMIC_ETH)) != 0) {
		store_be64(at, packet->address);
		store_be32(at + 8, packet->key);
	}
	if ((facts->flags & PACKET_RETH) != 0) {
		store_be32(at + 12, packet->length);
		at += RETH_BYTES;
	}
	if ((facts->flags & PACKET_ATOMIC_ETH) != 0) {
		store_be64(at + 12, packet->swap_add);
		store_be64(at + 20, packet->compare);
	}
	if ((facts->flags & PACKET_IMM) != 0)
		store_be32(at, packet->immediate);
	if ((facts->flags & PACKET_AETH) != 0) {
		store_be32(at, (uint32_t)packet->syndrome << 24 | (packet->msn & 0xffffff));
		at += AETH_BYTES;
	}
	if ((facts->flags & PACKET_ATOMIC_ACK_ETH) != 0)
		store_be64(at, packet->original);
	return facts->header_bytes;
}

// Delays in units of 10 us, two steps per doubling; code 0 is the longest and follows code 31.
uint64_t packet_rnr_delay_ns(uint8_t code) {
	static const uint32_t steps[32] = {
		65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
		48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return steps[code & 0x1f] * UINT64_C(10000);
}
