// SPDX-License-Identifier: BSD-3-Clause
// The overlay's connections: TCP, sealed with the cluster's key, between this node and others.
//
// This is what the protocol core asks for by ras_ops and is told by ras_conn_...(): a connection
// is a number. The core gives those of connections it opens; for an accepted one
// `accepted` is asked for one when the key has been proven, never before: until then a stranger
// costs a small fixed record and learns nothing.
//
// A frame that was taken is sent whole or the connection ends. What is queued here is bounded
// (TRANSPORT_QUEUE_BYTES_MAX a connection), the rest waits in the core: send says -EAGAIN and
// `writable` follows. All on the loop's thread.
#pragma once

#include <lib/sockaddr.h>
#include <ras/ras.h>

#include <stddef.h>
#include <stdint.h>

struct loop;
struct seal_keys;
struct transport;

#define TRANSPORT_QUEUE_BYTES_MAX (256u << 10)
#define TRANSPORT_CONNS_MAX 65536

struct transport_config {
	const struct seal_keys *keys; // the transport takes its own reference
	const char *cluster;	      // part of the proof: agents of another one do not get in
	struct sock_addr listen;      // port 0: any, see transport_address()
	struct sock_addr source; // outgoing connections are bound to it; NONE: the kernel's choice
	const char *interface;	 // and to this interface; NULL: no binding
	uint64_t connect_ns;	 // deadline of the TCP handshake
	uint64_t proof_ns;	 // and of the proof of the key, either direction
	uint64_t stuck_ns;	 // TCP_USER_TIMEOUT, and age of the head of a queue
	uint64_t close_ns;	 // a soft close reads to the end for so long
	uint32_t conns_max;	 // with a number, either direction: `accepted` keeps to it
	uint32_t proving_max;	 // accepted and not proven yet; one more, and the oldest has to go
	uint32_t proving_per_source;	   // of these, from one address
	uint32_t accepts_per_source_per_s; // one source may not spend more of our time
};

struct transport_ops {
	// The key was proven. 0 and a number, or -EMFILE: it is closed.
	int (*accepted)(void *ctx, const struct sock_addr *from, uint32_t *ret_conn);
	void (*opened)(void *ctx, uint32_t conn);
	void (*frame)(void *ctx, uint32_t conn, const void *frame, size_t size);
	void (*writable)(void *ctx, uint32_t conn);
	// Everything it carried has been handed over before. Not for one that was closed by us.
	// Connecting took too long: TIMEOUT; then nothing was heard: SILENT; no proof came of what
	// was heard, or the other side hung up on ours: PROOF; VERSION, PROTOCOL, STUCK as named;
	// EXITED: refused, and the address is one of this machine's where nobody listens; the rest
	// by ras_cause_of_errno().
	void (*ended)(void *ctx, uint32_t conn, enum ras_cause cause);
	// What came of transport_ask_kernel().
	void (*kernel_asked)(void *ctx, const struct sock_addr *host, bool answered);
};

// Any of the ops may call any function here, transport_destroy() too.

// Binds and listens; configuration and ops are copied. *ret_detail, if there is an error, says in
// words what failed and with whom (the holder of the port, if that can be known). -EADDRINUSE,
// -EADDRNOTAVAIL, -EACCES, -ENODEV, -EPERM (no key and an address that is not loopback), -ENOMEM,
// or what the socket said.
int transport_create(
	struct loop *loop,
	const struct transport_config *config,
	const struct transport_ops *ops,
	void *ops_ctx,
	char ret_detail[static 256],
	struct transport **ret_transport
);
// Every connection is closed at once, without a word to the ops.
struct transport *transport_destroy(struct transport *transport);

// For handshakes that begin from now on; connections that were proven with a key which is not among
// these end, one each 250 ms. Takes its own reference.
void transport_rekey(struct transport *transport, const struct seal_keys *keys);

