// SPDX-License-Identifier: BSD-3-Clause
#include "engine_rule.h"

// Two threads' readings of one clock: the caller's may be the later one.
static bool drove_within(const struct engine_look *look, uint64_t ns) {
	return look->drove_ns + ns > look->now_ns;
}

static bool is_in_vain(const struct engine_rule *rule, const struct engine_look *look) {
	if (!look->found)
		return look->drove_ns > rule->looked_ns;
	return drove_within(look, ENGINE_SPIN_NS);
}

bool engine_rule_look(struct engine_rule *rule, const struct engine_look *look) {
	bool was_back = rule->back;

	if (rule->back)
		rule->back = !look->called && drove_within(look, ENGINE_DRIVEN_NS);
	else if (!look->called)
		rule->vain = is_in_vain(rule, look) ? rule->vain + 1 : 0;
	if (rule->vain >= ENGINE_VAIN_MAX) {
		rule->back = true;
		rule->vain = 0;
	}
	rule->looked_ns = look->now_ns;
	return rule->back != was_back;
}
