// SPDX-License-Identifier: BSD-3-Clause
// Checks completions: each comes once, in order, with a possible status.
#include "dataplane/soft/transport/model.h"

#include <arpa/inet.h>

static struct end *end_find(const struct device *device, uint32_t number) {
	struct model *model = device->model;

	for (uint32_t p = 0; p < model->pair_count; p++) {
		for (uint32_t e = 0; e < 2; e++) {
			struct end *end = &model->pairs[p].ends[e];

			if (end->device == device && end->qp != NULL && end->qp->qp_num == number)
				return end;
		}
	}
	return NULL;
}

static enum ibv_wc_opcode completion_of(enum ibv_wr_opcode opcode) {
	if (is_write(opcode))
		return IBV_WC_RDMA_WRITE;
	if (is_send(opcode))
		return IBV_WC_SEND;
	if (opcode == IBV_WR_RDMA_READ)
		return IBV_WC_RDMA_READ;
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD;
}

static void work_succeed(struct end *end) {
	struct work *work = work_at(end, end->head);

	model_must(
		end->model, work->wrong == RIGHT, "work %u is wrong (%d) and succeeded", work->id,
		work->wrong
	);
	if (is_write(work->opcode)) {
		check_landed(end, end->head);
		apply_write(end, work);
	} else if (work->opcode == IBV_WR_RDMA_READ) {
		apply_read(end, end->head);
	} else if (is_atomic(work->opcode)) {
		apply_atomic(end, work);
	}
	end->arena_head = work->arena_end;
	end->head++;
	end->kept = end->head;
	end->model->finished++;
}

static void work_fail(struct end *end) {
	struct work *work = work_at(end, end->head);

	adopt_local(end, end->head);
	work->failed = true;
	end->head++;
	end->model->finished++;
}

static bool needs_completion(const struct work *work) {
	return (work->flags & IBV_SEND_SIGNALED) != 0 || work->wrong != RIGHT;
}

void end_finish_unsignalled(struct end *end) {
	while (!end->failed && end->head != end->tail) {
		struct work *work = work_at(end, end->head);

		model_must(
			end->model, !needs_completion(work), "work %u was never completed", work->id
		);
		work_succeed(end);
	}
}

// Return the request of a completion. The requests before it were not signalled and succeeded.
static struct work *work_completed(struct end *end, const struct ibv_wc *wc) {
	uint32_t id = (uint32_t)(wc->wr_id >> 1);

	for (;;) {
		struct work *work = work_at(end, end->head);

		model_must(
			end->model, end->head != end->tail,
			"work %u completed (%s) and is not under way", id,
			ibv_wc_status_str(wc->status)
		);
		if (work->id == id)
			return work;
		model_must(
			end->model, !end->failed && !needs_completion(work),
			"work %u completed (%s) before work %u", id, ibv_wc_status_str(wc->status),
			work->id
		);
		work_succeed(end);
	}
}

// The cause of the flush may be a completion that was not polled yet.
static bool may_be_flushed(const struct pair *pair) {
	return pair->spoils > 0 || pair->ends[0].model->heavy || pair->ends[0].rnr_retries < 7 ||
	       pair->ends[1].rnr_retries < 7;
}

static bool
is_status_of(const struct end *end, const struct work *work, enum ibv_wc_status status) {
	const struct pair *pair = end->pair;

	switch (status) {
	case IBV_WC_WR_FLUSH_ERR:
		return may_be_flushed(pair);
	case IBV_WC_RETRY_EXC_ERR:
		// When a pair breaks, a lost NAK is not sent again.
		return pair->spoils > (work->wrong != RIGHT) ||
		       (may_be_flushed(pair) && (work->wrong == RIGHT || end->model->faults.any));
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return end->rnr_retries < 7 && takes_receive(work->opcode);
	case IBV_WC_REM_OP_ERR:
		return end->peer->bad_receives && is_send(work->opcode) && work->length > 0;
	case IBV_WC_LOC_PROT_ERR:
		return work->wrong == WRONG_LKEY || work->wrong == WRONG_LOCAL;
	case IBV_WC_REM_ACCESS_ERR:
		return work->wrong == WRONG_RKEY || work->wrong == WRONG_RANGE ||
		       work->wrong == WRONG_RIGHTS || work->wrong == WRONG_PD;
	case IBV_WC_REM_INV_REQ_ERR:
		return work->wrong == WRONG_ALIGNMENT || work->wrong == WRONG_LENGTH;
	default:
		return false;
	}
}

