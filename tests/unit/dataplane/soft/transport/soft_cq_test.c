// SPDX-License-Identifier: BSD-3-Clause
// Tests of completion queues and their events. The test itself adds the completions.
#include "dataplane/soft/soft_bed.h"
#include "transport/cq.h"
#include "verbs/verbs_soft.h"

#include <support/cases.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

static const struct verbs_calls *const calls = &verbs_calls_soft;
static struct bed_end *const here = &bed.ends[0];

static void push_of(struct ibv_cq *cq, uint64_t id, uint32_t qp_number) {
	const struct ibv_wc wc = {.wr_id = id, .qp_num = qp_number};

	nic_lock(nic_of(cq->context));
	cq_push(soft_cq_of(cq), &wc, false);
	nic_unlock(nic_of(cq->context));
}

static void push(uint64_t id) {
	push_of(here->cq, id, 1);
}

static void push_as(enum ibv_wc_status status, bool solicited) {
	const struct ibv_wc wc = {.status = status};

	nic_lock(nic_of(here->context));
	cq_push(soft_cq_of(here->cq), &wc, solicited);
	nic_unlock(nic_of(here->context));
}

static bool is_readable(int fd) {
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) == 1;
}

// Read and acknowledge all pending events; return their number.
static uint32_t events(void) {
	struct ibv_cq *cq;
	uint32_t count = 0;

	while (calls->get_cq_event(here->channel, &cq) == 0) {
		assert_ptr_equal(cq, here->cq);
		calls->ack_cq_events(cq, 1);
		count++;
	}
	assert_false(is_readable(here->channel->fd));
	return count;
}

static uint32_t poll_up_to(uint32_t max) {
	struct ibv_wc wcs[8];

	return (uint32_t)ibv_poll_cq(here->cq, (int)max, wcs);
}

