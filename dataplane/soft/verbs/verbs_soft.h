// SPDX-License-Identifier: BSD-3-Clause
// The parts of verbs_calls_soft, by file.
#pragma once

#include "engine/engine.h"
#include "transport/qp.h"

#include <dataplane/verbs_calls.h>

// An added device: listed from then on, running while it is open.
struct soft_device {
	struct ibv_device verbs;
	struct soft_nic nic;
	__be64 guid; // derived from the address once that is known; guarded by the lock of `nic`
};

static inline struct soft_device *device_of(struct ibv_device *device) {
	return container_of(device, struct soft_device, verbs);
}
static inline struct soft_nic *nic_of(struct ibv_context *context) {
	return soft_context_of(context)->nic;
}

// verbs_soft_query.c
int soft_query_device(struct ibv_context *context, struct ibv_device_attr *ret_attr);
int soft_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *ret_attr);
int soft_query_gids(
	struct ibv_context *context,
	struct ibv_gid_entry *entries,
	uint32_t max,
	uint32_t *ret_count
);
int soft_query_pkey(struct ibv_context *context, uint8_t port, uint16_t index, uint16_t *ret_pkey);
void soft_set_query_calls(struct verbs_context *context); // set pointers for inline calls

// verbs_soft_regions.c
int soft_alloc_pd(struct ibv_context *context, struct ibv_pd **ret_pd);
int soft_dealloc_pd(struct ibv_pd *pd);
int soft_reg_mr(
	struct ibv_pd *pd, void *address, size_t length, int access, struct ibv_mr **ret_mr
);
int soft_reg_dmabuf_mr(
	struct ibv_pd *pd, const struct verbs_dmabuf *dmabuf, int access, struct ibv_mr **ret_mr
);
int soft_dereg_mr(struct ibv_mr *mr);

// verbs_soft_queues.c
int soft_create_comp_channel(struct ibv_context *context, struct ibv_comp_channel **ret_channel);
int soft_destroy_comp_channel(struct ibv_comp_channel *channel);
int soft_create_cq(
	struct ibv_context *context,
	uint32_t entries,
	struct ibv_comp_channel *channel,
	struct ibv_cq **ret_cq
);
int soft_destroy_cq(struct ibv_cq *cq);
int soft_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **ret_qp);
int soft_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int soft_query_qp(
	struct ibv_qp *qp, int mask, struct ibv_qp_attr *ret_attr, struct ibv_qp_init_attr *ret_init
);
int soft_destroy_qp(struct ibv_qp *qp);

// verbs_soft_hot.c
void soft_set_hot_calls(struct ibv_context_ops *ops);
// Take one completion with its stamps, like ibv_poll_cq(). Returns false if there is none.
bool soft_poll_one(struct soft_cq *cq, struct soft_completion *ret_completion);

// verbs_soft_extended.c
int soft_create_cq_ex(
	struct ibv_context *context,
	const struct ibv_cq_init_attr_ex *attr,
	struct ibv_cq_ex **ret_cq
);
int soft_query_stamp_clock(struct ibv_context *context, uint64_t *ret_mask, uint64_t *ret_khz);
int soft_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
