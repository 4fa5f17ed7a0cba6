// SPDX-License-Identifier: BSD-3-Clause
// Judgement of jobs: pauses that are no hang, hangs, and its cost.
#include "control/jobs/diagnosis/jobs_view.h"

#include <support/cmocka.h>
#include <support/heap.h>

#include <errno.h>
#include <jobs/wait.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 2
#define PER_NODE 4
#define LEVEL_ALL \
	(JOBS_KNOWS_STARTED | JOBS_KNOWS_COMPLETED | JOBS_KNOWS_SIGNATURES | JOBS_KNOWS_PROCESS)

static uint32_t count_grade(const struct jobs_view *view, enum jobs_grade grade) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < view->count; n++)
		count += view->findings[n].grade == grade;
	return count;
}

// Simulate a day of a job with a pause of half an hour every two hours. A false "stuck" would
// occur during a pause, so one look every five minutes finds it.
static uint32_t stuck_in_a_day(struct job_model_config *config, uint32_t *ret_waiting) {
	struct job_model *model = job_model_create(config);
	uint32_t stuck = 0;

	*ret_waiting = 0;
	for (uint64_t minute = 5; minute <= 24 * 60; minute += 5) {
		struct jobs_view view;

		job_model_run(model, minute * 60 * MODEL_SEC);
		jobs_view_take(&view, model, config->nodes, NULL, NULL);
		stuck += count_grade(&view, JOBS_STUCK);
		*ret_waiting += count_grade(&view, JOBS_WAITING);
		jobs_view_drop(&view);
	}
	assert_true(job_model_completed(model) > 10000);
	job_model_destroy(model);
	return stuck;
}

static void no_pause_of_a_day_is_a_hang(void **state) {
	static const struct {
		enum model_fault fault;
		bool bursts, spins, waits;
	} rows[] = {
		{MODEL_HEALTHY, true, false, false}, {MODEL_COMPUTES, false, false, true},
		{MODEL_COMPUTES, true, true, true},  {MODEL_DEBUGGED, false, true, true},
		{MODEL_SERVES, false, false, true},  {MODEL_IDLES, true, false, false},
		{MODEL_READS, false, false, true},   {MODEL_READS, true, true, true},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct job_model_config config = {
			.nodes = NODES,
			.per_node = PER_NODE,
			.seed = 7 + n,
			.compute_ns = 3 * MODEL_SEC,
			.fault = rows[n].fault,
			.rank = 3,
			.at_ns = 600 * MODEL_SEC,
			.pause_ns = 1800 * MODEL_SEC,
			.period_ns = 7200 * MODEL_SEC,
			.spins = rows[n].spins,
			.bursts = rows[n].bursts,
			.knows = LEVEL_ALL,
		};
		uint32_t waiting;

		assert_int_equal(stuck_in_a_day(&config, &waiting), 0);
		// A pause lasts half an hour, so each of twelve pauses is seen several times.
		if (rows[n].waits)
			assert_true(waiting > 40);
	}
}

// Look every second until `found`. Returns the number of seconds.
static uint32_t seconds_until(
	struct job_model *model,
	const struct job_model_config *config,
	const struct jobs_limits *limits,
	enum jobs_grade grade,
	uint32_t seconds_max
) {
	for (uint32_t second = 1; second <= seconds_max; second++) {
		struct jobs_view view;
		bool found;

		job_model_run(model, config->at_ns + second * MODEL_SEC);
		jobs_view_take(&view, model, config->nodes, limits, NULL);
		found = count_grade(&view, grade) > 0;
		jobs_view_drop(&view);
		if (found)
			return second;
	}
	return 0;
}

static struct job_model_config a_config(enum model_fault fault, uint8_t knows) {
	return (struct job_model_config){
		.nodes = NODES,
		.per_node = PER_NODE,
		.seed = 3,
		.compute_ns = 400 * MODEL_MS,
		.fault = fault,
		.rank = 3,
		.at_ns = 20 * MODEL_SEC,
		.pause_ns = 7200 * MODEL_SEC,
		.knows = knows,
	};
}

static void patience_is_as_long_as_what_is_known_asks_for(void **state) {
	const uint8_t no_process = LEVEL_ALL & ~JOBS_KNOWS_PROCESS;
	const struct jobs_limits limits = {
		.confirm_ns = 5 * MODEL_SEC,
		.stuck_ns = 60 * MODEL_SEC,
		.busy_ns = 300 * MODEL_SEC};
	const struct {
		enum model_fault fault;
		uint8_t knows;
		uint32_t from, to; // seconds from the fault until the job is stuck; 0: never
	} rows[] = {
		// A process that sleeps may wait for input, so time alone decides.
		{MODEL_HANGS, LEVEL_ALL, 300, 310}, {MODEL_HANGS, no_process, 300, 310},
		{MODEL_FREEZES, LEVEL_ALL, 5, 20},  {MODEL_COMPUTES, LEVEL_ALL, 300, 310},
		{MODEL_DEBUGGED, LEVEL_ALL, 0, 0},  {MODEL_DEVICE, LEVEL_ALL, 60, 70},
		{MODEL_KILLED, 0, 5, 10},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct job_model_config config = a_config(rows[n].fault, rows[n].knows);
		struct job_model *model = job_model_create(&config);
		uint32_t seconds = seconds_until(model, &config, &limits, JOBS_STUCK, 400);

		assert_in_range(seconds, rows[n].from, rows[n].to);
		job_model_destroy(model);
	}
}

