// SPDX-License-Identifier: BSD-3-Clause
// Two ends on raw verbs: a device each, one queue pair, one region. Every call that a test does
// not expect to fail is checked here.
#pragma once

#include <lib/must.h>
#include <support/fake_verbs.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#define END_BYTES 4096
#define END_DEPTH 8
#define END_IMMEDIATE 0x1234
#define END_TIMEOUT 14
#define END_RETRY 6
#define END_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct end {
	struct fake_device *device;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint32_t local_key, remote_key;
	uint32_t psn;
	uint64_t posted;
	alignas(8) uint8_t memory[END_BYTES];
};

struct ends {
	struct fake_device *device[2];
	struct end end[2];
};

static inline void end_register(struct end *end, int access) {
	if (end->mr != NULL)
		must(fake_verbs_calls.dereg_mr(end->mr) == 0);
	end->mr = NULL;
	must(fake_verbs_calls.reg_mr(end->pd, end->memory, END_BYTES, access, &end->mr) == 0);
	end->local_key = end->mr->lkey;
	end->remote_key = end->mr->rkey;
}

static inline int end_make_qp(struct end *end) {
	struct ibv_qp_init_attr attr = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {END_DEPTH, END_DEPTH, 2, 2, 32},
		.qp_type = IBV_QPT_RC,
	};

	return fake_verbs_calls.create_qp(end->pd, &attr, &end->qp);
}

static inline void end_unmake_qp(struct end *end) {
	must(fake_verbs_calls.destroy_qp(end->qp) == 0);
	end->qp = NULL;
}

// Create the objects of an end that already has a context and a domain.
static inline int end_furnish(struct end *end) {
	const struct verbs_calls *calls = &fake_verbs_calls;
	int err = calls->create_comp_channel(end->context, &end->channel);

	end->psn = 77;
	if (err == 0)
		err = calls->create_cq(end->context, 2 * END_DEPTH, end->channel, &end->cq);
	if (err == 0)
		err = end_make_qp(end);
	if (err == 0)
		err = calls->reg_mr(end->pd, end->memory, END_BYTES, END_ACCESS, &end->mr);
	if (err != 0)
		return err;
	end->local_key = end->mr->lkey;
	end->remote_key = end->mr->rkey;
	return 0;
}

static inline int end_make(struct end *end, struct fake_device *device) {
	int err;

	memset(end, 0, sizeof(*end));
	end->device = device;
	err = fake_verbs_calls.open(&device->verbs, &end->context);
	if (err == 0)
		err = fake_verbs_calls.alloc_pd(end->context, &end->pd);
	return err == 0 ? end_furnish(end) : err;
}

static inline void end_strip(struct end *end) {
	const struct verbs_calls *calls = &fake_verbs_calls;

	if (end->qp != NULL)
		must(calls->destroy_qp(end->qp) == 0);
	if (end->cq != NULL)
		must(calls->destroy_cq(end->cq) == 0);
	if (end->channel != NULL)
		must(calls->destroy_comp_channel(end->channel) == 0);
	if (end->mr != NULL)
		must(calls->dereg_mr(end->mr) == 0);
}

static inline void end_destroy(struct end *end) {
	end_strip(end);
	if (end->pd != NULL)
		must(fake_verbs_calls.dealloc_pd(end->pd) == 0);
	if (end->context != NULL)
		must(fake_verbs_calls.close(end->context) == 0);
	memset(end, 0, sizeof(*end));
}

static inline void ends_make(struct ends *ends) {
	memset(ends, 0, sizeof(*ends));
	ends->device[0] = fake_device_add("fake0");
	ends->device[1] = fake_device_add("fake1");
	ends->device[0]->vendor_error = 0x11;
	for (uint32_t n = 0; n < 2; n++)
		must(end_make(&ends->end[n], ends->device[n]) == 0);
}

static inline void ends_destroy(struct ends *ends) {
	for (uint32_t n = 0; n < 2; n++)
		end_destroy(&ends->end[n]);
}

