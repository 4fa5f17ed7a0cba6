// SPDX-License-Identifier: BSD-3-Clause
// The gate of a server: accepts connections, lets each prove the secret, and hands out those whose
// first message has arrived.
//
// Handshakes run side by side, so a silent connection delays no other one. Each step has a time
// limit. There is a limit of connections that are not handed out yet. If it is reached, the oldest
// one has a second before a new one takes its place. A connection that fails is told the reason. It
// is counted, and at most once per second a line on standard error says so.
//
// One thread. The listener and the secrets must outlive the gate.
#pragma once

#include "run/channel.h"
#include "run/proof.h"

#define GATE_STRANGERS_MAX 128
#define GATE_MESSAGE_BYTES_MAX 1024 // limit of the first message

struct gate;

// Create a gate. quiet: nothing is printed. Returns 0 or -ENOMEM.
int gate_create(
	const struct channel_listener *listener,
	const struct proof_secrets *secrets,
	bool quiet,
	struct gate **ret_gate
);
// Close all connections that were not handed out. NULL is allowed.
void gate_destroy(struct gate *gate);

// Wait for the first message of a client that has proven the secret. The message is in the
// channel's buffer, and signal_fd also interrupts later waits on the channel. Returns 0, -EINTR if
// signal_fd became readable, -ETIMEDOUT, or another -errno, with the reason in `why`.
int gate_wait(
	struct gate *gate,
	int signal_fd,
	struct deadline deadline,
	struct channel *ret_channel,
	struct channel_message *ret_message,
	struct lab_why *why
);
// Refuse a channel that gate_wait() handed out, as if it had failed before. The gate takes the
// channel.
void gate_refuse(struct gate *gate, struct channel *channel, const struct lab_why *why);
