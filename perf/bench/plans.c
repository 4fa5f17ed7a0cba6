// SPDX-License-Identifier: BSD-3-Clause
// Count plans that a worker executes late.
#include "plans.h"

#include <dataplane/path_table.h>
#include <dataplane/prober.h>
#include <dataplane/watch.h>
#include <dataplane/worker.h>
#include <lib/histogram.h>

#include <sched.h>
#include <string.h>

#define BATCH_MAX 4
#define AHEAD_NS_MAX 150000
#define PAUSE_NS_MAX 4000 // between an outcome and the next plan; the worker falls asleep meanwhile
#define BLOCK_NS 20000
#define LANE_NS 1000 // a lane's step, between the prober's check and the sleep

struct plans {
	const struct clock *clock;
	struct path_table *paths;
	struct prober *prober;
	struct worker *worker;
	struct histogram *late_ns;
	struct plans_result result;
	uint64_t seed;
};

// xorshift64: the same sequence in each run.
static uint64_t random_draw(struct plans *plans, uint64_t below) {
	plans->seed ^= plans->seed << 13;
	plans->seed ^= plans->seed >> 7;
	plans->seed ^= plans->seed << 17;
	return plans->seed % below;
}

static void forward_request(void *ctx, struct worker *worker, const struct worker_record *record) {
	prober_request(ctx, worker, record);
}

static void spin_until(uint64_t until_ns) {
	while (clock_monotonic_ns() < until_ns)
		;
}

static bool simulate_lane_step(void *ctx, struct idle_step_findings *found) {
	(void)ctx;
	(void)found;
	spin_until(clock_monotonic_ns() + LANE_NS);
	return false;
}

static int plans_begin(struct plans *plans) {
	struct worker_config config = {
		.name = "plans",
		.cpu = WORKER_CPU_ANY,
		.clock = plans->clock,
		.idle = {.policy = IDLE_ADAPTIVE, .block_ns = BLOCK_NS},
		.request = forward_request,
		.poll_count = 2,
	};
	struct worker_facts facts;
	int err = path_table_create(&plans->paths);

	if (err == 0)
		err = prober_create(
			plans->paths, NULL, plans->clock, (struct near){0}, &plans->prober
		);
	if (err != 0)
		return err;
	config.request_ctx = plans->prober;
	config.polls[0] = prober_poll(plans->prober);
	config.polls[1] = (struct worker_poll){.poll = simulate_lane_step};
	err = worker_create(&config, &plans->worker);
	return err == 0 ? worker_start(plans->worker, &facts) : err;
}

static void plans_end(struct plans *plans) {
	struct worker_counters counters = {0};

	if (plans->worker != NULL)
		worker_counters(plans->worker, &counters);
	plans->result.blocks = counters.blocks;
	worker_destroy(plans->worker);
	prober_destroy(plans->prober);
	path_table_destroy(plans->paths);
}

// Plan probes for a slot without a watch; the outcome has the time at which it was examined.
static uint32_t batch_plan(struct plans *plans, uint64_t left, uint64_t *dues_ns) {
	struct watch_due dues[BATCH_MAX] = {{0}};
	uint32_t count = 1 + (uint32_t)random_draw(plans, BATCH_MAX);
	uint64_t at_ns = clock_now_ns(plans->clock);

	if (count > left)
		count = (uint32_t)left;
	for (uint32_t n = 0; n < count; n++) {
		at_ns += random_draw(plans, AHEAD_NS_MAX / BATCH_MAX);
		dues[n].at_ns = dues_ns[n] = at_ns;
		dues[n].tag = n;
	}
	count = prober_plan_probes(plans->prober, dues, count);
	worker_wake(plans->worker);
	return count;
}

static void
record_outcome(struct plans *plans, const struct watch_outcome *outcome, uint64_t due_ns) {
	struct plans_result *result = &plans->result;
	uint64_t late_ns = outcome->at_ns > due_ns ? outcome->at_ns - due_ns : 0;

	result->carried_out++;
	result->late_1ms += late_ns > 1000000;
	result->late_10ms += late_ns > 10000000;
	result->late_60ms += late_ns > 60000000;
	if (late_ns > result->most_late_ns)
		result->most_late_ns = late_ns;
	if (plans->late_ns != NULL)
		histogram_record(plans->late_ns, late_ns);
}

// Wait for all outcomes. Plans that take longer than PLANS_LOST_NS are counted as lost, and the
// worker is woken, so that the run ends.
static void wait_for_outcomes(struct plans *plans, const uint64_t *dues_ns, uint32_t count) {
	uint64_t patience_ns = clock_monotonic_ns() + PLANS_LOST_NS;
	struct watch_outcome outcome;

	for (uint32_t taken = 0; taken < count;) {
		if (prober_take_outcomes(plans->prober, &outcome, 1) == 1) {
			record_outcome(plans, &outcome, dues_ns[outcome.tag]);
			taken++;
		} else if (clock_monotonic_ns() > patience_ns) {
			plans->result.lost += count - taken;
			patience_ns += PLANS_LOST_NS;
			worker_wake(plans->worker);
		} else {
			sched_yield();
		}
	}
}

int plans_run(
	uint64_t count,
	const struct clock *clock,
	struct histogram *late_ns,
	struct plans_result *ret_result
) {
	struct plans plans = {.clock = clock, .late_ns = late_ns, .seed = 88172645463325252};
	int err = plans_begin(&plans);

	while (err == 0 && plans.result.planned < count) {
		uint64_t dues_ns[BATCH_MAX];
		uint32_t planned = batch_plan(&plans, count - plans.result.planned, dues_ns);

		plans.result.planned += planned;
		wait_for_outcomes(&plans, dues_ns, planned);
		spin_until(clock_monotonic_ns() + random_draw(&plans, PAUSE_NS_MAX));
	}
	plans_end(&plans);
	if (err == 0)
		*ret_result = plans.result;
	return err;
}