// Return the attributes of `end` for its way to RTS, connected to `other`.
static inline struct ibv_qp_attr end_attr(const struct end *end, const struct end *other) {
	struct ibv_qp_attr attr = {
		.path_mtu = IBV_MTU_1024,
		.rq_psn = other->psn,
		.sq_psn = end->psn,
		.dest_qp_num = other->qp->qp_num,
		.qp_access_flags = END_ACCESS,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.port_num = 1,
		.timeout = END_TIMEOUT,
		.retry_cnt = END_RETRY,
		.rnr_retry = 3,
	};

	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = other->device->ports[0].gids[3].gid;
	attr.ah_attr.grh.sgid_index = 3;
	attr.ah_attr.grh.hop_limit = 64;
	return attr;
}

static inline void end_modify(struct end *end, enum ibv_qp_state state) {
	struct ibv_qp_attr attr = {.qp_state = state, .qp_access_flags = END_ACCESS, .port_num = 1};
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	must(fake_verbs_calls.modify_qp(end->qp, &attr, mask) == 0);
}

static inline void end_to_rts(struct end *end, const struct end *other) {
	struct ibv_qp_attr attr = end_attr(end, other);

	end_modify(end, IBV_QPS_INIT);
	attr.qp_state = IBV_QPS_RTR;
	must(fake_verbs_calls.modify_qp(
		     end->qp, &attr,
		     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
	     ) == 0);
	attr.qp_state = IBV_QPS_RTS;
	must(fake_verbs_calls.modify_qp(
		     end->qp, &attr,
		     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC
	     ) == 0);
}

// Connect both ends, whatever their states.
static inline void ends_connect(struct end *one, struct end *other) {
	end_modify(one, IBV_QPS_RESET);
	end_modify(other, IBV_QPS_RESET);
	end_to_rts(one, other);
	if (other != one)
		end_to_rts(other, one);
}

// Post a request from the start of the own memory to `offset` in the other's; wr_id counts from
// 1. Atomics have the operands 2 and 3.
static inline int end_post_flags(
	struct end *end,
	enum ibv_wr_opcode opcode,
	uint32_t length,
	uint64_t offset,
	const struct end *other,
	unsigned int flags
) {
	struct ibv_sge sge = {(uintptr_t)end->memory, length, end->local_key};
	uint64_t address = (uintptr_t)other->memory + offset;
	struct ibv_send_wr *bad, wr = {
					 .wr_id = ++end->posted,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = opcode,
					 .send_flags = flags,
					 .imm_data = htonl(END_IMMEDIATE),
				 };

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = address;
		wr.wr.atomic.rkey = other->remote_key;
		wr.wr.atomic.compare_add = 2;
		wr.wr.atomic.swap = 3;
	} else {
		wr.wr.rdma.remote_addr = address;
		wr.wr.rdma.rkey = other->remote_key;
	}
	return ibv_post_send(end->qp, &wr, &bad);
}

static inline void end_post(
	struct end *end,
	enum ibv_wr_opcode opcode,
	uint32_t length,
	uint64_t offset,
	const struct end *other
) {
	must(end_post_flags(end, opcode, length, offset, other, IBV_SEND_SIGNALED) == 0);
}

// Post a write whose success is not signalled.
static inline int end_try(struct end *end, const struct end *other) {
	return end_post_flags(end, IBV_WR_RDMA_WRITE, 8, 0, other, 0);
}

static inline void end_post_silent(struct end *end, const struct end *other) {
	must(end_try(end, other) == 0);
}

static inline void end_receive(struct end *end, uint64_t wr_id, uint64_t offset, uint32_t length) {
	struct ibv_sge sge = {(uintptr_t)end->memory + offset, length, end->local_key};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = length > 0 ? 1 : 0};

	must(ibv_post_recv(end->qp, &wr, &bad) == 0);
}

// Return the next completion, which must already exist.
static inline enum ibv_wc_status end_wait(struct end *end, struct ibv_wc *ret_wc) {
	must(ibv_poll_cq(end->cq, 1, ret_wc) == 1);
	return ret_wc->status;
}
