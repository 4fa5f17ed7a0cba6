// SPDX-License-Identifier: BSD-3-Clause
#include <lib/older_glibc.h>
#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define ERRORS_MAX 200

static void names_and_texts_are_those_of_glibc(void **state) {
	(void)state;
	for (int error = 0; error < ERRORS_MAX; error++) {
		const char *name = strerrorname_np(error);

		if (name == NULL) {
			assert_null(older_glibc_error_name(error));
			continue;
		}
		assert_string_equal(older_glibc_error_name(error), name);
		assert_string_equal(older_glibc_error_text(error), strerrordesc_np(error));
	}
}

static void number_that_is_no_error_has_no_name_but_a_text(void **state) {
	(void)state;
	assert_null(older_glibc_error_name(-1));
	assert_null(older_glibc_error_name(INT_MAX));
	assert_string_equal(older_glibc_error_text(ERRORS_MAX), "Unknown error 200");
}

static void close_range_closes_the_range_only(void **state) {
	int first = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
	int second = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, first + 1);

	(void)state;
	assert_true(first >= 0 && second > first);
	assert_int_equal(
		older_glibc_close_range((unsigned int)first, (unsigned int)second - 1, 0), 0
	);
	assert_int_equal(fcntl(first, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
	assert_return_code(fcntl(second, F_GETFD), errno);
	close(second);
}

UNIT_GROUP(older_glibc) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_texts_are_those_of_glibc),
		cmocka_unit_test(number_that_is_no_error_has_no_name_but_a_text),
		cmocka_unit_test(close_range_closes_the_range_only),
	};

	return cmocka_run_group_tests_name("older_glibc", tests, NULL, NULL);
}
