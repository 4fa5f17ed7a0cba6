// SPDX-License-Identifier: BSD-3-Clause
// Checks of the user: when they run, and which statements follow. Each known drain or undrain
// mistake of other tools has a test.
#include "checks/check.h"
#include "control/checks/checks_bed.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct check_settings disk = {
	.name = "disk",
	.command = "/disk --all",
	.interval_ns = 30 * BED_SEC,
	.timeout_ns = 5 * BED_SEC,
	.confirm = 1,
	.clear = 1,
};

static void use(const struct check_settings *settings) {
	assert_int_equal(checks_set_user(bed.checks, settings, 1), 0);
}

static void time_out(const char *program) {
	const struct spawn_result result = {.end = SPAWN_TIMED_OUT, .status = SIGTERM};

	bed_ends(program, &result);
}

static struct check_view view(uint32_t n) {
	struct check_view view;

	checks_at(bed.checks, n, &view);
	return view;
}

static void what_has_not_run_yet_is_unknown_and_runs_soon(void **state) {
	(void)state;
	use(&disk);
	assert_int_equal(bed_said("CheckUnknownDisk"), VERDICT_UNKNOWN);
	assert_string_equal(bed_evidence("CheckUnknownDisk"), "the check has not run yet");
	assert_false(view(0).ran);
	bed_turn(CHECKS_FIRST_SPREAD_NS);
	assert_true(bed_runs("/disk"));
	assert_string_equal(bed.running_what[0], "/disk|--all");
	assert_int_equal(bed.running_timeout_ns[0], 5 * BED_SEC);
	assert_true(view(0).running);
	bed_exit("/disk", 0, "fine");
	assert_int_equal(bed_said("CheckUnknownDisk"), VERDICT_HEALTHY);
	assert_int_equal(bed_said("CheckDisk"), VERDICT_NONE); // the check never failed before
}

static void levels_are_said_and_taken_back(void **state) {
	(void)state;
	use(&disk);
	bed_exit("/disk", 1, "getting full");
	assert_int_equal(bed_said("CheckDisk"), VERDICT_CHECK_WARNING);
	bed_exit("/disk", 2, "full | x=1");
	assert_int_equal(bed_said("CheckDisk"), VERDICT_CHECK_FAILED);
	assert_string_equal(bed_evidence("CheckDisk"), "full");
	bed_exit("/disk", 1, "getting full");
	assert_int_equal(bed_said("CheckDisk"), VERDICT_CHECK_WARNING);
	bed_exit("/disk", 0, "fine");
	assert_int_equal(bed_said("CheckDisk"), VERDICT_HEALTHY);
	assert_int_equal(bed.said[bed.said_count - 1].subject, 7);
	assert_int_equal(view(0).counts[CHECK_OK], 1);
	assert_int_equal(view(0).counts[CHECK_WARNING], 2);
}

// node-problem-detector and NHC: a check with an unknown result must not look healthy.
static void what_is_unknown_neither_fails_a_check_nor_clears_it(void **state) {
	(void)state;
	use(&disk);
	time_out("/disk");
	assert_int_equal(bed_said("CheckUnknownDisk"), VERDICT_UNKNOWN);
	assert_int_equal(bed_said("CheckDisk"), VERDICT_NONE);
	bed_exit("/disk", 2, "full");
	assert_int_equal(bed_said("CheckDisk"), VERDICT_CHECK_FAILED);
	assert_int_equal(bed_said("CheckUnknownDisk"), VERDICT_HEALTHY);
	time_out("/disk");
	assert_int_equal(bed_said("CheckDisk"), VERDICT_CHECK_FAILED);
	assert_int_equal(bed_said("CheckUnknownDisk"), VERDICT_UNKNOWN);
	assert_string_equal(bed_evidence("CheckUnknownDisk"), "timed out after 5.0 s");
	assert_string_equal(view(0).reason, "CheckDisk");
	bed_exit("/disk", 0, "fine");
	assert_int_equal(bed_said("CheckDisk"), VERDICT_HEALTHY);
	assert_int_equal(bed_said("CheckUnknownDisk"), VERDICT_HEALTHY);
}

