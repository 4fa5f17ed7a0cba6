// SPDX-License-Identifier: BSD-3-Clause
// A real helper and real programs, good and bad, that are notified of changes.
#include <control/webhook.h>
#include <lib/log.h>
#include <support/cmocka.h>

#include <jansson.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEC UINT64_C(1000000000)
#define FOR_EVER (1000 * SEC)
#define RECORD "/bin/sh -c 'cat >>$TOLD'"

static struct clock monotonic;
static struct loop *loop;
static struct spawn_helper helper;
static struct spawn *spawn;
static struct webhook *webhook;
static struct webhook_counters counters;
static char file[] = "/tmp/tocsin-webhook-XXXXXX";

static int begin(void **state) {
	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	counters = (struct webhook_counters){0};
	memcpy(file + sizeof(file) - 7, "XXXXXX", 6);
	close(mkstemp(file));
	assert_int_equal(setenv("TOLD", file, 1), 0);
	clock_init_monotonic(&monotonic);
	assert_int_equal(loop_create(&monotonic, &loop), 0);
	assert_int_equal(spawn_fork(&helper), 0);
	assert_int_equal(spawn_create(loop, &helper, &spawn), 0);
	return 0;
}

static int end(void **state) {
	(void)state;
	webhook = webhook_destroy(webhook);
	spawn = spawn_destroy(spawn);
	loop = loop_destroy(loop);
	return unlink(file);
}

static void make(const char *command, uint64_t timeout_ns) {
	const struct webhook_config config = {
		.command = command, .timeout_ns = timeout_ns, .counters = &counters};

	assert_int_equal(webhook_create(spawn, &config, &webhook), 0);
}

static void tell(const char *node) {
	const struct verdict_view now = {
		.verdict = VERDICT_NODE_DOWN,
		.confidence = VERDICT_SURE,
		.both_planes = true,
		.reason = "NodeSilent",
		.evidence = "\"quoted\" $(reboot) \xe2\x82\xac",
	};
	const struct webhook_change change = {
		.cluster = "c",
		.observer = "n1",
		.node = node,
		.before = VERDICT_HEALTHY,
		.advice = VERDICT_ADVICE_DRAIN,
		.now = &now,
	};

	webhook_notify(webhook, &change);
}

static void turn_until(const uint64_t *counter, uint64_t count) {
	while (*counter < count)
		assert_int_equal(loop_turn(loop, -1), 0);
}

// Return the n-th line of the output, which the caller frees; NULL behind the last one.
static json_t *told(uint32_t line) {
	FILE *in = fopen(file, "re");
	char text[4096];
	json_t *object = NULL;

	assert_non_null(in);
	while (fgets(text, sizeof(text), in) != NULL) {
		if (line-- == 0)
			object = json_loads(text, 0, NULL);
	}
	fclose(in);
	return object;
}

static void assert_member(const json_t *object, const char *key, const char *value) {
	assert_string_equal(json_string_value(json_object_get(object, key)), value);
}

static void change_is_json_on_standard_input(void **state) {
	json_t *change;

	(void)state;
	make(RECORD, FOR_EVER);
	tell("n7");
	turn_until(&counters.told, 1);
	change = told(0);
	assert_non_null(change);
	assert_member(change, "node", "n7");
	assert_member(change, "observer", "n1");
	assert_member(change, "verdict", "node-down");
	assert_member(change, "was", "healthy");
	assert_member(change, "reason", "NodeSilent");
	assert_member(change, "evidence", "\"quoted\" $(reboot) \xe2\x82\xac");
	assert_member(change, "advice", "drain");
	assert_member(change, "confidence", "sure");
	assert_true(json_is_true(json_object_get(change, "both_planes")));
	assert_true(json_is_false(json_object_get(change, "maint")));
	assert_int_equal(json_integer_value(json_object_get(change, "lost")), 0);
	json_decref(change);
}

static void changes_are_told_in_their_order(void **state) {
	char name[16];

	(void)state;
	make(RECORD, FOR_EVER);
	for (uint32_t n = 0; n < 20; n++) {
		snprintf(name, sizeof(name), "n%u", n);
		tell(name);
	}
	turn_until(&counters.told, 20);
	for (uint32_t n = 0; n < 20; n++) {
		json_t *change = told(n);

		snprintf(name, sizeof(name), "n%u", n);
		assert_member(change, "node", name);
		json_decref(change);
	}
}

static void program_that_fails_is_counted_and_the_next_change_told(void **state) {
	(void)state;
	make("/bin/sh -c 'case $(cat) in *bad*) exit 3;; esac'", FOR_EVER);
	tell("bad");
	tell("good");
	turn_until(&counters.told, 1);
	assert_int_equal(counters.failed, 1);
}

static void program_that_hangs_is_ended_at_its_deadline(void **state) {
	(void)state;
	make("/bin/sh -c 'case $(cat) in *bad*) exec sleep 1000;; esac'", SEC / 10);
	tell("bad");
	turn_until(&counters.failed, 1);
	assert_int_equal(counters.told, 0);
	// On a busy machine the next call may be late as well, and is then repeated.
	while (counters.told == 0) {
		uint64_t failed = counters.failed;

		tell("good");
		while (counters.told == 0 && counters.failed == failed)
			assert_int_equal(loop_turn(loop, -1), 0);
	}
}

static void program_that_is_not_there_is_counted(void **state) {
	(void)state;
	make("/nowhere/hook", FOR_EVER);
	tell("n1");
	tell("n2");
	turn_until(&counters.failed, 2);
	assert_int_equal(counters.told, 0);
}

// The first call runs, WEBHOOK_QUEUE calls wait, and each further one drops the oldest.
static void beyond_the_queue_the_oldest_are_dropped_and_told_of(void **state) {
	json_t *change;

	(void)state;
	make(RECORD, FOR_EVER);
	for (uint32_t n = 0; n < WEBHOOK_QUEUE + 6; n++)
		tell(n == 6 ? "kept" : "n");
	assert_int_equal(counters.dropped, 5);
	turn_until(&counters.told, WEBHOOK_QUEUE + 1);
	assert_int_equal(counters.dropped, 5);
	change = told(1);
	assert_member(change, "node", "kept");
	assert_int_equal(json_integer_value(json_object_get(change, "lost")), 5);
	json_decref(change);
	change = told(2);
	assert_int_equal(json_integer_value(json_object_get(change, "lost")), 0);
	json_decref(change);
}

static void webhook_ends_while_its_program_runs_and_others_wait(void **state) {
	(void)state;
	make("/bin/sleep 1000", FOR_EVER);
	tell("n1");
	tell("n2");
	webhook = webhook_destroy(webhook);
	assert_int_equal(counters.told + counters.failed, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

UNIT_GROUP(webhook) {
	const struct CMUnitTest tests[] = {
		TEST(change_is_json_on_standard_input),
		TEST(changes_are_told_in_their_order),
		TEST(program_that_fails_is_counted_and_the_next_change_told),
		TEST(program_that_hangs_is_ended_at_its_deadline),
		TEST(program_that_is_not_there_is_counted),
		TEST(beyond_the_queue_the_oldest_are_dropped_and_told_of),
		TEST(webhook_ends_while_its_program_runs_and_others_wait),
	};

	return cmocka_run_group_tests_name("webhook", tests, NULL, NULL);
}
