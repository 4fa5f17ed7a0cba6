// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into an agent by a test: shifts the time of day by the number of seconds in the file
// that CLOCK_SHIFT names. The shift starts when the file is written. Other clocks are unchanged.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef int clock_gettime_fn(clockid_t clock, struct timespec *ret_time);

static long shift_s(void) {
	const char *path = getenv("CLOCK_SHIFT"); // NOLINT(concurrency-mt-unsafe): never set here
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[32] = "";

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t clock, struct timespec *ret_time) {
	static clock_gettime_fn *real; // each thread finds the same function
	int result;

	if (real == NULL)
		real = (clock_gettime_fn *)dlsym(RTLD_NEXT, "clock_gettime");
	result = real(clock, ret_time);
	if (result == 0 && clock == CLOCK_REALTIME)
		ret_time->tv_sec += shift_s();
	return result;
}
