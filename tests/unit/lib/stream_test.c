// SPDX-License-Identifier: BSD-3-Clause
#include <lib/clock.h>
#include <lib/scoped.h>
#include <lib/stream.h>
#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_NS UINT64_C(300000000000) // ends a test that hangs; no result depends on it
#define LARGE_BYTES (8U << 20)
#define STORM_BYTES (1U << 20) // more than the buffers of a pair of sockets hold
#define STORM_ALARMS 500

// Receive all bytes. Returns 0, -ENODATA (the stream ended before the first byte) or -EBADMSG (it
// ended after some bytes).
static int receive_all(int fd, void *buffer, size_t size, struct deadline deadline) {
	char *at = buffer;
	size_t left = size;
	ssize_t n;
	int err;

	while (left > 0) {
		n = stream_receive(fd, at, left);
		if (n == 0)
			return left == size ? -ENODATA : -EBADMSG;
		if (n < 0 && n != -EAGAIN)
			return (int)n;
		if (n > 0) {
			at += n;
			left -= (size_t)n;
		}
		err = left > 0 ? stream_wait(fd, POLLIN, deadline) : 0;
		if (err != 0)
			return err;
	}
	return 0;
}

static struct deadline patience(void) {
	return deadline_after(clock_monotonic_ns(), PATIENCE_NS);
}

static struct deadline passed(void) {
	return deadline_after(0, 1);
}

// Number of the next calls of each kind that fail with EINTR. An interrupted connect() continues in
// the background, as in the kernel.
static uint32_t interrupt_connects;
static uint32_t interrupt_polls;
static uint32_t interrupt_transfers;
static uint32_t connect_calls;

static bool is_interrupted(uint32_t *left) {
	if (*left == 0)
		return false;
	(*left)--;
	errno = EINTR;
	return true;
}

int connect(int fd, const struct sockaddr *address, socklen_t length) {
	int result = (int)syscall(SYS_connect, fd, address, length);

	connect_calls++;
	return is_interrupted(&interrupt_connects) ? -1 : result;
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
	struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};

	if (is_interrupted(&interrupt_polls))
		return -1;
	return (int)syscall(SYS_ppoll, fds, count, timeout_ms < 0 ? NULL : &timeout, NULL, 0);
}

ssize_t send(int fd, const void *data, size_t size, int flags) {
	if (is_interrupted(&interrupt_transfers))
		return -1;
	return syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}

ssize_t recv(int fd, void *buffer, size_t size, int flags) {
	if (is_interrupted(&interrupt_transfers))
		return -1;
	return syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);
}

