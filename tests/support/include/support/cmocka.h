// SPDX-License-Identifier: BSD-3-Clause
// cmocka asks for these before its own header; one place knows the order.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

// A failed assertion leaves the test by longjmp(), which static analysis cannot see: it
// would follow the failed call into the lines after it. Only the analyzer reads this.
#ifdef __clang_analyzer__
#include <stdlib.h>

#undef assert_true
#undef assert_false
#undef assert_null
#undef assert_non_null
#undef assert_int_equal
#undef assert_return_code
#define assert_true(condition) ((condition) ? (void)0 : abort())
#define assert_false(condition) ((condition) ? abort() : (void)0)
#define assert_null(pointer) ((pointer) == NULL ? (void)0 : abort())
#define assert_non_null(pointer) ((pointer) != NULL ? (void)0 : abort())
#define assert_int_equal(a, b) \
	(cast_to_largest_integral_type(a) == cast_to_largest_integral_type(b) ? (void)0 : abort())
#define assert_return_code(code, error) ((code) >= 0 ? (void)(error) : abort())
#endif
