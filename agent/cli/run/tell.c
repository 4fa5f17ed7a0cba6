// SPDX-License-Identifier: BSD-3-Clause
// Parent's side of the agent's job socket: sends two packets, and expects no answer.
#include "run/tell.h"

#include <lib/error.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int socket_connect_path(const char *path) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		int err = neg_errno();

		close(fd);
		return err;
	}
	return fd < 0 ? neg_errno() : fd;
}

static void send_packet(struct exit_reporter *exit_reporter, const void *packet, size_t size) {
	if (exit_reporter->fd >= 0 &&
	    send(exit_reporter->fd, packet, size, MSG_NOSIGNAL) != (ssize_t)size)
		exit_reporter_close(exit_reporter);
}

void exit_reporter_open(struct exit_reporter *exit_reporter) {
	const struct job_parent parent = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_PARENT}};
	// NOLINTBEGIN(concurrency-mt-unsafe): one thread
	const char *given = getenv("TOCSIN_JOB_SOCKET");
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	// NOLINTEND(concurrency-mt-unsafe)
	char own[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int fd;

	// The agent is searched for in the same order as by libtocsin.
	if (given != NULL && given[0] != '\0') {
		fd = socket_connect_path(given);
	} else {
		fd = socket_connect_path("/run/tocsin/" JOB_SOCKET_NAME);
		if (fd < 0 && runtime != NULL && runtime[0] != '\0' &&
		    snprintf(own, sizeof(own), "%s/tocsin/" JOB_SOCKET_NAME, runtime) <
			    (int)sizeof(own))
			fd = socket_connect_path(own);
	}
	exit_reporter->fd = fd >= 0 ? fd : -1;
	send_packet(exit_reporter, &parent, sizeof(parent));
}

void exit_reporter_close(struct exit_reporter *exit_reporter) {
	if (exit_reporter->fd >= 0)
		close(exit_reporter->fd);
	exit_reporter->fd = -1;
}

void exit_reporter_read(struct exit_reporter *exit_reporter) {
	char packet[sizeof(struct job_failed)];

	if (exit_reporter->fd >= 0 && recv(exit_reporter->fd, packet, sizeof(packet), 0) <= 0)
		exit_reporter_close(exit_reporter);
}

void exit_reporter_send_exit(struct exit_reporter *exit_reporter, enum job_exit cause, int value) {
	const struct job_exited exited = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_EXITED},
		.cause = cause,
		.value = value,
	};

	if (exit_reporter->fd < 0)
		exit_reporter_open(exit_reporter);
	send_packet(exit_reporter, &exited, sizeof(exited));
}
