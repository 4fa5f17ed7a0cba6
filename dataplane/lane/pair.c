// SPDX-License-Identifier: BSD-3-Clause
// One queue pair: create, connect, destroy.
#include "device/device_impl.h"
#include "lane/lane_impl.h"

#include <lib/must.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static uint8_t min_u8(uint8_t a, uint8_t b) {
	return a < b ? a : b;
}

// Allocate zeroed memory on the worker's node; the worker uses all of a pair.
static void *near_alloc_zeroed(struct near near, size_t size) {
	void *memory = near_alloc(near, size);

	if (memory != NULL)
		memset(memory, 0, size);
	return memory;
}

static size_t works_bytes(const struct lane_queue *queue) {
	return ((size_t)queue->mask + 1) * sizeof(queue->works[0]);
}

static int queue_init(struct near near, struct lane_queue *queue, uint32_t depth) {
	uint32_t size = 1;

	while (size < depth)
		size *= 2;
	queue->mask = size - 1;
	queue->depth = depth;
	queue->works = near_alloc_zeroed(near, works_bytes(queue));
	return queue->works != NULL ? 0 : -ENOMEM;
}

// If the device does not support this inline size, none is requested.
static int create_queue_pair(struct pair *pair, uint32_t inline_bytes) {
	const struct verbs_calls *calls = device_calls(pair->device);
	struct ibv_qp_init_attr attr = {
		.send_cq = pair->lane->cq,
		.recv_cq = pair->lane->cq,
		.cap =
			{
				.max_send_wr = pair->lane->depth,
				.max_recv_wr = pair->lane->depth,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = inline_bytes,
			},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_init_attr plain = attr;
	int err = calls->create_qp(device_pd(pair->device), &attr, &pair->qp);

	// A larger granted size is ignored.
	pair->inline_max = attr.cap.max_inline_data >= inline_bytes ? inline_bytes : 0;
	if (err != 0) {
		plain.cap.max_inline_data = pair->inline_max = 0;
		err = calls->create_qp(device_pd(pair->device), &plain, &pair->qp);
	}
	return err;
}

static int pair_to_init(struct pair *pair) {
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = (uint16_t)pair->facts.port.pkey_index,
		.port_num = pair->facts.port.number,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};

	if (pair->facts.limits.atomics)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
	return device_calls(pair->device)
		->modify_qp(
			pair->qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
		);
}

int pair_create(
	const struct pair_config *config,
	struct device_endpoint *ret_endpoint,
	struct pair **ret_pair
) {
	struct lane *lane = config->lane;
	const struct device_facts *facts;
	struct pair *pair;
	uint32_t slot = 0;
	int err;

	if (config->generation == 0 || config->psn >> 24 != 0)
		return -EINVAL;
	while (slot < lane->pair_max && lane->made[slot] != NULL)
		slot++;
	pair = near_alloc_zeroed(lane->near, sizeof(*pair));
	if (pair == NULL)
		return -ENOMEM;
	if (slot == lane->pair_max) {
		near_free(lane->near, pair, sizeof(*pair));
		return -ENOSPC;
	}
	lane->made[slot] = pair;
	pair->slot = slot;
	pair->lane = lane;
	pair->device = device_get(lane->device);
	pair->generation = config->generation;
	pair->psn = config->psn;
	pair->wr_base = (uint64_t)pair->slot << WR_SLOT_SHIFT |
			(uint64_t)(config->generation & GENERATION_MASK) << WR_GENERATION_SHIFT;
	histogram_log2_init(&pair->times);
	err = queue_init(lane->near, &pair->sends, lane->depth);
	if (err == 0)
		err = queue_init(lane->near, &pair->receives, lane->depth);
	// Query the port again, because GID indexes change when ports flap.
	if (err == 0)
		err = device_refresh(pair->device, &pair->facts);
	if (err == 0 && !pair->facts.usable)
		err = -ENETDOWN;
	if (err == 0)
		err = create_queue_pair(pair, config->inline_bytes);
	if (err == 0)
		err = pair_to_init(pair);
	if (err != 0) {
		(void)pair_destroy(pair); // on failure its lane destroys it
		return err;
	}
	pair->queue_number = pair->qp->qp_num;
	facts = &pair->facts;
	*ret_endpoint = (struct device_endpoint){
		.link = facts->port.link,
		.lid = facts->port.lid,
		.gid = facts->port.gid,
		.mtu = facts->port.active_mtu,
		.reads_in_max = facts->limits.reads_in_max,
		.reads_out_max = facts->limits.reads_out_max,
		.queue_number = pair->queue_number,
		.psn = pair->psn,
		.pkey = facts->port.pkey,
	};
	*ret_pair = pair;
	return 0;
}

