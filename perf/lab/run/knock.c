// SPDX-License-Identifier: BSD-3-Clause
// Prove a secret to a server.
#include "run/knock.h"

#include <lib/wire.h>

#include <errno.h>
#include <stdio.h>

// Explain why the server knows none of the secrets, and what the user can do.
static int
fail_unknown(const struct proof_secrets *secrets, const char *server, struct lab_why *why) {
	if (secrets->source[0] != '\0')
		return lab_fail(
			why, -EACCES, "%s has another token than %s", server, secrets->source
		);
	return lab_fail(
		why, -EACCES, "%s asks for its token: pass --token-file or TOCSIN_PERF_TOKEN%s",
		server, secrets->count > 0 ? " (it does not know the key of this cluster)" : ""
	);
}

static int prove_secret(
	struct channel *channel,
	const struct proof *proof,
	const char *server,
	struct deadline deadline,
	struct lab_why *why
) {
	uint8_t mark[PROOF_MARK_BYTES];
	struct channel_message message;
	int err;

	proof_make_mark(proof, PROOF_CLIENT, mark);
	err = channel_send(channel, CHANNEL_PROOF, mark, sizeof(mark), why);
	if (err == 0)
		err = channel_receive(channel, deadline, &message, why);
	if (err == 0 && !proof_mark_is_valid(proof, PROOF_SERVER, &message))
		err = lab_fail(
			why, -EACCES, "%s does not prove that it has the same token or key", server
		);
	return err;
}

int knock_prove(
	struct channel *channel,
	const struct proof_secrets *secrets,
	const char *server,
	struct deadline deadline,
	struct lab_why *why
) {
	uint8_t buffer[PROOF_MESSAGE_BYTES];
	char name[128], address[SOCK_ADDR_TEXT_BYTES];
	struct proof proof = {.secret = NULL};
	struct channel_message message;
	enum proof_answer answer;
	struct wire_writer writer;
	int err;

	sock_addr_format(&channel->peer, address);
	snprintf(name, sizeof(name), "%s %s", server, address);
	wire_writer_init(&writer, buffer, sizeof(buffer));
	proof_knock(&proof, secrets, &writer);
	err = channel_send_written(channel, CHANNEL_KNOCK, buffer, &writer, why);
	if (err == 0)
		err = channel_receive(channel, deadline, &message, why);
	if (err != 0)
		return err;
	if (proof_read_challenge(&proof, secrets, &message, &answer) != 0)
		return lab_fail(why, -EBADMSG, "%s sent a malformed challenge", name);
	switch (answer) {
	case PROOF_ANSWER_PROVE:
		return prove_secret(channel, &proof, name, deadline, why);
	case PROOF_ANSWER_UNKNOWN:
		return fail_unknown(secrets, name, why);
	case PROOF_ANSWER_OPEN:
	case PROOF_ANSWER_COUNT:
		break;
	}
	if (secrets->token_required)
		return lab_fail(
			why, -EACCES,
			"%s runs with --open and proves nothing: remove the token or --key-file "
			"to connect without a proof",
			name
		);
	return 0;
}