static void a_pause_of_half_a_minute_is_waiting_and_then_moves(void **state) {
	struct job_model_config config = a_config(MODEL_COMPUTES, LEVEL_ALL);
	struct job_model *model;

	(void)state;
	config.pause_ns = 30 * MODEL_SEC;
	model = job_model_create(&config);
	assert_in_range(seconds_until(model, &config, NULL, JOBS_WAITING, 60), 10, 14);
	config.at_ns += 20 * MODEL_SEC;
	assert_int_equal(seconds_until(model, &config, NULL, JOBS_STUCK, 60), 0);
	job_model_destroy(model);
}

// Two ranks in two communicators, set by hand.
struct hand {
	struct ras_merged_rank ranks[2][2];
	struct ras_merged_comm comms[2];
	struct jobs_finding findings[2];
	struct jobs_snapshot look;
};

static void hand_init(struct hand *hand) {
	memset(hand, 0, sizeof(*hand));
	for (uint32_t comm = 0; comm < 2; comm++) {
		for (uint32_t rank = 0; rank < 2; rank++)
			hand->ranks[comm][rank] = (struct ras_merged_rank
			){.node = VIEW_FIRST_NODE + rank,
			  .rank = {
				  .rank = rank,
				  .pid = 10 + rank,
				  .idle_ms = 20000,
				  .launched = 5,
				  .started = 5,
				  .completed = 5,
				  .process_state = JOBS_PROCESS_RUNNING,
				  .worked_ms = 9000,
				  .knows = LEVEL_ALL}};
		hand->comms[comm] = (struct ras_merged_comm){
			.id = {comm + 1, 0, 0},
			.size = 2,
			.job = "",
			.rank_count = 2,
			.ranks = hand->ranks[comm],
		};
	}
	hand->look = (struct jobs_snapshot
	){.comms = hand->comms, .comm_count = 2, .memory = &jobs_view_memory};
}

// In each communicator, the rank waits that is late in the other one.
static void cross(struct hand *hand) {
	hand->ranks[0][0].rank.launched = hand->ranks[0][0].rank.started = 6;
	hand->ranks[1][1].rank.launched = hand->ranks[1][1].rank.started = 6;
}

static void two_that_compute_with_an_operation_open_are_no_deadlock(void **state) {
	char text[JOBS_SENTENCE_BYTES];
	struct jobs_view view;
	struct hand hand;

	(void)state;
	hand_init(&hand);
	cross(&hand);
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	for (uint32_t n = 0; n < 2; n++) {
		assert_int_equal(hand.findings[n].cause, JOBS_CAUSE_MISSING_ENTER);
		assert_int_equal(hand.findings[n].grade, JOBS_WAITING);
		assert_true(hand.findings[n].busy);
	}
	// Both are named, since threads that only poll their device also use processor time.
	view.look = hand.look;
	view.findings = hand.findings;
	jobs_view_say(&view, 0, text);
	assert_non_null(
		strstr(text, "it is busy, and its device waits in communicator 0000000000000002")
	);
}

static void two_whose_calls_block_are_a_deadlock(void **state) {
	char text[JOBS_SENTENCE_BYTES];
	struct jobs_view view;
	struct hand hand;

	(void)state;
	hand_init(&hand);
	cross(&hand);
	for (uint32_t n = 0; n < 4; n++)
		hand.ranks[n / 2][n % 2].rank.flags |= RAS_RANK_BLOCKS;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	for (uint32_t n = 0; n < 2; n++) {
		assert_int_equal(hand.findings[n].cause, JOBS_CAUSE_ORDERING);
		assert_int_equal(hand.findings[n].grade, JOBS_STUCK);
		assert_int_equal(hand.findings[n].chain_count, 2);
		assert_int_equal(hand.findings[n].chain[0].comm, n);
		assert_int_equal(hand.findings[n].chain[0].place, 1 - n);
	}
	// Rank 1 of one communicator may be another process than rank 1 of the other one.
	view.look = hand.look;
	view.findings = hand.findings;
	jobs_view_say(&view, 0, text);
	assert_string_equal(
		text,
		"ranks wait for each other: in operation 6 of communicator 0000000000000001 for "
		"rank 1 (pid 11 on n1, GPU 0), which waits in operation 6 of communicator "
		"0000000000000002 for rank 0 (pid 10 on n0, GPU 0), which waits in the first"
	);
}

