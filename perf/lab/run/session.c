// SPDX-License-Identifier: BSD-3-Clause
// Parts of a session that are the same at both ends.
#include "run/session.h"

#include <lib/clock.h>

#include <errno.h>
#include <string.h>

#define ANSWER_NS UINT64_C(20000000000) // opening a device may take long

struct deadline session_answer_deadline(void) {
	return deadline_after(clock_monotonic_ns(), ANSWER_NS);
}

int session_send_hello(struct channel *channel, const struct plan *plan, struct lab_why *why) {
	uint8_t buffer[CHANNEL_BYTES_MAX];
	struct wire_writer writer;

	wire_writer_init(&writer, buffer, sizeof(buffer));
	wire_put_string(&writer, TOCSIN_VERSION, strlen(TOCSIN_VERSION));
	plan_encode(plan, &writer);
	return channel_send_written(channel, CHANNEL_HELLO, buffer, &writer, why);
}

// Different releases are rejected, because they may measure differently.
int session_read_hello(
	const struct channel_message *message, struct lab_hello *ret_hello, struct lab_why *why
) {
	struct wire_reader reader;

	if (message->kind != CHANNEL_HELLO)
		return lab_fail(
			why, -EBADMSG, "the other end sent a message of kind %u instead of %u",
			message->kind, CHANNEL_HELLO
		);
	wire_reader_init(&reader, message->bytes, message->size);
	wire_get_string(&reader, ret_hello->version, sizeof(ret_hello->version));
	plan_decode(&reader, &ret_hello->plan);
	if (wire_reader_finish(&reader) != 0)
		return lab_fail(why, -EBADMSG, "the other end's plan is malformed");
	if (strcmp(ret_hello->version, TOCSIN_VERSION) != 0)
		return lab_fail(
			why, -EPROTO,
			"the other end is tocsin-perf %s, this one is %s: use one "
			"release at both ends",
			ret_hello->version, TOCSIN_VERSION
		);
	return plan_check(&ret_hello->plan, why);
}

static int send_endpoint(
	struct channel *channel,
	const struct lab_end_info *about,
	const struct lab_environment *environment,
	struct lab_why *why
) {
	uint8_t buffer[CHANNEL_BYTES_MAX];
	struct wire_writer writer;

	wire_writer_init(&writer, buffer, sizeof(buffer));
	lab_end_info_encode(about, &writer);
	environment_encode(environment, &writer);
	return channel_send_written(channel, CHANNEL_ENDPOINT, buffer, &writer, why);
}

static int receive_endpoint(
	struct channel *channel,
	struct lab_end_info *ret_about,
	struct lab_environment *ret_environment,
	struct lab_why *why
) {
	struct channel_message message;
	struct wire_reader reader;
	int err =
		channel_expect(channel, CHANNEL_ENDPOINT, session_answer_deadline(), &message, why);

	if (err != 0)
		return err;
	wire_reader_init(&reader, message.bytes, message.size);
	lab_end_info_decode(&reader, ret_about);
	environment_decode(&reader, ret_environment);
	if (wire_reader_finish(&reader) != 0)
		return lab_fail(why, -EBADMSG, "the other end's endpoint is malformed");
	return 0;
}

int session_connect(
	const struct lab_session *session, struct lab_party *party, struct lab_why *why
) {
	const struct lab_end_config config = {
		.device = session->device,
		.settings = session->settings,
		.channel = &party->channel,
		.plan = &party->plan,
		.serves = party->serves,
		.cores = session->cores,
		.cores_given = session->cores_given,
		.priority = session->priority,
		.memory = session->memory,
		.quick = session->quick,
		.machine = session->machine,
	};
	struct lab_end_info ours, theirs;
	struct channel_message message;
	int err = lab_end_open(&config, why, &ours, &party->end);

	if (err != 0)
		return err;
	environment_read(lab_end_facts(party->end), &party->environment[0]);
	err = send_endpoint(&party->channel, &ours, &party->environment[0], why);
	if (err == 0)
		err = receive_endpoint(&party->channel, &theirs, &party->environment[1], why);
	if (err == 0)
		err = lab_end_connect(party->end, &theirs, why);

	// Wait until both pairs are connected: a message to a pair that is not ready would be lost.
	if (err == 0)
		err = channel_send(&party->channel, CHANNEL_CONNECTED, NULL, 0, why);
	if (err == 0)
		err = channel_expect(
			&party->channel, CHANNEL_CONNECTED, session_answer_deadline(), &message, why
		);
	return err;
}

void session_end(struct lab_party *party, const struct lab_why *why) {
	if (why->text[0] != '\0')
		channel_send_error(&party->channel, why);
	lab_end_close(party->end);
	channel_close(&party->channel);
}

int session_fail_player(const struct player *player, struct lab_why *why) {
	char cause[256] = "";

	if (!player->failed)
		return 0;
	op_cause_format(&player->cause, cause, sizeof(cause));
	return lab_fail(
		why, -EIO, "an operation ended as %s: %s", op_outcome_name(player->outcome), cause
	);
}
