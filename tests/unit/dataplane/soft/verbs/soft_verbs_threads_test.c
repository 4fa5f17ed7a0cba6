// SPDX-License-Identifier: BSD-3-Clause
// Tests of threads that post and poll concurrently, with running engines and real time.
#include "dataplane/soft/soft_bed.h"
#include "verbs/verbs_soft.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLEEPS 200
#define WRITES 2000
#define WRITE_BYTES 256
#define UNDER_WAY 16
#define THREADS 2

static const struct verbs_calls *const calls = &verbs_calls_soft;
static struct bed_end *const here = &bed.ends[0], *const there = &bed.ends[1];

static int make(void **state) {
	bed.live = true;
	return bed_make(state);
}

static int end(void **state) {
	bed.live = false;
	return bed_end(state);
}

// One thread with its own queue pair; all share the completion queue of the device.
struct worker {
	struct ibv_qp *qp, *peer;
	uint32_t number, posted;
	pthread_t thread;
};

static struct worker workers[THREADS];
static _Atomic uint32_t done[THREADS];

static struct ibv_qp *qp_make(struct bed_end *end_) {
	struct ibv_qp_init_attr attr = bed_qp_attr(end_);
	struct ibv_qp *qp = NULL;

	assert_int_equal(calls->create_qp(end_->pd, &attr, &qp), 0);
	return qp;
}

static void post_write(struct worker *worker) {
	uint32_t offset = worker->number * WRITE_BYTES;
	struct ibv_sge sge = {(uintptr_t)here->bytes + offset, WRITE_BYTES, here->mr->lkey};
	struct ibv_send_wr
		wr =
			{
				.wr_id = worker->number,
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IBV_WR_RDMA_WRITE,
				.send_flags = IBV_SEND_SIGNALED,
				.wr.rdma = {(uintptr_t)there->bytes + offset, there->mr->rkey},
			},
		*bad = NULL;

	assert_int_equal(ibv_post_send(worker->qp, &wr, &bad), 0);
	worker->posted++;
}

// The completion queue is shared, so each thread polls completions of all threads.
static void *work(void *arg) {
	struct worker *worker = arg;
	struct ibv_wc wcs[4];

	while (atomic_load(&done[worker->number]) < WRITES) {
		int count;

		while (worker->posted < WRITES &&
		       worker->posted - atomic_load(&done[worker->number]) < UNDER_WAY)
			post_write(worker);
		count = ibv_poll_cq(here->cq, 4, wcs);
		for (int n = 0; n < count; n++) {
			assert_int_equal(wcs[n].status, IBV_WC_SUCCESS);
			assert_int_equal(wcs[n].qp_num, workers[wcs[n].wr_id].qp->qp_num);
			atomic_fetch_add(&done[wcs[n].wr_id], 1);
		}
	}
	return NULL;
}

static void threads_share_a_completion_queue(void **state) {
	(void)state;
	memset(here->bytes, 0x44, BED_BYTES);
	for (uint32_t n = 0; n < THREADS; n++) {
		struct worker *worker = &workers[n];

		*worker = (struct worker){.number = n, .qp = qp_make(here), .peer = qp_make(there)};
		atomic_store(&done[n], 0);
		bed_connect(here, worker->qp, there, worker->peer);
	}
	for (uint32_t n = 0; n < THREADS; n++)
		assert_int_equal(pthread_create(&workers[n].thread, NULL, work, &workers[n]), 0);
	for (uint32_t n = 0; n < THREADS; n++) {
		assert_int_equal(pthread_join(workers[n].thread, NULL), 0);
		assert_int_equal(atomic_load(&done[n]), WRITES);
		assert_int_equal(calls->destroy_qp(workers[n].qp), 0);
		assert_int_equal(calls->destroy_qp(workers[n].peer), 0);
	}
	assert_memory_equal(there->bytes, here->bytes, (size_t)THREADS * WRITE_BYTES);
}

static struct ibv_cq *await_event(struct bed_end *end_) {
	struct pollfd fd = {.fd = end_->channel->fd, .events = POLLIN};
	struct ibv_cq *cq = NULL;

	assert_int_equal(poll(&fd, 1, 60000), 1);
	assert_int_equal(calls->get_cq_event(end_->channel, &cq), 0);
	calls->ack_cq_events(cq, 1);
	return cq;
}

