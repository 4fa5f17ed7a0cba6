// SPDX-License-Identifier: BSD-3-Clause
#include <lib/deadline.h>
#include <support/cmocka.h>

#define MS 1000000ULL

static void a_deadline_past_the_last_nanosecond_is_never(void **state) {
	(void)state;
	assert_true(deadline_is_never(deadline_after(UINT64_MAX, 1)));
	assert_true(deadline_is_never(deadline_after(1, UINT64_MAX)));
	assert_true(deadline_is_never(deadline_after(UINT64_MAX, UINT64_MAX)));
	assert_true(deadline_is_never(deadline_after(UINT64_MAX - 1, 1)));
	assert_false(deadline_is_never(deadline_after(UINT64_MAX - 2, 1)));
}

static void never_does_not_expire_even_at_the_end_of_time(void **state) {
	(void)state;
	assert_false(deadline_expired(deadline_never(), UINT64_MAX));
	assert_true(deadline_remaining_ns(deadline_never(), UINT64_MAX) == UINT64_MAX);
}

static void a_deadline_expires_with_its_nanosecond(void **state) {
	struct deadline deadline = deadline_after(100, 50);

	(void)state;
	assert_false(deadline_expired(deadline, 149));
	assert_int_equal(deadline_remaining_ns(deadline, 149), 1);
	assert_true(deadline_expired(deadline, 150));
	assert_int_equal(deadline_remaining_ns(deadline, 150), 0);
	assert_int_equal(deadline_remaining_ns(deadline, UINT64_MAX), 0);
}

static void the_earliest_of_two_is_the_finite_one(void **state) {
	struct deadline soon = deadline_after(0, 5), late = deadline_after(0, 6);

	(void)state;
	assert_int_equal(deadline_earliest(soon, late).at_ns, 5);
	assert_int_equal(deadline_earliest(late, soon).at_ns, 5);
	assert_int_equal(deadline_earliest(deadline_never(), late).at_ns, 6);
	assert_true(deadline_is_never(deadline_earliest(deadline_never(), deadline_never())));
}

static void a_poll_timeout_rounds_up_and_stays_an_int(void **state) {
	static const struct {
		uint64_t delay_ns;
		int timeout_ms;
	} rows[] = {
		{0, 0},
		{1, 1},
		{MS, 1},
		{MS + 1, 2},
		{(uint64_t)INT_MAX * MS - MS, INT_MAX - 1},
		{(uint64_t)INT_MAX * MS, INT_MAX},
		{(uint64_t)INT_MAX * MS + 1, INT_MAX},
		{UINT64_MAX - 1, INT_MAX},
		{UINT64_MAX, -1},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct deadline deadline = deadline_after(0, rows[n].delay_ns);

		assert_int_equal(deadline_poll_timeout_ms(deadline, 0), rows[n].timeout_ms);
	}
	assert_int_equal(deadline_poll_timeout_ms(deadline_after(5, 5), 99), 0);
}

UNIT_GROUP(deadline) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deadline_past_the_last_nanosecond_is_never),
		cmocka_unit_test(never_does_not_expire_even_at_the_end_of_time),
		cmocka_unit_test(a_deadline_expires_with_its_nanosecond),
		cmocka_unit_test(the_earliest_of_two_is_the_finite_one),
		cmocka_unit_test(a_poll_timeout_rounds_up_and_stays_an_int),
	};

	return cmocka_run_group_tests_name("deadline", tests, NULL, NULL);
}
