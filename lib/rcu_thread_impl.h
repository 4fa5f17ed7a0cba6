// SPDX-License-Identifier: BSD-3-Clause
// Declarations shared by the cold and the hot half of rcu_thread.
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

// One reader, in its own cache line, because its owner writes it in every turn of its loop.
struct rcu_thread_slot {
	alignas(RCU_THREAD_LINE_BYTES) _Atomic uint64_t quiescent_ns; // owner: rw, others: ro
	_Atomic uint32_t state; // enum rcu_thread_state; owner: rw, others: ro
	pid_t tid;		// this and the name: under the registry's lock
	char name[RCU_THREAD_NAME_BYTES];
};
static_assert(sizeof(struct rcu_thread_slot) == RCU_THREAD_LINE_BYTES, "no false sharing");

// Slot of the calling thread, NULL unless registered. With initial-exec, the hot half finds it
// without a call. This works because all users are loaded at program start.
extern _Thread_local struct rcu_thread_slot *rcu_thread_self
	__attribute__((tls_model("initial-exec")));
