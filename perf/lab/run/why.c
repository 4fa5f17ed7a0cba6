// SPDX-License-Identifier: BSD-3-Clause
// Store the first failure reason, and make texts safe to print.
#include "run/why.h"

#include <lib/escape.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef lab_fail // macro for the analyzer, see why.h
int lab_fail(struct lab_why *why, int err, const char *format, ...) {
	va_list arguments;

	if (why->text[0] != '\0')
		return err;
	va_start(arguments, format);
	vsnprintf(why->text, sizeof(why->text), format, arguments);
	va_end(arguments);
	lab_sanitize(why->text);
	return err;
}

void lab_sanitize(char *text) {
	size_t size = strlen(text), used = 0;
	struct escape_unit unit;

	for (size_t at = 0; at < size; at += unit.taken_bytes) {
		escape_next(text + at, size - at, &unit);
		if (unit.text_size == unit.taken_bytes || text[at] == '"' || text[at] == '\\') {
			memmove(text + used, text + at, unit.taken_bytes);
			used += unit.taken_bytes;
		} else {
			text[used++] = '?';
		}
	}
	text[used] = '\0';
}
