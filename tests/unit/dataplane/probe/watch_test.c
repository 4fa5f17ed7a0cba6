// SPDX-License-Identifier: BSD-3-Clause
// Tests of standing probes with a stub lane and a stub worker. The test checks the submitted
// operations and ends them.
#include <dataplane/lane.h>
#include <dataplane/path_table.h>
#include <dataplane/peer_table.h>
#include <dataplane/prober.h>
#include <dataplane/pulse.h>
#include <dataplane/watch.h>
#include <lib/rcu_thread.h>
#include <support/cmocka.h>
#include <support/rcu_group.h>

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#define PEER 77
#define PLACE 5
#define GENERATION 8
#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define INCARNATION (UINT64_C(4) << 16)

static struct op *submitted;
static struct watch *given_back;
static uint32_t outcomes_told;
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
	if (control_is_full)
		return -ENOBUFS;
	if (record->kind == PROBER_EVENT_UNWATCHED)
		given_back = worker_word_to_pointer(record->words[1]);
	else if (record->kind == PROBER_EVENT_OUTCOME)
		outcomes_told++;
	else
		fail_msg("event %u", record->kind);
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
	struct watch watch;
	struct idle_step_findings found;
	struct pulse *page;
	alignas(64) uint8_t own[WATCH_SHORT_READ_BYTES];
	alignas(64) uint8_t sink[PULSE_BYTES];
};

static struct bed bed;

static void publish(const struct path_row *row) {
	uint64_t version;

	if (row != NULL)
		assert_int_equal(path_table_set(bed.paths, 2, row), 0);
	else
		assert_int_equal(path_table_clear(bed.paths, 2), 0);
	assert_int_equal(path_table_publish(bed.paths, &version), 0);
}

static void request(enum prober_request kind) {
	const struct worker_record record = {
		.kind = kind,
		.words = {worker_pointer_to_word(bed.prober), worker_pointer_to_word(&bed.watch)},
	};

	prober_request(bed.prober, NULL, &record);
}

static int bed_make(void **state) {
	const struct path_row row = {
		.peer = PEER,
		.incarnation = INCARNATION,
		.remote_address = 0x1000,
		.remote_key = 5,
		.remote_length = PULSE_BYTES,
		.pair = 3,
		.generation = GENERATION,
		.peer_slot = 5,
	};

	(void)state;
	memset(&bed, 0, sizeof(bed));
	submitted = NULL;
	given_back = NULL;
	outcomes_told = 0;
	control_is_full = false;
	held = 0;
	clock_init_fake(&bed.clock, 1000 * MS);
	assert_int_equal(path_table_create(&bed.paths), 0);
	assert_int_equal(peer_table_create(&bed.peers), 0);
	rcu_thread_online(0);
	publish(&row);
	assert_int_equal(
		prober_create(bed.paths, bed.peers, &bed.clock, (struct near){0}, &bed.prober), 0
	);
	assert_int_equal(pulse_create(PEER, 1, &bed.page), 0);
	pulse_beat(bed.page, INCARNATION, 1);
	pulse_beat(bed.page, INCARNATION, 2);
	bed.poll = prober_poll(bed.prober);
	bed.watch = (struct watch){
		.place = PLACE,
		.path = 2,
		.peer = PEER,
		.generation = GENERATION,
		.timeout_ns = 500 * MS,
		.own = {.address = (uintptr_t)bed.own, .length = WATCH_SHORT_READ_BYTES},
		.sink = {.address = (uintptr_t)bed.sink, .length = PULSE_BYTES},
		.write_address = 0x9000,
		.write_key = 6,
		.writes = true,
		.gpu_address = 0xa000,
		.gpu_word = 0x1234567890abcdef,
		.gpu_key = 7,
		.gpu = true,
	};
	request(PROBER_REQUEST_WATCH);
	return 0;
}

static int bed_drop(void **state) {
	(void)state;
	pulse_destroy(bed.page);
	prober_destroy(bed.prober);
	rcu_thread_offline();
	path_table_destroy(bed.paths);
	peer_table_destroy(bed.peers);
	return 0;
}

static bool step(void) {
	bed.found = (struct idle_step_findings){
		.now_ns = clock_now_ns(&bed.clock),
		.due_ns = IDLE_NEVER,
	};
	return bed.poll.poll(bed.poll.ctx, &bed.found);
}

