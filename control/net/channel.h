// SPDX-License-Identifier: BSD-3-Clause
// One TCP connection of the transport, from connect or accept to its end. Private to control/net.
//
//	connecting -> proving -> open -> closing
//	              ^
//	accepted -----'
//
// Channels live in a table of fixed size. A channel ends at once wherever it is ended, also inside
// a callback that it made. So code that calls the ops compares `life` before and after, and touches
// nothing if it has changed. The table itself stays until the outermost handler returns
// (transport_exit()).
//
// An accepted channel that has not proven the key is a stranger. It has one table entry with a few
// hundred bytes. Buffers are allocated after the proof.
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
	CHANNEL_CLOSING, // soft close: the handle is released, queued bytes are sent
	CHANNEL_FAILED,	 // only the handle is left, until the ops are notified
};

struct channel_buffers {
	uint8_t received[CHANNEL_RECEIVE_BYTES];
	uint8_t queue[TRANSPORT_QUEUE_BYTES_MAX];
};

struct channel {
	struct transport *transport;
	struct loop_source source;
	struct loop_timer timer; // deadline of the state; while open: of the queued bytes
	TAILQ_ENTRY(channel) in_list;
	TAILQ_ENTRY(channel) in_flush;
	LIST_ENTRY(channel) in_bucket;
	struct channel_list *list;
	uint32_t life; // changes when the channel ends
	enum channel_state state;
	struct sock_addr peer;
	uint32_t conn;
	enum ras_cause cause; // valid while failed
	uint32_t round;	      // transport's round when it was put into flush or failed
	bool has_conn : 1;
	bool outgoing : 1;
	bool will_flush : 1;
	bool owes_writable : 1; // a send was rejected, so `writable` must follow
	bool heard : 1;		// a byte was received
	bool read_ended : 1;	// closing: the other side has finished sending
	bool write_ended : 1;	// closing: this side has finished sending

	struct seal seal;
	struct seal_reply message; // message of the proof that is being sent or received
	size_t message_done;
	bool message_out;

	struct channel_buffers *buffers; // allocated after the proof
	size_t received;		 // bytes in buffers->received
	size_t queue_head, queue_tail;
	uint64_t queued_total, sent_total; // bytes since the channel was opened
	uint64_t mark; // when the timer expires, sent_total must have reached it
	int send_error;
};

TAILQ_HEAD(channel_list, channel);
LIST_HEAD(channel_bucket, channel);

#define PROOF_LOG_ENTRIES_MAX 16

// Peer whose failed proof of the key was logged. Its further failures are only counted until
// again_ns, so that the log does not get a line every second.
struct proof_log_entry {
	struct sock_addr peer; // with the port for an outgoing connection, else without
	uint64_t again_ns;     // time of the next line
	uint64_t suppressed;   // failed proofs since the last line
};

// A host whose kernel is asked at a port where nobody listens.
struct closed_port {
	struct transport *transport; // NULL: free
	struct sock_addr host;	     // as the caller gave it, with the port of the agent there
	struct loop_source source;
	struct loop_timer deadline;
};
#define CLOSED_PORTS 32 // asked at once; each question ends after connect_ns

struct listener {
	struct loop_source *source;   // the one of `places` in use; NULL: none
	struct loop_source places[2]; // a new listener is added before the old one is closed
	struct loop_timer pause;
	struct sock_addr address;
	int reserve_fd; // closed to accept and reset a connection if descriptors are short
};

struct transport {
	struct loop *loop;
	struct transport_config config; // the strings are owned
	struct transport_ops ops;
	void *ops_ctx;
	uint32_t depth; // nested handlers
	bool destroyed; // destroyed inside a handler
	bool unbound_logged;

	struct listener listener;
	int owner_query_fd; // asks the kernel who listens on this machine; -1: no answer
	struct admission *admission;

	struct channel *channels;
	uint32_t channel_count; // number of channels that were ever used
	uint32_t channel_max;
	struct channel_list free;
	struct channel_list strangers; // oldest first
	struct channel_list live;
	struct channel_list closing; // oldest first
	struct channel_list failed;
	struct channel_list flush;
	struct channel_bucket *buckets; // hash table by handle
	uint32_t bucket_mask;

	// A job handles only channels that were queued before its run began; each run is a round.
	uint32_t round;
	struct loop_job flush_job;
	struct loop_job failed_job;
	struct loop_timer revoke_timer;
	struct closed_port closed_ports[CLOSED_PORTS];
	uint8_t scratch[RAS_FRAME_MAX]; // an opened frame, or bytes to be discarded
	struct proof_log_entry said[PROOF_LOG_ENTRIES_MAX];
	struct transport_last_failures trouble;
	struct transport_counters counters;
};

// Must enclose every handler of the loop that may call the ops.
void transport_enter(struct transport *transport);
void transport_exit(struct transport *transport);

struct channel *channel_allocate(struct transport *transport, const struct sock_addr *peer);
void channel_end(struct channel *channel);
// End the channel with a reset: the other side sees it, and the kernel keeps no state.
void channel_abort(struct channel *channel);
void channel_enter_state(struct channel *channel, enum channel_state state);
void channel_set_handle(struct channel *channel, uint32_t conn);
void channel_release_handle(struct channel *channel);
struct channel *channel_find(const struct transport *transport, uint32_t conn);

// Give the descriptor to the channel and add it to the loop. Returns 0, or -errno after closing it.
int channel_attach(struct channel *channel, int fd, enum loop_rank rank, uint32_t events);
// Set the time after which the state ends. Returns 0 or -ENOMEM.
int channel_set_deadline(struct channel *channel, uint64_t after_ns);

// End the channel, and notify the ops if they know it. For handlers of the loop, which must not
// touch the channel afterwards.
void channel_fail(struct channel *channel, enum ras_cause cause);
// Like channel_fail(), where the ops must not be called: they are notified in the next turn.
void channel_fail_later(struct channel *channel, enum ras_cause cause);

// The proof. proof_begin() needs a connected socket; proof_ready() continues when the socket is
// ready.
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
void channel_close_softly(struct channel *channel); // releases its handle

// From at_ns on, end the connections that were proven with a removed key, one at a time.
void revoke_soon(struct transport *transport, uint64_t at_ns);
// Revoke a channel that has just proven a key that was removed meanwhile.
void revoke_if_key_removed(struct channel *channel);
static inline size_t channel_queued(const struct channel *channel) {
	return channel->queue_tail - channel->queue_head;
}

// Outgoing connections. An immediate failure is reported in the next turn.
void channel_dial(struct channel *channel);
void dial_ready(struct channel *channel);
// Must be called once, when the transport listens. The first question may take long: the kernel
// loads a module to answer, or searches for a missing one.
void dial_open_owners(struct transport *transport);
// Create a socket that connects to the peer, from our address and interface. Returns 0 or -errno.
int dial_socket(struct transport *transport, const struct sock_addr *peer, int *ret_fd);

// End all questions to kernels, without notifying the ops.
void closed_ports_end(struct transport *transport);

// Set the options that every connection has, in either direction.
void channel_set_options(const struct channel *channel);

// Listen at config.listen, in place of the previous address. transport_stop_accepting() ends it.
int listener_open(struct transport *transport, char ret_detail[static 256]);
