// SPDX-License-Identifier: BSD-3-Clause
// Streams: when data arrives, how it is delivered, and what happens on a cut path.
#include "net.h"
#include "net_inside.h"

#include <lib/must.h>

#include <errno.h>
#include <string.h>

#define NET_RETRY_FIRST_NS UINT64_C(200000000)

// Count retransmissions of a packet. TCP repeats them until the user timeout ends the connection.
static void net_count(struct net *net, uint32_t socket) {
	struct net_conn *conn = net_conn_of(net, socket);
	struct event *fail;

	net->troubles[socket].sent += 1 + net->travel_again;
	net->troubles[socket].again += net->travel_again;
	if (!net->travel_failed || conn->side[socket & 1] != NET_SIDE_OPEN)
		return;
	fail = net_event(net, NET_FAIL, socket, 0);
	fail->code = ETIMEDOUT;
	queue_push(net->queue, fail, net->queue->now_ns + net->config.user_timeout_ns);
}

void net_stream_push(struct net *net, uint32_t to_socket, struct event *event, uint32_t size) {
	struct net_conn *conn = net_conn_of(net, to_socket);
	uint32_t to = to_socket & 1;
	struct net_stream *stream = &conn->stream[to ^ 1];
	uint64_t at_ns = net_travel(net, conn->node[to ^ 1], conn->node[to], size);

	if (at_ns > stream->last_ns)
		stream->last_ns = at_ns;
	queue_push(net->queue, event, stream->last_ns);
	if (net->counts)
		net_count(net, to_socket ^ 1);
}

int net_send(struct net *net, uint32_t node, uint32_t handle, const void *frame, uint32_t size) {
	uint32_t socket = socket_map_find(&net->nodes[node].sockets, handle);
	struct net_stream *stream;
	struct event *event;

	if (net_is_ending(net, node, handle))
		return 0;
	must(socket != SOCKET_NONE);
	must(net_conn_of(net, socket)->side[socket & 1] == NET_SIDE_OPEN);
	stream = &net_conn_of(net, socket)->stream[socket & 1];
	if (stream->queued_bytes > 0 && stream->queued_bytes + size > net->config.buffer_bytes) {
		stream->wants_room = true;
		net->troubles[socket].moved_ns = net->queue->now_ns;
		if (!stream->watched) {
			stream->watched = true;
			event = net_event(net, NET_STUCK, socket, 0);
			queue_push(
				net->queue, event, net->queue->now_ns + net->config.user_timeout_ns
			);
		}
		return -EAGAIN;
	}
	stream->queued_bytes += size;
	net->nodes[node].sent_frames++;
	net->nodes[node].sent_bytes += size + NET_FRAME_OVERHEAD;
	event = net_event(net, NET_FRAME, socket ^ 1, size);
	memcpy(event->bytes, frame, size);
	net_stream_push(net, socket ^ 1, event, size + NET_FRAME_OVERHEAD);
	if (net->sink->coming != NULL)
		net->sink->coming(net->sink_ctx, net_conn_of(net, socket)->node[(socket & 1) ^ 1]);
	return 0;
}

// Handle a stream that is not acknowledged. TCP retries with a backoff until the path recovers or
// the user timeout ends the connection.
static void net_stream_cut(struct net *net, uint32_t to_socket) {
	struct net_stream *stream = &net_conn_of(net, to_socket)->stream[(to_socket & 1) ^ 1];

	if (stream->retrying)
		return;
	stream->retrying = true;
	stream->tries = 0;
	net_trouble_to(net, to_socket)->cut_ns = net->queue->now_ns;
	queue_push(
		net->queue, net_event(net, NET_RETRY, to_socket, 0),
		net->queue->now_ns + NET_RETRY_FIRST_NS
	);
}

static void net_park(struct net *net, struct event *event) {
	struct net_trouble *trouble = net_trouble_to(net, event->target);

	net_stream_cut(net, event->target);
	if (trouble->parked == NULL)
		trouble->parked_end = &trouble->parked;
	event->next = NULL;
	*trouble->parked_end = event;
	trouble->parked_end = &event->next;
}

// Handle the arrival of an event at the receiver's kernel.
static void net_received(struct net *net, struct event *event) {
	struct net_conn *conn = net_conn_of(net, event->target);
	uint32_t to = event->target & 1;

	if (conn->side[to] != NET_SIDE_CLOSED) {
		net_hand_over(net, conn->node[to], event);
		return;
	}
	// This end is closed: the kernel answers data with a reset and ignores a close.
	net_note(net, TRACE_LOST, conn->node[to], conn->node[to ^ 1], event);
	net->frames_lost += event->kind == NET_FRAME;
	if (event->kind == NET_FIN)
		net_side_close(net, event->target);
	else
		net_reset(net, event->target ^ 1);
	queue_release(net->queue, event);
}

