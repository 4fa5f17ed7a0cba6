// SPDX-License-Identifier: BSD-3-Clause
// Handles completions: they are taken in batches and find their work request by slot, generation
// and ring index. An operation ends with its last message.
//
// Values from a device are checked before use as an index. A completion of no posted work request,
// or a second one of the same request, is counted and dropped.
#include "lane/lane_impl.h"

#include <lib/must.h>

#include <arpa/inet.h>
#include <errno.h>

void lane_op_end(struct lane *lane, struct pair *pair, struct op *op) {
	op->done_ns = lane->now_ns;
	op->device_stamp = lane->device_stamp;
	// Receives do not count: their duration depends on the peer.
	lane->finished += op->posted_ns != 0 && op->kind != OP_RECEIVE;
	if (op->heap_index != 0)
		lane_deadline_remove(lane, op);
	lane_add(&lane->ends[op->outcome], 1);
	lane_add(&pair->ended[op->outcome], 1);
	if (op->kind == OP_READ || op->kind == OP_RECEIVE)
		lane_add(&pair->bytes_in, op->bytes);
	else if (op->kind <= OP_WRITE_IMM)
		lane_add(&pair->bytes_out, op->bytes);
	if (op->outcome == OP_OK && op->kind != OP_RECEIVE)
		histogram_log2_record(&pair->times, op->done_ns - op->posted_ns);
	if (op->view.region != NULL)
		memory_view_put(&op->view);
	lane_count(lane, LANE_OPS, -UINT64_C(1));
	lane_queue_ended_op(lane, op);
}

void lane_work_done(
	struct lane *lane, struct pair *pair, struct lane_work *work, enum ibv_wc_status status
) {
	struct op *op = work->op;

	work->done = true;
	if (op == NULL)
		return;
	op->under_way--;
	if (__builtin_expect(status == IBV_WC_SUCCESS, 1)) {
		op->bytes += work->length;
	} else {
		op->broken = true;
		if (status != IBV_WC_WR_FLUSH_ERR && op->outcome == OP_OK)
			op->outcome = OP_FAILED;
	}
	if (op->under_way > 0 || op->waits)
		return;
	if (op->broken) {
		op_list_push(&pair->held, op);
		return;
	}
	op->outcome = OP_OK; // it completed in spite of its deadline or cancellation
	lane_op_end(lane, pair, op);
}

static __attribute__((noinline)) void pair_fail_by_completion(
	struct lane *lane, struct pair *pair, const struct op *op, const struct ibv_wc *wc
) {
	struct op_cause cause = {0};

	if (op != NULL)
		cause = op_cause_of(op);
	cause.status = wc->status;
	cause.vendor_error = wc->vendor_err;
	lane_pair_fail(lane, pair, &cause);
}

// Complete earlier requests without a completion of their own. They succeeded, unless this one was
// flushed. Then they may have been flushed too and must not count as successes.
static void complete_earlier(
	struct lane *lane,
	struct pair *pair,
	struct lane_queue *queue,
	uint32_t place,
	enum ibv_wc_status status
) {
	if (status != IBV_WC_WR_FLUSH_ERR)
		status = IBV_WC_SUCCESS;
	for (uint32_t n = queue->tail; n != place; n++) {
		struct lane_work *earlier = queue_work(queue, n);

		if (!earlier->signalled && !earlier->done)
			lane_work_done(lane, pair, earlier, status);
	}
}

// Handle one completion. Returns false if it matches no posted request.
static bool completion_handle(struct lane *lane, const struct ibv_wc *wc) {
	uint32_t slot = (uint32_t)(wc->wr_id >> WR_SLOT_SHIFT);
	struct pair *pair = slot < lane->pair_max ? lane->pairs[slot] : NULL;
	bool is_receive = (wc->wr_id & WR_RECEIVE) != 0;
	struct lane_queue *queue;
	struct lane_work *work;
	uint32_t ahead, place, tail;

	if (pair == NULL || (wc->wr_id ^ pair->wr_base) >> WR_GENERATION_SHIFT != 0)
		return false;
	queue = is_receive ? &pair->receives : &pair->sends;
	ahead = ((uint32_t)wc->wr_id - queue->tail) & WR_PLACE_MASK;
	place = queue->tail + ahead;
	work = queue_work(queue, place);
	if (ahead >= queue_posted(queue) || work->done) {
		// The error behind a flush may arrive after the flush.
		if (pair->state != PAIR_READY && wc->status != IBV_WC_SUCCESS)
			pair_fail_by_completion(lane, pair, NULL, wc);
		return false;
	}
	complete_earlier(lane, pair, queue, place, wc->status);
	if (__builtin_expect(wc->status != IBV_WC_SUCCESS, 0)) {
		pair_fail_by_completion(lane, pair, work->op, wc);
	} else if (is_receive) {
		// These fields are valid only for a receive that succeeded.
		if (wc->byte_len < work->length)
			work->length = wc->byte_len;
		if ((wc->wc_flags & IBV_WC_WITH_IMM) != 0)
			work->op->immediate = ntohl(wc->imm_data);
	}
	lane_work_done(lane, pair, work, wc->status);

	// Return the credits of completed work requests at the end of the ring.
	tail = queue->tail;
	while (tail != queue->head && queue_work(queue, tail)->done)
		tail++;
	lane->under_way -= tail - queue->tail;
	queue->tail = tail;

	if (__builtin_expect(pair->state != PAIR_READY, 0))
		lane_drain_check(lane, pair);
	else if (pair->list == &lane->full || (pair->list == NULL && pair_has_work(pair)))
		pair_move(pair, &lane->ready);
	return true;
}

