// SPDX-License-Identifier: BSD-3-Clause
// Completion queues, completion channels, and the asynchronous events of a context.
#pragma once

#include "nic/nic.h"

#include <lib/container.h>

struct soft_context {
	struct verbs_context verbs; // extended context, because inline calls use its ops
	struct soft_nic *nic;
	struct soft_async *events; // oldest first; each one is one unit of verbs.context.async_fd
	struct soft_async **events_end;
	struct soft_context *next; // next open context of the device
	uint32_t objects;
};

static inline struct soft_context *soft_context_of(struct ibv_context *context) {
	return container_of(context, struct soft_context, verbs.context);
}

struct soft_pd {
	struct ibv_pd verbs;
	uint32_t users;
};

struct soft_channel {
	// fd: a non-blocking eventfd that counts the events. If a program clears O_NONBLOCK,
	// get_cq_event waits without the lock.
	struct ibv_comp_channel verbs;
	struct soft_cq *ready; // completion queues with waiting events
};

// Time of a completion on the device's clocks.
struct soft_stamp {
	uint64_t raw_ns;  // the device's clock
	uint64_t wall_ns; // CLOCK_REALTIME
};

struct soft_completion {
	struct ibv_wc wc;
	struct soft_stamp stamp; // only the clocks in `stamps` of the queue are set
};

struct soft_cq {
	union {
		struct ibv_cq verbs;
		struct ibv_cq_ex extended; // starts like the plain struct
	};
	struct soft_nic *nic;
	// Ring of `capacity` entries, a power of two of at least verbs.cqe.
	struct soft_completion *entries;
	uint32_t capacity, head, tail; // free-running; [head, tail) are unpolled
	bool armed, armed_solicited, overrun;
	// Unpolled completions include some without an event, and among these solicited or failed
	// ones.
	bool untold, eventless_solicited;
	uint32_t users;
	uint32_t events_waiting;    // if not 0, the queue is in its channel's list
	struct soft_cq *next_ready; // next in the channel's list
	// Events that get_cq_event returned; must be acknowledged before destruction
	uint32_t events_taken;
	uint32_t async_taken; // the same for asynchronous events
	// Fields for ibv_create_cq_ex().
	uint64_t stamps; // clocks recorded per completion: flags of ibv_create_cq_wc_flags
	bool one_thread; // else start_poll locks `polling` and end_poll unlocks it
	pthread_mutex_t polling;
	struct soft_completion current; // completion that the read_...() calls return
};

static inline struct soft_pd *soft_pd_of(struct ibv_pd *pd) {
	return container_of(pd, struct soft_pd, verbs);
}
static inline struct soft_channel *soft_channel_of(struct ibv_comp_channel *channel) {
	return container_of(channel, struct soft_channel, verbs);
}
static inline struct soft_cq *soft_cq_of(struct ibv_cq *cq) {
	return container_of(cq, struct soft_cq, verbs);
}

// Add a completion, and an event if the queue is armed for it. solicited: a receive with the
// solicited flag, or any failure. A full queue is overrun permanently: it raises an asynchronous
// event and takes no more completions.
void cq_push(struct soft_cq *cq, const struct ibv_wc *wc, bool solicited);
// The same as verbs' calls, with the lock held. Returns -EINVAL or -ENOMEM; channel may be NULL.
int cq_create(
	struct soft_context *context,
	uint32_t entries,
	struct ibv_comp_channel *channel,
	struct soft_cq **ret_cq
);
int cq_destroy(struct soft_cq *cq); // -EBUSY
int cq_resize(struct soft_cq *cq, uint32_t entries);
// Take up to max completions. ret_stamps: max entries, or NULL.
uint32_t
cq_pop(struct soft_cq *cq, struct ibv_wc *ret_wcs, struct soft_stamp *ret_stamps, uint32_t max);
// Arm the queue. As with hardware, completions that came without an event raise one at once.
// Otherwise a program that takes a few completions per event would sleep beside the remaining ones.
void cq_arm(struct soft_cq *cq, bool solicited_only);

// Entries of verbs_calls_soft, which take the lock themselves. Getting an event waits if the
// descriptor blocks, else it returns -EAGAIN.
int channel_get_event(struct ibv_comp_channel *channel, struct ibv_cq **ret_cq);
void cq_ack_events(struct ibv_cq *cq, uint32_t count);
int async_get_event(struct ibv_context *context, struct ibv_async_event *ret_event);
void async_ack_event(struct ibv_async_event *event);

// Remove the completions of a queue pair that is reset or destroyed.
void cq_remove_completions(struct soft_cq *cq, uint32_t qp_number);

// Create an eventfd that counts events; only async.c and cq.c read or write it. Returns -errno.
int event_fd_create(void);
void event_fd_signal(int fd);
// Take one event; waits if the descriptor blocks, else returns -EAGAIN.
int event_fd_take(int fd);
// Remove up to count events of a destroyed object, unless another thread took them first.
void event_fd_withdraw(int fd, uint32_t count);

// Report an event to the program. The object of the event exists until the event was acknowledged.
void async_raise_event(struct soft_context *context, const struct ibv_async_event *event);
void async_raise_qp_event(struct soft_qp *qp, enum ibv_event_type type);
// Remove events before a queue pair, completion queue or shared receive queue is freed. Untaken
// events about it are dropped. For taken ones this waits, without the lock, until the program
// acknowledged them. taken: the object's count of taken events.
void async_settle_events(struct soft_context *context, const void *object, const uint32_t *taken);
// Drop the untaken events when the context is closed.
void async_drop_events(struct soft_context *context);
