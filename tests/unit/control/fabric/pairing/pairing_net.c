// SPDX-License-Identifier: BSD-3-Clause
#include "control/fabric/pairing/pairing_net_impl.h"

#include <lib/splitmix.h>
#include <support/cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS (60 * SECOND)

struct net net;

uint64_t net_random(void) {
	return splitmix_next(&net.random);
}

bool net_chance(uint32_t percent) {
	return net_random() % 100 < percent;
}

uint64_t net_between(uint64_t min, uint64_t max) {
	return min + net_random() % (max - min + 1);
}

// Events

static bool is_before(const struct net_event *a, const struct net_event *b) {
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap_events(uint32_t a, uint32_t b) {
	struct net_event held = net.events[a];

	net.events[a] = net.events[b];
	net.events[b] = held;
}

static void sift_up(uint32_t n) {
	while (n > 0 && is_before(&net.events[n], &net.events[(n - 1) / 2])) {
		swap_events(n, (n - 1) / 2);
		n = (n - 1) / 2;
	}
}

void net_push(struct net_event *event) {
	if (net.event_count == net.event_room) {
		net.event_room = net.event_room * 2 + 64;
		net.events = realloc(net.events, net.event_room * sizeof(*net.events));
		must(net.events != NULL);
	}
	event->order = net.order++;
	net.events[net.event_count] = *event;
	sift_up(net.event_count++);
}

static void pop(struct net_event *ret_event) {
	uint32_t n = 0;

	*ret_event = net.events[0];
	net.events[0] = net.events[--net.event_count];
	while (2 * n + 1 < net.event_count) {
		uint32_t child = 2 * n + 1;

		if (child + 1 < net.event_count &&
		    is_before(&net.events[child + 1], &net.events[child]))
			child++;
		if (!is_before(&net.events[child], &net.events[n]))
			return;
		swap_events(n, child);
		n = child;
	}
}

// Names

uint64_t net_id(uint32_t node) {
	return 0x100 + node;
}

uint32_t net_index(const void *ctx) {
	return (uint32_t)((const struct net_node *)ctx - net.nodes);
}

static void device_name(uint32_t device, char name[static DEVICE_NAME_MAX + 1]) {
	snprintf(name, DEVICE_NAME_MAX + 1, "rdma%u", device);
}

struct pairing_key net_key(uint32_t device, uint32_t peer, uint32_t peer_device) {
	struct pairing_key key = {.device = device, .peer = net_id(peer)};

	device_name(peer_device, key.peer_device);
	return key;
}

// The relay

static void transmit(const struct net_event *message, bool lost) {
	struct net_event event = *message;

	event.at_ns = net.now_ns + net_between(net.delay_min_ns, net.delay_max_ns);
	if (lost && !net.undeliverable)
		return;
	if (lost) {
		event.kind = EVENT_UNDELIVERED;
		event.node = message->from;
		event.start = message->from_start;
		event.from = message->node;
	}
	net_push(&event);
}

static int
op_send(void *ctx, uint64_t peer, uint64_t start, const void *bytes, size_t size, uint32_t tag) {
	struct net_node *node = ctx;
	struct net_event event = {
		.kind = EVENT_MESSAGE,
		.node = (uint32_t)(peer - net_id(0)),
		.start = start,
		.from = net_index(node),
		.from_start = node->start,
		.generation = tag,
		.size = size,
	};
	bool lost;

	assert_in_range(size, 1, PAIRING_MESSAGE_BYTES_MAX);
	memcpy(event.bytes, bytes, size);
	node->sent[event.bytes[2]]++;
	if (event.node >= net.node_count)
		return -ENOENT;
	lost = net.cut[event.from][event.node] || net_chance(net.loss);
	if (net.filter != NULL &&
	    net.filter(&net, event.from, event.node, event.bytes, &event.size))
		lost = true;
	transmit(&event, lost);
	while (!lost && net_chance(net.repeat))
		transmit(&event, false);
	return 0;
}

static int op_peer(void *ctx, uint64_t peer, uint64_t *ret_start) {
	struct net_node *node = ctx;
	uint32_t n = (uint32_t)(peer - net_id(0));

	if (peer < net_id(0) || n >= net.node_count)
		return -ENOENT;
	if (node->views[n].state != PAIRING_PEER_IS_ALIVE)
		return -EHOSTDOWN;
	*ret_start = node->views[n].start;
	return 0;
}

static int op_check(
	void *ctx,
	uint32_t device,
	const struct device_endpoint *theirs,
	char ret_reason[static DEVICE_REASON_MAX + 1]
) {
	struct net_node *node = ctx;
	const struct net_node *peer = &net.nodes[theirs->gid.raw[14] % NET_NODES_MAX];

	if (peer->fabric[theirs->gid.raw[15] % NET_DEVICES_MAX] == node->fabric[device])
		return node->limited && (theirs->pkey & DEVICE_PKEY_FULL) == 0 && theirs->pkey != 0
			       ? -EKEYREJECTED
			       : 0;
	snprintf(ret_reason, DEVICE_REASON_MAX + 1, "one is InfiniBand, the other Ethernet");
	return -EPROTONOSUPPORT;
}

static void op_wake(void *ctx, uint64_t at_ns) {
	((struct net_node *)ctx)->wake_ns = at_ns;
}

static void op_changed(void *ctx, const struct pairing_key *key, enum pairing_state state) {
	struct net_node *node = ctx;
	struct pairing_view view;

	assert_true(pairing_find(node->pairing, key, &view));
	assert_int_equal(view.state, state);
	node->told[state]++;
	if (state == PAIRING_FAILED || state == PAIRING_READY)
		node->untold = view.untold;
}

// Nodes

static void node_up(uint32_t n) {
	struct net_node *node = &net.nodes[n];
	struct pairing_ops ops = {
		.send = op_send,
		.peer = op_peer,
		.check = op_check,
		.wake = op_wake,
		.changed = op_changed,
		.ctx = node,
	};
	struct pairing_config config = net.config;
	struct pairing_device device = {.responder = DEVICE_RESPONDER_HARDWARE};
	uint32_t index;

	net_driver_ops(&ops);
	config.self = net_id(n);
	config.start = node->start;
	config.random_seed = net_random();
	node->wake_ns = PAIRING_NEVER;
	assert_int_equal(pairing_create(&config, &ops, &node->pairing), 0);
	for (uint32_t d = 0; d < net.device_count; d++) {
		device_name(d, device.name);
		assert_int_equal(pairing_device(node->pairing, &device, &index), 0);
		assert_int_equal(index, d);
		pairing_device_state(node->pairing, net.now_ns, d, PAIRING_DEVICE_ACTIVE, NULL);
	}
	for (uint32_t w = 0; w < node->wanted_count; w++)
		assert_int_equal(
			pairing_set_wanted(node->pairing, net.now_ns, &node->wanted[w], true), 0
		);
}

void net_create(uint32_t nodes, uint32_t devices, uint64_t seed) {
	struct net_event *events = net.events;
	uint32_t room = net.event_room;

	must(nodes <= NET_NODES_MAX && devices <= NET_DEVICES_MAX);
	net = (struct net){
		.node_count = nodes,
		.device_count = devices,
		.now_ns = SECOND,
		.random = seed,
		.delay_min_ns = MS / 2,
		.delay_max_ns = MS / 2,
		.call_min_ns = MS,
		.call_max_ns = MS,
		.events = events,
		.event_room = room,
	};
	for (uint32_t n = 0; n < nodes; n++) {
		net.nodes[n].start = 1;
		for (uint32_t peer = 0; peer < nodes; peer++) {
			net.nodes[n].views[peer] = (struct net_view){PAIRING_PEER_IS_ALIVE, 1};
			net.nodes[n].gap_ns[peer] = PAIRING_NEVER;
		}
		node_up(n);
	}
}

void net_want(uint32_t n, uint32_t device, uint32_t peer, uint32_t peer_device) {
	struct net_node *node = &net.nodes[n];
	struct pairing_key key = net_key(device, peer, peer_device);

	must(node->wanted_count < NET_WANTED_MAX);
	node->wanted[node->wanted_count++] = key;
	if (node->pairing != NULL)
		assert_int_equal(pairing_set_wanted(node->pairing, net.now_ns, &key, true), 0);
}

void net_want_all(void) {
	for (uint32_t n = 0; n < net.node_count; n++) {
		for (uint32_t peer = 0; peer < net.node_count; peer++) {
			if (peer != n)
				net_want(n, 0, peer, 0);
		}
	}
}

static void on_answered(struct pairing_waiter *waiter, const struct pairing_answer *answer) {
	struct net_waiter *own = (struct net_waiter *)waiter;

	own->answers++;
	assert_int_equal(own->answers, 1);
	own->answer = *answer;
}

uint32_t net_request(uint32_t node, struct pairing_key key, uint64_t timeout_ns) {
	uint32_t n = net.waiter_count++ % NET_WAITERS_MAX;
	struct net_waiter *waiter = &net.waiters[n];
	struct pairing_answer answer;

	// The slot is reused, so its former waiter must have been answered.
	assert_true(net.waiter_count <= NET_WAITERS_MAX || waiter->answers == 1);
	*waiter = (struct net_waiter){.node = node, .waiter.answered = on_answered};
	if (pairing_request(
		    net.nodes[node].pairing, net.now_ns, &key,
		    timeout_ns == PAIRING_NEVER ? timeout_ns : net.now_ns + timeout_ns,
		    &waiter->waiter, &answer
	    )) {
		assert_int_equal(waiter->answers, 0);
		on_answered(&waiter->waiter, &answer);
	}
	return n;
}

const struct pairing_answer *net_answer(uint32_t waiter) {
	assert_int_equal(net.waiters[waiter].answers, 1);
	return &net.waiters[waiter].answer;
}

void net_tell(uint32_t n, uint32_t peer, enum pairing_peer_state state, uint64_t start) {
	struct net_node *node = &net.nodes[n];

	if (start < node->views[peer].start)
		return;
	node->views[peer] = (struct net_view){state, start};
	if (node->pairing != NULL)
		pairing_peer(node->pairing, net.now_ns, net_id(peer), state, start);
}

static void tell_all(uint32_t node, enum pairing_peer_state state) {
	for (uint32_t n = 0; n < net.node_count; n++) {
		struct net_event event = {
			.kind = EVENT_NEWS,
			.node = n,
			.from = node,
			.from_start = net.nodes[node].start,
			.state = state,
			.at_ns = net.now_ns + net_between(net.delay_min_ns, 4 * net.delay_max_ns),
		};

		if (n != node)
			net_push(&event);
	}
}

void net_crash(uint32_t n, bool told) {
	struct net_node *node = &net.nodes[n];

	node->pairing = pairing_destroy(node->pairing);
	memset(node->pairs, 0, sizeof(node->pairs));
	node->pair_count = 0;
	node->wake_ns = PAIRING_NEVER;
	if (told)
		tell_all(n, PAIRING_PEER_HAS_DIED);
}

void net_start(uint32_t n, bool told) {
	net.nodes[n].start++;
	memset(net.nodes[n].hold, 0, sizeof(net.nodes[n].hold));
	node_up(n);
	if (told)
		tell_all(n, PAIRING_PEER_IS_ALIVE);
}

void net_break(uint32_t n, struct pairing_key key) {
	struct net_node *node = &net.nodes[n];
	struct pairing_view view;
	struct net_pair *pair;

	if (!pairing_find(node->pairing, &key, &view) || view.state != PAIRING_READY)
		return;
	pair = net_pair_get(node, view.generation);
	pair->draining = true;
	pairing_broken(node->pairing, net.now_ns, view.generation, -EIO, "RETRY_EXC_ERR of a read");
	net_ask(node, NET_DRAIN, view.generation);
}

void net_release(uint32_t node) {
	memset(net.nodes[node].hold, 0, sizeof(net.nodes[node].hold));
	for (uint32_t n = 0; n < net.event_count; n++) {
		if (net.events[n].at_ns == UINT64_MAX && net.events[n].node == node) {
			net.events[n].at_ns = net.now_ns;
			sift_up(n);
		}
	}
}

int net_inject(uint32_t from, uint32_t to, const struct pairing_message *message) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
	size_t size = pairing_message_encode(message, bytes);

	return pairing_receive(
		net.nodes[to].pairing, net.now_ns, net_id(from), net.nodes[from].start, bytes, size
	);
}

