// SPDX-License-Identifier: BSD-3-Clause
// Reads the kernel's count of OOM kills in a control group.
#include "run/memory.h"

#include <lib/parse.h>
#include <lib/scoped.h>

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES 8192

static bool read_file(const char *path, char text[static FILE_BYTES]) {
	scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, FILE_BYTES - 1) : -1;

	if (length < 0)
		return false;
	text[length] = '\0';
	return true;
}

// Return the rest of the first line that begins with `start`, terminated in place, or NULL.
static char *line_of(char *text, const char *start) {
	for (char *at = text; at != NULL && *at != '\0'; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, start, strlen(start)) != 0)
			continue;
		at += strlen(start);
		at[strcspn(at, "\n")] = '\0';
		return at;
	}
	return NULL;
}

static uint64_t count_in(const char *root, const char *group, const char *file) {
	char path[PATH_MAX], text[FILE_BYTES];
	const char *line;
	uint64_t count;

	if (snprintf(path, sizeof(path), "%s%s/%s", root, group, file) >= (int)sizeof(path) ||
	    !read_file(path, text))
		return 0;
	line = line_of(text, "oom_kill ");
	if (line == NULL || parse_u64(line, strlen(line), 0, UINT64_MAX, NULL, &count) != 0)
		return 0;
	return count;
}

uint64_t memory_kills(void) {
	char text[FILE_BYTES], copy[FILE_BYTES];
	uint64_t count = 0;
	char *group;

	if (!read_file("/proc/self/cgroup", text))
		return 0;
	memcpy(copy, text, sizeof(copy));
	group = line_of(copy, "0::");
	if (group != NULL)
		count = count_in("/sys/fs/cgroup", group, "memory.events");
	// Control groups v1: "5:memory:/slurm/..."
	group = strstr(text, ":memory:");
	if (count != 0 || group == NULL)
		return count;
	group += strlen(":memory:");
	group[strcspn(group, "\n")] = '\0';
	return count_in("/sys/fs/cgroup/memory", group, "memory.oom_control");
}