// If the old statement were withdrawn first, the node would look healthy for a moment.
static void what_is_bad_is_said_before_unknown_is_taken_back(void **state) {
	uint32_t bad = 0, back = 0;

	(void)state;
	use(&disk);
	bed_exit("/disk", 2, "full");
	for (uint32_t n = 0; n < bed.said_count; n++) {
		if (bed.said[n].verdict == VERDICT_CHECK_FAILED)
			bad = n;
		if (bed.said[n].verdict == VERDICT_HEALTHY)
			back = n;
	}
	assert_true(bad < back);
}

static void a_check_that_flaps_is_judged_by_runs_in_a_row(void **state) {
	struct check_settings settings = disk;
	// Exit status, and the verdict stated afterwards, with confirm = 3 and clear = 2.
	static const struct {
		int status;
		enum verdict said;
	} runs[] = {
		{2, VERDICT_NONE},	    {2, VERDICT_NONE},	       {0, VERDICT_NONE},
		{2, VERDICT_NONE},	    {1, VERDICT_NONE},	       {2, VERDICT_CHECK_WARNING},
		{2, VERDICT_CHECK_WARNING}, {2, VERDICT_CHECK_FAILED}, {0, VERDICT_CHECK_FAILED},
		{3, VERDICT_CHECK_FAILED},  {0, VERDICT_CHECK_FAILED}, {1, VERDICT_CHECK_WARNING},
		{0, VERDICT_CHECK_WARNING}, {0, VERDICT_HEALTHY},
	};

	(void)state;
	settings.confirm = 3;
	settings.clear = 2;
	use(&settings);
	for (size_t n = 0; n < COUNT_OF(runs); n++) {
		bed_exit("/disk", runs[n].status, "x");
		assert_int_equal(bed_said("CheckDisk"), runs[n].said);
	}
}

static void with_npd_one_is_critical_and_two_unknown(void **state) {
	struct check_settings settings = disk;

	(void)state;
	settings.convention = CHECK_NPD;
	use(&settings);
	bed_exit("/disk", 1, "full");
	assert_int_equal(bed_said("CheckDisk"), VERDICT_CHECK_FAILED);
	bed_exit("/disk", 2, "?");
	assert_int_equal(bed_said("CheckDisk"), VERDICT_CHECK_FAILED);
	assert_int_equal(bed_said("CheckUnknownDisk"), VERDICT_UNKNOWN);
}

static void runs_keep_their_interval_and_never_overlap(void **state) {
	uint64_t before, gap;

	(void)state;
	use(&disk);
	bed_exit("/disk", 0, "fine");
	for (uint32_t n = 0; n < 20; n++) {
		before = loop_now_ns(bed.loop);
		gap = view(0).next_ns - before;
		assert_in_range(gap, 27 * BED_SEC, 32 * BED_SEC);
		bed_exit("/disk", 0, "fine");
	}
	while (!bed_runs("/disk"))
		bed_turn(BED_SEC);
	before = bed.started;
	bed_turn(500 * BED_SEC); // the check runs for a long time
	assert_int_equal(bed.started, before);
	assert_int_equal(view(0).next_ns, UINT64_MAX);
}

static void many_checks_do_not_all_run_at_once(void **state) {
	struct check_settings settings[CHECKS_USER_MAX];
	char names[CHECKS_USER_MAX][8], commands[CHECKS_USER_MAX][8];

	(void)state;
	for (uint32_t n = 0; n < CHECKS_USER_MAX; n++) {
		settings[n] = disk;
		snprintf(names[n], sizeof(names[n]), "c%u", n);
		snprintf(commands[n], sizeof(commands[n]), "/c%u", n);
		settings[n].name = names[n];
		settings[n].command = commands[n];
	}
	assert_int_equal(checks_set_user(bed.checks, settings, CHECKS_USER_MAX), 0);
	bed_turn(CHECKS_FIRST_SPREAD_NS / 2);
	assert_in_range(bed.started, 1, CHECKS_USER_MAX - 1);
	bed_turn(CHECKS_FIRST_SPREAD_NS / 2 + BED_SEC);
	assert_int_equal(bed.started, CHECKS_USER_MAX);
}

