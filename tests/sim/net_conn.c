// SPDX-License-Identifier: BSD-3-Clause
// Connections from SYN to end, and the processes that own them.
#include "net.h"
#include "net_inside.h"

#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NET_SYN_RETRY_NS UINT64_C(1000000000)

static void net_conns_grow(struct net *net) {
	uint32_t capacity = net->conn_capacity > 0 ? 2 * net->conn_capacity : 1024;
	struct net_conn *conns =
		aligned_alloc(sizeof(struct net_conn), capacity * sizeof(struct net_conn));

	must(conns != NULL);
	if (net->conn_count > 0)
		memcpy(conns, net->conns, net->conn_count * sizeof(*conns));
	free(net->conns);
	net->conns = conns;
	net->troubles = realloc(net->troubles, capacity * 2 * sizeof(*net->troubles));
	must(net->troubles != NULL);
	net->conn_capacity = capacity;
}

static uint32_t net_conn_make(struct net *net) {
	uint32_t index = net->conn_free;
	struct net_conn *conn;
	uint32_t generation;

	if (index != NET_NOBODY) {
		net->conn_free = net->conns[index].next_free;
	} else {
		if (net->conn_count == net->conn_capacity)
			net_conns_grow(net);
		index = net->conn_count++;
		net->conns[index].generation = 0;
	}
	conn = &net->conns[index];
	generation = conn->generation;
	memset(conn, 0, sizeof(*conn));
	memset(&net->troubles[index * 2], 0, 2 * sizeof(*net->troubles));
	conn->generation = generation;
	net->conns_open++;
	return index;
}

static void net_conn_free(struct net *net, uint32_t index) {
	struct net_conn *conn = &net->conns[index];

	for (uint32_t side = 0; side < 2; side++) {
		struct net_trouble *trouble = &net->troubles[index * 2 + side];

		net_release_list(net, trouble->parked);
		trouble->parked = NULL;
	}
	conn->generation++; // invalidates the events that are still under way
	conn->next_free = net->conn_free;
	net->conn_free = index;
	net->conns_open--;
}

void net_side_close(struct net *net, uint32_t socket) {
	struct net_conn *conn = net_conn_of(net, socket);
	uint32_t side = socket & 1;
	enum net_side was = conn->side[side];

	if (was == NET_SIDE_CLOSED)
		return;
	if (was == NET_SIDE_OPEN || side == 0)
		socket_map_remove(&net->nodes[conn->node[side]].sockets, conn->handle[side]);
	conn->side[side] = NET_SIDE_CLOSED;
	if (conn->side[side ^ 1] == NET_SIDE_CLOSED || conn->side[side ^ 1] == NET_SIDE_NONE)
		net_conn_free(net, socket >> 1);
}

void net_reset(struct net *net, uint32_t socket) {
	struct net_conn *conn = net_conn_of(net, socket);
	uint32_t to = conn->node[socket & 1];
	uint32_t from = conn->node[(socket & 1) ^ 1];
	struct event *event;

	// A reset is sent only once, so a cut path loses it.
	if (conn->side[socket & 1] == NET_SIDE_CLOSED || !net_reaches(net, from, to))
		return;
	event = net_event(net, NET_RESET, socket, 0);
	event->code = ECONNRESET;
	queue_push(net->queue, event, net_travel(net, from, to, 0));
}

// Answer an event for a process that has ended.
void net_conn_orphan(struct net *net, struct event *event) {
	if (event->kind == NET_HELLO || event->kind == NET_ACCEPT) {
		net_reset(net, event->target ^ 1);
		net_side_close(net, event->target);
	}
	queue_release(net->queue, event);
}

