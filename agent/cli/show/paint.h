// SPDX-License-Identifier: BSD-3-Clause
// Text from an agent on its way to a terminal: nothing in it is an order to the terminal, and the
// words that matter are in colour, if it is one and nobody set NO_COLOR.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum paint {
	PAINT_PLAIN,
	PAINT_GOOD,
	PAINT_WARN,
	PAINT_BAD,
	PAINT_FAINT,
	PAINT_TITLE,
};

// Whether the stream is to be coloured.
bool paint_wanted(FILE *stream);

// "" where colour is not wanted.
const char *paint_begin(enum paint paint, bool wanted);
const char *paint_end(enum paint paint, bool wanted);

// Writes what comes of text into out, at most columns characters of it, and terminates it. Quotes
// and backslashes stay as they are.
void paint_escape(const char *text, size_t columns, char *out, size_t out_size);

// A line as the agent wrote it, its words in their colours.
void paint_words(const char *line, bool wanted, FILE *stream);
// And a newline.
void paint_line(const char *line, bool wanted, FILE *stream);
