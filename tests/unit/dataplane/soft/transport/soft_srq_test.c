// SPDX-License-Identifier: BSD-3-Clause
// Tests of creating, limiting and filling shared receive queues.
#include "dataplane/soft/transport/responder_bed.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>

static void a_queue_is_as_large_as_it_says(void **state) {
	static const struct {
		uint32_t wr, sge;
		int err;
	} cases[] = {
		{0, 1, -EINVAL},	  {1, 0, 0},	 {5, 32, 0},
		{5, 33, -EINVAL},	  {16384, 1, 0}, {16385, 1, -EINVAL},
		{UINT32_MAX, 1, -EINVAL},
	};

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(cases); n++) {
		struct ibv_srq_init_attr init = {
			.srq_context = &init,
			.attr = {.max_wr = cases[n].wr, .max_sge = cases[n].sge},
		};
		struct ibv_srq_attr attr;
		struct ibv_srq *srq = NULL;

		assert_int_equal(soft_create_srq(&bed.pd.verbs, &init, &srq), cases[n].err);
		if (cases[n].err != 0) {
			assert_null(srq);
			continue;
		}
		assert_ptr_equal(srq->srq_context, &init);
		assert_int_equal(soft_query_srq(srq, &attr), 0);
		assert_int_equal(attr.max_wr, init.attr.max_wr);
		assert_true(attr.max_wr >= cases[n].wr);
		assert_int_equal(attr.max_sge, cases[n].sge);
		assert_int_equal(attr.srq_limit, 0);
		assert_int_equal(bed.pd.users, 2); // the bed and this queue
		assert_int_equal(soft_destroy_srq(srq), 0);
		assert_int_equal(bed.pd.users, 1);
	}
}

static void only_the_limit_can_be_changed(void **state) {
	static const struct {
		int mask;
		uint32_t limit;
		int err;
	} cases[] = {
		{IBV_SRQ_LIMIT, 4, 0},
		{IBV_SRQ_LIMIT, 0, 0},
		{IBV_SRQ_LIMIT, 5, -EINVAL},
		{IBV_SRQ_MAX_WR, 0, -EOPNOTSUPP},
		{IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 1, -EOPNOTSUPP},
		{IBV_SRQ_LIMIT | 0x100, 1, -EINVAL},
		{0, 3, 0},
	};

	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(cases); n++) {
		struct ibv_srq_attr attr = {.max_wr = 8, .srq_limit = cases[n].limit};

		assert_int_equal(
			soft_modify_srq(&bed.srq->verbs, &attr, cases[n].mask), cases[n].err
		);
	}
	assert_int_equal(bed.srq->limit, 0);
}

static void a_queue_that_is_in_use_stays(void **state) {
	(void)state;
	bed.srq->users = 1;
	assert_int_equal(soft_destroy_srq(&bed.srq->verbs), -EBUSY);
	bed.srq->users = 0;
}

static void a_chain_is_taken_up_to_the_first_that_is_wrong(void **state) {
	struct ibv_recv_wr wrs[6] = {{0}};
	struct ibv_recv_wr *bad = NULL;

	(void)state;
	for (uint32_t n = 0; n < 5; n++)
		wrs[n].next = &wrs[n + 1];
	assert_int_equal(srq_post_recv(&bed.srq->verbs, wrs, &bad), ENOMEM);
	assert_ptr_equal(bad, &wrs[4]);
	assert_int_equal(receive_queue_count(&bed.srq->queue), 4);
	wrs[5].num_sge = 5;
	assert_int_equal(srq_post_recv(&bed.srq->verbs, &wrs[5], &bad), EINVAL);
	assert_ptr_equal(bad, &wrs[5]);
}

static void send_one(uint32_t psn) {
	struct packet packet = bed_packet(PACKET_SEND_ONLY, BED_PSN + psn, 8);

	bed_exchange(&packet);
	bed.sent_head = bed.sent_tail;
	bed.done_head = bed.done_tail;
}

static void the_limit_is_told_of_once_when_fewer_wait(void **state) {
	struct ibv_srq_attr attr = {.srq_limit = 3};

	(void)state;
	for (uint32_t n = 0; n < 4; n++)
		bed_receive(n, 0, 8);
	assert_int_equal(soft_modify_srq(&bed.srq->verbs, &attr, IBV_SRQ_LIMIT), 0);
	send_one(0);
	bed_expect_quiet();
	send_one(1);
	bed_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(bed.events[0].element.srq, &bed.srq->verbs);
	send_one(2);
	bed_expect_quiet();
	assert_int_equal(soft_query_srq(&bed.srq->verbs, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	attr.srq_limit = 1;
	assert_int_equal(soft_modify_srq(&bed.srq->verbs, &attr, IBV_SRQ_LIMIT), 0);
	send_one(3);
	bed_expect_event(IBV_EVENT_SRQ_LIMIT_REACHED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, bed_make_shared, bed_end)

UNIT_GROUP(soft_srq) {
	const struct CMUnitTest tests[] = {
		CASE(a_queue_is_as_large_as_it_says),
		CASE(only_the_limit_can_be_changed),
		CASE(a_queue_that_is_in_use_stays),
		CASE(a_chain_is_taken_up_to_the_first_that_is_wrong),
		CASE(the_limit_is_told_of_once_when_fewer_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
