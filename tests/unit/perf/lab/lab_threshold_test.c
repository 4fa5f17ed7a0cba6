// SPDX-License-Identifier: BSD-3-Clause
#include "report/threshold.h"

#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

static struct threshold parse(const char *text) {
	struct threshold threshold;
	struct parse_error error = {.text = ""};

	assert_int_equal(threshold_parse(text, strlen(text), &error, &threshold), 0);
	return threshold;
}

static void a_threshold_says_figure_side_and_time(void **state) {
	struct threshold threshold = parse("p99.9>10us");

	(void)state;
	assert_int_equal(threshold.figure, THRESHOLD_QUANTILE);
	assert_int_equal(threshold.per_million, 999000);
	assert_false(threshold.below);
	assert_int_equal(threshold.bound, 10000);
	threshold = parse("half.max<1ms");
	assert_int_equal(threshold.of, THRESHOLD_HALF);
	assert_int_equal(threshold.figure, THRESHOLD_MAX);
	assert_true(threshold.below);
	assert_int_equal(parse("service.p50>1.5s").of, THRESHOLD_SERVICE);
	assert_int_equal(parse("mean>0").figure, THRESHOLD_MEAN);
}

static void a_threshold_of_bandwidth_says_a_rate(void **state) {
	static const struct {
		const char *text;
		enum threshold_unit unit;
		uint64_t bound;
	} rows[] = {
		{"p50<90Gbit/s", THRESHOLD_BITS, UINT64_C(90000000000)},
		{"mean<11.2GB/s", THRESHOLD_BYTES, UINT64_C(11200000000)},
		{"min<4MiB/s", THRESHOLD_BYTES, 4 << 20},
		{"max>1.5M/s", THRESHOLD_MESSAGES, 1500000},
		{"p99.9<7/s", THRESHOLD_MESSAGES, 7},
		{"p50<800bit/s", THRESHOLD_BITS, 800},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct threshold threshold = parse(rows[n].text);

		assert_int_equal(threshold.unit, rows[n].unit);
		assert_int_equal(threshold.bound, rows[n].bound);
	}
}

static void nonsense_is_no_threshold(void **state) {
	static const char *const wrong[] = {
		"",	     "p99",
		"p99>",	     "p99>10",
		"p99=10us",  "p98>10us",
		"half.>1us", "p99 > 10us",
		">10us",     "p99>>10us",
		"min>-1us",  "half.half.p50>1us",
		"service.",  "p99>10us<1us",
		"p50</s",    "p50<90Gbits/s",
		"p50<bit/s", "p50<90Gbit",
		"p50<-1M/s", "p50<9999999T/s",
		"p99>1h1m",  "p99.99999999999999999999999999999999999999999>1us",
	};

	(void)state;
	for (size_t n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
		struct parse_error error = {.text = ""};
		struct threshold threshold;

		assert_int_equal(
			threshold_parse(wrong[n], strlen(wrong[n]), &error, &threshold), -EINVAL
		);
		assert_true(error.text[0] != '\0');
	}
}

static void figures_that_a_run_does_not_have_are_refused(void **state) {
	struct plan read = plan_default, open = plan_default, send = plan_default;
	struct threshold half = parse("half.p50>1us"), service = parse("service.p50>1us");
	struct lab_why why = {.text = ""};

	(void)state;
	send.op = PLAN_SEND;
	open.op = PLAN_SEND;
	open.arrivals = PLAN_CONSTANT;
	assert_int_equal(threshold_check(&half, &read, &why), -EINVAL);
	assert_int_equal(threshold_check(&half, &send, &why), 0);
	assert_int_equal(threshold_check(&half, &open, &why), -EINVAL);
	assert_int_equal(threshold_check(&service, &send, &why), -EINVAL);
	assert_int_equal(threshold_check(&service, &open, &why), 0);
}

static void times_are_of_lat_and_rates_of_bw(void **state) {
	struct plan lat = plan_default, bw = plan_default;
	struct threshold time = parse("p50>1us"), rate = parse("p50<1Gbit/s");
	struct threshold half = parse("half.p50<1Gbit/s");
	struct lab_why why = {.text = ""};

	(void)state;
	bw.command = PLAN_BW;
	bw.op = PLAN_SEND;
	assert_int_equal(threshold_check(&time, &lat, &why), 0);
	assert_int_equal(threshold_check(&rate, &bw, &why), 0);
	assert_int_equal(threshold_check(&time, &bw, &why), -EINVAL);
	assert_int_equal(threshold_check(&rate, &lat, &why), -EINVAL);
	assert_int_equal(threshold_check(&half, &bw, &why), -EINVAL);
}

static struct lab_result result_with(uint64_t low, uint64_t high, enum quantile_note note) {
	return (struct lab_result){
		.summarized = true,
		.summary =
			{
				.all = {.min = 1000, .mean = 3000, .max = 9000},
				.quantile_count = 1,
				.quantiles =
					{{.per_million = 990000,
					  .low = low,
					  .high = high,
					  .note = note}},
			},
	};
}

