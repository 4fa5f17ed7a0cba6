// SPDX-License-Identifier: BSD-3-Clause
// One TCP connection of the transport, from connect or accept to its end; private to control/net.
//
//	connecting -> proving -> open -> closing
//	              ^
//	accepted -----'
//
// Channels live in a table of fixed size. One ends at once wherever it is ended, also from inside
// what it called: whoever calls the ops compares `life` before and after, and touches nothing if
// it has changed. The table itself stays until the outermost handler returns (transport_leave()).
//
// An accepted channel that has not proven the key is a stranger: one entry of the table and a few
// hundred bytes in it are all it has. Buffers come with the proof.
#pragma once

#include "net/admission.h"
#include "net/seal.h"

#include <control/loop.h>
#include <control/transport.h>

#include <sys/queue.h>

#define CHANNEL_LENGTH_BYTES 4
#define CHANNEL_SEALED_MAX (RAS_FRAME_MAX + SEAL_OVERHEAD)
#define CHANNEL_RECEIVE_BYTES (CHANNEL_LENGTH_BYTES + CHANNEL_SEALED_MAX)

enum channel_state {
	CHANNEL_FREE,
	CHANNEL_CONNECTING,
	CHANNEL_PROVING,
	CHANNEL_OPEN,
	CHANNEL_CLOSING, // softly: its handle is forgotten, what was queued is sent
	CHANNEL_FAILED,	 // only its handle is left, until the ops have been told
};

struct channel_buffers {
	uint8_t received[CHANNEL_RECEIVE_BYTES];
	uint8_t queue[TRANSPORT_QUEUE_BYTES_MAX];
};

struct channel {
	struct transport *transport;
	struct loop_source source;
	struct loop_timer timer; // the deadline of the state; while open: of what is queued
	TAILQ_ENTRY(channel) in_list;
	TAILQ_ENTRY(channel) in_flush;
	LIST_ENTRY(channel) in_bucket;
	struct channel_list *list;
	uint32_t life; // changes when it ends
	enum channel_state state;
	struct sock_addr peer;
	uint32_t conn;
	enum ras_cause cause; // while failed
	uint32_t round;	      // of the transport, when it was put into flush or failed
	bool has_conn : 1;
	bool outgoing : 1;
	bool will_flush : 1;
	bool owes_writable : 1; // a send was turned away
	bool heard : 1;		// a byte came
	bool read_ended : 1;	// closing: the other side has said all
	bool write_ended : 1;	// closing: so have we

	struct seal seal;
	struct seal_reply message; // of the proof, on its way out or in
	size_t message_done;
	bool message_out;

	struct channel_buffers *buffers; // from the proof on
	size_t received;		 // bytes in buffers->received
	size_t queue_head, queue_tail;
	uint64_t queued_total, sent_total; // bytes, ever
	uint64_t mark; // what had been queued when the timer was set has to be sent by then
	int send_error;
};

TAILQ_HEAD(channel_list, channel);
LIST_HEAD(channel_bucket, channel);

// Of whose proofs the log has spoken, so that it does not every second.
#define PROOF_SAID_MAX 16

struct proof_said {
	struct sock_addr peer; // the port is that of who was connected to, else 0
	uint64_t again_ns;
	uint64_t unsaid;
};

// A kernel that is asked at a port where nobody listens.
struct closed_port {
	struct transport *transport; // NULL: free
	struct sock_addr host;	     // as it was asked for, with the port of the agent there
	struct loop_source source;
	struct loop_timer deadline;
};
#define CLOSED_PORTS 32 // under way; each ends after connect_ns

struct listener {
	struct loop_source *source;   // the place in use; NULL: none
	struct loop_source places[2]; // the next one is added before the one of before is closed
	struct loop_timer pause;
	struct sock_addr address;
	int reserve_fd; // given up to accept, and close, one that there is no descriptor for
};

struct transport {
	struct loop *loop;
	struct transport_config config; // its strings are ours
	struct transport_ops ops;
	void *ops_ctx;
	uint32_t depth; // handlers on the stack
	bool destroyed; // from inside one of them
	bool unbound_said;

