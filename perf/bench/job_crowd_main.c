// SPDX-License-Identifier: BSD-3-Clause
// A crowd of job processes of one user, which register communicators and then sleep. It shows what
// one user costs the agent.
//
//     tocsin-job-crowd SOCKET USER PROCESSES COMMUNICATORS
//
// It prints "ready" once all processes are registered. When its input ends, all of them are killed.
#include <lib/must.h>
#include <lib/parse.h>
#include <tocsin/job.h>

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct crowd {
	const char *socket_path;
	uid_t uid;
	uint32_t process_count, comm_count;
};

static _Noreturn void run_member(const struct crowd *crowd, uint32_t number, int done_fd) {
	const struct tocsin_job_config config = {
		.struct_size = sizeof(config),
		.socket_path = crowd->socket_path,
		.job_id = "crowd:1",
		.flags = TOCSIN_JOB_NO_THREAD,
	};
	struct tocsin_comm_config told;
	struct tocsin_comm *comm = NULL;
	struct tocsin_job *job;

	must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	must(setgid((gid_t)crowd->uid) == 0 && setuid(crowd->uid) == 0);
	must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0); // setuid() clears the signal
	must(tocsin_job_open(&config, &job) == 0);
	tocsin_comm_config_init(&told);
	told.size = 2; // the other rank is nowhere, so the roster stays incomplete
	for (uint32_t n = 0; n < crowd->comm_count; n++) {
		told.comm_hash = (uint64_t)crowd->uid << 32 | (number * crowd->comm_count + n);
		must(tocsin_comm_register(job, &told, &comm) == 0);
		tocsin_comm_launched(comm, TOCSIN_ALL_REDUCE, 1, 7, -1);
	}
	while (tocsin_comm_state(comm, NULL, 0) != TOCSIN_JOB_CONNECTED) {
		(void)tocsin_job_poll(job);
		(void)poll(NULL, 0, 20);
	}
	must(write(done_fd, "r", 1) == 1);
	for (;;)
		(void)pause();
}

static uint32_t parse_argument(const char *text) {
	uint64_t value;

	if (parse_u64(text, strlen(text), 1, UINT32_MAX, NULL, &value) == 0)
		return (uint32_t)value;
	fprintf(stderr, "\"%s\" is not a number from 1 on\n", text);
	_exit(2);
}

int main(int argc, char **argv) {
	struct crowd crowd;
	uint32_t ready = 0;
	char byte;
	pid_t *pids;
	int fds[2];

	if (argc != 5) {
		fprintf(stderr, "usage: %s SOCKET USER PROCESSES COMMUNICATORS\n", argv[0]);
		return 2;
	}
	crowd.socket_path = argv[1];
	crowd.uid = parse_argument(argv[2]);
	crowd.process_count = parse_argument(argv[3]);
	crowd.comm_count = parse_argument(argv[4]);
	pids = calloc(crowd.process_count + 1, sizeof(*pids));
	must(pids != NULL && pipe(fds) == 0);
	for (uint32_t n = 0; n < crowd.process_count; n++) {
		pids[n] = fork();
		must(pids[n] >= 0);
		if (pids[n] == 0)
			run_member(&crowd, n, fds[1]);
	}
	while (ready < crowd.process_count && read(fds[0], &byte, 1) == 1)
		ready++;
	puts("ready");
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0) {
	}
	for (uint32_t n = 0; n < crowd.process_count; n++)
		(void)kill(pids[n], SIGKILL);
	for (uint32_t n = 0; n < crowd.process_count; n++)
		(void)waitpid(pids[n], NULL, 0);
	free(pids);
	return 0;
}