void net_open(struct net *net, uint32_t node, uint32_t handle, uint32_t to) {
	uint32_t index = net_conn_make(net);
	struct net_conn *conn = &net->conns[index];
	struct event *event;

	conn->node[0] = node;
	conn->node[1] = to;
	conn->handle[0] = handle;
	conn->side[0] = NET_SIDE_OPENING;
	socket_map_add(&net->nodes[node].sockets, handle, index * 2);
	if (to == NET_NOBODY) {
		event = net_event(net, NET_FAIL, index * 2, 0);
		event->code = EHOSTUNREACH;
		queue_push(net->queue, event, net->queue->now_ns);
		return;
	}
	event = net_event(net, NET_SYN, index * 2 + 1, 0);
	queue_push(net->queue, event, net_travel(net, node, to, 0));
}

// Refuse the connection, by the kernel of the other host or of the common host.
static void net_refuse(struct net *net, uint32_t socket) {
	struct net_conn *conn = net_conn_of(net, socket);
	struct event *event = net_event(net, NET_FAIL, socket, 0);
	bool here = net->nodes[conn->node[0]].host == net->nodes[conn->node[1]].host &&
		    net->nodes[conn->node[1]].process == NET_PROCESS_NONE;

	event->code = here ? NET_REFUSED_HERE : ECONNREFUSED;
	queue_push(net->queue, event, net_travel(net, conn->node[1], conn->node[0], 0));
}

void net_syn(struct net *net, struct event *event) {
	uint32_t socket = event->target;
	struct net_conn *conn = net_conn_of(net, socket);
	struct net_node *node = &net->nodes[conn->node[1]];
	uint64_t waited_ns = NET_SYN_RETRY_NS << event->code;
	struct event *hello;

	if (!net_reaches(net, conn->node[0], conn->node[1]) ||
	    !net_reaches(net, conn->node[1], conn->node[0]) ||
	    node->backlog >= net->config.backlog_max) {
		if (waited_ns > net->config.user_timeout_ns) {
			event->kind = NET_FAIL;
			event->target = socket ^ 1;
			event->code = ETIMEDOUT;
			net_hand_over(net, conn->node[0], event);
			return;
		}
		event->code++;
		queue_push(net->queue, event, net->queue->now_ns + waited_ns);
		return;
	}
	if (node->process == NET_PROCESS_NONE || net->hosts[node->host].refuses ||
	    net_is_fenced(net, conn->node[0], conn->node[1])) {
		net_refuse(net, socket ^ 1);
		queue_release(net->queue, event);
		return;
	}
	net_note(net, NET_SYN, conn->node[1], conn->node[0], event);
	conn->side[1] = NET_SIDE_OPENING;
	conn->epoch = node->epoch;
	// The SYN-ACK returns first; the first message of the key proof follows.
	conn->stream[0].last_ns = net_travel(net, conn->node[1], conn->node[0], 0);
	hello = net_event(net, NET_HELLO, socket, 0);
	net->nodes[conn->node[0]].sent_bytes += NET_PROOF_BYTES;
	conn->stream[0].last_ns +=
		net_travel(net, conn->node[0], conn->node[1], NET_PROOF_BYTES) - net->queue->now_ns;
	queue_push(net->queue, hello, conn->stream[0].last_ns);
	queue_release(net->queue, event);
}

static void net_consume_hello(struct net *net, struct event *event) {
	struct net_conn *conn = net_conn_of(net, event->target);

	net->nodes[conn->node[1]].sent_bytes += NET_PROOF_BYTES;
	net_stream_push(
		net, event->target ^ 1, net_event(net, NET_OPENED, event->target ^ 1, 0),
		NET_PROOF_BYTES
	);
}

static void net_consume_opened(struct net *net, struct event *event) {
	struct net_conn *conn = net_conn_of(net, event->target);

	conn->side[0] = NET_SIDE_OPEN;
	net->nodes[conn->node[0]].sent_bytes += NET_PROOF_BYTES;
	net_stream_push(
		net, event->target ^ 1, net_event(net, NET_ACCEPT, event->target ^ 1, 0),
		NET_PROOF_BYTES
	);
	net->sink->opened(net->sink_ctx, conn->node[0], conn->handle[0]);
}

