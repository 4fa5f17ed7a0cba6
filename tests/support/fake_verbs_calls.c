// SPDX-License-Identifier: BSD-3-Clause
// The table of cold calls. This file implements those for devices, contexts, events and domains.
#include "fake_verbs_impl.h"

#include <lib/must.h>

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

// Devices.

static int device_list(struct ibv_device ***ret_devices, uint32_t *ret_count) {
	struct ibv_device **list;
	int err = fake_enter(FAKE_DEVICE_LIST);

	if (err != 0)
		return err;
	list = calloc(fake.device_count + 1, sizeof(struct ibv_device *));
	must(list != NULL);
	*ret_count = 0;
	for (uint32_t n = 0; n < fake.device_count; n++) {
		if (!fake.devices[n]->private->gone)
			list[(*ret_count)++] = &fake.devices[n]->verbs;
	}
	fake.lists++;
	*ret_devices = list;
	return fake_leave(0);
}

static void device_list_free(struct ibv_device **devices) {
	fake_lock();
	fake.lists--;
	fake_unlock();
	free(devices);
}

static uint64_t device_guid(struct ibv_device *verbs) {
	const struct fake_device *device = container_of(verbs, struct fake_device, verbs);
	uint64_t guid;

	fake_lock();
	guid = be64toh(device->attr.node_guid);
	fake_unlock();
	return guid;
}

static int open_device(struct ibv_device *verbs, struct ibv_context **ret_context) {
	struct fake_device *device = container_of(verbs, struct fake_device, verbs);
	struct fake_context *context;
	int err = fake_enter(FAKE_OPEN);

	if (err != 0)
		return err;
	if (device->private->gone)
		return fake_leave(-ENOENT);
	context = calloc(1, sizeof(*context));
	must(context != NULL);
	context->device = device;
	context->verbs.device = verbs;
	context->verbs.cmd_fd = -1;
	context->verbs.num_comp_vectors = device->vectors > 0 ? device->vectors : 1;
	context->verbs.async_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
	must(context->verbs.async_fd >= 0);
	fake_hot_ops(&context->verbs.ops);
	context->next = device->private->contexts;
	device->private->contexts = context;
	context->alive.contexts++;
	*ret_context = &context->verbs;
	return fake_leave(0);
}

static int close_device(struct ibv_context *verbs) {
	struct fake_context *context = fake_context_of(verbs);
	struct fake_context **place = &context->device->private->contexts;
	int err = fake_enter(FAKE_CLOSE);

	if (err != 0)
		return err;
	if (context->objects > 0 && !context->lost) {
		fake_break("a context was closed with %u objects in it", context->objects);
		return fake_leave(-EBUSY);
	}
	while (*place != context)
		place = &(*place)->next;
	*place = context->next;
	while (context->events != NULL) {
		struct fake_event *event = context->events;

		context->events = event->next;
		free(event);
	}
	close(verbs->async_fd);
	if (context->lost)
		fake_context_bury(context);
	free(context);
	return fake_leave(0);
}

static int query_device(struct ibv_context *context, struct ibv_device_attr *ret_attr) {
	int err = fake_enter_on(FAKE_QUERY_DEVICE, context);

	if (err != 0)
		return err;
	*ret_attr = fake_device_of(context)->attr;
	return fake_leave(0);
}

static bool port_exists(const struct fake_device *device, uint8_t port) {
	return port > 0 && port <= device->attr.phys_port_cnt && port <= FAKE_PORTS_MAX;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *ret_attr) {
	const struct fake_device *device = fake_device_of(context);
	int err = fake_enter_on(FAKE_QUERY_PORT, context);

	if (err != 0)
		return err;
	if (!port_exists(device, port))
		return fake_leave(-EINVAL);
	*ret_attr = device->ports[port - 1].attr;
	return fake_leave(0);
}

static int query_gids(
	struct ibv_context *context,
	struct ibv_gid_entry *entries,
	uint32_t max,
	uint32_t *ret_count
) {
	const struct fake_device *device = fake_device_of(context);
	uint32_t count = 0;
	int err = fake_enter_on(FAKE_QUERY_GIDS, context);

	if (err != 0)
		return err;
	for (uint32_t p = 0; p < device->attr.phys_port_cnt && p < FAKE_PORTS_MAX; p++) {
		const struct fake_port *port = &device->ports[p];

		for (uint32_t n = 0; n < port->gid_count && count < max; n++)
			entries[count++] = port->gids[n];
	}
	*ret_count = count;
	return fake_leave(0);
}

static int
query_pkey(struct ibv_context *context, uint8_t port, uint16_t index, uint16_t *ret_pkey) {
	const struct fake_device *device = fake_device_of(context);
	int err = fake_enter_on(FAKE_QUERY_PKEY, context);

	if (err != 0)
		return err;
	if (!port_exists(device, port) || index >= device->ports[port - 1].attr.pkey_tbl_len ||
	    index >= FAKE_PKEYS_MAX)
		return fake_leave(-EINVAL);
	*ret_pkey = device->ports[port - 1].pkeys[index];
	return fake_leave(0);
}

// Asynchronous events. As in libibverbs, events of a queue pair or completion queue are counted in
// that object. Its destruction would wait for their acknowledgement.

