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

static bool file_read_text(const char *path, char text[static FILE_BYTES]) {
	scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, FILE_BYTES - 1) : -1;

	if (length < 0)
		return false;
	text[length] = '\0';
	return true;
}

// Return the rest of the first line that begins with `start`, terminated in place, or NULL.
static char *text_find_line(char *text, const char *start) {
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

static uint64_t cgroup_count_kills(const char *root, const char *group, const char *file) {
	char path[PATH_MAX], text[FILE_BYTES];
	const char *line;
	uint64_t count;

	if (snprintf(path, sizeof(path), "%s%s/%s", root, group, file) >= (int)sizeof(path) ||
	    !file_read_text(path, text))
		return 0;
	line = text_find_line(text, "oom_kill ");
	if (line == NULL || parse_u64(line, strlen(line), 0, UINT64_MAX, NULL, &count) != 0)
		return 0;
	return count;
}

uint64_t memory_oom_kills(void) {
	char text[FILE_BYTES], copy[FILE_BYTES];
	uint64_t count = 0;
	char *group;

	if (!file_read_text("/proc/self/cgroup", text))
		return 0;
	memcpy(copy, text, sizeof(copy));
	group = text_find_line(copy, "0::");
	if (group != NULL)
		count = cgroup_count_kills("/sys/fs/cgroup", group, "memory.events");
	// Control groups v1: "5:memory:/slurm/..."
	group = strstr(text, ":memory:");
	if (count != 0 || group == NULL)
		return count;
	group += strlen(":memory:");
	group[strcspn(group, "\n")] = '\0';
	return cgroup_count_kills("/sys/fs/cgroup/memory", group, "memory.oom_control");
}
