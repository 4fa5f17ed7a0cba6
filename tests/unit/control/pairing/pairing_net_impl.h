// SPDX-License-Identifier: BSD-3-Clause
// What the parts of the net share: events to come, and the driver that each node plays.
#pragma once

#include "control/pairing/pairing_net.h"

enum event_kind {
	EVENT_MESSAGE,
	EVENT_UNDELIVERED,
	EVENT_ANSWER,
	EVENT_NEWS,
};

struct net_event {
	uint64_t at_ns, order;
	enum event_kind kind;
	uint32_t node;
	uint64_t start; // of the node, for which it is
	uint32_t from;	// message, news
	uint64_t from_start;
	enum pairing_peer_state state;
	enum net_call call;
	uint32_t generation;
	int err;
	size_t size;
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
};

// Takes a copy, and its place in the order of what happens at the same time.
void net_push(struct net_event *event);
uint64_t net_between(uint64_t min, uint64_t max);
// Of a node, which is what operations have as their ctx.
uint32_t net_index(const void *ctx);

void net_driver_ops(struct pairing_ops *ops);
// Fails the test if there is none.
struct net_pair *net_pair_get(struct net_node *node, uint32_t generation);
// Comes back later as an EVENT_ANSWER.
int net_ask(struct net_node *node, enum net_call call, uint32_t generation);
void net_driver_answer(struct net_node *node, const struct net_event *event);
