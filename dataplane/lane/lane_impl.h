// SPDX-License-Identifier: BSD-3-Clause
// What the cold and the hot halves of pairs and lanes share.
//
// A pair's struct is made and freed on the device's keeper. From LANE_REQUEST_ADD to
// LANE_EVENT_DRAINED all but what is constant belongs to the worker, whose ring carries it there
// and back. Of a lane the keeper has `made`, the worker has the rest.
#pragma once

#include <dataplane/lane.h>
#include <dataplane/pair.h>
#include <lib/clock.h>

#include <stdalign.h>
#include <stdatomic.h>
#include <sys/queue.h>

// wr_id: slot (16 bit), generation (24 low bits of it), direction (1), place in its ring (23).
#define WR_PLACE_BITS 23
#define WR_PLACE_MASK ((UINT32_C(1) << WR_PLACE_BITS) - 1)
#define WR_RECEIVE (UINT64_C(1) << WR_PLACE_BITS)
#define WR_GENERATION_SHIFT 24
#define WR_SLOT_SHIFT 48
#define GENERATION_MASK ((UINT32_C(1) << 24) - 1)

// A completion costs the device a write and us a poll, so of the writes and sends that one chain
// posts only each eighth and the last asks for one: those before it are then complete too. It pays
// where many small ones are posted at once; a lone one, and each read and atomic, whose end
// somebody times, has its own.
#define LANE_SIGNAL_EVERY 8
// A device of the kernel (Soft-RoCE, siw) moves what is posted within the call. A long chain
// keeps it there until it leaves the rest to ksoftirqd, which then shares the processor with our
// polls: half the rate. There a chain of sends ends with what makes it this long. The others have
// no bound: the software device sends a long chain the better for it.
#define LANE_CHAIN_KERNEL_BYTES UINT64_C(65536)
// A device that had no memory for a work request is asked again by then, if nothing completes.
#define LANE_RETRY_NS UINT64_C(50000)
// Bounds of a step, beside LANE_POLL_BATCH.
#define LANE_PAIRS_PER_STEP 16
#define LANE_EXPIRED_PER_STEP 64

struct op_list {
	struct op *first, *last;
};

// A work request that is posted.
struct lane_work {
	struct op *op; // NULL: the mark that ends a drain
	uint32_t length;
	bool signalled;
	bool done;
};

// One direction of a pair. Counters run on; head - tail are posted, never more than depth.
struct lane_queue {
	struct lane_work *works; // a ring of mask + 1
	uint32_t mask, depth;
	uint32_t head, tail;
	struct op_list waiting; // the first one may be posted in part
};

enum pair_state {
	PAIR_READY,
	PAIR_DRAINING, // failed: what is posted is awaited
	PAIR_STUCK,    // it did not come: pair_cut_off() is awaited
	PAIR_SWEPT,    // cut off: what had completed before is still in the completion queue
};

// What control has still to be told of a pair, in this order.
#define TELL_FAILED 0x1
#define TELL_STUCK 0x2
#define TELL_DRAINED 0x4

struct pair {
	// Constant while a lane has it.
	struct lane *lane;
	struct device *device;
	struct ibv_qp *qp;
	uint64_t wr_base; // slot and generation, where a wr_id has them
	uint32_t slot, generation, psn;
	uint32_t queue_number;
	uint32_t inline_max;
	// The worker's.
	enum pair_state state;
	uint8_t tell;
	bool telling;
	struct pair_list *list; // the one it is in, NULL for none
	TAILQ_ENTRY(pair) in_list;
	STAILQ_ENTRY(pair) in_untold;
	uint64_t due_ns; // end of a drain, or of waiting for the device's memory
	uint64_t sweep_end;
	struct lane_queue sends, receives;
	struct op_list held; // broken, all their messages complete: end with the drain
	struct op_cause cause;
	bool cause_is_flush;
	// Worker: rw, others: ro.
	_Atomic uint64_t ended[OP_OUTCOME_COUNT];
	_Atomic uint64_t bytes_out, bytes_in;
	struct histogram_log2 times;
	struct device_facts facts; // of when it was made; cold
};

TAILQ_HEAD(pair_list, pair);
STAILQ_HEAD(pair_untold, pair);

