// SPDX-License-Identifier: BSD-3-Clause
#include "control/fabric/probe_bed.h"

#include <string.h>

struct heard told[PLAYED_MAX];

void bed_note_observation(void *ctx, const struct observation *observation) {
	struct heard *of = ctx;

	for (uint32_t n = 0; n < bed.agent_count; n++) {
		if (observation->subject != bed_id(n))
			continue;
		of->last[n] = *observation;
		of->count[n]++;
		of->silent[n] += observation->kind == OBSERVATION_SILENT;
	}
}

void bed_note_hung(void *ctx, uint64_t peer, uint32_t hung, uint32_t workers) {
	struct heard *of = ctx;

	assert_in_range(workers, 1, PULSE_WORKERS_MAX);
	for (uint32_t n = 0; n < bed.agent_count; n++) {
		if (peer != bed_id(n))
			continue;
		of->hung[n] = hung;
		of->cleared[n] += hung == 0;
	}
}

void bed_start_probing(uint32_t agent) {
	bed.agents[agent].config.probe.on = true;
	bed_start(agent);
	fabric_observations(
		bed.agents[agent].fabric, bed_note_observation, bed_note_hung, &told[agent]
	);
}

int bed_probing_pair_open(void **state) {
	memset(told, 0, sizeof(told));
	bed_pair_open(state);
	for (uint32_t n = 0; n < 2; n++)
		bed.agents[n].fakes[0]->delay_ns = 20 * US;
	bed_start_probing(0);
	bed_start_probing(1);
	return 0;
}

int bed_probing_three_open(void **state) {
	(void)state;
	memset(told, 0, sizeof(told));
	bed_open(3, 1);
	bed_link(0, 1, true);
	return 0;
}

enum observation_kind bed_seen(uint32_t observer, uint32_t subject) {
	return told[observer].count[subject] > 0 ? told[observer].last[subject].kind
						 : OBSERVATION_NO_PAIR;
}

struct fabric_probe_counters bed_probes(uint32_t agent) {
	struct fabric_numbers numbers;

	fabric_numbers(bed.agents[agent].fabric, &numbers);
	return numbers.probes;
}

bool bed_find_path(uint32_t agent, uint32_t peer, struct fabric_path_view *ret_view) {
	uint32_t cursor = 0;

	while (fabric_path_next(bed.agents[agent].fabric, &cursor, ret_view)) {
		if (ret_view->peer == bed_id(peer))
			return true;
	}
	return false;
}