// node-problem-detector #1110: a check that hung in the kernel blocked the program, or was
// started again.
static void a_check_that_hangs_is_said_not_waited_for_and_not_started_again(void **state) {
	const struct spawn_stuck stuck = {77, 'D', "cat", "nfs_wait_bit_killable"};
	struct check_settings two[2] = {disk, disk};
	struct spawn_request *request;
	uint64_t before;

	(void)state;
	two[1].name = "other";
	two[1].command = "/other";
	assert_int_equal(checks_set_user(bed.checks, two, 2), 0);
	bed_exit("/disk", 2, "full");
	bed_exit("/other", 0, "fine");
	while (!bed_runs("/disk"))
		bed_turn(BED_SEC);
	request = bed_running("/disk");
	request->stuck(request, &stuck);
	assert_int_equal(bed_said("CheckStuckDisk"), VERDICT_UNKNOWN);
	assert_string_equal(
		bed_evidence("CheckStuckDisk"),
		"pid 77 (cat) does not end, state D, in nfs_wait_bit_killable"
	);
	// Still the last statement: it was not cleared.
	assert_int_equal(bed_said("CheckDisk"), VERDICT_CHECK_FAILED);
	assert_true(view(0).stuck);
	assert_int_equal(view(0).what.pid, 77);
	before = view(1).counts[CHECK_OK];
	for (uint32_t n = 0; n < 5; n++)
		bed_exit("/other", 0, "still fine"); // other checks continue
	assert_int_equal(view(1).counts[CHECK_OK] - before, 5);
	time_out("/disk"); // the hung program finally ended
	assert_int_equal(bed_said("CheckStuckDisk"), VERDICT_HEALTHY);
	assert_int_equal(bed_said("CheckUnknownDisk"), VERDICT_UNKNOWN);
	bed_exit("/disk", 0, "fine");
	assert_int_equal(bed_said("CheckUnknownDisk"), VERDICT_HEALTHY);
	assert_int_equal(bed_said("CheckDisk"), VERDICT_HEALTHY);
}

static void a_hanging_check_that_is_changed_is_still_not_started_again(void **state) {
	const struct spawn_stuck stuck = {77, 'D', "\x1b(", ""};
	struct check_settings settings = disk;
	struct spawn_request *request;

	(void)state;
	use(&disk);
	while (!bed_runs("/disk"))
		bed_turn(BED_SEC);
	request = bed_running("/disk");
	request->stuck(request, &stuck);
	assert_string_equal(
		bed_evidence("CheckStuckDisk"), "pid 77 (\\x1b() does not end, state D"
	);
	settings.command = "/new";
	use(&settings);
	bed_turn(200 * BED_SEC);
	assert_int_equal(bed.started, 1);
	assert_int_equal(bed.cancelled, 0);
	time_out("/disk");
	bed_exit("/new", 0, "fine");
	assert_int_equal(bed_said("CheckStuckDisk"), VERDICT_HEALTHY);
}

static void a_check_runs_as_its_user_and_anew_when_that_changes(void **state) {
	struct check_settings settings = disk;

	(void)state;
	settings.user = "nobody";
	use(&settings);
	bed_turn(CHECKS_FIRST_SPREAD_NS);
	assert_true(bed_runs("/disk"));
	assert_string_equal(bed.running_as[0], "nobody");
	use(&settings); // the same settings as before
	assert_int_equal(bed.cancelled, 0);
	settings.user = NULL;
	use(&settings);
	assert_int_equal(bed.cancelled, 1);
	bed_turn(CHECKS_FIRST_SPREAD_NS);
	assert_true(bed_runs("/disk"));
	assert_null(bed.running_as[0]);
	settings.user = "daemon";
	use(&settings);
	assert_int_equal(bed.cancelled, 2);
}

