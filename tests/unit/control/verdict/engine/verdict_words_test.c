// SPDX-License-Identifier: BSD-3-Clause
#include <support/cmocka.h>
#include <verdict/observation.h>
#include <verdict/verdict.h>

#include <string.h>

// The second table of the design: the strongest permitted advice.
static const struct {
	enum verdict verdict;
	const char *name;
	enum verdict_grade grade;
	const char *advice;
} words[] = {
	{VERDICT_NONE, "none", VERDICT_GRADE_OK, "nothing"},
	{VERDICT_HEALTHY, "healthy", VERDICT_GRADE_OK, "nothing"},
	{VERDICT_NODE_BUSY, "node-busy", VERDICT_GRADE_WARNING, "warn"},
	{VERDICT_CHECK_WARNING, "check-warning", VERDICT_GRADE_WARNING, "warn"},
	{VERDICT_PATH_DEGRADED, "path-degraded", VERDICT_GRADE_WARNING, "warn"},
	{VERDICT_PATH_LOSSY, "path-lossy", VERDICT_GRADE_WARNING, "warn"},
	{VERDICT_UNSTABLE, "unstable", VERDICT_GRADE_WARNING, "warn"},
	{VERDICT_UNKNOWN, "unknown", VERDICT_GRADE_UNKNOWN, "show"},
	{VERDICT_MGMT_NET_DOWN, "mgmt-net-down", VERDICT_GRADE_CRITICAL, "drain-later"},
	{VERDICT_AGENT_DOWN, "agent-down", VERDICT_GRADE_WARNING, "restart"},
	{VERDICT_AGENT_FROZEN, "agent-frozen", VERDICT_GRADE_CRITICAL, "drain-later"},
	{VERDICT_CHECK_FAILED, "check-failed", VERDICT_GRADE_CRITICAL, "drain-later"},
	{VERDICT_DEVICE_STUCK, "device-stuck", VERDICT_GRADE_CRITICAL, "drain-later"},
	{VERDICT_FABRIC_DOWN, "fabric-down", VERDICT_GRADE_CRITICAL, "drain"},
	{VERDICT_NODE_DOWN, "node-down", VERDICT_GRADE_CRITICAL, "drain"},
};

static void every_verdict_has_its_name_grade_and_advice(void **state) {
	(void)state;
	assert_int_equal(sizeof(words) / sizeof(words[0]), VERDICT_COUNT);
	for (uint32_t n = 0; n < VERDICT_COUNT; n++) {
		enum verdict verdict = words[n].verdict;

		assert_string_equal(verdict_name(verdict), words[n].name);
		assert_int_equal(verdict_grade_of(verdict), words[n].grade);
		assert_string_equal(
			verdict_advice_name(verdict_advice_of(verdict)), words[n].advice
		);
	}
}

static void a_number_beyond_all_has_a_name_that_is_none_and_drains_nobody(void **state) {
	(void)state;
	assert_string_equal(verdict_name(VERDICT_COUNT), "?");
	assert_int_equal(verdict_grade_of(VERDICT_COUNT), VERDICT_GRADE_UNKNOWN);
	assert_int_equal(verdict_advice_of(VERDICT_COUNT), VERDICT_ADVICE_SHOW);
	assert_string_equal(observation_kind_name(OBSERVATION_KIND_COUNT), "?");
	assert_string_equal(observation_responder_name(OBSERVATION_RESPONDER_COUNT), "?");
	assert_string_equal(verdict_reach_name(VERDICT_REACH_COUNT), "?");
}

UNIT_GROUP(verdict_words) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_verdict_has_its_name_grade_and_advice),
		cmocka_unit_test(a_number_beyond_all_has_a_name_that_is_none_and_drains_nobody),
	};

	return cmocka_run_group_tests_name("verdict_words", tests, NULL, NULL);
}
