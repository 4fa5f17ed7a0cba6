// SPDX-License-Identifier: BSD-3-Clause
#include "run/channel.h"

#include <lib/clock.h>
#include <lib/wire.h>
#include <support/cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MANY 64

static void open_ends(struct channel ends[2]) {
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	for (int n = 0; n < 2; n++)
		ends[n] = (struct channel){.fd = fds[n], .signal_fd = -1};
}

static void close_ends(struct channel ends[2]) {
	channel_close(&ends[0]);
	channel_close(&ends[1]);
}

static struct deadline soon(void) {
	return deadline_after(clock_monotonic_ns(), UINT64_C(30000000000));
}

static void send_frame(
	struct channel *end,
	uint32_t magic,
	uint16_t version,
	uint16_t kind,
	uint32_t size,
	size_t really
) {
	uint8_t bytes[64] = {0};
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	wire_put_u32(&writer, magic);
	wire_put_u16(&writer, version);
	wire_put_u16(&writer, kind);
	wire_put_u32(&writer, size);
	assert_int_equal(
		write(end->fd, bytes, wire_writer_used(&writer) + really),
		(ssize_t)(wire_writer_used(&writer) + really)
	);
}

static void messages_arrive_as_they_were_sent(void **state) {
	static uint8_t large[CHANNEL_BYTES_MAX];
	struct lab_why why = {.text = ""};
	struct channel_message message;
	struct channel ends[2];

	(void)state;
	memset(large, 7, sizeof(large));
	open_ends(ends);
	assert_int_equal(channel_send(&ends[0], CHANNEL_STEP, large, sizeof(large), &why), 0);
	assert_int_equal(channel_send(&ends[0], CHANNEL_BYE, NULL, 0, &why), 0);
	assert_int_equal(channel_expect(&ends[1], CHANNEL_STEP, soon(), &message, &why), 0);
	assert_int_equal(message.size, sizeof(large));
	assert_memory_equal(message.bytes, large, sizeof(large));
	assert_int_equal(channel_receive(&ends[1], soon(), &message, &why), 0);
	assert_int_equal(message.kind, CHANNEL_BYE);
	close_ends(ends);
}

