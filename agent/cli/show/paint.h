// SPDX-License-Identifier: BSD-3-Clause
// Text from an agent for a terminal. Control sequences are escaped. Important words are coloured if
// the stream is a terminal and NO_COLOR is not set.
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

// Return true if output to the stream should be coloured.
bool paint_is_enabled(FILE *stream);

// Return the control sequences that begin and end a colour; "" if `wanted` is false.
const char *paint_begin(enum paint paint, bool wanted);
const char *paint_end(enum paint paint, bool wanted);

// Escape text for a terminal into `out`, at most `columns` characters, and terminate it. Quotes and
// backslashes stay unchanged.
void paint_escape(const char *text, size_t columns, char *out, size_t out_size);
// Escape text in the same way, with "~" as the last character if a part is cut off.
void paint_cut(const char *text, size_t columns, char *out, size_t out_size);

// Print a line with its known words in colour.
void paint_print_words(const char *line, bool wanted, FILE *stream);
// Return the number of bytes of `words` to print on one line of `columns` columns. The line ends at
// a blank, or behind a word that alone is longer than the line.
size_t paint_line_bytes(const char *words, size_t columns);
// Like paint_print_words(), and print a newline.
void paint_print_line(const char *line, bool wanted, FILE *stream);
