// SPDX-License-Identifier: BSD-3-Clause
#include "slurm/slurm_policy.h"

#include <support/cmocka.h>

#include <stdio.h>
#include <string.h>

#define OURS "tocsin: NodeSilent: nobody reaches it"
#define AT_TEN " [root@2026-11-22T10:00:00]"

static const struct slurm_limits limits = {.per_interval = 2, .share_percent = 20, .settle_s = 60};
static const struct slurm_tally calm = {.nodes = 100};

static enum slurm_action
decide(const char *reason,
       bool drain,
       enum slurm_advice advice,
       uint64_t for_s,
       enum slurm_why *ret_why) {
	const struct slurm_finding finding = {.node = "n1", .advice = advice, .for_s = for_s};
	struct slurm_node node = {.name = "n1", .drain = drain, .known = true};

	snprintf(node.reason, sizeof(node.reason), "%s", reason);
	node.ours = strcmp(reason, OURS) == 0;
	return slurm_decide(&limits, &calm, &node, &finding, ret_why);
}

// Every relevant state of a node with every advice.
static void each_reason_meets_each_advice_by_the_rules(void **state) {
	static const struct {
		const char *reason;
		bool drain;
		enum slurm_advice advice;
		uint64_t for_s;
		enum slurm_action action;
		enum slurm_why why;
	} cases[] = {
		{"", false, SLURM_ADVICE_DRAIN, 0, SLURM_DRAIN, SLURM_WHY_NOTHING},
		{"", false, SLURM_ADVICE_HEALTHY, 99, SLURM_KEEP, SLURM_WHY_NOTHING},
		{"", false, SLURM_ADVICE_NONE, 0, SLURM_KEEP, SLURM_WHY_NOTHING},
		{"", false, SLURM_ADVICE_UNKNOWN, 0, SLURM_KEEP, SLURM_WHY_UNKNOWN},
		{"", true, SLURM_ADVICE_DRAIN, 0, SLURM_KEEP, SLURM_WHY_EMPTY},
		{"", true, SLURM_ADVICE_HEALTHY, 99, SLURM_KEEP, SLURM_WHY_EMPTY},
		{"bad DIMM", true, SLURM_ADVICE_DRAIN, 0, SLURM_KEEP, SLURM_WHY_FOREIGN},
		{"bad DIMM", true, SLURM_ADVICE_HEALTHY, 99, SLURM_KEEP, SLURM_WHY_FOREIGN},
		{"bad DIMM", false, SLURM_ADVICE_DRAIN, 0, SLURM_KEEP, SLURM_WHY_FOREIGN},
		{"was " OURS, true, SLURM_ADVICE_HEALTHY, 99, SLURM_KEEP, SLURM_WHY_FOREIGN},
		{"Tocsin: x", true, SLURM_ADVICE_HEALTHY, 99, SLURM_KEEP, SLURM_WHY_FOREIGN},
		{"tocsin", true, SLURM_ADVICE_HEALTHY, 99, SLURM_KEEP, SLURM_WHY_FOREIGN},
		{OURS " -- HOLD", true, SLURM_ADVICE_HEALTHY, 99, SLURM_KEEP, SLURM_WHY_UNRECORDED},
		{OURS " -- HOLD", true, SLURM_ADVICE_DRAIN, 0, SLURM_KEEP, SLURM_WHY_UNRECORDED},
		{"tocsin: mine", false, SLURM_ADVICE_DRAIN, 0, SLURM_KEEP, SLURM_WHY_UNRECORDED},
		{OURS, true, SLURM_ADVICE_DRAIN, 0, SLURM_KEEP, SLURM_WHY_NOTHING},
		{OURS, true, SLURM_ADVICE_NONE, 99, SLURM_KEEP, SLURM_WHY_NOTHING},
		{OURS, true, SLURM_ADVICE_UNKNOWN, 99, SLURM_KEEP, SLURM_WHY_UNKNOWN},
		{OURS, true, SLURM_ADVICE_HEALTHY, 59, SLURM_KEEP, SLURM_WHY_SETTLES},
		{OURS, true, SLURM_ADVICE_HEALTHY, 60, SLURM_UNDRAIN, SLURM_WHY_NOTHING},
		{OURS, false, SLURM_ADVICE_DRAIN, 0, SLURM_DRAIN, SLURM_WHY_NOTHING},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		enum slurm_why why;

		assert_int_equal(
			decide(cases[n].reason, cases[n].drain, cases[n].advice, cases[n].for_s,
			       &why),
			cases[n].action
		);
		assert_int_equal(why, cases[n].why);
	}
}

