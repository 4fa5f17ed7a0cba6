// SPDX-License-Identifier: BSD-3-Clause
// A virtual network of hosts, processes and TCP connections.
//
// It stands for wires and kernels: what a process is told, in which order and when. It knows
// nothing of the protocol above. One process per node; its connection handles are its own.
// A connection is two FIFO streams. Loss is shown as delay; a path that is cut keeps what was
// sent and tries again, as TCP does, until it heals or the user timeout ends the connection.
// A frozen process's kernel goes on: it accepts, takes data until its buffers are full, and
// hands over in order what came, as soon as the process runs again.
#pragma once

#include "queue.h"
#include "socket_map.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define NET_NOBODY UINT32_MAX
// Beside the errno of ended(): refused by the node's own machine, where the other one does not run.
#define NET_REFUSED_HERE 4096
// Four bytes of length and 17 of seal: what a frame costs beyond its own size.
#define NET_FRAME_OVERHEAD 21
// One leg of the key proof that opens a connection; there are three.
#define NET_PROOF_BYTES 128

enum net_event {
	NET_SYN,    // at the kernel that is connected to
	NET_HELLO,  // at its process: the first leg of the key proof
	NET_OPENED, // back at the process that connects
	NET_ACCEPT, // the third leg
	NET_FRAME,  //
	NET_FIN,    // the other end closed: behind all it sent
	NET_RESET,  // the other end's kernel knows no such connection
	NET_FAIL,   // our own kernel gave up
	NET_ROOM,   // the send buffer has room again
	NET_RETRY,  // a stream whose path is cut
	NET_STUCK,  // has a full buffer moved at all?
	NET_INBOX,  // the process can take more
	NET_EVENT_COUNT,
};

// Where the network hands things over. `handle` is the process's own name of a connection;
// it is unknown after ended(). Called in the order in which a process would read them.
struct net_sink {
	void (*opened)(void *ctx, uint32_t node, uint32_t handle);
	// 0 and the handle, or -errno: the connection is reset.
	int (*accepted)(void *ctx, uint32_t node, uint32_t from, uint32_t *ret_handle);
	void (*frame)(void *ctx, uint32_t node, uint32_t handle, const void *frame, uint32_t size);
	void (*writable)(void *ctx, uint32_t node, uint32_t handle);
	// May be NULL. A frame for the node is on its way, and will be there soon.
	void (*coming)(void *ctx, uint32_t node);
	// errno as connect(), send() or recv() would say, or NET_REFUSED_HERE; a peer's close is
	// ECONNRESET as well.
	void (*ended)(void *ctx, uint32_t node, uint32_t handle, int error);
};

enum net_process {
	NET_PROCESS_NONE, // its kernel refuses
	NET_PROCESS_RUNNING,
	NET_PROCESS_FROZEN,
};

struct net_config {
	uint32_t nodes;
	uint32_t hosts;
	uint64_t seed;
	uint64_t delay_median_ns; // one way, log-normal
	uint64_t delay_p99_ns;
	uint32_t stall_ppm; // messages whose stream stands still for stall_ns
	uint64_t stall_ns;
	uint32_t buffer_bytes; // of both kernels together, one direction
	uint64_t user_timeout_ns;
	uint32_t backlog_max;
};

// What every message touches: with the rest of a connection on one line of the cache.
struct net_stream {
	uint64_t last_ns; // what is sent later arrives later
	uint32_t queued_bytes;
	bool wants_room;
	bool watched;  // a NET_STUCK is on its way
	bool retrying; // a NET_RETRY is: the path was cut
	uint8_t tries;
};

// And what only a stream in trouble has.
struct net_trouble {
	uint64_t moved_ns; // since when the full buffer did not move
	uint64_t cut_ns;   // since when nothing was acknowledged
	struct event *parked, **parked_end;
	// Of a network that counts: packets of data, and of these those that TCP sent again.
	uint64_t sent, again;
};

enum net_side {
	NET_SIDE_NONE,	  // the other's SYN has not arrived
	NET_SIDE_OPENING, // before the end of the key proof
	NET_SIDE_OPEN,
	NET_SIDE_CLOSED,
};

// A socket is a connection's index times two and its side; side 0 connected.
struct net_conn {
	uint32_t node[2];
	uint32_t handle[2];
	uint32_t epoch; // of the process that the SYN found
	uint32_t generation;
	uint8_t side[2]; // enum net_side
	uint32_t next_free;
	struct net_stream stream[2]; // what each side sends
};
static_assert(sizeof(struct net_conn) == 64, "one line");

