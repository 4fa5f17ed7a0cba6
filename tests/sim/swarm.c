// SPDX-License-Identifier: BSD-3-Clause
#include "swarm.h"

#include "random.h"

#include <lib/must.h>

#include <inttypes.h>
#include <string.h>

#define SWARM_FAULTS_MAX 8
#define SWARM_SPAN_NS (15 * WORLD_SEC)
#define SWARM_PARTS_MAX 3
#define SWARM_BESIDE_MAX 4
#define SWARM_PART_MIN 5 // smallest side of a partition, in percent
#define SWARM_PART_MAX 60
#define SWARM_PART_MIN_MS UINT64_C(1000)
#define SWARM_PART_DOUBLINGS 11
#define SWARM_PART_MAX_MS UINT64_C(600000)
#define SWARM_NODES_MIN 3

// Draw some of the usual faults, on any node.
static void swarm_draw_any(struct run_options *run, uint64_t *random) {
	uint32_t count = 1 + random_below(random, SWARM_FAULTS_MAX);

	for (uint32_t n = 0; n < count; n++)
		scenario_draw_fault(
			random, run->nodes, run->profile->dead_ns, SWARM_SPAN_NS,
			&run->faults[run->fault_count++]
		);
}

static void swarm_draw_beside(struct run_options *run, uint64_t *random) {
	uint32_t count = random_below(random, SWARM_BESIDE_MAX);

	for (uint32_t n = 0; n < count; n++)
		scenario_draw_fault(
			random, run->nodes, run->profile->dead_ns, SWARM_SPAN_NS,
			&run->faults[run->fault_count++]
		);
}

// Draw a percentage that covers at least one host, but not all.
static uint32_t swarm_draw_percent(const struct run_options *run, uint64_t *random) {
	uint32_t hosts = run->hosts > 0 ? run->hosts : run->nodes;
	uint32_t least = (100 + hosts - 1) / hosts;
	uint32_t low = least > SWARM_PART_MIN ? least : SWARM_PART_MIN;

	return (uint32_t)random_between(random, low, low > SWARM_PART_MAX ? low : SWARM_PART_MAX);
}

// Draw a series of partitions of any size, for a second or for minutes. Packets are dropped or
// TCP is rejected between the sides. Half of the runs partition off the same hosts each time,
// half others each time. A few other faults are added.
static void swarm_draw_parts(struct run_options *run, uint64_t *random) {
	uint32_t count = 1 + random_below(random, SWARM_PARTS_MAX);
	bool shifts = random_below(random, 2) == 0;
	uint64_t at_ns = 0;

	for (uint32_t n = 0; n < count; n++) {
		uint64_t longest_ms = SWARM_PART_MIN_MS
				      << random_below(random, SWARM_PART_DOUBLINGS);
		struct fault *fault = &run->faults[run->fault_count++];

		if (longest_ms > SWARM_PART_MAX_MS)
			longest_ms = SWARM_PART_MAX_MS;
		at_ns += random_between(random, 100, 15000) * WORLD_MS;
		*fault = (struct fault){
			.kind = random_below(random, 2) == 0 ? FAULT_SPLIT : FAULT_FENCE,
			.node = shifts ? random_below(random, run->nodes) : 0,
			.value = swarm_draw_percent(run, random),
			.at_ns = at_ns,
			.duration_ns =
				random_between(random, longest_ms / 2, longest_ms) * WORLD_MS,
		};
		at_ns += fault->duration_ns;
	}
	swarm_draw_beside(run, random);
}