static struct watch_due due_at(uint64_t at_ns, uint32_t bytes) {
	return (struct watch_due){
		.at_ns = at_ns,
		.place = PLACE,
		.generation = GENERATION,
		.bytes = bytes,
		.tag = bytes + 1,
	};
}

static void plan(uint64_t at_ns, uint32_t bytes) {
	const struct watch_due due = due_at(at_ns, bytes);

	assert_int_equal(prober_plan_probes(bed.prober, &due, 1), 1);
}

static void plan_now(uint32_t bytes) {
	plan(clock_now_ns(&bed.clock), bytes);
}

static void end(enum op_outcome outcome, enum ibv_wc_status status, uint64_t after_ns) {
	struct op *op = submitted;

	assert_non_null(op);
	submitted = NULL;
	clock_advance(&bed.clock, after_ns);
	op->outcome = outcome;
	op->cause.status = status;
	op->done_ns = clock_now_ns(&bed.clock);
	op->done(op);
}

static struct watch_outcome only_outcome(void) {
	struct watch_outcome outcomes[2];

	assert_int_equal(prober_take_outcomes(bed.prober, outcomes, 2), 1);
	assert_int_equal(outcomes[0].place, PLACE);
	return outcomes[0];
}

static void probe_waits_for_its_time_and_says_when_that_is(void **state) {
	(void)state;
	plan(1005 * MS, 8);
	assert_false(step());
	assert_null(submitted);
	assert_int_equal(bed.found.due_ns, 1005 * MS);
	clock_advance(&bed.clock, 5 * MS);
	assert_true(step());
	assert_non_null(submitted);
	assert_int_equal(bed.found.due_ns, IDLE_NEVER);
	assert_int_equal(submitted->deadline_ns, 1505 * MS);
	end(OP_OK, 0, 7 * US);
	assert_int_equal(only_outcome().latency_ns, 7 * US);
}

static void eight_bytes_are_the_counter_alone(void **state) {
	struct watch_outcome outcome;

	(void)state;
	plan_now(8);
	step();
	assert_int_equal(submitted->remote_address, 0x1000 + PULSE_BEATS_AT);
	assert_int_equal(submitted->view.address, (uintptr_t)bed.own);
	assert_int_equal(submitted->view.length, 8);
	memcpy(bed.own, (const uint8_t *)pulse_memory(bed.page) + PULSE_BEATS_AT, 8);
	end(OP_OK, 0, 5 * US);
	outcome = only_outcome();
	assert_int_equal(outcome.result, WATCH_ANSWERED);
	assert_int_equal(outcome.at_ns, 1000 * MS);
	assert_int_equal(outcome.beats, 2);
	assert_int_equal(outcome.incarnation, 0);
	assert_int_equal(outcome.tag, 9);
}

static void longer_one_reads_the_head_and_knows_whose_it_is(void **state) {
	struct watch_outcome outcome;

	(void)state;
	plan_now(1024);
	step();
	assert_int_equal(submitted->remote_address, 0x1000);
	memcpy(bed.own, pulse_memory(bed.page), 1024);
	end(OP_OK, 0, 5 * US);
	outcome = only_outcome();
	assert_int_equal(outcome.beats, 2);
	assert_int_equal(outcome.incarnation, INCARNATION);
}

static void plan_write(uint32_t bytes) {
	struct watch_due due = due_at(clock_now_ns(&bed.clock), bytes);

	due.write = true;
	assert_int_equal(prober_plan_probes(bed.prober, &due, 1), 1);
}

static void a_late_turn_and_the_wait_of_the_responder_are_reported(void **state) {
	struct watch_outcome outcome;

	(void)state;
	plan(970 * MS, 1024);
	step();
	pulse_set_wait(bed.page, 3 * MS);
	memcpy(bed.own, pulse_memory(bed.page), 1024);
	end(OP_OK, 0, 5 * US);
	outcome = only_outcome();
	assert_int_equal(outcome.late_ns, 30 * MS);
	assert_true(outcome.has_wait);
	assert_int_equal(outcome.wait_ns, 3 * MS);
	plan_now(8);
	step();
	end(OP_OK, 0, 5 * US);
	outcome = only_outcome();
	assert_int_equal(outcome.late_ns, 0);
	assert_false(outcome.has_wait); // the counter alone does not show it
}

