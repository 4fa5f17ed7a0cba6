// SPDX-License-Identifier: BSD-3-Clause
// Reads and parses the processor time of one thread.
#include <lib/error.h>
#include <lib/parse.h>
#include <lib/schedstat.h>
#include <lib/scoped.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 64
#define TEXT_BYTES 128
#define FIELDS 3

int schedstat_parse(const char *text, struct schedstat *ret_stat) {
	uint64_t fields[FIELDS];

	for (uint32_t n = 0; n < FIELDS; n++) {
		size_t digits = strspn(text, "0123456789");

		if (parse_u64(text, digits, 0, UINT64_MAX, NULL, &fields[n]) != 0)
			return -EBADMSG;
		text += digits;
		text += strspn(text, " ");
	}
	*ret_stat =
		(struct schedstat){.ran_ns = fields[0], .waited_ns = fields[1], .turns = fields[2]};
	return 0;
}

int schedstat_read(pid_t tid, struct schedstat *ret_stat) {
	char path[PATH_BYTES], text[TEXT_BYTES];
	scoped_fd int fd = -1;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return neg_errno();
	length = read(fd, text, sizeof(text) - 1);
	if (length < 0)
		return neg_errno();
	text[length] = '\0';
	return schedstat_parse(text, ret_stat);
}