static int
pair_to_rtr(struct pair *pair, const struct device_endpoint *theirs, uint32_t flow_label) {
	uint16_t mtu = pair->facts.port.active_mtu;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = device_mtu_code(theirs->mtu < mtu ? theirs->mtu : mtu),
		.dest_qp_num = theirs->queue_number,
		.rq_psn = theirs->psn,
		.max_dest_rd_atomic =
			min_u8(pair->facts.limits.reads_in_max, theirs->reads_out_max),
		.min_rnr_timer = device_settings(pair->device)->min_rnr_timer,
	};

	device_route(pair->device, &pair->facts, theirs, flow_label, &attr.ah_attr);
	return device_calls(pair->device)
		->modify_qp(
			pair->qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
		);
}

static int pair_to_rts(struct pair *pair, const struct device_endpoint *theirs) {
	const struct device_settings *settings = device_settings(pair->device);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = settings->timeout,
		.retry_cnt = settings->retry,
		.rnr_retry = settings->rnr_retry,
		.sq_psn = pair->psn,
		.max_rd_atomic = min_u8(pair->facts.limits.reads_out_max, theirs->reads_in_max),
	};

	return device_calls(pair->device)
		->modify_qp(
			pair->qp, &attr,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC
		);
}

int pair_connect(
	struct pair *pair,
	const struct device_endpoint *theirs,
	uint32_t flow_label,
	char ret_reason[static DEVICE_REASON_MAX + 1]
) {
	int err = device_endpoint_check(&pair->facts, theirs, ret_reason);
	const char *step = "ready to receive";

	if (err != 0)
		return err;
	err = pair_to_rtr(pair, theirs, flow_label);
	if (err == 0) {
		step = "ready to send";
		err = pair_to_rts(pair, theirs);
	}
	if (err != 0)
		snprintf(
			ret_reason, DEVICE_REASON_MAX + 1, "%s cannot make the queue pair %s: %s",
			pair->facts.name, step, strerrorname_np(-err)
		);
	return err;
}

int pair_fail(struct pair *pair) {
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (pair->qp == NULL)
		return 0;
	return device_calls(pair->device)->modify_qp(pair->qp, &attr, IBV_QP_STATE);
}

int pair_destroy_qp(struct pair *pair) {
	int err;

	if (pair->qp == NULL)
		return 0;
	err = device_release_result(pair->device, device_calls(pair->device)->destroy_qp(pair->qp));
	if (err == 0)
		pair->qp = NULL;
	return err;
}

int pair_destroy(struct pair *pair) {
	struct near near;
	int err;

	if (pair == NULL)
		return 0;
	err = pair_destroy_qp(pair);
	if (err != 0)
		return err;
	pair->lane->made[pair->slot] = NULL;
	device_put(pair->device);
	near = pair->lane->near;
	near_free(near, pair->sends.works, works_bytes(&pair->sends));
	near_free(near, pair->receives.works, works_bytes(&pair->receives));
	near_free(near, pair, sizeof(*pair));
	return 0;
}

uint32_t pair_slot(const struct pair *pair) {
	return pair->slot;
}

uint32_t pair_generation(const struct pair *pair) {
	return pair->generation;
}

uint32_t pair_queue_number(const struct pair *pair) {
	return pair->queue_number;
}

uint32_t pair_inline_bytes(const struct pair *pair) {
	return pair->inline_max;
}

const struct op_cause *pair_cause(const struct pair *pair) {
	return &pair->cause;
}

void pair_counters(const struct pair *pair, struct pair_counters *ret_counters) {
	for (int n = 0; n < OP_OUTCOME_COUNT; n++)
		ret_counters->ops[n] = atomic_load_explicit(&pair->ended[n], memory_order_relaxed);
	ret_counters->bytes_out = atomic_load_explicit(&pair->bytes_out, memory_order_relaxed);
	ret_counters->bytes_in = atomic_load_explicit(&pair->bytes_in, memory_order_relaxed);
}

int pair_times(const struct pair *pair, struct histogram_log2 *ret_times) {
	return histogram_log2_snapshot(&pair->times, ret_times);
}
