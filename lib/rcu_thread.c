// SPDX-License-Identifier: BSD-3-Clause
// Registry of RCU readers: fixed slots, each written by its thread.
//
// A lock protects allocation and names of slots. State and time of a slot are atomics of its owner.
// So a polling loop never waits for a query. liburcu has one set of qsbr readers per process; so
// this registry is global too.
#include "rcu_thread_impl.h"

#include <lib/must.h>
#include <lib/rcu.h>
#include <lib/rcu_reclaimer.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// liburcu knows one set of qsbr readers per process; this one names its members, and is global
// for the same reason.
static struct rcu_thread_slot slots[RCU_THREAD_COUNT_MAX];
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;

_Thread_local struct rcu_thread_slot *rcu_thread_self;

// Set while a thread is registered. Its destructor runs only if the thread exits while registered.
static pthread_key_t ended_key;
static pthread_once_t ended_once = PTHREAD_ONCE_INIT;
static int ended_key_error;

static void abort_if_registered(void *slot) {
	must(slot == NULL);
}

static void create_ended_key(void) {
	ended_key_error = pthread_key_create(&ended_key, abort_if_registered);
}

static enum rcu_thread_state slot_state(const struct rcu_thread_slot *slot) {
	return (enum rcu_thread_state)atomic_load_explicit(&slot->state, memory_order_relaxed);
}

// Set the state of a slot. Release pairs with the acquire in rcu_thread_find_stalled(). A thread
// that reads "online" also reads the time at which the owner went online, not an older one.
static void slot_set_state(struct rcu_thread_slot *slot, enum rcu_thread_state state) {
	atomic_store_explicit(&slot->state, state, memory_order_release);
}

static void slot_free(struct rcu_thread_slot *slot) {
	pthread_mutex_lock(&slots_lock);
	slot_set_state(slot, RCU_THREAD_ABSENT);
	pthread_mutex_unlock(&slots_lock);
}

static void slot_go_online(struct rcu_thread_slot *slot, uint64_t now_ns) {
	atomic_store_explicit(&slot->quiescent_ns, now_ns, memory_order_relaxed);
	slot_set_state(slot, RCU_THREAD_ONLINE);
}

int rcu_thread_register(const char *name, uint64_t now_ns) {
	struct rcu_thread_slot *slot = NULL;

	must(rcu_thread_self == NULL);
	pthread_once(&ended_once, create_ended_key);
	if (ended_key_error != 0)
		return -ended_key_error;
	pthread_mutex_lock(&slots_lock);
	for (size_t i = 0; i < RCU_THREAD_COUNT_MAX && slot == NULL; i++) {
		if (slot_state(&slots[i]) == RCU_THREAD_ABSENT)
			slot = &slots[i];
	}
	if (slot != NULL) {
		snprintf(slot->name, sizeof(slot->name), "%s", name);
		slot->tid = gettid();
		slot_set_state(slot, RCU_THREAD_OFFLINE); // so that it delays no grace period
	}
	pthread_mutex_unlock(&slots_lock);
	if (slot == NULL)
		return -ENOSPC;
	if (pthread_setspecific(ended_key, slot) != 0) {
		slot_free(slot);
		return -ENOMEM;
	}
	rcu_thread_self = slot;
	slot_go_online(slot, now_ns);
	urcu_qsbr_register_thread();
	return 0;
}

void rcu_thread_unregister(void) {
	struct rcu_thread_slot *slot = rcu_thread_self;

	must(slot != NULL);
	urcu_qsbr_unregister_thread();
	// Cannot fail: only setting a value needs memory.
	must(pthread_setspecific(ended_key, NULL) == 0);
	rcu_thread_self = NULL;
	slot_free(slot);
}

void rcu_thread_offline(void) {
	struct rcu_thread_slot *slot = rcu_thread_self;

	must(slot != NULL);
	must(slot_state(slot) == RCU_THREAD_ONLINE);
	urcu_qsbr_thread_offline();
	slot_set_state(slot, RCU_THREAD_OFFLINE);
}

void rcu_thread_online(uint64_t now_ns) {
	struct rcu_thread_slot *slot = rcu_thread_self;

	must(slot != NULL);
	must(slot_state(slot) == RCU_THREAD_OFFLINE);
	slot_go_online(slot, now_ns);
	urcu_qsbr_thread_online();
}

bool rcu_thread_find_stalled(
	uint64_t threshold_ns, uint64_t now_ns, struct rcu_thread_stall *ret_stall
) {
	const struct rcu_thread_slot *quietest = NULL;
	uint64_t quietest_ns = 0;

	must(threshold_ns > 0); // 0 would also match offline threads
	pthread_mutex_lock(&slots_lock);
	for (size_t i = 0; i < RCU_THREAD_COUNT_MAX; i++) {
		uint64_t quiescent_ns, quiet_ns;

		// Acquire pairs with slot_set_state().
		if (atomic_load_explicit(&slots[i].state, memory_order_acquire) !=
		    RCU_THREAD_ONLINE)
			continue;
		// now_ns was read earlier by another thread, so a quiescent state may be later.
		quiescent_ns = atomic_load_explicit(&slots[i].quiescent_ns, memory_order_relaxed);
		quiet_ns = quiescent_ns < now_ns ? now_ns - quiescent_ns : 0;
		if (quiet_ns > quietest_ns) {
			quietest_ns = quiet_ns;
			quietest = &slots[i];
		}
	}
	if (quietest != NULL && quietest_ns >= threshold_ns) {
		memcpy(ret_stall->name, quietest->name, sizeof(ret_stall->name));
		ret_stall->tid = quietest->tid;
		ret_stall->quiet_ns = quietest_ns;
	} else {
		quietest = NULL;
	}
	pthread_mutex_unlock(&slots_lock);
	return quietest != NULL;
}

// Liburcu owns the thread; this function starts and names it. Nothing here is hot.
int rcu_reclaimer_start(void) {
	struct call_rcu_data *reclaimer;
	sigset_t all, before;

	// The new thread inherits this mask, so that no signal handler runs on it.
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	reclaimer = urcu_qsbr_get_default_call_rcu_data();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (reclaimer == NULL)
		return -EAGAIN;
	return -pthread_setname_np(urcu_qsbr_get_call_rcu_thread(reclaimer), "rcu-reclaimer");
}

void rcu_reclaimer_drain(void) {
	urcu_qsbr_barrier();
}
