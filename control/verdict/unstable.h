// SPDX-License-Identifier: BSD-3-Clause
// More than three changes within a minute are one state, with the words it swings between.
#pragma once

#include "inside.h"

// The word that is held has just changed; `own_doubt`: to unknown, for a reason of ours.
void unstable_note(struct subject *subject, bool own_doubt, uint64_t now_ns);
// True once it has said one word for a minute, has left, or is dead.
bool unstable_is_over(struct subject *subject, uint64_t now_ns);
void unstable_end(struct subject *subject);
// What is shown of it meanwhile, in place of the word that is held.
void unstable_view(const struct subject *subject, bool maint, struct verdict_view *view);
