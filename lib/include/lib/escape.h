// SPDX-License-Identifier: BSD-3-Clause
// Bytes from anywhere, made fit to stand inside one line of text.
//
// Printable ASCII and well-formed UTF-8 pass unchanged. Quote and backslash get a backslash;
// newline, return and tab become \n \r \t; every other control byte, every byte that is not
// UTF-8, and the code points that break a line, control a terminal or turn the order of what it
// shows (U+0080-U+009F, U+2028-U+202E, U+2066-U+2069) become \xNN. Any thread; allocates nothing.
#pragma once

#include <stddef.h>

// The longest unit: U+2028, three bytes of source as \xNN each.
#define ESCAPE_UNIT_BYTES_MAX 12

// One character of the output, which must never be cut in two.
struct escape_unit {
	char text[ESCAPE_UNIT_BYTES_MAX]; // not terminated
	size_t text_size;
	size_t taken_bytes; // of the source; at least 1
};

// Escapes the first character of text, of which size >= 1 bytes are readable.
void escape_next(const char *text, size_t size, struct escape_unit *ret_unit);

// Writes text between double quotes into out and terminates it. What does not fit is left
// out and shown by "..." after the closing quote. out_size must be at least 8.
void escape_quote(const char *text, size_t text_size, char *out, size_t out_size);