	struct listener listener;
	int owners_fd; // to ask the kernel who listens on this machine; -1: it does not tell
	struct admission *admission;

	struct channel *channels;
	uint32_t channel_count; // of these, how many were ever used
	uint32_t channel_max;
	struct channel_list free;
	struct channel_list strangers; // the oldest first
	struct channel_list live;
	struct channel_list closing; // the oldest first
	struct channel_list failed;
	struct channel_list flush;
	struct channel_bucket *buckets; // by handle
	uint32_t bucket_mask;

	// Each run of a job takes what was there when it began, and no more.
	uint32_t round;
	struct loop_job flush_job;
	struct loop_job failed_job;
	struct loop_timer revoke_timer;
	struct closed_port closed_ports[CLOSED_PORTS];
	uint8_t scratch[RAS_FRAME_MAX]; // a frame that was opened, or bytes that nobody reads
	struct proof_said said[PROOF_SAID_MAX];
	struct transport_trouble trouble;
	struct transport_counters counters;
};

// Around everything that the loop calls here and that may call the ops.
void transport_enter(struct transport *transport);
void transport_leave(struct transport *transport);

struct channel *channel_take(struct transport *transport, const struct sock_addr *peer);
void channel_end(struct channel *channel);
// The same, but the other side sees a reset, and the kernel keeps nothing either.
void channel_abort(struct channel *channel);
void channel_enter_state(struct channel *channel, enum channel_state state);
void channel_own_handle(struct channel *channel, uint32_t conn);
void channel_forget_handle(struct channel *channel);
struct channel *channel_find(const struct transport *transport, uint32_t conn);

// Gives the descriptor to the channel, and adds it to the loop. 0 or -errno: it was closed.
int channel_attach(struct channel *channel, int fd, enum loop_rank rank, uint32_t events);
// 0 or -ENOMEM.
int channel_set_deadline(struct channel *channel, uint64_t after_ns);

// Ends it and tells the ops, if they know it. For handlers of the loop, after which the channel
// is not touched any more.
void channel_fail(struct channel *channel, enum ras_cause cause);
// The same where the ops must not be called: they are told in the next turn.
void channel_fail_later(struct channel *channel, enum ras_cause cause);

// The proof. Begins on a connected socket; proof_ready() goes on when the socket is ready.
void proof_begin(struct channel *channel);
void proof_ready(struct channel *channel);
void proof_timed_out(struct channel *channel);

// An open or closing channel (stream.c).
int channel_queue_frame(struct channel *channel, const void *frame, size_t size);
void channel_queue_bytes(struct channel *channel, const void *bytes, size_t size);
void channel_receive(struct channel *channel);
void channel_flush(struct channel *channel);
void channel_check_stuck(struct channel *channel);
void channel_drain(struct channel *channel);
void channel_close_softly(struct channel *channel); // its handle is free again

// Ends, one at a time from then on, what was proven with a key that is not ours any more.
void revoke_soon(struct transport *transport, uint64_t at_ns);
// For one that has just proven the key it began with.
void revoke_if_not_ours(struct channel *channel);
static inline size_t channel_queued(const struct channel *channel) {
	return channel->queue_tail - channel->queue_head;
}

// Outgoing (dial.c). What fails at once is told later.
void dial(struct channel *channel);
void dial_ready(struct channel *channel);
// Once, when the transport listens: the kernel may have to load a module to answer, or look for one
// that it does not have, and the first question waits for that.
void dial_ask_owners(struct transport *transport);
// A socket that connects to the peer, from our address and interface. 0 or -errno.
int dial_socket(struct transport *transport, const struct sock_addr *peer, int *ret_fd);

// Whatever kernels were asked is forgotten, and the ops are not told.
void closed_ports_end(struct transport *transport);

// Options that every connection has, either direction.
void channel_set_options(const struct channel *channel);

// The listener.
int listener_open(struct transport *transport, char ret_detail[static 256]);
void listener_close(struct transport *transport);
