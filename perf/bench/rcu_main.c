// SPDX-License-Identifier: BSD-3-Clause
// tocsin-rcu-bench [--json]: cost of the peer table for readers and for the writer.
#include "micro.h"

#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>

#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

// clang-format off
static const struct micro_row rows[] = {
	{"peer by slot, 64 neighbours", micro_rcu_row_near, "an array under pthread_rwlock", micro_rcu_rwlock, "ns", MICRO_TARGET_VALUE, 3},
	{"peer by slot, 64 neighbours", micro_rcu_row_near, "an array under a spinlock", micro_rcu_spinlock, "ns", MICRO_TARGET_VALUE, 3},
	{"peer by slot, any of 10,000", micro_rcu_row_any, "an array under pthread_rwlock", micro_rcu_rwlock_any, "ns", MICRO_TARGET_VALUE, 3},
	{"a path's peer before a probe", micro_rcu_probe, "an array under pthread_rwlock", micro_rcu_rwlock, "ns", MICRO_TARGET_VALUE, 5},
	{"peer by id, any of 10,000", micro_rcu_find, "an array under pthread_rwlock", micro_rcu_rwlock_any, "ns", MICRO_TARGET_NONE, 0},
	{"quiescent state", micro_rcu_quiescent, "an array under a spinlock", micro_rcu_spinlock, "ns", MICRO_TARGET_NONE, 0},
	{"publish 1 change of 10,000 rows", micro_rcu_publish, "memcpy of the table", micro_rcu_copy_table, "ns", MICRO_TARGET_NONE, 0},
	{"publish 1 peer come or gone of 10,000", micro_rcu_publish_join, "memcpy of the table", micro_rcu_copy_table, "ns", MICRO_TARGET_NONE, 0},
};
// clang-format on

int main(int argc, char **argv) {
	int status;

	if (rcu_reclaimer_start() != 0 || rcu_thread_register("bench", 0) != 0) {
		fprintf(stderr, "%s: RCU cannot start\n", argv[0]);
		return 1;
	}
	status = micro_run("rcu", rows, COUNT_OF(rows), argc, argv);
	rcu_thread_unregister();
	return status;
}
