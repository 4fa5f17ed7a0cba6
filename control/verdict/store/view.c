// SPDX-License-Identifier: BSD-3-Clause
// Queries of the store that need nothing of the overlay, so that read-only programs need not link
// it.
#include "verdict/store/health_inside.h"

size_t health_memory_used(const struct health *health) {
	return health->memory_used;
}

const struct verdict_engine *health_engine(const struct health *health) {
	return health->engine;
}

// The granter confirmed the drain by its own clock and its own first observation. This agent's
// clock may run a moment behind, and nothing would trigger another check.
#define CONFIRM_SLACK_NS (5 * RAS_NS_PER_SEC)

bool health_wants_drain(const struct health *health, const struct verdict_view *view) {
	uint64_t now_ns = loop_now_ns(health->loop);
	uint64_t held_ns = now_ns > view->since_ns ? now_ns - view->since_ns : 0;

	// The engine's advice already considers state, maintenance and the number of observers.
	if (view->advice == VERDICT_ADVICE_DRAIN)
		return true;
	if (view->advice != VERDICT_ADVICE_DRAIN_LATER)
		return false;
	return held_ns >= health->confirm_ns ||
	       (held_ns + CONFIRM_SLACK_NS >= health->confirm_ns &&
		grants_decide(health->grants, now_ns, view->subject) == GRANT_GIVEN);
}

bool health_observes_only(const struct health *health) {
	return health->observes_only;
}

enum verdict_advice
health_suppressed_advice(const struct health *health, const struct verdict_view *view) {
	if (!health->observes_only)
		return VERDICT_ADVICE_NOTHING;
	if (health_wants_drain(health, view))
		return VERDICT_ADVICE_DRAIN;
	return view->advice == VERDICT_ADVICE_RESTART ? VERDICT_ADVICE_RESTART
						      : VERDICT_ADVICE_NOTHING;
}

enum verdict_advice health_advice(const struct health *health, const struct verdict_view *view) {
	if (health_suppressed_advice(health, view) != VERDICT_ADVICE_NOTHING)
		return VERDICT_ADVICE_WARN;
	if (view->advice != VERDICT_ADVICE_DRAIN && view->advice != VERDICT_ADVICE_DRAIN_LATER)
		return view->advice;
	return health_wants_drain(health, view) && health_withheld_reason(health, view) == NULL
		       ? VERDICT_ADVICE_DRAIN
		       : VERDICT_ADVICE_WARN;
}

const char *health_withheld_reason(const struct health *health, const struct verdict_view *view) {
	enum grant grant;

	if (health_suppressed_advice(health, view) != VERDICT_ADVICE_NOTHING)
		return "[health] act = no: Tocsin only observes";
	if (!health_wants_drain(health, view))
		return NULL;
	grant = grants_decide(health->grants, loop_now_ns(health->loop), view->subject);
	return grant != GRANT_GIVEN ? grant_reason_text(grant) : NULL;
}

uint64_t health_granter(const struct health *health) {
	return grants_current_granter(health->grants, loop_now_ns(health->loop));
}

const struct grants_counters *health_grant_counters(const struct health *health) {
	return grants_counters(health->grants);
}
