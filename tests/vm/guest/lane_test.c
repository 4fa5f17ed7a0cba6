// SPDX-License-Identifier: BSD-3-Clause
// Runs in the guest: two lanes of one process on the kernel's devices, rxe0 against rxe1 over their
// wire. The test polls the lanes and plays the control thread.
#include "hear.h"

#include <dataplane/lane.h>
#include <dataplane/pair.h>
#include <lib/clock.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BYTES (UINT64_C(1) << 20)
#define WAIT_NS UINT64_C(20000000000)
#define DRAIN_NS UINT64_C(2000000000)
#define CYCLES 1000

struct end {
	struct device *device;
	struct memory_registry *registry;
	struct lane *lane;
	struct pair *pair; // NULL: not handed out, or destroyed
	uint32_t slot, generation;
	struct memory_view view;
	uint8_t *bytes;
	bool in_lane;
};

static struct clock clock_;
static struct worker *worker; // has no thread; provides rings
static struct end ends[2];
static uint32_t generation, ended, stuck;

static bool in_time(uint64_t deadline_ns) {
	return clock_monotonic_ns() < deadline_ns;
}

static void open_end(struct end *end, const char *name) {
	struct memory_config memory = {.clock = &clock_};
	struct memory_request request = {
		.length = BYTES,
		.access = MEMORY_PEER_READS | MEMORY_PEER_WRITES | MEMORY_PEER_ATOMICS |
			  MEMORY_LOCAL_WRITES,
	};
	struct lane_config lane = {
		.pair_max = 4,
		.depth = 16,
		.op_max = 1024,
		.message_max = 65536,
		.drain_ns = DRAIN_NS,
		.clock = &clock_,
	};
	char reason[MEMORY_REASON_MAX + 1], why[DEVICE_REASON_MAX + 1];

	assert_int_equal(device_open(&verbs_calls_system, name, NULL, why, &end->device), 0);
	memory.device = lane.device = end->device;
	assert_int_equal(memory_registry_create(&memory, &end->registry), 0);
	end->bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(end->bytes, MAP_FAILED);
	request.address = worker_pointer_to_word(end->bytes);
	assert_int_equal(memory_view_get(end->registry, &request, reason, &end->view), 0);
	assert_int_equal(lane_create(&lane, &end->lane), 0);
}

static void close_end(struct end *end) {
	assert_int_equal(lane_destroy(end->lane), 0);
	memory_view_put(&end->view);
	assert_null(memory_registry_destroy(end->registry));
	munmap(end->bytes, BYTES);
	device_put(end->device);
	memset(end, 0, sizeof(*end));
}

static void request(const struct end *end, uint32_t kind, const void *what) {
	const struct worker_record record = {
		.kind = kind,
		.words = {worker_pointer_to_word(end->lane), worker_pointer_to_word(what)},
	};

	lane_request(NULL, worker, &record);
}

static void tell_gone(const struct end *end, const struct pair *pair) {
	const struct worker_record record = {
		.kind = LANE_REQUEST_QP_DESTROYED,
		.words =
			{worker_pointer_to_word(end->lane), pair_slot(pair), pair_generation(pair)},
	};

	lane_request(NULL, worker, &record);
}

static void pair_up(void) {
	struct device_endpoint endpoints[2];
	char reason[DEVICE_REASON_MAX + 1];

	for (int side = 0; side < 2; side++) {
		struct pair_config config;

		generation++;
		config = (struct pair_config){
			.lane = ends[side].lane,
			.generation = generation,
			.psn = 0x700000 + generation,
			.inline_bytes = PAIR_INLINE_BYTES,
		};

		assert_int_equal(pair_create(&config, &endpoints[side], &ends[side].pair), 0);
		ends[side].slot = pair_slot(ends[side].pair);
		ends[side].generation = config.generation;
	}
	for (int side = 0; side < 2; side++) {
		assert_int_equal(pair_connect(ends[side].pair, &endpoints[1 - side], 0, reason), 0);
		request(&ends[side], LANE_REQUEST_ADD, ends[side].pair);
		ends[side].in_lane = true;
	}
}

static void control_hears(const struct worker_record *record) {
	struct pair *pair = worker_word_to_pointer(record->words[1]);
	struct end *end =
		worker_word_to_pointer(record->words[0]) == ends[0].lane ? &ends[0] : &ends[1];

	if (record->kind == LANE_EVENT_FAILED)
		assert_int_equal(pair_fail(pair), 0);
	if (record->kind == LANE_EVENT_STUCK) {
		stuck++;
		assert_int_equal(pair_destroy_qp(pair), 0);
		tell_gone(end, pair);
	}
	if (record->kind == LANE_EVENT_DRAINED) {
		assert_int_equal(pair_destroy(pair), 0);
		end->pair = NULL;
		end->in_lane = false;
	}
}

