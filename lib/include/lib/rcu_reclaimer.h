// SPDX-License-Identifier: BSD-3-Clause
// The thread that frees what RCU retired: liburcu's default call_rcu thread, under a name.
//
// urcu_qsbr_call_rcu() would start it by itself at its first call, without a name, with the
// affinity and the signals of whoever happened to be first.
#pragma once

// Once, before any thread is pinned; again is harmless. It lives as long as the process.
// Returns 0 or -errno of making a thread; then nothing may be retired.
int rcu_reclaimer_start(void);

// Waits until all that was retired before is freed: a grace period and up to 10 ms. For
// teardown. The calling thread is not registered as a reader, or offline.
void rcu_reclaimer_drain(void);
