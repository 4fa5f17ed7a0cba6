// SPDX-License-Identifier: BSD-3-Clause
// The connections of the overlay: TCP between this node and others, sealed with the cluster's key.
//
// The transport implements struct ras_ops for the protocol core, and reports to it with
// ras_conn_...(). A connection is a number. The core numbers the connections that it opens. For an
// accepted connection, the transport asks `accepted` for a number, but only after the peer has
// proven the key. Until then a stranger costs a small fixed record and learns nothing.
//
// A frame that is accepted is sent completely, or the connection ends. At most
// TRANSPORT_QUEUE_BYTES_MAX are queued here per connection. Beyond that, send returns -EAGAIN, the
// core keeps the frame, and `writable` follows. Loop thread only.
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
	const char *cluster;	      // part of the proof: agents of another cluster are rejected
	struct sock_addr listen;      // port 0: any free port, see transport_address()
	struct sock_addr source; // local address of outgoing connections; NONE: the kernel chooses
	const char *interface;	 // network interface to bind to; NULL: none
	uint64_t connect_ns;	 // deadline of the TCP handshake
	uint64_t proof_ns;	 // deadline of the key proof, in either direction
	uint64_t stuck_ns;  // TCP_USER_TIMEOUT, and the maximum age of the first frame in a queue
	uint64_t close_ns;  // how long a soft close reads until the peer closes
	uint32_t conns_max; // connections with a number, both directions; `accepted` enforces it
	// accepted connections without a key proof; one more evicts the oldest
	uint32_t proving_max;
	uint32_t proving_per_source;	   // the part of proving_max for one address
	uint32_t accepts_per_source_per_s; // limits the time that one address can cost
};

struct transport_ops {
	// A peer has proven the key. Returns 0 with a number, or -EMFILE to close the connection.
	int (*accepted)(void *ctx, const struct sock_addr *from, uint32_t *ret_conn);
	void (*opened)(void *ctx, uint32_t conn);
	void (*frame)(void *ctx, uint32_t conn, const void *frame, size_t size);
	void (*writable)(void *ctx, uint32_t conn);
	// A connection ended that this side did not close. All received frames were passed on
	// before. The causes are:
	//
	// TIMEOUT: the TCP handshake took too long. SILENT: nothing was received after it. PROOF:
	// the peer sent data but no proof, or it hung up on our proof. EXITED: refused, and the
	// address is on this host where no process listens. VERSION, PROTOCOL, STUCK: as named. All
	// other causes follow ras_cause_of_errno().
	void (*ended)(void *ctx, uint32_t conn, enum ras_cause cause);
	// Result of transport_probe_kernel().
	void (*kernel_asked)(void *ctx, const struct sock_addr *host, bool answered);
};

// Every callback may call any function of this file, even transport_destroy().

// Bind and listen. Configuration and callbacks are copied. On error, ret_detail explains what
// failed, and names the process that holds the port, if known. Returns 0, -EPERM (no key, and the
// address is not loopback), -ENOMEM, or the error of the socket: -EADDRINUSE, -EADDRNOTAVAIL,
// -EACCES, -ENODEV, ...
int transport_create(
	struct loop *loop,
	const struct transport_config *config,
	const struct transport_ops *ops,
	void *ops_ctx,
	char ret_detail[static 256],
	struct transport **ret_transport
);
// Close all connections at once, without calling any callback.
struct transport *transport_destroy(struct transport *transport);

// Use these keys for new handshakes. Connections proven with a key that is not among them are
// ended, one each 250 ms. Takes its own reference.
void transport_rekey(struct transport *transport, const struct seal_keys *keys);

// Listen at this address from now on, and connect from it. Open connections are not changed.
// Returns 0, or -errno as transport_create(); on error nothing has changed.
int transport_rebind(
	struct transport *transport,
	const struct sock_addr *listen,
	const char *interface,
	char ret_detail[static 256]
);

// Return the listening address, with the port that the kernel chose.
struct sock_addr transport_address(const struct transport *transport);

