// SPDX-License-Identifier: BSD-3-Clause
// Parts of `tocsin top`.
#pragma once

#include "show/frame.h"
#include "show/summary.h"

// Maximum of members that are drawn; more are only counted. More would be illegible, and the agent
// would have to list them every second.
#define TOP_DRAWN_MAX 512

struct top_rates {
	uint64_t at_ns; // 0: not measured yet
	int64_t sent_bytes, received_bytes;
	double sent_per_s, received_per_s; // negative: unknown
};

// Content of the screen; JSON values are NULL until an answer arrives.
struct top_view {
	struct summary summary;
	json_t *peers;
	json_t *counters;
	struct top_rates rates;
	const char *place;
	const char *trouble; // reason why the content is old; NULL: it is current
};

// Fill the frame, and leave its last line free.
void top_draw(const struct top_view *view, struct frame *frame);
// Format everything as one line, without a newline.
void top_format_line(const struct top_view *view, char text[static FRAME_LINE_BYTES]);