static void a_rank_that_sleeps_waits_whatever_it_does(void **state) {
	static const struct {
		struct ras_comm_doing doing;
		const char *words;
	} rows[] = {
		{{.activity = JOBS_DOES_NOTHING, .span_ms = 9000},
		 "; it uses no processor time: it may wait for input, a pipe or a lock"},
		{{.activity = JOBS_DOES_NOTHING,
		  .span_ms = 9000,
		  .unread = JOBS_SOURCE_CHILDREN | JOBS_SOURCE_QUOTA},
		 "a pipe or a lock (not readable: children, quota)"},
		{{.activity = JOBS_DOES_CHILD, .span_ms = 9000, .amount = 123, .name = "cc1"},
		 "; its child cc1 (pid 123) computes"},
		{{.activity = JOBS_DOES_CHILD, .span_ms = 9000}, "; its children compute"},
		{{.activity = JOBS_DOES_THROTTLE, .span_ms = 10000, .amount = 93},
		 "; its cgroup's quota throttled it 93 % of the last 10 s"},
		{{.activity = JOBS_DOES_DISK, .span_ms = 9000, .amount = 100},
		 "; it is in uninterruptible disk wait, 100 % of the last 9.0 s"},
		{{.activity = JOBS_DOES_PAGE, .span_ms = 9000, .amount = 700},
		 "; it reads its memory from a disk, 700 pages in the last 9.0 s"},
		{{.activity = JOBS_DOES_QUEUE, .span_ms = 9000, .amount = 71},
		 "; it is ready to run and had no processor 71 % of the last 9.0 s"},
	};
	char text[JOBS_SENTENCE_BYTES];
	struct jobs_view view;
	struct hand hand;

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct ras_comm_rank *late = &hand.ranks[0][1].rank;

		hand_init(&hand);
		hand.ranks[0][0].rank.launched = hand.ranks[0][0].rank.started = 6;
		late->process_state = JOBS_PROCESS_SLEEPING;
		late->worked_ms = 0;
		late->doing = rows[n].doing;
		assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
		assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_MISSING_ENTER);
		assert_int_equal(hand.findings[0].grade, JOBS_WAITING);
		view.look = hand.look;
		view.findings = hand.findings;
		jobs_view_say(&view, 0, text);
		assert_non_null(strstr(text, rows[n].words));
		// After an hour without a move somebody should look.
		hand.ranks[0][0].rank.idle_ms = hand.ranks[0][1].rank.idle_ms = 3600 * 1000;
		hand.ranks[1][0].rank.idle_ms = hand.ranks[1][1].rank.idle_ms = 3600 * 1000;
		assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
		assert_int_equal(hand.findings[0].grade, JOBS_STUCK);
	}
}

static void a_late_rank_that_is_stopped_or_frozen_is_a_proof(void **state) {
	static const uint8_t states[] = {JOBS_PROCESS_STOPPED, JOBS_PROCESS_FROZEN};
	char text[JOBS_SENTENCE_BYTES];
	struct jobs_view view;
	struct hand hand;

	(void)state;
	for (size_t n = 0; n < sizeof(states); n++) {
		hand_init(&hand);
		hand.ranks[0][0].rank.launched = hand.ranks[0][0].rank.started = 6;
		hand.ranks[0][1].rank.process_state = states[n];
		hand.ranks[0][1].rank.worked_ms = 0;
		assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
		assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_MISSING_ENTER);
		assert_int_equal(hand.findings[0].grade, JOBS_STUCK);
		// The same inside the operation.
		hand.ranks[0][1].rank.launched = hand.ranks[0][1].rank.started = 6;
		assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
		assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_STOPPED_MEMBER);
		assert_int_equal(hand.findings[0].grade, JOBS_STUCK);
		view.look = hand.look;
		view.findings = hand.findings;
		jobs_view_say(&view, 0, text);
		assert_non_null(strstr(
			text, states[n] == JOBS_PROCESS_FROZEN ? "is frozen by its cgroup inside"
							       : "is stopped inside"
		));
	}
}

static void a_rank_that_no_agent_shows_may_be_healthy(void **state) {
	struct hand hand;

	(void)state;
	hand_init(&hand);
	hand.comms[0].rank_count = 1;
	hand.ranks[0][0].rank.launched = hand.ranks[0][0].rank.started = 6;
	hand.ranks[0][0].rank.idle_ms = 1800 * 1000;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_UNKNOWN);
	assert_int_equal(hand.findings[0].grade, JOBS_WAITING);
}

