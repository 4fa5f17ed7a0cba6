// SPDX-License-Identifier: BSD-3-Clause
// A dozen agents, and helpers to test blame for unread paths.
#pragma once

#include "control/verdict/engine/verdict_bed.h"

#define AGENTS 12

static inline void settle(struct bed *bed) {
	bed_pass(bed, SEC);
}

static inline void good_from(struct bed *bed, uint32_t subject, uint32_t first, uint32_t last) {
	for (uint32_t observer = first; observer <= last; observer++) {
		if (observer != subject)
			assert_int_equal(bed_see(bed, observer, subject, OBSERVATION_GOOD), 0);
	}
}

// Return the only (or first) bad path of this observer to the subject.
static inline struct verdict_path_view
path_of(const struct bed *bed, uint32_t observer, uint32_t subject) {
	struct verdict_path_view view;
	uint32_t cursor = 0;

	while (verdict_bad_path_next(bed->engine, &cursor, &view)) {
		if (view.observation.observer == bed_id(observer) &&
		    view.observation.subject == bed_id(subject))
			return view;
	}
	fail_msg("no bad path from %u to %u", observer, subject);
	return view;
}

static inline void expect_all_well(const struct bed *bed) {
	struct verdict_view view;
	uint32_t cursor = 0;

	while (verdict_unhealthy_next(bed->engine, &cursor, &view))
		fail_msg(
			"agent %u is %s (%s)", (uint32_t)view.subject - 1,
			verdict_name(view.verdict), view.reason
		);
}
