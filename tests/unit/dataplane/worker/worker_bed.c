// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/worker/worker_bed.h"

#include <poll.h>

struct clock monotonic;

struct worker_config config_of(enum idle_policy policy) {
	return (struct worker_config){
		.name = "worker-1",
		.cpu = WORKER_CPU_ANY,
		.clock = &monotonic,
		.idle = {.policy = policy, .block_ns = 20000, .window_ns = 1000},
	};
}

struct worker *started(const struct worker_config *config, struct worker_facts *ret_facts) {
	struct worker *worker;

	assert_int_equal(worker_create(config, &worker), 0);
	assert_int_equal(worker_start(worker, ret_facts), 0);
	return worker;
}

struct worker_record next_event(struct worker *worker) {
	struct pollfd fd = {.fd = worker_event_fd(worker), .events = POLLIN};
	struct worker_record record;

	while (worker_take_events(worker, &record, 1) == 0)
		assert_true(poll(&fd, 1, 60000) > 0);
	return record;
}

void echo(void *ctx, struct worker *worker, const struct worker_record *record) {
	(void)ctx;
	worker_event(worker, record);
}

void wait_until_blocked(struct worker *worker) {
	while (atomic_load(&worker->bell.armed) == 0)
		sched_yield();
}
