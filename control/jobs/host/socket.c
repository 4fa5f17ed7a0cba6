// SPDX-License-Identifier: BSD-3-Clause
// The job socket: a path to which every process may connect.
#include "jobs/host/inside.h"

#include <lib/container.h>
#include <lib/error.h>
#include <lib/log.h>
#include <lib/scoped.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128
#define ACCEPTS_PER_TURN 16

static void on_listener_ready(struct loop_source *source, uint32_t events) {
	struct jobhost *host = container_of(source, struct jobhost, listener);

	(void)events;
	for (int n = 0; n < ACCEPTS_PER_TURN; n++) {
		int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		// A waiting connection would wake the loop again at once; on_sample_timer() resumes
		// listening.
		if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			loop_set_events(&host->listener, 0);
		if (fd < 0)
			return;
		host_connection_open(host, fd);
	}
}

static int create_job_socket(void) {
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? neg_errno() : fd;
}

// Remove a stale socket file. Returns -EADDRINUSE if a process still listens on it, and -EEXIST if
// the file is not a socket.
static int remove_stale_socket(const struct sockaddr_un *address) {
	scoped_fd int fd = create_job_socket();
	struct stat status;

	if (fd < 0)
		return fd;
	if (lstat(address->sun_path, &status) < 0)
		return errno == ENOENT ? 0 : neg_errno();
	if (!S_ISSOCK(status.st_mode))
		return -EEXIST;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
	    errno != ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(address->sun_path) == 0 || errno == ENOENT ? 0 : neg_errno();
}

// Every user may connect; what a process may do depends on its credentials.
static int bind_and_listen(int fd, const struct sockaddr_un *address) {
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return neg_errno();
	if (chmod(address->sun_path, 0666) < 0 || listen(fd, BACKLOG) < 0)
		return neg_errno();
	return 0;
}

static int open_listener(struct jobhost *host, const struct sockaddr_un *address) {
	scoped_fd int fd = create_job_socket();
	struct stat status;
	int err;

	if (fd < 0)
		return fd;
	err = bind_and_listen(fd, address);
	if (err == -EADDRINUSE) {
		err = remove_stale_socket(address);
		if (err == 0)
			err = bind_and_listen(fd, address);
	}
	if (err != 0)
		return err;
	if (lstat(address->sun_path, &status) == 0) {
		host->socket_device = status.st_dev;
		host->socket_inode = status.st_ino;
	}
	host->listener.fd = scoped_release_fd(&fd);
	host->listener.events = EPOLLIN;
	host->listener.rank = LOOP_CLIENTS;
	host->listener.ready = on_listener_ready;
	return loop_add(host->loop, &host->listener);
}

// Return whether the path still leads to the socket on which this agent listens.
static bool socket_file_is_own(const struct jobhost *host) {
	struct stat status;

	return host->listener.fd >= 0 && lstat(host->socket_path, &status) == 0 &&
	       status.st_dev == host->socket_device && status.st_ino == host->socket_inode;
}

int socket_open(struct jobhost *host, char detail[static JOBHOST_DETAIL_BYTES]) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int err = -ENAMETOOLONG;

	if (strlen(host->socket_path) < sizeof(address.sun_path)) {
		memcpy(address.sun_path, host->socket_path, strlen(host->socket_path) + 1);
		err = open_listener(host, &address);
	}
	if (err != 0)
		snprintf(
			detail, JOBHOST_DETAIL_BYTES, "[job] socket %s%s%s", host->socket_path,
			err == -EEXIST ? " " : ": ",
			err == -EADDRINUSE ? "another agent already listens here"
			: err == -EEXIST   ? "exists and is not a socket"
					   : strerrordesc_np(-err)
		);
	return err;
}

void socket_close(struct jobhost *host) {
	if (host->listener.fd < 0)
		return;
	// Remove the file only if it is still our own: a successor may have replaced it.
	if (socket_file_is_own(host))
		unlink(host->socket_path);
	loop_remove(&host->listener);
	close(host->listener.fd);
	host->listener.fd = -1;
}

void socket_restore(struct jobhost *host) {
	char detail[JOBHOST_DETAIL_BYTES];

	if (socket_file_is_own(host))
		return;
	socket_close(host);
	if (socket_open(host, detail) == 0)
		log_event(
			LOG_LEVEL_WARN, "job_socket_restored", log_str("path", host->socket_path),
			log_str("detail", "the file was removed; programs can connect again")
		);
	else if (!host->socket_is_missing)
		log_event(
			LOG_LEVEL_ERROR, "job_socket_missing", log_str("detail", detail),
			log_str("retry", "each second; running programs stay connected")
		);
	host->socket_is_missing = host->listener.fd < 0;
}
