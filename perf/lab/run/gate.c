// SPDX-License-Identifier: BSD-3-Clause
// Handshakes of a server, side by side.
#include "run/gate.h"

#include <lib/clock.h>
#include <lib/error.h>
#include <lib/stream.h>
#include <lib/wire.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_NS UINT64_C(5000000000)  // timeout of each message of a client
#define LEAVE_NS UINT64_C(1000000000) // timeout for a refused client to close
#define FULL_NS UINT64_C(1000000000)  // minimum stay of a client while others wait
#define SAID_NS UINT64_C(1000000000)  // between two lines
#define LEAVE_BYTES ((size_t)64 * CHANNEL_BYTES_MAX)

enum stranger_step {
	STRANGER_NONE,
	STRANGER_KNOCKS, // its KNOCK is due
	STRANGER_PROVES, // its PROOF is due
	STRANGER_SPEAKS, // proven; its first message is due
	STRANGER_LEAVES, // refused; what it sends is dropped until it closes
};

struct stranger {
	enum stranger_step step;
	struct channel channel;
	struct channel_partial partial;
	struct proof proof;
	uint64_t began_ns, until_ns;
	size_t dropped_bytes;
};

struct gate {
	const struct channel_listener *listener;
	const struct proof_secrets *secrets;
	bool quiet;
	bool exhausted; // no descriptor is left for another client
	uint64_t said_ns;
	uint32_t suppressed; // refused since the last line
	uint32_t count;
	struct stranger strangers[GATE_STRANGERS_MAX];
};

int gate_create(
	const struct channel_listener *listener,
	const struct proof_secrets *secrets,
	bool quiet,
	struct gate **ret_gate
) {
	struct gate *gate = calloc(1, sizeof(*gate));

	if (gate == NULL)
		return -ENOMEM;
	gate->listener = listener;
	gate->secrets = secrets;
	gate->quiet = quiet;
	*ret_gate = gate;
	return 0;
}

static void stranger_remove(struct gate *gate, struct stranger *stranger) {
	if (stranger->step == STRANGER_NONE)
		return;
	channel_close(&stranger->channel);
	stranger->step = STRANGER_NONE;
	gate->count--;
	gate->exhausted = false;
}

void gate_destroy(struct gate *gate) {
	if (gate == NULL)
		return;
	for (uint32_t n = 0; n < GATE_STRANGERS_MAX; n++)
		stranger_remove(gate, &gate->strangers[n]);
	free(gate);
}

static void refusal_report(struct gate *gate, const struct channel *channel, const char *text) {
	uint64_t now_ns = clock_monotonic_ns();
	char address[SOCK_ADDR_TEXT_BYTES], others[64] = "";

	if (gate->quiet)
		return;
	if (gate->said_ns != 0 && now_ns - gate->said_ns < SAID_NS) {
		gate->suppressed++;
		return;
	}
	if (gate->suppressed > 0)
		snprintf(others, sizeof(others), " (%u more before)", gate->suppressed);
	sock_addr_format(&channel->peer, address);
	fprintf(stderr, "tocsin-perf: %s is not a client, still waiting: %s%s\n", address, text,
		others);
	gate->said_ns = now_ns;
	gate->suppressed = 0;
}

// Report the failure of a stranger, send the reason to the stranger, and let the stranger read it.
static void
stranger_refuse(struct gate *gate, struct stranger *stranger, const struct lab_why *why) {
	refusal_report(gate, &stranger->channel, why->text);
	channel_send_farewell(&stranger->channel, why);
	stranger->step = STRANGER_LEAVES;
	stranger->dropped_bytes = 0;
	stranger->until_ns = clock_monotonic_ns() + LEAVE_NS;
}

static void stranger_next_step(struct stranger *stranger, enum stranger_step step) {
	stranger->step = step;
	stranger->until_ns = clock_monotonic_ns() + STEP_NS;
}

static int stranger_challenge(
	struct gate *gate,
	struct stranger *stranger,
	const struct channel_message *knock,
	struct lab_why *why
) {
	uint8_t buffer[PROOF_MESSAGE_BYTES];
	enum proof_answer answer;
	struct wire_writer writer;
	int err;

	wire_writer_init(&writer, buffer, sizeof(buffer));
	err = proof_challenge(&stranger->proof, gate->secrets, knock, &writer, &answer);
	if (err != 0)
		return lab_fail(why, err, "the other end does not begin with a proof");
	err = channel_send_written(&stranger->channel, CHANNEL_CHALLENGE, buffer, &writer, why);
	if (err == 0 && answer == PROOF_ANSWER_UNKNOWN)
		err = lab_fail(
			why, -EACCES, "the other end does not have the token of this server"
		);
	if (err == 0)
		stranger_next_step(
			stranger, answer == PROOF_ANSWER_OPEN ? STRANGER_SPEAKS : STRANGER_PROVES
		);
	return err;
}

