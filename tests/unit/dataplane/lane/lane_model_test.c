// SPDX-License-Identifier: BSD-3-Clause
// Random operations, failures, cancellations and deadlines, compared with a model. Each operation
// ends once, with a possible outcome and its bytes in place. No device touches its memory
// afterwards. A seed that fails is printed. The environment variables MODEL_SEED and MODEL_SEEDS
// set the first seed and the number of seeds.
#include "dataplane/lane/lane_bed.h"

#include <lib/splitmix.h>
#include <support/sanitized.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 24 // concurrent operations of one side
#define AREA 1024
#define PAIRS 3
#define REMOTE (BED_MEMORY / 2)
#define STEPS 300

// The id of an operation determines its bytes, wherever they are stored.
struct model_op {
	struct op op;
	struct model *model;
	uint32_t id; // 0: the slot was never used
	uint32_t length;
	uint64_t before, operand; // for an atomic
	int side;
	uint32_t pair;
	bool lives; // submitted and not ended
};

struct model {
	struct bed bed;
	uint64_t random;
	struct model_op ops[2][SLOTS];
	struct bed_pair pairs[PAIRS];
	bool up[PAIRS][2];
	uint32_t pair_count;
	uint32_t next_id;
	uint32_t last_sent[PAIRS][2]; // the latest successful operation of each send queue
	uint64_t submitted, ended, outcomes[OP_OUTCOME_COUNT];
};

static uint64_t draw(struct model *model) {
	return splitmix_next(&model->random);
}

static uint32_t below(struct model *model, uint32_t bound) {
	return (uint32_t)(draw(model) % bound);
}

static bool one_in(struct model *model, uint32_t count) {
	return below(model, count) == 0;
}

static uint8_t byte_of(uint32_t id, uint32_t at) {
	return (uint8_t)(id * 31 + at * 7 + (id >> 8) + 1);
}

static void paint(uint8_t *bytes, uint32_t id, uint32_t length) {
	for (uint32_t n = 0; n < length; n++)
		bytes[n] = byte_of(id, n);
	if (length >= sizeof(id))
		memcpy(bytes, &id, sizeof(id));
}

static void check_painted(const uint8_t *bytes, uint32_t id, uint32_t length) {
	uint8_t expected[AREA];

	paint(expected, id, length);
	assert_memory_equal(bytes, expected, length);
}

static uint8_t *local_of(const struct model_op *mine) {
	uint32_t n = (uint32_t)(mine - mine->model->ops[mine->side]);

	return mine->model->bed.memory[mine->side] + (size_t)n * AREA;
}

static uint8_t *remote_of(const struct model_op *mine) {
	uint32_t n = (uint32_t)(mine - mine->model->ops[mine->side]);

	return mine->model->bed.memory[1 - mine->side] + REMOTE + (size_t)n * AREA;
}

static void check_success(struct model_op *mine) {
	struct op *op = &mine->op;
	uint32_t *last = &mine->model->last_sent[mine->pair][mine->side];
	uint64_t word;
	uint32_t id;

	if (op->kind != OP_RECEIVE) {
		assert_int_equal(op->bytes, op->length);
		// Operations of one direction of a pair end in the order of submission.
		if (op->length > 0) {
			assert_true(mine->id > *last);
			*last = mine->id;
		}
	}
	switch (op->kind) {
	case OP_WRITE:
	case OP_WRITE_IMM:
		check_painted(remote_of(mine), mine->id, mine->length);
		break;
	case OP_READ:
		check_painted(local_of(mine), mine->id, mine->length);
		break;
	case OP_RECEIVE:
		if (op->bytes < sizeof(id) || op->immediate != 0)
			break;
		memcpy(&id, local_of(mine), sizeof(id));
		check_painted(local_of(mine), id, (uint32_t)op->bytes);
		break;
	case OP_FETCH_ADD:
		memcpy(&word, local_of(mine), sizeof(word));
		assert_int_equal(word, mine->before);
		memcpy(&word, remote_of(mine), sizeof(word));
		assert_int_equal(word, mine->before + mine->operand);
		break;
	default:
		break;
	}
}

static bool has_no_cause(const struct op *op) {
	return op->cause.err == 0 && op->cause.status == IBV_WC_SUCCESS;
}

static void model_done(struct op *op) {
	struct model_op *mine = op->ctx;
	struct model *model = mine->model;

	assert_true(mine->lives); // must end only once
	mine->lives = false;
	model->ended++;
	model->outcomes[op->outcome]++;
	assert_true(op->bytes <= op->length);
	if (op->outcome == OP_OK) {
		assert_true(has_no_cause(op));
		check_success(mine);
	} else if (op->outcome >= OP_FAILED && op->posted_ns != 0 && op->length > 0) {
		assert_false(has_no_cause(op) && op->outcome != OP_CANCELLED);
	}
	fake_verbs_forbid(local_of(mine), AREA);
}

