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

enum guest_step {
	GUEST_NONE,
	GUEST_KNOCKS, // its KNOCK is due
	GUEST_PROVES, // its PROOF is due
	GUEST_SPEAKS, // proven; its first message is due
	GUEST_LEAVES, // refused; what it sends is dropped until it closes
};

struct guest {
	enum guest_step step;
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
	uint32_t unsaid; // refused since the last line
	uint32_t count;
	struct guest guests[GATE_GUESTS_MAX];
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

static void guest_remove(struct gate *gate, struct guest *guest) {
	if (guest->step == GUEST_NONE)
		return;
	channel_close(&guest->channel);
	guest->step = GUEST_NONE;
	gate->count--;
	gate->exhausted = false;
}

void gate_destroy(struct gate *gate) {
	if (gate == NULL)
		return;
	for (uint32_t n = 0; n < GATE_GUESTS_MAX; n++)
		guest_remove(gate, &gate->guests[n]);
	free(gate);
}

static void refusal_report(struct gate *gate, const struct channel *channel, const char *text) {
	uint64_t now_ns = clock_monotonic_ns();
	char address[SOCK_ADDR_TEXT_BYTES], others[64] = "";

	if (gate->quiet)
		return;
	if (gate->said_ns != 0 && now_ns - gate->said_ns < SAID_NS) {
		gate->unsaid++;
		return;
	}
	if (gate->unsaid > 0)
		snprintf(others, sizeof(others), " (%u more before)", gate->unsaid);
	sock_addr_format(&channel->peer, address);
	fprintf(stderr, "tocsin-perf: %s is not a client, still waiting: %s%s\n", address, text,
		others);
	gate->said_ns = now_ns;
	gate->unsaid = 0;
}

// Report the failure of a guest, send the reason to the guest, and let the guest read it.
static void guest_refuse(struct gate *gate, struct guest *guest, const struct lab_why *why) {
	refusal_report(gate, &guest->channel, why->text);
	channel_send_farewell(&guest->channel, why);
	guest->step = GUEST_LEAVES;
	guest->dropped_bytes = 0;
	guest->until_ns = clock_monotonic_ns() + LEAVE_NS;
}

static void guest_next_step(struct guest *guest, enum guest_step step) {
	guest->step = step;
	guest->until_ns = clock_monotonic_ns() + STEP_NS;
}

static int guest_challenge(
	struct gate *gate,
	struct guest *guest,
	const struct channel_message *knock,
	struct lab_why *why
) {
	uint8_t buffer[PROOF_MESSAGE_BYTES];
	enum proof_answer answer;
	struct wire_writer writer;
	int err;

	wire_writer_init(&writer, buffer, sizeof(buffer));
	err = proof_challenge(&guest->proof, gate->secrets, knock, &writer, &answer);
	if (err != 0)
		return lab_fail(why, err, "the other end does not begin with a proof");
	err = channel_send_written(&guest->channel, CHANNEL_CHALLENGE, buffer, &writer, why);
	if (err == 0 && answer == PROOF_ANSWER_UNKNOWN)
		err = lab_fail(
			why, -EACCES, "the other end does not have the token of this server"
		);
	if (err == 0)
		guest_next_step(guest, answer == PROOF_ANSWER_OPEN ? GUEST_SPEAKS : GUEST_PROVES);
	return err;
}

static int
guest_check(struct guest *guest, const struct channel_message *message, struct lab_why *why) {
	uint8_t mark[PROOF_MARK_BYTES];
	int err;

	if (!proof_mark_is_valid(&guest->proof, PROOF_CLIENT, message))
		return lab_fail(why, -EACCES, "the other end does not prove the token");
	proof_make_mark(&guest->proof, PROOF_SERVER, mark);
	err = channel_send(&guest->channel, CHANNEL_PROVEN, mark, sizeof(mark), why);
	if (err == 0)
		guest_next_step(guest, GUEST_SPEAKS);
	return err;
}

// Drop what a refused guest sends, up to a limit.
static void guest_drop_bytes(struct gate *gate, struct guest *guest) {
	ssize_t taken = stream_receive(
		guest->channel.fd, guest->channel.buffer, sizeof(guest->channel.buffer)
	);

	if (taken == -EAGAIN)
		return;
	if (taken > 0)
		guest->dropped_bytes += (size_t)taken;
	if (taken <= 0 || guest->dropped_bytes > LEAVE_BYTES)
		guest_remove(gate, guest);
}

// Receive what a guest sent. Returns true when its first message after the proof is complete.
static bool guest_receive(struct gate *gate, struct guest *guest, struct channel_message *message) {
	bool speaks = guest->step == GUEST_SPEAKS;
	struct lab_why why = {.text = ""};
	int err;

	if (guest->step == GUEST_LEAVES) {
		guest_drop_bytes(gate, guest);
		return false;
	}
	err = channel_receive_some(
		&guest->channel, &guest->partial,
		speaks ? GATE_MESSAGE_BYTES_MAX : PROOF_MESSAGE_BYTES, message, &why
	);
	if (err == -EAGAIN)
		return false;
	if (err == 0 && speaks)
		return true;
	if (err == 0)
		err = guest->step == GUEST_KNOCKS ? guest_challenge(gate, guest, message, &why)
						  : guest_check(guest, message, &why);
	if (err != 0)
		guest_refuse(gate, guest, &why);
	return false;
}

// Accept the clients that wait, as far as there is room. Returns 0, or -errno if no client can be
// accepted and none is there whose end would make room.
static int guests_accept(struct gate *gate) {
	for (uint32_t n = 0; n < GATE_GUESTS_MAX; n++) {
		struct guest *guest = &gate->guests[n];
		int err;

		if (guest->step != GUEST_NONE)
			continue;
		err = channel_accept(gate->listener, &guest->channel);
		if (err == -EAGAIN)
			return 0;
		if (err != 0) {
			gate->exhausted = true;
			return gate->count > 0 ? 0 : err;
		}
		guest->channel.signal_fd = -1;
		guest->partial.used = 0;
		memset(&guest->proof, 0, sizeof(guest->proof));
		guest->began_ns = clock_monotonic_ns();
		guest_next_step(guest, GUEST_KNOCKS);
		gate->count++;
	}
	return 0;
}

static bool gate_is_full(const struct gate *gate) {
	return gate->count == GATE_GUESTS_MAX || gate->exhausted;
}

// Return the guest that has been there for longest, or NULL.
static struct guest *guest_find_oldest(struct gate *gate) {
	struct guest *oldest = NULL;

