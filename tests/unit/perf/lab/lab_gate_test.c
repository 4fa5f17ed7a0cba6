// SPDX-License-Identifier: BSD-3-Clause
#include "run/gate.h"

#include <lib/clock.h>
#include <lib/wire.h>
#include <support/cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define TOKEN "0123456789abcdef0123456789abcdef"
#define OTHER "0123456789abcdef0123456789abcdee"
#define SILENT 14

static struct channel client, other, server, silent[SILENT];

struct bed {
	struct proof_secrets secrets;
	struct channel_listener listener;
	struct gate *gate;
};

static struct deadline soon(void) {
	return deadline_after(clock_monotonic_ns(), UINT64_C(30000000000));
}

static void bed_begin(struct bed *bed, bool open) {
	const struct sock_addr here = channel_loopback();
	struct lab_why why = {.text = ""};

	*bed = (struct bed){.secrets = {.open = open}};
	assert_int_equal(proof_init(), 0);
	proof_add_token(&bed->secrets, TOKEN);
	assert_int_equal(channel_bind(&here, &bed->listener, &why), 0);
	assert_int_equal(channel_listen(&bed->listener, &why), 0);
	assert_int_equal(gate_create(&bed->listener, &bed->secrets, true, &bed->gate), 0);
}

static void bed_end(struct bed *bed) {
	gate_destroy(bed->gate);
	channel_listener_close(&bed->listener);
	channel_close(&client);
	channel_close(&other);
	channel_close(&server);
}

static void bed_connect(const struct bed *bed, struct channel *channel) {
	struct lab_why why = {.text = ""};

	assert_int_equal(channel_connect(&bed->listener.address, -1, soon(), channel, &why), 0);
}

// Let the gate handle what has arrived. Returns whether it handed out a channel.
static bool gate_turn(struct bed *bed, struct channel_message *message) {
	struct lab_why why = {.text = ""};
	int err = gate_wait(bed->gate, -1, (struct deadline){1}, &server, message, &why);

	assert_true(err == 0 || err == -ETIMEDOUT);
	return err == 0;
}

// Receive the next message of the gate, which takes turns meanwhile.
static int client_receive(
	struct bed *bed, struct channel *channel, struct channel_message *ret, struct lab_why *why
) {
	struct channel_partial partial = {.used = 0};
	struct channel_message unwanted;
	int err;

	do {
		assert_false(gate_turn(bed, &unwanted));
		err = channel_receive_some(channel, &partial, CHANNEL_BYTES_MAX, ret, why);
	} while (err == -EAGAIN);
	return err;
}

// Prove a token up to the server's own mark. Returns the last error of the client.
static int
client_prove(struct bed *bed, struct channel *channel, const char *token, struct lab_why *why) {
	struct proof_secrets secrets = {.count = 0};
	uint8_t buffer[PROOF_MESSAGE_BYTES];
	struct proof proof = {.secret = NULL};
	struct channel_message message;
	enum proof_answer answer;
	struct wire_writer writer;
	int err;

	proof_add_token(&secrets, token);
	wire_writer_init(&writer, buffer, sizeof(buffer));
	proof_knock(&proof, &secrets, &writer);
	err = channel_send_written(channel, CHANNEL_KNOCK, buffer, &writer, why);
	if (err == 0)
		err = client_receive(bed, channel, &message, why);
	if (err != 0)
		return err;
	assert_int_equal(proof_read_challenge(&proof, &secrets, &message, &answer), 0);
	if (answer != PROOF_ANSWER_PROVE)
		return client_receive(bed, channel, &message, why);
	proof_make_mark(&proof, PROOF_CLIENT, buffer);
	assert_int_equal(channel_send(channel, CHANNEL_PROOF, buffer, PROOF_MARK_BYTES, why), 0);
	err = client_receive(bed, channel, &message, why);
	if (err == 0)
		assert_true(proof_mark_is_valid(&proof, PROOF_SERVER, &message));
	return err;
}

static void assert_served(struct bed *bed) {
	struct lab_why why = {.text = ""};
	struct channel_message message;

	bed_connect(bed, &client);
	assert_int_equal(client_prove(bed, &client, TOKEN, &why), 0);
	assert_int_equal(channel_send(&client, CHANNEL_HELLO, "plan", 4, &why), 0);
	assert_int_equal(gate_wait(bed->gate, -1, soon(), &server, &message, &why), 0);
	assert_int_equal(message.kind, CHANNEL_HELLO);
	assert_int_equal(message.size, 4);
	assert_memory_equal(message.bytes, "plan", 4);
	assert_int_equal(server.peer.port, client.local.port);
}

// The turns of the gate do not wait, so the client is served before any silent connection ends.
static void silent_connections_delay_nobody(void **state) {
	struct bed bed;

	(void)state;
	bed_begin(&bed, false);
	for (int n = 0; n < SILENT; n++)
		bed_connect(&bed, &silent[n]);
	assert_served(&bed);
	for (int n = 0; n < SILENT; n++)
		channel_close(&silent[n]);
	bed_end(&bed);
}

static void strangers_are_told_why_and_the_gate_waits_on(void **state) {
	static const struct {
		enum channel_kind kind;
		size_t size;
		const char *says;
	} rows[] = {
		{CHANNEL_HELLO, 4, "does not begin with a proof"},
		{CHANNEL_HELLO, PROOF_MESSAGE_BYTES + 1, "at most 128"},
		{CHANNEL_PROOF, PROOF_MARK_BYTES, "does not begin with a proof"},
		{CHANNEL_KNOCK, 3, "does not begin with a proof"},
	};
	static const uint8_t zeros[PROOF_MESSAGE_BYTES + 1];
	struct channel_message message;
	struct bed bed;

	(void)state;
	bed_begin(&bed, false);
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lab_why why = {.text = ""};

		bed_connect(&bed, &other);
		assert_int_equal(channel_send(&other, rows[n].kind, zeros, rows[n].size, &why), 0);
		assert_int_equal(client_receive(&bed, &other, &message, &why), -EREMOTEIO);
		assert_non_null(strstr(why.text, rows[n].says));
		channel_close(&other);
	}
	assert_served(&bed);
	bed_end(&bed);
}

