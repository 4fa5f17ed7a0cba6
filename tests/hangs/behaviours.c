// SPDX-License-Identifier: BSD-3-Clause
// Behaviours of the corpus. Real programs show each of them between two operations. The caller is
// one rank and has one thread; a behaviour that needs children or threads starts and ends them.
#include "behaviours.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 30
#define TEAM 4
#define MIB (1u << 20)
#define GROW_MIB 128
#define FILE_MIB 32
#define PIPE_PIECE 512

static double now(void) {
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void sleep_for(double seconds) {
	(void)poll(NULL, 0, (int)(seconds * 1000));
}

void behaviour_mark(void) {
	const char *path = getenv("CORPUS_MARK");
	int fd = path != NULL ? open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) : -1;

	if (fd >= 0)
		close(fd);
}

unsigned int behaviour_seconds(void) {
	const char *text = getenv("CORPUS_SECONDS");
	unsigned long seconds = text != NULL ? strtoul(text, NULL, 10) : SECONDS;

	return seconds > 0 && seconds <= 3600 ? (unsigned int)seconds : SECONDS;
}

void behaviour_compute(double seconds) {
	double until = now() + seconds;

	while (now() < until) {
	}
}

// Fork a child that dies with its parent. The standard output of the parent may be a pipe that the
// runner reads to its end, so the child gives it up.
static pid_t child_fork(void) {
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(1);
	close(STDOUT_FILENO);
	return 0;
}

static void child_wait(pid_t pid) {
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
	}
}

// The child takes 512 bytes of the pipe in each half second.
static void write_to_slow_pipe(void) {
	char piece[PIPE_PIECE], big[1 << 16] = {0};
	int ends[2], more = (int)behaviour_seconds() * 2;
	pid_t pid;

	if (pipe(ends) != 0)
		return;
	pid = child_fork();
	if (pid == 0) {
		close(ends[1]);
		for (int n = 0; n < more; n++) {
			if (read(ends[0], piece, sizeof(piece)) <= 0)
				break;
			sleep_for(0.5);
		}
		while (read(ends[0], piece, sizeof(piece)) > 0) {
		}
		_exit(0);
	}
	close(ends[0]);
	for (int n = 0; n < 2; n++)
		if (write(ends[1], big, sizeof(big)) < 0)
			perror("write");
	close(ends[1]);
	child_wait(pid);
}

static FILE *scratch_open(void) {
	const char *directory = getenv("TMPDIR");
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/behaviour-XXXXXX", directory != NULL ? directory : "/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		return NULL;
	unlink(path);
	return fdopen(fd, "w+");
}

static void write_file(bool is_synced) {
	static char text[MIB];
	double until = now() + behaviour_seconds();
	FILE *file = scratch_open();

	while (file != NULL && now() < until) {
		rewind(file);
		for (int n = 0; n < (is_synced ? 4 : FILE_MIB); n++)
			fwrite(text, sizeof(text), 1, file);
		fflush(file);
		if (is_synced)
			(void)fsync(fileno(file));
	}
	if (file != NULL)
		fclose(file);
}

static void write_synced(void) {
	write_file(true);
}

static void write_page_cache(void) {
	write_file(false);
}

static void shell_run(const char *command) {
	pid_t pid = child_fork();

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	child_wait(pid);
}

static void wait_for_compressor(void) {
	char command[128];

	snprintf(
		command, sizeof(command), "timeout %u gzip -9 </dev/zero >/dev/null 2>&1; true",
		behaviour_seconds()
	);
	shell_run(command);
}

static void run_short_children(void) {
	double until = now() + behaviour_seconds();

	while (now() < until)
		shell_run("sleep 0.2; true");
}

static void compute_alone(void) {
	behaviour_compute(behaviour_seconds());
}

static void sleep_alone(void) {
	sleep_for(behaviour_seconds());
}

// A quota of 0.5 % of a processor: 2 ms in 400 ms.
static void compute_by_quota(void) {
	double until = now() + behaviour_seconds();

	while (now() < until) {
		behaviour_compute(0.002);
		sleep_for(0.398);
	}
}