// Open a connection. opened() or ended() follows, never from inside this call.
void transport_open(struct transport *transport, uint32_t conn, const struct sock_addr *to);
// Store the local address of a connection in *ret_address. If it is not known, *ret_address is
// unchanged.
void transport_local_address(
	const struct transport *transport, uint32_t conn, struct sock_addr *ret_address
);
// Queue a frame. Returns 0, -EAGAIN (frame not accepted) or -ENOTCONN (not open, or already ended).
int transport_send(struct transport *transport, uint32_t conn, const void *frame, size_t size);
void transport_close(struct transport *transport, uint32_t conn, enum ras_close how);
// Stop accepting connections; existing ones stay open. Used when leaving.
void transport_stop_accepting(struct transport *transport);
// Return the number of soft closes in progress. At 0, all queued frames were delivered or given up.
uint32_t transport_soft_close_count(const struct transport *transport);

// Check whether the kernel of a host is alive, from the open connections to its address, any port.
// It is alive if data was sent after since_ns (loop clock) and all data is acknowledged. The agent
// there may still hang. Returns 0, or -ENOENT if no connection proves it.
int transport_kernel_answers(
	const struct transport *transport, const struct sock_addr *host, uint64_t since_ns
);

// Test whether the kernel of a host is alive, by connecting to a port where no process listens. Any
// answer within connect_ns proves it, even if the accept queue of the agent there is full. Returns
// 0: kernel_asked() follows, never from inside. Returns -EALREADY if a test of this host is
// running, whose kernel_asked() follows; -EBUSY if too many tests are running; or -errno.
int transport_probe_kernel(struct transport *transport, const struct sock_addr *host);

// Return whether every open connection to the host keeps retransmitting and received nothing for
// `for_ns`. Returns false if there is no open connection.
bool transport_kernel_is_silent(
	const struct transport *transport, const struct sock_addr *host, uint64_t for_ns
);

// Segments that the kernel sent to one host on the open connections, and its retransmissions.
struct transport_segments {
	uint32_t connections;
	uint64_t segments, again; // segments with data, and retransmissions
	bool unanswered;	  // a connection received nothing since its last retransmission
};

// Return the segment counts for the host at this address, any port. Returns 0, or -ENOENT if there
// is no connection.
int transport_tcp_segments(
	const struct transport *transport,
	const struct sock_addr *host,
	struct transport_segments *ret_sent
);

struct transport_counters {
	uint64_t accepted, accept_failures, connects, connect_failures;
	uint64_t turned_away_full, turned_away_rate; // connections reset before any byte was read
	// connections without a proof, ended to make room for newer ones
	uint64_t strangers_evicted;
	uint64_t closes_cut; // soft closes ended to make room
	uint64_t proofs, proof_failures, proof_timeouts, proof_unknown_key;
	uint64_t revoked; // connections ended because their key was removed
	uint64_t frames_sent, frames_received, bytes_sent, bytes_received; // bytes on the wire
	// frames that fail authentication: altered, repeated or out of order
	uint64_t frames_forged;
	uint64_t frames_malformed; // frames of an impossible size
	uint64_t queues_full, stuck, descriptors_short;
	uint32_t open, proving, closing; // current numbers
	uint64_t buffer_bytes;		 // buffers of connections with a proven key; current
};

// The last peer that could not be reached, and the last stranger that could not prove the key. For
// reports to users.
struct transport_last_failures {
	// Address of the last outgoing connection that failed to open; NONE: the latest ones
	// opened.
	struct sock_addr failed;
	enum ras_cause cause;
	struct sock_addr stranger; // NONE: no stranger so far
	uint64_t stranger_ns;	   // on the loop's clock
	// strangers in a row, each within TRANSPORT_STRANGERS_NS of the previous one
	uint32_t strangers;
};
#define TRANSPORT_STRANGERS_NS (300 * RAS_NS_PER_SEC)

const struct transport_last_failures *transport_last_failures(const struct transport *transport);

const struct transport_counters *transport_counters(const struct transport *transport);
