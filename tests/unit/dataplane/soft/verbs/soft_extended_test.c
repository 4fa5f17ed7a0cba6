// SPDX-License-Identifier: BSD-3-Clause
// Tests of completion queues with time stamps, polled as any program polls them.
#include "dataplane/soft/soft_bed.h"
#include "transport/cq.h"
#include "verbs/verbs_soft.h"

#include <support/cases.h>

#include <errno.h>
#include <time.h>

#define BOTH (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static const struct verbs_calls *const calls = &verbs_calls_soft;
static struct bed_end *const here = &bed.ends[0];

static struct ibv_cq_ex *make(uint64_t fields, uint32_t flags) {
	const struct ibv_cq_init_attr_ex attr = {
		.cqe = 4,
		.cq_context = here,
		.channel = here->channel,
		.wc_flags = fields,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = flags,
	};
	struct ibv_cq_ex *cq;

	assert_int_equal(calls->create_cq_ex(here->context, &attr, &cq), 0);
	return cq;
}

static void destroy(struct ibv_cq_ex *cq) {
	assert_int_equal(calls->destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void push(struct ibv_cq_ex *cq, uint64_t id) {
	const struct ibv_wc wc = {
		.wr_id = id,
		.opcode = IBV_WC_RECV,
		.byte_len = 7,
		.imm_data = 0x1234,
		.qp_num = 9,
		.wc_flags = IBV_WC_WITH_IMM,
	};

	nic_lock(nic_of(here->context));
	cq_push(soft_cq_of(ibv_cq_ex_to_cq(cq)), &wc, false);
	nic_unlock(nic_of(here->context));
}

static int start(struct ibv_cq_ex *cq) {
	struct ibv_poll_cq_attr attr = {.comp_mask = 0};

	return ibv_start_poll(cq, &attr);
}

static uint64_t wall_now_ns(void) {
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void each_completion_has_the_time_at_which_it_came_not_when_it_was_polled(void **state) {
	struct ibv_cq_ex *cq = make(IBV_WC_STANDARD_FLAGS | BOTH, 0);
	uint64_t first_ns = clock_now_ns(&bed.clock), before_ns = wall_now_ns();

	(void)state;
	push(cq, 1);
	clock_advance(&bed.clock, 1000);
	push(cq, 2);
	clock_advance(&bed.clock, 5000);
	assert_int_equal(start(cq), 0);
	assert_int_equal(cq->wr_id, 1);
	assert_int_equal(ibv_wc_read_completion_ts(cq), first_ns);
	assert_in_range(ibv_wc_read_completion_wallclock_ns(cq), before_ns, wall_now_ns());
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 2);
	assert_int_equal(ibv_wc_read_completion_ts(cq), first_ns + 1000);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	destroy(cq);
}

static void fields_read_as_those_of_a_plain_completion(void **state) {
	struct ibv_cq_ex *cq = make(IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);

	(void)state;
	assert_ptr_equal(cq->cq_context, here);
	push(cq, 1);
	assert_int_equal(start(cq), 0);
	assert_int_equal(cq->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(cq), 7);
	assert_int_equal(ibv_wc_read_imm_data(cq), 0x1234);
	assert_int_equal(ibv_wc_read_qp_num(cq), 9);
	assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_vendor_err(cq), 0);
	assert_int_equal(ibv_wc_read_src_qp(cq), 0);
	assert_int_equal(ibv_wc_read_slid(cq), 0);
	assert_int_equal(ibv_wc_read_sl(cq), 0);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 0);
	ibv_end_poll(cq);
	assert_int_equal(start(cq), ENOENT); // start may be called again
	assert_int_equal(start(cq), ENOENT);
	destroy(cq);
}

static void what_was_not_asked_for_has_no_reader(void **state) {
	struct ibv_cq_ex *cq = make(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0);

	(void)state;
	assert_non_null(cq->read_completion_ts);
	assert_null(cq->read_completion_wallclock_ns);
	assert_null(cq->read_byte_len);
	assert_null(cq->read_qp_num);
	destroy(cq);
}

