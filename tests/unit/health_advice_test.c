// SPDX-License-Identifier: BSD-3-Clause
#include "health_inside.h"

#include <support/cmocka.h>
#include <support/heap.h>

#define SECOND RAS_NS_PER_SEC
#define CONFIRM_NS (60 * SECOND)

static struct clock clock;
static struct health health;

static int begin(void **state) {
	const struct verdict_config config = {.self = 1};

	(void)state;
	clock_init_monotonic(&clock);
	health = (struct health){
		.confirm_ns = CONFIRM_NS,
		.memory = HEAP_MEMORY(NULL),
	};
	return loop_create(&clock, &health.loop) != 0 ||
	       verdict_engine_create(
		       &config, &health.memory, &(struct verdict_ops){0}, NULL, &health.engine
	       ) != 0;
}

static int end(void **state) {
	(void)state;
	verdict_engine_destroy(health.engine);
	loop_destroy(health.loop);
	return 0;
}

static enum verdict_advice
advise(enum verdict verdict, enum verdict_advice allowed, uint64_t for_ns) {
	const struct verdict_view view = {
		.verdict = verdict,
		.advice = allowed,
		.since_ns = loop_now_ns(health.loop) - for_ns,
	};

	return health_advice(&health, &view);
}

static void what_the_engine_holds_back_is_not_given(void **state) {
	(void)state;
	// Silent for less than the engine wants to see whether others fall, too.
	assert_int_equal(
		advise(VERDICT_NODE_DOWN, VERDICT_ADVICE_WARN, SECOND), VERDICT_ADVICE_WARN
	);
	assert_int_equal(
		advise(VERDICT_FABRIC_DOWN, VERDICT_ADVICE_SHOW, 3600 * SECOND), VERDICT_ADVICE_SHOW
	);
	assert_int_equal(
		advise(VERDICT_NODE_DOWN, VERDICT_ADVICE_DRAIN, SECOND), VERDICT_ADVICE_DRAIN
	);
}

static void drain_later_waits_for_the_time_of_confirmation(void **state) {
	(void)state;
	assert_int_equal(
		advise(VERDICT_AGENT_FROZEN, VERDICT_ADVICE_DRAIN_LATER, CONFIRM_NS - 1),
		VERDICT_ADVICE_WARN
	);
	assert_int_equal(
		advise(VERDICT_AGENT_FROZEN, VERDICT_ADVICE_DRAIN_LATER, CONFIRM_NS),
		VERDICT_ADVICE_DRAIN
	);
}

static void what_drains_nobody_is_given_as_it_is(void **state) {
	static const enum verdict_advice advices[] = {
		VERDICT_ADVICE_NOTHING,
		VERDICT_ADVICE_SHOW,
		VERDICT_ADVICE_WARN,
		VERDICT_ADVICE_RESTART,
	};

	(void)state;
	for (size_t n = 0; n < sizeof(advices) / sizeof(advices[0]); n++)
		assert_int_equal(advise(VERDICT_AGENT_DOWN, advices[n], 0), advices[n]);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_engine_holds_back_is_not_given),
		cmocka_unit_test(drain_later_waits_for_the_time_of_confirmation),
		cmocka_unit_test(what_drains_nobody_is_given_as_it_is),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
