// SPDX-License-Identifier: BSD-3-Clause
// Guarantees of the programmable device for other tests: requests, their timing and their order.
#include "support/fake_verbs_bed.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <pthread.h>

static void every_request_moves_real_bytes(void **state) {
	struct ibv_wc wc;
	uint64_t word = 40;

	(void)state;
	memcpy(a->memory, "there", 6);
	end_post(a, IBV_WR_RDMA_WRITE, 6, 64, b);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	assert_string_equal((char *)b->memory + 64, "there");

	memcpy(b->memory, "and back", 9);
	end_post(a, IBV_WR_RDMA_READ, 9, 0, b);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 9);
	assert_string_equal((char *)a->memory, "and back");

	end_receive(b, 7, 128, 64);
	end_post(a, IBV_WR_SEND_WITH_IMM, 9, 0, b);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	assert_int_equal(end_wait(b, &wc), IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.byte_len, 9);
	assert_int_equal(ntohl(wc.imm_data), END_IMMEDIATE);
	assert_string_equal((char *)b->memory + 128, "and back");

	end_receive(b, 8, 0, 0);
	end_post(a, IBV_WR_RDMA_WRITE_WITH_IMM, 4, 256, b);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	assert_int_equal(end_wait(b, &wc), IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_memory_equal(b->memory + 256, "and ", 4);

	memcpy(b->memory + 8, &word, sizeof(word));
	end_post(a, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, b); // adds 2
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	memcpy(&word, a->memory, sizeof(word));
	assert_int_equal(word, 40);
	end_post(a, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 8, b); // the value is not 2 any more
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	memcpy(&word, b->memory + 8, sizeof(word));
	assert_int_equal(word, 42);
}

static void a_queue_pair_may_be_its_own_peer(void **state) {
	struct ibv_wc wc;

	(void)state;
	ends_connect(a, a);
	memcpy(a->memory, "self", 5);
	end_post(a, IBV_WR_RDMA_WRITE, 5, 100, a);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	assert_string_equal((char *)a->memory + 100, "self");
}

// An invalid request: its fault, and its completion at the requester.
static const struct refusal {
	const char *what;
	enum ibv_wr_opcode opcode;
	uint32_t length;
	uint64_t offset; // of the remote address
	uint32_t key_change, local_key_change;
	enum ibv_wc_status status;
} refusals[] = {
	{"a key that is none", IBV_WR_RDMA_READ, 8, 0, 1, 0, IBV_WC_REM_ACCESS_ERR},
	{"past the end", IBV_WR_RDMA_READ, 8, END_BYTES - 7, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"before the begin", IBV_WR_RDMA_WRITE, 8, UINT64_MAX, 0, 0, IBV_WC_REM_ACCESS_ERR},
	{"a local key as remote", IBV_WR_RDMA_WRITE, 8, 0, 0x40000000, 0, IBV_WC_REM_ACCESS_ERR},
	{"a wrong local key", IBV_WR_RDMA_WRITE, 8, 0, 0, 1, IBV_WC_LOC_PROT_ERR},
	{"an atomic across words", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 4, 0, 0, IBV_WC_REM_INV_REQ_ERR},
	{"an atomic of 4 bytes", IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 0, 0, 0, IBV_WC_LOC_LEN_ERR},
};

static void what_is_not_allowed_is_refused(void **state) {
	(void)state;
	for (uint32_t n = 0; n < COUNT_OF(refusals); n++) {
		const struct refusal *refusal = &refusals[n];
		struct ibv_wc wc;

		ends_connect(a, b);
		b->remote_key ^= refusal->key_change;
		a->local_key ^= refusal->local_key_change;
		end_post(a, refusal->opcode, refusal->length, refusal->offset, b);
		b->remote_key ^= refusal->key_change;
		a->local_key ^= refusal->local_key_change;
		if (end_wait(a, &wc) != refusal->status)
			fail_msg("%s: status %d", refusal->what, wc.status);
		assert_int_equal(wc.vendor_err, ends.device[0]->vendor_error);
		assert_int_equal(fake_qp_state(a->qp), IBV_QPS_ERR);
	}
}

static void access_that_was_not_given_is_refused(void **state) {
	struct ibv_wc wc;

	(void)state;
	end_register(b, IBV_ACCESS_REMOTE_READ);
	end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	assert_int_equal(end_wait(a, &wc), IBV_WC_REM_ACCESS_ERR);
	// The responder's queue pair is in error as well.
	assert_int_equal(fake_qp_state(b->qp), IBV_QPS_ERR);
}

