// SPDX-License-Identifier: BSD-3-Clause
// Simulated driver and lane of each node: the permitted calls in a pair's life, and delayed
// answers.
#include "control/fabric/pairing/pairing_net_impl.h"

#include <support/cmocka.h>

#include <errno.h>

static struct net_pair *pair_find(struct net_node *node, uint32_t generation) {
	for (uint32_t n = 0; n < NET_PAIRS_MAX; n++) {
		if (node->pairs[n].generation == generation)
			return &node->pairs[n];
	}
	return NULL;
}

struct net_pair *net_pair_get(struct net_node *node, uint32_t generation) {
	struct net_pair *pair = pair_find(node, generation);

	assert_non_null(pair);
	return pair;
}

int net_ask(struct net_node *node, enum net_call call, uint32_t generation) {
	struct net_event event = {
		.kind = EVENT_ANSWER,
		.node = net_index(node),
		.start = node->start,
		.call = call,
		.generation = generation,
		.err = node->fail[call],
		.at_ns = net.now_ns + net_between(net.call_min_ns, net.call_max_ns),
	};

	node->asked[call]++;
	if (node->hold[call])
		event.at_ns = UINT64_MAX;
	if (event.err == 0 && call != NET_DRAIN && net_chance(net.driver_errors))
		event.err = -EIO;
	net_push(&event);
	return 0;
}

static int op_create(void *ctx, const struct pairing_key *key, uint32_t generation, uint32_t psn) {
	struct net_node *node = ctx;
	struct net_pair *pair;
	uint32_t peer = (uint32_t)(key->peer - net_id(0));

	if (node->refuse[NET_CREATE] < 0)
		return node->refuse[NET_CREATE];
	assert_null(pair_find(node, generation));
	assert_in_range(psn, 0, 0xffffff);
	if (peer < NET_NODES_MAX) {
		if (node->begun_ns[peer] != 0 &&
		    net.now_ns - node->begun_ns[peer] < node->gap_ns[peer])
			node->gap_ns[peer] = net.now_ns - node->begun_ns[peer];
		node->begun_ns[peer] = net.now_ns;
	}
	pair = net_pair_get(node, 0);
	*pair = (struct net_pair){
		.generation = generation,
		.key = *key,
		.own = {.link = DEVICE_LINK_ETHERNET,
			.mtu = (uint16_t)(256 << net_index(node) % 5),
			.queue_number = 2 + node->next_queue_number++,
			.psn = psn,
			.pkey = node->limited ? 0x7fff : 0xffff},
	};
	pair->own.gid.raw[0] = 0xfe;
	pair->own.gid.raw[14] = (uint8_t)net_index(node);
	pair->own.gid.raw[15] = (uint8_t)key->device;
	return net_ask(node, NET_CREATE, generation);
}

static int
op_connect(void *ctx, uint32_t generation, const struct pairing_end *theirs, uint32_t flow_label) {
	struct net_node *node = ctx;
	struct net_pair *pair = net_pair_get(node, generation);

	if (node->refuse[NET_CONNECT] < 0)
		return node->refuse[NET_CONNECT];
	assert_true(pair->made && !pair->connected && pair->theirs.queue_number == 0);
	assert_in_range(flow_label, 0, 0xfffff);
	pair->theirs = theirs->endpoint;
	return net_ask(node, NET_CONNECT, generation);
}

static int op_hand_over(void *ctx, uint32_t generation) {
	struct net_node *node = ctx;
	struct net_pair *pair = net_pair_get(node, generation);

	assert_true(pair->connected && !pair->in_lane);
	if (node->hand_over_err < 0)
		return node->hand_over_err;
	pair->in_lane = true;
	return 0;
}

static int op_drain(void *ctx, uint32_t generation, const struct pairing_failure *failure) {
	struct net_node *node = ctx;
	struct net_pair *pair = net_pair_get(node, generation);

	if (node->refuse[NET_DRAIN] < 0)
		return node->refuse[NET_DRAIN];
	assert_true(pair->in_lane && !pair->draining);
	assert_true(failure->err < 0);
	pair->draining = true;
	return net_ask(node, NET_DRAIN, generation);
}

static int op_destroy(void *ctx, uint32_t generation) {
	struct net_node *node = ctx;
	struct net_pair *pair = net_pair_get(node, generation);

	if (node->refuse[NET_DESTROY] < 0)
		return node->refuse[NET_DESTROY];
	assert_true(pair->made && !pair->in_lane);
	return net_ask(node, NET_DESTROY, generation);
}

static void answer_create(struct net_node *node, const struct net_event *event) {
	struct net_pair *pair = net_pair_get(node, event->generation);
	struct device_endpoint endpoint = pair->own;

	if (event->err < 0) {
		*pair = (struct net_pair){0};
	} else {
		pair->made = true;
		node->pair_count++;
	}
	pairing_created(node->pairing, net.now_ns, event->generation, event->err, &endpoint);
}

void net_driver_answer(struct net_node *node, const struct net_event *event) {
	struct net_pair *pair = net_pair_get(node, event->generation);

	switch (event->call) {
	case NET_CREATE:
		answer_create(node, event);
		break;
	case NET_CONNECT:
		pair->connected = event->err == 0;
		pairing_connected(
			node->pairing, net.now_ns, event->generation, event->err,
			event->err < 0 ? "the card says no" : NULL
		);
		break;
	case NET_DRAIN:
		pair->in_lane = false;
		pair->draining = false;
		pairing_drained(node->pairing, net.now_ns, event->generation, NULL);
		break;
	default:
		if (event->err == 0) {
			*pair = (struct net_pair){0};
			node->pair_count--;
		}
		pairing_destroyed(node->pairing, net.now_ns, event->generation, event->err);
	}
}

void net_driver_ops(struct pairing_ops *ops) {
	ops->create = op_create;
	ops->connect = op_connect;
	ops->hand_over = op_hand_over;
	ops->drain = op_drain;
	ops->destroy = op_destroy;
}
