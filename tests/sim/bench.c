// SPDX-License-Identifier: BSD-3-Clause
#include "bench.h"

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_TEXT_BYTES 64
#define BENCH_MINUTES 60
#define BENCH_DAY_MINUTES 1440
#define BENCH_DAY_WALL_S 900
#define BENCH_GIB (1024.0 * 1024 * 1024)

// One simulated run; several rows of the table may read figures of the same run.
struct bench_plan {
	const char *scenario;
	const char *profile;
	uint32_t nodes;
	uint32_t minutes;
	bool lasting; // the caller chooses the length in minutes
};

struct bench_run {
	uint32_t minutes;
	struct result result;
};

enum bench_run_name {
	RUN_CRASH,
	RUN_SILENT,
	RUN_STORM,
	RUN_PARTITION,
	RUN_PAUSE,
	RUN_QUIET,
	RUN_SLOW,
	RUN_MASS,
	RUN_RELAY,
	RUN_CRASH_1000,
	RUN_SILENT_1000,
	RUN_PAUSE_1000,
	RUN_QUIET_1000,
	RUN_NCCL_CRASH,
	RUN_NCCL_SILENT,
	RUN_NCCL_PAUSE,
	RUN_NCCL_QUIET,
	RUN_COUNT,
	RUN_NONE = RUN_COUNT,
};

static const struct bench_plan bench_plans[RUN_COUNT] = {
	[RUN_CRASH] = {"crash", "fast", 10000, 0, false},
	[RUN_SILENT] = {"silent", "fast", 10000, 0, false},
	[RUN_STORM] = {"join-storm", "fast", 10000, 0, false},
	[RUN_PARTITION] = {"partition", "fast", 10000, 0, false},
	[RUN_PAUSE] = {"pause-long", "fast", 10000, 0, false},
	[RUN_QUIET] = {"quiet", "fast", 10000, 1, false},
	[RUN_SLOW] = {"slow-members", "fast", 1000, BENCH_MINUTES, true},
	[RUN_MASS] = {"mass", "fast", 1000, 0, false},
	[RUN_RELAY] = {"relay-faults", "fast", 1000, 0, false},
	[RUN_CRASH_1000] = {"crash", "fast", 1000, 0, false},
	[RUN_SILENT_1000] = {"silent", "fast", 1000, 0, false},
	[RUN_PAUSE_1000] = {"pause-long", "fast", 1000, 0, false},
	[RUN_QUIET_1000] = {"quiet", "fast", 1000, 1, false},
	[RUN_NCCL_CRASH] = {"crash", "nccl", 1000, 0, false},
	[RUN_NCCL_SILENT] = {"silent", "nccl", 1000, 0, false},
	[RUN_NCCL_PAUSE] = {"pause-long", "nccl", 1000, 0, false},
	[RUN_NCCL_QUIET] = {"quiet", "nccl", 1000, 1, false},
};

// One row: a figure of one run, beside the same figure of another run, and the target it must
// meet.
struct bench_row {
	const char *what;
	enum bench_run_name run;
	enum bench_run_name yardstick;
	size_t offset;
	const char *unit;
	double scale; // value = figure / scale
	double target;
	bool at_least; // the target is a lower bound
};

#define FIGURE(member) offsetof(struct result, member)

