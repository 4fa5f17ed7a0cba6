// SPDX-License-Identifier: BSD-3-Clause
// The sending half of a queue pair: posted requests, progress of sending, and acknowledgements.
//
// A work request gets its PSNs when it is posted. After a loss, sending goes back to a PSN
// (go-back-N). If an answer is unusually late, the oldest packet is sent again, long before the
// timeout. A lost acknowledgement or NAK then costs only a few round trips. Reads are requested in
// pieces, so that their responses fit the device's receive buffer. Unfinished requests are [head,
// tail); sending has reached next.
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
	uint32_t flags;	    // IBV_SEND_...; SIGNALED is also set if the queue pair signals all
	uint32_t immediate; // as in the request, in network order
	uint32_t length;
	uint32_t first_psn, packets; // PSNs of the request; for a read those of its responses
	uint32_t rkey;
	uint32_t sge_count; // inline: 0
};

struct requester {
	struct send_work *works; // rings of mask + 1 entries, a power of two
	struct ibv_sge *sges;	 // sge_max per entry
	uint8_t *inlines;	 // inline_max per entry
	uint32_t capacity, mask, sge_max, inline_max;
	uint32_t head, next, tail;    // free-running
	uint32_t post_psn;	      // first PSN of the next posted request
	uint32_t next_psn;	      // next packet to send, in work `next`
	uint32_t high_psn;	      // one past the highest PSN ever sent
	uint32_t acked_psn;	      // oldest unacknowledged PSN, in work `head`
	uint32_t window, window_max;  // limit of unacknowledged packets; learnt from losses
	uint32_t window_acked;	      // packets acknowledged since the window grew
	uint32_t recover_psn;	      // the window does not shrink again until this is acknowledged
	uint32_t piece;		      // packets per read request, a power of two
	uint32_t reads_out;	      // read requests and atomics between acked_psn and next_psn
	uint32_t resumed_psn;	      // latest PSN where a read was resumed within a piece
	uint8_t retries, rnr_retries; // retries left
	uint8_t pauses;		      // own pauses seen since the latest acknowledgement
	bool lost;		      // sending went back because an answer was missing
	uint32_t lost_psn;	      // latest answer seen after the missing one
	bool draining;		      // report SQ_DRAINED when the queue pair has drained
	enum ibv_wc_status stuck;     // error that prevents sending `next`; SUCCESS: none
	uint32_t timed_psn;	      // PSN whose acknowledgement updates `wait_ns`
	uint64_t timed_ns;	      // time when that PSN was sent; 0: nothing is timed
	uint64_t wait_ns;	      // usual answer time, learnt
	uint64_t rewound_ns;	      // latest time when an answer made sending go back
	uint64_t probe_ns;	      // time of the next probe; NIC_NEVER: none
	uint8_t probes;		      // probes sent since the latest acknowledgement
	uint64_t timeout_ns;	      // deadline of the answer; NIC_NEVER: no answer is awaited
	uint64_t rnr_ns;	      // the peer is not ready until then; 0: ready
};

struct soft_qp;

// Allocate the rings for these capabilities, which were checked. Returns 0 or -ENOMEM.
int requester_init(struct requester *requester, const struct ibv_qp_cap *cap);
void requester_fini(struct requester *requester);
// Start at RTR to RTS, with PSN, retries and windows from qp->attr. Reset forgets everything.
void requester_start(struct soft_qp *qp);
void requester_reset(struct soft_qp *qp);

// Drain at RTS to SQD: begun requests are still sent and answered. Then SQ_DRAINED is raised if
// requested; this may happen at once. Resume at SQD to RTS.
void requester_drain(struct soft_qp *qp);
void requester_resume(struct soft_qp *qp);

// Post one work request: the queue pair becomes ready, but nothing is sent yet. Returns -EINVAL
// (state, opcode, pieces, flags, length over REQUESTER_MESSAGE_MAX, atomics not of 8 bytes, reads
// and atomics if none are allowed) or -ENOMEM (queue full). In state ERR the request completes as
// flushed.
int requester_post(struct soft_qp *qp, const struct ibv_send_wr *wr);

// Send up to budget packets. Returns true if only the budget or the wire stopped it. In state SQD
// only begun requests are sent.
bool requester_transmit(struct soft_qp *qp, uint32_t budget);
// Handle an ACK, NAK, read response or atomic response from a checked frame, in any state.
void requester_response(struct soft_qp *qp, const struct packet *packet);
// Return the time of the next timer; NIC_NEVER: none. The transmit, response and timer functions
// change it.
uint64_t requester_next_timer_ns(const struct soft_qp *qp);
void requester_run_timers(struct soft_qp *qp);
// Complete all unfinished requests as flushed, in order; the queue pair is in ERR.
void requester_flush(struct soft_qp *qp);
// Return true if no sent packet is unacknowledged and no message is half sent (in state SQD:
// drained).
bool requester_is_idle(const struct soft_qp *qp);
