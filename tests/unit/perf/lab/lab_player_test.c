// SPDX-License-Identifier: BSD-3-Clause
// Tests of two players on two fake devices, with a clock that the test advances. The measured times
// must equal the injected delays to the nanosecond.
#include "dataplane/lane/lane_bed.h"
#include "run/player.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES 400
#define SIZE 64
#define HALF 4096
#define GAP_NS UINT64_C(70000)
#define STALL_NS UINT64_C(20000000)
#define TURNS_MAX 1000000

static const struct bed_config with_receives = {
	.pair_max = 1,
	.depth = 64,
	.op_max = 256,
	.message_max = 4096,
};

struct scene {
	struct bed bed;
	struct bed_pair pair;
	struct player players[2]; // the client, then the server
	uint64_t raw[SAMPLES];
	uint32_t drawn;
};

// Return the delay of the client's operation with this index, in the order in which the device
// draws delays.
static uint64_t delay_of(uint32_t place) {
	return place % 97 == 96 ? STALL_NS : 1000 + UINT64_C(37) * (place % 50);
}

static uint64_t draw_delay(void *ctx) {
	struct scene *scene = ctx;

	return delay_of(scene->drawn++);
}

static void open_player(struct scene *scene, int side, enum plan_op op) {
	struct bed *bed = &scene->bed;
	const struct player_path way = {
		.lane = bed->lanes[side],
		.pair = scene->pair.slots[side],
		.generation = scene->pair.generations[side],
		.clock = &bed->clock,
		.out = bed_view(bed, side, 0, HALF),
		.in = bed_view(bed, side, HALF, HALF),
		.remote_address = (uintptr_t)bed->memory[1 - side] + HALF,
		.remote_key = bed->mrs[1 - side]->rkey,
	};

	player_init(&scene->players[side], &way, op, side == 1);
	player_set_size(&scene->players[side], plan_op_is_atomic(op) ? 8 : SIZE);
}

static struct scene *open_scene(enum plan_op op, bool drawn) {
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	bed_open(&scene->bed, &with_receives);
	scene->pair = bed_pair_up(&scene->bed);
	scene->bed.fakes[0]->delay_ns = 5000;
	scene->bed.fakes[1]->delay_ns = 3000;
	if (drawn) {
		scene->bed.fakes[0]->delay = draw_delay;
		scene->bed.fakes[0]->delay_ctx = scene;
	}
	open_player(scene, 0, op);
	open_player(scene, 1, op);
	return scene;
}

static void request(struct scene *scene, int side, enum player_request kind) {
	const struct worker_record record = {
		.kind = kind, .words = {worker_pointer_to_word(&scene->players[side])}};

	player_dispatch(NULL, scene->bed.worker, &record);
}

static void close_scene(struct scene *scene) {
	for (int side = 0; side < 2; side++)
		scene->players[side].playing = false;
	bed_close(&scene->bed);
	free(scene);
}

// One turn of each side, the player before its lane. If nothing progressed, advance the clock to
// the next event.
static void turn(struct scene *scene) {
	struct bed *bed = &scene->bed;
	uint64_t now_ns = clock_now_ns(&bed->clock), next_ns;
	struct idle_step_findings found = {.now_ns = now_ns, .due_ns = IDLE_NEVER, .events = true};
	bool progress = false;

	for (int side = 0; side < 2; side++)
		progress |= player_step(&scene->players[side], &found);
	bed_step(bed);
	if (progress || bed->progress)
		return;
	next_ns = fake_verbs_next_ns();
	if (found.due_ns < next_ns)
		next_ns = found.due_ns;
	if (next_ns != FAKE_NEVER && next_ns > now_ns)
		clock_advance(&bed->clock, next_ns - now_ns);
}

