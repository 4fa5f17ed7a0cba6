// SPDX-License-Identifier: BSD-3-Clause
// Decides when a caller that polls in vain yields its processor. Pure functions.
//
// If more programs spin than there are processors, the program that would answer waits for one, 8
// ms per round. So a poll yields after finding nothing for as long as a block and a wake-up cost.
// If no other thread waits, the yield returns at once and costs 1% of the time spun.
//
// If another thread ran and nothing arrived soon after, it was not the one that would answer. It
// would take most of this processor, so each such yield doubles the time to the next. This time
// must also shrink again, even when it exceeds a time slice and yields have stopped. If the caller
// was preempted between two polls and then found something, it had waited for the thread that ran.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define YIELD_AFTER_NS UINT64_C(20000)
#define YIELD_NO_OTHER_NS UINT64_C(3000)     // a shorter yield found no other waiting thread
#define YIELD_ANSWER_NS (2 * YIELD_AFTER_NS) // an answer takes several frames, one poll each
#define YIELD_DOUBLINGS_MAX 14		     // at most a third of a second between yields
#define YIELD_PREEMPTED_NS UINT64_C(20000)   // a longer pause between polls: another thread ran

struct yield_rule {
	uint64_t next_ns; // time of the next yield; 0: the latest poll found something
	uint64_t last_ns; // latest poll that found nothing
	uint64_t back_ns; // end of the latest yield
	uint32_t vain;
};

static inline void yield_rule_note_found(struct yield_rule *rule, uint64_t now_ns) {
	if (rule->next_ns != 0 && now_ns < rule->back_ns + YIELD_ANSWER_NS)
		rule->vain = 0;
	else if (rule->next_ns != 0 && now_ns >= rule->last_ns + YIELD_PREEMPTED_NS)
		rule->vain /= 2;
	rule->next_ns = 0;
}

// Record an empty poll. Returns true if the caller should yield, poll again, and report with
// yield_rule_note_yield().
static inline bool yield_rule_should_yield(struct yield_rule *rule, uint64_t now_ns) {
	if (rule->next_ns == 0)
		rule->next_ns = now_ns + (YIELD_AFTER_NS << rule->vain);
	rule->last_ns = now_ns;
	return now_ns >= rule->next_ns;
}

// Record a yield. from_ns, to_ns: before and after the yield. found: result of the next poll;
// yield_rule_note_found() also credits an answer that comes soon after.
static inline void
yield_rule_note_yield(struct yield_rule *rule, uint64_t from_ns, uint64_t to_ns, bool found) {
	if (found)
		rule->vain = 0;
	else if (to_ns - from_ns > YIELD_NO_OTHER_NS && rule->vain < YIELD_DOUBLINGS_MAX)
		rule->vain++;
	rule->next_ns = found ? 0 : to_ns + (YIELD_AFTER_NS << rule->vain);
	rule->back_ns = to_ns;
}
