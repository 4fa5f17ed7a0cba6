// SPDX-License-Identifier: BSD-3-Clause
// Tests of a prober with a stub lane and a stub worker. The test checks the submitted operations
// and ends them.
#include <dataplane/lane.h>
#include <dataplane/path_table.h>
#include <dataplane/peer_table.h>
#include <dataplane/prober.h>
#include <lib/histogram.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>
#include <support/rcu_group.h>

#include <errno.h>
#include <string.h>

#define PEER 77
#define MICROSECOND UINT64_C(1000)

static struct op *submitted;
static struct probe_run *told;
static bool control_is_full;
static int held;

void lane_submit(struct lane *lane, struct op **ops, uint32_t count) {
	(void)lane;
	assert_int_equal(count, 1);
	assert_null(submitted);
	submitted = ops[0];
}

int worker_event(struct worker *worker, const struct worker_record *record) {
	(void)worker;
	assert_int_equal(record->kind, PROBER_EVENT_ENDED);
	if (control_is_full)
		return -ENOBUFS;
	told = (struct probe_run *)(uintptr_t)record->words[1]; // NOLINT
	return 0;
}

void memory_view_ref(const struct memory_view *view) {
	(void)view;
	held++;
}

void memory_view_put(const struct memory_view *view) {
	(void)view;
	held--;
}

struct bed {
	struct path_table *paths;
	struct peer_table *peers;
	struct clock clock;
	struct prober *prober;
	struct worker_poll poll;
	struct probe_run run;
	struct idle_step_findings found;
};

static struct bed bed;

static int bed_make(void **state) {
	struct path_row row = {
		.peer = PEER,
		.incarnation = 9,
		.remote_address = 0x1000,
		.remote_key = 5,
		.remote_length = 64,
		.pair = 3,
		.generation = 8,
		.peer_slot = 5,
	};
	uint64_t version;

	(void)state;
	memset(&bed, 0, sizeof(bed));
	submitted = NULL;
	told = NULL;
	control_is_full = false;
	held = 0;
	clock_init_fake(&bed.clock, 1000000);
	assert_int_equal(path_table_create(&bed.paths), 0);
	assert_int_equal(peer_table_create(&bed.peers), 0);
	rcu_thread_online(0);
	assert_int_equal(path_table_set(bed.paths, 2, &row), 0);
	assert_int_equal(path_table_publish(bed.paths, &version), 0);
	assert_int_equal(
		prober_create(bed.paths, bed.peers, &bed.clock, (struct near){0}, &bed.prober), 0
	);
	bed.poll = prober_poll(bed.prober);
	bed.run = (struct probe_run){
		.path = 2,
		.peer = PEER,
		.generation = 8,
		.kind = OP_READ,
		.bytes = 8,
		.count = 2,
		.timeout_ns = 1000000,
		.first = deadline_never(),
	};
	assert_int_equal(histogram_create(&histogram_shape_latency, &bed.run.latency), 0);
	return 0;
}

static int bed_drop(void **state) {
	(void)state;
	histogram_destroy(bed.run.latency);
	prober_destroy(bed.prober);
	rcu_thread_offline();
	path_table_destroy(bed.paths);
	peer_table_destroy(bed.peers);
	return 0;
}

static void request(enum prober_request kind) {
	struct worker_record record = {
		.kind = kind,
		.words = {(uintptr_t)bed.prober, (uintptr_t)&bed.run},
	};

	prober_request(bed.prober, NULL, &record);
}

static bool step(void) {
	bed.found = (struct idle_step_findings){
		.now_ns = clock_now_ns(&bed.clock),
		.due_ns = IDLE_NEVER,
	};
	return bed.poll.poll(bed.poll.ctx, &bed.found);
}

static void answer(enum op_outcome outcome, uint64_t after_ns) {
	struct op *op = submitted;

	assert_non_null(op);
	submitted = NULL;
	clock_advance(&bed.clock, after_ns);
	op->outcome = outcome;
	op->done_ns = clock_now_ns(&bed.clock);
	op->done(op);
}

static void run_reads_what_the_path_table_says_and_is_told_when_it_is_complete(void **state) {
	struct histogram_summary summary;

	(void)state;
	request(PROBER_REQUEST_RUN);
	assert_int_equal(held, 1);
	assert_true(step());
	assert_int_equal(submitted->pair, 3);
	assert_int_equal(submitted->generation, 8);
	assert_int_equal(submitted->remote_address, 0x1000);
	assert_int_equal(submitted->remote_key, 5);
	assert_int_equal(submitted->view.length, 8);
	answer(OP_OK, 5 * MICROSECOND);
	assert_true(step());
	assert_null(told);
	answer(OP_OK, 7 * MICROSECOND);
	assert_true(step());
	assert_ptr_equal(told, &bed.run);
	assert_int_equal(bed.run.end, PROBE_COMPLETE);
	assert_int_equal(bed.run.answered, 2);
	assert_int_equal(bed.run.incarnation, 9);
	assert_int_equal(held, 0);
	histogram_summarize(bed.run.latency, &summary);
	assert_int_equal(summary.min, 5 * MICROSECOND);
	assert_int_equal(summary.max, 7 * MICROSECOND);
}

