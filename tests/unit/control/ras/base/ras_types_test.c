// SPDX-License-Identifier: BSD-3-Clause
#include <ras/event.h>
#include <ras/profile.h>
#include <ras/types.h>
#include <support/cmocka.h>

#include <string.h>

static const char *state_name(unsigned n) {
	return ras_state_name((enum ras_state)n);
}

static const char *cause_name(unsigned n) {
	return ras_cause_name((enum ras_cause)n);
}

static const char *event_name(unsigned n) {
	return ras_event_name((enum ras_event_kind)n);
}

static void every_state_cause_and_event_has_a_name_of_its_own(void **state) {
	static const struct {
		const char *(*name)(unsigned n);
		unsigned count;
	} tables[] = {
		{state_name, RAS_LEFT + 1},
		{cause_name, RAS_CAUSE_COUNT},
		{event_name, RAS_EVENT_KIND_COUNT},
	};

	(void)state;
	for (size_t table = 0; table < 3; table++) {
		for (unsigned a = 0; a < tables[table].count; a++) {
			assert_non_null(tables[table].name(a));
			for (unsigned b = 0; b < a; b++)
				assert_string_not_equal(
					tables[table].name(a), tables[table].name(b)
				);
		}
	}
}

static void values_past_the_last_are_called_invalid(void **state) {
	(void)state;
	assert_string_equal(state_name(RAS_LEFT + 1), "invalid");
	assert_string_equal(cause_name(RAS_CAUSE_COUNT), "unknown"); // a cause of a newer version
	assert_string_equal(event_name(RAS_EVENT_KIND_COUNT), "INVALID");
	assert_string_equal(state_name(UINT32_MAX), "invalid");
}

static void profiles_are_found_by_their_whole_name(void **state) {
	(void)state;
	assert_ptr_equal(ras_profile_find("fast"), &ras_profile_fast);
	assert_ptr_equal(ras_profile_find("nccl"), &ras_profile_nccl);
	assert_null(ras_profile_find(""));
	assert_null(ras_profile_find("fas"));
	assert_null(ras_profile_find("faster"));
}

// Relations of the times that the rules depend on, whatever the values.
static void times_of_a_profile_follow_each_other(void **state) {
	static const struct ras_profile *const profiles[] = {&ras_profile_fast, &ras_profile_nccl};

	(void)state;
	for (size_t n = 0; n < 2; n++) {
		const struct ras_profile *profile = profiles[n];

		assert_true(2 * profile->beat_ns < profile->suspect_ns);
		assert_true(profile->suspect_ns + profile->confirm_ns < profile->dead_ns);
		assert_true(profile->delayed_ns <= profile->suspect_ns);
		assert_true(profile->left_keep_ns < profile->dead_keep_ns);
		assert_in_range(profile->observers, 1, RAS_OBSERVERS_MAX);
	}
}

UNIT_GROUP(ras_types) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_state_cause_and_event_has_a_name_of_its_own),
		cmocka_unit_test(values_past_the_last_are_called_invalid),
		cmocka_unit_test(profiles_are_found_by_their_whole_name),
		cmocka_unit_test(times_of_a_profile_follow_each_other),
	};

	return cmocka_run_group_tests_name("ras_types", tests, NULL, NULL);
}
