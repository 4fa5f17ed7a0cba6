// SPDX-License-Identifier: BSD-3-Clause
// Flapping verdicts are shown as one state, since acting on each change does harm.
//
// The verdict itself continues with its hysteresis. The shown and published state is `unstable`
// until one verdict has lasted for a minute.
#include "unstable.h"

#include <stdio.h>

#define FLAP_WINDOW_NS (60 * SEC)

static uint64_t newest_change_ns(const struct flap_history *flap_history) {
	return flap_history->at_ns[(flap_history->count - 1) % FLAP_CHANGES_MAX];
}

// Unknown is not counted as a change: the next verdict is compared with the one before it. A
// verdict above path-lossy that returns after an unknown counts as a change, unless the unknown was
// this agent's own doubt.
void unstable_record_change(struct subject *subject, bool own_doubt, uint64_t now_ns) {
	struct flap_history *flap_history = &subject->flap_history;
	enum verdict word = subject->held.verdict;

	if (word == VERDICT_UNKNOWN) {
		flap_history->own_doubt = own_doubt;
		return;
	}
	// Only the node itself reports node-busy, and a shortage of processor time often ends and
	// returns.
	if (word == VERDICT_NONE || word == VERDICT_NODE_BUSY)
		return;
	if (word == flap_history->word && (word <= VERDICT_PATH_LOSSY || flap_history->own_doubt))
		return;
	if (word != flap_history->word)
		flap_history->before = flap_history->word;
	flap_history->word = word;
	flap_history->at_ns[flap_history->count++ % FLAP_CHANGES_MAX] = now_ns;
	if (!flap_history->unstable && flap_history->count >= FLAP_CHANGES_MAX &&
	    now_ns - flap_history->at_ns[flap_history->count % FLAP_CHANGES_MAX] < FLAP_WINDOW_NS) {
		flap_history->unstable = true;
		flap_history->since_ns = now_ns;
	}
	if (flap_history->unstable)
		snprintf(
			flap_history->evidence, sizeof(flap_history->evidence),
			"the verdict changed at least %u times within a minute, last between %s "
			"and %s (%s)",
			FLAP_CHANGES_MAX, verdict_name(flap_history->before),
			verdict_name(flap_history->word), subject->held.reason
		);
}

// A death comes from the overlay, which has its own protection against flapping.
bool unstable_is_over(struct subject *subject, uint64_t now_ns) {
	const struct flap_history *flap_history = &subject->flap_history;
	bool dead = subject->held.state == RAS_DEAD && subject->held.verdict == VERDICT_NODE_DOWN;

	if (!flap_history->unstable)
		return false;
	if (!dead && subject->held.verdict != VERDICT_NONE &&
	    now_ns < newest_change_ns(flap_history) + FLAP_WINDOW_NS) {
		hold_until(subject, newest_change_ns(flap_history) + FLAP_WINDOW_NS);
		return false;
	}
	return true;
}

void unstable_end(struct subject *subject) {
	subject->flap_history.unstable = false;
	subject->flap_history.count = 0;
}

void unstable_view_fill(const struct subject *subject, bool maint, struct verdict_view *view) {
	view->verdict = VERDICT_UNSTABLE;
	view->confidence = VERDICT_SURE;
	view->advice = maint ? VERDICT_ADVICE_SHOW : verdict_advice_of(VERDICT_UNSTABLE);
	view->both_planes = false;
	view->since_ns = subject->flap_history.since_ns;
	view->reason = "Flapping";
	view->evidence = subject->flap_history.evidence;
}
