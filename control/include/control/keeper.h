// SPDX-License-Identifier: BSD-3-Clause
// A keeper: a thread for calls that may hang, such as those into the driver of one device. The
// control thread hands it calls, which are made one after the other, and hears of each through its
// loop. It never waits for a keeper, not even at the end.
//
// A call that has not come back after KEEPER_STUCK_NS, or a limit of its own, is reported once. It
// is not interrupted, for nothing can do that; the calls behind it wait. A keeper that is destroyed
// while a call is under way is left behind with its thread and the memory of that call, which go
// when it comes back.
//
// So the argument of a call must not be the caller's to free: it belongs to the keeper from
// keeper_run() on, until the keeper drops it. What a call finds out it leaves in its argument.
#pragma once

#include <control/loop.h>

#include <stdbool.h>
#include <stdint.h>

struct keeper;
struct keeper_job;

#define KEEPER_STUCK_NS UINT64_C(2000000000)
#define KEEPER_PENDING_MAX 256
#define KEEPER_NAME_BYTES 16 // of a thread, with its NUL

struct keeper_call {
	int (*call)(void *arg);	 // on the keeper's thread; its answer is passed on
	void (*drop)(void *arg); // frees arg, on any thread; may be NULL
	void *arg;
	uint64_t limit_ns; // before it is called stuck; 0: KEEPER_STUCK_NS
};

struct keeper_request {
	// Once, on the loop; never from inside keeper_run(). arg is dropped when it returns. It may
	// run, cancel, but not destroy.
	void (*ended)(struct keeper_request *request, void *arg, int result);
	struct keeper_job *job; // private; NULL: not under way
};

struct keeper_counters {
	uint64_t calls;
	uint64_t stuck; // of these, longer than their limit
	uint64_t refused;
	uint64_t longest_ns;
};

struct keeper_ops {
	// A call has taken as long as its limit. It must not destroy the keeper. May be NULL.
	void (*stuck)(void *ctx, struct keeper *keeper);
	void *ctx;
	// Counts what the keepers that share it do, all together; outlives them. May be NULL.
	struct keeper_counters *totals;
};

// The loop's thread, as all below. name is cut to KEEPER_NAME_BYTES.
// -ENOMEM, -EAGAIN (threads), or what eventfd and loop say.
int keeper_create(
	struct loop *loop,
	const char *name,
	const struct keeper_ops *ops,
	struct keeper **ret_keeper
);
// Calls that wait are dropped, nobody is answered. Does not wait.
struct keeper *keeper_destroy(struct keeper *keeper);

// -EAGAIN (KEEPER_PENDING_MAX under way), -ENOMEM; then the argument stays the caller's.
int keeper_run(
	struct keeper *keeper, const struct keeper_call *call, struct keeper_request *request
);
// There will be no answer. A call that waits is not made; one under way goes on.
void keeper_cancel(struct keeper_request *request);

// How long the call under way has taken, 0 if there is none.
uint64_t keeper_busy_ns(const struct keeper *keeper);
bool keeper_is_stuck(const struct keeper *keeper);
const struct keeper_counters *keeper_counters(const struct keeper *keeper);
