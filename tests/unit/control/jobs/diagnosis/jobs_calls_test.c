// SPDX-License-Identifier: BSD-3-Clause
// Ranks that are inside calls between two ranks: which of these waits prove a deadlock, and the
// sentence that reports the deadlock.
#include "control/jobs/diagnosis/jobs_view.h"

#include <support/cmocka.h>
#include <tocsin/job_page.h>

#include <string.h>

#define RANKS 4
#define TOLD \
	(JOBS_KNOWS_STARTED | JOBS_KNOWS_COMPLETED | JOBS_KNOWS_SIGNATURES | JOBS_KNOWS_PROCESS)
#define ANY (-1)

struct bed {
	struct ras_merged_rank ranks[RANKS];
	struct ras_merged_comm comm;
	struct jobs_pair pair; // without a fault at first
	struct jobs_finding finding;
	char text[JOBS_SENTENCE_BYTES];
};

// Ranks that have completed 5 operations and do not move.
static void bed_init(struct bed *bed) {
	*bed = (struct bed
	){.comm = {.id = {1, 0, 0}, .size = RANKS, .job = "", .rank_count = RANKS}};
	bed->comm.ranks = bed->ranks;
	for (uint32_t n = 0; n < RANKS; n++)
		bed->ranks[n] = (struct ras_merged_rank
		){.node = VIEW_FIRST_NODE,
		  .rank = {
			  .rank = n,
			  .pid = 10 + n,
			  .idle_ms = 20000,
			  .launched = 5,
			  .started = 5,
			  .completed = 5,
			  .process_state = JOBS_PROCESS_RUNNING,
			  .worked_ms = 9000,
			  .flags = RAS_RANK_BLOCKS,
			  .knows = TOLD,
			  .cuda_device = -1,
			  .nvml_device = -1,
		  }};
}

static void put_call(struct bed *bed, uint32_t rank, uint8_t number, int32_t peer, int32_t tag) {
	bed->ranks[rank].rank.doing.call =
		(struct ras_comm_call){.number = number, .peer = peer, .tag = tag};
}

// The rank waits in operation 6.
static void put_inside(struct bed *bed, uint32_t rank) {
	bed->ranks[rank].rank.launched = bed->ranks[rank].rank.started = 6;
}

static const char *bed_judge(struct bed *bed) {
	struct jobs_view view = {
		.findings = &bed->finding,
		.look =
			{
				.comms = &bed->comm,
				.comm_count = 1,
				.pairs = &bed->pair,
				.pair_count = 1,
				.memory = &jobs_view_memory,
			},
	};

	assert_int_equal(jobs_judge(&view.look, &bed->finding), 0);
	jobs_view_say(&view, 0, bed->text);
	return bed->text;
}

static void the_numbers_of_calls_are_those_of_the_page(void **state) {
	(void)state;
	assert_int_equal(JOBS_CALL_FIRST, JOB_CALL_FINALIZE);
	assert_int_equal(JOBS_CALL_SEND, JOB_CALL_SEND);
	assert_int_equal(JOBS_CALL_PROBE, JOB_CALL_PROBE);
	assert_int_equal(JOBS_TAG_LARGE, JOB_TAG_LARGE);
	assert_string_equal(jobs_call_name(JOB_CALL_RECV), "MPI_Recv");
	assert_int_equal(JOBS_CALL_WAIT_SEND, JOB_CALL_WAIT_SEND);
	assert_int_equal(JOBS_CALL_WAITALL_RECEIVE, JOB_CALL_WAITALL_RECEIVE);
	assert_string_equal(jobs_call_name(JOB_CALL_WAITSOME), "MPI_Waitsome");
	assert_string_equal(jobs_call_name(JOB_CALL_WAIT_SEND), "MPI_Wait for a send");
	assert_string_equal(jobs_call_name(JOB_CALL_WAITALL_RECEIVE), "MPI_Waitall for a receive");
	assert_null(jobs_call_name(JOB_CALL_WAITALL_RECEIVE + 1));
	assert_null(jobs_call_name(JOB_CALL_FINALIZE - 1));
}

