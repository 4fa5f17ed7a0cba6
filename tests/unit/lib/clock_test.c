// SPDX-License-Identifier: BSD-3-Clause
#include <lib/clock.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND 1000000000ULL

static void samples_that_give_no_rate_are_refused_and_leave_the_scale_alone(void **state) {
	static const struct {
		struct clock_sample first, last;
		int error;
	} rows[] = {
		{{10, 10, 5}, {10, 10, 9}, -EINVAL}, // the counter stands still
		{{10, 10, 5}, {9, 9, 9}, -EINVAL},   // the counter goes back
		{{10, 10, 5}, {99, 99, 5}, -EINVAL}, // time stands still
		{{10, 9, 5}, {99, 99, 9}, -EINVAL},  // the first sample ends before it begins
		{{10, 50, 5}, {40, 99, 9}, -EINVAL}, // the samples overlap
		{{0, 0, 0}, {999999, 999999, SECOND}, -ERANGE},
		{{0, 0, 0}, {21 * SECOND, 21 * SECOND, SECOND}, -ERANGE},
		{{0, 0, 0}, {UINT64_MAX, UINT64_MAX, 1}, -ERANGE},
		{{0, 20000, 0}, {SECOND, SECOND + 40000, SECOND}, -EAGAIN}, // 30 ppm
		{{0, 0, 0}, {1000, 1000, 1000}, -EAGAIN},		    // one ns in 1000
	};
	struct clock_scale scale = {.multiplier = 77};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		int err = clock_scale_init(&scale, &rows[n].first, &rows[n].last);

		assert_int_equal(err, rows[n].error);
		assert_int_equal(scale.multiplier, 77);
	}
}

static void the_error_of_a_scale_is_the_brackets_over_the_interval(void **state) {
	struct clock_sample first = {1000, 1100, 0};
	struct clock_sample last = {3 * SECOND, 3 * SECOND + 500, SECOND};
	struct clock_scale scale;

	(void)state;
	assert_int_equal(clock_scale_init(&scale, &first, &last), 0);
	// 300 ticks in 3e9 is 100 ppb; then one for the rounded nanosecond, two for rounding here.
	assert_in_range(scale.error_ppb, 100, 103);
}

static void a_scale_converts_for_a_hundred_years_within_its_error(void **state) {
	static const uint64_t rates_hz[] = {
		CLOCK_SCALE_HZ_MIN, 24000000,	1000000000,
		2599998234,	    3000000000, CLOCK_SCALE_HZ_MAX,
	};
	static const uint64_t years = 100, year_s = 31557600;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rates_hz); n++) {
		struct clock_sample first = {0, 0, 0};
		struct clock_sample last = {rates_hz[n], rates_hz[n], SECOND};
		unsigned __int128 ticks = (unsigned __int128)rates_hz[n] * year_s * years;
		struct clock_scale scale;
		uint64_t expected, got;

		// At 20 GHz the counter itself wraps after 29 years.
		if (ticks > UINT64_MAX / 2)
			ticks = UINT64_MAX / 2;
		assert_int_equal(clock_scale_init(&scale, &first, &last), 0);
		expected = (uint64_t)(ticks * SECOND / rates_hz[n]);
		got = clock_scale_ns(&scale, (uint64_t)ticks);
		assert_true(got <= expected);
		assert_true(expected - got <= expected / SECOND * scale.error_ppb + 1);
	}
}

static void ticks_before_the_base_read_as_the_base(void **state) {
	struct clock_scale scale = {
		.ticks_base = 1000, .ns_base = 500, .multiplier = 1ULL << CLOCK_SCALE_SHIFT};

	(void)state;
	assert_int_equal(clock_scale_ns(&scale, 0), 500);
	assert_int_equal(clock_scale_ns(&scale, 1000), 500);
	assert_int_equal(clock_scale_ns(&scale, 1007), 507);
}

static void each_fact_against_the_tsc_is_named(void **state) {
	static const struct {
		struct clock_tsc_facts facts;
		const char *word; // word in the objection; NULL: no objection
	} rows[] = {
		{{false, true, "tsc hpet\n", ""}, "no TSC"},
		{{true, false, "tsc hpet\n", ""}, "invariant"},
		{{true, true, "hpet acpi_pm \n", ""}, "kernel"},
		{{true, true, "tsc-early hpet\n", ""}, "kernel"},
		{{true, true, "kvm-clock tsc\n", ""}, NULL},
		{{true, true, "tsc", ""}, NULL},
		{{true, true, "", ""}, NULL}, // the kernel does not report a clock source
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		const char *objection = clock_tsc_objection(&rows[n].facts);

		if (rows[n].word == NULL) {
			assert_null(objection);
			continue;
		}
		assert_non_null(objection);
		assert_non_null(strstr(objection, rows[n].word));
	}
}

