// SPDX-License-Identifier: BSD-3-Clause
// Reported evidence on a running or ended rank, how long it lasts, and invalid pages.
#include "control/jobs/host/jobhost_child.h"

#include <lib/proc_stat.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

static struct jobs_rank_report report_of(struct bed *bed, uint32_t rank) {
	struct jobs_rank_report report;

	for (uint32_t n = 0; n < read_report(bed, n, &report); n++)
		if (report.rank == rank)
			return report;
	fail_msg("no report of rank %u", rank);
	return report;
}

static void the_evidence_of_who_was_killed_stays_and_is_bounded(void **state) {
	struct bed *bed = *state;
	struct jobs_rank_report report;

	for (uint32_t n = 0; n < 6; n++) {
		struct child child = child_start(bed, 2, 0);

		child_do(&child, 'c');
		child_do(&child, 'c');
		child_end(bed, &child, SIGKILL);
	}
	report = report_of(bed, 2);
	assert_int_equal(report.launched, 2);
	assert_int_equal(report.launched_of[JOBS_ALL_REDUCE], 2);
	assert_int_equal(report.signature_count, 2);
	assert_int_equal(report.signatures[1].seq, 2);
	assert_int_equal(report.signatures[1].count, 5);
	assert_int_equal(report.process_state, JOBS_PROCESS_EXITED);
	assert_int_equal(report.exit_cause, JOBS_EXIT_SIGNAL);
	assert_int_equal(report.exit_value, SIGKILL);
	assert_string_equal(report.job_id, "test:1");
	assert_int_equal(ranks_shown(bed), bed->config.keep_max);
	clock_advance(&bed->clock, bed->config.keep_ns);
	settle(bed);
	assert_int_equal(ranks_shown(bed), 0);
}

static void a_user_with_many_dead_leaves_others_their_evidence(void **state) {
	struct bed *bed = *state;
	struct jobs_rank_report report;
	uint32_t of_other = 0;

	if (geteuid() != 0)
		skip();
	for (uint32_t n = 0; n < 8; n++) {
		struct child child = child_start(bed, 2, n < 2 ? 12345 : 0);

		child_end(bed, &child, SIGKILL);
	}
	assert_int_equal(ranks_shown(bed), bed->config.keep_max);
	for (uint32_t n = 0; n < read_report(bed, n, &report); n++)
		of_other += report.uid == 12345;
	assert_int_equal(of_other, bed->config.keep_max / 2);
}

// A hostile thread that overwrites its page while the agent reads it.
struct vandal {
	int page;
	_Atomic uint64_t *words;
	atomic_bool over;
};

static void *scribble(void *context) {
	struct vandal *vandal = context;
	uint64_t random = 88172645463325252u;

	while (!atomic_load_explicit(&vandal->over, memory_order_acquire)) {
		for (int n = 0; n < 5000; n++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			// The communicator's number is written often, so that rows count as
			// valid.
			atomic_store_explicit(
				&vandal->words[random % (JOB_PAGE_BYTES / 8)],
				random % 3 == 0 ? 1 : random, memory_order_relaxed
			);
		}
		(void)fallocate(
			vandal->page, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)(random % 70) * 4096, 8192
		);
	}
	return NULL;
}

static bool is_whole(const struct jobs_rank_report *report) {
	bool whole = report->completed <= report->started && report->started <= report->launched &&
		     report->signature_count <= JOBS_SIGNATURES;

	for (uint32_t n = 0; n < JOBS_KINDS; n++)
		whole = whole && report->completed_of[n] <= report->started_of[n] &&
			report->started_of[n] <= report->launched_of[n];
	for (uint32_t n = 0; n < report->signature_count; n++)
		whole = whole && report->signatures[n].kind < JOBS_KINDS;
	return whole;
}

static void nonsense_and_holes_in_a_page_hurt_its_own_report_alone(void **state) {
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), fd = raw_greet(bed, page);
	struct job_register good = good_register(1);
	struct vandal vandal = {.page = page};
	struct member honest = member_open(bed, 0, 4);
	pthread_t thread;

	raw_send(fd, &good, sizeof(good), -1);
	member_connect(bed, &honest);
	tocsin_comm_launched(honest.comm, TOCSIN_BARRIER, 0, 0, -1);
	vandal.words = mmap(NULL, JOB_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
	assert_true(vandal.words != MAP_FAILED);
	assert_int_equal(pthread_create(&thread, NULL, scribble, &vandal), 0);
	for (int n = 0; n < 200; n++) {
		struct jobs_rank_report report;

		look_again(bed);
		report = report_of(bed, 1);
		assert_true(is_whole(&report));
		assert_int_equal(report_of(bed, 0).launched, 1);
	}
	atomic_store_explicit(&vandal.over, true, memory_order_release);
	pthread_join(thread, NULL);
	munmap(vandal.words, JOB_PAGE_BYTES);
	close(fd);
	close(page);
	member_close(bed, &honest);
}