static void step(void) {
	struct worker_record record;

	for (int side = 0; side < 2; side++) {
		struct worker_poll poll = lane_poll(ends[side].lane);
		struct idle_step_findings found = {
			.now_ns = clock_now_ns(&clock_),
			.due_ns = IDLE_NEVER,
			.events = true,
		};

		poll.poll(poll.ctx, &found);
	}
	while (worker_take_events(worker, &record, 1) == 1)
		control_hears(&record);
}

static void step_until_ended(uint32_t count) {
	uint64_t deadline_ns = clock_monotonic_ns() + WAIT_NS;

	while (ended < count && in_time(deadline_ns))
		step();
	assert_int_equal(ended, count);
}

static void tear_down(void) {
	uint64_t deadline_ns = clock_monotonic_ns() + WAIT_NS;

	for (int side = 0; side < 2; side++)
		lane_fail(ends[side].lane, ends[side].slot, ends[side].generation, -ECANCELED);
	while ((ends[0].in_lane || ends[1].in_lane) && in_time(deadline_ns))
		step();
	assert_false(ends[0].in_lane || ends[1].in_lane);
}

static void note_end(struct op *op) {
	(void)op;
	ended++;
}

static struct op op_of(enum op_kind kind, int side, uint64_t offset, uint64_t length) {
	struct op op = {
		.kind = kind,
		.pair = ends[side].slot,
		.generation = ends[side].generation,
		.view = ends[side].view,
		.remote_address = ends[1 - side].view.wire_address + offset,
		.remote_length = length,
		.remote_key = ends[1 - side].view.remote_key,
		.deadline_ns = IDLE_NEVER,
		.done = note_end,
	};

	op.view.address += offset;
	op.view.wire_address += offset;
	op.view.length = length;
	return op;
}

static void submit(int side, struct op *op) {
	lane_submit(ends[side].lane, &op, 1);
}

static void fill(uint8_t seed) {
	for (uint64_t n = 0; n < BYTES; n++) {
		ends[0].bytes[n] = (uint8_t)(seed + n * 7 + (n >> 12));
		ends[1].bytes[n] = 0;
	}
}

static int begin(void **state) {
	(void)state;
	ended = stuck = 0;
	fill((uint8_t)++generation);
	pair_up();
	return 0;
}

static int end(void **state) {
	(void)state;
	tear_down();
	return 0;
}

static void megabyte_goes_there_and_comes_back(void **state) {
	struct op op;

	(void)state;
	op = op_of(OP_WRITE, 0, 0, BYTES); // 16 messages, twice through a queue of 16
	submit(0, &op);
	step_until_ended(1);
	assert_int_equal(op.outcome, OP_OK);
	assert_int_equal(op.bytes, BYTES);
	assert_memory_equal(ends[0].bytes, ends[1].bytes, BYTES);
	memset(ends[0].bytes, 0, BYTES);
	op = op_of(OP_READ, 0, 0, BYTES);
	submit(0, &op);
	step_until_ended(2);
	assert_int_equal(op.outcome, OP_OK);
	assert_memory_equal(ends[0].bytes, ends[1].bytes, BYTES);
}

static void messages_meet_their_receives(void **state) {
	struct op receives[2], send, immediate;

	(void)state;
	for (int n = 0; n < 2; n++) {
		receives[n] = op_of(OP_RECEIVE, 1, 65536, 4096);
		submit(1, &receives[n]);
	}
	step();
	send = op_of(OP_SEND, 0, 0, 3000);
	immediate = op_of(OP_WRITE_IMM, 0, 4096, 40);
	immediate.immediate = 0xabcd1234;
	submit(0, &send);
	submit(0, &immediate);
	step_until_ended(4);
	assert_int_equal(send.outcome, OP_OK);
	assert_int_equal(immediate.outcome, OP_OK);
	assert_int_equal(receives[0].bytes, 3000);
	assert_memory_equal(ends[1].bytes + 65536, ends[0].bytes, 3000);
	assert_int_equal(receives[1].immediate, 0xabcd1234);
	assert_memory_equal(ends[1].bytes + 4096, ends[0].bytes + 4096, 40);
}

