// SPDX-License-Identifier: BSD-3-Clause
// cmocka, and groups of unit tests. cmocka needs the headers below before its own.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

// A unit test group: the tests of one NAME_test.c. A program links one or more groups; unit_main.c
// runs them. Only UNIT_GROUP() creates this struct.
struct unit_group {
	const char *name;
	int (*run)(void); // number of failed tests
	struct unit_group *next;
};

// Register the group for main(). Called before main(), by constructors.
void unit_group_add(struct unit_group *group);

// Define the group of one file. The body returns the result of cmocka_run_group_tests_name().
#define UNIT_GROUP(group)                                                                  \
	static int unit_run_##group(void);                                                 \
	__attribute__((constructor)) static void unit_add_##group(void) {                  \
		static struct unit_group self = {.name = #group, .run = unit_run_##group}; \
		unit_group_add(&self);                                                     \
	}                                                                                  \
	static int unit_run_##group(void)

// Variants of the assertions for static analysis. A failed assertion leaves the test by longjmp(),
// which the analyzer does not see. It would continue after the failed call.
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
