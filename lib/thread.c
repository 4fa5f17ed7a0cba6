// SPDX-License-Identifier: BSD-3-Clause
// Threads that handle no signals.
#include <lib/thread.h>

#include <signal.h>

int thread_start_masked(
	const char *name, void *(*run)(void *argument), void *argument, pthread_t *ret_thread
) {
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(ret_thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err == 0 && name != NULL)
		pthread_setname_np(*ret_thread, name);
	return -err;
}
