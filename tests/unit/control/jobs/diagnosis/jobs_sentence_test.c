// SPDX-License-Identifier: BSD-3-Clause
// Sentences about one communicator whose ranks are set by hand: ends and mismatches.
#include "control/jobs/diagnosis/jobs_view.h"

#include <support/cmocka.h>

#include <stdio.h>
#include <string.h>

#define RANKS 3
#define KNOWS_ALL \
	(JOBS_KNOWS_STARTED | JOBS_KNOWS_COMPLETED | JOBS_KNOWS_SIGNATURES | JOBS_KNOWS_PROCESS)

struct bed {
	struct ras_merged_rank ranks[RANKS];
	struct ras_comm_signature signatures[4];
	struct ras_merged_comm comm;
	struct jobs_finding finding;
	char text[JOBS_SENTENCE_BYTES];
};

// All ranks wait in operation 5, an AllReduce.
static void bed_init(struct bed *bed) {
	*bed = (struct bed){
		.signatures =
			{
				{.kind = JOBS_ALL_REDUCE, .datatype = 7, .count = 64, .root = -1},
				{.kind = JOBS_BROADCAST,
				 .datatype = JOBS_DATATYPE_BYTES,
				 .count = 512,
				 .root = 1},
				{.kind = JOBS_OTHER, .datatype = JOBS_CALL_FIRST, .root = -1},
				{.kind = JOBS_OTHER, .datatype = JOBS_CALL_FIRST + 5, .root = -1},
			},
		.comm = {.id = {1, 0, 0}, .size = RANKS, .job = "", .rank_count = RANKS},
	};
	bed->comm.ranks = bed->ranks;
	bed->comm.signatures = bed->signatures;
	for (uint32_t n = 0; n < RANKS; n++)
		bed->ranks[n] = (struct ras_merged_rank
		){.node = VIEW_FIRST_NODE,
		  .rank = {
			  .rank = n,
			  .pid = 10 + n,
			  .idle_ms = 20000,
			  .launched = 5,
			  .started = 5,
			  .completed = 4,
			  .ops = {[JOBS_ALL_REDUCE] = 5},
			  .process_state = JOBS_PROCESS_RUNNING,
			  .worked_ms = 9000,
			  .knows = KNOWS_ALL,
			  .cuda_device = -1,
			  .nvml_device = -1,
			  .recent = {.first = 1, .count = 5},
		  }};
}

static const char *bed_judge(struct bed *bed) {
	struct jobs_view view = {
		.findings = &bed->finding,
		.look = {.comms = &bed->comm, .comm_count = 1, .memory = &jobs_view_memory},
	};

	assert_int_equal(jobs_judge(&view.look, &bed->finding), 0);
	jobs_view_say(&view, 0, bed->text);
	return bed->text;
}

static void end_rank(struct bed *bed, uint32_t n, uint8_t cause, int32_t value, uint32_t ms) {
	struct ras_comm_rank *rank = &bed->ranks[n].rank;

	rank->flags |= RAS_RANK_EXITED;
	rank->exit_cause = cause;
	rank->exit_value = value;
	rank->exited_ms = ms;
}

static void dead_ranks_are_grouped_by_how_they_ended(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	end_rank(&bed, 0, JOBS_EXIT_SIGNAL, 15, 2000);
	end_rank(&bed, 1, JOBS_EXIT_SIGNAL, 11, 3000);
	end_rank(&bed, 2, JOBS_EXIT_SIGNAL, 15, 2000);
	assert_string_equal(
		bed_judge(&bed), "rank 1 (pid 11 on n0) is gone, killed by signal 11 3.0 s ago, "
				 "the first of them; ranks 0, 2 are gone, killed by signal 15"
	);
	assert_int_equal(bed.finding.late_count, 3);
	end_rank(&bed, 1, JOBS_EXIT_SIGNAL, 15, 3000);
	assert_string_equal(
		bed_judge(&bed), "ranks 1, 0, 2 are gone, killed by signal 15 3.0 s ago (rank 1, "
				 "the first of them)"
	);
}

