// SPDX-License-Identifier: BSD-3-Clause
// Replace the child by /proc/self/exe. The child is terminated if its parent dies.
#include "run/again.h"

#include <lib/error.h>
#include <lib/scoped.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noreturn)) static void child_exec_self(char *const *words) {
	int null_fd;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null_fd >= 0)
		dup2(null_fd, STDOUT_FILENO);
	execv("/proc/self/exe", words);
	_exit(127);
}

int again_run_child(char *const *words, int signal_fd, int *ret_status, struct lab_why *why) {
	struct pollfd fds[2] = {{.events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
	scoped_fd int pid_fd = -1;
	pid_t pid = fork();
	int status, err = pid < 0 ? neg_errno() : 0;

	if (pid == 0)
		child_exec_self(words);
	if (pid > 0)
		pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	fds[0].fd = pid_fd;
	while (pid_fd >= 0 && fds[0].revents == 0) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents != 0) {
			kill(pid, SIGTERM);
			fds[1].fd = -1;
		}
	}
	if (err == 0 && waitpid(pid, &status, 0) < 0)
		err = neg_errno();
	if (err != 0)
		return lab_fail(why, err, "cannot run a child process: %s", strerrordesc_np(-err));
	*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return 0;
}
