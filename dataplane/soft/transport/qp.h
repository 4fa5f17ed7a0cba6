// SPDX-License-Identifier: BSD-3-Clause
// A queue pair: its states, its two halves, and the lists of the device that it is in.
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
	struct ibv_qp_attr attr; // what was set on the way to the present state
	struct ibv_qp_cap cap;
	bool signal_all;
	struct soft_cq *send_cq, *receive_cq;
	struct soft_srq *srq; // NULL: its own queue
	struct receive_queue receives;
	uint32_t mtu;		  // of the path, in bytes; from RTR on
	struct frame_route route; // to the peer; from RTR on
	struct requester requester;
	struct responder responder;
	TAILQ_ENTRY(soft_qp) ready_entry, timed_entry;
	bool is_ready, is_lazy, is_timed;
	bool ack_now; // its acknowledgement has waited for a turn
	uint64_t due_ns;
	uint32_t events; // asynchronous, taken and not acknowledged
};

static inline struct soft_qp *qp_of(struct ibv_qp *qp) {
	return container_of(qp, struct soft_qp, verbs);
}

// NULL if there is none: a number holds an index and bits that differ from use to use.
struct soft_qp *qp_find(const struct soft_nic *nic, uint32_t number);

// It has something to send: the next turn calls its transmit functions. Idempotent.
void qp_ready(struct soft_qp *qp);
// Its timer functions are called at that time or shortly after; NIC_NEVER: not at all.
void qp_due(struct soft_qp *qp, uint64_t due_ns);

// Sends the acknowledgement that waits for a later turn: there will be none, and its peer would
// take what the program has seen complete for lost.
void qp_take_leave(struct soft_qp *qp);
// As it was made: nothing of the program is left in it or in its completion queues.
void qp_reset(struct soft_qp *qp);
// Off the lists of the device.
void qp_unlist(struct soft_qp *qp);

// What create_qp and destroy_qp do, with the lock held. -EINVAL, -EOPNOTSUPP, -ENOMEM. destroy
// waits without the lock until events about it were acknowledged.
int qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct soft_qp **ret_qp);
void qp_destroy(struct soft_qp *qp);
void qp_query(
	const struct soft_qp *qp, struct ibv_qp_attr *ret_attr, struct ibv_qp_init_attr *ret_init
);

// To state ERR, both halves flushed; idempotent. The completion that tells why was pushed before.
void qp_error(struct soft_qp *qp);
// The peer broke the protocol or lost its right: an asynchronous event, then qp_error().
void qp_fatal(struct soft_qp *qp, enum ibv_event_type type);

// -EINVAL: a transition, an attribute that is missing or not allowed, or a value out of range, by
// the table of verbs. (qp_modify.c)
int qp_modify(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask);