// Two ranks that each posted what the other has not launched may both write to a pipe.
static void sleeping_ranks_with_posted_operations_are_no_deadlock(void **state) {
	struct hand hand;

	(void)state;
	hand_init(&hand);
	cross(&hand);
	for (uint32_t n = 0; n < 4; n++) {
		struct ras_comm_rank *rank = &hand.ranks[n / 2][n % 2].rank;

		rank->process_state = JOBS_PROCESS_SLEEPING;
		rank->worked_ms = 0;
		rank->doing.activity = JOBS_DOES_NOTHING;
	}
	// Their devices wait: operations of devices need one order, so this is a deadlock.
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_ORDERING);
	for (uint32_t n = 0; n < 4; n++)
		hand.ranks[n / 2][n % 2].rank.doing.activity = JOBS_DOES_DISK;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_MISSING_ENTER);
	assert_int_equal(hand.findings[0].grade, JOBS_WAITING);
	// Ranks without a device: another thread of each waits in the operation.
	for (uint32_t n = 0; n < 4; n++) {
		struct ras_comm_rank *rank = &hand.ranks[n / 2][n % 2].rank;

		rank->doing.activity = JOBS_DOES_NOTHING;
		rank->cuda_device = rank->nvml_device = -1;
	}
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_MISSING_ENTER);
	assert_int_equal(hand.findings[0].grade, JOBS_WAITING);
	for (uint32_t n = 0; n < 4; n++)
		hand.ranks[n / 2][n % 2].rank.cuda_device = 0;
	for (uint32_t n = 0; n < 4; n++) {
		hand.ranks[n / 2][n % 2].rank.doing.activity = JOBS_DOES_NOTHING;
		hand.ranks[n / 2][n % 2].rank.knows &= (uint8_t)~JOBS_KNOWS_STARTED;
	}
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_MISSING_ENTER);
	assert_int_equal(hand.findings[0].grade, JOBS_WAITING);
}

static void only_a_path_that_carries_too_little_makes_a_wait_stuck(void **state) {
	static const struct {
		struct jobs_pair pair;
		enum jobs_grade grade;
	} rows[] = {
		{{.silent = true}, JOBS_STUCK},
		{{.lost_permille = 500}, JOBS_STUCK},
		{{.lost_permille = 499}, JOBS_WAITING},
		{{.median_ns = 90000, .baseline_ns = 10000}, JOBS_WAITING},
	};
	struct hand hand;

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct jobs_pair pair = rows[n].pair;

		pair.node = VIEW_FIRST_NODE;
		pair.peer = VIEW_FIRST_NODE + 1;
		hand_init(&hand);
		hand.look.pairs = &pair;
		hand.look.pair_count = 1;
		for (uint32_t rank = 0; rank < 2; rank++)
			hand.ranks[0][rank].rank.launched = hand.ranks[0][rank].rank.started = 6;
		assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
		assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_TRANSPORT);
		assert_int_equal(hand.findings[0].grade, rows[n].grade);
	}
}

static void what_no_device_has_started_is_no_fault_of_the_network(void **state) {
	const struct jobs_pair pair = {
		.node = VIEW_FIRST_NODE, .peer = VIEW_FIRST_NODE + 1, .silent = true, .words = "-"};
	char text[JOBS_SENTENCE_BYTES];
	struct jobs_view view;
	struct hand hand;

	(void)state;
	hand_init(&hand);
	view.look = hand.look;
	view.findings = hand.findings;
	hand.look.pairs = &pair;
	hand.look.pair_count = 1;
	hand.ranks[0][0].rank.launched = hand.ranks[0][1].rank.launched = 6;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_DEVICE_BEHIND);
	assert_int_equal(hand.findings[0].grade, JOBS_WAITING);
	assert_int_equal(hand.findings[0].late_count, 0);
	jobs_view_say(&view, 0, text);
	assert_string_equal(
		text, "all ranks have launched operation 6, and no device has started it for 20 s; "
		      "no rank has finished fewer earlier operations than others"
	);
	// One rank has two receives open, and its device waits in another communicator.
	hand.ranks[0][1].rank.pair_launched = 9;
	hand.ranks[0][1].rank.pair_completed = 7;
	hand.ranks[1][1].rank.launched = hand.ranks[1][1].rank.started = 6;
	hand.ranks[1][0].rank.launched = 6;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_DEVICE_BEHIND);
	assert_int_equal(hand.findings[0].late_count, 1);
	assert_int_equal(hand.findings[0].open_count, 3);
	jobs_view_say(&view, 0, text);
	assert_non_null(strstr(text, "no device has started it for 20 s; rank 1 (pid 11"));
	assert_non_null(
		strstr(text, "has finished the fewest earlier operations: 3 are unfinished, "
			     "and its device waits in "
			     "communicator 0000000000000002")
	);
	// Once one device has started it, the others are behind.
	hand.ranks[1][0].rank.launched = hand.ranks[1][1].rank.launched = 5;
	hand.ranks[1][1].rank.started = 5;
	hand.ranks[0][0].rank.started = 6;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_DEVICE_BEHIND);
	assert_false(hand.findings[0].none_started);
	// A rank that does not report starts leaves the cause unknown.
	hand.ranks[0][0].rank.started = 5;
	hand.ranks[0][1].rank.knows &= (uint8_t)~JOBS_KNOWS_STARTED;
	hand.ranks[0][1].rank.started = 6;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_UNKNOWN);
}

