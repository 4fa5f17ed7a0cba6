// SPDX-License-Identifier: BSD-3-Clause
// Declarations shared by the requester's files.
//
// A work request is unfinished from posting to completion, and only the head completes. PSNs are
// compared within [acked_psn, high_psn), which the window bounds. Posted but unsent requests may
// span more than half of the PSN space.
#pragma once

#include "transport/output.h"

#include <lib/must.h>

static_assert(sizeof(struct send_work) == 64, "a work request is one cache line");

static inline struct send_work *work_at(const struct requester *requester, uint32_t index) {
	return &requester->works[index & requester->mask];
}

static inline struct ibv_sge *work_sges(const struct requester *requester, uint32_t index) {
	return &requester->sges[(size_t)(index & requester->mask) * requester->sge_max];
}

static inline uint8_t *work_inline(const struct requester *requester, uint32_t index) {
	return &requester->inlines[(size_t)(index & requester->mask) * requester->inline_max];
}

static inline uint32_t work_end_psn(const struct send_work *work) {
	return psn_add(work->first_psn, work->packets);
}

static inline bool work_is_atomic(const struct send_work *work) {
	return work->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP;
}

// Return true if the request needs a response beyond an acknowledgement.
static inline bool work_needs_response(const struct send_work *work) {
	return work->opcode >= IBV_WR_RDMA_READ;
}

static inline uint32_t requester_in_flight(const struct requester *requester) {
	return psn_add(requester->next_psn, -requester->acked_psn);
}

// requester_memory.c: copy bytes of a work request from or to its pieces. Returns false if a piece
// is not registered (any more) in the domain with the required rights.
bool work_gather(
	const struct soft_qp *qp, uint32_t index, uint32_t offset, uint8_t *to, uint32_t size
);
bool work_scatter(
	const struct soft_qp *qp,
	uint32_t index,
	uint32_t offset,
	const uint8_t *from,
	uint32_t size
);

// requester.c: report SQ_DRAINED to the program if it waits for that.
void requester_report_drained(struct soft_qp *qp);

// requester_progress.c
void requester_complete(
	struct soft_qp *qp, const struct send_work *work, enum ibv_wc_status status
);
// Complete the oldest request with this status and move the queue pair to ERR.
void requester_fail(struct soft_qp *qp, enum ibv_wc_status status);
// Set acked_psn to psn, which lies within the oldest work request or ends it.
void requester_advance(struct soft_qp *qp, uint32_t psn);
// Acknowledge everything before psn. Returns false if it stopped at a read or atomic whose response
// is missing.
bool requester_acknowledge(struct soft_qp *qp, uint32_t psn);
// Update retries, window, timers and readiness after advancing from `before`. Returns false if the
// queue pair is in ERR afterwards.
bool requester_finish_advance(struct soft_qp *qp, uint32_t before);

// requester_send.c: send the oldest packet again, without other changes.
void requester_probe(struct soft_qp *qp);

// requester_retry.c
// Start the timers: an answer is awaited from now on.
void requester_start_timers(struct soft_qp *qp);
// Update the learnt answer time after an acknowledgement.
void requester_learn_answer_time(struct soft_qp *qp);
// Stop the timers: the answer came, or none is awaited.
void requester_stop_timers(struct requester *requester);
// Go back to acked_psn because of an answer.
void requester_go_back(struct soft_qp *qp);
// Handle an answer for `psn` while an earlier one is missing.
void requester_handle_gap(struct soft_qp *qp, uint32_t psn);
// Handle an RNR NAK: the peer had no receive for acked_psn.
void requester_handle_rnr(struct soft_qp *qp, uint8_t syndrome);