static const struct bench_row bench_rows[] = {
	{"killed: dead everywhere, 10,000", RUN_CRASH, RUN_NONE, FIGURE(all_dead_s), "s", 1, 2, 0},
	{"silent: dead everywhere, 10,000", RUN_SILENT, RUN_NONE, FIGURE(all_dead_s), "s", 1, 10,
	 0},
	{"killed: dead everywhere, 1,000", RUN_CRASH_1000, RUN_NCCL_CRASH, FIGURE(all_dead_s), "s",
	 1, 2, 0},
	{"silent: dead everywhere, 1,000", RUN_SILENT_1000, RUN_NCCL_SILENT, FIGURE(all_dead_s),
	 "s", 1, 10, 0},
	{"slow members: false deaths", RUN_SLOW, RUN_NONE, FIGURE(false_dead), "", 1, 0, 0},
	{"partition healed: one view, 10,000", RUN_PARTITION, RUN_NONE, FIGURE(converged_s), "s", 1,
	 5, 0},
	{"partition: false deaths", RUN_PARTITION, RUN_NONE, FIGURE(false_dead), "", 1, 0, 0},
	{"flood depth of a death, 10,000", RUN_CRASH, RUN_NONE, FIGURE(flood_hops_max), "hops", 1,
	 16, 0},
	{"flood depth of a death, 1,000", RUN_CRASH_1000, RUN_NCCL_CRASH, FIGURE(flood_hops_max),
	 "hops", 1, 12, 0},
	{"links changed by a join, 10,000", RUN_STORM, RUN_NONE, FIGURE(links_changed_per_join), "",
	 1, 26.6, 0},
	{"overlay traffic a node, 10,000", RUN_QUIET, RUN_NONE, FIGURE(bytes_mean), "B/s", 1, 1000,
	 0},
	{"overlay traffic a node, 1,000", RUN_QUIET_1000, RUN_NCCL_QUIET, FIGURE(bytes_mean), "B/s",
	 1, 1000, 0},
	{"state of the whole ring, 10,000", RUN_QUIET, RUN_NONE, FIGURE(collect_ms_max), "ms", 1,
	 200, 0},
	{"state of the whole ring, 1,000", RUN_QUIET_1000, RUN_NCCL_QUIET, FIGURE(collect_ms_max),
	 "ms", 1, 200, 0},
	{"join through 3 seeds: one view, 10,000", RUN_STORM, RUN_NONE, FIGURE(joined_s), "s", 1,
	 10, 0},
	{"paused, dead, back: alive everywhere", RUN_PAUSE, RUN_NONE, FIGURE(rejoined_s), "s", 1, 3,
	 0},
	{"the same, 1,000", RUN_PAUSE_1000, RUN_NCCL_PAUSE, FIGURE(rejoined_s), "s", 1, 3, 0},
	{"paused: false deaths", RUN_PAUSE, RUN_NONE, FIGURE(false_dead), "", 1, 0, 0},
	{"a tenth dark: dead everywhere, 1,000", RUN_MASS, RUN_NONE, FIGURE(all_dead_s), "s", 1,
	 NAN, 0},
	{"relay: delivered between the living", RUN_RELAY, RUN_NONE, FIGURE(relay_delivered_pct),
	 "%", 1, 100, 1},
	{"relay: refused for the dead", RUN_RELAY, RUN_NONE, FIGURE(relay_nak_pct), "%", 1, 100, 1},
	{"memory of an instance, 10,000 peers", RUN_QUIET, RUN_NONE, FIGURE(instance_bytes), "KiB",
	 1024, 1024, 0},
	{"memory of 10,000 nodes", RUN_QUIET, RUN_NONE, FIGURE(world_bytes), "GiB", BENCH_GIB, 16,
	 0},
	{"a minute of 10,000 nodes: wall time", RUN_QUIET, RUN_NONE, FIGURE(wall_s), "s", 1, 20, 0},
	{"24 h of 1,000 nodes: wall time", RUN_SLOW, RUN_NONE, FIGURE(wall_s), "s", 1,
	 BENCH_DAY_WALL_S, 0},
};

#define BENCH_ROWS (sizeof(bench_rows) / sizeof(bench_rows[0]))

static int bench_run(
	const struct run_options *options, const struct bench_plan *plan, struct bench_run *ret_run
) {
	struct run_options wanted = {
		.scenario = scenario_find(plan->scenario),
		.profile = ras_profile_find(plan->profile),
		.nodes = plan->nodes,
		.seed = options->seed,
		.length_ns = (uint64_t)plan->minutes * 60 * WORLD_SEC,
		.explain = true,
		.progress = options->progress,
	};

	if (plan->lasting && options->length_ns > 0)
		wanted.length_ns = options->length_ns;
	ret_run->minutes = (uint32_t)(wanted.length_ns / (60 * WORLD_SEC));
	return run_play_apart(&wanted, &ret_run->result);
}