static void atomics_count_on_the_other_side(void **state) {
	struct op adds[100], swap;
	uint64_t value = 5;

	(void)state;
	memcpy(ends[1].bytes + 512, &value, sizeof(value));
	for (int n = 0; n < 100; n++) {
		adds[n] = op_of(OP_FETCH_ADD, 0, 512, 8);
		adds[n].operand[0] = 3;
		submit(0, &adds[n]);
	}
	step_until_ended(100);
	memcpy(&value, ends[1].bytes + 512, sizeof(value));
	assert_int_equal(value, 305);
	memcpy(&value, ends[0].bytes + 512, sizeof(value));
	assert_int_equal(value, 302);
	swap = op_of(OP_COMPARE_SWAP, 0, 512, 8);
	swap.operand[0] = 305;
	swap.operand[1] = 7;
	submit(0, &swap);
	step_until_ended(101);
	memcpy(&value, ends[1].bytes + 512, sizeof(value));
	assert_int_equal(value, 7);
}

// Small writes in batches: inline, few completions.
static void many_small_writes_arrive(void **state) {
	static struct op ops[512];
	struct op *list[16];
	struct lane_counters counters;

	(void)state;
	for (uint32_t n = 0; n < 512; n++) {
		ops[n] = op_of(OP_WRITE, 0, 64 * n, 64);
		list[n % 16] = &ops[n];
		if (n % 16 == 15)
			lane_submit(ends[0].lane, list, 16);
	}
	step_until_ended(512);
	assert_memory_equal(ends[0].bytes, ends[1].bytes, 512 * 64);
	lane_counters(ends[0].lane, &counters);
	assert_true(counters.signalled < counters.posted);
	assert_int_equal(counters.stale, 0);
}

static void key_that_is_wrong_names_itself_and_the_rest_is_flushed(void **state) {
	struct op ops[3];
	char text[160];

	(void)state;
	for (int n = 0; n < 3; n++) {
		ops[n] = op_of(OP_READ, 1, 4096 * (uint64_t)n, 4096);
		if (n == 1)
			ops[n].remote_key ^= 0xff00;
	}
	memset(ends[1].bytes, 0x11, 3 * 4096);
	lane_submit(ends[1].lane, (struct op *[]){&ops[0], &ops[1], &ops[2]}, 3);
	step_until_ended(3);
	assert_int_equal(ops[0].outcome, OP_OK);
	assert_int_equal(ops[1].outcome, OP_FAILED);
	assert_int_equal(ops[2].outcome, OP_FLUSHED);
	assert_int_equal(ops[1].cause.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ops[2].cause.status, IBV_WC_REM_ACCESS_ERR);
	op_cause_format(&ops[2].cause, text, sizeof(text));
	assert_non_null(strstr(text, "REM_ACCESS_ERR"));
	for (int n = 4096; n < 3 * 4096; n++)
		assert_int_equal(ends[1].bytes[n], 0x11);
	assert_int_equal(stuck, 0);
}

// A separate registration, so that it can be revoked while it is read.
static void revoked_memory_fails_the_reads_with_that_reason(void **state) {
	static struct op ops[400];
	struct ibv_mr *mr;
	uint32_t before;
	bool failed = false;
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	(void)state;
	assert_int_equal(
		verbs_calls_system.reg_mr(
			device_pd(ends[0].device), ends[0].bytes, 65536, IBV_ACCESS_REMOTE_READ, &mr
		),
		0
	);
	for (int n = 0; n < 400; n++) {
		ops[n] = op_of(OP_READ, 1, 0, 4096);
		ops[n].remote_key = mr->rkey;
		submit(1, &ops[n]);
	}
	while (ended == 0)
		step();
	before = ended;
	assert_int_equal(verbs_calls_system.dereg_mr(mr), 0);
	step_until_ended(400);
	assert_true(before < 400);
	for (int n = 0; n < 400; n++) {
		if (ops[n].outcome == OP_OK) {
			assert_false(failed); // in order: none succeeds after the first failure
			continue;
		}
		assert_int_equal(ops[n].outcome, failed ? OP_FLUSHED : OP_FAILED);
		if (!failed)
			status = ops[n].cause.status;
		assert_int_equal(ops[n].cause.status, status);
		failed = true;
	}
	// The responder sends one NAK and then stays silent. If the NAK is lost among so many
	// replies, only the missing response is left.
	assert_true(status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_RETRY_EXC_ERR);
	assert_true(failed);
}

