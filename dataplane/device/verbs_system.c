// SPDX-License-Identifier: BSD-3-Clause
// The system's libibverbs as a call table: each wrapper converts the error convention of its call.
// Cold.
#include <dataplane/foreign_error.h>
#include <dataplane/verbs_calls.h>
#include <lib/error.h>
#include <lib/must.h>

#include <endian.h>
#include <fcntl.h>
#include <limits.h>

// libibverbs of rdma-core before version 34 lacks this call. The weak reference lets a program link
// with such a library, as the relocatable archive does.
#pragma weak ibv_reg_dmabuf_mr

// Make a descriptor non-blocking, because readers poll elsewhere, and close-on-exec.
static int prepare_event_fd(int fd) {
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return neg_errno();
	return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? neg_errno() : 0;
}

static int system_device_list(struct ibv_device ***ret_devices, uint32_t *ret_count) {
	int count = 0;
	struct ibv_device **devices = ibv_get_device_list(&count);

	if (devices == NULL)
		return verbs_error_from_object(devices);
	*ret_devices = devices;
	*ret_count = count > 0 ? (uint32_t)count : 0;
	return 0;
}

static void system_device_list_free(struct ibv_device **devices) {
	ibv_free_device_list(devices);
}

static uint64_t system_device_guid(struct ibv_device *device) {
	return be64toh(ibv_get_device_guid(device));
}

// Clear errno first: on -1 libibverbs does not always set it, and an old value would be taken as
// the reason.
static int system_close(struct ibv_context *context) {
	errno = 0;
	return verbs_error_from_code(ibv_close_device(context));
}

static int system_open(struct ibv_device *device, struct ibv_context **ret_context) {
	struct ibv_context *context = ibv_open_device(device);
	int err;

	if (context == NULL)
		return verbs_error_from_object(context);
	err = prepare_event_fd(context->async_fd);
	if (err != 0) {
		(void)system_close(context);
		return err;
	}
	*ret_context = context;
	return 0;
}

static int system_query_device(struct ibv_context *context, struct ibv_device_attr *ret_attr) {
	struct ibv_device_attr attr = {0};
	int err;

	errno = 0;
	err = verbs_error_from_code(ibv_query_device(context, &attr));
	if (err == 0)
		*ret_attr = attr;
	return err;
}

static int
system_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *ret_attr) {
	struct ibv_port_attr attr = {0};
	int err;

	errno = 0;
	err = verbs_error_from_code(ibv_query_port(context, port, &attr));
	if (err == 0)
		*ret_attr = attr;
	return err;
}

// This call has a fourth convention: a count or -errno, where -1 is EPERM.
static int system_query_gids(
	struct ibv_context *context,
	struct ibv_gid_entry *entries,
	uint32_t max,
	uint32_t *ret_count
) {
	ssize_t count = ibv_query_gid_table(context, entries, max, 0);

	if (count < 0)
		return (int)count;
	*ret_count = (uint32_t)count;
	return 0;
}

static int
system_query_pkey(struct ibv_context *context, uint8_t port, uint16_t index, uint16_t *ret_pkey) {
	__be16 pkey = 0;
	int err;

	errno = 0;
	err = verbs_error_from_code(ibv_query_pkey(context, port, index, &pkey));
	if (err == 0)
		*ret_pkey = be16toh(pkey);
	return err;
}

static int system_get_async_event(struct ibv_context *context, struct ibv_async_event *ret_event) {
	struct ibv_async_event event = {0};
	int err;

	errno = 0;
	err = verbs_error_from_code(ibv_get_async_event(context, &event));
	if (err == 0)
		*ret_event = event;
	return err;
}

static void system_ack_async_event(struct ibv_async_event *event) {
	ibv_ack_async_event(event);
}

static int system_alloc_pd(struct ibv_context *context, struct ibv_pd **ret_pd) {
	struct ibv_pd *pd = ibv_alloc_pd(context);

	if (pd == NULL)
		return verbs_error_from_object(pd);
	*ret_pd = pd;
	return 0;
}

static int system_dealloc_pd(struct ibv_pd *pd) {
	errno = 0;
	return verbs_error_from_code(ibv_dealloc_pd(pd));
}

static int
system_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access, struct ibv_mr **ret_mr) {
	struct ibv_mr *mr = ibv_reg_mr(pd, address, length, (unsigned int)access);

	if (mr == NULL)
		return verbs_error_from_object(mr);
	*ret_mr = mr;
	return 0;
}

static int system_reg_dmabuf_mr(
	struct ibv_pd *pd, const struct verbs_dmabuf *dmabuf, int access, struct ibv_mr **ret_mr
) {
	struct ibv_mr *mr;

	if (ibv_reg_dmabuf_mr == NULL)
		return -EOPNOTSUPP;
	mr = ibv_reg_dmabuf_mr(
		pd, dmabuf->offset, dmabuf->length, dmabuf->iova, dmabuf->fd, access
	);
	if (mr == NULL)
		return verbs_error_from_object(mr);
	*ret_mr = mr;
	return 0;
}

static int system_dereg_mr(struct ibv_mr *mr) {
	errno = 0;
	return verbs_error_from_code(ibv_dereg_mr(mr));
}

static int system_destroy_comp_channel(struct ibv_comp_channel *channel) {
	errno = 0;
	return verbs_error_from_code(ibv_destroy_comp_channel(channel));
}

