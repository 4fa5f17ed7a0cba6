// SPDX-License-Identifier: BSD-3-Clause
// The sending half of a queue pair: what was posted, how far it was sent, what is acknowledged.
//
// PSNs are given out when a work request is posted. Sending goes back to a PSN after a loss
// (go-back-N). Where nothing comes back for long enough to be odd, the oldest packet is sent once
// more, long before the timeout: a lost acknowledgement or NAK costs a few round trips then. Reads
// are asked for in pieces, so that their responses never exceed what our own
// receive buffer holds. Everything unfinished is [head, tail); next is where sending stands.
#pragma once

#include "nic/nic.h"
#include "packet/packet.h"
#include "packet/psn.h"

#define REQUESTER_INLINE_MAX 512
#define REQUESTER_SGE_MAX 32
#define REQUESTER_MESSAGE_MAX (UINT32_C(1) << 30)

struct send_work {
	uint64_t wr_id;
	uint64_t remote_address;
	uint64_t compare_add, swap;
	enum ibv_wr_opcode opcode;
	uint32_t flags;	    // IBV_SEND_...; SIGNALED is set if the queue pair signals all
	uint32_t immediate; // as it stood in the request, network order
	uint32_t length;
	uint32_t first_psn, packets; // the PSNs it takes: of a read, those of its responses
	uint32_t rkey;
	uint32_t sge_count; // inline: 0
};

struct requester {
	struct send_work *works; // rings of mask + 1 places, a power of two
	struct ibv_sge *sges;	 // sge_max for each
	uint8_t *inlines;	 // inline_max for each
	uint32_t capacity, mask, sge_max, inline_max;
	uint32_t head, next, tail;    // run on
	uint32_t post_psn;	      // of the next request to be posted
	uint32_t next_psn;	      // of the next packet to be sent, in work `next`
	uint32_t high_psn;	      // one past the highest that was ever sent
	uint32_t acked_psn;	      // the oldest that is not acknowledged, in work `head`
	uint32_t window, window_max;  // packets that may be unacknowledged; learnt from losses
	uint32_t window_acked;	      // since the window grew
	uint32_t recover_psn;	      // the window shrinks no more until this is acknowledged
	uint32_t piece;		      // packets a read request asks for, a power of two
	uint32_t reads_out;	      // read requests and atomics between acked_psn and next_psn
	uint32_t resumed_psn;	      // where a read was last asked for within a piece
	uint8_t retries, rnr_retries; // left
	uint8_t pauses;		      // of our own, seen since anything was acknowledged
	bool lost;		      // it went back since an answer was seen to be missing
	uint32_t lost_psn;	      // the latest answer seen after the missing one
	bool draining;		      // to be told of when the queue pair has drained
	enum ibv_wc_status stuck;     // why `next` cannot be sent; SUCCESS: it can
	uint32_t timed_psn;	      // once this is acknowledged, `wait_ns` learns from it
	uint64_t timed_ns;	      // when what ends there was sent; 0: nothing is timed
	uint64_t wait_ns;	      // what an answer takes, learnt
	uint64_t rewound_ns;	      // when an answer made sending go back last
	uint64_t probe_ns;	      // when to ask after it; NIC_NEVER
	uint8_t probes;		      // sent since anything was acknowledged
	uint64_t timeout_ns;	      // when the answer is overdue; NIC_NEVER: nothing is awaited
	uint64_t rnr_ns;	      // not ready over there until then; 0
};

struct soft_qp;

// -ENOMEM. Rings for these capabilities, which were checked.
int requester_init(struct requester *requester, const struct ibv_qp_cap *cap);
void requester_fini(struct requester *requester);
// From RTR to RTS: PSN, retries and windows from qp->attr. To RESET: everything is forgotten.
void requester_start(struct soft_qp *qp);
void requester_reset(struct soft_qp *qp);

// From RTS to SQD: what is begun is sent and answered still, then SQ_DRAINED is told if asked for
// (it may be at once). From SQD to RTS: goes on.
void requester_drain(struct soft_qp *qp);
void requester_resume(struct soft_qp *qp);

// One work request; nothing is sent yet, but the queue pair is put among the ready ones. -EINVAL
// (state, opcode, pieces, flags, length over REQUESTER_MESSAGE_MAX, atomics that are not 8 bytes,
// reads and atomics where none may be under way), -ENOMEM (the queue is full). In state ERR it is
// completed as flushed.
int requester_post(struct soft_qp *qp, const struct ibv_send_wr *wr);

// Sends up to budget packets; true if it stopped for want of budget or of room on the wire alone.
// In state SQD only what is begun.
bool requester_transmit(struct soft_qp *qp, uint32_t budget);
// An ACK, NAK, read response or atomic answer, of a frame that was checked; any state.
void requester_response(struct soft_qp *qp, const struct packet *packet);
// When something of its own falls due; NIC_NEVER. Changed by the three around it.
uint64_t requester_due(const struct soft_qp *qp);
void requester_timer(struct soft_qp *qp);
// The queue pair is in ERR: all that is unfinished completes as flushed, in order.
void requester_flush(struct soft_qp *qp);
// Nothing sent is unacknowledged, and nothing is half sent (state SQD: drained).
bool requester_is_idle(const struct soft_qp *qp);
