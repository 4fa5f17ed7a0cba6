// SPDX-License-Identifier: BSD-3-Clause
// Group setup and teardown of cmocka for tests that write under RCU like the control thread: the
// thread is registered and offline.
#pragma once

#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>

static inline int rcu_group_begin(void **state) {
	(void)state;
	assert_int_equal(rcu_reclaimer_start(), 0);
	assert_int_equal(rcu_thread_register("test", 0), 0);
	rcu_thread_offline();
	return 0;
}

static inline int rcu_group_end(void **state) {
	(void)state;
	rcu_thread_unregister();
	return 0;
}
