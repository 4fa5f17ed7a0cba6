// SPDX-License-Identifier: BSD-3-Clause
#include <lib/standard_streams.h>
#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

// Return true if the stream is /dev/null, opened for the wrong direction, and closed on exec.
static bool is_replaced(int fd) {
	char byte = 0;
	ssize_t n;

	errno = 0;
	n = fd == STDIN_FILENO ? read(fd, &byte, 1) : write(fd, &byte, 1);
	return n < 0 && errno == EBADF && fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

// Return true if the streams whose bits are set in `closed` are replaced, and no other one. Runs in
// a child process, which prints nothing.
static bool streams_are_replaced(unsigned int closed) {
	int flags[STDERR_FILENO + 1];

	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		flags[fd] = fcntl(fd, F_GETFL);
		if ((closed & 1u << fd) != 0)
			close(fd);
	}
	standard_streams_open();
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if ((closed & 1u << fd) != 0 ? !is_replaced(fd) : fcntl(fd, F_GETFL) != flags[fd])
			return false;
	}
	return true;
}

static void closed_streams_are_replaced_and_open_ones_are_left_alone(void **state) {
	int status;
	pid_t pid;

	(void)state;
	for (unsigned int closed = 0; closed < 8; closed++) {
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			_exit(streams_are_replaced(closed) ? 0 : 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

UNIT_GROUP(standard_streams) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_streams_are_replaced_and_open_ones_are_left_alone),
	};

	return cmocka_run_group_tests_name("standard_streams", tests, NULL, NULL);
}