static void net_consume_accept(struct net *net, struct event *event) {
	struct net_conn *conn = net_conn_of(net, event->target);
	uint32_t node = conn->node[1];
	uint32_t handle;
	int err;

	err = net->sink->accepted(net->sink_ctx, node, conn->node[0], &handle);
	conn = net_conn_of(net, event->target);
	if (err != 0) {
		net_reset(net, event->target ^ 1);
		net_side_close(net, event->target);
		return;
	}
	conn->handle[1] = handle;
	conn->side[1] = NET_SIDE_OPEN;
	socket_map_add(&net->nodes[node].sockets, handle, event->target);
}

static void net_consume_end(struct net *net, struct event *event) {
	struct net_conn *conn = net_conn_of(net, event->target);
	uint32_t side = event->target & 1;
	bool known = side == 0 || conn->side[1] == NET_SIDE_OPEN;
	uint32_t node = conn->node[side];
	uint32_t handle = conn->handle[side];
	int error = event->code;

	// A closed side needs no notice. An accepting side whose handshake is not finished is
	// notified only when it sends.
	net_side_close(net, event->target);
	if (!known)
		return;
	net->ending_node = node;
	net->ending_handle = handle;
	net->sink->ended(net->sink_ctx, node, handle, error);
	net->ending_node = NET_NOBODY;
}

void net_conn_consume(struct net *net, struct event *event) {
	struct net_conn *conn = net_conn_of(net, event->target);

	if ((event->kind == NET_HELLO || event->kind == NET_ACCEPT) &&
	    conn->epoch != net->nodes[conn->node[1]].epoch) {
		net_conn_orphan(net, event);
		return;
	}
	switch (event->kind) {
	case NET_HELLO:
		net_consume_hello(net, event);
		break;
	case NET_OPENED:
		net_consume_opened(net, event);
		break;
	case NET_ACCEPT:
		net_consume_accept(net, event);
		break;
	default:
		net_consume_end(net, event);
		break;
	}
	queue_release(net->queue, event);
}

void net_close(struct net *net, uint32_t node, uint32_t handle) {
	uint32_t socket = socket_map_find(&net->nodes[node].sockets, handle);
	struct net_conn *conn;
	struct event *fin;

	if (net_is_ending(net, node, handle))
		return;
	must(socket != SOCKET_NONE);
	conn = net_conn_of(net, socket);
	if (conn->side[(socket & 1) ^ 1] == NET_SIDE_OPENING ||
	    conn->side[(socket & 1) ^ 1] == NET_SIDE_OPEN) {
		fin = net_event(net, NET_FIN, socket ^ 1, 0);
		fin->code = ECONNRESET;
		net_stream_push(net, socket ^ 1, fin, 0);
	}
	net_side_close(net, socket);
}

// Return a copy of the process's sockets, since closing one changes the table.
static uint32_t net_sockets(const struct net *net, uint32_t node, uint32_t **ret_sockets) {
	const struct socket_map *map = &net->nodes[node].sockets;
	uint32_t *sockets = calloc(map->count + 1, sizeof(*sockets));
	uint32_t count = 0;

	must(sockets != NULL);
	for (uint32_t n = 0; n < map->capacity; n++) {
		if (map->places[n].socket != SOCKET_NONE)
			sockets[count++] = map->places[n].socket;
	}
	*ret_sockets = sockets;
	return count;
}

void net_process_start(struct net *net, uint32_t node_index) {
	struct net_node *node = &net->nodes[node_index];

	must(node->process == NET_PROCESS_NONE && node->sockets.count == 0);
	node->process = NET_PROCESS_RUNNING;
	node->epoch++;
	node->draining = false;
}