static void who_waits_elsewhere_is_not_blamed(void **state) {
	char text[JOBS_SENTENCE_BYTES];
	struct jobs_view view;
	struct hand hand;

	(void)state;
	hand_init(&hand);
	// Rank 0 waits for rank 1 in the second communicator; rank 1 computes. In the first one,
	// rank 1 waits for rank 0.
	hand.ranks[1][0].rank.launched = hand.ranks[1][0].rank.started = 6;
	hand.ranks[1][0].rank.flags |= RAS_RANK_BLOCKS;
	hand.ranks[0][1].rank.launched = 6;
	hand.ranks[0][1].rank.started = 6;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].via, 1);
	assert_int_equal(hand.findings[1].via, JOBS_NOBODY);
	view.look = hand.look;
	view.findings = hand.findings;
	jobs_view_say(&view, 0, text);
	assert_non_null(strstr(text, "a late rank itself waits in communicator 0000000000000002"));
}

static void nothing_launched_or_all_completed_is_quiet(void **state) {
	struct hand hand;

	(void)state;
	hand_init(&hand);
	memset(&hand.ranks[1][0].rank.launched, 0, 3 * sizeof(uint64_t));
	memset(&hand.ranks[1][1].rank.launched, 0, 3 * sizeof(uint64_t));
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].grade, JOBS_QUIET);
	assert_int_equal(hand.findings[1].grade, JOBS_QUIET);
}

static void ranks_that_exit_well_one_after_another_are_an_end(void **state) {
	struct hand hand;

	(void)state;
	hand_init(&hand);
	hand.ranks[0][0].rank.flags |= RAS_RANK_EXITED;
	hand.ranks[0][0].rank.exit_cause = JOBS_EXIT_STATUS;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_NONE);
	// It is late as soon as the other one waits.
	hand.ranks[0][1].rank.launched = hand.ranks[0][1].rank.started = 6;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_DEAD_MEMBER);
	assert_int_equal(hand.findings[0].grade, JOBS_STUCK);
}

static void who_finalized_before_what_others_wait_in_is_waited_for_in_vain(void **state) {
	static const uint8_t flags[] = {
		RAS_RANK_FINALIZE, RAS_RANK_DESTROY, RAS_RANK_FINALIZE | RAS_RANK_EXITED};
	char text[JOBS_SENTENCE_BYTES];
	struct jobs_view view;
	struct hand hand;

	(void)state;
	for (size_t n = 0; n < sizeof(flags); n++) {
		hand_init(&hand);
		hand.ranks[0][1].rank.flags |= flags[n];
		assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
		assert_int_equal(hand.findings[0].grade, JOBS_QUIET);
		hand.ranks[0][0].rank.launched = hand.ranks[0][0].rank.started = 6;
		assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
		assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_MISSING_ENTER);
		// The process of the straggler runs, and the straggler is stuck nevertheless.
		assert_int_equal(hand.findings[0].grade, JOBS_STUCK);
		view.look = hand.look;
		view.findings = hand.findings;
		jobs_view_say(&view, 0, text);
		assert_non_null(strstr(text, "rank 1 (pid 11"));
		assert_non_null(strstr(text, "has finalized, and has not launched operation 6"));
		// A rank that has come as far and leaves is not missed.
		hand.ranks[0][1].rank.launched = hand.ranks[0][1].rank.started = 6;
		assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
		assert_int_not_equal(hand.findings[0].cause, JOBS_CAUSE_MISSING_ENTER);
	}
}

static void who_left_in_order_is_named_with_how(void **state) {
	static const struct {
		uint8_t left, flags;
		const char *text;
	} rows[] = {
		{JOBS_LEFT_UNREGISTERED, 0, "has unregistered, and has not launched operation 6"},
		{JOBS_LEFT_CLOSED, 0,
		 "has called tocsin_job_close, and has not launched operation 6"},
		{JOBS_LEFT_UNREGISTERED, RAS_RANK_FINALIZE, "has finalized, and has not launched"},
		{JOBS_LEFT_NOT, RAS_RANK_FINALIZE | RAS_RANK_EXITED, "has finalized, and has not"},
	};
	char text[JOBS_SENTENCE_BYTES];
	struct jobs_view view;
	struct hand hand;

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		hand_init(&hand);
		hand.ranks[0][0].rank.launched = hand.ranks[0][0].rank.started = 6;
		hand.ranks[0][1].rank.flags = rows[n].flags;
		hand.ranks[0][1].rank.left = rows[n].left;
		assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
		assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_MISSING_ENTER);
		assert_int_equal(hand.findings[0].grade, JOBS_STUCK);
		assert_int_equal(hand.findings[0].absent, 0);
		view.look = hand.look;
		view.findings = hand.findings;
		jobs_view_say(&view, 0, text);
		assert_non_null(strstr(text, "rank 1 (pid 11"));
		assert_non_null(strstr(text, rows[n].text));
	}
	assert_string_equal(
		jobs_rank_end(&(struct ras_comm_rank){.flags = RAS_RANK_ABORT}), "aborted"
	);
	assert_string_equal(
		jobs_rank_end(&(struct ras_comm_rank){.flags = RAS_RANK_EXITED}), "exited"
	);
	assert_null(jobs_rank_end(&(struct ras_comm_rank){0}));
}

