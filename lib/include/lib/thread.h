// SPDX-License-Identifier: BSD-3-Clause
// Threads that handle no signals.
#pragma once

#include <pthread.h>

// Start a thread with all signals blocked, so that other threads of the process handle signals. The
// threads that it starts inherit the mask. `name` has at most 15 characters. NULL keeps the name of
// the calling thread. Returns 0 or -errno of pthread_create().
int thread_start_masked(
	const char *name, void *(*run)(void *argument), void *argument, pthread_t *ret_thread
);