static void write_goes_to_what_the_peer_gives_up_and_tells_of_no_pulse(void **state) {
	static const uint32_t sizes[] = {8, 1024, 4096, WATCH_WRITE_SINK_BYTES};

	(void)state;
	memcpy(bed.own, pulse_memory(bed.page), 1024); // left over from an earlier read
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		struct watch_outcome outcome;

		plan_write(sizes[n]);
		step();
		assert_int_equal(submitted->kind, OP_WRITE);
		assert_int_equal(submitted->remote_address, 0x9000);
		assert_int_equal(submitted->remote_key, 6);
		assert_int_equal(submitted->remote_length, sizes[n]);
		assert_int_equal(submitted->view.length, sizes[n]);
		end(OP_OK, 0, 5 * US);
		outcome = only_outcome();
		assert_true(outcome.written && outcome.result == WATCH_ANSWERED);
		assert_int_equal(outcome.latency_ns, 5 * US);
		assert_int_equal(outcome.beats | outcome.incarnation, 0);
	}
	plan_now(8);
	step();
	assert_int_equal(submitted->kind, OP_READ);
	end(OP_OK, 0, 5 * US);
	assert_false(only_outcome().written);
}

static void write_that_the_peer_does_not_take_is_void_and_said_to_be_refused(void **state) {
	struct watch_outcome outcome;

	(void)state;
	plan_write(8);
	step();
	end(OP_FAILED, IBV_WC_REM_ACCESS_ERR, 5 * US);
	outcome = only_outcome();
	assert_true(outcome.result == WATCH_VOID && outcome.refused && outcome.written);
	plan_write(8);
	step();
	end(OP_FAILED, IBV_WC_RETRY_EXC_ERR, 5 * US);
	outcome = only_outcome();
	assert_true(outcome.result == WATCH_LOST && !outcome.refused);
}

static void write_to_who_gives_nothing_up_or_past_its_end_is_not_begun(void **state) {
	(void)state;
	plan_write(WATCH_WRITE_SINK_BYTES + 1);
	step();
	assert_null(submitted);
	assert_int_equal(only_outcome().result, WATCH_NO_PATH);
	bed.watch.writes = false;
	plan_write(8);
	step();
	assert_null(submitted);
	assert_int_equal(only_outcome().result, WATCH_NO_PATH);
}

static void foreign_page_is_an_answer_without_a_pulse(void **state) {
	struct watch_outcome outcome;

	(void)state;
	plan_now(1024);
	step();
	memset(bed.own, 0x5a, sizeof(bed.own));
	end(OP_OK, 0, 5 * US);
	outcome = only_outcome();
	assert_int_equal(outcome.result, WATCH_ANSWERED);
	assert_int_equal(outcome.beats | outcome.incarnation, 0);
}

static struct watch_outcome read_gpu(uint32_t bytes, uint64_t word, uint64_t last) {
	struct watch_due due = due_at(clock_now_ns(&bed.clock), bytes);
	uint64_t *words = (void *)bed.own;

	due.gpu = true;
	assert_int_equal(prober_plan_probes(bed.prober, &due, 1), 1);
	step();
	assert_int_equal(submitted->kind, OP_READ);
	assert_int_equal(submitted->remote_address, 0xa000);
	assert_int_equal(submitted->remote_key, 7);
	assert_int_equal(submitted->view.address, (uintptr_t)bed.own);
	for (uint32_t n = 0; n < bytes / 8; n++)
		words[n] = n + 1 < bytes / 8 ? word : last;
	end(OP_OK, 0, 9 * US);
	return only_outcome();
}

