// SPDX-License-Identifier: BSD-3-Clause
// Framed messages over a TCP connection.
#include "run/channel.h"

#include <lib/clock.h>
#include <lib/error.h>
#include <lib/escape.h>
#include <lib/scoped.h>
#include <lib/stream.h>
#include <lib/wire.h>

#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define HEADER_BYTES sizeof(((struct channel_partial *)0)->header)
#define SEND_NS UINT64_C(10000000000)
#define QUOTED_BYTES 320
#define LINGER_NS UINT64_C(1000000000)
#define LINGER_BYTES ((size_t)64 * CHANNEL_BYTES_MAX)
// TCP keepalive: the kernel of a live host answers the probes, even if its program is busy.
#define KEEPALIVE_IDLE_S 10
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_DEAD_MS 30000

// Read both addresses of a new connection, and set its socket options.
static int connection_configure(struct channel *channel) {
	// Nagle's algorithm is off: messages are small, and the other end waits for each.
	// Keepalive is on: otherwise an end that only receives would wait for ever for a dead host.
	const struct {
		int level, name, value;
	} options[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, KEEPALIVE_DEAD_MS},
	};
	struct sockaddr_storage storage;
	socklen_t length = sizeof(storage);
	int err;

	if (getsockname(channel->fd, (struct sockaddr *)&storage, &length) != 0)
		return neg_errno();
	err = sock_addr_from_sockaddr((struct sockaddr *)&storage, length, &channel->local);
	length = sizeof(storage);
	if (err == 0 && getpeername(channel->fd, (struct sockaddr *)&storage, &length) != 0)
		err = neg_errno();
	if (err == 0)
		err = sock_addr_from_sockaddr((struct sockaddr *)&storage, length, &channel->peer);
	for (size_t n = 0; n < sizeof(options) / sizeof(options[0]) && err == 0; n++) {
		if (setsockopt(
			    channel->fd, options[n].level, options[n].name, &options[n].value,
			    sizeof(options[n].value)
		    ) != 0)
			err = neg_errno();
	}
	return err;
}

static int bind_to(const struct sock_addr *address, int *ret_fd) {
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(address, &storage);
	scoped_fd int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, zero = 0;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0)
		return neg_errno();
	if (storage.ss_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) != 0)
		return neg_errno();
	if (bind(fd, (struct sockaddr *)&storage, length) != 0)
		return neg_errno();
	*ret_fd = scoped_release_fd(&fd);
	return 0;
}

struct sock_addr channel_loopback(void) {
	struct sock_addr loopback = {.family = SOCK_ADDR_V4, .address = {127, 0, 0, 1}};
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(&loopback, &storage);
	scoped_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&storage, length) == 0)
		return loopback;
	return (struct sock_addr){.family = SOCK_ADDR_V6, .address = {[15] = 1}};
}

static int fail_listen(const struct channel_listener *listener, int err, struct lab_why *why) {
	char text[SOCK_ADDR_TEXT_BYTES];

	sock_addr_format(&listener->address, text);
	return lab_fail(why, err, "cannot listen on %s: %s", text, strerrordesc_np(-err));
}

int channel_bind(
	const struct sock_addr *address, struct channel_listener *ret_listener, struct lab_why *why
) {
	struct channel_listener listener = {.fd = -1, .address = *address};
	struct sockaddr_storage storage;
	socklen_t length = sizeof(storage);
	struct sock_addr bound;
	int err;

	if (address->family == SOCK_ADDR_NONE)
		listener.address.family = SOCK_ADDR_V6;
	err = bind_to(&listener.address, &listener.fd);

	// A machine without IPv6 listens on all addresses of IPv4.
	if (address->family == SOCK_ADDR_NONE && (err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL)) {
		listener.address.family = SOCK_ADDR_V4;
		err = bind_to(&listener.address, &listener.fd);
	}
	if (err == 0 && getsockname(listener.fd, (struct sockaddr *)&storage, &length) != 0)
		err = neg_errno();
	if (err == 0)
		err = sock_addr_from_sockaddr((struct sockaddr *)&storage, length, &bound);
	if (err == 0)
		listener.address.port = bound.port;
	if (err != 0) {
		channel_listener_close(&listener);
		return fail_listen(&listener, err, why);
	}
	*ret_listener = listener;
	return 0;
}

