// SPDX-License-Identifier: BSD-3-Clause
// A keeper is a thread for calls that may hang, such as calls into the driver of one device. The
// control thread queues calls to the keeper, which runs them one after the other. Results arrive
// through the loop. The control thread never waits for a keeper, not even at exit.
//
// A call that has not returned after KEEPER_STUCK_NS, or after its own limit, is reported once.
// Nothing can interrupt it, and the calls queued behind it wait. If a keeper is destroyed during a
// call, its thread and the call's memory are left behind. They are freed when the call returns.
//
// So the argument of a call belongs to the keeper from keeper_run() on, until the keeper drops it;
// the caller must not free it. A call stores its results in its argument.
#pragma once

#include <control/loop.h>

#include <stdbool.h>
#include <stdint.h>

struct keeper;
struct keeper_job;

#define KEEPER_STUCK_NS UINT64_C(2000000000)
#define KEEPER_PENDING_MAX 256
#define KEEPER_NAME_BYTES 16 // of a thread name, with its NUL

struct keeper_call {
	int (*call)(void *arg);	 // runs on the keeper's thread; its return value becomes the result
	void (*drop)(void *arg); // frees arg, on any thread; may be NULL
	void *arg;
	uint64_t limit_ns; // time after which the call counts as stuck; 0: KEEPER_STUCK_NS
};

struct keeper_request {
	// Called once, on the loop; never from inside keeper_run(). `arg` is dropped when the
	// callback returns. The callback may run and cancel requests, but not destroy the keeper.
	void (*ended)(struct keeper_request *request, void *arg, int result);
	struct keeper_job *job; // private; NULL: no call pending
};

struct keeper_counters {
	uint64_t calls;
	uint64_t stuck; // calls that exceeded their limit
	uint64_t refused;
	uint64_t longest_ns;
};

struct keeper_ops {
	// A call has reached its limit. The callback must not destroy the keeper. May be NULL.
	void (*stuck)(void *ctx, struct keeper *keeper);
	void *ctx;
	// Counters that several keepers share; must outlive the keepers. May be NULL.
	struct keeper_counters *totals;
};

// Create a keeper. `name` is cut to KEEPER_NAME_BYTES. Returns 0, -ENOMEM, -EAGAIN (too many
// threads), or the error of eventfd or of the loop. This call and all below: loop thread only.
int keeper_create(
	struct loop *loop,
	const char *name,
	const struct keeper_ops *ops,
	struct keeper **ret_keeper
);
// Destroy a keeper without waiting. Queued calls are dropped and their requests get no answer.
struct keeper *keeper_destroy(struct keeper *keeper);

// Queue a call. Returns 0, -EAGAIN (KEEPER_PENDING_MAX pending) or -ENOMEM; on error the argument
// stays the caller's.
int keeper_run(
	struct keeper *keeper, const struct keeper_call *call, struct keeper_request *request
);
// Cancel a request, which gets no answer. A queued call is not made; a running call goes on.
void keeper_cancel(struct keeper_request *request);

// Return how long the running call has taken, 0 if no call runs.
uint64_t keeper_busy_ns(const struct keeper *keeper);
bool keeper_is_stuck(const struct keeper *keeper);
const struct keeper_counters *keeper_counters(const struct keeper *keeper);
