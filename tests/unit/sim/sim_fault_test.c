// SPDX-License-Identifier: BSD-3-Clause
#include "fault.h"

#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

#define NODES 64
#define FAULTS_MAX 4

static void every_fault_is_read_back_as_it_was_written(void **state) {
	static const char *const texts[] = {
		"kill:5@2s",	      "forget:64@1.5s+3s", "leave:1@0s+250ms",
		"start:9@10s",	      "freeze:7@3s+6.25s", "stop:2@1s+40s",
		"host:3@2s",	      "deaf:3@2s+9s",	   "mute:3@2s+9s",
		"split/50@2s+1m",     "cut:3/7@10s+5s",	   "slow:3/200@1s+9s",
		"reject:3@1s+1m",     "reset:3@4s",	   "leap:8/20000@12.345s",
		"stall/10000@0s+10s", "loss:3/60@1s+1m",   "swap:3/7@2s+5s",
		"stale:3@2s+5s",      "move:3@2s+5s",	   "clone:3/7@2s+5s",
		"wrong:3/3@2s+5s",    "oneway:3/7@2s+5s",  "lag:3/900@2s+5s",
		"lossin:3/60@1s+1m",  "lossout:3/1@1s+1m", "split:7/50@2s+1m",
		"fence:64/5@2s+10m",  "fabric:3@2s+5s",
	};
	struct fault faults[FAULTS_MAX];
	char text[FAULT_TEXT_BYTES];
	uint32_t count;

	(void)state;
	for (size_t n = 0; n < sizeof(texts) / sizeof(texts[0]); n++) {
		assert_int_equal(
			faults_parse(texts[n], NODES, faults, FAULTS_MAX, &count, NULL), 0
		);
		assert_int_equal(count, 1);
		fault_format(&faults[0], text);
		assert_string_equal(text, texts[n]);
	}
}

static void a_list_is_read_in_its_order(void **state) {
	struct fault faults[FAULTS_MAX];
	uint32_t count;

	(void)state;
	assert_int_equal(
		faults_parse("kill:5@2s,cut:1/64@1s+2s", NODES, faults, FAULTS_MAX, &count, NULL), 0
	);
	assert_int_equal(count, 2);
	assert_int_equal(faults[0].kind, FAULT_KILL);
	assert_int_equal(faults[0].node, 4);
	assert_int_equal(faults[1].node, 0);
	assert_int_equal(faults[1].value, 63);
	assert_int_equal(faults[1].duration_ns, 2000000000);
}

static void what_is_no_fault_is_refused_with_the_reason(void **state) {
	static const struct {
		const char *text;
		int error;
		const char *reason;
	} cases[] = {
		{"", -EINVAL, "is no fault; there are: kill"},
		{"kil:5@2s", -EINVAL, "\"kil\""},
		{"kill@2s", -EINVAL, "needs a node"},
		{"kill:0@2s", -ERANGE, "64"},
		{"kill:65@2s", -ERANGE, "64"},
		{"kill:5", -EINVAL, "needs a time"},
		{"kill:5@2", -EINVAL, "2"},
		{"kill:5/3@2s", -EINVAL, "takes no value"},
		{"kill:5@2s,", -EINVAL, "is no fault"},
		{"freeze:5@2s", -EINVAL, "needs a duration"},
		{"freeze:5@2s+0s", -ERANGE, "0s"},
		{"stall:1/50@2s+1s", -EINVAL, "takes no node"},
		{"split:65/50@2s+1s", -ERANGE, "64"},
		{"lag:1/901@2s+1s", -ERANGE, "900"},
		{"wrong:1@2s+1s", -EINVAL, "needs a value"},
		{"clone:1/65@2s+1s", -ERANGE, "64"},
		{"split@2s+1s", -EINVAL, "needs a value"},
		{"split/100@2s+1s", -ERANGE, "99"},
		{"cut:1/65@2s+1s", -ERANGE, "64"},
		{"kill:1@1s,kill:1@1s,kill:1@1s,kill:1@1s,kill:1@1s", -E2BIG, "4 faults at most"},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct fault faults[FAULTS_MAX];
		struct parse_error error = {""};
		uint32_t count = 77;

		assert_int_equal(
			faults_parse(cases[n].text, NODES, faults, FAULTS_MAX, &count, &error),
			cases[n].error
		);
		assert_int_equal(count, 77);
		assert_non_null(strstr(error.text, cases[n].reason));
	}
}

UNIT_GROUP(sim_fault) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fault_is_read_back_as_it_was_written),
		cmocka_unit_test(a_list_is_read_in_its_order),
		cmocka_unit_test(what_is_no_fault_is_refused_with_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
