// SPDX-License-Identifier: BSD-3-Clause
// Looking at a peer for another observer, and asking others to look.
#pragma once

#include "live/liveness.h"

#define LOOK_NEVER_MS UINT32_MAX
#define LOOK_PING_NS RAS_NS_PER_SEC // a word that took longer was not given

// Asks up to LIVENESS_ASKED_MAX others, on different hosts if there is a choice, from different
// rings, other ones in each round.
void look_ask(struct ras *ras, struct suspicion *suspicion);
// Tells the suspect, so that it may refute.
void look_tell(struct ras *ras, uint32_t slot);

// What became of the looks at this peer that we have promised.
void look_alive(struct ras *ras, uint32_t slot);
void look_gone(struct ras *ras, uint32_t slot);
void look_forget(struct ras *ras, uint32_t slot);
void looks_tick(struct ras *ras);

// An answer to look_ask(); in liveness.c.
void liveness_observation(
	struct ras *ras,
	uint32_t slot,
	uint32_t round,
	uint32_t from,
	enum observation observation,
	uint32_t heard_ms
);
