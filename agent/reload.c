// SPDX-License-Identifier: BSD-3-Clause
// Handles SIGHUP. A keeper reads the configuration, the key file and the subordinate uids, because
// their disk may hang.
// The loop then applies the result.
#include "agent.h"
#include "config_schema.h"

#include <control/jobhost.h>
#include <control/overlay.h>
#include <lib/container.h>
#include <lib/log.h>
#include <lib/seal_keys.h>

#include <stdlib.h>
#include <string.h>

struct reloading {
	const struct config *started_with, *fresh;
	bool join, expect, level, workers, checks, faults, probe;
};

struct wanted_change {
	const struct config_change *change;
	bool found;
};

static void wanted_change_match(void *ctx, const struct config_change *change) {
	struct wanted_change *wanted_change = ctx;

	wanted_change->found = wanted_change->found ||
			       (strcmp(change->section, wanted_change->change->section) == 0 &&
				strcmp(change->key, wanted_change->change->key) == 0);
}

static void reload_note_change(void *ctx, const struct config_change *change) {
	struct reloading *reloading = ctx;
	struct wanted_change at_start = {.change = change};
	bool waiting;

	// A key that needs a restart is compared with its value at the start. A value that was
	// changed back needs no restart.
	if (!change->reloadable)
		config_compare(
			reloading->started_with, reloading->fresh, wanted_change_match, &at_start
		);
	waiting = at_start.found;
	log_event(
		waiting ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "config_changed",
		log_str("section", change->section), log_str("key", change->key),
		log_str("before", change->before), log_str("after", change->after),
		log_str("effect", waiting ? "at the next start"
				  : change->reloadable
					  ? "now"
					  : "none: the value is the same as at the start")
	);
	if (!change->reloadable)
		return;
	reloading->join = reloading->join || strcmp(change->key, "join") == 0;
	reloading->expect = reloading->expect || strcmp(change->key, "expect") == 0;
	reloading->level = reloading->level || strcmp(change->key, "level") == 0;
	reloading->checks = reloading->checks || strncmp(change->section, "check ", 6) == 0;
	reloading->checks = reloading->checks || strcmp(change->section, "health") == 0 ||
			    strcmp(change->key, "expect_rate") == 0;
	reloading->faults = reloading->faults || strcmp(change->key, "faults") == 0;
	reloading->workers = reloading->workers || strcmp(change->section, "worker") == 0;
	reloading->probe = reloading->probe || strcmp(change->section, "probe") == 0;
}

// Files read by the keeper. The keeper owns this structure, since it may outlive other parts of the
// agent.
struct reading {
	struct options options;
	char *key_path; // NULL: keyless
	struct config *config;
	const struct seal_keys *keys;
	int key_err;
	struct subuids *subuids;
	char detail[SEAL_KEYS_DETAIL_BYTES];
};

static int reading_read_files(void *arg) {
	struct reading *reading = arg;
	int err = load_config(&reading->options, &reading->config);

	if (err == 0 && reading->key_path != NULL)
		reading->key_err =
			seal_keys_load(reading->key_path, reading->detail, &reading->keys);
	if (err == 0)
		reading->subuids = subuids_read(JOBHOST_SUBUID_FILE);
	return err;
}

static void reading_free(void *arg) {
	struct reading *reading = arg;

	config_destroy(reading->config);
	seal_keys_put(reading->keys);
	subuids_destroy(reading->subuids);
	free(reading->key_path);
	free(reading);
}

// Apply the reread keys. The same file may hold other keys; keys are rotated that way. Another
// path, or a first key, needs a restart, because members without the key would be cut off. Returns
// the outcome for the log.
static const char *reload_apply_keys(struct agent *agent, struct reading *reading) {
	if (reading->key_path == NULL)
		return "none";
	if (reading->key_err != 0) {
		log_event(
			LOG_LEVEL_ERROR, "key_not_reloaded", log_str("reason", reading->detail),
			log_str("effect", "the previous keys stay in use")
		);
		return "refused";
	}
	overlay_use_keys(agent->overlay, reading->keys);
	seal_keys_put(agent->keys);
	agent->keys = reading->keys;
	reading->keys = NULL;
	return "read";
}

static void change_ignore(void *ctx, const struct config_change *change) {
	(void)ctx;
	(void)change;
}

