// SPDX-License-Identifier: BSD-3-Clause
// The contenders of a cell alternate on one worker, which changes its policy between slices.
#include "policy.h"
#include "worker/worker_impl.h"

#include <dataplane/cores.h>
#include <lib/clock.h>
#include <lib/must.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

// Window of IDLE_WINDOW, the same as the default of tocsin-perf.
#define WINDOW_NS UINT64_C(100000)
// Indexes of the second and eighth of nine sorted values: the median lies between them with 96 %
// probability.
#define INTERVAL_LOW 1
#define INTERVAL_HIGH 7
#define P99_SAMPLES 1000
#define P999_SAMPLES 10000

struct policy_bench {
	struct clock clock;
	struct policy_device *device;
	struct worker *worker;
	uint64_t block_ns;
	clockid_t cpu_clock; // of the worker's thread
	struct policy_trace trace;
	double column[POLICY_OPS_MAX];
	double values[POLICY_SLICES][POLICY_CONTENDERS][POLICY_METRICS];
};

static const struct {
	const char *name;
	struct idle_config idle;
} contenders[POLICY_CONTENDERS] = {
	[POLICY_SPIN] = {"spin", {.policy = IDLE_SPIN}},
	[POLICY_WINDOW] = {"window", {.policy = IDLE_WINDOW, .window_ns = WINDOW_NS}},
	[POLICY_EVENT] = {"event", {.policy = IDLE_EVENT}},
	[POLICY_ADAPTIVE] = {"adaptive", {.policy = IDLE_ADAPTIVE, .foresees = true}},
	[POLICY_BLIND] = {"blind", {.policy = IDLE_ADAPTIVE}},
};

const char *policy_contender_name(enum policy_contender contender) {
	return contenders[contender].name;
}

uint64_t policy_bench_block_ns(const struct policy_bench *bench) {
	return bench->block_ns;
}

static int start_worker(struct policy_bench *bench) {
	struct worker_config config = {
		.name = "policy",
		.cpu = WORKER_CPU_ANY,
		.clock = &bench->clock,
		.request = policy_device_request,
		.request_ctx = bench->device,
		.polls = {policy_device_poll(bench->device)},
		.poll_count = 1,
	};
	struct cores_constraints places = {.spins = false};
	struct cpu_set chosen;
	struct worker_facts facts;
	int err = cpu_set_get_allowed(&places.allowed);

	if (err == 0)
		err = cores_choose(&places, 1, &chosen);
	if (err == 0)
		config.cpu = cpu_set_next(&chosen, 0);
	if (err == 0)
		err = worker_create(&config, &bench->worker);
	if (err == 0)
		err = worker_start(bench->worker, &facts);
	if (err == 0)
		err = -pthread_getcpuclockid(bench->worker->thread, &bench->cpu_clock);
	if (err == 0)
		bench->block_ns = facts.block_ns;
	return err;
}

int policy_bench_create(struct policy_bench **ret_bench) {
	struct policy_bench *bench = calloc(1, sizeof(*bench));
	int err;

	if (bench == NULL)
		return -ENOMEM;
	// The thread that posts operations must be as exact as the worker.
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	clock_init_tsc(&bench->clock);
	err = policy_device_create(&bench->clock, &bench->device);
	if (err == 0)
		err = start_worker(bench);
	if (err != 0) {
		policy_bench_destroy(bench);
		return err;
	}
	*ret_bench = bench;
	return 0;
}

struct policy_bench *policy_bench_destroy(struct policy_bench *bench) {
	if (bench == NULL)
		return NULL;
	worker_destroy(bench->worker);
	policy_device_destroy(bench->device);
	free(bench);
	return NULL;
}

