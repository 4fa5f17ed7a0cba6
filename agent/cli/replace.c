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

int replace_file(const char *file, replace_fn *write, const void *what) {
	char temporary[PATH_MAX];
	int length = snprintf(temporary, sizeof(temporary), "%s.XXXXXX", file);
	struct stat there;
	FILE *out;
	int fd, err = 0;

	if (length < 0 || (size_t)length >= sizeof(temporary))
		return -ENAMETOOLONG;
	// Renaming would replace a device by a file, and also a link to one, such as /dev/stdout.
	if (lstat(file, &there) == 0 && !S_ISREG(there.st_mode))
		return S_ISDIR(there.st_mode) ? -EISDIR : -EEXIST;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	out = fdopen(fd, "w");
	if (out == NULL) {
		err = -errno;
		close(fd);
	} else {
		write(out, what);
		errno = EIO; // used if a failure sets no errno
		// Sync before the rename, so that a power loss leaves either the old file or the
		// new one. A full disk may be reported only by fclose().
		if (fflush(out) != 0 || ferror(out) || fchmod(fd, 0644) != 0 || fsync(fd) != 0)
			err = -errno;
		if (fclose(out) != 0 && err == 0)
			err = -errno;
	}
	if (err == 0 && rename(temporary, file) != 0)
		err = -errno;
	if (err != 0)
		unlink(temporary);
	return err;
}

const char *replace_error_text(int err) {
	return err == -EEXIST ? "it exists and is not a regular file" : strerrordesc_np(-err);
}
