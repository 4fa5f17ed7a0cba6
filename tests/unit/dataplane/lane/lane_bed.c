// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/lane/lane_bed.h"

#include <dataplane/soft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 200000

int64_t bed_views_held;

static const struct verbs_calls *calls_of(const struct bed *bed) {
	return bed->soft ? &verbs_calls_soft : &fake_verbs_calls;
}

static void soft_add(struct bed *bed, uint8_t side) {
	struct soft_config config = {
		.wire = SOFT_WIRE_MEMORY,
		.address = {.family = SOCK_ADDR_V4, .address = {10, 0, 0, (uint8_t)(side + 1)}},
		.clock = &bed->clock,
		.random_seed = 1u + side,
	};

	snprintf(config.name, sizeof(config.name), "soft%u", side);
	assert_int_equal(soft_device_add(&config), 0);
}

static void devices_add(struct bed *bed, const struct bed_config *config) {
	fake_verbs_init(config->immediate ? NULL : &bed->clock);
	if (config->threaded)
		fake_verbs_share();
	for (uint8_t side = 0; side < 2; side++) {
		if (bed->soft)
			soft_add(bed, side);
		else
			bed->fakes[side] = fake_device_add(side == 0 ? "fake0" : "fake1");
	}
}

static void open_side(struct bed *bed, int side, const struct bed_config *config) {
	char reason[DEVICE_REASON_MAX + 1], name[DEVICE_NAME_MAX + 1];
	struct lane_config lane = {
		.pair_max = config->pair_max,
		.depth = config->depth,
		.op_max = config->op_max,
		.message_max = config->message_max,
		.drain_ns = BED_DRAIN_NS,
		.clock = &bed->clock,
		.stamps = config->stamps,
	};

	snprintf(name, sizeof(name), "%s%d", bed->soft ? "soft" : "fake", side);
	assert_int_equal(
		device_open(
			calls_of(bed), name, &device_settings_default, reason, &bed->devices[side]
		),
		0
	);
	lane.device = bed->devices[side];
	assert_int_equal(lane_create(&lane, &bed->lanes[side]), 0);
	bed->memory[side] = aligned_alloc(4096, BED_MEMORY);
	assert_non_null(bed->memory[side]);
	memset(bed->memory[side], 0, BED_MEMORY);
	assert_int_equal(
		calls_of(bed)->reg_mr(
			device_pd(bed->devices[side]), bed->memory[side], BED_MEMORY,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_ATOMIC,
			&bed->mrs[side]
		),
		0
	);
}

void bed_open(struct bed *bed, const struct bed_config *config) {
	struct worker_config worker = {
		.name = "bed",
		.cpu = WORKER_CPU_ANY,
		.clock = &bed->clock,
		.idle = {.policy = IDLE_ADAPTIVE, .block_ns = 20000},
		.request = lane_request,
	};

	memset(bed, 0, sizeof(*bed));
	if (config->threaded)
		clock_init_monotonic(&bed->clock);
	else
		clock_init_fake(&bed->clock, 1000000000);
	bed->soft = config->soft;
	devices_add(bed, config);
	bed_views_held = 0;
	for (int side = 0; side < 2; side++)
		open_side(bed, side, config);
	assert_int_equal(worker_create(&worker, &bed->worker), 0);
	bed->lanes[0]->worker = bed->lanes[1]->worker = bed->worker;
}

static void close_side(struct bed *bed, int side) {
	assert_int_equal(calls_of(bed)->dereg_mr(bed->mrs[side]), 0);
	free(bed->memory[side]);
	assert_int_equal(lane_destroy(bed->lanes[side]), 0);
	assert_null(device_put(bed->devices[side]));
}

void bed_close(struct bed *bed) {
	bed->passive = false;
	for (int side = 0; side < 2; side++) {
		for (uint32_t slot = 0; slot < bed->lanes[side]->pair_max; slot++) {
			if (bed->lanes[side]->pairs[slot] != NULL)
				lane_fail(
					bed->lanes[side], slot,
					bed->lanes[side]->pairs[slot]->generation, -ECANCELED
				);
		}
	}
	bed_run(bed);
	assert_int_equal(bed_views_held, 0);
	close_side(bed, 0);
	close_side(bed, 1);
	worker_destroy(bed->worker);
	soft_devices_clear();
	assert_null(fake_verbs_fini());
}

