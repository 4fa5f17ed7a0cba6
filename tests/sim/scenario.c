// SPDX-License-Identifier: BSD-3-Clause
#include "scenario.h"

#include "random.h"
#include "run.h"
#include "scenario_parts.h"

#include <string.h>

const struct scenario scenarios[] = {
	{.name = "tiny",
	 .summary = "1 to 4 nodes: one is killed, comes back, another leaves",
	 .play = play_tiny,
	 .joins = true,
	 .nodes_max = 4,
	 .lives = true,
	 .limit_s = 40},
	{.name = "join-storm",
	 .summary = "all join through 3 seeds within a second; then one more",
	 .finish = finish_one_more,
	 .joins = true,
	 .spare = 1,
	 .lives = true,
	 .limit_s = 10},
	{.name = "crash",
	 .summary = "one process is killed",
	 .play = play_crash,
	 .lives = true,
	 .limit_s = 10},
	{.name = "silent",
	 .summary = "one host goes dark",
	 .play = play_silent,
	 .lives = true,
	 .limit_s = 20},
	{.name = "host-down",
	 .summary = "a host of 8 nodes goes dark",
	 .play = play_silent,
	 .per_host = 8,
	 .lives = true,
	 .limit_s = 20},
	{.name = "pause-short",
	 .summary = "some are stopped, for less than it takes to be dead",
	 .play = play_pause_short,
	 .lives = true,
	 .limit_s = 10},
	{.name = "pause-long",
	 .summary = "one is stopped until all hold it for dead, then resumes",
	 .play = play_pause_long,
	 .lives = true,
	 .limit_s = 5},
	{.name = "slow-members",
	 .summary = "5 % pause 1 to 6 s once a minute, 1 % of messages stall for 2 s",
	 .play = play_slow_members,
	 .lives = true,
	 .limit_s = 20,
	 .seconds = 600},
	{.name = "partition",
	 .summary = "half the hosts do not reach the others for 60 s",
	 .play = play_partition,
	 .lives = true,
	 .limit_s = 5},
	{.name = "one-way",
	 .summary = "one host hears nothing for a while, another is not heard",
	 .play = play_one_way,
	 .lives = true,
	 .limit_s = 40},
	{.name = "flapping",
	 .summary = "one process dies and restarts, one host comes and goes",
	 .play = play_flapping,
	 .lives = true,
	 .limit_s = 20},
	{.name = "mass",
	 .summary = "a tenth of the hosts goes dark at once",
	 .play = play_mass,
	 .lives = true,
	 .limit_s = 30},
	{.name = "rolling-restart",
	 .summary = "one after the other leaves and starts again",
	 .play = play_rolling_restart,
	 .lives = true,
	 .limit_s = 10},
	{.name = "leave",
	 .summary = "some say goodbye",
	 .play = play_leave,
	 .lives = true,
	 .limit_s = 10},
	{.name = "relay-faults",
	 .summary = "messages and transfers, while a node dies and paths are cut",
	 .play = play_relay_faults,
	 .lives = true,
	 .limit_s = 20,
	 .seconds = 40},
	{.name = "collective-faults",
	 .summary = "collectives, while nodes die and pause",
	 .play = play_collective_faults,
	 .lives = true,
	 .limit_s = 20,
	 .seconds = 40},
	{.name = "mixed",
	 .summary = "faults of all kinds, with messages and collectives",
	 .play = play_mixed,
	 .limit_s = 60,
	 .seconds = 120},
	{.name = "firewall-reject",
	 .summary = "one node rejects new connections and loses its old ones",
	 .play = play_firewall_reject,
	 .lives = true,
	 .limit_s = 20},
	{.name = "version-mix",
	 .summary = "two versions in one ring; one that nobody speaks is refused",
	 .prepare = prepare_version_mix,
	 .play = play_version_mix,
	 .joins = true,
	 .spare = 1,
	 .lives = true,
	 .limit_s = 20},
	{.name = "jobs",
	 .summary = "a job on all nodes fails in each way, and everybody's ranks are asked for",
	 .play = play_jobs,
	 .lives = true,
	 .limit_s = 20},
	{.name = "verdicts",
	 .summary = "each fault alone and in pairs, against what the others call it",
	 .play = play_verdicts,
	 .finish = finish_verdicts,
	 .limit_s = 60},
	{.name = "verdicts-slow",
	 .summary = "slow-members and partitions that brake, and nobody is to be drained",
	 .play = play_verdicts_slow,
	 .finish = finish_verdicts,
	 .lives = true,
	 .limit_s = 20,
	 .seconds = 600},
	{.name = "verdicts-splits",
	 .summary = "a split of either plane each hour, and nobody is to be drained",
	 .play = play_verdicts_splits,
	 .finish = finish_verdicts,
	 .limit_s = 20,
	 .seconds = 7200},
	{.name = "quiet",
	 .summary = "nothing happens for a minute; then one collective",
	 .play = play_quiet,
	 .finish = finish_collective,
	 .lives = true,
	 .limit_s = 5,
	 .seconds = 60},
};

