// SPDX-License-Identifier: BSD-3-Clause
// Local variables that are released on every exit from their block.
//
//	scoped_fd int fd = open(...);
//	scoped_mem char *text = malloc(...);
//	...
//	*ret_fd = scoped_release_fd(&fd); // transfer: the local no longer owns the descriptor
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void scoped_close_fd(int *fd) {
	if (*fd >= 0)
		close(*fd);
}

static inline void scoped_free_mem(void *pointer) {
	free(*(void **)pointer);
}

static inline void scoped_close_file(FILE **file) {
	if (*file != NULL)
		fclose(*file);
}

static inline void scoped_close_dir(DIR **dir) {
	if (*dir != NULL)
		closedir(*dir);
}

#define scoped_fd __attribute__((cleanup(scoped_close_fd)))
#define scoped_mem __attribute__((cleanup(scoped_free_mem)))
#define scoped_file __attribute__((cleanup(scoped_close_file)))
#define scoped_dir __attribute__((cleanup(scoped_close_dir)))

static inline int scoped_release_fd(int *fd) {
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void *scoped_release_mem(void *pointer) {
	void *taken = *(void **)pointer;

	*(void **)pointer = NULL;
	return taken;
}
