// SPDX-License-Identifier: BSD-3-Clause
// Completion queues, completion channels, and the asynchronous events of a context.
#pragma once

#include "nic/nic.h"

#include <lib/container.h>

struct soft_context {
	struct verbs_context verbs; // the extended one: its ops are asked for by inline calls
	struct soft_nic *nic;
	struct soft_async *events; // oldest first, one unit of verbs.context.async_fd each
	struct soft_async **events_end;
	struct soft_context *next; // of the device's open ones
	uint32_t objects;
};

static inline struct soft_context *context_of(struct ibv_context *context) {
	return container_of(context, struct soft_context, verbs.context);
}

struct soft_pd {
	struct ibv_pd verbs;
	uint32_t users;
};

struct soft_channel {
	// fd: an eventfd that counts the events. Made not to block; where a program clears
	// O_NONBLOCK, get_cq_event waits, without the lock.
	struct ibv_comp_channel verbs;
	struct soft_cq *ready; // with events that wait
};

// When a completion came to be, by the device's own clocks.
struct soft_stamp {
	uint64_t raw_ns;  // the device's clock
	uint64_t wall_ns; // CLOCK_REALTIME
};

struct soft_completion {
	struct ibv_wc wc;
	struct soft_stamp stamp; // those of `stamps` of its queue
};

struct soft_cq {
	union {
		struct ibv_cq verbs;
		struct ibv_cq_ex extended; // begins as the plain one does
	};
	struct soft_nic *nic;
	// A ring of capacity, a power of two of at least verbs.cqe.
	struct soft_completion *entries;
	uint32_t capacity, head, tail; // run on; [head, tail) wait to be polled
	bool armed, armed_solicited, overrun;
	// Some of what waits came without an event, and of that some that is solicited or failed.
	bool untold, untold_solicited;
	uint32_t users;
	uint32_t events_waiting;    // in its channel's list if there are any
	struct soft_cq *next_ready; // of its channel
	uint32_t events_taken;	    // by get_cq_event, to be acknowledged before it is destroyed
	uint32_t async_taken;	    // likewise
	// Of ibv_create_cq_ex().
	uint64_t stamps; // what each completion is stamped with: flags of ibv_create_cq_wc_flags
	bool one_thread; // else `polling` is held from start_poll to end_poll
	pthread_mutex_t polling;
	struct soft_completion current; // the one that read_...() are about
};

static inline struct soft_pd *pd_of(struct ibv_pd *pd) {
	return container_of(pd, struct soft_pd, verbs);
}
static inline struct soft_channel *channel_of(struct ibv_comp_channel *channel) {
	return container_of(channel, struct soft_channel, verbs);
}
static inline struct soft_cq *cq_of(struct ibv_cq *cq) {
	return container_of(cq, struct soft_cq, verbs);
}

// A completion, and an event if it was armed for this one. solicited: of a receive that asks for
// attention, or any that failed. A full queue is overrun for good: an asynchronous event, and no
// more completions.
void cq_push(struct soft_cq *cq, const struct ibv_wc *wc, bool solicited);
// With the lock held, as verbs' calls of these names. -EINVAL, -ENOMEM; channel may be NULL.
int cq_create(
	struct soft_context *context,
	uint32_t entries,
	struct ibv_comp_channel *channel,
	struct soft_cq **ret_cq
);
int cq_destroy(struct soft_cq *cq); // -EBUSY
int cq_resize(struct soft_cq *cq, uint32_t entries);
// ret_stamps: max of them; NULL if nobody asks.
uint32_t
cq_pop(struct soft_cq *cq, struct ibv_wc *ret_wcs, struct soft_stamp *ret_stamps, uint32_t max);
// As hardware does: where completions wait that came without an event, there is one at once, else
// who takes a few of many at each event would sleep beside the others.
void cq_arm(struct soft_cq *cq, bool solicited_only);
int channel_create(struct soft_context *context, struct soft_channel **ret_channel);
int channel_destroy(struct soft_channel *channel); // -EBUSY

// These take the lock themselves. get waits if the descriptor blocks, else -EAGAIN.
int channel_get_event(struct soft_channel *channel, struct ibv_cq **ret_cq);
void cq_ack_events(struct soft_cq *cq, uint32_t count);
int async_get_event(struct soft_context *context, struct ibv_async_event *ret_event);
void async_ack_event(const struct ibv_async_event *event);

// Completions of a queue pair that is reset or destroyed are taken out again.
void cq_forget(struct soft_cq *cq, uint32_t qp_number);

// An eventfd that counts events, of which nobody but async.c and cq.c reads or writes. -errno.
int event_fd_make(void);
void event_fd_put(int fd);
// One event is taken; waits if the descriptor blocks, else -EAGAIN.
int event_fd_take(int fd);
// Up to count events whose object is gone are taken back, as far as nobody was faster.
void event_fd_drop(int fd, uint32_t count);

// Tells the program; the object that it is about is kept until the event was acknowledged.
void async_event(struct soft_context *context, const struct ibv_async_event *event);
void async_qp_event(struct soft_qp *qp, enum ibv_event_type type);
// Before a queue pair, completion queue or shared receive queue is freed: events about it that
// nobody took are dropped, and for those that were it waits, without the lock, until the program
// acknowledged them. taken: the object's count of these.
void async_settle(struct soft_context *context, const void *object, const uint32_t *taken);
// Those that nobody took, when the context is closed.
void async_drop_all(struct soft_context *context);