static void the_key_of_a_region_that_is_gone_never_fits(void **state) {
	uint32_t old = b->remote_key;
	struct ibv_wc wc;

	(void)state;
	end_register(b, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	assert_int_not_equal(b->remote_key, old);
	b->remote_key = old;
	end_post(a, IBV_WR_RDMA_READ, 8, 0, b);
	assert_int_equal(end_wait(a, &wc), IBV_WC_REM_ACCESS_ERR);
}

static void an_error_flushes_what_was_posted_behind_it(void **state) {
	struct ibv_wc wc;

	(void)state;
	fake_qp_error(a->qp, 2, IBV_WC_LOC_QP_OP_ERR, 0x77);
	end_receive(a, 99, 0, 8);
	for (uint32_t n = 0; n < 4; n++)
		end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	assert_int_equal(end_wait(a, &wc), IBV_WC_LOC_QP_OP_ERR);
	assert_int_equal(wc.vendor_err, 0x77);
	assert_int_equal(end_wait(a, &wc), IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(end_wait(a, &wc), IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(end_wait(a, &wc), IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 99);
	assert_int_equal(fake_qp_posted(a->qp), 0);
	// Requests that are posted now fail, too.
	end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	assert_int_equal(end_wait(a, &wc), IBV_WC_WR_FLUSH_ERR);
}

static void a_device_that_never_flushes_keeps_silent(void **state) {
	struct ibv_wc wc;

	(void)state;
	ends.device[0]->never_flushes = true;
	fake_qp_hold(a->qp);
	end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	end_modify(a, IBV_QPS_ERR);
	clock_advance(&clock_, UINT64_C(1000000000000));
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0);
	assert_int_equal(fake_qp_posted(a->qp), 1);
	assert_true(fake_verbs_next_ns() == FAKE_NEVER);
	// The request is destroyed with the queue pair: nothing can access the memory any more.
	end_unmake_qp(a);
}

static void work_is_done_when_its_time_has_come_in_order(void **state) {
	struct ibv_wc wc;

	(void)state;
	fake_qp_delay(a->qp, 500);
	end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	fake_qp_delay(a->qp, 100);
	end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	fake_qp_delay(b->qp, 300);
	end_post(b, IBV_WR_RDMA_WRITE, 8, 0, a);
	clock_advance(&clock_, 299);
	assert_int_equal(ibv_poll_cq(b->cq, 1, &wc), 0);
	clock_advance(&clock_, 1);
	assert_int_equal(ibv_poll_cq(b->cq, 1, &wc), 1);
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0);
	assert_true(fake_verbs_next_ns() == 1000500);
	clock_advance(&clock_, 200);
	// The second request was faster, but completes after the first one.
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 2);
}

static void what_is_held_is_let_go_one_by_one(void **state) {
	struct ibv_wc wc;

	(void)state;
	fake_qp_hold(a->qp);
	for (uint32_t n = 0; n < 3; n++)
		end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	end_post(b, IBV_WR_RDMA_WRITE, 8, 0, a);
	assert_int_equal(end_wait(b, &wc), IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0);
	fake_qp_let_go(a->qp, 1);
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 1);
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0);
	fake_qp_let_go(a->qp, UINT32_MAX);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
}

static void nobody_answers_through_a_cut_until_retries_are_over(void **state) {
	uint64_t limit_ns = (UINT64_C(4096) << END_TIMEOUT) * (END_RETRY + 1);
	struct ibv_wc wc;

	(void)state;
	fake_device_cut(ends.device[1], true);
	end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0);
	// The cable is reconnected in time.
	clock_advance(&clock_, limit_ns - 1);
	fake_device_cut(ends.device[1], false);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);

	fake_device_cut(ends.device[1], true);
	end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0);
	clock_advance(&clock_, limit_ns);
	assert_int_equal(end_wait(a, &wc), IBV_WC_RETRY_EXC_ERR);
	fake_device_cut(ends.device[1], false);
}

static void a_peer_that_broke_does_not_answer(void **state) {
	struct ibv_wc wc;

	(void)state;
	fake_qp_break(b->qp);
	end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0);
	clock_advance(&clock_, UINT64_C(10000000000));
	assert_int_equal(end_wait(a, &wc), IBV_WC_RETRY_EXC_ERR);
}

static void a_send_waits_for_a_receive_as_often_as_it_may(void **state) {
	struct ibv_wc wc;

	(void)state;
	end_post(a, IBV_WR_SEND, 8, 0, b);
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0);
	end_receive(b, 1, 0, 8);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	end_post(a, IBV_WR_SEND, 8, 0, b);
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0);
	clock_advance(&clock_, UINT64_C(1000000000));
	assert_int_equal(end_wait(a, &wc), IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(end_wait(b, &wc), IBV_WC_SUCCESS);
}

