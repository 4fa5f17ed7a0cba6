// SPDX-License-Identifier: BSD-3-Clause
// Work requests for what others send: of one queue pair, or shared by many.
#pragma once

#include "nic/nic.h"

#include <lib/container.h>

struct receive_work {
	uint64_t wr_id;
	uint32_t sge_count;
	uint32_t length; // of all its pieces
};

struct receive_queue {
	struct receive_work *works; // a ring of capacity
	struct ibv_sge *sges;	    // sge_max for each place
	uint32_t capacity;	    // a power of two of at least what was asked for; or 0
	uint32_t sge_max;
	uint32_t head, tail; // run on; [head, tail) wait
};

struct soft_srq {
	struct ibv_srq verbs;
	struct soft_nic *nic;
	struct receive_queue queue;
	uint32_t limit; // 0: none; an event when fewer wait, once
	uint32_t users;
	uint32_t events; // asynchronous, taken and not acknowledged: async_settle()
};

static inline struct soft_srq *srq_of(struct ibv_srq *srq) {
	return container_of(srq, struct soft_srq, verbs);
}

// -ENOMEM.
int receive_queue_init(struct receive_queue *queue, uint32_t capacity, uint32_t sge_max);
void receive_queue_fini(struct receive_queue *queue);

static inline uint32_t receive_queue_count(const struct receive_queue *queue) {
	return queue->tail - queue->head;
}

// -ENOMEM (full), -EINVAL (too many pieces, or more than 2^31 bytes). Their keys are looked at
// when something arrives.
int receive_queue_post(struct receive_queue *queue, const struct ibv_recv_wr *wr);
// The oldest; its pieces are copied to `sges`, of sge_max. False if there is none.
bool receive_queue_take(
	struct receive_queue *queue, struct receive_work *ret_work, struct ibv_sge *sges
);

// Of a shared queue: as above, and the event if fewer than its limit are left.
bool srq_take(struct soft_srq *srq, struct receive_work *ret_work, struct ibv_sge *sges);
// ibv_context_ops.post_srq_recv: a chain; a positive errno, and *ret_bad is the first that was not
// taken. Takes the lock.
int srq_post_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **ret_bad);
