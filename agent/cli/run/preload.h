// SPDX-License-Identifier: BSD-3-Clause
// Programs that are started with a library of ours loaded before their own.
#pragma once

#include <limits.h>

// As env, nice and timeout have them, so that a program's own status is told from these.
enum {
	EXIT_NOT_RUN = 125,
	EXIT_NOT_RUNNABLE = 126,
	EXIT_NOT_FOUND = 127,
};

// Where the library `name` is: where it was installed to, wherever that was moved, or where it was
// built, `built` seen from the directory of this program. -ENOENT.
int preload_find(const char *name, const char *built, char ret_path[static PATH_MAX]);

// Behind what LD_PRELOAD has already. -EINVAL: the path has what parts paths there; -ENOMEM.
int preload_add(const char *path);

// Where exec would find it. -ENOENT, -EACCES, -ENAMETOOLONG.
int preload_find_program(const char *name, char ret_path[static PATH_MAX]);

// "setuid": the loader takes nothing from the environment of a program that gains privileges. NULL:
// it is none.
const char *preload_why_privileged(const char *path);
