// SPDX-License-Identifier: BSD-3-Clause
// The whole terminal, taken for a live view and given back as it was on every way out: q, the end
// of the input, and all signals but SIGKILL. One at a time, on the main thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct frame;

enum screen_event {
	SCREEN_DUE,    // the time has come
	SCREEN_REDRAW, // a key, another size, or back from a stop
	SCREEN_QUIT,
};

struct screen {
	int signals; // a signalfd; readable with standard input where contact_*() watches both
	size_t columns, rows;
	int fatal_signal; // that asked to quit; 0: none
};

// -errno if this is no terminal, or cannot be made one for this.
int screen_enter(struct screen *screen);
void screen_leave(struct screen *screen);
// Ends the process by the signal that asked to quit, if there was one, as if it had not been
// caught.
void screen_pass_on(const struct screen *screen);

// Until the time (monotonic) or an event.
enum screen_event screen_wait(struct screen *screen, uint64_t due_ns);
void screen_show(const struct screen *screen, const struct frame *frame);
