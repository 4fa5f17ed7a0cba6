// SPDX-License-Identifier: BSD-3-Clause
// Creates, starts and ends a requester. Used under the device's lock; the queue pair owns it.
#include "transport/requester_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_START 64
#define WINDOW_MAX 256
#define PIECE_MAX 16

static void *ring_allocate(uint32_t places, size_t size) {
	return size == 0 ? NULL : calloc(places, size);
}

int requester_init(struct requester *requester, const struct ibv_qp_cap *cap) {
	uint32_t places = 1;

	while (places < cap->max_send_wr)
		places *= 2;
	*requester = (struct requester){
		.works = aligned_alloc(sizeof(struct send_work), places * sizeof(struct send_work)),
		.sges = ring_allocate(places, cap->max_send_sge * sizeof(struct ibv_sge)),
		.inlines = ring_allocate(places, cap->max_inline_data),
		.capacity = cap->max_send_wr,
		.mask = places - 1,
		.sge_max = cap->max_send_sge,
		.inline_max = cap->max_inline_data,
		.timeout_ns = NIC_NEVER,
		.probe_ns = NIC_NEVER,
	};
	if (requester->works == NULL || (requester->sges == NULL && requester->sge_max > 0) ||
	    (requester->inlines == NULL && requester->inline_max > 0)) {
		requester_fini(requester);
		return -ENOMEM;
	}
	return 0;
}

void requester_fini(struct requester *requester) {
	free(requester->works);
	free(requester->sges);
	free(requester->inlines);
	*requester = (struct requester){.timeout_ns = NIC_NEVER, .probe_ns = NIC_NEVER};
}

static void requester_set_psn(struct requester *requester, uint32_t psn) {
	requester->post_psn = psn;
	requester->next_psn = psn;
	requester->high_psn = psn;
	requester->acked_psn = psn;
	requester->recover_psn = psn;
	requester->resumed_psn = psn;
}

static void requester_set_idle(struct requester *requester) {
	requester->next = requester->head;
	requester->reads_out = 0;
	requester->lost = false;
	requester->stuck = IBV_WC_SUCCESS;
	requester->probes = 0;
	requester->timed_ns = 0;
	requester->timeout_ns = NIC_NEVER;
	requester->probe_ns = NIC_NEVER;
	requester->rnr_ns = 0;
}

static uint32_t uint_clamp(uint32_t value, uint32_t least, uint32_t most) {
	return value < least ? least : value > most ? most : value;
}

void requester_start(struct soft_qp *qp) {
	struct requester *requester = &qp->requester;
	uint32_t packets = qp->nic->wire->window_bytes / qp->mtu;

	requester_set_psn(requester, qp->attr.sq_psn & PSN_MASK);
	requester_set_idle(requester);
	// Limit data in flight. Read responses must fit our receive buffer; requests must fit the
	// peer's, which is assumed to be like ours.
	requester->window = uint_clamp(packets / 2, 2, WINDOW_START);
	requester->window_max = uint_clamp(packets, requester->window, WINDOW_MAX);
	requester->window_acked = 0;
	requester->piece = PIECE_MAX;
	while (requester->piece > 1 && requester->piece > packets / 2)
		requester->piece /= 2;
	requester->retries = qp->attr.retry_cnt;
	requester->pauses = 0;
	requester->rnr_retries = qp->attr.rnr_retry;
	requester->wait_ns = 0;
}

void requester_reset(struct soft_qp *qp) {
	struct requester *requester = &qp->requester;

	requester->head = requester->tail;
	requester->draining = false;
	requester_set_idle(requester);
	requester_set_psn(requester, 0);
}

void requester_drain(struct soft_qp *qp) {
	qp->requester.draining = qp->attr.en_sqd_async_notify != 0;
	requester_report_drained(qp);
}

void requester_resume(struct soft_qp *qp) {
	qp->requester.draining = false;
	qp_mark_ready(qp);
}

void requester_report_drained(struct soft_qp *qp) {
	if (!qp->requester.draining || !requester_is_idle(qp))
		return;
	qp->requester.draining = false;
	async_raise_qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

void requester_flush(struct soft_qp *qp) {
	struct requester *requester = &qp->requester;

	while (requester->head != requester->tail)
		requester_complete(qp, work_at(requester, requester->head++), IBV_WC_WR_FLUSH_ERR);
	requester->draining = false;
	requester_set_idle(requester);
	requester_set_psn(requester, requester->post_psn);
}

bool requester_is_idle(const struct soft_qp *qp) {
	const struct requester *requester = &qp->requester;

	if (requester->acked_psn != requester->high_psn)
		return false;
	return requester->next == requester->tail ||
	       requester->next_psn == work_at(requester, requester->next)->first_psn;
}