static void waits_are_from_start_to_completion(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct jobs_rank_report report;

	member_connect(bed, &self);
	for (int n = 0; n < 40; n++) {
		tocsin_comm_launched(self.comm, TOCSIN_ALL_REDUCE, 1, 7, -1);
		tocsin_comm_started(self.comm, TOCSIN_ALL_REDUCE);
		if (n < 39)
			tocsin_comm_completed(self.comm, TOCSIN_ALL_REDUCE);
	}
	look_again(bed);
	report = report_of(bed, 0);
	assert_int_equal(report.launched, 40);
	assert_int_equal(report.started, 40);
	assert_int_equal(report.completed, 39);
	assert_int_equal(report.signature_count, JOBS_SIGNATURES);
	assert_int_equal(report.signatures[JOBS_SIGNATURES - 1].seq, 40);
	assert_true(report.signatures[JOBS_SIGNATURES - 1].waited_ns == JOBS_TIME_UNKNOWN);
	assert_true(report.signatures[JOBS_SIGNATURES - 2].waited_ns < 10 * SECOND);
	assert_int_equal(report.process_state, JOBS_PROCESS_RUNNING);
	assert_int_equal(report.pid, getpid());
	member_close(bed, &self);
}

static void a_process_is_looked_at_while_its_ranks_do_not_move(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);

	member_connect(bed, &self);
	tocsin_comm_launched(self.comm, TOCSIN_ALL_REDUCE, 1, 7, -1);
	tocsin_comm_started(self.comm, TOCSIN_ALL_REDUCE);
	tocsin_comm_completed(self.comm, TOCSIN_ALL_REDUCE);
	look_again(bed);
	assert_int_equal(report_of(bed, 0).doing.activity, JOBS_DOES_UNKNOWN);
	for (int n = 0; n < 5; n++)
		look_again(bed);
	assert_int_not_equal(report_of(bed, 0).doing.activity, JOBS_DOES_UNKNOWN);
	assert_true(report_of(bed, 0).doing.span_ms >= 1000);
	tocsin_comm_launched(self.comm, TOCSIN_ALL_REDUCE, 1, 7, -1);
	look_again(bed);
	assert_int_equal(report_of(bed, 0).doing.activity, JOBS_DOES_UNKNOWN);
	assert_int_equal(report_of(bed, 0).doing.span_ms, 0);
	member_close(bed, &self);
}

static void a_rank_that_only_posted_an_operation_does_not_block(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);

	member_connect(bed, &self);
	tocsin_comm_launched(self.comm, TOCSIN_ALL_REDUCE, 1, 7, -1);
	tocsin_comm_started(self.comm, TOCSIN_ALL_REDUCE);
	for (int posted = 1; posted >= 0; posted--) {
		assert_int_equal(
			tocsin_comm_mark(self.comm, TOCSIN_MARK_POSTED, (uint64_t)posted), 0
		);
		look_again(bed);
		assert_int_equal(report_of(bed, 0).blocks, !posted);
		assert_int_equal(
			report_of(bed, 0).knows & JOBS_KNOWS_STARTED,
			posted ? 0 : JOBS_KNOWS_STARTED
		);
		assert_int_equal(report_of(bed, 0).started, 1);
	}
	member_close(bed, &self);
}

static void posted_operations_are_counted_until_their_rank_waits(void **state) {
	static const struct {
		uint32_t unwaited;
		bool oldest;
	} rows[] = {{1, true}, {2, true}, {1, false}, {0, false}};
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct jobs_rank_report report;

	member_connect(bed, &self);
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		assert_int_equal(
			tocsin_comm_mark(
				self.comm, TOCSIN_MARK_POSTED,
				tocsin_posted_value(rows[n].unwaited, rows[n].oldest)
			),
			0
		);
		look_again(bed);
		report = report_of(bed, 0);
		assert_false(report.blocks);
		assert_int_equal(report.unwaited, rows[n].unwaited);
		assert_int_equal(report.oldest_is_unwaited, rows[n].oldest);
	}
	// A library of an earlier version marks that an operation is posted, and counts none.
	assert_int_equal(tocsin_comm_mark(self.comm, TOCSIN_MARK_POSTED, 1), 0);
	look_again(bed);
	assert_false(report_of(bed, 0).oldest_is_unwaited);
	assert_int_equal(tocsin_comm_mark(self.comm, TOCSIN_MARK_POSTED, 0), 0);
	look_again(bed);
	assert_true(report_of(bed, 0).blocks);
	member_close(bed, &self);
}

