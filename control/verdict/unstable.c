// SPDX-License-Identifier: BSD-3-Clause
// A verdict that changes too often is one state: whoever acts on each word of it does harm.
//
// The words go on below it, with their hysteresis; what is shown and told is `unstable` until one
// of them has stood for a minute.
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

// A doubt is no word of its own: the word that comes after it is compared with the one before it,
// and one that is acted on and comes back has changed twice, unless the doubt was only ours.
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

// Death is the overlay's own word, and has a rule of its own against turns.
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
