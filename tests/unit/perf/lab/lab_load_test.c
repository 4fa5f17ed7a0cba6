// SPDX-License-Identifier: BSD-3-Clause
// Tests of a load on pairs of two fake devices, with a clock that the test advances: the number of
// operations in flight, and the duration of a window of operations.
#include "dataplane/lane/lane_bed.h"
#include "run/player.h"

#include <stdlib.h>
#include <string.h>

#define PAIRS 2
#define DEPTH 8
#define WINDOWS 50
#define WINDOW_MESSAGES 32 // twice the operations in flight
#define SIZE 256
#define HALF 4096
#define DELAY_NS 5000
#define TURNS_MAX 1000000

static const struct bed_config config = {
	.pair_max = PAIRS,
	.depth = 64,
	.op_max = 1024,
	.message_max = 4096,
};

struct scene {
	struct bed bed;
	struct bed_pair pairs[PAIRS];
	struct player players[2]; // the client, then the server
	struct plan plan;
	uint64_t raw[WINDOWS];
	uint32_t most; // maximum number in flight at once
};

static void open_player(struct scene *scene, int side) {
	struct bed *bed = &scene->bed;
	const struct player_path way = {
		.lane = bed->lanes[side],
		.pair = scene->pairs[0].slots[side],
		.generation = scene->pairs[0].generations[side],
		.clock = &bed->clock,
		.out = bed_view(bed, side, 0, HALF),
		.in = bed_view(bed, side, HALF, HALF),
		.remote_address = (uintptr_t)bed->memory[1 - side] + HALF,
		.remote_key = bed->mrs[1 - side]->rkey,
	};
	struct load_pair pairs[PAIRS];
	struct load load;

	for (int n = 0; n < PAIRS; n++)
		pairs[n] = (struct load_pair
		){scene->pairs[n].slots[side], scene->pairs[n].generations[side]};
	assert_int_equal(load_create(&scene->plan, pairs, side == 1, &load), 0);
	player_init_load(&scene->players[side], &way, scene->plan.op, side == 1, &load);
	player_set_size(&scene->players[side], plan_op_is_atomic(scene->plan.op) ? 8 : SIZE);
}

static struct scene *open_scene(enum plan_op op, bool both_ways) {
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	scene->plan = plan_default;
	scene->plan.command = PLAN_BW;
	scene->plan.op = op;
	scene->plan.depth = DEPTH;
	scene->plan.pairs = PAIRS;
	scene->plan.both_ways = both_ways;
	bed_open(&scene->bed, &config);
	for (int n = 0; n < PAIRS; n++)
		scene->pairs[n] = bed_pair_up(&scene->bed);
	for (int side = 0; side < 2; side++) {
		scene->bed.fakes[side]->delay_ns = DELAY_NS;
		open_player(scene, side);
	}
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
	for (int side = 0; side < 2; side++)
		player_release(&scene->players[side]);
	free(scene);
}

// One turn of each side, the player before its lane. If nothing progressed, advance the clock to
// the next event.
static void turn(struct scene *scene) {
	struct bed *bed = &scene->bed;
	uint64_t now_ns = clock_now_ns(&bed->clock), next_ns;
	struct idle_step_findings found = {.now_ns = now_ns, .due_ns = IDLE_NEVER, .events = true};

	for (int side = 0; side < 2; side++)
		player_step(&scene->players[side], &found);
	bed_step(bed);
	if (scene->players[0].load.under_way > scene->most)
		scene->most = scene->players[0].load.under_way;
	if (bed->progress)
		return;
	next_ns = fake_verbs_next_ns();
	if (next_ns != FAKE_NEVER && next_ns > now_ns)
		clock_advance(&bed->clock, next_ns - now_ns);
}