static void a_packed_call_keeps_its_peer_and_its_tag(void **state) {
	static const int32_t tags[][2] = {
		{0, 0},
		{99, 99},
		{-1, -1},
		{-2, -1},
		{JOB_TAG_LARGE - 1, JOB_TAG_LARGE - 1},
		{INT32_MAX, JOB_TAG_LARGE}};

	(void)state;
	for (size_t n = 0; n < sizeof(tags) / sizeof(tags[0]); n++) {
		uint64_t call = job_call_pack(JOB_CALL_RECV, -2, tags[n][0]);

		assert_int_equal(call >> 56, JOB_CALL_RECV);
		assert_int_equal((int32_t)(uint32_t)call, -2);
		assert_int_equal(job_call_tag(call), tags[n][1]);
	}
}

// Three ranks wait in an operation that the late rank 0 has not launched.
static void only_a_wait_that_cannot_end_makes_a_late_rank_a_proof(void **state) {
	static const struct {
		struct ras_comm_call late, other; // of rank 0, and of rank 1
		bool other_is_inside;
		enum jobs_grade grade;
	} rows[] = {
		{{JOBS_CALL_RECV, false, 1, 7}, {0}, true, JOBS_STUCK},
		{{JOBS_CALL_PROBE, false, 1, ANY}, {0}, true, JOBS_STUCK},
		{{JOBS_CALL_SSEND, false, 1, 7}, {0}, true, JOBS_STUCK},
		{{JOBS_CALL_WAIT_RECEIVE, false, 1, 7}, {0}, true, JOBS_STUCK},
		{{JOBS_CALL_WAITALL_SEND, false, 1, 7}, {0}, true, JOBS_STUCK},
		// a peer that may still come
		{{JOBS_CALL_RECV, false, 1, 7}, {0}, false, JOBS_WAITING},
		{{JOBS_CALL_RECV, false, ANY, 7}, {0}, true, JOBS_WAITING},
		{{JOBS_CALL_RECV, true, 1, 7}, {0}, true, JOBS_WAITING},
		{{JOBS_CALL_RECV, false, 9, 7}, {0}, true, JOBS_WAITING},
		{{JOBS_CALL_SENDRECV, false, 1, 7}, {0}, true, JOBS_WAITING},
		{{JOBS_CALL_BSEND, false, 1, 7}, {0}, true, JOBS_WAITING},
		{{JOB_CALL_WAIT, false, 1, 7}, {0}, true, JOBS_WAITING},
		// a message on its way
		{{JOBS_CALL_RECV, false, 1, 7}, {JOBS_CALL_SEND, false, 0, 7}, false, JOBS_WAITING},
		{{JOBS_CALL_RECV, false, 1, ANY},
		 {JOBS_CALL_SEND, false, 0, 7},
		 false,
		 JOBS_WAITING},
		{{JOBS_CALL_SEND, false, 1, 7},
		 {JOBS_CALL_RECV, false, ANY, ANY},
		 false,
		 JOBS_WAITING},
		{{JOBS_CALL_WAIT_RECEIVE, false, 1, 7},
		 {JOBS_CALL_WAITALL_SEND, false, 0, 7},
		 false,
		 JOBS_WAITING},
		// two calls that never fit
		{{JOBS_CALL_WAIT_RECEIVE, false, 1, 7},
		 {JOBS_CALL_WAIT_RECEIVE, false, 0, 7},
		 false,
		 JOBS_STUCK},
		{{JOBS_CALL_RECV, false, 1, 7}, {JOBS_CALL_RECV, false, 0, 7}, false, JOBS_STUCK},
		{{JOBS_CALL_SSEND, false, 1, 7}, {JOBS_CALL_SEND, false, 0, 7}, false, JOBS_STUCK},
		{{JOBS_CALL_RECV, false, 1, 7}, {JOBS_CALL_SEND, false, 0, 8}, false, JOBS_STUCK},
		{{JOBS_CALL_RECV, false, 0, 7}, {0}, true, JOBS_STUCK},
	};
	struct bed bed;

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		bed_init(&bed);
		bed.ranks[0].rank.doing.call = rows[n].late;
		bed.ranks[1].rank.doing.call = rows[n].other;
		put_inside(&bed, 2);
		put_inside(&bed, 3);
		if (rows[n].other_is_inside)
			put_inside(&bed, 1);
		bed_judge(&bed);
		assert_int_equal(bed.finding.cause, JOBS_CAUSE_MISSING_ENTER);
		assert_int_equal(bed.finding.grade, rows[n].grade);
	}
}