// The program polls only after an event, so the engines do all the work.
static void who_sleeps_is_woken_by_each_completion(void **state) {
	struct ibv_sge sge = {(uintptr_t)here->bytes, 8, here->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_READ,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.rdma = {(uintptr_t)there->bytes, there->mr->rkey},
				   },
			   *bad = NULL;
	struct ibv_wc wc;

	(void)state;
	// Each read uses its own memory, because the answer to a retransmitted read may arrive
	// later.
	for (uint64_t n = 0; n < SLEEPS; n++)
		memcpy(there->bytes + n * sizeof(n), &n, sizeof(n));
	for (uint64_t n = 0; n < SLEEPS; n++) {
		wr.wr.rdma.remote_addr = (uintptr_t)(there->bytes + n * sizeof(n));
		assert_int_equal(ibv_req_notify_cq(here->cq, 0), 0);
		assert_int_equal(ibv_post_send(here->qp, &wr, &bad), 0);
		assert_ptr_equal(await_event(here), here->cq);
		assert_int_equal(ibv_poll_cq(here->cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_memory_equal(here->bytes, &n, sizeof(n));
	}
}

static _Atomic bool opening;

static void *open_and_close(void *arg) {
	(void)arg;
	while (atomic_load(&opening)) {
		struct ibv_context *context = NULL;

		assert_int_equal(calls->open(bed.devices[2], &context), 0);
		assert_int_equal(calls->close(context), 0);
	}
	return NULL;
}

// The last close by one thread and the first open by another may follow each other in any order.
static void a_device_is_opened_and_closed_by_many_at_once(void **state) {
	struct soft_config config = bed_config(2);
	pthread_t threads[THREADS];
	struct ibv_device **list = bed.devices;
	uint32_t count;

	(void)state;
	config.clock = NULL;
	assert_int_equal(soft_device_add(&config), 0);
	assert_int_equal(calls->device_list(&bed.devices, &count), 0);
	calls->device_list_free(list);
	atomic_store(&opening, true);
	for (uint32_t n = 0; n < THREADS; n++)
		assert_int_equal(pthread_create(&threads[n], NULL, open_and_close, NULL), 0);
	for (uint32_t n = 0; n < 200; n++) {
		struct ibv_context *context = NULL;

		assert_int_equal(calls->open(bed.devices[2], &context), 0);
		assert_int_equal(calls->close(context), 0);
	}
	atomic_store(&opening, false);
	for (uint32_t n = 0; n < THREADS; n++)
		assert_int_equal(pthread_join(threads[n], NULL), 0);
}

// A queue pair may be destroyed, created and connected while other threads work.
static void *churn(void *arg) {
	(void)arg;
	for (uint32_t n = 0; n < 300; n++) {
		struct ibv_qp *a = qp_make(here), *b = qp_make(there);
		struct ibv_mr *mr = NULL;

		bed_connect(here, a, there, b);
		assert_int_equal(calls->reg_mr(here->pd, here->bytes, 64, 0, &mr), 0);
		assert_int_equal(calls->dereg_mr(mr), 0);
		assert_int_equal(calls->destroy_qp(a), 0);
		assert_int_equal(calls->destroy_qp(b), 0);
	}
	return NULL;
}

static void objects_come_and_go_while_others_work(void **state) {
	struct worker *worker = &workers[0];
	pthread_t thread;

	(void)state;
	*worker = (struct worker){.qp = here->qp, .peer = there->qp};
	atomic_store(&done[0], 0);
	assert_int_equal(pthread_create(&thread, NULL, churn, NULL), 0);
	work(worker);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *poll_for_ever(void *arg) {
	struct ibv_wc wc;

	for (;;) {
		(void)ibv_poll_cq(arg, 1, &wc);
		pthread_testcancel();
	}
	return NULL;
}

// As on a real device, no hot call is a cancellation point. Otherwise a cancelled thread would keep
// the lock.
static void a_thread_that_is_cancelled_leaves_the_device_usable(void **state) {
	struct soft_config config = bed_config(2);
	struct ibv_device **list = bed.devices;
	struct ibv_context *context = NULL;
	struct timespec until;
	struct ibv_cq *cq = NULL;
	uint32_t count;

	(void)state;
	config.wire = SOFT_WIRE_UDP;
	config.address_any = true;
	assert_int_equal(soft_device_add(&config), 0);
	assert_int_equal(calls->device_list(&bed.devices, &count), 0);
	calls->device_list_free(list);
	assert_int_equal(calls->open(bed.devices[2], &context), 0);
	assert_int_equal(calls->create_cq(context, 1, NULL, &cq), 0);
	for (uint32_t n = 0; n < 20; n++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, poll_for_ever, cq), 0);
		sched_yield();
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 60;
		assert_int_equal(pthread_mutex_timedlock(&nic_of(context)->lock, &until), 0);
		pthread_mutex_unlock(&nic_of(context)->lock);
	}
	assert_int_equal(calls->destroy_cq(cq), 0);
	assert_int_equal(calls->close(context), 0);
}

static _Thread_local bool cancelled_in_bind;

// The linker prefers this definition to libc's. It makes the creation of a wire a cancellation
// point.
int bind(int fd, const struct sockaddr *address, socklen_t length) {
	if (cancelled_in_bind) {
		pthread_cancel(pthread_self());
		pthread_testcancel();
	}
	return (int)syscall(SYS_bind, fd, address, length);
}

static void *open_cancelled(void *arg) {
	struct ibv_context **context = arg;

	cancelled_in_bind = true;
	assert_int_equal(calls->open(bed.devices[2], context), 0);
	pthread_testcancel();
	fail_msg("it was cancelled");
	return NULL;
}

static void a_thread_that_is_cancelled_while_it_opens_leaves_a_whole_device(void **state) {
	struct soft_config config = bed_config(2);
	struct ibv_context *first = NULL, *second = NULL;
	struct ibv_device **list = bed.devices;
	pthread_t thread;
	uint32_t count;
	void *result;

	(void)state;
	config.wire = SOFT_WIRE_UDP;
	config.address_any = true;
	assert_int_equal(soft_device_add(&config), 0);
	assert_int_equal(calls->device_list(&bed.devices, &count), 0);
	calls->device_list_free(list);
	assert_int_equal(pthread_create(&thread, NULL, open_cancelled, &first), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_non_null(first);
	assert_int_equal(calls->open(bed.devices[2], &second), 0);
	assert_int_equal(calls->close(second), 0);
	assert_int_equal(calls->close(first), 0);
}

UNIT_GROUP(soft_verbs_threads) {
#define BED(test) cmocka_unit_test_setup_teardown(test, make, end)
	const struct CMUnitTest tests[] = {
		BED(threads_share_a_completion_queue),
		BED(who_sleeps_is_woken_by_each_completion),
		BED(a_device_is_opened_and_closed_by_many_at_once),
		BED(objects_come_and_go_while_others_work),
		BED(a_thread_that_is_cancelled_leaves_the_device_usable),
		BED(a_thread_that_is_cancelled_while_it_opens_leaves_a_whole_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
