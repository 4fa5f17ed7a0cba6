// SPDX-License-Identifier: BSD-3-Clause
// Every cold call into a driver, as a table with several fillings: the system's libibverbs, the
// software device, and the programmable device of the tests.
//
// All return 0 or -errno, outputs last and untouched on failure; objects are libibverbs' own
// structs. Any of them may hang: they are made on the keeper of their device, never on the control
// thread or a worker. The exceptions, which do not block: get_cq_event and ack_cq_events, made by
// the worker that owns the channel; get_async_event, on a descriptor that does not block (-EAGAIN).
//
// The hot calls (ibv_post_send, ibv_post_recv, ibv_poll_cq, ibv_req_notify_cq) are libibverbs'
// inline jumps through ibv_context.ops, which every filling provides: the table costs them nothing.
// So is ibv_query_rt_values_ex, where there are time stamps: a worker asks a device for its clock.
#pragma once

#include <dataplane/verbs.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A piece of memory of another device, as its driver exports it.
struct verbs_dmabuf {
	int fd;
	uint64_t offset;
	uint64_t length;
	uint64_t iova; // what the first byte is addressed by
};

struct verbs_calls {
	const char *name; // "system", "soft"
	// One-sided operations are answered by this process, not by a NIC or kernel.
	bool in_process;

	int (*device_list)(struct ibv_device ***ret_devices, uint32_t *ret_count);
	void (*device_list_free)(struct ibv_device **devices);
	// Of the node, as a number; 0: not known. Without opening it. NULL: never known.
	uint64_t (*device_guid)(struct ibv_device *device);
	int (*open)(struct ibv_device *device, struct ibv_context **ret_context);
	int (*close)(struct ibv_context *context);
	// In words why the latest open() of that device failed, "" if nothing more is known than
	// its error. NULL: it never is.
	void (*open_reason)(const struct ibv_device *device, char *ret_reason, size_t size);
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *ret_attr);
	int (*query_port
	)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *ret_attr);
	// All valid entries of all ports, with their types. -EINVAL if there are more than max, or
	// if the answer could have 64 KiB and more.
	int (*query_gids
	)(struct ibv_context *context,
	  struct ibv_gid_entry *entries,
	  uint32_t max,
	  uint32_t *ret_count);
	// As a number, in the host's order.
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
	// With a completion vector, below context->num_comp_vectors. NULL: they mean nothing.
	int (*create_cq_at
	)(struct ibv_context *context,
	  uint32_t entries,
	  struct ibv_comp_channel *channel,
	  uint32_t vector,
	  struct ibv_cq **ret_cq);
	// A queue whose completions bear time stamps, polled by ibv_start_poll() and on; destroyed
	// as the plain one that it begins with. -EOPNOTSUPP: not with these flags. NULL: there are
	// none.
	int (*create_cq_ex
	)(struct ibv_context *context,
	  const struct ibv_cq_init_attr_ex *attr,
	  struct ibv_cq_ex **ret_cq);
	// Which bits of a raw time stamp count, and how fast they do, in kHz. -EOPNOTSUPP: there
	// are no time stamps. NULL: likewise.
	int (*query_stamp_clock
	)(struct ibv_context *context, uint64_t *ret_mask, uint64_t *ret_khz);
	int (*destroy_cq)(struct ibv_cq *cq);
	// On a channel that is not blocking: -EAGAIN.
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

// libibverbs of the system. device_list says -ENOSYS where the kernel has no RDMA at all.
extern const struct verbs_calls verbs_calls_system;