// Polling failed, so no completion will come: fail all pairs, which drain by destroying their queue
// pairs.
static __attribute__((noinline)) void lane_fail_all_pairs(struct lane *lane) {
	const struct op_cause cause = {.err = -EIO};

	lane_count(lane, LANE_POLL_FAILURES, 1);
	lane->dead = true;
	lane->emptied = true;
	for (uint32_t slot = 0; slot < lane->pair_max; slot++) {
		if (lane->pairs[slot] != NULL)
			lane_pair_fail(lane, lane->pairs[slot], &cause);
	}
}

// Poll a queue with stamps, like ibv_poll_cq() for one without.
static __attribute__((noinline)) int poll_stamped(struct lane *lane) {
	struct ibv_poll_cq_attr attr = {.comp_mask = 0};
	struct ibv_cq_ex *cq = lane->stamped;
	int count = 0, code = ibv_start_poll(cq, &attr);

	if (code != 0)
		return code == ENOENT ? 0 : -code;
	do {
		struct ibv_wc *wc = &lane->wcs[count];

		*wc = (struct ibv_wc){.wr_id = cq->wr_id, .status = cq->status};
		if (wc->status != IBV_WC_SUCCESS) {
			wc->vendor_err = ibv_wc_read_vendor_err(cq);
		} else if ((wc->wr_id & WR_RECEIVE) != 0) {
			wc->byte_len = ibv_wc_read_byte_len(cq);
			wc->wc_flags = ibv_wc_read_wc_flags(cq);
			if ((wc->wc_flags & IBV_WC_WITH_IMM) != 0)
				wc->imm_data = ibv_wc_read_imm_data(cq);
		}
		lane->wc_stamps[count++] = lane->stamps == LANE_STAMPS_RAW
						   ? ibv_wc_read_completion_ts(cq)
						   : ibv_wc_read_completion_wallclock_ns(cq);
	} while (count < LANE_POLL_BATCH && ibv_next_poll(cq) == 0);
	ibv_end_poll(cq);
	// Errors of ibv_next_poll() are ignored here: the next poll reports them again.
	return count;
}

int lane_device_clock_now(const struct lane *lane, uint64_t *ret_ticks) {
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	int code = ibv_query_rt_values_ex(lane->cq->context, &values);

	if (code != 0)
		return code > 0 ? -code : code;
	if ((values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK) == 0)
		return -EOPNOTSUPP;
	// Drivers whose clock counts ticks return all of them in tv_nsec.
	*ret_ticks = (uint64_t)values.raw_clock.tv_sec * UINT64_C(1000000000) +
		     (uint64_t)values.raw_clock.tv_nsec;
	return 0;
}

bool lane_poll_completions(struct lane *lane) {
	int count;

	if (lane->dead)
		return false;
	if (__builtin_expect(lane->stamped != NULL, 0))
		count = poll_stamped(lane);
	else
		count = ibv_poll_cq(lane->cq, LANE_POLL_BATCH, lane->wcs);
	lane_count(lane, LANE_POLLS, 1);
	if (count == 0) {
		lane->emptied = true;
		return false;
	}
	if (count < 0 || count > LANE_POLL_BATCH) {
		lane_fail_all_pairs(lane);
		return true;
	}
	// Read the clock after the poll, while posting reads it before the post. So no operation
	// appears faster than it was, even if the thread is preempted in between.
	lane->now_ns = clock_now_ns(lane->clock);
	for (int n = 0; n < count; n++) {
		if (lane->stamped != NULL)
			lane->device_stamp = lane->wc_stamps[n];
		if (!completion_handle(lane, &lane->wcs[n]))
			lane_count(lane, LANE_STALE, 1);
	}
	lane->device_stamp = 0;
	lane_count(lane, LANE_COMPLETIONS, (uint64_t)count);
	lane->emptied = count < LANE_POLL_BATCH;
	return true;
}
