// SPDX-License-Identifier: BSD-3-Clause
// Abort with a backtrace when an invariant is broken.
#include <lib/must.h>

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKTRACE_DEPTH_MAX 64

// Load the unwinder at program start (about 150 us). The first backtrace() allocates memory for it,
// which may be impossible once an invariant is broken.
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
		abort(); // stderr is unusable
	// The _fd variant writes without allocation, because the heap may be corrupt.
	backtrace_symbols_fd(frames, backtrace(frames, BACKTRACE_DEPTH_MAX), STDERR_FILENO);
	abort();
}
