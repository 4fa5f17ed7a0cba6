// SPDX-License-Identifier: BSD-3-Clause
// A virtual network of hosts, processes and TCP connections.
//
// It replaces links and kernels: which callbacks a process gets, in which order and when. It
// knows nothing of the protocol above. There is one process per node; its connection handles are
// its own.
//
// A connection is two FIFO streams. Loss appears as delay. A cut path keeps sent data and
// retransmits it like TCP. It recovers, or the user timeout ends the connection. The kernel of a
// frozen process keeps running: it accepts connections and data until its buffers are full. It
// delivers everything in order once the process runs again.
#pragma once

#include "queue.h"
#include "socket_map.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define NET_NOBODY UINT32_MAX
// Flag in addition to the errno of ended(): both nodes are on one host, whose kernel refused the
// connection because the other process does not run.
#define NET_REFUSED_HERE 4096
// Overhead of a frame: four bytes of length and 17 bytes of seal.
#define NET_FRAME_OVERHEAD 21
// Size of one of the three messages of the key proof that opens a connection.
#define NET_PROOF_BYTES 128

enum net_event {
	NET_SYN,    // at the kernel of the destination
	NET_HELLO,  // at the destination's process: first message of the key proof
	NET_OPENED, // at the connecting process: the second message
	NET_ACCEPT, // at the destination: the third message
	NET_FRAME,  //
	NET_FIN,    // the other end closed; delivered after all its data
	NET_RESET,  // the kernel of the other end does not know the connection
	NET_FAIL,   // the local kernel gave up
	NET_ROOM,   // the send buffer has room again
	NET_RETRY,  // retries a stream whose path is cut
	NET_STUCK,  // checks whether a full buffer has drained at all
	NET_INBOX,  // the process can read more
	NET_EVENT_COUNT,
};

// Callbacks of the network. `handle` is the process's own name of a connection and is invalid
// after ended(). Callbacks come in the order in which a process would read the events.
struct net_sink {
	void (*opened)(void *ctx, uint32_t node, uint32_t handle);
	// Returns 0 and the handle, or -errno to reset the connection.
	int (*accepted)(void *ctx, uint32_t node, uint32_t from, uint32_t *ret_handle);
	void (*frame)(void *ctx, uint32_t node, uint32_t handle, const void *frame, uint32_t size);
	void (*writable)(void *ctx, uint32_t node, uint32_t handle);
	// A frame for the node will be delivered soon. May be NULL.
	void (*coming)(void *ctx, uint32_t node);
	// `error` is the errno of connect(), send() or recv(), or has NET_REFUSED_HERE set. A
	// close by the peer is ECONNRESET as well.
	void (*ended)(void *ctx, uint32_t node, uint32_t handle, int error);
};

enum net_process {
	NET_PROCESS_NONE, // the kernel refuses connections
	NET_PROCESS_RUNNING,
	NET_PROCESS_FROZEN,
};

struct net_config {
	uint32_t nodes;
	uint32_t hosts;
	uint64_t seed;
	uint64_t delay_median_ns; // one way; delays are log-normal
	uint64_t delay_p99_ns;
	uint32_t stall_ppm; // share of messages that are delayed by stall_ns
	uint64_t stall_ns;
	uint32_t buffer_bytes; // of both kernels together, for one direction
	uint64_t user_timeout_ns;
	uint32_t backlog_max;
};

// Data that every message touches; shares a cache line with the rest of the connection.
struct net_stream {
	uint64_t last_ns; // later messages must not arrive before this time
	uint32_t queued_bytes;
	bool wants_room;
	bool watched;  // a NET_STUCK event is scheduled
	bool retrying; // a NET_RETRY event is scheduled because the path was cut
	uint8_t tries;
};

// Data that only a stream on a faulty path needs.
struct net_trouble {
	uint64_t moved_ns; // since when the full buffer has not drained
	uint64_t cut_ns;   // since when nothing was acknowledged
	struct event *parked, **parked_end;
	// If the network counts packets: data packets sent, and those of them that TCP
	// retransmitted.
	uint64_t sent, again;
};

enum net_side {
	NET_SIDE_NONE,	  // the SYN has not arrived yet
	NET_SIDE_OPENING, // key proof in progress
	NET_SIDE_OPEN,
	NET_SIDE_CLOSED,
};

// A socket's number is twice the connection's index plus its side; side 0 is the connecting one.
struct net_conn {
	uint32_t node[2];
	uint32_t handle[2];
	uint32_t epoch; // process epoch that the SYN found
	uint32_t generation;
	uint8_t side[2]; // enum net_side
	uint32_t next_free;
	struct net_stream stream[2]; // by sending side
};
static_assert(sizeof(struct net_conn) == 64, "one line");

struct net_node {
	enum net_process process;
	uint32_t host;
	uint32_t epoch; // of the process; each start is a new one
	uint32_t backlog;
	bool draining;
	uint64_t sent_until_ns; // the node's uplink is busy until then
	uint64_t received_until_ns;
	struct event *inbox, **inbox_end;
	struct socket_map sockets;
	uint64_t sent_bytes, sent_frames;
};