static void read_of_gpu_memory_goes_there_and_tells_whether_it_came_from_there(void **state) {
	static const uint64_t word = 0x1234567890abcdef;
	static const struct {
		uint32_t bytes;
		uint64_t word, last;
		bool wrong;
	} rows[] = {
		{8, 0x1234567890abcdef, 0x1234567890abcdef, false},
		{1024, 0x1234567890abcdef, 0x1234567890abcdef, false},
		{8, UINT64_MAX, UINT64_MAX, true},
		{1024, 0x1234567890abcdef, UINT64_MAX, true},
	};

	(void)state;
	assert_int_equal(bed.watch.gpu_word, word);
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct watch_outcome outcome = read_gpu(rows[n].bytes, rows[n].word, rows[n].last);

		assert_int_equal(outcome.result, WATCH_ANSWERED);
		assert_true(outcome.gpu);
		assert_false(outcome.written);
		assert_int_equal(outcome.latency_ns, 9 * US);
		assert_int_equal(outcome.wrong, rows[n].wrong);
		// GPU memory holds no pulse, so the outcome has no beats.
		assert_int_equal(outcome.beats, 0);
		assert_int_equal(outcome.incarnation, 0);
	}
}

static void gpu_memory_that_is_not_there_or_too_long_is_not_read(void **state) {
	struct watch_due due = due_at(clock_now_ns(&bed.clock), WATCH_SHORT_READ_BYTES + 8);

	(void)state;
	due.gpu = true;
	assert_int_equal(prober_plan_probes(bed.prober, &due, 1), 1);
	step();
	assert_null(submitted);
	assert_int_equal(only_outcome().result, WATCH_NO_PATH);
	bed.watch.gpu = false;
	due.bytes = 8;
	assert_int_equal(prober_plan_probes(bed.prober, &due, 1), 1);
	step();
	assert_null(submitted);
	assert_true(only_outcome().gpu);
}

static void what_is_too_long_for_its_own_memory_goes_where_the_others_go_in_turn(void **state) {
	struct watch other = bed.watch;
	const struct worker_record record = {
		.kind = PROBER_REQUEST_WATCH,
		.words = {worker_pointer_to_word(bed.prober), worker_pointer_to_word(&other)},
	};
	struct watch_due due = due_at(1000 * MS, PULSE_BYTES);
	struct watch_outcome outcome;

	(void)state;
	other.place = due.place = PLACE + 1;
	prober_request(bed.prober, NULL, &record);
	plan_now(PULSE_BYTES);
	assert_int_equal(prober_plan_probes(bed.prober, &due, 1), 1);
	step();
	assert_int_equal(submitted->view.address, (uintptr_t)bed.sink);
	assert_int_equal(submitted->view.length, PULSE_BYTES);
	assert_int_equal(prober_take_outcomes(bed.prober, &outcome, 1), 1);
	assert_int_equal(outcome.place, PLACE + 1);
	assert_int_equal(outcome.result, WATCH_SKIPPED);
	memcpy(bed.sink, pulse_memory(bed.page), 1024);
	end(OP_OK, 0, 5 * US);
	outcome = only_outcome();
	assert_int_equal(outcome.beats, 2);
	assert_int_equal(outcome.incarnation, INCARNATION);
	assert_int_equal(prober_plan_probes(bed.prober, &due, 1), 1);
	step();
	assert_int_equal(submitted->view.address, (uintptr_t)bed.sink);
	end(OP_FAILED, IBV_WC_RETRY_EXC_ERR, US);
	plan_now(PULSE_BYTES);
	step();
	assert_non_null(submitted);
	end(OP_OK, 0, US);
}

static void counter_that_stands_wakes_control(void **state) {
	(void)state;
	memcpy(bed.own, (const uint8_t *)pulse_memory(bed.page) + PULSE_BEATS_AT, 8);
	for (uint32_t n = 0; n < 4; n++) {
		plan_now(8);
		step();
		end(OP_OK, 0, US);
		step();
		assert_int_equal(outcomes_told, n < 3 ? 0 : 1);
		(void)only_outcome();
		clock_advance(&bed.clock, WATCH_STALLED_NS * 2 / 5);
	}
	bed.own[0]++;
	plan_now(8);
	step();
	end(OP_OK, 0, US);
	step();
	assert_int_equal(outcomes_told, 1);
}

