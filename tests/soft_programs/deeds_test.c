// SPDX-License-Identifier: BSD-3-Clause
// Tests of operations that Debian's programs do not use, in one process with two devices, soft0 and
// soft1.
#include "bed.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

static struct bed_end a, b;

static int open_both(void **state) {
	(void)state;
	bed_open(&a, "soft0");
	bed_open(&b, "soft1");
	return 0;
}

static int close_both(void **state) {
	(void)state;
	bed_close(&a);
	bed_close(&b);
	return 0;
}

static void destroy(struct ibv_qp *qp_a, struct ibv_qp *qp_b) {
	assert_int_equal(ibv_destroy_qp(qp_a), 0);
	assert_int_equal(ibv_destroy_qp(qp_b), 0);
}

static void expect_success(struct ibv_cq *cq, uint64_t wr_id) {
	struct ibv_wc wc = bed_poll(cq);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
}

static void two_devices_are_two_in_name_guid_and_address(void **state) {
	struct ibv_device_attr attr_a, attr_b;
	struct ibv_gid_entry entries[4];

	(void)state;
	assert_string_equal(ibv_get_device_name(a.context->device), "soft0");
	assert_string_equal(ibv_get_device_name(b.context->device), "soft1");
	assert_int_equal(ibv_query_device(a.context, &attr_a), 0);
	assert_int_equal(ibv_query_device(b.context, &attr_b), 0);
	assert_int_not_equal(attr_a.node_guid, attr_b.node_guid);
	assert_int_equal(attr_a.node_guid, ibv_get_device_guid(a.context->device));
	assert_memory_not_equal(a.gid.raw, b.gid.raw, sizeof(a.gid.raw));
	assert_int_equal(ibv_query_gid_table(a.context, entries, COUNT_OF(entries), 0), 2);
	assert_memory_equal(entries[BED_GID_INDEX].gid.raw, a.gid.raw, sizeof(a.gid.raw));
	assert_int_equal(entries[BED_GID_INDEX].gid_type, IBV_GID_TYPE_ROCE_V2);
}

static void a_write_with_immediate_tells_length_and_number(void **state) {
	struct ibv_qp *qp_a, *qp_b;
	struct bed_address to_b;
	struct ibv_wc wc;

	(void)state;
	bed_pair(&a, &qp_a, &b, &qp_b);
	to_b = bed_address(&b, qp_b);
	memset(a.memory, 0x5a, 5000);
	memset(b.memory, 0, BED_BYTES);
	bed_receive(&b, qp_b, 7, 0, 0);
	bed_post(
		&a, qp_a, &to_b,
		&(struct bed_request){
			.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
			.wr_id = 1,
			.length = 5000,
			.immediate = htobe32(0x12345678),
		}
	);
	wc = bed_poll(b.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.byte_len, 5000);
	assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
	assert_int_equal(be32toh(wc.imm_data), 0x12345678);
	assert_int_equal(wc.qp_num, qp_b->qp_num);
	assert_memory_equal(a.memory, b.memory, 5000);
	assert_int_equal(b.memory[5000], 0);
	expect_success(a.cq, 1);
	destroy(qp_a, qp_b);
}

// The acknowledgement may wait for the program's next call, which destroys the sender.
static void what_was_received_is_acknowledged_before_all_is_destroyed(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 50; n++) {
		struct ibv_qp *qp_a, *qp_b;
		struct bed_address to_b;

		bed_pair(&a, &qp_a, &b, &qp_b);
		to_b = bed_address(&b, qp_b);
		bed_receive(&b, qp_b, n, 0, 64);
		bed_post(
			&a, qp_a, &to_b,
			&(struct bed_request){.opcode = IBV_WR_SEND, .wr_id = n, .length = 8}
		);
		expect_success(b.cq, n);
		assert_int_equal(ibv_destroy_qp(qp_b), 0);
		expect_success(a.cq, n);
		assert_int_equal(ibv_destroy_qp(qp_a), 0);
	}
}