static void a_posted_operation_holds_no_rank(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	put_call(&bed, 0, JOBS_CALL_RECV, 1, 7);
	for (uint32_t n = 1; n < RANKS; n++)
		put_inside(&bed, n);
	bed.ranks[1].rank.flags = 0;
	bed_judge(&bed);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_MISSING_ENTER);
	assert_int_equal(bed.finding.grade, JOBS_WAITING);
}

static void one_late_rank_that_computes_leaves_the_others_a_hope(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	put_call(&bed, 0, JOBS_CALL_RECV, 2, 7);
	put_inside(&bed, 2);
	put_inside(&bed, 3);
	bed_judge(&bed);
	assert_int_equal(bed.finding.late_count, 2);
	assert_int_equal(bed.finding.grade, JOBS_WAITING);
}

static void a_late_rank_says_the_call_with_peer_and_tag(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	put_call(&bed, 0, JOBS_CALL_RECV, 1, 7);
	for (uint32_t n = 1; n < RANKS; n++)
		put_inside(&bed, n);
	assert_non_null(strstr(
		bed_judge(&bed), "have waited for 20 s; it is in MPI_Recv from rank 1 (tag 7), "
				 "and waits for a rank that itself waits"
	));
	put_call(&bed, 0, JOBS_CALL_SSEND, 1, JOBS_TAG_LARGE);
	assert_non_null(strstr(bed_judge(&bed), "; it is in MPI_Ssend to rank 1, and waits"));
	put_call(&bed, 0, JOB_CALL_WAITALL, ANY, ANY);
	assert_non_null(strstr(bed_judge(&bed), "have waited for 20 s; it is in MPI_Waitall"));
	put_call(&bed, 0, JOBS_CALL_SENDRECV, ANY, 7); // or from no rank
	assert_non_null(strstr(bed_judge(&bed), "; it is in MPI_Sendrecv (tag 7)"));
	put_call(&bed, 0, JOBS_CALL_RECV, ANY, ANY);
	bed.ranks[0].rank.doing.call.is_elsewhere = true;
	assert_non_null(
		strstr(bed_judge(&bed), "; it is in MPI_Recv from any rank of another communicator")
	);
	put_call(&bed, 0, JOBS_CALL_WAIT_RECEIVE, ANY, 7);
	assert_non_null(
		strstr(bed_judge(&bed), "; it is in MPI_Wait for a receive from any rank (tag 7)")
	);
	put_call(&bed, 0, JOBS_CALL_WAITALL_SEND, 1, 7);
	assert_non_null(
		strstr(bed_judge(&bed), "; it is in MPI_Waitall for a send to rank 1 (tag 7), and")
	);
	put_call(&bed, 0, 255, 3, 3);
	assert_non_null(strstr(bed_judge(&bed), "; it is in a call of MPI"));
}

static void ranks_that_wait_for_each_other_without_an_operation_are_stuck(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	put_call(&bed, 0, JOBS_CALL_RECV, 1, 7); // leads into the cycle
	put_call(&bed, 1, JOBS_CALL_RECV, 2, 8);
	put_call(&bed, 2, JOBS_CALL_RECV, 3, ANY);
	put_call(&bed, 3, JOBS_CALL_SSEND, 1, 9);
	assert_string_equal(
		bed_judge(&bed),
		"ranks wait for each other: rank 1 (pid 11 on n0) is in MPI_Recv from rank 2 (tag "
		"8), rank 2 (pid 12 on n0) is in MPI_Recv from rank 3, rank 3 (pid 13 on n0) is in "
		"MPI_Ssend to rank 1 (tag 9), for 20 s"
	);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_CALLS);
	assert_int_equal(bed.finding.grade, JOBS_STUCK);
	assert_int_equal(bed.finding.late_count, 3);
	assert_string_equal(jobs_cause_name(bed.finding.cause), "call-deadlock");
	// Rank 3 may be about to send what rank 2 waits for.
	put_call(&bed, 3, 0, 0, 0);
	bed_judge(&bed);
	assert_int_equal(bed.finding.grade, JOBS_QUIET);
	assert_int_equal(bed.finding.late_count, 0);
}

