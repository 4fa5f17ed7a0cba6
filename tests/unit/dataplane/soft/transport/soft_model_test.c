// SPDX-License-Identifier: BSD-3-Clause
// Random operations on many pairs over faulty wires, compared with a model of memory and
// completions. Every completion comes once, in order, with the right status. At the end memory is
// equal, nothing is in flight, and the counters add up.
//
//	MODEL_SEED   the first seed; unset: SEEDS runs, the first with seed 1
//	MODEL_SEEDS  the number of seeds from MODEL_SEED on (default 1); a seed repeats its run
//	MODEL_STEPS  the number of steps after which a run is cut short
//	MODEL_TRACE  prints each step
#include "dataplane/soft/transport/model.h"

#include <lib/splitmix.h>

#include <stdarg.h>

#define SEEDS 500 // about 10 s of CPU time, even with a sanitizer; test level two runs 1,500 more
#define WORLDS 50

static struct {
	uint64_t first, count;
	uint32_t steps;
	bool trace;
} options = {.first = 1, .count = SEEDS};

void model_fail(const struct model *model, const char *format, ...) {
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fail_msg(
		"seed %lu, step %u (%s): %s", (unsigned long)model->seed, model->step,
		model->faults_text, text
	);
	abort(); // fail_msg() does not return
}