static void a_process_is_busy_in_all_its_jobs_until_the_latest_end(void **state) {
	struct bed *bed = *state;
	struct member first = member_open(bed, 0, 4), second = member_open(bed, 1, 4);
	struct jobs_rank_report report;

	member_connect(bed, &first);
	member_connect(bed, &second);
	assert_int_equal(tocsin_job_busy(first.job, 5000 * SECOND, "checkpoint"), 0);
	assert_int_equal(tocsin_job_busy(second.job, 4000 * SECOND, "evaluation"), 0);
	look_again(bed);
	look_again(bed); // the process may be sampled in either order
	for (uint32_t rank = 0; rank < 2; rank++) {
		report = report_of(bed, rank);
		assert_int_equal(report.busy_until_ns, 5000 * SECOND);
		assert_string_equal(report.busy_why, "checkpoint");
	}
	assert_int_equal(tocsin_job_busy(first.job, 0, NULL), 0);
	look_again(bed);
	look_again(bed);
	assert_int_equal(report_of(bed, 0).busy_until_ns, 4000 * SECOND);
	assert_string_equal(report_of(bed, 0).busy_why, "evaluation");
	member_close(bed, &first);
	member_close(bed, &second);
}

static void a_message_that_completed_has_started(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct jobs_rank_report report;

	member_connect(bed, &self);
	tocsin_comm_launched(self.comm, TOCSIN_SEND, 0, 0, -1);
	tocsin_comm_launched(self.comm, TOCSIN_SEND, 0, 0, -1);
	tocsin_comm_completed(self.comm, TOCSIN_SEND);
	look_again(bed);
	report = report_of(bed, 0);
	assert_int_equal(report.launched_of[JOBS_SEND], 2);
	assert_int_equal(report.completed_of[JOBS_SEND], 1);
	member_close(bed, &self);
}

static void an_end_is_seen_late_by_an_agent_that_was_stopped(void **state) {
	struct bed *bed = *state;

	for (uint32_t late = 0; late < 2; late++) {
		struct child child = child_start(bed, late, 0);
		siginfo_t end;

		look_again(bed);
		assert_int_equal(kill(child.pid, SIGKILL), 0);
		assert_int_equal(waitid(P_PID, (id_t)child.pid, &end, WEXITED | WNOWAIT), 0);
		clock_advance(&bed->clock, late * 30 * SECOND);
		child_end(bed, &child, 0);
		assert_int_equal(report_of(bed, late).end_is_seen_late, late);
	}
}

static void a_process_whose_main_thread_has_ended_is_no_zombie(void **state) {
	struct bed *bed = *state;
	struct child child = child_start(bed, 1, 0);
	struct proc_stat stat = {0};

	child_do(&child, 't');
	for (int n = 0; n < TURNS_MAX && stat.state != 'Z'; n++) {
		assert_int_equal(proc_stat_read(child.pid, &stat), 0);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(stat.state, 'Z');
	look_again(bed);
	assert_int_equal(report_of(bed, 1).process_state, JOBS_PROCESS_SLEEPING);
	child_end(bed, &child, 0);
	assert_int_equal(report_of(bed, 1).process_state, JOBS_PROCESS_EXITED);
}

UNIT_GROUP(jobhost_evidence) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_evidence_of_who_was_killed_stays_and_is_bounded, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_user_with_many_dead_leaves_others_their_evidence, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			nonsense_and_holes_in_a_page_hurt_its_own_report_alone, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			waits_are_from_start_to_completion, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_process_is_looked_at_while_its_ranks_do_not_move, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_rank_that_only_posted_an_operation_does_not_block, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			posted_operations_are_counted_until_their_rank_waits, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_process_is_busy_in_all_its_jobs_until_the_latest_end, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_message_that_completed_has_started, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			an_end_is_seen_late_by_an_agent_that_was_stopped, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_process_whose_main_thread_has_ended_is_no_zombie, setup, teardown
		),
	};

	return cmocka_run_group_tests_name("jobhost_evidence", tests, NULL, NULL);
}