// Restart some or all nodes, in any order. They leave gracefully or not, and some lose their
// state directory.
static void swarm_draw_restarts(struct run_options *run, uint64_t *random) {
	static const enum fault_kind kinds[] = {
		FAULT_LEAVE,  FAULT_LEAVE, FAULT_KILL,	FAULT_KILL,
		FAULT_FORGET, FAULT_STALE, FAULT_CLONE,
	};
	uint32_t percent = random_below(random, 3) == 0 ? 100 : 10 + random_below(random, 90);
	uint64_t span_ms = UINT64_C(100) << random_below(random, 9);

	for (uint32_t n = 0; n < run->nodes && run->fault_count < RUN_FAULTS_MAX; n++) {
		if (random_below(random, 100) >= percent)
			continue;
		run->faults[run->fault_count++] = (struct fault){
			.kind = kinds[random_below(random, sizeof(kinds) / sizeof(kinds[0]))],
			.node = n,
			.value = random_below(random, run->nodes),
			.at_ns = random_between(random, 0, span_ms) * WORLD_MS,
			.duration_ns = random_between(random, 200, span_ms + 1000) * WORLD_MS,
		};
	}
	if (run->fault_count == 0)
		swarm_draw_any(run, random);
}

// All seeds end for good, and some other nodes restart. A node without a state directory is found
// by the remaining members.
static void swarm_draw_no_seeds(struct run_options *run, uint64_t *random) {
	static const enum fault_kind ends[] = {FAULT_KILL, FAULT_LEAVE, FAULT_HOST};
	static const enum fault_kind kinds[] = {FAULT_LEAVE, FAULT_KILL, FAULT_STALE};
	uint32_t seeds = run->nodes < WORLD_SEEDS ? run->nodes : WORLD_SEEDS;
	uint64_t span_ms = UINT64_C(100) << random_below(random, 9);

	must(run->nodes > 0);
	run->remember = true;
	run->young = false; // a node without remembered members and without a seed finds nobody
	for (uint32_t n = 0; n < seeds; n++)
		run->faults[run->fault_count++] = (struct fault){
			.kind = ends[random_below(random, sizeof(ends) / sizeof(ends[0]))],
			.node = n * run->nodes / seeds,
			.at_ns = random_between(random, 0, span_ms) * WORLD_MS,
		};
	for (uint32_t n = 0; n < SWARM_FAULTS_MAX; n++) {
		uint32_t node = random_below(random, run->nodes);

		if (world_is_seed(run->nodes, node))
			node = (node + 1) % run->nodes;
		run->faults[run->fault_count++] = (struct fault){
			.kind = kinds[random_below(random, sizeof(kinds) / sizeof(kinds[0]))],
			.node = node,
			.at_ns = random_between(random, 0, span_ms + 5000) * WORLD_MS,
			.duration_ns = random_between(random, 200, span_ms + 1000) * WORLD_MS,
		};
	}
}

// Draw two partitions in sequence, mostly of overlapping hosts, and nodes that join around the
// end of the first. Only one side may know a joiner by then, or the partition may end before it
// is noticed.
static void swarm_draw_between(struct run_options *run, uint64_t *random) {
	uint32_t joiners = 1 + random_below(random, run->nodes < 6 ? run->nodes - 1 : 5);
	uint32_t first = swarm_draw_percent(run, random);
	uint32_t second = swarm_draw_percent(run, random);
	uint64_t gap_ms = UINT64_C(50) << random_below(random, 11);
	uint64_t begin_ms = random_between(random, 5000, 10000);
	uint64_t end_ms = begin_ms + random_between(random, gap_ms / 2, gap_ms);
	uint64_t again_ms = end_ms + random_below(random, 4) * random_below(random, 1000);

	for (uint32_t n = 0; n < 2; n++)
		run->faults[run->fault_count++] = (struct fault){
			.kind = random_below(random, 2) == 0 ? FAULT_SPLIT : FAULT_FENCE,
			.node = random_below(random, 4) > 0 ? 0 : random_below(random, run->nodes),
			.value = (n == 0) == (first < second) ? first : second,
			.at_ns = (n == 0 ? begin_ms : again_ms) * WORLD_MS,
			.duration_ns = n == 0 ? (end_ms - begin_ms) * WORLD_MS
					      : random_between(random, 20000, 400000) * WORLD_MS,
		};
	for (uint32_t n = 0; n < joiners; n++) {
		static const enum fault_kind kinds[] = {FAULT_KILL, FAULT_LEAVE, FAULT_FORGET};
		uint64_t off_ms = random_below(random, 4000);
		uint64_t join_ms = random_between(random, begin_ms - 200, again_ms + 1000);

		run->faults[run->fault_count++] = (struct fault){
			.kind = kinds[random_below(random, sizeof(kinds) / sizeof(kinds[0]))],
			.node = run->nodes - 1 - n,
			.at_ns = off_ms * WORLD_MS,
			.duration_ns = (join_ms - off_ms) * WORLD_MS,
		};
	}
}

