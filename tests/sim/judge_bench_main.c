// SPDX-License-Identifier: BSD-3-Clause
// tocsin-judge-bench [--json]: time to judge many communicators, in total and for the longest
// single step, as in the agent's loop.
#include <lib/clock.h>
#include <lib/must.h>

#include <jansson.h>

#include <jobs/judge.h>
#include <jobs/report.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 80000u // ranks of a communicator of all processes
#define PER_NODE 8u
#define SIGNATURES 16
#define STEP_TARGET_MS 20.0 // twice the measured value
#define ROUNDS 3

struct field {
	struct ras_merged_rank *ranks;
	struct ras_merged_comm *comms;
	uint32_t comm_count, rank_count;
	struct ras_comm_signature signatures[SIGNATURES];
};

static void *heap_allocate(void *ctx, size_t size) {
	(void)ctx;
	return calloc(1, size);
}

static void heap_release(void *ctx, void *memory, size_t size) {
	(void)ctx;
	(void)size;
	free(memory);
}

static const struct ras_memory heap = {.allocate = heap_allocate, .release = heap_release};

// Return a rank's state; one late rank makes all others wait, so that every step of the judgement
// runs.
static struct ras_comm_rank rank_of(uint32_t rank, uint32_t process, bool late) {
	struct ras_comm_rank told = {
		.rank = rank,
		.pid = 1000 + process % PER_NODE,
		.launched = late ? 99 : 100,
		.started = late ? 99 : 100,
		.completed = 99,
		.idle_ms = 60000,
		.process_state = JOBS_PROCESS_SLEEPING,
		.knows = RAS_RANK_KNOWS_STARTED | RAS_RANK_KNOWS_COMPLETED |
			 RAS_RANK_KNOWS_SIGNATURES | RAS_RANK_KNOWS_PROCESS,
		.wait_count = RAS_COMM_WAITS,
		.recent = {.first = 85, .count = SIGNATURES},
	};

	for (uint32_t n = 0; n < SIGNATURES; n++)
		told.recent.index[n] = (uint8_t)n;
	return told;
}

// Create communicators of `size` ranks, `ranks` in total; each process is in ranks / RANKS of
// them.
static void fill_field(struct field *field, uint32_t ranks, uint32_t size) {
	field->rank_count = ranks;
	field->comm_count = ranks / size;
	field->ranks = calloc(ranks, sizeof(*field->ranks));
	field->comms = calloc(field->comm_count, sizeof(*field->comms));
	must(field->ranks != NULL && field->comms != NULL);
	for (uint32_t n = 0; n < SIGNATURES; n++)
		field->signatures[n] = (struct ras_comm_signature){.count = n, .root = -1};
	for (uint32_t n = 0; n < ranks; n++) {
		uint32_t process = n % RANKS;

		field->ranks[n].node = 1 + process / PER_NODE;
		field->ranks[n].rank = rank_of(n % size, process, n % size == size / 2);
	}
	for (uint32_t n = 0; n < field->comm_count; n++)
		field->comms[n] = (struct ras_merged_comm){
			.id = {.hash = n + 1},
			.size = size,
			.rank_count = size,
			.ranks = field->ranks + (size_t)n * size,
			.signatures = field->signatures,
			.job = "",
		};
}

static double ms_since(uint64_t start_ns) {
	return (double)(clock_monotonic_ns() - start_ns) / 1e6;
}

struct times {
	double whole_ms, step_ms; // longest step
};

static struct times judge_once(const struct field *field) {
	struct jobs_finding *findings = calloc(field->comm_count, sizeof(*findings));
	struct jobs_snapshot look = {
		.comms = field->comms, .comm_count = field->comm_count, .memory = &heap};
	uint64_t start_ns = clock_monotonic_ns(), step_ns = start_ns;
	struct times times = {0};
	struct jobs_judging *judging;
	bool done = false;

	must(findings != NULL && jobs_judging_create(&look, findings, &judging) == 0);
	while (!done) {
		double ms;

		done = jobs_judging_step(judging, JOBS_STEP_RANKS);
		ms = ms_since(step_ns);
		times.step_ms = ms > times.step_ms ? ms : times.step_ms;
		step_ns = clock_monotonic_ns();
	}
	times.whole_ms = ms_since(start_ns);
	must(findings[0].cause == JOBS_CAUSE_MISSING_ENTER);
	jobs_judging_destroy(judging);
	free(findings);
	return times;
}

// Return the best of several rounds, so that other processes do not disturb the measurement.
static struct times judge_field(uint32_t ranks, uint32_t size) {
	struct field field = {0};
	struct times best = {0};

	fill_field(&field, ranks, size);
	for (uint32_t n = 0; n < ROUNDS; n++) {
		struct times times = judge_once(&field);

		if (n == 0 || times.whole_ms < best.whole_ms)
			best.whole_ms = times.whole_ms;
		if (n == 0 || times.step_ms < best.step_ms)
			best.step_ms = times.step_ms;
	}
	free(field.ranks);
	free(field.comms);
	return best;
}

static json_t *row_of(const char *what, double ms, double target_ms) {
	return json_pack(
		"{s:s,s:f,s:s,s:o,s:o}", "what", what, "value", ms, "unit", "ms", "target",
		target_ms > 0 ? json_real(target_ms) : json_null(), "ok",
		target_ms > 0 ? json_boolean(ms <= target_ms) : json_null()
	);
}

int main(int argc, char **argv) {
	static const struct {
		const char *whole, *step;
		uint32_t ranks, size;
	} fields[] = {
		{"one communicator of 80,000 ranks judged", "its longest step", RANKS, RANKS},
		{"six of 80,000 judged", "their longest step", 6 * RANKS, RANKS},
		{"60,000 of 8 judged", "their longest step", 6 * RANKS, PER_NODE},
	};
	bool as_json = argc > 1 && strcmp(argv[1], "--json") == 0;
	json_t *rows = json_array();

	for (size_t n = 0; n < sizeof(fields) / sizeof(fields[0]); n++) {
		struct times times = judge_field(fields[n].ranks, fields[n].size);

		json_array_append_new(rows, row_of(fields[n].whole, times.whole_ms, 0));
		json_array_append_new(rows, row_of(fields[n].step, times.step_ms, STEP_TARGET_MS));
		if (!as_json)
			printf("%-42s %8.1f ms, in steps of at most %.1f ms\n", fields[n].whole,
			       times.whole_ms, times.step_ms);
	}
	if (as_json)
		json_dumpf(rows, stdout, JSON_COMPACT);
	json_decref(rows);
	return 0;
}