static void node_that_nobody_speaks_of_is_kept(void **state) {
	struct slurm_node node = {.drain = true, .known = true, .reason = OURS, .ours = true};
	enum slurm_why why;

	(void)state;
	assert_int_equal(slurm_decide(&limits, &calm, &node, NULL, &why), SLURM_KEEP);
	assert_int_equal(why, SLURM_WHY_UNKNOWN);
	node.drain = false;
	assert_int_equal(slurm_decide(&limits, &calm, &node, NULL, &why), SLURM_KEEP);
	assert_int_equal(why, SLURM_WHY_UNKNOWN);
}

static void node_that_is_down_in_slurm_is_not_drained_but_may_be_undrained(void **state) {
	struct slurm_finding finding = {.advice = SLURM_ADVICE_DRAIN};
	struct slurm_node node = {.down = true, .known = true};
	enum slurm_why why;

	(void)state;
	assert_int_equal(slurm_decide(&limits, &calm, &node, &finding, &why), SLURM_KEEP);
	assert_int_equal(why, SLURM_WHY_DOWN);
	node = (struct slurm_node
	){.down = true, .drain = true, .known = true, .ours = true, .reason = OURS};
	finding = (struct slurm_finding){.advice = SLURM_ADVICE_HEALTHY, .for_s = 60};
	assert_int_equal(slurm_decide(&limits, &calm, &node, &finding, &why), SLURM_UNDRAIN);
}

static void node_that_is_to_reboot_stays_drained_until_it_has(void **state) {
	static const struct {
		const char *word;
		enum slurm_action action;
	} cases[] = {
		{"IDLE+DRAIN", SLURM_UNDRAIN},
		{"IDLE@+DRAIN", SLURM_KEEP},
		{"IDLE+DRAIN^", SLURM_KEEP},
		{"IDLE+DRAIN+REBOOT_REQUESTED", SLURM_KEEP},
		{"DOWN+DRAIN+REBOOT_ISSUED", SLURM_KEEP},
	};
	const struct slurm_finding finding = {.advice = SLURM_ADVICE_HEALTHY, .for_s = 60};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct slurm_node node = {.ours = true, .reason = OURS};
		enum slurm_why why;

		slurm_node_parse_state(cases[n].word, strlen(cases[n].word), &node);
		assert_int_equal(
			slurm_decide(&limits, &calm, &node, &finding, &why), cases[n].action
		);
		assert_int_equal(
			why, cases[n].action == SLURM_KEEP ? SLURM_WHY_REBOOTS : SLURM_WHY_NOTHING
		);
	}
}

// Agents believe a cloud node dead while it is powered off. Slurm sees the node back before the
// agents do.
static void node_that_was_powered_on_is_not_drained_for_what_was_before(void **state) {
	static const struct {
		bool returned;
		uint64_t returned_for_s, for_s;
		enum slurm_action action;
	} cases[] = {
		{true, 10, 3600, SLURM_KEEP},  {true, 59, 60, SLURM_KEEP},
		{true, 10, 10, SLURM_DRAIN}, // the finding began when the node came back
		{true, 60, 3600, SLURM_DRAIN}, {false, 10, 3600, SLURM_DRAIN},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		const struct slurm_finding finding = {
			.advice = SLURM_ADVICE_DRAIN, .for_s = cases[n].for_s};
		struct slurm_node node = {
			.known = true,
			.returned = cases[n].returned,
			.returned_for_s = cases[n].returned_for_s};
		enum slurm_why why;

		assert_int_equal(
			slurm_decide(&limits, &calm, &node, &finding, &why), cases[n].action
		);
		assert_int_equal(
			why, cases[n].action == SLURM_KEEP ? SLURM_WHY_RETURNED : SLURM_WHY_NOTHING
		);
	}
}