static void first_operation_has_what_is_left_of_the_time_and_the_others_their_own(void **state) {
	(void)state;
	bed.run.first.at_ns = 1000000 + 3 * MICROSECOND;
	request(PROBER_REQUEST_RUN);
	clock_advance(&bed.clock, 2 * MICROSECOND); // the request waits for the worker
	step();
	assert_int_equal(submitted->deadline_ns, bed.run.first.at_ns);
	answer(OP_OK, 0);
	step();
	assert_int_equal(submitted->deadline_ns, clock_now_ns(&bed.clock) + bed.run.timeout_ns);
	answer(OP_OK, 0);
	step();
	bed.run.first.at_ns = 1000000000; // later than the run's own timeout
	request(PROBER_REQUEST_RUN);
	step();
	assert_int_equal(submitted->deadline_ns, clock_now_ns(&bed.clock) + bed.run.timeout_ns);
	answer(OP_OK, 0);
}

static void next_operation_waits_for_its_time_and_says_when_that_is(void **state) {
	(void)state;
	bed.run.interval_ns = 100 * MICROSECOND;
	request(PROBER_REQUEST_RUN);
	step();
	answer(OP_OK, 10 * MICROSECOND);
	assert_false(step());
	assert_null(submitted);
	assert_int_equal(bed.found.due_ns, 1000000 + 100 * MICROSECOND);
	clock_advance(&bed.clock, 90 * MICROSECOND);
	assert_true(step());
	assert_non_null(submitted);
	answer(OP_OK, 1);
}

static void path_that_was_taken_away_ends_the_run_and_nothing_is_submitted(void **state) {
	uint64_t version;

	(void)state;
	request(PROBER_REQUEST_RUN);
	step();
	answer(OP_OK, 1);
	assert_int_equal(path_table_clear(bed.paths, 2), 0);
	assert_int_equal(path_table_publish(bed.paths, &version), 0);
	assert_true(step());
	assert_null(submitted);
	assert_ptr_equal(told, &bed.run);
	assert_int_equal(bed.run.end, PROBE_NO_PATH);
	assert_int_equal(bed.run.answered, 1);
}

// The new pair may be in the lane of another worker.
static void pair_that_took_the_place_of_another_ends_the_run(void **state) {
	struct path_row row = *path_table_next_row(bed.paths, 2);
	uint64_t version;

	(void)state;
	bed.run.interval_ns = 100 * MICROSECOND;
	request(PROBER_REQUEST_RUN);
	step();
	answer(OP_OK, 1);
	row.generation++;
	assert_int_equal(path_table_set(bed.paths, 2, &row), 0);
	assert_int_equal(path_table_publish(bed.paths, &version), 0);
	clock_advance(&bed.clock, 100 * MICROSECOND);
	assert_true(step());
	assert_null(submitted);
	assert_ptr_equal(told, &bed.run);
	assert_int_equal(bed.run.end, PROBE_NO_PATH);
	assert_int_equal(bed.run.answered, 1);
}

static void path_that_leads_to_somebody_else_or_shows_too_little_is_no_path(void **state) {
	(void)state;
	bed.run.peer = PEER + 1;
	request(PROBER_REQUEST_RUN);
	step();
	assert_int_equal(bed.run.end, PROBE_NO_PATH);
	bed.run.peer = PEER;
	bed.run.bytes = 65;
	request(PROBER_REQUEST_RUN);
	step();
	assert_int_equal(bed.run.end, PROBE_NO_PATH);
	assert_null(submitted);
	assert_int_equal(held, 0);
}

// Publish a peer as the overlay does. The other fields are as in the path's row.
static void
tell_peer(uint32_t slot, uint64_t id, uint64_t first_incarnation, uint8_t state, bool ended) {
	const struct peer_row row = {
		.id = id,
		.incarnation = first_incarnation,
		.first_incarnation = first_incarnation,
		.slot = slot,
		.state = state,
		.ended = ended,
		.name_length = 1,
		.name = "n",
	};
	const struct peer_view view = {.number = 1};

	assert_int_equal(peer_table_set(bed.peers, &row), 0);
	assert_int_equal(peer_table_publish(bed.peers, &view), 0);
}

