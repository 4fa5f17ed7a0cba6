// SPDX-License-Identifier: BSD-3-Clause
// Lines to show, limited in number and width, and escaped for a terminal.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FRAME_LINE_BYTES 1024
#define FRAME_LINES_MAX 1024
#define FRAME_COLUMNS_WHOLE 1000 // for output that is no terminal

enum frame_kind {
	FRAME_TEXT,   // each word in its own colour
	FRAME_TITLE,  // title colour
	FRAME_HEAD,   // head of a table
	FRAME_MARKED, // words coloured by their first character, a mark
	FRAME_MARKS,  // marks: + alive, ? suspect, ~ unreachable, x dead; others faint
};

struct frame_line {
	enum frame_kind kind;
	char text[FRAME_LINE_BYTES];
};

struct frame {
	struct frame_line *lines;
	size_t count;
	size_t lines_max; // further lines are dropped
	size_t columns;
};

static inline bool frame_is_whole(const struct frame *frame) {
	return frame->columns >= FRAME_COLUMNS_WHOLE;
}

// Initialize a frame of at most FRAME_LINES_MAX lines. Returns 0 or -ENOMEM.
int frame_init(struct frame *frame, size_t columns, size_t lines_max);
void frame_fini(struct frame *frame);

// Add a line. A line that is wider than the frame is cut and ends in "~".
__attribute__((format(printf, 3, 4))) void
frame_add(struct frame *frame, enum frame_kind kind, const char *format, ...);

// Return how many more lines can be added.
static inline size_t frame_lines_left(const struct frame *frame) {
	return frame->lines_max - frame->count;
}

// Print all lines, each followed by `end`.
void frame_print(const struct frame *frame, bool colour, const char *end, FILE *stream);