void bed_connect(struct bed *bed, struct pair *ends[2]) {
	struct device_endpoint endpoints[2];
	char reason[DEVICE_REASON_MAX + 1];

	for (int side = 0; side < 2; side++) {
		struct pair_config config = {
			.lane = bed->lanes[side],
			.generation = ++bed->generation,
			.psn = 0x100 + bed->generation,
			.inline_bytes = PAIR_INLINE_BYTES,
		};

		assert_int_equal(pair_create(&config, &endpoints[side], &ends[side]), 0);
	}
	for (int side = 0; side < 2; side++)
		assert_int_equal(pair_connect(ends[side], &endpoints[1 - side], 7, reason), 0);
}

void bed_request(struct bed *bed, int side, uint32_t kind, uint64_t word1, uint64_t word2) {
	struct worker_record record = {
		.kind = kind,
		.words = {worker_pointer_to_word(bed->lanes[side]), word1, word2},
	};

	lane_request(NULL, bed->worker, &record);
}

struct bed_pair bed_pair_up(struct bed *bed) {
	struct bed_pair pair;

	bed_connect(bed, pair.ends);
	for (int side = 0; side < 2; side++) {
		pair.slots[side] = pair_slot(pair.ends[side]);
		pair.generations[side] = pair_generation(pair.ends[side]);
		pair.qps[side] = pair.ends[side]->qp;
		bed_request(
			bed, side, LANE_REQUEST_ADD, worker_pointer_to_word(pair.ends[side]), 0
		);
	}
	return pair;
}

static void control_hears(struct bed *bed, const struct worker_record *record) {
	struct lane *lane = worker_word_to_pointer(record->words[0]);
	struct pair *pair = worker_word_to_pointer(record->words[1]);
	int side = lane == bed->lanes[1];

	switch ((enum lane_event)record->kind) {
	case LANE_EVENT_FAILED:
		bed->failed++;
		bed->last_failed = pair;
		if (!bed->passive)
			assert_int_equal(pair_fail(pair), 0);
		break;
	case LANE_EVENT_STUCK:
		bed->stuck++;
		if (bed->passive)
			break;
		assert_int_equal(pair_destroy_qp(pair), 0);
		bed_request(
			bed, side, LANE_REQUEST_QP_DESTROYED, pair_slot(pair), pair_generation(pair)
		);
		break;
	case LANE_EVENT_DRAINED:
		bed->drained++;
		bed->last_cause = *pair_cause(pair);
		assert_int_equal(pair_destroy(pair), 0);
		break;
	case LANE_EVENT_OP_ENDED:
		bed->ended[bed->ended_count++] = worker_word_to_pointer(record->words[1]);
		bed->done_events++;
		break;
	default:
		break;
	}
}

// Return the time of the next event of any device. The test itself drives software devices.
static uint64_t devices_next_ns(const struct bed *bed) {
	uint64_t next_ns = fake_verbs_next_ns();

	for (int side = 0; side < 2 && bed->soft; side++) {
		uint64_t due_ns = FAKE_NEVER;

		(void)soft_turn(device_context(bed->devices[side]), &due_ns);
		if (due_ns < next_ns)
			next_ns = due_ns;
	}
	return next_ns;
}

void bed_step(struct bed *bed) {
	struct worker_record record;

	for (int side = 0; side < 2; side++) {
		struct idle_step_findings found = {
			.now_ns = clock_now_ns(&bed->clock),
			.due_ns = IDLE_NEVER,
			.events = true,
		};
		bool progress = lane_run_step(bed->lanes[side], &found);

		if (side == 0) {
			bed->found = found;
			bed->progress = progress;
		}
		// The due time that the lane reports must be no later than its first deadline.
		if (bed->lanes[side]->heap_count > 0)
			assert_true(found.due_ns <= bed->lanes[side]->heap[1].due_ns);
	}
	while (worker_take_events(bed->worker, &record, 1) == 1)
		control_hears(bed, &record);
}

