// SPDX-License-Identifier: BSD-3-Clause
// The brake: if too much falls silent at once, it is the network or we, not the peers.
//
// Nobody sees the whole view, so the silent part is estimated from a sample. The links are no
// fair one: most lead to near members, which in a partition of the ring are on our side. So in
// the last round before a death by silence an observer sends an echo to a few members drawn at
// random, over the relay, and asks the peers of its links to do the same and tell. Of some 150
// members drawn in this way, a tenth lost at once is told from a partition in the middle.
#pragma once

#include "liveness.h"

struct wire_writer;

void brake_fini(struct ras *ras);
void brake_tick(struct ras *ras);
// Draws members and sends them an echo; asks the peers of our links to do so as well.
void brake_survey(struct ras *ras);
// A peer asks us to: the answer goes out when the echoes have had their time.
void brake_surveyed(struct ras *ras, uint32_t asker);
// A member answered our echo.
void brake_echoed(struct ras *ras, uint32_t slot);

// True if a death by silence may not be declared now.
bool brake_holds(struct ras *ras);

// What our own echoes found, for one who asked.
void brake_samples_encode(const struct ras *ras, struct wire_writer *writer);
void brake_samples_take(struct ras *ras, struct wire_reader *reader);