static void only_a_whole_interval_beyond_passes_a_threshold(void **state) {
	static const struct {
		const char *text;
		enum threshold_answer answer;
	} rows[] = {
		{"p99>3us", THRESHOLD_FAILS},	     {"p99>4us", THRESHOLD_UNDECIDED},
		{"p99>4.5us", THRESHOLD_UNDECIDED},  {"p99>5us", THRESHOLD_HOLDS},
		{"p99<3us", THRESHOLD_HOLDS},	     {"p99<4.5us", THRESHOLD_UNDECIDED},
		{"p99<6us", THRESHOLD_FAILS},	     {"half.p99>1.9us", THRESHOLD_FAILS},
		{"half.p99>2.6us", THRESHOLD_HOLDS}, {"min>999ns", THRESHOLD_FAILS},
		{"min>1us", THRESHOLD_HOLDS},	     {"mean>2us", THRESHOLD_FAILS},
		{"max>9us", THRESHOLD_HOLDS},	     {"p50>1us", THRESHOLD_UNDECIDED},
	};
	struct lab_result result = result_with(4000, 5000, QUANTILE_SOUND);

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct threshold threshold = parse(rows[n].text);
		struct lab_why why = {.text = ""};

		assert_int_equal(threshold_judge(&threshold, &result, &why), rows[n].answer);
		assert_non_null(strstr(why.text, rows[n].text));
	}
}

// Windows of 10 messages of 1,000 bytes. A p99 of 4 to 5 us means 2.5M to 2M messages per second,
// or 20 to 16 Gbit/s. The best window has 10M messages per second, the worst 1.11M.
static void a_rate_is_judged_by_what_windows_took(void **state) {
	static const struct {
		const char *text;
		enum threshold_answer answer;
	} rows[] = {
		{"p99<21Gbit/s", THRESHOLD_FAILS},    {"p99<18Gbit/s", THRESHOLD_UNDECIDED},
		{"p99<15Gbit/s", THRESHOLD_HOLDS},    {"p99>15Gbit/s", THRESHOLD_FAILS},
		{"p99<2.6GB/s", THRESHOLD_FAILS},     {"p99<1.9GB/s", THRESHOLD_HOLDS},
		{"p99<2.6M/s", THRESHOLD_FAILS},      {"p99<1.9M/s", THRESHOLD_HOLDS},
		{"min<1.2M/s", THRESHOLD_FAILS},      {"min<1.1M/s", THRESHOLD_HOLDS},
		{"max<9.9M/s", THRESHOLD_HOLDS},      {"max<10.1M/s", THRESHOLD_FAILS},
		{"p50<1Gbit/s", THRESHOLD_UNDECIDED},
	};
	struct lab_result result = result_with(4000, 5000, QUANTILE_SOUND);

	(void)state;
	result.size = 1000;
	result.window_messages = 10;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct threshold threshold = parse(rows[n].text);
		struct lab_why why = {.text = ""};

		assert_int_equal(threshold_judge(&threshold, &result, &why), rows[n].answer);
		assert_non_null(strstr(why.text, rows[n].text));
	}
}

static void what_has_no_interval_and_what_is_not_valid_decides_nothing(void **state) {
	struct lab_result few = result_with(0, 0, QUANTILE_TOO_FEW);
	struct lab_result dependent = result_with(4000, 5000, QUANTILE_UNRESOLVED);
	struct lab_result none = {.summarized = false};
	struct lab_result saturated = result_with(4000, 5000, QUANTILE_SOUND);
	struct threshold threshold = parse("p99>1ns");
	struct lab_why why = {.text = ""};

	(void)state;
	saturated.open = saturated.load.saturated = true;
	assert_int_equal(threshold_judge(&threshold, &few, &why), THRESHOLD_UNDECIDED);
	assert_non_null(strstr(why.text, "undecided, too few samples for an interval"));
	why.text[0] = '\0';
	assert_int_equal(threshold_judge(&threshold, &dependent, &why), THRESHOLD_UNDECIDED);
	assert_non_null(strstr(why.text, "samples depend on each other for too long"));
	assert_int_equal(threshold_judge(&threshold, &none, &why), THRESHOLD_UNDECIDED);
	assert_int_equal(threshold_judge(&threshold, &saturated, &why), THRESHOLD_UNDECIDED);
}

UNIT_GROUP(lab_threshold) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_threshold_says_figure_side_and_time),
		cmocka_unit_test(a_threshold_of_bandwidth_says_a_rate),
		cmocka_unit_test(nonsense_is_no_threshold),
		cmocka_unit_test(figures_that_a_run_does_not_have_are_refused),
		cmocka_unit_test(times_are_of_lat_and_rates_of_bw),
		cmocka_unit_test(only_a_whole_interval_beyond_passes_a_threshold),
		cmocka_unit_test(a_rate_is_judged_by_what_windows_took),
		cmocka_unit_test(what_has_no_interval_and_what_is_not_valid_decides_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