static void a_clock_without_a_trusted_tsc_is_the_monotonic_one_and_says_why(void **state) {
	struct clock_tsc_facts facts = {.readable = true};
	struct clock clock;
	uint64_t before_ns, now_ns;

	(void)state;
	clock_init_tsc_from_facts(&clock, &facts);
	assert_int_equal(clock_source(&clock), CLOCK_SOURCE_MONOTONIC);
	assert_string_equal(clock_reason(&clock), clock_tsc_objection(&facts));
	assert_int_equal(clock_error_ppb(&clock), 0);
	before_ns = clock_monotonic_ns();
	now_ns = clock_now_ns(&clock);
	assert_true(before_ns <= now_ns && now_ns <= clock_monotonic_ns());
}

static void a_tsc_clock_goes_forward_and_states_its_error(void **state) {
	struct clock clock;
	uint64_t last_ns;

	(void)state;
	clock_init_tsc(&clock);
	if (clock_source(&clock) != CLOCK_SOURCE_TSC) {
		print_message("no TSC here: %s\n", clock_reason(&clock));
		skip();
	}
	assert_in_range(clock_error_ppb(&clock), 1, CLOCK_SCALE_ERROR_PPB_MAX);
	last_ns = clock_now_ns(&clock);
	for (int n = 0; n < 100000; n++) {
		uint64_t now_ns = clock_now_ns(&clock);

		assert_true(now_ns >= last_ns);
		last_ns = now_ns;
	}
}

static void a_tsc_interval_agrees_with_the_kernel_to_a_thousandth(void **state) {
	struct clock clock;
	uint64_t kernel_ns[4], tsc_ns[2];

	(void)state;
	clock_init_tsc(&clock);
	if (clock_source(&clock) != CLOCK_SOURCE_TSC)
		skip();
	// Each TSC reading lies between two of the kernel's, so preemption widens the
	// comparison but cannot break it.
	kernel_ns[0] = clock_monotonic_ns();
	tsc_ns[0] = clock_now_ns(&clock);
	kernel_ns[1] = clock_monotonic_ns();
	do
		kernel_ns[2] = clock_monotonic_ns();
	while (kernel_ns[2] - kernel_ns[1] < SECOND / 100);
	tsc_ns[1] = clock_now_ns(&clock);
	kernel_ns[3] = clock_monotonic_ns();
	// The kernel slews by at most 500 ppm; the rest is for the calibration.
	assert_true((tsc_ns[1] - tsc_ns[0]) * 1001 / 1000 + 100 >= kernel_ns[2] - kernel_ns[1]);
	assert_true((tsc_ns[1] - tsc_ns[0]) * 999 / 1000 <= kernel_ns[3] - kernel_ns[0] + 100);
}

// A counter of 1 GHz and a kernel clock that is slewed: the clock under test, and the true time.
struct slew {
	struct clock clock;
	uint64_t ticks, ns;
	int64_t ppm;
};

static void slew_begin(struct slew *slew) {
	*slew = (struct slew){.ticks = SECOND, .ns = 5 * SECOND};
	slew->clock.source = CLOCK_SOURCE_TSC;
	slew->clock.scale = (struct clock_scale){
		.ticks_base = SECOND,
		.ns_base = 5 * SECOND,
		.multiplier = 1ULL << CLOCK_SCALE_SHIFT,
	};
	slew->clock.kept = (struct clock_resync_state){
		.ticks = SECOND,
		.ns = 5 * SECOND,
		.rate_ticks = SECOND,
		.rate_ns = 5 * SECOND,
	};
}

static void slew_pass(struct slew *slew, uint64_t ticks) {
	slew->ticks += ticks;
	slew->ns += (uint64_t)((int64_t)ticks + (int64_t)ticks * slew->ppm / 1000000);
}

static enum clock_resync slew_keep(struct slew *slew, uint64_t width) {
	struct clock_sample sample = {slew->ticks - width / 2, slew->ticks + width / 2, slew->ns};

	return clock_resync_at(&slew->clock, &sample);
}

static uint64_t slew_off(const struct slew *slew) {
	uint64_t now_ns = clock_scale_ns(&slew->clock.scale, slew->ticks);

	return now_ns > slew->ns ? now_ns - slew->ns : slew->ns - now_ns;
}

