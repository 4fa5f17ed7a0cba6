// SPDX-License-Identifier: BSD-3-Clause
// Replaces a file by another content at once, or leaves it as it was.
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Closes it. A full disk may show only there.
static int file_fill(int fd, replace_fn *write, const void *what) {
	FILE *out = fdopen(fd, "w");
	int err = 0;

	if (out == NULL) {
		err = -errno;
		close(fd);
		return err;
	}
	write(out, what);
	errno = EIO; // for a failure that names no reason
	// On the disk before it has the name: a loss of power leaves the old one or the new one.
	if (fflush(out) != 0 || ferror(out) || fchmod(fd, 0644) != 0 || fsync(fd) != 0)
		err = -errno;
	if (fclose(out) != 0 && err == 0)
		err = -errno;
	return err;
}

int replace_file(const char *file, replace_fn *write, const void *what) {
	char temporary[PATH_MAX];
	int length = snprintf(temporary, sizeof(temporary), "%s.XXXXXX", file);
	struct stat there;
	int fd, err;

	if (length < 0 || (size_t)length >= sizeof(temporary))
		return -ENAMETOOLONG;
	// A device would be replaced by a file, and so would a link to one: /dev/stdout is one.
	if (lstat(file, &there) == 0 && !S_ISREG(there.st_mode))
		return S_ISDIR(there.st_mode) ? -EISDIR : -EEXIST;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = file_fill(fd, write, what);
	if (err == 0 && rename(temporary, file) != 0)
		err = -errno;
	if (err != 0)
		unlink(temporary);
	return err;
}

const char *replace_words(int err) {
	return err == -EEXIST ? "it is there, and no regular file" : strerrordesc_np(-err);
}
