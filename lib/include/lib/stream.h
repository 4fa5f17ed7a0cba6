// SPDX-License-Identifier: BSD-3-Clause
// Connected stream sockets: connect, send, receive, with the corners of the system calls rounded.
//
// What holds for all of them:
// - EINTR is never seen: a call that a signal interrupts goes on until it is done or its
//   deadline has passed. An interrupted connect is not begun again but finished.
// - SIGPIPE is never raised.
// - The end of the stream is not an error: stream_receive() says 0.
//   An error is never said to be the end; in particular a reset is -ECONNRESET, after all bytes
//   that came before it have been received.
// - Whether sending or receiving failed is told by which was called: sending says -EPIPE (this
//   side or the peer has closed for good) or -ECONNRESET, receiving -ECONNRESET, and neither waits
//   for the other. The kernel reports a reset once, to whoever asks first: after an error the
//   stream is over, and the other direction's 0 means nothing any more.
//
// The forms without a deadline never block, whatever the mode of the descriptor, and fit an event
// loop. Those with one block at most so long. Its clock is CLOCK_MONOTONIC; one that has passed
// still allows what can be done at once. One thread may send while another receives.
#pragma once

#include <lib/deadline.h>

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

// Begins to connect fd, which should be non-blocking (else this waits). Returns 0 (connected),
// -EINPROGRESS (wait for POLLOUT, then stream_connect_finish()), -EAGAIN (local sockets: the
// listener's queue is full, begin again later), or the error of connect().
int stream_connect_start(int fd, const struct sockaddr *address, socklen_t length);

// Returns 0 (connected), -EINPROGRESS (not yet), or why it failed. A TCP socket that was connected
// to itself, which the kernel does for a free local port, says -ECONNREFUSED: nobody listens there.
int stream_connect_finish(int fd);

// Both, and the wait between them. Beside the above -ETIMEDOUT, for the deadline as for the
// network's own.
int stream_connect_until(
	int fd, const struct sockaddr *address, socklen_t length, struct deadline deadline
);

// Sends what the socket takes now, at least one byte of size > 0. Returns how many, -EAGAIN (none:
// wait for POLLOUT), or the error.
ssize_t stream_send(int fd, const void *data, size_t size);

// Receives what is there, at least one byte into size > 0. Returns how many, 0 (the peer has ended
// the stream), -EAGAIN (none yet: wait for POLLIN), or the error.
ssize_t stream_receive(int fd, void *buffer, size_t size);

// All or an error: -ETIMEDOUT, or what stream_send() says. How much was sent is not known then.
int stream_send_all(int fd, const void *data, size_t size, struct deadline deadline);

// Waits for POLLIN or POLLOUT, and returns 0 for these as well as for an error or hang-up pending
// on fd, which the next call will name; else -ETIMEDOUT, at once if the deadline has passed, or
// -EBADF.
int stream_wait(int fd, short events, struct deadline deadline);
