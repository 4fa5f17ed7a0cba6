// SPDX-License-Identifier: BSD-3-Clause
// Parent process of the command.
//
// The parent stays in the command's process group. A terminal signals both processes, so only
// signals sent to the parent alone are forwarded. The parent keeps no inherited descriptor, except
// the connection to Hydra. A reader that waits for the end of a pipe therefore waits only for the
// command.
//
// Hydra (mpiexec of MPICH and Intel MPI) kills a rank whose connection closes early. The parent
// keeps the connection open, so the command's status becomes its own before Hydra kills it.
#include "run/child.h"

#include "run/memory.h"
#include "run/tell.h"

#include <lib/error.h>
#include <lib/parse.h>
#include <lib/sort.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGENT_RETRY_MS 5000 // interval at which a missing agent is looked for

struct parent {
	pid_t child;
	int signal_fd;
	struct exit_reporter exit_reporter;
	uint64_t memory_oom_kills; // OOM kills of this control group before the command ran
};

// Signal settings of this process before it changed them; restored for the command.
struct inherited {
	sigset_t mask;
	struct sigaction child_action;
};

static void __attribute__((noreturn)) child_exec(
	const char *path,
	char *const *words,
	const struct inherited *inherited,
	pid_t parent,
	int failed_fd
) {
	int err;

	// If the parent is killed, the kernel kills the command. The parent may be dead already.
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	(void)sigaction(SIGCHLD, &inherited->child_action, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &inherited->mask, NULL);
	execv(path, words);
	err = neg_errno();
	if (err == -ENOEXEC) {
		// execvp() passes a script without #! to the shell.
		execvp(path, words);
		err = neg_errno();
	}
	while (write(failed_fd, &err, sizeof(err)) < 0 && errno == EINTR) {
	}
	_exit(EXIT_FAILURE);
}

static int compare_descriptors(const void *a, const void *b) {
	return *(const int *)a - *(const int *)b;
}

// Close all descriptors but these (negative ones are ignored), and point the standard streams to
// /dev/null.
static void close_other_descriptors(int *kept, uint32_t count) {
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned int from = STDERR_FILENO + 1;

	for (int fd = 0; fd <= STDERR_FILENO && null_fd >= 0; fd++)
		(void)dup2(null_fd, fd);
	sort_rows(kept, count, sizeof(*kept), compare_descriptors);
	for (uint32_t n = 0; n < count; n++) {
		if (kept[n] < (int)from)
			continue;
		if ((unsigned int)kept[n] > from)
			(void)close_range(from, (unsigned int)kept[n] - 1, 0);
		from = (unsigned int)kept[n] + 1;
	}
	(void)close_range(from, ~0u, 0);
}

// Return the descriptor of the connection to Hydra, or -1.
static int hydra_descriptor(void) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
	const char *text = getenv("PMI_FD");
	struct stat status;
	uint64_t fd;

	if (text == NULL || parse_u64(text, strlen(text), 0, INT32_MAX, NULL, &fd) != 0 ||
	    fstat((int)fd, &status) != 0 || !S_ISSOCK(status.st_mode))
		return -1;
	return (int)fd;
}

static void forward_pending_signals(const struct parent *parent) {
	struct signalfd_siginfo info;

	while (read(parent->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int number = (int)info.ssi_signo;
		union sigval value = {.sival_int = info.ssi_int};
		// The kernel sends SIGHUP only to the session leader, so the leader forwards it.
		bool is_for_leader = number == SIGHUP && getsid(0) == getpid();
		bool is_from_terminal = !is_for_leader && info.ssi_code > 0;

		if (number == SIGCHLD || is_from_terminal)
			continue;
		if (info.ssi_code == SI_QUEUE)
			(void)sigqueue(parent->child, number, value);
		else
			(void)kill(parent->child, number);
	}
}

// Stop this process because the command has stopped, so that a shell sees the stop.
static void stop_like_child(int number) {
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, number);
	(void)signal(number, SIG_DFL);
	(void)raise(number);
	(void)pthread_sigmask(SIG_UNBLOCK, &one, NULL); // this process stops here until SIGCONT
	(void)pthread_sigmask(SIG_BLOCK, &one, NULL);
}

