// SPDX-License-Identifier: BSD-3-Clause
#include <dataplane/dpdk.h>
#include <dataplane/foreign_error.h>
#include <support/cmocka.h>

#include <errno.h>

static void verbs_object_that_is_null_gives_errno_and_never_zero(void **state) {
	int object;

	(void)state;
	errno = ENODEV;
	assert_int_equal(verbs_error_from_object(NULL), -ENODEV);
	errno = 0;
	assert_int_equal(verbs_error_from_object(NULL), -EIO);
	errno = ENODEV; // left over from an earlier call
	assert_int_equal(verbs_error_from_object(&object), 0);
}

static void verbs_code_is_read_in_all_three_dialects(void **state) {
	static const struct {
		int code;
		int left_in_errno;
		int expected;
	} cases[] = {
		{EINVAL, 0, -EINVAL},	   // as documented
		{EINVAL, ENOMEM, -EINVAL}, // errno is left over from an earlier call
		{-ENOMEM, EINVAL, -ENOMEM}, {-1, ENOSPC, -ENOSPC}, {-1, 0, -EIO}, {0, EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		errno = cases[i].left_in_errno;
		assert_int_equal(verbs_error_from_code(cases[i].code), cases[i].expected);
	}
}

static void dpdk_code_is_kept_and_a_count_is_success(void **state) {
	(void)state;
	rte_errno = ENOENT;
	assert_int_equal(dpdk_error_from_code(-EBUSY), -EBUSY);
	assert_int_equal(dpdk_error_from_code(0), 0);
	assert_int_equal(dpdk_error_from_code(3), 0);
}

static void dpdk_minus_one_gives_rte_errno_and_not_errno(void **state) {
	(void)state;
	errno = ENOENT;
	rte_errno = EALREADY;
	assert_int_equal(dpdk_error_from_errno(-1), -EALREADY);
	assert_int_equal(
		dpdk_error_from_errno(5), 0
	); // rte_eal_init() returns the number of parsed arguments
	rte_errno = 0;
	assert_int_equal(dpdk_error_from_errno(-1), -EIO);
}

static void dpdk_object_that_is_null_gives_rte_errno_and_never_zero(void **state) {
	int object;

	(void)state;
	rte_errno = ENOSPC;
	assert_int_equal(dpdk_error_from_object(NULL), -ENOSPC);
	rte_errno = 0;
	assert_int_equal(dpdk_error_from_object(NULL), -EIO);
	rte_errno = ENOSPC;
	assert_int_equal(dpdk_error_from_object(&object), 0);
}

UNIT_GROUP(foreign_error) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verbs_object_that_is_null_gives_errno_and_never_zero),
		cmocka_unit_test(verbs_code_is_read_in_all_three_dialects),
		cmocka_unit_test(dpdk_code_is_kept_and_a_count_is_success),
		cmocka_unit_test(dpdk_minus_one_gives_rte_errno_and_not_errno),
		cmocka_unit_test(dpdk_object_that_is_null_gives_rte_errno_and_never_zero),
	};

	return cmocka_run_group_tests_name("foreign_error", tests, NULL, NULL);
}
