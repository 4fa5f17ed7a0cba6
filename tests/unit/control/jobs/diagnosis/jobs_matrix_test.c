// SPDX-License-Identifier: BSD-3-Clause
// Each fault at each level of information: the named causes, and what must not be claimed.
#include "control/jobs/diagnosis/jobs_view.h"

#include <support/cmocka.h>

#include <stdio.h>
#include <string.h>

#define NODES 2
#define PER_NODE 4
#define SEEDS 40
// After the fault: one round until it shows, ten seconds to confirm, twelve rounds.
#define SECONDS 40

#define NO JOBS_CAUSE_NONE
#define DEAD JOBS_CAUSE_DEAD_MEMBER
#define ENTER JOBS_CAUSE_MISSING_ENTER
#define DEVICE JOBS_CAUSE_DEVICE_BEHIND
#define WIRE JOBS_CAUSE_TRANSPORT
#define DIFFER JOBS_CAUSE_MISMATCH
#define ORDER JOBS_CAUSE_ORDERING
#define EQUAL JOBS_CAUSE_SYMMETRIC
#define SLOW JOBS_CAUSE_STRAGGLER
#define HALTED JOBS_CAUSE_STOPPED_MEMBER

static const uint8_t levels[] = {
	0,
	JOBS_KNOWS_STARTED | JOBS_KNOWS_COMPLETED,
	JOBS_KNOWS_STARTED | JOBS_KNOWS_COMPLETED | JOBS_KNOWS_SIGNATURES,
	JOBS_KNOWS_STARTED | JOBS_KNOWS_COMPLETED | JOBS_KNOWS_SIGNATURES | JOBS_KNOWS_PROCESS,
};
#define LEVELS (sizeof(levels) / sizeof(levels[0]))

// The table of docs/jobs.md; its columns are the levels.
static const struct row {
	enum model_fault fault;
	enum jobs_cause causes[LEVELS];
	bool stuck; // at the last level, ten seconds after the stall
	// At the level with launched operations only, the ranks that wait in the stalled
	// communicator are missing in other ones. It is not known that they wait.
	bool victims_named;
} table[] = {
	{MODEL_KILLED, {DEAD, DEAD, DEAD, DEAD}, true, false},
	{MODEL_HANGS, {ENTER, ENTER, ENTER, ENTER}, false, false},
	{MODEL_FREEZES, {ENTER, ENTER, ENTER, ENTER}, true, false},
	{MODEL_STOPPED, {NO, EQUAL, EQUAL, HALTED}, true, true},
	{MODEL_DEVICE, {NO, DEVICE, DEVICE, DEVICE}, false, true},
	{MODEL_PATH, {NO, WIRE, WIRE, WIRE}, true, false},
	{MODEL_LOST, {NO, WIRE, WIRE, WIRE}, false, true},
	{MODEL_MISMATCH, {NO, EQUAL, DIFFER, DIFFER}, true, true},
	{MODEL_ORDER, {ORDER, ORDER, ORDER, ORDER}, true, false},
	{MODEL_SYMMETRIC, {NO, EQUAL, EQUAL, EQUAL}, false, true},
	{MODEL_STRAGGLES, {NO, NO, SLOW, SLOW}, false, false},
	{MODEL_HEALTHY, {NO, NO, NO, NO}, false, false},
};

// Return the cause with the worst grade, without communicators that wait for another one.
static enum jobs_cause cause_of(const struct jobs_view *view, uint32_t *ret_place) {
	enum jobs_cause cause = JOBS_CAUSE_NONE;
	enum jobs_grade grade = JOBS_QUIET;

	*ret_place = 0;
	for (uint32_t n = 0; n < view->count; n++) {
		const struct jobs_finding *finding = &view->findings[n];

		if (finding->cause == JOBS_CAUSE_NONE || finding->via != JOBS_NOBODY ||
		    (cause != JOBS_CAUSE_NONE && finding->grade <= grade))
			continue;
		cause = finding->cause;
		grade = finding->grade;
		*ret_place = n;
	}
	return cause;
}

