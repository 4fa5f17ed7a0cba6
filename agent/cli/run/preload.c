// SPDX-License-Identifier: BSD-3-Clause
// Finds the library to preload and the program that it is loaded into.
#include "run/preload.h"

#include "command.h"

#include <lib/error.h>
#include <lib/escape.h>
#include <lib/scoped.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD"
#define QUOTED_BYTES 200
#define INSTALLED TOCSIN_LIBRARY_FROM_BINDIR "/tocsin/"

static int library_find_at(
	const char *own, const char *place, const char *name, char ret_path[static PATH_MAX]
) {
	char path[PATH_MAX];
	bool is_whole = place[0] == '/';
	int size = snprintf(
		path, sizeof(path), "%s%s%s%s", is_whole ? "" : own, is_whole ? "" : "/", place,
		name
	);

	if (size <= 0 || (size_t)size >= sizeof(path) || realpath(path, ret_path) == NULL)
		return -ENOENT;
	return 0;
}

int preload_find(const char *name, const char *built, char ret_path[static PATH_MAX]) {
	char own[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;

	if (length < 0)
		return neg_errno();
	own[length] = '\0';
	slash = strrchr(own, '/');
	if (slash == NULL)
		return -ENOENT;
	*slash = '\0';
	if (library_find_at(own, INSTALLED, name, ret_path) == 0)
		return 0;
	return library_find_at(own, built, name, ret_path);
}

int preload_add(const char *path) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
	const char *before = getenv(PRELOAD);
	scoped_mem char *value = NULL;

	if (path[strcspn(path, " :")] != '\0')
		return -EINVAL;
	if (asprintf(
		    &value, "%s%s%s", before == NULL ? "" : before,
		    before == NULL || before[0] == '\0' ? "" : ":", path
	    ) < 0) {
		value = NULL;
		return -ENOMEM;
	}
	// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
	return setenv(PRELOAD, value, 1) < 0 ? neg_errno() : 0;
}

int preload_find_program(const char *name, char ret_path[static PATH_MAX]) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
	const char *path = getenv("PATH");
	int err = -ENOENT;

	if (strchr(name, '/') != NULL) {
		if (snprintf(ret_path, PATH_MAX, "%s", name) >= PATH_MAX)
			return -ENAMETOOLONG;
		return access(name, X_OK) == 0 ? 0 : neg_errno();
	}
	for (const char *at = path == NULL ? "/usr/bin:/bin" : path;; at++) {
		size_t length = strcspn(at, ":");
		struct stat status;

		if (snprintf(
			    ret_path, PATH_MAX, "%.*s%s%s", (int)length, at, length == 0 ? "" : "/",
			    name
		    ) < PATH_MAX &&
		    stat(ret_path, &status) == 0 && S_ISREG(status.st_mode)) {
			if (access(ret_path, X_OK) == 0)
				return 0;
			err = -EACCES;
		}
		at += length;
		if (*at == '\0')
			return err;
	}
}

int preload_report_exec_failure(const char *command_name, const char *program, int err) {
	char quoted[QUOTED_BYTES];

	escape_quote(program, strlen(program), quoted, sizeof(quoted));
	command_error(command_name, "cannot run %s: %s", quoted, strerrordesc_np(-err));
	return err == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE;
}

const char *preload_privilege_reason(const char *path) {
	struct stat status;

	if (stat(path, &status) != 0)
		return NULL;
	if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid())
		return "setuid";
	if ((status.st_mode & S_ISGID) != 0 && status.st_gid != getgid())
		return "setgid";
	if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
		return "given capabilities";
	return NULL;
}
