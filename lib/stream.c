// SPDX-License-Identifier: BSD-3-Clause
// TCP streams: connecting, sending and receiving until a deadline.
#include <lib/clock.h>
#include <lib/error.h>
#include <lib/must.h>
#include <lib/sockaddr.h>
#include <lib/stream.h>

#include <poll.h>

int stream_wait(int fd, short events, struct deadline deadline) {
	struct pollfd poll_fd = {.fd = fd, .events = events};
	uint64_t now_ns = clock_monotonic_ns();
	int n;

	// Repeat an interrupted wait, and one of more than INT_MAX milliseconds.
	while (!deadline_expired(deadline, now_ns)) {
		n = poll(&poll_fd, 1, deadline_poll_timeout_ms(deadline, now_ns));
		if (n > 0)
			return (poll_fd.revents & POLLNVAL) != 0 ? -EBADF : 0;
		if (n < 0 && errno != EINTR)
			return neg_errno();
		now_ns = clock_monotonic_ns();
	}
	return -ETIMEDOUT;
}

int stream_connect_start(int fd, const struct sockaddr *address, socklen_t length) {
	if (connect(fd, address, length) != 0)
		// After an interruption the handshake continues; a second connect() would fail.
		return errno == EINTR ? -EINPROGRESS : neg_errno();
	return stream_connect_finish(fd);
}

// Return true if both ends of the connection are this socket.
static bool is_connected_to_itself(int fd, const struct sockaddr *peer, socklen_t peer_length) {
	struct sockaddr_storage local;
	socklen_t local_length = sizeof(local);
	struct sock_addr local_addr;
	struct sock_addr peer_addr;

	return getsockname(fd, (struct sockaddr *)&local, &local_length) == 0 &&
	       sock_addr_from_sockaddr(peer, peer_length, &peer_addr) == 0 &&
	       sock_addr_from_sockaddr((struct sockaddr *)&local, local_length, &local_addr) == 0 &&
	       sock_addr_equal(&local_addr, &peer_addr);
}

int stream_connect_finish(int fd) {
	struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
	struct sockaddr_storage peer;
	socklen_t peer_length = sizeof(peer);
	socklen_t error_length = sizeof(int);
	int error = 0;
	int n;

	do {
		n = poll(&poll_fd, 1, 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? neg_errno() : -EINPROGRESS;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_length) != 0)
		return neg_errno();
	if (error != 0)
		return -error;
	// A socket that never started to connect is also writable without error.
	if (getpeername(fd, (struct sockaddr *)&peer, &peer_length) != 0)
		return neg_errno();
	if (is_connected_to_itself(fd, (struct sockaddr *)&peer, peer_length))
		return -ECONNREFUSED;
	return 0;
}

ssize_t stream_send(int fd, const void *data, size_t size) {
	ssize_t n;

	must(size > 0);
	do {
		n = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n >= 0 ? n : neg_errno();
}

ssize_t stream_receive(int fd, void *buffer, size_t size) {
	ssize_t n;

	must(size > 0);
	do {
		n = recv(fd, buffer, size, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n >= 0 ? n : neg_errno();
}

int stream_send_all(int fd, const void *data, size_t size, struct deadline deadline) {
	const char *at = data;
	size_t left = size;
	ssize_t n;
	int err;

	while (left > 0) {
		n = stream_send(fd, at, left);
		if (n < 0 && n != -EAGAIN)
			return (int)n;
		if (n > 0) {
			at += n;
			left -= (size_t)n;
		}
		// The socket has no room for the rest. stream_wait() also checks the deadline if
		// the peer frees room continuously.
		err = left > 0 ? stream_wait(fd, POLLOUT, deadline) : 0;
		if (err != 0)
			return err;
	}
	return 0;
}
