// SPDX-License-Identifier: BSD-3-Clause
#include <lib/cpu_set.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

static struct cpu_set set_of(const char *text) {
	struct parse_error error;
	struct cpu_set set;

	if (cpu_set_parse(text, strlen(text), &error, &set) != 0)
		fail_msg("%s", error.text);
	return set;
}

static void parse_refuses_what_is_not_a_set(void **state) {
	static const struct error_text rows[] = {
		{TEXT(""), -EINVAL},
		{TEXT(","), -EINVAL},
		{TEXT("1,"), -EINVAL},
		{TEXT(",1"), -EINVAL},
		{TEXT("1,,2"), -EINVAL},
		{TEXT("-"), -EINVAL},
		{TEXT("-1"), -EINVAL},
		{TEXT("1-"), -EINVAL},
		{TEXT("1-2-3"), -EINVAL},
		{TEXT("3-1"), -EINVAL},
		{TEXT("1 "), -EINVAL},
		{TEXT("1, 2"), -EINVAL},
		{TEXT("1\n"), -EINVAL},
		{TEXT("1\0"), -EINVAL},
		{TEXT("1\0,2"), -EINVAL},
		{TEXT("0x1"), -EINVAL},
		{TEXT("all"), -EINVAL},
		{TEXT("0-10:2"), -EINVAL},
		{TEXT("\xff"), -EINVAL},
		{TEXT("4096"), -ERANGE},
		{TEXT("0-4096"), -ERANGE},
		{TEXT("4294967296"), -ERANGE}, // would be 0 if truncated to 32 bits
		{TEXT("0-99999999999999999999999"), -ERANGE},
		{TEXT("99999999999999999999999-0"), -EINVAL},
		{TEXT("4096,x"), -EINVAL},
	};
	const struct cpu_set untouched = {{0x5eed}};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct cpu_set set = untouched;
		struct parse_error error = {""};
		int err = cpu_set_parse(rows[i].text, rows[i].length, &error, &set);

		if (err != rows[i].err)
			fail_msg("%s: got %d: %s", rows[i].text, err, error.text);
		assert_memory_equal(&set, &untouched, sizeof(set));
		assert_int_equal(error.text[0], '"');
	}
}

static void parse_error_says_what_is_allowed(void **state) {
	struct parse_error error;
	struct cpu_set set;

	(void)state;
	cpu_set_parse(TEXT("3-1"), &error, &set);
	assert_string_equal(
		error.text,
		"\"3-1\" is not a set of CPUs: numbers and ranges separated by commas are "
		"needed, such as 0-3,8"
	);
	cpu_set_parse(TEXT("5000"), &error, &set);
	assert_string_equal(error.text, "\"5000\" is out of range: CPUs 0 to 4095 are allowed");
}

static void parse_and_format_agree(void **state) {
	static const struct {
		const char *text;
		const char *printed;
		uint32_t count;
	} rows[] = {
		{"0", "0", 1},
		{"0-3,8", "0-3,8", 5},
		{"8,0-3", "0-3,8", 5},
		{"0-3,2-5,5", "0-5", 6},
		{"3,2,1", "1-3", 3},
		{"007", "7", 1},
		{"62-65", "62-65", 4}, // crosses a 64-bit word
		{"63,64,127,128", "63-64,127-128", 4},
		{"4095", "4095", 1},
		{"0-4095", "0-4095", 4096},
		{"0,4095", "0,4095", 2},
	};
	char text[CPU_SET_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct cpu_set set = set_of(rows[i].text);

		cpu_set_format(&set, text, sizeof(text));
		assert_string_equal(text, rows[i].printed);
		assert_int_equal(cpu_set_count(&set), rows[i].count);
	}
}

static void format_of_any_set_fits_and_is_read_back(void **state) {
	char text[CPU_SET_TEXT_BYTES];

	(void)state;
	// All lengths of runs and gaps up to 4. Pairs with a gap of one make the longest text.
	for (uint32_t run = 1; run < 5; run++) {
		for (uint32_t gap = 1; gap < 5; gap++) {
			struct cpu_set set = {0};
			struct cpu_set back;

			for (uint32_t cpu = 0; cpu < CPU_SET_CPUS_MAX; cpu++) {
				if (cpu % (run + gap) < run)
					cpu_set_add(&set, cpu);
			}
			cpu_set_format(&set, text, sizeof(text));
			back = set_of(text);
			assert_memory_equal(&back, &set, sizeof(set));
		}
	}
}

