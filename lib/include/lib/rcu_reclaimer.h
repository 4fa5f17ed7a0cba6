// SPDX-License-Identifier: BSD-3-Clause
// The RCU reclaimer: the thread that frees retired objects. It is liburcu's default call_rcu
// thread, with a name.
//
// urcu_qsbr_call_rcu() would start it at the first call: without a name, and with affinity and
// signal mask of that caller.
#pragma once

// Start the reclaimer, before any thread is pinned. A repeated call does nothing. The thread lives
// as long as the process. Returns 0 or -errno of creating a thread; then nothing may be retired.
int rcu_reclaimer_start(void);

// Wait until all objects retired so far are freed: a grace period and up to 10 ms. For teardown.
// The calling thread must be offline or not registered as a reader.
void rcu_reclaimer_drain(void);
