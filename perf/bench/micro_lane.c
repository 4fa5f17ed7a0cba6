// SPDX-License-Identifier: BSD-3-Clause
// Overhead of a lane over raw verbs. The fake device runs in its immediate mode, in which posting
// does all the work. Both sides alternate in short bouts within a slice. The result of a slice is
// the median of its bouts, so that an interrupted bout has no effect.
#include "micro.h"
#include "worker/worker_impl.h"

#include <dataplane/lane.h>
#include <dataplane/pair.h>
#include <dataplane/path_table.h>
#include <dataplane/prober.h>
#include <lib/clock.h>
#include <lib/must.h>
#include <support/fake_verbs.h>

#include <stdlib.h>

#define BOUT_OPERATIONS 128 // operations of one side before the other side's turn
#define BOUTS_MAX 4096
#define BATCH 16
#define BYTES 8
#define AREA 4096

static struct {
	struct clock clock;
	struct device *device;
	struct lane *lane;
	struct worker_poll poll;
	struct pair *pair, *peer;
	struct ibv_cq *raw_cq;
	struct ibv_qp *raw_qp; // queue pair of `raw`
	struct pair *raw, *raw_peer;
	struct lane *raw_lane;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct op ops[BATCH];
	uint64_t ended;
} bench;

static _Atomic uint64_t references;

// Count references as the registry does; the benchmark has no registry.
void memory_view_ref(const struct memory_view *view) {
	(void)view;
	atomic_fetch_add_explicit(&references, 1, memory_order_relaxed);
}

void memory_view_put(const struct memory_view *view) {
	(void)view;
	atomic_fetch_sub_explicit(&references, 1, memory_order_release);
}

static struct lane *create_lane(void) {
	struct lane_config config = {
		.device = bench.device,
		.pair_max = 2,
		.depth = 16,
		.op_max = 64,
		.drain_ns = 1000000000,
		.clock = &bench.clock,
	};
	struct lane *lane;

	must(lane_create(&config, &lane) == 0);
	return lane;
}

static void connect_pair(struct lane *lane, struct pair **ret_one, struct pair **ret_other) {
	static uint32_t generation;
	struct device_endpoint endpoints[2];
	char reason[DEVICE_REASON_MAX + 1];
	struct pair_config config = {.lane = lane, .psn = 1, .inline_bytes = PAIR_INLINE_BYTES};

	config.generation = ++generation;
	must(pair_create(&config, &endpoints[0], ret_one) == 0);
	config.generation = ++generation;
	must(pair_create(&config, &endpoints[1], ret_other) == 0);
	must(pair_connect(*ret_one, &endpoints[1], 0, reason) == 0);
	must(pair_connect(*ret_other, &endpoints[0], 0, reason) == 0);
}

static void on_operation_end(struct op *op) {
	must(op->outcome == OP_OK);
	bench.ended++;
}

static void ops_fill(uint64_t deadline_ns) {
	for (uint32_t n = 0; n < BATCH; n++) {
		bench.ops[n] = (struct op){
			.kind = OP_READ,
			.pair = pair_slot(bench.pair),
			.generation = pair_generation(bench.pair),
			.view =
				{
					.region = (struct memory_region *)(void *)&bench,
					.device = bench.device,
					.length = BYTES,
					.wire_address = (uintptr_t)bench.memory + (size_t)n * BYTES,
					.local_key = bench.mr->lkey,
				},
			.remote_address = (uintptr_t)bench.memory + AREA / 2 + (size_t)n * BYTES,
			.remote_length = BYTES,
			.remote_key = bench.mr->rkey,
			.deadline_ns = deadline_ns,
			.done = on_operation_end,
		};
	}
}

static void bench_prepare(void) {
	char reason[DEVICE_REASON_MAX + 1];
	struct worker_record record = {.kind = LANE_REQUEST_ADD};

	if (bench.device != NULL)
		return;
	clock_init_tsc(&bench.clock);
	fake_verbs_init(NULL);
	fake_device_add("fake0");
	must(device_open(
		     &fake_verbs_calls, "fake0", &device_settings_default, reason, &bench.device
	     ) == 0);
	bench.lane = create_lane();
	bench.poll = lane_poll(bench.lane);
	bench.raw_lane = create_lane();
	connect_pair(bench.lane, &bench.pair, &bench.peer);
	connect_pair(bench.raw_lane, &bench.raw, &bench.raw_peer);
	record.words[0] = worker_pointer_to_word(bench.lane);
	record.words[1] = worker_pointer_to_word(bench.pair);
	lane_request(NULL, NULL, &record);
	bench.raw_qp = fake_qp_find(
		fake_device_of(device_context(bench.device)), pair_queue_number(bench.raw)
	);
	bench.raw_cq = bench.raw_qp->send_cq;
	bench.memory = aligned_alloc(AREA, AREA);
	must(bench.memory != NULL);
	must(fake_verbs_calls.reg_mr(
		     device_pd(bench.device), bench.memory, AREA,
		     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
		     &bench.mr
	     ) == 0);
}