static void a_chain_fails_at_any_place_with_bad_wr_there(void **state) {
	struct ibv_sge sge = {(uintptr_t)a->memory, 8, a->local_key};
	struct ibv_send_wr chain[3], *bad = NULL;
	struct ibv_wc wc[4];

	(void)state;
	for (uint32_t at = 0; at < 3; at++) {
		for (uint32_t n = 0; n < 3; n++)
			chain[n] = (struct ibv_send_wr){
				.wr_id = n,
				.next = n < 2 ? &chain[n + 1] : NULL,
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IBV_WR_RDMA_WRITE,
				.send_flags = IBV_SEND_SIGNALED,
				.wr.rdma = {(uintptr_t)b->memory, b->remote_key},
			};
		fake_verbs_fail(FAKE_POST_SEND, at + 1, 1, -ENOMEM);
		assert_int_equal(ibv_post_send(a->qp, chain, &bad), ENOMEM);
		assert_ptr_equal(bad, &chain[at]);
		assert_int_equal(ibv_poll_cq(a->cq, 4, wc), (int)at);
		fake_verbs_fail_no_more();
	}
}

static void places_are_free_when_a_later_completion_was_polled(void **state) {
	struct ibv_wc wc;

	(void)state;
	for (uint32_t n = 0; n < END_DEPTH - 1; n++)
		end_post_silent(a, b);
	end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	fake_verbs_run();
	// All requests are done and none is polled: the queue is still full.
	assert_int_equal(end_try(a, b), ENOMEM);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0); // one completion for all
	assert_int_equal(end_try(a, b), 0);
	fake_verbs_run();
}

static void a_completion_queue_that_overflows_is_a_breach(void **state) {
	struct ibv_wc wc;

	(void)state;
	for (uint32_t n = 0; n < END_DEPTH; n++)
		end_post(a, IBV_WR_RDMA_WRITE, 8, 0, b);
	for (uint32_t n = 0; n < END_DEPTH; n++)
		end_receive(a, n, 0, 8);
	assert_null(fake_verbs_broken());
	ends.end[0].cq->cqe = END_DEPTH; // as if only so few had been requested
	end_modify(a, IBV_QPS_ERR);
	assert_non_null(strstr(fake_verbs_broken(), "overflowed"));
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 1);
}

static void deregistering_what_is_posted_is_a_breach(void **state) {
	(void)state;
	end_receive(a, 1, 0, 8);
	assert_int_equal(fake_verbs_calls.dereg_mr(a->mr), 0);
	a->mr = NULL;
	assert_non_null(strstr(fake_verbs_broken(), "was deregistered while"));
}

static void touching_forbidden_memory_is_a_breach(void **state) {
	struct ibv_wc wc;

	(void)state;
	fake_verbs_forbid(b->memory + 100, 10);
	end_post(a, IBV_WR_RDMA_WRITE, 8, 92, b);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	assert_null(fake_verbs_broken());
	assert_int_equal(fake_verbs_touches(b->memory + 99, 1), 1);
	end_post(a, IBV_WR_RDMA_WRITE, 8, 93, b);
	assert_int_equal(end_wait(a, &wc), IBV_WC_SUCCESS);
	assert_non_null(strstr(fake_verbs_broken(), "given back"));
}

static void different_psn_are_never_answered(void **state) {
	struct ibv_wc wc;

	(void)state;
	b->psn++; // the peer is not notified
	end_modify(b, IBV_QPS_RESET);
	end_to_rts(b, a);
	b->psn--;
	end_post(b, IBV_WR_RDMA_WRITE, 8, 0, a);
	assert_int_equal(ibv_poll_cq(b->cq, 1, &wc), 0);
	clock_advance(&clock_, UINT64_C(10000000000));
	assert_int_equal(end_wait(b, &wc), IBV_WC_RETRY_EXC_ERR);
}

static void what_is_flushed_has_its_own_time_and_number(void **state) {
	struct ibv_wc wc;

	(void)state;
	ends.device[0]->flush_ns = 400;
	for (uint32_t n = 0; n < 3; n++)
		end_receive(a, n, 0, 8);
	fake_qp_flush_at_most(a->qp, 2);
	end_modify(a, IBV_QPS_ERR);
	clock_advance(&clock_, 399);
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0);
	clock_advance(&clock_, 1);
	assert_int_equal(end_wait(a, &wc), IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(end_wait(a, &wc), IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_poll_cq(a->cq, 1, &wc), 0);
	assert_int_equal(fake_qp_posted(a->qp), 1);
}

