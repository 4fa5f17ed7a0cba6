// SPDX-License-Identifier: BSD-3-Clause
// Decides whether the engine's thread drives the device, or the polling program does.
#include "nic/engine_rule.h"

// Return true if a caller drove the device within `ns`. The two times come from two threads, so
// caller_turn_ns may be later than now_ns.
static bool drove_within(const struct engine_look *look, uint64_t ns) {
	return look->drove_ns + ns > look->now_ns;
}

// Count a wake-up. If it found nothing and no caller has polled since, no caller took the frame, so
// it does not count. A wire may make the engine turn twice for one wake-up.
static void count_wake(struct engine_rule *rule, const struct engine_look *look) {
	if (look->found)
		rule->vain = drove_within(look, ENGINE_SPIN_NS) ? rule->vain + 1 : 0;
	else if (look->drove_ns > rule->looked_ns)
		rule->vain++;
}

bool engine_rule_look(struct engine_rule *rule, const struct engine_look *look) {
	bool was_back = rule->back;

	if (rule->back)
		rule->back = !look->called && drove_within(look, ENGINE_DRIVEN_NS);
	else if (!look->called)
		count_wake(rule, look);
	if (rule->vain >= ENGINE_VAIN_MAX) {
		rule->back = true;
		rule->vain = 0;
	}
	rule->looked_ns = look->now_ns;
	return rule->back != was_back;
}
