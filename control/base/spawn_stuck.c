// SPDX-License-Identifier: BSD-3-Clause
// Describes a hanging program by /proc. Runs in the spawn helper, once per hanging program.
//
// The kernel produces stat and wchan under spin locks only, so reading them does not wait for a
// hanging process. cmdline, environ and maps do wait.
#include "base/spawn_inside.h"

#include <lib/parse.h>
#include <lib/scoped.h>

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 64
#define STAT_BYTES 512

// Read a file of /proc/PID and append a NUL. Returns false if it cannot be read.
static bool proc_pid_file_read(int pid, const char *name, char *text, size_t size) {
	char path[PATH_BYTES];
	scoped_fd int fd = -1;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? -1 : read(fd, text, size - 1);
	if (got < 0)
		return false;
	text[got] = '\0';
	return true;
}

// Parse "PID (COMM) STATE PPID PGRP ...". COMM may contain anything, even brackets.
static bool proc_stat_read(int pid, struct spawn_stuck *ret_stuck, int *ret_group) {
	struct spawn_stuck stuck = {.pid = pid};
	char text[STAT_BYTES];
	const char *first, *last, *at;
	uint64_t group;

	if (!proc_pid_file_read(pid, "stat", text, sizeof(text)))
		return false;
	first = strchr(text, '(');
	last = strrchr(text, ')');
	if (first == NULL || last == NULL || last < first)
		return false;
	if (last[1] != ' ' || last[2] == '\0' || last[3] != ' ')
		return false;
	stuck.state = last[2];
	at = last + 4 + strcspn(last + 4, " "); // skip PPID
	at += *at == ' ';
	if (parse_u64(at, strcspn(at, " "), 0, INT32_MAX, NULL, &group) != 0)
		return false;
	*ret_group = (int)group;
	snprintf(stuck.comm, sizeof(stuck.comm), "%.*s", (int)(last - first - 1), first + 1);
	*ret_stuck = stuck;
	return true;
}

void spawn_stuck_describe(pid_t group, struct spawn_stuck *ret_stuck) {
	struct spawn_stuck found = {.pid = group, .state = '?'}, one;
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	uint64_t pid;
	int its_group;

	// NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is local
	while (proc != NULL && found.state != 'D' && (entry = readdir(proc)) != NULL) {
		const char *name = entry->d_name;

		if (!isdigit((unsigned char)name[0]) ||
		    parse_u64(name, strlen(name), 1, INT32_MAX, NULL, &pid) != 0)
			continue; // not a process
		if (proc_stat_read((int)pid, &one, &its_group) && its_group == group &&
		    (found.state == '?' || one.state == 'D'))
			found = one;
	}
	if (proc != NULL)
		closedir(proc);
	if (!proc_pid_file_read(found.pid, "wchan", found.wchan, sizeof(found.wchan)) ||
	    strcmp(found.wchan, "0") == 0)
		found.wchan[0] = '\0';
	*ret_stuck = found;
}