static void play(struct scene *scene, const struct player_stretch *stretch) {
	struct player *client = &scene->players[0];

	client->stretch = *stretch;
	if (!scene->players[1].playing)
		request(scene, 1, PLAYER_REQUEST_SERVE);
	request(scene, 0, PLAYER_REQUEST_PLAY);
	for (uint32_t n = 0; client->playing; n++) {
		assert_true(n < TURNS_MAX);
		turn(scene);
	}
}

static struct player_stretch raw_stretch(struct scene *scene) {
	return (struct player_stretch){.count = SAMPLES, .last_ns = UINT64_MAX, .raw = scene->raw};
}

static void what_the_device_takes_is_what_is_measured(void **state) {
	(void)state;
	for (enum plan_op op = 0; op < PLAN_OP_COUNT; op++) {
		struct scene *scene = open_scene(op, false);
		struct player_stretch stretch = raw_stretch(scene);
		uint64_t expected = plan_op_is_answered(op) ? 5000 + 3000 : 5000;

		play(scene, &stretch);
		assert_false(scene->players[0].failed);
		assert_int_equal(scene->players[0].kept, SAMPLES);
		for (uint32_t n = 0; n < SAMPLES; n++)
			assert_int_equal(scene->raw[n], expected);
		assert_int_equal(scene->players[0].took_ns, SAMPLES * expected);
		close_scene(scene);
	}
}

static void each_sample_is_that_of_its_own_operation(void **state) {
	struct scene *scene = open_scene(PLAN_READ, true);
	struct player_stretch stretch = raw_stretch(scene);
	uint64_t largest = 0;

	(void)state;
	stretch.lead = 3; // samples that are not kept
	play(scene, &stretch);
	for (uint32_t n = 0; n < SAMPLES; n++) {
		assert_int_equal(scene->raw[n], delay_of(n + 3));
		largest = scene->raw[n] > largest ? scene->raw[n] : largest;
	}
	assert_int_equal(largest, STALL_NS);
	close_scene(scene);
}

static void a_gap_is_between_samples_and_in_none(void **state) {
	struct scene *scene = open_scene(PLAN_SEND, false);
	struct player_stretch stretch = raw_stretch(scene);

	(void)state;
	stretch.gap_ns = GAP_NS;
	play(scene, &stretch);
	for (uint32_t n = 0; n < SAMPLES; n++)
		assert_int_equal(scene->raw[n], 8000);
	assert_int_equal(scene->players[0].took_ns, SAMPLES * 8000 + (SAMPLES - 1) * GAP_NS);
	close_scene(scene);
}

static void a_stretch_ends_when_its_time_is_over(void **state) {
	struct scene *scene = open_scene(PLAN_READ, false);
	struct player_stretch stretch = raw_stretch(scene);

	(void)state;
	stretch.last_ns = 23000; // during the fifth sample, which still counts
	stretch.lead = 7;	 // the lead is not part of that time
	play(scene, &stretch);
	assert_int_equal(scene->players[0].kept, 5);
	close_scene(scene);
}

static void stretches_follow_each_other_without_a_new_beginning(void **state) {
	struct scene *scene = open_scene(PLAN_WRITE, false);
	struct player_stretch stretch = raw_stretch(scene);

	(void)state;
	stretch.count = 100; // the 8-bit sequence numbers wrap in the third stretch
	for (int n = 0; n < 4; n++) {
		play(scene, &stretch);
		assert_int_equal(scene->players[0].kept, 100);
		assert_int_equal(scene->raw[99], 8000);
	}
	close_scene(scene);
}

struct open_loop {
	uint64_t due_ns[SAMPLES];
	struct run_record *response, *service;
	struct histogram *lag;
};

static struct open_loop *open_loop_create(void) {
	struct open_loop *loop = calloc(1, sizeof(*loop));
	uint64_t at_ns = 0;

