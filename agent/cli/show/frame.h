// SPDX-License-Identifier: BSD-3-Clause
// Lines to be shown, all of them or as many as fit: no wider than the columns, fit for a terminal.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FRAME_LINE_BYTES 1024
#define FRAME_LINES_MAX 1024
#define FRAME_COLUMNS 100
#define FRAME_COLUMNS_WHOLE 1000 // where nobody's screen is in the way

enum frame_kind {
	FRAME_TEXT,   // words in their colours
	FRAME_TITLE,  // as a whole
	FRAME_HEAD,   // of a table
	FRAME_MARKED, // words, each in the colour of the mark it begins with
	FRAME_MARKS,  // marks: + alive ? suspect ~ unreachable x dead, and faint ones
};

struct frame_line {
	enum frame_kind kind;
	char text[FRAME_LINE_BYTES];
};

struct frame {
	struct frame_line *lines;
	size_t count;
	size_t lines_max; // what is beyond is dropped
	size_t columns;
};

static inline bool frame_is_whole(const struct frame *frame) {
	return frame->columns >= FRAME_COLUMNS_WHOLE;
}

// 0 or -ENOMEM. lines_max is at most FRAME_LINES_MAX.
int frame_init(struct frame *frame, size_t columns, size_t lines_max);
void frame_fini(struct frame *frame);

__attribute__((format(printf, 3, 4))) void
frame_add(struct frame *frame, enum frame_kind kind, const char *format, ...);

// How many lines may still be added.
static inline size_t frame_room(const struct frame *frame) {
	return frame->lines_max - frame->count;
}

// `end` follows each line.
void frame_print(const struct frame *frame, bool colour, const char *end, FILE *stream);