// Listen with the longest backlog that the system allows. All processes of a mesh connect at once.
// A client for which the backlog has no room retries after 1, 2, 4, ... seconds.
int channel_listen(const struct channel_listener *listener, struct lab_why *why) {
	if (listen(listener->fd, SOMAXCONN) != 0)
		return fail_listen(listener, neg_errno(), why);
	return 0;
}

void channel_listener_close(struct channel_listener *listener) {
	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
}

int channel_accept(const struct channel_listener *listener, struct channel *ret_channel) {
	for (;;) {
		int err = 0;

		ret_channel->fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (ret_channel->fd < 0)
			err = neg_errno();
		// The client may have closed its connection before it was accepted, and accept()
		// also reports errors of the connection's network.
		if (err == -EINTR || err == -ECONNABORTED || err == -EPROTO || err == -ENETDOWN ||
		    err == -ENETUNREACH || err == -EHOSTUNREACH)
			continue;
		if (err != 0 || connection_configure(ret_channel) == 0)
			return err;
		channel_close(ret_channel);
	}
}

// Wait for events on the channel or for an interrupt.
static int channel_wait(const struct channel *channel, short events, struct deadline deadline) {
	struct pollfd fds[2] = {
		{.fd = channel->fd, .events = events},
		{.fd = channel->signal_fd, .events = POLLIN},
	};
	uint64_t now_ns = clock_monotonic_ns();

	for (; !deadline_expired(deadline, now_ns); now_ns = clock_monotonic_ns()) {
		if (poll(fds, 2, deadline_poll_timeout_ms(deadline, now_ns)) < 0 && errno != EINTR)
			return neg_errno();
		if (fds[1].revents != 0)
			return -EINTR;
		if (fds[0].revents != 0)
			return 0;
	}
	return -ETIMEDOUT;
}

static int
connect_to(const struct sock_addr *address, struct deadline deadline, struct channel *channel) {
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(address, &storage);
	int err;

	channel->fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (channel->fd < 0)
		return neg_errno();
	err = stream_connect_start(channel->fd, (struct sockaddr *)&storage, length);
	while (err == -EINPROGRESS) {
		err = channel_wait(channel, POLLOUT, deadline);
		if (err == 0)
			err = stream_connect_finish(channel->fd);
	}
	return err == 0 ? connection_configure(channel) : err;
}

int channel_connect(
	const struct sock_addr *address,
	int signal_fd,
	struct deadline deadline,
	struct channel *ret_channel,
	struct lab_why *why
) {
	char text[SOCK_ADDR_TEXT_BYTES];
	int err;

	sock_addr_format(address, text);
	ret_channel->signal_fd = signal_fd;
	err = connect_to(address, deadline, ret_channel);
	if (err == -EINTR)
		return lab_fail(why, err, "interrupted");
	if (err == -ECONNREFUSED)
		return lab_fail(
			why, err, "nobody listens on %s: start the other end first, without a HOST",
			text
		);
	if (err != 0)
		return lab_fail(why, err, "cannot reach %s: %s", text, strerrordesc_np(-err));
	return 0;
}

int channel_pause(int signal_fd, int pause_ms) {
	struct pollfd polled = {.fd = signal_fd, .events = POLLIN};

	return poll(&polled, 1, pause_ms) > 0 ? -EINTR : 0;
}

void channel_close(struct channel *channel) {
	if (channel->fd >= 0)
		close(channel->fd);
	channel->fd = -1;
}

bool channel_is_local(const struct channel *channel) {
	struct sock_addr local = channel->local, peer = channel->peer;

	local.port = peer.port = 0;
	return sock_addr_equal(&local, &peer) ||
	       (sock_addr_is_loopback(&local) && sock_addr_is_loopback(&peer));
}

