// SPDX-License-Identifier: BSD-3-Clause
// When an engine stands back and when it is engaged again. Pure.
//
// Engaged, it is woken by each frame; that is in vain when callers poll so often that they take
// the frames themselves. Then it stands back and only looks at each tick whether they still do.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// In a row. Where a caller spins they come within some tens of microseconds.
#define ENGINE_VAIN_MAX 8
// A caller that polled or posted so short a time before the engine's turn would have taken the
// frame just as soon, though the engine did: where it preempts the very thread that spins, it comes
// first each time.
#define ENGINE_SPIN_NS UINT64_C(4000)
// The same at a tick, when it may also be busy with what it found.
#define ENGINE_DRIVEN_NS UINT64_C(100000)

struct engine_rule {
	bool back;
	uint32_t vain;
	uint64_t looked_ns;
};

struct engine_look {
	uint64_t now_ns;
	uint64_t drove_ns; // a caller that found nothing drove a turn
	bool found;	   // frames, or something to send
	bool called;	   // a caller went to sleep or rang, or it was time: no frame's wake
};

// After each wake, and at each tick. True if it changed over.
bool engine_rule_look(struct engine_rule *rule, const struct engine_look *look);
