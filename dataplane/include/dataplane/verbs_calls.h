// SPDX-License-Identifier: BSD-3-Clause
// All cold calls into a driver as a table. Three implementations exist: the system's libibverbs,
// the software device, and the programmable device of the tests.
//
// All calls return 0 or -errno, with outputs last and untouched on failure. Objects are libibverbs'
// own structs. Any call may hang, so it is made on the device's keeper, never on the control thread
// or a worker. The exceptions do not block: the worker that owns a channel calls get_cq_event and
// ack_cq_events, and get_async_event uses a non-blocking descriptor (-EAGAIN).
//
// The hot calls (ibv_post_send, ibv_post_recv, ibv_poll_cq, ibv_req_notify_cq) are libibverbs'
// inline jumps through ibv_context.ops. Every implementation provides them, so the table adds no
// cost. A worker also calls ibv_query_rt_values_ex directly, for the clock of a device with time
// stamps.
#pragma once

#include <dataplane/verbs.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Part of another device's memory, exported by its driver.
struct verbs_dmabuf {
	int fd;
	uint64_t offset;
	uint64_t length;
	uint64_t iova; // address of the first byte in work requests
};

struct verbs_calls {
	const char *name; // "system", "soft"
	// This process itself answers one-sided operations, not a NIC or the kernel.
	bool in_process;

	int (*device_list)(struct ibv_device ***ret_devices, uint32_t *ret_count);
	void (*device_list_free)(struct ibv_device **devices);
	// Return the node GUID as a number without opening the device; 0: unknown. NULL: always
	// unknown.
	uint64_t (*device_guid)(struct ibv_device *device);
	int (*open)(struct ibv_device *device, struct ibv_context **ret_context);
	int (*close)(struct ibv_context *context);
	// Return the reason why the latest open() of this device failed, "" if only the error is
	// known. NULL: no reasons are known.
	void (*open_reason)(const struct ibv_device *device, char *ret_reason, size_t size);
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *ret_attr);
	int (*query_port
	)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *ret_attr);
	// Return all valid entries of all ports, with their types. Returns -EINVAL if there are
	// more than max, or if the answer could reach 64 KiB.
	int (*query_gids
	)(struct ibv_context *context,
	  struct ibv_gid_entry *entries,
	  uint32_t max,
	  uint32_t *ret_count);
	// Return a P_Key as a number in host order.
	int (*query_pkey
	)(struct ibv_context *context, uint8_t port, uint16_t index, uint16_t *ret_pkey);
	int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *ret_event);
	void (*ack_async_event)(struct ibv_async_event *event);

	int (*alloc_pd)(struct ibv_context *context, struct ibv_pd **ret_pd);
	int (*dealloc_pd)(struct ibv_pd *pd);
	int (*reg_mr
	)(struct ibv_pd *pd, void *address, size_t length, int access, struct ibv_mr **ret_mr);
	int (*reg_dmabuf_mr
	)(struct ibv_pd *pd, const struct verbs_dmabuf *dmabuf, int access, struct ibv_mr **ret_mr);
	int (*dereg_mr)(struct ibv_mr *mr);

	int (*create_comp_channel
	)(struct ibv_context *context, struct ibv_comp_channel **ret_channel);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	// channel may be NULL.
	int (*create_cq
	)(struct ibv_context *context,
	  uint32_t entries,
	  struct ibv_comp_channel *channel,
	  struct ibv_cq **ret_cq);
	// Like create_cq, with a completion vector below context->num_comp_vectors. NULL: vectors
	// have no effect.
	int (*create_cq_at
	)(struct ibv_context *context,
	  uint32_t entries,
	  struct ibv_comp_channel *channel,
	  uint32_t vector,
	  struct ibv_cq **ret_cq);
	// Create a queue whose completions have time stamps. It is polled with ibv_start_poll() and
	// destroyed as the plain queue at its start. Returns -EOPNOTSUPP for unsupported flags.
	// NULL: no time stamps.
	int (*create_cq_ex
	)(struct ibv_context *context,
	  const struct ibv_cq_init_attr_ex *attr,
	  struct ibv_cq_ex **ret_cq);
	// Return the valid bits of a raw time stamp and its frequency in kHz. Returns -EOPNOTSUPP
	// if there are no time stamps. NULL: no time stamps.
	int (*query_stamp_clock
	)(struct ibv_context *context, uint64_t *ret_mask, uint64_t *ret_khz);
	int (*destroy_cq)(struct ibv_cq *cq);
	// Return an event of a non-blocking channel; -EAGAIN if there is none.
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **ret_cq);
	void (*ack_cq_events)(struct ibv_cq *cq, uint32_t count);

	int (*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **ret_qp);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*query_qp
	)(struct ibv_qp *qp,
	  int mask,
	  struct ibv_qp_attr *ret_attr,
	  struct ibv_qp_init_attr *ret_init);
	int (*destroy_qp)(struct ibv_qp *qp);
};

// The system's libibverbs. device_list returns -ENOSYS if the kernel has no RDMA support.
extern const struct verbs_calls verbs_calls_system;