void bed_advance(struct bed *bed, uint64_t ns) {
	clock_advance(&bed->clock, ns);
	bed_step(bed);
}

static bool is_quiet(const struct bed *bed) {
	for (int side = 0; side < 2; side++) {
		const struct lane *lane = bed->lanes[side];

		if (lane->under_way > 0 || lane_ops(lane) > 0 || lane->ended.first != NULL ||
		    !TAILQ_EMPTY(&lane->drained) || !TAILQ_EMPTY(&lane->draining) ||
		    !TAILQ_EMPTY(&lane->swept) || !STAILQ_EMPTY(&lane->untold) ||
		    lane->unreported_ops.first != NULL)
			return false;
	}
	return true;
}

void bed_run(struct bed *bed) {
	for (uint32_t n = 0; n < STEPS_MAX && !is_quiet(bed); n++) {
		uint64_t next_ns = devices_next_ns(bed), now_ns = clock_now_ns(&bed->clock);

		bed_step(bed);
		if (bed->progress)
			continue;
		if (bed->found.due_ns < next_ns)
			next_ns = bed->found.due_ns;
		if (next_ns != FAKE_NEVER && next_ns > now_ns)
			clock_advance(&bed->clock, next_ns - now_ns);
		else if (next_ns == FAKE_NEVER)
			// A timer of the other side may be next.
			clock_advance(&bed->clock, BED_DRAIN_NS / 16);
	}
	assert_true(is_quiet(bed));
}

struct memory_view bed_view(struct bed *bed, int side, uint64_t offset, uint64_t length) {
	static char region; // its content is never read

	return (struct memory_view){
		.region = (struct memory_region *)(void *)&region,
		.device = bed->devices[side],
		.address = (uintptr_t)bed->memory[side] + offset,
		.length = length,
		.wire_address = (uintptr_t)bed->memory[side] + offset,
		.local_key = bed->mrs[side]->lkey,
		.remote_key = bed->mrs[side]->rkey,
	};
}

static void note_end(struct op *op) {
	struct bed *bed = op->ctx;

	assert_true(bed->ended_count < BED_OPS_MAX);
	bed->ended[bed->ended_count++] = op;
}

struct op
bed_op(struct bed *bed,
       const struct bed_pair *pair,
       enum op_kind kind,
       uint64_t offset,
       uint64_t length) {
	return (struct op){
		.kind = kind,
		.pair = pair->slots[0],
		.generation = pair->generations[0],
		.view = bed_view(bed, 0, offset, length),
		.remote_address = (uintptr_t)bed->memory[1] + offset,
		.remote_length = length,
		.remote_key = bed->mrs[1]->rkey,
		.deadline_ns = IDLE_NEVER,
		.done = note_end,
		.ctx = bed,
	};
}

void bed_submit(struct bed *bed, int side, struct op *op) {
	lane_submit(bed->lanes[side], &op, 1);
}

void bed_fill(struct bed *bed, int side, uint8_t seed) {
	for (uint64_t n = 0; n < BED_MEMORY; n++)
		bed->memory[side][n] = (uint8_t)(seed + n * 7 + (n >> 8));
}

const struct bed_config bed_usual = {
	.pair_max = 8,
	.depth = 8,
	.op_max = 256,
	.message_max = 4096,
};

struct bed_pair bed_open_usual(struct bed *bed, int filled) {
	bed_open(bed, &bed_usual);
	bed_fill(bed, filled, 3);
	return bed_pair_up(bed);
}

void bed_submit_some(
	struct bed *bed,
	const struct bed_pair *pair,
	enum op_kind kind,
	struct op *ops,
	uint32_t count
) {
	struct op *list[64];

	for (uint32_t n = 0; n < count; n++) {
		ops[n] = bed_op(bed, pair, kind, n * BED_PART, BED_PART);
		list[n] = &ops[n];
	}
	lane_submit(bed->lanes[0], list, count);
}

struct lane_counters bed_counters(const struct bed *bed) {
	struct lane_counters counters;

	lane_counters(bed->lanes[0], &counters);
	return counters;
}
