// SPDX-License-Identifier: BSD-3-Clause
// The answering half of a queue pair: the order of requests, what is executed, what is answered.
//
// Answers leave in the order of their requests: while read responses are on their way out, the
// acknowledgement or the NAK of what came after them waits.
#pragma once

#include "nic/nic.h"
#include "packet/packet.h"
#include "packet/psn.h"
#include "transport/ack_rule.h"
#include "transport/receive_queue.h"
#include "transport/verbs_limits.h"

#define RESPONDER_READS_MAX 16 // max_qp_rd_atom of the device

// A read or atomic: kept after it was answered, to answer a duplicate. A duplicate of a read lies
// within one original: who asks again for what several reads brought sends several requests.
struct response_work {
	bool atomic;
	bool pending; // [answer_next, answer_end) is to be sent, what came before from answer_from
	uint32_t first_psn, packets;
	uint64_t address; // of a read, and what may be read again
	uint32_t key, length;
	uint64_t original; // of an atomic
	uint32_t msn;
	uint32_t answer_from, answer_next, answer_end; // bytes of a read; whole packets but the end
};

// What ends a run of requests, in the place of an acknowledgement.
struct responder_nak {
	uint8_t syndrome; // 0: none
	bool fatal;	  // once it is out, or cannot be any more, the queue pair is in ERR
	bool told;	  // fatal, and a completion told the program: else `event` does
	enum ibv_event_type event;
	uint32_t psn;
};

struct responder {
	uint32_t expected_psn, msn;
	uint8_t kind;	  // enum packet_kind of the message that is under way; NONE: between
	bool established; // the first request came
	bool nak_sent;	  // of the present gap, or not ready: what comes later is not answered
	uint32_t gap_psn; // the latest that came after the gap
	bool ack_due;	  // up to expected_psn - 1
	struct ack_rule ack_rule;
	struct responder_nak nak;
	uint64_t write_address; // of a write under way: where the next packet goes
	uint32_t write_key, write_left, write_length;
	bool receiving; // `receive` is taken
	struct receive_work receive;
	struct ibv_sge *receive_sges;		// of sge_max
	uint32_t receive_sge, receive_sge_used; // where the next byte goes
	uint32_t received;			// bytes of it
	struct response_work works[RESPONDER_READS_MAX];
	uint32_t work_head, work_tail; // run on; [head, tail) are kept
	uint32_t answered;	       // run on: those below were answered in full at least once
	uint32_t answering;	       // run on: none below is pending
};

struct soft_qp;

// sge_max: of its own receive queue, or of the shared one. -ENOMEM.
int responder_init(struct responder *responder, uint32_t sge_max);
void responder_fini(struct responder *responder);
// To RTR: the PSN and depths from qp->attr. To RESET: everything is forgotten.
void responder_start(struct soft_qp *qp);
void responder_reset(struct soft_qp *qp);

// One receive for its own queue. -ENOMEM (full), -EINVAL (pieces, lengths, state RESET, or its
// receives are shared ones). In state ERR it is completed as flushed.
int responder_post(struct soft_qp *qp, const struct ibv_recv_wr *wr);

// A request, of a frame that was checked; state RTR, RTS or SQD. Checks in the order that the
// specification gives; places data in order; what is to be answered goes out with
// responder_transmit(), for which the queue pair is put among the ready ones.
void responder_request(struct soft_qp *qp, const struct packet *packet);
// Responses, NAKs, acknowledgements (these not if they may wait), up to budget packets, in the same
// states; after a NAK that ends it the queue pair is in ERR. True if it stopped for want of budget
// or of room on the wire alone.
bool responder_transmit(struct soft_qp *qp, uint32_t budget, bool defer_acks);
// The queue pair is in ERR: a receive under way and all that wait in its own queue are flushed.
void responder_flush(struct soft_qp *qp);
