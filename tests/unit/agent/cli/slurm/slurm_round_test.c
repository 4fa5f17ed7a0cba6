// SPDX-License-Identifier: BSD-3-Clause
// Tests of consecutive rounds: the test stubs Slurm, but uses the real record of earlier findings.
#include "slurm/slurm_round.h"

#include <support/cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

static struct {
	struct slurm_rounds rounds;
	const char *node_state; // the state that Slurm reports
	uint32_t drains;
} stage;

static int read_played(
	struct slurm_way *way,
	const char *only,
	struct slurm_nodes *ret_nodes,
	char ret_why[static SLURM_WHY_BYTES]
) {
	char text[256];

	(void)way;
	(void)only;
	ret_why[0] = '\0';
	snprintf(text, sizeof(text), "NodeName=n1 Arch=x86_64 State=%s\n", stage.node_state);
	return slurm_nodes_parse(text, ret_nodes);
}

static int update_played(
	struct slurm_way *way,
	const char *node,
	const char *reason,
	char ret_why[static SLURM_WHY_BYTES]
) {
	(void)way;
	assert_string_equal(node, "n1");
	ret_why[0] = '\0';
	stage.drains += reason != NULL;
	return 0;
}

static const struct slurm_way_ops played = {.read = read_played, .update = update_played};

static int set_up(void **state) {
	static char record[32];
	int fd;

	(void)state;
	memset(&stage, 0, sizeof(stage));
	snprintf(record, sizeof(record), "/tmp/slurm-round-XXXXXX");
	fd = mkstemp(record);
	assert_true(fd >= 0);
	close(fd);
	unlink(record); // the record must not exist yet
	stage.rounds = (struct slurm_rounds){
		.way = {.ops = &played, .place = "played"},
		.limits = {.per_interval = 4, .share_percent = 100, .settle_s = 60},
		.record_file = record,
	};
	return 0;
}

static int tear_down(void **state) {
	char lock[48];

	(void)state;
	snprintf(lock, sizeof(lock), "%s.lock", stage.rounds.record_file);
	unlink(lock);
	unlink(stage.rounds.record_file);
	slurm_rounds_fini(&stage.rounds);
	return 0;
}

// Run one round at second `at_s` with the node in that state. A finding that is `for_s` old advises
// to drain the node. The output of the round is discarded. Returns the number of nodes drained.
static uint32_t drains_at(uint64_t at_s, const char *node_state, int for_s) {
	json_t *health = json_pack(
		"{s:b,s:b,s:[{s:s,s:s,s:s,s:s,s:I}]}", "joined", 1, "brake", 0, "findings", "node",
		"n1", "verdict", "node-down", "advice", "drain", "reason", "NodeSilent", "for_ns",
		for_s * (json_int_t)SECOND_NS
	);
	int out = dup(STDOUT_FILENO), nobody = open("/dev/null", O_WRONLY | O_CLOEXEC), err;
	uint32_t before = stage.drains;

	assert_non_null(health);
	assert_true(out >= 0 && nobody >= 0);
	stage.node_state = node_state;
	stage.rounds.now_ns = (1000 + at_s) * SECOND_NS;
	fflush(stdout);
	dup2(nobody, STDOUT_FILENO);
	err = slurm_round(&stage.rounds, health, NULL);
	dup2(out, STDOUT_FILENO);
	close(nobody);
	close(out);
	json_decref(health);
	assert_int_equal(err, 0);
	return stage.drains - before;
}

static void node_that_slurm_powered_on_has_a_minute_before_it_is_drained(void **state) {
	(void)state;
	assert_int_equal(drains_at(0, "IDLE+CLOUD+POWERED_DOWN", 3600), 0);
	assert_int_equal(drains_at(10, "IDLE+CLOUD+POWERING_UP", 3610), 0);
	for (int at_s = 20; at_s < 80; at_s += 10)
		assert_int_equal(drains_at((uint64_t)at_s, "IDLE+CLOUD", 3600 + at_s), 0);
	assert_int_equal(drains_at(80, "IDLE+CLOUD", 3680), 1);
}

static void node_that_is_powered_on_again_has_its_minute_anew(void **state) {
	(void)state;
	assert_int_equal(drains_at(0, "IDLE~", 3600), 0);
	assert_int_equal(drains_at(10, "IDLE", 3610), 0);
	assert_int_equal(drains_at(60, "IDLE%", 3660), 0);
	assert_int_equal(drains_at(90, "IDLE", 3690), 0);
	assert_int_equal(drains_at(140, "IDLE", 3740), 0);
	assert_int_equal(drains_at(150, "IDLE", 3750), 1);
}

static void node_that_falls_after_it_was_powered_on_is_drained_at_once(void **state) {
	(void)state;
	assert_int_equal(drains_at(0, "IDLE+POWERED_DOWN", 3600), 0);
	assert_int_equal(drains_at(10, "IDLE", 3610), 0);
	assert_int_equal(drains_at(20, "IDLE", 5), 1);
}

static void node_that_nobody_saw_powered_off_is_drained_at_once(void **state) {
	(void)state;
	assert_int_equal(drains_at(0, "IDLE+CLOUD", 3600), 1);
}

UNIT_GROUP(slurm_round) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			node_that_slurm_powered_on_has_a_minute_before_it_is_drained, set_up,
			tear_down
		),
		cmocka_unit_test_setup_teardown(
			node_that_is_powered_on_again_has_its_minute_anew, set_up, tear_down
		),
		cmocka_unit_test_setup_teardown(
			node_that_falls_after_it_was_powered_on_is_drained_at_once, set_up,
			tear_down
		),
		cmocka_unit_test_setup_teardown(
			node_that_nobody_saw_powered_off_is_drained_at_once, set_up, tear_down
		),
	};

	return cmocka_run_group_tests_name("slurm_round", tests, NULL, NULL);
}