static int
system_create_comp_channel(struct ibv_context *context, struct ibv_comp_channel **ret_channel) {
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	int err;

	if (channel == NULL)
		return verbs_error_from_object(channel);
	err = prepare_event_fd(channel->fd);
	if (err != 0) {
		(void)system_destroy_comp_channel(channel);
		return err;
	}
	*ret_channel = channel;
	return 0;
}

static int system_create_cq_at(
	struct ibv_context *context,
	uint32_t entries,
	struct ibv_comp_channel *channel,
	uint32_t vector,
	struct ibv_cq **ret_cq
) {
	struct ibv_cq *cq;

	if (entries > INT_MAX || vector > INT_MAX)
		return -EINVAL;
	cq = ibv_create_cq(context, (int)entries, NULL, channel, (int)vector);
	if (cq == NULL)
		return verbs_error_from_object(cq);
	*ret_cq = cq;
	return 0;
}

static int system_create_cq(
	struct ibv_context *context,
	uint32_t entries,
	struct ibv_comp_channel *channel,
	struct ibv_cq **ret_cq
) {
	return system_create_cq_at(context, entries, channel, 0, ret_cq);
}

static int system_create_cq_ex(
	struct ibv_context *context,
	const struct ibv_cq_init_attr_ex *attr,
	struct ibv_cq_ex **ret_cq
) {
	struct ibv_cq_init_attr_ex copy = *attr;
	struct ibv_cq_ex *cq;

	errno = 0;
	cq = ibv_create_cq_ex(context, &copy);
	if (cq == NULL)
		return verbs_error_from_object(cq);
	*ret_cq = cq;
	return 0;
}

// A device that reports 0 for either value has no usable time stamps.
static int
system_query_stamp_clock(struct ibv_context *context, uint64_t *ret_mask, uint64_t *ret_khz) {
	struct ibv_device_attr_ex attr = {.comp_mask = 0};
	int err;

	errno = 0;
	err = verbs_error_from_code(ibv_query_device_ex(context, NULL, &attr));
	if (err != 0)
		return err;
	if (attr.completion_timestamp_mask == 0 || attr.hca_core_clock == 0)
		return -EOPNOTSUPP;
	*ret_mask = attr.completion_timestamp_mask;
	*ret_khz = attr.hca_core_clock;
	return 0;
}

static int system_destroy_cq(struct ibv_cq *cq) {
	errno = 0;
	return verbs_error_from_code(ibv_destroy_cq(cq));
}

static int system_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **ret_cq) {
	struct ibv_cq *cq = NULL;
	void *context = NULL;
	int err;

	errno = 0;
	err = verbs_error_from_code(ibv_get_cq_event(channel, &cq, &context));
	if (err == 0)
		*ret_cq = cq;
	return err;
}

static void system_ack_cq_events(struct ibv_cq *cq, uint32_t count) {
	ibv_ack_cq_events(cq, count);
}

static int
system_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **ret_qp) {
	struct ibv_qp *qp = ibv_create_qp(pd, attr);

	if (qp == NULL)
		return verbs_error_from_object(qp);
	*ret_qp = qp;
	return 0;
}

static int system_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
	errno = 0;
	return verbs_error_from_code(ibv_modify_qp(qp, attr, mask));
}

static int system_query_qp(
	struct ibv_qp *qp, int mask, struct ibv_qp_attr *ret_attr, struct ibv_qp_init_attr *ret_init
) {
	struct ibv_qp_attr attr = {0};
	struct ibv_qp_init_attr init = {0};
	int err;

	errno = 0;
	err = verbs_error_from_code(ibv_query_qp(qp, &attr, mask, &init));
	if (err != 0)
		return err;
	*ret_attr = attr;
	*ret_init = init;
	return 0;
}

static int system_destroy_qp(struct ibv_qp *qp) {
	errno = 0;
	return verbs_error_from_code(ibv_destroy_qp(qp));
}

// The system's errors need no further explanation.
static void open_reason(const struct ibv_device *device, char *ret_reason, size_t size) {
	(void)device;
	must(size > 0);
	ret_reason[0] = '\0';
}

const struct verbs_calls verbs_calls_system = {
	.name = "system",
	.in_process = false,
	.device_list = system_device_list,
	.device_list_free = system_device_list_free,
	.device_guid = system_device_guid,
	.open = system_open,
	.close = system_close,
	.open_reason = open_reason,
	.query_device = system_query_device,
	.query_port = system_query_port,
	.query_gids = system_query_gids,
	.query_pkey = system_query_pkey,
	.get_async_event = system_get_async_event,
	.ack_async_event = system_ack_async_event,
	.alloc_pd = system_alloc_pd,
	.dealloc_pd = system_dealloc_pd,
	.reg_mr = system_reg_mr,
	.reg_dmabuf_mr = system_reg_dmabuf_mr,
	.dereg_mr = system_dereg_mr,
	.create_comp_channel = system_create_comp_channel,
	.destroy_comp_channel = system_destroy_comp_channel,
	.create_cq = system_create_cq,
	.create_cq_at = system_create_cq_at,
	.create_cq_ex = system_create_cq_ex,
	.query_stamp_clock = system_query_stamp_clock,
	.destroy_cq = system_destroy_cq,
	.get_cq_event = system_get_cq_event,
	.ack_cq_events = system_ack_cq_events,
	.create_qp = system_create_qp,
	.modify_qp = system_modify_qp,
	.query_qp = system_query_qp,
	.destroy_qp = system_destroy_qp,
};
