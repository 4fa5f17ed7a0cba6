// SPDX-License-Identifier: BSD-3-Clause
#include "bed.h"

#include <support/cmocka.h>

#include <stdlib.h>
#include <string.h>

#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_context *open_device(const char *name) {
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	assert_non_null(devices);
	for (struct ibv_device **device = devices; *device != NULL; device++) {
		if (strcmp(ibv_get_device_name(*device), name) == 0)
			context = ibv_open_device(*device);
	}
	ibv_free_device_list(devices);
	assert_non_null(context);
	return context;
}

void bed_open(struct bed_end *end, const char *name) {
	memset(end, 0, sizeof(*end));
	end->context = open_device(name);
	end->pd = ibv_alloc_pd(end->context);
	assert_non_null(end->pd);
	end->channel = ibv_create_comp_channel(end->context);
	assert_non_null(end->channel);
	end->cq = ibv_create_cq(end->context, 4 * BED_DEPTH, end, end->channel, 0);
	assert_non_null(end->cq);
	assert_ptr_equal(end->cq->cq_context, end);
	end->memory = aligned_alloc(4096, BED_BYTES);
	assert_non_null(end->memory);
	memset(end->memory, 0, BED_BYTES);
	end->mr = ibv_reg_mr(end->pd, end->memory, BED_BYTES, ACCESS);
	assert_non_null(end->mr);
	assert_int_equal(ibv_query_gid(end->context, 1, BED_GID_INDEX, &end->gid), 0);
}

void bed_close(struct bed_end *end) {
	if (end->srq != NULL)
		assert_int_equal(ibv_destroy_srq(end->srq), 0);
	assert_int_equal(ibv_dereg_mr(end->mr), 0);
	free(end->memory);
	assert_int_equal(ibv_destroy_cq(end->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(end->channel), 0);
	assert_int_equal(ibv_dealloc_pd(end->pd), 0);
	assert_int_equal(ibv_close_device(end->context), 0);
}

struct ibv_qp *bed_qp(struct bed_end *end) {
	struct ibv_qp_init_attr init = {
		.qp_context = end,
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.srq = end->srq,
		.cap = {BED_DEPTH, BED_DEPTH, 2, 2, 64},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
	};
	struct ibv_qp *qp = ibv_create_qp(end->pd, &init);

	assert_non_null(qp);
	assert_ptr_equal(qp->qp_context, end);
	assert_int_equal(
		ibv_modify_qp(
			qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
		),
		0
	);
	return qp;
}

struct bed_address bed_address(const struct bed_end *end, const struct ibv_qp *qp) {
	return (struct bed_address){
		.gid = end->gid,
		.qp_number = qp->qp_num,
		.rkey = end->mr->rkey,
		.memory = (uintptr_t)end->memory,
	};
}

void bed_connect(struct ibv_qp *qp, const struct bed_address *to) {
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qp_number,
		.rq_psn = 0xfffffe, // wraps around soon
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr =
			{
				.is_global = 1,
				.port_num = 1,
				.grh = {.dgid = to->gid,
					.sgid_index = BED_GID_INDEX,
					.hop_limit = 64},
			},
	};

	assert_int_equal(
		ibv_modify_qp(
			qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
		),
		0
	);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 0xfffffe,
		// Two seconds, eight times: a peer may wait that long for a processor.
		.timeout = 19,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	assert_int_equal(
		ibv_modify_qp(
			qp, &attr,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC
		),
		0
	);
}

void bed_pair(struct bed_end *a, struct ibv_qp **ret_a, struct bed_end *b, struct ibv_qp **ret_b) {
	struct ibv_qp *qp_a = bed_qp(a);
	struct ibv_qp *qp_b = bed_qp(b);
	struct bed_address to_a = bed_address(a, qp_a);
	struct bed_address to_b = bed_address(b, qp_b);

	bed_connect(qp_a, &to_b);
	bed_connect(qp_b, &to_a);
	*ret_a = qp_a;
	*ret_b = qp_b;
}

struct ibv_wc bed_poll(struct ibv_cq *cq) {
	struct ibv_wc wc;
	int count;

	do {
		count = ibv_poll_cq(cq, 1, &wc);
	} while (count == 0);
	assert_int_equal(count, 1);
	return wc;
}

void bed_post(
	const struct bed_end *end,
	struct ibv_qp *qp,
	const struct bed_address *to,
	const struct bed_request *request
) {
	struct ibv_sge sge = {
		.addr = (uintptr_t)end->memory + request->offset,
		.length = request->length,
		.lkey = end->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = request->wr_id,
		.sg_list = &sge,
		.num_sge = request->length > 0,
		.opcode = request->opcode,
		.send_flags = IBV_SEND_SIGNALED | request->flags,
		.imm_data = request->immediate,
	};
	struct ibv_send_wr *bad = NULL;

	if (request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    request->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = to->memory;
		wr.wr.atomic.rkey = to->rkey + request->rkey_error;
		wr.wr.atomic.compare_add = request->compare_add;
		wr.wr.atomic.swap = request->swap;
	} else {
		wr.wr.rdma.remote_addr = to->memory;
		wr.wr.rdma.rkey = to->rkey + request->rkey_error;
	}
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

void bed_receive(
	const struct bed_end *end,
	struct ibv_qp *qp,
	uint64_t wr_id,
	uint32_t offset,
	uint32_t length
) {
	struct ibv_sge sge = {
		.addr = (uintptr_t)end->memory + offset,
		.length = length,
		.lkey = end->mr->lkey,
	};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = length > 0};
	struct ibv_recv_wr *bad = NULL;

	if (end->srq != NULL)
		assert_int_equal(ibv_post_srq_recv(end->srq, &wr, &bad), 0);
	else
		assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}