enum lane_count {
	LANE_POLLS,
	LANE_COMPLETIONS,
	LANE_STALE,
	LANE_CHAINS,
	LANE_POSTED,
	LANE_SIGNALLED,
	LANE_INLINED,
	LANE_FULL,
	LANE_POST_FAILURES,
	LANE_FAILED,
	LANE_DRAINED,
	LANE_STUCK,
	LANE_POLL_FAILURES,
	LANE_COMPLETION_EVENTS,
	LANE_PAIRS, // the last two are not sums
	LANE_OPS,
	LANE_COUNTS,
};

// Of the heap of deadlines: the key beside the pointer, so that sifting reads no operation.
struct lane_deadline {
	uint64_t due_ns;
	struct op *op;
};

struct lane {
	// Constant.
	struct device *device;
	const struct clock *clock;
	struct ibv_comp_channel *channel; // NULL: no events
	struct ibv_cq *cq;
	struct ibv_cq_ex *stamped; // the same queue, whose completions have time stamps; or NULL
	enum lane_stamps stamps;
	uint32_t pair_max, depth, op_max;
	uint32_t completions_max; // that may be in the queue at once
	uint32_t vector;	  // of the completion queue
	uint64_t message_max, drain_ns;
	uint64_t chain_bytes; // a chain of sends ends with what makes it so long
	bool atomics;
	struct worker_poll poll;
	struct near near;   // where what the worker uses is wanted
	struct pair **made; // by slot: all that there are of it, whoever has them; the keeper's
	// The worker's.
	alignas(64) struct worker *worker; // NULL: attached to none, or polled without one
	struct pair **pairs;		   // by slot
	uint32_t under_way;		   // work requests posted
	uint32_t attention;	   // how many things are in any list below but `ready` and `ended`
	struct pair_list ready;	   // with something to post, and credits
	struct pair_list full;	   // the device had no memory; by due_ns
	struct pair_list draining; // by due_ns
	struct pair_list drained;
	struct pair_list swept;
	struct pair_untold untold;
	struct op_list ended;	    // for `done`
	struct op_list untold_ops;  // for LANE_EVENT_DONE
	struct lane_deadline *heap; // from 1
	uint32_t heap_count;
	uint32_t begun;	   // operations posted in this step, without receives
	uint32_t finished; // such that ended
	uint64_t now_ns;   // when the step began, or what took long in it was over
	uint32_t unacked;  // completion events
	bool armed;
	bool emptied;	       // the completion queue, when it was last looked at
	bool dead;	       // it cannot be polled any more
	atomic_bool events;    // worker: rw, others: ro
	uint64_t device_stamp; // of the completion that is being taken; 0 without stamps
	struct ibv_wc wcs[LANE_POLL_BATCH];
	uint64_t wc_stamps[LANE_POLL_BATCH]; // of each, if the queue is stamped
	struct ibv_send_wr sends[LANE_POST_BATCH];
	struct ibv_recv_wr receives[LANE_POST_BATCH];
	struct ibv_sge sges[LANE_POST_BATCH];
	// Worker: rw, others: ro.
	alignas(64) _Atomic uint64_t counts[LANE_COUNTS];
	_Atomic uint64_t ends[OP_OUTCOME_COUNT];
};

// One writer: a load and a store, no locked instruction. Relaxed: numbers for people.
static inline void lane_add(_Atomic uint64_t *count, uint64_t by) {
	atomic_store_explicit(
		count, atomic_load_explicit(count, memory_order_relaxed) + by, memory_order_relaxed
	);
}

static inline void lane_count(struct lane *lane, enum lane_count which, uint64_t by) {
	lane_add(&lane->counts[which], by);
}

static inline uint64_t lane_ops(const struct lane *lane) {
	return atomic_load_explicit(&lane->counts[LANE_OPS], memory_order_relaxed);
}

static inline uint64_t lane_pairs(const struct lane *lane) {
	return atomic_load_explicit(&lane->counts[LANE_PAIRS], memory_order_relaxed);
}

static inline uint32_t queue_posted(const struct lane_queue *queue) {
	return queue->head - queue->tail;
}

static inline void op_list_push(struct op_list *list, struct op *op) {
	op->next = NULL;
	op->previous = list->last;
	if (list->last == NULL)
		list->first = op;
	else
		list->last->next = op;
	list->last = op;
}