// Slurm refuses to resume a node that has not registered since slurmctld started.
static void node_that_slurm_does_not_know_yet_is_waited_for(void **state) {
	const struct slurm_finding finding = {.advice = SLURM_ADVICE_HEALTHY, .for_s = 60};
	struct slurm_node node = {.ours = true, .reason = OURS};
	enum slurm_why why;

	(void)state;
	slurm_node_parse_state("UNKNOWN+DRAIN", strlen("UNKNOWN+DRAIN"), &node);
	assert_int_equal(slurm_decide(&limits, &calm, &node, &finding, &why), SLURM_KEEP);
	assert_int_equal(why, SLURM_WHY_STARTS);
}

static void brake_counts_this_interval_and_all_that_are_out(void **state) {
	static const struct {
		struct slurm_tally tally;
		enum slurm_action action;
	} cases[] = {
		{{.nodes = 100, .out = 0, .drained = 1}, SLURM_DRAIN},
		{{.nodes = 100, .out = 0, .drained = 2}, SLURM_KEEP},
		{{.nodes = 100, .out = 19, .drained = 0}, SLURM_DRAIN},
		{{.nodes = 100, .out = 20, .drained = 0}, SLURM_KEEP},
		{{.nodes = 4, .out = 0, .drained = 0}, SLURM_KEEP},
		{{.nodes = 5, .out = 0, .drained = 0}, SLURM_DRAIN},
		{{.nodes = UINT32_MAX, .out = UINT32_MAX - 1, .drained = 0}, SLURM_KEEP},
	};
	const struct slurm_finding finding = {.advice = SLURM_ADVICE_DRAIN};
	const struct slurm_node node = {.known = true};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		enum slurm_why why;

		assert_int_equal(
			slurm_decide(&limits, &cases[n].tally, &node, &finding, &why),
			cases[n].action
		);
		assert_int_equal(
			why, cases[n].action == SLURM_KEEP ? SLURM_WHY_BRAKE : SLURM_WHY_NOTHING
		);
	}
}

static void state_is_read_word_by_word_and_a_new_word_makes_it_unread(void **state) {
	static const struct {
		const char *word;
		bool known, drain, down, powers;
	} cases[] = {
		{"IDLE", true, false, false, false},
		{"MIXED+CLOUD", true, false, false, false},
		{"ALLOCATED+DRAIN", true, true, false, false},
		{"IDLE+DRAIN", true, true, false, false},
		{"IDLE*+DRAIN", true, true, true, false},
		{"DOWN*", true, false, true, false},
		{"DOWN+DRAIN+NOT_RESPONDING", true, true, true, false},
		{"IDLE+PLANNED", true, false, false, false},
		{"IDLE+POWERED_DOWN", true, false, true, true},
		{"IDLE~", true, false, true, true},
		{"IDLE#", true, false, true, true},
		{"IDLE%", true, false, true, true},
		{"IDLE+CLOUD+POWERING_UP", true, false, true, true},
		{"ALLOCATED!", true, false, false, false},
		{"idle+drain", true, true, false, false},
		{"QUANTUM", false, false, false, false},
		{"IDLE+QUANTUM", false, false, false, false},
		{"IDLE+", false, false, false, false},
		{"+DRAIN", false, true, false, false},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct slurm_node node;
		char line[256];

		snprintf(
			line, sizeof(line), "NodeName=n1 CPUTot=2 State=%s Weight=1", cases[n].word
		);
		assert_true(slurm_node_parse(line, &node));
		assert_string_equal(node.name, "n1");
		assert_int_equal(node.known, cases[n].known);
		assert_int_equal(node.drain, cases[n].drain);
		assert_int_equal(node.down, cases[n].down);
		assert_int_equal(node.powers, cases[n].powers);
	}
}