static void bytes_of_another_protocol_and_version_are_refused(void **state) {
	static const char http[] = "GET / HTTP/1.1\r\n\r\n";
	static const uint8_t old[12] = {0x54, 0x50, 0x52, 0x46, 4, 0, 1, 0, 0, 0, 0, 0};
	static const struct {
		const void *bytes;
		size_t size;
		const char *says;
	} rows[] = {
		{http, sizeof(http) - 1, "is not tocsin-perf"},
		{old, sizeof(old), "it uses protocol version 4, this end uses 5"},
	};
	struct channel_message message;
	struct bed bed;

	(void)state;
	bed_begin(&bed, false);
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lab_why why = {.text = ""};

		bed_connect(&bed, &other);
		assert_int_equal(
			write(other.fd, rows[n].bytes, rows[n].size), (ssize_t)rows[n].size
		);
		assert_int_equal(client_receive(&bed, &other, &message, &why), -EREMOTEIO);
		assert_non_null(strstr(why.text, rows[n].says));
		channel_close(&other);
	}
	assert_served(&bed);
	bed_end(&bed);
}

static void another_token_and_another_mark_are_refused(void **state) {
	static const uint8_t zeros[PROOF_MARK_BYTES];
	struct proof_secrets secrets = {.count = 0};
	uint8_t buffer[PROOF_MESSAGE_BYTES];
	struct proof proof = {.secret = NULL};
	struct channel_message message;
	struct lab_why why = {.text = ""};
	struct wire_writer writer;
	struct bed bed;

	(void)state;
	bed_begin(&bed, false);
	bed_connect(&bed, &other);
	assert_int_equal(client_prove(&bed, &other, OTHER, &why), -EREMOTEIO);
	assert_non_null(strstr(why.text, "does not have the token"));
	channel_close(&other);

	// The id of the token is known, but not the token.
	why.text[0] = '\0';
	proof_add_token(&secrets, TOKEN);
	bed_connect(&bed, &other);
	wire_writer_init(&writer, buffer, sizeof(buffer));
	proof_knock(&proof, &secrets, &writer);
	assert_int_equal(channel_send_written(&other, CHANNEL_KNOCK, buffer, &writer, &why), 0);
	assert_int_equal(client_receive(&bed, &other, &message, &why), 0);
	assert_int_equal(channel_send(&other, CHANNEL_PROOF, zeros, sizeof(zeros), &why), 0);
	assert_int_equal(client_receive(&bed, &other, &message, &why), -EREMOTEIO);
	assert_non_null(strstr(why.text, "does not prove the token"));
	assert_served(&bed);
	bed_end(&bed);
}

static void an_open_gate_lets_a_client_without_token_speak(void **state) {
	const struct proof_secrets none = {.count = 0};
	uint8_t buffer[PROOF_MESSAGE_BYTES];
	struct proof proof = {.secret = NULL};
	struct channel_message message;
	struct lab_why why = {.text = ""};
	struct wire_writer writer;
	struct bed bed;

	(void)state;
	bed_begin(&bed, true);
	bed_connect(&bed, &client);
	wire_writer_init(&writer, buffer, sizeof(buffer));
	proof_knock(&proof, &none, &writer);
	assert_int_equal(channel_send_written(&client, CHANNEL_KNOCK, buffer, &writer, &why), 0);
	assert_int_equal(channel_send(&client, CHANNEL_HELLO, "plan", 4, &why), 0);
	assert_int_equal(gate_wait(bed.gate, -1, soon(), &server, &message, &why), 0);
	assert_int_equal(message.kind, CHANNEL_HELLO);

	// A channel that the caller refuses is told the caller's reason.
	(void)lab_fail(&why, -EINVAL, "no room for this plan");
	gate_refuse(bed.gate, &server, &why);
	server.fd = -1;
	why.text[0] = '\0';
	assert_int_equal(client_receive(&bed, &client, &message, &why), 0); // the CHALLENGE
	assert_int_equal(client_receive(&bed, &client, &message, &why), -EREMOTEIO);
	assert_non_null(strstr(why.text, "no room for this plan"));
	channel_close(&client);
	assert_served(&bed);
	bed_end(&bed);
}

static void a_full_gate_makes_room_for_those_who_wait(void **state) {
	static struct channel many[GATE_STRANGERS_MAX];
	struct bed bed;

	(void)state;
	bed_begin(&bed, false);
	for (uint32_t n = 0; n < GATE_STRANGERS_MAX; n++)
		bed_connect(&bed, &many[n]);
	assert_served(&bed);
	for (uint32_t n = 0; n < GATE_STRANGERS_MAX; n++)
		channel_close(&many[n]);
	bed_end(&bed);
}

UNIT_GROUP(lab_gate) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silent_connections_delay_nobody),
		cmocka_unit_test(strangers_are_told_why_and_the_gate_waits_on),
		cmocka_unit_test(bytes_of_another_protocol_and_version_are_refused),
		cmocka_unit_test(another_token_and_another_mark_are_refused),
		cmocka_unit_test(an_open_gate_lets_a_client_without_token_speak),
		cmocka_unit_test(a_full_gate_makes_room_for_those_who_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
