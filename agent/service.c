// SPDX-License-Identifier: BSD-3-Clause
// Notification protocol of the service manager: datagrams to the socket named by NOTIFY_SOCKET. The
// loop itself feeds the watchdog, so a hanging loop is detected.
#include "agent.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/parse.h>
#include <lib/scoped.h>

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

void service_notify(const char *text) {
	const char *path = getenv("NOTIFY_SOCKET"); // NOLINT(concurrency-mt-unsafe): never set here
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	scoped_fd int fd = -1;
	socklen_t length;

	if (path == NULL || (path[0] != '/' && path[0] != '@') ||
	    strlen(path) >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, strlen(path));
	if (path[0] == '@')
		address.sun_path[0] = '\0'; // abstract namespace
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || sendto(fd, text, strlen(text), MSG_NOSIGNAL,
			     (const struct sockaddr *)&address, length) < 0)
		log_event(LOG_LEVEL_DEBUG, "notify_failed", log_errno("error", errno));
}

// Announce a reload. With Type=notify-reload, systemd uses the time to match it to its request.
void service_notify_reloading(void) {
	struct timespec now;
	char text[64];

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(
		text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		(uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000
	);
	service_notify(text);
}

// Return the watchdog interval of the service manager; 0: no watchdog.
static uint64_t watchdog_ns(void) {
	const char *text = getenv("WATCHDOG_USEC"); // NOLINT(concurrency-mt-unsafe): never set here
	const char *pid = getenv("WATCHDOG_PID");   // NOLINT(concurrency-mt-unsafe): never set here
	uint64_t microseconds, wanted;

	if (text == NULL ||
	    parse_u64(text, strlen(text), 1, UINT64_MAX / 1000, NULL, &microseconds) != 0)
		return 0;
	if (pid != NULL && (parse_u64(pid, strlen(pid), 1, UINT32_MAX, NULL, &wanted) != 0 ||
			    wanted != (uint64_t)getpid()))
		return 0;
	return microseconds * 1000;
}

static void watchdog_feed(struct loop_timer *timer, uint64_t now_ns) {
	struct agent *agent = container_of(timer, struct agent, watchdog);

	service_notify("WATCHDOG=1");
	if (loop_timer_set(agent->loop, timer, now_ns + watchdog_ns() / 3) != 0)
		log_event(LOG_LEVEL_ERROR, "watchdog_lost", log_errno("error", ENOMEM));
}

int service_start(struct agent *agent) {
	agent->watchdog.expired = watchdog_feed;
	service_notify("READY=1\nSTATUS=running");
	if (watchdog_ns() == 0)
		return 0;
	return loop_timer_set(agent->loop, &agent->watchdog, loop_now_ns(agent->loop));
}

void service_stop(struct agent *agent) {
	loop_timer_cancel(agent->loop, &agent->watchdog);
}
