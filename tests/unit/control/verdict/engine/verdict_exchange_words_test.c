// SPDX-License-Identifier: BSD-3-Clause
// A node's own statements at their receivers: late, forged, malformed, and withdrawn.
#include "control/verdict/engine/verdict_net.h"

#include <lib/wire.h>

#include <errno.h>
#include <stdio.h>

static int say(struct net *net, uint32_t agent, enum verdict verdict) {
	struct statement statement = {
		.subject = id_of(agent),
		.verdict = verdict,
		.reason = "DeviceStuck",
		.evidence = "ibv_create_qp on dev0 hangs",
	};

	return observation_exchange_statement(net->agents[agent].exchange, net->now_ns, &statement);
}

static void words_are_repeated_until_they_are_taken_back(void **state) {
	struct net *net = net_create();

	(void)state;
	net->agents[3].deaf = true;
	assert_int_equal(say(net, 1, VERDICT_DEVICE_STUCK), 0);
	pass(net, SEC);
	assert_int_equal(held(net, 2, 1), VERDICT_DEVICE_STUCK);
	assert_int_equal(held(net, 3, 1), VERDICT_HEALTHY);
	net->agents[3].deaf = false; // receives a repetition
	pass(net, 60 * SEC);
	assert_int_equal(held(net, 3, 1), VERDICT_DEVICE_STUCK);
	assert_int_equal(held(net, 1, 1), VERDICT_DEVICE_STUCK);
	net->agents[3].deaf = true;
	assert_int_equal(say(net, 1, VERDICT_HEALTHY), 0);
	pass(net, 5 * SEC);
	net->agents[3].deaf = false; // receives another repetition
	pass(net, 16 * SEC);
	assert_int_equal(held(net, 2, 1), VERDICT_HEALTHY);
	assert_int_equal(held(net, 3, 1), VERDICT_HEALTHY);
	net_destroy(net);
}

// An agent that hears of a higher start of its name takes the next one, without a new process.
static void a_new_start_of_the_speaker_hides_no_statement(void **state) {
	const struct verdict_peer_update restarted = {
		.id = id_of(1),
		.incarnation = ras_incarnation(2, 0),
		.state = RAS_ALIVE,
		.host = "",
		.leaf = "",
	};
	struct net *net = net_create();

	(void)state;
	assert_int_equal(say(net, 1, VERDICT_DEVICE_STUCK), 0);
	pass(net, SEC);
	for (uint32_t n = 0; n < AGENTS; n++)
		assert_int_equal(
			verdict_peer_update(net->agents[n].engine, net->now_ns, &restarted), 0
		);
	observation_exchange_repeat_statements(net->agents[1].exchange, net->now_ns);
	for (uint64_t seconds = 0; seconds < OBSERVATION_REPEAT_NS / SEC - 1; seconds++) {
		pass(net, SEC);
		assert_int_equal(held(net, 2, 1), VERDICT_DEVICE_STUCK);
	}
	net_destroy(net);
}

static int say_check(struct net *net, uint32_t agent, enum verdict verdict, const char *reason) {
	struct statement statement = {.subject = id_of(agent), .verdict = verdict};

	snprintf(statement.reason, sizeof(statement.reason), "%s", reason);
	return observation_exchange_statement(net->agents[agent].exchange, net->now_ns, &statement);
}

static void expect_all(const struct net *net, uint32_t subject, enum verdict verdict) {
	for (uint32_t by = 0; by < AGENTS; by++)
		assert_int_equal(held(net, by, subject), verdict);
}

// Many checks start unknown and withdraw that after their first run, within a few seconds.
static void a_failure_waits_for_no_withdrawn_word(void **state) {
	struct net *net = net_create();
	char reason[32];

	(void)state;
	for (uint32_t n = 0; n < 3 * VERDICT_STATEMENTS_MAX; n++) {
		snprintf(reason, sizeof(reason), "CheckUnknownC%u", n);
		assert_int_equal(say_check(net, 1, VERDICT_UNKNOWN, reason), 0);
		pass(net, n % 3 * 100 * MS); // some are withdrawn before they are sent
		assert_int_equal(say_check(net, 1, VERDICT_HEALTHY, reason), 0);
	}
	assert_int_equal(say_check(net, 1, VERDICT_CHECK_FAILED, "CheckZdisk"), 0);
	pass(net, SEC);
	expect_all(net, 1, VERDICT_CHECK_FAILED);
	pass(net, 70 * SEC);
	expect_all(net, 1, VERDICT_CHECK_FAILED);
	assert_int_equal(say_check(net, 1, VERDICT_HEALTHY, "CheckZdisk"), 0);
	pass(net, 10 * SEC);
	expect_all(net, 1, VERDICT_HEALTHY);
	net_destroy(net);
}