static void what_cannot_be_run_is_unknown_with_its_reason_and_tried_again(void **state) {
	static const struct {
		int err;
		const char *evidence;
	} cases[] = {
		{-EAGAIN, "not run: the limit of running programs is reached"},
		{-EPIPE, "the spawn helper has ended; restart the agent"},
		{-ENOTCONN, "user = - needs the unit tocsin-root.socket"},
		{-ENOMEM, "not run: out of memory"},
	};
	struct checks_counters counters;

	(void)state;
	use(&disk);
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		bed.spawn_answer = cases[n].err;
		bed_turn(32 * BED_SEC);
		assert_string_equal(bed_evidence("CheckUnknownDisk"), cases[n].evidence);
	}
	checks_counters(bed.checks, &counters);
	assert_int_equal(counters.skipped, counters.runs);
	assert_int_equal(counters.unknown, 1);
	bed.spawn_answer = 0;
	bed_exit("/disk", 0, "fine");
	assert_int_equal(bed_said("CheckUnknownDisk"), VERDICT_HEALTHY);
}

static void a_check_of_the_root_helper_is_asked_for_by_its_name_alone(void **state) {
	struct check_settings settings = disk;

	(void)state;
	settings.user = "nobody";
	settings.by_root_helper = true;
	use(&settings);
	bed_turn(CHECKS_FIRST_SPREAD_NS);
	assert_true(bed_runs("check disk"));
	assert_null(bed.running_as[0]);
	bed_exit("check disk", 2, "broken");
	assert_int_equal(bed_said("CheckDisk"), VERDICT_CHECK_FAILED);
	settings.by_root_helper = false;
	use(&settings);
	bed_turn(CHECKS_FIRST_SPREAD_NS);
	assert_true(bed_runs("/disk"));
	settings.by_root_helper = true;
	use(&settings);
	bed.spawn_answer = -ENOTCONN;
	bed_turn(32 * BED_SEC);
	assert_string_equal(
		bed_evidence("CheckUnknownDisk"), "user = nobody needs the unit tocsin-root.socket"
	);
}

// A listener keeps sixteen statements of a node. With more unknown checks a failure was rejected.
static void a_failure_is_told_however_many_checks_know_nothing(void **state) {
	struct check_settings settings[CHECKS_USER_MAX];
	char names[CHECKS_USER_MAX][8], commands[CHECKS_USER_MAX][8], reason[32];
	uint32_t standing = 0;

	(void)state;
	for (uint32_t n = 0; n < CHECKS_USER_MAX; n++) {
		settings[n] = disk;
		snprintf(names[n], sizeof(names[n]), "c%u", n);
		snprintf(commands[n], sizeof(commands[n]), "/c%u", n);
		settings[n].name = names[n];
		settings[n].command = commands[n];
	}
	assert_int_equal(checks_set_user(bed.checks, settings, CHECKS_USER_MAX), 0);
	bed_exit("/c31", 2, "broken");
	assert_int_equal(bed_said("CheckC31"), VERDICT_CHECK_FAILED);
	for (uint32_t n = 0; n < CHECKS_USER_MAX; n++) {
		snprintf(reason, sizeof(reason), "CheckUnknownC%u", n);
		standing += bed_said(reason) == VERDICT_UNKNOWN;
	}
	assert_int_equal(standing, CHECKS_STATEMENTS_MAX - 1);
	for (uint32_t n = 0; n < CHECKS_USER_MAX - 1; n++)
		bed_exit(commands[n], 1, "meh"); // a warning replaces an unknown result
	assert_int_equal(bed_said("CheckC31"), VERDICT_CHECK_FAILED);
	assert_int_equal(bed_said("CheckC0"), VERDICT_CHECK_WARNING);
	bed_exit("/c30", 2, "broken, too");
	assert_int_equal(bed_said("CheckC30"), VERDICT_CHECK_FAILED);
	assert_int_equal(checks_set_user(bed.checks, settings, 0), 0);
	for (uint32_t n = 0; n < bed.said_count; n++)
		assert_int_not_equal(bed_said(bed.said[n].reason), VERDICT_CHECK_FAILED);
}

static struct statement published[8];
static uint32_t published_count;
static int publish_answer;

static int publish(void *ctx, const struct statement *statement) {
	(void)ctx;
	assert_true(published_count < 8);
	published[published_count++] = *statement;
	return publish_answer;
}

