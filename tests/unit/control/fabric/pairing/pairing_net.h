// SPDX-License-Identifier: BSD-3-Clause
// Pairings on a virtual network with one seed and virtual time. Messages are lost, repeated,
// reordered and delayed; drivers are slow, fail or hang; nodes crash and restart.
//
// The net simulates driver and lane. It fails the test on any forbidden call. Examples are a
// missing object, an object that is still in a lane, a second connect, or a hand-over before both
// ends are connected. After each step it checks that two ready ends belong to each other.
#pragma once

#include "fabric/pairing/pairing_inside.h"
#include "fabric/pairing/pairing_message.h"

#include <stdbool.h>
#include <stdint.h>

#define NET_NODES_MAX 8
#define NET_DEVICES_MAX 4
#define NET_PAIRS_MAX 512
#define NET_WAITERS_MAX 512
#define NET_WANTED_MAX 64
#define MS PAIRING_NS_PER_MS
#define SECOND PAIRING_NS_PER_SEC

struct net_pair {
	uint32_t generation; // 0: no pair
	struct pairing_key key;
	struct device_endpoint own, theirs;
	bool made, connected, in_lane, draining;
};

struct net_waiter {
	struct pairing_waiter waiter;
	uint32_t node;
	uint32_t answers;
	struct pairing_answer answer;
};

enum net_call {
	NET_CREATE,
	NET_CONNECT,
	NET_DRAIN,
	NET_DESTROY,
	NET_CALL_COUNT,
};

struct net_view {
	enum pairing_peer_state state;
	uint64_t start;
};

struct net_node {
	struct pairing *pairing; // NULL: node is down
	uint64_t start;
	uint64_t wake_ns;
	struct net_pair pairs[NET_PAIRS_MAX];
	uint32_t pair_count; // number of existing pairs
	struct net_view views[NET_NODES_MAX];
	struct pairing_key wanted[NET_WANTED_MAX];
	uint32_t wanted_count;
	uint32_t next_queue_number;
	int refuse[NET_CALL_COUNT]; // error of the operation itself
	int fail[NET_CALL_COUNT];   // error in the answer
	bool hold[NET_CALL_COUNT];  // delays the answer until net_release()
	int hand_over_err;
	uint32_t asked[NET_CALL_COUNT];
	uint64_t begun_ns[NET_NODES_MAX]; // start of the last create call, by peer
	uint64_t gap_ns[NET_NODES_MAX];	  // shortest time between two create calls, by peer
	uint32_t sent[PAIRING_MESSAGE_TYPE_END];
	uint32_t told[PAIRING_STATE_COUNT]; // state changes of all keys
	uint32_t untold;		    // number of unreported failures, from the last report
	uint32_t fabric[NET_DEVICES_MAX];   // devices of different fabrics cannot reach each other
	bool limited;			    // the ports are limited members of the partition
};

struct net {
	struct net_node nodes[NET_NODES_MAX];
	uint32_t node_count, device_count;
	uint64_t now_ns;
	uint64_t random;
	struct pairing_config config; // of all nodes, except for self, start and seed
	// Probabilities in percent.
	uint32_t loss, repeat, driver_errors;
	uint64_t delay_min_ns, delay_max_ns;
	uint64_t call_min_ns, call_max_ns;
	bool undeliverable;			// the sender is notified of lost messages
	bool cut[NET_NODES_MAX][NET_NODES_MAX]; // no message passes
	// May change a message. Returns true to lose it.
	bool (*filter)(struct net *net, uint32_t from, uint32_t to, uint8_t *bytes, size_t *size);
	struct net_waiter waiters[NET_WAITERS_MAX];
	uint32_t waiter_count;
	struct net_event *events; // heap, ordered by time, then by `order`
	uint32_t event_count, event_room;
	uint64_t order;
};

// The only instance at a time.
extern struct net net;

// Create nodes with round trips of 1 ms, calls of 1 ms and no loss.
void net_create(uint32_t nodes, uint32_t devices, uint64_t seed);
// Stop all nodes; fails the test if a pair, a waiter or an attempt is left.
void net_destroy(void);
uint64_t net_random(void);
bool net_chance(uint32_t percent);

uint64_t net_id(uint32_t node);
struct pairing_key net_key(uint32_t device, uint32_t peer, uint32_t peer_device);
void net_want(uint32_t node, uint32_t device, uint32_t peer, uint32_t peer_device);
// Let every node want pairs of its first device with all other nodes.
void net_want_all(void);
// Returns the waiter's number.
uint32_t net_request(uint32_t node, struct pairing_key key, uint64_t timeout_ns);
// Return the waiter's only answer; fails the test if there is none.
const struct pairing_answer *net_answer(uint32_t waiter);

void net_pass(uint64_t ns);
// Process the next event if it is not after `until_ns`. Returns false if there was none.
bool net_step(uint64_t until_ns);
struct pairing_view net_view(uint32_t node, struct pairing_key key);
bool net_is_ready(uint32_t node, uint32_t peer);
bool net_all_ready(void);
// Pass time until all wanted pairs are ready. Returns the time it took; fails after a minute.
uint64_t net_settle(void);
// Pass time until the node has this state. Returns the time it took; fails after a minute.
uint64_t net_await(uint32_t node, struct pairing_key key, enum pairing_state state);
const struct pairing_counters *net_counters(uint32_t node);

// Stop a node without notice. If `told`, the others learn of it after a while.
void net_crash(uint32_t node, bool told);
void net_start(uint32_t node, bool told);
void net_tell(uint32_t node, uint32_t peer, enum pairing_peer_state state, uint64_t start);
// Let the operations of a ready pair fail.
void net_break(uint32_t node, struct pairing_key key);
void net_release(uint32_t node);
int net_inject(uint32_t from, uint32_t to, const struct pairing_message *message);