static void lane_turn(void) {
	// A worker reads the clock once per turn; that cost is measured by the worker's own
	// benchmark.
	struct idle_step_findings found = {.now_ns = 1, .due_ns = IDLE_NEVER, .events = true};

	bench.poll.poll(bench.poll.ctx, &found);
	micro_keep(found.due_ns);
}

// Post the same messages as the lane, as a program would that knows what it waits for.
static void raw_round(uint32_t batch) {
	static struct ibv_send_wr wrs[BATCH];
	struct ibv_send_wr *bad;
	struct ibv_sge sges[BATCH];
	struct ibv_wc wcs[BATCH];
	int left = (int)batch;

	for (uint32_t n = 0; n < batch; n++) {
		struct ibv_send_wr *wr = &wrs[n];

		sges[n] = (struct ibv_sge){
			.addr = (uintptr_t)bench.memory + (size_t)n * BYTES,
			.length = BYTES,
			.lkey = bench.mr->lkey,
		};
		wr->wr_id = n;
		wr->next = n + 1 < batch ? &wrs[n + 1] : NULL;
		wr->sg_list = &sges[n];
		wr->num_sge = 1;
		wr->opcode = IBV_WR_RDMA_READ;
		wr->send_flags = IBV_SEND_SIGNALED;
		wr->wr.rdma.remote_addr = (uintptr_t)bench.memory + AREA / 2 + (size_t)n * BYTES;
		wr->wr.rdma.rkey = bench.mr->rkey;
	}
	must(ibv_post_send(bench.raw_qp, wrs, &bad) == 0);
	while (left > 0) {
		int got = ibv_poll_cq(bench.raw_cq, BATCH, wcs);

		must(got >= 0);
		left -= got;
	}
}

static void lane_round(uint32_t batch) {
	struct op *list[BATCH];
	uint64_t wanted = bench.ended + batch;

	for (uint32_t n = 0; n < batch; n++)
		list[n] = &bench.ops[n];
	lane_submit(bench.lane, list, batch);
	while (bench.ended < wanted)
		lane_turn();
}

static uint64_t rounds_time_ns(void (*round)(uint32_t batch), uint32_t batch, uint64_t rounds) {
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++)
		round(batch);
	return clock_monotonic_ns() - start_ns;
}

