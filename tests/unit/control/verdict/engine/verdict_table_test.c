// SPDX-License-Identifier: BSD-3-Clause
// The two tables of the design, cell by cell: peer state, reads of two observers, kind of
// responder, reachability of the host.
#include "control/verdict/engine/verdict_bed.h"

#include <string.h>

#define NONE_SEEN OBSERVATION_KIND_COUNT

static const enum observation_responder hard = OBSERVATION_RESPONDER_HARDWARE;

// Agent 5 is observed by 1 and 2, which also report its host's reachability.
static struct bed *
look(enum ras_state state,
     enum ras_cause cause,
     enum observation_kind kind,
     enum observation_responder responder,
     enum verdict_reach reach) {
	struct bed *bed = bed_create(8);

	assert_int_equal(bed_state(bed, 5, state, cause), 0);
	for (uint32_t observer = 1; observer <= 2 && kind != NONE_SEEN; observer++) {
		struct observation observation = bed_observation(observer, 5, kind);

		observation.responder = responder;
		observation.reach = reach;
		assert_int_equal(verdict_observation(bed->engine, bed->now_ns, &observation), 0);
	}
	bed_pass(bed, 6 * SEC);
	return bed;
}

struct cell {
	enum ras_state state;
	enum ras_cause cause;
	enum observation_kind kind;
	enum observation_responder responder;
	enum verdict_reach reach;
	enum verdict verdict;
	const char *reason;
	enum verdict_advice advice;
};

#define HARD OBSERVATION_RESPONDER_HARDWARE
#define KERNEL OBSERVATION_RESPONDER_KERNEL
#define INSIDE OBSERVATION_RESPONDER_IN_PROCESS
#define NOBODY OBSERVATION_RESPONDER_UNKNOWN
#define ANSWERS VERDICT_REACH_ANSWERS
#define ACCEPTS VERDICT_REACH_ACCEPTS
#define REFUSES VERDICT_REACH_REFUSES
#define NOTHING VERDICT_REACH_NONE
#define UNTOLD VERDICT_REACH_UNKNOWN
#define OTHER VERDICT_REACH_OTHER
#define SILENT RAS_CAUSE_SILENT
#define WELL RAS_CAUSE_NONE