static void stamps_move_with_their_completions_when_the_queue_is_resized(void **state) {
	struct ibv_cq_ex *cq = make(BOTH, 0);
	uint64_t first_ns = clock_now_ns(&bed.clock);

	(void)state;
	for (uint64_t id = 0; id < 4; id++) {
		push(cq, id);
		clock_advance(&bed.clock, 10);
	}
	assert_int_equal(soft_resize_cq(ibv_cq_ex_to_cq(cq), 64), 0);
	assert_int_equal(start(cq), 0);
	for (uint64_t id = 0; id < 4; id++) {
		assert_int_equal(cq->wr_id, id);
		assert_int_equal(ibv_wc_read_completion_ts(cq), first_ns + 10 * id);
		assert_int_equal(ibv_next_poll(cq), id < 3 ? 0 : ENOENT);
	}
	ibv_end_poll(cq);
	destroy(cq);
}

static void what_the_device_has_not_is_refused(void **state) {
	const struct {
		struct ibv_cq_init_attr_ex attr;
		int err;
	} rows[] = {
		{{.cqe = 4, .wc_flags = IBV_WC_EX_WITH_CVLAN}, -EOPNOTSUPP},
		{{.cqe = 4, .wc_flags = IBV_WC_EX_WITH_TM_INFO}, -EOPNOTSUPP},
		{{.cqe = 4, .wc_flags = UINT64_C(1) << 40}, -EOPNOTSUPP},
		{{.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD}, -EOPNOTSUPP},
		{{.cqe = 4,
		  .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		  .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN},
		 -EOPNOTSUPP},
		{{.cqe = 4, .comp_vector = 1}, -EINVAL},
		{{.cqe = 0}, -EINVAL},
	};
	struct ibv_cq_ex *cq = NULL;

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		assert_int_equal(
			calls->create_cq_ex(here->context, &rows[n].attr, &cq), rows[n].err
		);
	assert_null(cq);
}

static void the_clock_of_the_stamps_is_told(void **state) {
	struct ibv_device_attr_ex attr = {.comp_mask = 0};
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	(void)state;
	assert_int_equal(ibv_query_device_ex(here->context, NULL, &attr), 0);
	assert_int_equal(attr.completion_timestamp_mask, UINT64_MAX);
	assert_int_equal(attr.hca_core_clock, 1000000);
	assert_int_equal(ibv_query_rt_values_ex(here->context, &values), 0);
	assert_int_equal(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	assert_int_equal(values.raw_clock.tv_sec, 0);
	assert_int_equal(values.raw_clock.tv_nsec, clock_now_ns(&bed.clock));
	values.comp_mask = IBV_VALUES_MASK_RESERVED;
	assert_int_equal(ibv_query_rt_values_ex(here->context, &values), EINVAL);
	assert_int_equal(values.comp_mask, 0);
}

// This happens in the child of a fork.
static int poll_refused(struct ibv_cq *cq, int entries, struct ibv_wc *wcs) {
	(void)cq, (void)entries, (void)wcs;
	return -EIO;
}

static void a_queue_whose_context_was_buried_is_polled_in_vain(void **state) {
	struct ibv_cq_ex *cq = make(BOTH, 0);
	int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *) = here->context->ops.poll_cq;

	(void)state;
	push(cq, 1);
	here->context->ops.poll_cq = poll_refused;
	assert_int_equal(start(cq), EIO);
	here->context->ops.poll_cq = poll_cq;
	destroy(cq);
}

UNIT_GROUP(soft_extended) {
#define BED(test) cmocka_unit_test_setup_teardown(test, bed_make, bed_end)
	static const struct CMUnitTest tests[] = {
		BED(each_completion_has_the_time_at_which_it_came_not_when_it_was_polled),
		BED(fields_read_as_those_of_a_plain_completion),
		BED(what_was_not_asked_for_has_no_reader),
		BED(stamps_move_with_their_completions_when_the_queue_is_resized),
		BED(what_the_device_has_not_is_refused),
		BED(the_clock_of_the_stamps_is_told),
		BED(a_queue_whose_context_was_buried_is_polled_in_vain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
