// SPDX-License-Identifier: BSD-3-Clause
// The end of a pair on the worker: from its first error until the device can reach none of its
// posted work. Only then its operations end.
#include "lane/lane_impl.h"

#include <lib/must.h>

static void pair_queue_event(struct lane *lane, struct pair *pair, uint8_t what) {
	pair->tell |= what;
	if (pair->telling)
		return;
	pair->telling = true;
	STAILQ_INSERT_TAIL(&lane->untold, pair, unreported_entry);
	lane->attention++;
}

void lane_pair_fail(struct lane *lane, struct pair *pair, const struct op_cause *cause) {
	const struct lane_queue *sends = &pair->sends;

	if (pair->state != PAIR_READY) {
		// Receives may be flushed before the failed send is reported.
		if (pair->cause.err == 0 && pair->cause.status == IBV_WC_WR_FLUSH_ERR)
			pair->cause = *cause;
		return;
	}
	lane->now_ns = clock_now_ns(lane->clock);
	lane_count(lane, LANE_FAILED, 1);
	pair->state = PAIR_DRAINING;
	pair->cause = *cause;
	pair->due_ns = lane->now_ns + lane->drain_ns;
	pair_queue_event(lane, pair, REPORT_FAILED);
	if (queue_posted(sends) > 0 && !queue_work(sends, sends->head - 1)->signalled)
		lane_post_mark(lane, pair);
	pair_move(pair, &lane->draining);
	lane_drain_check(lane, pair);
}

void lane_drain_check(struct lane *lane, struct pair *pair) {
	if (pair->state == PAIR_DRAINING && queue_posted(&pair->sends) == 0 &&
	    queue_posted(&pair->receives) == 0)
		pair_move(pair, &lane->drained);
}

// End operations that did not succeed; an outcome of their own is kept.
static void ops_end_failed(struct lane *lane, struct pair *pair, struct op_list *list) {
	struct op *op;

	while ((op = op_list_pop(list)) != NULL) {
		if (op->outcome == OP_OK)
			op->outcome = OP_FLUSHED;
		op->cause = pair->cause;
		op->waits = false;
		lane_op_end(lane, pair, op);
	}
}

static void drain_finish(struct lane *lane, struct pair *pair) {
	ops_end_failed(lane, pair, &pair->held);
	ops_end_failed(lane, pair, &pair->sends.waiting);
	ops_end_failed(lane, pair, &pair->receives.waiting);
	pair_move(pair, NULL);
	lane->pairs[pair->slot] = NULL;
	lane_count(lane, LANE_PAIRS, -UINT64_C(1));
	lane_count(lane, LANE_DRAINED, 1);
	pair_queue_event(lane, pair, REPORT_DRAINED);
}

// Flush a queue for which no completion can come any more.
static void queue_flush(struct lane *lane, struct pair *pair, struct lane_queue *queue) {
	for (; queue->tail != queue->head; queue->tail++) {
		struct lane_work *work = queue_work(queue, queue->tail);

		lane->under_way--;
		if (!work->done)
			lane_work_done(lane, pair, work, IBV_WC_WR_FLUSH_ERR);
	}
}

static uint64_t completions_taken(const struct lane *lane) {
	return atomic_load_explicit(&lane->counts[LANE_COMPLETIONS], memory_order_relaxed);
}

void lane_pair_qp_destroyed(struct lane *lane, struct pair *pair) {
	const struct op_cause cause = {.err = -ENODEV};

	if (pair->state == PAIR_READY)
		lane_pair_fail(lane, pair, &cause);
	pair->state = PAIR_SWEEPING;
	pair->sweep_end = completions_taken(lane) + lane->completions_max;
	lane->emptied = lane->dead;
	pair_move(pair, &lane->swept);
}

bool lane_finish_drains(struct lane *lane) {
	struct pair *pair, *next;
	bool any = false;

	for (pair = TAILQ_FIRST(&lane->swept); pair != NULL; pair = next) {
		next = TAILQ_NEXT(pair, in_list);
		// Wait until all earlier completions of the pair were taken; the device makes no
		// more. Otherwise a stale completion could meet the next pair of this slot.
		if (!lane->emptied && completions_taken(lane) < pair->sweep_end)
			continue;
		queue_flush(lane, pair, &pair->sends);
		queue_flush(lane, pair, &pair->receives);
		drain_finish(lane, pair);
		any = true;
	}

	while ((pair = TAILQ_FIRST(&lane->drained)) != NULL) {
		drain_finish(lane, pair);
		any = true;
	}
	while ((pair = TAILQ_FIRST(&lane->draining)) != NULL && pair->due_ns <= lane->now_ns) {
		// The pair stays stuck even if it drains now, because control is about to destroy
		// its queue pair.
		pair->state = PAIR_STUCK;
		pair_move(pair, NULL);
		lane_count(lane, LANE_STUCK, 1);
		pair_queue_event(lane, pair, REPORT_STUCK);
		any = true;
	}
	return any;
}

// Send the next event of a pair; there is room for it.
static void pair_send_next_event(struct lane *lane, struct pair *pair) {
	static const struct {
		uint8_t what;
		enum lane_event event;
	} order[] = {
		{REPORT_FAILED, LANE_EVENT_FAILED},
		{REPORT_STUCK, LANE_EVENT_STUCK},
		{REPORT_DRAINED, LANE_EVENT_DRAINED},
	};

	for (size_t n = 0; n < sizeof(order) / sizeof(order[0]); n++) {
		struct worker_record record;

		if ((pair->tell & order[n].what) == 0)
			continue;
		record = (struct worker_record){
			.kind = order[n].event,
			.slot = pair->slot,
			.words =
				{worker_pointer_to_word(lane), worker_pointer_to_word(pair),
				 (uint64_t)(int64_t)pair->cause.err, (uint64_t)pair->cause.status},
		};
		pair->tell &= (uint8_t)~order[n].what;
		if (pair->tell == 0) {
			STAILQ_REMOVE_HEAD(&lane->untold, unreported_entry);
			pair->telling = false;
			lane->attention--;
		}
		// After its last event the pair belongs to control.
		worker_event(lane->worker, &record);
		return;
	}
}

void lane_send_events(struct lane *lane) {
	struct worker_record record = {
		.kind = LANE_EVENT_OP_ENDED, .words = {worker_pointer_to_word(lane)}};
	uint32_t room;
	struct op *op;

	if (lane->worker == NULL)
		return;
	room = worker_free_event_slot_count(lane->worker);
	while (room > 0 && !STAILQ_EMPTY(&lane->untold)) {
		pair_send_next_event(lane, STAILQ_FIRST(&lane->untold));
		room--;
	}
	for (; room > 0 && (op = op_list_pop(&lane->unreported_ops)) != NULL; room--) {
		lane->attention--;
		record.words[1] = worker_pointer_to_word(op);
		worker_event(lane->worker, &record);
	}
}
