// SPDX-License-Identifier: BSD-3-Clause
// The software devices of this process: adding, listing, opening; and their call table. Cold.
#include "verbs/verbs_soft.h"

#include "transport/verbs_limits.h"

#include <lib/must.h>

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Added by one thread before any listing, and constant afterwards.
static struct soft_device *devices[SOFT_DEVICES_MAX];
static uint32_t device_count;

static struct soft_device *device_find(const char *name) {
	for (uint32_t n = 0; n < device_count; n++) {
		if (strcmp(devices[n]->verbs.name, name) == 0)
			return devices[n];
	}
	return NULL;
}

static bool config_is_valid(const struct soft_config *config) {
	return config->name[0] != '\0' &&
	       memchr(config->name, '\0', sizeof(config->name)) != NULL &&
	       memchr(config->wire_args, '\0', sizeof(config->wire_args)) != NULL &&
	       strchr(config->name, '/') == NULL && config->wire <= SOFT_WIRE_MEMORY &&
	       (config->address_any || config->address.family != SOCK_ADDR_NONE);
}

// Derive the GUID from the address, so that it is the same for each open: the vendor, then the IPv4
// address or a hash of the IPv6 address (FNV-1a). It is locally administered, so no other device
// has it.
static __be64 guid_of_address(const struct sock_addr *address) {
	uint64_t bits = UINT64_C(0xcbf29ce484222325);
	uint32_t ip4;

	if (address->family == SOCK_ADDR_V4) {
		memcpy(&ip4, address->address, sizeof(ip4));
		return htobe64((uint64_t)LIMIT_VENDOR << 40 | be32toh(ip4));
	}
	for (uint32_t n = 0; n < 16; n++)
		bits = (bits ^ address->address[n]) * UINT64_C(0x100000001b3);
	return htobe64((uint64_t)LIMIT_VENDOR << 40 | UINT64_C(1) << 32 | (bits & UINT32_MAX));
}

int soft_device_add(const struct soft_config *config) {
	struct sock_addr numbered = {.family = SOCK_ADDR_V4};
	struct soft_device *device;

	if (!config_is_valid(config))
		return -EINVAL;
	if (device_find(config->name) != NULL)
		return -EEXIST;
	if (device_count == SOFT_DEVICES_MAX)
		return -ENOSPC;
	device = calloc(1, sizeof(*device));
	if (device == NULL)
		return -ENOMEM;
	device->verbs.node_type = IBV_NODE_CA;
	device->verbs.transport_type = IBV_TRANSPORT_IB;
	snprintf(device->verbs.name, sizeof(device->verbs.name), "%s", config->name);
	snprintf(device->verbs.dev_name, sizeof(device->verbs.dev_name), "soft%u", device_count);
	nic_init(&device->nic, config);
	// Without a configured address the GUID is based on the device number until the first open.
	numbered.address[3] = (uint8_t)device_count;
	device->guid = guid_of_address(config->address_any ? &numbered : &config->address);
	devices[device_count++] = device;
	return 0;
}

void soft_devices_clear(void) {
	while (device_count > 0) {
		struct soft_device *device = devices[--device_count];

		nic_fini(&device->nic);
		free(device);
	}
}

// trylock, because the interrupted call may hold the lock.
void soft_devices_flush_acks(void) {
	for (uint32_t n = 0; n < device_count; n++) {
		struct soft_nic *nic = &devices[n]->nic;

		if (!nic_trylock(nic))
			continue;
		if (nic->wire != NULL && nic->config.clock == NULL)
			(void)nic_turn(nic, false);
		nic_unlock(nic);
	}
}

void soft_device_open_error(const char *name, char ret_reason[static SOFT_REASON_MAX + 1]) {
	struct soft_device *device = device_find(name);

	ret_reason[0] = '\0';
	if (device == NULL)
		return;
	nic_lock(&device->nic);
	memcpy(ret_reason, device->nic.reason, sizeof(device->nic.reason));
	nic_unlock(&device->nic);
}

int soft_device_address(const char *name, struct sock_addr *ret_address) {
	struct soft_device *device = device_find(name);
	int err = -ENOTCONN;

	if (device == NULL)
		return -ENODEV;
	nic_lock(&device->nic);
	if (device->nic.wire != NULL) {
		*ret_address = device->nic.wire->address;
		err = 0;
	}
	nic_unlock(&device->nic);
	return err;
}

int soft_device_set_faults(const char *name, const struct soft_faults *faults) {
	struct soft_device *device = device_find(name);

	return device != NULL ? nic_set_faults(&device->nic, faults) : -ENODEV;
}

__be64 soft_device_guid(const char *name) {
	struct soft_device *device = device_find(name);
	__be64 guid = 0;

	if (device != NULL) {
		nic_lock(&device->nic);
		guid = device->guid;
		nic_unlock(&device->nic);
	}
	return guid;
}