// The firewall answers the sender with a reset. The receiver notices only when it sends something
// itself.
static void net_fence_off(struct net *net, struct event *event) {
	net->frames_lost += event->kind == NET_FRAME;
	if (event->kind == NET_FRAME)
		net_reset(net, event->target ^ 1);
	queue_release(net->queue, event);
}

void net_arrive(struct net *net, struct event *event) {
	struct net_conn *conn = net_conn_of(net, event->target);
	uint32_t to = event->target & 1;

	if (net->faulty || conn->stream[to ^ 1].retrying) {
		if (net_trouble_to(net, event->target)->parked != NULL ||
		    !net_reaches(net, conn->node[to ^ 1], conn->node[to])) {
			net_park(net, event);
			return;
		}
		// Data that arrives but cannot be acknowledged also runs into the sender's user
		// timeout.
		if (!net_reaches(net, conn->node[to], conn->node[to ^ 1]))
			net_stream_cut(net, event->target);
	}
	if (net_is_fenced(net, conn->node[to ^ 1], conn->node[to])) {
		net_fence_off(net, event);
		return;
	}
	net_received(net, event);
}

// Return when the node's downlink has received everything that is on it now.
static uint64_t net_free_at(const struct net *net, const struct net_node *node) {
	uint64_t now_ns = net->queue->now_ns;

	return node->received_until_ns > now_ns ? node->received_until_ns : now_ns;
}

void net_hand_over(struct net *net, uint32_t node_index, struct event *event) {
	struct net_node *node = &net->nodes[node_index];

	if (node->process == NET_PROCESS_RUNNING && node->inbox == NULL &&
	    node->received_until_ns <= net->queue->now_ns) {
		net_consume(net, event);
		return;
	}
	if (node->process == NET_PROCESS_NONE) {
		net_conn_orphan(net, event);
		return;
	}
	event->next = NULL;
	*node->inbox_end = event;
	node->inbox_end = &event->next;
	node->backlog += event->kind == NET_HELLO;
	if (node->process == NET_PROCESS_RUNNING && !node->draining) {
		struct event *drain = queue_event(net->queue, NET_INBOX, 0);

		node->draining = true;
		drain->target = node_index;
		drain->generation = node->epoch;
		queue_push(net->queue, drain, net_free_at(net, node));
	}
}

static struct event *net_inbox_take(struct net_node *node) {
	struct event *event = node->inbox;

	node->inbox = event->next;
	if (node->inbox == NULL)
		node->inbox_end = &node->inbox;
	node->backlog -= event->kind == NET_HELLO;
	return event;
}

void net_inbox(struct net *net, struct event *event) {
	struct net_node *node = &net->nodes[event->target];

	if (node->epoch != event->generation) {
		queue_release(net->queue, event);
		return;
	}
	while (node->process == NET_PROCESS_RUNNING && node->inbox != NULL &&
	       node->received_until_ns <= net->queue->now_ns)
		net_consume(net, net_inbox_take(node));
	if (node->epoch == event->generation && node->process == NET_PROCESS_RUNNING &&
	    node->inbox != NULL) {
		queue_push(net->queue, event, net_free_at(net, node));
		return;
	}
	node->draining = false;
	queue_release(net->queue, event);
}

void net_inbox_drain(struct net *net, uint32_t node_index) {
	struct net_node *node = &net->nodes[node_index];

	while (node->process == NET_PROCESS_RUNNING && node->inbox != NULL)
		net_consume(net, net_inbox_take(node));
}

// The process reads a frame, which frees space in the sender's buffer.
static void net_consume_frame(struct net *net, struct event *event) {
	struct net_conn *conn = net_conn_of(net, event->target);
	uint32_t to = event->target & 1;
	struct net_stream *stream = &conn->stream[to ^ 1];
	struct net_node *node = &net->nodes[conn->node[to]];
	uint32_t node_index = conn->node[to];

	stream->queued_bytes -= event->size;
	if (stream->wants_room)
		net_trouble_to(net, event->target)->moved_ns = net->queue->now_ns;
	if (stream->wants_room && stream->queued_bytes <= net->config.buffer_bytes / 2) {
		stream->wants_room = false;
		queue_push(
			net->queue, net_event(net, NET_ROOM, event->target ^ 1, 0),
			net_travel(net, conn->node[to], conn->node[to ^ 1], 0)
		);
	}
	if (node->received_until_ns < net->queue->now_ns)
		node->received_until_ns = net->queue->now_ns;
	node->received_until_ns += (uint64_t)(event->size + NET_FRAME_OVERHEAD) * 4 / 5;
	net->frames_delivered++;
	// Do not use `conn` after this call: the process may end the connection, or open others
	// and so move the table.
	net->sink->frame(net->sink_ctx, node_index, conn->handle[to], event->bytes, event->size);
	queue_release(net->queue, event);
}