static void play(struct scene *scene, const struct player_stretch *stretch) {
	struct player *client = &scene->players[0];
	const struct player_stretch serving = {
		.count = UINT64_MAX, .last_ns = UINT64_MAX, .window_messages = UINT64_MAX};

	client->stretch = *stretch;
	scene->players[1].stretch = serving;
	if (!scene->players[1].playing)
		request(scene, 1, PLAYER_REQUEST_SERVE);
	request(scene, 0, PLAYER_REQUEST_PLAY);
	for (uint32_t n = 0; client->playing; n++) {
		assert_true(n < TURNS_MAX);
		turn(scene);
	}
}

static struct player_stretch raw_stretch(struct scene *scene) {
	return (struct player_stretch){
		.count = WINDOWS,
		.last_ns = UINT64_MAX,
		.window_messages = WINDOW_MESSAGES,
		.raw = scene->raw,
	};
}

static void a_window_takes_what_its_messages_take(void **state) {
	(void)state;
	for (enum plan_op op = 0; op < PLAN_OP_COUNT; op++) {
		struct scene *scene = open_scene(op, false);
		struct player_stretch stretch = raw_stretch(scene);
		uint64_t sum = 0;

		play(scene, &stretch);
		assert_false(scene->players[0].failed);
		assert_int_equal(scene->players[0].kept, WINDOWS);
		// All operations in flight end together, one delay after they began.
		for (uint32_t n = 0; n < WINDOWS; n++) {
			assert_int_equal(
				scene->raw[n], WINDOW_MESSAGES / (PAIRS * DEPTH) * DELAY_NS
			);
			sum += scene->raw[n];
		}
		assert_int_equal(scene->players[0].took_ns, sum);
		assert_int_equal(scene->most, PAIRS * DEPTH);
		assert_int_equal(scene->players[0].load.under_way, 0);
		close_scene(scene);
	}
}

static void a_load_both_ways_makes_the_server_send_until_it_is_stopped(void **state) {
	struct scene *scene = open_scene(PLAN_SEND, true);
	struct player_stretch stretch = raw_stretch(scene);
	struct player *server = &scene->players[1];

	(void)state;
	play(scene, &stretch);
	assert_true(server->playing);
	assert_true(server->load.messages >= (uint64_t)WINDOWS * WINDOW_MESSAGES / 2);
	request(scene, 1, PLAYER_REQUEST_STOP);
	for (uint32_t n = 0; server->playing; n++) {
		assert_true(n < TURNS_MAX);
		turn(scene);
	}
	assert_int_equal(server->load.under_way, 0);
	assert_false(server->failed);
	close_scene(scene);
}

static void a_stretch_by_time_drops_the_window_that_is_not_over(void **state) {
	struct scene *scene = open_scene(PLAN_READ, false);
	struct player_stretch stretch = raw_stretch(scene);

	(void)state;
	stretch.last_ns = 3 * DELAY_NS; // ends within the second window
	play(scene, &stretch);
	assert_int_equal(scene->players[0].kept, 1);
	assert_int_equal(scene->players[0].took_ns, 2 * DELAY_NS);
	close_scene(scene);
}

static void a_load_that_fails_ends_the_stretch_when_all_have_ended(void **state) {
	struct scene *scene = open_scene(PLAN_READ, false);
	struct player_stretch stretch = raw_stretch(scene);

	(void)state;
	scene->players[0].way.remote_key ^= 1;
	play(scene, &stretch);
	assert_true(scene->players[0].failed);
	assert_int_equal(scene->players[0].kept, 0);
	assert_int_equal(scene->players[0].load.under_way, 0);
	assert_int_equal(scene->players[0].cause.status, IBV_WC_REM_ACCESS_ERR);
	close_scene(scene);
}

UNIT_GROUP(lab_load) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_takes_what_its_messages_take),
		cmocka_unit_test(a_load_both_ways_makes_the_server_send_until_it_is_stopped),
		cmocka_unit_test(a_stretch_by_time_drops_the_window_that_is_not_over),
		cmocka_unit_test(a_load_that_fails_ends_the_stretch_when_all_have_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
