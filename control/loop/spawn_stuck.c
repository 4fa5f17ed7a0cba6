// SPDX-License-Identifier: BSD-3-Clause
// Describes a hanging program by /proc. Runs in the spawn helper, once per hanging program.
//
// The kernel produces stat and wchan under spin locks only, so reading them does not wait for a
// hanging process. cmdline, environ and maps do wait.
#include "loop/spawn_inside.h"

#include <lib/parse.h>
#include <lib/proc_stat.h>
#include <lib/scoped.h>

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 64

static void wchan_read(int pid, char wchan[static SPAWN_WCHAN_BYTES]) {
	char path[PATH_BYTES];
	scoped_fd int fd = -1;
	ssize_t size;

	snprintf(path, sizeof(path), "/proc/%d/wchan", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? 0 : read(fd, wchan, SPAWN_WCHAN_BYTES - 1);
	wchan[size > 0 ? size : 0] = '\0';
	if (strcmp(wchan, "0") == 0)
		wchan[0] = '\0';
}

void spawn_stuck_describe(pid_t group, struct spawn_stuck *ret_stuck) {
	struct spawn_stuck found = {.pid = group, .state = '?'};
	struct proc_stat stat;
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	uint64_t pid;

	// NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is local
	while (proc != NULL && found.state != 'D' && (entry = readdir(proc)) != NULL) {
		const char *name = entry->d_name;

		if (!isdigit((unsigned char)name[0]) ||
		    parse_u64(name, strlen(name), 1, INT32_MAX, NULL, &pid) != 0)
			continue; // not a process
		if (proc_stat_read((pid_t)pid, &stat) != 0 || stat.group != group ||
		    (found.state != '?' && stat.state != 'D'))
			continue;
		found.pid = (int32_t)pid;
		found.state = stat.state;
		snprintf(found.comm, sizeof(found.comm), "%s", stat.comm);
	}
	if (proc != NULL)
		closedir(proc);
	wchan_read(found.pid, found.wchan);
	*ret_stuck = found;
}
