// SPDX-License-Identifier: BSD-3-Clause
#include "run/schedule.h"

#include <support/cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRIVALS 20000

static struct plan plan_of(enum plan_arrivals arrivals, uint64_t seed) {
	struct plan plan = plan_default;

	plan.arrivals = arrivals;
	plan.rate = 1000;
	plan.seed = seed;
	plan.iterations = ARRIVALS;
	return plan;
}

static uint64_t *make(const struct plan *plan) {
	struct lab_why why = {.text = ""};
	uint64_t *due_ns, count;

	assert_int_equal(schedule_make(plan, NULL, &why, &due_ns, &count), 0);
	assert_int_equal(count, ARRIVALS);
	for (uint64_t n = 1; n < count; n++)
		assert_true(due_ns[n] >= due_ns[n - 1]);
	return due_ns;
}

static void constant_arrivals_are_as_far_apart_as_the_rate_says(void **state) {
	struct plan plan = plan_of(PLAN_CONSTANT, 1);
	uint64_t *due_ns = make(&plan);

	(void)state;
	for (uint64_t n = 0; n < ARRIVALS; n++)
		assert_int_equal(due_ns[n], (n + 1) * 1000000);
	free(due_ns);
}

// Return the largest difference between the distribution of intervals and the exponential one with
// mean 1 ms.
static double distance_from_exponential(const uint64_t *due_ns) {
	double worst = 0;

	for (int step = 1; step < 120; step++) {
		double ms = 0.05 * step, below = 0;

		for (uint64_t n = 1; n < ARRIVALS; n++)
			below += (double)(due_ns[n] - due_ns[n - 1]) <= ms * 1e6;
		worst = fmax(worst, fabs(below / (ARRIVALS - 1) - (1 - exp(-ms))));
	}
	return worst;
}

static void poisson_arrivals_have_exponential_distances(void **state) {
	struct plan plan = plan_of(PLAN_POISSON, 5);
	uint64_t *due_ns = make(&plan);

	(void)state;
	// The 99.9 % point of the Kolmogorov distribution.
	assert_true(distance_from_exponential(due_ns) < 1.95 / sqrt(ARRIVALS));
	free(due_ns);
}

static void the_same_seed_is_the_same_schedule_and_another_is_not(void **state) {
	struct plan plan = plan_of(PLAN_POISSON, 5), other = plan_of(PLAN_POISSON, 6);
	uint64_t *one = make(&plan), *same = make(&plan), *different = make(&other);

	(void)state;
	assert_memory_equal(one, same, ARRIVALS * sizeof(*one));
	assert_int_not_equal(one[ARRIVALS - 1], different[ARRIVALS - 1]);
	free(one);
	free(same);
	free(different);
}

static void bursts_are_of_eight_at_the_mean_rate(void **state) {
	struct plan plan = plan_of(PLAN_ONOFF, 3);
	uint64_t *due_ns = make(&plan);

	(void)state;
	for (uint64_t n = 0; n < ARRIVALS; n++) {
		bool begins = n > 0 && due_ns[n] != due_ns[n - 1];

		assert_true(!begins || n % 8 == 0);
	}
	assert_true(fabs((double)due_ns[ARRIVALS - 1] / ARRIVALS / 1e6 - 1) < 0.1);
	free(due_ns);
}

static void a_duration_makes_as_many_as_the_rate_says(void **state) {
	struct plan plan = plan_of(PLAN_CONSTANT, 1);
	struct lab_why why = {.text = ""};
	uint64_t *due_ns, count;

	(void)state;
	plan.iterations = 0;
	plan.duration_ns = 250000000;
	assert_int_equal(schedule_make(&plan, NULL, &why, &due_ns, &count), 0);
	assert_int_equal(count, 250);
	free(due_ns);
}

static int read_trace(const char *text, struct lab_why *why, uint64_t **due_ns, uint64_t *count) {
	struct plan plan = plan_of(PLAN_TRACE, 1);
	char path[] = "/tmp/tocsin-trace-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	err = schedule_make(&plan, path, why, due_ns, count);
	unlink(path);
	return err;
}

static void a_trace_gives_its_times(void **state) {
	struct lab_why why = {.text = ""};
	uint64_t *due_ns, count;

	(void)state;
	assert_int_equal(
		read_trace("# seconds\n0\n0.5\n\n0.5\n1.000000001\n", &why, &due_ns, &count), 0
	);
	assert_int_equal(count, 4);
	assert_int_equal(due_ns[1], 500000000);
	assert_int_equal(due_ns[3], 1000000001);
	free(due_ns);
}