static const struct {
	enum op_outcome outcome;
	enum ibv_wc_status status;
	enum watch_result result;
} ends[] = {
	{OP_OK, IBV_WC_SUCCESS, WATCH_ANSWERED},
	{OP_TIMED_OUT, IBV_WC_SUCCESS, WATCH_LOST},
	{OP_FAILED, IBV_WC_RETRY_EXC_ERR, WATCH_LOST},
	{OP_FAILED, IBV_WC_RESP_TIMEOUT_ERR, WATCH_LOST},
	{OP_FAILED, IBV_WC_REM_ACCESS_ERR, WATCH_VOID},
	{OP_FLUSHED, IBV_WC_WR_FLUSH_ERR, WATCH_VOID},
	{OP_CANCELLED, IBV_WC_SUCCESS, WATCH_VOID},
	{OP_NOT_READY, IBV_WC_SUCCESS, WATCH_VOID},
	{OP_REFUSED, IBV_WC_SUCCESS, WATCH_VOID},
};

static void only_what_nobody_answered_is_lost_and_wakes_control(void **state) {
	(void)state;
	for (size_t n = 0; n < sizeof(ends) / sizeof(ends[0]); n++) {
		outcomes_told = 0;
		plan_now(8);
		step();
		end(ends[n].outcome, ends[n].status, 5 * US);
		step();
		assert_int_equal(only_outcome().result, ends[n].result);
		assert_int_equal(outcomes_told, ends[n].result == WATCH_LOST);
	}
}

static void loss_that_control_has_no_room_for_is_told_later_and_once(void **state) {
	(void)state;
	plan_now(8);
	step();
	control_is_full = true;
	end(OP_TIMED_OUT, 0, MS);
	step();
	assert_int_equal(outcomes_told, 0);
	control_is_full = false;
	step();
	step();
	assert_int_equal(outcomes_told, 1);
}

static void next_one_is_left_out_while_one_is_under_way(void **state) {
	(void)state;
	plan_now(8);
	plan_now(8);
	step();
	assert_int_equal(only_outcome().result, WATCH_SKIPPED);
	end(OP_OK, 0, US);
	assert_int_equal(only_outcome().result, WATCH_ANSWERED);
}

static void one_whose_time_is_long_past_is_left_out(void **state) {
	(void)state;
	plan_now(8);
	clock_advance(&bed.clock, WATCH_LATE_NS + 1);
	assert_true(step());
	assert_null(submitted);
	assert_int_equal(only_outcome().result, WATCH_SKIPPED);
}

static void nothing_is_sent_without_the_path_that_was_meant(void **state) {
	struct path_row row = *path_table_next_row(bed.paths, 2);
	struct watch_due due = due_at(1000 * MS, 8);

	(void)state;
	due.place = PLACE + 1; // this slot has no watch
	assert_int_equal(prober_plan_probes(bed.prober, &due, 1), 1);
	due.place = WATCHES_MAX;
	assert_int_equal(prober_plan_probes(bed.prober, &due, 1), 1);
	due = due_at(1000 * MS, 8);
	due.generation++; // planned for another pair
	assert_int_equal(prober_plan_probes(bed.prober, &due, 1), 1);
	step();
	row.generation++; // the table now has another pair
	publish(&row);
	plan_now(8);
	step();
	publish(NULL);
	plan_now(8);
	step();
	row.generation--;
	row.remote_length = 512;
	publish(&row);
	plan_now(1024);
	step();
	assert_null(submitted);
	for (uint32_t n = 0; n < 6; n++) {
		struct watch_outcome outcome;

		assert_int_equal(prober_take_outcomes(bed.prober, &outcome, 1), 1);
		assert_int_equal(outcome.result, WATCH_NO_PATH);
	}
}

static void watch_comes_back_when_its_probe_has_ended(void **state) {
	(void)state;
	assert_int_equal(held, 2);
	plan_now(8);
	step();
	request(PROBER_REQUEST_UNWATCH);
	step();
	assert_null(given_back);
	end(OP_OK, 0, US);
	control_is_full = true;
	step();
	assert_null(given_back);
	assert_int_equal(held, 2);
	control_is_full = false;
	assert_true(step());
	assert_ptr_equal(given_back, &bed.watch);
	assert_int_equal(held, 0);
	(void)only_outcome();
	plan_now(8);
	step();
	assert_null(submitted);
	assert_int_equal(only_outcome().result, WATCH_NO_PATH);
}

