// SPDX-License-Identifier: BSD-3-Clause
// Posting: waiting operations become work requests, as many as there are credits, in one chain per
// direction.
//
// Reads and atomics have no limit of their own here. A device that may have only a number of them
// in flight queues the rest itself; each costs one credit like any other request.
#include "lane/lane_impl.h"

#include <dataplane/foreign_error.h>
#include <lib/must.h>

#include <arpa/inet.h>
#include <errno.h>

static const enum ibv_wr_opcode opcodes[OP_KIND_COUNT] = {
	[OP_WRITE] = IBV_WR_RDMA_WRITE,
	[OP_READ] = IBV_WR_RDMA_READ,
	[OP_SEND] = IBV_WR_SEND,
	[OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[OP_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	[OP_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
};

static bool op_has_receiver(const struct op *op) {
	return op->kind == OP_SEND || op->kind == OP_WRITE_IMM;
}

static bool op_is_one_way(const struct op *op) {
	return op->kind == OP_WRITE || op_has_receiver(op);
}

// Fill in the next message of the operation and return its length.
static uint32_t
wr_fill_send(struct lane *lane, const struct pair *pair, const struct op *op, uint32_t n) {
	struct ibv_send_wr *wr = &lane->sends[n];
	struct ibv_sge *sge = &lane->sges[n];
	uint64_t left = op->length - op->cut;
	uint32_t length = (uint32_t)(left < lane->message_max ? left : lane->message_max);

	sge->addr = op->view.wire_address + op->cut;
	sge->length = length;
	sge->lkey = op->view.local_key;
	wr->num_sge = length > 0;
	wr->opcode = opcodes[op->kind];
	wr->send_flags = op->solicited && op_has_receiver(op) ? IBV_SEND_SOLICITED : 0;
	// Inline: the device need not fetch the payload.
	if (length <= pair->inline_max && length > 0 && op->view.host && op_is_one_way(op)) {
		wr->send_flags |= IBV_SEND_INLINE;
		sge->addr = op->view.address + op->cut;
		lane_count(lane, LANE_INLINED, 1);
	}
	switch (op->kind) {
	case OP_WRITE_IMM:
		wr->imm_data = htonl(op->immediate);
		// fall through
	case OP_WRITE:
	case OP_READ:
		wr->wr.rdma.remote_addr = op->remote_address + op->cut;
		wr->wr.rdma.rkey = op->remote_key;
		break;
	case OP_COMPARE_SWAP:
	case OP_FETCH_ADD:
		wr->wr.atomic.remote_addr = op->remote_address;
		wr->wr.atomic.rkey = op->remote_key;
		wr->wr.atomic.compare_add = op->operand[0];
		wr->wr.atomic.swap = op->operand[1];
		break;
	default:
		break;
	}
	return length;
}

// Return the next operation to post, unless its deadline has passed. Each step ends only a limited
// number of expired ones. A remaining one must not be posted: once posted, it could only end with
// its pair.
static struct op *queue_next_op(const struct lane *lane, const struct lane_queue *queue) {
	struct op *op = queue->waiting.first;

	return op != NULL && op->deadline_ns > lane->now_ns ? op : NULL;
}

// Count one more message of the operation as posted.
static void
op_advance(struct lane_queue *queue, struct lane_work *work, struct op *op, uint32_t length) {
	*work = (struct lane_work){.op = op, .length = length};
	op->cut += length;
	op->under_way++;
	if (op->cut == op->length) {
		op_list_pop(&queue->waiting);
		op->waits = false;
	}
}

// Handle a refused post. Without memory the pair waits and retries; any other error fails it.
static __attribute__((noinline)) void
handle_post_error(struct lane *lane, struct pair *pair, struct op *op, int code) {
	int err = verbs_error_from_code(code);
	struct op_cause cause = op_cause_of(op);

	if (err == -ENOMEM) {
		lane_count(lane, LANE_FULL, 1);
		pair->due_ns = lane->now_ns + LANE_RETRY_NS;
		pair_move(pair, &lane->full);
		return;
	}
	lane_count(lane, LANE_POST_FAILURES, 1);
	cause.err = err;
	if (op->outcome == OP_OK)
		op->outcome = OP_FAILED;
	lane_pair_fail(lane, pair, &cause);
}

// Return the number of requests before the one that the device calls bad. If that is none of ours,
// assume all: then nothing is released before the queue pair is destroyed.
static uint32_t count_accepted(const void *bad, const void *first, size_t size, uint32_t count) {
	size_t offset = (uintptr_t)bad - (uintptr_t)first;

	return offset < count * size && offset % size == 0 ? (uint32_t)(offset / size) : count;
}

static bool chain_account_posted(
	struct lane *lane,
	struct pair *pair,
	struct lane_queue *queue,
	uint32_t posted,
	uint32_t count,
	int code
) {
	struct op *bad;

	lane_count(lane, LANE_CHAINS, 1);
	lane_count(lane, LANE_POSTED, posted);
	lane->under_way += posted;
	if (__builtin_expect(code != 0, 0)) {
		bad = queue_work(queue, queue->head + (posted < count ? posted : count - 1))->op;
		// The device accepted only the first `posted` requests: undo the others.
		while (count-- > posted) {
			struct lane_work *work = queue_work(queue, queue->head + count);
			struct op *op = work->op;

			op->cut -= work->length;
			op->under_way--;
			if (!op->waits) {
				op_list_push_front(&queue->waiting, op);
				op->waits = true;
			}
		}
		queue->head += posted;
		handle_post_error(lane, pair, bad, code);
		return posted > 0;
	}
	queue->head += posted;
	return true;
}

static bool post_sends(struct lane *lane, struct pair *pair) {
	struct lane_queue *queue = &pair->sends;
	uint32_t room = queue->depth - queue_posted(queue);
	uint32_t count = 0, silent = 0, signalled = 0, posted;
	uint64_t bytes = 0;
	struct ibv_send_wr *bad = NULL, *wr = lane->sends;
	struct lane_work *work = NULL;
	struct op *op;
	int code;

	if (room > LANE_POST_BATCH)
		room = LANE_POST_BATCH;
	for (;
	     count < room && bytes < lane->chain_bytes && (op = queue_next_op(lane, queue)) != NULL;
	     count++) {
		wr = &lane->sends[count];
		work = queue_work(queue, queue->head + count);
		if (op->cut == 0) {
			lane->begun += op->posted_ns == 0; // the device may have refused it before
			op->posted_ns = lane->now_ns;
		}
		wr->wr_id = pair->wr_base | ((queue->head + count) & WR_PLACE_MASK);
		wr->next = wr + 1;
		op_advance(queue, work, op, wr_fill_send(lane, pair, op, count));
		bytes += work->length;
		silent++;
		work->signalled = !op_is_one_way(op) || silent == LANE_SIGNAL_EVERY;
		if (work->signalled) {
			wr->send_flags |= IBV_SEND_SIGNALED;
			silent = 0;
			signalled++;
		}
	}
	if (count == 0)
		return false;
	if (!work->signalled) {
		wr->send_flags |= IBV_SEND_SIGNALED;
		work->signalled = true;
		signalled++;
	}
	wr->next = NULL;
	lane_count(lane, LANE_SIGNALLED, signalled);
	code = ibv_post_send(pair->qp, lane->sends, &bad);
	posted =
		code == 0 ? count : count_accepted(bad, lane->sends, sizeof(lane->sends[0]), count);
	return chain_account_posted(lane, pair, queue, posted, count, code);
}

static bool post_receives(struct lane *lane, struct pair *pair) {
	struct lane_queue *queue = &pair->receives;
	uint32_t room = queue->depth - queue_posted(queue);
	struct ibv_recv_wr *bad = NULL, *wr = NULL;
	uint32_t count = 0, posted;
	struct op *op;
	int code;

	if (room > LANE_POST_BATCH)
		room = LANE_POST_BATCH;
	for (; count < room && (op = queue_next_op(lane, queue)) != NULL; count++) {
		uint32_t place = queue->head + count;

		wr = &lane->receives[count];
		wr->wr_id = pair->wr_base | WR_RECEIVE | (place & WR_PLACE_MASK);
		wr->next = wr + 1;
		wr->num_sge = op->length > 0;
		lane->sges[count] = (struct ibv_sge){
			.addr = op->view.wire_address,
			.length = (uint32_t)op->length,
			.lkey = op->view.local_key,
		};
		op->posted_ns = lane->now_ns;
		op_advance(queue, queue_work(queue, place), op, (uint32_t)op->length);
		queue_work(queue, place)->signalled = true;
	}
	if (count == 0)
		return false;
	wr->next = NULL;
	code = ibv_post_recv(pair->qp, lane->receives, &bad);
	posted = code == 0 ? count
			   : count_accepted(bad, lane->receives, sizeof(lane->receives[0]), count);
	return chain_account_posted(lane, pair, queue, posted, count, code);
}

bool lane_post(struct lane *lane, struct pair *pair) {
	bool posted = false;

	if (pair->receives.waiting.first != NULL)
		posted = post_receives(lane, pair);
	if (pair->state == PAIR_READY && pair->list == NULL)
		posted |= post_sends(lane, pair);
	if (pair->state == PAIR_READY && pair->list == NULL && pair_has_work(pair))
		pair_move(pair, &lane->ready);
	return posted;
}

// Post an empty write: it follows the others in order, is harmless if executed, and flushed
// otherwise.
void lane_post_mark(struct lane *lane, struct pair *pair) {
	struct lane_queue *queue = &pair->sends;
	struct lane_work *work = queue_work(queue, queue->head);
	struct ibv_send_wr *bad, wr = {
					 .wr_id = pair->wr_base | (queue->head & WR_PLACE_MASK),
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	if (queue_posted(queue) == queue->depth || ibv_post_send(pair->qp, &wr, &bad) != 0)
		return; // without a marker, the drain's time limit applies
	*work = (struct lane_work){.signalled = true};
	queue->head++;
	lane->under_way++;
}