// All nodes have just joined, and some are lost before many have heard of each other.
static void swarm_draw_young(struct run_options *run, uint64_t *random) {
	static const enum fault_kind kinds[] = {
		FAULT_KILL, FAULT_KILL, FAULT_KILL, FAULT_HOST, FAULT_HOST, FAULT_FREEZE,
	};
	uint32_t count = 1 + random_below(random, run->nodes < 8 ? run->nodes : 8);
	uint64_t span_ms = UINT64_C(30) << random_below(random, 8);
	bool together = random_below(random, 2) == 0;
	uint64_t at_ns = random_between(random, 0, span_ms) * WORLD_MS;

	run->young = true;
	for (uint32_t n = 0; n < count; n++) {
		struct fault *fault = &run->faults[run->fault_count++];

		*fault = (struct fault){
			.kind = kinds[random_below(random, sizeof(kinds) / sizeof(kinds[0]))],
			.node = random_below(random, run->nodes),
			.at_ns = together ? at_ns : random_between(random, 0, span_ms) * WORLD_MS,
		};
		// Without a seed, a restarted node finds nobody, since it had no time to remember
		// members.
		if (fault->kind == FAULT_FREEZE || world_is_seed(run->nodes, fault->node) ||
		    random_below(random, 3) == 0)
			fault->duration_ns = random_between(random, 200, 40000) * WORLD_MS;
	}
	if (random_below(random, 2) == 0)
		run->faults[run->fault_count++] = (struct fault){
			.kind = random_below(random, 2) == 0 ? FAULT_SPLIT : FAULT_FENCE,
			.node = random_below(random, run->nodes),
			.value = swarm_draw_percent(run, random),
			.at_ns = random_between(random, 0, span_ms) * WORLD_MS,
			.duration_ns = random_between(random, 500, 120000) * WORLD_MS,
		};
	if (random_below(random, 3) == 0)
		swarm_draw_parts(run, random);
}

static void swarm_draw(const struct run_options *base, uint64_t seed, struct run_options *ret_run) {
	static void (*const draws[])(struct run_options * run, uint64_t * random) = {
		swarm_draw_any,	     swarm_draw_any,	  swarm_draw_any,      swarm_draw_any,
		swarm_draw_any,	     swarm_draw_any,	  swarm_draw_parts,    swarm_draw_parts,
		swarm_draw_parts,    swarm_draw_restarts, swarm_draw_restarts, swarm_draw_restarts,
		swarm_draw_no_seeds, swarm_draw_young,	  swarm_draw_young,    swarm_draw_between,
	};
	uint64_t random = random_stream(seed, 3);

	*ret_run = *base;
	ret_run->scenario = &scenario_of_faults;
	ret_run->seed = seed;
	ret_run->explain = false;
	ret_run->fault_count = 0;
	ret_run->remember = random_below(&random, 2) == 0;
	draws[random_below(&random, sizeof(draws) / sizeof(draws[0]))](ret_run, &random);
}

static bool swarm_breaks(const struct run_options *run, struct result *ret_result) {
	return run_play_apart(run, ret_result) == 0 && ret_result->broken;
}

