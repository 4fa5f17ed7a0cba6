// SPDX-License-Identifier: BSD-3-Clause
// Runs Slurm's programs with a deadline and reads their output.
#include "slurm/slurm_program.h"

#include <lib/clock.h>
#include <lib/error.h>
#include <lib/show.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 16
#define WORDS_BYTES 200 // bytes kept of standard error

enum { OUT, ERR, STREAMS };

struct run {
	pid_t pid;
	int fds[STREAMS]; // -1: end of file reached
	char *bytes[STREAMS];
	size_t used[STREAMS], capacity[STREAMS];
	uint64_t due_ns;
	struct clock clock;
};

// Run the program in the child. Uses only functions that are safe between fork() and exec().
static void child_exec(const char *path, char *const *argv, int out, int err) {
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(126);
	execvp(path, argv);
	_exit(errno == ENOENT ? 127 : 126);
}

static int program_start(struct run *run, const char *path, char *const *argv) {
	int out[2], err[2];

	if (pipe2(out, O_CLOEXEC) != 0)
		return neg_errno();
	if (pipe2(err, O_CLOEXEC) != 0) {
		close(out[0]);
		close(out[1]);
		return -EMFILE;
	}
	run->pid = fork();
	if (run->pid == 0)
		child_exec(path, argv, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	run->fds[OUT] = out[0];
	run->fds[ERR] = err[0];
	return run->pid < 0 ? -EAGAIN : 0;
}

static int output_read(struct run *run, int stream) {
	size_t capacity = run->capacity[stream] == 0 ? 65536 : 2 * run->capacity[stream];
	char *bytes;
	ssize_t got;

	if (run->used[stream] + 1 >= run->capacity[stream]) {
		if (capacity > SLURM_OUTPUT_BYTES_MAX)
			return -EFBIG;
		bytes = realloc(run->bytes[stream], capacity);
		if (bytes == NULL)
			return -ENOMEM;
		run->bytes[stream] = bytes;
		run->capacity[stream] = capacity;
	}
	got =
		read(run->fds[stream], run->bytes[stream] + run->used[stream],
		     run->capacity[stream] - run->used[stream] - 1);
	if (got < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : neg_errno();
	run->used[stream] += (size_t)got;
	run->bytes[stream][run->used[stream]] = '\0';
	if (got > 0)
		return 0;
	close(run->fds[stream]);
	run->fds[stream] = -1;
	return 0;
}

static int run_remaining_ms(const struct run *run) {
	uint64_t now_ns = clock_now_ns(&run->clock);

	return now_ns < run->due_ns ? (int)((run->due_ns - now_ns) / 1000000) + 1 : 0;
}

// Read until both streams end or the deadline is reached; a process left by the program may keep
// them open.
static int run_read_output(struct run *run) {
	int err = 0;

	while (err == 0 && (run->fds[OUT] >= 0 || run->fds[ERR] >= 0)) {
		struct pollfd polled[STREAMS] = {
			{.fd = run->fds[OUT], .events = POLLIN},
			{.fd = run->fds[ERR], .events = POLLIN},
		};
		int ready = poll(polled, STREAMS, run_remaining_ms(run));

		if (ready == 0)
			return -ETIMEDOUT;
		if (ready < 0 && errno != EINTR)
			return neg_errno();
		for (int stream = 0; ready > 0 && err == 0 && stream < STREAMS; stream++) {
			if (polled[stream].revents != 0)
				err = output_read(run, stream);
		}
	}
	return err;
}

// Wait for the exit until the deadline. A program may close its streams long before it exits.
static int run_wait_exit(struct run *run, int *ret_status) {
	for (;;) {
		pid_t ended = waitpid(run->pid, ret_status, WNOHANG);

		if (ended == run->pid)
			return 0;
		if (ended < 0 && errno != EINTR)
			return neg_errno();
		if (run_remaining_ms(run) == 0)
			return -ETIMEDOUT;
		poll(NULL, 0, 1);
	}
}

// Kill the program and its process group. A program in uninterruptible sleep is reaped later, by
// the next slurm_program_run().
static void run_kill_group(struct run *run) {
	int status;

	kill(-run->pid, SIGKILL);
	kill(run->pid, SIGKILL);
	for (int tries = 0; tries < 100; tries++) {
		if (waitpid(run->pid, &status, WNOHANG) != 0)
			return;
		poll(NULL, 0, 10);
	}
}

static int program_finish(
	struct run *run, const struct slurm_program *program, int err, char ret_why[static 256]
) {
	const char *path = program->path, *said;
	char timeout[SHOW_BYTES], most[SHOW_BYTES];
	int status = 0, length;

	if (err == 0)
		err = run_wait_exit(run, &status);
	if (err != 0) {
		run_kill_group(run);
		show_duration(program->timeout_ns, timeout);
		show_bytes(SLURM_OUTPUT_BYTES_MAX, most);
		if (err == -ETIMEDOUT)
			snprintf(
				ret_why, 256, "%.60s: did not end within %s, and was killed", path,
				timeout
			);
		else if (err == -EFBIG)
			snprintf(
				ret_why, 256, "%.60s: printed more than %s, and was killed", path,
				most
			);
		else
			snprintf(ret_why, 256, "%.60s: %s", path, strerrordesc_np(-err));
		return err;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	// After a failed read, the buffer might hold no text: use it only if both streams ended.
	said = run->bytes[ERR] != NULL ? run->bytes[ERR] : "";
	length = (int)strcspn(said, "\r\n");
	if (length > WORDS_BYTES - 80)
		length = WORDS_BYTES - 80;
	if (WIFSIGNALED(status))
		snprintf(ret_why, 256, "%.60s: ended by signal %d", path, WTERMSIG(status));
	else if (WEXITSTATUS(status) == 127 && length == 0)
		snprintf(ret_why, 256, "%.60s: no such program", path);
	else
		snprintf(
			ret_why, 256, "%.60s: exit status %d%s%.*s", path, WEXITSTATUS(status),
			length > 0 ? ": " : "", length, said
		);
	return -EREMOTEIO;
}

int slurm_program_run(
	const struct slurm_program *program,
	const char *const *argv,
	char **ret_output,
	char ret_why[static 256]
) {
	struct run run = {.fds = {-1, -1}};
	char *arguments[ARGUMENTS_MAX + 1] = {(char *)program->path};
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	int status, err;

	for (size_t n = 1; n < ARGUMENTS_MAX && argv[n] != NULL; n++)
		arguments[n] = (char *)argv[n];

	// If SIGCHLD was ignored at our start, exit statuses would be lost. Also reap programs that
	// outlived their deadline.
	sigaction(SIGCHLD, &standard, NULL);
	while (waitpid(-1, &status, WNOHANG) > 0)
		;
	clock_init_monotonic(&run.clock);
	run.due_ns = clock_now_ns(&run.clock) + program->timeout_ns;
	err = program_start(&run, program->path, arguments);
	if (err != 0)
		snprintf(ret_why, 256, "%.60s: %s", program->path, strerrordesc_np(-err));
	else
		err = program_finish(&run, program, run_read_output(&run), ret_why);
	if (err == 0) {
		*ret_output = run.bytes[OUT] != NULL ? run.bytes[OUT] : strdup("");
		run.bytes[OUT] = NULL;
		if (*ret_output == NULL)
			err = -ENOMEM;
	}
	for (int stream = 0; stream < STREAMS; stream++) {
		if (run.fds[stream] >= 0)
			close(run.fds[stream]);
		free(run.bytes[stream]);
	}
	return err;
}
