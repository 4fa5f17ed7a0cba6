// SPDX-License-Identifier: BSD-3-Clause
// The history of the agent: its configuration, and the time that its file will cover.
#include "agent.h"
#include "check.h"

#include <control/history.h>
#include <lib/show.h>

int history_part_start(struct agent *agent) {
	const struct agent_settings *settings = agent->settings;
	const struct history_config config = {
		.directory = settings->node.state_directory,
		.size_bytes = settings->history.size_bytes,
		.interval_s = (uint32_t)(settings->history.interval_ns / RAS_NS_PER_SEC),
		.overlay = agent->overlay,
		.health = agent->health,
		.totals = &agent->keeper_counters,
	};

	if (agent->state == NULL)
		return 0;
	return history_create(agent->loop, &config, &agent->history);
}

void history_part_stop(struct agent *agent) {
	agent->history = history_destroy(agent->history);
}

void check_report_history(const struct agent_settings *settings, FILE *stream) {
	static const uint32_t paths[] = {10, 56, 224};
	char size[SHOW_BYTES], interval[SHOW_BYTES], fine[SHOW_BYTES], coarse[SHOW_BYTES];
	uint64_t bytes = settings->history.size_bytes;
	uint32_t interval_s = (uint32_t)(settings->history.interval_ns / RAS_NS_PER_SEC);

	if (bytes == 0 || settings->node.state_directory[0] == '\0')
		return;
	show_bytes(bytes, size);
	show_duration(interval_s * RAS_NS_PER_SEC, interval);
	fprintf(stream,
		"[history] size of %s holds records of each %s and of each hour for about\n", size,
		interval);
	for (size_t n = 0; n < sizeof(paths) / sizeof(paths[0]); n++) {
		show_duration(
			history_retention_s(bytes, interval_s, paths[n], HISTORY_FINE) *
				RAS_NS_PER_SEC,
			fine
		);
		show_duration(
			history_retention_s(bytes, interval_s, paths[n], HISTORY_COARSE) *
				RAS_NS_PER_SEC,
			coarse
		);
		fprintf(stream, "  %3u paths: %s, and %s\n", paths[n], fine, coarse);
	}
}