static int stranger_check(
	struct stranger *stranger, const struct channel_message *message, struct lab_why *why
) {
	uint8_t mark[PROOF_MARK_BYTES];
	int err;

	if (!proof_mark_is_valid(&stranger->proof, PROOF_CLIENT, message))
		return lab_fail(why, -EACCES, "the other end does not prove the token");
	proof_make_mark(&stranger->proof, PROOF_SERVER, mark);
	err = channel_send(&stranger->channel, CHANNEL_PROVEN, mark, sizeof(mark), why);
	if (err == 0)
		stranger_next_step(stranger, STRANGER_SPEAKS);
	return err;
}

// Drop what a refused stranger sends, up to a limit.
static void stranger_drop_bytes(struct gate *gate, struct stranger *stranger) {
	ssize_t taken = stream_receive(
		stranger->channel.fd, stranger->channel.buffer, sizeof(stranger->channel.buffer)
	);

	if (taken == -EAGAIN)
		return;
	if (taken > 0)
		stranger->dropped_bytes += (size_t)taken;
	if (taken <= 0 || stranger->dropped_bytes > LEAVE_BYTES)
		stranger_remove(gate, stranger);
}

// Receive what a stranger sent. Returns true when its first message after the proof is complete.
static bool
stranger_receive(struct gate *gate, struct stranger *stranger, struct channel_message *message) {
	bool speaks = stranger->step == STRANGER_SPEAKS;
	struct lab_why why = {.text = ""};
	int err;

	if (stranger->step == STRANGER_LEAVES) {
		stranger_drop_bytes(gate, stranger);
		return false;
	}
	err = channel_receive_some(
		&stranger->channel, &stranger->partial,
		speaks ? GATE_MESSAGE_BYTES_MAX : PROOF_MESSAGE_BYTES, message, &why
	);
	if (err == -EAGAIN)
		return false;
	if (err == 0 && speaks)
		return true;
	if (err == 0)
		err = stranger->step == STRANGER_KNOCKS
			      ? stranger_challenge(gate, stranger, message, &why)
			      : stranger_check(stranger, message, &why);
	if (err != 0)
		stranger_refuse(gate, stranger, &why);
	return false;
}

// Accept the clients that wait, as far as there is room. Returns 0, or -errno if no client can be
// accepted and none is there whose end would make room.
static int strangers_accept(struct gate *gate) {
	for (uint32_t n = 0; n < GATE_STRANGERS_MAX; n++) {
		struct stranger *stranger = &gate->strangers[n];
		int err;

		if (stranger->step != STRANGER_NONE)
			continue;
		err = channel_accept(gate->listener, &stranger->channel);
		if (err == -EAGAIN)
			return 0;
		if (err != 0) {
			gate->exhausted = true;
			return gate->count > 0 ? 0 : err;
		}
		stranger->channel.signal_fd = -1;
		stranger->partial.used = 0;
		memset(&stranger->proof, 0, sizeof(stranger->proof));
		stranger->began_ns = clock_monotonic_ns();
		stranger_next_step(stranger, STRANGER_KNOCKS);
		gate->count++;
	}
	return 0;
}

static bool gate_is_full(const struct gate *gate) {
	return gate->count == GATE_STRANGERS_MAX || gate->exhausted;
}

// Return the stranger that has been there for longest, or NULL.
static struct stranger *stranger_find_oldest(struct gate *gate) {
	struct stranger *oldest = NULL;

	for (uint32_t n = 0; n < GATE_STRANGERS_MAX; n++) {
		struct stranger *stranger = &gate->strangers[n];

		if (stranger->step != STRANGER_NONE &&
		    (oldest == NULL || stranger->began_ns < oldest->began_ns))
			oldest = stranger;
	}
	return oldest;
}

// Return when the next limit of a stranger ends.
static struct deadline strangers_next_limit(struct gate *gate) {
	const struct stranger *oldest = stranger_find_oldest(gate);
	struct deadline next = deadline_never();

	for (uint32_t n = 0; n < GATE_STRANGERS_MAX; n++) {
		const struct stranger *stranger = &gate->strangers[n];

		if (stranger->step != STRANGER_NONE)
			next = deadline_earliest(next, (struct deadline){stranger->until_ns});
	}
	if (gate_is_full(gate) && oldest != NULL)
		next = deadline_earliest(next, (struct deadline){oldest->began_ns + FULL_NS});
	return next;
}

