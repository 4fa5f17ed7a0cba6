// SPDX-License-Identifier: BSD-3-Clause
// Reports programs of the configuration that will not be run, at the start and after each reload.
//
// The spawn helper checks each program again before it runs. This report comes before the first
// run, which for a webhook may be months later. A keeper makes it, because the programs' disk may
// hang; it reads the configuration again, so that it shares no memory with the agent.
#include "agent.h"
#include "check.h"
#include "config_schema.h"

#include <lib/log.h>

#include <stdlib.h>

struct program_report {
	struct options options;
	struct config *config;
};

static int on_keeper_report(void *arg) {
	struct program_report *report = arg;
	int err = load_config(&report->options, &report->config);

	if (err == 0)
		report_unusable_programs(config_settings(report->config));
	return err;
}

static void report_free(void *arg) {
	struct program_report *report = arg;

	config_destroy(report->config);
	free(report);
}

static void on_report_done(struct keeper_request *request, void *arg, int result) {
	(void)request;
	(void)arg;
	(void)result; // a configuration that became malformed meanwhile is reported by its reload
}

void program_report_begin(struct agent *agent) {
	struct keeper_call call = {.call = on_keeper_report, .drop = report_free};
	struct program_report *report;
	int err = -ENOMEM;

	if (agent->programs_request.job != NULL)
		return; // the disk hangs, which was logged
	report = calloc(1, sizeof(*report));
	if (report != NULL) {
		report->options = *agent->options;
		call.arg = report;
		agent->programs_request.ended = on_report_done;
		err = keeper_run(agent->programs, &call, &agent->programs_request);
	}
	if (err == 0)
		return;
	free(report);
	log_event(LOG_LEVEL_WARN, "programs_not_checked", log_errno("error", err));
}

static void on_report_stuck(void *ctx, struct keeper *keeper) {
	(void)ctx;
	(void)keeper;
	log_event(
		LOG_LEVEL_WARN, "programs_not_checked",
		log_str("reason", "looking at the programs of the configuration does not return")
	);
}

int program_report_start(struct agent *agent) {
	const struct keeper_ops ops = {.stuck = on_report_stuck, .totals = &agent->keeper_counters};
	int err = keeper_create(agent->loop, "tocsin-programs", &ops, &agent->programs);

	if (err == 0)
		program_report_begin(agent);
	return err;
}

void program_report_stop(struct agent *agent) {
	agent->programs = keeper_destroy(agent->programs);
}
