// SPDX-License-Identifier: BSD-3-Clause
// Full terminal for a live view. It is restored on every exit: q, end of input, and all signals but
// SIGKILL. Only one at a time, on the main thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct frame;

enum screen_event {
	SCREEN_DUE,    // the deadline was reached
	SCREEN_REDRAW, // a key, a new size, or a resume after a stop
	SCREEN_QUIT,
};

struct screen {
	int signals; // signalfd, which contact_*() watches along with standard input
	size_t columns, rows;
	int fatal_signal; // signal that asked to quit; 0: none
};

// Take over the terminal. Returns 0, or -errno if this is no suitable terminal.
int screen_enter(struct screen *screen);
void screen_leave(struct screen *screen);
// Raise the signal that asked to quit, if any, with its default action, which ends the process.
void screen_raise_quit_signal(const struct screen *screen);

// Wait until the deadline (monotonic clock) or an event.
enum screen_event screen_wait(struct screen *screen, uint64_t due_ns);
void screen_show(const struct screen *screen, const struct frame *frame);