static void send_failed(struct end *end, const struct ibv_wc *wc) {
	struct work *work = work_completed(end, wc);

	end->model->errors[wc->status]++;
	if (end->failed)
		model_must(
			end->model, wc->status == IBV_WC_WR_FLUSH_ERR, "work %u after an error: %s",
			work->id, ibv_wc_status_str(wc->status)
		);
	else
		model_must(
			end->model, is_status_of(end, work, wc->status),
			"work %u (opcode %d, %u bytes, wrong %d, %u spoils): %s", work->id,
			work->opcode, work->length, work->wrong, end->pair->spoils,
			ibv_wc_status_str(wc->status)
		);
	if (!end->failed)
		pair_spoil(end->pair);
	end->failed = true;
	work_fail(end);
}

static void send_completed(struct end *end, const struct ibv_wc *wc) {
	struct work *work;

	model_trace(
		end->model, "send completion of qp %u: work %lu %s", wc->qp_num,
		(unsigned long)(wc->wr_id >> 1), ibv_wc_status_str(wc->status)
	);
	if (wc->status != IBV_WC_SUCCESS) {
		send_failed(end, wc);
		return;
	}
	model_must(end->model, !end->failed, "a success after an error");
	work = work_completed(end, wc);
	model_must(
		end->model, work->flags & IBV_SEND_SIGNALED, "work %u has a completion unasked",
		work->id
	);
	model_must(
		end->model, wc->opcode == completion_of(work->opcode), "work %u has opcode %d",
		work->id, wc->opcode
	);
	if (work->opcode == IBV_WR_RDMA_READ || is_atomic(work->opcode))
		model_must(
			end->model, wc->byte_len == work->length, "work %u of %u bytes has %u",
			work->id, work->length, wc->byte_len
		);
	work_succeed(end);
}

// Remove and return the receive with this id.
static struct receive receive_take(struct end *end, uint32_t id) {
	struct device *device = end->device;
	struct receive *receive = NULL;
	struct receive taken;

	if (!end->uses_srq) {
		model_must(
			end->model, end->receive_head != end->receive_tail,
			"receive %u completed and was not posted", id
		);
		receive = &end->receives[end->receive_head++ % RECEIVES_RING];
		model_must(
			end->model, receive->id == id, "receive %u completed before %u", id,
			receive->id
		);
	}
	for (uint32_t i = 0; end->uses_srq && i < device->srq_slots; i++) {
		if (device->srq_receives[i].id == id)
			receive = &device->srq_receives[i];
	}
	model_must(end->model, receive != NULL, "receive %u was not posted", id);
	taken = *receive;
	receive->id = 0;
	return taken;
}

// When a message arrives, all writes sent before it must be visible.
static void check_order(struct end *end, uint32_t id) {
	struct end *sender = end->peer;

	for (uint32_t at = sender->head; at != sender->tail; at++) {
		const struct work *work = work_at(sender, at);

		if (work->id >= id)
			return;
		if (is_write(work->opcode) && work->wrong == RIGHT)
			check_landed(sender, at);
	}
}