// Ranks 0 and 1 send to each other. The first row is a proof.
static void a_rank_that_may_still_deliver_breaks_the_proof(void **state) {
	static const struct {
		uint64_t launched, completed; // operations between two ranks, of rank 1
		uint8_t process_state;
		struct jobs_pair pair;
		enum jobs_grade grade;
	} rows[] = {
		{9, 8, JOBS_PROCESS_RUNNING, {0}, JOBS_STUCK},
		// a receive that was posted before the send
		{9, 7, JOBS_PROCESS_RUNNING, {0}, JOBS_QUIET},
		{9, 8, JOBS_PROCESS_STOPPED, {0}, JOBS_QUIET},
		{9, 8, JOBS_PROCESS_FROZEN, {0}, JOBS_QUIET},
		// a message may be lost on its way
		{9, 8, JOBS_PROCESS_RUNNING, {.silent = true}, JOBS_QUIET},
		{9, 8, JOBS_PROCESS_RUNNING, {.lost_permille = 499}, JOBS_STUCK},
	};
	struct bed bed;

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct ras_comm_rank *rank;

		bed_init(&bed);
		bed.pair = rows[n].pair;
		bed.pair.node = bed.pair.peer = VIEW_FIRST_NODE;
		put_call(&bed, 0, JOBS_CALL_SEND, 1, 7);
		put_call(&bed, 1, JOBS_CALL_SEND, 0, 7);
		rank = &bed.ranks[1].rank;
		rank->pair_launched = rows[n].launched;
		rank->pair_completed = rows[n].completed;
		rank->process_state = rows[n].process_state;
		bed_judge(&bed);
		assert_int_equal(bed.finding.grade, rows[n].grade);
	}
}

// Rank 0 is late. Rank 1 waits in an operation, and has posted a receive before.
static void a_receive_posted_before_an_operation_breaks_the_proof(void **state) {
	struct bed bed;

	(void)state;
	bed_init(&bed);
	put_call(&bed, 0, JOBS_CALL_SEND, 1, 7);
	for (uint32_t n = 1; n < RANKS; n++)
		put_inside(&bed, n);
	bed.ranks[1].rank.pair_launched = 1;
	assert_null(strstr(bed_judge(&bed), "itself waits"));
	assert_int_equal(bed.finding.grade, JOBS_WAITING);
	bed.ranks[1].rank.pair_completed = 1;
	assert_non_null(strstr(bed_judge(&bed), "itself waits"));
	assert_int_equal(bed.finding.grade, JOBS_STUCK);
}

static void a_cycle_is_found_among_more_ranks_than_a_chain_may_have(void **state) {
	static struct ras_merged_rank ranks[3000];
	const uint32_t count = sizeof(ranks) / sizeof(ranks[0]);
	struct bed bed;

	(void)state;
	bed_init(&bed);
	bed.comm.ranks = ranks;
	bed.comm.rank_count = bed.comm.size = count;
	for (uint32_t n = 0; n < count; n++) {
		ranks[n] = bed.ranks[0];
		ranks[n].rank.rank = n;
	}
	// rank 5 leads into a cycle of two
	ranks[5].rank.doing.call = (struct ras_comm_call){JOBS_CALL_RECV, false, 2000, 7};
	ranks[2000].rank.doing.call = (struct ras_comm_call){JOBS_CALL_RECV, false, 2001, 7};
	ranks[2001].rank.doing.call = (struct ras_comm_call){JOBS_CALL_RECV, false, 2000, 7};
	bed_judge(&bed);
	assert_int_equal(bed.finding.grade, JOBS_STUCK);
	assert_int_equal(bed.finding.cause, JOBS_CAUSE_CALLS);
	assert_int_equal(bed.finding.late_count, 2);
	assert_true(bed.finding.late[0] == 2000 || bed.finding.late[0] == 2001);
}

UNIT_GROUP(jobs_calls) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_numbers_of_calls_are_those_of_the_page),
		cmocka_unit_test(a_packed_call_keeps_its_peer_and_its_tag),
		cmocka_unit_test(only_a_wait_that_cannot_end_makes_a_late_rank_a_proof),
		cmocka_unit_test(a_posted_operation_holds_no_rank),
		cmocka_unit_test(one_late_rank_that_computes_leaves_the_others_a_hope),
		cmocka_unit_test(a_late_rank_says_the_call_with_peer_and_tag),
		cmocka_unit_test(ranks_that_wait_for_each_other_without_an_operation_are_stuck),
		cmocka_unit_test(a_rank_that_may_still_deliver_breaks_the_proof),
		cmocka_unit_test(a_receive_posted_before_an_operation_breaks_the_proof),
		cmocka_unit_test(a_cycle_is_found_among_more_ranks_than_a_chain_may_have),
	};

	return cmocka_run_group_tests_name("jobs_calls", tests, NULL, NULL);
}