// An end speaks for the ranks that registered before it, and for no others.
static void an_end_of_an_earlier_attempt_is_no_cause(void **state) {
	struct hand hand;

	(void)state;
	for (uint32_t left = 0; left < 2; left++) {
		struct ras_comm_rank *ended = &hand.ranks[0][1].rank;

		hand_init(&hand);
		hand.ranks[0][0].rank.launched = hand.ranks[0][0].rank.started = 6;
		hand.ranks[0][0].rank.since_ms = 30000;
		ended->flags = left != 0 ? 0 : RAS_RANK_EXITED;
		ended->left = left != 0 ? JOBS_LEFT_CLOSED : JOBS_LEFT_NOT;
		ended->exit_cause = JOBS_EXIT_SIGNAL;
		ended->exited_ms = 29999;
		assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
		assert_int_equal(
			hand.findings[0].cause,
			left != 0 ? JOBS_CAUSE_MISSING_ENTER : JOBS_CAUSE_DEAD_MEMBER
		);
		ended->exited_ms = 30000;
		assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
		assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_UNKNOWN);
		assert_int_equal(hand.findings[0].absent, 1);
		assert_int_equal(hand.findings[0].late_count, 0);
	}
}

// A rank of the first attempt lingers elsewhere, and a rank of the second waits.
static void an_end_counts_only_after_the_newest_registration(void **state) {
	char text[JOBS_SENTENCE_BYTES];
	struct ras_merged_rank ranks[3];
	struct jobs_view view;
	struct hand hand;

	(void)state;
	hand_init(&hand);
	for (uint32_t n = 0; n < 3; n++) {
		ranks[n] = hand.ranks[0][0];
		ranks[n].rank.rank = n;
		ranks[n].rank.since_ms = n == 2 ? 90000 : 30000;
	}
	hand.comms[0].ranks = ranks;
	hand.comms[0].size = hand.comms[0].rank_count = 3;
	ranks[0].rank.launched = ranks[0].rank.started = 6;
	ranks[2].rank.launched = ranks[2].rank.started = 6;
	ranks[1].rank.left = JOBS_LEFT_CLOSED;
	ranks[1].rank.exited_ms = 40000;
	view.look = hand.look;
	view.findings = hand.findings;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	jobs_view_say(&view, 0, text);
	assert_null(strstr(text, "tocsin_job_close"));
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_UNKNOWN);
	assert_int_equal(hand.findings[0].absent, 1);
	// A rank whose registration has no known time decides nothing.
	ranks[2].rank.since_ms = 0;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_UNKNOWN);
	ranks[1].rank.exited_ms = 20000;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	jobs_view_say(&view, 0, text);
	assert_non_null(strstr(text, "has called tocsin_job_close, and has not launched"));
}

static void ranks_that_nobody_holds_are_said_to_be(void **state) {
	struct hand hand;

	(void)state;
	hand_init(&hand);
	hand.comms[0].rank_count = 1;
	hand.ranks[0][0].rank.launched = hand.ranks[0][0].rank.started = 6;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_UNKNOWN);
	assert_int_equal(hand.findings[0].absent, 1);
}

// Fail the n-th allocation.
static uint32_t allocations_left;

static void *allocate_some(void *ctx, size_t size) {
	(void)ctx;
	return allocations_left-- > 0 ? calloc(1, size) : NULL;
}

static void release_some(void *ctx, void *memory, size_t size) {
	(void)ctx;
	(void)size;
	free(memory);
}

// An agent may report any number of communicators of one process. If each were compared with all
// others, thousands would cost the control thread seconds.
static void of_a_process_in_many_communicators_some_are_looked_at(void **state) {
	enum { MANY = 600 };
	static struct ras_merged_rank ranks[MANY][2];
	static struct ras_merged_comm comms[MANY];
	static struct jobs_finding findings[MANY];
	struct jobs_snapshot look = {
		.comms = comms, .comm_count = MANY, .memory = &jobs_view_memory};
	struct hand hand;

	(void)state;
	hand_init(&hand);
	for (uint32_t n = 0; n < MANY; n++) {
		memcpy(ranks[n], hand.ranks[0], sizeof(ranks[n]));
		comms[n] = hand.comms[0];
		comms[n].id.hash = n + 1;
		comms[n].ranks = ranks[n];
		ranks[n][0].rank.worked_ms = ranks[n][1].rank.worked_ms = 0;
	}
	ranks[1][1].rank.launched = ranks[1][1].rank.started = 6;
	for (uint32_t moves = 100; moves < MANY; moves += 400) {
		ranks[moves][0].rank.idle_ms = 0;
		assert_int_equal(jobs_judge(&look, findings), 0);
		assert_int_equal(findings[1].cause, JOBS_CAUSE_MISSING_ENTER);
		assert_int_equal(findings[1].busy, moves == 100);
		ranks[moves][0].rank.idle_ms = 20000;
	}
}