// Invariants

static void check_end(const struct device_endpoint *told, const struct device_endpoint *real) {
	assert_int_equal(told->queue_number, real->queue_number);
	assert_int_equal(told->psn, real->psn);
	assert_int_equal(told->mtu, real->mtu);
	assert_memory_equal(&told->gid, &real->gid, sizeof(real->gid));
}

static void check_ends(uint32_t n, const struct pairing_view *view) {
	uint32_t peer = (uint32_t)(view->key.peer - net_id(0));
	struct net_node *node = &net.nodes[n], *other = &net.nodes[peer];
	struct net_pair *own, *theirs;
	struct pairing_view back;
	struct pairing_key key = {.peer = net_id(n)};

	if (other->pairing == NULL || view->theirs.start != other->start)
		return;
	snprintf(key.peer_device, sizeof(key.peer_device), "rdma%u", view->key.device);
	key.device = (uint32_t)(view->key.peer_device[4] - '0');
	own = net_pair_get(node, view->generation);
	assert_true(own->in_lane && own->connected);
	if (!pairing_find(other->pairing, &key, &back) || back.state != PAIRING_READY ||
	    back.theirs.start != node->start)
		return;
	theirs = net_pair_get(other, back.generation);
	assert_int_equal(view->theirs.generation, back.generation);
	assert_int_equal(back.theirs.generation, view->generation);
	check_end(&own->theirs, &theirs->own);
	check_end(&theirs->theirs, &own->own);
}

