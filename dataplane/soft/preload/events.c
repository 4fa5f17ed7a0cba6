// SPDX-License-Identifier: BSD-3-Clause
// Completion channels, their events, and the asynchronous events of a device.
//
// The descriptors block, as those of libibverbs do. A program that polls sets O_NONBLOCK itself.
#include "preload.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
	struct ibv_comp_channel *channel = NULL;
	int err;

	if (!preload_owns_context(context))
		return REAL(ibv_create_comp_channel)(context);
	err = PRELOAD_UNLESS_FORKED(-EIO, verbs_calls_soft.create_comp_channel(context, &channel));
	if (err == 0) {
		err = preload_make_blocking(channel->fd);
		if (err != 0)
			(void)verbs_calls_soft.destroy_comp_channel(channel);
	}
	return return_null_on_error(err, channel);
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) {
	if (!preload_owns_context(channel->context))
		return REAL(ibv_destroy_comp_channel)(channel);
	return return_positive_errno(
		PRELOAD_UNLESS_FORKED(0, verbs_calls_soft.destroy_comp_channel(channel))
	);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context) {
	struct ibv_cq *found;
	int err;

	if (!preload_owns_context(channel->context))
		return REAL(ibv_get_cq_event)(channel, cq, cq_context);
	err = PRELOAD_UNLESS_FORKED(-EIO, verbs_calls_soft.get_cq_event(channel, &found));
	if (err == 0) {
		*cq = found;
		*cq_context = found->cq_context;
	}
	return return_minus_one(err);
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count) {
	if (!preload_owns_context(cq->context))
		REAL(ibv_ack_cq_events)(cq, count);
	else if (!preload_in_forked_child())
		verbs_calls_soft.ack_cq_events(cq, count);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
	if (!preload_owns_context(context))
		return REAL(ibv_get_async_event)(context, event);
	return return_minus_one(
		PRELOAD_UNLESS_FORKED(-EIO, verbs_calls_soft.get_async_event(context, event))
	);
}

// Return the context of an event; NULL for events of ports and devices, which need no
// acknowledgement.
static const struct ibv_context *context_of_event(const struct ibv_async_event *event) {
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq->context;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return event->element.qp->context;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return event->element.srq->context;
	default:
		return NULL;
	}
}

void ibv_ack_async_event(struct ibv_async_event *event) {
	const struct ibv_context *context = context_of_event(event);

	if (context == NULL || !preload_owns_context(context))
		REAL(ibv_ack_async_event)(event);
	else if (!preload_in_forked_child())
		verbs_calls_soft.ack_async_event(event);
}
