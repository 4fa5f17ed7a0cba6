// SPDX-License-Identifier: BSD-3-Clause
// The reclaimer: liburcu owns the thread, this names it. Nothing here is hot.
#include <lib/rcu.h>
#include <lib/rcu_reclaimer.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>

int rcu_reclaimer_start(void) {
	struct call_rcu_data *reclaimer;
	sigset_t all, before;

	// A signal handler of the process has no business on it: it inherits this mask.
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
