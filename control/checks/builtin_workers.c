// SPDX-License-Identifier: BSD-3-Clause
// Check of the agent's polling threads. A thread that hangs within a turn measures nothing and
// reports nothing. A thread that sleeps until it is due is sound.
#include "checks/builtin_inside.h"

#include <stdio.h>

#define SILENT_SECONDS_MAX 5 // seconds without progress

// Mention a worker that runs on other cores than it was pinned to. It still runs, so the level
// stays.
static void
evidence_add_moved_worker(char *evidence, uint32_t *count, const struct checks_worker *worker) {
	char wanted[24], allowed[24], text[VERDICT_EVIDENCE_MAX + 1];

	if (cpu_set_count(&worker->allowed) == 0)
		return;
	cpu_set_format(&worker->wanted, wanted, sizeof(wanted));
	cpu_set_format(&worker->allowed, allowed, sizeof(allowed));
	snprintf(
		text, sizeof(text), "%.16s may run on CPUs %s, but was pinned to %s", worker->name,
		allowed, wanted
	);
	builtin_evidence_add(evidence, count, text);
}

void builtin_check_workers(struct builtin_checks *builtin, bool due) {
	const struct checks_config *config = &builtin->checks->config;
	uint64_t now_ns = loop_clock_ns(config->loop);
	char evidence[VERDICT_EVIDENCE_MAX + 1] = "", text[VERDICT_EVIDENCE_MAX / 2];
	struct checks_worker worker;
	uint32_t stuck = 0, named = 0;
	enum check_level level;

	for (uint32_t n = 0; n < CHECKS_WORKERS_MAX && config->worker_at != NULL &&
			     config->worker_at(config->worker_ctx, n, &worker);
	     n++) {
		if (!due) // only the watch, once per second, reads the progress
			worker_life_observe(&builtin->lives[n], &worker.sign, now_ns);
		if (builtin->lives[n].silent < SILENT_SECONDS_MAX) {
			evidence_add_moved_worker(evidence, &named, &worker);
			continue;
		}
		snprintf(
			text, sizeof(text), "%.16s (thread %d) has made no progress for %u s",
			worker.name, worker.tid, builtin->lives[n].silent
		);
		builtin_evidence_add(evidence, &named, text);
		stuck++;
	}
	level = stuck > 0 ? CHECK_WARNING : CHECK_OK;
	if (!due && level == builtin->all[BUILTIN_WORKERS].level)
		return;
	builtin_check_result(
		builtin, BUILTIN_WORKERS, level,
		named > 0 ? evidence : "all polling threads make progress", 0
	);
}
