// SPDX-License-Identifier: BSD-3-Clause
// A requester alone. The test acts as wire, peer and clock, and records packets and completions.
#pragma once

#include "transport/requester_impl.h"

#include <support/cases.h>
#include <support/cmocka.h>

#define BED_MTU 256
#define BED_PACKETS 4096
#define BED_WCS 4096
#define BED_MEMORY (256 * 1024)
#define BED_REMOTE UINT64_C(0x100000)
#define BED_RKEY 0xabcd
#define BED_WINDOW_BYTES (512 * BED_MTU)

struct bed_packet {
	struct packet packet;
	uint32_t size;
	uint8_t payload[4096];
};

struct bed {
	struct soft_nic nic;
	struct soft_wire wire;
	struct soft_pd pd;
	struct soft_cq cq;
	struct soft_qp qp;
	struct soft_mr mr;
	uint8_t *memory;
	struct bed_packet *sent;
	uint32_t sent_count, seen;
	uint32_t room; // packets that the wire accepts
	struct ibv_wc wcs[BED_WCS];
	uint32_t wc_count, wc_seen;
	uint32_t errors;  // times that the queue pair went to ERR
	uint32_t drained; // notifications about a drained send queue
};

extern struct bed *bed;

// Setup and teardown of each test: a queue pair in RTS.
int bed_open(void **state);
int bed_close(void **state);
// Restart with this first PSN and MTU.
void bed_start(uint32_t psn, uint32_t mtu);
void bed_state(enum ibv_qp_state state);

// Return a signalled request with `length` bytes of local memory at `offset`, to the same remote
// offset.
struct ibv_send_wr bed_wr(enum ibv_wr_opcode opcode, uint32_t offset, uint32_t length);
void bed_post(enum ibv_wr_opcode opcode, uint32_t offset, uint32_t length);
void bed_post_flags(
	enum ibv_wr_opcode opcode, uint32_t offset, uint32_t length, unsigned int flags
);
// Transmit; return the number of packets sent.
uint32_t bed_transmit(void);
// Return the next packet that the test has not seen; the test fails if there is none.
const struct bed_packet *bed_sent(void);
const struct bed_packet *bed_sent_as(uint8_t opcode, uint32_t psn);
void bed_sent_nothing(void);

void bed_answer(const struct packet *packet);
void bed_ack(uint32_t psn);
void bed_syndrome(uint32_t psn, uint8_t syndrome);
// Answer a read with `bytes` bytes of the value `fill`.
void bed_read_answer(uint8_t opcode, uint32_t psn, uint8_t fill, uint32_t bytes);
void bed_atomic_answer(uint32_t psn, uint64_t original);
void bed_advance(uint64_t ns);
// Advance to the next due time and run its timer.
void bed_due(void);
// Advance to the timeout. Returns the number of packets sent before it to ask for an answer.
uint32_t bed_timeout(void);

// Return the next completion that the test has not seen.
const struct ibv_wc *bed_wc(enum ibv_wc_status status);
void bed_wcs(uint32_t count, enum ibv_wc_status status);
void bed_no_wc(void);
