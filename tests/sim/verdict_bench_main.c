// SPDX-License-Identifier: BSD-3-Clause
// tocsin-verdict-bench [--json]: cost of a wake-up of the verdict engine, by the amount of
// evidence.
//
// Every peer was suspected once, so that the engine keeps some evidence on each.
#include "micro.h"

#include <lib/clock.h>
#include <lib/must.h>
#include <verdict/engine.h>

#include <stdlib.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define FEW 1000
#define MANY 10000

struct bench_engine {
	struct verdict_engine *engine;
	uint64_t now_ns;
};

static void *bench_allocate(void *ctx, size_t size) {
	(void)ctx;
	return calloc(1, size);
}

static void bench_release(void *ctx, void *memory, size_t size) {
	(void)ctx;
	(void)size;
	free(memory);
}

static void suspect_and_clear(struct bench_engine *bench, uint64_t id, enum ras_state state) {
	struct verdict_peer_update peer = {
		.id = id,
		.incarnation = ras_incarnation(1, 0),
		.state = state,
		.cause = RAS_CAUSE_SILENT,
		.host = "",
		.leaf = "",
	};

	must(verdict_peer_update(bench->engine, bench->now_ns, &peer) == 0);
}

static struct bench_engine *bench_of(uint32_t peers) {
	static const struct ras_memory memory = {
		.allocate = bench_allocate, .release = bench_release};
	static const struct verdict_ops ops = {.changed = NULL};
	static struct bench_engine engines[2];
	struct bench_engine *bench = &engines[peers == MANY];
	const struct verdict_config config = {.self = 1};

	if (bench->engine != NULL)
		return bench;
	bench->now_ns = 1000 * RAS_NS_PER_SEC;
	must(verdict_engine_create(&config, &memory, &ops, NULL, &bench->engine) == 0);
	for (uint32_t n = 1; n <= peers; n++)
		suspect_and_clear(bench, n, RAS_ALIVE);
	for (uint32_t n = 2; n <= peers; n++) {
		suspect_and_clear(bench, n, RAS_SUSPECT);
		bench->now_ns += RAS_NS_PER_MS;
		suspect_and_clear(bench, n, RAS_ALIVE);
	}
	for (uint32_t n = 0; n < 100; n++) {
		bench->now_ns += 10 * RAS_NS_PER_SEC;
		verdict_tick(bench->engine, bench->now_ns);
	}
	return bench;
}

static uint64_t wakes(uint32_t peers, uint64_t rounds) {
	struct bench_engine *bench = bench_of(peers);
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++)
		verdict_tick(bench->engine, bench->now_ns += RAS_NS_PER_MS);
	return clock_monotonic_ns() - start_ns;
}

// Let one observer report a new observation of a peer, and wake the engine.
static uint64_t observations(uint32_t peers, uint64_t rounds) {
	struct bench_engine *bench = bench_of(peers);
	struct observation observation = {
		.observer = 3,
		.subject = 7,
		.incarnation = ras_incarnation(1, 0),
		.kind = OBSERVATION_GOOD,
		.reach = VERDICT_REACH_ANSWERS,
		.own_good = true,
		.device = "dev0",
		.peer_device = "dev0",
	};
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++) {
		bench->now_ns += RAS_NS_PER_MS;
		must(verdict_observation(bench->engine, bench->now_ns, &observation) == 0);
		verdict_tick(bench->engine, bench->now_ns);
	}
	return clock_monotonic_ns() - start_ns;
}

// Suspect one peer, and let it refute that.
static uint64_t suspicions(uint32_t peers, uint64_t rounds) {
	struct bench_engine *bench = bench_of(peers);
	uint64_t start_ns = clock_monotonic_ns();

	for (uint64_t n = 0; n < rounds; n++) {
		suspect_and_clear(bench, 2 + n % (peers - 1), RAS_SUSPECT);
		bench->now_ns += RAS_NS_PER_MS;
		suspect_and_clear(bench, 2 + n % (peers - 1), RAS_ALIVE);
		verdict_tick(bench->engine, bench->now_ns);
	}
	return clock_monotonic_ns() - start_ns;
}

static uint64_t wake_of_few(uint64_t rounds) {
	return wakes(FEW, rounds);
}

static uint64_t wake_of_many(uint64_t rounds) {
	return wakes(MANY, rounds);
}

static uint64_t observation_of_few(uint64_t rounds) {
	return observations(FEW, rounds);
}

static uint64_t observation_of_many(uint64_t rounds) {
	return observations(MANY, rounds);
}

static uint64_t suspicion_of_few(uint64_t rounds) {
	return suspicions(FEW, rounds);
}

static uint64_t suspicion_of_many(uint64_t rounds) {
	return suspicions(MANY, rounds);
}

// clang-format off
static const struct micro_row rows[] = {
	{"wake of 10,000, nothing changed", wake_of_many, "the same of 1,000", wake_of_few, "ns", MICRO_TARGET_RATIO, 2},
	{"wake of 10,000, one observation", observation_of_many, "the same of 1,000", observation_of_few, "ns", MICRO_TARGET_RATIO, 2},
	{"suspicion and refutation, of 10,000", suspicion_of_many, "the same of 1,000", suspicion_of_few, "ns", MICRO_TARGET_RATIO, 2},
};
// clang-format on

int main(int argc, char **argv) {
	return micro_run("verdict", rows, COUNT_OF(rows), argc, argv);
}
