// SPDX-License-Identifier: BSD-3-Clause
// Pairings on a virtual network: messages that are lost, repeated, reordered and delayed; drivers
// that take their time, fail or hang; nodes that crash and start again. All by one seed, in
// virtual time.
//
// The net plays driver and lane, and fails the test when it is asked for what must not be: a call
// for what does not exist or is still in a lane, a second connect, a hand-over before both ends are
// connected. After each step it checks that two ends which are both ready have each other.
#pragma once

#include "pairing/pairing_inside.h"
#include "pairing/pairing_message.h"

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
	struct pairing *pairing; // NULL: down
	uint64_t start;
	uint64_t wake_ns;
	struct net_pair pairs[NET_PAIRS_MAX];
	uint32_t pair_count; // that exist
	struct net_view views[NET_NODES_MAX];
	struct pairing_key wanted[NET_WANTED_MAX];
	uint32_t wanted_count;
	uint32_t next_queue_number;
	int refuse[NET_CALL_COUNT]; // what the operation itself returns
	int fail[NET_CALL_COUNT];   // what the answer says
	bool hold[NET_CALL_COUNT];  // the answer does not come before net_release()
	int hand_over_err;
	uint32_t asked[NET_CALL_COUNT];
	uint64_t begun_ns[NET_NODES_MAX]; // the last create for each peer
	uint64_t gap_ns[NET_NODES_MAX];	  // the shortest time between two of them
	uint32_t sent[PAIRING_MESSAGE_TYPE_END];
	uint32_t told[PAIRING_STATE_COUNT]; // changes of all keys
	uint32_t untold;		    // as the last of them said
	uint32_t fabric[NET_DEVICES_MAX];   // devices of different ones do not reach each other
	bool limited;			    // its ports are limited members of the partition
};

struct net {
	struct net_node nodes[NET_NODES_MAX];
	uint32_t node_count, device_count;
	uint64_t now_ns;
	uint64_t random;
	struct pairing_config config; // of all, but for self, start and seed
	// In percent.
	uint32_t loss, repeat, driver_errors;
	uint64_t delay_min_ns, delay_max_ns;
	uint64_t call_min_ns, call_max_ns;
	bool undeliverable;			// lost messages are told to the sender
	bool cut[NET_NODES_MAX][NET_NODES_MAX]; // nothing gets through
	// May change a message; true: it is lost.
	bool (*filter)(struct net *net, uint32_t from, uint32_t to, uint8_t *bytes, size_t *size);
	struct net_waiter waiters[NET_WAITERS_MAX];
	uint32_t waiter_count;
	struct net_event *events; // a heap by time, then order
	uint32_t event_count, event_room;
	uint64_t order;
};

// The only one at a time.
extern struct net net;

// With round trips of 1 ms, calls of 1 ms, nothing lost.
void net_create(uint32_t nodes, uint32_t devices, uint64_t seed);
// Stops all, and fails the test if a pair, a waiter or an attempt is left.
void net_destroy(void);
uint64_t net_random(void);
bool net_chance(uint32_t percent);

uint64_t net_id(uint32_t node);
struct pairing_key net_key(uint32_t device, uint32_t peer, uint32_t peer_device);
void net_want(uint32_t node, uint32_t device, uint32_t peer, uint32_t peer_device);
// All nodes want pairs of their first device with all others.
void net_want_all(void);
// The waiter's number.
uint32_t net_request(uint32_t node, struct pairing_key key, uint64_t timeout_ns);
// The only answer it had; fails the test if there is none.
const struct pairing_answer *net_answer(uint32_t waiter);

void net_pass(uint64_t ns);
// Until the next thing happens, at most until then. False: nothing did.
bool net_step(uint64_t until_ns);
struct pairing_view net_view(uint32_t node, struct pairing_key key);
bool net_is_ready(uint32_t node, uint32_t peer);
bool net_all_ready(void);
// Passes time until all that is wanted is ready; how long that took. Fails after a minute.
uint64_t net_settle(void);
// How long until this node has this state; fails after a minute.
uint64_t net_await(uint32_t node, struct pairing_key key, enum pairing_state state);
const struct pairing_counters *net_counters(uint32_t node);

// Down without a word. The others hear of it after a while, if told so.
void net_crash(uint32_t node, bool told);
void net_start(uint32_t node, bool told);
void net_tell(uint32_t node, uint32_t peer, enum pairing_peer_state state, uint64_t start);
// The operations of a ready pair fail.
void net_break(uint32_t node, struct pairing_key key);
void net_release(uint32_t node);
int net_inject(uint32_t from, uint32_t to, const struct pairing_message *message);
