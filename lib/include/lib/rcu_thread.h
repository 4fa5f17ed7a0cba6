// SPDX-License-Identifier: BSD-3-Clause
// The readers of RCU by name, so that the one that holds up a grace period can be called by it.
//
// A thread that reads what RCU protects registers, and from then on is either
//
//	online   it may hold references; every grace period waits for its next quiescent state
//	offline  it holds none, and no grace period waits for it
//
// and tells which: a quiescent state each time it holds nothing, offline before anything that
// may sleep or block. Every call but rcu_thread_find_stalled() is about the calling thread. Times
// are those of one monotonic clock of the caller's choice, the same for all threads.
//
// Out of turn (registering twice, online while online, a quiescent state while offline) stops the
// process by must(): each would corrupt memory later and elsewhere. So does a thread that ends
// registered, since liburcu would go on looking at its stack.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RCU_THREAD_COUNT_MAX 256
#define RCU_THREAD_NAME_BYTES 32

// Takes a slot under a name, which is cut to fit, and goes online. Returns 0, -ENOSPC if
// RCU_THREAD_COUNT_MAX threads are registered, -EAGAIN if the process has no thread-specific key
// left, or -ENOMEM.
int rcu_thread_register(const char *name, uint64_t now_ns);
// From online or offline. The name is free again.
void rcu_thread_unregister(void);

// After this the thread touches nothing that RCU protects until it is online again. Ends the
// wait of a grace period for it.
void rcu_thread_offline(void);
void rcu_thread_online(uint64_t now_ns);

// Hot: one store and liburcu's call, which is a load and a compare unless a grace period waits;
// no lock, no memory, no log; a system call only to wake the waiting one.
void rcu_thread_quiescent(uint64_t now_ns);

struct rcu_thread_stall {
	char name[RCU_THREAD_NAME_BYTES];
	pid_t tid;
	uint64_t quiet_ns; // since its last quiescent state
};

// Any thread, registered or not. Whether a reader is online without a quiescent state for
// threshold_ns (at least 1) or more; *ret_stall is then the one that is quiet the longest. Waits
// only for threads that register or unregister at the same moment.
bool rcu_thread_find_stalled(
	uint64_t threshold_ns, uint64_t now_ns, struct rcu_thread_stall *ret_stall
);