static bool event_is_of_qp(enum ibv_event_type type) {
	return (type >= IBV_EVENT_QP_FATAL && type <= IBV_EVENT_PATH_MIG_ERR) ||
	       type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

static int get_async_event(struct ibv_context *verbs, struct ibv_async_event *ret_event) {
	struct fake_context *context = fake_context_of(verbs);
	struct fake_event *event;
	uint64_t one;
	int err = fake_enter(FAKE_GET_ASYNC_EVENT);

	if (err != 0)
		return err;
	event = context->events;
	if (event == NULL)
		return fake_leave(context->lost ? -EIO : -EAGAIN);
	must(read(verbs->async_fd, &one, sizeof(one)) == sizeof(one));
	context->events = event->next;
	*ret_event = event->verbs;
	free(event);
	if (event_is_of_qp(ret_event->event_type))
		fake_qp_of(ret_event->element.qp)->async_taken++;
	else if (ret_event->event_type == IBV_EVENT_CQ_ERR)
		fake_cq_of(ret_event->element.cq)->async_taken++;
	fake_alive_of(verbs)->async_events++;
	return fake_leave(0);
}

// Find the device of an unacknowledged event. Port events have no context, so the device with
// unacknowledged events is taken.
static struct fake_alive *unacknowledged(const struct ibv_async_event *event) {
	if (event_is_of_qp(event->event_type))
		return fake_alive_of(event->element.qp->context);
	if (event->event_type == IBV_EVENT_CQ_ERR)
		return fake_alive_of(event->element.cq->context);
	for (uint32_t n = 0; n < fake.device_count; n++) {
		struct fake_context *context = fake.devices[n]->private->contexts;

		for (; context != NULL; context = context->next) {
			if (context->alive.async_events > 0)
				return &context->alive;
		}
	}
	return NULL;
}

static void ack_async_event(struct ibv_async_event *event) {
	struct fake_alive *alive;

	fake_lock();
	alive = unacknowledged(event);
	if (alive == NULL || alive->async_events == 0)
		fake_break("an event was acknowledged that nobody took");
	else
		alive->async_events--;
	if (event_is_of_qp(event->event_type))
		fake_qp_of(event->element.qp)->async_acked++;
	else if (event->event_type == IBV_EVENT_CQ_ERR)
		fake_cq_of(event->element.cq)->async_acked++;
	fake_unlock();
}

void fake_events_drop(struct fake_context *context, const void *object) {
	struct fake_event **place = &context->events;
	uint64_t one;

	while (*place != NULL) {
		struct fake_event *event = *place;
		bool its = (event_is_of_qp(event->verbs.event_type) &&
			    event->verbs.element.qp == object) ||
			   (event->verbs.event_type == IBV_EVENT_CQ_ERR &&
			    event->verbs.element.cq == object);

		if (!its) {
			place = &event->next;
			continue;
		}
		*place = event->next;
		free(event);
		must(read(context->verbs.async_fd, &one, sizeof(one)) == sizeof(one));
	}
}

// Domains.

static int alloc_pd(struct ibv_context *context, struct ibv_pd **ret_pd) {
	struct fake_device *device = fake_device_of(context);
	struct fake_pd *pd;
	int err = fake_enter_on(FAKE_ALLOC_PD, context);

	if (err != 0)
		return err;
	if (fake_alive_of(context)->pds >= (uint32_t)device->attr.max_pd)
		return fake_leave(-ENOMEM);
	pd = calloc(1, sizeof(*pd));
	must(pd != NULL);
	pd->verbs.context = context;
	fake_context_of(context)->objects++;
	fake_object_add(context, &pd->object, pd, -1);
	fake_alive_of(context)->pds++;
	*ret_pd = &pd->verbs;
	return fake_leave(0);
}

static int dealloc_pd(struct ibv_pd *verbs) {
	struct fake_pd *pd = container_of(verbs, struct fake_pd, verbs);
	int err = fake_enter_on(FAKE_DEALLOC_PD, verbs->context);

	if (err != 0)
		return err;
	if (pd->users > 0) {
		fake_break("a protection domain was freed with %u objects in it", pd->users);
		return fake_leave(-EBUSY);
	}
	fake_context_of(verbs->context)->objects--;
	fake_object_remove(&pd->object);
	fake_alive_of(verbs->context)->pds--;
	free(pd);
	return fake_leave(0);
}

const struct verbs_calls fake_verbs_calls = {
	.name = "fake",
	.device_list = device_list,
	.device_list_free = device_list_free,
	.device_guid = device_guid,
	.open = open_device,
	.close = close_device,
	.query_device = query_device,
	.query_port = query_port,
	.query_gids = query_gids,
	.query_pkey = query_pkey,
	.get_async_event = get_async_event,
	.ack_async_event = ack_async_event,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.reg_mr = fake_reg_mr,
	.reg_dmabuf_mr = fake_reg_dmabuf_mr,
	.dereg_mr = fake_dereg_mr,
	.create_comp_channel = fake_create_comp_channel,
	.destroy_comp_channel = fake_destroy_comp_channel,
	.create_cq = fake_create_cq,
	.create_cq_at = fake_create_cq_at,
	.destroy_cq = fake_destroy_cq,
	.get_cq_event = fake_get_cq_event,
	.ack_cq_events = fake_ack_cq_events,
	.create_qp = fake_create_qp,
	.modify_qp = fake_modify_qp,
	.query_qp = fake_query_qp,
	.destroy_qp = fake_destroy_qp,
};