static void without_a_clock_work_is_done_while_it_is_posted(void **state) {
	struct ibv_wc wc;

	(void)state;
	fake_verbs_init(NULL);
	ends_make(&ends);
	ends_connect(&ends.end[0], &ends.end[1]);
	memcpy(ends.end[0].memory, "now", 4);
	end_post(&ends.end[0], IBV_WR_RDMA_WRITE, 4, 0, &ends.end[1]);
	assert_string_equal((char *)ends.end[1].memory, "now");
	assert_int_equal(end_wait(&ends.end[0], &wc), IBV_WC_SUCCESS);
	// Without a clock, the timeout passes at once.
	fake_device_cut(ends.device[1], true);
	end_post(&ends.end[0], IBV_WR_RDMA_WRITE, 4, 0, &ends.end[1]);
	assert_int_equal(end_wait(&ends.end[0], &wc), IBV_WC_RETRY_EXC_ERR);
}

static void light_work_ends_well_and_needs_its_places(void **state) {
	struct ibv_wc wc;

	(void)state;
	fake_verbs_init(NULL);
	ends_make(&ends);
	ends_connect(&ends.end[0], &ends.end[1]);
	fake_verbs_light();
	for (uint32_t n = 0; n < END_DEPTH; n++)
		end_post(&ends.end[0], IBV_WR_RDMA_WRITE, 4, UINT64_MAX, &ends.end[1]);
	assert_int_equal(end_try(&ends.end[0], &ends.end[1]), ENOMEM);
	for (uint64_t n = 1; n <= END_DEPTH; n++) {
		assert_int_equal(end_wait(&ends.end[0], &wc), IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, n);
	}
	assert_int_equal(end_try(&ends.end[0], &ends.end[1]), 0);
}

// Post and poll in one thread, as a worker does.
static void *post_and_poll(void *arg) {
	struct end *end = arg, *other = end == &ends.end[0] ? &ends.end[1] : &ends.end[0];

	for (uint32_t n = 0; n < 5000; n++) {
		struct ibv_wc wc;
		int count = 0;

		end_post(end, IBV_WR_RDMA_WRITE, 8, 64, other);
		while (count == 0)
			count = ibv_poll_cq(end->cq, 1, &wc);
		must(count == 1 && wc.status == IBV_WC_SUCCESS);
	}
	return NULL;
}

static void several_threads_may_call_when_it_is_shared(void **state) {
	struct ibv_mr *mr;
	pthread_t threads[2];

	(void)state;
	fake_verbs_init(NULL);
	fake_verbs_share();
	ends_make(&ends);
	ends_connect(&ends.end[0], &ends.end[1]);
	for (uint32_t n = 0; n < 2; n++)
		assert_int_equal(pthread_create(&threads[n], NULL, post_and_poll, &ends.end[n]), 0);
	// A keeper runs beside them.
	for (uint32_t n = 0; n < 1000; n++) {
		assert_int_equal(fake_verbs_calls.reg_mr(ends.end[0].pd, &mr, 8, 0, &mr), 0);
		assert_int_equal(fake_verbs_calls.dereg_mr(mr), 0);
	}
	for (uint32_t n = 0; n < 2; n++)
		pthread_join(threads[n], NULL);
}

UNIT_GROUP(fake_verbs) {
	static const struct CMUnitTest tests[] = {
		CONNECTED(every_request_moves_real_bytes),
		CONNECTED(a_queue_pair_may_be_its_own_peer),
		CONNECTED(what_is_not_allowed_is_refused),
		CONNECTED(access_that_was_not_given_is_refused),
		CONNECTED(the_key_of_a_region_that_is_gone_never_fits),
		CONNECTED(an_error_flushes_what_was_posted_behind_it),
		CONNECTED(a_device_that_never_flushes_keeps_silent),
		CONNECTED(work_is_done_when_its_time_has_come_in_order),
		CONNECTED(what_is_held_is_let_go_one_by_one),
		CONNECTED(nobody_answers_through_a_cut_until_retries_are_over),
		CONNECTED(a_peer_that_broke_does_not_answer),
		CONNECTED(a_send_waits_for_a_receive_as_often_as_it_may),
		CONNECTED(a_chain_fails_at_any_place_with_bad_wr_there),
		CONNECTED(places_are_free_when_a_later_completion_was_polled),
		BREACH(a_completion_queue_that_overflows_is_a_breach),
		BREACH(deregistering_what_is_posted_is_a_breach),
		BREACH(touching_forbidden_memory_is_a_breach),
		CONNECTED(different_psn_are_never_answered),
		CONNECTED(what_is_flushed_has_its_own_time_and_number),
		cmocka_unit_test_teardown(
			without_a_clock_work_is_done_while_it_is_posted, tear_down
		),
		cmocka_unit_test_teardown(light_work_ends_well_and_needs_its_places, tear_down),
		cmocka_unit_test_teardown(several_threads_may_call_when_it_is_shared, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
