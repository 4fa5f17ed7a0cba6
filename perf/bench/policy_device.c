// SPDX-License-Identifier: BSD-3-Clause
// A device whose operations complete at a given time of the worker's clock. It behaves like a
// completion queue with its channel. When armed, it reports the next completion once. The report
// stays readable until it is read, even if the completion was polled before.
//
// The descriptor is a timer for the first completion, so waits are real waits that end with an
// interrupt. A real device would interrupt another processor. The timer interrupts this one, even
// while it polls, so the timer is disarmed while the worker is awake.
//
// The functions up to policy_device_request() run on the worker's thread. Control calls the
// remaining ones; it starts a slice by a request and waits on a semaphore.
#include "policy.h"

#include <lib/clock.h>
#include <lib/error.h>
#include <lib/must.h>

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define UNDER_WAY_MAX 2048
#define BUSY_RETRY_NS 100000 // wait before retrying, when the request ring was full

enum { REQUEST_BEGIN, REQUEST_PLAY, REQUEST_OP };

struct under_way {
	uint64_t late_ns;
	uint64_t posted_ns;
	uint64_t due_ns;
};

struct policy_device {
	const struct clock *clock;
	int timer_fd;
	bool armed;
	bool completion_reported; // a completion was reported since arming
	bool timer_set;
	// Polls that the worker still makes before it sleeps.
	uint32_t polls_before_sleep;
	// Descending by due_ns: the first to complete is last.
	struct under_way under_way[UNDER_WAY_MAX];
	uint32_t under_way_count;
	uint32_t begun; // operations started since the last poll
	// State of the slice.
	const struct policy_trace *probes; // NULL: a caller posts the operations
	uint64_t start_ns;
	uint32_t probe_next;
	uint32_t expected;
	uint32_t done;
	bool control_waits;
	sem_t control_sem;
	struct policy_sample samples[POLICY_OPS_MAX];
};

static void operation_post(struct policy_device *device, uint64_t asked_ns, uint64_t takes_ns) {
	uint64_t now_ns = clock_now_ns(device->clock);
	struct under_way op = {
		.late_ns = now_ns > asked_ns ? now_ns - asked_ns : 0,
		.posted_ns = now_ns,
		.due_ns = now_ns + takes_ns,
	};
	uint32_t place = device->under_way_count++;

	must(place < UNDER_WAY_MAX);
	for (; place > 0 && device->under_way[place - 1].due_ns < op.due_ns; place--)
		device->under_way[place] = device->under_way[place - 1];
	device->under_way[place] = op;
	device->begun++;
}

static bool post_probes(struct policy_device *device, struct idle_step_findings *found) {
	const struct policy_trace *probes = device->probes;
	bool posted = false;

	for (; probes != NULL && device->probe_next < probes->count; device->probe_next++) {
		const struct policy_op *op = &probes->ops[device->probe_next];
		uint64_t due_ns = device->start_ns + op->at_ns;

		if (due_ns > found->now_ns) {
			found->due_ns = due_ns < found->due_ns ? due_ns : found->due_ns;
			break;
		}
		operation_post(device, due_ns, op->takes_ns);
		posted = true;
	}
	return posted;
}

static bool
complete_due_operations(struct policy_device *device, struct idle_step_findings *found) {
	uint32_t before = device->done;

	while (device->under_way_count > 0) {
		const struct under_way *op = &device->under_way[device->under_way_count - 1];

		if (op->due_ns > found->now_ns)
			break;
		device->samples[device->done++] = (struct policy_sample){
			.late_ns = op->late_ns,
			.took_ns = found->now_ns - op->posted_ns,
			.added_ns = found->now_ns - op->due_ns,
		};
		device->under_way_count--;
	}
	found->ended += device->done - before;
	device->completion_reported |= device->armed && device->done != before;
	return device->done != before;
}

// Set the timer; 0 disarms it.
static void set_timer(struct policy_device *device, uint64_t at_ns) {
	const struct itimerspec timer = {
		.it_value = {
			.tv_sec = (time_t)(at_ns / 1000000000),
			.tv_nsec = (long)(at_ns % 1000000000),
		}};

	device->timer_set = at_ns != 0;
	must(timerfd_settime(device->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL) == 0);
}

static void disarm_timer(struct policy_device *device) {
	if (device->polls_before_sleep > 0)
		device->polls_before_sleep--;
	else
		set_timer(device, 0);
}

