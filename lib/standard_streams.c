// SPDX-License-Identifier: BSD-3-Clause
// Replaces closed standard streams.
#include <lib/standard_streams.h>

#include <fcntl.h>
#include <unistd.h>

void standard_streams_open(void) {
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

		if (fcntl(fd, F_GETFD) < 0)
			// open() returns the lowest free descriptor.
			(void)open("/dev/null", flags | O_CLOEXEC);
	}
}
