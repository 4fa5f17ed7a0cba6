// SPDX-License-Identifier: BSD-3-Clause
// Transports of one process on one loop over loopback, and raw sockets as their peers.
//
// The clock is fake: no deadline passes unless the test advances it. The sockets are real, so the
// test turns the loop until the expected event.
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
	uint64_t bad; // frames that differ from what world_fill() made
};

struct world_agent {
	struct transport *transport;
	uint32_t count; // numbers assigned so far, by both sides
	uint32_t accepted;
	struct world_conn conns[WORLD_CONNS];
	uint32_t asked; // kernels probed: their number, the last one, and its result
	struct sock_addr asked_host;
	bool answered;
	bool full;	   // accepts no frame
	bool plain_frames; // frame contents are not checked
	// Called at the end of each op, if not NULL.
	void (*hook)(struct world_agent *agent, const char *op, uint32_t conn);
};

extern struct clock world_clock;
extern struct loop *world_loop;
extern struct world_agent world_agents[WORLD_AGENTS];
extern const struct seal_keys *world_keys;
// Configuration of the agents; a test may change it before world_start().
extern struct transport_config world_config;

// cmocka fixtures: a loop and keys, no agent.
int world_setup(void **state);
int world_teardown(void **state);

void world_start(uint32_t agent);
// Connect an agent to another agent's listener, or to any address. Returns the connection's
// number.
uint32_t world_open(uint32_t agent, const struct sock_addr *to);
// Start both agents and connect them; connection 0 of each leads to the other.
void world_connect_pair(void);

// Fill a frame so that the receiver can verify it.
void world_fill(uint8_t *frame, size_t size, uint32_t number);
// Send frame `number` on a connection. Returns the result of transport_send().
int world_send(uint32_t agent, uint32_t conn, uint32_t number, size_t size);

// Make one turn with a short wait for an event.
void world_turn(void);
// Turn until the condition holds; fails the test after a long time.
#define WORLD_UNTIL(condition)                                         \
	for (uint64_t since_ns_ = clock_monotonic_ns(); !(condition);) \
	world_wait(since_ns_, #condition)
void world_wait(uint64_t since_ns, const char *what);
// Turn until nothing more happens.
void world_settle(void);
void world_pass(uint64_t by_ns);

// Raw sockets, blocking, with a time limit of some seconds.
struct sock_addr world_address(uint32_t agent);
struct sock_addr world_loopback(const char *host);
int raw_connect(const struct sock_addr *to, const char *from); // from NULL: the kernel chooses
int raw_listen(struct sock_addr *ret_address, int backlog);
int raw_accept(int listener);
void raw_send(int fd, const void *bytes, size_t size);
// Returns false at the end of the stream or after a reset.
bool raw_receive(int fd, void *bytes, size_t size);
// Wait for the end of the connection. Returns 0 or -errno.
int raw_wait_end(int fd);
void raw_reset(int fd);

// Prove the key to an agent, while the loop runs the agent's side. Returns 0, the error of seal,
// or -ENODATA if the agent closed the connection.
int raw_prove(int fd, struct seal *seal, const struct seal_keys *keys, enum seal_role role);
void raw_send_frame(int fd, struct seal *seal, const void *frame, size_t size);
// Connect a raw peer to agent 0 and prove the key. Returns the socket, and the agent's connection
// number.
int raw_member(struct seal *seal, uint32_t *ret_conn);
