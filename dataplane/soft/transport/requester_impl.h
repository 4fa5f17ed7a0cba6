// SPDX-License-Identifier: BSD-3-Clause
// What the files of the requester share.
//
// A work request is unfinished from post to completion, and completes at the head only. PSNs are
// compared within what is under way, [acked_psn, high_psn), which the window bounds; what is posted
// and not sent may reach further than half of the numbers there are.
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

// An acknowledgement is not enough for it.
static inline bool work_wants_answer(const struct send_work *work) {
	return work->opcode >= IBV_WR_RDMA_READ;
}

static inline uint32_t requester_in_flight(const struct requester *requester) {
	return psn_add(requester->next_psn, -requester->acked_psn);
}

// requester_memory.c: bytes of a work request from and to where its pieces say. False if a piece
// is not (any more) memory of the domain with the rights needed.
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

// requester.c: to the program, if it waits for that.
void requester_tell_drained(struct soft_qp *qp);

// requester_progress.c
void requester_complete(
	struct soft_qp *qp, const struct send_work *work, enum ibv_wc_status status
);
// The oldest one ends with this status, and the queue pair with it.
void requester_fail(struct soft_qp *qp, enum ibv_wc_status status);
// acked_psn becomes psn, which lies within the oldest work request or ends it.
void requester_advance(struct soft_qp *qp, uint32_t psn);
// Everything before psn is acknowledged. False if it stopped at a read or atomic, whose answer is
// missing then.
bool requester_acknowledge(struct soft_qp *qp, uint32_t psn);
// After advancing from `before`: retries, window, timer and what may be sent now. False if the
// queue pair is in ERR after it.
bool requester_settle(struct soft_qp *qp, uint32_t before);

// requester_send.c: the oldest packet again, and nothing else changes.
void requester_probe(struct soft_qp *qp);

// requester_retry.c
// An answer is awaited from now on.
void requester_arm(struct soft_qp *qp);
// Something was acknowledged.
void requester_learn(struct soft_qp *qp);
// It came, or none is awaited any more.
void requester_disarm(struct requester *requester);
// Sending goes back to acked_psn for what an answer said. May end in RETRY_EXC.
void requester_rewind(struct soft_qp *qp);
// An answer for `psn` came, and an earlier one is missing.
void requester_lost(struct soft_qp *qp, uint32_t psn);
// The peer had no receive for acked_psn.
void requester_not_ready(struct soft_qp *qp, uint8_t syndrome);