static void what_could_not_be_said_is_said_again_and_the_worst_first(void **state) {
	struct check_reporter reporter = {.say = publish};
	struct statement warning = {.verdict = VERDICT_CHECK_WARNING, .reason = "CheckA"};
	struct statement failure = {.verdict = VERDICT_CHECK_FAILED, .reason = "CheckB"};

	(void)state;
	published_count = 0;
	publish_answer = -ENOMEM;
	check_reporter_add(&reporter, &warning);
	check_reporter_add(&reporter, &failure);
	assert_int_equal(published_count, 2);
	check_reporter_retry(&reporter); // fails again, and stops
	assert_int_equal(published_count, 3);
	assert_string_equal(published[2].reason, "CheckB");
	publish_answer = 0;
	check_reporter_retry(&reporter);
	assert_int_equal(published_count, 5);
	assert_string_equal(published[3].reason, "CheckB");
	assert_string_equal(published[4].reason, "CheckA");
	check_reporter_retry(&reporter);
	assert_int_equal(published_count, 5);
}

static void a_reload_adds_removes_and_changes_checks(void **state) {
	struct check_settings two[2] = {disk, disk};

	(void)state;
	two[1].name = "net";
	two[1].command = "/net";
	use(&disk);
	bed_exit("/disk", 2, "full");
	assert_int_equal(checks_set_user(bed.checks, two, 2), 0);
	assert_int_equal(checks_count(bed.checks), 2);
	assert_int_equal(bed_said("CheckDisk"), VERDICT_CHECK_FAILED); // unchanged
	assert_int_equal(bed_said("CheckUnknownNet"), VERDICT_UNKNOWN);
	bed_exit("/net", 1, "slow");

	// A new command under the same name keeps the old statement until its first result.
	two[0].command = "/disk2";
	assert_int_equal(checks_set_user(bed.checks, two, 2), 0);
	assert_int_equal(bed_said("CheckDisk"), VERDICT_CHECK_FAILED);
	bed_exit("/disk2", 0, "fine");
	assert_int_equal(bed_said("CheckDisk"), VERDICT_HEALTHY);

	// A removed check withdraws its statement and cancels its program.
	while (!bed_runs("/net"))
		bed_turn(BED_SEC);
	assert_int_equal(checks_set_user(bed.checks, two, 1), 0);
	assert_int_equal(bed_said("CheckNet"), VERDICT_HEALTHY);
	assert_false(bed_runs("/net"));
	assert_int_equal(checks_count(bed.checks), 1);
	assert_int_equal(checks_set_user(bed.checks, NULL, 0), 0);
	assert_int_equal(checks_count(bed.checks), 0);
}

static void a_reload_that_changes_nothing_disturbs_no_run(void **state) {
	(void)state;
	use(&disk);
	while (!bed_runs("/disk"))
		bed_turn(BED_SEC);
	use(&disk);
	assert_true(bed_runs("/disk"));
	assert_int_equal(bed.cancelled, 0);
	bed_exit("/disk", 0, "fine");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_begin, bed_end)

UNIT_GROUP(checks_user) {
	const struct CMUnitTest tests[] = {
		TEST(what_has_not_run_yet_is_unknown_and_runs_soon),
		TEST(levels_are_said_and_taken_back),
		TEST(what_is_unknown_neither_fails_a_check_nor_clears_it),
		TEST(what_is_bad_is_said_before_unknown_is_taken_back),
		TEST(a_check_that_flaps_is_judged_by_runs_in_a_row),
		TEST(with_npd_one_is_critical_and_two_unknown),
		TEST(runs_keep_their_interval_and_never_overlap),
		TEST(many_checks_do_not_all_run_at_once),
		TEST(a_check_that_hangs_is_said_not_waited_for_and_not_started_again),
		TEST(a_hanging_check_that_is_changed_is_still_not_started_again),
		TEST(a_check_runs_as_its_user_and_anew_when_that_changes),
		TEST(what_cannot_be_run_is_unknown_with_its_reason_and_tried_again),
		TEST(a_check_of_the_root_helper_is_asked_for_by_its_name_alone),
		TEST(a_failure_is_told_however_many_checks_know_nothing),
		cmocka_unit_test(what_could_not_be_said_is_said_again_and_the_worst_first),
		TEST(a_reload_adds_removes_and_changes_checks),
		TEST(a_reload_that_changes_nothing_disturbs_no_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
