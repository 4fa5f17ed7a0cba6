// SPDX-License-Identifier: BSD-3-Clause
// The control connection of the two ends: framed messages over TCP.
//
//	magic (u32), version of the protocol (u16), kind (u16), bytes that follow (u32), the bytes
//
// The frame is the same in all versions, and so is CHANNEL_ERROR, a text: so an end of another
// version can still say that it is one. All of it comes from outside: lengths are capped, and a
// stranger's bytes end the connection with what was wrong with them.
//
// One thread. Calls with a deadline wait at most so long.
#pragma once

#include "why.h"

#include <lib/deadline.h>
#include <lib/sockaddr.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHANNEL_MAGIC 0x46525054u // "TPRF"
#define CHANNEL_VERSION 4
#define CHANNEL_BYTES_MAX 8192
#define CHANNEL_PORT 18520

enum channel_kind {
	CHANNEL_ERROR,	    // a text; both ways: it is over
	CHANNEL_HELLO,	    // both ways: the program's version; from the client the plan, too
	CHANNEL_ENDPOINT,   // both ways: what a pair and its memory are reached by
	CHANNEL_CONNECTED,  // both ways: the pair is connected
	CHANNEL_STEP,	    // from the client: which size is next
	CHANNEL_STEP_READY, // from the server: it answers from now on
	CHANNEL_MARK,	    // from the client: what is kept begins now
	CHANNEL_STEP_END,   // from the client: it has what it wanted
	CHANNEL_STEP_NOISE, // from the server: what disturbed it meanwhile
	CHANNEL_BYE,	    // from the client
	CHANNEL_MARKED,	    // from the server, of --device-time: its times begin anew, too
	// Of a mesh: <mesh_wire.h>.
	CHANNEL_MESH_JOIN,
	CHANNEL_MESH_SERVE,
	CHANNEL_MESH_PLAY,
	CHANNEL_MESH_LISTENS,
	CHANNEL_MESH_RESULT,
	CHANNEL_MESH_SERVED,
	CHANNEL_MESH_FAILED,
	CHANNEL_MESH_STOP,
	CHANNEL_MESH_END,
	CHANNEL_KIND_COUNT,
};

struct channel {
	int fd;	       // -1: none
	int signal_fd; // readable when a person wants it to end; -1: never
	struct sock_addr local, peer;
	uint8_t buffer[CHANNEL_BYTES_MAX];
};

struct channel_message {
	enum channel_kind kind;
	const uint8_t *bytes; // in the channel's buffer until the next call
	size_t size;
};

struct channel_listener {
	int fd; // -1: none
	struct sock_addr address;
};

// On the address (SOCK_ADDR_NONE: any, IPv6 and IPv4) and its port, 0: a free one. -errno with the
// reason.
int channel_listen(
	const struct sock_addr *address, struct channel_listener *ret_listener, struct lab_why *why
);
void channel_listener_close(struct channel_listener *listener);
// Waits for whoever comes next. -EINTR: signal_fd became readable, which ends what the channel
// waits for later, too. -ETIMEDOUT. -errno with the reason.
int channel_accept(
	const struct channel_listener *listener,
	int signal_fd,
	struct deadline deadline,
	struct channel *ret_channel,
	struct lab_why *why
);
// The client: -EINTR likewise; -errno with the reason.
int channel_connect(
	const struct sock_addr *address,
	int signal_fd,
	struct deadline deadline,
	struct channel *ret_channel,
	struct lab_why *why
);
void channel_close(struct channel *channel);
// Between two tries. -EINTR: signal_fd is readable.
int channel_pause(int signal_fd, int pause_ms);

// An address of this machine that reaches itself: 127.0.0.1, where it has IPv6 alone ::1.
struct sock_addr channel_loopback(void);
// Whether both ends are of one machine, as far as their addresses tell.
bool channel_is_local(const struct channel *channel);

int channel_send(
	struct channel *channel,
	enum channel_kind kind,
	const void *bytes,
	size_t size,
	struct lab_why *why
);
// Tells the other end why it is over, if it still listens: the last that is said. Waits up to a
// second for the other end to close.
void channel_send_error(struct channel *channel, const struct lab_why *why);

// The next message. -EPROTO (another version), -ENOMSG (not of tocsin-perf), -EBADMSG (no frame of
// ours), -EREMOTEIO (the other end's error, with its text), -ECONNRESET (it went away), -ETIMEDOUT,
// -EINTR.
int channel_receive(
	struct channel *channel,
	struct deadline deadline,
	struct channel_message *ret_message,
	struct lab_why *why
);
// The same, and -EBADMSG if it is of another kind.
int channel_expect(
	struct channel *channel,
	enum channel_kind kind,
	struct deadline deadline,
	struct channel_message *ret_message,
	struct lab_why *why
);
