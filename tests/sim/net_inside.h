// SPDX-License-Identifier: BSD-3-Clause
// What the files of the network share: hosts and paths (net.c), streams (net_stream.c),
// connections and processes (net_conn.c).
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

// Of what is on its way to the socket.
static inline struct net_trouble *net_trouble_to(struct net *net, uint32_t to_socket) {
	return &net->troubles[to_socket ^ 1];
}

// An event about a socket, which goes nowhere if the connection has ended meanwhile.
struct event *net_event(struct net *net, enum net_event kind, uint32_t socket, uint32_t size);

void net_release_list(struct net *net, struct event *event);
// When `size` bytes that leave the node now are at the other one.
uint64_t net_travel(struct net *net, uint32_t from, uint32_t to, uint32_t size);
// Into the stream of the socket's peer, behind all that it sent.
void net_stream_push(struct net *net, uint32_t to_socket, struct event *event, uint32_t size);
// Something of a stream arrives.
void net_arrive(struct net *net, struct event *event);
// To the process that holds the socket, when it can take it.
void net_hand_over(struct net *net, uint32_t node, struct event *event);
void net_stream_retry(struct net *net, struct event *event);
void net_stream_stuck(struct net *net, struct event *event);
// One after the other, as fast as the wire is.
void net_inbox(struct net *net, struct event *event);
// All at once.
void net_inbox_drain(struct net *net, uint32_t node);
// The process reads an event.
void net_consume(struct net *net, struct event *event);

// Tells a socket's peer that its kernel knows no such connection.
void net_reset(struct net *net, uint32_t socket);
// Answers for a process that is gone, and releases the event.
void net_conn_orphan(struct net *net, struct event *event);
void net_conn_consume(struct net *net, struct event *event);
void net_syn(struct net *net, struct event *event);
// This side is done with it; frees the connection when both are.
void net_side_close(struct net *net, uint32_t socket);