void model_trace(const struct model *model, const char *format, ...) {
	va_list args;

	if (!model->trace)
		return;
	printf("# %u %.3f us: ", model->step,
	       (double)(clock_now_ns(&model->clock) - 1000000000) / 1000);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

uint64_t draw(struct model *model) {
	return splitmix_next(&model->random);
}

uint32_t below(struct model *model, uint32_t bound) {
	return (uint32_t)(draw(model) % bound);
}

bool one_in(struct model *model, uint32_t count) {
	return below(model, count) == 0;
}

static bool is_broken(const struct pair *pair) {
	for (uint32_t e = 0; e < 2; e++) {
		if (pair->ends[e].failed || pair->ends[e].receives_failed)
			return true;
	}
	return false;
}

static void post_some(struct model *model) {
	struct end *end = end_random(model);
	uint32_t count = 1 + below(model, 4);

	if (!end->pair->up || (is_broken(end->pair) && !one_in(model, 4)))
		return;
	for (uint32_t n = 0; n < count; n++)
		post_work(end);
}

static void post_receives(struct model *model) {
	struct end *end = end_random(model);
	uint32_t count = 1 + below(model, 8);

	for (uint32_t n = 0; n < count && end->pair->up; n++)
		post_receive(end);
}

static void poll_some(struct model *model) {
	struct device *device = &model->devices[below(model, model->device_count)];

	poll_cq(device, below(model, device->cq_count), 1 + below(model, 16));
}

static void turn_some(struct model *model) {
	uint64_t due_ns;

	soft_turn(model->devices[below(model, model->device_count)].context, &due_ns);
}

static void pass_time(struct model *model) {
	if (one_in(model, 2))
		advance(model);
	else
		clock_advance(&model->clock, below(model, 100000));
}

static void live(struct model *model) {
	struct pair *pair = &model->pairs[below(model, model->pair_count)];

	if (!model->lives && !is_broken(pair))
		return;
	pair_break(pair);
	pair_connect(pair);
	model->reconnected++;
}

static void step(struct model *model) {
	uint32_t pick = below(model, 100);

	if (pick < 40)
		post_some(model);
	else if (pick < 52)
		post_receives(model);
	else if (pick < 65)
		poll_some(model);
	else if (pick < 89)
		turn_some(model);
	else if (pick < 98)
		pass_time(model);
	else
		live(model);
	if (one_in(model, 16))
		async_drain(model);
}

static void serve(struct model *model) {
	poll_all(model);
	srqs_reclaim(model);
	async_drain(model);
	for (uint32_t p = 0; p < model->pair_count; p++) {
		struct pair *pair = &model->pairs[p];

		if (pair->up && is_broken(pair))
			pair_break(pair);
		for (uint32_t e = 0; e < 2 && pair->up; e++) {
			for (uint32_t n = 0; n < 4; n++)
				post_receive(&pair->ends[e]);
		}
	}
}

static void drain(struct model *model) {
	uint64_t began_ns = clock_now_ns(&model->clock);

	do {
		serve(model);
		model_must(
			model, clock_now_ns(&model->clock) - began_ns < UINT64_C(600000000000),
			"what is under way does not end within 10 minutes"
		);
	} while (advance(model));
	serve(model);
	for (uint32_t p = 0; p < model->pair_count; p++) {
		for (uint32_t e = 0; e < 2 && model->pairs[p].up; e++)
			end_finish_unsignalled(&model->pairs[p].ends[e]);
		for (uint32_t e = 0; e < 2 && model->pairs[p].up; e++)
			model_must(
				model,
				model->pairs[p].ends[e].incoming_head ==
					model->pairs[p].ends[e].incoming_tail,
				"a message was sent and never received"
			);
	}
}

static struct model *run(uint64_t seed, const char *faults) {
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	model->seed = seed;
	model->faults_asked = faults;
	model->random = seed * UINT64_C(0xd1342543de82ef95);
	model->trace = options.trace;
	world_create(model);
	model->steps = 50 + below(model, one_in(model, 4) ? 2000 : 400);
	if (options.steps > 0)
		model->steps = options.steps;
	for (model->step = 1; model->step <= model->steps; model->step++)
		step(model);
	drain(model);
	check_memory(model);
	check_counters(model);
	world_destroy(model);
	return model;
}

static void what_is_asked_for_happens_once_and_in_order_whatever_the_wire_does(void **state) {
	uint64_t posted = 0;
	uint64_t finished = 0;
	uint64_t received = 0;
	uint64_t reconnected = 0;
	uint64_t errors[32] = {0};
	uint64_t seed;

	(void)state;
	for (seed = options.first; seed - options.first < options.count; seed++) {
		struct model *model = run(seed, NULL);

		posted += model->posted;
		finished += model->finished;
		received += model->received;
		reconnected += model->reconnected;
		for (size_t i = 0; i < COUNT_OF(errors); i++)
			errors[i] += model->errors[i];
		free(model);
	}
	assert_int_equal(posted, finished);
	printf("# %lu seeds: %lu works, %lu messages received, %lu pairs connected again\n",
	       (unsigned long)(seed - options.first), (unsigned long)finished,
	       (unsigned long)received, (unsigned long)reconnected);
	for (size_t i = 0; i < COUNT_OF(errors); i++) {
		if (errors[i] > 0)
			printf("# %lu times %s\n", (unsigned long)errors[i],
			       ibv_wc_status_str((enum ibv_wc_status)i));
	}
}

// Only the wire causes faults here, so every request must succeed in the end.
static void pairs_make_progress_on_wires_that_lose_every_fifth_packet(void **state) {
	static const char *const wires[] = {
		"loss=1%,reorder=1%,dup=1%,corrupt=1%",
		"loss=5%,reorder=5%,dup=5%,corrupt=5%",
		"loss=20%,reorder=10%,dup=10%,corrupt=5%",
		"loss=20%,reorder=10%,dup=10%,corrupt=5%,delay=50us±50us",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(wires); i++) {
		uint64_t finished = 0;
		uint64_t virtual_ns = 0;

		for (uint64_t seed = 1; seed <= WORLDS; seed++) {
			struct model *model = run(seed, wires[i]);

			assert_int_equal(model->posted, model->finished);
			assert_false(model->broke);
			finished += model->finished;
			virtual_ns += clock_now_ns(&model->clock) - 1000000000;
			free(model);
		}
		printf("# %s: %lu works of %d worlds in %.1f virtual s\n", wires[i],
		       (unsigned long)finished, WORLDS, (double)virtual_ns * 1e-9);
	}
}

UNIT_GROUP(soft_model) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_for_happens_once_and_in_order_whatever_the_wire_does
		),
		cmocka_unit_test(pairs_make_progress_on_wires_that_lose_every_fifth_packet),
	};

	const char *first = getenv("MODEL_SEED");
	const char *count = getenv("MODEL_SEEDS");
	const char *steps = getenv("MODEL_STEPS");

	if (first != NULL) {
		options.first = strtoull(first, NULL, 0);
		options.count = count != NULL ? strtoull(count, NULL, 0) : 1;
		options.steps = steps != NULL ? (uint32_t)strtoul(steps, NULL, 0) : 0;
	}
	options.trace = getenv("MODEL_TRACE") != NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
