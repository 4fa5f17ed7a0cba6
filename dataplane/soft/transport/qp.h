// SPDX-License-Identifier: BSD-3-Clause
// A queue pair: its state, its two halves, and its entries in lists of the device.
#pragma once

#include "nic/region.h"
#include "packet/frame.h"
#include "transport/cq.h"
#include "transport/receive_queue.h"
#include "transport/requester.h"
#include "transport/responder.h"

struct soft_qp {
	struct ibv_qp verbs; // verbs.state is the state
	struct soft_nic *nic;
	struct soft_context *context;
	struct ibv_qp_attr attr; // attributes set on the way to the present state
	struct ibv_qp_cap cap;
	bool signal_all;
	struct soft_cq *send_cq, *receive_cq;
	struct soft_srq *srq; // NULL: its own queue
	struct receive_queue receives;
	uint32_t mtu;		  // path MTU in bytes; valid from RTR
	struct frame_route route; // route to the peer; valid from RTR
	struct requester requester;
	struct responder responder;
	TAILQ_ENTRY(soft_qp) ready_entry, timed_entry;
	bool is_ready, ack_is_deferred, is_timed;
	bool ack_now; // the acknowledgement has waited for one turn
	uint64_t due_ns;
	uint32_t events; // asynchronous events taken and not acknowledged
};

static inline struct soft_qp *soft_qp_of(struct ibv_qp *qp) {
	return container_of(qp, struct soft_qp, verbs);
}

// Return true if requests may be posted. In state ERR they complete as flushed.
static inline bool qp_accepts_posts(const struct soft_qp *qp) {
	return qp->verbs.state == IBV_QPS_RTS || qp->verbs.state == IBV_QPS_SQD ||
	       qp->verbs.state == IBV_QPS_ERR;
}

// Return the queue pair with this number, or NULL. A number holds an index and bits that change
// with each reuse.
struct soft_qp *qp_find(const struct soft_nic *nic, uint32_t number);

// Mark the queue pair ready to send: the next turn calls its transmit functions. Idempotent.
void qp_mark_ready(struct soft_qp *qp);
// Set the time when its timer functions are called, exactly or shortly after; NIC_NEVER: never.
void qp_set_timer(struct soft_qp *qp, uint64_t due_ns);

// Send a deferred acknowledgement before the queue pair stops. Otherwise the peer would treat
// requests as lost that the program has seen complete.
void qp_flush_ack(struct soft_qp *qp);
// Return the queue pair to its initial state; nothing of the program remains in it or its
// completion queues.
void qp_reset(struct soft_qp *qp);
// Remove the queue pair from the device's lists.
void qp_unlist(struct soft_qp *qp);

// Implement create_qp and destroy_qp, with the lock held. Returns -EINVAL, -EOPNOTSUPP or -ENOMEM.
// Destroying waits, without the lock, until events about the queue pair were acknowledged.
int qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct soft_qp **ret_qp);
void qp_destroy(struct soft_qp *qp);

// Move to state ERR and flush both halves; idempotent. The caller pushed the completion with the
// reason before.
void qp_enter_error(struct soft_qp *qp);
// Raise an asynchronous event, then call qp_enter_error(): the peer violated the protocol or its
// access rights.
void qp_raise_fatal(struct soft_qp *qp, enum ibv_event_type type);

// Modify the queue pair by verbs' transition table. Returns -EINVAL for a wrong transition, a
// missing or forbidden attribute, or a value out of range. (qp_modify.c)
int qp_modify(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask);
