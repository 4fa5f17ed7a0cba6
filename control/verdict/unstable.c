// SPDX-License-Identifier: BSD-3-Clause
// Flapping verdicts are shown as one state, since acting on each change does harm.
//
// The verdict itself continues with its hysteresis. The shown and published state is `unstable`
// until one verdict has lasted for a minute.
#include "unstable.h"

#include <stdio.h>

#define WINDOW_NS (60 * SEC)

static uint64_t newest_ns(const struct swings *swings) {
	return swings->at_ns[(swings->count - 1) % SWINGS_MAX];
}

static void unstable_tell(struct subject *subject) {
	struct swings *swings = &subject->swings;

	snprintf(
		swings->evidence, sizeof(swings->evidence),
		"it changed %u times or more within a minute, the last two words are %s and %s (%s)",
		SWINGS_MAX, verdict_name(swings->before), verdict_name(swings->word),
		subject->held.reason
	);
}

// Unknown is not counted as a change: the next verdict is compared with the one before it. A
// verdict above path-lossy that returns after an unknown counts as a change, unless the unknown was
// this agent's own doubt.
void unstable_note(struct subject *subject, bool own_doubt, uint64_t now_ns) {
	struct swings *swings = &subject->swings;
	enum verdict word = subject->held.verdict;

	if (word == VERDICT_UNKNOWN) {
		swings->own_doubt = own_doubt;
		return;
	}
	if (word == VERDICT_NONE)
		return;
	if (word == swings->word && (word <= VERDICT_PATH_LOSSY || swings->own_doubt))
		return;
	if (word != swings->word)
		swings->before = swings->word;
	swings->word = word;
	swings->at_ns[swings->count++ % SWINGS_MAX] = now_ns;
	if (!swings->unstable && swings->count >= SWINGS_MAX &&
	    now_ns - swings->at_ns[swings->count % SWINGS_MAX] < WINDOW_NS) {
		swings->unstable = true;
		swings->since_ns = now_ns;
	}
	if (swings->unstable)
		unstable_tell(subject);
}

// A death comes from the overlay, which has its own protection against flapping.
bool unstable_is_over(struct subject *subject, uint64_t now_ns) {
	const struct swings *swings = &subject->swings;
	bool dead = subject->held.state == RAS_DEAD && subject->held.verdict == VERDICT_NODE_DOWN;

	if (!swings->unstable)
		return false;
	if (!dead && subject->held.verdict != VERDICT_NONE &&
	    now_ns < newest_ns(swings) + WINDOW_NS) {
		hold_until(subject, newest_ns(swings) + WINDOW_NS);
		return false;
	}
	return true;
}

void unstable_end(struct subject *subject) {
	subject->swings.unstable = false;
	subject->swings.count = 0;
}

void unstable_view(const struct subject *subject, bool maint, struct verdict_view *view) {
	view->verdict = VERDICT_UNSTABLE;
	view->confidence = VERDICT_SURE;
	view->advice = maint ? VERDICT_ADVICE_SHOW : verdict_advice_of(VERDICT_UNSTABLE);
	view->both_planes = false;
	view->since_ns = subject->swings.since_ns;
	view->reason = "Flapping";
	view->evidence = subject->swings.evidence;
}
