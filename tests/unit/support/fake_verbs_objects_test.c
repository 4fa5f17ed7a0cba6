// SPDX-License-Identifier: BSD-3-Clause
// Guarantees of the programmable device for other tests: objects, their states and their events.
#include "support/fake_verbs_bed.h"

#include <support/cmocka.h>

#include <poll.h>
#include <unistd.h>

static void an_event_comes_for_what_arrives_after_arming_once(void **state) {
	struct pollfd channel = {.fd = a->channel->fd, .events = POLLIN};
	struct ibv_cq *cq = NULL;
	struct ibv_wc wc;

	(void)state;
	end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	fake_verbs_run();
	assert_int_equal(ibv_req_notify_cq(a->cq, 0), 0);
	// Earlier completions are only found by polling.
	assert_int_equal(fake_verbs_calls.get_cq_event(a->channel, &cq), -EAGAIN);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	fake_verbs_run();
	assert_int_equal(poll(&channel, 1, 0), 1);
	assert_int_equal(fake_verbs_calls.get_cq_event(a->channel, &cq), 0);
	assert_ptr_equal(cq, a->cq);
	assert_int_equal(fake_verbs_calls.get_cq_event(a->channel, &cq), -EAGAIN);
	assert_int_equal(poll(&channel, 1, 0), 0);
	assert_int_equal(fake_verbs_alive().completion_events, 1);
	fake_verbs_calls.ack_cq_events(a->cq, 1);
}

static void solicited_only_hears_of_such_and_of_errors(void **state) {
	struct ibv_cq *cq = NULL;
	struct ibv_wc wc;

	(void)state;
	end_receive(b, 1, 0, 8);
	end_receive(b, 2, 0, 8);
	assert_int_equal(ibv_req_notify_cq(b->cq, 1), 0);
	end_post(a, IBV_WR_SEND, 8, 0, b);
	assert_int_equal(end_wait(b, &wc), IBV_WC_SUCCESS);
	assert_int_equal(fake_verbs_calls.get_cq_event(b->channel, &cq), -EAGAIN);
	end_modify(b, IBV_QPS_ERR);
	assert_int_equal(fake_verbs_calls.get_cq_event(b->channel, &cq), 0);
	fake_verbs_calls.ack_cq_events(b->cq, 1);
}

