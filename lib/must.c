// SPDX-License-Identifier: BSD-3-Clause
// Ends the process when an invariant of its own is broken.
#include <lib/must.h>

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKTRACE_DEPTH_MAX 64

// The first backtrace() loads the unwinder, which takes memory: it is done here, while the heap
// is sound, and not when a promise was broken. Costs about 150 us at the start of a program.
__attribute__((constructor)) static void load_unwinder(void) {
	void *frame[1];

	backtrace(frame, 1);
}

_Noreturn void
must_failed(const char *expression, const char *file, uint32_t line, const char *function) {
	void *frames[BACKTRACE_DEPTH_MAX];
	char text[512];
	int n;

	n = snprintf(
		text, sizeof(text), "must failed: %s at %s:%u in %s()\n", expression, file, line,
		function
	);
	if (n > (int)sizeof(text) - 1)
		n = (int)sizeof(text) - 1;
	if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
		abort(); // nobody to tell
	// The _fd form writes straight to the descriptor: the heap may be what is broken.
	backtrace_symbols_fd(frames, backtrace(frames, BACKTRACE_DEPTH_MAX), STDERR_FILENO);
	abort();
}
