// SPDX-License-Identifier: BSD-3-Clause
// Quiescent state of a polling thread.
#include "rcu_thread_impl.h"

#include <lib/must.h>
#include <lib/rcu.h>

void rcu_thread_quiescent(uint64_t now_ns) {
	struct rcu_thread_slot *slot = rcu_thread_self;

	must(slot != NULL);
	// From here on liburcu would treat an offline thread as online.
	must(atomic_load_explicit(&slot->state, memory_order_relaxed) == RCU_THREAD_ONLINE);
	// Relaxed: the time is only reported, no other data depends on it.
	atomic_store_explicit(&slot->quiescent_ns, now_ns, memory_order_relaxed);
	urcu_qsbr_quiescent_state();
}