static bool poll_device(void *ctx, struct idle_step_findings *found) {
	struct policy_device *device = ctx;
	bool progress;

	if (device->timer_set)
		disarm_timer(device);
	progress = complete_due_operations(device, found);
	progress |= post_probes(device, found);
	found->begun += device->begun;
	device->begun = 0;
	found->outstanding |= device->under_way_count > 0;
	return progress;
}

static void timer_arm(void *ctx) {
	struct policy_device *device = ctx;
	uint64_t now_ns, due_ns;

	device->polls_before_sleep = 1;
	if (device->completion_reported) {
		set_timer(device, 1); // a time in the past: expires at once
	} else if (device->under_way_count > 0) {
		device->armed = true;
		now_ns = clock_now_ns(device->clock);
		due_ns = device->under_way[device->under_way_count - 1].due_ns;
		set_timer(device, clock_monotonic_ns() + (due_ns > now_ns ? due_ns - now_ns : 0));
	}
}

static void timer_woken(void *ctx) {
	struct policy_device *device = ctx;
	uint64_t count;

	if (read(device->timer_fd, &count, sizeof(count)) != sizeof(count))
		return;
	device->armed = device->completion_reported = device->timer_set = false;
}

static void control_notify(void *ctx) {
	struct policy_device *device = ctx;

	if (!device->control_waits || device->done < device->expected)
		return;
	device->control_waits = false;
	sem_post(&device->control_sem);
}

void policy_device_request(void *ctx, struct worker *worker, const struct worker_record *record) {
	struct policy_device *device = ctx;

	(void)worker;
	if (record->kind == REQUEST_OP) {
		operation_post(device, record->words[0], record->words[1]);
		return;
	}
	device->done = 0;
	device->probe_next = 0;
	device->expected = (uint32_t)record->words[0];
	device->probes = worker_word_to_pointer(record->words[1]);
	device->start_ns = record->words[2];
	device->control_waits = true;
}

int policy_device_create(const struct clock *clock, struct policy_device **ret_device) {
	struct policy_device *device = calloc(1, sizeof(*device));

	if (device == NULL)
		return -ENOMEM;
	device->clock = clock;
	sem_init(&device->control_sem, 0, 0);
	device->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (device->timer_fd < 0) {
		int err = neg_errno();

		policy_device_destroy(device);
		return err;
	}
	*ret_device = device;
	return 0;
}

struct policy_device *policy_device_destroy(struct policy_device *device) {
	if (device == NULL)
		return NULL;
	if (device->timer_fd >= 0)
		close(device->timer_fd);
	sem_destroy(&device->control_sem);
	free(device);
	return NULL;
}

struct worker_poll policy_device_poll(struct policy_device *device) {
	return (struct worker_poll){
		.poll = poll_device,
		.ctx = device,
		.fd = device->timer_fd,
		.arm = timer_arm,
		.woken = timer_woken,
		.notify = control_notify,
	};
}

static void record_post(struct worker *worker, const struct worker_record *record) {
	const struct timespec retry = {.tv_nsec = BUSY_RETRY_NS};

	while (worker_post_request(worker, record) != 0)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &retry, NULL);
}

static void wait_for_worker(struct policy_device *device) {
	while (sem_wait(&device->control_sem) != 0)
		; // interrupted by a signal
}

void policy_device_begin(struct policy_device *device, struct worker *worker) {
	const struct worker_record record = {.kind = REQUEST_BEGIN};

	record_post(worker, &record);
	wait_for_worker(device);
}

static void sleep_until(uint64_t at_ns) {
	struct timespec until = {
		.tv_sec = (time_t)(at_ns / 1000000000), .tv_nsec = (long)(at_ns % 1000000000)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

const struct policy_sample *policy_device_play(
	struct policy_device *device,
	struct worker *worker,
	const struct policy_trace *trace,
	enum policy_arrival arrival
) {
	uint64_t start_ns = clock_monotonic_ns();
	bool probes = arrival == POLICY_PERIODIC;
	struct worker_record record = {
		.kind = REQUEST_PLAY,
		.words =
			{trace->count, worker_pointer_to_word(probes ? trace : NULL),
			 clock_now_ns(device->clock)},
	};

	record_post(worker, &record);
	for (uint32_t n = 0; n < trace->count && !probes; n++) {
		sleep_until(start_ns + trace->ops[n].at_ns);
		record = (struct worker_record){
			.kind = REQUEST_OP,
			.words = {clock_now_ns(device->clock), trace->ops[n].takes_ns},
		};
		record_post(worker, &record);
	}
	wait_for_worker(device);
	return device->samples;
}