static const struct cell cells[] = {
	// The overlay hears the agent.
	{RAS_ALIVE, WELL, NONE_SEEN, HARD, ANSWERS, VERDICT_HEALTHY, "None",
	 VERDICT_ADVICE_NOTHING},
	{RAS_ALIVE, WELL, OBSERVATION_GOOD, HARD, ANSWERS, VERDICT_HEALTHY, "None",
	 VERDICT_ADVICE_NOTHING},
	{RAS_ALIVE, WELL, OBSERVATION_GOOD, INSIDE, ANSWERS, VERDICT_HEALTHY, "None",
	 VERDICT_ADVICE_NOTHING},
	{RAS_ALIVE, WELL, OBSERVATION_NO_PAIR, NOBODY, ANSWERS, VERDICT_HEALTHY, "None",
	 VERDICT_ADVICE_NOTHING},
	{RAS_ALIVE, WELL, OBSERVATION_NO_PAIR, NOBODY, UNTOLD, VERDICT_HEALTHY, "None",
	 VERDICT_ADVICE_NOTHING},
	{RAS_ALIVE, WELL, OBSERVATION_SILENT, HARD, ANSWERS, VERDICT_FABRIC_DOWN, "PulseUnread",
	 VERDICT_ADVICE_DRAIN},
	{RAS_ALIVE, WELL, OBSERVATION_SILENT, KERNEL, ANSWERS, VERDICT_FABRIC_DOWN, "PulseUnread",
	 VERDICT_ADVICE_DRAIN},
	{RAS_ALIVE, WELL, OBSERVATION_SILENT, INSIDE, ANSWERS, VERDICT_FABRIC_DOWN, "PulseUnread",
	 VERDICT_ADVICE_DRAIN},
	{RAS_ALIVE, WELL, OBSERVATION_SILENT, HARD, UNTOLD, VERDICT_UNKNOWN, "SilentBothWays",
	 VERDICT_ADVICE_SHOW},
	{RAS_ALIVE, WELL, OBSERVATION_SILENT, HARD, NOTHING, VERDICT_NODE_DOWN, "NodeSilent",
	 VERDICT_ADVICE_WARN},
	{RAS_ALIVE, WELL, OBSERVATION_SILENT, INSIDE, ACCEPTS, VERDICT_AGENT_FROZEN, "AgentMute",
	 VERDICT_ADVICE_WARN},
	{RAS_ALIVE, WELL, OBSERVATION_SILENT, HARD, REFUSES, VERDICT_UNKNOWN, "SilentBothWays",
	 VERDICT_ADVICE_SHOW},
	{RAS_ALIVE, WELL, OBSERVATION_STANDING, HARD, UNTOLD, VERDICT_AGENT_FROZEN, "PulseStands",
	 VERDICT_ADVICE_WARN},
	{RAS_ALIVE, WELL, OBSERVATION_STANDING, KERNEL, ACCEPTS, VERDICT_AGENT_FROZEN,
	 "PulseStands", VERDICT_ADVICE_WARN},
	{RAS_ALIVE, WELL, OBSERVATION_STANDING, HARD, ANSWERS, VERDICT_UNKNOWN, "PulseContradicts",
	 VERDICT_ADVICE_SHOW},
	{RAS_ALIVE, WELL, OBSERVATION_NO_PAIR, NOBODY, ACCEPTS, VERDICT_AGENT_FROZEN, "AgentMute",
	 VERDICT_ADVICE_WARN},
	{RAS_ALIVE, WELL, OBSERVATION_NO_PAIR, NOBODY, NOTHING, VERDICT_NODE_DOWN, "OverlaySilent",
	 VERDICT_ADVICE_WARN},
	{RAS_ALIVE, WELL, OBSERVATION_GOOD, HARD, NOTHING, VERDICT_MGMT_NET_DOWN, "PulseAlone",
	 VERDICT_ADVICE_WARN},
	{RAS_ALIVE, WELL, OBSERVATION_DEGRADED, HARD, ANSWERS, VERDICT_PATH_DEGRADED, "PulseSlow",
	 VERDICT_ADVICE_WARN},
	{RAS_ALIVE, WELL, OBSERVATION_LOSSY, HARD, ANSWERS, VERDICT_PATH_LOSSY, "LargeLost",
	 VERDICT_ADVICE_WARN},

	// Its address is wrong, or another machine has it, too.
	{RAS_ALIVE, WELL, OBSERVATION_GOOD, HARD, OTHER, VERDICT_HEALTHY, "None",
	 VERDICT_ADVICE_NOTHING},
	{RAS_SUSPECT, SILENT, OBSERVATION_SILENT, HARD, OTHER, VERDICT_UNKNOWN, "AddressConflict",
	 VERDICT_ADVICE_SHOW},
	{RAS_UNREACHABLE, SILENT, OBSERVATION_NO_PAIR, NOBODY, OTHER, VERDICT_UNKNOWN,
	 "AddressConflict", VERDICT_ADVICE_SHOW},
	{RAS_DEAD, SILENT, OBSERVATION_SILENT, HARD, OTHER, VERDICT_UNKNOWN, "AddressConflict",
	 VERDICT_ADVICE_SHOW},
	{RAS_DEAD, SILENT, OBSERVATION_NO_PAIR, NOBODY, OTHER, VERDICT_UNKNOWN, "AddressConflict",
	 VERDICT_ADVICE_SHOW},
	{RAS_DEAD, RAS_CAUSE_GONE, OBSERVATION_NO_PAIR, NOBODY, OTHER, VERDICT_UNKNOWN,
	 "AddressConflict", VERDICT_ADVICE_SHOW},

	// The overlay does not hear it now.
	{RAS_SUSPECT, SILENT, NONE_SEEN, HARD, UNTOLD, VERDICT_UNKNOWN, "Suspected",
	 VERDICT_ADVICE_SHOW},
	{RAS_SUSPECT, SILENT, OBSERVATION_GOOD, HARD, UNTOLD, VERDICT_MGMT_NET_DOWN, "PulseAlone",
	 VERDICT_ADVICE_WARN},
	{RAS_SUSPECT, SILENT, OBSERVATION_STANDING, HARD, UNTOLD, VERDICT_AGENT_FROZEN,
	 "PulseStands", VERDICT_ADVICE_WARN},
	{RAS_SUSPECT, SILENT, OBSERVATION_STANDING, KERNEL, ACCEPTS, VERDICT_AGENT_FROZEN,
	 "PulseStands", VERDICT_ADVICE_WARN},
	{RAS_SUSPECT, SILENT, OBSERVATION_SILENT, HARD, UNTOLD, VERDICT_UNKNOWN, "SilentBothWays",
	 VERDICT_ADVICE_SHOW},
	{RAS_SUSPECT, SILENT, OBSERVATION_SILENT, INSIDE, ACCEPTS, VERDICT_AGENT_FROZEN,
	 "AgentMute", VERDICT_ADVICE_WARN},
	{RAS_SUSPECT, SILENT, OBSERVATION_NO_PAIR, NOBODY, ACCEPTS, VERDICT_AGENT_FROZEN,
	 "AgentMute", VERDICT_ADVICE_WARN},
	{RAS_SUSPECT, SILENT, OBSERVATION_SILENT, INSIDE, NOTHING, VERDICT_NODE_DOWN, "NodeSilent",
	 VERDICT_ADVICE_WARN},
	{RAS_SUSPECT, SILENT, OBSERVATION_SILENT, HARD, NOTHING, VERDICT_NODE_DOWN, "NodeSilent",
	 VERDICT_ADVICE_WARN},
	{RAS_SUSPECT, SILENT, OBSERVATION_SILENT, HARD, REFUSES, VERDICT_UNKNOWN, "SilentBothWays",
	 VERDICT_ADVICE_SHOW},
	{RAS_SUSPECT, SILENT, OBSERVATION_NO_PAIR, NOBODY, NOTHING, VERDICT_NODE_DOWN,
	 "OverlaySilent", VERDICT_ADVICE_WARN},
	{RAS_SUSPECT, SILENT, OBSERVATION_DEGRADED, HARD, UNTOLD, VERDICT_MGMT_NET_DOWN,
	 "PulseAlone", VERDICT_ADVICE_WARN},

	// The overlay declared it dead by silence.
	{RAS_DEAD, SILENT, OBSERVATION_GOOD, HARD, UNTOLD, VERDICT_MGMT_NET_DOWN, "PulseAlone",
	 VERDICT_ADVICE_DRAIN_LATER},
	{RAS_DEAD, SILENT, OBSERVATION_GOOD, INSIDE, NOTHING, VERDICT_MGMT_NET_DOWN, "PulseAlone",
	 VERDICT_ADVICE_DRAIN_LATER},
	{RAS_DEAD, SILENT, OBSERVATION_STANDING, HARD, UNTOLD, VERDICT_AGENT_FROZEN, "PulseStands",
	 VERDICT_ADVICE_DRAIN_LATER},
	{RAS_DEAD, SILENT, OBSERVATION_STANDING, KERNEL, ACCEPTS, VERDICT_AGENT_FROZEN,
	 "PulseStands", VERDICT_ADVICE_DRAIN_LATER},
	{RAS_DEAD, SILENT, OBSERVATION_SILENT, HARD, NOTHING, VERDICT_NODE_DOWN, "NodeSilent",
	 VERDICT_ADVICE_DRAIN},
	{RAS_DEAD, SILENT, OBSERVATION_SILENT, HARD, UNTOLD, VERDICT_NODE_DOWN, "NodeSilent",
	 VERDICT_ADVICE_DRAIN},
	{RAS_DEAD, SILENT, OBSERVATION_SILENT, KERNEL, UNTOLD, VERDICT_NODE_DOWN, "NodeSilent",
	 VERDICT_ADVICE_DRAIN},
	{RAS_DEAD, SILENT, OBSERVATION_SILENT, INSIDE, NOTHING, VERDICT_NODE_DOWN, "NodeSilent",
	 VERDICT_ADVICE_DRAIN},
	{RAS_DEAD, SILENT, OBSERVATION_SILENT, INSIDE, UNTOLD, VERDICT_UNKNOWN, "HostOrAgent",
	 VERDICT_ADVICE_SHOW},
	{RAS_DEAD, SILENT, OBSERVATION_SILENT, INSIDE, ACCEPTS, VERDICT_AGENT_FROZEN, "AgentMute",
	 VERDICT_ADVICE_DRAIN_LATER},
	{RAS_DEAD, SILENT, OBSERVATION_SILENT, INSIDE, REFUSES, VERDICT_AGENT_DOWN, "AgentGone",
	 VERDICT_ADVICE_RESTART},
	{RAS_DEAD, SILENT, OBSERVATION_NO_PAIR, NOBODY, ACCEPTS, VERDICT_AGENT_FROZEN, "AgentMute",
	 VERDICT_ADVICE_DRAIN_LATER},
	{RAS_DEAD, SILENT, OBSERVATION_NO_PAIR, NOBODY, NOTHING, VERDICT_NODE_DOWN, "OverlaySilent",
	 VERDICT_ADVICE_DRAIN},
	{RAS_DEAD, SILENT, OBSERVATION_NO_PAIR, NOBODY, UNTOLD, VERDICT_UNKNOWN, "HostOrAgent",
	 VERDICT_ADVICE_SHOW},
	{RAS_DEAD, SILENT, NONE_SEEN, HARD, UNTOLD, VERDICT_UNKNOWN, "HostOrAgent",
	 VERDICT_ADVICE_SHOW},
	{RAS_DEAD, RAS_CAUSE_TIMEOUT, OBSERVATION_SILENT, HARD, NOTHING, VERDICT_NODE_DOWN,
	 "NodeSilent", VERDICT_ADVICE_DRAIN},

	// Its process exited: its queue pairs died with it, so reads prove nothing.
	{RAS_DEAD, RAS_CAUSE_GONE, NONE_SEEN, HARD, UNTOLD, VERDICT_AGENT_DOWN, "AgentGone",
	 VERDICT_ADVICE_RESTART},
	{RAS_DEAD, RAS_CAUSE_GONE, OBSERVATION_SILENT, HARD, REFUSES, VERDICT_AGENT_DOWN,
	 "AgentGone", VERDICT_ADVICE_RESTART},
	{RAS_DEAD, RAS_CAUSE_GONE, OBSERVATION_SILENT, INSIDE, UNTOLD, VERDICT_AGENT_DOWN,
	 "AgentGone", VERDICT_ADVICE_RESTART},
	{RAS_DEAD, RAS_CAUSE_RESET, OBSERVATION_STANDING, HARD, UNTOLD, VERDICT_AGENT_DOWN,
	 "AgentGone", VERDICT_ADVICE_RESTART},
	{RAS_DEAD, RAS_CAUSE_REFUSED, OBSERVATION_GOOD, HARD, UNTOLD, VERDICT_AGENT_DOWN,
	 "AgentGone", VERDICT_ADVICE_RESTART},

	// No node may declare its death.
	{RAS_UNREACHABLE, SILENT, OBSERVATION_SILENT, HARD, NOTHING, VERDICT_UNKNOWN, "Unreachable",
	 VERDICT_ADVICE_SHOW},
	{RAS_UNREACHABLE, SILENT, OBSERVATION_GOOD, HARD, NOTHING, VERDICT_UNKNOWN, "Unreachable",
	 VERDICT_ADVICE_SHOW},
	{RAS_UNKNOWN, WELL, NONE_SEEN, HARD, UNTOLD, VERDICT_UNKNOWN, "NeverSeen",
	 VERDICT_ADVICE_SHOW},
	{RAS_LEFT, RAS_CAUSE_LEAVE, NONE_SEEN, HARD, UNTOLD, VERDICT_NONE, "None",
	 VERDICT_ADVICE_NOTHING},
	{RAS_LEFT, RAS_CAUSE_LEAVE, OBSERVATION_SILENT, HARD, NOTHING, VERDICT_NONE, "None",
	 VERDICT_ADVICE_NOTHING},
};

