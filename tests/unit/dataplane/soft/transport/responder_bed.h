// SPDX-License-Identifier: BSD-3-Clause
// Responders without a device. The bed records the packets, completions and events for the test.
// One bed serves the whole program and is remade for each test.
#pragma once

#include "transport/qp.h"

#define BED_QPS 3
#define BED_MTU 256
#define BED_PSN 0xfffff0 // PSNs wrap within each longer test
#define BED_REGION 8192	 // bytes; guard areas of this size around it must not change
#define BED_SENT 1024
#define BED_DONE 512
#define BED_EVENTS 16
#define BED_BUDGET 32

struct bed_sent {
	struct packet packet; // its payload points to `payload`
	uint32_t qp_number;
	uint8_t payload[PACKET_PAYLOAD_MAX];
};

struct bed {
	struct soft_nic nic;
	struct soft_context context;
	struct soft_pd pd, strange_pd;
	struct soft_cq cq;
	struct soft_qp qps[BED_QPS];
	struct soft_srq *srq;
	struct soft_mr mr, strange_mr, closed_mr;
	uint8_t *memory;    // memory of the region
	uint8_t *payload;   // payload of requests: PACKET_PAYLOAD_MAX + 1 different bytes
	uint32_t wire_room; // packets that the wire still accepts
	struct bed_sent *sent;
	uint32_t sent_head, sent_tail; // packets in [head, tail) were not seen by the test
	struct ibv_wc done[BED_DONE];
	bool done_solicited[BED_DONE];
	uint32_t done_head, done_tail;
	struct ibv_async_event events[BED_EVENTS];
	uint32_t event_head, event_tail;
};

extern struct bed bed;

// Setup and teardown of a test. The queue pairs are in RTS with all rights. The receive queue is
// empty; it holds 4 receives of up to 4 pieces. The region has all rights and is filled with 0x11.
// Teardown checks that no byte around the region was written.
int bed_make(void **state);
int bed_end(void **state);
// The same, but with one shared queue of 4 receives.
int bed_make_shared(void **state);

// Return a packet for the first queue pair with that many bytes of bed.payload, and padding. A RETH
// or AtomicETH points to the start of the region; the length in a RETH is that of the payload.
struct packet bed_packet(uint8_t opcode, uint32_t psn, uint32_t payload_bytes);
// Deliver the packet, if the queue pair's state allows receiving.
void bed_request(const struct packet *packet);
void bed_request_at(uint32_t qp, const struct packet *packet);
// Deliver the packet, then transmit the answers.
void bed_exchange(const struct packet *packet);
void bed_transmit(void);

// Post a receive of these bytes of the region to the first queue pair, or to the shared queue.
void bed_receive(uint64_t wr_id, uint32_t offset, uint32_t bytes);
uint64_t bed_address(uint32_t offset);

// Check that the next packet has these values. The other functions return the next item; the test
// fails if there is none.
void bed_expect(uint8_t opcode, uint32_t psn, uint8_t syndrome);
const struct bed_sent *bed_next_sent(void);
const struct ibv_wc *bed_next_done(void);
void bed_expect_event(enum ibv_event_type type);
// Check that there are no further packets, completions or events.
void bed_expect_quiet(void);
// Check that the queue pair is in ERR, and that this event was raised unless it is COMM_EST.
void bed_expect_over(enum ibv_event_type type);
