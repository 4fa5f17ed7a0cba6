// SPDX-License-Identifier: BSD-3-Clause
// The device node that a software device has not: UCX looks whether /dev/infiniband/NAME is a
// character device that it may read and write, before it opens anything by verbs. That path alone
// is answered, as /dev/null would be; every other call goes on to the C library, by functions that
// are not replaced here. Any thread; names are seen once the devices were listed.
//
// Which of these a program calls depends on the C library it was built against, and on whether it
// asked for large files: the struct of stat() and of stat64() is the same one where both are here.

// Else the names of one kind would be made those of the other.
#undef _FILE_OFFSET_BITS

#include "preload.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NODES "/dev/infiniband/"
#define STANDS_FOR "/dev/null"

static const char *instead_of(const char *path) {
	if (path == NULL || strncmp(path, NODES, strlen(NODES)) != 0)
		return path;
	return preload_has_node(path + strlen(NODES)) ? STANDS_FOR : path;
}

int access(const char *path, int mode) {
	return faccessat(AT_FDCWD, instead_of(path), mode, 0);
}

int stat(const char *path, struct stat *status) {
	return fstatat(AT_FDCWD, instead_of(path), status, 0);
}

int stat64(const char *path, struct stat64 *status) {
	return fstatat64(AT_FDCWD, instead_of(path), status, 0);
}

// The C library knows the versions of the struct.
int __xstat(int version, const char *path, struct stat *status) {
	return REAL(__xstat)(version, instead_of(path), status);
}

int __xstat64(int version, const char *path, struct stat64 *status) {
	return REAL(__xstat64)(version, instead_of(path), status);
}

static bool takes_mode(int flags) {
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

// The mode is there only where a file may be made.
#define OPEN_BY(openat)                      \
	va_list args;                        \
	mode_t mode = 0;                     \
                                             \
	if (takes_mode(flags)) {             \
		va_start(args, flags);       \
		mode = va_arg(args, mode_t); \
		va_end(args);                \
	}                                    \
	return openat(AT_FDCWD, instead_of(path), flags, mode);

int open(const char *path, int flags, ...) {
	OPEN_BY(openat)
}

int open64(const char *path, int flags, ...) {
	OPEN_BY(openat64)
}
