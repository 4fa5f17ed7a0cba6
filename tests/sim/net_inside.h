// SPDX-License-Identifier: BSD-3-Clause
// Internal interface of the network: hosts and paths (net.c), streams (net_stream.c), connections
// and processes (net_conn.c).
#pragma once

#include "net.h"
#include "trace.h"

static inline void
net_note(struct net *net, uint32_t kind, uint32_t node, uint32_t other, const struct event *event) {
	struct trace_entry entry = {
		.at_ns = net->queue->now_ns,
		.node = node,
		.other = other,
		.value = event->size,
		.kind = (uint8_t)kind,
		.type = event->size > 0 ? event->bytes[0] : (uint8_t)event->code,
	};

	trace_add(net->trace, &entry);
}

static inline struct net_conn *net_conn_of(struct net *net, uint32_t socket) {
	return &net->conns[socket >> 1];
}

static inline bool net_is_ending(const struct net *net, uint32_t node, uint32_t handle) {
	return net->ending_node == node && net->ending_handle == handle;
}

// Return the trouble record of the stream towards this socket.
static inline struct net_trouble *net_trouble_to(struct net *net, uint32_t to_socket) {
	return &net->troubles[to_socket ^ 1];
}

// Create an event for a socket. The event is ignored if the connection ends before.
struct event *net_event(struct net *net, enum net_event kind, uint32_t socket, uint32_t size);

void net_release_list(struct net *net, struct event *event);
// Return the arrival time of `size` bytes that leave the node now.
uint64_t net_travel(struct net *net, uint32_t from, uint32_t to, uint32_t size);
// Append an event to the stream towards the socket, behind all earlier data.
void net_stream_push(struct net *net, uint32_t to_socket, struct event *event, uint32_t size);
// Deliver an event of a stream at the receiver.
void net_arrive(struct net *net, struct event *event);
// Hand an event to the process of the socket as soon as the process can read.
void net_hand_over(struct net *net, uint32_t node, struct event *event);
void net_stream_retry(struct net *net, struct event *event);
void net_stream_stuck(struct net *net, struct event *event);
// Deliver waiting events one by one, at the speed of the link.
void net_inbox(struct net *net, struct event *event);
// Deliver all waiting events at once.
void net_inbox_drain(struct net *net, uint32_t node);
// Let the process read one event.
void net_consume(struct net *net, struct event *event);

// Notify the socket's peer that this kernel does not know the connection.
void net_reset(struct net *net, uint32_t socket);
// Answer an event for a process that has ended, and release the event.
void net_conn_orphan(struct net *net, struct event *event);
void net_conn_consume(struct net *net, struct event *event);
void net_syn(struct net *net, struct event *event);
// Close one side; frees the connection when both sides are closed.
void net_side_close(struct net *net, uint32_t socket);