static inline void op_list_push_front(struct op_list *list, struct op *op) {
	op->previous = NULL;
	op->next = list->first;
	if (list->first == NULL)
		list->last = op;
	else
		list->first->previous = op;
	list->first = op;
}

static inline void op_list_remove(struct op_list *list, struct op *op) {
	if (op->previous == NULL)
		list->first = op->next;
	else
		op->previous->next = op->next;
	if (op->next == NULL)
		list->last = op->previous;
	else
		op->next->previous = op->previous;
}

static inline struct op *op_list_pop(struct op_list *list) {
	struct op *op = list->first;

	if (op == NULL)
		return NULL;
	list->first = op->next;
	if (op->next == NULL)
		list->last = NULL;
	else
		op->next->previous = NULL;
	return op;
}

static inline bool pair_has_work(const struct pair *pair) {
	return (pair->sends.waiting.first != NULL && queue_posted(&pair->sends) < pair->sends.depth
	       ) ||
	       (pair->receives.waiting.first != NULL &&
		queue_posted(&pair->receives) < pair->receives.depth);
}

static inline void pair_move(struct pair *pair, struct pair_list *list) {
	struct lane *lane = pair->lane;

	if (pair->list == list)
		return;
	if (pair->list != NULL) {
		TAILQ_REMOVE(pair->list, pair, in_list);
		lane->attention -= pair->list != &lane->ready;
	}
	if (list != NULL) {
		TAILQ_INSERT_TAIL(list, pair, in_list);
		lane->attention += list != &lane->ready;
	}
	pair->list = list;
}

// Ended: for `done`, or for control.
static inline void lane_hand_over(struct lane *lane, struct op *op) {
	if (op->done != NULL) {
		op_list_push(&lane->ended, op);
		return;
	}
	op_list_push(&lane->untold_ops, op);
	lane->attention++;
}

static inline struct lane_queue *pair_queue_of(struct pair *pair, const struct op *op) {
	return op->kind == OP_RECEIVE ? &pair->receives : &pair->sends;
}

static inline struct lane_work *queue_work(const struct lane_queue *queue, uint32_t place) {
	return &queue->works[place & queue->mask];
}

static inline struct op_cause op_cause_of(const struct op *op) {
	return (struct op_cause){
		.kind = (uint8_t)op->kind,
		.local_key = op->view.local_key,
		.remote_key = op->remote_key,
		.remote_address = op->remote_address,
		.length = op->length,
	};
}

// What follows is hot, and the worker's.
bool lane_step(void *ctx, struct idle_found *found);

// lane_post_fast.c: one chain for each direction, as credits allow. True if anything was posted.
bool lane_post(struct lane *lane, struct pair *pair);
// Behind work requests that asked for no completion, so that a drain sees their end.
void lane_post_mark(struct lane *lane, struct pair *pair);

// lane_complete_fast.c: one batch. True if there was any.
bool lane_poll_completions(struct lane *lane);
void lane_work_done(
	struct lane *lane, struct pair *pair, struct lane_work *work, enum ibv_wc_status status
);
// It ends with what is in it; `done` is called later in the step.
void lane_op_end(struct lane *lane, struct pair *pair, struct op *op);

// lane_drain_fast.c
//
// The first time the pair drains from here on; later a cause may only be made more precise.
void lane_pair_fail(struct lane *lane, struct pair *pair, const struct op_cause *cause);
// When something of it has completed.
void lane_drain_check(struct lane *lane, struct pair *pair);
void lane_pair_gone(struct lane *lane, struct pair *pair);
// Drains that are complete or take too long, pairs that were cut off.
bool lane_drain(struct lane *lane);
// As many events as there is room for.
void lane_tell_control(struct lane *lane);

// lane_deadline_fast.c
// Of an operation that has one, and is or is not in the heap.
void lane_deadline_add(struct lane *lane, struct op *op);
void lane_deadline_remove(struct lane *lane, struct op *op);
bool lane_expire(struct lane *lane, uint64_t now_ns);
// Because of its deadline, or cancelled: it ends if no device can reach it, else its pair fails.
void lane_op_stop(struct lane *lane, struct op *op, enum op_outcome outcome);

// lane.c
// How long a chain of sends may get. The software device of libtocsin-verbs.so passes for one of
// the kernel, but has no path in sysfs.
uint64_t lane_chain_bytes(const struct device_facts *facts);