static void what_the_overlay_learnt_of_a_peer_decides_whether_it_is_read(void **state) {
	static const struct {
		uint32_t slot;
		uint64_t peer;
		uint64_t first_incarnation;
		uint8_t state;
		bool ended, read;
	} cases[] = {
		{5, PEER, 9, PEER_ALIVE, false, true},
		{5, PEER, 9, PEER_SUSPECT, false, true},
		{5, PEER, 9, PEER_UNREACHABLE, false, true},
		// Silence may be a failure of the overlay alone.
		{5, PEER, 9, PEER_DEAD, false, true},
		{5, PEER, 9, PEER_DEAD, true, false},
		{5, PEER, 9, PEER_LEFT, true, false},
		{5, PEER, 10, PEER_ALIVE, false, false}, // the agent restarted
		{5, PEER, 8, PEER_LEFT, true, false},
		// Pairing learnt of the peer before the table.
		{5, PEER, 8, PEER_ALIVE, false, true},
		{5, PEER + 1, 10, PEER_LEFT, true, true}, // the slot now belongs to another peer
		{6, PEER, 10, PEER_LEFT, true, true},	  // the slot has no peer
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		bed_drop(NULL);
		bed_make(NULL);
		bed.run.count = 1;
		tell_peer(
			cases[n].slot, cases[n].peer, cases[n].first_incarnation, cases[n].state,
			cases[n].ended
		);
		request(PROBER_REQUEST_RUN);
		step();
		assert_int_equal(submitted != NULL, cases[n].read);
		if (cases[n].read)
			answer(OP_OK, 1);
		step();
		assert_ptr_equal(told, &bed.run);
		assert_int_equal(bed.run.end, cases[n].read ? PROBE_COMPLETE : PROBE_NO_PATH);
	}
}

static void peer_that_ends_in_the_middle_of_a_run_ends_it(void **state) {
	(void)state;
	tell_peer(5, PEER, 9, PEER_ALIVE, false);
	request(PROBER_REQUEST_RUN);
	step();
	answer(OP_OK, 1);
	tell_peer(5, PEER, 9, PEER_LEFT, true);
	assert_true(step());
	assert_null(submitted);
	assert_ptr_equal(told, &bed.run);
	assert_int_equal(bed.run.end, PROBE_NO_PATH);
	assert_int_equal(bed.run.answered, 1);
}

static void failed_operation_ends_the_run_with_its_cause(void **state) {
	(void)state;
	request(PROBER_REQUEST_RUN);
	step();
	submitted->cause.status = IBV_WC_RETRY_EXC_ERR;
	answer(OP_FAILED, 1);
	step();
	assert_ptr_equal(told, &bed.run);
	assert_int_equal(bed.run.end, PROBE_FAILED);
	assert_int_equal(bed.run.outcome, OP_FAILED);
	assert_int_equal(bed.run.cause.status, IBV_WC_RETRY_EXC_ERR);
}

static void stopped_run_ends_with_the_operation_that_is_under_way(void **state) {
	(void)state;
	bed.run.count = 0;
	request(PROBER_REQUEST_RUN);
	step();
	request(PROBER_REQUEST_STOP);
	assert_false(step());
	assert_null(told);
	answer(OP_OK, 1);
	step();
	assert_ptr_equal(told, &bed.run);
	assert_int_equal(bed.run.end, PROBE_COMPLETE);
	assert_int_equal(bed.run.sent, 1);
	request(PROBER_REQUEST_STOP); // too late
	assert_false(step());
}

static void end_that_control_has_no_room_for_is_told_later(void **state) {
	(void)state;
	bed.run.count = 1;
	request(PROBER_REQUEST_RUN);
	step();
	answer(OP_OK, 1);
	control_is_full = true;
	assert_false(step());
	assert_int_equal(held, 1);
	control_is_full = false;
	assert_true(step());
	assert_ptr_equal(told, &bed.run);
	assert_int_equal(held, 0);
}

#define BED_TEST(name) cmocka_unit_test_setup_teardown(name, bed_make, bed_drop)

UNIT_GROUP(prober) {
	const struct CMUnitTest tests[] = {
		BED_TEST(run_reads_what_the_path_table_says_and_is_told_when_it_is_complete),
		BED_TEST(first_operation_has_what_is_left_of_the_time_and_the_others_their_own),
		BED_TEST(next_operation_waits_for_its_time_and_says_when_that_is),
		BED_TEST(path_that_was_taken_away_ends_the_run_and_nothing_is_submitted),
		BED_TEST(pair_that_took_the_place_of_another_ends_the_run),
		BED_TEST(path_that_leads_to_somebody_else_or_shows_too_little_is_no_path),
		BED_TEST(what_the_overlay_learnt_of_a_peer_decides_whether_it_is_read),
		BED_TEST(peer_that_ends_in_the_middle_of_a_run_ends_it),
		BED_TEST(failed_operation_ends_the_run_with_its_cause),
		BED_TEST(stopped_run_ends_with_the_operation_that_is_under_way),
		BED_TEST(end_that_control_has_no_room_for_is_told_later),
	};

	return cmocka_run_group_tests(tests, rcu_group_begin, rcu_group_end);
}