static void an_end_that_was_seen_late_has_no_exact_time(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	end_rank(&bed, 0, JOBS_EXIT_SIGNAL, 9, 2000);
	end_rank(&bed, 1, JOBS_EXIT_SIGNAL, 11, 3000);
	bed.ranks[1].rank.flags |= RAS_RANK_END_SEEN_LATE;
	assert_non_null(
		strstr(bed_judge(&bed),
		       "rank 1 (pid 11 on n0) is gone, killed by signal 11 3.0 s ago or earlier; "
		       "rank 0 (pid 10 on n0) is gone, killed by signal 9; in operation 5")
	);
}

static void the_rank_that_aborted_all_is_named_first_with_its_code(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	end_rank(&bed, 0, JOBS_EXIT_SIGNAL, 9, 3000);
	end_rank(&bed, 1, JOBS_EXIT_ABORT, 7, 2000);
	end_rank(&bed, 2, JOBS_EXIT_SIGNAL, 9, 3000);
	bed.ranks[1].rank.flags |= RAS_RANK_ABORT;
	assert_string_equal(
		bed_judge(&bed),
		"rank 1 (pid 11 on n0) is gone, after it called MPI_Abort with code 7 2.0 s ago; "
		"ranks 0, 2 are gone, killed by signal 9"
	);
	assert_int_equal(bed.finding.grade, JOBS_ENDED);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_DEAD_MEMBER);
}

static void a_rank_far_ahead_still_proves_a_mismatch(void **state) {
	struct ras_comm_rank *ahead;
	struct bed bed;

	(void)state;
	bed_init(&bed);
	ahead = &bed.ranks[1].rank;
	ahead->launched = ahead->started = 44;
	ahead->completed = 43;
	ahead->ops[JOBS_ALL_REDUCE] = 4;
	ahead->ops[JOBS_BROADCAST] = 40;
	ahead->recent = (struct ras_comm_recent){.first = 29, .count = 16, .index = {0}};
	memset(ahead->recent.index, 1, sizeof(ahead->recent.index));
	assert_string_equal(
		bed_judge(&bed),
		"operation 5 or an earlier one differs: rank 0 runs AllReduce of 64 float32, "
		"which rank 1 (pid 11 on n0) has run fewer times, in 44 operations in all"
	);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_MISMATCH);
	assert_int_equal(bed.finding.grade, JOBS_STUCK);
	// If rank 1 ran as many AllReduces as rank 0, it may have run operation 5.
	ahead->ops[JOBS_ALL_REDUCE] = 5;
	ahead->ops[JOBS_BROADCAST] = 39;
	bed_judge(&bed);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_TRANSPORT);
}

static void a_mismatch_that_ranks_passed_stays_the_cause_of_a_stall(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	bed.ranks[1].rank.recent.index[2] = 1;
	bed_judge(&bed);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_MISMATCH);
	assert_non_null(
		strstr(bed.text, "operation 3 differs: rank 1 (pid 11 on n0) runs "
				 "Broadcast of 512 bytes with root 1, rank 2 AllReduce")
	);
	// A rank that has not come is named, whatever ranks did before.
	bed.ranks[2].rank.launched = bed.ranks[2].rank.started = 4;
	bed_judge(&bed);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_MISSING_ENTER);
}

// Regression: "rank 0 and 1 more run Broadcast with root 1", where one of them had another root.
static void ranks_with_different_roots_are_not_counted_together(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	bed.ranks[0].rank.recent.index[4] = 1;
	bed.ranks[1].rank.recent.index[4] = 2;
	assert_string_equal(
		bed_judge(&bed),
		"operation 5 differs: rank 0 (pid 10 on n0) runs Broadcast of 512 bytes with root "
		"1, rank 2 AllReduce of 64 float32, and 1 more differs from both"
	);
}

