// SPDX-License-Identifier: BSD-3-Clause
// When a caller that polls in vain gives its processor away. Pure.
//
// Where programs that spin are more than processors, the one that would answer waits for one: 8 ms
// a round, a time slice. So a poll that has found nothing for as long as a block and a wake cost
// yields. Where nobody else waits that returns at once, and costs a hundredth of what was spun.
// Where somebody ran and nothing had come then, it was not the one that we wait for, and would take
// most of the processor from us: each such yield doubles the time to the next.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define YIELD_AFTER_NS UINT64_C(20000)
#define YIELD_ALONE_NS UINT64_C(3000) // one that took less found nobody who waits
#define YIELD_VAIN_MAX 14	      // a third of a second

struct yield_rule {
	uint64_t next_ns; // 0: the latest poll found something
	uint32_t vain;
};

static inline void yield_rule_found(struct yield_rule *rule) {
	rule->next_ns = 0;
}

// A poll found nothing. True: yield, look again, and say what came of it.
static inline bool yield_rule_empty(struct yield_rule *rule, uint64_t now_ns) {
	if (rule->next_ns == 0)
		rule->next_ns = now_ns + (YIELD_AFTER_NS << rule->vain);
	return now_ns >= rule->next_ns;
}

// from, to: around the yield. found: by the poll right after it.
static inline void
yield_rule_done(struct yield_rule *rule, uint64_t from_ns, uint64_t to_ns, bool found) {
	if (found)
		rule->vain = 0;
	else if (to_ns - from_ns > YIELD_ALONE_NS && rule->vain < YIELD_VAIN_MAX)
		rule->vain++;
	rule->next_ns = found ? 0 : to_ns + (YIELD_AFTER_NS << rule->vain);
}