const uint32_t scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);

const struct scenario scenario_of_faults = {
	.name = "faults",
	.summary = "those of --faults",
	.play = play_listed,
	.finish = finish_listed,
	.lives = true,
	.limit_s = 60,
};

const struct scenario *scenario_find(const char *name) {
	if (strcmp(name, scenario_of_faults.name) == 0)
		return &scenario_of_faults;
	for (uint32_t n = 0; n < scenario_count; n++) {
		if (strcmp(scenarios[n].name, name) == 0)
			return &scenarios[n];
	}
	return NULL;
}

void scenario_draw_fault(
	uint64_t *random,
	uint32_t nodes,
	uint64_t dead_ns,
	uint64_t span_ns,
	struct fault *ret_fault
) {
	// Kinds in proportion to their frequency in practice; pauses are the most frequent.
	static const enum fault_kind kinds[] = {
		FAULT_KILL,   FAULT_KILL, FAULT_FORGET, FAULT_LEAVE,   FAULT_FREEZE, FAULT_FREEZE,
		FAULT_FREEZE, FAULT_STOP, FAULT_HOST,	FAULT_DEAF,    FAULT_MUTE,   FAULT_SPLIT,
		FAULT_CUT,    FAULT_SLOW, FAULT_REJECT, FAULT_RESET,   FAULT_LEAP,   FAULT_FENCE,
		FAULT_LOSS,   FAULT_SWAP, FAULT_STALE,	FAULT_MOVE,    FAULT_CLONE,  FAULT_WRONG,
		FAULT_ONEWAY, FAULT_LAG,  FAULT_LOSSIN, FAULT_LOSSOUT,
	};
	uint32_t kind = random_below(random, sizeof(kinds) / sizeof(kinds[0]));
	uint32_t least = nodes > 1 ? 100 / nodes + 1 : 0;
	struct fault fault = {
		.kind = kinds[kind],
		.node = random_below(random, nodes),
		.at_ns = random_between(random, 0, span_ns / WORLD_MS) * WORLD_MS,
		.duration_ns = random_between(random, 500, 3 * dead_ns / WORLD_MS) * WORLD_MS,
	};

	switch (fault.kind) {
	case FAULT_SPLIT:
	case FAULT_FENCE:
		// At least one host.
		fault.value = (uint32_t)random_between(random, least < 5 ? 5 : least, 51);
		fault.node = random_below(random, 2) == 0 ? 0 : fault.node;
		break;
	case FAULT_CUT:
	case FAULT_SWAP:
	case FAULT_CLONE:
	case FAULT_WRONG:
	case FAULT_ONEWAY:
		fault.value = random_below(random, nodes);
		break;
	case FAULT_SLOW:
		fault.value = (uint32_t)random_between(random, 1, 300);
		break;
	case FAULT_LAG:
		fault.value = (uint32_t)random_between(random, 50, 900);
		break;
	case FAULT_LOSS:
	case FAULT_LOSSIN:
	case FAULT_LOSSOUT:
		fault.value = (uint32_t)random_between(random, 1, 60);
		break;
	case FAULT_LEAP:
		fault.value = (uint32_t)random_between(random, 100, 20000);
		fault.duration_ns = 0;
		break;
	case FAULT_RESET:
		fault.duration_ns = 0;
		break;
	case FAULT_KILL:
	case FAULT_LEAVE:
	case FAULT_HOST:
		// Some faults are permanent.
		if (random_below(random, 3) == 0)
			fault.duration_ns = 0;
		break;
	default:
		break;
	}
	*ret_fault = fault;
}