int channel_send(
	struct channel *channel,
	enum channel_kind kind,
	const void *bytes,
	size_t size,
	struct lab_why *why
) {
	uint8_t frame[HEADER_BYTES + CHANNEL_BYTES_MAX];
	struct wire_writer writer;
	size_t used;
	int err;

	wire_writer_init(&writer, frame, sizeof(frame));
	wire_put_u32(&writer, CHANNEL_MAGIC);
	wire_put_u16(&writer, CHANNEL_VERSION);
	wire_put_u16(&writer, (uint16_t)kind);
	wire_put_u32(&writer, (uint32_t)size);
	wire_put_bytes(&writer, bytes, size);
	err = wire_writer_finish(&writer, &used);
	if (err == 0)
		err = stream_send_all(
			channel->fd, frame, used, deadline_after(clock_monotonic_ns(), SEND_NS)
		);
	if (err != 0)
		return lab_fail(why, err, "the other end went away: %s", strerrordesc_np(-err));
	return 0;
}

int channel_send_written(
	struct channel *channel,
	enum channel_kind kind,
	const uint8_t *buffer,
	const struct wire_writer *writer,
	struct lab_why *why
) {
	size_t used;
	int err = wire_writer_finish(writer, &used);

	if (err != 0)
		return lab_fail(why, err, "a message to the other end is too long");
	return channel_send(channel, kind, buffer, used, why);
}

// Read and drop bytes until the other end closes. Closing with unread bytes would send a reset,
// which could overtake the last message.
static void channel_linger(struct channel *channel) {
	struct deadline deadline = deadline_after(clock_monotonic_ns(), LINGER_NS);
	size_t left = LINGER_BYTES;
	ssize_t taken = 1;

	(void)shutdown(channel->fd, SHUT_WR);
	while (taken > 0 && left >= sizeof(channel->buffer) &&
	       stream_wait(channel->fd, POLLIN, deadline) == 0) {
		taken = stream_receive(channel->fd, channel->buffer, sizeof(channel->buffer));
		left -= sizeof(channel->buffer);
	}
}

void channel_send_farewell(struct channel *channel, const struct lab_why *why) {
	struct lab_why unheard = {.text = ""};

	(void)channel_send(channel, CHANNEL_ERROR, why->text, strlen(why->text), &unheard);
	(void)shutdown(channel->fd, SHUT_WR);
}

void channel_send_error(struct channel *channel, const struct lab_why *why) {
	struct lab_why unheard = {.text = ""};

	if (channel->fd < 0)
		return;
	if (channel_send(channel, CHANNEL_ERROR, why->text, strlen(why->text), &unheard) == 0)
		channel_linger(channel);
}

static int check_header(
	struct wire_reader *reader,
	struct channel_message *message,
	bool *ret_other_version,
	struct lab_why *why
) {
	uint32_t magic = wire_get_u32(reader);
	uint16_t version = wire_get_u16(reader);
	uint16_t kind = wire_get_u16(reader);
	uint32_t size = wire_get_u32(reader);

	if (magic != CHANNEL_MAGIC)
		return lab_fail(why, -ENOMSG, "the other end is not tocsin-perf");
	*ret_other_version = version != CHANNEL_VERSION;
	if (*ret_other_version && kind != CHANNEL_ERROR)
		return lab_fail(
			why, -EPROTO,
			"the other end is of another release: it uses protocol version %u, this "
			"end uses %u",
			version, CHANNEL_VERSION
		);
	if (kind >= CHANNEL_KIND_COUNT || size > CHANNEL_BYTES_MAX)
		return lab_fail(
			why, -EBADMSG, "the other end sent an invalid message: kind %u, %u bytes",
			kind, size
		);
	message->kind = (enum channel_kind)kind;
	message->size = size;
	return 0;
}