static void peer_of_which_the_overlay_knows_that_it_left_is_not_read(void **state) {
	const struct peer_row left = {
		.id = PEER,
		.incarnation = INCARNATION,
		.first_incarnation = INCARNATION,
		.slot = 5,
		.state = PEER_LEFT,
		.ended = true,
		.name_length = 1,
		.name = "n",
	};
	const struct peer_view view = {.number = 1};

	(void)state;
	assert_int_equal(peer_table_set(bed.peers, &left), 0);
	assert_int_equal(peer_table_publish(bed.peers, &view), 0);
	plan_now(8);
	step();
	assert_null(submitted);
	assert_int_equal(only_outcome().result, WATCH_NO_PATH);
}

static void one_that_is_wanted_at_once_overtakes_the_agenda(void **state) {
	const struct worker_record now = {
		.kind = PROBER_REQUEST_PROBE_NOW,
		.words = {worker_pointer_to_word(bed.prober), PLACE, GENERATION, 8, 3},
	};

	(void)state;
	plan(2000 * MS, 1024);
	prober_request(bed.prober, NULL, &now);
	assert_int_equal(submitted->view.length, 8);
	end(OP_OK, 0, US);
	assert_int_equal(only_outcome().tag, 3);
}

static void full_agenda_takes_no_more(void **state) {
	static struct watch_due dues[WATCH_AGENDA + 1];

	(void)state;
	for (uint32_t n = 0; n <= WATCH_AGENDA; n++)
		dues[n] = due_at(5000 * MS + n, 8);
	assert_int_equal(prober_plan_probes(bed.prober, dues, 10), 10);
	assert_int_equal(prober_plan_probes(bed.prober, dues, WATCH_AGENDA), WATCH_AGENDA - 10);
	assert_int_equal(prober_plan_probes(bed.prober, dues, 1), 0);
}

static void outcomes_that_nobody_asked_for_are_counted_as_lost(void **state) {
	static struct watch_outcome outcomes[WATCH_OUTCOMES + 1];

	(void)state;
	for (uint32_t n = 0; n < WATCH_OUTCOMES + 3; n++) {
		plan_now(8);
		clock_advance(&bed.clock, 2 * WATCH_LATE_NS);
		step();
	}
	assert_int_equal(prober_lost_outcomes(bed.prober), 3);
	assert_int_equal(
		prober_take_outcomes(bed.prober, outcomes, WATCH_OUTCOMES + 1), WATCH_OUTCOMES
	);
	assert_int_equal(prober_take_outcomes(bed.prober, outcomes, 1), 0);
}

#define BED(name) cmocka_unit_test_setup_teardown(name, bed_make, bed_drop)

UNIT_GROUP(watch) {
	const struct CMUnitTest tests[] = {
		BED(probe_waits_for_its_time_and_says_when_that_is),
		BED(eight_bytes_are_the_counter_alone),
		BED(longer_one_reads_the_head_and_knows_whose_it_is),
		BED(a_late_turn_and_the_wait_of_the_responder_are_reported),
		BED(foreign_page_is_an_answer_without_a_pulse),
		BED(write_goes_to_what_the_peer_gives_up_and_tells_of_no_pulse),
		BED(write_that_the_peer_does_not_take_is_void_and_said_to_be_refused),
		BED(write_to_who_gives_nothing_up_or_past_its_end_is_not_begun),
		BED(read_of_gpu_memory_goes_there_and_tells_whether_it_came_from_there),
		BED(gpu_memory_that_is_not_there_or_too_long_is_not_read),
		BED(what_is_too_long_for_its_own_memory_goes_where_the_others_go_in_turn),
		BED(counter_that_stands_wakes_control),
		BED(only_what_nobody_answered_is_lost_and_wakes_control),
		BED(loss_that_control_has_no_room_for_is_told_later_and_once),
		BED(next_one_is_left_out_while_one_is_under_way),
		BED(one_whose_time_is_long_past_is_left_out),
		BED(nothing_is_sent_without_the_path_that_was_meant),
		BED(watch_comes_back_when_its_probe_has_ended),
		BED(peer_of_which_the_overlay_knows_that_it_left_is_not_read),
		BED(one_that_is_wanted_at_once_overtakes_the_agenda),
		BED(full_agenda_takes_no_more),
		BED(outcomes_that_nobody_asked_for_are_counted_as_lost),
	};

	return cmocka_run_group_tests(tests, rcu_group_begin, rcu_group_end);
}
