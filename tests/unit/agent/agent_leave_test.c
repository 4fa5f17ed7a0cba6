// SPDX-License-Identifier: BSD-3-Clause
// Tests of agent/signals.c alone: the signals that make an agent leave. The test stubs the loop,
// the fabric and the overlay.
#include "agent.h"

#include <control/fabric.h>
#include <support/cmocka.h>

#include <signal.h>

static struct loop_source *source;
static uint64_t now_ns;
static uint32_t leaves, stops;

int loop_add(struct loop *loop, struct loop_source *given) {
	(void)loop;
	source = given;
	return 0;
}

void loop_remove(struct loop_source *given) {
	assert_ptr_equal(source, given);
	source = NULL;
}

uint64_t loop_now_ns(const struct loop *loop) {
	(void)loop;
	return now_ns;
}

void loop_stop(struct loop *loop) {
	(void)loop;
	stops++;
}

void overlay_leave(struct overlay *overlay, void (*left)(void *ctx), void *ctx) {
	(void)overlay;
	(void)left;
	(void)ctx;
	leaves++;
}

void fabric_stop(struct fabric *fabric, void (*stopped)(void *ctx), void *ctx) {
	(void)fabric;
	(void)stopped;
	(void)ctx;
	fail();
}

void joining_stop(struct agent *agent) {
	(void)agent;
}

void agent_reload(struct agent *agent) {
	(void)agent;
	fail();
}

void service_notify(const char *text) {
	(void)text;
}

static void receive(int number, uint64_t at_ns) {
	now_ns = at_ns;
	assert_int_equal(raise(number), 0);
	source->ready(source, 0);
}

static void begin(struct agent *agent) {
	*agent = (struct agent){0};
	leaves = stops = 0;
	assert_int_equal(signals_start(agent), 0);
}

static void the_same_signal_twice_within_a_moment_is_one(void **state) {
	struct agent agent;

	(void)state;
	begin(&agent);
	receive(SIGTERM, RAS_NS_PER_SEC);
	receive(SIGTERM, RAS_NS_PER_SEC + RAS_NS_PER_MS);
	assert_int_equal(leaves, 1);
	assert_int_equal(stops, 0);
	signals_stop(&agent);
}

static void a_second_request_to_stop_ends_it_at_once(void **state) {
	struct agent agent;

	(void)state;
	begin(&agent);
	receive(SIGTERM, RAS_NS_PER_SEC);
	receive(SIGTERM, 2 * RAS_NS_PER_SEC);
	assert_int_equal(stops, 1);
	signals_stop(&agent);
	begin(&agent);
	receive(SIGTERM, RAS_NS_PER_SEC);
	receive(SIGINT, RAS_NS_PER_SEC); // a second signal
	assert_int_equal(leaves, 1);
	assert_int_equal(stops, 1);
	signals_stop(&agent);
}

UNIT_GROUP(agent_leave) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_signal_twice_within_a_moment_is_one),
		cmocka_unit_test(a_second_request_to_stop_ends_it_at_once),
	};

	return cmocka_run_group_tests_name("agent_leave", tests, NULL, NULL);
}