static void what_is_no_message_is_refused_and_named(void **state) {
	static const struct {
		uint32_t magic;
		uint16_t version, kind;
		uint32_t size;
		int err;
		const char *says;
	} rows[] = {
		{0x20544547, 1, 1, 0, -ENOMSG, "is not tocsin-perf"}, // "GET "
		{CHANNEL_MAGIC, CHANNEL_VERSION + 1, 1, 0, -EPROTO,
		 "uses protocol version 6, this end uses 5"},
		{CHANNEL_MAGIC, CHANNEL_VERSION, CHANNEL_KIND_COUNT, 0, -EBADMSG,
		 "sent an invalid message"},
		{CHANNEL_MAGIC, CHANNEL_VERSION, 1, CHANNEL_BYTES_MAX + 1, -EBADMSG, "8193 bytes"},
		{CHANNEL_MAGIC, CHANNEL_VERSION, 1, UINT32_MAX, -EBADMSG, "4294967295 bytes"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lab_why why = {.text = ""};
		struct channel_message message;
		struct channel ends[2];

		open_ends(ends);
		send_frame(&ends[0], rows[n].magic, rows[n].version, rows[n].kind, rows[n].size, 0);
		assert_int_equal(channel_receive(&ends[1], soon(), &message, &why), rows[n].err);
		assert_non_null(strstr(why.text, rows[n].says));
		close_ends(ends);
	}
}

static void an_end_that_goes_away_is_said_so_wherever_it_stops(void **state) {
	(void)state;
	for (int half = 0; half < 2; half++) {
		struct lab_why why = {.text = ""};
		struct channel_message message;
		struct channel ends[2];

		open_ends(ends);
		if (half == 1)
			send_frame(&ends[0], CHANNEL_MAGIC, CHANNEL_VERSION, CHANNEL_HELLO, 9, 5);
		channel_close(&ends[0]);
		assert_true(channel_receive(&ends[1], soon(), &message, &why) < 0);
		assert_string_equal(
			why.text, half == 1 ? "the other end went away within a message"
					    : "the other end went away"
		);
		close_ends(ends);
	}
}

static void an_error_of_any_version_is_told_and_escaped(void **state) {
	const struct lab_why theirs = {.text = "no \"device\"\n\x1b[31m"};
	struct lab_why why = {.text = ""};
	struct channel_message message;
	struct channel ends[2];

	(void)state;
	open_ends(ends);
	channel_send_error(&ends[0], &theirs);
	assert_int_equal(channel_receive(&ends[1], soon(), &message, &why), -EREMOTEIO);
	assert_string_equal(why.text, "the other end says \"no \\\"device\\\"\\n\\x1b[31m\"");
	close_ends(ends);
	open_ends(ends);
	why.text[0] = '\0';
	send_frame(&ends[0], CHANNEL_MAGIC, 9, CHANNEL_ERROR, 0, 0);
	assert_int_equal(channel_receive(&ends[1], soon(), &message, &why), -EREMOTEIO);
	close_ends(ends);
}

static void silence_ends_with_the_deadline(void **state) {
	struct lab_why why = {.text = ""};
	struct channel_message message;
	struct channel ends[2];

	(void)state;
	open_ends(ends);
	assert_int_equal(
		channel_receive(&ends[1], (struct deadline){1}, &message, &why), -ETIMEDOUT
	);
	assert_string_equal(why.text, "the other end does not answer");
	close_ends(ends);
}

static void another_message_than_the_one_that_is_due_is_refused(void **state) {
	struct lab_why why = {.text = ""};
	struct channel_message message;
	struct channel ends[2];

	(void)state;
	open_ends(ends);
	assert_int_equal(channel_send(&ends[0], CHANNEL_STEP, NULL, 0, &why), 0);
	assert_int_equal(channel_expect(&ends[1], CHANNEL_HELLO, soon(), &message, &why), -EBADMSG);
	close_ends(ends);
}

static void a_person_ends_what_a_channel_waits_for(void **state) {
	struct lab_why why = {.text = ""};
	struct channel_message message;
	struct channel ends[2];
	int person[2];

	(void)state;
	open_ends(ends);
	assert_int_equal(pipe(person), 0);
	assert_int_equal(write(person[1], "", 1), 1);
	ends[1].signal_fd = person[0];
	assert_int_equal(channel_receive(&ends[1], deadline_never(), &message, &why), -EINTR);
	assert_string_equal(why.text, "interrupted");
	// A message that has already arrived is still received.
	assert_int_equal(channel_send(&ends[0], CHANNEL_BYE, NULL, 0, &why), 0);
	assert_int_equal(channel_receive(&ends[1], deadline_never(), &message, &why), 0);
	close(person[0]);
	close(person[1]);
	close_ends(ends);
}

static struct channel_listener listen_here(void) {
	const struct sock_addr here = channel_loopback();
	struct channel_listener listener;
	struct lab_why why = {.text = ""};

	assert_int_equal(channel_bind(&here, &listener, &why), 0);
	assert_int_equal(channel_listen(&listener, &why), 0);
	return listener;
}

static int option_of(const struct channel *channel, int level, int name) {
	socklen_t length = sizeof(int);
	int value;

	assert_int_equal(getsockopt(channel->fd, level, name, &value, &length), 0);
	return value;
}

// The socket options make the kernel close a connection to a host that stopped answering, even an
// idle one. The test checks the options only, because the close itself takes half a minute.
static void a_host_that_is_gone_is_asked_for(void **state) {
	struct channel_listener listener = listen_here();
	struct lab_why why = {.text = ""};
	static struct channel ends[2];

	(void)state;
	assert_int_equal(channel_connect(&listener.address, -1, soon(), &ends[0], &why), 0);
	assert_int_equal(channel_accept(&listener, &ends[1]), 0);
	for (int n = 0; n < 2; n++) {
		assert_int_equal(option_of(&ends[n], SOL_SOCKET, SO_KEEPALIVE), 1);
		assert_in_range(option_of(&ends[n], IPPROTO_TCP, TCP_KEEPIDLE), 1, 30);
		assert_in_range(option_of(&ends[n], IPPROTO_TCP, TCP_USER_TIMEOUT), 1, 60000);
	}
	close_ends(ends);
	channel_listener_close(&listener);
}

// A port that is only taken is not served yet, so a client cannot come before its token is there.
static void nobody_connects_before_the_listener_listens(void **state) {
	const struct sock_addr here = channel_loopback();
	struct channel_listener listener;
	struct lab_why why = {.text = ""};
	static struct channel client;

	(void)state;
	assert_int_equal(channel_bind(&here, &listener, &why), 0);
	assert_int_equal(
		channel_connect(&listener.address, -1, soon(), &client, &why), -ECONNREFUSED
	);
	channel_close(&client);
	assert_int_equal(channel_listen(&listener, &why), 0);
	assert_int_equal(channel_accept(&listener, &client), -EAGAIN);
	channel_listener_close(&listener);
}

static void a_message_in_pieces_is_received_without_waiting(void **state) {
	static const uint8_t frame[] = {0x54, 0x50, 0x52, 0x46, CHANNEL_VERSION, 0, 1, 0, 3, 0, 0,
					0,    'a',  'b',  'c'};
	struct channel_partial partial = {.used = 0};
	struct lab_why why = {.text = ""};
	struct channel_message message;
	struct channel ends[2];

	(void)state;
	open_ends(ends);
	for (size_t n = 0; n < sizeof(frame); n++) {
		assert_int_equal(
			channel_receive_some(&ends[1], &partial, 3, &message, &why), -EAGAIN
		);
		assert_int_equal(write(ends[0].fd, &frame[n], 1), 1);
	}
	assert_int_equal(channel_receive_some(&ends[1], &partial, 3, &message, &why), 0);
	assert_int_equal(message.kind, CHANNEL_HELLO);
	assert_memory_equal(message.bytes, "abc", 3);
	assert_int_equal(write(ends[0].fd, frame, sizeof(frame)), (ssize_t)sizeof(frame));
	assert_int_equal(channel_receive_some(&ends[1], &partial, 2, &message, &why), -EBADMSG);
	assert_non_null(strstr(why.text, "at most 2"));
	close_ends(ends);
}

// The processes of a mesh connect like this while the lead still handles the first one.
static void many_may_connect_before_one_is_accepted(void **state) {
	struct channel_listener listener = listen_here();
	struct lab_why why = {.text = ""};
	static struct channel clients[MANY];

	(void)state;
	for (int n = 0; n < MANY; n++)
		assert_int_equal(
			channel_connect(&listener.address, -1, soon(), &clients[n], &why), 0
		);
	for (int n = 0; n < MANY; n++)
		channel_close(&clients[n]);
	channel_listener_close(&listener);
}

// A port scanner connects and resets like this.
static void whoever_resets_its_connection_is_passed_over(void **state) {
	const struct linger at_once = {.l_onoff = 1};
	struct channel_listener listener = listen_here();
	struct lab_why why = {.text = ""};
	static struct channel gone, client, server;

	(void)state;
	assert_int_equal(channel_connect(&listener.address, -1, soon(), &gone, &why), 0);
	assert_int_equal(setsockopt(gone.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	channel_close(&gone);
	assert_int_equal(channel_connect(&listener.address, -1, soon(), &client, &why), 0);
	assert_int_equal(channel_accept(&listener, &server), 0);
	assert_int_equal(server.peer.port, client.local.port);
	channel_close(&client);
	channel_close(&server);
	channel_listener_close(&listener);
}

UNIT_GROUP(lab_channel) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_arrive_as_they_were_sent),
		cmocka_unit_test(what_is_no_message_is_refused_and_named),
		cmocka_unit_test(an_end_that_goes_away_is_said_so_wherever_it_stops),
		cmocka_unit_test(an_error_of_any_version_is_told_and_escaped),
		cmocka_unit_test(silence_ends_with_the_deadline),
		cmocka_unit_test(another_message_than_the_one_that_is_due_is_refused),
		cmocka_unit_test(a_person_ends_what_a_channel_waits_for),
		cmocka_unit_test(a_host_that_is_gone_is_asked_for),
		cmocka_unit_test(nobody_connects_before_the_listener_listens),
		cmocka_unit_test(a_message_in_pieces_is_received_without_waiting),
		cmocka_unit_test(many_may_connect_before_one_is_accepted),
		cmocka_unit_test(whoever_resets_its_connection_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