void net_consume(struct net *net, struct event *event) {
	struct net_conn *conn = net_conn_of(net, event->target);
	uint32_t to = event->target & 1;

	if (conn->generation != event->generation || conn->side[to] == NET_SIDE_CLOSED) {
		queue_release(net->queue, event);
		return;
	}
	net_note(net, event->kind, conn->node[to], conn->node[to ^ 1], event);
	switch (event->kind) {
	case NET_FRAME:
		net_consume_frame(net, event);
		break;
	case NET_ROOM:
		net->sink->writable(net->sink_ctx, conn->node[to], conn->handle[to]);
		queue_release(net->queue, event);
		break;
	default:
		net_conn_consume(net, event);
		break;
	}
}

// The local kernel gives up the connection.
static void net_fail(struct net *net, uint32_t socket, int error) {
	struct event *fail = net_event(net, NET_FAIL, socket, 0);

	fail->code = (uint16_t)error;
	net_hand_over(net, net_conn_of(net, socket)->node[socket & 1], fail);
}

// Deliver a retransmitted event if the connection is still the same. A firewall may separate the
// hosts by now.
static void net_retransmitted(struct net *net, struct event *event) {
	struct net_conn *conn = net_conn_of(net, event->target);
	uint32_t to = event->target & 1;

	if (conn->generation != event->generation)
		queue_release(net->queue, event);
	else if (net_is_fenced(net, conn->node[to ^ 1], conn->node[to]))
		net_fence_off(net, event);
	else
		net_received(net, event);
}

// The path has recovered: deliver the waiting events.
static void net_unpark(struct net *net, uint32_t to_socket) {
	struct net_trouble *trouble = net_trouble_to(net, to_socket);
	struct event *parked = trouble->parked;

	trouble->parked = NULL;
	while (parked != NULL) {
		struct event *next = parked->next;

		net_retransmitted(net, parked);
		parked = next;
	}
}

// End a stream that had no acknowledgement for the user timeout. The sender may have closed it
// already.
static void net_stream_end(struct net *net, uint32_t to_socket) {
	struct net_conn *conn = net_conn_of(net, to_socket);
	struct net_stream *stream = &conn->stream[(to_socket & 1) ^ 1];
	struct net_trouble *trouble = net_trouble_to(net, to_socket);

	net_release_list(net, trouble->parked);
	trouble->parked = NULL;
	stream->retrying = false;
	if (conn->side[(to_socket & 1) ^ 1] != NET_SIDE_CLOSED)
		net_fail(net, to_socket ^ 1, ETIMEDOUT);
}

void net_stream_retry(struct net *net, struct event *event) {
	struct net_conn *conn = net_conn_of(net, event->target);
	uint32_t to = event->target & 1;
	struct net_stream *stream;
	uint64_t end_ns = net_trouble_to(net, event->target)->cut_ns + net->config.user_timeout_ns;
	uint32_t from_node = conn->node[to ^ 1];
	uint32_t to_node = conn->node[to];
	bool there = net_reaches(net, from_node, to_node);
	uint64_t next_ns;

	if (there)
		net_unpark(net, event->target);
	// The table of connections may have been moved by the callback.
	conn = net_conn_of(net, event->target);
	stream = &conn->stream[to ^ 1];
	if (conn->generation != event->generation) {
		queue_release(net->queue, event);
		return;
	}
	if (there && net_reaches(net, to_node, from_node)) {
		stream->retrying = false;
		queue_release(net->queue, event);
		return;
	}
	if (net->queue->now_ns >= end_ns) {
		net_stream_end(net, event->target);
		queue_release(net->queue, event);
		return;
	}
	stream->tries++;
	next_ns = net->queue->now_ns + (NET_RETRY_FIRST_NS << stream->tries);
	queue_push(net->queue, event, next_ns < end_ns ? next_ns : end_ns);
}

void net_stream_stuck(struct net *net, struct event *event) {
	struct net_conn *conn = net_conn_of(net, event->target);
	uint32_t side = event->target & 1;
	struct net_stream *stream = &conn->stream[side];
	uint64_t end_ns = net->troubles[event->target].moved_ns + net->config.user_timeout_ns;

	if (conn->side[side] == NET_SIDE_OPEN && stream->wants_room) {
		if (net->queue->now_ns < end_ns) {
			queue_push(net->queue, event, end_ns);
			return;
		}
		net_fail(net, event->target, ETIMEDOUT);
	}
	stream->watched = false;
	queue_release(net->queue, event);
}
