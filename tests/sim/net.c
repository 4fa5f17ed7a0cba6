// SPDX-License-Identifier: BSD-3-Clause
// Hosts, the paths between them, and how an event travels through the network.
#include "net.h"

#include "net_inside.h"
#include "random.h"

#include <lib/must.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NET_DELAYS 4096

static const char *const net_event_names[NET_EVENT_COUNT] = {
	[NET_SYN] = "syn",	 [NET_HELLO] = "hello", [NET_OPENED] = "opened",
	[NET_ACCEPT] = "accept", [NET_FRAME] = "frame", [NET_FIN] = "fin",
	[NET_RESET] = "reset",	 [NET_FAIL] = "fail",	[NET_ROOM] = "room",
	[NET_RETRY] = "retry",	 [NET_STUCK] = "stuck", [NET_INBOX] = "inbox",
};

const char *net_event_name(uint32_t kind) {
	return kind < NET_EVENT_COUNT ? net_event_names[kind] : "?";
}

// Compute the quantile of the standard normal distribution by bisection. It is called a few
// thousand times only.
static double normal_quantile(double probability) {
	double low = -9;
	double high = 9;

	for (int n = 0; n < 60; n++) {
		double middle = (low + high) / 2;

		if (erfc(-middle / sqrt(2)) / 2 < probability)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

static void net_fill_delays(struct net *net) {
	double median = (double)net->config.delay_median_ns;
	double sigma = log((double)net->config.delay_p99_ns / median) / normal_quantile(0.99);

	for (uint32_t n = 0; n < NET_DELAYS; n++) {
		double normal = normal_quantile(((double)n + 0.5) / NET_DELAYS);

		net->delays[n] = (uint32_t)(median * exp(sigma * normal));
	}
	net->delays[NET_DELAYS] = net->delays[NET_DELAYS - 1];
}

int net_init(
	struct net *net,
	const struct net_config *config,
	struct queue *queue,
	struct trace *trace,
	const struct net_sink *sink,
	void *sink_ctx
) {
	must(config->nodes > 0 && config->hosts > 0 && config->hosts <= config->nodes);
	memset(net, 0, sizeof(*net));
	net->config = *config;
	net->queue = queue;
	net->trace = trace;
	net->sink = sink;
	net->sink_ctx = sink_ctx;
	net->random = random_stream(config->seed, 1);
	net->conn_free = NET_NOBODY;
	net->ending_node = NET_NOBODY;
	net->nodes = calloc(config->nodes, sizeof(*net->nodes));
	net->hosts = calloc(config->hosts, sizeof(*net->hosts));
	net->delays = calloc(NET_DELAYS + 1, sizeof(*net->delays));
	if (net->nodes == NULL || net->hosts == NULL || net->delays == NULL) {
		net_fini(net);
		return -ENOMEM;
	}
	for (uint32_t n = 0; n < config->nodes; n++) {
		net->nodes[n].host = (uint32_t)((uint64_t)n * config->hosts / config->nodes);
		net->nodes[n].inbox_end = &net->nodes[n].inbox;
	}
	net_fill_delays(net);
	return 0;
}

void net_release_list(struct net *net, struct event *event) {
	while (event != NULL) {
		struct event *next = event->next;

		queue_release(net->queue, event);
		event = next;
	}
}

void net_fini(struct net *net) {
	for (uint32_t n = 0; net->nodes != NULL && n < net->config.nodes; n++) {
		net_release_list(net, net->nodes[n].inbox);
		socket_map_fini(&net->nodes[n].sockets);
	}
	for (uint32_t n = 0; n < net->conn_count; n++) {
		net_release_list(net, net->troubles[n * 2].parked);
		net_release_list(net, net->troubles[n * 2 + 1].parked);
	}
	free(net->nodes);
	free(net->hosts);
	free(net->conns);
	free(net->troubles);
	free(net->cuts);
	free(net->delays);
}

static bool net_pair_is_cut(const struct net *net, uint32_t from, uint32_t to) {
	for (uint32_t n = 0; n < net->cut_count; n++) {
		const struct net_cut *cut = &net->cuts[n];

		if ((cut->a == from && cut->b == to) ||
		    (!cut->one_way && cut->a == to && cut->b == from))
			return true;
	}
	return false;
}

bool net_reaches(const struct net *net, uint32_t from, uint32_t to) {
	uint32_t from_index = net->nodes[from].host;
	uint32_t to_index = net->nodes[to].host;
	const struct net_host *from_host = &net->hosts[from_index];
	const struct net_host *to_host = &net->hosts[to_index];

	if (!net->faulty)
		return true;
	if (from_host->down || to_host->down)
		return false;
	if (from_index == to_index)
		return true;
	return !from_host->mute && !to_host->deaf && from_host->island == to_host->island &&
	       !net_pair_is_cut(net, from, to);
}

bool net_is_fenced(const struct net *net, uint32_t from, uint32_t to) {
	return net->faulty &&
	       net->hosts[net->nodes[from].host].fence != net->hosts[net->nodes[to].host].fence;
}

void net_faults_changed(struct net *net) {
	net->faulty = net->cut_count > 0;
	for (uint32_t n = 0; n < net->config.hosts && !net->faulty; n++) {
		const struct net_host *host = &net->hosts[n];

		net->faulty = host->down || host->deaf || host->mute || host->refuses ||
			      host->island != 0 || host->fence != 0 || host->slow_ns != 0 ||
			      host->loss_in_percent != 0 || host->loss_out_percent != 0;
	}
	net->faulty = net->faulty || net->leak_count > 0;
}

void net_pair_leak(struct net *net, uint32_t a, uint32_t b, uint32_t percent) {
	for (uint32_t n = net->leak_count; n-- > 0;) {
		const struct net_leak *leak = &net->leaks[n];

		if ((leak->a == a && leak->b == b) || (leak->a == b && leak->b == a))
			net->leaks[n] = net->leaks[--net->leak_count];
	}
	if (percent > 0) {
		must(net->leak_count < NET_LEAKS_MAX);
		net->leaks[net->leak_count++] = (struct net_leak){a, b, percent};
	}
	net_faults_changed(net);
}

double net_passes(const struct net *net, uint32_t a, uint32_t b) {
	const struct net_host *here = &net->hosts[net->nodes[a].host];
	const struct net_host *there = &net->hosts[net->nodes[b].host];
	double passes = (100 - here->loss_out_percent) / 100.0;

	if (here == there)
		return 1;
	passes *= (100 - there->loss_in_percent) / 100.0;
	for (uint32_t n = 0; n < net->leak_count; n++) {
		const struct net_leak *leak = &net->leaks[n];

		if ((leak->a == a && leak->b == b) || (leak->a == b && leak->b == a))
			passes *= (100 - leak->percent) / 100.0;
	}
	return passes;
}

uint32_t net_sent(
	const struct net *net, uint32_t node, uint32_t to, uint64_t *ret_sent, uint64_t *ret_again
) {
	const struct socket_map *map = &net->nodes[node].sockets;
	uint32_t connections = 0;

	*ret_sent = *ret_again = 0;
	for (uint32_t n = 0; n < map->capacity; n++) {
		uint32_t socket = map->places[n].socket;
		const struct net_conn *conn;

		if (socket == SOCKET_NONE)
			continue;
		conn = &net->conns[socket >> 1];
		if (conn->node[(socket & 1) ^ 1] != to || conn->side[socket & 1] != NET_SIDE_OPEN)
			continue;
		connections++;
		*ret_sent += net->troubles[socket].sent;
		*ret_again += net->troubles[socket].again;
	}
	return connections;
}

struct event *net_event(struct net *net, enum net_event kind, uint32_t socket, uint32_t size) {
	struct event *event = queue_event(net->queue, kind, size);

	event->target = socket;
	event->generation = net_conn_of(net, socket)->generation;
	return event;
}

#define NET_RTO_NS UINT64_C(200000000)

// Return the delay from lost packets: TCP retransmits with a doubling timeout.
static uint64_t net_lost_ns(struct net *net, uint32_t percent) {
	uint64_t wait_ns = NET_RTO_NS;
	uint64_t lost_ns = 0;

	while (lost_ns < net->config.user_timeout_ns && random_below(&net->random, 100) < percent) {
		lost_ns += wait_ns;
		wait_ns *= 2;
	}
	return lost_ns;
}

static bool passes(struct net *net, double chance) {
	return (double)random_below(&net->random, 1u << 30) < chance * (1u << 30);
}

// Return the delay from lost packets, with every try simulated: a packet whose acknowledgement is
// lost is retransmitted as well.
static uint64_t net_try_ns(struct net *net, uint32_t from, uint32_t to) {
	double there = net_passes(net, from, to), back = net_passes(net, to, from);
	uint64_t wait_ns = NET_RTO_NS, passed_ns = 0, arrived_ns = 0;
	bool arrived = false;

	if (there >= 1 && back >= 1)
		return 0;
	while (passed_ns < net->config.user_timeout_ns) {
		if (!arrived && passes(net, there)) {
			arrived = true;
			arrived_ns = passed_ns;
		}
		if (arrived && passes(net, back))
			return arrived_ns;
		net->travel_again++;
		passed_ns += wait_ns;
		wait_ns *= 2;
	}
	net->travel_failed = true;
	return arrived ? arrived_ns : passed_ns;
}

uint64_t net_travel(struct net *net, uint32_t from, uint32_t to, uint32_t size) {
	struct net_node *node = &net->nodes[from];
	uint64_t now_ns = net->queue->now_ns;
	uint64_t draw = splitmix_next(&net->random);
	uint32_t index = (uint32_t)draw % NET_DELAYS;
	uint32_t step = net->delays[index + 1] - net->delays[index];
	uint64_t at_ns = node->sent_until_ns > now_ns ? node->sent_until_ns : now_ns;

	net->travel_again = 0;
	net->travel_failed = false;
	// 10 Gb/s: 0.8 ns for a byte.
	at_ns += (uint64_t)size * 4 / 5;
	node->sent_until_ns = at_ns;
	at_ns += net->delays[index] + ((uint64_t)step * (draw >> 12 & 0xffff) >> 16);
	if (net->config.stall_ppm > 0 && (draw >> 32) * 1000000 >> 32 < net->config.stall_ppm) {
		at_ns += net->config.stall_ns;
		net->stalls++;
	}
	if (net->faulty) {
		const struct net_host *here = &net->hosts[node->host];
		const struct net_host *there = &net->hosts[net->nodes[to].host];

		at_ns += here->slow_ns + there->slow_ns;
		if (net->counts)
			return at_ns + net_try_ns(net, from, to);
		at_ns += net_lost_ns(net, here->loss_out_percent) +
			 net_lost_ns(net, there->loss_in_percent);
	}
	return at_ns;
}

void net_dispatch(struct net *net, struct event *event) {
	if (event->kind == NET_INBOX) {
		net_inbox(net, event);
		return;
	}
	if (net_conn_of(net, event->target)->generation != event->generation) {
		queue_release(net->queue, event);
		return;
	}
	switch (event->kind) {
	case NET_SYN:
		net_syn(net, event);
		break;
	case NET_RETRY:
		net_stream_retry(net, event);
		break;
	case NET_STUCK:
		net_stream_stuck(net, event);
		break;
	case NET_HELLO:
	case NET_OPENED:
	case NET_ACCEPT:
	case NET_FRAME:
	case NET_FIN:
		net_arrive(net, event);
		break;
	default:
		net_hand_over(net, net_conn_of(net, event->target)->node[event->target & 1], event);
		break;
	}
}
