// SPDX-License-Identifier: BSD-3-Clause
// Measures the cost of blocking a thread and waking it.
#include <dataplane/block_cost.h>
#include <lib/clock.h>
#include <lib/error.h>
#include <lib/scoped.h>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 15

static const uint64_t sleeps_ns[] = {100000, 1000000};

struct measurement {
	int wake_fd;  // the helper writes, the sleeper blocks on it
	int again_fd; // the sleeper writes, the helper blocks on it
	uint64_t sleep_ns;
	uint32_t sleeper_cpu;
	_Atomic uint64_t written_ns; // helper: write, sleeper: read
};

static void signal_eventfd(int fd) {
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one)); // a new eventfd has room
}

static void wait_eventfd(int fd) {
	struct pollfd wanted = {.fd = fd, .events = POLLIN};
	uint64_t count;

	while (poll(&wanted, 1, -1) < 0)
		;
	(void)!read(fd, &count, sizeof(count));
}

static void *helper_run(void *argument) {
	struct measurement *measurement = argument;
	struct timespec sleep = {.tv_nsec = (long)measurement->sleep_ns};
	cpu_set_t others;

	// Leave the sleeper's processor, which this thread inherits. Wake-ups of a worker come from
	// other processors; on its own one the sleeper would be found awake. If there is no other
	// processor, this thread stays. The first thread has the affinity of the process.
	if (sched_getaffinity(getpid(), sizeof(others), &others) == 0) {
		CPU_CLR(measurement->sleeper_cpu, &others);
		if (CPU_COUNT(&others) > 0)
			(void)sched_setaffinity(0, sizeof(others), &others);
	}
	for (int n = 0; n < ROUNDS; n++) {
		wait_eventfd(measurement->again_fd);
		// Give the sleeper time to fall asleep; the exact duration does not matter.
		clock_nanosleep(CLOCK_MONOTONIC, 0, &sleep, NULL);
		atomic_store_explicit(
			&measurement->written_ns, clock_monotonic_ns(), memory_order_relaxed
		);
		signal_eventfd(measurement->wake_fd
		); // the write orders the store before the wake-up
	}
	return NULL;
}

static int times_compare(const void *left, const void *right) {
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

int block_cost_measure(uint64_t *ret_block_ns) {
	scoped_fd int wake_fd = eventfd(0, EFD_CLOEXEC);
	scoped_fd int again_fd = eventfd(0, EFD_CLOEXEC);
	uint64_t least_ns = UINT64_MAX, times[ROUNDS];
	pthread_t helper;
	int err;

	if (wake_fd < 0 || again_fd < 0)
		return neg_errno();
	for (size_t n = 0; n < sizeof(sleeps_ns) / sizeof(sleeps_ns[0]); n++) {
		struct measurement measurement = {
			.wake_fd = wake_fd,
			.again_fd = again_fd,
			.sleep_ns = sleeps_ns[n],
			.sleeper_cpu = (uint32_t)sched_getcpu(),
		};

		err = -pthread_create(&helper, NULL, helper_run, &measurement);
		if (err != 0)
			return err;
		for (int round = 0; round < ROUNDS; round++) {
			signal_eventfd(again_fd);
			wait_eventfd(wake_fd);
			times[round] =
				clock_monotonic_ns() -
				atomic_load_explicit(&measurement.written_ns, memory_order_relaxed);
		}
		pthread_join(helper, NULL);
		qsort(times, ROUNDS, sizeof(times[0]), times_compare);
		if (times[ROUNDS / 2] < least_ns)
			least_ns = times[ROUNDS / 2]; // the median
	}
	*ret_block_ns = least_ns > 0 ? least_ns : 1;
	return 0;
}