// Refuse strangers that were silent for too long. If the gate is full, remove a stranger that has
// been there for a second.
static void strangers_expire(struct gate *gate) {
	const struct lab_why silent = {.text = "the other end does not answer"};
	uint64_t now_ns = clock_monotonic_ns();
	struct stranger *oldest;

	for (uint32_t n = 0; n < GATE_STRANGERS_MAX; n++) {
		struct stranger *stranger = &gate->strangers[n];

		if (stranger->step == STRANGER_NONE || now_ns < stranger->until_ns)
			continue;
		if (stranger->step == STRANGER_LEAVES)
			stranger_remove(gate, stranger);
		else
			stranger_refuse(gate, stranger, &silent);
	}
	oldest = stranger_find_oldest(gate);
	if (!gate_is_full(gate) || oldest == NULL || now_ns - oldest->began_ns < FULL_NS)
		return;
	refusal_report(gate, &oldest->channel, "the other end was slow while others waited");
	stranger_remove(gate, oldest);
}

// Hand out the channel of a stranger with its first message.
static void stranger_hand_out(
	struct gate *gate,
	struct stranger *stranger,
	struct channel_message *message,
	struct channel *ret_channel
) {
	*ret_channel = stranger->channel;
	message->bytes = ret_channel->buffer;
	stranger->channel.fd = -1;
	stranger_remove(gate, stranger);
}

// Wait for any descriptor of the gate. Returns 0, -EINTR or the error of poll().
static int gate_poll(
	struct gate *gate,
	int signal_fd,
	struct deadline deadline,
	bool readable[static GATE_STRANGERS_MAX]
) {
	struct deadline soon = deadline_earliest(deadline, strangers_next_limit(gate));
	struct pollfd fds[GATE_STRANGERS_MAX + 2];
	int count;

	for (uint32_t n = 0; n < GATE_STRANGERS_MAX; n++) {
		const struct stranger *stranger = &gate->strangers[n];
		int fd = stranger->step != STRANGER_NONE ? stranger->channel.fd : -1;

		fds[n] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	fds[GATE_STRANGERS_MAX] = (struct pollfd
	){.fd = gate_is_full(gate) ? -1 : gate->listener->fd, .events = POLLIN};
	fds[GATE_STRANGERS_MAX + 1] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
	count =
		poll(fds, GATE_STRANGERS_MAX + 2,
		     deadline_poll_timeout_ms(soon, clock_monotonic_ns()));
	if (count < 0 && errno != EINTR)
		return neg_errno();
	if (count > 0 && fds[GATE_STRANGERS_MAX + 1].revents != 0)
		return -EINTR;
	for (uint32_t n = 0; n < GATE_STRANGERS_MAX; n++)
		readable[n] = count > 0 && fds[n].revents != 0;
	return 0;
}

int gate_wait(
	struct gate *gate,
	int signal_fd,
	struct deadline deadline,
	struct channel *ret_channel,
	struct channel_message *ret_message,
	struct lab_why *why
) {
	for (;;) {
		bool readable[GATE_STRANGERS_MAX];
		int err = strangers_accept(gate);

		if (err == 0)
			err = gate_poll(gate, signal_fd, deadline, readable);
		if (err == -EINTR)
			return lab_fail(why, err, "interrupted before any client came");
		if (err != 0)
			return lab_fail(
				why, err, "cannot accept a client: %s", strerrordesc_np(-err)
			);
		for (uint32_t n = 0; n < GATE_STRANGERS_MAX; n++) {
			struct stranger *stranger = &gate->strangers[n];

			if (!readable[n] || !stranger_receive(gate, stranger, ret_message))
				continue;
			stranger_hand_out(gate, stranger, ret_message, ret_channel);
			ret_channel->signal_fd = signal_fd;
			return 0;
		}
		// Limits are checked last. So a server that was stopped first reads what has
		// arrived.
		strangers_expire(gate);
		if (deadline_expired(deadline, clock_monotonic_ns()))
			return lab_fail(why, -ETIMEDOUT, "no client came in time");
	}
}

void gate_refuse(struct gate *gate, struct channel *channel, const struct lab_why *why) {
	for (uint32_t n = 0; n < GATE_STRANGERS_MAX; n++) {
		struct stranger *stranger = &gate->strangers[n];

		if (stranger->step != STRANGER_NONE)
			continue;
		stranger->channel = *channel;
		stranger->began_ns = clock_monotonic_ns();
		gate->count++;
		stranger_refuse(gate, stranger, why);
		return;
	}
	// The place of the channel was taken meanwhile.
	refusal_report(gate, channel, why->text);
	channel_send_farewell(channel, why);
	channel_close(channel);
}
