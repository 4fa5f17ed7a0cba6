// SPDX-License-Identifier: BSD-3-Clause
// RCU readers with names, so that a reader that delays a grace period can be reported.
//
// A thread registers before it reads RCU-protected data. From then on it is either
//
//	online   may hold references; every grace period waits for its next quiescent state
//	offline  holds no references, and no grace period waits for it
//
// A reader reports a quiescent state whenever it holds no references. It goes offline before it may
// sleep or block. All functions act on the calling thread, except rcu_thread_find_stalled(). Times
// come from one monotonic clock of the caller, the same for all threads.
//
// Wrong order aborts by must(), because it would corrupt memory later and elsewhere. Examples:
// registering twice, online while online, a quiescent state while offline. So does a thread that
// exits while registered, because liburcu would still read its stack.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RCU_THREAD_COUNT_MAX 256
#define RCU_THREAD_NAME_BYTES 32

// Register the calling thread under a name (truncated to fit) and go online. Returns 0, -ENOSPC if
// RCU_THREAD_COUNT_MAX threads are registered, -EAGAIN if the process has no thread-specific key
// left, or -ENOMEM.
int rcu_thread_register(const char *name, uint64_t now_ns);
// Unregister the calling thread, online or offline. Its slot and name become free.
void rcu_thread_unregister(void);

// Go offline. The thread must not touch RCU-protected data until it is online again. Ends the wait
// of a grace period for this thread.
void rcu_thread_offline(void);
void rcu_thread_online(uint64_t now_ns);

// Report a quiescent state. Hot path: one store and liburcu's call, which is a load and a compare
// unless a grace period waits. No lock, no allocation, no log. The only system call wakes a waiting
// thread.
void rcu_thread_quiescent(uint64_t now_ns);

struct rcu_thread_stall {
	char name[RCU_THREAD_NAME_BYTES];
	pid_t tid;
	uint64_t quiet_ns; // ns since its last quiescent state
};

// Return true if a reader has been online without a quiescent state for threshold_ns (at least 1).
// *ret_stall is then the reader with the longest time. Any thread, registered or not. Waits only
// for threads that are registering or unregistering.
bool rcu_thread_find_stalled(
	uint64_t threshold_ns, uint64_t now_ns, struct rcu_thread_stall *ret_stall
);