static void sends_wait_for_a_receive_that_comes_late(void **state) {
	struct ibv_qp *qp_a, *qp_b;
	struct bed_address to_b;
	struct ibv_wc wc;

	(void)state;
	bed_pair(&a, &qp_a, &b, &qp_b);
	to_b = bed_address(&b, qp_b);
	memcpy(a.memory, "late", 4);
	bed_post(
		&a, qp_a, &to_b,
		&(struct bed_request){.opcode = IBV_WR_SEND, .wr_id = 1, .length = 4}
	);
	assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 0);
	bed_receive(&b, qp_b, 2, 64, 64);
	expect_success(a.cq, 1);
	expect_success(b.cq, 2);
	assert_memory_equal(b.memory + 64, "late", 4);
	destroy(qp_a, qp_b);
}

#define SRQ_QPS 4

static void a_shared_receive_queue_serves_all_and_tells_when_it_runs_low(void **state) {
	struct ibv_srq_init_attr init = {.srq_context = &b, .attr = {BED_DEPTH, 1, 0}};
	struct ibv_srq_attr limit = {.srq_limit = SRQ_QPS};
	struct ibv_qp *qps_a[SRQ_QPS], *qps_b[SRQ_QPS];
	struct ibv_async_event event;
	struct ibv_srq_attr got;

	(void)state;
	b.srq = ibv_create_srq(b.pd, &init);
	assert_non_null(b.srq);
	assert_ptr_equal(b.srq->srq_context, &b);
	for (uint32_t n = 0; n < SRQ_QPS; n++) {
		bed_pair(&a, &qps_a[n], &b, &qps_b[n]);
		bed_receive(&b, NULL, n, n * 64, 64);
	}
	assert_int_equal(ibv_modify_srq(b.srq, &limit, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(b.srq, &got), 0);
	assert_int_equal(got.srq_limit, SRQ_QPS);
	for (uint32_t n = 0; n < SRQ_QPS; n++) {
		struct bed_address to_b = bed_address(&b, qps_b[n]);
		struct ibv_wc wc;

		a.memory[0] = (uint8_t)n;
		bed_post(
			&a, qps_a[n], &to_b,
			&(struct bed_request){.opcode = IBV_WR_SEND, .wr_id = 9, .length = 1}
		);
		expect_success(a.cq, 9);
		wc = bed_poll(b.cq);
		assert_int_equal(wc.wr_id, n);
		assert_int_equal(wc.qp_num, qps_b[n]->qp_num);
		assert_int_equal(b.memory[n * 64], n);
	}
	assert_int_equal(ibv_get_async_event(b.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, b.srq);
	ibv_ack_async_event(&event);
	for (uint32_t n = 0; n < SRQ_QPS; n++)
		destroy(qps_a[n], qps_b[n]);
	assert_int_equal(ibv_destroy_srq(b.srq), 0);
	b.srq = NULL;
}

static void a_completion_queue_grows_with_completions_in_it(void **state) {
	struct ibv_qp *qp_a, *qp_b;
	struct bed_address to_b;

	(void)state;
	bed_pair(&a, &qp_a, &b, &qp_b);
	to_b = bed_address(&b, qp_b);
	for (uint64_t n = 0; n < 20; n++)
		bed_post(
			&a, qp_a, &to_b,
			&(struct bed_request){.opcode = IBV_WR_RDMA_WRITE, .wr_id = n, .length = 8}
		);
	for (uint64_t n = 0; n < 10; n++)
		expect_success(a.cq, n);
	assert_int_equal(ibv_resize_cq(a.cq, 16 * BED_DEPTH), 0);
	assert_true(a.cq->cqe >= 16 * BED_DEPTH);
	for (uint64_t n = 10; n < 20; n++)
		expect_success(a.cq, n);
	assert_int_equal(ibv_resize_cq(a.cq, 0), EINVAL);
	destroy(qp_a, qp_b);
}

static void a_forged_key_ends_the_pair_and_its_owner_is_told(void **state) {
	struct pollfd told = {.fd = b.context->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	struct ibv_qp *qp_a, *qp_b;
	struct bed_address to_b;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	(void)state;
	bed_pair(&a, &qp_a, &b, &qp_b);
	to_b = bed_address(&b, qp_b);
	memset(a.memory, 1, 8);
	memset(b.memory, 0, 8);
	bed_post(
		&a, qp_a, &to_b,
		&(struct bed_request
		){.opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .length = 8, .rkey_error = 1}
	);
	bed_post(
		&a, qp_a, &to_b,
		&(struct bed_request){.opcode = IBV_WR_RDMA_WRITE, .wr_id = 2, .length = 8}
	);
	wc = bed_poll(a.cq);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	wc = bed_poll(a.cq);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(b.memory[0], 0);
	assert_int_equal(poll(&told, 1, -1), 1);
	assert_int_equal(ibv_get_async_event(b.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(event.element.qp, qp_b);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_query_qp(qp_b, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	destroy(qp_a, qp_b);
}

static void extended_calls_that_ask_for_nothing_more_are_the_plain_ones(void **state) {
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = a.cq,
		.recv_cq = a.cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = a.pd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(a.context, &attr);

	(void)state;
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	assert_null(ibv_create_qp_ex(a.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	assert_null(ibv_create_qp_ex(a.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = 0;
	assert_null(ibv_create_qp_ex(a.context, &attr));
	assert_int_equal(errno, EINVAL);
}

static void completions_of_extended_queues_have_time_stamps(void **state) {
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 8,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_poll_cq_attr poll_attr = {.comp_mask = 0};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(a.context, &attr);

	(void)state;
	assert_non_null(cq);
	assert_int_equal(ibv_start_poll(cq, &poll_attr), ENOENT);
	assert_int_equal(ibv_query_rt_values_ex(a.context, &values), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	attr.wc_flags = IBV_WC_EX_WITH_FLOW_TAG;
	assert_null(ibv_create_cq_ex(a.context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void refusals_have_the_habits_of_libibverbs(void **state) {
	struct ibv_qp_init_attr datagrams = {
		.send_cq = a.cq, .recv_cq = a.cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_UD};
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_qp *qp;
	__be16 pkey;

	(void)state;
	errno = 0;
	assert_null(ibv_create_qp(a.pd, &datagrams));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(ibv_create_ah(a.pd, &ah));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(ibv_create_cq(a.context, 0, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(a.context, 1, NULL, NULL, a.context->num_comp_vectors));
	assert_null(ibv_create_cq(a.context, 1 << 30, NULL, NULL, 0));
	assert_int_equal(ibv_query_port(a.context, 2, &port), EINVAL);
	assert_int_equal(ibv_query_port(a.context, 1, &port), 0);
	assert_int_equal(ibv_query_gid(a.context, 1, port.gid_tbl_len, &gid), -1);
	assert_int_equal(ibv_query_gid(a.context, 2, 0, &gid), -1);
	assert_int_equal(
		ibv_query_gid_ex(a.context, 1, (uint32_t)port.gid_tbl_len, &entry, 0), EINVAL
	);
	assert_int_equal(ibv_query_gid_table(a.context, &entry, 1, 0), -EINVAL);
	assert_int_equal(ibv_query_pkey(a.context, 1, 0, &pkey), 0);
	assert_int_equal(ibv_get_pkey_index(a.context, 1, pkey), 0);
	assert_int_equal(ibv_query_pkey(a.context, 1, port.pkey_tbl_len, &pkey), -1);
	qp = bed_qp(&a);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	assert_null(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_dealloc_pd(a.pd), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_devices_are_two_in_name_guid_and_address),
		cmocka_unit_test(a_write_with_immediate_tells_length_and_number),
		cmocka_unit_test(what_was_received_is_acknowledged_before_all_is_destroyed),
		cmocka_unit_test(sends_wait_for_a_receive_that_comes_late),
		cmocka_unit_test(a_shared_receive_queue_serves_all_and_tells_when_it_runs_low),
		cmocka_unit_test(a_completion_queue_grows_with_completions_in_it),
		cmocka_unit_test(a_forged_key_ends_the_pair_and_its_owner_is_told),
		cmocka_unit_test(extended_calls_that_ask_for_nothing_more_are_the_plain_ones),
		cmocka_unit_test(completions_of_extended_queues_have_time_stamps),
		cmocka_unit_test(refusals_have_the_habits_of_libibverbs),
	};

	return cmocka_run_group_tests(tests, open_both, close_both);
}
