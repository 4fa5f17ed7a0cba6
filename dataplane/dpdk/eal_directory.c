// SPDX-License-Identifier: BSD-3-Clause
// Manages EAL's files. Cold: only at start and stop of EAL.
#include "dpdk/eal_directory.h"

#include <lib/scoped.h>

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void eal_directory_prefix(const char *name, char *prefix, size_t size) {
	snprintf(prefix, size, "tocsin-%s", name);
	for (char *c = prefix; *c != '\0'; c++) {
		if (!isalnum((unsigned char)*c) && *c != '.' && *c != '-')
			*c = '_';
	}
}

void eal_directory_remove(const char *path) {
	scoped_dir DIR *dir = opendir(path);
	struct dirent *entry;

	if (dir == NULL)
		return;
	// unlink() fails for directories, which are not EAL's and stay.
	while ((entry = readdir(dir)) != NULL) // NOLINT(concurrency-mt-unsafe): a stream of our own
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	(void)rmdir(path);
}

bool eal_directory_has_huge_page(const char *path) {
	scoped_dir DIR *dir = opendir(path);
	struct dirent *entry;
	bool found = false;

	if (dir == NULL)
		return false;
	// NOLINTNEXTLINE(concurrency-mt-unsafe): a stream of our own
	while (!found && (entry = readdir(dir)) != NULL) {
		char file[300], count[32];
		scoped_fd int fd = -1;
		ssize_t length = 0;

		snprintf(file, sizeof(file), "%s/free_hugepages", entry->d_name);
		fd = openat(dirfd(dir), file, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			length = read(fd, count, sizeof(count));
		found = length > 0 && count[0] >= '1' && count[0] <= '9';
	}
	return found;
}
