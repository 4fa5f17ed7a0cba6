// SPDX-License-Identifier: BSD-3-Clause
// MONITOR: sends events as they happen, with the names that NCCL's clients know.
//
// A monitor has no queue. It has a position in the core's history, and gets the next events when it
// has received the previous ones. If a slow client falls behind the end of the history, it gets the
// number of lost events.
#pragma once

#include <control/loop.h>
#include <control/overlay.h>

struct session;

struct monitors {
	struct overlay_listener listener;
	struct loop_job job; // wakes the monitoring clients after events
};

// Write the next events, if `out` is empty. Writes a bounded amount, like a step.
void monitor_write_events(struct session *session);
// Return whether there are events to write.
bool monitor_has_events(const struct session *session);