	assert_non_null(loop);
	for (uint32_t n = 0; n < SAMPLES; n++)
		loop->due_ns[n] = at_ns += n % 7 == 0 ? 12000 : 900;
	assert_int_equal(run_record_create(&loop->response), 0);
	assert_int_equal(run_record_create(&loop->service), 0);
	assert_int_equal(histogram_create(&histogram_shape_latency, &loop->lag), 0);
	return loop;
}

static void open_loop_destroy(struct open_loop *loop) {
	run_record_destroy(loop->response);
	run_record_destroy(loop->service);
	histogram_destroy(loop->lag);
	free(loop);
}

static const uint64_t *samples_of(struct run_record *record) {
	struct indicator_block blocks[RECORD_BLOCKS_MAX];

	assert_int_equal(run_record_blocks(record, blocks), 1);
	assert_int_equal(blocks[0].count, SAMPLES);
	return blocks[0].samples;
}

static void responses_of_an_open_loop_are_lindleys_recursion(void **state) {
	struct scene *scene = open_scene(PLAN_READ, true);
	struct open_loop *loop = open_loop_create();
	struct player_stretch stretch = {
		.lead = 2,
		.count = SAMPLES,
		.last_ns = UINT64_MAX,
		.due_ns = loop->due_ns,
		.times = loop->response,
		.service = loop->service,
		.lag = loop->lag,
	};
	const uint64_t *responses, *services;
	uint64_t before = 0, waited = 0;

	(void)state;
	play(scene, &stretch);
	responses = samples_of(loop->response);
	services = samples_of(loop->service);
	for (uint32_t n = 0; n < SAMPLES; n++) {
		uint64_t gap = n > 0 ? loop->due_ns[n] - loop->due_ns[n - 1] : 0;
		uint64_t left = before > gap ? before - gap : 0;

		assert_int_equal(services[n], delay_of(n + 2));
		assert_int_equal(responses[n], left + services[n]);
		waited += left > 0;
		before = responses[n];
	}
	assert_true(waited > SAMPLES / 4); // proves that operations were queued
	assert_int_equal(histogram_percentile(loop->lag, 1000000), 0);
	open_loop_destroy(loop);
	close_scene(scene);
}

static void an_operation_that_fails_ends_the_stretch_with_its_cause(void **state) {
	struct scene *scene = open_scene(PLAN_READ, false);
	struct player_stretch stretch = raw_stretch(scene);

	(void)state;
	scene->players[0].way.remote_key ^= 1;
	play(scene, &stretch);
	assert_true(scene->players[0].failed);
	assert_int_equal(scene->players[0].kept, 0);
	assert_int_equal(scene->players[0].cause.status, IBV_WC_REM_ACCESS_ERR);
	close_scene(scene);
}

static void a_player_that_is_stopped_ends_without_the_sample_under_way(void **state) {
	struct scene *scene = open_scene(PLAN_WRITE, false);
	struct player *client = &scene->players[0];

	(void)state;
	client->stretch = raw_stretch(scene);
	request(scene, 0, PLAYER_REQUEST_PLAY); // the peer does not serve
	for (int n = 0; n < 20; n++)
		turn(scene);
	assert_true(client->playing);
	request(scene, 0, PLAYER_REQUEST_STOP);
	turn(scene);
	assert_false(client->playing);
	assert_int_equal(client->kept, 0);
	close_scene(scene);
}

UNIT_GROUP(lab_player) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_device_takes_is_what_is_measured),
		cmocka_unit_test(each_sample_is_that_of_its_own_operation),
		cmocka_unit_test(a_gap_is_between_samples_and_in_none),
		cmocka_unit_test(a_stretch_ends_when_its_time_is_over),
		cmocka_unit_test(stretches_follow_each_other_without_a_new_beginning),
		cmocka_unit_test(responses_of_an_open_loop_are_lindleys_recursion),
		cmocka_unit_test(an_operation_that_fails_ends_the_stretch_with_its_cause),
		cmocka_unit_test(a_player_that_is_stopped_ends_without_the_sample_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