static int int64_compare(const void *left, const void *right) {
	const int64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

// Return the median time of `one` minus the time of `other`, which may be NULL. The result is never
// 0, because callers divide by it.
static uint64_t batches_measure(
	void (*one)(uint32_t batch), void (*other)(uint32_t batch), uint32_t batch, uint64_t rounds
) {
	static int64_t bouts[BOUTS_MAX];
	uint64_t count = rounds / BOUT_OPERATIONS;
	int64_t middle;
	double median_ns;

	if (count > BOUTS_MAX)
		count = BOUTS_MAX;
	if (count == 0)
		count = 1;
	for (uint64_t n = 0; n < count; n++) {
		bouts[n] = (int64_t)rounds_time_ns(one, batch, BOUT_OPERATIONS / batch);
		if (other != NULL)
			bouts[n] -= (int64_t)rounds_time_ns(other, batch, BOUT_OPERATIONS / batch);
	}
	qsort(bouts, count, sizeof(bouts[0]), int64_compare);
	middle = bouts[count / 2];
	median_ns = (double)middle * (double)rounds / (double)BOUT_OPERATIONS;
	return median_ns > 1 ? (uint64_t)median_ns : 1;
}

uint64_t micro_lane_one(uint64_t rounds) {
	bench_prepare();
	ops_fill(IDLE_NEVER);
	return batches_measure(lane_round, raw_round, 1, rounds);
}

uint64_t micro_lane_one_deadline(uint64_t rounds) {
	bench_prepare();
	ops_fill(IDLE_NEVER - 1);
	return batches_measure(lane_round, raw_round, 1, rounds);
}

uint64_t micro_lane_batch(uint64_t rounds) {
	bench_prepare();
	ops_fill(IDLE_NEVER);
	return batches_measure(lane_round, raw_round, BATCH, rounds);
}

uint64_t micro_lane_raw_one(uint64_t rounds) {
	bench_prepare();
	return batches_measure(raw_round, NULL, 1, rounds);
}

uint64_t micro_lane_raw_batch(uint64_t rounds) {
	bench_prepare();
	return batches_measure(raw_round, NULL, BATCH, rounds);
}

static void step_round(uint32_t batch) {
	(void)batch;
	lane_turn();
}

static void poll_round(uint32_t batch) {
	struct ibv_wc wcs[LANE_POLL_BATCH];

	(void)batch;
	micro_keep((uint64_t)ibv_poll_cq(bench.raw_cq, LANE_POLL_BATCH, wcs));
}

// Start an operation and hold its queue pair, so that the lane has to poll in each step.
static void hold_operation(void) {
	struct ibv_qp *qp = fake_qp_find(
		fake_device_of(device_context(bench.device)), pair_queue_number(bench.pair)
	);
	struct op *op = &bench.ops[0];

	ops_fill(IDLE_NEVER);
	fake_qp_hold(qp);
	lane_submit(bench.lane, &op, 1);
	lane_turn();
}

static void release_operation(void) {
	struct ibv_qp *qp = fake_qp_find(
		fake_device_of(device_context(bench.device)), pair_queue_number(bench.pair)
	);
	uint64_t wanted = bench.ended + 1;

	fake_qp_let_go(qp, UINT32_MAX);
	while (bench.ended < wanted)
		lane_turn();
}

uint64_t micro_lane_idle(uint64_t rounds) {
	uint64_t ns;

	bench_prepare();
	hold_operation();
	ns = batches_measure(step_round, poll_round, 1, rounds);
	release_operation();
	return ns;
}

uint64_t micro_lane_poll_cq(uint64_t rounds) {
	uint64_t ns;

	bench_prepare();
	hold_operation();
	ns = batches_measure(poll_round, NULL, 1, rounds);
	release_operation();
	return ns;
}

// Create a worker that does all work of an agent's worker in a step: clock, clock calibration,
// requests, prober, lane and idle policy. An operation is outstanding and none completes, so the
// idle policy continues to poll.
static struct worker *create_worker(struct clock *clock) {
	struct worker_config config = {
		.name = "step",
		.cpu = WORKER_CPU_ANY,
		.clock = clock,
		.kept_clock = clock,
		.idle = {.policy = IDLE_ADAPTIVE, .block_ns = UINT64_C(1) << 60, .foresees = true},
		.poll_count = 2,
	};
	struct path_table *paths;
	struct prober *prober;
	struct worker *worker;

	must(path_table_create(&paths) == 0);
	must(prober_create(paths, NULL, clock, (struct near){0}, &prober) == 0);
	config.polls[0] = prober_poll(prober);
	config.polls[1] = bench.poll;
	must(worker_create(&config, &worker) == 0);
	worker_sync_clocks(worker);
	worker->last_ns = clock_now_ns(clock);
	idle_init(&worker->idle, &config.idle, worker->last_ns);
	return worker;
}

static struct worker *stepped;

static void worker_step_round(uint32_t batch) {
	(void)batch;
	micro_keep(worker_step(stepped).action);
}

static uint64_t measure_worker_step(struct worker *worker, uint64_t rounds) {
	uint64_t ns;

	stepped = worker;
	hold_operation();
	ns = batches_measure(worker_step_round, poll_round, 1, rounds);
	release_operation();
	return ns;
}

uint64_t micro_step_shipped(uint64_t rounds) {
	static struct worker *worker;
	static struct clock clock;

	bench_prepare();
	if (worker == NULL) {
		clock_init_resynced(&clock);
		worker = create_worker(&clock);
	}
	return measure_worker_step(worker, rounds);
}

uint64_t micro_step_monotonic(uint64_t rounds) {
	static struct worker *worker;
	static struct clock clock;

	bench_prepare();
	if (worker == NULL) {
		clock_init_monotonic(&clock);
		worker = create_worker(&clock);
	}
	return measure_worker_step(worker, rounds);
}
