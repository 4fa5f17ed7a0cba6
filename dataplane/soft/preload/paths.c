// SPDX-License-Identifier: BSD-3-Clause
// Simulates the device node of a software device. UCX checks that /dev/infiniband/NAME is a
// readable and writable character device before it uses verbs. Calls with that path are answered as
// for /dev/null. All other calls go to the C library, through functions that are not interposed
// here. Any thread; node names exist once the devices were listed.
//
// The function that a program calls depends on its C library version and on large file support.
// struct stat and struct stat64 are identical on supported machines.

// With the macro set, the headers would redirect the names of one kind to the other.
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

static const char *path_or_null_device(const char *path) {
	if (path == NULL || strncmp(path, NODES, strlen(NODES)) != 0)
		return path;
	return preload_has_node(path + strlen(NODES)) ? STANDS_FOR : path;
}

int access(const char *path, int mode) {
	return faccessat(AT_FDCWD, path_or_null_device(path), mode, 0);
}

int stat(const char *path, struct stat *status) {
	return fstatat(AT_FDCWD, path_or_null_device(path), status, 0);
}

int stat64(const char *path, struct stat64 *status) {
	return fstatat64(AT_FDCWD, path_or_null_device(path), status, 0);
}

// The C library handles the versions of the struct.
int __xstat(int version, const char *path, struct stat *status) {
	return REAL(__xstat)(version, path_or_null_device(path), status);
}

int __xstat64(int version, const char *path, struct stat64 *status) {
	return REAL(__xstat64)(version, path_or_null_device(path), status);
}

static bool open_needs_mode(int flags) {
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

// The mode argument exists only if the call may create a file.
#define OPEN_BY(openat)                      \
	va_list args;                        \
	mode_t mode = 0;                     \
                                             \
	if (open_needs_mode(flags)) {        \
		va_start(args, flags);       \
		mode = va_arg(args, mode_t); \
		va_end(args);                \
	}                                    \
	return openat(AT_FDCWD, path_or_null_device(path), flags, mode);

int open(const char *path, int flags, ...) {
	OPEN_BY(openat)
}

int open64(const char *path, int flags, ...) {
	OPEN_BY(openat64)
}