static void of_many_dead_the_first_is_told_how_it_ended(void **state) {
	char text[JOBS_SENTENCE_BYTES];
	struct jobs_view view;
	struct hand hand;

	(void)state;
	hand_init(&hand);
	for (uint32_t rank = 0; rank < 2; rank++) {
		struct ras_comm_rank *at = &hand.ranks[0][rank].rank;

		at->flags |= RAS_RANK_EXITED;
		at->exit_cause = rank == 0 ? JOBS_EXIT_STATUS : JOBS_EXIT_SIGNAL;
		at->exit_value = rank == 0 ? 1 : 9;
		at->exited_ms = rank == 0 ? 70000 : 70230;
	}
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_DEAD_MEMBER);
	view.look = hand.look;
	view.findings = hand.findings;
	jobs_view_say(&view, 0, text);
	assert_string_equal(
		text,
		"rank 1 (pid 11 on n1, GPU 0) is gone, killed by signal 9 1 min 10 s ago, the "
		"first of them; rank 0 (pid 10 on n0, GPU 0) is gone, exited with status 1"
	);
}

static bool is_dead_node(void *ctx, uint64_t node) {
	(void)ctx;
	return node == 7;
}

static void a_rank_that_lives_is_not_named_with_those_of_dead_nodes(void **state) {
	const struct ras_merged_missing missing[2] = {
		{.comm_size = 4, .missing = {.rank = 2, .node = 7}},
		{.comm_size = 4, .missing = {.rank = 3, .node = 7}},
	};
	char text[JOBS_SENTENCE_BYTES];
	struct jobs_view view;
	struct hand hand;

	(void)state;
	hand_init(&hand);
	hand.comms[0].size = 4;
	hand.comms[0].missing = missing;
	hand.comms[0].missing_count = 2;
	hand.look.is_dead = is_dead_node;
	hand.ranks[0][1].rank.flags |= RAS_RANK_EXITED;
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].cause, JOBS_CAUSE_DEAD_MEMBER);
	assert_int_equal(hand.findings[0].late_count, 3);
	view.look = hand.look;
	view.findings = hand.findings;
	jobs_view_say(&view, 0, text);
	// The time of the node's death is unknown, and its ranks may have ended before.
	assert_non_null(strstr(text, "; 2 more are gone"));
	assert_null(strstr(text, "the first of them"));
}

// Regression: the text was cut in the middle of a communicator.
static void the_longest_cycle_is_told_to_its_end(void **state) {
	char text[JOBS_SENTENCE_BYTES];
	struct jobs_view view;
	struct hand hand;

	(void)state;
	hand_init(&hand);
	hand.findings[0] =
		(struct jobs_finding){.cause = JOBS_CAUSE_ORDERING, .chain_count = JOBS_CHAIN_MAX};
	for (uint32_t n = 0; n < JOBS_CHAIN_MAX; n++)
		hand.findings[0].chain[n] = (struct jobs_wait_for){.seq = UINT64_MAX};
	hand.ranks[0][0].rank.rank = UINT32_MAX;
	view.look = hand.look;
	view.findings = hand.findings;
	jobs_view_say(&view, 0, text);
	assert_string_equal(text + strlen(text) - strlen("4294967295, ..."), "4294967295, ...");
}

static void counts_at_the_end_of_numbers_are_looked_at_once(void **state) {
	struct jobs_straggler unnamed = {0};
	struct jobs_wait_history *book;
	struct hand hand;

	(void)state;
	hand_init(&hand);
	for (uint32_t n = 0; n < 4; n++) {
		struct ras_comm_rank *rank = &hand.ranks[n / 2][n % 2].rank;

		rank->launched = rank->started = rank->completed = UINT64_MAX;
		rank->wait_count = RAS_COMM_WAITS;
		rank->waits[0] = (uint8_t)n;
	}
	assert_int_equal(jobs_wait_history_create(&jobs_view_memory, &book), 0);
	hand.look.book = book;
	for (uint32_t look = 0; look < 2; look++) {
		jobs_wait_history_add(book, &hand.comms[0]);
		assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
		assert_int_equal(hand.findings[0].grade, JOBS_QUIET);
		assert_int_equal(hand.findings[0].mismatch.seq, 0);
	}
	// The next operation's number must not wrap to 0 at the end of the range.
	hand.ranks[0][0].rank.completed = hand.ranks[0][1].rank.completed = UINT64_MAX - 1;
	jobs_wait_history_add(book, &hand.comms[0]);
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(hand.findings[0].seq, UINT64_MAX);
	assert_memory_equal(&hand.findings[0].straggler, &unnamed, sizeof(unnamed));
	jobs_wait_history_destroy(book);
}

static void without_memory_nothing_is_judged(void **state) {
	const struct ras_memory memory = {.allocate = allocate_some, .release = release_some};
	struct hand hand;
	uint32_t failures = 0;
	int err;

	(void)state;
	hand_init(&hand);
	cross(&hand);
	hand.look.memory = &memory;
	do {
		allocations_left = failures;
		err = jobs_judge(&hand.look, hand.findings);
		failures += err != 0;
		assert_true(err == 0 || err == -ENOMEM);
	} while (err != 0);
	assert_int_equal(failures, 8);
}

