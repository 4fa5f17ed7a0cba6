// SPDX-License-Identifier: BSD-3-Clause
// Tests of all state transitions of a queue pair, with each attribute missing, superfluous, or out
// of range.
#include "dataplane/soft/soft_bed.h"

#include <support/cases.h>

#include <errno.h>
#include <string.h>

static const struct verbs_calls *const calls = &verbs_calls_soft;

static const enum ibv_qp_state states[] = {
	IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR,
};

// Transitions of InfiniBand's table of modifiers (1.3, 11.2.5.2); the attributes follow below.
static const struct {
	enum ibv_qp_state from, to;
} transitions[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT}, {IBV_QPS_INIT, IBV_QPS_INIT}, {IBV_QPS_INIT, IBV_QPS_RTR},
	{IBV_QPS_RTR, IBV_QPS_RTS},    {IBV_QPS_RTS, IBV_QPS_RTS},   {IBV_QPS_RTS, IBV_QPS_SQD},
	{IBV_QPS_SQD, IBV_QPS_RTS},    {IBV_QPS_SQD, IBV_QPS_SQD},
};

// One letter per transition: r required, o optional, - refused.
static const struct {
	int bit;
	const char *rules;
} attributes[] = {
	{IBV_QP_CUR_STATE, "---oo-o-"},
	{IBV_QP_EN_SQD_ASYNC_NOTIFY, "-----o--"},
	{IBV_QP_ACCESS_FLAGS, "roooo-oo"},
	{IBV_QP_PKEY_INDEX, "roo----o"},
	{IBV_QP_PORT, "ro-----o"},
	{IBV_QP_QKEY, "--------"}, // for datagrams only
	{IBV_QP_AV, "--r----o"},
	{IBV_QP_PATH_MTU, "--r-----"},
	{IBV_QP_TIMEOUT, "---r---o"},
	{IBV_QP_RETRY_CNT, "---r---o"},
	{IBV_QP_RNR_RETRY, "---r---o"},
	{IBV_QP_RQ_PSN, "--r-----"},
	{IBV_QP_MAX_QP_RD_ATOMIC, "---r---o"},
	{IBV_QP_ALT_PATH, "--------"}, // a device with one port cannot migrate
	{IBV_QP_MIN_RNR_TIMER, "--roo-oo"},
	{IBV_QP_SQ_PSN, "---r----"},
	{IBV_QP_MAX_DEST_RD_ATOMIC, "--r----o"},
	{IBV_QP_PATH_MIG_STATE, "---oo-oo"},
	{IBV_QP_CAP, "--------"}, // queues cannot be resized
	{IBV_QP_DEST_QPN, "--r-----"},
	{IBV_QP_RATE_LIMIT, "--------"},
};

// Return the attributes that have one of these letters for a transition.
static int mask_of(size_t transition, const char *letters) {
	int mask = 0;

	for (size_t a = 0; a < COUNT_OF(attributes); a++) {
		if (strchr(letters, attributes[a].rules[transition]) != NULL)
			mask |= attributes[a].bit;
	}
	return mask;
}

// Return the index of a transition, or COUNT_OF(transitions).
static size_t transition_of(enum ibv_qp_state from, enum ibv_qp_state to) {
	size_t n = 0;

	while (n < COUNT_OF(transitions) && (transitions[n].from != from || transitions[n].to != to)
	)
		n++;
	return n;
}

static const struct bed_end *peer(void) {
	return &bed.ends[1];
}

// Return attributes in which every field is valid.
static struct ibv_qp_attr sound(enum ibv_qp_state from, enum ibv_qp_state to) {
	struct ibv_qp_attr attr = bed_rtr_attr(peer(), peer()->qp->qp_num);
	const struct ibv_qp_attr rts = bed_rts_attr();

	attr.qp_state = to;
	attr.cur_qp_state = from;
	attr.port_num = 1;
	attr.qp_access_flags = BED_RIGHTS;
	attr.timeout = rts.timeout;
	attr.retry_cnt = rts.retry_cnt;
	attr.rnr_retry = rts.rnr_retry;
	attr.sq_psn = rts.sq_psn;
	attr.max_rd_atomic = rts.max_rd_atomic;
	return attr;
}

static struct ibv_qp *make(enum ibv_qp_state state) {
	struct bed_end *end = &bed.ends[0];
	struct ibv_qp_init_attr init = bed_qp_attr(end);
	struct ibv_qp_attr attr = sound(IBV_QPS_RESET, state);
	struct ibv_qp *qp = NULL;

