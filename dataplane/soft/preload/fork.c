// SPDX-License-Identifier: BSD-3-Clause
// Devices in a forked child: every call fails, but none crashes.
//
// A fork copies the memory of a device, but not its engine. The copied lock may be held by a thread
// of the parent. A child that calls exec() is not affected. In other children every call fails. A
// child forked before the first open has devices of its own.
#include "preload.h"

#include <pthread.h>
#include <stdlib.h>

struct opened {
	struct ibv_context *context;
	struct opened *next;
};

static struct {
	pthread_mutex_t lock; // serialises opening, closing and forking
	int cancel_state;     // cancellation state of the lock's holder before it locked
	struct opened *first;
	bool dead; // set in the child while it has only one thread
} opened = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool preload_in_forked_child(void) {
	return opened.dead;
}

// Lock with cancellation disabled: a thread cancelled while it opens a device would keep the lock.
void preload_open_begin(void) {
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&opened.lock);
	opened.cancel_state = cancel_state;
}

void preload_open_end(void) {
	int cancel_state = opened.cancel_state;

	pthread_mutex_unlock(&opened.lock);
	pthread_setcancelstate(cancel_state, NULL);
}

int preload_register_open(struct ibv_context *context) {
	struct opened *entry = malloc(sizeof(*entry));

	if (entry == NULL)
		return -ENOMEM;
	entry->context = context;
	entry->next = opened.first;
	opened.first = entry;
	return 0;
}

void preload_unregister_open(const struct ibv_context *context) {
	struct opened **link = &opened.first;

	while (*link != NULL && (*link)->context != context)
		link = &(*link)->next;
	if (*link != NULL) {
		struct opened *entry = *link;

		*link = entry->next;
		free(entry);
	}
}

void preload_each_open(void (*visit)(const char *name)) {
	preload_open_begin();
	for (const struct opened *entry = opened.first; entry != NULL && !opened.dead;
	     entry = entry->next)
		visit(entry->context->device->name);
	preload_open_end();
}

static int dead_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc) {
	(void)cq, (void)num_entries, (void)wc;
	return -EIO;
}

static int dead_req_notify_cq(struct ibv_cq *cq, int solicited_only) {
	(void)cq, (void)solicited_only;
	return EIO;
}

static int dead_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr) {
	(void)qp;
	*bad_wr = wr;
	return EIO;
}

static int dead_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr) {
	(void)qp;
	*bad_wr = wr;
	return EIO;
}

static int
dead_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr) {
	(void)srq;
	*bad_wr = wr;
	return EIO;
}

static int dead_query_port(
	struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t attr_bytes
) {
	(void)context, (void)port, (void)attr, (void)attr_bytes;
	return EIO;
}

static int dead_query_device_ex(
	struct ibv_context *context,
	const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr,
	size_t attr_bytes
) {
	(void)context, (void)input, (void)attr, (void)attr_bytes;
	return EIO;
}

static int dead_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values) {
	(void)context, (void)values;
	return EIO;
}

static void after_fork_in_child(void) {
	for (const struct opened *entry = opened.first; entry != NULL; entry = entry->next) {
		struct ibv_context *context = entry->context;
		struct verbs_context *extended = verbs_get_ctx(context);

		// Replace the hot calls: libibverbs' inline functions jump directly through these
		// pointers.
		context->ops.poll_cq = dead_poll_cq;
		context->ops.req_notify_cq = dead_req_notify_cq;
		context->ops.post_send = dead_post_send;
		context->ops.post_recv = dead_post_recv;
		context->ops.post_srq_recv = dead_post_srq_recv;
		if (extended != NULL) {
			extended->query_port = dead_query_port;
			extended->query_device_ex = dead_query_device_ex;
			extended->query_rt_values = dead_query_rt_values;
		}
		opened.dead = true;
	}
	preload_open_end();
}

int preload_fork_prepare(void) {
	return -pthread_atfork(preload_open_begin, preload_open_end, after_fork_in_child);
}