static void
receive_succeeded(struct end *end, const struct ibv_wc *wc, const struct receive *receive) {
	const struct incoming *incoming = &end->incoming[end->incoming_head % INCOMING_RING];
	bool has_immediate = incoming->opcode != IBV_WR_SEND;
	struct model *model = end->model;

	model_must(
		model, end->incoming_head != end->incoming_tail, "receive %u: nothing was sent",
		receive->id
	);
	model_must(model, !end->receives_failed, "a receive succeeded after one that failed");
	model_must(
		model, !incoming->too_long, "send %u is too long and was received", incoming->id
	);
	model_must(
		model,
		wc->opcode == (is_send(incoming->opcode) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM),
		"receive of %u has opcode %d", incoming->id, wc->opcode
	);
	model_must(
		model, wc->byte_len == incoming->length, "receive of %u of %u bytes has %u",
		incoming->id, incoming->length, wc->byte_len
	);
	model_must(
		model,
		(wc->wc_flags & IBV_WC_WITH_IMM) == (has_immediate ? IBV_WC_WITH_IMM : 0) &&
			(!has_immediate || wc->imm_data == htonl(incoming->immediate)),
		"receive of %u: flags 0x%x, immediate 0x%x", incoming->id, wc->wc_flags,
		wc->imm_data
	);
	apply_receive(end, receive, incoming);
	check_order(end, incoming->id);
	end->incoming_head++;
	model->received++;
}

static void
receive_failed(struct end *end, const struct ibv_wc *wc, const struct receive *receive) {
	const struct incoming *incoming = &end->incoming[end->incoming_head % INCOMING_RING];
	bool expected = false;

	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		expected = may_be_flushed(end->pair);
	else if (!end->receives_failed && end->incoming_head != end->incoming_tail)
		expected = (wc->status == IBV_WC_LOC_LEN_ERR && incoming->too_long) ||
			   (wc->status == IBV_WC_LOC_PROT_ERR && receive->bad) ||
			   // An invalid request within a message.
			   (wc->status == IBV_WC_LOC_LEN_ERR && receive->bad && incoming->too_long);
	model_must(
		end->model, expected, "receive %u (bad %d): %s", receive->id, receive->bad,
		ibv_wc_status_str(wc->status)
	);
	if (!end->receives_failed)
		pair_spoil(end->pair);
	end->receives_failed = true;
	adopt_receive(end, receive);
}

static void receive_completed(struct end *end, const struct ibv_wc *wc) {
	struct receive receive = receive_take(end, (uint32_t)(wc->wr_id >> 1));

	model_trace(
		end->model, "receive completion of qp %u: receive %u %s", wc->qp_num, receive.id,
		ibv_wc_status_str(wc->status)
	);
	if (wc->status == IBV_WC_SUCCESS)
		receive_succeeded(end, wc, &receive);
	else
		receive_failed(end, wc, &receive);
}

void poll_cq(struct device *device, uint32_t cq, uint32_t max) {
	struct model *model = device->model;
	struct ibv_wc wcs[16];
	int count;

	if (max > COUNT_OF(wcs))
		max = COUNT_OF(wcs);
	count = ibv_poll_cq(device->cqs[cq], (int)max, wcs);
	model_must(model, count >= 0 && count <= (int)max, "poll_cq says %d", count);
	for (int i = 0; i < count; i++) {
		struct end *end = end_find(device, wcs[i].qp_num);

		model_must(
			model, end != NULL, "a completion of qp %u, which is gone", wcs[i].qp_num
		);
		if (wcs[i].wr_id & 1) {
			model_must(model, end->receive_cq == cq, "a receive on another queue");
			receive_completed(end, &wcs[i]);
		} else {
			model_must(model, end->send_cq == cq, "a send on another queue");
			send_completed(end, &wcs[i]);
		}
	}
}

void poll_all(struct model *model) {
	for (uint32_t d = 0; d < model->device_count; d++) {
		struct device *device = &model->devices[d];

		for (uint32_t cq = 0; cq < device->cq_count; cq++) {
			for (uint32_t n = 0; n < 64; n++)
				poll_cq(device, cq, 16);
		}
	}
}

void end_forget(struct end *end) {
	while (end->head != end->tail)
		work_fail(end);
	while (end->receive_head != end->receive_tail) {
		struct receive *receive = &end->receives[end->receive_head++ % RECEIVES_RING];

		adopt_receive(end, receive);
		receive->id = 0;
	}
	// A receive of the shared queue may have been lost with the queue pair, and may have been
	// written to.
	for (uint32_t i = 0; end->uses_srq && i < end->device->srq_slots; i++) {
		if (end->device->srq_receives[i].id != 0)
			adopt_receive(end, &end->device->srq_receives[i]);
	}
	end->failed = end->receives_failed = true;
}