static void a_kept_clock_stays_within_its_bound_and_never_goes_back(void **state) {
	static const struct {
		int64_t ppm;
		// 1/share of the time since the last correction is the allowed error.
		uint64_t share;
	} rows[] = {{0, 1000}, {500, 1000}, {-500, 1000}, {80000, 8}, {0, 8}, {-80000, 8}, {0, 8}};
	struct slew slew;

	(void)state;
	slew_begin(&slew);
	for (size_t row = 0; row < COUNT_OF(rows); row++) {
		slew.ppm = rows[row].ppm;
		for (int keep = 0; keep < 1000; keep++) {
			for (uint64_t part = 1; part <= 10; part++) {
				uint64_t before_ns = clock_scale_ns(&slew.clock.scale, slew.ticks);

				slew_pass(&slew, CLOCK_RESYNC_INTERVAL_NS / 10);
				assert_true(
					clock_scale_ns(&slew.clock.scale, slew.ticks) >= before_ns
				);
				assert_true(
					slew_off(&slew) <=
					CLOCK_RESYNC_BOUND_NS + part * CLOCK_RESYNC_INTERVAL_NS /
									10 / rows[row].share
				);
			}
			assert_int_equal(slew_keep(&slew, 60), CLOCK_RESYNC_DONE);
		}
	}
	assert_int_equal(clock_source(&slew.clock), CLOCK_SOURCE_TSC);
}

static void a_kept_clock_learns_the_rate_that_the_kernel_slews_to(void **state) {
	struct slew slew;

	(void)state;
	slew_begin(&slew);
	slew.ppm = 500;
	for (int keep = 0; keep < 300; keep++) {
		slew_pass(&slew, CLOCK_RESYNC_INTERVAL_NS);
		// The error before the correction. It is 5 us per interval until the rate is
		// learnt.
		if (keep > 200)
			assert_in_range(slew_off(&slew), 0, 100);
		assert_int_equal(slew_keep(&slew, 60), CLOCK_RESYNC_DONE);
	}
	assert_in_range(clock_resync_deviation_ns(&slew.clock), 4000, 5100);
}

static void a_long_sleep_of_a_kept_clock_is_made_good_at_once(void **state) {
	struct slew slew;

	(void)state;
	slew_begin(&slew);
	slew.ppm = 500;
	slew_pass(&slew, 3600 * SECOND); // the clock is 1.8 s behind
	assert_int_equal(slew_keep(&slew, 60), CLOCK_RESYNC_DONE);
	assert_in_range(slew_off(&slew), 0, 100);
	slew.ppm = -500;
	slew_pass(&slew, 3600 * SECOND); // the clock is 3.6 s ahead, so it stands still
	assert_int_equal(slew_keep(&slew, 60), CLOCK_RESYNC_DONE);
	slew_pass(&slew, SECOND);
	assert_int_equal(slew_keep(&slew, 60), CLOCK_RESYNC_DONE);
	assert_true(slew_off(&slew) > SECOND);
	slew_pass(&slew, 3 * SECOND);
	assert_int_equal(slew_keep(&slew, 60), CLOCK_RESYNC_DONE);
	assert_in_range(slew_off(&slew), 0, 100);
}

static void a_wide_sample_changes_nothing(void **state) {
	struct slew slew;

	(void)state;
	slew_begin(&slew);
	slew.ppm = 500;
	slew_pass(&slew, CLOCK_RESYNC_INTERVAL_NS);
	assert_int_equal(slew_keep(&slew, 100000), CLOCK_RESYNC_INTERRUPTED);
	assert_in_range(slew_off(&slew), 4900, 5100);
	assert_int_equal(clock_resync_deviation_ns(&slew.clock), 0);
}

static void a_counter_that_jumps_is_given_up(void **state) {
	static const int64_t jumps[] = {30000000000, 12000000, -12000000, -900000000};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(jumps); n++) {
		struct slew slew;
		uint64_t before_ns, now_ns;

		slew_begin(&slew);
		slew_pass(&slew, CLOCK_RESYNC_INTERVAL_NS);
		assert_int_equal(slew_keep(&slew, 60), CLOCK_RESYNC_DONE);
		slew_pass(&slew, CLOCK_RESYNC_INTERVAL_NS);
		slew.ticks = (uint64_t)((int64_t)slew.ticks + jumps[n]);
		assert_int_equal(slew_keep(&slew, 60), CLOCK_RESYNC_JUMPED);
		assert_int_equal(clock_source(&slew.clock), CLOCK_SOURCE_MONOTONIC);
		before_ns = clock_monotonic_ns();
		now_ns = clock_now_ns(&slew.clock);
		assert_true(before_ns <= now_ns && now_ns <= clock_monotonic_ns());
		assert_int_equal(clock_resync(&slew.clock), CLOCK_RESYNC_DONE);
	}
}

