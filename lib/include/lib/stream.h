// SPDX-License-Identifier: BSD-3-Clause
// Connected stream sockets: connect, send and receive, with uniform results.
//
// Rules for all functions:
// - EINTR is never returned: an interrupted call continues until it is done or its deadline has
//   passed. An interrupted connect is finished, not restarted.
// - SIGPIPE is never raised.
// - The end of the stream is not an error: stream_receive() returns 0. An error is never reported
//   as the end. A reset is -ECONNRESET, after all earlier bytes have been received.
// - Sending returns -EPIPE (this side or the peer has closed for good) or -ECONNRESET. Receiving
//   returns -ECONNRESET. Neither direction waits for the other. The kernel reports a reset only
//   once, to the first call. So after an error the stream is over, and a 0 of the other direction
//   means nothing.
//
// Functions without a deadline never block, whatever the mode of the descriptor; they suit an event
// loop. Functions with a deadline block until then at most. The deadline is on CLOCK_MONOTONIC.
// After it has passed, work that needs no waiting is still done. One thread may send while another
// receives.
#pragma once

#include <lib/deadline.h>

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

// Start to connect fd, which should be non-blocking (else this waits). Returns 0 (connected),
// -EINPROGRESS (wait for POLLOUT, then call stream_connect_finish()), -EAGAIN (local sockets: the
// listener's queue is full, start again later), or the error of connect().
int stream_connect_start(int fd, const struct sockaddr *address, socklen_t length);

// Finish a connect. Returns 0 (connected), -EINPROGRESS (not yet), or the error. A TCP socket can
// be connected to itself, which the kernel does for a free local port. This returns -ECONNREFUSED,
// because nobody listens there.
int stream_connect_finish(int fd);

// Send at least one byte of size > 0, as many as the socket accepts now. Returns the number of
// bytes, -EAGAIN (none: wait for POLLOUT), or the error.
ssize_t stream_send(int fd, const void *data, size_t size);

// Receive the available bytes, at least one, into size > 0. Returns the number of bytes, 0 (end of
// stream), -EAGAIN (none yet: wait for POLLIN), or the error.
ssize_t stream_receive(int fd, void *buffer, size_t size);

// Send all bytes. Returns 0, -ETIMEDOUT, or the error of stream_send(). After an error the number
// of sent bytes is unknown.
int stream_send_all(int fd, const void *data, size_t size, struct deadline deadline);

// Wait for POLLIN or POLLOUT. Returns 0 if the event occurred, or if an error or hang-up is
// pending, which the next call reports. Otherwise returns -ETIMEDOUT (at once if the deadline has
// passed) or -EBADF.
int stream_wait(int fd, short events, struct deadline deadline);
