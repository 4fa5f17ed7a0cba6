// SPDX-License-Identifier: BSD-3-Clause
// Escaping of untrusted bytes for one line of text.
//
// Printable ASCII and well-formed UTF-8 pass unchanged. Quote and backslash get a backslash.
// Newline, return and tab become \n \r \t. Every other control byte and every byte that is not
// UTF-8 becomes \xNN. So do the code points that break a line, control a terminal or reverse the
// order of text (U+0080-U+009F, U+2028-U+202E, U+2066-U+2069). Any thread; allocates nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Size of the longest unit: U+2028, three source bytes as \xNN each.
#define ESCAPE_UNIT_BYTES_MAX 12

// One character of the output, which must never be split.
struct escape_unit {
	char text[ESCAPE_UNIT_BYTES_MAX]; // not terminated
	size_t text_size;
	size_t taken_bytes; // bytes consumed from the source; at least 1
};

// Escape the first character of the text, of which size >= 1 bytes are readable.
void escape_next(const char *text, size_t size, struct escape_unit *ret_unit);

// Return whether a terminal shows the text as one line, as it is: escape_next() changes no
// character except quote and backslash.
bool escape_text_is_plain(const char *text, size_t size);

// Write the text between double quotes into `out` and terminate it. A text that does not fit is
// truncated, with "..." after the closing quote. out_size must be at least 8.
void escape_quote(const char *text, size_t text_size, char *out, size_t out_size);

// Write the text for XML or HTML, with entities for the characters of markup. Bytes that are not
// UTF-8 and characters that XML forbids become '?'. The caller looks for errors of the stream.
void escape_put_markup(const char *text, FILE *file);
