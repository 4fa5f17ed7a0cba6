// SPDX-License-Identifier: BSD-3-Clause
// Writing to files in a process that is not ours. A file that would exceed RLIMIT_FSIZE (ulimit -f)
// raises SIGXFSZ in the writing thread, whose default action ends the process. Memory files count
// too. So the thread blocks the signal around the call, which then fails with EFBIG.
#pragma once

#include "old_symbols.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

struct size_signal {
	sigset_t before;
	bool was_pending;
};

static inline void size_signal_block(struct size_signal *ret_state) {
	sigset_t set;

	(void)sigpending(&set);
	ret_state->was_pending = sigismember(&set, SIGXFSZ) == 1;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGXFSZ);
	(void)pthread_sigmask(SIG_BLOCK, &set, &ret_state->before);
}

// Restore the signals. Preserves errno. A signal that was pending before belongs to the program and
// stays pending.
static inline void size_signal_restore(const struct size_signal *state) {
	const struct timespec now = {0};
	int saved = errno;
	sigset_t set;

	(void)sigpending(&set);
	if (!state->was_pending && sigismember(&set, SIGXFSZ) == 1) {
		(void)sigemptyset(&set);
		(void)sigaddset(&set, SIGXFSZ);
		while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
			continue;
	}
	(void)pthread_sigmask(SIG_SETMASK, &state->before, NULL);
	errno = saved;
}