static void reason_is_parted_from_who_gave_it_and_when(void **state) {
	static const struct {
		const char *line, *reason, *stamp;
	} cases[] = {
		{"NodeName=a State=IDLE", "", ""},
		{"NodeName=a State=IDLE Reason=bad DIMM" AT_TEN, "bad DIMM", "root@1795341600"},
		{"NodeName=a State=IDLE Reason=slot [3] is bad" AT_TEN, "slot [3] is bad",
		 "root@1795341600"},
		{"NodeName=a State=IDLE Reason=no time", "no time", ""},
		{"NodeName=a State=IDLE Reason=" OURS " [root@x]", OURS " [root@x]", ""},
		{"NodeName=a State=IDLE Reason=" OURS " [root@2026-11-22]",
		 OURS " [root@2026-11-22]", ""},
		{"NodeName=a State=IDLE Comment=Reason= x Reason=" OURS AT_TEN, OURS,
		 "root@1795341600"},
		// Slurm 23.02 and later print other fields after the reason.
		{"NodeName=a Reason=" OURS AT_TEN " Comment=by Ann [x@y] ReservationName=r", OURS,
		 "root@1795341600"},
		{"NodeName=a Reason=" OURS AT_TEN " InstanceId=i InstanceType=t ", OURS,
		 "root@1795341600"},
		{"NodeName=a Reason=" OURS AT_TEN "   ", OURS, "root@1795341600"},
		{"NodeName=a Reason=" OURS " Comment=x", OURS " Comment=x", ""},
		// The second line of a reason follows the time stamp.
		{"NodeName=a Reason=" OURS AT_TEN " -- HOLD", OURS AT_TEN " -- HOLD", ""},
		{"NodeName=a Reason=" OURS AT_TEN " ticket=4711", OURS AT_TEN " ticket=4711", ""},
		// A reason pasted as Slurm shows it, with words or a field after the stamp.
		{"NodeName=a Reason=" OURS AT_TEN " -- HOLD [ann@2026-11-22T11:00:00]", "ambiguous",
		 ""},
		{"NodeName=a Reason=" OURS AT_TEN " ticket=4711 [ann@2026-11-22T11:00:00]",
		 "ambiguous", ""},
		{"NodeName=a Reason=" OURS AT_TEN " Comment=x [ann@2026-11-22T11:00:00]",
		 "ambiguous", ""},
		{"NodeName=a Comment=x Reason=tocsin: a State=DRAIN Reason=mine [b@c]", "ambiguous",
		 ""},
		{"NodeName=a State=IDLE Reason=", "", ""},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct slurm_node node;

		assert_true(slurm_node_parse(cases[n].line, &node));
		assert_string_equal(node.reason, cases[n].reason);
		assert_string_equal(node.stamp, cases[n].stamp);
	}
}

static void line_without_a_name_is_no_node(void **state) {
	static const char *const lines[] = {
		"", "nonsense", "State=IDLE", "NodeName= State=IDLE", "XNodeName=a State=IDLE",
	};
	char long_line[1024];
	struct slurm_node node;

	(void)state;
	for (size_t n = 0; n < sizeof(lines) / sizeof(lines[0]); n++)
		assert_false(slurm_node_parse(lines[n], &node));
	snprintf(long_line, sizeof(long_line), "NodeName=%0300d State=IDLE", 7);
	assert_false(slurm_node_parse(long_line, &node));
	assert_true(slurm_node_parse("NodeName=a", &node));
	assert_false(node.known);
}