static struct model_op *free_op(struct model *model, int side) {
	for (uint32_t tries = 0; tries < SLOTS; tries++) {
		struct model_op *mine = &model->ops[side][below(model, SLOTS)];

		if (!mine->lives)
			return mine;
	}
	return NULL;
}

// Some operations span several messages, some are empty, and some are invalid.
static void draw_sizes(struct model *model, struct model_op *mine) {
	struct op *op = &mine->op;
	uint64_t message_max = model->bed.lanes[0]->message_max;

	mine->length = one_in(model, 8) ? 0 : 1 + below(model, AREA - 1);
	if (op->kind == OP_SEND || op->kind == OP_WRITE_IMM)
		mine->length %= (uint32_t)message_max + 1;
	if (op->kind == OP_COMPARE_SWAP || op->kind == OP_FETCH_ADD)
		mine->length = 8;
	if (op->kind == OP_RECEIVE)
		mine->length = AREA;
	op->view.length = op->remote_length = mine->length;
	if (one_in(model, 200))
		op->remote_key = 0x77; // the peer refuses this key
	if (one_in(model, 200))
		op->generation++;
	if (one_in(model, 200))
		op->remote_length = op->kind == OP_WRITE ? 0 : UINT64_MAX;
}

static void draw_op(struct model *model, struct model_op *mine, int side, uint32_t p) {
	const struct bed_pair *pair = &model->pairs[p];
	struct op *op = &mine->op;

	if (mine->id != 0)
		fake_verbs_allow(local_of(mine), AREA);
	*mine = (struct model_op
	){.model = model, .id = ++model->next_id, .side = side, .pair = p, .lives = true};
	*op = (struct op){
		.kind = (enum op_kind)below(model, OP_KIND_COUNT),
		.solicited = one_in(model, 2),
		.pair = pair->slots[side],
		.generation = pair->generations[side],
		.remote_address = worker_pointer_to_word(remote_of(mine)),
		.remote_key = model->bed.mrs[1 - side]->rkey,
		.immediate = 0,
		.deadline_ns = IDLE_NEVER,
		.done = model_done,
		.ctx = mine,
	};
	op->view = bed_view(
		&model->bed, side, (uint64_t)(local_of(mine) - model->bed.memory[side]), 0
	);
	op->view.host = one_in(model, 2);
	if (one_in(model, 3))
		op->deadline_ns = clock_now_ns(&model->bed.clock) + below(model, 20000);
	draw_sizes(model, mine);
	if (op->kind == OP_READ)
		paint(remote_of(mine), mine->id, mine->length);
	else
		paint(local_of(mine), mine->id, mine->length);
	mine->operand = op->operand[0] = draw(model);
	memcpy(&mine->before, remote_of(mine), sizeof(mine->before));
	if (op->kind == OP_WRITE_IMM)
		op->immediate = mine->id;
}

static void submit_batch(struct model *model) {
	struct op *list[8];
	uint32_t count = 0, wanted = 1 + below(model, 8), p = below(model, model->pair_count);
	int side = (int)below(model, 2);

	while (count < wanted) {
		struct model_op *mine = free_op(model, side);

		if (mine == NULL)
			break;
		draw_op(model, mine, side, p);
		list[count++] = &mine->op;
		if (one_in(model, 4))
			p = below(model, model->pair_count);
	}
	model->submitted += count;
	if (count > 0)
		lane_submit(model->bed.lanes[side], list, count);
}

static void cancel_one(struct model *model) {
	int side = (int)below(model, 2);
	struct model_op *mine = &model->ops[side][below(model, SLOTS)];
	int err = lane_cancel_op(model->bed.lanes[side], &mine->op, mine->op.pair);

	assert_true(err == 0 || err == -ENOENT);
	assert_true(err != 0 || mine->lives);
}

static void draw_trouble(struct model *model) {
	static const enum ibv_wc_status statuses[] = {
		IBV_WC_REM_ACCESS_ERR,
		IBV_WC_RETRY_EXC_ERR,
		IBV_WC_LOC_PROT_ERR,
		IBV_WC_FATAL_ERR,
	};
	uint32_t p = below(model, model->pair_count);
	int side = (int)below(model, 2);
	struct ibv_qp *qp;

	if (!model->up[p][side])
		return;
	qp = model->pairs[p].ends[side]->qp;
	if (qp == NULL)
		return; // cut off, but not yet swept
	switch (below(model, 9)) {
	case 0:
		fake_verbs_fail(FAKE_POST_SEND, 1 + below(model, 9), 1 + below(model, 3), -ENOMEM);
		break;
	case 1:
		fake_verbs_fail(FAKE_POST_SEND, 1 + below(model, 9), 1, -EINVAL);
		break;
	case 2:
		fake_verbs_fail(
			FAKE_POST_RECV, 1 + below(model, 3), 1, one_in(model, 2) ? -ENOMEM : -EIO
		);
		break;
	case 3:
		fake_qp_error(
			qp, 1 + below(model, 4), statuses[below(model, 4)], below(model, 200)
		);
		break;
	case 4:
		fake_qp_break(qp);
		break;
	case 5:
		lane_fail(
			model->bed.lanes[side], model->pairs[p].slots[side],
			model->pairs[p].generations[side], -EHOSTDOWN
		);
		break;
	case 6:
		model->bed.fakes[side]->never_flushes = one_in(model, 2);
		model->bed.fakes[side]->keeps_completions = one_in(model, 2);
		break;
	case 7:
		fake_device_cut(model->bed.fakes[side], one_in(model, 3));
		break;
	default:
		cancel_one(model);
		break;
	}
}

