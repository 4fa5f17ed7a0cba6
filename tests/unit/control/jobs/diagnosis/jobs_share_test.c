// SPDX-License-Identifier: BSD-3-Clause
// From reports to rows: common values are stored once, and an invalid page contributes nothing.
#include "control/jobs/diagnosis/jobs_view.h"

#include <lib/wire.h>
#include <support/cmocka.h>

#include <jobs/share.h>
#include <jobs/wait.h>
#include <stdio.h>
#include <string.h>

#define LEVEL_ALL \
	(JOBS_KNOWS_STARTED | JOBS_KNOWS_COMPLETED | JOBS_KNOWS_SIGNATURES | JOBS_KNOWS_PROCESS)

static struct jobs_rank_report reports[JOBS_ROW_RANKS + 2];
static const struct jobs_rank_report *order[JOBS_ROW_RANKS + 2];
static struct jobs_row row;

static void sign(struct jobs_rank_report *report, uint64_t last) {
	report->launched = report->started = last;
	report->completed = last - 1;
	report->signature_count = JOBS_SIGNATURES;
	for (uint32_t n = 0; n < JOBS_SIGNATURES; n++)
		report->signatures[n] = (struct jobs_signature){
			.seq = last - JOBS_SIGNATURES + 1 + n,
			.count = 100,
			.root = JOBS_NO_ROOT,
			.kind = n % 2 == 0 ? JOBS_ALL_REDUCE : JOBS_ALL_GATHER,
			.waited_ns = n * 1000000,
		};
}

static int set_up(void **state) {
	(void)state;
	for (uint32_t n = 0; n < sizeof(order) / sizeof(order[0]); n++) {
		reports[n] = (struct jobs_rank_report){
			.comm_hash = 7,
			.size = 100,
			.rank = n,
			.pid = 100 + n,
			.cuda_device = -1,
			.nvml_device = -1,
			.knows = LEVEL_ALL,
			.attached = true,
			.sampled_ns = 60 * MODEL_SEC,
			.progress_ns = 50 * MODEL_SEC,
		};
		sign(&reports[n], 101);
		order[n] = &reports[n];
	}
	return 0;
}

static void ranks_that_run_the_same_carry_no_signatures_of_their_own(void **state) {
	(void)state;
	sign(&reports[1], 101);
	jobs_row_make(order, 4, &row);
	assert_int_equal(row.comm.signature_count, 2);
	assert_int_equal(row.comm.recent.first, 86);
	for (uint32_t n = 0; n < 4; n++) {
		assert_int_equal(row.ranks[n].recent.count, 0);
		assert_int_equal(row.ranks[n].idle_ms, 10000);
		assert_int_equal(row.ranks[n].wait_count, RAS_COMM_WAITS);
		// The wait of operation 100, the last completed one.
		assert_int_equal(
			row.ranks[n].waits[RAS_COMM_WAITS - 1], jobs_wait_code(14 * MODEL_MS)
		);
	}
}

static void one_that_runs_another_operation_carries_its_own(void **state) {
	(void)state;
	reports[2].signatures[15].count = 99;
	jobs_row_make(order, 4, &row);
	assert_int_equal(row.comm.signature_count, 3);
	assert_int_equal(row.ranks[2].recent.count, JOBS_SIGNATURES);
	assert_int_equal(row.ranks[2].recent.index[15], 2);
	assert_int_equal(row.ranks[3].recent.count, 0);
}

static void signatures_that_do_not_follow_each_other_are_left_out(void **state) {
	static const uint64_t seqs[][2] = {{0, 0}, {86, 88}, {86, 86}, {UINT64_MAX, 0}};

	(void)state;
	for (size_t n = 0; n < sizeof(seqs) / sizeof(seqs[0]); n++) {
		(void)set_up(NULL);
		reports[1].signatures[0].seq = seqs[n][0];
		reports[1].signatures[1].seq = seqs[n][1];
		jobs_row_make(order, 2, &row);
		assert_int_equal(row.ranks[1].knows & RAS_RANK_KNOWS_SIGNATURES, 0);
		assert_int_equal(row.ranks[0].knows & RAS_RANK_KNOWS_SIGNATURES, 4);
	}
}

static void more_different_operations_than_a_row_holds_are_left_out(void **state) {
	(void)state;
	for (uint32_t n = 0; n < JOBS_SIGNATURES; n++)
		reports[0].signatures[n].count = n;
	for (uint32_t n = 0; n < JOBS_SIGNATURES; n++)
		reports[1].signatures[n].count = 1000 + n;
	jobs_row_make(order, 2, &row);
	assert_int_equal(row.comm.signature_count, RAS_COMM_SIGNATURES);
	assert_int_equal(row.ranks[1].knows & RAS_RANK_KNOWS_SIGNATURES, 0);
}

