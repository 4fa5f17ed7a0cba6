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
	const char *own_word;	// name of the only observer; "": others observe the node
	const char *own_grade;	// grade that the node's own agent reports; NULL: no answer
	const char *own_name;	// node of that answer
	bool observes_only;	// the agent has [health] act = no
	uint32_t drains;
	char reason[SLURM_REASON_MAX + 1]; // of the last drain
	uint32_t asked;
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
	if (reason != NULL)
		snprintf(stage.reason, sizeof(stage.reason), "%s", reason);
	return 0;
}

// Make an answer of HEALTH about one node, with one finding.
static json_t *health_make(const char *finding_of, const char *grade, const char *observer) {
	bool bad = strcmp(grade, "ok") != 0;
	json_t *observers =
		observer[0] != '\0' ? json_pack("[s]", observer) : json_pack("[s,s]", "n2", "n3");
	json_t *health = json_pack(
		"{s:s,s:b,s:b,s:[{s:s,s:s,s:s,s:s,s:s,s:o,s:I}]}", "node", finding_of, "joined", 1,
		"brake", 0, "findings", "node", "n1", "grade", grade, "verdict",
		bad ? "node-down" : "healthy", "advice", bad ? "drain" : "nothing", "reason",
		"NodeSilent", "observers", observers, "for_ns", (json_int_t)SECOND_NS
	);

	assert_non_null(health);
	return health;
}

static json_t *ask_played(void *ctx, const char *node, char ret_why[static SLURM_WHY_BYTES]) {
	(void)ctx;
	assert_string_equal(node, "n1");
	stage.asked++;
	snprintf(ret_why, SLURM_WHY_BYTES, "n1 did not answer in time");
	return stage.own_grade != NULL ? health_make(stage.own_name, stage.own_grade, "n1") : NULL;
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
		.ask = ask_played,
	};
	stage.node_state = "IDLE";
	stage.own_word = "";
	stage.own_grade = "critical";
	stage.own_name = "n1";
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
	json_t *health = health_make("n9", "critical", stage.own_word);
	json_t *row = json_array_get(json_object_get(health, "findings"), 0);
	int out = dup(STDOUT_FILENO), nobody = open("/dev/null", O_WRONLY | O_CLOEXEC), err;
	uint32_t before = stage.drains;

	json_object_set_new(row, "for_ns", json_integer(for_s * (json_int_t)SECOND_NS));
	if (stage.observes_only) {
		json_object_set_new(health, "act", json_false());
		json_object_set_new(row, "advice", json_string("warn"));
		json_object_set_new(row, "would", json_string("drain"));
	}
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

static void node_that_denies_what_it_is_said_to_report_is_not_drained(void **state) {
	static const char *const mild[] = {"ok", "warning"};

	(void)state;
	stage.own_word = "n1";
	for (size_t n = 0; n < sizeof(mild) / sizeof(mild[0]); n++) {
		stage.own_grade = mild[n];
		assert_int_equal(drains_at(10 * n, "IDLE", 5), 0);
	}
	assert_int_equal(stage.asked, 2);
	stage.own_grade = "critical";
	assert_int_equal(drains_at(20, "IDLE", 5), 1);
	assert_string_equal(stage.reason, "tocsin: NodeSilent:");
}

static void evidence_of_others_needs_no_agreement_of_the_node(void **state) {
	(void)state;
	stage.own_grade = "ok";
	assert_int_equal(drains_at(0, "IDLE", 5), 1);
	assert_int_equal(stage.asked, 1);
	assert_string_equal(stage.reason, "tocsin: NodeSilent:");
}

static void node_without_an_answer_is_drained_and_the_reason_tells_why(void **state) {
	(void)state;
	stage.own_word = "n1";
	stage.own_grade = NULL;
	assert_int_equal(drains_at(0, "IDLE", 5), 1);
	assert_string_equal(
		stage.reason, "tocsin: NodeSilent: ; its agent: n1 did not answer in time"
	);
}

static void answer_of_another_node_is_none(void **state) {
	(void)state;
	stage.own_word = "n1";
	stage.own_grade = "ok";
	stage.own_name = "n2";
	assert_int_equal(drains_at(0, "IDLE", 5), 1);
	assert_string_equal(stage.reason, "tocsin: NodeSilent: ; its agent: invalid answer");
}

static void node_is_not_drained_while_the_agent_only_observes(void **state) {
	(void)state;
	stage.observes_only = true;
	assert_int_equal(drains_at(0, "IDLE", 100), 0);
	assert_int_equal(access(stage.rounds.record_file, F_OK), -1);
	stage.observes_only = false;
	assert_int_equal(drains_at(1, "IDLE", 100), 1);
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
		cmocka_unit_test_setup_teardown(
			node_that_denies_what_it_is_said_to_report_is_not_drained, set_up, tear_down
		),
		cmocka_unit_test_setup_teardown(
			evidence_of_others_needs_no_agreement_of_the_node, set_up, tear_down
		),
		cmocka_unit_test_setup_teardown(
			node_without_an_answer_is_drained_and_the_reason_tells_why, set_up,
			tear_down
		),
		cmocka_unit_test_setup_teardown(answer_of_another_node_is_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			node_is_not_drained_while_the_agent_only_observes, set_up, tear_down
		),
	};

	return cmocka_run_group_tests_name("slurm_round", tests, NULL, NULL);
}