static int compare_doubles(const void *left, const void *right) {
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

// Sort the values. Return the smallest one that a `share` of the values does not exceed.
static double values_quantile(double *values, uint32_t count, double share) {
	uint32_t place = (uint32_t)(share * count);

	qsort(values, count, sizeof(values[0]), compare_doubles);
	return values[place < count ? place : count - 1];
}

static void judge_samples(
	struct policy_bench *bench,
	const struct policy_sample *samples,
	uint32_t count,
	double values[POLICY_METRICS]
) {
	double *column = bench->column;

	for (uint32_t n = 0; n < count; n++)
		column[n] = (double)samples[n].took_ns / 1e3;
	values[POLICY_TOOK_P50] = values_quantile(column, count, 0.5);
	for (uint32_t n = 0; n < count; n++)
		column[n] = (double)samples[n].late_ns / 1e3;
	values[POLICY_LATE_P50] = values_quantile(column, count, 0.5);
	for (uint32_t n = 0; n < count; n++)
		column[n] = (double)samples[n].added_ns / 1e3;
	values[POLICY_ADDED_P50] = values_quantile(column, count, 0.5);
	values[POLICY_ADDED_P90] = values_quantile(column, count, 0.9);
	values[POLICY_ADDED_P99] =
		count >= P99_SAMPLES ? values_quantile(column, count, 0.99) : NAN;
	values[POLICY_ADDED_P999] =
		count >= P999_SAMPLES ? values_quantile(column, count, 0.999) : NAN;
}

struct reading {
	uint64_t time_ns, cpu_ns;
	struct worker_counters counters;
};

static struct reading read_counters(const struct policy_bench *bench) {
	struct reading reading = {.time_ns = clock_monotonic_ns()};
	struct timespec cpu;

	must(clock_gettime(bench->cpu_clock, &cpu) == 0);
	reading.cpu_ns = (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec;
	worker_counters(bench->worker, &reading.counters);
	return reading;
}

static void judge_readings(
	const struct reading *before,
	const struct reading *after,
	uint32_t ops,
	double values[POLICY_METRICS]
) {
	const struct worker_counters *from = &before->counters, *to = &after->counters;
	double cpu_ns = (double)(after->cpu_ns - before->cpu_ns);
	uint64_t wakes = to->blocks - from->blocks + to->sleeps - from->sleeps;
	uint64_t optimum_ns = to->optimum_ns - from->optimum_ns;

	values[POLICY_CPU_PER_OP] = cpu_ns / 1e3 / ops;
	values[POLICY_CPU_SHARE] = 100 * cpu_ns / (double)(after->time_ns - before->time_ns);
	values[POLICY_WAKES] = (double)wakes / ops;
	values[POLICY_RATIO] =
		optimum_ns > 0 ? (double)(to->paid_ns - from->paid_ns) / (double)optimum_ns : NAN;
}

static void play_slice(
	struct policy_bench *bench,
	const struct policy_cell *cell,
	enum policy_contender contender,
	double values[POLICY_METRICS]
) {
	const struct policy_sample *samples;
	struct reading before, after;

	must(worker_set_idle(bench->worker, &contenders[contender].idle) == 0);
	policy_device_begin(bench->device, bench->worker);
	before = read_counters(bench);
	samples = policy_device_play(bench->device, bench->worker, &bench->trace, cell->arrival);
	after = read_counters(bench);
	judge_samples(bench, samples + cell->warming, cell->counted, values);
	judge_readings(&before, &after, cell->warming + cell->counted, values);
}

static struct policy_spread metric_spread(
	const struct policy_bench *bench, enum policy_contender contender, enum policy_metric metric
) {
	double values[POLICY_SLICES];

	for (int n = 0; n < POLICY_SLICES; n++) {
		values[n] = bench->values[n][contender][metric];
		if (isnan(values[n]))
			return (struct policy_spread){NAN, NAN, NAN};
	}
	qsort(values, POLICY_SLICES, sizeof(values[0]), compare_doubles);
	return (struct policy_spread){
		.median = values[POLICY_SLICES / 2],
		.low = values[INTERVAL_LOW],
		.high = values[INTERVAL_HIGH],
	};
}

// Play one slice with each contender on the same operations, starting with a different contender in
// each round.
static void play_round(struct policy_bench *bench, const struct policy_cell *cell, uint32_t round) {
	double(*values)[POLICY_METRICS] = bench->values[round];

	policy_trace_draw(cell, round + 1, &bench->trace);
	for (uint32_t n = 0; n < POLICY_CONTENDERS; n++) {
		enum policy_contender contender = (round + n) % POLICY_CONTENDERS;

		play_slice(bench, cell, contender, values[contender]);
	}
	for (int n = 0; n < POLICY_CONTENDERS; n++) {
		values[n][POLICY_OF_SPIN] =
			values[n][POLICY_TOOK_P50] / values[POLICY_SPIN][POLICY_TOOK_P50];
		values[n][POLICY_OF_BLOCK] =
			values[n][POLICY_ADDED_P50] / values[POLICY_EVENT][POLICY_ADDED_P50];
	}
}

void policy_bench_measure(
	struct policy_bench *bench, const struct policy_cell *cell, struct policy_result *ret_result
) {
	for (uint32_t round = 0; round < POLICY_SLICES; round++)
		play_round(bench, cell, round);
	ret_result->cell = *cell;
	ret_result->block_ns = bench->block_ns;
	for (enum policy_contender n = 0; n < POLICY_CONTENDERS; n++)
		for (enum policy_metric metric = 0; metric < POLICY_METRICS; metric++)
			ret_result->spreads[n][metric] = metric_spread(bench, n, metric);
}