static void wait_for_file_lock(void) {
	FILE *file = scratch_open();
	char path[64];
	int ends[2], own;
	pid_t pid;

	if (file == NULL || pipe(ends) != 0)
		return;
	pid = child_fork();
	if (pid == 0) {
		flock(fileno(file), LOCK_EX);
		(void)!write(ends[1], "x", 1);
		sleep_for(behaviour_seconds());
		flock(fileno(file), LOCK_UN); // the parent shares the description
		_exit(0);
	}
	(void)!read(ends[0], path, 1);
	// A description of its own, which the lock of the child excludes.
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(file));
	own = open(path, O_RDWR | O_CLOEXEC);
	flock(own, LOCK_EX);
	close(own);
	child_wait(pid);
	close(ends[0]);
	close(ends[1]);
	fclose(file);
}

static void grow_memory(void) {
	static char *pieces[GROW_MIB];
	double pause = (double)behaviour_seconds() / GROW_MIB;

	for (int n = 0; n < GROW_MIB; n++) {
		pieces[n] = malloc(MIB);
		if (pieces[n] != NULL)
			memset(pieces[n], n, MIB);
		sleep_for(pause);
	}
	for (int n = 0; n < GROW_MIB; n++)
		free(pieces[n]);
}

static void *team_work(void *context) {
	behaviour_compute(behaviour_seconds());
	return context;
}

static void wait_for_team(void) {
	pthread_t ids[TEAM];

	for (int n = 0; n < TEAM; n++)
		pthread_create(&ids[n], NULL, team_work, NULL);
	for (int n = 0; n < TEAM; n++)
		pthread_join(ids[n], NULL);
}

// A sampling tool reads what the kernel publishes of the process; it does not use ptrace.
static void be_sampled(void) {
	static const char *const names[] = {"stack", "maps", "syscall", "wchan", "status"};
	pid_t parent = getpid(), pid = child_fork();
	char path[64], text[4096];

	if (pid != 0) {
		sleep_for(behaviour_seconds());
		kill(pid, SIGKILL);
		child_wait(pid);
		return;
	}
	for (unsigned int n = 0;; n++) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/%s", parent, names[n % 5]);
		file = fopen(path, "r");
		while (file != NULL && fread(text, 1, sizeof(text), file) == sizeof(text)) {
		}
		if (file != NULL)
			fclose(file);
		sleep_for(0.01);
	}
}

static void stop_briefly(void) {
	pid_t parent = getpid(), pid = child_fork();

	if (pid == 0) {
		kill(parent, SIGSTOP);
		sleep_for(5);
		kill(parent, SIGCONT);
		_exit(0);
	}
	child_wait(pid);
}

// Behaviours that hang.

static void read_from_pipe(void) {
	int ends[2];
	char byte;

	if (pipe(ends) == 0)
		(void)!read(ends[0], &byte, 1);
}

static void loop_endlessly(void) {
	for (;;)
		behaviour_compute(1);
}

static void stop_for_ever(void) {
	raise(SIGSTOP);
}

static void wait_for_dead_child(void) {
	pid_t pid = child_fork();

	if (pid == 0)
		for (;;)
			pause();
	child_wait(pid);
}

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static atomic_int holders;

static void *lock_both(void *context) {
	int first = context != NULL;

	pthread_mutex_lock(&locks[first]);
	atomic_fetch_add(&holders, 1);
	while (atomic_load(&holders) < 2)
		sleep_for(0.01);
	pthread_mutex_lock(&locks[!first]);
	return NULL;
}

static void lock_in_other_order(void) {
	pthread_t id;

	pthread_create(&id, NULL, lock_both, locks);
	lock_both(NULL);
}

int behaviour_run(const char *name) {
	static const struct {
		const char *name;
		void (*play)(void);
	} behaviours[] = {
		{"pipe-slow", write_to_slow_pipe},
		{"fsync", write_synced},
		{"page-cache", write_page_cache},
		{"compress", wait_for_compressor},
		{"children", run_short_children},
		{"compute", compute_alone},
		{"sleep", sleep_alone},
		{"trickle", compute_by_quota},
		{"flock", wait_for_file_lock},
		{"grow", grow_memory},
		{"team", wait_for_team},
		{"sampled", be_sampled},
		{"stop-briefly", stop_briefly},
		{"pipe-read", read_from_pipe},
		{"loop", loop_endlessly},
		{"stopped", stop_for_ever},
		{"child-waits", wait_for_dead_child},
		{"lock-order", lock_in_other_order},
	};

	for (unsigned int n = 0; n < sizeof(behaviours) / sizeof(behaviours[0]); n++) {
		if (strcmp(behaviours[n].name, name) != 0)
			continue;
		behaviour_mark();
		behaviours[n].play();
		return 0;
	}
	return -ENOENT;
}