static void reading_apply(struct agent *agent, struct reading *reading) {
	struct reloading reloading = {
		.started_with = agent->started_with != NULL ? agent->started_with : agent->config,
		.fresh = reading->config,
	};
	size_t waiting;
	const char *key;
	bool refused;

	// The configuration of the start is kept, because changes that need a restart are counted
	// against it, over all reloads.
	config_compare(agent->config, reloading.fresh, reload_note_change, &reloading);
	if (agent->started_with == NULL)
		agent->started_with = agent->config;
	else
		config_destroy(agent->config);
	agent->config = reading->config;
	agent->settings = config_settings(agent->config);
	reading->config = NULL;
	waiting = config_compare(agent->started_with, agent->config, change_ignore, NULL);
	key = reload_apply_keys(agent, reading);
	if (reloading.level)
		log_set_level(agent->settings->log.level);
	if (reloading.expect &&
	    overlay_set_roster(agent->overlay, agent->settings->overlay.expect) != 0)
		log_event(LOG_LEVEL_ERROR, "expect_not_reloaded");
	if (reloading.workers)
		workers_reload(agent);
	if (reloading.probe)
		fabric_part_reload(agent);
	if (reloading.checks)
		checks_part_reload(agent);
	if (reloading.faults)
		soft_device_reload(agent);
	program_report_begin(agent);
	if (agent->jobhost != NULL) {
		jobhost_use_subuids(agent->jobhost, reading->subuids);
		reading->subuids = NULL;
	}
	devwatch_rescan_soon(agent);
	if (reloading.join && joining_restart(agent) != 0)
		log_event(LOG_LEVEL_ERROR, "join_not_reloaded");
	refused = strcmp(key, "refused") == 0;
	overlay_set_own_problem(
		agent->overlay, OVERLAY_OWN_RELOAD,
		refused ? "this node's key file could not be loaded at the last reload, and the "
			  "previous keys stay in use: the agent's log has the reason"
			: ""
	);
	log_event(
		refused || waiting > 0 ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "reloaded",
		log_str("key", key), log_u64("waiting_for_restart", waiting)
	);
	if (refused)
		service_notify("READY=1\nSTATUS=running; the key file could not be loaded");
	else if (waiting > 0)
		service_notify("READY=1\nSTATUS=running; changes wait for a restart");
	else
		service_notify("READY=1\nSTATUS=running");
}

static void reload_report_failure(struct agent *agent) {
	overlay_set_own_problem(
		agent->overlay, OVERLAY_OWN_RELOAD,
		"this node's configuration could not be reloaded, and the previous one stays in "
		"use: see the agent's log, or tocsind --check-config"
	);
	log_event(
		LOG_LEVEL_ERROR, "reload_failed",
		log_str("effect", "the previous configuration stays in use")
	);
	service_notify("READY=1\nSTATUS=running; the last reload failed");
}

static void on_reading_done(struct keeper_request *request, void *arg, int result) {
	struct agent *agent = container_of(request, struct agent, reload.request);

	if (agent->leaving)
		return; // a leaving agent applies no configuration
	if (result == 0)
		reading_apply(agent, arg);
	else
		reload_report_failure(agent);
	if (!agent->reload.again)
		return;
	agent->reload.again = false;
	agent_reload(agent);
}

void agent_reload(struct agent *agent) {
	struct keeper_call call = {.call = reading_read_files, .drop = reading_free};
	struct reading *reading;
	int err = -ENOMEM;

	if (agent->leaving)
		return;
	if (agent->reload.request.job != NULL) {
		agent->reload.again = true;
		return;
	}
	service_notify_reloading();
	agent->reload.request.ended = on_reading_done;
	reading = calloc(1, sizeof(*reading));
	if (reading != NULL) {
		reading->options = *agent->options;
		if (agent->key_path != NULL)
			reading->key_path = strdup(agent->key_path);
		call.arg = reading;
		if (agent->key_path == NULL || reading->key_path != NULL)
			err = keeper_run(agent->files, &call, &agent->reload.request);
		if (err != 0)
			reading_free(reading);
	}
	if (err != 0)
		reload_report_failure(agent);
}

static void on_reload_stuck(void *ctx, struct keeper *keeper) {
	(void)ctx;
	(void)keeper;
	log_event(
		LOG_LEVEL_WARN, "reload_hangs",
		log_str("reason", "reading the configuration or the key file does not return"),
		log_str("effect", "the previous configuration and keys stay in use until then")
	);
}

int reload_start(struct agent *agent) {
	const struct keeper_ops ops = {.stuck = on_reload_stuck, .totals = &agent->keeper_counters};

	return keeper_create(agent->loop, "tocsin-files", &ops, &agent->files);
}

void reload_stop(struct agent *agent) {
	agent->files = keeper_destroy(agent->files);
}
