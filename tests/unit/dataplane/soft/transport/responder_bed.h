// SPDX-License-Identifier: BSD-3-Clause
// Responders without a device: what they send, complete and tell is kept for the test to look at.
// One device for the whole program, made anew for each test; owned by the bed.
#pragma once

#include "transport/qp.h"

#define BED_QPS 3
#define BED_MTU 256
#define BED_PSN 0xfffff0 // the sequence wraps within each test of some length
#define BED_REGION 8192	 // bytes, with as many around it that nobody may touch
#define BED_SENT 1024
#define BED_DONE 512
#define BED_EVENTS 16
#define BED_BUDGET 32

struct bed_sent {
	struct packet packet; // payload points behind it
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
	uint8_t *memory;    // of the region
	uint8_t *payload;   // what requests carry: PACKET_PAYLOAD_MAX + 1 bytes that differ
	uint32_t wire_room; // packets that the wire takes still
	struct bed_sent *sent;
	uint32_t sent_head, sent_tail; // [head, tail) are not looked at yet
	struct ibv_wc done[BED_DONE];
	bool done_solicited[BED_DONE];
	uint32_t done_head, done_tail;
	struct ibv_async_event events[BED_EVENTS];
	uint32_t event_head, event_tail;
};

extern struct bed bed;

// As cmocka wants them: queue pairs in RTS with all rights, an empty queue of 4 receives of up to
// 4 pieces each, one region with all rights and 0x11 everywhere. The end looks that nothing was
// written around the region.
int bed_make(void **state);
int bed_end(void **state);
// The same with one shared queue of 4 in the place of their own.
int bed_make_shared(void **state);

// A packet for the first queue pair: so many bytes of bed.payload, and the pad that belongs to it.
// With RETH or AtomicETH it is for the beginning of the region, a RETH's length is the payload's.
struct packet bed_packet(uint8_t opcode, uint32_t psn, uint32_t payload_bytes);
// It comes, if the queue pair is in a state to receive.
void bed_request(const struct packet *packet);
void bed_request_at(uint32_t qp, const struct packet *packet);
// The same, and what there is to answer leaves.
void bed_exchange(const struct packet *packet);
void bed_transmit(void);

// A receive of these bytes of the region for the first queue pair, or the shared queue.
void bed_receive(uint64_t wr_id, uint32_t offset, uint32_t bytes);
uint64_t bed_address(uint32_t offset);

// The next that was sent is one like that. The others: the next one; it is there.
void bed_expect(uint8_t opcode, uint32_t psn, uint8_t syndrome);
const struct bed_sent *bed_next_sent(void);
const struct ibv_wc *bed_next_done(void);
void bed_expect_event(enum ibv_event_type type);
// Nothing more was sent, completed or told.
void bed_expect_quiet(void);
// In ERR, and the event, if it is not COMM_EST, was told.
void bed_expect_over(enum ibv_event_type type);
