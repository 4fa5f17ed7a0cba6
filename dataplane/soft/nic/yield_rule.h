// SPDX-License-Identifier: BSD-3-Clause
// When a caller that polls in vain gives its processor away. Pure.
//
// Where programs that spin are more than processors, the one that would answer waits for one: 8 ms
// a round, a time slice. So a poll that has found nothing for as long as a block and a wake cost
// yields. Where nobody else waits that returns at once, and costs a hundredth of what was spun.
// Where somebody ran and nothing has come soon after, it was not the one that we wait for, and
// would take most of the processor from us: each such yield doubles the time to the next. That has
// to come down again, also where it is longer than a time slice and nobody yields any more: who was
// put aside between two polls, and found something right after, waited for the one that ran.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define YIELD_AFTER_NS UINT64_C(20000)
#define YIELD_ALONE_NS UINT64_C(3000)	   // one that took less found nobody who waits
#define YIELD_SOON_NS (2 * YIELD_AFTER_NS) // an answer takes several frames, each a poll
#define YIELD_VAIN_MAX 14		   // a third of a second
#define YIELD_ASIDE_NS UINT64_C(20000)	   // between two polls: somebody else ran

struct yield_rule {
	uint64_t next_ns; // 0: the latest poll found something
	uint64_t last_ns; // the latest one that found nothing
	uint64_t back_ns; // end of the latest yield
	uint32_t vain;
};

static inline void yield_rule_found(struct yield_rule *rule, uint64_t now_ns) {
	if (rule->next_ns != 0 && now_ns < rule->back_ns + YIELD_SOON_NS)
		rule->vain = 0;
	else if (rule->next_ns != 0 && now_ns >= rule->last_ns + YIELD_ASIDE_NS)
		rule->vain /= 2;
	rule->next_ns = 0;
}

// A poll found nothing. True: yield, look again, and say what came of it.
static inline bool yield_rule_empty(struct yield_rule *rule, uint64_t now_ns) {
	if (rule->next_ns == 0)
		rule->next_ns = now_ns + (YIELD_AFTER_NS << rule->vain);
	rule->last_ns = now_ns;
	return now_ns >= rule->next_ns;
}

// from, to: around the yield. found: by the poll right after it; one that finds something soon
// after counts as well.
static inline void
yield_rule_done(struct yield_rule *rule, uint64_t from_ns, uint64_t to_ns, bool found) {
	if (found)
		rule->vain = 0;
	else if (to_ns - from_ns > YIELD_ALONE_NS && rule->vain < YIELD_VAIN_MAX)
		rule->vain++;
	rule->next_ns = found ? 0 : to_ns + (YIELD_AFTER_NS << rule->vain);
	rule->back_ns = to_ns;
}