// Act as control: if one end of a pair is gone, fail the other end. Then create both again.
static void look_after_pairs(struct model *model) {
	struct bed *bed = &model->bed;

	for (uint32_t p = 0; p < model->pair_count; p++) {
		struct bed_pair *pair = &model->pairs[p];

		for (int side = 0; side < 2; side++) {
			if (model->up[p][side] &&
			    bed->lanes[side]->pairs[pair->slots[side]] != pair->ends[side]) {
				model->up[p][side] = false;
				lane_fail(
					bed->lanes[1 - side], pair->slots[1 - side],
					pair->generations[1 - side], -ECONNRESET
				);
			}
		}
		if (!model->up[p][0] && !model->up[p][1]) {
			*pair = bed_pair_up(bed);
			model->up[p][0] = model->up[p][1] = true;
			model->last_sent[p][0] = model->last_sent[p][1] = 0;
		}
	}
}

static uint64_t draw_delay(void *ctx) {
	return below(ctx, 4000);
}

static void set_up(struct model *model, uint64_t seed) {
	struct bed_config config;

	memset(model, 0, sizeof(*model));
	model->random = seed;
	config = (struct bed_config){
		.pair_max = PAIRS + 1,
		.depth = 1 + below(model, 12),
		.op_max = 8 + below(model, 48),
		.message_max = 16 + below(model, 400),
	};
	bed_open(&model->bed, &config);
	for (int side = 0; side < 2; side++) {
		model->bed.fakes[side]->delay = draw_delay;
		model->bed.fakes[side]->delay_ctx = model;
		model->bed.fakes[side]->flush_ns = below(model, 3000);
	}
	model->pair_count = 1 + below(model, PAIRS);
	look_after_pairs(model);
}

static void settle(struct model *model) {
	fake_verbs_fail_no_more();
	for (uint32_t n = 0; n < 2 * SLOTS; n++) {
		struct model_op *mine = &model->ops[n % 2][n / 2];

		if (mine->id != 0 && !mine->lives)
			fake_verbs_allow(local_of(mine), AREA);
	}
	bed_close(&model->bed); // closing fails all pairs
	assert_int_equal(model->ended, model->submitted);
}

static void play(struct model *model, uint64_t seed) {
	set_up(model, seed);
	for (uint32_t n = 0; n < STEPS; n++) {
		if (one_in(model, 3))
			submit_batch(model);
		if (one_in(model, 25))
			draw_trouble(model);
		if (one_in(model, 4))
			clock_advance(&model->bed.clock, below(model, 6000));
		if (one_in(model, 400))
			clock_advance(&model->bed.clock, BED_DRAIN_NS);
		bed_step(&model->bed);
		look_after_pairs(model);
		assert_int_equal(
			bed_views_held,
			lane_ops(model->bed.lanes[0]) + lane_ops(model->bed.lanes[1])
		);
		assert_null(fake_verbs_broken());
	}
	settle(model);
}

static uint64_t first_seed = 1, seeds = OR_SANITIZED(2000, 500), last_seed;

static void every_operation_ends_once_and_truly(void **state) {
	static struct model model;
	uint64_t outcomes[OP_OUTCOME_COUNT] = {0};

	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
		last_seed = seed;
		play(&model, seed);
		for (int n = 0; n < OP_OUTCOME_COUNT; n++)
			outcomes[n] += model.outcomes[n];
	}
	for (int n = 0; n < OP_OUTCOME_COUNT; n++) {
		print_message(
			"# %s %llu\n", op_outcome_name((enum op_outcome)n),
			(unsigned long long)outcomes[n]
		);
		assert_true(seeds < 100 || outcomes[n] > 0);
	}
}

// This runs even after a failed assertion ended the test.
static int tell_seed(void **state) {
	(void)state;
	print_message("# the last seed was %llu\n", (unsigned long long)last_seed);
	return 0;
}

UNIT_GROUP(lane_model) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_operation_ends_once_and_truly, tell_seed),
	};

	const char *first = getenv("MODEL_SEED");
	const char *count = getenv("MODEL_SEEDS");

	if (first != NULL)
		first_seed = strtoull(first, NULL, 10);
	if (count != NULL)
		seeds = strtoull(count, NULL, 10);
	return cmocka_run_group_tests_name("lane_model", tests, NULL, NULL);
}