static void check(uint32_t n) {
	const struct net_node *node = &net.nodes[n];
	struct pairing_view view;

	for (uint32_t cursor = 0;
	     node->pairing != NULL && pairing_next(node->pairing, &cursor, &view);) {
		assert_true(view.retired <= 2);
		if (view.state == PAIRING_READY)
			check_ends(n, &view);
	}
}

// Time

static void happen(const struct net_event *event) {
	struct net_node *node = &net.nodes[event->node];

	if (event->kind == EVENT_NEWS) {
		net_tell(event->node, event->from, event->state, event->from_start);
		return;
	}
	// The relay delivers only to the start that was addressed.
	if (node->pairing == NULL || node->start != event->start)
		return;
	if (event->kind == EVENT_ANSWER)
		net_driver_answer(node, event);
	else if (event->kind == EVENT_UNDELIVERED)
		pairing_undelivered(
			node->pairing, net.now_ns, net_id(event->from), event->generation,
			"address not routable"
		);
	else
		pairing_receive(
			node->pairing, net.now_ns, net_id(event->from), event->from_start,
			event->bytes, event->size
		);
}

bool net_step(uint64_t until_ns) {
	uint64_t at_ns = net.event_count > 0 ? net.events[0].at_ns : UINT64_MAX;
	uint32_t waker = NET_NODES_MAX;
	struct net_event event;

	for (uint32_t n = 0; n < net.node_count; n++) {
		if (net.nodes[n].pairing != NULL && net.nodes[n].wake_ns < at_ns) {
			at_ns = net.nodes[n].wake_ns;
			waker = n;
		}
	}
	if (at_ns > until_ns || at_ns == UINT64_MAX) {
		if (until_ns > net.now_ns)
			net.now_ns = until_ns;
		return false;
	}
	if (at_ns > net.now_ns)
		net.now_ns = at_ns;
	if (waker < NET_NODES_MAX) {
		net.nodes[waker].wake_ns = PAIRING_NEVER;
		pairing_tick(net.nodes[waker].pairing, net.now_ns);
		check(waker);
		return true;
	}
	pop(&event);
	happen(&event);
	check(event.node);
	return true;
}