// Try the run without `count` faults, from the fault `first` on.
static bool
swarm_drop_some(struct run_options *run, uint32_t first, uint32_t count, struct result *result) {
	struct run_options fewer = *run;
	struct result found;

	if (count > fewer.fault_count - first)
		count = fewer.fault_count - first;
	if (count == fewer.fault_count)
		return false;
	memmove(&fewer.faults[first], &fewer.faults[first + count],
		(fewer.fault_count - first - count) * sizeof(fewer.faults[0]));
	fewer.fault_count -= count;
	if (!swarm_breaks(&fewer, &found))
		return false;
	*run = fewer;
	*result = found;
	return true;
}

// Drop halves first, since most of hundreds of restarts are irrelevant; then single faults.
static bool swarm_drop_faults(struct run_options *run, struct result *result) {
	bool dropped = false;

	for (uint32_t count = (run->fault_count + 1) / 2; count > 0; count /= 2) {
		uint32_t first = 0;

		while (first < run->fault_count) {
			if (swarm_drop_some(run, first, count, result))
				dropped = true;
			else
				first += count;
		}
	}
	return dropped;
}

static bool swarm_drop_nodes(struct run_options *run, struct result *result) {
	static const uint32_t parts[][2] = {{1, 2}, {3, 4}, {7, 8}};

	for (size_t n = 0; n < sizeof(parts) / sizeof(parts[0]); n++) {
		struct run_options fewer = *run;
		struct result found;

		fewer.nodes = run->nodes * parts[n][0] / parts[n][1];
		if (fewer.nodes < SWARM_NODES_MIN || fewer.nodes == run->nodes)
			continue;
		if (fewer.hosts > fewer.nodes)
			fewer.hosts = fewer.nodes;
		for (uint32_t f = 0; f < fewer.fault_count; f++) {
			fewer.faults[f].node %= fewer.nodes;
			if (fault_names_another(fewer.faults[f].kind))
				fewer.faults[f].value %= fewer.nodes;
		}
		if (swarm_breaks(&fewer, &found)) {
			*run = fewer;
			*result = found;
			return true;
		}
	}
	return false;
}

static void swarm_tell(const struct run_options *run, const struct result *result, FILE *to) {
	char command[RUN_COMMAND_BYTES];

	run_command(run, command);
	fprintf(to, "seed %" PRIu64 " breaks: %s\n  tocsin-sim %s\n", run->seed,
		result->broken_text, command);
	fflush(to);
}

static void swarm_show(struct run_options *run, const struct result *before, FILE *to) {
	struct result result = *before;
	char command[RUN_COMMAND_BYTES];
	uint32_t nodes = run->nodes;
	uint32_t faults = run->fault_count;
	bool smaller = true;

	while (smaller) {
		smaller = swarm_drop_faults(run, &result);
		smaller = swarm_drop_nodes(run, &result) || smaller;
	}
	run_command(run, command);
	fprintf(to, "shrunk from %u nodes and %u faults to %u and %u:\n  %s\n  tocsin-sim %s\n",
		nodes, faults, run->nodes, run->fault_count, result.broken_text, command);
	fflush(to);
	run->explain = true;
	run_play_apart(run, &result);
}

int swarm_play(const struct run_options *options, uint32_t count, FILE *to, uint32_t *ret_broken) {
	uint32_t broken = 0;

	for (uint32_t n = 0; n < count; n++) {
		struct run_options run;
		struct result result;
		int err;

		swarm_draw(options, options->seed + n, &run);
		run.progress = false;
		err = run_play_apart(&run, &result);
		if (err != 0)
			return err;
		if (options->progress) {
			fprintf(stderr, "\rswarm: %u of %u ", n + 1, count);
			fflush(stderr);
		}
		if (!result.broken)
			continue;
		if (result.is_known_fault) {
			swarm_tell(&run, &result, to);
			continue;
		}
		// Print the run before shrinking it, in case time runs out.
		swarm_tell(&run, &result, to);
		if (broken++ == 0)
			swarm_show(&run, &result, to);
	}
	if (options->progress)
		fprintf(stderr, "\n");
	*ret_broken = broken;
	return 0;
}
