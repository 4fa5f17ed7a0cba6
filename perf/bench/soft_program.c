// SPDX-License-Identifier: BSD-3-Clause
// Run a program for the software device's benchmark.
#include "soft.h"

#include <lib/error.h>

#include <sys/wait.h>
#include <unistd.h>

int soft_program_run(const char *const words[], int in, int out) {
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		dup2(in, STDIN_FILENO);
		dup2(out, STDOUT_FILENO);
		// The cast is safe: this process is a copy, and nobody else uses the words.
		execvp(words[0], (char *const *)words);
		_exit(SOFT_NOT_FOUND);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return neg_errno();
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}
