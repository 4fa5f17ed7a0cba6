// SPDX-License-Identifier: BSD-3-Clause
#include "verdict/store/health_inside.h"

#include <lib/wire.h>
#include <support/cmocka.h>
#include <support/heap.h>

#define SECOND RAS_NS_PER_SEC
#define CONFIRM_NS (60 * SECOND)

static struct clock clock;
static struct health health;

static bool no_wake(void *ctx, uint64_t at_ns) {
	(void)ctx;
	(void)at_ns;
	return true;
}

static void not_given(void *ctx, uint64_t id) {
	(void)ctx;
	(void)id;
}

static const struct grants_ops grants_ops = {.wake = no_wake, .given = not_given};

// Three members; number 3 may be drained.
static int tell_peers(void) {
	uint8_t notice[4 + 24] = {1, 0, 1, 0};
	struct wire_writer writer;

	verdict_self_update(health.engine, 1, &(struct verdict_self_update){.joined = true});
	for (uint64_t id = 1; id <= 3; id++) {
		const struct verdict_peer_update peer = {
			.id = id,
			.incarnation = ras_incarnation(1, 0),
			.state = RAS_ALIVE,
			.host = "",
			.leaf = "",
		};

		if (verdict_peer_update(health.engine, 1, &peer) != 0)
			return 1;
	}
	wire_writer_init(&writer, notice + 4, sizeof(notice) - 4);
	wire_put_u64(&writer, 3);
	wire_put_u64(&writer, 1);
	wire_put_u32(&writer, 0);
	wire_put_u32(&writer, 600);
	return grants_receive(health.grants, loop_now_ns(health.loop), notice, sizeof(notice)) != 0;
}

static int begin(void **state) {
	const struct verdict_config config = {.self = 1};
	const struct grants_config limits = {.self = 1, .rate_percent = 5, .out_percent = 33};

	(void)state;
	clock_init_monotonic(&clock);
	health = (struct health){
		.confirm_ns = CONFIRM_NS,
		.memory = HEAP_MEMORY(NULL),
	};
	if (loop_create(&clock, &health.loop) != 0 ||
	    verdict_engine_create(
		    &config, &health.memory, &(struct verdict_ops){0}, NULL, &health.engine
	    ) != 0 ||
	    grants_create(
		    health.engine, &limits, &health.memory, &grants_ops, NULL, &health.grants
	    ) != 0)
		return 1;
	return tell_peers();
}

static int end(void **state) {
	(void)state;
	grants_destroy(health.grants);
	verdict_engine_destroy(health.engine);
	loop_destroy(health.loop);
	return 0;
}

static enum verdict_advice
advise(enum verdict verdict, enum verdict_advice allowed, uint64_t for_ns) {
	const struct verdict_view view = {
		.subject = 3,
		.verdict = verdict,
		.advice = allowed,
		.since_ns = loop_now_ns(health.loop) - for_ns,
	};

	return health_advice(&health, &view);
}

static void what_the_engine_holds_back_is_not_given(void **state) {
	(void)state;
	// Silent for less than the time in which the engine waits for other failures.
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
		advise(VERDICT_AGENT_FROZEN, VERDICT_ADVICE_DRAIN_LATER,
		       CONFIRM_NS - 5 * SECOND - 1),
		VERDICT_ADVICE_WARN
	);
	// The granter judged a moment earlier.
	assert_int_equal(
		advise(VERDICT_AGENT_FROZEN, VERDICT_ADVICE_DRAIN_LATER, CONFIRM_NS - SECOND),
		VERDICT_ADVICE_DRAIN
	);
	assert_int_equal(
		advise(VERDICT_AGENT_FROZEN, VERDICT_ADVICE_DRAIN_LATER, CONFIRM_NS),
		VERDICT_ADVICE_DRAIN
	);
}

static void drain_without_a_grant_is_a_warning_that_says_why(void **state) {
	const struct verdict_view view = {
		.subject = 2,
		.verdict = VERDICT_FABRIC_DOWN,
		.advice = VERDICT_ADVICE_DRAIN,
	};
	const struct verdict_view warned = {.subject = 2, .advice = VERDICT_ADVICE_WARN};

	(void)state;
	assert_int_equal(health_advice(&health, &view), VERDICT_ADVICE_WARN);
	assert_string_equal(
		health_withheld_reason(&health, &view),
		"the limit of drains in ten minutes is reached"
	);
	assert_null(health_withheld_reason(&health, &warned));
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

static void observer_warns_and_says_what_it_would_do(void **state) {
	static const struct {
		enum verdict_advice allowed, given, would;
	} cases[] = {
		{VERDICT_ADVICE_DRAIN, VERDICT_ADVICE_WARN, VERDICT_ADVICE_DRAIN},
		{VERDICT_ADVICE_RESTART, VERDICT_ADVICE_WARN, VERDICT_ADVICE_RESTART},
		{VERDICT_ADVICE_WARN, VERDICT_ADVICE_WARN, VERDICT_ADVICE_NOTHING},
		{VERDICT_ADVICE_SHOW, VERDICT_ADVICE_SHOW, VERDICT_ADVICE_NOTHING},
		{VERDICT_ADVICE_NOTHING, VERDICT_ADVICE_NOTHING, VERDICT_ADVICE_NOTHING},
	};

	(void)state;
	health.observes_only = true;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		const struct verdict_view view = {.subject = 3, .advice = cases[n].allowed};
		bool holds_back = cases[n].would != VERDICT_ADVICE_NOTHING;

		assert_int_equal(health_advice(&health, &view), cases[n].given);
		assert_int_equal(health_suppressed_advice(&health, &view), cases[n].would);
		assert_int_equal(health_withheld_reason(&health, &view) != NULL, holds_back);
	}
	health.observes_only = false;
}

UNIT_GROUP(health_advice) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_engine_holds_back_is_not_given),
		cmocka_unit_test(drain_later_waits_for_the_time_of_confirmation),
		cmocka_unit_test(drain_without_a_grant_is_a_warning_that_says_why),
		cmocka_unit_test(what_drains_nobody_is_given_as_it_is),
		cmocka_unit_test(observer_warns_and_says_what_it_would_do),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