static void peer_without_its_queue_pair_is_found_out_by_retries(void **state) {
	struct op ops[4];

	(void)state;
	lane_fail(ends[1].lane, ends[1].slot, ends[1].generation, -ECANCELED);
	while (ends[1].in_lane)
		step();
	for (int n = 0; n < 4; n++) {
		ops[n] = op_of(OP_WRITE, 0, 0, 4096);
		submit(0, &ops[n]);
	}
	step_until_ended(4);
	for (int n = 0; n < 4; n++)
		assert_int_equal(ops[n].cause.status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(ops[0].outcome, OP_FAILED);
	assert_int_equal(ops[3].outcome, OP_FLUSHED);
}

static void deadline_ends_what_nobody_answers(void **state) {
	struct op op;

	(void)state;
	// No receive is posted, so the peer answers with RNR NAK for ever.
	op = op_of(OP_SEND, 0, 0, 64);
	op.deadline_ns = clock_now_ns(&clock_) + 20000000;
	submit(0, &op);
	step_until_ended(1);
	assert_true(op.outcome == OP_TIMED_OUT || op.outcome == OP_FAILED);
	assert_true(op.cause.err == -ETIMEDOUT || op.cause.status == IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(stuck, 0);
}

static void completion_turns_the_channel_readable(void **state) {
	struct worker_poll own = lane_poll(ends[0].lane);
	struct pollfd fd = {.fd = own.fd, .events = POLLIN};
	struct lane_counters before, after;
	struct op receive, send;

	(void)state;
	lane_counters(ends[0].lane, &before);
	// Wait for a receive: a send of this side may complete while it is posted.
	receive = op_of(OP_RECEIVE, 0, 65536, 64);
	submit(0, &receive);
	step();
	own.arm(own.ctx);
	assert_int_equal(poll(&fd, 1, 0), 0);
	send = op_of(OP_SEND, 1, 0, 64);
	submit(1, &send);
	step();
	assert_int_equal(poll(&fd, 1, 10000), 1);
	own.woken(own.ctx);
	assert_int_equal(poll(&fd, 1, 0), 0);
	step_until_ended(2);
	lane_counters(ends[0].lane, &after);
	assert_int_equal(after.completion_events, before.completion_events + 1);
}

static void count_objects(char *said, size_t size) {
	static const char *const words[] = {"rdma", "resource", "show", NULL};

	run_and_hear(words, said, size);
}

static void thousand_pairs_leave_nothing_behind(void **state) {
	char before[1024], after[1024];

	(void)state;
	tear_down();
	count_objects(before, sizeof(before));
	for (uint32_t n = 0; n < CYCLES; n++) {
		struct op op;

		pair_up();
		ended = 0;
		op = op_of(n % 2 == 0 ? OP_WRITE : OP_READ, 0, 0, 256);
		submit(0, &op);
		if (n % 3 != 0)
			step_until_ended(1);
		tear_down();
		step_until_ended(1);
	}
	count_objects(after, sizeof(after));
	assert_string_equal(before, after);
	assert_int_equal(stuck, 0);
}

static int open_all(void **state) {
	struct worker_config config = {
		.name = "guest",
		.cpu = WORKER_CPU_ANY,
		.clock = &clock_,
		.idle = {.policy = IDLE_ADAPTIVE, .block_ns = 20000},
	};

	(void)state;
	clock_init_monotonic(&clock_);
	assert_int_equal(worker_create(&config, &worker), 0);
	open_end(&ends[0], "rxe0");
	open_end(&ends[1], "rxe1");
	return 0;
}

static int close_all(void **state) {
	(void)state;
	close_end(&ends[0]);
	close_end(&ends[1]);
	worker_destroy(worker);
	return 0;
}

#define BETWEEN(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
	const struct CMUnitTest tests[] = {
		BETWEEN(megabyte_goes_there_and_comes_back),
		BETWEEN(messages_meet_their_receives),
		BETWEEN(atomics_count_on_the_other_side),
		BETWEEN(many_small_writes_arrive),
		BETWEEN(key_that_is_wrong_names_itself_and_the_rest_is_flushed),
		BETWEEN(revoked_memory_fails_the_reads_with_that_reason),
		BETWEEN(peer_without_its_queue_pair_is_found_out_by_retries),
		BETWEEN(deadline_ends_what_nobody_answers),
		BETWEEN(completion_turns_the_channel_readable),
		BETWEEN(thousand_pairs_leave_nothing_behind),
	};

	return cmocka_run_group_tests_name("guest_lane", tests, open_all, close_all);
}
