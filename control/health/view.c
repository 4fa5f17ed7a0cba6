// SPDX-License-Identifier: BSD-3-Clause
// What may be known of the store without anything of the overlay: who only looks links no more.
#include "health_inside.h"

const struct verdict_engine *health_engine(const struct health *health) {
	return health->engine;
}

enum verdict_advice health_advice(const struct health *health, const struct verdict_view *view) {
	enum verdict_advice advice = verdict_advice_of(view->verdict);
	uint64_t now_ns = loop_now_ns(health->loop);
	struct verdict_counts counts;

	if (view->maint)
		return VERDICT_ADVICE_SHOW;
	if (advice != VERDICT_ADVICE_DRAIN && advice != VERDICT_ADVICE_DRAIN_LATER)
		return advice;
	verdict_counts(health->engine, &counts);
	if (counts.brake)
		return VERDICT_ADVICE_WARN;
	if (advice == VERDICT_ADVICE_DRAIN)
		return advice;
	return now_ns - view->since_ns >= health->confirm_ns ? VERDICT_ADVICE_DRAIN
							     : VERDICT_ADVICE_WARN;
}
