// SPDX-License-Identifier: BSD-3-Clause
// Declarations shared by the cold and the hot parts of pairs and lanes.
//
// The device's keeper allocates and frees a pair's struct. From LANE_REQUEST_ADD to
// LANE_EVENT_DRAINED the worker owns all its fields that are not constant. The worker's rings
// transfer the ownership. The keeper owns `made` of a lane, the worker everything else.
#pragma once

#include <dataplane/lane.h>
#include <dataplane/pair.h>
#include <lib/clock.h>

#include <stdalign.h>
#include <stdatomic.h>
#include <sys/queue.h>

// wr_id: slot (16 bits), generation (low 24 bits), direction (1), index in the ring (23).
#define WR_PLACE_BITS 23
#define WR_PLACE_MASK ((UINT32_C(1) << WR_PLACE_BITS) - 1)
#define WR_RECEIVE (UINT64_C(1) << WR_PLACE_BITS)
#define WR_GENERATION_SHIFT 24
#define WR_SLOT_SHIFT 48
#define GENERATION_MASK ((UINT32_C(1) << 24) - 1)

// A completion costs the device a write and the worker a poll. So in a chain of writes and sends
// only every eighth and the last one request a completion; it covers those before it. This pays
// when many small operations are posted together. A single operation has its own completion, as has
// each read and atomic, because their end is timed.
#define LANE_SIGNAL_EVERY 8
// A kernel device (Soft-RoCE, siw) transmits within the post call. A long chain keeps it busy until
// ksoftirqd takes over and competes with our polls, which halves the rate. For such devices a chain
// of sends ends at this size. Other devices have no limit; the software device sends long chains
// faster.
#define LANE_CHAIN_KERNEL_BYTES UINT64_C(65536)
// A post that failed because the device lacked memory is retried after this time. A completion
// retries it sooner.
#define LANE_RETRY_NS UINT64_C(50000)
// Limits per step, in addition to LANE_POLL_BATCH.
#define LANE_PAIRS_PER_STEP 16
#define LANE_EXPIRED_PER_STEP 64

struct op_list {
	struct op *first, *last;
};

// A posted work request.
struct lane_work {
	struct op *op; // NULL: the marker that ends a drain
	uint32_t length;
	bool signalled;
	bool done;
};

// One direction of a pair. head and tail are free-running; head - tail requests are posted, at most
// depth.
struct lane_queue {
	struct lane_work *works; // a ring of mask + 1 entries
	uint32_t mask, depth;
	uint32_t head, tail;
	struct op_list waiting; // the first one may be partly posted
};

enum pair_state {
	PAIR_READY,
	PAIR_DRAINING, // failed: waiting for posted work
	PAIR_STUCK,    // the drain timed out: waiting for pair_destroy_qp()
	// Queue pair destroyed: earlier completions may still be in the completion queue
	PAIR_SWEEPING,
};

// Events about a pair that control must still receive, in this order.
#define REPORT_FAILED 0x1
#define REPORT_STUCK 0x2
#define REPORT_DRAINED 0x4

struct pair {
	// Constant while a lane has the pair.
	struct lane *lane;
	struct device *device;
	struct ibv_qp *qp;
	uint64_t wr_base; // slot and generation, at their bits of wr_id
	uint32_t slot, generation, psn;
	uint32_t queue_number;
	uint32_t inline_max;
	// Private to the worker.
	enum pair_state state;
	uint8_t tell;
	bool telling;
	struct pair_list *list; // the list that contains the pair; NULL: none
	TAILQ_ENTRY(pair) in_list;
	STAILQ_ENTRY(pair) unreported_entry;
	uint64_t due_ns; // end of a drain, or of the wait for the device's memory
	uint64_t sweep_end;
	struct lane_queue sends, receives;
	struct op_list held; // failed, with all messages complete; they end with the drain
	struct op_cause cause;
	// Written by the worker, readable by others.
	_Atomic uint64_t ended[OP_OUTCOME_COUNT];
	_Atomic uint64_t bytes_out, bytes_in;
	struct histogram_log2 times;
	struct device_facts facts; // from the pair's creation; cold
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
	LANE_PAIRS, // the last two are present values, not totals
	LANE_OPS,
	LANE_COUNTS,
};

// Entry of the deadline heap. The key is beside the pointer, so that sifting reads no operation.
struct lane_deadline {
	uint64_t due_ns;
	struct op *op;
};

