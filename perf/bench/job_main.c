// SPDX-License-Identifier: BSD-3-Clause
// Cost of counting for a job: libtocsin linked to a program, without an agent.
#include "micro.h"

#include <lib/clock.h>
#include <lib/must.h>
#include <tocsin/job.h>

#include <stdatomic.h>

// Shared by all slices, so that no slice registers anything while its time is measured.
static struct tocsin_job *job;
static struct tocsin_comm *plain, *timed;
static struct tocsin_counter *counter;

static void prepare_job(void) {
	const struct tocsin_job_config config = {
		.struct_size = sizeof(config),
		.socket_path = "/nonexistent/job.sock",
		.flags = TOCSIN_JOB_NO_THREAD,
	};
	struct tocsin_comm_config comm;

	if (job != NULL)
		return;
	must(tocsin_job_open(&config, &job) == 0);
	tocsin_comm_config_init(&comm);
	comm.size = 8;
	must(tocsin_comm_register(job, &comm, &plain) == 0);
	must(tocsin_comm_counter(plain, &counter) == 0);
	comm.flags = TOCSIN_COMM_TIMES;
	must(tocsin_comm_register(job, &comm, &timed) == 0);
	// The first operation of a thread allocates its slot.
	tocsin_comm_launched(plain, TOCSIN_ALL_REDUCE, 1, 7, -1);
	tocsin_comm_launched(timed, TOCSIN_ALL_REDUCE, 1, 7, -1);
}

static uint64_t store_release(uint64_t rounds) {
	static _Atomic uint64_t count;
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++)
		atomic_store_explicit(
			&count, atomic_load_explicit(&count, memory_order_relaxed) + 1,
			memory_order_release
		);
	return clock_monotonic_ns() - start_ns;
}

static uint64_t read_clock(uint64_t rounds) {
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++)
		micro_keep(clock_monotonic_ns());
	return clock_monotonic_ns() - start_ns;
}

static uint64_t count_launch(uint64_t rounds) {
	uint64_t start_ns;

	prepare_job();
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++)
		tocsin_comm_launched(plain, TOCSIN_ALL_REDUCE, n, 7, -1);
	return clock_monotonic_ns() - start_ns;
}

static uint64_t launch_counter(uint64_t rounds) {
	uint64_t start_ns;

	prepare_job();
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++)
		tocsin_counter_launched(counter, TOCSIN_ALL_REDUCE, n, 7, -1);
	return clock_monotonic_ns() - start_ns;
}

static uint64_t count_completion(uint64_t rounds) {
	uint64_t start_ns;

	prepare_job();
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++)
		tocsin_comm_completed(plain, TOCSIN_ALL_REDUCE);
	return clock_monotonic_ns() - start_ns;
}

static uint64_t launch_timed(uint64_t rounds) {
	uint64_t start_ns;

	prepare_job();
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++)
		tocsin_comm_launched(timed, TOCSIN_ALL_REDUCE, n, 7, -1);
	return clock_monotonic_ns() - start_ns;
}

static uint64_t query_abort(uint64_t rounds) {
	uint64_t start_ns;

	prepare_job();
	start_ns = clock_monotonic_ns();
	for (uint64_t n = 0; n < rounds; n++)
		micro_keep(tocsin_comm_should_abort(plain));
	return clock_monotonic_ns() - start_ns;
}

static const struct micro_row rows[] = {
	{"count a launch with its signature", count_launch, "a release store", store_release, "ns",
	 MICRO_TARGET_VALUE, 5.0},
	{"the same on a counter of the caller's", launch_counter, "a release store", store_release,
	 "ns", MICRO_TARGET_VALUE, 5.0},
	{"count a completion", count_completion, "a release store", store_release, "ns",
	 MICRO_TARGET_VALUE, 5.0},
	{"count a launch with its time", launch_timed, "clock_gettime()", read_clock, "ns",
	 MICRO_TARGET_NONE, 0},
	{"ask whether to abort", query_abort, "a release store", store_release, "ns",
	 MICRO_TARGET_NONE, 0},
};

int main(int argc, char **argv) {
	return micro_run("job-count", rows, sizeof(rows) / sizeof(rows[0]), argc, argv);
}
