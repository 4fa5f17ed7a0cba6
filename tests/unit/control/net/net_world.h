// SPDX-License-Identifier: BSD-3-Clause
// Transports of one process on one loop over loopback, and raw sockets that play their peers.
//
// The clock is a fake one: no deadline passes unless the test turns it. Sockets are real, so the
// loop is turned until what the test waits for has come.
#pragma once

#include "net/seal.h"

#include <control/loop.h>
#include <control/transport.h>
#include <lib/clock.h>
#include <support/cases.h>
#include <support/cmocka.h>

#define SEC UINT64_C(1000000000)
#define MS UINT64_C(1000000)
#define WORLD_START_NS (100 * SEC)
#define WORLD_AGENTS 2
#define WORLD_CONNS 64
#define WORLD_CLUSTER "test"

struct world_conn {
	bool known;
	bool opened;
	bool ended;
	enum ras_cause cause;
	struct sock_addr from;
	uint32_t frames;
	uint32_t writables;
	uint64_t bytes;
	uint64_t bad; // frames that are not as world_fill() made them
};

struct world_agent {
	struct transport *transport;
	uint32_t count; // numbers given so far, by either side
	uint32_t accepted;
	struct world_conn conns[WORLD_CONNS];
	uint32_t asked; // kernels that were asked: so many, the last of them, what it said
	struct sock_addr asked_host;
	bool answered;
	bool full;	   // accepts none
	bool plain_frames; // are not checked
	// Called at the end of each op, if set.
	void (*hook)(struct world_agent *agent, const char *op, uint32_t conn);
};

extern struct clock world_clock;
extern struct loop *world_loop;
extern struct world_agent world_agents[WORLD_AGENTS];
extern const struct seal_keys *world_keys;
// What agents are made with; a test may change it before world_start().
extern struct transport_config world_config;

// cmocka's setup and teardown: a loop and keys, no agent.
int world_setup(void **state);
int world_teardown(void **state);

void world_start(uint32_t agent);
// The number of a connection from one agent to another's listener, or to any address.
uint32_t world_open(uint32_t agent, const struct sock_addr *to);
// Both agents, with connection 0 of each being the other's.
void world_connect_pair(void);

// A frame by which the receiver knows what it should be.
void world_fill(uint8_t *frame, size_t size, uint32_t number);
// Sends frame number so and so of a connection, as transport_send().
int world_send(uint32_t agent, uint32_t conn, uint32_t number, size_t size);

// One turn that waits a little for something to happen.
void world_turn(void);
// Turns until the condition holds; fails the test when that takes far too long.
#define WORLD_UNTIL(condition)                                         \
	for (uint64_t since_ns_ = clock_monotonic_ns(); !(condition);) \
	world_wait(since_ns_, #condition)
void world_wait(uint64_t since_ns, const char *what);
// Turns until nothing more happens.
void world_settle(void);
void world_pass(uint64_t by_ns);

// Raw sockets, blocking with a time limit of some seconds.
struct sock_addr world_address(uint32_t agent);
struct sock_addr world_loopback(const char *host);
int raw_connect(const struct sock_addr *to, const char *from); // from NULL: the kernel's choice
int raw_listen(struct sock_addr *ret_address, int backlog);
int raw_accept(int listener);
void raw_send(int fd, const void *bytes, size_t size);
// False at the end of the stream or a reset.
bool raw_receive(int fd, void *bytes, size_t size);
// Waits for the end: 0, or -errno.
int raw_wait_end(int fd);
void raw_reset(int fd);

// Proves the key to an agent, whose side of it runs on the loop meanwhile. 0 or what seal said,
// -ENODATA if the agent hung up.
int raw_prove(int fd, struct seal *seal, const struct seal_keys *keys, enum seal_role role);
void raw_send_frame(int fd, struct seal *seal, const void *frame, size_t size);
// A raw peer that has proven the key to agent 0, on a connection of that number there.
int raw_member(struct seal *seal, uint32_t *ret_conn);