static void reason_that_we_give_is_one_plain_line_with_our_prefix(void **state) {
	struct slurm_finding finding = {.reason = "NodeSilent"};
	char text[SLURM_REASON_MAX + 1];

	(void)state;
	snprintf(
		finding.evidence, sizeof(finding.evidence),
		"says \"hi\"\n\x1b[31m and \xc3\xa4 `id`"
	);
	slurm_reason_make(&finding, "", text);
	assert_string_equal(text, "tocsin: NodeSilent: says  hi ??[31m and ??  id");
	assert_true(slurm_reason_has_prefix(text));
	memset(finding.evidence, 'x', 200);
	memcpy(finding.evidence + 100, " end", 4);
	finding.evidence[200] = '\0';
	slurm_reason_make(&finding, "", text);
	assert_int_equal(strlen(text), strlen("tocsin: NodeSilent: ") + 100);
	// Evidence gives way to the reason why the node's own agent did not answer.
	memcpy(finding.evidence + 80, " end", 4);
	slurm_reason_make(&finding, "n1 is 'down'", text);
	assert_int_equal(
		strlen(text), strlen("tocsin: NodeSilent: ; its agent: n1 is  down") + 100
	);
	assert_string_equal(strrchr(text, ';'), "; its agent: n1 is  down");
}

static void only_the_own_word_of_a_node_needs_its_agreement(void **state) {
	static const struct {
		bool own_word;
		struct slurm_own_answer own;
		enum slurm_why why;
	} cases[] = {
		{false, {.is_mild = true, .is_healthy = true}, SLURM_WHY_NOTHING},
		{false, {.skipped = true}, SLURM_WHY_NOTHING},
		{true, {.is_mild = false}, SLURM_WHY_NOTHING}, // agrees, or does not answer
		{true, {.is_mild = true}, SLURM_WHY_DENIED},
		{true, {.skipped = true}, SLURM_WHY_SKIPPED},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		const struct slurm_finding finding = {
			.advice = SLURM_ADVICE_DRAIN, .own_word = cases[n].own_word};

		assert_int_equal(slurm_drain_objection(&finding, &cases[n].own), cases[n].why);
	}
}

static void what_slurm_writes_behind_a_reason_is_told_from_what_a_person_does(void **state) {
	static const struct {
		const char *reason, *before;
		bool grew;
	} rows[] = {
		{"tocsin: X: y : reboot issued", "tocsin: X: y", true},
		{"tocsin: X: y : reboot issued : reboot complete", "tocsin: X: y", true},
		{"tocsin: X: y : reboot issued : reboot complete", "tocsin: X: y : reboot issued",
		 true},
		{"tocsin: X: y", "tocsin: X: y", false},
		{"tocsin: X: y : reboot issued -- HOLD", "tocsin: X: y", false},
		{"tocsin: X: y : reboot issue", "tocsin: X: y", false},
		{"tocsin: X: y, reboot issued", "tocsin: X: y", false},
		{"tocsin: X: z : reboot issued", "tocsin: X: y", false},
		{"tocsin: X", "tocsin: X: y", false},
		{" : reboot issued", "", false},
		{"", "tocsin: X: y", false},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		assert_int_equal(
			slurm_reason_was_extended(rows[n].reason, rows[n].before), rows[n].grew
		);
}

UNIT_GROUP(slurm_policy) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_reason_meets_each_advice_by_the_rules),
		cmocka_unit_test(node_that_nobody_speaks_of_is_kept),
		cmocka_unit_test(node_that_is_down_in_slurm_is_not_drained_but_may_be_undrained),
		cmocka_unit_test(node_that_is_to_reboot_stays_drained_until_it_has),
		cmocka_unit_test(node_that_was_powered_on_is_not_drained_for_what_was_before),
		cmocka_unit_test(node_that_slurm_does_not_know_yet_is_waited_for),
		cmocka_unit_test(brake_counts_this_interval_and_all_that_are_out),
		cmocka_unit_test(state_is_read_word_by_word_and_a_new_word_makes_it_unread),
		cmocka_unit_test(reason_is_parted_from_who_gave_it_and_when),
		cmocka_unit_test(line_without_a_name_is_no_node),
		cmocka_unit_test(reason_that_we_give_is_one_plain_line_with_our_prefix),
		cmocka_unit_test(what_slurm_writes_behind_a_reason_is_told_from_what_a_person_does),
		cmocka_unit_test(only_the_own_word_of_a_node_needs_its_agreement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