static void nonsense_of_a_page_makes_a_row_that_can_be_read(void **state) {
	uint8_t bytes[8192];
	struct ras_collected_part part = {.node = 1, .payload = bytes};
	struct wire_writer writer;
	struct ras_comms *comms;
	uint64_t random = 1;

	(void)state;
	for (uint32_t round = 0; round < 2000; round++) {
		uint8_t *page = (uint8_t *)&reports[1];

		(void)set_up(NULL);
		for (size_t n = 0; n < sizeof(reports[1]); n++) {
			random = random * UINT64_C(6364136223846793005) + 1;
			if ((random >> 60) < round % 16)
				page[n] = (uint8_t)(random >> 40);
		}
		// Fields that the agent fills itself; the others come from the page.
		reports[1].size = 100;
		reports[1].rank = 1;
		reports[1].comm_hash = 7;
		reports[1].host_hash = reports[1].process_hash = reports[1].config_hash = 0;
		reports[1].uid = 0;
		reports[1].finalized = reports[1].destroyed = round % 2 == 0;
		reports[1].aborted = reports[1].attached = reports[1].blocks = round % 3 == 0;
		reports[1].aborted_all = reports[1].end_is_seen_late = round % 5 == 0;
		reports[1].doing.call.is_elsewhere = round % 2 == 0;
		reports[1].oldest_is_unwaited = round % 3 == 1;
		reports[1].signature_count %= JOBS_SIGNATURES + 1;
		memset(reports[1].job_id + JOBS_ID_BYTES - 1, 0, 1);
		wire_writer_init(&writer, bytes, sizeof(bytes));
		jobs_row_make(order, 2, &row);
		assert_int_equal(ras_comm_put(&writer, &row.comm), 0);
		assert_int_equal(wire_writer_finish(&writer, &part.size), 0);
		assert_int_equal(ras_comms_create(&jobs_view_memory, &comms), 0);
		assert_int_equal(ras_comms_add(comms, &part), 0);
		ras_comms_destroy(comms);
	}
}

static void rows_are_cut_by_communicator_job_and_length(void **state) {
	(void)state;
	assert_int_equal(jobs_row_length(order, JOBS_ROW_RANKS + 2), JOBS_ROW_RANKS);
	snprintf(reports[5].job_id, sizeof(reports[5].job_id), "slurm:2");
	assert_int_equal(jobs_row_length(order, 10), 5);
	reports[3].config_hash = 1;
	assert_int_equal(jobs_row_length(order, 10), 3);
	reports[1].comm_hash = 8;
	assert_int_equal(jobs_row_length(order, 10), 1);
}

static void a_rank_is_in_a_row_once_and_the_living_process_first(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 5; n++) {
		reports[n].size = 2;
		reports[n].rank = n / 4;
	}
	reports[0].exited_ns = 5 * MODEL_SEC;
	reports[1].exited_ns = 9 * MODEL_SEC;
	reports[3].left = JOBS_LEFT_CLOSED;
	reports[3].exited_ns = 59 * MODEL_SEC;
	assert_true(jobs_report_compare(order[2], order[1]) < 0);
	assert_true(jobs_report_compare(order[3], order[1]) < 0);
	assert_true(jobs_report_compare(order[1], order[0]) < 0);
	// Sorted: the living process of rank 0, those that ended, rank 1.
	order[0] = &reports[2];
	order[1] = &reports[3];
	order[2] = &reports[1];
	order[3] = &reports[0];
	assert_int_equal(jobs_reports_unique(order, 5), 2);
	assert_ptr_equal(order[0], &reports[2]);
	assert_ptr_equal(order[1], &reports[4]);
	// Another attempt of the launcher is another communicator.
	(void)set_up(NULL);
	reports[1].rank = 0;
	reports[1].attempt = 1;
	assert_int_equal(jobs_reports_unique(order, 2), 2);
	assert_int_equal(jobs_row_length(order, 2), 1);
}

static void the_registration_is_as_old_as_at_the_answer(void **state) {
	(void)state;
	reports[0].since_ns = 50 * MODEL_SEC;
	jobs_row_make(order, 2, &row);
	assert_int_equal(row.ranks[0].since_ms, 10000);
	reports[0].shown_ns = 61 * MODEL_SEC;
	reports[1].since_ns = reports[1].shown_ns = 61 * MODEL_SEC;
	jobs_row_make(order, 2, &row);
	assert_int_equal(row.ranks[0].since_ms, 11000);
	assert_int_equal(row.ranks[1].since_ms, 1); // 0 means unknown
}

static void a_call_of_an_old_sample_is_left_out(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		reports[n].doing.call =
			(struct ras_comm_call){.number = JOBS_CALL_RECV, .peer = 1, .tag = 7};
		reports[n].shown_ns = reports[n].sampled_ns + (n + 2) * MODEL_SEC;
	}
	reports[1].shown_ns++;
	jobs_row_make(order, 2, &row);
	assert_int_equal(row.ranks[0].doing.call.number, JOBS_CALL_RECV);
	assert_int_equal(row.ranks[1].doing.call.number, 0);
}