// Release the input of a process that has ended. A kernel that still runs answers it.
static void net_inbox_abandon(struct net *net, struct net_node *node) {
	struct event *event = node->inbox;

	node->inbox = NULL;
	node->inbox_end = &node->inbox;
	node->backlog = 0;
	while (event != NULL) {
		struct event *next = event->next;

		if (net_conn_of(net, event->target)->generation == event->generation)
			net_conn_orphan(net, event);
		else
			queue_release(net->queue, event);
		event = next;
	}
}

void net_process_end(struct net *net, uint32_t node_index) {
	struct net_node *node = &net->nodes[node_index];
	uint32_t *sockets;
	uint32_t count = net_sockets(net, node_index, &sockets);

	node->process = NET_PROCESS_NONE;
	node->epoch++;
	for (uint32_t n = 0; n < count; n++) {
		struct net_conn *conn = net_conn_of(net, sockets[n]);

		net_close(net, node_index, conn->handle[sockets[n] & 1]);
	}
	free(sockets);
	net_inbox_abandon(net, node);
}

// Remove the process of a machine that is switched off. No peer is notified.
static void net_process_vanish(struct net *net, uint32_t node_index) {
	uint32_t *sockets;
	uint32_t count = net_sockets(net, node_index, &sockets);

	net->nodes[node_index].process = NET_PROCESS_NONE;
	net->nodes[node_index].epoch++;
	for (uint32_t n = 0; n < count; n++)
		net_side_close(net, sockets[n]);
	free(sockets);
	net_inbox_abandon(net, &net->nodes[node_index]);
}

void net_process_freeze(struct net *net, uint32_t node) {
	if (net->nodes[node].process == NET_PROCESS_RUNNING)
		net->nodes[node].process = NET_PROCESS_FROZEN;
}

void net_process_thaw(struct net *net, uint32_t node) {
	if (net->nodes[node].process != NET_PROCESS_FROZEN)
		return;
	net->nodes[node].process = NET_PROCESS_RUNNING;
	net_inbox_drain(net, node);
}

void net_process_cut(struct net *net, uint32_t node) {
	uint32_t *sockets;
	uint32_t count = net_sockets(net, node, &sockets);

	for (uint32_t n = 0; n < count * 2; n++) {
		struct net_conn *conn = net_conn_of(net, sockets[n / 2]);
		uint32_t socket = sockets[n / 2] ^ (n & 1);
		struct event *event;

		if (conn->side[socket & 1] != NET_SIDE_OPEN)
			continue;
		event = net_event(net, NET_RESET, socket, 0);
		event->code = ECONNRESET;
		queue_push(net->queue, event, net->queue->now_ns);
	}
	free(sockets);
}

void net_host_down(struct net *net, uint32_t host, bool down, bool keep_processes) {
	net->hosts[host].down = down;
	net_faults_changed(net);
	for (uint32_t n = 0; down && !keep_processes && n < net->config.nodes; n++) {
		if (net->nodes[n].host == host && net->nodes[n].process != NET_PROCESS_NONE)
			net_process_vanish(net, n);
	}
}

void net_host_set(struct net *net, uint32_t host, const struct net_host *wanted) {
	net->hosts[host] = *wanted;
	net_faults_changed(net);
}

void net_pair_cut(struct net *net, const struct net_cut *wanted, bool cut) {
	if (cut) {
		if (net->cut_count == net->cut_capacity) {
			net->cut_capacity = net->cut_capacity > 0 ? 2 * net->cut_capacity : 16;
			net->cuts = realloc(net->cuts, net->cut_capacity * sizeof(*net->cuts));
			must(net->cuts != NULL);
		}
		net->cuts[net->cut_count++] = *wanted;
	} else {
		for (uint32_t n = 0; n < net->cut_count; n++) {
			if (net->cuts[n].a == wanted->a && net->cuts[n].b == wanted->b &&
			    net->cuts[n].one_way == wanted->one_way) {
				net->cuts[n] = net->cuts[--net->cut_count];
				break;
			}
		}
	}
	net_faults_changed(net);
}
