// SPDX-License-Identifier: BSD-3-Clause
// must(): checks of internal invariants, in every build.
//
// Use it only for contracts between parts of this program. Untrusted input must never reach a
// must(); it gets an error. Any thread; safe in every context.
#pragma once

#include <stdint.h>

// Print expression, place and a backtrace to stderr without allocation, then abort.
_Noreturn void
must_failed(const char *expression, const char *file, uint32_t line, const char *function);

#define must(expression)                     \
	(__builtin_expect(!!(expression), 1) \
		 ? (void)0                   \
		 : must_failed(#expression, __FILE__, __LINE__, __func__))

// Variant for poll loops, where must() would cost time: always type-checked, evaluated only in
// debug builds.
#ifdef TOCSIN_DEBUG
#define must_debug(expression) must(expression)
#else
#define must_debug(expression) ((void)sizeof(!!(expression)))
#endif
