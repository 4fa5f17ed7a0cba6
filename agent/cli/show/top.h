// SPDX-License-Identifier: BSD-3-Clause
// The parts of `tocsin top`.
#pragma once

#include "show/frame.h"
#include "show/summary.h"

// More members than these are counted, not drawn: nobody could tell them apart, and the agent need
// not list them each second.
#define TOP_DRAWN_MAX 512

struct top_rates {
	uint64_t at_ns; // 0: nothing was measured yet
	int64_t sent_bytes, received_bytes;
	double sent_per_s, received_per_s; // negative: not known yet
};

// What is shown. JSON is NULL as long as nothing came.
struct top_view {
	struct summary summary;
	json_t *peers;
	json_t *counters;
	struct top_rates rates;
	const char *place;
	const char *trouble; // why there is nothing newer; NULL: there is
};

// Fills the frame, whose last line stays free.
void top_draw(const struct top_view *view, struct frame *frame);
// One line that says it all, without an end.
void top_line(const struct top_view *view, char text[static FRAME_LINE_BYTES]);
