// SPDX-License-Identifier: BSD-3-Clause
// Control connection of the two ends: framed messages over TCP.
//
//	magic (u32), protocol version (u16), kind (u16), size of the payload (u32), payload
//
// The frame and CHANNEL_ERROR (a text) are the same in all versions. So ends of different versions
// can still report the mismatch. All input is untrusted: lengths are capped. A malformed frame ends
// the connection with an error that describes it.
//
// Use a channel from one thread. Calls with a deadline wait no longer than the deadline.
#pragma once

#include "run/why.h"

#include <lib/deadline.h>
#include <lib/sockaddr.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_writer;

#define CHANNEL_MAGIC 0x46525054u // "TPRF"
#define CHANNEL_VERSION 5
#define CHANNEL_BYTES_MAX 8192
#define CHANNEL_PORT 18520

enum channel_kind {
	CHANNEL_ERROR,	    // both ways: a text; ends the session
	CHANNEL_HELLO,	    // both ways: program version; from the client also the plan
	CHANNEL_ENDPOINT,   // both ways: addresses of the pairs and their memory
	CHANNEL_CONNECTED,  // both ways: the pairs are connected
	CHANNEL_STEP,	    // from the client: index of the next size
	CHANNEL_STEP_READY, // from the server: ready to answer
	CHANNEL_MARK,	    // from the client: recorded samples begin now
	CHANNEL_STEP_END,   // from the client: the step is finished
	CHANNEL_STEP_NOISE, // from the server: noise during the step
	CHANNEL_BYE,	    // from the client
	CHANNEL_MARKED,	    // from the server, with --device-time: its own times were reset, too
	// Messages of a mesh; see <mesh_wire.h>.
	CHANNEL_MESH_JOIN,
	CHANNEL_MESH_SERVE,
	CHANNEL_MESH_PLAY,
	CHANNEL_MESH_LISTENS,
	CHANNEL_MESH_RESULT,
	CHANNEL_MESH_SERVED,
	CHANNEL_MESH_FAILED,
	CHANNEL_MESH_STOP,
	CHANNEL_MESH_END,
	// The proof that precedes all other messages; see <proof.h>.
	CHANNEL_KNOCK,
	CHANNEL_CHALLENGE,
	CHANNEL_PROOF,
	CHANNEL_PROVEN,
	// More messages of a mesh. Numbers stay the same, so other releases are refused clearly.
	CHANNEL_MESH_READY,
	CHANNEL_MESH_GO,
	CHANNEL_KIND_COUNT,
};

struct channel {
	int fd;	       // -1: none
	int signal_fd; // readable when the user interrupts; -1: never
	struct sock_addr local, peer;
	uint8_t buffer[CHANNEL_BYTES_MAX];
};

struct channel_message {
	enum channel_kind kind;
	const uint8_t *bytes; // points into the channel's buffer; valid until the next call
	size_t size;
};

// A message of which only a part may have arrived. Zeroed: none of it.
struct channel_partial {
	uint8_t header[12];
	size_t used; // bytes of header and payload
};

struct channel_listener {
	int fd; // -1: none
	struct sock_addr address;
};

// Take the address and its port. SOCK_ADDR_NONE: all addresses, IPv6 and IPv4; port 0: a free one.
// Nobody can connect yet. Returns 0, or -errno with the reason in `why`.
int channel_bind(
	const struct sock_addr *address, struct channel_listener *ret_listener, struct lab_why *why
);
// Let clients connect. Returns 0, or -errno with the reason in `why`; the caller closes the
// listener in any case.
int channel_listen(const struct channel_listener *listener, struct lab_why *why);
void channel_listener_close(struct channel_listener *listener);
// Accept a client that waits. A client that has already reset its connection is passed over.
// Returns 0, -EAGAIN (no client waits), or another -errno.
int channel_accept(const struct channel_listener *listener, struct channel *ret_channel);
// Connect to a server. Returns 0, -EINTR if signal_fd became readable, or another -errno, with the
// reason in `why`.
int channel_connect(
	const struct sock_addr *address,
	int signal_fd,
	struct deadline deadline,
	struct channel *ret_channel,
	struct lab_why *why
);
void channel_close(struct channel *channel);
// Sleep between two attempts. Returns 0, or -EINTR if signal_fd is readable.
int channel_pause(int signal_fd, int pause_ms);

// Return a loopback address of this machine: 127.0.0.1, or ::1 if it has only IPv6.
struct sock_addr channel_loopback(void);
// Return true if the addresses show that both ends run on one machine.
bool channel_is_local(const struct channel *channel);

int channel_send(
	struct channel *channel,
	enum channel_kind kind,
	const void *bytes,
	size_t size,
	struct lab_why *why
);
// Finish the writer, and send what it has written to the buffer. Returns 0, or -errno with the
// reason in `why`.
int channel_send_written(
	struct channel *channel,
	enum channel_kind kind,
	const uint8_t *buffer,
	const struct wire_writer *writer,
	struct lab_why *why
);
// Send the reason without waiting. The caller receives until the other end closes, since closing
// earlier may destroy the message.
void channel_send_farewell(struct channel *channel, const struct lab_why *why);
// Send the reason as the last message. Then wait up to a second until the other end closes.
void channel_send_error(struct channel *channel, const struct lab_why *why);

// Receive the next message. Returns 0, -ETIMEDOUT, -EINTR or:
//	-EPROTO		another protocol version
//	-ENOMSG		the other end is not tocsin-perf
//	-EBADMSG	malformed frame
//	-EREMOTEIO	error sent by the other end; its text is in `why`
//	-ECONNRESET	closed by the other end
int channel_receive(
	struct channel *channel,
	struct deadline deadline,
	struct channel_message *ret_message,
	struct lab_why *why
);
// Receive what has arrived of the next message, without waiting. A payload above `size_max` is
// -EBADMSG. Returns -EAGAIN until the message is complete, else as channel_receive().
int channel_receive_some(
	struct channel *channel,
	struct channel_partial *partial,
	size_t size_max,
	struct channel_message *ret_message,
	struct lab_why *why
);
// Receive the next message like channel_receive(). Returns -EBADMSG if its kind is not `kind`.
int channel_expect(
	struct channel *channel,
	enum channel_kind kind,
	struct deadline deadline,
	struct channel_message *ret_message,
	struct lab_why *why
);
