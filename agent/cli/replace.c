// SPDX-License-Identifier: BSD-3-Clause
// Replaces a file atomically.
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Write the content to fd and close it. A full disk may be reported only by fclose().
static int file_fill(int fd, replace_fn *write, const void *what) {
	FILE *out = fdopen(fd, "w");
	int err = 0;

	if (out == NULL) {
		err = -errno;
		close(fd);
		return err;
	}
	write(out, what);
	errno = EIO; // used if a failure sets no errno
	// Sync before the rename, so that a power loss leaves either the old file or the new one.
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
	// Renaming would replace a device by a file, and also a link to one, such as /dev/stdout.
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

const char *replace_error_text(int err) {
	return err == -EEXIST ? "it is there, and no regular file" : strerrordesc_np(-err);
}