pid_t soft_engine_tid(const char *name) {
	struct soft_device *device = device_find(name);

	return device != NULL ? atomic_load_explicit(&device->nic.engine_tid, memory_order_relaxed)
			      : 0;
}

int soft_counters_read(const char *name, struct soft_counters *ret_counters) {
	struct soft_device *device = device_find(name);
	const struct soft_counters *from;

	if (device == NULL)
		return -ENODEV;
	from = &device->nic.counters;
#define READ(field, name) ret_counters->field = __atomic_load_n(&from->field, __ATOMIC_RELAXED);
	SOFT_COUNTERS(READ)
#undef READ
	return 0;
}

bool soft_turn(struct ibv_context *context, uint64_t *ret_due_ns) {
	struct soft_nic *nic = nic_of(context);
	bool moved;

	nic_lock(nic);
	moved = nic_turn(nic, false);
	*ret_due_ns = nic_next_turn_ns(nic);
	nic_unlock(nic);
	return moved;
}

static int soft_device_list(struct ibv_device ***ret_devices, uint32_t *ret_count) {
	struct ibv_device **list = calloc(device_count + 1, sizeof(struct ibv_device *));

	if (list == NULL)
		return -ENOMEM;
	for (uint32_t n = 0; n < device_count; n++)
		list[n] = &devices[n]->verbs;
	*ret_devices = list;
	*ret_count = device_count;
	return 0;
}

static void soft_device_list_free(struct ibv_device **list) {
	free(list);
}

static void context_free(struct soft_context *context) {
	async_drop_events(context);
	close(context->verbs.context.async_fd);
	pthread_mutex_destroy(&context->verbs.context.mutex);
	free(context);
}

static int soft_open(struct ibv_device *verbs, struct ibv_context **ret_context) {
	struct soft_device *device = device_of(verbs);
	struct soft_context *context;
	int async_fd = event_fd_create(), err;

	if (async_fd < 0)
		return async_fd;
	context = calloc(1, sizeof(*context));
	if (context == NULL) {
		close(async_fd);
		return -ENOMEM;
	}
	context->nic = &device->nic;
	context->verbs.sz = sizeof(context->verbs);
	context->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->verbs.context.device = verbs;
	context->verbs.context.cmd_fd = -1;
	context->verbs.context.async_fd = async_fd;
	context->verbs.context.num_comp_vectors = 1;
	pthread_mutex_init(&context->verbs.context.mutex, NULL);
	soft_set_hot_calls(&context->verbs.context.ops);
	soft_set_query_calls(&context->verbs);
	err = nic_add_context(&device->nic);
	if (err != 0) {
		context_free(context);
		return err;
	}
	nic_lock(&device->nic);
	context->next = device->nic.opened;
	device->nic.opened = context;
	device->guid = guid_of_address(&device->nic.wire->address);
	nic_unlock(&device->nic);
	*ret_context = &context->verbs.context;
	return 0;
}

static int soft_close(struct ibv_context *verbs) {
	struct soft_context *context = soft_context_of(verbs);
	struct soft_context **place = &context->nic->opened;
	uint32_t objects;

	nic_lock(context->nic);
	objects = context->objects;
	if (objects == 0) {
		while (*place != context)
			place = &(*place)->next;
		*place = context->next;
	}
	nic_unlock(context->nic);
	if (objects > 0)
		return -EBUSY;
	nic_remove_context(context->nic);
	context_free(context);
	return 0;
}

static void soft_open_reason(const struct ibv_device *device, char *ret_reason, size_t size) {
	char reason[SOFT_REASON_MAX + 1];

	soft_device_open_error(device->name, reason);
	snprintf(ret_reason, size, "%s", reason);
}

const struct verbs_calls verbs_calls_soft = {
	.name = "soft",
	.in_process = true,
	.device_list = soft_device_list,
	.device_list_free = soft_device_list_free,
	.open = soft_open,
	.close = soft_close,
	.open_reason = soft_open_reason,
	.query_device = soft_query_device,
	.query_port = soft_query_port,
	.query_gids = soft_query_gids,
	.query_pkey = soft_query_pkey,
	.get_async_event = async_get_event,
	.ack_async_event = async_ack_event,
	.alloc_pd = soft_alloc_pd,
	.dealloc_pd = soft_dealloc_pd,
	.reg_mr = soft_reg_mr,
	.reg_dmabuf_mr = soft_reg_dmabuf_mr,
	.dereg_mr = soft_dereg_mr,
	.create_comp_channel = soft_create_comp_channel,
	.destroy_comp_channel = soft_destroy_comp_channel,
	.create_cq = soft_create_cq,
	.create_cq_ex = soft_create_cq_ex,
	.query_stamp_clock = soft_query_stamp_clock,
	.destroy_cq = soft_destroy_cq,
	.get_cq_event = channel_get_event,
	.ack_cq_events = cq_ack_events,
	.create_qp = soft_create_qp,
	.modify_qp = soft_modify_qp,
	.query_qp = soft_query_qp,
	.destroy_qp = soft_destroy_qp,
};