static double bench_figure(const struct bench_run *runs, enum bench_run_name name, size_t offset) {
	double value;

	if (name == RUN_NONE || runs[name].result.broken)
		return NAN;
	memcpy(&value, (const char *)&runs[name].result + offset, sizeof(value));
	return value;
}

struct bench_value {
	double value, yardstick, ratio;
	int ok; // -1: the row has no target
};

static struct bench_value bench_value(const struct bench_run *runs, const struct bench_row *row) {
	struct bench_value value = {
		.value = bench_figure(runs, row->run, row->offset) / row->scale,
		.yardstick = bench_figure(runs, row->yardstick, row->offset) / row->scale,
		.ok = -1,
	};

	// The wall time of a day is extrapolated from the part of a day that was run.
	if (row->run == RUN_SLOW && row->offset == FIGURE(wall_s) && runs[RUN_SLOW].minutes > 0)
		value.value *= (double)BENCH_DAY_MINUTES / runs[RUN_SLOW].minutes;
	value.ratio = value.value / value.yardstick;
	if (!isnan(row->target))
		value.ok = row->at_least ? value.value >= row->target : value.value <= row->target;
	return value;
}

static void bench_print(const struct bench_run *runs, FILE *to) {
	fprintf(to, "%-40s %12s %12s %10s %s\n", "fast", "reached", "nccl", "target", "");
	for (size_t n = 0; n < BENCH_ROWS; n++) {
		const struct bench_row *row = &bench_rows[n];
		struct bench_value value = bench_value(runs, row);
		char yardstick[BENCH_TEXT_BYTES] = "";
		char target[BENCH_TEXT_BYTES] = "";

		if (!isnan(value.yardstick))
			snprintf(yardstick, sizeof(yardstick), "%.2f", value.yardstick);
		if (!isnan(row->target))
			snprintf(
				target, sizeof(target), "%s %g",
				row->at_least ? ">=" : "<=", row->target
			);
		fprintf(to, "%-40s %12.2f %12s %10s %-5s %s\n", row->what, value.value, yardstick,
			target, row->unit,
			value.ok < 0 ? ""
			: value.ok   ? "ok"
				     : "MISSED");
	}
	fprintf(to, "slow members: %u virtual minutes; a day's wall time is told from these\n",
		runs[RUN_SLOW].minutes);
}

static json_t *bench_real(double value) {
	return isnan(value) || isinf(value) ? json_null() : json_real(value);
}

static int bench_print_json(const struct bench_run *runs, FILE *to) {
	json_t *rows = json_array();
	json_t *object;
	char *text;

	for (size_t n = 0; n < BENCH_ROWS; n++) {
		const struct bench_row *row = &bench_rows[n];
		struct bench_value value = bench_value(runs, row);

		json_array_append_new(
			rows, json_pack(
				      "{s:s, s:o, s:s, s:o, s:o, s:o, s:o}", "what", row->what,
				      "value", bench_real(value.value), "unit", row->unit,
				      "yardstick", bench_real(value.yardstick), "ratio",
				      bench_real(value.ratio), "target", bench_real(row->target),
				      "ok", value.ok < 0 ? json_null() : json_boolean(value.ok)
			      )
		);
	}
	object = json_pack("{s:s, s:o}", "bench", "sim", "rows", rows);
	text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(object);
	if (text == NULL)
		return -ENOMEM;
	fprintf(to, "%s\n", text);
	free(text);
	return 0;
}

int bench_play(const struct run_options *options, bool json, FILE *to, bool *ret_met) {
	struct bench_run runs[RUN_COUNT];
	bool met = true;
	int err = 0;

	for (uint32_t n = 0; n < RUN_COUNT && err == 0; n++)
		err = bench_run(options, &bench_plans[n], &runs[n]);
	if (err != 0)
		return err;
	for (size_t n = 0; n < BENCH_ROWS; n++)
		met = met && bench_value(runs, &bench_rows[n]).ok != 0;
	*ret_met = met;
	if (json)
		return bench_print_json(runs, to);
	bench_print(runs, to);
	return 0;
}