static void a_clock_is_kept_only_where_the_kernel_counts_by_the_same(void **state) {
	static const struct {
		const char *current, *word;
	} rows[] = {{"", "is unknown"}, {"kvm-clock", "not the kernel's"}, {"hpet", "not"}};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct clock_tsc_facts facts = {.readable = true, .invariant = true};
		struct clock clock;

		snprintf(facts.kernel_current, sizeof(facts.kernel_current), "%s", rows[n].current);
		clock_init_resynced_from_facts(&clock, &facts);
		assert_int_equal(clock_source(&clock), CLOCK_SOURCE_MONOTONIC);
		assert_non_null(strstr(clock_reason(&clock), rows[n].word));
	}
}

// Each reading lies between two readings of the kernel's clock, and so does each correction. A
// preempted test compares wider bounds and does not fail.
static void a_kept_clock_agrees_with_the_kernel_within_its_bound(void **state) {
	struct clock clock;
	uint64_t end_ns = clock_monotonic_ns() + SECOND * 3 / 2;

	(void)state;
	clock_init_resynced(&clock);
	if (clock_source(&clock) != CLOCK_SOURCE_TSC) {
		print_message("no kept clock here: %s\n", clock_reason(&clock));
		skip();
	}
	while (clock_monotonic_ns() < end_ns) {
		uint64_t looked_ns = clock_monotonic_ns(), before_ns, now_ns, after_ns, bound_ns;

		if (clock_resync(&clock) != CLOCK_RESYNC_DONE)
			continue;
		do {
			before_ns = clock_monotonic_ns();
			now_ns = clock_now_ns(&clock);
			after_ns = clock_monotonic_ns();
			bound_ns = CLOCK_RESYNC_BOUND_NS + (after_ns - looked_ns) / 1000;
			assert_true(now_ns + bound_ns >= before_ns);
			assert_true(now_ns <= after_ns + bound_ns);
		} while (after_ns - looked_ns < CLOCK_RESYNC_INTERVAL_NS);
	}
	assert_int_equal(clock_source(&clock), CLOCK_SOURCE_TSC);
}

static void a_fake_clock_stands_until_it_is_moved(void **state) {
	struct clock clock;

	(void)state;
	clock_init_fake(&clock, 1000);
	assert_int_equal(clock_source(&clock), CLOCK_SOURCE_FAKE);
	assert_int_equal(clock_now_ns(&clock), 1000);
	assert_int_equal(clock_now_ns(&clock), 1000);
	clock_advance(&clock, SECOND);
	assert_int_equal(clock_now_ns(&clock), SECOND + 1000);
	clock_advance(&clock, UINT64_MAX - SECOND - 1000);
	assert_true(clock_now_ns(&clock) == UINT64_MAX);
}

static void every_source_has_a_name(void **state) {
	struct clock clock;

	(void)state;
	clock_init_monotonic(&clock);
	assert_string_equal(clock_source_name(clock_source(&clock)), "monotonic");
	assert_string_equal(clock_reason(&clock), "requested");
	assert_string_equal(clock_source_name(CLOCK_SOURCE_TSC), "tsc");
	assert_string_equal(clock_source_name(CLOCK_SOURCE_FAKE), "fake");
}

UNIT_GROUP(clock) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_that_give_no_rate_are_refused_and_leave_the_scale_alone),
		cmocka_unit_test(the_error_of_a_scale_is_the_brackets_over_the_interval),
		cmocka_unit_test(a_scale_converts_for_a_hundred_years_within_its_error),
		cmocka_unit_test(ticks_before_the_base_read_as_the_base),
		cmocka_unit_test(each_fact_against_the_tsc_is_named),
		cmocka_unit_test(a_clock_without_a_trusted_tsc_is_the_monotonic_one_and_says_why),
		cmocka_unit_test(a_tsc_clock_goes_forward_and_states_its_error),
		cmocka_unit_test(a_tsc_interval_agrees_with_the_kernel_to_a_thousandth),
		cmocka_unit_test(a_kept_clock_stays_within_its_bound_and_never_goes_back),
		cmocka_unit_test(a_kept_clock_learns_the_rate_that_the_kernel_slews_to),
		cmocka_unit_test(a_long_sleep_of_a_kept_clock_is_made_good_at_once),
		cmocka_unit_test(a_wide_sample_changes_nothing),
		cmocka_unit_test(a_counter_that_jumps_is_given_up),
		cmocka_unit_test(a_clock_is_kept_only_where_the_kernel_counts_by_the_same),
		cmocka_unit_test(a_kept_clock_agrees_with_the_kernel_within_its_bound),
		cmocka_unit_test(a_fake_clock_stands_until_it_is_moved),
		cmocka_unit_test(every_source_has_a_name),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