	assert_int_equal(calls->create_qp(end->pd, &init, &qp), 0);
	if (state == IBV_QPS_ERR)
		assert_int_equal(calls->modify_qp(qp, &attr, IBV_QP_STATE), 0);
	else if (state != IBV_QPS_RESET)
		assert_int_equal(bed_to_init(qp), 0);
	if (state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD) {
		attr.qp_state = IBV_QPS_RTR;
		assert_int_equal(calls->modify_qp(qp, &attr, bed_rtr_mask), 0);
	}
	if (state == IBV_QPS_RTS || state == IBV_QPS_SQD) {
		attr.qp_state = IBV_QPS_RTS;
		assert_int_equal(calls->modify_qp(qp, &attr, bed_rts_mask), 0);
	}
	if (state == IBV_QPS_SQD) {
		attr.qp_state = IBV_QPS_SQD;
		assert_int_equal(calls->modify_qp(qp, &attr, IBV_QP_STATE), 0);
	}
	assert_int_equal(qp->state, state);
	return qp;
}

static int try(enum ibv_qp_state from, enum ibv_qp_state to, int mask) {
	struct ibv_qp_attr attr = sound(from, to);
	struct ibv_qp *qp = make(from);
	int err = calls->modify_qp(qp, &attr, mask);

	assert_int_equal(qp->state, err == 0 ? to : from);
	assert_int_equal(calls->destroy_qp(qp), 0);
	return err;
}

static void each_attribute_is_needed_allowed_or_refused(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(transitions); n++) {
		const enum ibv_qp_state from = transitions[n].from, to = transitions[n].to;
		int required = mask_of(n, "r") | IBV_QP_STATE;

		assert_int_equal(try(from, to, required), 0);
		assert_int_equal(try(from, to, required | mask_of(n, "o")), 0);
		for (size_t a = 0; a < COUNT_OF(attributes); a++) {
			char rule = attributes[a].rules[n];
			int bit = attributes[a].bit;
			int mask = rule == 'r' ? required & ~bit : required | bit;

			assert_int_equal(try(from, to, mask), rule == 'o' ? 0 : -EINVAL);
		}
	}
}

static bool is_allowed(enum ibv_qp_state from, enum ibv_qp_state to) {
	return transition_of(from, to) < COUNT_OF(transitions) || to == IBV_QPS_RESET ||
	       to == IBV_QPS_ERR;
}

static void other_transitions_are_refused_whatever_comes_with_them(void **state) {
	(void)state;
	for (size_t f = 0; f < COUNT_OF(states); f++) {
		for (size_t t = 0; t < COUNT_OF(states); t++) {
			if (is_allowed(states[f], states[t]))
				continue;
			assert_int_equal(try(states[f], states[t], IBV_QP_STATE), -EINVAL);
			assert_int_equal(try(states[f], states[t], bed_rtr_mask), -EINVAL);
			assert_int_equal(try(states[f], states[t], bed_rts_mask), -EINVAL);
		}
		assert_int_equal(try(states[f], IBV_QPS_SQE, IBV_QP_STATE), -EINVAL);
		assert_int_equal(try(states[f], IBV_QPS_UNKNOWN, IBV_QP_STATE), -EINVAL);
	}
}

static void every_state_goes_to_error_and_to_reset_with_nothing_else(void **state) {
	static const enum ibv_qp_state ends[] = {IBV_QPS_RESET, IBV_QPS_ERR};

	(void)state;
	for (size_t f = 0; f < COUNT_OF(states); f++) {
		for (size_t t = 0; t < COUNT_OF(ends); t++) {
			assert_int_equal(try(states[f], ends[t], IBV_QP_STATE), 0);
			for (size_t a = 0; a < COUNT_OF(attributes); a++)
				assert_int_equal(
					try(states[f], ends[t], IBV_QP_STATE | attributes[a].bit),
					-EINVAL
				);
		}
	}
}

// One value of one attribute, in a transition that uses it.
#define VALUE(from_, to_, field, value_, sound_)                                        \
	{                                                                               \
		.from = IBV_QPS_##from_, .to = IBV_QPS_##to_,                           \
		.offset = offsetof(struct ibv_qp_attr, field),                          \
		.size = sizeof(((struct ibv_qp_attr *)NULL)->field), .value = (value_), \
		.is_sound = (sound_)                                                    \
	}

