// SPDX-License-Identifier: BSD-3-Clause
// Life cycle of pairs: connect, break in a random way, and connect again.
#include "dataplane/soft/transport/model.h"
#include "transport/qp.h"

#include <lib/container.h>

static const struct verbs_calls *const calls = &verbs_calls_soft;

static void modify(struct end *end, struct ibv_qp_attr *attr, int mask) {
	int err = calls->modify_qp(end->qp, attr, mask);

	model_must(end->model, err == 0, "modify_qp to state %d says %d", attr->qp_state, err);
}

static void to_init(struct end *end) {
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	modify(end, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static enum ibv_mtu mtu_of(uint32_t bytes) {
	return (enum ibv_mtu)(__builtin_ctz(bytes) - 7);
}

static void to_rtr(struct end *end, uint32_t psn) {
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_of(end->pair->mtu),
		.dest_qp_num = end->peer->qp->qp_num,
		.rq_psn = psn,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = (uint8_t)(1 + below(end->model, 18)),
		.ah_attr = {.is_global = 1, .port_num = 1},
	};

	attr.ah_attr.grh.sgid_index = 1;
	attr.ah_attr.grh.hop_limit = 64;
	attr.ah_attr.grh.dgid.raw[10] = attr.ah_attr.grh.dgid.raw[11] = 0xff;
	memcpy(attr.ah_attr.grh.dgid.raw + 12, end->peer->device->address.address, 4);
	modify(end, &attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static void to_rts(struct end *end, uint32_t psn) {
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = end->timeout,
		.retry_cnt = end->retries,
		.rnr_retry = end->rnr_retries,
		.max_rd_atomic = (uint8_t)(1 + below(end->model, one_in(end->model, 2) ? 2 : 16)),
	};

	modify(end, &attr,
	       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

// Return a random first PSN; half of them are near the wrap.
static uint32_t draw_psn(struct model *model) {
	return one_in(model, 2) ? 0xffffff - below(model, 60) : below(model, 1U << 24);
}

// Wait until frames of an earlier connection have expired, if a queue pair kept its number.
static void wait_until_quiet(struct pair *pair) {
	struct model *model = pair->ends[0].model;

	if (!pair->ends[0].number_stays && !pair->ends[1].number_stays)
		return;
	turn_all(model);
	while (clock_now_ns(&model->clock) < pair->down_ns + model->quiet_ns) {
		clock_advance(&model->clock, 10000);
		turn_all(model);
	}
}

void pair_connect(struct pair *pair) {
	struct end *ends = pair->ends;
	struct model *model = ends[0].model;
	uint32_t psn[2];

	wait_until_quiet(pair);
	for (uint32_t e = 0; e < 2; e++) {
		psn[e] = draw_psn(model);
		to_init(&ends[e]);
		if (one_in(model, 2))
			post_receive(&ends[e]);
	}
	for (uint32_t e = 0; e < 2; e++)
		to_rtr(&ends[e], psn[1 - e]);
	for (uint32_t e = 0; e < 2; e++)
		to_rts(&ends[e], psn[e]);
	pair->up = true;
	pair->epoch++;
	model_trace(
		model, "pair %ld: qp %u of %s at psn 0x%x, qp %u of %s at psn 0x%x, mtu %u",
		(long)(pair - model->pairs), ends[0].qp->qp_num, ends[0].device->name, psn[0],
		ends[1].qp->qp_num, ends[1].device->name, psn[1], pair->mtu
	);
}

void pair_spoil(struct pair *pair) {
	pair->spoils++;
}

void async_drain(struct model *model) {
	struct ibv_async_event event;

	for (uint32_t d = 0; d < model->device_count; d++) {
		while (calls->get_async_event(model->devices[d].context, &event) == 0) {
			model_must(
				model, event.event_type != IBV_EVENT_CQ_ERR, "a queue was overrun"
			);
			calls->ack_async_event(&event);
		}
	}
}

// Move the queue pair to ERR. All its requests must be flushed, and their completions be visible,
// at once.
static void end_flush(struct end *end) {
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct model *model = end->model;

	modify(end, &attr, IBV_QP_STATE);
	if (one_in(model, 2))
		turn_all(model);
	poll_all(model);
	end_finish_unsignalled(end);
	model_must(
		model, end->head == end->tail, "qp %u is in error, and %u works did not complete",
		end->qp->qp_num, end->tail - end->head
	);
	model_must(
		model, end->receive_head == end->receive_tail,
		"qp %u is in error, and %u receives did not complete", end->qp->qp_num,
		end->receive_tail - end->receive_head
	);
	if (one_in(model, 2)) {
		end->failed = end->receives_failed = true;
		post_work(end);
		post_receive(end);
		poll_all(model);
		model_must(
			model, end->head == end->tail && end->receive_head == end->receive_tail,
			"what was posted in error did not complete"
		);
	}
}

static void end_take_down(struct end *end) {
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct model *model = end->model;
	int err;

	if (one_in(model, 2))
		poll_all(model);
	if (one_in(model, 2))
		end_flush(end);
	end->number_stays = one_in(model, 2);
	model_trace(
		model, "qp %u is %s", end->qp->qp_num, end->number_stays ? "reset" : "destroyed"
	);
	if (end->number_stays) {
		modify(end, &attr, IBV_QP_STATE);
		end_forget(end);
		return;
	}
	async_drain(model);
	err = calls->destroy_qp(end->qp);
	model_must(model, err == 0, "destroy_qp says %d", err);
	end_forget(end);
	end->qp = NULL;
	end_create_qp(end);
}

static void linger(struct model *model) {
	uint32_t turns = below(model, 4);

	if (one_in(model, 2))
		return;
	for (uint32_t n = 0; n < turns; n++) {
		turn_all(model);
		if (!one_in(model, 3))
			poll_all(model);
		if (one_in(model, 2))
			advance(model);
	}
}

void pair_break(struct pair *pair) {
	struct model *model = pair->ends[0].model;
	uint32_t first = below(model, 2);

	pair->up = false;
	model->broke = true;
	pair_spoil(pair);
	end_take_down(&pair->ends[first]);
	linger(model);
	end_take_down(&pair->ends[1 - first]);
	pair->down_ns = clock_now_ns(&model->clock);
	pair_settle(pair);
}

static bool is_posted(const struct device *device, const struct receive *receive) {
	const struct soft_srq *srq = container_of(device->srq, struct soft_srq, verbs);
	const struct model *model = device->model;

	for (uint32_t at = srq->queue.head; at != srq->queue.tail; at++) {
		if (srq->queue.works[at & (srq->queue.capacity - 1)].wr_id >> 1 == receive->id)
			return true;
	}
	for (uint32_t p = 0; p < model->pair_count; p++) {
		for (uint32_t e = 0; e < 2; e++) {
			const struct end *end = &model->pairs[p].ends[e];
			const struct soft_qp *qp = container_of(end->qp, struct soft_qp, verbs);

			if (end->device == device && qp->responder.receiving &&
			    qp->responder.receive.wr_id >> 1 == receive->id)
				return true;
		}
	}
	return false;
}

// Free receives that a queue pair had taken from a shared queue before its reset. They get no
// completion.
void srqs_reclaim(struct model *model) {
	for (uint32_t d = 0; d < model->device_count; d++) {
		struct device *device = &model->devices[d];

		for (uint32_t i = 0; i < device->srq_slots; i++) {
			if (!is_posted(device, &device->srq_receives[i]))
				device->srq_receives[i].id = 0;
		}
	}
}

void pair_settle(struct pair *pair) {
	for (uint32_t e = 0; e < 2; e++)
		adopt_target(&pair->ends[e]);
	for (uint32_t e = 0; e < 2; e++) {
		struct end *end = &pair->ends[e];

		end->kept = end->head = end->tail;
		end->arena_head = end->arena_tail;
		end->incoming_head = end->incoming_tail;
		end->failed = end->receives_failed = end->bad_receives = false;
		end->unsignalled = 0;
	}
	pair->spoils = 0;
}