void net_pass(uint64_t ns) {
	uint64_t until_ns = net.now_ns + ns;

	while (net_step(until_ns))
		;
}

// Queries

struct pairing_view net_view(uint32_t node, struct pairing_key key) {
	struct pairing_view view = {0};

	pairing_find(net.nodes[node].pairing, &key, &view);
	return view;
}

bool net_is_ready(uint32_t node, uint32_t peer) {
	return net_view(node, net_key(0, peer, 0)).state == PAIRING_READY;
}

bool net_all_ready(void) {
	for (uint32_t n = 0; n < net.node_count; n++) {
		const struct net_node *node = &net.nodes[n];

		for (uint32_t w = 0; node->pairing != NULL && w < node->wanted_count; w++) {
			if (net_view(n, node->wanted[w]).state != PAIRING_READY)
				return false;
		}
	}
	return true;
}

uint64_t net_settle(void) {
	uint64_t from_ns = net.now_ns;

	while (!net_all_ready()) {
		assert_true(net_step(from_ns + PATIENCE_NS));
		assert_true(net.now_ns < from_ns + PATIENCE_NS);
	}
	return net.now_ns - from_ns;
}

uint64_t net_await(uint32_t node, struct pairing_key key, enum pairing_state state) {
	uint64_t from_ns = net.now_ns;

	while (net_view(node, key).state != state) {
		assert_true(net_step(from_ns + PATIENCE_NS));
		assert_true(net.now_ns < from_ns + PATIENCE_NS);
	}
	return net.now_ns - from_ns;
}

const struct pairing_counters *net_counters(uint32_t node) {
	return pairing_counters(net.nodes[node].pairing);
}

void net_destroy(void) {
	net.driver_errors = 0;
	for (uint32_t n = 0; n < net.node_count; n++) {
		memset(net.nodes[n].fail, 0, sizeof(net.nodes[n].fail));
		memset(net.nodes[n].refuse, 0, sizeof(net.nodes[n].refuse));
		net_release(n);
		if (net.nodes[n].pairing != NULL)
			pairing_stop(net.nodes[n].pairing, net.now_ns);
	}
	net_pass(60 * SECOND);
	for (uint32_t n = 0; n < net.node_count; n++) {
		struct net_node *node = &net.nodes[n];

		if (node->pairing == NULL)
			continue;
		assert_true(pairing_is_empty(node->pairing));
		assert_int_equal(node->pair_count, 0);
		for (uint32_t p = 0; p < NET_PAIRS_MAX; p++)
			assert_int_equal(node->pairs[p].generation, 0);
		node->pairing = pairing_destroy(node->pairing);
	}
	for (uint32_t w = 0; w < net.waiter_count && w < NET_WAITERS_MAX; w++)
		assert_int_equal(net.waiters[w].answers, 1);
	free(net.events);
	net.events = NULL;
	net.event_room = 0;
	net.event_count = 0;
}