static void each_cell_of_the_tables_has_its_verdict_reason_and_advice(void **state) {
	uint32_t wrong = 0;

	(void)state;
	for (uint32_t n = 0; n < sizeof(cells) / sizeof(cells[0]); n++) {
		const struct cell *cell = &cells[n];
		struct bed *bed =
			look(cell->state, cell->cause, cell->kind, cell->responder, cell->reach);
		struct verdict_view view = bed_view(bed, 5);

		if (view.verdict != cell->verdict || strcmp(view.reason, cell->reason) != 0 ||
		    view.advice != cell->advice) {
			wrong++;
			print_error(
				"cell %u (%s, %s, %s, %s): %s %s %s, not %s %s %s\n", n,
				ras_state_name(cell->state),
				cell->kind < OBSERVATION_KIND_COUNT
					? observation_kind_name(cell->kind)
					: "-",
				observation_responder_name(cell->responder),
				verdict_reach_name(cell->reach), verdict_name(view.verdict),
				view.reason, verdict_advice_name(view.advice),
				verdict_name(cell->verdict), cell->reason,
				verdict_advice_name(cell->advice)
			);
		}
		bed_destroy(bed);
	}
	assert_int_equal(wrong, 0);
}

// Any evidence must yield a verdict that the second table allows in its row.
static void no_combination_leads_out_of_the_rows_of_the_second_table(void **state) {
	static const enum ras_cause causes[] = {SILENT, RAS_CAUSE_GONE, RAS_CAUSE_UNREACHABLE};
	uint32_t combinations = 0;

	(void)state;
	for (uint32_t n = 0; n < 6 * 3 * 6 * 4 * 5; n++) {
		enum ras_state peer = (enum ras_state)(n % 6);
		struct bed *bed =
			look(peer, causes[n / 6 % 3], (enum observation_kind)(n / 18 % 6),
			     (enum observation_responder)(n / 108 % 4),
			     (enum verdict_reach)(n / 432 % 5));
		struct verdict_view view = bed_view(bed, 5);
		bool dead = view.verdict == VERDICT_AGENT_DOWN ||
			    view.verdict == VERDICT_AGENT_FROZEN ||
			    view.verdict == VERDICT_MGMT_NET_DOWN ||
			    view.verdict == VERDICT_NODE_DOWN;

		combinations++;
		if (peer == RAS_LEFT)
			assert_int_equal(view.verdict, VERDICT_NONE);
		else if (peer == RAS_UNKNOWN)
			assert_int_equal(view.verdict, VERDICT_UNKNOWN);
		else if (peer == RAS_UNREACHABLE)
			assert_true(
				view.verdict == VERDICT_UNKNOWN ||
				view.verdict == VERDICT_AGENT_FROZEN
			);
		else if (peer == RAS_DEAD)
			assert_true(dead || view.verdict == VERDICT_UNKNOWN);
		else if (peer == RAS_SUSPECT)
			assert_true(view.verdict > VERDICT_HEALTHY);
		else // other observers may see it before us, and then it is at most a warning
			assert_true(!dead || view.advice == VERDICT_ADVICE_WARN);
		if (peer == RAS_SUSPECT || peer == RAS_UNREACHABLE)
			assert_true(view.advice <= VERDICT_ADVICE_WARN);
		if (peer != RAS_DEAD && view.advice == VERDICT_ADVICE_DRAIN)
			assert_int_equal(view.verdict, VERDICT_FABRIC_DOWN);
		bed_destroy(bed);
	}
	assert_int_equal(combinations, 2160);
}