static void calls_without_data_have_the_names_of_mpi(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	for (uint32_t n = 0; n < RANKS; n++)
		bed.ranks[n].rank.recent.index[4] = n == 1 ? 2 : 3;
	assert_string_equal(
		bed_judge(&bed), "operation 5 differs: rank 1 (pid 11 on n0) runs MPI_Finalize, "
				 "rank 2 MPI_Comm_split"
	);
	assert_string_equal(jobs_operation_name(JOBS_OTHER, JOBS_DATATYPE_UNKNOWN), "Other");
	assert_string_equal(jobs_operation_name(JOBS_BARRIER, JOBS_CALL_FIRST), "Barrier");
	assert_string_equal(jobs_datatype_name(100), "elements");
}

static void a_root_that_completed_a_broadcast_and_left_has_completed_it(void **state) {
	struct ras_comm_rank *root;
	struct bed bed;

	(void)state;
	bed_init(&bed);
	root = &bed.ranks[1].rank;
	root->left = JOBS_LEFT_CLOSED;
	root->exited_ms = 20000;
	assert_non_null(strstr(bed_judge(&bed), "none has completed it"));
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_SYMMETRIC);
	root->completed = 5;
	assert_string_equal(
		bed_judge(&bed),
		"all ranks have started operation 5 (AllReduce of 64 float32), "
		"1 of 3 has completed it, and data has not arrived for 20 s; no path "
		"between its nodes is known to be bad"
	);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_TRANSPORT);
	// Ranks whose device has not started the operation are behind the root's device.
	bed.ranks[0].rank.started = bed.ranks[2].rank.started = 4;
	bed_judge(&bed);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_DEVICE_BEHIND);
	assert_false(bed.finding.none_started);
}

static void absent_ranks_are_named_by_number(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	bed.comm.size = 14;
	bed.ranks[2].rank.rank = 3;
	assert_string_equal(
		bed_judge(&bed), "ranks 2, 4, 5, 6, 7, 8, 9, 10 and 3 more are held by no agent "
				 "that answered; in operation 5 (AllReduce of 64 float32) 3 ranks "
				 "have waited for 20 s"
	);
	bed.comm.size = 4;
	bed_judge(&bed);
	assert_int_equal(strncmp(bed.text, "rank 2 is held by no agent", 26), 0);
}

// The rank posted operation 5 and does not wait for it.
static void put_posted(struct bed *bed, uint32_t n) {
	struct ras_comm_rank *rank = &bed->ranks[n].rank;

	rank->unwaited = 1;
	rank->oldest_is_unwaited = true;
	rank->knows &= (uint8_t)~JOBS_KNOWS_STARTED;
}

static void put_idle_time(struct bed *bed, uint32_t idle_ms) {
	for (uint32_t n = 0; n < RANKS; n++)
		bed->ranks[n].rank.idle_ms = idle_ms;
}

static void a_rank_that_only_posted_is_named_and_may_be_healthy(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	put_posted(&bed, 0);
	assert_string_equal(
		bed_judge(&bed),
		"rank 0 (pid 10 on n0) has posted operation 5 (AllReduce of 64 float32) and does "
		"not wait for it, in which 2 ranks have waited for 20 s; its process is running, "
		"and has used 9.0 s of processor time in 10 s: it is busy"
	);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_MISSING_WAIT);
	assert_string_equal(jobs_cause_name(bed.finding.cause), "missing-wait");
	assert_int_equal(bed.finding.grade, JOBS_WAITING);
	put_idle_time(&bed, 3599 * 1000);
	bed_judge(&bed);
	assert_int_equal(bed.finding.grade, JOBS_WAITING);
	put_idle_time(&bed, 3600 * 1000);
	bed_judge(&bed);
	assert_int_equal(bed.finding.grade, JOBS_STUCK);
	// A stopped process cannot wait for it later.
	put_idle_time(&bed, 20000);
	bed.ranks[0].rank.process_state = JOBS_PROCESS_STOPPED;
	bed_judge(&bed);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_MISSING_WAIT);
	assert_int_equal(bed.finding.grade, JOBS_STUCK);
}

