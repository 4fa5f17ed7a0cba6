// SPDX-License-Identifier: BSD-3-Clause
// Programs started with one of our libraries preloaded.
#pragma once

#include <limits.h>

// Exit status of failures before the program runs, the same as those of env, nice and timeout.
enum {
	EXIT_NOT_RUN = 125,
	EXIT_NOT_RUNNABLE = 126,
	EXIT_NOT_FOUND = 127,
};

// Find the library `name`, installed or built. The installed path is relative to this program, so
// the installation may be moved. `built` is relative to this program's directory. Returns 0 or
// -ENOENT.
int preload_find(const char *name, const char *built, char ret_path[static PATH_MAX]);

// Append a library to LD_PRELOAD. Returns 0, -ENOMEM, or -EINVAL if the path contains a blank or a
// colon, the separators of LD_PRELOAD.
int preload_add(const char *path);

// Find a program as execvp() does. Returns 0, -ENOENT, -EACCES or -ENAMETOOLONG.
int preload_find_program(const char *name, char ret_path[static PATH_MAX]);

// Print that a program cannot be run. Returns EXIT_NOT_FOUND or EXIT_NOT_RUNNABLE.
int preload_report_exec_failure(const char *command_name, const char *program, int err);

// Return why the program gains privileges when it starts, such as "setuid", or NULL. The loader
// ignores LD_PRELOAD for such a program.
const char *preload_privilege_reason(const char *path);
