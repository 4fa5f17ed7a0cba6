// SPDX-License-Identifier: BSD-3-Clause
// A polling thread's quiescent state.
#include "rcu_thread_impl.h"

#include <lib/must.h>
#include <lib/rcu.h>

void rcu_thread_quiescent(uint64_t now_ns) {
	struct rcu_thread_slot *slot = rcu_thread_self;

	must(slot != NULL);
	// liburcu would take an offline thread for an online one from here on.
	must(atomic_load_explicit(&slot->state, memory_order_relaxed) == RCU_THREAD_ONLINE);
	// Relaxed: a number for people, which orders nothing.
	atomic_store_explicit(&slot->quiescent_ns, now_ns, memory_order_relaxed);
	urcu_qsbr_quiescent_state();
}