static int check_partial(
	const struct channel_partial *partial,
	size_t size_max,
	struct channel_message *message,
	struct lab_why *why
) {
	struct wire_reader reader;
	bool other_version;
	int err;

	wire_reader_init(&reader, partial->header, sizeof(partial->header));
	err = check_header(&reader, message, &other_version, why);
	if (err == 0 && message->size > size_max)
		return lab_fail(
			why, -EBADMSG,
			"the other end sent a message of %zu bytes, and at most %zu are possible "
			"here",
			message->size, size_max
		);
	return err;
}

// Receive until the message is complete. Returns 0, -EAGAIN, -ENODATA if the connection ended
// before the first byte, -EBADMSG if it ended later, or the error of the header.
static int partial_receive(
	struct channel *channel,
	struct channel_partial *partial,
	size_t size_max,
	struct channel_message *message,
	struct lab_why *why
) {
	const size_t header = sizeof(partial->header);

	for (;;) {
		uint8_t *to = partial->header + partial->used;
		size_t wanted = header;
		ssize_t taken;

		if (partial->used >= header) {
			int err = check_partial(partial, size_max, message, why);

			if (err != 0)
				return err;
			wanted += message->size;
			to = channel->buffer + (partial->used - header);
		}
		if (partial->used >= header && partial->used == wanted)
			break;
		taken = stream_receive(channel->fd, to, wanted - partial->used);
		if (taken == 0)
			return partial->used == 0 ? -ENODATA : -EBADMSG;
		if (taken < 0)
			return (int)taken;
		partial->used += (size_t)taken;
	}
	message->bytes = channel->buffer;
	partial->used = 0;
	return 0;
}

// Complete the reason of a failed receive, and handle an error of the other end.
static int receive_finish(int err, const struct channel_message *message, struct lab_why *why) {
	char quoted[QUOTED_BYTES];

	if (err == -ENODATA || err == -ECONNRESET)
		return lab_fail(why, -ECONNRESET, "the other end went away");
	if (err == -ETIMEDOUT)
		return lab_fail(why, err, "the other end does not answer");
	if (err == -EINTR)
		return lab_fail(why, err, "interrupted");
	if (err == -EBADMSG) // check_header() has already set the reason of other failures
		return lab_fail(why, err, "the other end went away within a message");
	if (err != 0)
		return lab_fail(why, err, "the other end: %s", strerrordesc_np(-err));
	if (message->kind != CHANNEL_ERROR)
		return 0;

	// The other end's error text is untrusted, so it is escaped.
	escape_quote((const char *)message->bytes, message->size, quoted, sizeof(quoted));
	return lab_fail(why, -EREMOTEIO, "the other end says %s", quoted);
}

int channel_receive_some(
	struct channel *channel,
	struct channel_partial *partial,
	size_t size_max,
	struct channel_message *ret_message,
	struct lab_why *why
) {
	int err = partial_receive(channel, partial, size_max, ret_message, why);

	return err == -EAGAIN ? err : receive_finish(err, ret_message, why);
}

int channel_receive(
	struct channel *channel,
	struct deadline deadline,
	struct channel_message *ret_message,
	struct lab_why *why
) {
	struct channel_partial partial = {.used = 0};
	int err = partial_receive(channel, &partial, CHANNEL_BYTES_MAX, ret_message, why);

	while (err == -EAGAIN) {
		err = channel_wait(channel, POLLIN, deadline);
		if (err == 0)
			err = partial_receive(
				channel, &partial, CHANNEL_BYTES_MAX, ret_message, why
			);
	}
	return receive_finish(err, ret_message, why);
}

int channel_expect(
	struct channel *channel,
	enum channel_kind kind,
	struct deadline deadline,
	struct channel_message *ret_message,
	struct lab_why *why
) {
	int err = channel_receive(channel, deadline, ret_message, why);

	if (err == 0 && ret_message->kind != kind)
		err = lab_fail(
			why, -EBADMSG, "the other end sent a message of kind %u instead of %u",
			ret_message->kind, kind
		);
	return err;
}