static void __attribute__((noreturn)) exit_like_child(const siginfo_t *info) {
	const struct rlimit none = {0, 0};
	sigset_t one;

	if (info->si_code == CLD_EXITED)
		_exit(info->si_status);
	// The command has written its core dump; this process must not write another.
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)signal(info->si_status, SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, info->si_status);
	(void)kill(getpid(), info->si_status);
	(void)pthread_sigmask(SIG_UNBLOCK, &one, NULL);
	_exit(128 + info->si_status);
}

// Handle a state change of the command. Its exit is reported before it is reaped, while the kernel
// still knows it as our child.
static void child_check_state(struct parent *parent) {
	enum job_exit cause = JOB_EXIT_SIGNAL;
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)parent->child, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) !=
		    0 ||
	    info.si_pid == 0)
		return;
	if (info.si_code == CLD_STOPPED) {
		(void)waitid(P_PID, (id_t)parent->child, &info, WSTOPPED | WNOHANG);
		stop_like_child(info.si_status);
		return;
	}
	if (info.si_code == CLD_TRAPPED)
		return;
	if (info.si_code == CLD_EXITED)
		cause = JOB_EXIT_STATUS;
	else if (info.si_status == SIGKILL && memory_oom_kills() > parent->memory_oom_kills)
		cause = JOB_EXIT_MEMORY;
	exit_reporter_send_exit(&parent->exit_reporter, cause, info.si_status);
	forward_pending_signals(parent); // forward signals that are still pending
	(void)waitid(P_PID, (id_t)parent->child, &info, WEXITED);
	exit_like_child(&info);
}

static void __attribute__((noreturn)) parent_watch_child(struct parent *parent) {
	for (;;) {
		struct pollfd fds[] = {
			{.fd = parent->signal_fd, .events = POLLIN},
			{.fd = parent->exit_reporter.fd, .events = POLLIN},
		};

		if (poll(fds, 2, parent->exit_reporter.fd < 0 ? AGENT_RETRY_MS : -1) == 0)
			exit_reporter_open(&parent->exit_reporter);
		forward_pending_signals(parent);
		if (fds[1].revents != 0)
			exit_reporter_read(&parent->exit_reporter);
		child_check_state(parent);
	}
}

static int child_spawn(
	const char *path, char *const *words, const struct inherited *inherited, pid_t *ret_child
) {
	int failed_fds[2];
	pid_t own = getpid(), child;
	int err, exec_err = 0;
	ssize_t size = -1;

	if (pipe2(failed_fds, O_CLOEXEC) < 0)
		return neg_errno();
	child = fork();
	if (child == 0)
		child_exec(path, words, inherited, own, failed_fds[1]);
	err = child < 0 ? neg_errno() : 0;
	close(failed_fds[1]);
	// Wait until the command runs or failed; exec closes its end of the pipe.
	while (err == 0 && (size = read(failed_fds[0], &exec_err, sizeof(exec_err))) < 0 &&
	       errno == EINTR)
		;
	if (size == (ssize_t)sizeof(exec_err))
		err = exec_err;
	close(failed_fds[0]);
	if (err == 0)
		*ret_child = child;
	else if (child > 0)
		(void)waitpid(child, NULL, 0);
	return err;
}

int child_run(const char *path, char *const *words) {
	struct parent parent = {.exit_reporter = {.fd = -1}};
	struct sigaction usual = {.sa_handler = SIG_DFL};
	struct inherited inherited;
	sigset_t all;
	int err;

	// All descriptors are above those of the standard streams: main() has replaced closed ones,
	// which the command still gets closed.
	parent.memory_oom_kills = memory_oom_kills();
	exit_reporter_open(&parent.exit_reporter);
	sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &inherited.mask);
	(void)sigaction(SIGCHLD, &usual, &inherited.child_action);
	parent.signal_fd = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
	err = parent.signal_fd < 0 ? neg_errno()
				   : child_spawn(path, words, &inherited, &parent.child);
	if (err == 0) {
		int kept[] = {parent.signal_fd, parent.exit_reporter.fd, hydra_descriptor()};

		close_other_descriptors(kept, 3);
		parent_watch_child(&parent);
	}
	(void)sigaction(SIGCHLD, &inherited.child_action, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &inherited.mask, NULL);
	exit_reporter_close(&parent.exit_reporter);
	if (parent.signal_fd >= 0)
		close(parent.signal_fd);
	return err;
}
