// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into an agent by a test: its time of day is shifted by as many seconds as the file says
// that CLOCK_SHIFT names, from when it is written on. Other clocks are left alone.
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
	static clock_gettime_fn *real; // whoever comes first finds the same
	int result;

	if (real == NULL)
		real = (clock_gettime_fn *)dlsym(RTLD_NEXT, "clock_gettime");
	result = real(clock, ret_time);
	if (result == 0 && clock == CLOCK_REALTIME)
		ret_time->tv_sec += shift_s();
	return result;
}