// Make the row of two ranks, and read it as another agent does.
static void carry_row(struct ras_comm_rank ret_ranks[static 2]) {
	uint8_t bytes[4096];
	struct ras_collected_part part = {.node = 1, .payload = bytes};
	struct ras_merged_comm merged;
	struct wire_writer writer;
	struct ras_comms *comms;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	jobs_row_make(order, 2, &row);
	assert_int_equal(ras_comm_put(&writer, &row.comm), 0);
	assert_int_equal(wire_writer_finish(&writer, &part.size), 0);
	assert_int_equal(ras_comms_create(&jobs_view_memory, &comms), 0);
	assert_int_equal(ras_comms_add(comms, &part), 0);
	assert_int_equal(ras_comms_settle(comms), 1);
	ras_comms_at(comms, 0, &merged);
	for (uint32_t n = 0; n < 2; n++)
		ret_ranks[n] = merged.ranks[n].rank;
	ras_comms_destroy(comms);
}

static void posted_operations_reach_another_agent(void **state) {
	struct ras_comm_rank ranks[2];

	(void)state;
	reports[0].unwaited = UINT32_MAX;
	reports[0].oldest_is_unwaited = true;
	carry_row(ranks);
	assert_int_equal(ranks[0].unwaited, UINT32_MAX);
	assert_true(ranks[0].oldest_is_unwaited);
	assert_int_equal(ranks[0].doing.busy_s, 0);
	assert_int_equal(ranks[1].unwaited, 0);
	assert_false(ranks[1].oldest_is_unwaited);
}

static void a_report_of_being_busy_ends_by_itself(void **state) {
	static const struct {
		uint64_t until_ns;
		uint32_t busy_s;
	} rows[] = {
		{0, 0},
		{60 * MODEL_SEC, 0}, // the time of the sample
		{60 * MODEL_SEC + 1, 1},
		{100 * MODEL_SEC, 41},
		{UINT64_MAX, UINT32_MAX},
	};
	struct ras_comm_rank ranks[2];

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		reports[1].busy_until_ns = rows[n].until_ns;
		memcpy(reports[1].busy_why, "checkpoint\n2", sizeof("checkpoint\n2"));
		reports[1].doing.call =
			(struct ras_comm_call){.number = JOBS_CALL_RECV, .peer = 1, .tag = 7};
		carry_row(ranks);
		assert_int_equal(ranks[0].doing.busy_s, 0);
		assert_int_equal(ranks[1].doing.busy_s, rows[n].busy_s);
		assert_string_equal(
			ranks[1].doing.busy_why, rows[n].busy_s != 0 ? "checkpoint?2" : ""
		);
		assert_int_equal(ranks[1].doing.call.number, JOBS_CALL_RECV);
	}
}

static void another_user_with_the_same_hashes_has_a_communicator_of_his_own(void **state) {
	struct ras_comm_id ids[2];

	(void)state;
	reports[1].uid = 1000;
	// Hashes that would collide with the other row's if the user were mixed into them.
	for (uint32_t bit = 0; bit < 2 * 64; bit++) {
		reports[1].host_hash = bit < 64 ? UINT64_C(1) << bit : 0;
		reports[1].process_hash = bit < 64 ? 1000 : UINT64_C(1) << (bit - 64);
		jobs_row_make(&order[0], 1, &row);
		ids[0] = row.comm.id;
		jobs_row_make(&order[1], 1, &row);
		ids[1] = row.comm.id;
		assert_memory_not_equal(&ids[0], &ids[1], sizeof(ids[0]));
	}
	reports[1].host_hash = reports[1].process_hash = 0;
	assert_int_equal(jobs_row_length(order, 10), 1);
	jobs_row_make(&order[1], 1, &row);
	assert_memory_not_equal(&ids[0], &row.comm.id, sizeof(ids[0]));
}

UNIT_GROUP(jobs_share) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			ranks_that_run_the_same_carry_no_signatures_of_their_own, set_up
		),
		cmocka_unit_test_setup(one_that_runs_another_operation_carries_its_own, set_up),
		cmocka_unit_test_setup(
			signatures_that_do_not_follow_each_other_are_left_out, set_up
		),
		cmocka_unit_test_setup(
			more_different_operations_than_a_row_holds_are_left_out, set_up
		),
		cmocka_unit_test_setup(nonsense_of_a_page_makes_a_row_that_can_be_read, set_up),
		cmocka_unit_test_setup(rows_are_cut_by_communicator_job_and_length, set_up),
		cmocka_unit_test_setup(the_registration_is_as_old_as_at_the_answer, set_up),
		cmocka_unit_test_setup(a_call_of_an_old_sample_is_left_out, set_up),
		cmocka_unit_test_setup(posted_operations_reach_another_agent, set_up),
		cmocka_unit_test_setup(a_report_of_being_busy_ends_by_itself, set_up),
		cmocka_unit_test_setup(
			a_rank_is_in_a_row_once_and_the_living_process_first, set_up
		),
		cmocka_unit_test_setup(
			another_user_with_the_same_hashes_has_a_communicator_of_his_own, set_up
		),
	};

	return cmocka_run_group_tests_name("jobs_share", tests, NULL, NULL);
}