static void a_failure_replaces_a_word_that_matters_less(void **state) {
	struct net *net = net_create();
	char reason[] = "CheckA";

	(void)state;
	for (uint32_t n = 0; n < VERDICT_STATEMENTS_MAX; n++, reason[5]++)
		assert_int_equal(
			say_check(net, 1, n == 3 ? VERDICT_UNKNOWN : VERDICT_CHECK_WARNING, reason),
			0
		);
	pass(net, SEC);
	expect_all(net, 1, VERDICT_UNKNOWN);
	assert_int_equal(say_check(net, 1, VERDICT_CHECK_WARNING, "OneMore"), 0);
	pass(net, 10 * SEC);
	expect_all(net, 1, VERDICT_CHECK_WARNING); // the withdrawal of the unknown check arrived
	assert_int_equal(say_check(net, 1, VERDICT_CHECK_WARNING, "OneMoreStill"), -ENOSPC);
	assert_int_equal(say_check(net, 1, VERDICT_CHECK_FAILED, "CheckZdisk"), 0);
	pass(net, SEC);
	expect_all(net, 1, VERDICT_CHECK_FAILED);
	pass(net, 70 * SEC);
	expect_all(net, 1, VERDICT_CHECK_FAILED);
	net_destroy(net);
}

static void hear_check(struct net *net, uint64_t number, enum verdict verdict, const char *reason) {
	struct statement statement = {.subject = id_of(6), .verdict = verdict};
	struct wire_writer writer;
	uint8_t bytes[512];

	snprintf(statement.reason, sizeof(statement.reason), "%s", reason);
	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(statement_put(&writer, &statement), 0);
	assert_int_equal(
		observation_exchange_receive(
			net->agents[0].exchange, net->now_ns, id_of(6), number, bytes,
			wire_writer_used(&writer)
		),
		0
	);
}

// A lossy link delayed the notice for seconds.
static void a_word_that_was_taken_back_before_it_came_is_not_taken(void **state) {
	struct net *net = net_create();
	char reason[] = "CheckA";

	(void)state;
	hear_check(net, 2, VERDICT_HEALTHY, "DiskFull");
	hear_check(net, 1, VERDICT_CHECK_FAILED, "DiskFull");
	assert_int_equal(held(net, 0, 6), VERDICT_HEALTHY);
	hear_check(net, 3, VERDICT_CHECK_FAILED, "DiskFull"); // the check fails again
	assert_int_equal(held(net, 0, 6), VERDICT_CHECK_FAILED);
	hear_check(net, 5, VERDICT_HEALTHY, "DiskFull");
	pass(net, 6 * SEC);
	hear_check(net, 4, VERDICT_CHECK_FAILED, "DiskFull");
	assert_int_equal(held(net, 0, 6), VERDICT_HEALTHY);
	// A withdrawn statement occupies no slot of a current one.
	for (; reason[5] < 'A' + VERDICT_STATEMENTS_MAX; reason[5]++)
		hear_check(net, 6, VERDICT_CHECK_WARNING, reason);
	assert_int_equal(held(net, 0, 6), VERDICT_CHECK_WARNING);
	net_destroy(net);
}

static void a_word_in_anothers_name_is_dropped_and_counted(void **state) {
	struct net *net = net_create();
	struct wire_writer writer;
	uint8_t bytes[512];
	struct observation observation = {
		.observer = id_of(2),
		.subject = id_of(5),
		.kind = OBSERVATION_SILENT,
		.own_good = true,
	};
	struct statement statement = {
		.subject = id_of(6), .verdict = VERDICT_CHECK_FAILED, .reason = "DiskFull"};

	(void)state;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(observation_put(&writer, &observation), 0);
	assert_int_equal(statement_put(&writer, &statement), 0);
	assert_int_equal(
		observation_exchange_receive(
			net->agents[0].exchange, net->now_ns, id_of(9), 0, bytes,
			wire_writer_used(&writer)
		),
		0
	);
	assert_int_equal(observation_exchange_counters(net->agents[0].exchange)->heard_forged, 2);
	assert_int_equal(observation_exchange_counters(net->agents[0].exchange)->heard, 0);
	assert_int_equal(held(net, 0, 6), VERDICT_HEALTHY);
	net_destroy(net);
}

static void of_a_malformed_notice_what_came_before_is_taken(void **state) {
	struct net *net = net_create();
	struct wire_writer writer;
	uint8_t bytes[512];
	struct statement statement = {
		.subject = id_of(6), .verdict = VERDICT_CHECK_FAILED, .reason = "DiskFull"};

	(void)state;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_int_equal(statement_put(&writer, &statement), 0);
	wire_put_u8(&writer, TOLD_OBSERVATION);
	wire_put_u16(&writer, 1000);
	assert_int_equal(
		observation_exchange_receive(
			net->agents[0].exchange, net->now_ns, id_of(6), 0, bytes,
			wire_writer_used(&writer)
		),
		-EBADMSG
	);
	assert_int_equal(held(net, 0, 6), VERDICT_CHECK_FAILED);
	assert_int_equal(observation_exchange_counters(net->agents[0].exchange)->heard_bad, 1);
	net_destroy(net);
}

UNIT_GROUP(verdict_exchange_words) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_repeated_until_they_are_taken_back),
		cmocka_unit_test(a_new_start_of_the_speaker_hides_no_statement),
		cmocka_unit_test(a_failure_waits_for_no_withdrawn_word),
		cmocka_unit_test(a_failure_replaces_a_word_that_matters_less),
		cmocka_unit_test(a_word_that_was_taken_back_before_it_came_is_not_taken),
		cmocka_unit_test(a_word_in_anothers_name_is_dropped_and_counted),
		cmocka_unit_test(of_a_malformed_notice_what_came_before_is_taken),
	};

	return cmocka_run_group_tests_name("verdict_exchange_words", tests, NULL, NULL);
}
