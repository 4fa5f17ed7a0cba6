// SPDX-License-Identifier: BSD-3-Clause
// tocsin-soft-bench: the software device compared with the cost of the same packets without it.
//
// A contender is a pair of processes. It plays one slice on request and sleeps otherwise, so that
// contenders can alternate. Side 0 starts, measures and reports.
#pragma once

#include <dataplane/soft.h>

#include <stdbool.h>
#include <stdint.h>

#define SOFT_SLICES 9
#define SOFT_WHY_MAX 239

enum soft_play {
	SOFT_PING,	  // half of a round trip, ns, median; both sides poll
	SOFT_PING_MEMORY, // the same; the answer is polled in memory
	SOFT_PING_BLOCK,  // the same; the program blocks until the answer
	SOFT_BULK,	  // payload bytes per second
	SOFT_RATE,	  // small writes per second of processor time of both sides
	SOFT_IDLE,	  // processor usage, % of a core
	SOFT_MEMORY,	  // resident MiB with `count` queue pairs
	SOFT_BLOCK_COST,  // one block-and-wake, ns
	SOFT_STOP,
};

struct soft_order {
	enum soft_play play;
	uint32_t count; // number of round trips or queue pairs
	uint32_t size;
	uint64_t duration_ns; // for bulk and rate
};

struct soft_kind;

// Setup of one contender. Side 1 has its own wire arguments and address.
struct soft_setup {
	const struct soft_kind *kind;
	const struct verbs_calls *calls;
	// Names of system devices; NULL: a software device as described below.
	const char *device[2];
	enum soft_wire_kind wire;
	const char *wire_args[2];
	const char *address[2]; // NULL: any address
	// Each side has its own network namespace, with one end of a veth pair named SOFT_VETH.
	// With the udp wire this end has the address.
	bool apart;
	bool together; // both sides on one core, so that a spinning side takes the other's time
	const char *faults;
	// Set: the caller drives the device; NULL: the device has its own thread.
	const struct clock *clock;
	uint8_t timeout;       // of the queue pairs
	uint32_t packet_bytes; // UDP payload of contenders without a device
};

#define SOFT_VETH "veth0"

// Reason of a failure as text. The first reason stays, since later failures follow from it.
struct soft_why {
	char text[SOFT_WHY_MAX + 1];
};

struct soft_side {
	const struct soft_setup *setup;
	uint32_t number;
	int link; // stream socket to the other side
	void *own;
	struct soft_why why;
};

struct soft_kind {
	int (*open)(struct soft_side *side);
	// Play a slice on both sides; side 0 returns the value. Returns 0 or -errno.
	int (*play)(struct soft_side *side, const struct soft_order *order, double *ret_value);
};

extern const struct soft_kind soft_verbs, soft_udp, soft_raw_dpdk;

struct soft_pair {
	int32_t pids[2];
	int orders[2];
	bool failed; // both sides have exited
};

// Start both sides. Returns 0, or -errno of the side that failed first, with the reason in `why`.
int soft_pair_start(
	const struct soft_setup *setup, struct soft_pair *ret_pair, struct soft_why *why
);
int soft_pair_play(
	struct soft_pair *pair,
	const struct soft_order *order,
	double *ret_value,
	struct soft_why *why
);
void soft_pair_stop(struct soft_pair *pair);

// Run a program and wait for its exit. Returns the exit status, SOFT_NOT_FOUND, or -errno.
#define SOFT_NOT_FOUND 127
int soft_program_run(const char *const words[], int in, int out);

// Both sides: create the namespaces and the veth pair of a setup with `apart`.
int soft_netns_enter(struct soft_side *side);

// Both sides: exchange data. Returns 0, -EPIPE if the other side has exited, or another -errno.
int soft_exchange(const struct soft_side *side, const void *mine, void *theirs, size_t size);
void soft_pin(uint32_t cpu);
void soft_unpin(void);
// Sort the values and return the median.
double soft_median(double *values, uint32_t count);
// Return err. Store the reason unless err is 0 or there is a reason already.
__attribute__((format(printf, 3, 4))) int
soft_fail(struct soft_why *why, int err, const char *format, ...);