static void make_pair(int ends[static 2]) {
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static int tcp_socket(void) {
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	return fd;
}

// A TCP socket bound to a free port of the loopback address.
static int tcp_bound(struct sockaddr_in *ret_address) {
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof(address);
	int fd = tcp_socket();

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	*ret_address = address;
	return fd;
}

static int tcp_listener(struct sockaddr_in *ret_address) {
	int fd = tcp_bound(ret_address);

	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

// Connect and wait for completion.
static int
connect_until(int fd, const struct sockaddr *address, socklen_t length, struct deadline deadline) {
	int err;

	err = stream_connect_start(fd, address, length);
	// A peer on this host has often answered already, so look once even after the deadline.
	if (err == -EINPROGRESS)
		err = stream_connect_finish(fd);
	while (err == -EINPROGRESS) {
		err = stream_wait(fd, POLLOUT, deadline);
		if (err == 0)
			err = stream_connect_finish(fd);
	}
	return err;
}

static void make_tcp_pair(int ends[static 2]) {
	struct sockaddr_in address;
	scoped_fd int listener = tcp_listener(&address);

	ends[0] = tcp_socket();
	assert_int_equal(
		connect_until(ends[0], (struct sockaddr *)&address, sizeof(address), patience()), 0
	);
	assert_int_equal(stream_wait(listener, POLLIN, patience()), 0);
	ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(ends[1] >= 0);
}

// Close with a TCP reset instead of a normal end.
static void close_with_reset(int fd) {
	struct linger linger = {.l_onoff = 1, .l_linger = 0};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	close(fd);
}

static void receive_tells_nothing_yet_from_the_end(void **state) {
	char byte = 'x';
	int ends[2];

	(void)state;
	make_pair(ends);
	assert_int_equal(stream_receive(ends[0], &byte, 1), -EAGAIN);
	close(ends[1]);
	assert_int_equal(stream_receive(ends[0], &byte, 1), 0);
	assert_int_equal(stream_receive(ends[0], &byte, 1), 0);
	assert_int_equal(byte, 'x');
	close(ends[0]);
}

static void half_closed_stream_still_carries_the_answer(void **state) {
	char text[8];
	int ends[2];

	(void)state;
	make_tcp_pair(ends);
	assert_int_equal(stream_send_all(ends[0], "bye", 3, patience()), 0);
	assert_int_equal(shutdown(ends[0], SHUT_WR), 0);
	assert_int_equal(stream_send(ends[0], "x", 1), -EPIPE);
	assert_int_equal(receive_all(ends[1], text, 3, patience()), 0);
	assert_int_equal(receive_all(ends[1], text, 1, patience()), -ENODATA);
	assert_int_equal(stream_send_all(ends[1], "left", 4, patience()), 0);
	close(ends[1]);
	assert_int_equal(receive_all(ends[0], text, 4, patience()), 0);
	assert_memory_equal(text, "left", 4);
	assert_int_equal(receive_all(ends[0], text, 1, patience()), -ENODATA);
	close(ends[0]);
}

// The test keeps the default action of SIGPIPE, so a raised signal would end the program.
static void send_to_a_closed_peer_is_an_error_and_no_signal(void **state) {
	int ends[2];

	(void)state;
	signal(SIGPIPE, SIG_DFL);
	make_pair(ends);
	close(ends[1]);
	assert_int_equal(stream_send(ends[0], "x", 1), -EPIPE);
	assert_int_equal(stream_send_all(ends[0], "x", 1, patience()), -EPIPE);
	close(ends[0]);
}

static void reset_is_an_error_after_the_bytes_before_it(void **state) {
	char text[8];
	int ends[2];

	(void)state;
	make_tcp_pair(ends);
	assert_int_equal(stream_send_all(ends[1], "last", 4, patience()), 0);
	close_with_reset(ends[1]);
	assert_int_equal(receive_all(ends[0], text, 4, patience()), 0);
	assert_memory_equal(text, "last", 4);
	assert_int_equal(receive_all(ends[0], text, 4, patience()), -ECONNRESET);
	assert_int_equal(stream_send(ends[0], "x", 1), -EPIPE);
	close(ends[0]);
}

static void reset_is_named_by_the_direction_that_asks_first(void **state) {
	int ends[2];

	(void)state;
	make_tcp_pair(ends);
	close_with_reset(ends[1]);
	assert_int_equal(stream_wait(ends[0], POLLIN, patience()), 0);
	assert_int_equal(stream_send(ends[0], "x", 1), -ECONNRESET);
	assert_int_equal(stream_send(ends[0], "x", 1), -EPIPE);
	close(ends[0]);
}

static void send_moves_what_fits_and_then_says_so(void **state) {
	scoped_mem char *data = calloc(1, LARGE_BYTES);
	size_t moved = 0;
	char byte;
	ssize_t n;
	int ends[2];

	(void)state;
	assert_non_null(data);
	make_pair(ends);
	while ((n = stream_send(ends[0], data, LARGE_BYTES)) > 0) {
		assert_true((size_t)n < LARGE_BYTES);
		moved += (size_t)n;
	}
	assert_int_equal(n, -EAGAIN);
	while (stream_receive(ends[1], &byte, 1) == 1)
		moved--;
	assert_int_equal(moved, 0);
	close(ends[0]);
	close(ends[1]);
}

static void full_buffer_and_silent_peer_meet_the_deadline(void **state) {
	scoped_mem char *data = calloc(1, LARGE_BYTES);
	struct deadline soon = deadline_after(clock_monotonic_ns(), 1000000);
	char byte;
	int ends[2];

	(void)state;
	assert_non_null(data);
	make_pair(ends);
	assert_int_equal(stream_send_all(ends[0], data, LARGE_BYTES, soon), -ETIMEDOUT);
	assert_true(deadline_expired(soon, clock_monotonic_ns()));
	soon = deadline_after(clock_monotonic_ns(), 1000000);
	assert_int_equal(receive_all(ends[0], &byte, 1, soon), -ETIMEDOUT);
	assert_true(deadline_expired(soon, clock_monotonic_ns()));
	close(ends[0]);
	close(ends[1]);
}

static void passed_deadline_allows_what_can_be_done_at_once(void **state) {
	char text[2];
	int ends[2];

	(void)state;
	make_pair(ends);
	assert_int_equal(stream_send_all(ends[0], "abc", 3, passed()), 0);
	assert_int_equal(receive_all(ends[1], text, 2, passed()), 0);
	assert_int_equal(receive_all(ends[1], text, 2, passed()), -ETIMEDOUT);
	assert_int_equal(stream_wait(ends[0], POLLOUT, passed()), -ETIMEDOUT);
	close(ends[0]);
	close(ends[1]);
}

static void connect_that_is_done_counts_even_after_the_deadline(void **state) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	scoped_fd int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	scoped_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t length = sizeof(address);

	(void)state;
	// The kernel chooses an abstract name.
	assert_int_equal(
		bind(listener, (struct sockaddr *)&address, sizeof(address.sun_family)), 0
	);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	interrupt_connects = 1; // a local connect succeeds even if it reports EINTR
	assert_int_equal(connect_until(fd, (struct sockaddr *)&address, length, passed()), 0);
}

static void nothing_to_move_is_moved_at_once(void **state) {
	(void)state;
	assert_int_equal(stream_send_all(-1, "", 0, passed()), 0);
	assert_int_equal(receive_all(-1, (char[1]){0}, 0, passed()), 0);
}

static void bad_descriptor_is_an_error(void **state) {
	char byte;

	(void)state;
	assert_int_equal(stream_send(-1, "x", 1), -EBADF);
	assert_int_equal(stream_receive(-1, &byte, 1), -EBADF);
	assert_int_equal(stream_wait(1000000, POLLIN, patience()), -EBADF);
}

struct peer {
	int fd;
	uint64_t sum;
	int err;
};

static void *peer_receive(void *argument) {
	struct peer *peer = argument;
	static unsigned char piece[4096];

	for (size_t got = 0; got < STORM_BYTES && peer->err == 0; got += sizeof(piece)) {
		peer->err = receive_all(peer->fd, piece, sizeof(piece), patience());
		for (size_t i = 0; i < sizeof(piece); i++)
			peer->sum += piece[i] * (got + i + 1);
	}
	return NULL;
}

static _Atomic uint32_t alarms;

// The storm has an end: on a starved processor, where a signal is due whenever the program runs,
// the program would do nothing but count alarms.
static void count_alarm(int number) {
	const struct itimerval calm = {0};

	(void)number;
	if (++alarms == STORM_ALARMS)
		(void)setitimer(ITIMER_REAL, &calm, NULL);
}

// SA_RESTART is not set, so a signal really interrupts every call that waits.
static void transfer_survives_a_storm_of_signals(void **state) {
	const struct itimerval storm = {{0, 200}, {0, 200}};
	const struct itimerval calm = {0};
	struct sigaction action = {.sa_handler = count_alarm};
	struct sigaction before;
	scoped_mem unsigned char *data = malloc(STORM_BYTES);
	struct peer peer = {0};
	uint64_t sum = 0;
	pthread_t thread;
	int ends[2];

	(void)state;
	assert_non_null(data);
	for (size_t i = 0; i < STORM_BYTES; i++) {
		data[i] = (unsigned char)(i * 31 >> 3);
		sum += data[i] * (i + 1);
	}
	make_pair(ends);
	peer.fd = ends[1];
	alarms = 0;
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	assert_int_equal(pthread_create(&thread, NULL, peer_receive, &peer), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &storm, NULL), 0);
	// Send half of the data, wait with only the alarms as interruptions, then send the rest.
	assert_int_equal(stream_send_all(ends[0], data, STORM_BYTES / 2, patience()), 0);
	while (alarms < 20)
		assert_int_equal(
			stream_wait(ends[0], POLLIN, deadline_after(clock_monotonic_ns(), 1000000)),
			-ETIMEDOUT
		);
	assert_int_equal(
		stream_send_all(ends[0], data + STORM_BYTES / 2, STORM_BYTES / 2, patience()), 0
	);
	assert_int_equal(setitimer(ITIMER_REAL, &calm, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	assert_int_equal(peer.err, 0);
	assert_int_equal(peer.sum, sum);
	close(ends[0]);
	close(ends[1]);
}

static void interrupted_transfer_is_begun_again(void **state) {
	char byte;
	int ends[2];

	(void)state;
	make_pair(ends);
	interrupt_transfers = 3;
	assert_int_equal(stream_send(ends[0], "x", 1), 1);
	interrupt_transfers = 3;
	assert_int_equal(stream_receive(ends[1], &byte, 1), 1);
	interrupt_polls = 3;
	assert_int_equal(stream_wait(ends[0], POLLOUT, patience()), 0);
	assert_int_equal(interrupt_transfers + interrupt_polls, 0);
	close(ends[0]);
	close(ends[1]);
}

static void interrupted_connect_is_finished_and_not_begun_again(void **state) {
	struct sockaddr_in address;
	scoped_fd int listener = tcp_listener(&address);
	scoped_fd int fd = tcp_socket();

	(void)state;
	interrupt_connects = 1;
	interrupt_polls = 2;
	connect_calls = 0;
	assert_int_equal(
		connect_until(fd, (struct sockaddr *)&address, sizeof(address), patience()), 0
	);
	assert_int_equal(connect_calls, 1);
	assert_int_equal(interrupt_connects + interrupt_polls, 0);
	assert_int_equal(stream_wait(listener, POLLIN, patience()), 0);
	assert_int_equal(stream_connect_finish(fd), 0);
}

static void interrupted_connect_still_learns_that_it_failed(void **state) {
	struct sockaddr_in address;
	scoped_fd int bound = tcp_bound(&address); // holds the port, but does not listen
	scoped_fd int fd = tcp_socket();

	(void)state;
	interrupt_connects = 1;
	connect_calls = 0;
	assert_true(bound >= 0);
	assert_int_equal(
		connect_until(fd, (struct sockaddr *)&address, sizeof(address), patience()),
		-ECONNREFUSED
	);
	assert_int_equal(connect_calls, 1);
}

static void refused_connect_says_so(void **state) {
	struct sockaddr_in address;
	scoped_fd int bound = tcp_bound(&address);
	scoped_fd int fd = tcp_socket();

	(void)state;
	assert_true(bound >= 0);
	assert_int_equal(
		connect_until(fd, (struct sockaddr *)&address, sizeof(address), patience()),
		-ECONNREFUSED
	);
}

static void socket_that_never_connected_is_not_taken_for_connected(void **state) {
	scoped_fd int fd = tcp_socket();
	scoped_fd int local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(stream_connect_finish(fd), -ENOTCONN);
	assert_int_equal(stream_connect_finish(local), -ENOTCONN);
}

static void socket_connected_to_itself_counts_as_refused(void **state) {
	struct sockaddr_in address;
	scoped_fd int fd = tcp_bound(&address);

	(void)state;
	assert_int_equal(
		connect_until(fd, (struct sockaddr *)&address, sizeof(address), patience()),
		-ECONNREFUSED
	);
}

// The queue of the listener is full, so the handshake gets no answer.
static void connect_without_answer_meets_the_deadline(void **state) {
	struct deadline soon = deadline_after(clock_monotonic_ns(), 1000000);
	struct sockaddr_in address;
	scoped_fd int listener = tcp_bound(&address);
	scoped_fd int first = tcp_socket();
	scoped_fd int second = tcp_socket();

	(void)state;
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(
		connect_until(first, (struct sockaddr *)&address, sizeof(address), patience()), 0
	);
	assert_int_equal(
		connect_until(second, (struct sockaddr *)&address, sizeof(address), soon),
		-ETIMEDOUT
	);
	assert_int_equal(stream_connect_finish(second), -EINPROGRESS);
}

static void local_sockets_connect_at_once_or_say_why_not(void **state) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t length = sizeof(address.sun_family); // autobind: the kernel picks a free name
	scoped_fd int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	scoped_fd int first = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	scoped_fd int second = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	length = sizeof(address);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(
		stream_connect_start(first, (struct sockaddr *)&address, length), -ECONNREFUSED
	);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(stream_connect_start(first, (struct sockaddr *)&address, length), 0);
	assert_int_equal(
		stream_connect_start(second, (struct sockaddr *)&address, length), -EAGAIN
	);
}

UNIT_GROUP(stream) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receive_tells_nothing_yet_from_the_end),
		cmocka_unit_test(half_closed_stream_still_carries_the_answer),
		cmocka_unit_test(send_to_a_closed_peer_is_an_error_and_no_signal),
		cmocka_unit_test(reset_is_an_error_after_the_bytes_before_it),
		cmocka_unit_test(reset_is_named_by_the_direction_that_asks_first),
		cmocka_unit_test(send_moves_what_fits_and_then_says_so),
		cmocka_unit_test(full_buffer_and_silent_peer_meet_the_deadline),
		cmocka_unit_test(passed_deadline_allows_what_can_be_done_at_once),
		cmocka_unit_test(connect_that_is_done_counts_even_after_the_deadline),
		cmocka_unit_test(nothing_to_move_is_moved_at_once),
		cmocka_unit_test(bad_descriptor_is_an_error),
		cmocka_unit_test(transfer_survives_a_storm_of_signals),
		cmocka_unit_test(interrupted_transfer_is_begun_again),
		cmocka_unit_test(interrupted_connect_is_finished_and_not_begun_again),
		cmocka_unit_test(interrupted_connect_still_learns_that_it_failed),
		cmocka_unit_test(refused_connect_says_so),
		cmocka_unit_test(socket_that_never_connected_is_not_taken_for_connected),
		cmocka_unit_test(socket_connected_to_itself_counts_as_refused),
		cmocka_unit_test(connect_without_answer_meets_the_deadline),
		cmocka_unit_test(local_sockets_connect_at_once_or_say_why_not),
	};

	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