static const struct {
	enum ibv_qp_state from, to;
	size_t offset, size;
	uint32_t value;
	bool is_sound;
} values[] = {
	VALUE(RESET, INIT, port_num, 0, false),
	VALUE(RESET, INIT, port_num, 2, false),
	VALUE(RESET, INIT, pkey_index, 1, false),
	VALUE(RESET, INIT, qp_access_flags, 0, true),
	VALUE(RESET, INIT, qp_access_flags, IBV_ACCESS_REMOTE_READ, true),
	VALUE(RESET, INIT, qp_access_flags, IBV_ACCESS_MW_BIND, false),
	VALUE(RESET, INIT, qp_access_flags, UINT32_C(1) << 31, false),
	VALUE(INIT, RTR, path_mtu, 0, false),
	VALUE(INIT, RTR, path_mtu, IBV_MTU_256, true),
	VALUE(INIT, RTR, path_mtu, IBV_MTU_4096, true),
	VALUE(INIT, RTR, path_mtu, IBV_MTU_4096 + 1, false),
	VALUE(INIT, RTR, path_mtu, UINT32_MAX, false),
	VALUE(INIT, RTR, dest_qp_num, 0xffffff, true),
	VALUE(INIT, RTR, dest_qp_num, 0x1000000, false),
	VALUE(INIT, RTR, rq_psn, 0xffffff, true),
	VALUE(INIT, RTR, rq_psn, 0x1000000, false),
	VALUE(INIT, RTR, max_dest_rd_atomic, 0, true),
	VALUE(INIT, RTR, max_dest_rd_atomic, 17, false),
	VALUE(INIT, RTR, min_rnr_timer, 31, true),
	VALUE(INIT, RTR, min_rnr_timer, 32, false),
	VALUE(INIT, RTR, ah_attr.is_global, 0, false),
	VALUE(INIT, RTR, ah_attr.port_num, 0, false),
	VALUE(INIT, RTR, ah_attr.port_num, 2, false),
	VALUE(INIT, RTR, ah_attr.sl, 15, true),
	VALUE(INIT, RTR, ah_attr.sl, 16, false),
	VALUE(INIT, RTR, ah_attr.grh.sgid_index, 1, true), // index 1 is the same address
	VALUE(INIT, RTR, ah_attr.grh.sgid_index, 2, false),
	VALUE(INIT, RTR, ah_attr.grh.flow_label, 0xfffff, true),
	VALUE(INIT, RTR, ah_attr.grh.flow_label, UINT32_MAX, true),
	VALUE(INIT, RTR, ah_attr.grh.hop_limit, 0, true),
	VALUE(INIT, RTR, ah_attr.grh.dgid.raw[10], 0, false), // an IPv6 address on an IPv4 wire
	VALUE(INIT, RTR, ah_attr.grh.dgid.raw[12], 224, false),
	VALUE(INIT, RTR, ah_attr.grh.dgid.raw[12], 0, false),
	VALUE(RTR, RTS, sq_psn, 0xffffff, true),
	VALUE(RTR, RTS, sq_psn, 0x1000000, false),
	VALUE(RTR, RTS, max_rd_atomic, 0, true),
	VALUE(RTR, RTS, max_rd_atomic, 17, false),
	VALUE(RTR, RTS, timeout, 0, true),
	VALUE(RTR, RTS, timeout, 31, true),
	VALUE(RTR, RTS, timeout, 32, false),
	VALUE(RTR, RTS, retry_cnt, 0, true),
	VALUE(RTR, RTS, retry_cnt, 8, false),
	VALUE(RTR, RTS, rnr_retry, 0, true),
	VALUE(RTR, RTS, rnr_retry, 8, false),
	VALUE(RTS, RTS, cur_qp_state, IBV_QPS_RTR, false),
	VALUE(RTS, RTS, path_mig_state, IBV_MIG_ARMED, false),
	VALUE(SQD, SQD, timeout, 32, false),
	VALUE(SQD, SQD, ah_attr.grh.sgid_index, 2, false),
};

static int mask_for(enum ibv_qp_state from, enum ibv_qp_state to) {
	return mask_of(transition_of(from, to), "ro") | IBV_QP_STATE;
}

// A refused change must leave the queue pair unchanged.
static void values_out_of_range_are_refused(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(values); n++) {
		struct ibv_qp_attr attr = sound(values[n].from, values[n].to), before, after;
		struct ibv_qp *qp = make(values[n].from);
		struct ibv_qp_init_attr init;
		int err;

		memcpy((char *)&attr + values[n].offset, &values[n].value, values[n].size);
		assert_int_equal(calls->query_qp(qp, 0, &before, &init), 0);
		err = calls->modify_qp(qp, &attr, mask_for(values[n].from, values[n].to));
		if (err != (values[n].is_sound ? 0 : -EINVAL))
			print_error("values[%zu]\n", n);
		assert_int_equal(err, values[n].is_sound ? 0 : -EINVAL);
		assert_int_equal(qp->state, err == 0 ? values[n].to : values[n].from);
		assert_int_equal(calls->query_qp(qp, 0, &after, &init), 0);
		if (err != 0)
			assert_memory_equal(&before, &after, sizeof(before));
		assert_int_equal(calls->destroy_qp(qp), 0);
	}
}

