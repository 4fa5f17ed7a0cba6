// SPDX-License-Identifier: BSD-3-Clause
// Checks of the agent's threads: whether they make progress, and whether they get processor time. A
// thread that hangs within a turn measures nothing and reports nothing. A thread that sleeps until
// it is due is sound.
#include "checks/builtin_inside.h"

#include <lib/show.h>

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

// The shortage has a hysteresis of its own (fabric/waits.c), so its evidence changes rarely.
void builtin_check_processor(struct builtin_checks *builtin, bool due) {
	const struct fabric_calls *calls = builtin->checks->config.fabric_calls;
	const struct fabric *fabric = builtin->checks->config.fabric;
	char evidence[VERDICT_EVIDENCE_MAX + 1] = "the agent's threads get processor time";
	char lasted[SHOW_BYTES];
	struct fabric_waits waits = {0};
	enum check_level level;

	if (fabric != NULL && calls->waits != NULL)
		calls->waits(fabric, &waits);
	level = waits.is_short ? CHECK_WARNING : CHECK_OK;
	if (!due && level == builtin->all[BUILTIN_PROCESSOR].level)
		return;
	show_duration(waits.for_ns, lasted);
	if (waits.is_short && 2 * waits.unjudged > waits.paths)
		snprintf(
			evidence, sizeof(evidence),
			"short of processor time for %.16s; cannot judge the latency of %u of %u "
			"paths",
			lasted, waits.unjudged, waits.paths
		);
	else if (waits.is_short)
		snprintf(
			evidence, sizeof(evidence),
			"short of processor time for %.16s; a thread waited %u.%u %% of the last "
			"second",
			lasted, waits.permille / 10, waits.permille % 10
		);
	builtin_check_result(builtin, BUILTIN_PROCESSOR, level, evidence, 0);
}