static void an_event_comes_for_the_first_completion_after_arming(void **state) {
	(void)state;
	assert_int_equal(ibv_req_notify_cq(here->cq, 0), 0);
	assert_int_equal(events(), 0);
	push(2);
	push(3);
	assert_true(is_readable(here->channel->fd));
	assert_int_equal(events(), 1);
	push(4);
	assert_int_equal(events(), 0);
	assert_int_equal(poll_up_to(8), 3);
	assert_int_equal(ibv_req_notify_cq(here->cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(here->cq, 0), 0);
	push(5);
	assert_int_equal(events(), 1);
	// The completion behind the last event is still unpolled and must not raise another.
	assert_int_equal(ibv_req_notify_cq(here->cq, 0), 0);
	assert_int_equal(events(), 0);
}

static void arming_tells_what_came_untold_until_it_is_polled(void **state) {
	(void)state;
	push(1);
	push(2);
	assert_int_equal(events(), 0);
	for (uint32_t left = 2; left > 0; left--) {
		assert_int_equal(ibv_req_notify_cq(here->cq, 0), 0);
		assert_int_equal(ibv_req_notify_cq(here->cq, 0), 0); // one pending event is enough
		assert_int_equal(events(), 1);
		assert_int_equal(poll_up_to(1), 1);
	}
	assert_int_equal(ibv_req_notify_cq(here->cq, 0), 0);
	assert_int_equal(events(), 0);
	push(3);
	assert_int_equal(events(), 1);
}

static void arming_for_solicited_ones_tells_only_such(void **state) {
	(void)state;
	push(1);
	assert_int_equal(ibv_req_notify_cq(here->cq, 1), 0);
	assert_int_equal(events(), 0);
	push_as(IBV_WC_SUCCESS, true);
	assert_int_equal(events(), 1);
	push_as(IBV_WC_GENERAL_ERR, false);
	assert_int_equal(events(), 0);
	assert_int_equal(ibv_req_notify_cq(here->cq, 1), 0);
	assert_int_equal(events(), 1);
	assert_int_equal(poll_up_to(8), 3);
	assert_int_equal(ibv_req_notify_cq(here->cq, 1), 0);
	assert_int_equal(events(), 0);
}

static void solicited_events_are_for_these_and_for_errors(void **state) {
	static const struct {
		bool any_first, solicited_first, any_then; // how the queue is armed
		enum ibv_wc_status status;
		bool solicited, event;
	} cases[] = {
		{false, true, false, IBV_WC_SUCCESS, false, false},
		{false, true, false, IBV_WC_SUCCESS, true, true},
		{false, true, false, IBV_WC_WR_FLUSH_ERR, false, true},
		// Arming for solicited completions does not narrow an earlier arming.
		{true, true, false, IBV_WC_SUCCESS, false, true},
		{false, true, true, IBV_WC_SUCCESS, false, true},
		{true, false, false, IBV_WC_SUCCESS, true, true},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		(void)poll_up_to(8);
		if (cases[n].any_first)
			assert_int_equal(ibv_req_notify_cq(here->cq, 0), 0);
		if (cases[n].solicited_first)
			assert_int_equal(ibv_req_notify_cq(here->cq, 1), 0);
		if (cases[n].any_then)
			assert_int_equal(ibv_req_notify_cq(here->cq, 0), 0);
		push_as(cases[n].status, cases[n].solicited);
		assert_int_equal(events(), cases[n].event);
		push_as(IBV_WC_SUCCESS, true);
		assert_int_equal(events(), cases[n].event ? 0 : 1);
	}
}

static void completions_come_in_order_however_they_are_polled(void **state) {
	struct ibv_wc wcs[100];
	uint64_t pushed = 0, polled = 0;

	(void)state;
	for (int round = 1; round < 100; round++) {
		int got;

		while (pushed - polled < 200)
			push(pushed++);
		got = ibv_poll_cq(here->cq, round, wcs);
		assert_int_equal(got, round);
		for (int n = 0; n < got; n++)
			assert_int_equal(wcs[n].wr_id, polled++);
	}
	assert_int_equal(ibv_poll_cq(here->cq, 0, wcs), 0);
	assert_true(ibv_poll_cq(here->cq, -1, wcs) < 0);
}

static void a_queue_that_is_polled_in_time_uses_its_first_entry_alone(void **state) {
	const struct soft_cq *cq = soft_cq_of(here->cq);
	struct ibv_wc wc;

	(void)state;
	for (uint64_t id = 1; id <= 2 * (uint64_t)cq->capacity; id++) {
		push(id);
		assert_int_equal(ibv_poll_cq(here->cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, id);
	}
	for (uint32_t n = 1; n < cq->capacity; n++)
		assert_int_equal(cq->entries[n].wc.wr_id, 0);
}

static void an_overrun_is_told_once_and_ends_the_queue(void **state) {
	struct ibv_async_event event;
	struct ibv_wc wc;

	(void)state;
	for (int n = 0; n <= here->cq->cqe + 1; n++)
		push((uint64_t)n);
	assert_int_equal(calls->get_async_event(here->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, here->cq);
	calls->ack_async_event(&event);
	assert_int_equal(calls->get_async_event(here->context, &event), -EAGAIN);
	for (int n = 0; n < here->cq->cqe; n++) {
		assert_int_equal(ibv_poll_cq(here->cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, n);
	}
	push(7);
	assert_int_equal(ibv_poll_cq(here->cq, 1, &wc), 0);
}

static void post_writes(struct ibv_qp *qp, uint32_t count) {
	struct bed_end *there = &bed.ends[1];
	struct ibv_sge sge = {(uintptr_t)here->bytes, 8, here->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.rdma = {(uintptr_t)there->bytes, there->mr->rkey},
				   },
			   *bad;

	for (; count > 0; count--)
		assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

// The queue loses later completions, so its queue pairs must not continue as if nothing had
// happened.
static void queue_pairs_of_a_queue_that_was_overrun_go_to_error(void **state) {
	struct bed_end *there = &bed.ends[1];
	struct ibv_cq *small = NULL;
	struct ibv_qp_init_attr attr;
	struct ibv_qp *overrun = NULL, *resting = NULL, *peer = NULL;
	struct ibv_async_event event;
	uint32_t fatal = 0, told = 0;

	(void)state;
	assert_int_equal(calls->create_cq(here->context, 1, NULL, &small), 0);
	attr = bed_qp_attr(here);
	attr.send_cq = attr.recv_cq = small;
	assert_int_equal(calls->create_qp(here->pd, &attr, &overrun), 0);
	assert_int_equal(calls->create_qp(here->pd, &attr, &resting), 0);
	attr = bed_qp_attr(there);
	assert_int_equal(calls->create_qp(there->pd, &attr, &peer), 0);
	bed_connect(here, overrun, there, peer);
	post_writes(overrun, (uint32_t)small->cqe + 1);
	bed_run(0);
	assert_int_equal(overrun->state, IBV_QPS_ERR);
	assert_int_equal(resting->state, IBV_QPS_RESET);
	assert_int_equal(here->qp->state, IBV_QPS_RTS);
	while (calls->get_async_event(here->context, &event) == 0) {
		told += event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == small;
		fatal += event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == overrun;
		calls->ack_async_event(&event);
	}
	assert_int_equal(told, 1);
	assert_int_equal(fatal, 1);
	assert_int_equal(calls->destroy_qp(overrun), 0);
	assert_int_equal(calls->destroy_qp(resting), 0);
	assert_int_equal(calls->destroy_qp(peer), 0);
	assert_int_equal(calls->destroy_cq(small), 0);
}

static void a_resized_queue_keeps_what_waits(void **state) {
	struct ibv_wc wc;

	(void)state;
	for (uint64_t n = 0; n < 300; n++) {
		if (n >= 100)
			assert_int_equal(ibv_poll_cq(here->cq, 1, &wc), 1);
		push(n);
	}
	assert_int_equal(soft_resize_cq(here->cq, 60), -EINVAL);
	assert_int_equal(soft_resize_cq(here->cq, 0), -EINVAL);
	assert_int_equal(soft_resize_cq(here->cq, -1), -EINVAL);
	assert_int_equal(soft_resize_cq(here->cq, (1 << 20) + 1), -EINVAL);
	assert_int_equal(soft_resize_cq(here->cq, 100), 0);
	assert_in_range(here->cq->cqe, 100, 128);
	assert_int_equal(soft_resize_cq(here->cq, 1000), 0);
	assert_in_range(here->cq->cqe, 1000, 1024);
	for (uint64_t n = 200; n < 300; n++) {
		assert_int_equal(ibv_poll_cq(here->cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, n);
	}
	assert_int_equal(ibv_poll_cq(here->cq, 1, &wc), 0);
}

static void the_completions_of_one_queue_pair_are_forgotten(void **state) {
	struct ibv_wc wc;

	(void)state;
	for (uint64_t n = 0; n < 30; n++)
		push_of(here->cq, n, n % 3 == 0 ? 5 : 6);
	nic_lock(nic_of(here->context));
	cq_remove_completions(soft_cq_of(here->cq), 5);
	nic_unlock(nic_of(here->context));
	for (uint64_t n = 0; n < 30; n++) {
		if (n % 3 == 0)
			continue;
		assert_int_equal(ibv_poll_cq(here->cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, n);
	}
	assert_int_equal(ibv_poll_cq(here->cq, 1, &wc), 0);
}

static struct ibv_cq *cq_armed(void) {
	struct ibv_cq *cq = NULL;

	assert_int_equal(calls->create_cq(here->context, 4, here->channel, &cq), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	return cq;
}

static void queues_of_one_channel_are_told_in_order(void **state) {
	struct ibv_cq *cqs[4], *told = NULL;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cqs); n++)
		cqs[n] = cq_armed();
	for (size_t n = COUNT_OF(cqs); n-- > 0;)
		push_of(cqs[n], 0, 1);
	// Destroying the queue in the middle also removes its event.
	assert_int_equal(calls->destroy_cq(cqs[2]), 0);
	for (size_t n = COUNT_OF(cqs); n-- > 0;) {
		if (n == 2)
			continue;
		assert_int_equal(calls->get_cq_event(here->channel, &told), 0);
		assert_ptr_equal(told, cqs[n]);
		calls->ack_cq_events(told, 1);
		assert_int_equal(calls->destroy_cq(cqs[n]), 0);
	}
	assert_int_equal(calls->get_cq_event(here->channel, &told), -EAGAIN);
	assert_false(is_readable(here->channel->fd));
}

static void a_queue_without_a_channel_may_be_armed(void **state) {
	struct ibv_cq *cq = NULL;

	(void)state;
	assert_int_equal(calls->create_cq(here->context, 1, NULL, &cq), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	push_of(cq, 1, 1);
	assert_false(is_readable(here->channel->fd));
	assert_int_equal(calls->destroy_cq(cq), 0);
}

static _Atomic bool destroyed;

static void *destroy_queue(void *cq) {
	assert_int_equal(calls->destroy_cq(cq), 0);
	atomic_store(&destroyed, true);
	return NULL;
}

static void a_queue_waits_for_its_events_to_be_acknowledged(void **state) {
	struct ibv_cq *cq = cq_armed(), *told = NULL;
	pthread_t thread;

	(void)state;
	atomic_store(&destroyed, false);
	push_of(cq, 1, 1);
	assert_int_equal(calls->get_cq_event(here->channel, &told), 0);
	assert_int_equal(pthread_create(&thread, NULL, destroy_queue, cq), 0);
	for (int n = 0; n < 1000; n++) {
		struct ibv_wc wc;

		assert_false(atomic_load(&destroyed));
		assert_int_equal(ibv_poll_cq(here->cq, 1, &wc), 0); // proves that the lock is free
	}
	calls->ack_cq_events(told, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(atomic_load(&destroyed));
}

static void *wait_for_event(void *ret_cq) {
	assert_int_equal(calls->get_cq_event(here->channel, ret_cq), 0);
	return NULL;
}

static void who_lets_the_descriptor_block_waits_for_an_event(void **state) {
	struct ibv_cq *told = NULL;
	pthread_t thread;

	(void)state;
	assert_int_equal(fcntl(here->channel->fd, F_SETFL, 0), 0);
	assert_int_equal(ibv_req_notify_cq(here->cq, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_event, &told), 0);
	push(1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_ptr_equal(told, here->cq);
	calls->ack_cq_events(told, 1);
}

// The object of an event was destroyed meanwhile. The waiting thread must continue with the next
// event.
static void an_event_without_a_queue_is_skipped(void **state) {
	struct ibv_cq *gone = cq_armed(), *told = NULL;
	pthread_t thread;

	(void)state;
	assert_int_equal(fcntl(here->channel->fd, F_SETFL, 0), 0);
	assert_int_equal(ibv_req_notify_cq(here->cq, 0), 0);
	push_of(gone, 1, 1);
	assert_int_equal(calls->destroy_cq(gone), 0);
	event_fd_signal(here->channel->fd);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_event, &told), 0);
	push(1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_ptr_equal(told, here->cq);
	calls->ack_cq_events(told, 1);
}

static void sizes_that_are_not_offered_are_refused(void **state) {
	struct ibv_cq *cq = NULL;

	(void)state;
	assert_int_equal(calls->create_cq(here->context, 0, NULL, &cq), -EINVAL);
	assert_int_equal(calls->create_cq(here->context, (1 << 20) + 1, NULL, &cq), -EINVAL);
	assert_int_equal(calls->create_cq(here->context, UINT32_MAX, NULL, &cq), -EINVAL);
	assert_int_equal(calls->create_cq(here->context, 1, bed.ends[1].channel, &cq), -EINVAL);
	assert_null(cq);
	assert_int_equal(calls->create_cq(here->context, 1 << 20, NULL, &cq), 0);
	assert_int_equal(cq->cqe, 1 << 20);
	assert_int_equal(calls->destroy_cq(cq), 0);
}

UNIT_GROUP(soft_cq) {
#define BED(test) cmocka_unit_test_setup_teardown(test, bed_make, bed_end)
	const struct CMUnitTest tests[] = {
		BED(an_event_comes_for_the_first_completion_after_arming),
		BED(arming_tells_what_came_untold_until_it_is_polled),
		BED(arming_for_solicited_ones_tells_only_such),
		BED(solicited_events_are_for_these_and_for_errors),
		BED(completions_come_in_order_however_they_are_polled),
		BED(a_queue_that_is_polled_in_time_uses_its_first_entry_alone),
		BED(an_overrun_is_told_once_and_ends_the_queue),
		BED(queue_pairs_of_a_queue_that_was_overrun_go_to_error),
		BED(a_resized_queue_keeps_what_waits),
		BED(the_completions_of_one_queue_pair_are_forgotten),
		BED(queues_of_one_channel_are_told_in_order),
		BED(a_queue_without_a_channel_may_be_armed),
		BED(a_queue_waits_for_its_events_to_be_acknowledged),
		BED(who_lets_the_descriptor_block_waits_for_an_event),
		BED(an_event_without_a_queue_is_skipped),
		BED(sizes_that_are_not_offered_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