static void what_was_set_is_what_is_queried(void **state) {
	struct ibv_qp *qp = make(IBV_QPS_RTS);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	(void)state;
	assert_int_equal(calls->query_qp(qp, 0, &attr, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.cur_qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.path_mtu, IBV_MTU_1024);
	assert_int_equal(attr.dest_qp_num, peer()->qp->qp_num);
	assert_int_equal(attr.timeout, 14);
	assert_int_equal(attr.retry_cnt, 7);
	assert_int_equal(attr.qp_access_flags, BED_RIGHTS);
	assert_int_equal(attr.cap.max_send_wr, 64);
	assert_int_equal(init.cap.max_inline_data, 64);
	assert_ptr_equal(init.send_cq, bed.ends[0].cq);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_int_equal(calls->destroy_qp(qp), 0);
}

static void a_reset_forgets_all(void **state) {
	struct bed_end *end = &bed.ends[0];
	struct ibv_sge sge = {(uintptr_t)end->bytes, 8, end->mr->lkey};
	struct ibv_send_wr send =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND,
					   .send_flags = IBV_SEND_SIGNALED,
				   },
			   *bad_send;
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;
	struct ibv_qp *qp = make(IBV_QPS_RTS);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init;

	(void)state;
	assert_int_equal(ibv_post_send(qp, &send, &bad_send), 0);
	assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), 0);
	assert_int_equal(calls->modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RESET;
	assert_int_equal(calls->modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_true(bed_is_quiet(end));
	assert_int_equal(ibv_post_send(qp, &send, &bad_send), EINVAL);
	assert_ptr_equal(bad_send, &send);
	assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), EINVAL);
	assert_ptr_equal(bad_receive, &receive);
	assert_int_equal(calls->query_qp(qp, 0, &attr, &init), 0);
	assert_int_equal(attr.dest_qp_num, 0);
	assert_int_equal(attr.port_num, 0);
	assert_int_equal(attr.cap.max_send_wr, 64);
	bed_run(UINT64_C(10000000000));
	assert_true(bed_is_quiet(end));
	assert_int_equal(calls->destroy_qp(qp), 0);
}

static void what_waits_in_error_is_flushed_in_order(void **state) {
	struct bed_end *end = &bed.ends[0];
	struct ibv_sge sge = {(uintptr_t)end->bytes, 8, end->mr->lkey};
	struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;
	struct ibv_qp *qp = make(IBV_QPS_RTS);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_wc wcs[8];

	(void)state;
	for (send.wr_id = 0; send.wr_id < 2; send.wr_id++)
		assert_int_equal(ibv_post_send(qp, &send, &bad_send), 0);
	for (receive.wr_id = 10; receive.wr_id < 12; receive.wr_id++)
		assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), 0);
	assert_int_equal(calls->modify_qp(qp, &attr, IBV_QP_STATE), 0);
	send.wr_id = 2;
	assert_int_equal(ibv_post_send(qp, &send, &bad_send), 0);
	receive.wr_id = 12;
	assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), 0);
	assert_int_equal(ibv_poll_cq(end->cq, 8, wcs), 6);
	for (int n = 0; n < 6; n++) {
		static const uint64_t ids[] = {0, 1, 10, 11, 2, 12};

		assert_int_equal(wcs[n].status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wcs[n].wr_id, ids[n]);
		assert_int_equal(wcs[n].qp_num, qp->qp_num);
	}
	assert_int_equal(calls->destroy_qp(qp), 0);
}

static void a_drained_send_queue_is_told_once(void **state) {
	struct bed_end *end = &bed.ends[0];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_async_event event;

	(void)state;
	assert_int_equal(
		calls->modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0
	);
	bed_run(0);
	assert_int_equal(calls->get_async_event(end->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	assert_ptr_equal(event.element.qp, end->qp);
	calls->ack_async_event(&event);
	assert_int_equal(calls->get_async_event(end->context, &event), -EAGAIN);
}

UNIT_GROUP(soft_qp_modify) {
#define BED(test) cmocka_unit_test_setup_teardown(test, bed_make, bed_end)
	const struct CMUnitTest tests[] = {
		BED(each_attribute_is_needed_allowed_or_refused),
		BED(other_transitions_are_refused_whatever_comes_with_them),
		BED(every_state_goes_to_error_and_to_reset_with_nothing_else),
		BED(values_out_of_range_are_refused),
		BED(what_was_set_is_what_is_queried),
		BED(a_reset_forgets_all),
		BED(what_waits_in_error_is_flushed_in_order),
		BED(a_drained_send_queue_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
