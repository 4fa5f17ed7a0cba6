// SPDX-License-Identifier: BSD-3-Clause
// Looks at a peer for other observers, and requests for looks.
#pragma once

#include "live/liveness.h"

#define LOOK_NEVER_MS UINT32_MAX
#define LOOK_PING_NS RAS_NS_PER_SEC // shortest look for a name claim; maximum age of *gone*

// Ask up to LIVENESS_ASKED_MAX observers to look: on different hosts if possible, from different
// rings, and other ones in each round.
void look_ask_observers(struct ras *ras, struct suspicion *suspicion);
// Notify the suspect, so that it can refute.
void look_notify_suspect(struct ras *ras, uint32_t slot);

// End the looks at this peer that other observers asked for.
void looks_answer_alive(struct ras *ras, uint32_t slot);
void looks_answer_gone(struct ras *ras, uint32_t slot);
void looks_forget_peer(struct ras *ras, uint32_t slot);
void looks_tick(struct ras *ras);

// Handle an answer to look_ask_observers(). Implemented in liveness.c.
void liveness_observation(
	struct ras *ras,
	uint32_t slot,
	uint32_t round,
	uint32_t from,
	enum observation observation,
	uint32_t heard_ms
);