static void a_trace_of_other_programs_gives_its_times(void **state) {
	struct lab_why why = {.text = ""};
	uint64_t *due_ns, count;

	(void)state;
	assert_int_equal(
		read_trace("# s\r\n 0.000025\t\r\n\r\n0.5 \r\n3600", &why, &due_ns, &count), 0
	);
	assert_int_equal(count, 3);
	assert_int_equal(due_ns[0], 25000);
	assert_int_equal(due_ns[1], 500000000);
	assert_int_equal(due_ns[2], UINT64_C(3600000000000));
	free(due_ns);
}

static void times_are_read_as_programs_write_them(void **state) {
	static const struct {
		const char *text;
		uint64_t ns;
	} rows[] = {
		{"2.5e-05", 25000},
		{"2.5E-5", 25000},
		{"1.2345678901234567e-05", 12345},
		{"0.123456789012345", 123456789},
		{"3.6e3", UINT64_C(3600000000000)},
		{"3.6e+03", UINT64_C(3600000000000)},
		{"1e-300", 0},
		{"0e9", 0},
		{"5.", UINT64_C(5000000000)},
		{".5", 500000000},
		{"000000000000000000000000012.0000000000000000000000009", UINT64_C(12000000000)},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lab_why why = {.text = ""};
		uint64_t *due_ns, count;

		assert_int_equal(read_trace(rows[n].text, &why, &due_ns, &count), 0);
		assert_int_equal(count, 1);
		assert_int_equal(due_ns[0], rows[n].ns);
		free(due_ns);
	}
}

static void a_trace_that_is_none_is_refused_with_its_line(void **state) {
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"", "has no arrival"},
		{"1\n0.5\n", "line 2: \"0.5\" is earlier than the line before"},
		{"1700000000.5\r\n",
		 "\"1700000000.5\" is not a time in seconds from the beginning"},
		{"1e9\n", "line 1"},
		{"1e\n", "line 1"},
		{"1e-5x\n", "line 1"},
		{"1e99999\n", "line 1"},
		{"1.2.3\n", "line 1"},
		{".\n", "line 1"},
		{"e5\n", "line 1"},
		{"3600.000000001\n", "line 1"},
		{"nan\n", "line 1"},
		{"1\nx\n", "line 2"},
		{"-1\n", "line 1"},
		{"0\n99999999999999\n", "line 2"},
		{"0000000000000000000000000000000000000000000000000000000000000000000001\n",
		 "line 1"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct lab_why why = {.text = ""};
		uint64_t *due_ns, count;

		assert_int_equal(read_trace(rows[n].text, &why, &due_ns, &count), -EINVAL);
		assert_non_null(strstr(why.text, rows[n].says));
	}
}

static void a_trace_that_is_not_there_is_said_so(void **state) {
	struct plan plan = plan_of(PLAN_TRACE, 1);
	struct lab_why why = {.text = ""};
	uint64_t *due_ns, count;

	(void)state;
	assert_int_equal(
		schedule_make(&plan, "/nonexistent/trace", &why, &due_ns, &count), -ENOENT
	);
	assert_non_null(strstr(why.text, "/nonexistent/trace"));
}

// The time before the first arrival must not look like a peer that hangs.
static void the_longest_pause_may_be_before_the_first_arrival(void **state) {
	static const uint64_t late[] = {60000, 60001, 70001}, early[] = {3, 10, 10, 25};

	(void)state;
	assert_int_equal(schedule_pause_max_ns(late, 3), 60000);
	assert_int_equal(schedule_pause_max_ns(early, 4), 15);
	assert_int_equal(schedule_pause_max_ns(NULL, 0), 0);
}

UNIT_GROUP(lab_schedule) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constant_arrivals_are_as_far_apart_as_the_rate_says),
		cmocka_unit_test(poisson_arrivals_have_exponential_distances),
		cmocka_unit_test(the_same_seed_is_the_same_schedule_and_another_is_not),
		cmocka_unit_test(bursts_are_of_eight_at_the_mean_rate),
		cmocka_unit_test(a_duration_makes_as_many_as_the_rate_says),
		cmocka_unit_test(a_trace_gives_its_times),
		cmocka_unit_test(a_trace_of_other_programs_gives_its_times),
		cmocka_unit_test(times_are_read_as_programs_write_them),
		cmocka_unit_test(a_trace_that_is_none_is_refused_with_its_line),
		cmocka_unit_test(a_trace_that_is_not_there_is_said_so),
		cmocka_unit_test(the_longest_pause_may_be_before_the_first_arrival),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