	for (uint32_t n = 0; n < GATE_GUESTS_MAX; n++) {
		struct guest *guest = &gate->guests[n];

		if (guest->step != GUEST_NONE &&
		    (oldest == NULL || guest->began_ns < oldest->began_ns))
			oldest = guest;
	}
	return oldest;
}

// Return when the next limit of a guest ends.
static struct deadline guests_next_limit(struct gate *gate) {
	const struct guest *oldest = guest_find_oldest(gate);
	struct deadline next = deadline_never();

	for (uint32_t n = 0; n < GATE_GUESTS_MAX; n++) {
		const struct guest *guest = &gate->guests[n];

		if (guest->step != GUEST_NONE)
			next = deadline_earliest(next, (struct deadline){guest->until_ns});
	}
	if (gate_is_full(gate) && oldest != NULL)
		next = deadline_earliest(next, (struct deadline){oldest->began_ns + FULL_NS});
	return next;
}

// Refuse guests that were silent for too long. If the gate is full, remove a guest that has been
// there for a second.
static void guests_expire(struct gate *gate) {
	const struct lab_why silent = {.text = "the other end does not answer"};
	uint64_t now_ns = clock_monotonic_ns();
	struct guest *oldest;

	for (uint32_t n = 0; n < GATE_GUESTS_MAX; n++) {
		struct guest *guest = &gate->guests[n];

		if (guest->step == GUEST_NONE || now_ns < guest->until_ns)
			continue;
		if (guest->step == GUEST_LEAVES)
			guest_remove(gate, guest);
		else
			guest_refuse(gate, guest, &silent);
	}
	oldest = guest_find_oldest(gate);
	if (!gate_is_full(gate) || oldest == NULL || now_ns - oldest->began_ns < FULL_NS)
		return;
	refusal_report(gate, &oldest->channel, "the other end was slow while others waited");
	guest_remove(gate, oldest);
}

// Hand out the channel of a guest with its first message.
static void guest_hand_out(
	struct gate *gate,
	struct guest *guest,
	struct channel_message *message,
	struct channel *ret_channel
) {
	*ret_channel = guest->channel;
	message->bytes = ret_channel->buffer;
	guest->channel.fd = -1;
	guest_remove(gate, guest);
}

// Wait for any descriptor of the gate. Returns 0, -EINTR or the error of poll().
static int gate_poll(
	struct gate *gate,
	int signal_fd,
	struct deadline deadline,
	bool readable[static GATE_GUESTS_MAX]
) {
	struct deadline soon = deadline_earliest(deadline, guests_next_limit(gate));
	struct pollfd fds[GATE_GUESTS_MAX + 2];
	int count;

	for (uint32_t n = 0; n < GATE_GUESTS_MAX; n++) {
		const struct guest *guest = &gate->guests[n];
		int fd = guest->step != GUEST_NONE ? guest->channel.fd : -1;

		fds[n] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	fds[GATE_GUESTS_MAX] = (struct pollfd
	){.fd = gate_is_full(gate) ? -1 : gate->listener->fd, .events = POLLIN};
	fds[GATE_GUESTS_MAX + 1] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
	count =
		poll(fds, GATE_GUESTS_MAX + 2,
		     deadline_poll_timeout_ms(soon, clock_monotonic_ns()));
	if (count < 0 && errno != EINTR)
		return neg_errno();
	if (count > 0 && fds[GATE_GUESTS_MAX + 1].revents != 0)
		return -EINTR;
	for (uint32_t n = 0; n < GATE_GUESTS_MAX; n++)
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
		bool readable[GATE_GUESTS_MAX];
		int err = guests_accept(gate);

		if (err == 0)
			err = gate_poll(gate, signal_fd, deadline, readable);
		if (err == -EINTR)
			return lab_fail(why, err, "interrupted before any client came");
		if (err != 0)
			return lab_fail(
				why, err, "cannot accept a client: %s", strerrordesc_np(-err)
			);
		for (uint32_t n = 0; n < GATE_GUESTS_MAX; n++) {
			struct guest *guest = &gate->guests[n];

			if (!readable[n] || !guest_receive(gate, guest, ret_message))
				continue;
			guest_hand_out(gate, guest, ret_message, ret_channel);
			ret_channel->signal_fd = signal_fd;
			return 0;
		}
		// Limits are checked last. So a server that was stopped first reads what has
		// arrived.
		guests_expire(gate);
		if (deadline_expired(deadline, clock_monotonic_ns()))
			return lab_fail(why, -ETIMEDOUT, "no client came in time");
	}
}

void gate_refuse(struct gate *gate, struct channel *channel, const struct lab_why *why) {
	for (uint32_t n = 0; n < GATE_GUESTS_MAX; n++) {
		struct guest *guest = &gate->guests[n];

		if (guest->step != GUEST_NONE)
			continue;
		guest->channel = *channel;
		guest->began_ns = clock_monotonic_ns();
		gate->count++;
		guest_refuse(gate, guest, why);
		return;
	}
	// The place of the channel was taken meanwhile.
	refusal_report(gate, channel, why->text);
	channel_send_farewell(channel, why);
	channel_close(channel);
}