static void what_is_judged_in_the_smallest_steps_is_judged_the_same(void **state) {
	static struct jobs_finding by_steps[2];
	struct jobs_judging *judging;
	uint32_t steps = 1;
	struct hand hand;

	(void)state;
	hand_init(&hand);
	cross(&hand);
	assert_int_equal(jobs_judge(&hand.look, hand.findings), 0);
	assert_int_equal(jobs_judging_create(&hand.look, by_steps, &judging), 0);
	for (; !jobs_judging_step(judging, 1); steps++) {
	}
	assert_true(jobs_judging_step(judging, 1));
	jobs_judging_destroy(judging);
	assert_true(steps > 4 * hand.look.comm_count);
	for (uint32_t n = 0; n < hand.look.comm_count; n++) {
		assert_int_equal(by_steps[n].cause, hand.findings[n].cause);
		assert_int_equal(by_steps[n].cause, JOBS_CAUSE_MISSING_ENTER);
		assert_int_equal(by_steps[n].grade, hand.findings[n].grade);
		assert_int_equal(by_steps[n].via, hand.findings[n].via);
		assert_int_equal(by_steps[n].late[0], hand.findings[n].late[0]);
	}
}

static void a_judgement_that_is_given_up_leaves_nothing_behind(void **state) {
	struct jobs_judging *judging;
	struct hand hand;

	(void)state;
	hand_init(&hand);
	cross(&hand);
	for (uint32_t steps = 0; steps < 12; steps++) {
		assert_int_equal(jobs_judging_create(&hand.look, hand.findings, &judging), 0);
		for (uint32_t n = 0; n < steps; n++)
			(void)jobs_judging_step(judging, 1);
		assert_null(jobs_judging_destroy(judging));
	}
	assert_null(jobs_judging_destroy(NULL));
}

static void waits_are_kept_to_an_eighth(void **state) {
	uint8_t before = 0;

	(void)state;
	for (uint64_t us = 0; us < UINT64_C(1) << 34; us += us / 50 + 1) {
		uint8_t code = jobs_wait_code(us * 1000);

		assert_true(code >= before && code != JOBS_WAIT_UNKNOWN);
		before = code;
		if (code == JOBS_WAIT_UNKNOWN - 1)
			break;
		assert_true(jobs_wait_us(code) <= us);
		assert_true(us - jobs_wait_us(code) <= us / 8);
	}
	assert_int_equal(before, JOBS_WAIT_UNKNOWN - 1);
	assert_int_equal(jobs_wait_code(JOBS_TIME_UNKNOWN), JOBS_WAIT_UNKNOWN);
}

UNIT_GROUP(jobs_judge) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_pause_of_a_day_is_a_hang),
		cmocka_unit_test(patience_is_as_long_as_what_is_known_asks_for),
		cmocka_unit_test(a_pause_of_half_a_minute_is_waiting_and_then_moves),
		cmocka_unit_test(two_that_compute_with_an_operation_open_are_no_deadlock),
		cmocka_unit_test(two_whose_calls_block_are_a_deadlock),
		cmocka_unit_test(a_rank_that_sleeps_waits_whatever_it_does),
		cmocka_unit_test(a_late_rank_that_is_stopped_or_frozen_is_a_proof),
		cmocka_unit_test(a_rank_that_no_agent_shows_may_be_healthy),
		cmocka_unit_test(sleeping_ranks_with_posted_operations_are_no_deadlock),
		cmocka_unit_test(only_a_path_that_carries_too_little_makes_a_wait_stuck),
		cmocka_unit_test(what_no_device_has_started_is_no_fault_of_the_network),
		cmocka_unit_test(who_waits_elsewhere_is_not_blamed),
		cmocka_unit_test(nothing_launched_or_all_completed_is_quiet),
		cmocka_unit_test(ranks_that_exit_well_one_after_another_are_an_end),
		cmocka_unit_test(who_finalized_before_what_others_wait_in_is_waited_for_in_vain),
		cmocka_unit_test(who_left_in_order_is_named_with_how),
		cmocka_unit_test(an_end_of_an_earlier_attempt_is_no_cause),
		cmocka_unit_test(an_end_counts_only_after_the_newest_registration),
		cmocka_unit_test(ranks_that_nobody_holds_are_said_to_be),
		cmocka_unit_test(of_a_process_in_many_communicators_some_are_looked_at),
		cmocka_unit_test(of_many_dead_the_first_is_told_how_it_ended),
		cmocka_unit_test(a_rank_that_lives_is_not_named_with_those_of_dead_nodes),
		cmocka_unit_test(the_longest_cycle_is_told_to_its_end),
		cmocka_unit_test(counts_at_the_end_of_numbers_are_looked_at_once),
		cmocka_unit_test(without_memory_nothing_is_judged),
		cmocka_unit_test(what_is_judged_in_the_smallest_steps_is_judged_the_same),
		cmocka_unit_test(a_judgement_that_is_given_up_leaves_nothing_behind),
		cmocka_unit_test(waits_are_kept_to_an_eighth),
	};

	return cmocka_run_group_tests_name("jobs_judge", tests, NULL, NULL);
}