struct outcome {
	enum jobs_cause cause;
	enum jobs_grade grade;
	bool names_rank; // names the rank with the fault
	char words[JOBS_SENTENCE_BYTES];
};

static bool names(const struct jobs_view *view, uint32_t n, uint32_t process) {
	const struct jobs_finding *finding = &view->findings[n];

	for (uint32_t at = 0; at < finding->late_count && at < JOBS_NAMED_MAX; at++) {
		const struct ras_merged_rank *rank = &view->comms[n].ranks[finding->late[at]];

		if (rank->node == VIEW_FIRST_NODE + process / PER_NODE &&
		    rank->rank.pid == 4000 + process % PER_NODE * 3)
			return true;
	}
	return false;
}

static void
play(enum model_fault fault, uint8_t knows, uint64_t seed, struct outcome *ret_outcome) {
	struct job_model_config config = {
		.nodes = NODES,
		.per_node = PER_NODE,
		.seed = seed,
		.compute_ns = 400 * MODEL_MS,
		.fault = fault,
		.rank = (uint32_t)(seed % (NODES * PER_NODE)),
		.at_ns = 20 * MODEL_SEC + seed * 70 * MODEL_MS,
		.spins = seed % 2 == 0,
		.knows = knows,
	};
	struct job_model *model = job_model_create(&config);
	struct jobs_wait_history *book;
	struct jobs_view view;
	uint32_t place;

	assert_int_equal(jobs_wait_history_create(&jobs_view_memory, &book), 0);
	// The fault shows after one round and is confirmed after ten seconds.
	for (uint64_t second = 1; second <= SECONDS; second++) {
		job_model_run(model, config.at_ns + second * MODEL_SEC);
		jobs_view_take(&view, model, NODES, NULL, book);
		if (second < SECONDS)
			jobs_view_drop(&view);
	}
	ret_outcome->cause = cause_of(&view, &place);
	ret_outcome->grade = view.findings[place].grade;
	ret_outcome->names_rank = names(&view, place, config.rank);
	jobs_view_say(&view, place, ret_outcome->words);
	jobs_view_drop(&view);
	jobs_wait_history_destroy(book);
	job_model_destroy(model);
}

static bool names_one(enum jobs_cause cause) {
	return cause == DEAD || cause == ENTER || cause == DEVICE || cause == HALTED ||
	       cause == SLOW;
}

static bool is_right(const struct row *row, size_t level, const struct outcome *outcome) {
	enum jobs_cause wanted = row->causes[level];

	if (level == 0 && row->victims_named && outcome->cause == ENTER)
		return true;
	return outcome->cause == wanted && (!names_one(wanted) || outcome->names_rank) &&
	       (level + 1 < LEVELS || (outcome->grade == JOBS_STUCK) == row->stuck);
}

static void each_fault_is_named_as_far_as_its_level_allows(void **state) {
	uint32_t played = 0, wrong = 0;

	(void)state;
	for (size_t n = 0; n < sizeof(table) / sizeof(table[0]); n++) {
		for (size_t level = 0; level < LEVELS; level++) {
			for (uint64_t seed = 1; seed <= SEEDS; seed++) {
				enum jobs_cause wanted = table[n].causes[level];
				struct outcome outcome;
				bool right;

				play(table[n].fault, levels[level], seed, &outcome);
				right = is_right(&table[n], level, &outcome);
				played++;
				wrong += !right;
				if (!right)
					print_message(
						"fault %d level %zu seed %u: %s %s, not %s: %s\n",
						table[n].fault, level, (unsigned int)seed,
						jobs_grade_name(outcome.grade),
						jobs_cause_name(outcome.cause),
						jobs_cause_name(wanted), outcome.words
					);
			}
		}
	}
	print_message("%u of %u are named as they should be\n", played - wrong, played);
	assert_int_equal(wrong, 0);
}

UNIT_GROUP(jobs_matrix) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_fault_is_named_as_far_as_its_level_allows),
	};

	return cmocka_run_group_tests_name("jobs_matrix", tests, NULL, NULL);
}
