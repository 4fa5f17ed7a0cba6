// SPDX-License-Identifier: BSD-3-Clause
// Asynchronous events of a context, and the eventfds that signal events. Cold.
#include "transport/cq.h"
#include "transport/qp.h"
#include "transport/receive_queue.h"

#include <lib/error.h>

#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

struct soft_async {
	struct ibv_async_event event;
	struct soft_async *next;
};

int event_fd_create(void) {
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);

	return fd < 0 ? neg_errno() : fd;
}

// The write cannot fail or block: the counter has room for 2^64 events.
void event_fd_signal(int fd) {
	const uint64_t one = 1;
	ssize_t written = write(fd, &one, sizeof(one));

	(void)written;
}

int event_fd_take(int fd) {
	uint64_t one;

	return read(fd, &one, sizeof(one)) == sizeof(one) ? 0 : neg_errno();
}

// NOWAIT, because another thread may have taken the event before it gets the lock, and the
// descriptor may block. On kernels without NOWAIT an event without an object remains, which readers
// skip.
void event_fd_withdraw(int fd, uint32_t count) {
	uint64_t one;
	const struct iovec piece = {.iov_base = &one, .iov_len = sizeof(one)};

	while (count-- > 0 && preadv2(fd, &piece, 1, -1, RWF_NOWAIT) == sizeof(one))
		;
}

// Without memory the event is lost; the state of its object shows the same.
void async_raise_event(struct soft_context *context, const struct ibv_async_event *event) {
	struct soft_async *async = calloc(1, sizeof(*async));

	if (async == NULL)
		return;
	async->event = *event;
	if (context->events == NULL)
		context->events_end = &context->events;
	*context->events_end = async;
	context->events_end = &async->next;
	event_fd_signal(context->verbs.context.async_fd);
}

void async_raise_qp_event(struct soft_qp *qp, enum ibv_event_type type) {
	const struct ibv_async_event event = {.element.qp = &qp->verbs, .event_type = type};

	async_raise_event(qp->context, &event);
}

// Return the counter of taken events of the event's object; NULL for port events.
static uint32_t *event_taken_count(const struct ibv_async_event *event, struct soft_nic **ret_nic) {
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR: {
		struct soft_cq *cq = soft_cq_of(event->element.cq);

		*ret_nic = cq->nic;
		return &cq->async_taken;
	}
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED: {
		struct soft_qp *qp = soft_qp_of(event->element.qp);

		*ret_nic = qp->nic;
		return &qp->events;
	}
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED: {
		struct soft_srq *srq = soft_srq_of(event->element.srq);

		*ret_nic = srq->nic;
		return &srq->events;
	}
	default:
		return NULL;
	}
}

int async_get_event(struct ibv_context *verbs, struct ibv_async_event *ret_event) {
	struct soft_context *context = soft_context_of(verbs);
	struct soft_async *async = NULL;
	struct soft_nic *nic;
	uint32_t *taken;

	while (async == NULL) {
		int err = event_fd_take(verbs->async_fd);

		if (err != 0)
			return err;
		nic_lock(context->nic);
		async = context->events;
		if (async != NULL) {
			context->events = async->next;
			taken = event_taken_count(&async->event, &nic);
			if (taken != NULL)
				(*taken)++;
		}
		nic_unlock(context->nic);
	}
	*ret_event = async->event;
	free(async);
	return 0;
}

void async_ack_event(struct ibv_async_event *event) {
	struct soft_nic *nic;
	uint32_t *taken = event_taken_count(event, &nic);

	if (taken == NULL)
		return;
	nic_lock(nic);
	if (*taken > 0)
		--*taken;
	pthread_cond_broadcast(&nic->acked);
	nic_unlock(nic);
}

void async_settle_events(struct soft_context *context, const void *object, const uint32_t *taken) {
	struct soft_async **place = &context->events;
	struct soft_nic *nic;
	uint32_t dropped = 0;

	context->events_end = place;
	while (*place != NULL) {
		struct soft_async *async = *place;

		if (event_taken_count(&async->event, &nic) != NULL &&
		    async->event.element.qp == object) {
			*place = async->next;
			free(async);
			dropped++;
		} else {
			place = &async->next;
			context->events_end = place;
		}
	}
	event_fd_withdraw(context->verbs.context.async_fd, dropped);
	while (*taken > 0)
		nic_wait_acked(context->nic);
}

void async_drop_events(struct soft_context *context) {
	while (context->events != NULL) {
		struct soft_async *async = context->events;

		context->events = async->next;
		free(async);
	}
}