static void format_shows_what_it_left_out(void **state) {
	struct cpu_set set = set_of("0-3,8,10");
	struct cpu_set empty = {0};
	char text[16];

	(void)state;
	cpu_set_format(&empty, text, 4);
	assert_string_equal(text, "");
	cpu_set_format(&set, text, 9);
	assert_string_equal(text, "0-3,8,10");
	cpu_set_format(&set, text, 8);
	assert_string_equal(text, "0-3...");
	cpu_set_format(&set, text, 4);
	assert_string_equal(text, "...");
}

static void next_walks_the_set_in_order(void **state) {
	static const uint32_t expected[] = {0, 63, 64, 200, 4095};
	struct cpu_set set = set_of("4095,200,63-64,0");
	struct cpu_set empty = {0};
	size_t seen = 0;

	(void)state;
	for (uint32_t cpu = cpu_set_next(&set, 0); cpu < CPU_SET_CPUS_MAX;
	     cpu = cpu_set_next(&set, cpu + 1))
		assert_int_equal(cpu, expected[seen++]);
	assert_int_equal(seen, COUNT_OF(expected));
	assert_int_equal(cpu_set_next(&set, CPU_SET_CPUS_MAX), CPU_SET_CPUS_MAX);
	assert_int_equal(cpu_set_next(&empty, 0), CPU_SET_CPUS_MAX);
}

static void parse_allowed_lists_what_is_not_and_what_is_allowed(void **state) {
	struct cpu_set allowed = set_of("0-2,8");
	struct cpu_set set = set_of("7");
	struct parse_error error;

	(void)state;
	assert_int_equal(cpu_set_parse_allowed(TEXT("1-4,8,9"), &allowed, &error, &set), -ERANGE);
	assert_string_equal(
		error.text,
		"\"1-4,8,9\" has CPUs that this process may not use: 3-4,9; allowed are "
		"0-2,8"
	);
	assert_int_equal(cpu_set_parse_allowed(TEXT("x"), &allowed, &error, &set), -EINVAL);
	assert_int_equal(cpu_set_next(&set, 0), 7);
	assert_int_equal(cpu_set_parse_allowed(TEXT("8,0-1"), &allowed, &error, &set), 0);
	assert_int_equal(cpu_set_count(&set), 3);
}

static void allowed_set_is_the_affinity_of_the_thread(void **state) {
	struct cpu_set before;
	struct cpu_set one = {0};
	struct cpu_set now;
	struct cpu_set nothing = {0};

	(void)state;
	assert_int_equal(cpu_set_get_allowed(&before), 0);
	assert_true(cpu_set_count(&before) > 0);
	assert_true(cpu_set_has(&before, (uint32_t)sched_getcpu()));
	cpu_set_add(&one, cpu_set_next(&before, 0));
	assert_int_equal(cpu_set_bind_thread(&one), 0);
	assert_int_equal(cpu_set_get_allowed(&now), 0);
	assert_memory_equal(&now, &one, sizeof(now));
	assert_int_equal(cpu_set_bind_thread(&nothing), -EINVAL);
	assert_int_equal(cpu_set_bind_thread(&before), 0);
}

UNIT_GROUP(cpu_set) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_refuses_what_is_not_a_set),
		cmocka_unit_test(parse_error_says_what_is_allowed),
		cmocka_unit_test(parse_and_format_agree),
		cmocka_unit_test(format_of_any_set_fits_and_is_read_back),
		cmocka_unit_test(format_shows_what_it_left_out),
		cmocka_unit_test(next_walks_the_set_in_order),
		cmocka_unit_test(parse_allowed_lists_what_is_not_and_what_is_allowed),
		cmocka_unit_test(allowed_set_is_the_affinity_of_the_thread),
	};

	return cmocka_run_group_tests_name("cpu_set", tests, NULL, NULL);
}
