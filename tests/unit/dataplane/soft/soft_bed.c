// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/soft/soft_bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bed bed;

const int bed_rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
const int bed_rts_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

static const struct verbs_calls *const calls = &verbs_calls_soft;

struct soft_config bed_config(uint32_t n) {
	struct soft_config config = {
		.wire = SOFT_WIRE_MEMORY,
		.address = {.family = SOCK_ADDR_V4, .address = {10, 0, 0, (uint8_t)(n + 1)}},
		.clock = bed.live ? NULL : &bed.clock,
		.random_seed = n + 1,
	};

	snprintf(config.name, sizeof(config.name), "soft%u", n);
	return config;
}

int bed_make_bare(void **state) {
	uint32_t count = 0;

	(void)state;
	bed = (struct bed){.live = bed.live};
	clock_init_fake(&bed.clock, 1000000);
	for (uint32_t n = 0; n < 2; n++) {
		const struct soft_config config = bed_config(n);

		assert_int_equal(soft_device_add(&config), 0);
	}
	assert_int_equal(calls->device_list(&bed.devices, &count), 0);
	assert_int_equal(count, 2);
	for (uint32_t n = 0; n < 2; n++)
		assert_int_equal(calls->open(bed.devices[n], &bed.ends[n].context), 0);
	return 0;
}

struct ibv_qp_init_attr bed_qp_attr(const struct bed_end *end) {
	return (struct ibv_qp_init_attr
	){.send_cq = end->cq,
	  .recv_cq = end->cq,
	  .cap = {.max_send_wr = 64,
		  .max_recv_wr = 64,
		  .max_send_sge = 4,
		  .max_recv_sge = 4,
		  .max_inline_data = 64},
	  .qp_type = IBV_QPT_RC};
}

int bed_to_init(struct ibv_qp *qp) {
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = BED_RIGHTS,
	};

	return calls->modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS
	);
}

struct ibv_qp_attr bed_rtr_attr(const struct bed_end *peer, uint32_t qp_number) {
	struct ibv_gid_entry gids[2];
	uint32_t count = 0;

	assert_int_equal(calls->query_gids(peer->context, gids, 2, &count), 0);
	return (struct ibv_qp_attr
	){.qp_state = IBV_QPS_RTR,
	  .path_mtu = IBV_MTU_1024,
	  .dest_qp_num = qp_number,
	  .rq_psn = 0xfffff0,
	  .max_dest_rd_atomic = 16,
	  .min_rnr_timer = 1,
	  .ah_attr = {
		  .is_global = 1,
		  .port_num = 1,
		  .grh = {.dgid = gids[0].gid, .sgid_index = 0, .hop_limit = 64},
	  }};
}

struct ibv_qp_attr bed_rts_attr(void) {
	return (struct ibv_qp_attr
	){.qp_state = IBV_QPS_RTS,
	  .sq_psn = 0xfffff0,
	  .timeout = 14,
	  .retry_cnt = 7,
	  .rnr_retry = 7,
	  .max_rd_atomic = 16};
}

static void connect_one(struct ibv_qp *qp, const struct bed_end *peer, uint32_t qp_number) {
	struct ibv_qp_attr rtr = bed_rtr_attr(peer, qp_number), rts = bed_rts_attr();

	assert_int_equal(bed_to_init(qp), 0);
	assert_int_equal(calls->modify_qp(qp, &rtr, bed_rtr_mask), 0);
	assert_int_equal(calls->modify_qp(qp, &rts, bed_rts_mask), 0);
}

void bed_connect(struct bed_end *a, struct ibv_qp *qp_a, struct bed_end *b, struct ibv_qp *qp_b) {
	connect_one(qp_a, b, qp_b->qp_num);
	connect_one(qp_b, a, qp_a->qp_num);
}

static void end_make(struct bed_end *end) {
	struct ibv_qp_init_attr attr;

	end->bytes = calloc(1, BED_BYTES);
	assert_non_null(end->bytes);
	assert_int_equal(calls->alloc_pd(end->context, &end->pd), 0);
	assert_int_equal(calls->create_comp_channel(end->context, &end->channel), 0);
	assert_int_equal(calls->create_cq(end->context, 256, end->channel, &end->cq), 0);
	assert_int_equal(calls->reg_mr(end->pd, end->bytes, BED_BYTES, BED_RIGHTS, &end->mr), 0);
	attr = bed_qp_attr(end);
	assert_int_equal(calls->create_qp(end->pd, &attr, &end->qp), 0);
}

int bed_make(void **state) {
	bed_make_bare(state);
	for (uint32_t n = 0; n < 2; n++)
		end_make(&bed.ends[n]);
	bed_connect(&bed.ends[0], bed.ends[0].qp, &bed.ends[1], bed.ends[1].qp);
	return 0;
}

static void end_close(struct bed_end *end) {
	if (end->qp != NULL)
		assert_int_equal(calls->destroy_qp(end->qp), 0);
	if (end->mr != NULL)
		assert_int_equal(calls->dereg_mr(end->mr), 0);
	if (end->cq != NULL)
		assert_int_equal(calls->destroy_cq(end->cq), 0);
	if (end->channel != NULL)
		assert_int_equal(calls->destroy_comp_channel(end->channel), 0);
	if (end->pd != NULL)
		assert_int_equal(calls->dealloc_pd(end->pd), 0);
	if (end->context != NULL)
		assert_int_equal(calls->close(end->context), 0);
	free(end->bytes);
}

int bed_end(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 2; n++)
		end_close(&bed.ends[n]);
	calls->device_list_free(bed.devices);
	soft_devices_clear();
	return 0;
}

void bed_run(uint64_t within_ns) {
	uint64_t now_ns = clock_now_ns(&bed.clock), end_ns = now_ns + within_ns;

	for (;;) {
		uint64_t due_ns[2] = {0};
		uint64_t next_ns;
		bool moved = soft_turn(bed.ends[0].context, &due_ns[0]);

		moved |= soft_turn(bed.ends[1].context, &due_ns[1]);
		if (moved)
			continue;
		next_ns = due_ns[0] < due_ns[1] ? due_ns[0] : due_ns[1];
		if (next_ns > end_ns)
			return;
		now_ns = clock_now_ns(&bed.clock);
		clock_advance(&bed.clock, next_ns > now_ns ? next_ns - now_ns : 1);
	}
}

struct ibv_wc bed_wait(struct bed_end *end) {
	struct ibv_wc wc = {0};

	bed_run(0);
	assert_int_equal(ibv_poll_cq(end->cq, 1, &wc), 1);
	return wc;
}

bool bed_is_quiet(struct bed_end *end) {
	struct ibv_wc wc;

	return ibv_poll_cq(end->cq, 1, &wc) == 0;
}
