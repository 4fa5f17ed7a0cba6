// SPDX-License-Identifier: BSD-3-Clause
// The answering half of a queue pair: checks the order of requests, executes and answers them.
//
// Answers leave in the order of their requests. While read responses are being sent, later
// acknowledgements and NAKs wait.
#pragma once

#include "nic/nic.h"
#include "packet/packet.h"
#include "packet/psn.h"
#include "transport/ack_rule.h"
#include "transport/receive_queue.h"
#include "transport/verbs_limits.h"

#define RESPONDER_READS_MAX 16 // max_qp_rd_atom of the device

// A read or atomic, kept after it was answered, to answer duplicates. A duplicate read lies within
// one original read: a requester that repeats several reads sends several requests.
struct response_work {
	bool atomic;
	// [answer_next, answer_end) must still be sent; [answer_from, answer_next) was sent
	bool pending;
	uint32_t first_psn, packets;
	uint64_t address; // of the read; the range that may be read again
	uint32_t key, length;
	uint64_t original; // old value, for an atomic
	uint32_t msn;
	// Bytes of a read; whole packets except at the end
	uint32_t answer_from, answer_next, answer_end;
};

// NAK that ends a run of requests, sent instead of an acknowledgement.
struct responder_nak {
	uint8_t syndrome; // 0: none
	bool fatal;	  // after it was sent, or cannot be sent, the queue pair enters ERR
	bool told;	  // fatal, and a completion reported it to the program; else `event` does
	enum ibv_event_type event;
	uint32_t psn;
};

struct responder {
	uint32_t expected_psn, msn;
	uint8_t kind;	  // enum packet_kind of the unfinished message; NONE: none
	bool established; // the first request arrived
	// A NAK for the present gap, or RNR, was sent; later requests are not answered
	bool nak_sent;
	uint32_t gap_psn; // latest PSN received after the gap
	bool ack_due;	  // acknowledgement up to expected_psn - 1 is owed
	struct ack_rule ack_rule;
	struct responder_nak nak;
	uint64_t write_address; // unfinished write: address of the next packet's data
	uint32_t write_key, write_left, write_length;
	bool receiving; // `receive` is in use
	struct receive_work receive;
	struct ibv_sge *receive_sges;		// sge_max entries
	uint32_t receive_sge, receive_sge_used; // position of the next byte
	uint32_t received;			// bytes received so far
	struct response_work works[RESPONDER_READS_MAX];
	uint32_t work_head, work_tail; // free-running; [head, tail) are kept
	uint32_t answered;  // free-running; works below were fully answered at least once
	uint32_t answering; // free-running; no work below is pending
};

struct soft_qp;

// Allocate. sge_max: of the queue pair's receive queue, or of the shared one. Returns 0 or -ENOMEM.
int responder_init(struct responder *responder, uint32_t sge_max);
void responder_fini(struct responder *responder);
// Start at the move to RTR, with PSN and depths from qp->attr. Reset forgets everything.
void responder_start(struct soft_qp *qp);
void responder_reset(struct soft_qp *qp);

// Post one receive to the queue pair's own queue. Returns -ENOMEM (full) or -EINVAL (pieces,
// lengths, state RESET, or a shared receive queue). In state ERR the receive completes as flushed.
int responder_post(struct soft_qp *qp, const struct ibv_recv_wr *wr);

// Handle a request from a checked frame, in state RTR, RTS or SQD. Checks follow the order of the
// specification, and data are placed in order. responder_transmit() sends the answer; the queue
// pair becomes ready for it.
void responder_request(struct soft_qp *qp, const struct packet *packet);
// Send responses, NAKs and acknowledgements (unless deferred), up to budget packets, in the same
// states. After a fatal NAK the queue pair is in ERR. Returns true if only the budget or the wire
// stopped it.
bool responder_transmit(struct soft_qp *qp, uint32_t budget, bool defer_acks);
// Flush the receive in use and all waiting ones of the own queue; the queue pair is in ERR.
void responder_flush(struct soft_qp *qp);