struct net_host {
	bool down;	  // unreachable: no power, no cable, or a stopped machine
	bool deaf;	  // no packet reaches the host
	bool mute;	  // no packet leaves the host
	bool refuses;	  // a firewall rejects new connections to the host
	uint32_t island;  // hosts of different islands do not reach each other
	uint32_t fence;	  // hosts with different fences: a firewall answers TCP with resets
	uint64_t slow_ns; // additional delay, each way
	uint32_t loss_in_percent, loss_out_percent;
};

struct net_cut {
	uint32_t a, b; // nodes
	bool one_way;  // only from a to b
};

// Loss in percent of the packets between two nodes, in both directions.
struct net_leak {
	uint32_t a, b;
	uint32_t percent;
};
#define NET_LEAKS_MAX 16

struct trace;

struct net {
	struct net_config config;
	struct queue *queue;
	struct trace *trace;
	const struct net_sink *sink;
	void *sink_ctx;
	uint64_t random;
	// The connection whose ended() callback runs. Until it returns, writes of the process are
	// ignored.
	uint32_t ending_node, ending_handle;
	bool faulty; // a path is cut or slow, so that paths have to be checked
	struct net_node *nodes;
	struct net_host *hosts;
	struct net_conn *conns;	      // each on its own cache line
	struct net_trouble *troubles; // by sending socket
	uint32_t conn_count, conn_capacity, conn_free;
	uint32_t conns_open;
	struct net_cut *cuts;
	uint32_t cut_count, cut_capacity;
	struct net_leak leaks[NET_LEAKS_MAX];
	uint32_t leak_count;
	bool counts;	       // counts retransmissions; a lost acknowledgement also causes one
	uint32_t travel_again; // retransmissions of the last net_travel()
	bool travel_failed;    // the last net_travel() exceeded TCP's user timeout
	uint32_t *delays;      // quantiles of the one-way delay
	uint64_t frames_delivered, frames_lost, stalls;
};

// Spread the nodes over the hosts in consecutive runs. Queue, trace and sink must outlive the
// network. Returns 0 or -ENOMEM.
int net_init(
	struct net *net,
	const struct net_config *config,
	struct queue *queue,
	struct trace *trace,
	const struct net_sink *sink,
	void *sink_ctx
);
void net_fini(struct net *net);

// Execute and release an event whose kind is below NET_EVENT_COUNT.
void net_dispatch(struct net *net, struct event *event);

// Calls of a process to its kernel. They never invoke a callback.
void net_open(struct net *net, uint32_t node, uint32_t handle, uint32_t to);
// Returns 0 or -EAGAIN; writable() follows the latter.
int net_send(struct net *net, uint32_t node, uint32_t handle, const void *frame, uint32_t size);
// Close the connection. Data already sent still arrives before the peer sees the end.
void net_close(struct net *net, uint32_t node, uint32_t handle);

// Start, end, freeze and thaw a process. Starting requires that the previous process has ended.
// Freeze and thaw do nothing without a process.
void net_process_start(struct net *net, uint32_t node);
// End the process: it exited or was killed, so the kernel closes its connections.
void net_process_end(struct net *net, uint32_t node);
void net_process_freeze(struct net *net, uint32_t node);
// Thaw the process; delivers all waiting events before it returns.
void net_process_thaw(struct net *net, uint32_t node);
// Reset every connection of the node at both ends; its process lives on.
void net_process_cut(struct net *net, uint32_t node);

// Set the faults of a host. Setting `down` ends its processes without notice to peers, unless
// they are kept (stopped machine).
void net_host_down(struct net *net, uint32_t host, bool down, bool keep_processes);
void net_host_set(struct net *net, uint32_t host, const struct net_host *wanted);
void net_pair_cut(struct net *net, const struct net_cut *wanted, bool cut);
// Set the packet loss between two nodes; 0 ends it.
void net_pair_leak(struct net *net, uint32_t a, uint32_t b, uint32_t percent);
// Return the probability that a packet passes from a to b, given the losses of both hosts and the
// path.
double net_passes(const struct net *net, uint32_t a, uint32_t b);
// Sum up the packets that `node` sent and retransmitted on its open connections to `to`. Returns
// the number of these connections.
uint32_t net_sent(
	const struct net *net, uint32_t node, uint32_t to, uint64_t *ret_sent, uint64_t *ret_again
);
// Recompute `faulty`. Must be called after hosts were changed in place.
void net_faults_changed(struct net *net);

// Return whether a firewall between the two nodes rejects TCP.
bool net_is_fenced(const struct net *net, uint32_t from, uint32_t to);
// Return whether frames of `from` reach `to` now.
bool net_reaches(const struct net *net, uint32_t from, uint32_t to);

const char *net_event_name(uint32_t kind);
