// SPDX-License-Identifier: BSD-3-Clause
// MONITOR: events as they come, under the names that NCCL's clients know.
//
// A monitor has no queue of its own: it has a place in the core's history, and is told from there
// when it has taken what it was told before. One that is slow finds that events have left the
// history, and is told how many.
#pragma once

#include <control/loop.h>
#include <control/overlay.h>

struct session;

struct monitors {
	struct overlay_listener listener;
	struct loop_job job; // events came: wakes who listens
};

// Tells what is new, if `out` is empty. Bounded as a step is.
void monitor_tell(struct session *session);
// Whether there is more to tell now.
bool monitor_waits(const struct session *session);
