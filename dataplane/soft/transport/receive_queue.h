// SPDX-License-Identifier: BSD-3-Clause
// Receive work requests: the queue of one queue pair, or shared by many.
#pragma once

#include "nic/nic.h"

#include <lib/container.h>

struct receive_work {
	uint64_t wr_id;
	uint32_t sge_count;
	uint32_t length; // total bytes of its pieces
};

struct receive_queue {
	struct receive_work *works; // ring of `capacity` entries
	struct ibv_sge *sges;	    // sge_max per entry
	uint32_t capacity;	    // 0, or a power of two of at least the requested size
	uint32_t sge_max;
	uint32_t head, tail; // free-running; [head, tail) wait
};

struct soft_srq {
	struct ibv_srq verbs;
	struct soft_nic *nic;
	struct receive_queue queue;
	uint32_t limit; // 0: none; one event when fewer receives wait
	uint32_t users;
	uint32_t events; // asynchronous events taken and not acknowledged: async_settle_events()
};

static inline struct soft_srq *soft_srq_of(struct ibv_srq *srq) {
	return container_of(srq, struct soft_srq, verbs);
}

// Returns 0 or -ENOMEM.
int receive_queue_init(struct receive_queue *queue, uint32_t capacity, uint32_t sge_max);
void receive_queue_fini(struct receive_queue *queue);

static inline uint32_t receive_queue_count(const struct receive_queue *queue) {
	return queue->tail - queue->head;
}

// Add a receive. Returns -ENOMEM (full) or -EINVAL (too many pieces, or more than 2^31 bytes). Keys
// are checked only when data arrives.
int receive_queue_post(struct receive_queue *queue, const struct ibv_recv_wr *wr);
// Take the oldest receive; its pieces are copied to `sges` with sge_max entries. Returns false if
// there is none.
bool receive_queue_pop(
	struct receive_queue *queue, struct receive_work *ret_work, struct ibv_sge *sges
);

// Take a receive of a shared queue, and raise the event if fewer than its limit remain.
bool srq_take_receive(struct soft_srq *srq, struct receive_work *ret_work, struct ibv_sge *sges);
// ibv_context_ops.post_srq_recv: post a chain. Returns a positive errno; *ret_bad is then the first
// request not posted. Takes the lock.
int srq_post_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **ret_bad);