struct lane {
	// Constant.
	struct device *device;
	const struct clock *clock;
	struct ibv_comp_channel *channel; // NULL: no completion events
	struct ibv_cq *cq;
	struct ibv_cq_ex *stamped; // the same queue with time stamps; or NULL
	enum lane_stamps stamps;
	uint32_t pair_max, depth, op_max;
	uint32_t completions_max; // largest number of completions in the queue
	uint32_t vector;	  // completion vector
	uint64_t message_max, drain_ns;
	uint64_t chain_bytes; // size at which a chain of sends ends
	bool atomics;
	struct worker_poll poll;
	struct near near;   // preferred location of the worker's memory
	struct pair **made; // all existing pairs by slot; owned by the keeper
	// Private to the worker.
	alignas(64) struct worker *worker; // NULL: not attached, or polled without a worker
	struct pair **pairs;		   // by slot
	uint32_t under_way;		   // posted work requests
	// Number of entries in the lists below, except `ready` and `ended`
	uint32_t attention;
	struct pair_list ready;	   // pairs with work to post and credits
	struct pair_list full;	   // the device had no memory; ordered by due_ns
	struct pair_list draining; // ordered by due_ns
	struct pair_list drained;
	struct pair_list swept;
	struct pair_untold untold;
	struct op_list ended;	       // operations whose `done` must be called
	struct op_list unreported_ops; // operations for LANE_EVENT_OP_ENDED
	struct lane_deadline *heap;    // deadline heap, from index 1
	uint32_t heap_count;
	uint32_t begun;	   // operations posted in this step, except receives
	uint32_t finished; // operations ended in this step, except receives
	uint64_t now_ns;   // start of the step, or the end of its latest long part
	uint32_t unacked;  // unacknowledged completion events
	bool armed;
	bool emptied;	       // the latest poll emptied the completion queue
	bool dead;	       // polling failed for good
	atomic_bool events;    // written by the worker, readable by others
	uint64_t device_stamp; // stamp of the completion being handled; 0 without stamps
	struct ibv_wc wcs[LANE_POLL_BATCH];
	uint64_t wc_stamps[LANE_POLL_BATCH]; // stamp of each entry of wcs, if the queue has stamps
	struct ibv_send_wr sends[LANE_POST_BATCH];
	struct ibv_recv_wr receives[LANE_POST_BATCH];
	struct ibv_sge sges[LANE_POST_BATCH];
	// Written by the worker, readable by others.
	alignas(64) _Atomic uint64_t counts[LANE_COUNTS];
	_Atomic uint64_t ends[OP_OUTCOME_COUNT];
};

// Add to a counter. There is one writer, so no locked instruction is needed. Relaxed order is
// enough for statistics.
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

// Queue an ended operation: for `done`, or for control.
static inline void lane_queue_ended_op(struct lane *lane, struct op *op) {
	if (op->done != NULL) {
		op_list_push(&lane->ended, op);
		return;
	}
	op_list_push(&lane->unreported_ops, op);
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

// The following functions are hot and run on the worker.
bool lane_run_step(void *ctx, struct idle_step_findings *found);

// lane_post_fast.c: post one chain per direction, as credits allow. Returns true if anything was
// posted.
bool lane_post(struct lane *lane, struct pair *pair);
// Post a marker behind unsignalled work requests, so that a drain sees their end.
void lane_post_mark(struct lane *lane, struct pair *pair);

// lane_complete_fast.c: handle one batch. Returns true if it was not empty.
bool lane_poll_completions(struct lane *lane);
void lane_work_done(
	struct lane *lane, struct pair *pair, struct lane_work *work, enum ibv_wc_status status
);
// End an operation with its present outcome; `done` is called later in the step.
void lane_op_end(struct lane *lane, struct pair *pair, struct op *op);

// lane_drain_fast.c
//
// Fail a pair: it drains from now on. A repeated call can only make the cause more precise.
void lane_pair_fail(struct lane *lane, struct pair *pair, const struct op_cause *cause);
// Check whether the drain is complete, after a completion of the pair.
void lane_drain_check(struct lane *lane, struct pair *pair);
void lane_pair_qp_destroyed(struct lane *lane, struct pair *pair);
// Handle drains that are complete or timed out, and pairs whose queue pair was destroyed.
bool lane_finish_drains(struct lane *lane);
// Send as many events as there is room for.
void lane_send_events(struct lane *lane);

// lane_deadline_fast.c
// For an operation that has a deadline and is not, or is, in the heap.
void lane_deadline_add(struct lane *lane, struct op *op);
void lane_deadline_remove(struct lane *lane, struct op *op);
bool lane_expire(struct lane *lane, uint64_t now_ns);
// Stop an operation because of its deadline or a cancel. It ends if no device can reach it, else
// its pair fails.
void lane_op_stop(struct lane *lane, struct op *op, enum op_outcome outcome);

// lane.c
// Return the chain limit. The software device of libtocsin-verbs.so looks like a kernel device, but
// has no sysfs path.
uint64_t lane_chain_bytes(const struct device_facts *facts);
