// SPDX-License-Identifier: BSD-3-Clause
// One program of the corpus that uses libtocsin itself.
//
//   job_program NAME RANKS SOCKET...
//
// Its ranks are processes that meet in barriers in shared memory; rank n uses socket n in turn.
// Rank 1 runs the behaviour of that name between two barriers. With "leave", rank 1 unregisters and
// ends too early.
#include "behaviours.h"

#include <tocsin/job.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX 64
#define STEPS 20
#define STEP_MS 10
#define SLOW_SECONDS 0.5
#define FLOAT 7 // NCCL's number

struct member {
	_Atomic unsigned int *arrived; // by rank; stored with release, loaded with acquire
	unsigned int rank, size, step;
	struct tocsin_job *job;
	struct tocsin_comm *comm;
};

static void all_reduce(struct member *member) {
	tocsin_comm_launched(member->comm, TOCSIN_ALL_REDUCE, 1024, FLOAT, -1);
	tocsin_comm_started(member->comm, TOCSIN_ALL_REDUCE);
	member->step++;
	atomic_store_explicit(&member->arrived[member->rank], member->step, memory_order_release);
	for (unsigned int n = 0; n < member->size; n++)
		while (atomic_load_explicit(&member->arrived[n], memory_order_acquire) <
		       member->step)
			(void)poll(NULL, 0, 1);
	tocsin_comm_completed(member->comm, TOCSIN_ALL_REDUCE);
}

static void take_steps(struct member *member, unsigned int count, double pause) {
	while (count-- > 0) {
		all_reduce(member);
		if (pause > 0)
			behaviour_compute(pause);
		else
			(void)poll(NULL, 0, STEP_MS);
	}
}

static int member_open(struct member *member, const char *socket, unsigned long long hash) {
	struct tocsin_job_config config = {.struct_size = sizeof(config), .socket_path = socket};
	struct tocsin_comm_config comm;
	int err = tocsin_job_open(&config, &member->job);

	if (err != 0)
		return err;
	tocsin_comm_config_init(&comm);
	comm.comm_hash = hash;
	comm.size = member->size;
	comm.rank = member->rank;
	comm.flags = TOCSIN_COMM_TIMES | TOCSIN_COMM_BLOCKS;
	comm.name = "corpus";
	return tocsin_comm_register(member->job, &comm, &member->comm);
}

static int run_rank(struct member *member, const char *name) {
	int err = 0;

	take_steps(member, STEPS, 0);
	if (strcmp(name, "straggle") == 0) {
		behaviour_mark();
		take_steps(
			member, (unsigned int)(behaviour_seconds() / SLOW_SECONDS),
			member->rank == 1 ? SLOW_SECONDS : 0
		);
	} else if (strcmp(name, "leave") == 0) {
		behaviour_mark();
	} else if (member->rank == 1) {
		err = behaviour_run(name);
	}
	if (err != 0)
		fprintf(stderr, "job_program: no behaviour is called \"%s\"\n", name);
	if (strcmp(name, "leave") != 0 || member->rank != 1)
		take_steps(member, STEPS, 0);
	tocsin_comm_unregister(member->comm);
	tocsin_job_close(member->job);
	return err != 0;
}

int main(int argc, char **argv) {
	unsigned int size = argc > 3 ? (unsigned int)strtoul(argv[2], NULL, 10) : 0;
	unsigned int failed = 0;
	_Atomic unsigned int *arrived;
	struct timespec now;
	unsigned long long hash;
	pid_t parent = getpid();
	int status;

	if (size < 2 || size > RANKS_MAX) {
		fprintf(stderr, "usage: job_program NAME RANKS SOCKET...\n");
		return 2;
	}
	arrived =
		mmap(NULL, RANKS_MAX * sizeof(*arrived), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (arrived == MAP_FAILED)
		return 1;
	clock_gettime(CLOCK_REALTIME, &now);
	hash = (unsigned long long)parent << 32 ^ (unsigned long long)now.tv_nsec;
	for (unsigned int rank = 0; rank < size; rank++) {
		struct member member = {.arrived = arrived, .rank = rank, .size = size};
		int err;

		if (fork() != 0)
			continue;
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
			_exit(1);
		err = member_open(&member, argv[3 + rank % (unsigned int)(argc - 3)], hash);
		if (err != 0)
			fprintf(stderr, "job_program: rank %u: %s\n", rank, strerror(-err));
		_exit(err != 0 ? 1 : run_rank(&member, argv[1]));
	}
	while (wait(&status) > 0)
		failed += status != 0;
	printf("%s\n", failed == 0 ? "whole" : "failed");
	return failed != 0;
}