static void several_ranks_that_only_posted_are_named_together(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	put_posted(&bed, 0);
	put_posted(&bed, 2);
	assert_non_null(strstr(
		bed_judge(&bed), " have posted operation 5 (AllReduce of 64 float32) and do not "
				 "wait for it, in which 1 rank has waited for 20 s"
	));
	assert_int_equal(bed.finding.late_count, 2);
	// A rank that has not launched the operation comes before them.
	bed.ranks[2].rank.launched = 4;
	assert_non_null(
		strstr(bed_judge(&bed), "rank 2 (pid 12 on n0) has not launched operation 5")
	);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_MISSING_ENTER);
}

static void posted_operations_that_no_rank_waits_for_are_quiet(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	for (uint32_t n = 0; n < RANKS; n++)
		put_posted(&bed, n);
	assert_string_equal(
		bed_judge(&bed), "no rank has made progress for 20 s; 3 ranks have posted "
				 "operations, and no rank waits for one"
	);
	assert_int_equal(bed.finding.grade, JOBS_QUIET);
	put_idle_time(&bed, 2 * 3600 * 1000);
	bed_judge(&bed);
	assert_int_equal(bed.finding.grade, JOBS_QUIET);
	// A rank that waits for an older operation than it posted.
	bed_init(&bed);
	bed.ranks[1].rank.unwaited = 1;
	bed_judge(&bed);
	assert_int_equal(bed.finding.grade, JOBS_WAITING);
	assert_int_not_equal(bed.finding.cause, JOBS_CAUSE_MISSING_WAIT);
}

static void a_rank_that_is_busy_on_purpose_makes_no_job_stuck(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	bed.ranks[1].rank.launched = bed.ranks[1].rank.started = 4;
	bed.ranks[1].rank.doing.busy_s = 40;
	snprintf(bed.ranks[1].rank.doing.busy_why, RAS_COMM_WHY_BYTES, "checkpoint");
	put_idle_time(&bed, 2 * 3600 * 1000);
	assert_non_null(
		strstr(bed_judge(&bed), "; it is busy on purpose for at most 40 s: checkpoint")
	);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_MISSING_ENTER);
	assert_int_equal(bed.finding.grade, JOBS_WAITING);
	bed.ranks[1].rank.doing.busy_why[0] = '\0';
	assert_non_null(strstr(bed_judge(&bed), "; it is busy on purpose for at most 40 s"));
	assert_null(strstr(bed.text, "checkpoint"));
	bed.ranks[1].rank.doing.busy_s = 0;
	bed_judge(&bed);
	assert_int_equal(bed.finding.grade, JOBS_STUCK);
	// A dead rank and a mismatch do not become better by waiting.
	bed.ranks[1].rank.doing.busy_s = 40;
	end_rank(&bed, 2, JOBS_EXIT_SIGNAL, 9, 5000);
	bed_judge(&bed);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_DEAD_MEMBER);
	assert_int_equal(bed.finding.grade, JOBS_STUCK);
}

UNIT_GROUP(jobs_sentence) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dead_ranks_are_grouped_by_how_they_ended),
		cmocka_unit_test(an_end_that_was_seen_late_has_no_exact_time),
		cmocka_unit_test(the_rank_that_aborted_all_is_named_first_with_its_code),
		cmocka_unit_test(a_rank_far_ahead_still_proves_a_mismatch),
		cmocka_unit_test(a_mismatch_that_ranks_passed_stays_the_cause_of_a_stall),
		cmocka_unit_test(ranks_with_different_roots_are_not_counted_together),
		cmocka_unit_test(calls_without_data_have_the_names_of_mpi),
		cmocka_unit_test(a_root_that_completed_a_broadcast_and_left_has_completed_it),
		cmocka_unit_test(a_rank_that_only_posted_is_named_and_may_be_healthy),
		cmocka_unit_test(several_ranks_that_only_posted_are_named_together),
		cmocka_unit_test(posted_operations_that_no_rank_waits_for_are_quiet),
		cmocka_unit_test(a_rank_that_is_busy_on_purpose_makes_no_job_stuck),
		cmocka_unit_test(absent_ranks_are_named_by_number),
	};

	return cmocka_run_group_tests_name("jobs_sentence", tests, NULL, NULL);
}
