// SPDX-License-Identifier: BSD-3-Clause
// Decides when a device's engine is active and when it is passive. Pure functions.
//
// An active engine wakes with each frame. Such wake-ups are in vain while callers poll so often
// that they take the frames themselves. The engine then becomes passive: it only checks at each
// tick whether callers still poll.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Consecutive wake-ups in vain before the engine becomes passive. If a caller spins, they come
// within some tens of microseconds.
#define ENGINE_VAIN_WAKES_MAX 8
// A wake-up also counts as vain if a caller polled or posted so shortly before the engine's turn.
// The caller would have taken the frame as soon. An engine that preempts the spinning thread
// always comes first, so finding the frame proves nothing.
#define ENGINE_CALLER_SPIN_NS UINT64_C(4000)
// Same limit at a tick; it is longer because the caller may be processing its completions.
#define ENGINE_CALLER_TICK_NS UINT64_C(100000)

struct engine_rule {
	bool back;
	uint32_t vain;
	uint64_t looked_ns;
};

struct engine_observation {
	uint64_t now_ns;
	uint64_t caller_turn_ns; // latest turn driven by a caller, even if that turn found nothing
	bool found;		 // frames, or packets to send
	// A caller armed its queue or rang, or a timer was due: not woken by a frame
	bool called;
};

// Update the rule after each wake-up and at each tick. Returns true if `back` changed.
bool engine_rule_update(struct engine_rule *rule, const struct engine_observation *look);
