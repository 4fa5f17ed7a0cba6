// SPDX-License-Identifier: BSD-3-Clause
// Tests of threads, events and forks in one process with two devices, soft0 and soft1.
#include "bed.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANG_SECONDS 30

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

static void a_channel_that_does_not_block_wakes_epoll_once(void **state) {
	int flags = fcntl(b.channel->fd, F_GETFL);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event wanted = {.events = EPOLLIN}, got;
	struct ibv_qp *qp_a, *qp_b;
	struct bed_address to_b;
	struct ibv_cq *cq;
	void *context;

	(void)state;
	assert_int_equal(flags & O_NONBLOCK, 0);
	assert_int_equal(fcntl(b.channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, b.channel->fd, &wanted), 0);
	bed_pair(&a, &qp_a, &b, &qp_b);
	to_b = bed_address(&b, qp_b);
	errno = 0;
	assert_int_equal(ibv_get_cq_event(b.channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	for (uint32_t n = 0; n < 100; n++) {
		assert_int_equal(ibv_req_notify_cq(b.cq, 0), 0);
		bed_receive(&b, qp_b, n, 0, 64);
		bed_post(
			&a, qp_a, &to_b,
			&(struct bed_request){.opcode = IBV_WR_SEND, .wr_id = n, .length = 64}
		);
		assert_int_equal(epoll_wait(epoll, &got, 1, -1), 1);
		assert_int_equal(ibv_get_cq_event(b.channel, &cq, &context), 0);
		assert_ptr_equal(cq, b.cq);
		assert_ptr_equal(context, &b);
		ibv_ack_cq_events(cq, 1);
		assert_int_equal(ibv_get_cq_event(b.channel, &cq, &context), -1);
		expect_success(b.cq, n);
		expect_success(a.cq, n);
	}
	assert_int_equal(fcntl(b.channel->fd, F_SETFL, flags), 0);
	close(epoll);
	destroy(qp_a, qp_b);
}

struct waiter {
	struct bed_end *end;
	uint32_t events;
	// The waiter writes, the sender reads. Relaxed: only the number matters.
	_Atomic uint32_t seen;
	_Atomic int failed;
};

// Sleep in the channel, as servers do.
static void *wait_for_events(void *argument) {
	struct waiter *waiter = argument;

	while (waiter->seen < waiter->events && waiter->failed == 0) {
		struct ibv_cq *cq;
		struct ibv_wc wc;
		void *context;

		waiter->failed |= ibv_get_cq_event(waiter->end->channel, &cq, &context);
		waiter->failed |= ibv_req_notify_cq(waiter->end->cq, 0);
		ibv_ack_cq_events(waiter->end->cq, 1);
		while (ibv_poll_cq(waiter->end->cq, 1, &wc) == 1) {
			atomic_fetch_add_explicit(&waiter->seen, 1, memory_order_relaxed);
			waiter->failed |= wc.status != IBV_WC_SUCCESS;
		}
	}
	return NULL;
}

static void a_thread_that_sleeps_in_its_channel_misses_nothing(void **state) {
	struct waiter waiter = {.end = &b, .events = 1000};
	struct ibv_qp *qp_a, *qp_b;
	struct bed_address to_b;
	pthread_t thread;

	(void)state;
	bed_pair(&a, &qp_a, &b, &qp_b);
	to_b = bed_address(&b, qp_b);
	assert_int_equal(ibv_req_notify_cq(b.cq, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_events, &waiter), 0);
	for (uint32_t n = 0; n < waiter.events; n++) {
		// Without this limit, a waiter without processor time would get an overrun queue.
		while (n - atomic_load_explicit(&waiter.seen, memory_order_relaxed) >= BED_DEPTH &&
		       waiter.failed == 0)
			sched_yield();
		bed_receive(&b, qp_b, n, 0, 64);
		bed_post(
			&a, qp_a, &to_b,
			&(struct bed_request){.opcode = IBV_WR_SEND, .wr_id = n, .length = 8}
		);
		expect_success(a.cq, n);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(waiter.failed, 0);
	destroy(qp_a, qp_b);
}

#define THREADS 8
#define ROUNDS 200
#define SLICE 1024

struct writer {
	struct ibv_cq *cq;
	struct ibv_qp *qp_a, *qp_b;
	uint32_t number;
	uint32_t wrong;
};

// Write a separate slice of the peer's memory and read it back, each time with other bytes.
static void *write_and_read(void *argument) {
	struct writer *writer = argument;
	struct bed_address to_b = bed_address(&b, writer->qp_b);
	uint32_t offset = writer->number * SLICE * 2;

	to_b.memory += writer->number * SLICE;
	for (uint32_t n = 0; n < ROUNDS; n++) {
		struct bed_request request = {
			.opcode = IBV_WR_RDMA_WRITE, .offset = offset, .length = SLICE};

		memset(a.memory + offset, (int)(n + writer->number), SLICE);
		memset(a.memory + offset + SLICE, 0, SLICE);
		bed_post(&a, writer->qp_a, &to_b, &request);
		request.opcode = IBV_WR_RDMA_READ;
		request.offset = offset + SLICE;
		bed_post(&a, writer->qp_a, &to_b, &request);
		for (int completions = 0; completions < 2; completions++)
			writer->wrong += bed_poll(writer->cq).status != IBV_WC_SUCCESS;
		writer->wrong += memcmp(a.memory + offset, a.memory + offset + SLICE, SLICE) != 0;
	}
	return NULL;
}

static void many_threads_work_on_pairs_of_their_own(void **state) {
	struct ibv_cq *shared = a.cq;
	struct writer writers[THREADS] = {0};
	pthread_t threads[THREADS];

	(void)state;
	for (uint32_t n = 0; n < THREADS; n++) {
		writers[n].number = n;
		a.cq = ibv_create_cq(a.context, BED_DEPTH, &a, NULL, 0);
		assert_non_null(a.cq);
		writers[n].cq = a.cq;
		bed_pair(&a, &writers[n].qp_a, &b, &writers[n].qp_b);
	}
	a.cq = shared;
	for (uint32_t n = 0; n < THREADS; n++)
		assert_int_equal(pthread_create(&threads[n], NULL, write_and_read, &writers[n]), 0);
	for (uint32_t n = 0; n < THREADS; n++)
		assert_int_equal(pthread_join(threads[n], NULL), 0);
	for (uint32_t n = 0; n < THREADS; n++) {
		assert_int_equal(writers[n].wrong, 0);
		destroy(writers[n].qp_a, writers[n].qp_b);
		assert_int_equal(ibv_destroy_cq(writers[n].cq), 0);
	}
}

// Use the device in the child of a fork. Calls must fail, and cleanup must work.
static int use_in_child(struct ibv_qp *qp) {
	struct ibv_recv_wr receive = {.wr_id = 1}, *bad = NULL;
	struct ibv_port_attr port;
	struct ibv_wc wc;
	int wrong = 0;

	wrong += ibv_poll_cq(a.cq, 1, &wc) >= 0;
	wrong += ibv_post_recv(qp, &receive, &bad) == 0 || bad != &receive;
	wrong += ibv_query_port(a.context, 1, &port) == 0;
	wrong += ibv_alloc_pd(a.context) != NULL;
	wrong += ibv_open_device(a.context->device) != NULL;
	wrong += ibv_destroy_qp(qp) != 0;
	wrong += ibv_dereg_mr(a.mr) != 0;
	wrong += ibv_destroy_cq(a.cq) != 0;
	wrong += ibv_dealloc_pd(a.pd) != 0;
	wrong += ibv_close_device(a.context) != 0;
	return wrong;
}

static void a_forked_child_is_refused_and_its_parent_goes_on(void **state) {
	struct ibv_qp *qp_a, *qp_b;
	struct bed_address to_b;
	int status;
	pid_t child;

	(void)state;
	bed_pair(&a, &qp_a, &b, &qp_b);
	to_b = bed_address(&b, qp_b);
	child = fork();
	if (child == 0)
		_exit(use_in_child(qp_a));
	assert_return_code(child, errno);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	bed_post(
		&a, qp_a, &to_b,
		&(struct bed_request){.opcode = IBV_WR_RDMA_WRITE, .wr_id = 3, .length = 8}
	);
	expect_success(a.cq, 3);
	destroy(qp_a, qp_b);
}

static atomic_bool asked_enough;

static void *ask_in_vain(void *argument) {
	struct ibv_ah_attr address = {.port_num = 1};

	// Relaxed: a few calls more or fewer do not matter.
	while (!atomic_load_explicit(&asked_enough, memory_order_relaxed))
		(void)ibv_create_ah(a.pd, &address);
	return argument;
}

static void a_child_that_is_forked_while_others_are_refused_is_refused_too(void **state) {
	struct ibv_ah_attr address = {.port_num = 1};
	pthread_t threads[3];

	(void)state;
	atomic_store_explicit(&asked_enough, false, memory_order_relaxed);
	for (int n = 0; n < 3; n++)
		assert_int_equal(pthread_create(&threads[n], NULL, ask_in_vain, NULL), 0);
	for (int n = 0; n < 500; n++) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			alarm(HANG_SECONDS);
			_exit(ibv_create_ah(a.pd, &address) != NULL);
		}
		assert_return_code(child, errno);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	atomic_store_explicit(&asked_enough, true, memory_order_relaxed);
	for (int n = 0; n < 3; n++)
		assert_int_equal(pthread_join(threads[n], NULL), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_channel_that_does_not_block_wakes_epoll_once),
		cmocka_unit_test(a_thread_that_sleeps_in_its_channel_misses_nothing),
		cmocka_unit_test(many_threads_work_on_pairs_of_their_own),
		cmocka_unit_test(a_forked_child_is_refused_and_its_parent_goes_on),
		cmocka_unit_test(a_child_that_is_forked_while_others_are_refused_is_refused_too),
	};

	return cmocka_run_group_tests(tests, open_both, close_both);
}