static void asynchronous_events_reach_the_context(void **state) {
	struct pollfd fd = {.fd = a->context->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	(void)state;
	assert_int_equal(fake_verbs_calls.get_async_event(a->context, &event), -EAGAIN);
	fake_device_event(ends.device[0], IBV_EVENT_PORT_ERR, 1);
	fake_qp_event(a->qp, IBV_EVENT_QP_FATAL);
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(fake_verbs_calls.get_async_event(a->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
	assert_int_equal(event.element.port_num, 1);
	fake_verbs_calls.ack_async_event(&event);
	assert_int_equal(fake_verbs_calls.get_async_event(a->context, &event), 0);
	assert_ptr_equal(event.element.qp, a->qp);
	// The event is not acknowledged: a real driver would hang here.
	assert_int_equal(fake_verbs_calls.destroy_qp(a->qp), -EBUSY);
	assert_non_null(fake_verbs_broken());
	fake_verbs_calls.ack_async_event(&event);
}

static void objects_are_destroyed_in_order_only(void **state) {
	(void)state;
	assert_int_equal(fake_verbs_calls.destroy_cq(a->cq), -EBUSY);
	assert_non_null(fake_verbs_broken());
	fake_verbs_forgive();
	assert_int_equal(fake_verbs_calls.destroy_comp_channel(a->channel), -EBUSY);
	assert_non_null(fake_verbs_broken());
	fake_verbs_forgive();
	assert_int_equal(fake_verbs_calls.dealloc_pd(a->pd), -EBUSY);
	assert_non_null(fake_verbs_broken());
	fake_verbs_forgive();
	assert_int_equal(fake_verbs_calls.close(a->context), -EBUSY);
	assert_non_null(fake_verbs_broken());
}

// Release an end of a lost device: only its context can be closed, and its channel's descriptor.
static void end_forget(struct end *end) {
	struct fake_device *device = end->device;

	close(end->channel->fd);
	assert_int_equal(fake_verbs_calls.close(end->context), 0);
	memset(end, 0, sizeof(*end));
	end->device = device;
}

static uint32_t count_devices(void) {
	struct ibv_device **devices;
	uint32_t count;

	assert_int_equal(fake_verbs_calls.device_list(&devices, &count), 0);
	fake_verbs_calls.device_list_free(devices);
	return count;
}

static void lost_device_says_eio_for_good_and_completes_nothing(void **state) {
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_async_event event;
	struct ibv_device_attr facts;
	struct ibv_wc wc;

	(void)state;
	end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	fake_device_lose(ends.device[0]);
	assert_int_equal(count_devices(), 1);
	for (int n = 0; n < 3; n++) {
		assert_int_equal(fake_verbs_calls.modify_qp(a->qp, &attr, IBV_QP_STATE), -EIO);
		assert_int_equal(fake_verbs_calls.destroy_qp(a->qp), -EIO);
		assert_int_equal(fake_verbs_calls.dereg_mr(a->mr), -EIO);
		assert_int_equal(fake_verbs_calls.destroy_cq(a->cq), -EIO);
		assert_int_equal(fake_verbs_calls.destroy_comp_channel(a->channel), -EBUSY);
		assert_int_equal(fake_verbs_calls.dealloc_pd(a->pd), -EIO);
		assert_int_equal(fake_verbs_calls.query_device(a->context, &facts), -EIO);
	}
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0);
	assert_int_equal(fake_verbs_calls.get_async_event(a->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_DEVICE_FATAL);
	fake_verbs_calls.ack_async_event(&event);
	assert_int_equal(fake_verbs_calls.get_async_event(a->context, &event), -EIO);
	end_forget(a);
}

static void descriptors_of_a_lost_device_are_in_error_for_good(void **state) {
	struct pollfd fds[] = {
		{.fd = a->channel->fd, .events = POLLIN},
		{.fd = a->context->async_fd, .events = POLLIN},
	};
	struct ibv_async_event event;
	struct ibv_cq *cq;

	(void)state;
	ends.device[0]->loses_silently = true;
	fake_device_lose(ends.device[0]);
	for (int n = 0; n < 3; n++) {
		assert_int_equal(poll(fds, 2, 0), 2);
		assert_int_equal(fds[0].revents, POLLERR);
		assert_int_equal(fake_verbs_calls.get_cq_event(a->channel, &cq), -EIO);
		assert_int_equal(fake_verbs_calls.get_async_event(a->context, &event), -EIO);
	}
	end_forget(a);
}

static void lost_device_that_returns_is_opened_anew_and_peers_got_no_answer(void **state) {
	struct ibv_wc wc;

	(void)state;
	fake_device_lose(ends.device[0]);
	end_post(b, IBV_WR_RDMA_WRITE, 8, 0, a);
	assert_int_equal(ibv_poll_cq(b->cq, 1, &wc), 0);
	clock_advance(&clock_, UINT64_C(10000000000));
	assert_int_equal(end_wait(b, &wc), IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(fake_verbs_calls.open(&ends.device[0]->verbs, &a->context), -ENOENT);
	fake_device_return(ends.device[0]);
	end_forget(a);
	assert_int_equal(count_devices(), 2);
	assert_int_equal(fake_verbs_calls.open(&ends.device[0]->verbs, &a->context), 0);
	assert_int_equal(fake_verbs_calls.alloc_pd(a->context, &a->pd), 0);
	assert_int_equal(fake_verbs_calls.dealloc_pd(a->pd), 0);
	a->pd = NULL;
}

static void transitions_want_exactly_their_attributes(void **state) {
	static const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct ibv_qp_attr attr = end_attr(a, b), bad;

	(void)state;
	end_modify(a, IBV_QPS_RESET);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(fake_verbs_calls.modify_qp(a->qp, &attr, rtr), -EINVAL);
	end_modify(a, IBV_QPS_INIT);
	for (uint32_t bit = 1; bit < 31; bit++) {
		if ((rtr & 1 << bit) != 0)
			assert_int_equal(
				fake_verbs_calls.modify_qp(a->qp, &attr, rtr & ~(1 << bit)), -EINVAL
			);
	}
	assert_int_equal(fake_verbs_calls.modify_qp(a->qp, &attr, rtr | IBV_QP_TIMEOUT), -EINVAL);
	bad = attr;
	bad.rq_psn = 1 << 24;
	assert_int_equal(fake_verbs_calls.modify_qp(a->qp, &bad, rtr), -EINVAL);
	bad = attr;
	bad.path_mtu = (enum ibv_mtu)7;
	assert_int_equal(fake_verbs_calls.modify_qp(a->qp, &bad, rtr), -EINVAL);
	bad = attr;
	memset(&bad.ah_attr.grh.dgid, 0, sizeof(bad.ah_attr.grh.dgid));
	assert_int_equal(fake_verbs_calls.modify_qp(a->qp, &bad, rtr), -EINVAL);
	bad = attr;
	bad.max_dest_rd_atomic = 17;
	assert_int_equal(fake_verbs_calls.modify_qp(a->qp, &bad, rtr), -EINVAL);
	assert_int_equal(fake_verbs_calls.modify_qp(a->qp, &attr, rtr), 0);
}

static void every_cold_call_can_be_made_to_fail(void **state) {
	struct ends more = {0};
	uint64_t count;

	(void)state;
	count = fake_verbs_calls_made(FAKE_ANY_COLD);
	assert_int_equal(end_make(&more.end[0], ends.device[0]), 0);
	count = fake_verbs_calls_made(FAKE_ANY_COLD) - count;
	end_destroy(&more.end[0]);
	for (uint32_t nth = 1; nth <= count; nth++) {
		fake_verbs_fail(FAKE_ANY_COLD, nth, 1, -EPERM);
		assert_int_equal(end_make(&more.end[0], ends.device[0]), -EPERM);
		fake_verbs_fail_no_more();
		end_destroy(&more.end[0]);
	}
	assert_int_equal(fake_verbs_alive().contexts, 2);
}

static void numbers_are_used_again_and_the_same_on_all_devices(void **state) {
	uint32_t number = a->qp->qp_num;

	(void)state;
	assert_int_equal(b->qp->qp_num, number);
	end_unmake_qp(a);
	assert_int_equal(end_make_qp(a), 0);
	assert_int_equal(a->qp->qp_num, number);
}

static void completions_of_a_destroyed_queue_pair_stay_only_if_told_to(void **state) {
	struct ibv_wc wc;

	(void)state;
	for (uint32_t keeps = 0; keeps < 2; keeps++) {
		ends.device[0]->keeps_completions = keeps != 0;
		end_modify(a, IBV_QPS_ERR);
		end_receive(a, 5, 0, 8);
		fake_verbs_run();
		end_unmake_qp(a);
		assert_int_equal(end_make_qp(a), 0);
		end_modify(a, IBV_QPS_INIT);
		assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), (int)keeps);
	}
}

UNIT_GROUP(fake_verbs_objects) {
	static const struct CMUnitTest tests[] = {
		CONNECTED(lost_device_says_eio_for_good_and_completes_nothing),
		CONNECTED(descriptors_of_a_lost_device_are_in_error_for_good),
		CONNECTED(lost_device_that_returns_is_opened_anew_and_peers_got_no_answer),
		CONNECTED(an_event_comes_for_what_arrives_after_arming_once),
		CONNECTED(solicited_only_hears_of_such_and_of_errors),
		BREACH(asynchronous_events_reach_the_context),
		BREACH(objects_are_destroyed_in_order_only),
		CONNECTED(transitions_want_exactly_their_attributes),
		CONNECTED(every_cold_call_can_be_made_to_fail),
		CONNECTED(numbers_are_used_again_and_the_same_on_all_devices),
		CONNECTED(completions_of_a_destroyed_queue_pair_stay_only_if_told_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
