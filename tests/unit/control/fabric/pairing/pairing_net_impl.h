// SPDX-License-Identifier: BSD-3-Clause
// Internal interface of the net: future events, and the simulated driver of each node.
#pragma once

#include "control/fabric/pairing/pairing_net.h"

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
	uint64_t start; // start of the receiving node
	uint32_t from;	// sender of a message; subject of news
	uint64_t from_start;
	enum pairing_peer_state state;
	enum net_call call;
	uint32_t generation;
	int err;
	size_t size;
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
};

// Enqueue a copy, behind the events of the same time.
void net_push(struct net_event *event);
uint64_t net_between(uint64_t min, uint64_t max);
// Return the index of a node from the ctx of its operations.
uint32_t net_index(const void *ctx);

void net_driver_ops(struct pairing_ops *ops);
// Return the pair; fails the test if there is none.
struct net_pair *net_pair_get(struct net_node *node, uint32_t generation);
// Schedule the answer of a call as an EVENT_ANSWER.
int net_ask(struct net_node *node, enum net_call call, uint32_t generation);
void net_driver_answer(struct net_node *node, const struct net_event *event);
