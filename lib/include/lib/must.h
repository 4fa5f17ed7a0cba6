// SPDX-License-Identifier: BSD-3-Clause
// must(): our own invariants, checked in every build.
//
// For promises between parts of this program only. Bytes from outside are never asserted
// on: they get an error. Any thread; safe to call where nothing else is.
#pragma once

#include <stdint.h>

// Prints expression, place and a backtrace to stderr with no allocation, then aborts.
_Noreturn void
must_failed(const char *expression, const char *file, uint32_t line, const char *function);

#define must(expression)                     \
	(__builtin_expect(!!(expression), 1) \
		 ? (void)0                   \
		 : must_failed(#expression, __FILE__, __LINE__, __func__))

// Only where a poll loop would feel must(): type-checked always, evaluated in debug builds.
#ifdef TOCSIN_DEBUG
#define must_debug(expression) must(expression)
#else
#define must_debug(expression) ((void)sizeof(!!(expression)))
#endif
