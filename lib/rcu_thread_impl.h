// SPDX-License-Identifier: BSD-3-Clause
// What the cold and the hot half of rcu_thread share.
#pragma once

#include <lib/rcu_thread.h>

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>

#define RCU_THREAD_LINE_BYTES 64

enum rcu_thread_state {
	RCU_THREAD_ABSENT,
	RCU_THREAD_OFFLINE,
	RCU_THREAD_ONLINE,
};

// A line of its own for each, since its owner writes it at every turn of its loop.
struct rcu_thread_slot {
	alignas(RCU_THREAD_LINE_BYTES) _Atomic uint64_t quiescent_ns; // owner: rw, others: ro
	_Atomic uint32_t state; // enum rcu_thread_state; owner: rw, others: ro
	pid_t tid;		// from here on under the registry's lock
	char name[RCU_THREAD_NAME_BYTES];
};
static_assert(sizeof(struct rcu_thread_slot) == RCU_THREAD_LINE_BYTES, "no false sharing");

// The calling thread's slot, NULL unless it is registered. initial-exec: the hot half then finds
// it without a call, and everything it is linked into is loaded at the start of its program.
extern _Thread_local struct rcu_thread_slot *rcu_thread_self
	__attribute__((tls_model("initial-exec")));
