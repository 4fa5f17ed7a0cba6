// SPDX-License-Identifier: BSD-3-Clause
// Keeps the first reason.
#include "why.h"

#include <stdarg.h>
#include <stdio.h>

#undef lab_fail // the analyzer's, see why.h
int lab_fail(struct lab_why *why, int err, const char *format, ...) {
	va_list arguments;

	if (why->text[0] != '\0')
		return err;
	va_start(arguments, format);
	vsnprintf(why->text, sizeof(why->text), format, arguments);
	va_end(arguments);
	return err;
}