// Listens there from now on, and connects from there, instead of where it did; connections that
// stand are left alone. -errno as transport_create(), and all is as it was.
int transport_rebind(
	struct transport *transport,
	const struct sock_addr *listen,
	const char *interface,
	char ret_detail[static 256]
);

// Where it listens, with the port the kernel chose.
struct sock_addr transport_address(const struct transport *transport);

// Never answers from inside: opened() or ended() follow.
void transport_open(struct transport *transport, uint32_t conn, const struct sock_addr *to);
// From where it connects, if that is known yet, or still; else the address is left as it was.
void transport_source(
	const struct transport *transport, uint32_t conn, struct sock_addr *ret_address
);
// 0; -EAGAIN: nothing was taken; -ENOTCONN: not open, or ended meanwhile.
int transport_send(struct transport *transport, uint32_t conn, const void *frame, size_t size);
void transport_close(struct transport *transport, uint32_t conn, enum ras_close how);
// No more accepts; connections live on. For leaving.
void transport_deafen(struct transport *transport);
// Soft closes under way: when none is left, everything said has been delivered or given up.
uint32_t transport_closing(const struct transport *transport);

// Whether the kernel of the host at this address (of whatever port) acknowledged what was sent to
// it on an open connection since then, by the loop's clock, and nothing is left unacknowledged: it
// lives, whatever the agent there does. -ENOENT: nothing was sent since then that would tell.
int transport_kernel_answers(
	const struct transport *transport, const struct sock_addr *host, uint64_t since_ns
);

// Asks the kernel of the host at this address at a port where nobody listens, within connect_ns:
// any answer proves that it lives, also where the queue of who listens there is full. 0, and
// kernel_asked() follows, never from inside; -EALREADY: it is being asked, and that follows for it;
// -EBUSY: too many are; or why it cannot be.
int transport_ask_kernel(struct transport *transport, const struct sock_addr *host);

// Whether each open connection to the host sends something again and again, and nothing has come
// back on it for so long.
bool transport_kernel_is_silent(
	const struct transport *transport, const struct sock_addr *host, uint64_t for_ns
);

// What the kernel has sent to a host on the connections that are open, and how much of it again
// since nobody acknowledged it.
struct transport_sent {
	uint32_t connections;
	uint64_t segments, again; // with data
	bool unanswered;	  // nothing has come back on one since something was sent again
};

// To the host at this address, of whatever port. -ENOENT: there is no connection.
int transport_kernel_sent(
	const struct transport *transport,
	const struct sock_addr *host,
	struct transport_sent *ret_sent
);

struct transport_counters {
	uint64_t accepted, accept_failures, connects, connect_failures;
	uint64_t turned_away_full, turned_away_rate; // before a single byte was read
	uint64_t strangers_evicted;		     // to make room for newer ones
	uint64_t closes_cut;			     // soft closes, likewise
	uint64_t proofs, proof_failures, proof_timeouts, proof_unknown_key;
	uint64_t revoked; // connections ended, since their key is ours no more
	uint64_t frames_sent, frames_received, bytes_sent, bytes_received; // on the wire
	uint64_t frames_forged;	   // authentic no more: altered, repeated or out of order
	uint64_t frames_malformed; // of a size that no frame has
	uint64_t queues_full, stuck, descriptors_short;
	uint32_t open, proving, closing; // now
	uint64_t buffer_bytes;		 // held now, by those whose key was proven
};

// Who could not be reached last, and who came and could not prove the key: to be told to people.
struct transport_trouble {
	struct sock_addr
		failed; // an outgoing connection that never opened; NONE: none since one did
	enum ras_cause cause;
	struct sock_addr stranger; // NONE: none came
	uint64_t stranger_ns;	   // by the loop
	uint32_t strangers;	   // so many, each within TRANSPORT_STRANGERS_NS of the one before
};
#define TRANSPORT_STRANGERS_NS (300 * RAS_NS_PER_SEC)

const struct transport_trouble *transport_trouble(const struct transport *transport);

const struct transport_counters *transport_counters(const struct transport *transport);