static void one_that_a_sole_observer_holds_for_dead_is_unknown(void **state) {
	struct bed *bed = bed_create(2);
	struct verdict_peer_update peer = bed_peer(1, RAS_DEAD, SILENT);

	(void)state;
	peer.sole = true;
	peer.observer_count = 1;
	assert_int_equal(verdict_peer_update(bed->engine, bed->now_ns, &peer), 0);
	assert_int_equal(bed_see_reach(bed, 0, 1, OBSERVATION_SILENT, NOTHING), 0);
	bed_pass(bed, SEC);
	bed_expect(bed, 1, VERDICT_UNKNOWN, "SoleObserver");
	assert_int_equal(bed_view(bed, 1).advice, VERDICT_ADVICE_SHOW);
	bed_destroy(bed);
}

// Regression: a sole observer reported "unknown" for a process that its host refused and for a
// frozen one.
static void what_a_host_answers_to_a_sole_observer_is_told_and_nobody_acts_by_it(void **state) {
	static const struct {
		enum ras_cause cause;
		enum observation_kind kind;
		enum verdict_reach reach;
		enum verdict verdict;
		const char *reason;
	} rows[] = {
		{RAS_CAUSE_GONE, OBSERVATION_SILENT, REFUSES, VERDICT_AGENT_DOWN, "AgentGone"},
		{RAS_CAUSE_GONE, OBSERVATION_NO_PAIR, UNTOLD, VERDICT_AGENT_DOWN, "AgentGone"},
		{SILENT, OBSERVATION_NO_PAIR, REFUSES, VERDICT_AGENT_DOWN, "AgentGone"},
		{SILENT, OBSERVATION_SILENT, ACCEPTS, VERDICT_AGENT_FROZEN, "AgentMute"},
		{SILENT, OBSERVATION_STANDING, UNTOLD, VERDICT_AGENT_FROZEN, "PulseStands"},
		{SILENT, OBSERVATION_GOOD, NOTHING, VERDICT_MGMT_NET_DOWN, "PulseAlone"},
		{SILENT, OBSERVATION_SILENT, UNTOLD, VERDICT_UNKNOWN, "SoleObserver"},
		{SILENT, OBSERVATION_NO_PAIR, NOTHING, VERDICT_UNKNOWN, "SoleObserver"},
		{SILENT, OBSERVATION_NO_PAIR, UNTOLD, VERDICT_UNKNOWN, "SoleObserver"},
	};

	(void)state;
	for (uint32_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct bed *bed = bed_create(2);
		struct verdict_peer_update peer = bed_peer(1, RAS_DEAD, rows[n].cause);

		peer.sole = true;
		peer.observer_count = 1;
		assert_int_equal(verdict_peer_update(bed->engine, bed->now_ns, &peer), 0);
		assert_int_equal(bed_see_reach(bed, 0, 1, rows[n].kind, rows[n].reach), 0);
		bed_pass(bed, 6 * SEC);
		bed_expect(bed, 1, rows[n].verdict, rows[n].reason);
		assert_int_equal(bed_view(bed, 1).advice, VERDICT_ADVICE_SHOW);
		assert_int_equal(bed_view(bed, 1).confidence, VERDICT_LIKELY);
		assert_false(bed_view(bed, 1).both_planes);
		if (rows[n].verdict != VERDICT_UNKNOWN)
			assert_non_null(
				strstr(bed_view(bed, 1).evidence, "reported by one agent only: ")
			);
		bed_destroy(bed);
	}
}

