// SPDX-License-Identifier: BSD-3-Clause
// The cost of a log call that is switched off.
#include "micro.h"

#include <lib/clock.h>
#include <lib/log.h>

#include <stdatomic.h>

uint64_t micro_log_disabled(uint64_t rounds) {
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++) {
		log_event(LOG_LEVEL_DEBUG, "not_shown", log_u64("round", n));
		micro_keep(n);
	}
	return clock_monotonic_ns() - start_ns;
}

uint64_t micro_log_load_and_branch(uint64_t rounds) {
	static _Atomic int level; // of static storage, as the log's own
	uint64_t start_ns = clock_monotonic_ns();
	uint64_t enabled = 0;

	for (uint64_t n = 0; n < rounds; n++) {
		if (__builtin_expect(atomic_load_explicit(&level, memory_order_relaxed) > 2, 0))
			micro_keep(enabled++);
		micro_keep(n);
	}
	return clock_monotonic_ns() - start_ns;
}