struct net_node {
	enum net_process process;
	uint32_t host;
	uint32_t epoch; // of the process
	uint32_t backlog;
	bool draining;
	uint64_t sent_until_ns; // the wire is busy this long
	uint64_t received_until_ns;
	struct event *inbox, **inbox_end;
	struct socket_map sockets;
	uint64_t sent_bytes, sent_frames;
};

struct net_host {
	bool down;	  // silent: no power, no cable, or its machine is stopped
	bool deaf;	  // nothing reaches it
	bool mute;	  // nothing leaves it
	bool refuses;	  // a firewall rejects new connections to it
	uint32_t island;  // hosts of different islands do not reach each other
	uint32_t fence;	  // between those of different ones TCP is answered with resets
	uint64_t slow_ns; // more, each way
	uint32_t loss_in_percent, loss_out_percent;
};

struct net_cut {
	uint32_t a, b; // nodes
	bool one_way;  // of a to b alone
};

// Of packets between the two, either way, so many percent are lost.
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
	// Whose end is being told: until that returns the process may still write, for nothing.
	uint32_t ending_node, ending_handle;
	bool faulty; // some path is cut or slow: the way to find out is worth taking
	struct net_node *nodes;
	struct net_host *hosts;
	struct net_conn *conns;	      // each on a line of its own
	struct net_trouble *troubles; // by socket that sends
	uint32_t conn_count, conn_capacity, conn_free;
	uint32_t conns_open;
	struct net_cut *cuts;
	uint32_t cut_count, cut_capacity;
	struct net_leak leaks[NET_LEAKS_MAX];
	uint32_t leak_count;
	bool counts; // what TCP sends again: a lost acknowledgement makes it do so as well
	uint32_t travel_again; // of the last net_travel()
	bool travel_failed;    // and whether TCP would have given it up
	uint32_t *delays;      // quantiles of the one-way delay
	uint64_t frames_delivered, frames_lost, stalls;
};

// Nodes are spread over the hosts in runs. Queue, trace and sink must outlive it. -ENOMEM.
int net_init(
	struct net *net,
	const struct net_config *config,
	struct queue *queue,
	struct trace *trace,
	const struct net_sink *sink,
	void *sink_ctx
);
void net_fini(struct net *net);

// Does what the event says and releases it. Its kind is below NET_EVENT_COUNT.
void net_dispatch(struct net *net, struct event *event);

// What a process asks of its kernel. None of these calls back.
void net_open(struct net *net, uint32_t node, uint32_t handle, uint32_t to);
// 0 or -EAGAIN: writable() follows.
int net_send(struct net *net, uint32_t node, uint32_t handle, const void *frame, uint32_t size);
// What was sent still arrives, then the peer sees the end.
void net_close(struct net *net, uint32_t node, uint32_t handle);

// The life of a process. A start needs a process that is gone; freezing and thawing change
// nothing if there is none.
void net_process_start(struct net *net, uint32_t node);
// Ended by itself or killed: the kernel closes its connections.
void net_process_end(struct net *net, uint32_t node);
void net_process_freeze(struct net *net, uint32_t node);
// Hands over everything that waits before it returns.
void net_process_thaw(struct net *net, uint32_t node);
// Every connection of the node is reset at both ends, the process lives on.
void net_process_cut(struct net *net, uint32_t node);

// Faults of the network. Turning `down` on ends the host's processes without a word unless
// they are to be kept (a stopped machine).
void net_host_down(struct net *net, uint32_t host, bool down, bool keep_processes);
void net_host_set(struct net *net, uint32_t host, const struct net_host *wanted);
void net_pair_cut(struct net *net, const struct net_cut *wanted, bool cut);
// Of the packets between two nodes; 0 ends it.
void net_pair_leak(struct net *net, uint32_t a, uint32_t b, uint32_t percent);
// The chance that one packet passes from a to b, by what their hosts and the path lose.
double net_passes(const struct net *net, uint32_t a, uint32_t b);
// Of the connections that are open between the two, what `node` sent and had to send again. Returns
// how many there are.
uint32_t net_sent(
	const struct net *net, uint32_t node, uint32_t to, uint64_t *ret_sent, uint64_t *ret_again
);
// Recomputes `faulty`; to be called after hosts were changed in place.
void net_faults_changed(struct net *net);

// Whether a firewall between them rejects.
bool net_is_fenced(const struct net *net, uint32_t from, uint32_t to);
// Whether frames of `from` reach `to` now.
bool net_reaches(const struct net *net, uint32_t from, uint32_t to);

const char *net_event_name(uint32_t kind);