// Two refusals, and a moment for observers that see it alive. Two observers that agree are
// enough.
static void one_that_is_refused_is_agent_down_before_the_overlay_has_decided(void **state) {
	struct bed *bed = bed_create(4);

	(void)state;
	assert_int_equal(bed_state(bed, 1, RAS_SUSPECT, RAS_CAUSE_GONE), 0);
	assert_int_equal(bed_see_reach(bed, 0, 1, OBSERVATION_NO_PAIR, REFUSES), 0);
	bed_pass(bed, 350 * MS);
	bed_expect(bed, 1, VERDICT_UNKNOWN, "Suspected");
	bed_pass(bed, 100 * MS);
	bed_expect(bed, 1, VERDICT_AGENT_DOWN, "AgentGone");
	assert_int_equal(bed_view(bed, 1).advice, VERDICT_ADVICE_WARN);
	assert_non_null(strstr(bed_view(bed, 1).evidence, "(1 observer)"));
	assert_int_equal(bed_state(bed, 1, RAS_ALIVE, WELL), 0);
	bed_see(bed, 0, 1, OBSERVATION_GOOD);
	bed_pass(bed, 6 * SEC);
	bed_expect(bed, 1, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

// One of four hears no peer and reads all: its own management network is down, and no other's.
static void who_hears_few_puts_nobody_off_the_management_network(void **state) {
	struct bed *bed = bed_create(4);

	(void)state;
	for (uint32_t n = 1; n < 4; n++) {
		assert_int_equal(bed_state(bed, n, RAS_SUSPECT, RAS_CAUSE_SILENT), 0);
		bed_see(bed, 0, n, OBSERVATION_GOOD);
	}
	bed_pass(bed, 3 * SEC);
	bed_expect(bed, 1, VERDICT_UNKNOWN, "Suspected");
	for (uint32_t n = 2; n < 4; n++)
		assert_int_equal(bed_state(bed, n, RAS_ALIVE, WELL), 0);
	bed_see(bed, 0, 1, OBSERVATION_GOOD);
	bed_pass(bed, 3 * SEC);
	bed_expect(bed, 1, VERDICT_MGMT_NET_DOWN, "PulseAlone");
	bed_destroy(bed);
}

// Overlay, pulse and kernel are silent to two observers, and most other nodes are heard.
static void one_that_is_silent_in_every_way_is_likely_down_before_it_is_dead(void **state) {
	struct bed *bed = look(RAS_SUSPECT, SILENT, OBSERVATION_SILENT, hard, NOTHING);
	struct verdict_view view = bed_view(bed, 5);

	(void)state;
	assert_int_equal(view.verdict, VERDICT_NODE_DOWN);
	assert_int_equal(view.confidence, VERDICT_LIKELY);
	assert_int_equal(view.advice, VERDICT_ADVICE_WARN);
	assert_false(view.both_planes);
	assert_int_equal(bed_state(bed, 5, RAS_DEAD, SILENT), 0);
	bed_pass(bed, MS);
	view = bed_view(bed, 5);
	assert_int_equal(view.verdict, VERDICT_NODE_DOWN);
	assert_int_equal(view.confidence, VERDICT_SURE);
	assert_int_equal(view.advice, VERDICT_ADVICE_DRAIN);
	assert_true(view.both_planes);
	bed_destroy(bed);
}

static void of_a_half_nobody_is_likely_down(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t subject = 4; subject < 8; subject++) {
		assert_int_equal(bed_state(bed, subject, RAS_SUSPECT, SILENT), 0);
		for (uint32_t observer = 1; observer < 4; observer++)
			bed_see_reach(bed, observer, subject, OBSERVATION_SILENT, NOTHING);
	}
	bed_pass(bed, 6 * SEC);
	for (uint32_t subject = 4; subject < 8; subject++)
		bed_expect(bed, subject, VERDICT_UNKNOWN, "SilentBothWays");
	// Three of the four are back, so only one node is silent.
	for (uint32_t subject = 4; subject < 7; subject++)
		assert_int_equal(bed_state(bed, subject, RAS_ALIVE, WELL), 0);
	bed_see_two(bed, 7, OBSERVATION_SILENT);
	for (uint32_t observer = 1; observer < 4; observer++)
		bed_see_reach(bed, observer, 7, OBSERVATION_SILENT, NOTHING);
	bed_pass(bed, SEC);
	bed_expect(bed, 7, VERDICT_NODE_DOWN, "NodeSilent");
	bed_destroy(bed);
}

static void only_both_planes_tell_jobs_of_a_node_that_is_down(void **state) {
	struct bed *both = look(RAS_DEAD, SILENT, OBSERVATION_SILENT, hard, NOTHING);
	struct bed *one = look(RAS_DEAD, SILENT, OBSERVATION_NO_PAIR, hard, NOTHING);

	(void)state;
	assert_true(bed_view(both, 5).both_planes);
	assert_int_equal(bed_view(both, 5).confidence, VERDICT_SURE);
	assert_int_equal(bed_view(one, 5).verdict, VERDICT_NODE_DOWN);
	assert_false(bed_view(one, 5).both_planes);
	bed_destroy(both);
	bed_destroy(one);
}

static void an_agent_the_overlay_keeps_alive_long_after_its_pulse_fell_silent_answers(void **state
) {
	struct bed *bed = look(RAS_ALIVE, WELL, OBSERVATION_SILENT, hard, UNTOLD);

	(void)state;
	bed_expect(bed, 5, VERDICT_UNKNOWN, "SilentBothWays");
	bed_pass(bed, 12 * SEC);
	bed_expect(bed, 5, VERDICT_FABRIC_DOWN, "PulseUnread");
	bed_destroy(bed);
}

// Row 52 of the test coverage: the page still answers while the agent is stopped for 30 s.
static void an_agent_that_stands_for_30_s_is_frozen_all_the_while(void **state) {
	struct bed *bed = bed_create(8);

	(void)state;
	for (uint32_t second = 0; second < 30; second++) {
		assert_int_equal(bed_see_reach(bed, 1, 5, OBSERVATION_STANDING, ACCEPTS), 0);
		assert_int_equal(bed_see_reach(bed, 2, 5, OBSERVATION_STANDING, ACCEPTS), 0);
		if (second == 3)
			bed_state(bed, 5, RAS_SUSPECT, SILENT);
		if (second == 9)
			bed_state(bed, 5, RAS_DEAD, SILENT);
		bed_pass(bed, SEC);
		bed_expect(bed, 5, VERDICT_AGENT_FROZEN, "PulseStands");
	}
	bed_state(bed, 5, RAS_ALIVE, WELL);
	bed_see(bed, 1, 5, OBSERVATION_GOOD);
	bed_see(bed, 2, 5, OBSERVATION_GOOD);
	bed_expect(bed, 5, VERDICT_UNKNOWN, "Settling");
	bed_pass(bed, 5 * SEC);
	bed_expect(bed, 5, VERDICT_HEALTHY, "None");
	bed_destroy(bed);
}

static void a_death_keeps_its_explanation_after_everybody_stopped_looking(void **state) {
	static const struct {
		enum observation_kind kind;
		enum verdict verdict;
	} kept[] = {
		{OBSERVATION_SILENT, VERDICT_NODE_DOWN},
		{OBSERVATION_STANDING, VERDICT_AGENT_FROZEN},
		{OBSERVATION_GOOD,
		 VERDICT_UNKNOWN}, // a pulse that was read an hour ago may have stopped by now
	};

	(void)state;
	for (uint32_t n = 0; n < sizeof(kept) / sizeof(kept[0]); n++) {
		struct bed *bed = look(RAS_DEAD, SILENT, kept[n].kind, hard, UNTOLD);

		bed_pass(bed, 3600 * SEC);
		bed_expect(bed, 5, kept[n].verdict, NULL);
		bed_destroy(bed);
	}
}

static void maintenance_keeps_the_verdict_and_takes_the_alarm(void **state) {
	struct bed *bed = look(RAS_DEAD, SILENT, OBSERVATION_SILENT, hard, NOTHING);
	struct verdict_peer_update peer = bed_peer(5, RAS_DEAD, SILENT);

	(void)state;
	peer.maint = true;
	assert_int_equal(verdict_peer_update(bed->engine, bed->now_ns, &peer), 0);
	bed_expect(bed, 5, VERDICT_NODE_DOWN, "NodeSilent");
	assert_true(bed_view(bed, 5).maint);
	assert_int_equal(bed_view(bed, 5).advice, VERDICT_ADVICE_SHOW);
	bed_destroy(bed);
}

UNIT_GROUP(verdict_table) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_cell_of_the_tables_has_its_verdict_reason_and_advice),
		cmocka_unit_test(no_combination_leads_out_of_the_rows_of_the_second_table),
		cmocka_unit_test(one_that_a_sole_observer_holds_for_dead_is_unknown),
		cmocka_unit_test(who_hears_few_puts_nobody_off_the_management_network),
		cmocka_unit_test(
			what_a_host_answers_to_a_sole_observer_is_told_and_nobody_acts_by_it
		),
		cmocka_unit_test(one_that_is_refused_is_agent_down_before_the_overlay_has_decided),
		cmocka_unit_test(one_that_is_silent_in_every_way_is_likely_down_before_it_is_dead),
		cmocka_unit_test(of_a_half_nobody_is_likely_down),
		cmocka_unit_test(only_both_planes_tell_jobs_of_a_node_that_is_down),
		cmocka_unit_test(
			an_agent_the_overlay_keeps_alive_long_after_its_pulse_fell_silent_answers
		),
		cmocka_unit_test(an_agent_that_stands_for_30_s_is_frozen_all_the_while),
		cmocka_unit_test(a_death_keeps_its_explanation_after_everybody_stopped_looking),
		cmocka_unit_test(maintenance_keeps_the_verdict_and_takes_the_alarm),
	};

	return cmocka_run_group_tests_name("verdict_table", tests, NULL, NULL);
}
