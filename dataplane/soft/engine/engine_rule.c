// SPDX-License-Identifier: BSD-3-Clause
// Decides whether the engine's thread drives the device, or the polling program does.
#include "engine/engine_rule.h"

// Return true if a caller drove the device within `ns`. The two times come from two threads, so
// caller_turn_ns may be later than now_ns.
static bool caller_polled_within(const struct engine_observation *look, uint64_t ns) {
	return look->caller_turn_ns + ns > look->now_ns;
}

bool engine_rule_update(struct engine_rule *rule, const struct engine_observation *look) {
	bool was_back = rule->back;

	if (rule->back) {
		rule->back = !look->called && caller_polled_within(look, ENGINE_CALLER_TICK_NS);
	} else if (!look->called) {
		// A wake-up that found nothing counts only if a caller has polled since: then the
		// caller took the frame. A wire may make the engine turn twice for one wake-up.
		if (look->found)
			rule->vain = caller_polled_within(look, ENGINE_CALLER_SPIN_NS)
					     ? rule->vain + 1
					     : 0;
		else if (look->caller_turn_ns > rule->looked_ns)
			rule->vain++;
	}
	if (rule->vain >= ENGINE_VAIN_WAKES_MAX) {
		rule->back = true;
		rule->vain = 0;
	}
	rule->looked_ns = look->now_ns;
	return rule->back != was_back;
}
