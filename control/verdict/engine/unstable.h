// SPDX-License-Identifier: BSD-3-Clause
// Flapping: more than three changes within a minute are shown as one state, with the last two
// verdicts.
#pragma once

#include "inside.h"

// Record that the held verdict just changed. `own_doubt`: to unknown, for a reason of this agent.
void unstable_record_change(struct subject *subject, bool own_doubt, uint64_t now_ns);
// Return whether flapping ended: the verdict was the same for a minute, or the node left or died.
bool unstable_is_over(struct subject *subject, uint64_t now_ns);
void unstable_end(struct subject *subject);
// Fill the view of a flapping node in place of the held verdict.
void unstable_view_fill(const struct subject *subject, bool maint, struct verdict_view *view);
