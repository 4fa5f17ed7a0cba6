// SPDX-License-Identifier: BSD-3-Clause
#include <dataplane/soft.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

static void every_fault_is_read_in_any_order(void **state) {
	static const struct {
		const char *text;
		struct soft_faults faults;
	} rows[] = {
		{"", {0}},
		{"loss=1%", {.loss_ppm = 10000, .any = true}},
		{"loss=0.0001%", {.loss_ppm = 1, .any = true}},
		{"loss=100%", {.loss_ppm = 1000000, .any = true}},
		{"loss=0", {0}},
		{"large=100%", {.large_ppm = 1000000, .any = true}},
		{"large=0%", {0}},
		{"loss=0%,seed=9", {.seed = 9}},
		{"seed=0x10", {.seed = 16}},
		{"seed=18446744073709551615", {.seed = UINT64_MAX}},
		{"delay=50us", {.delay_ns = 50000, .any = true}},
		{"delay=0", {0}},
		{"delay=50us±20us", {.delay_ns = 50000, .jitter_ns = 20000, .any = true}},
		{"delay=50us+-20us", {.delay_ns = 50000, .jitter_ns = 20000, .any = true}},
		{"delay=1.5ms±1.5ms", {.delay_ns = 1500000, .jitter_ns = 1500000, .any = true}},
		{"delay=1s+-0", {.delay_ns = 1000000000, .any = true}},
		{"loss=1%,delay=50us±20us,reorder=2%,dup=0.5%,corrupt=0.1%,seed=7",
		 {10000, 20000, 5000, 1000, 50000, 20000, 7, true, 0, {.family = SOCK_ADDR_NONE}}},
		{"seed=7,corrupt=0.1%,dup=0.5%,reorder=2%,delay=50us±20us,loss=1%",
		 {10000, 20000, 5000, 1000, 50000, 20000, 7, true, 0, {.family = SOCK_ADDR_NONE}}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct soft_faults *expected = &rows[i].faults;
		struct parse_error error = {""};
		struct soft_faults faults;

		if (soft_faults_parse(rows[i].text, strlen(rows[i].text), &error, &faults) != 0)
			fail_msg("%s", error.text);
		assert_int_equal(faults.loss_ppm, expected->loss_ppm);
		assert_int_equal(faults.reorder_ppm, expected->reorder_ppm);
		assert_int_equal(faults.duplicate_ppm, expected->duplicate_ppm);
		assert_int_equal(faults.corrupt_ppm, expected->corrupt_ppm);
		assert_int_equal(faults.delay_ns, expected->delay_ns);
		assert_int_equal(faults.jitter_ns, expected->jitter_ns);
		assert_int_equal(faults.seed, expected->seed);
		assert_int_equal(faults.large_ppm, expected->large_ppm);
		assert_int_equal(faults.any, expected->any);
		assert_int_equal(faults.to.family, SOCK_ADDR_NONE);
	}
}

static void packets_to_one_address_are_singled_out(void **state) {
	struct soft_faults faults;
	char text[SOCK_ADDR_TEXT_BYTES];

	(void)state;
	assert_int_equal(soft_faults_parse("loss=1%,to=192.0.2.7", 20, NULL, &faults), 0);
	sock_addr_format_host(&faults.to, text);
	assert_string_equal(text, "192.0.2.7");
	assert_int_equal(soft_faults_parse("to=::1,delay=1ms", 16, NULL, &faults), 0);
	assert_int_equal(faults.to.family, SOCK_ADDR_V6);
	assert_int_equal(soft_faults_parse("to=192.0.2.7", 12, NULL, &faults), 0);
	assert_false(faults.any);
	assert_int_equal(soft_faults_parse("to=0.0.0.0", 10, NULL, &faults), -EINVAL);
	assert_int_equal(soft_faults_parse("to=everybody", 12, NULL, &faults), -EINVAL);
}

#define UNKNOWN \
	" is not a fault; use loss, delay, reorder, dup, corrupt, large, to or seed, for example loss=1%"
#define TWICE " repeats a fault; each fault is allowed once"
#define WRONG " has an invalid value: "
#define NO_PERCENT " is not a percentage: a number followed by % is needed"
#define NO_DURATION " is not a duration: a number followed by ns, us, ms, s, m, h or d is needed"

static void a_mistake_is_answered_with_item_value_and_what_is_allowed(void **state) {
	static const struct {
		const char *text;
		size_t length;
		const char *error;
	} rows[] = {
		{TEXT("lost=1%"), "\"lost=1%\"" UNKNOWN},
		{TEXT("LOSS=1%"), "\"LOSS=1%\"" UNKNOWN},
		{TEXT(" loss=1%"), "\" loss=1%\"" UNKNOWN},
		{TEXT("los=1%"), "\"los=1%\"" UNKNOWN},
		{TEXT("=1%"), "\"=1%\"" UNKNOWN},
		{TEXT(","), "\"\"" UNKNOWN},
		{TEXT("loss=1%,"), "\"\"" UNKNOWN},
		{TEXT(",loss=1%"), "\"\"" UNKNOWN},
		{TEXT("loss=1%,,dup=1%"), "\"\"" UNKNOWN},
		{TEXT("loss=1% dup=1%"), "\"loss=1% dup=1%\"" WRONG "\"1% dup=1%\"" NO_PERCENT},
		{TEXT("loss"), "\"loss\" has no value; write for example loss=1%"},
		{TEXT("dup=1%,delay"), "\"delay\" has no value; write for example delay=50us±20us"},
		{TEXT("seed"), "\"seed\" has no value; write for example seed=7"},
		{TEXT("loss=1%,loss=2%"), "\"loss=2%\"" TWICE},
		{TEXT("seed=1,dup=1%,seed=1"), "\"seed=1\"" TWICE},
		{TEXT("loss="), "\"loss=\"" WRONG "\"\"" NO_PERCENT},
		{TEXT("loss=1"), "\"loss=1\"" WRONG "\"1\"" NO_PERCENT},
		{TEXT("loss=1\0%"), "\"loss=1\\x00%\"" WRONG "\"1\\x00%\"" NO_PERCENT},
		{TEXT("loss=-1%"), "\"loss=-1%\"" WRONG "\"-1%\"" NO_PERCENT},
		{TEXT("dup=101%"),
		 "\"dup=101%\"" WRONG "\"101%\" is out of range: 0% to 100% is allowed"},
		{TEXT("corrupt=0.00001%"),
		 "\"corrupt=0.00001%\"" WRONG "\"0.00001%\" is finer than 0.0001%"},
		{TEXT("reorder=5us"), "\"reorder=5us\"" WRONG "\"5us\"" NO_PERCENT},
		{TEXT("delay=5%"), "\"delay=5%\"" WRONG "\"5%\"" NO_DURATION},
		{TEXT("delay=±5us"), "\"delay=±5us\"" WRONG "\"\"" NO_DURATION},
		{TEXT("delay=5us±"), "\"delay=5us±\"" WRONG "\"\"" NO_DURATION},
		{TEXT("delay=5us+5us"), "\"delay=5us+5us\"" WRONG "\"5us+5us\"" NO_DURATION},
		{TEXT("delay=5us+-1us+-1us"),
		 "\"delay=5us+-1us+-1us\"" WRONG "\"1us+-1us\"" NO_DURATION},
		{TEXT("delay=5us±6us"),
		 "\"delay=5us±6us\"" WRONG "\"6us\" is out of range: 0s to 5us is allowed"},
		{TEXT("delay=2s"),
		 "\"delay=2s\"" WRONG "\"2s\" is out of range: 0s to 1s is allowed"},
		{TEXT("seed=x"), "\"seed=x\"" WRONG "\"x\" is not a number: decimal digits, or "
				 "0x and hexadecimal digits, are needed"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct parse_error error = {""};
		struct soft_faults faults = {.seed = 42};

		assert_int_equal(
			soft_faults_parse(rows[i].text, rows[i].length, &error, &faults), -EINVAL
		);
		assert_string_equal(error.text, rows[i].error);
		assert_int_equal(faults.seed, 42);
		assert_int_equal(
			soft_faults_parse(rows[i].text, rows[i].length, NULL, &faults), -EINVAL
		);
	}
}

UNIT_GROUP(soft_faults_parse) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fault_is_read_in_any_order),
		cmocka_unit_test(packets_to_one_address_are_singled_out),
		cmocka_unit_test(a_mistake_is_answered_with_item_value_and_what_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
