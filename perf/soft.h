// SPDX-License-Identifier: BSD-3-Clause
// tocsin-soft-bench: the software device beside what the same packets cost without it.
//
// A contender is a pair of processes, which play one slice when they are told to and sleep
// otherwise, so that contenders can take turns. Side 0 begins, measures and answers.
#pragma once

#include <dataplane/soft.h>

#include <stdbool.h>
#include <stdint.h>

#define SOFT_SLICES 9
#define SOFT_WHY_MAX 239

enum soft_play {
	SOFT_PING,	  // half of a round trip, ns, median; nobody sleeps
	SOFT_PING_MEMORY, // the same, an answer is awaited in memory
	SOFT_PING_BLOCK,  // the same, an answer is slept for
	SOFT_BULK,	  // bytes of payload a second
	SOFT_RATE,	  // small writes a second of processor time, both sides'
	SOFT_IDLE,	  // the share of a core, %
	SOFT_MEMORY,	  // resident MiB with `count` queue pairs
	SOFT_BLOCK_COST,  // ns of one block-and-wake
	SOFT_STOP,
};

struct soft_order {
	enum soft_play play;
	uint32_t count; // round trips
	uint32_t size;
	uint64_t duration_ns; // of bulk and rate
};

struct soft_kind;

// How one contender is made; side 1 has args and an address of its own.
struct soft_setup {
	const struct soft_kind *kind;
	const struct verbs_calls *calls;
	const char *device[2]; // names of the system's; NULL: made by the next ones
	enum soft_wire_kind wire;
	const char *wire_args[2];
	const char *address[2]; // NULL: any
	// Each side in a network namespace of its own, with one end of a veth pair as SOFT_VETH,
	// which has the address if the wire is udp.
	bool apart;
	bool together; // both sides on one core, where one's spinning takes the other's time
	const char *faults;
	const struct clock *clock; // the caller drives the device; NULL: it does so itself
	uint8_t timeout;	   // of queue pairs
	uint32_t packet_bytes;	   // of what has no device: UDP payload
};

#define SOFT_VETH "veth0"

// In words; the first one said is kept, what comes of it is not.
struct soft_why {
	char text[SOFT_WHY_MAX + 1];
};

struct soft_side {
	const struct soft_setup *setup;
	uint32_t number;
	int link; // a stream to the other side
	void *own;
	struct soft_why why;
};

struct soft_kind {
	int (*open)(struct soft_side *side);
	// Both sides play; the value is side 0's. 0 or -errno.
	int (*play)(struct soft_side *side, const struct soft_order *order, double *ret_value);
};

extern const struct soft_kind soft_verbs, soft_udp, soft_raw_dpdk;

struct soft_pair {
	int32_t pids[2];
	int orders[2];
	bool failed; // both sides have ended
};

// 0, or -errno of the side that failed first, and why in words.
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

// Runs a program to its end: its exit status, SOFT_NOT_FOUND, or -errno.
#define SOFT_NOT_FOUND 127
int soft_program_run(const char *const words[], int in, int out);

// For both sides: the namespaces and the veth pair of a setup that is apart.
int soft_place_enter(struct soft_side *side);

// For both sides. -EPIPE: the other one has ended.
int soft_exchange(const struct soft_side *side, const void *mine, void *theirs, size_t size);
void soft_pin(uint32_t cpu);
void soft_unpin(void);
// Puts them in order.
double soft_median(double *values, uint32_t count);
// Returns err; says why unless err is 0 or something was said already.
__attribute__((format(printf, 3, 4))) int
soft_fail(struct soft_why *why, int err, const char *format, ...);
