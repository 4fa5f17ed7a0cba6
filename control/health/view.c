// SPDX-License-Identifier: BSD-3-Clause
// What may be known of the store without anything of the overlay: who only looks links no more.
#include "health_inside.h"

size_t health_memory_used(const struct health *health) {
	return health->memory_used;
}

const struct verdict_engine *health_engine(const struct health *health) {
	return health->engine;
}

enum verdict_advice health_advice(const struct health *health, const struct verdict_view *view) {
	// The engine's own holds back what state, maintenance and too few observers do not allow.
	enum verdict_advice advice = view->advice;
	uint64_t now_ns = loop_now_ns(health->loop);

	if (advice != VERDICT_ADVICE_DRAIN && advice != VERDICT_ADVICE_DRAIN_LATER)
		return advice;
	if (verdict_brakes(health->engine))
		return VERDICT_ADVICE_WARN;
	if (advice == VERDICT_ADVICE_DRAIN)
		return advice;
	return now_ns - view->since_ns >= health->confirm_ns ? VERDICT_ADVICE_DRAIN
							     : VERDICT_ADVICE_WARN;
}
